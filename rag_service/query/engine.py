"""The query engine: a question in, events out; every door (REST, page, notebook) goes through it.

    question → retriever → postprocessors → packed context → prompt → one streaming model call
             → citations checked sentence by sentence → decision, confidence, record

There is one stream of events. The plain reply collects it, so both modes give the same answer for
the same model output. LlamaIndex sees a `BaseQueryEngine`.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from copy import copy
from dataclasses import replace
from uuid import uuid4

import structlog
from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.response.schema import RESPONSE_TYPE, Response
from llama_index.core.callbacks.base import CallbackManager
from llama_index.core.prompts.mixin import PromptMixinType
from llama_index.core.schema import QueryBundle

from rag_service.domain import Answer, AnswerQuery, Decision, Hit, Identity, TokenCount
from rag_service.models.chat.chat import ChatDelta, ChatModel
from rag_service.models.reranking.rerankers import Reranker
from rag_service.query.checked_answer import AnswerChecker, CheckedAnswer
from rag_service.query.confidence import decide, quotes_formula, rate_confidence
from rag_service.query.events import AnswerComplete, AnswerDelta, AnswerEvent, SourcesFound
from rag_service.query.guards.guardrails import NEVER_SAY, check_rules, find_rules
from rag_service.query.prompting.answer_prompt import Prompted, warn_of_absent, write_prompt
from rag_service.query.prompting.prompt import Prompts
from rag_service.query.retrieval.nodes import to_node
from rag_service.query.retrieval.postprocess import HitPostprocessor, NewerFirst, Rerank, Threshold, TopK, find_related
from rag_service.query.retrieval.retriever import Retrieval, Retriever
from rag_service.settings import Settings
from rag_service.text.tokens import count_tokens
from rag_service.text.words import terms
from rag_service.tracing import record_span, span

log = structlog.get_logger(__name__)

RERANKED = 20  # hits that the reranker sees

Recorder = Callable[[AnswerQuery, Answer, Retrieval, Identity], Awaitable[None]]


class AnswerEngine(BaseQueryEngine):
    """Answers questions with verified citations."""

    def __init__(
        self,
        retriever: Retriever,
        chat: ChatModel,
        reranker: Reranker,
        prompts: Prompts,
        settings: Settings,
        *,
        identity: Identity,
        record: Recorder | None = None,
    ):
        """
        Args:
            retriever: finds passages.
            chat: writes the answer.
            reranker: reorders passages.
            prompts: templates and messages.
            settings: limits and switches.
            identity: who asks when LlamaIndex calls `query`.
            record: stores each finished answer; None stores none.
        """
        super().__init__(CallbackManager([]))
        self._retriever = retriever
        self._chat = chat
        self._reranker = reranker
        self._prompts = prompts
        self._settings = settings
        self._identity = identity
        self._record = record

    def recording_to(self, record: Recorder) -> AnswerEngine:
        """The same engine with another recorder."""
        other = copy(self)
        other._record = record
        return other

    async def search(self, query: AnswerQuery, identity: Identity) -> tuple[Retrieval, tuple[Hit, ...]]:
        """Passages above the threshold, best first, at most `top_k`; no model is called."""
        with span("search"):
            retrieval = await self._retriever.search(
                query.question,
                identity=identity,
                filters=query.filters,
                limit=max(RERANKED, query.top_k),
                mode="hybrid" if self._settings.hybrid else "dense",
            )
        hits = list(retrieval.hits)
        for postprocessor in self._postprocessors(query, retrieval):
            # Not by way of LlamaIndex's nodes: to make and unpack them takes as long as all that is done to them.
            hits = await postprocessor.process(hits, query.question)
        return retrieval, tuple(hits)

    def _postprocessors(self, query: AnswerQuery, retrieval: Retrieval) -> list[HitPostprocessor]:
        language = retrieval.plan.language
        return [
            Rerank(self._reranker, lambda text: terms(text, language)),
            NewerFirst(),
            Threshold(self._threshold(query, retrieval)),
            TopK(query.top_k),
        ]

    def _threshold(self, query: AnswerQuery, retrieval: Retrieval) -> float:
        chosen = retrieval.index.query.threshold if query.threshold is None else query.threshold
        return self._settings.similarity_threshold if chosen is None else chosen

    async def stream(self, query: AnswerQuery, identity: Identity) -> AsyncGenerator[AnswerEvent]:
        """Answer as events: sources, then deltas and citations, then the complete answer.

        Raises:
            ModelBusyError: too many are being answered, before the first event.
            ModelError: the model fails, also midway.
            EmbeddingError, StoreError: before the first event.
            ContextOverflowError: question and instructions alone fill the window.
        """
        with self._chat.admit():
            events = self._events(query, identity)
            async with aclosing(events):
                async for event in events:
                    yield event

    async def _events(self, query: AnswerQuery, identity: Identity) -> AsyncGenerator[AnswerEvent]:
        started = time.perf_counter()
        answer_id = uuid4()
        log.info("answer_started", answer_id=str(answer_id), top_k=query.top_k)
        retrieval, sources = await self.search(query, identity)
        if not sources:
            events = self._nothing_found(query, retrieval)
        else:
            events = self._answer_from(query, retrieval, sources, identity)
        async with aclosing(events):
            async for event in events:
                if not isinstance(event, AnswerComplete):
                    yield event
                    continue
                answer = replace(
                    event.answer, id=answer_id, latency_ms=round((time.perf_counter() - started) * 1000, 1)
                )
                if self._record is not None:
                    await self._record(query, answer, retrieval, identity)
                log.info(
                    "answer_finished",
                    answer_id=str(answer_id),
                    contexts=len(answer.shown),
                    decision=answer.decision.value,
                    latency_ms=answer.latency_ms,
                    retrieval_ms=round(sum(retrieval.timings_ms.values()), 1),
                    embedding_ms=retrieval.timings_ms.get("embedding", 0.0),  # what was waited for it
                )
                yield AnswerComplete(answer=answer)

    async def answer(self, query: AnswerQuery, identity: Identity) -> Answer:
        """The same as one object."""
        async with aclosing(self.stream(query, identity)) as events:
            async for event in events:
                if isinstance(event, AnswerComplete):
                    return event.answer
        raise RuntimeError("the answer stream ended without a complete answer")

    async def _nothing_found(self, query: AnswerQuery, retrieval: Retrieval) -> AsyncGenerator[AnswerEvent]:
        """The model is never called where there is nothing to answer from (requirement A4)."""
        text = self._say_nothing_found(retrieval)
        yield SourcesFound(sources=(), shown=(), timings_ms=retrieval.timings_ms)
        yield AnswerDelta(text=text)
        yield AnswerComplete(
            answer=Answer(
                id=uuid4(),
                question=query.question,
                language=retrieval.plan.language,
                text=text,
                sources=(),
                shown=(),
                citations=(),
                decision=Decision.OUT_OF_SCOPE,
                confidence=rate_confidence((), retrieval.index.query),
                tokens=TokenCount(prompt=0, completion=0, estimated=False),
                latency_ms=0.0,
                model=self._chat.model_name,
                related=find_related(retrieval.hits),
            )
        )

    def _say_nothing_found(self, retrieval: Retrieval) -> str:
        if not retrieval.scope.chunk_count:
            return self._prompts.message("no_documents", retrieval.plan.language)
        if not retrieval.scope.reachable:
            return self._prompts.message("nothing_selected", retrieval.plan.language)
        said = self._prompts.message("nothing_found", retrieval.plan.language)
        warning = warn_of_absent(retrieval, self._prompts)
        return f"{warning} {said}" if warning else said

    async def _answer_from(
        self, query: AnswerQuery, retrieval: Retrieval, sources: tuple[Hit, ...], identity: Identity
    ) -> AsyncGenerator[AnswerEvent]:
        with span("prompt"):
            prompted = write_prompt(
                query,
                retrieval,
                sources,
                prompts=self._prompts,
                settings=self._settings,
                window=self._chat.context_window,
            )
        shown = prompted.context.hits
        yield SourcesFound(sources=sources, shown=shown, timings_ms=retrieval.timings_ms)
        checker = self._checker(query, retrieval, prompted)
        last = ChatDelta(text="")
        deltas = self._chat.stream(prompted.messages, expected_prompt_tokens=prompted.tokens)
        verifying = 0.0  # seconds
        async with aclosing(deltas):
            async for delta in deltas:
                last = delta
                began = time.perf_counter()
                checking = list(checker.feed(delta.text))
                verifying += time.perf_counter() - began
                for event in checking:
                    yield event
        began = time.perf_counter()
        events, checked = checker.finish()
        record_span("verify", verifying + time.perf_counter() - began)
        for event in events:
            yield event
        answer = self._complete(query, retrieval, sources, prompted, checked, last)
        rules = await find_rules(self._retriever, retrieval, shown, identity=identity)
        forbidden = [rule for rule in rules if rule.kind == NEVER_SAY]
        checks = check_rules(forbidden, [("answer", checked.text)], language=retrieval.plan.language)
        yield AnswerComplete(answer=replace(answer, guardrails=checks))

    def _checker(self, query: AnswerQuery, retrieval: Retrieval, prompted: Prompted) -> AnswerChecker:
        shown = prompted.context.hits
        ids = {hit.chunk.id for hit in shown}
        return AnswerChecker(
            shown,
            others=[hit for hit in retrieval.hits if hit.chunk.id not in ids],
            question=query.question,
            harmless=[prompted.refusal, *prompted.warnings],
            notice=self._prompts.message("withheld", retrieval.plan.language),
            language=retrieval.plan.language,
            secrets=[prompted.secret],
            withhold=self._settings.withhold_unverified,
        )

    def _complete(
        self,
        query: AnswerQuery,
        retrieval: Retrieval,
        sources: tuple[Hit, ...],
        prompted: Prompted,
        checked: CheckedAnswer,
        last: ChatDelta,
    ) -> Answer:
        text, language = checked.text, retrieval.plan.language
        definition = retrieval.index.query
        confidence = rate_confidence(sources, definition)
        refused = text.strip() in ("", prompted.refusal)
        counted = last.prompt_tokens is not None and last.completion_tokens is not None
        return Answer(
            id=uuid4(),
            question=query.question,
            language=language,
            text=text,
            sources=sources,
            shown=prompted.context.hits,
            citations=checked.citations,
            decision=decide(
                confidence,
                found=True,
                refused=refused,
                warned=bool(prompted.warnings) or quotes_formula(query.question, language, checked.citations),
                context_tokens=prompted.context.tokens,
                minimum=definition.minimum_context_tokens,
            ),
            confidence=confidence,
            tokens=TokenCount(
                prompt=last.prompt_tokens if last.prompt_tokens is not None else prompted.tokens,
                completion=last.completion_tokens if last.completion_tokens is not None else count_tokens(text),
                estimated=not counted,
            ),
            latency_ms=0.0,
            model=self._chat.model_name,
            unmarked_sentences=0 if refused else len(checked.unmarked),
            withheld_sentences=checked.withheld,
            flagged=() if refused else checked.flagged,
        )

    # -- LlamaIndex

    async def _aquery(self, query_bundle: QueryBundle) -> RESPONSE_TYPE:
        """What LlamaIndex's `aquery` calls, with the settings' defaults."""
        settings = self._settings
        answer = await self.answer(
            AnswerQuery(
                question=query_bundle.query_str,
                top_k=settings.topk_default,
            ),
            self._identity,
        )
        return Response(
            response=answer.text,
            source_nodes=[to_node(hit) for hit in answer.sources],
            metadata={"answer_id": str(answer.id), "decision": answer.decision.value},
        )

    def _query(self, query_bundle: QueryBundle) -> RESPONSE_TYPE:
        raise RuntimeError("This engine is asynchronous; use `aquery`, or the notebook's `open_service()`.")

    def _get_prompt_modules(self) -> PromptMixinType:
        return {}

"""The query engine behind every endpoint.

    RagQuery → retriever → postprocessors → synthesizer (prompt, one streaming model call, proof) → record

It is a LlamaIndex `RetrieverQueryEngine`, whose methods call ours:

    stream, answer → aquery → _aquery → aretrieve → PassageRetriever.search
                                                  → _async_apply_node_postprocessors
                                      → CitedSynthesizer.asynthesize

`stream` yields the events of an answer; `aquery` and `answer` return the same answer as one object.
"""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial
from itertools import zip_longest
from typing import cast

import structlog
from llama_index.core.base.response.schema import RESPONSE_TYPE
from llama_index.core.callbacks.base import CallbackManager
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.schema import NodeWithScore, QueryBundle

from rag_service.answering.conversation import find_remembered, languages_of_turns, lean_on_history
from rag_service.answering.events import AnswerComplete, AnswerEvent
from rag_service.answering.guards.guardrails import check_answer
from rag_service.answering.prompt.templates import Prompts
from rag_service.answering.synthesizer import CitedResponse, CitedSynthesizer
from rag_service.answering.tools.toolbox import Tools
from rag_service.domain import Answer, Hit, Turn
from rag_service.errors import PluginError
from rag_service.language.detection import reply_to_small_talk
from rag_service.models.judge.judges import WatchedJudge
from rag_service.models.llm.model import ChatModel, counted
from rag_service.models.reranking.reranker import Reranker
from rag_service.models.servers.resilience import in_own_thread
from rag_service.observability.tracing import span
from rag_service.recent import keep_for
from rag_service.retrieval.hops import next_search
from rag_service.retrieval.parts import split_question
from rag_service.retrieval.postprocessors import ChoosePassages, Rerank
from rag_service.retrieval.query import Part, PassageRetriever, RagQuery
from rag_service.settings import Settings
from rag_service.tables.asking.answers import TableAnswers
from rag_service.tasks import end_tasks
from rag_service.unpicklable import Unpicklable

log = structlog.get_logger(__name__)

PLUGIN_SECONDS = 30.0  # time limit of a postprocessor that is not ours
_EVENTS_AHEAD = 64  # size of the queue between answering and reading

Recorder = Callable[[RagQuery, Answer], Awaitable[bool]]  # whether it is stored
# Passages that the last answers of a conversation cited, and those that the answers it comes back to cited.
Recall = Callable[[RagQuery], Awaitable[tuple[tuple[Hit, ...], tuple[Hit, ...]]]]


@dataclass(frozen=True, kw_only=True)
class Postprocessors:
    """Node postprocessors that run after the built-in ones."""

    by_index: Mapping[str, Sequence[BaseNodePostprocessor]]  # by the name of the index
    always: Sequence[BaseNodePostprocessor] = ()  # for every index, last


NO_POSTPROCESSORS = Postprocessors(by_index={})


class CitedQueryEngine(Unpicklable, RetrieverQueryEngine):
    """Answers questions with verified citations."""

    def __init__(
        self,
        retriever: PassageRetriever,
        synthesizer: CitedSynthesizer,
        reranker: Reranker,
        *,
        threshold: float,
        out_of_scope: float,
        postprocessors: Postprocessors,
        record: Recorder | None,
        recall: Recall | None = None,
        keeps: bool = True,
    ):
        """
        Args:
            retriever: finds passages; its identity is used for plain queries.
            synthesizer: writes and checks the answer.
            reranker: reorders passages.
            threshold: default relevance from which on a passage answers, 0..1.
            out_of_scope: relevance that the last passage must reach by default, 0..1.
            postprocessors: run after the built-in ones.
            record: stores each finished answer; None stores none.
            recall: finds what earlier answers cited; None: only what is found now is shown.
            keeps: whether what was made for a question is kept for the next ones of the same user.
        """
        super().__init__(
            retriever,
            synthesizer,
            node_postprocessors=[
                Rerank(reranker),
                ChoosePassages(default=threshold, out_of_scope=out_of_scope),
            ],
            callback_manager=CallbackManager([]),
        )
        self._passages = retriever
        self._synthesizer = synthesizer
        self._added = postprocessors
        self._record = record
        self._recall = recall
        self._keeps = keeps

    def offer_tools(self, tools: Tools) -> None:
        """Let models that can call tools use these while they answer."""
        self._synthesizer.offer_tools(tools)

    async def search(self, query: RagQuery) -> tuple[Hit, ...]:
        """At most `top_k` passages, best first, down to the last one above the threshold; `query.found` holds the rest.

        Calls no model.
        """
        query.as_asked = True
        return query.hits(await self.aretrieve(query))

    async def aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        """Like LlamaIndex's; a plain query uses the retriever's identity."""
        with span("search"):
            query = self._passages.as_query(query_bundle)
            with self._keep_for(query):
                if query.given is not None:
                    return await self._take_given(query, query.given)
                nodes = await super().aretrieve(query)
                return await self._retrieve_more(query, nodes)

    async def _take_given(self, query: RagQuery, given: Sequence[Hit]) -> list[NodeWithScore]:
        """The passages that the caller chose, with the scores of the search for those that it finds."""
        retrieval = await self._passages.search(query)
        found = {hit.chunk.id: hit for hit in retrieval.hits}
        return query.keep(replace(retrieval, hits=tuple(found.get(hit.chunk.id, hit) for hit in given)))

    async def _retrieve_more(self, query: RagQuery, nodes: list[NodeWithScore]) -> list[NodeWithScore]:
        """The passages of a question and of each of its parts, or of its next step, by turns."""
        is_joined = query.follow_up is not None and query.follow_up.joined
        if query.as_asked or is_joined or query.found.files is not None:
            return nodes
        split = split_question(query.question, query.found.plan.language)
        parts: list[Part] = []
        for text in split.questions:
            question, follow_up = f"{split.lead} {text}".strip(), None
            if not split.lead:
                before = [Turn(role="user", content=part.text) for part in parts]
                question, follow_up = await lean_on_history(text, before, partial(self._find, query))
            languages = (query.found.plan.language, *query.languages)
            asked = replace(query, query_str=question, follow_up=follow_up, turns=(), languages=languages)
            nodes_of_part = await super().aretrieve(asked)
            parts.append(Part(text=text, query=asked, nodes=nodes_of_part, is_clause=split.are_clauses))
            query.passages = asked.passages | query.passages
        query.parts = tuple(parts)
        lists = [nodes, *(part.nodes for part in parts)]
        if not parts and nodes and query.found.is_chain:
            lists += await self._follow(query, nodes)
        query.searches = len(lists)
        turns = [node for turn in zip_longest(*lists) for node in turn if node is not None]
        unique = list({node.node.node_id: node for node in reversed(turns)}.values())[::-1]
        return unique[: query.top_k * len(lists)]

    async def _follow(self, query: RagQuery, nodes: Sequence[NodeWithScore]) -> list[list[NodeWithScore]]:
        """What the next search finds, which goes on from the best passage."""
        text = next_search(query.question, query.found.plan, query.hits(nodes[:1])[0])
        if text is None:
            return []
        following = replace(query, query_str=text, turns=())
        found = await super().aretrieve(following)
        query.passages = following.passages | query.passages
        return [found]

    async def _async_apply_node_postprocessors(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle
    ) -> list[NodeWithScore]:
        nodes = await super()._async_apply_node_postprocessors(nodes, query_bundle)
        if not isinstance(query_bundle, RagQuery):
            return nodes
        for added in (*self._added.by_index.get(query_bundle.found.index.name, ()), *self._added.always):
            nodes = await _postprocess(added, nodes, query_bundle)
            query_bundle.postprocessed = True
        return nodes

    async def stream(self, query: RagQuery) -> AsyncGenerator[AnswerEvent]:
        """Answer as events: sources, then deltas and citations, then the complete answer.

        Raises:
            ModelBusyError: too many questions are being answered, before the first event.
            ModelError: the model fails, also midway.
            EmbeddingError, StoreError, PluginError: before the first event.
            ContextOverflowError: question and instructions alone fill the window.
        """
        events: asyncio.Queue[AnswerEvent | None] = asyncio.Queue(_EVENTS_AHEAD)
        query.emit = events.put

        async def run() -> None:
            try:
                await self.aquery(query)
            finally:
                task = asyncio.current_task()
                if task is not None and not task.cancelling():
                    await events.put(None)

        answering = asyncio.create_task(run())
        answering.add_done_callback(lambda task: task.cancelled() or task.exception())  # a reader may have left
        try:
            while (event := await events.get()) is not None:
                yield event
            await answering  # raises what went wrong
        finally:
            await end_tasks(answering)

    async def answer(self, query: RagQuery) -> Answer:
        """The complete answer."""
        return cast("CitedResponse", await self.aquery(query)).answer

    async def _aquery(self, query_bundle: QueryBundle) -> RESPONSE_TYPE:
        query = self._passages.as_query(query_bundle)
        with self._keep_for(query):
            return await self._answer(query)

    def _keep_for(self, query: RagQuery) -> AbstractContextManager[None]:
        return keep_for(query.identity.user_id, lasting=self._keeps)

    async def _answer(self, query: RagQuery) -> RESPONSE_TYPE:
        started = time.perf_counter()
        answer_id = query.answer_id
        log.info("answer_started", answer_id=str(answer_id), top_k=query.top_k)
        query.model = query.model or self._synthesizer.chat
        with query.model.slots.admit(query.identity.user_id), counted(query.calls):
            if query.task is not None:
                response = await self._synthesizer.do_task(query, query.task)
            elif (reply := reply_to_small_talk(query.question)) is not None:
                response = await self._synthesizer.reply(query, reply.text, language=reply.language)
            else:
                query.languages = tuple(dict.fromkeys([*languages_of_turns(query.turns), *query.languages]))
                if query.turns:
                    if not query.model.only_quotes:
                        query.remembered = find_remembered(query.turns, query.question)
                        if self._recall is not None:
                            query.earlier, query.earlier_still = await self._recall(query)
                    await self._synthesizer.condense(query, partial(self._find, query))
                response = cast("CitedResponse", await super()._aquery(query))
        latency = round((time.perf_counter() - started) * 1000, 1)
        timings = {} if query.retrieval is None else query.retrieval.timings_ms
        retrieval = round(sum(timings.values()), 1)
        answer = replace(
            response.answer, id=answer_id, latency_ms=latency, retrieval_ms=retrieval, calls=tuple(query.calls)
        )
        if self._record is not None and query.recorded:
            answer = replace(answer, recorded=await self._record(query, answer))
        log.info(
            "answer_finished",
            answer_id=str(answer_id),
            contexts=len(answer.shown),
            decision=answer.decision.value,
            latency_ms=latency,
            retrieval_ms=retrieval,
            model_calls=len(answer.calls),
            embedding_ms=timings.get("embedding", 0.0),  # time spent waiting for it
        )
        await query.emit(AnswerComplete(answer=answer))
        return CitedResponse(answer, response.source_nodes)

    async def _find(self, query: RagQuery, question: str) -> Sequence[Hit]:
        """The passages of another question, best first, as the query would find them."""
        return (await self._passages.search(replace(query, query_str=question, turns=()))).hits

    def _query(self, query_bundle: QueryBundle) -> RESPONSE_TYPE:
        raise RuntimeError("This engine is asynchronous: use `aquery`, or the engine of `open_service()`.")


def build_engine(
    retriever: PassageRetriever,
    chat: ChatModel,
    reranker: Reranker,
    prompts: Prompts,
    settings: Settings,
    *,
    postprocessors: Postprocessors = NO_POSTPROCESSORS,
    record: Recorder | None = None,
    recall: Recall | None = None,
    judge: WatchedJudge | None = None,
    tables: TableAnswers | None = None,
) -> CitedQueryEngine:
    """The engine over these parts; arguments as in `CitedQueryEngine` and `CitedSynthesizer`."""
    return CitedQueryEngine(
        retriever,
        CitedSynthesizer(
            chat, prompts, settings, check_guardrails=partial(check_answer, retriever), judge=judge, tables=tables
        ),
        reranker,
        threshold=settings.retrieval.threshold,
        out_of_scope=settings.retrieval.out_of_scope_threshold,
        postprocessors=postprocessors,
        record=record,
        recall=recall,
        keeps=settings.embedding.query_cache_size > 0,
    )


async def _postprocess(
    postprocessor: BaseNodePostprocessor, nodes: list[NodeWithScore], query: RagQuery
) -> list[NodeWithScore]:
    """Run a third-party postprocessor with a time limit; nodes that were not retrieved are dropped.

    Raises:
        PluginError: it failed or took too long.
    """
    name = type(postprocessor).__name__
    try:
        async with asyncio.timeout(PLUGIN_SECONDS):
            if _is_blocking(postprocessor):
                found = await in_own_thread(partial(postprocessor.postprocess_nodes, nodes, query_bundle=query))
            else:
                found = await postprocessor.apostprocess_nodes(nodes, query_bundle=query)
        found = list(found)
        kept = [node for node in found if node.node.node_id in query.passages]
    except Exception as error:
        raise PluginError(f"The node postprocessor {name} failed.") from error
    if len(kept) < len(found):
        log.warning("foreign_nodes_dropped", postprocessor=name, count=len(found) - len(kept))
    return kept


def _is_blocking(postprocessor: BaseNodePostprocessor) -> bool:
    """Whether the class has no asynchronous method of its own: LlamaIndex's runs the other in a shared executor."""
    name = "_apostprocess_nodes"
    return inspect.getattr_static(postprocessor, name) is inspect.getattr_static(BaseNodePostprocessor, name)

"""The query engine behind every endpoint.

    Question → retriever → Found → postprocessors → Found → synthesizer → Draft → Answer → record

An `AnswerRun` holds them. It is a LlamaIndex `RetrieverQueryEngine`, whose methods call ours:

    stream, answer → aquery → _aquery → aretrieve → PassageRetriever.search
                                                  → _async_apply_node_postprocessors
                                      → CitedSynthesizer.asynthesize

`stream` yields the events of an answer; `aquery` and `answer` return the same answer as one object.
"""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial
from itertools import zip_longest
from typing import TypeVar, cast

import structlog
from llama_index.core.base.response.schema import RESPONSE_TYPE
from llama_index.core.callbacks.base import CallbackManager
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.schema import NodeWithScore, QueryBundle

from rag_service.answering.conversation import (
    find_remembered,
    history_for,
    languages_of_turns,
    lean_on_history,
    make_standalone,
)
from rag_service.answering.drafts.events import AnswerComplete, AnswerEvent
from rag_service.answering.guards.guardrails import check_answer
from rag_service.answering.prompt.templates import Prompts
from rag_service.answering.quoting.quoter import Quoter
from rag_service.answering.replies import do_task, reply
from rag_service.answering.synthesizer import CitedResponse, CitedSynthesizer
from rag_service.answering.tools.toolbox import Tools
from rag_service.domain import Answer, Hit, Turn
from rag_service.errors import InputError, PluginError
from rag_service.language.detection import reply_to_small_talk
from rag_service.models.judge.judges import WatchedJudge
from rag_service.models.llm.model import ChatModel, counted
from rag_service.models.reranking.reranker import Reranker
from rag_service.models.servers.resilience import in_own_thread
from rag_service.observability.tracing import span
from rag_service.recent import keep_for
from rag_service.retrieval.answer_schema import AnswerSchema
from rag_service.retrieval.found import Found, Part
from rag_service.retrieval.parts import next_search, split_question
from rag_service.retrieval.postprocessors import ChoosePassages, Rerank
from rag_service.retrieval.query import AnswerRun, PassageRetriever, RagQuery, to_node
from rag_service.retrieval.question import FollowUp, Question
from rag_service.settings import Settings
from rag_service.tables.asking.answers import TableAnswers
from rag_service.tasks import end_tasks
from rag_service.unpicklable import Unpicklable

log = structlog.get_logger(__name__)

_Item = TypeVar("_Item")
PLUGIN_SECONDS = 30.0  # time limit of a postprocessor that is not ours
_FOR_FIELDS = 60  # passages that are found for the fields of a schema: as many as a prompt may hold
_EVENTS_AHEAD = 64  # size of the queue between answering and reading

Recorder = Callable[[AnswerRun, Answer], Awaitable[bool]]  # whether it is stored
# Passages that the last answers of a conversation cited, and those that the answers it comes back to cited.
Recall = Callable[[Question], Awaitable[tuple[tuple[Hit, ...], tuple[Hit, ...]]]]


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
        prompts: Prompts,
        keeps: bool = True,
    ):
        """
        Args:
            retriever: finds passages; its identity is used for plain queries.
            synthesizer: writes and checks the answer.
            prompts: templates and messages.
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
        self._prompts = prompts
        self._keeps = keeps

    def offer_tools(self, tools: Tools) -> None:
        """Let models that can call tools use these while they answer."""
        self._synthesizer.offer_tools(tools)

    def begin(self, question: Question, model: ChatModel | None = None) -> AnswerRun:
        """Return the run of a question, which shows what becomes of it. `model`: None: the engine's."""
        return AnswerRun(question=question, model=model or self._synthesizer.chat)

    async def search(self, question: Question) -> Found:
        """At most `top_k` passages, best first, down to the last one above the threshold. Calls no model."""
        run = self.begin(replace(question, as_asked=True))
        await self.aretrieve(RagQuery.of(run))
        return run.found

    async def aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        """Like LlamaIndex's; a plain query uses the retriever's identity."""
        with span("search"):
            run = self._run_of(query_bundle)
            with self._keep_for(run.question):
                if run.question.given is not None:
                    run.retrieved = await self._take_given(run.question, run.question.given)
                    return list(map(to_node, run.found.passages))
                if run.question.schema is not None:
                    nodes, run.retrieved = await self._retrieve_fields(run, run.question.schema)
                    return nodes
                nodes = await super().aretrieve(RagQuery.of(run))
                nodes, run.retrieved = await self._retrieve_more(run, nodes)
                return nodes

    async def _retrieve_fields(self, run: AnswerRun, schema: AnswerSchema) -> tuple[list[NodeWithScore], Found]:
        """Find the passages for each field of a schema, by turns."""
        question = run.question
        asked = FollowUp(asked=question.asked, joined=False)
        searched = [
            await self._retrieve(run, replace(question, text=text, follow_up=asked, candidates=_FOR_FIELDS))
            for text in schema.search_texts(question.text)
        ]
        nodes = by_turns((nodes for nodes, _ in searched), lambda node: node.node.node_id)
        found = [one for _, one in searched]
        current = [[hit for hit in one.hits if hit.chunk.document.id not in one.other_versions] for one in found]
        together = replace(
            found[0],
            hits=tuple(by_turns(current, lambda hit: hit.chunk.id)),
            known={key: hit for one in reversed(found) for key, hit in one.known.items()},
            weights={term: weight for one in found for term, weight in one.weights.items()},
            is_doubtful=all(one.is_doubtful for one in found),
            is_filtered=any(one.is_filtered for one in found),
            searches=len(found),
        )
        return nodes, together.choose(nodes)

    async def _take_given(self, question: Question, given: Sequence[Hit]) -> Found:
        """The passages that the caller chose, with the scores of the search for those that it finds."""
        found = await self._passages.search(question)
        by_id = {hit.chunk.id: hit for hit in found.hits}
        chosen = tuple(by_id.get(hit.chunk.id, hit) for hit in given)
        return replace(found, hits=chosen).all_visible(question.filters)

    async def _retrieve_more(self, run: AnswerRun, nodes: list[NodeWithScore]) -> tuple[list[NodeWithScore], Found]:
        """The passages of a question and of each of its parts, or of its next step, by turns."""
        question, found = run.question, run.found.choose(nodes)
        if question.as_asked or question.is_joined or found.files is not None:
            return nodes, found
        parts, lists = await self._retrieve_parts(run)
        others = [part.found for part in parts]
        if not parts and found.passages and found.is_chain:
            text = next_search(question.text, found.plan, found.passages[0])
            if text is not None:
                nodes_of_step, found_of_step = await self._retrieve(run, replace(question, text=text, turns=()))
                lists.append(nodes_of_step)
                others.append(found_of_step)
        lists.insert(0, nodes)
        nodes = by_turns(lists, lambda node: node.node.node_id)[: question.top_k * len(lists)]
        known = {key: hit for one in (*reversed(others), found) for key, hit in one.known.items()}
        return nodes, replace(found, parts=tuple(parts), searches=len(lists), known=known).choose(nodes)

    async def _retrieve_parts(self, run: AnswerRun) -> tuple[list[Part], list[list[NodeWithScore]]]:
        """The parts of a question, and the nodes found for each."""
        question, found = run.question, run.found
        split = split_question(question.text, found.plan.language)
        parts, lists = list[Part](), list[list[NodeWithScore]]()
        for text in split.questions:
            asked, follow_up = f"{split.lead} {text}".strip(), None
            if not split.lead:
                before = [Turn(role="user", content=part.text) for part in parts]
                asked, follow_up = await lean_on_history(text, before, partial(self._find, question))
            languages = (found.plan.language, *question.languages)
            own = replace(question, text=asked, follow_up=follow_up, turns=(), languages=languages)
            nodes_of_part, found_of_part = await self._retrieve(run, own)
            parts.append(Part(text=text, question=own, found=found_of_part, is_clause=split.are_clauses))
            lists.append(nodes_of_part)
        return parts, lists

    async def _retrieve(self, run: AnswerRun, question: Question) -> tuple[list[NodeWithScore], Found]:
        """Find and postprocess the passages of another question."""
        other = replace(run, question=question, retrieved=None)
        nodes = await super().aretrieve(RagQuery.of(other))
        return nodes, other.found.choose(nodes)

    async def _async_apply_node_postprocessors(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle
    ) -> list[NodeWithScore]:
        nodes = await super()._async_apply_node_postprocessors(nodes, query_bundle)
        if not isinstance(query_bundle, RagQuery):
            return nodes
        run = query_bundle.run
        for added in (*self._added.by_index.get(run.found.index.name, ()), *self._added.always):
            nodes = await _postprocess(added, nodes, query_bundle)
            run.retrieved = replace(run.found, is_filtered=True)
        return nodes

    async def stream(self, asked: Question | AnswerRun) -> AsyncGenerator[AnswerEvent]:
        """Answer as events: sources, then deltas and citations, then the complete answer.

        Raises:
            ModelBusyError: too many questions are being answered, before the first event.
            ModelError: the model fails, also midway.
            EmbeddingError, StoreError, PluginError: before the first event.
            ContextOverflowError: question and instructions alone fill the window.
        """
        events: asyncio.Queue[AnswerEvent | None] = asyncio.Queue(_EVENTS_AHEAD)
        run = asked if isinstance(asked, AnswerRun) else self.begin(asked)
        run.emit = events.put

        async def answer() -> None:
            try:
                await self.aquery(RagQuery.of(run))
            finally:
                task = asyncio.current_task()
                if task is not None and not task.cancelling():
                    await events.put(None)

        answering = asyncio.create_task(answer())
        answering.add_done_callback(lambda task: task.cancelled() or task.exception())  # a reader may have left
        try:
            while (event := await events.get()) is not None:
                yield event
            await answering  # raises what went wrong
        finally:
            await end_tasks(answering)

    async def answer(self, asked: Question | AnswerRun) -> Answer:
        """The complete answer."""
        run = asked if isinstance(asked, AnswerRun) else self.begin(asked)
        return cast("CitedResponse", await self.aquery(RagQuery.of(run))).answer

    async def _aquery(self, query_bundle: QueryBundle) -> RESPONSE_TYPE:
        run = self._run_of(query_bundle)
        with self._keep_for(run.question):
            return await self._answer(run)

    def _run_of(self, query_bundle: QueryBundle) -> AnswerRun:
        if isinstance(query_bundle, RagQuery):
            return query_bundle.run
        return self.begin(self._passages.read_question(query_bundle))

    def _keep_for(self, question: Question) -> AbstractContextManager[None]:
        return keep_for(question.identity.user_id, lasting=self._keeps)

    async def _answer(self, run: AnswerRun) -> RESPONSE_TYPE:
        started, answer_id = time.perf_counter(), run.question.answer_id
        log.info("answer_started", answer_id=str(answer_id), top_k=run.question.top_k)
        async with run.model.turn(run.question.identity.user_id):
            with counted(run.calls):
                response = await self._respond(run)
        latency = round((time.perf_counter() - started) * 1000, 1)
        timings = {} if run.retrieved is None else run.retrieved.timings_ms
        retrieval = round(sum(timings.values()), 1)
        answer = replace(
            response.answer, id=answer_id, latency_ms=latency, retrieval_ms=retrieval, calls=tuple(run.calls)
        )
        if self._record is not None and run.question.recorded:
            answer = replace(answer, recorded=await self._record(run, answer))
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
        await run.emit(AnswerComplete(answer=answer))
        return CitedResponse(answer, response.source_nodes, response.signals)

    async def _respond(self, run: AnswerRun) -> CitedResponse:
        """Do a task, answer small talk, or retrieve and answer."""
        question = run.question
        if question.schema is not None and run.model.only_quotes:
            raise InputError(
                "An answer as JSON needs a chat model, and none is set up here: set RAG_CHAT_PROVIDER, or ask "
                "without a schema.",
                field="schema",
            )
        if question.task is not None:
            return CitedResponse(await do_task(run, question.task, self._prompts), [])
        if question.schema is None and (reply_text := reply_to_small_talk(question.text)) is not None:
            answer = await reply(run, reply_text.text, language=reply_text.language, prompts=self._prompts)
            return CitedResponse(answer, [])
        run.question = await self._make_standalone(question, run.model)
        return cast("CitedResponse", await super()._aquery(RagQuery.of(run)))

    async def _make_standalone(self, question: Question, model: ChatModel) -> Question:
        """Return a question that needs no conversation; what was said before stays for the prompt."""
        languages = tuple(dict.fromkeys([*languages_of_turns(question.turns), *question.languages]))
        question = replace(question, languages=languages)
        if not question.turns:
            return question
        if not model.only_quotes:
            question = replace(question, remembered=find_remembered(question.turns, question.text))
            if self._recall is not None:
                earlier, earlier_still = await self._recall(question)
                question = replace(question, earlier=earlier, earlier_still=earlier_still)
        history = history_for(model, question.turns, question.remembered)
        text, follow_up = await make_standalone(
            question.text, question.turns, history, model, self._prompts, partial(self._find, question)
        )
        return replace(question, history=history, text=text, follow_up=follow_up)

    async def _find(self, question: Question, text: str) -> Sequence[Hit]:
        """The passages of another question, best first, as this one would find them."""
        return (await self._passages.search(replace(question, text=text, turns=()))).hits

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
    quoter: Quoter | None = None,
) -> CitedQueryEngine:
    """The engine over these parts; arguments as in `CitedQueryEngine` and `CitedSynthesizer`.

    Without a `quoter`, quotes are chosen by words alone.
    """
    return CitedQueryEngine(
        retriever,
        CitedSynthesizer(
            chat,
            prompts,
            settings,
            check_guardrails=partial(check_answer, retriever),
            judge=judge,
            tables=tables,
            quoter=quoter or Quoter(),
        ),
        reranker,
        threshold=settings.retrieval.threshold,
        out_of_scope=settings.retrieval.out_of_scope_threshold,
        postprocessors=postprocessors,
        record=record,
        recall=recall,
        prompts=prompts,
        keeps=settings.embedding.query_cache_size > 0,
    )


def by_turns(lists: Iterable[Iterable[_Item]], name: Callable[[_Item], Hashable]) -> list[_Item]:
    """Return the first of each list, then the second of each, and so on; of items with the same name the first."""
    unique: dict[Hashable, _Item] = {}
    for turn in zip_longest(*lists):
        for item in turn:
            if item is not None:
                unique.setdefault(name(item), item)
    return list(unique.values())


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
        kept = [node for node in found if node.node.node_id in query.run.found.known]
    except Exception as error:
        raise PluginError(f"The node postprocessor {name} failed.") from error
    if len(kept) < len(found):
        log.warning("foreign_nodes_dropped", postprocessor=name, count=len(found) - len(kept))
    return kept


def _is_blocking(postprocessor: BaseNodePostprocessor) -> bool:
    """Whether the class has no asynchronous method of its own: LlamaIndex's runs the other in a shared executor."""
    name = "_apostprocess_nodes"
    return inspect.getattr_static(postprocessor, name) is inspect.getattr_static(BaseNodePostprocessor, name)

"""Agent chat: answers a conversation with the same events as a question.

    last question → standalone question → the agent's corpora and the asker's own → CitedQueryEngine

Without relevant passages, without corpora, or with the database down, a chat answers without documents and says so
first (`rag_used` is False then).
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from enum import StrEnum
from uuid import UUID, uuid4

import structlog
from llama_index.core.base.llms.types import ChatMessage, MessageRole

from rag_service.answering.conversation import find_remembered, history_for, languages_of_turns
from rag_service.answering.decision.conclusion import decide, make_reasons
from rag_service.answering.decision.confidence import NO_CONFIDENCE
from rag_service.answering.drafts.checked_answer import AnswerChecker, CheckedAnswer
from rag_service.answering.drafts.doubts import Doubt
from rag_service.answering.drafts.events import AnswerComplete, AnswerEvent, SourcesFound
from rag_service.answering.engine import CitedQueryEngine, Recorder
from rag_service.answering.guards.injection import neutralise
from rag_service.answering.prompt.templates import AGENT_PROMPT, Prompts, new_boundary
from rag_service.domain import Answer, Filters, Identity, TokenCount, Turn
from rag_service.errors import EmbeddingError, StoreError
from rag_service.language.detection import choose_language, reply_to_small_talk
from rag_service.language.words import count_tokens
from rag_service.models.llm.model import ChatDelta, ChatModel, counted
from rag_service.retrieval.query import AnswerRun
from rag_service.retrieval.question import Question, Task
from rag_service.store.accounts.agents import Agent, AgentScope

log = structlog.get_logger(__name__)


@dataclass(frozen=True, kw_only=True)
class ChatQuery:
    """A conversation whose last question is to be answered."""

    agent: Agent
    turns: tuple[Turn, ...]  # before the question, oldest first
    question: str  # as asked
    top_k: int
    threshold: float | None = None
    instructions: str = ""  # of the client, after the agent's
    retractable: bool = True  # as in `Question`
    answer_id: UUID = field(default_factory=uuid4)  # likewise
    said: tuple[Turn, ...] = ()  # likewise
    task: Task | None = None  # likewise


class ContextUse(StrEnum):
    """Whether documents were used, and why not."""

    USED = "used"
    NO_CONTEXT = "no_context"  # nothing relevant, or no corpus
    STORE_UNAVAILABLE = "store_unavailable"


@dataclass(kw_only=True)
class ChatOutcome:
    """What the caller learns besides the events; complete after the last one."""

    question: str  # standalone, as searched for
    context: ContextUse = ContextUse.USED

    @property
    def rag_used(self) -> bool:
        return self.context is ContextUse.USED


ResolveScope = Callable[[Agent, Identity], Awaitable[AgentScope]]  # what the database allows now


@dataclass(frozen=True, kw_only=True)
class AgentChat:
    """Answers conversations."""

    engine: CitedQueryEngine
    model_for: Callable[[Agent], ChatModel]  # with the agent's own provider, name and limits
    resolve: ResolveScope
    prompts: Prompts
    record: Recorder | None = None  # stores answers that were made without documents

    def stream(self, query: ChatQuery, identity: Identity) -> tuple[ChatOutcome, AsyncGenerator[AnswerEvent]]:
        """The outcome, and the events with the errors of `CitedQueryEngine.stream`."""
        outcome = ChatOutcome(question=query.question)
        return outcome, self._events(query, identity, outcome)

    async def _events(self, query: ChatQuery, identity: Identity, outcome: ChatOutcome) -> AsyncGenerator[AnswerEvent]:
        chat = self.model_for(query.agent)
        if query.task is not None or reply_to_small_talk(query.question) is not None:
            outcome.context = ContextUse.NO_CONTEXT
            request = Question(
                query.question,
                identity=identity,
                agent_id=query.agent.id,
                answer_id=query.answer_id,
                task=query.task,
                recorded=query.task is None,
            )
            async with aclosing(self.engine.stream(self.engine.begin(request, chat))) as events:
                async for event in events:
                    yield event
            return
        try:
            scope = await self.resolve(query.agent, identity)
        except StoreError as error:
            log.warning("chat_without_store", exc_info=error)
            outcome.context = ContextUse.STORE_UNAVAILABLE
            scope = AgentScope()
        corpora = (*scope.global_ids, *scope.personal_ids)
        request = Question(
            query.question,
            identity=identity,
            filters=Filters(corpus_ids=corpora),
            top_k=query.top_k,
            threshold=query.threshold,
            prompt=AGENT_PROMPT,
            instructions="\n\n".join(filter(None, (query.agent.spec.system_prompt, query.instructions))),
            turns=query.turns if corpora else (),
            languages=languages_of_turns(query.turns),
            history=history_for(chat, query.turns, find_remembered(query.turns, query.question)),
            personal_corpora=frozenset(scope.personal_ids),
            agent_id=query.agent.id,
            answer_id=query.answer_id,
            said=query.said,
            retractable=query.retractable,
        )
        answered = self._answer(self.engine.begin(request, chat), outcome, query.question, query.agent)
        async with aclosing(answered):
            async for event in answered:
                yield event

    async def repeat(self, question: Question, agent: Agent) -> tuple[AnswerRun, Answer]:
        """Answer a recorded question of an agent again; the run, without what no answer rests on, and the answer."""
        run = self.engine.begin(replace(question, instructions=agent.spec.system_prompt), self.model_for(agent))
        outcome = ChatOutcome(question=question.text)
        events = [event async for event in self._answer(run, outcome, question.text, agent)]
        answer = next(event.answer for event in events if isinstance(event, AnswerComplete))
        return (run if outcome.rag_used else replace(run, retrieved=None)), answer

    async def _answer(
        self, run: AnswerRun, outcome: ChatOutcome, question: str, agent: Agent
    ) -> AsyncGenerator[AnswerEvent]:
        """From the documents of the request where they answer it, else without documents."""
        if run.question.filters.corpus_ids:
            grounded = self._grounded(run, outcome)
            async with aclosing(grounded):
                async for event in grounded:
                    yield event
        elif outcome.rag_used:
            outcome.context = ContextUse.NO_CONTEXT
        if not outcome.rag_used:
            plain = self._plain(run, outcome, question, agent)
            async with run.model.turn(run.question.identity.user_id), aclosing(plain):
                async for event in plain:
                    yield event

    async def _grounded(self, run: AnswerRun, outcome: ChatOutcome) -> AsyncGenerator[AnswerEvent]:
        """The engine's events; none, with `outcome.context` set, where it finds nothing or cannot search."""
        events = self.engine.stream(run)
        begun = False
        async with aclosing(events):
            try:
                async for event in events:
                    outcome.question = run.question.text
                    if isinstance(event, SourcesFound) and not event.sources:
                        outcome.context = ContextUse.NO_CONTEXT
                        return
                    begun = True
                    yield event
            except (StoreError, EmbeddingError) as error:
                if begun:  # text was sent already
                    raise
                log.warning("chat_without_search", exc_info=error)
                outcome.context = ContextUse.STORE_UNAVAILABLE

    async def _plain(
        self, run: AnswerRun, outcome: ChatOutcome, question: str, agent: Agent
    ) -> AsyncGenerator[AnswerEvent]:
        """An answer without documents; its first sentence says so."""
        chat, request = run.model, run.question
        started = time.perf_counter()
        language = choose_language(question, request.languages)
        quotes_only = chat.only_quotes  # it has nothing to quote from
        reason = "no_context" if outcome.context is ContextUse.NO_CONTEXT else "store_unavailable"
        notice = self.prompts.message(reason, language)
        notice += "." if quotes_only else self.prompts.message("not_from_documents", language)
        unfinished = self.prompts.message("unfinished", language)
        messages = self._plain_prompt(request, question, language)
        # With no passages, each citation of the model is shown as not found and each claim as not proved.
        checker = AnswerChecker(
            (),
            question=question,
            harmless=[notice, unfinished],
            notice=self.prompts.message("withheld", language),
            language=language,
            secrets=[messages[0].content or ""],
        )
        yield SourcesFound(sources=(), shown=(), timings_ms={})
        for event in checker.feed(notice if quotes_only else f"{notice}\n\n"):
            yield event
        last = ChatDelta(text="")
        if not quotes_only:
            with counted(run.calls):
                deltas = chat.stream(messages, max_tokens=agent.spec.max_tokens, retractable=request.retractable)
            async with aclosing(deltas):
                async for last in deltas:
                    text = f"{notice}\n\n{last.text}" if last.restart else last.text
                    for event in checker.feed(text, restart=last.restart):
                        yield event
        if last.is_cut:
            for event in checker.feed(f"\n\n{unfinished}"):
                yield event
        events, checked = checker.finish()
        for event in events:
            yield event
        is_empty = quotes_only and outcome.context is ContextUse.NO_CONTEXT
        doubts = [Doubt.NOTHING_FOUND if is_empty else Doubt.NO_DOCUMENT_USED]
        answer = replace(
            self._complete(run, checked, doubts, question=question, language=language),
            latency_ms=round((time.perf_counter() - started) * 1000, 1),
            incomplete=last.is_cut,
            finish_reason=last.reported_reason,
        )
        if self.record is not None and request.recorded:
            # The answer does not rest on what was found.
            answer = replace(answer, recorded=await self.record(replace(run, retrieved=None), answer))
        yield AnswerComplete(answer=answer)

    def _complete(
        self, run: AnswerRun, checked: CheckedAnswer, doubts: Sequence[Doubt], *, question: str, language: str
    ) -> Answer:
        """The answer without documents, from its text."""
        return Answer(
            id=run.question.answer_id,
            question=question,
            language=language,
            text=checked.text,
            sources=(),
            shown=(),
            citations=checked.citations,
            decision=decide(doubts),
            reasons=make_reasons(doubts, self.prompts.messages, language),
            confidence=NO_CONFIDENCE,
            tokens=TokenCount(prompt=0, completion=count_tokens(checked.text), estimated=True),
            latency_ms=0.0,
            calls=tuple(run.calls),
            model=run.model.model_name,
            unmarked_sentences=len(checked.unmarked),
            withheld_sentences=checked.withheld,
            flagged=checked.flagged,
            searched_for=run.question.searched_for,
        )

    def _plain_prompt(self, request: Question, question: str, language: str) -> list[ChatMessage]:
        """System and user message of an answer without documents."""
        values = {
            "boundary": new_boundary(),
            "context": request.history,
            "question": neutralise(question),
            "instructions": request.instructions,
        }
        system, user = self.prompts.template("chat_plain", language).render(values)
        return [ChatMessage(role=MessageRole.SYSTEM, content=system), ChatMessage(role=MessageRole.USER, content=user)]

"""Agent chat: a conversation in, the same events out as for a question (requirements C4 and C10).

    last question → standalone question → the agent's corpora and the asker's own → AnswerEngine

A chat goes on where the answer API stops: without relevant passages, without corpora, or with the
store down, it answers without context and says so first (`rag_used` is False then).
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass, field
from enum import StrEnum
from uuid import uuid4

import structlog
from llama_index.core.base.llms.types import ChatMessage, MessageRole

from rag_service.definitions import QueryDefinition
from rag_service.domain import Answer, AnswerQuery, Decision, Filters, Identity, TokenCount
from rag_service.errors import EmbeddingError, ModelError, StoreError
from rag_service.models.chat.chat import ChatModel
from rag_service.query.agents.history import HISTORY_TOKENS, Turn, cut_history, lean_on_history, render_history
from rag_service.query.confidence import rate_confidence
from rag_service.query.engine import AnswerEngine
from rag_service.query.events import AnswerComplete, AnswerDelta, AnswerEvent, SourcesFound
from rag_service.query.guards.output_guard import OutputGuard
from rag_service.query.prompting.prompt import FALLBACK_LANGUAGE, Prompts, neutralise, new_boundary
from rag_service.query.provenance import AnswerRecorder
from rag_service.store.people.agents import Agent, AgentScope
from rag_service.text.guessed_language import guess_language
from rag_service.text.tokens import count_tokens

log = structlog.get_logger(__name__)

_HISTORY_SHARE = 0.3  # most of the window that they may take: the passages need room, too
_REWRITE_TOKENS = 120
_REWRITE_CHARS = 600

_NOTICES = {
    "no_context": {
        "en": "The documents hold nothing on this",
        "es": "Los documentos no contienen nada sobre esto",
        "fr": "Les documents ne contiennent rien à ce sujet",
    },
    "store_unavailable": {
        "en": "The documents cannot be searched at the moment",
        "es": "En este momento no se pueden consultar los documentos",
        "fr": "Les documents ne peuvent pas être consultés pour le moment",
    },
}
_WHAT_FOLLOWS = {
    "en": "; what follows does not come from them.",
    "es": "; lo que sigue no procede de ellos.",
    "fr": " ; ce qui suit n'en provient pas.",
}


@dataclass(frozen=True, kw_only=True)
class ChatQuery:
    """A conversation whose last question is to be answered."""

    agent: Agent
    history: tuple[Turn, ...]  # before the question, oldest first
    question: str  # as asked
    top_k: int
    threshold: float | None = None


class ContextUse(StrEnum):
    """Whether documents were used, and why not."""

    USED = "used"
    NO_CONTEXT = "no_context"  # nothing relevant, or no corpus
    STORE_UNAVAILABLE = "store_unavailable"


@dataclass(kw_only=True)
class ChatOutcome:
    """What became known while the chat was answered; complete after the last event."""

    question: str  # standalone, as searched for
    context: ContextUse = ContextUse.USED

    @property
    def rag_used(self) -> bool:
        return self.context is ContextUse.USED


@dataclass(frozen=True, kw_only=True)
class ChatParts:
    """What an agent answers with."""

    engine: AnswerEngine
    chat: ChatModel
    recorder: AnswerRecorder  # makes the records of this engine's answers


ResolveScope = Callable[[Agent, Identity], Awaitable[AgentScope]]  # decided by the database, at this moment


@dataclass(frozen=True, kw_only=True)
class AgentChat:
    """Answers conversations."""

    parts_for: Callable[[Agent], ChatParts]  # engine and model as the agent wants them
    resolve: ResolveScope
    prompts: Prompts
    history_tokens: int = field(default=HISTORY_TOKENS)

    def stream(self, query: ChatQuery, identity: Identity) -> tuple[ChatOutcome, AsyncGenerator[AnswerEvent]]:
        """(what will be known at the end, events as `AnswerEngine.stream` gives them).

        Raises, while the events are read:
            ModelError: the model fails, also midway.
            ContextOverflowError: question and instructions alone fill the window.
        """
        outcome = ChatOutcome(question=query.question)
        return outcome, self._events(query, identity, outcome)

    async def _events(self, query: ChatQuery, identity: Identity, outcome: ChatOutcome) -> AsyncGenerator[AnswerEvent]:
        parts = self.parts_for(query.agent)
        limit = min(self.history_tokens, int(parts.chat.context_window * _HISTORY_SHARE))
        history = render_history(cut_history(query.history, most_tokens=limit))
        try:
            scope = await self.resolve(query.agent, identity)
        except StoreError as error:
            log.warning("chat_without_store", exc_info=error)
            outcome.context = ContextUse.STORE_UNAVAILABLE
            scope = AgentScope()
        if scope.global_ids or scope.personal_ids:
            outcome.question = await self._standalone(query, history, parts.chat)
            grounded = self._grounded(query, identity, outcome, parts, scope, history)
            async with aclosing(grounded):
                async for event in grounded:
                    yield event
        elif outcome.rag_used:
            outcome.context = ContextUse.NO_CONTEXT
        if not outcome.rag_used:
            plain = self._plain(query, outcome, parts.chat, history)
            async with aclosing(plain):
                async for event in plain:
                    yield event

    async def _grounded(
        self,
        query: ChatQuery,
        identity: Identity,
        outcome: ChatOutcome,
        parts: ChatParts,
        scope: AgentScope,
        history: str,
    ) -> AsyncGenerator[AnswerEvent]:
        """The engine's events; none, with `outcome.context` set, where it finds nothing or cannot search."""
        events = parts.engine.stream(_answer_query(query, outcome.question, scope, history), identity)
        begun = False
        async with aclosing(events):
            try:
                async for event in events:
                    if isinstance(event, SourcesFound) and not event.sources:
                        outcome.context = ContextUse.NO_CONTEXT
                        return
                    begun = True
                    yield event
            except (StoreError, EmbeddingError) as error:
                if begun:  # what a reader has seen cannot be taken back
                    raise
                log.warning("chat_without_search", exc_info=error)
                outcome.context = ContextUse.STORE_UNAVAILABLE

    async def _standalone(self, query: ChatQuery, history: str, chat: ChatModel) -> str:
        """The question, understandable without the conversation; a failing model costs quality, not the answer."""
        if not query.history:
            return query.question
        language = guess_language(query.question) or FALLBACK_LANGUAGE
        if chat.provider == "extractive":  # it quotes, it does not write
            return lean_on_history(query.question, query.history, language)
        boundary = new_boundary()
        template = self.prompts.template("rewrite", language)
        values = {"boundary": boundary, "context": history, "question": neutralise(query.question)}
        try:
            text = await _collect(chat, template.render(values), max_tokens=_REWRITE_TOKENS)
        except ModelError as error:
            log.warning("question_not_rewritten", exc_info=error)
            return lean_on_history(query.question, query.history, language)
        lines = [line.strip(" \t\"'«»“”") for line in text.splitlines()]
        rewritten = next((line for line in lines if line), "")
        return rewritten if 0 < len(rewritten) <= _REWRITE_CHARS else query.question

    async def _plain(
        self, query: ChatQuery, outcome: ChatOutcome, chat: ChatModel, history: str
    ) -> AsyncGenerator[AnswerEvent]:
        """An answer without documents, which begins by saying so."""
        started = time.perf_counter()
        language = guess_language(query.question) or FALLBACK_LANGUAGE
        quotes_only = chat.provider == "extractive"  # it has nothing to quote from
        notice = _notice(outcome.context, language, alone=quotes_only)
        yield SourcesFound(sources=(), shown=(), timings_ms={})
        yield AnswerDelta(text=notice)
        pieces = [notice]
        if not quotes_only:
            written = self._write_plainly(query, chat, history, language)
            async with aclosing(written):
                async for text in written:
                    pieces.append(text)
                    yield AnswerDelta(text=text)
        text = "".join(pieces)
        is_empty = quotes_only and outcome.context is ContextUse.NO_CONTEXT
        yield AnswerComplete(
            answer=Answer(
                id=uuid4(),
                question=query.question,
                language=language,
                text=text,
                sources=(),
                shown=(),
                citations=(),
                decision=Decision.OUT_OF_SCOPE if is_empty else Decision.UNCERTAIN,
                confidence=rate_confidence((), QueryDefinition()),
                tokens=TokenCount(prompt=0, completion=count_tokens(text), estimated=True),
                latency_ms=round((time.perf_counter() - started) * 1000, 1),
                model=chat.model_name,
            )
        )

    async def _write_plainly(
        self, query: ChatQuery, chat: ChatModel, history: str, language: str
    ) -> AsyncGenerator[str]:
        template = self.prompts.template("chat_plain", language)
        values = {
            "boundary": new_boundary(),
            "context": history,
            "question": neutralise(query.question),
            "instructions": query.agent.spec.system_prompt,
        }
        system, user = template.render(values)
        notice = self.prompts.message("withheld", language)
        guard = OutputGuard((), secrets=[system], notice=notice, language=language)
        yield "\n\n"
        deltas = chat.stream(_messages(system, user), max_tokens=query.agent.spec.max_tokens)
        async with aclosing(deltas):
            async for delta in deltas:
                if text := guard.feed(delta.text):
                    yield text
        if text := guard.flush():
            yield text


def _answer_query(query: ChatQuery, question: str, scope: AgentScope, history: str) -> AnswerQuery:
    return AnswerQuery(
        question=question,
        filters=Filters(corpus_ids=(*scope.global_ids, *scope.personal_ids)),
        top_k=query.top_k,
        threshold=query.threshold,
        prompt="chat",
        instructions=query.agent.spec.system_prompt,
        history=history,
        personal_corpora=frozenset(scope.personal_ids),
        agent_id=query.agent.id,
    )


def _notice(context: ContextUse, language: str, *, alone: bool) -> str:
    texts = _NOTICES[context.value]
    known = language if language in texts else "en"
    return texts[known] + ("." if alone else _WHAT_FOLLOWS[known])


def _messages(system: str, user: str) -> list[ChatMessage]:
    return [ChatMessage(role=MessageRole.SYSTEM, content=system), ChatMessage(role=MessageRole.USER, content=user)]


async def _collect(chat: ChatModel, texts: tuple[str, str], *, max_tokens: int) -> str:
    deltas = chat.stream(_messages(*texts), max_tokens=max_tokens)
    async with aclosing(deltas):
        return "".join([delta.text async for delta in deltas])

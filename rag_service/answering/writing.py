"""The text of an answer, piece by piece: the model's, and where the model fails quotes of the passages."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace

import structlog

from rag_service.answering.prompt.packing import Prompted
from rag_service.errors import ModelError
from rag_service.models.llm.model import ChatDelta, ChatModel
from rag_service.retrieval.query import RagQuery

log = structlog.get_logger(__name__)


async def write_answer(query: RagQuery, prompted: Prompted) -> AsyncGenerator[ChatDelta]:
    """What `query.model` answers, after its preface; the last delta has the counts.

    Where the model fails, its fallback goes on and is `query.model` from then on, and `query.model_error` says why.
    What a reader has seen stays.

    Raises:
        ModelError: the model fails and has no fallback.
    """
    model: ChatModel = query.model
    spoke = False
    try:
        deltas = model.stream(prompted.messages, expected_prompt_tokens=prompted.tokens)
        async with aclosing(deltas):
            async for delta in _introduced(deltas, prompted) if prompted.preface else deltas:
                spoke = spoke or bool(delta.text)
                yield delta
        return
    except ModelError as error:
        if model.fallback is None:
            raise
        log.warning("answer_degraded", without="model", code=error.code, exc_info=error)
        query.model, query.model_error = model.fallback, error.code
    yield ChatDelta(text=f"\n\n{prompted.model_failed}\n\n" if spoke else f"{prompted.failed().preface}\n\n")
    quotes = model.fallback.stream(prompted.messages)
    async with aclosing(quotes):
        async for delta in quotes:
            yield delta


async def _introduced(deltas: AsyncGenerator[ChatDelta], prompted: Prompted) -> AsyncGenerator[ChatDelta]:
    """The pieces of an answer after its preface, which a refusal does without."""
    held, waiting, last = "", True, None
    async for delta in deltas:
        last = delta
        if waiting:
            held += delta.text
            if prompted.refusal.startswith(held.strip()):
                continue
            waiting, last = False, replace(delta, text=f"{prompted.preface}\n\n{held}")
        yield last
    if waiting and last is not None:
        yield replace(last, text=held)

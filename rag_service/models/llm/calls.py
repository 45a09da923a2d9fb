"""Counts the calls of chat models that an answer takes.

    calls: list[ModelCall] = []
    with counted(calls):
        await collect(chat.stream(messages, purpose=Purpose.REWRITE))

`ChatModel.stream` looks the list up when it is called, in a context variable: plug-ins between an answer and the model,
such as a judge or a reranker, need not pass it on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from rag_service.domain import ModelCall

OnCall = Callable[[ModelCall], None]  # receives each call that is over, such as `Metrics.model_call`

_counting: ContextVar[list[ModelCall] | None] = ContextVar("model_calls", default=None)


@contextmanager
def counted(calls: list[ModelCall]) -> Iterator[None]:
    """Add the calls that are begun inside to the list, each when it is over. Nothing may be yielded inside."""
    before = _counting.set(calls)
    try:
        yield
    finally:
        _counting.reset(before)


def counting() -> list[ModelCall] | None:
    """The list that calls begun now are added to; None: nobody counts them."""
    return _counting.get()

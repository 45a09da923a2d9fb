"""Reach for the HTTP responses that a model call has opened.

LlamaIndex's streaming wrapper does not close the generator that it wraps, so that leaving a stream
early would end the HTTP response only when the garbage collector comes by. A response hook notes
each response of a call; `OpenResponses.close` ends them at once, which is what makes Ollama stop
generating.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import httpx


class OpenResponses:
    """The HTTP responses that one model call has opened."""

    def __init__(self) -> None:
        self._responses: list[httpx.Response] = []

    @contextmanager
    def collect(self) -> Iterator[None]:
        """Note the responses that begin within the block, in this task's context."""
        token = _collecting.set(self)
        try:
            yield
        finally:
            _collecting.reset(token)

    def add(self, response: httpx.Response) -> None:
        self._responses.append(response)

    async def close(self) -> None:
        """Close them all; a finished response goes back to the pool, a running one is dropped."""
        while self._responses:
            await self._responses.pop().aclose()


_collecting: ContextVar[OpenResponses | None] = ContextVar("rag_open_responses", default=None)


async def note_response(response: httpx.Response) -> None:
    """An httpx event hook of kind `response`: runs when the headers are in, before the body."""
    if (responses := _collecting.get()) is not None:
        responses.add(response)

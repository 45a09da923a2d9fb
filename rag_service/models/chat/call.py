"""One call to a LlamaIndex LLM: opened, retried while that is possible, timed, closed for certain.

The stream is read in a task of its own. A web framework may cancel a request at every await, clean-up
included, and httpx then leaves the connection open for good (its close stops half way); the reading
task is cancelled once, and closes in peace.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.llms import LLM

from rag_service.errors import ModelBusyError, ModelError, RagError
from rag_service.models.servers.echoes import ProviderError
from rag_service.models.servers.parts import ModelPart, Part, StreamsParts
from rag_service.models.servers.resilience import (
    BUSY_STATUSES,
    RetryPolicy,
    is_connection_error,
    is_timeout,
    retry_after_of,
    status_of,
)
from rag_service.models.servers.responses import OpenResponses


@dataclass(frozen=True, kw_only=True)
class ChatLimits:
    """Time limits of one answer, in seconds."""

    first_token: float  # from the slot to the first sign of life, all tries together
    between_tokens: float
    total: float  # from the slot to the end, slow readers included


class ChatCall:
    """One answer being made. `next` until it gives None, and `close` in any case."""

    def __init__(
        self,
        llm: LLM,
        messages: Sequence[ChatMessage],
        options: Mapping[str, Any],
        *,
        limits: ChatLimits,
        retries: RetryPolicy,
    ):
        self._llm = llm
        self._messages = messages
        self._options = options
        self._limits = limits
        self._retries = retries
        self._responses = OpenResponses()
        self._stream: AsyncGenerator[Sequence[Part]] | None = None
        # One read ahead of the reader and no more: a slow reader slows the model.
        self._parts: asyncio.Queue[Sequence[Part] | Exception | None] = asyncio.Queue(maxsize=1)
        self._reading: asyncio.Task[None] | None = None
        self.began = time.monotonic()
        self.first_token_ms: float | None = None  # None until something came
        self.exhausted = False

    async def next(self) -> Sequence[Part] | None:
        """The parts that arrived next, at least one; None at the end.

        Raises:
            ModelError: whatever went wrong, with the cause chained.
        """
        if self._reading is None:
            self._reading = asyncio.create_task(self._read(), name="chat-call")
        begun = self.first_token_ms is not None
        left = self._limits.total - (time.monotonic() - self.began)
        limit = self._limits.between_tokens if begun else self._limits.first_token
        try:
            async with asyncio.timeout(min(left, limit)):
                parts = await self._parts.get()
        except TimeoutError as error:
            raise ModelError("The language model did not answer in time.") from error
        if isinstance(parts, RagError):
            raise parts
        if isinstance(parts, Exception):
            sent = [message.content or "" for message in self._messages]
            raise _model_error(parts, begun=begun) from ProviderError(parts, sent)
        if not begun:
            self.first_token_ms = round((time.monotonic() - self.began) * 1000, 1)
        self.exhausted = parts is None
        return parts

    async def close(self) -> None:
        """End the connection and the reading task. Never raises, takes at most a second."""
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.wait([self._reading], timeout=1)

    async def _read(self) -> None:
        try:
            parts = await self._first()
            while parts is not None:
                await self._parts.put(parts)
                parts = await anext(self._stream, None) if self._stream else None
            await self._parts.put(None)
        except Exception as error:  # noqa: BLE001  # raised to the reader by `next`
            await self._parts.put(error)
        finally:
            await self._end()

    async def _first(self) -> Sequence[Part] | None:
        async for attempt in self._retries.tries(BUSY_STATUSES):
            with attempt:
                await self._end()  # what the last try left behind
                with self._responses.collect():
                    self._stream = self._open()
                    parts = await anext(self._stream, None)
        return parts

    def _open(self) -> AsyncGenerator[Sequence[Part]]:
        if isinstance(self._llm, StreamsParts):
            return self._llm.stream_parts(self._messages, **self._options)
        return self._by_llama_index()

    async def _by_llama_index(self) -> AsyncGenerator[Sequence[Part]]:
        stream = await self._llm.astream_chat(self._messages, **self._options)
        try:
            async for chunk in stream:
                yield (chunk,)
        finally:
            await stream.aclose()

    async def _end(self) -> None:
        # The answer's own error, if any, is on its way already; this one would only hide it.
        with contextlib.suppress(Exception):
            await self._responses.close()
            if self._stream is not None:
                await self._stream.aclose()


class AnswerEnd:
    """What the chunks told about the end of the answer."""

    def __init__(self) -> None:
        self.prompt_tokens: int | None = None
        self.completion_tokens: int | None = None
        self.finish_reason: str | None = None
        self._done: bool | None = None  # None: the provider does not say
        self._parts = 0

    def note(self, part: Part) -> None:
        self._parts += 1
        raw = part.raw if isinstance(part.raw, Mapping) else {}
        if isinstance(part, ModelPart) and raw.get("done") is False:  # Ollama's: all is told by the last
            self._done = False
            return
        usage = raw.get("usage") or part.additional_kwargs
        # A count may come without the other, so they are read where the server put them too.
        self.prompt_tokens = _count(usage, "prompt_tokens", raw, "prompt_eval_count", self.prompt_tokens)
        self.completion_tokens = _count(usage, "completion_tokens", raw, "eval_count", self.completion_tokens)
        self.finish_reason = raw.get("done_reason") or _finish_reason(part.raw) or self.finish_reason
        self._done = raw.get("done", self._done)
        if hasattr(part.raw, "choices"):  # OpenAI's protocol ends with a reason, or has been cut
            self._done = self.finish_reason is not None

    def check(self) -> None:
        """A stream that simply ends looks complete to the client package, but is half an answer.

        Raises:
            ModelError: it ended before it was done, or before it began.
        """
        if self._done is False or self._parts == 0:
            raise ModelError("The language model broke off its answer.")


def _finish_reason(raw: object) -> str | None:
    """Why the answer ended, in a chunk of OpenAI's protocol."""
    reason = next((choice.finish_reason for choice in getattr(raw, "choices", None) or ()), None)
    return reason if isinstance(reason, str) else None


def _count(usage: object, usage_key: str, raw: Mapping[str, Any], raw_key: str, known: int | None) -> int | None:
    value = usage.get(usage_key) if isinstance(usage, Mapping) else getattr(usage, usage_key, None)
    value = raw.get(raw_key) if value is None else value
    return value if isinstance(value, int) else known


def _model_error(error: Exception, *, begun: bool) -> ModelError:
    """What a caller may know of a client package's error."""
    status = status_of(error)
    if status in BUSY_STATUSES:
        wait = retry_after_of(error)
        return ModelBusyError(
            "The language model is busy with other requests.",
            retry_after=5 if wait is None else max(1, math.ceil(wait)),
        )
    if is_connection_error(error) and not begun:
        return ModelError("The language model cannot be reached.", retry_after=5)
    if is_timeout(error):
        return ModelError("The language model did not answer in time.")
    if status == 404:
        return ModelError("The language model is not available on its server.")
    if status is not None:
        return ModelError("The language model refused the request.")
    return ModelError("The language model broke off its answer.")

"""The chat model: any LlamaIndex LLM behind one call that streams, ends in time and can be left.

    chat = build_chat(settings, extractive=answerer)
    async with aclosing(chat.stream(messages, expected_prompt_tokens=900)) as deltas:
        async for delta in deltas: ...

Each try makes exactly one call to `llm.astream_chat`. It is tried again only while nothing has come
from the model, because text that a reader has seen cannot be taken back.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import structlog
from llama_index.core.base.llms.types import ChatMessage, ChatResponse
from llama_index.core.llms import LLM

from rag_service.errors import ModelBusyError, ModelError, ModelOutputError, RagError
from rag_service.models.resilience import (
    BUSY_STATUSES,
    RetryPolicy,
    Slots,
    is_connection_error,
    is_timeout,
    retry_after_of,
    shielded,
    status_of,
)
from rag_service.models.responses import OpenResponses
from rag_service.settings import Settings

log = structlog.get_logger(__name__)

# The model counts with its own tokenizer and we with another: they differ by a fifth or so between
# languages. A cut prompt is about half as long (design §7). Ollama 0.30.0 counted new tokens alone
# when a prefix was cached (ollama pull request 16428): there the flag can be a false alarm.
LEAST_COUNTED_SHARE = 0.6


@dataclass(frozen=True, kw_only=True)
class ChatDelta:
    """A piece of the answer. The last one carries no text but what is known at the end."""

    text: str
    last: bool = False
    prompt_tokens: int | None = None  # as the model counted, if it did
    completion_tokens: int | None = None  # likewise
    finish_reason: str | None = None  # "stop", or "length" when max_tokens cut the answer
    prompt_truncated: bool = False  # the model saw only part of the prompt


@dataclass(frozen=True, kw_only=True)
class ChatLimits:
    """Time limits of one answer, in seconds."""

    first_token: float  # from the slot to the first sign of life, all tries together
    between_tokens: float
    total: float  # from the slot to the end, slow readers included


# Makes the LLM and the keyword arguments of one call from max_tokens and a JSON schema.
PrepareCall = Callable[[LLM, int | None, Mapping[str, Any] | None], tuple[LLM, dict[str, Any]]]


class ChatModel:
    """A LlamaIndex LLM with limits. One object per provider and process, shared by all requests."""

    def __init__(
        self,
        llm: LLM,
        *,
        provider: str,
        limits: ChatLimits,
        slots: Slots,
        prepare: PrepareCall,
        structured_output: bool,
        retries: RetryPolicy | None = None,
        close: Callable[[], Any] | None = None,
    ):
        self.llm = llm  # for LlamaIndex code that takes an LLM; it has none of the limits
        self.provider = provider  # as in RAG_CHAT_PROVIDER
        self.structured_output = structured_output  # whether `complete_json` can work
        self._limits = limits
        self._slots = slots
        self._prepare = prepare
        self._retries = retries or RetryPolicy()
        self._close = close

    @property
    def model_name(self) -> str:
        """As the provider names it; part of an answer's provenance."""
        return str(self.llm.metadata.model_name)

    @property
    def context_window(self) -> int:
        """Tokens that prompt and answer share."""
        return int(self.llm.metadata.context_window)

    async def stream(
        self,
        messages: Sequence[ChatMessage],
        *,
        max_tokens: int | None = None,
        response_schema: Mapping[str, Any] | None = None,
        expected_prompt_tokens: int | None = None,
    ) -> AsyncGenerator[ChatDelta]:
        """The answer, piece by piece; the last delta has `last` set and the counts.

        Close the generator (`contextlib.aclosing`) to leave early: the connection to the model ends
        at once and the slot is free. Deltas of a model's thinking are skipped.

        `max_tokens` overrides RAG_MAX_TOKENS. `expected_prompt_tokens` is our own count; when the
        model counted less than 60 % of it, the prompt was cut: logged as `prompt_truncated`.

        Raises:
            ModelBusyError: too many requests wait here, or the server answers 429 or 503 to the last.
            ModelError: not reachable, too slow, or broken off; the cause is chained.
            ModelOutputError: `response_schema` is given and the model cannot follow one.
        """
        if response_schema is not None and not self.structured_output:
            raise ModelOutputError("The language model cannot produce structured output.")
        llm, options = self._prepare(self.llm, max_tokens, response_schema)
        end = _End()
        async with self._slots.take():
            call = _Call(llm, messages, options, self._limits, self._retries)
            try:
                while (chunk := await call.next()) is not None:
                    end.note(chunk)
                    if chunk.delta:
                        yield ChatDelta(text=chunk.delta)
                end.check()
            finally:
                await shielded(call.close)
                self._log_end(call, end)
        yield self._last_delta(end, expected_prompt_tokens)

    async def complete_json(
        self, messages: Sequence[ChatMessage], schema: Mapping[str, Any], *, max_tokens: int | None = None
    ) -> str:
        """The whole answer as JSON text that the model was held to `schema` for.

        The text is not validated here: a model may ignore the schema.

        Raises:
            ModelOutputError: the model cannot follow a schema, or `max_tokens` cut the JSON off.
            ModelError: as `stream`.
        """
        parts = []
        stream = self.stream(messages, max_tokens=max_tokens, response_schema=schema)
        async with contextlib.aclosing(stream) as deltas:
            async for delta in deltas:
                parts.append(delta.text)
                if delta.finish_reason == "length":
                    raise ModelOutputError("The language model's answer is too long for its limit.")
        return "".join(parts)

    async def aclose(self) -> None:
        """Close the connections to the model server."""
        if self._close is not None:
            await self._close()

    def _last_delta(self, end: _End, expected: int | None) -> ChatDelta:
        counted = end.prompt_tokens
        truncated = bool(expected and counted is not None and counted < LEAST_COUNTED_SHARE * expected)
        if truncated:
            log.error(
                "prompt_truncated",
                model=self.model_name,
                counted=counted,
                expected=expected,
                context_window=self.context_window,
            )
        return ChatDelta(
            text="",
            last=True,
            prompt_tokens=counted,
            completion_tokens=end.completion_tokens,
            finish_reason=end.finish_reason,
            prompt_truncated=truncated,
        )

    def _log_end(self, call: _Call, end: _End) -> None:
        log.info(
            "model_called",
            provider=self.provider,
            model=self.model_name,
            outcome="complete" if call.exhausted else "left or failed",
            first_token_ms=call.first_token_ms,
            total_ms=round((time.monotonic() - call.began) * 1000, 1),
            prompt_tokens=end.prompt_tokens,
            completion_tokens=end.completion_tokens,
        )


class _End:
    """What the chunks told about the end of the answer."""

    def __init__(self) -> None:
        self.prompt_tokens: int | None = None
        self.completion_tokens: int | None = None
        self.finish_reason: str | None = None
        self._done: bool | None = None  # None: the provider does not say

    def note(self, chunk: ChatResponse) -> None:
        raw = chunk.raw if isinstance(chunk.raw, Mapping) else {}
        usage = raw.get("usage") or chunk.additional_kwargs
        # A count may come without the other, so they are read where the server put them too.
        self.prompt_tokens = _count(usage, "prompt_tokens", raw, "prompt_eval_count", self.prompt_tokens)
        self.completion_tokens = _count(usage, "completion_tokens", raw, "eval_count", self.completion_tokens)
        self.finish_reason = raw.get("done_reason") or self.finish_reason
        self._done = raw.get("done", self._done)

    def check(self) -> None:
        """A stream that simply ends looks complete to the client package, but is half an answer."""
        if self._done is False:
            raise ModelError("The language model broke off its answer.")


def _count(usage: object, usage_key: str, raw: Mapping[str, Any], raw_key: str, known: int | None) -> int | None:
    value = usage.get(usage_key) if isinstance(usage, Mapping) else getattr(usage, usage_key, None)
    value = raw.get(raw_key) if value is None else value
    return value if isinstance(value, int) else known


class _Call:
    """One answer being made. `next` and `close` are called from one task."""

    def __init__(
        self,
        llm: LLM,
        messages: Sequence[ChatMessage],
        options: dict[str, Any],
        limits: ChatLimits,
        retries: RetryPolicy,
    ):
        self._llm = llm
        self._messages = messages
        self._options = options
        self._limits = limits
        self._retries = retries
        self._responses = OpenResponses()
        self._stream: AsyncGenerator[ChatResponse] | None = None
        self.began = time.monotonic()
        self.first_token_ms: float | None = None  # None until something came
        self.exhausted = False

    async def next(self) -> ChatResponse | None:
        """The next chunk, None at the end.

        Raises:
            ModelError: whatever went wrong, with the cause chained.
        """
        left = self._limits.total - (time.monotonic() - self.began)
        begun = self.first_token_ms is not None
        limit = self._limits.between_tokens if begun else self._limits.first_token
        try:
            async with asyncio.timeout(min(left, limit)):
                chunk = await (anext(self._stream, None) if begun and self._stream else self._first())
        except RagError:
            raise
        except Exception as error:
            raise _model_error(error, begun=begun) from error
        self.exhausted = chunk is None
        return chunk

    async def close(self) -> None:
        """End the connection and the generators. Never raises, takes at most a second."""
        # The answer's own error, if any, is on its way already; this one would only hide it.
        with contextlib.suppress(Exception):
            async with asyncio.timeout(1):
                await self._responses.close()
                if self._stream is not None:
                    await self._stream.aclose()

    async def _first(self) -> ChatResponse | None:
        async for attempt in self._retries.tries(BUSY_STATUSES):
            with attempt:
                await self.close()  # what the last try left behind
                with self._responses.collect():
                    self._stream = await self._llm.astream_chat(self._messages, **self._options)
                    chunk = await anext(self._stream, None)
        self.first_token_ms = round((time.monotonic() - self.began) * 1000, 1)
        return chunk


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


def build_chat(settings: Settings, *, extractive: LLM) -> ChatModel:
    """The chat model that RAG_CHAT_PROVIDER names. No connection is made yet.

    `extractive` is the answerer without a model, taken when the provider is `extractive`.
    """
    limits = ChatLimits(
        first_token=settings.first_token_timeout,
        between_tokens=settings.token_timeout,
        total=settings.answer_timeout,
    )
    slots = Slots(limit=settings.model_concurrency, queue=settings.model_queue, patience=settings.first_token_timeout)
    if settings.chat_provider == "extractive":
        return ChatModel(
            extractive,
            provider="extractive",
            limits=limits,
            slots=slots,
            prepare=_prepare_plain,
            structured_output=False,
        )
    # Imported here so that the embedded default does not load the client package.
    from rag_service.models.ollama import build_client, build_ollama

    client = build_client(settings, read_timeout=max(settings.first_token_timeout, settings.token_timeout))
    return ChatModel(
        build_ollama(settings, client),
        provider="ollama",
        limits=limits,
        slots=slots,
        prepare=_prepare_ollama,
        structured_output=True,
        close=client.close,
    )


def _prepare_plain(llm: LLM, max_tokens: int | None, schema: Mapping[str, Any] | None) -> tuple[LLM, dict[str, Any]]:
    return llm, {} if max_tokens is None else {"max_tokens": max_tokens}


def _prepare_ollama(llm: LLM, max_tokens: int | None, schema: Mapping[str, Any] | None) -> tuple[LLM, dict[str, Any]]:
    if max_tokens is not None:
        # Options are fields of LlamaIndex's class, not arguments of its call. The copy shares the client.
        llm = llm.model_copy(update={"additional_kwargs": {"num_predict": max_tokens}})
    return llm, {} if schema is None else {"format": dict(schema)}

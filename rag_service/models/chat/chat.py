"""The chat model: any LlamaIndex LLM behind one call that streams, ends in time and can be left.

    chat = build_chat(settings, extractive=answerer)
    async with aclosing(chat.stream(messages, expected_prompt_tokens=900)) as deltas:
        async for delta in deltas: ...

Each try makes exactly one call to the LLM. It is tried again only while nothing has come from the model,
because text that a reader has seen cannot be taken back.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import structlog
from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.llms import LLM

from rag_service.errors import ModelOutputError
from rag_service.models.chat.call import AnswerEnd, ChatCall, ChatLimits
from rag_service.models.extras import require_extra
from rag_service.models.servers.breaker import CircuitBreaker
from rag_service.models.servers.resilience import RetryPolicy, Slots, shielded
from rag_service.settings import Settings
from rag_service.tracing import span

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
        breaker: CircuitBreaker | None = None,
        close: Callable[[], Any] | None = None,
    ):
        self.llm = llm  # for LlamaIndex code that takes an LLM; it has none of the limits
        self.provider = provider  # as in RAG_CHAT_PROVIDER
        self.structured_output = structured_output  # whether `complete_json` can work
        self._limits = limits
        self._slots = slots
        self._prepare = prepare
        self._retries = retries or RetryPolicy()
        self.breaker = breaker or CircuitBreaker(provider, failures=0, seconds=1)  # never opens
        self._close = close

    @property
    def model_name(self) -> str:
        """As the provider names it; part of an answer's provenance."""
        return str(self.llm.metadata.model_name)

    @property
    def waiting(self) -> int:
        """Requests that wait for a slot now."""
        return self._slots.waiting

    def admit(self) -> AbstractContextManager[None]:
        """Enter before searching for what the model shall answer from; see `Slots.admit`.

        Raises, when entered:
            ModelBusyError: there is no room.
        """
        return self._slots.admit()

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
            ModelError: not reachable, too slow, or broken off; the cause is chained. Also while the
                circuit breaker is open.
            ModelOutputError: `response_schema` is given and the model cannot follow one.
        """
        if response_schema is not None and not self.structured_output:
            raise ModelOutputError("The language model cannot produce structured output.")
        llm, options = self._prepare(self.llm, max_tokens, response_schema)
        end = AnswerEnd()
        self.breaker.check()  # before anybody waits for a slot
        async with self._slots.take():
            call = ChatCall(llm, messages, options, limits=self._limits, retries=self._retries)
            with self.breaker.guard(), span("model", provider=self.provider, model=self.model_name):
                try:
                    while (parts := await call.next()) is not None:
                        for part in parts:
                            end.note(part)
                        if text := "".join(part.delta or "" for part in parts):
                            yield ChatDelta(text=text)
                    end.check()
                finally:
                    self._log_end(call, end)
                    await shielded(call.close)
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

    def _last_delta(self, end: AnswerEnd, expected: int | None) -> ChatDelta:
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

    def _log_end(self, call: ChatCall, end: AnswerEnd) -> None:
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


def build_chat(settings: Settings, *, extractive: LLM, retries: RetryPolicy | None = None) -> ChatModel:
    """The chat model that RAG_CHAT_PROVIDER names. No connection is made yet.

    `extractive` is the answerer without a model, taken when the provider is `extractive`.
    """
    limits = ChatLimits(
        first_token=settings.first_token_timeout,
        between_tokens=settings.token_timeout,
        total=settings.answer_timeout,
    )
    slots = Slots(limit=settings.model_concurrency, queue=settings.model_queue, patience=settings.first_token_timeout)
    provider = _PROVIDERS[settings.chat_provider](settings, extractive)
    # What runs in this process cannot be down.
    failures = 0 if settings.chat_provider == "extractive" else settings.breaker_failures
    return ChatModel(
        provider.llm,
        provider=settings.chat_provider,
        limits=limits,
        slots=slots,
        prepare=provider.prepare,
        structured_output=provider.structured_output,
        retries=retries,
        breaker=CircuitBreaker("chat model", failures=failures, seconds=settings.breaker_seconds),
        close=provider.close,
    )


@dataclass(frozen=True, kw_only=True)
class _Provider:
    """What differs between providers."""

    llm: LLM
    prepare: PrepareCall
    structured_output: bool  # it can be held to a JSON schema
    close: Callable[[], Any] | None = None


def _build_extractive(settings: Settings, extractive: LLM) -> _Provider:
    return _Provider(llm=extractive, prepare=_prepare_plain, structured_output=False)


# Client packages are imported when chosen, so that the embedded default does not load them.


def _build_ollama(settings: Settings, _: LLM) -> _Provider:
    from rag_service.models.servers.ollama import build_client, build_ollama

    client = build_client(settings, read_timeout=_read_timeout(settings))
    llm = build_ollama(settings, client)
    return _Provider(llm=llm, prepare=_prepare_ollama, structured_output=True, close=client.close)


def _build_openai_like(settings: Settings, _: LLM) -> _Provider:
    require_extra("llama_index.llms.openai_like", extra="openai", setting="RAG_CHAT_PROVIDER", value="openai_like")
    from rag_service.models.servers.openai_like import build_http_client, build_openai_like, prepare_openai_like

    client = build_http_client(settings, read_timeout=_read_timeout(settings))
    llm = build_openai_like(settings, client)
    return _Provider(llm=llm, prepare=prepare_openai_like, structured_output=True, close=client.aclose)


def _read_timeout(settings: Settings) -> float:
    return max(settings.first_token_timeout, settings.token_timeout)


def _prepare_plain(llm: LLM, max_tokens: int | None, schema: Mapping[str, Any] | None) -> tuple[LLM, dict[str, Any]]:
    return llm, {} if max_tokens is None else {"max_tokens": max_tokens}


def _prepare_ollama(llm: LLM, max_tokens: int | None, schema: Mapping[str, Any] | None) -> tuple[LLM, dict[str, Any]]:
    if max_tokens is not None:
        # Options are fields of LlamaIndex's class, not arguments of its call. The copy shares the client.
        llm = llm.model_copy(update={"additional_kwargs": {"num_predict": max_tokens}})
    return llm, {} if schema is None else {"format": dict(schema)}


_PROVIDERS: Mapping[str, Callable[[Settings, LLM], _Provider]] = {
    "extractive": _build_extractive,
    "ollama": _build_ollama,
    "openai_like": _build_openai_like,
}

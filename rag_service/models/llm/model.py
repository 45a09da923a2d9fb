"""The chat model: any LlamaIndex LLM behind one call that streams, ends in time and can be left.

    chat = build_chat(settings, extractive=answerer)
    async with aclosing(chat.stream(messages, expected_prompt_tokens=900)) as deltas:
        async for delta in deltas: ...

Each try makes exactly one call to the LLM. It is tried again only while nothing has come from the model,
because text that a reader has seen cannot be taken back.
"""

from __future__ import annotations

import contextlib
import re
import sys
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

import structlog
from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.llms import LLM

from rag_service.errors import ModelError, ModelOutputError
from rag_service.models.llm.call import ChatCall, ChatLimits, prepare_call
from rag_service.models.llm.providers import Provider, build_llm
from rag_service.models.servers.resilience import CircuitBreaker, RetryPolicy, Slots, shielded
from rag_service.observability.tracing import span
from rag_service.settings import Settings

log = structlog.get_logger(__name__)

# The model counts with its own tokenizer and we with another: they differ by a fifth or so between
# languages. A cut prompt is about half as long. Ollama 0.30.0 counted new tokens alone
# when a prefix was cached (ollama pull request 16428): there the flag can be a false alarm.
MIN_COUNTED_SHARE = 0.6
_TOKEN_LENGTH = 20  # characters; tokens of prose have about 4, those of rulers and indents more


@dataclass(frozen=True, kw_only=True)
class ChatDelta:
    """A piece of the answer. The last one carries no text but what is known at the end."""

    text: str
    prompt_tokens: int | None = None  # as the model counted, if it did
    completion_tokens: int | None = None  # likewise
    finish_reason: str | None = None  # "stop", or "length" when max_tokens cut the answer


@dataclass(eq=False)
class ChatModel:
    """A LlamaIndex LLM with limits. One object per provider and process, shared by all requests."""

    llm: LLM  # for LlamaIndex code that takes an LLM; it has none of the limits
    _: KW_ONLY
    provider: str  # as in RAG_CHAT_PROVIDER
    max_tokens: int  # of an answer
    limits: ChatLimits
    slots: Slots
    structured_output: bool  # whether `complete_json` can work
    retries: RetryPolicy = field(default_factory=RetryPolicy)
    breaker: CircuitBreaker = field(default_factory=lambda: CircuitBreaker("chat model", failures=0, seconds=1))
    close: Callable[[], Awaitable[Any]] | None = None
    fallback: ChatModel | None = None  # answers from the same prompt where this model fails

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
        at once and the slot is free. Deltas of a model's thinking and leading white space are skipped.

        `max_tokens` overrides RAG_MAX_TOKENS; a model that ignores it is left when it has written far more.
        `expected_prompt_tokens` is our own count; when the model counted less than 60 % of it, the prompt was cut:
        logged as `prompt_truncated`.

        Raises:
            ModelBusyError: too many requests wait here, or the server answers 429 or 503 to the last.
            ModelError: not reachable, too slow, or broken off; the cause is chained. Also while the
                circuit breaker is open.
            ModelOutputError: `response_schema` is given and the model cannot follow one.
        """
        if response_schema is not None and not self.structured_output:
            raise ModelOutputError("The language model cannot produce structured output.")
        llm, prepared, options = prepare_call(self.llm, messages, max_tokens=max_tokens, schema=response_schema)
        self.breaker.check()  # before anybody waits for a slot
        async with self.slots.take():
            call = ChatCall(llm, prepared, options, limits=self.limits, retries=self.retries)
            outcome, said = "left or failed", False
            room = sys.maxsize if self.provider == "extractive" else (max_tokens or self.max_tokens) * _TOKEN_LENGTH
            with self.breaker.guard(), span("model") as describe:
                try:
                    while room > 0 and (text := await call.next()) is not None:
                        text, room = text[:room], room - len(text)
                        if not said:
                            text = text.lstrip()
                            said = bool(text)
                        if text:
                            yield ChatDelta(text=text)
                    if not said:
                        raise ModelError("The language model stopped before the end of its answer.")
                    outcome = "complete"
                finally:
                    self._report(call, outcome, describe)
                    await shielded(call.close)
        counted, expected = call.prompt_tokens, expected_prompt_tokens
        if expected and counted is not None and counted < MIN_COUNTED_SHARE * expected:
            window, name = self.context_window, self.model_name
            log.error("prompt_truncated", model=name, counted=counted, expected=expected, context_window=window)
        yield ChatDelta(
            text="",
            prompt_tokens=counted,
            completion_tokens=call.completion_tokens,
            finish_reason=call.finish_reason if room > 0 else "length",
        )

    def _report(self, call: ChatCall, outcome: str, describe: Callable[..., None]) -> None:
        """Tell log and trace of a call that is over.

        Attributes are named as in https://opentelemetry.io/docs/specs/semconv/gen-ai/gen-ai-spans/.
        """
        attributes = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": self.provider,
            "gen_ai.request.model": self.model_name,
            "gen_ai.usage.input_tokens": call.prompt_tokens,
            "gen_ai.usage.output_tokens": call.completion_tokens,
            "gen_ai.response.finish_reasons": call.finish_reason and [call.finish_reason],
        }
        describe(**attributes)
        log.info(
            "model_called",
            provider=self.provider,
            model=self.model_name,
            outcome=outcome,
            first_token_ms=call.first_token_ms,
            total_ms=round((time.monotonic() - call.began) * 1000, 1),
            prompt_tokens=call.prompt_tokens,
            completion_tokens=call.completion_tokens,
        )

    async def complete_json(
        self, messages: Sequence[ChatMessage], schema: Mapping[str, Any], *, max_tokens: int | None = None
    ) -> str:
        """The whole answer as JSON text that the model was held to `schema` for.

        The text is not validated here: a model may ignore the schema. Raises ModelOutputError if the model cannot
        follow a schema or `max_tokens` cut the JSON off.
        """
        parts = []
        stream = self.stream(messages, max_tokens=max_tokens, response_schema=schema)
        async with contextlib.aclosing(stream) as deltas:
            async for delta in deltas:
                parts.append(delta.text)
                if delta.finish_reason == "length":
                    raise ModelOutputError("The language model's answer exceeds its length limit.")
        return _without_fence("".join(parts))

    async def aclose(self) -> None:
        """Close the connections to the model server."""
        if self.close is not None:
            await self.close()


def _without_fence(text: str) -> str:
    """JSON without the Markdown code fence that models like to put around it."""
    fenced = re.fullmatch(r"\s*```(?:json)?\s*\n(.*?)\n?```\s*", text, re.DOTALL)
    return text if fenced is None else fenced[1]


def build_chat(
    settings: Settings, *, extractive: LLM, llm: LLM | None = None, retries: RetryPolicy | None = None
) -> ChatModel:
    """The chat model that RAG_CHAT_PROVIDER names. No connection is made yet.

    `extractive` answers where that is the provider, and where the model fails; `llm` replaces what the settings name.
    Raises ConfigurationError if the provider cannot be built.
    """
    if llm is not None:
        name, provider = type(llm).__name__, Provider(llm=llm)
    else:
        name = settings.chat.provider
        provider = Provider(llm=extractive) if name == "extractive" else build_llm(settings)
    local = llm is None and name == "extractive"
    limits = ChatLimits(
        first_token=settings.servers.first_token_timeout,
        between_tokens=settings.servers.token_timeout,
        total=settings.servers.answer_timeout,
    )
    fallback = None
    if not local and settings.answers.extractive_fallback:
        fallback = build_chat(settings.replace({"chat_provider": "extractive"}), extractive=extractive)
    # What runs in this process cannot be down.
    failures = 0 if local else settings.servers.breaker_failures
    return ChatModel(
        provider.llm,
        provider=name,
        max_tokens=settings.chat.max_tokens,
        limits=limits,
        slots=Slots(
            limit=settings.chat.concurrency, queue=settings.chat.queue, patience=settings.servers.first_token_timeout
        ),
        structured_output=not local,
        retries=retries or RetryPolicy(),
        breaker=CircuitBreaker("chat model", failures=failures, seconds=settings.servers.breaker_seconds),
        close=provider.close,
        fallback=fallback,
    )

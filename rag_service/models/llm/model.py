"""The chat model: any LlamaIndex LLM behind one call that streams, ends in time and can be left.

    chat = build_chat(settings)
    async with aclosing(chat.stream(messages, expected_prompt_tokens=900)) as deltas:
        async for delta in deltas: ...

Each try makes exactly one call to the LLM. It is tried again only while nothing has come from the model,
because text that a reader has seen cannot be taken back, unless it was no part of the answer: see `thinking.py`.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import structlog
from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.llms import LLM
from llama_index.core.llms.function_calling import FunctionCallingLLM
from llama_index.core.tools import BaseTool

from rag_service.domain import ModelCall, Purpose, TokenCount
from rag_service.errors import ModelError, ModelOutputError
from rag_service.language.words import count_tokens
from rag_service.machine import cores
from rag_service.models.llm.call import ChatCall, ChatLimits, ToolCall, prepare_call
from rag_service.models.llm.extractive import EXTRACTIVE, ExtractiveLLM
from rag_service.models.llm.learned import Learned
from rag_service.models.llm.loops import WINDOW, repeats, without_repetition
from rag_service.models.llm.providers import Provider, build_llm
from rag_service.models.llm.thinking import AnswerText, Piece
from rag_service.models.llm.token_rates import CountTokens, TokenRates, count_samples
from rag_service.models.servers.resilience import CircuitBreaker, RetryPolicy, Slots, shielded
from rag_service.observability.tracing import span
from rag_service.settings import Settings
from rag_service.turns import Owner

if TYPE_CHECKING:
    from rag_service.models.llm.gguf import LlamaServer

log = structlog.get_logger(__name__)

# The model counts with its own tokenizer and we with another: they differ by a fifth or so between
# languages. A cut prompt is about half as long. Ollama 0.30.0 counted new tokens alone
# when a prefix was cached (ollama pull request 16428): there the flag can be a false alarm.
MIN_COUNTED_SHARE = 0.6
MAX_ARGUMENTS = 20_000  # characters of all tool calls of an answer: a model that writes more is left
_CALL_LENGTH = 500  # characters that a call counts besides those of its name and arguments: some are empty
_PROBE_AGAIN = 60.0  # seconds until a server that could not be asked about tools is asked again
_CUT = ("length", "content_filter")  # reasons for an end, in the words of OpenAI's API, before the answer was whole
_TOKEN_LENGTH = 20  # characters; tokens of prose have about 4, those of rulers and indents more

OnCall = Callable[[ModelCall], None]  # receives each call that is over, such as `Metrics.model_call`
Probe = Callable[["ChatModel"], Awaitable[bool]]  # asks a server whether its model calls tools

_counted_calls: contextvars.ContextVar[list[ModelCall] | None] = contextvars.ContextVar("model_calls", default=None)


@contextlib.contextmanager
def counted(calls: list[ModelCall]) -> Iterator[None]:
    """Add the calls of chat models begun inside to the list, each when it is over. Nothing may be yielded inside.

    The list is in a context variable: plug-ins between an answer and the model, such as a judge or a reranker, need not
    pass it on.
    """
    before = _counted_calls.set(calls)
    try:
        yield
    finally:
        _counted_calls.reset(before)


@dataclass(frozen=True, kw_only=True)
class ChatDelta:
    """A piece of the answer. The last one carries no text but what is known at the end."""

    text: str
    restart: bool = False  # the answer begins here: what came before was thought, or ended in a repetition
    prompt_tokens: int | None = None  # as the model counted, if it did
    completion_tokens: int | None = None  # likewise
    tool_calls: tuple[ToolCall, ...] = ()  # that the model makes, instead of an answer or after a part of it
    finish_reason: str | None = None  # "stop", or one of _CUT; "length" as well if it repeated itself and was left

    @property
    def is_cut(self) -> bool:
        """Whether the answer is not whole."""
        return self.finish_reason in _CUT

    @property
    def reported_reason(self) -> str:
        """Finish reason reported to clients: `stop` unless the answer is cut."""
        return self.finish_reason if self.finish_reason in _CUT else "stop"

    def count(self, text: str, *, prompt_estimate: int) -> TokenCount:
        """Return the tokens of an answer as the server counted them, else our estimate; `text` is the answer."""
        prompt, completion = self.prompt_tokens, self.completion_tokens
        return TokenCount(
            prompt=prompt_estimate if prompt is None else prompt,
            completion=count_tokens(text) if completion is None else completion,
            estimated=prompt is None or completion is None,
        )


class _NoAnswerError(ModelError):
    """The model ended without an answer."""


class _Answer:
    """What has come of an answer."""

    def __init__(self, thinking: AnswerText, *, room: int, thinks_unmarked: bool = False) -> None:
        """
        Args:
            thinking: tells thoughts from the answer.
            room: characters that the model may write, its thoughts included.
            thinks_unmarked: whether it is known to begin with thoughts without marking them.
        """
        self.text = ""  # without thoughts
        self.repeats = self.is_cut = False
        self._thinking = thinking
        self._room = room
        self._thinks_unmarked = thinks_unmarked
        self._tail = ""

    @property
    def is_over(self) -> bool:
        """Whether nothing more is wanted of the model."""
        return self.repeats or self._room <= 0

    @property
    def opened_by_prompt(self) -> bool:
        """As in `AnswerText`."""
        return self._thinking.opened_by_prompt

    @property
    def without_repetition(self) -> str:
        return without_repetition(self.text) if self.repeats else self.text

    def take(self, text: str) -> Piece:
        """Take the next piece of what the model writes; returns what of it is answer."""
        text = text[: self._room]
        self._room -= len(text)
        self._tail = (self._tail + text)[-WINDOW:]
        self.repeats = repeats(self._tail)
        return self._add(self._thinking.feed(text))

    def finish(self, reason: str | None) -> Piece:
        """The rest; `reason` is the model's own for its end."""
        self.is_cut = self.is_over or reason == "length"
        return self._add(self._thinking.finish(drop_held=self.is_cut and self._thinks_unmarked))

    def _add(self, piece: Piece) -> Piece:
        self.text = piece.text if piece.restart else self.text + piece.text
        return piece


@dataclass(eq=False)
class ChatModel:
    """A LlamaIndex LLM with limits. One object per provider and process, shared by all requests."""

    llm: LLM  # for LlamaIndex code that takes an LLM; it has none of the limits
    _: KW_ONLY
    provider: str  # as in RAG_CHAT_PROVIDER
    max_tokens: int  # of an answer
    limits: ChatLimits
    slots: Slots  # at each call
    structured_output: bool  # whether `complete_json` can work
    retries: RetryPolicy = field(default_factory=RetryPolicy)
    breaker: CircuitBreaker = field(default_factory=lambda: CircuitBreaker("chat model", failures=0, seconds=1))
    close: Callable[[], Awaitable[Any]] | None = None
    quoting: Slots | None = None  # at whole answers where nobody writes; None: as many as come
    fallback: ChatModel | None = None  # stands for the quotes that answer where this model fails
    unswitched: LLM | None = None  # the same LLM, which does not tell its server whether to think; None: it never does
    refuses_switch: bool | None = None  # whether the server refuses to be told; None: not known yet
    server: LlamaServer | None = None  # that runs the model for this service
    on_call: OnCall | None = None  # receives each call
    calls_tools: bool | None = False  # whether it can call tools; None: not known yet
    probe: Probe | None = None  # asks the server whether it can
    count_tokens: CountTokens | None = None  # asks the server; None: it cannot be asked
    samples: Mapping[str, str] = field(default_factory=dict)  # language → a text, for the server to count
    rates: TokenRates = field(default_factory=TokenRates)  # of its tokens to ours
    _probing: asyncio.Task[None] | None = field(default=None, init=False, repr=False)
    _counting: asyncio.Task[None] | None = field(default=None, init=False, repr=False)
    _window: Learned[int] = field(default_factory=Learned, init=False)  # as the server says
    _thinks_unmarked: Learned[bool] = field(default_factory=Learned, init=False)  # `AnswerText.opened_by_prompt`

    @property
    def model_name(self) -> str:
        """As the provider names it; part of an answer's provenance."""
        return str(self.llm.metadata.model_name)

    @property
    def only_quotes(self) -> bool:
        """Whether it quotes the passages, and writes nothing: there is no model."""
        return self.provider == EXTRACTIVE

    @property
    def is_idle(self) -> bool:
        """Whether nobody waits for it or is answered by it."""
        return self.slots.is_idle and (self.quoting is None or self.quoting.is_idle)

    @contextlib.asynccontextmanager
    async def turn(self, owner: Owner) -> AsyncIterator[None]:
        """Hold what a whole answer takes. Raises as `Turns.take`.

        Where nobody writes, that is a turn, as nearly all of the answer is work of the processor; else a place among
        those who will want the model.
        """
        if self.only_quotes and self.quoting is not None:
            async with self.quoting.take(owner):
                yield
        else:
            with self.slots.admit(owner):
                yield

    @property
    def context_window(self) -> int:
        """Tokens that prompt and answer share."""
        window = int(self.llm.metadata.context_window)
        return min(window, self._window.value() or window)

    def learn_window(self, tokens: int | None) -> None:
        """Take in what the server says of its window. One that is no larger than an answer is not believed."""
        if tokens is not None and tokens > self.max_tokens:
            self._window.add(tokens)

    def prompt_limit(self, language: str, *, answer_tokens: int | None = None) -> int:
        """Tokens, as we count them, of the longest prompt in a language that leaves room for an answer.

        `answer_tokens`: kept for the answer; None: RAG_MAX_TOKENS.
        """
        kept = self.max_tokens if answer_tokens is None else answer_tokens
        return self.rates.limit(language, window=self.context_window, answer_tokens=kept)

    def stream(
        self,
        messages: Sequence[ChatMessage],
        *,
        purpose: Purpose = Purpose.ANSWER,
        max_tokens: int | None = None,
        response_schema: Mapping[str, Any] | None = None,
        expected_prompt_tokens: int | None = None,
        retractable: bool = True,
        switched: bool = True,
        tools: Sequence[BaseTool] = (),
    ) -> AsyncGenerator[ChatDelta]:
        """The answer, piece by piece; the last delta has no text but the counts.

        Close the generator (`contextlib.aclosing`) to leave early: the connection to the model ends
        at once and the slot is free. A model's thinking, in fields or in the text, and leading white space are
        skipped. A model that only repeats itself is left. The call is counted, see `counted`.

        `max_tokens` overrides RAG_MAX_TOKENS; a model that ignores it is left when it has written far more.
        `expected_prompt_tokens` is our own count; when the model counted less than 60 % of it, the prompt was cut:
        logged as `prompt_truncated`. `retractable`: whether the reader can follow a `restart`; for one who cannot,
        the text is held until it is known whether the model marks the beginning of its thoughts. `switched`: tell
        the server whether to think, as the settings say. `tools` are offered to a model that can call them; its calls
        are in the last delta, at most `MAX_ARGUMENTS` characters of them. With a `response_schema` they are only named.

        Raises:
            ModelBusyError: too many requests wait here, or the server answers 429 or 503 to the last.
            ModelError: not reachable, too slow, or broken off; the cause is chained. Also while the
                circuit breaker is open, and if the model ends without an answer.
            ModelOutputError: `response_schema` is given and the model cannot follow one.
        """
        return self._stream(
            messages,
            _counted_calls.get(),
            purpose=purpose,
            max_tokens=max_tokens,
            response_schema=response_schema,
            expected_prompt_tokens=expected_prompt_tokens,
            retractable=retractable,
            switched=switched,
            tools=tools,
        )

    async def _stream(
        self,
        messages: Sequence[ChatMessage],
        calls: list[ModelCall] | None,
        *,
        purpose: Purpose,
        max_tokens: int | None,
        response_schema: Mapping[str, Any] | None,
        expected_prompt_tokens: int | None,
        retractable: bool,
        switched: bool,
        tools: Sequence[BaseTool],
    ) -> AsyncGenerator[ChatDelta]:
        if response_schema is not None and not self.structured_output:
            raise ModelOutputError("The language model cannot produce structured output.")
        named = () if response_schema is None else tools
        prepare = partial(
            prepare_call, messages=messages, max_tokens=max_tokens, schema=response_schema, named_tools=named
        )
        spare = self.unswitched  # asked instead if the server refuses to be told whether to think
        llm, prepared, options = prepare(spare if spare and (self.refuses_switch or not switched) else self.llm)
        spare = prepare(spare)[0] if spare and switched and self.refuses_switch is None else None
        self.breaker.check()  # before anybody waits for a slot
        async with self.slots.take():
            call = ChatCall(
                llm,
                prepared,
                options,
                limits=self.limits,
                retries=self.retries,
                spare=spare,
                tools=() if named else tools,
            )
            answer = self._begin_answer(max_tokens, retractable=retractable)
            outcome = "left or failed"
            text: str | None = ""
            with self.breaker.guard(), span("model") as describe:
                try:
                    while text is not None:
                        is_over = answer.is_over or sum(map(_length, call.tool_calls)) > MAX_ARGUMENTS
                        text = None if is_over else await call.next()
                        piece = answer.finish(call.finish_reason) if text is None else answer.take(text)
                        if piece.text or piece.restart:
                            yield ChatDelta(text=piece.text, restart=piece.restart)
                    self._learn(call, answer, spare=spare, schema=response_schema)
                    if not answer.text.strip() and not call.tool_calls:
                        raise _NoAnswerError("The language model stopped before the end of its answer.")
                    if retractable and (kept := answer.without_repetition) != answer.text:
                        yield ChatDelta(text=kept, restart=True)
                    outcome = "repeated itself" if answer.repeats else "complete"
                finally:
                    self._report(call, purpose, outcome, describe, calls)
                    await shielded(call.close)
        counted, expected = call.prompt_tokens, expected_prompt_tokens
        if expected and counted is not None and counted < MIN_COUNTED_SHARE * expected:
            window, name = self.context_window, self.model_name
            log.error("prompt_truncated", model=name, counted=counted, expected=expected, context_window=window)
        yield ChatDelta(
            text="",
            prompt_tokens=counted,
            completion_tokens=call.completion_tokens,
            tool_calls=call.tool_calls,
            finish_reason="length" if answer.is_cut else call.finish_reason,
        )

    def _begin_answer(self, max_tokens: int | None, *, retractable: bool) -> _Answer:
        known = self._thinks_unmarked.value()
        return _Answer(
            AnswerText(hold=not retractable if known is None else known),
            room=(max_tokens or self.max_tokens) * _TOKEN_LENGTH,
            thinks_unmarked=known is True,
        )

    def _learn(self, call: ChatCall, answer: _Answer, *, spare: LLM | None, schema: Mapping[str, Any] | None) -> None:
        """What a complete answer shows about the model and its server."""
        if spare is not None:
            self.refuses_switch = call.used_spare
        if schema is None and (answer.opened_by_prompt or not answer.is_cut):
            self._thinks_unmarked.add(answer.opened_by_prompt)

    def _report(
        self,
        call: ChatCall,
        purpose: Purpose,
        outcome: str,
        describe: Callable[..., None],
        calls: list[ModelCall] | None,
    ) -> None:
        """Count a call that is over, and tell log and trace of it.

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
        total_ms = round((time.monotonic() - call.began) * 1000, 1)
        made = ModelCall(purpose=purpose, first_token_ms=call.first_token_ms, total_ms=total_ms)
        for count in (None if calls is None else calls.append, self.on_call):
            if count is not None:
                count(made)
        log.info(
            "model_called",
            provider=self.provider,
            model=self.model_name,
            purpose=purpose.value,
            outcome=outcome,
            first_token_ms=call.first_token_ms,
            total_ms=total_ms,
            prompt_tokens=call.prompt_tokens,
            completion_tokens=call.completion_tokens,
        )

    async def complete_json(
        self,
        messages: Sequence[ChatMessage],
        schema: Mapping[str, Any],
        *,
        purpose: Purpose = Purpose.ANSWER,
        max_tokens: int | None = None,
        tools: Sequence[BaseTool] = (),
    ) -> str:
        """Return the whole answer as JSON text that the model was held to `schema` for.

        The text is not validated here: a model may ignore the schema. A model that answers nothing is asked once more
        without telling it whether to think, which some cannot follow beside a schema. `tools` are named in the prompt,
        as in the calls before, and may not be called.

        Raises ModelOutputError if the model cannot follow a schema or `max_tokens` cut the JSON off.
        """
        ask = partial(
            self.stream, messages, purpose=purpose, max_tokens=max_tokens, response_schema=schema, tools=tools
        )
        try:
            text, last = await collect(ask())
        except _NoAnswerError:
            if self.unswitched is None or self.refuses_switch:
                raise
            text, last = await collect(ask(switched=False))
        if last.finish_reason == "length":
            raise ModelOutputError("The language model's answer exceeds its length limit.")
        return text

    def start(self) -> None:
        """Begin to load the model, where this service runs it, and to learn how its server counts. Returns at once."""
        if self.server is not None:
            self.server.start()
        if self.count_tokens is not None and self._counting is None:
            self._counting = asyncio.create_task(self._count(self.count_tokens), name="token-rates")

    async def _count(self, count: CountTokens) -> None:
        try:
            await count_samples(self.rates, self.samples, count)
        except Exception as error:
            log.info("token_rates_unknown", model=self.model_name, exc_info=error)
        log.info("token_rates", model=self.model_name, rates=self.rates.rates)

    def offers_tools(self) -> bool:
        """Whether tools may be offered. Nobody waits for it: where it is not known, the server is asked meanwhile."""
        if self.calls_tools is None and self._probing is None:
            # In a context of its own: the call is no part of the question that happens to come first.
            self._probing = asyncio.create_task(self._probe(), name="tool-probe", context=contextvars.Context())
        return self.calls_tools is True

    async def _probe(self) -> None:
        while self.calls_tools is None and self.probe is not None:
            try:
                self.calls_tools = await self.probe(self)
            except Exception as error:
                log.info("tools_unknown", model=self.model_name, exc_info=error)
                await asyncio.sleep(_PROBE_AGAIN)
        log.info("tools_known", model=self.model_name, calls_tools=self.calls_tools)

    async def aclose(self) -> None:
        """Close the connections to the model server, and stop it where this service runs it."""
        if asking := [task for task in (self._probing, self._counting) if task is not None]:
            for task in asking:
                task.cancel()
            await asyncio.wait(asking, timeout=1)
        if self.close is not None:
            await self.close()


async def collect(deltas: AsyncGenerator[ChatDelta]) -> tuple[str, ChatDelta]:
    """The whole text of an answer, and its last delta."""
    text, last = "", ChatDelta(text="")
    async with contextlib.aclosing(deltas):
        async for last in deltas:
            text = last.text if last.restart else text + last.text
    return text, last


def _length(call: ToolCall) -> int:
    return _CALL_LENGTH + len(call.name) + len(call.arguments)


def build_quoting_turns(settings: Settings) -> Slots:
    """The turns at whole answers where nobody writes."""
    return Slots(
        kind="quoting",
        limit=2 * cores(),
        queue=settings.chat.queue,
        patience=settings.servers.first_token_timeout,
        shared=settings.auth.mode != "none",
    )


def build_chat(
    settings: Settings,
    *,
    llm: LLM | None = None,
    retries: RetryPolicy | None = None,
    server: LlamaServer | None = None,
    on_call: OnCall | None = None,
    samples: Mapping[str, str] | None = None,
    quoting: Slots | None = None,
) -> ChatModel:
    """The chat model that RAG_CHAT_PROVIDER names. No connection is made yet.

    `llm` replaces what the settings name; `server` runs the model where the provider is `gguf`, and is not closed with
    what is built here; `on_call` is told of each call; `samples`: a text for each language, which shows how the server
    counts tokens; `quoting`: as `build_quoting_turns` makes them. Raises ConfigurationError if the provider cannot be
    built.
    """
    if llm is not None:
        name, provider = type(llm).__name__, Provider(llm=llm)
    else:
        name = settings.chat.provider
        provider = Provider(llm=ExtractiveLLM()) if name == EXTRACTIVE else build_llm(settings, server=server)
    local = llm is None and name == EXTRACTIVE
    limits = ChatLimits(
        first_token=settings.servers.first_token_timeout,
        between_tokens=settings.servers.token_timeout,
        total=settings.servers.answer_timeout,
    )
    fallback = None
    if not local and settings.answers.extractive_fallback:
        fallback = build_chat(settings.replace({"chat_provider": EXTRACTIVE}))
    # What runs in this process cannot be down.
    failures = 0 if local else settings.servers.breaker_failures
    return ChatModel(
        provider.llm,
        provider=name,
        max_tokens=settings.chat.max_tokens,
        limits=limits,
        slots=Slots(
            limit=settings.chat.concurrency,
            queue=settings.chat.queue,
            patience=settings.servers.first_token_timeout,
            shared=settings.auth.mode != "none",
        ),
        structured_output=not local,
        retries=retries or RetryPolicy(),
        breaker=CircuitBreaker("chat model", failures=failures, seconds=settings.servers.breaker_seconds),
        close=provider.close,
        quoting=quoting,
        fallback=fallback,
        unswitched=provider.unswitched,
        refuses_switch=provider.refuses_switch,
        server=provider.server,
        on_call=on_call,
        calls_tools=_calls_tools(settings, provider, local=local),
        probe=provider.probe,
        count_tokens=provider.count_tokens,
        samples=samples or {},
    )


def _calls_tools(settings: Settings, provider: Provider, *, local: bool) -> bool | None:
    """What is known of a model before it is asked."""
    if local or settings.chat.tools == "off" or not isinstance(provider.llm, FunctionCallingLLM):
        return False
    if settings.chat.tools == "on":
        return True
    return bool(provider.llm.metadata.is_function_calling_model) if provider.probe is None else None

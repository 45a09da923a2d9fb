"""One call to a LlamaIndex LLM: retried while that is possible, timed, and closed for certain.

The stream is read in a task of its own. A web framework may cancel a request at every await, clean-up
included, and httpx then leaves the connection open for good; the reading task is cancelled once, while it
waits for the model, so that every layer of the stream closes in order.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import inspect
import json
import threading
import time
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from llama_index.core.base.llms.types import ChatMessage, ChatResponse, MessageRole, ToolCallBlock
from llama_index.core.llms import LLM, CustomLLM
from llama_index.core.llms.function_calling import FunctionCallingLLM
from llama_index.core.tools import BaseTool

from rag_service.errors import ModelBusyError, ModelError, PromptTooLongError, RagError
from rag_service.language.normalise import replace_unstorable
from rag_service.models.llm.token_rates import Refusal, read_refusal
from rag_service.models.servers.counts import read_count
from rag_service.models.servers.failures import (
    BUSY_STATUSES,
    ProviderError,
    is_connection_error,
    is_timeout,
    proxy_in_words,
    seconds_to_wait,
    status_of,
)
from rag_service.models.servers.resilience import RetryPolicy, raisable

_OLLAMA, _OPENAI = "llama_index.llms.ollama", "llama_index.llms.openai"
_SCHEMA_INSTRUCTION = "Reply with JSON only, without any other text. It must follow this JSON schema:\n"


def prepare_call(
    llm: LLM,
    messages: Sequence[ChatMessage],
    *,
    max_tokens: int | None,
    schema: Mapping[str, Any] | None,
    named_tools: Sequence[BaseTool] = (),
) -> tuple[LLM, list[ChatMessage], dict[str, Any]]:
    """Return the LLM, messages and keyword arguments of one call.

    Limits are fields of LlamaIndex's classes and not arguments of a call: a changed copy shares the client. A
    class without such a field keeps its own limit. A model that cannot be held to a schema is asked to follow it.
    `named_tools` stand in the prompt as in the calls before, so that a server finds its beginning in its prefix cache,
    but may not be called. Ollama has no way to say so, and holds the reply to the schema alone.
    """
    messages = list(messages)
    shown = [tool.metadata.to_openai_tool(skip_length_check=True) for tool in named_tools]
    if _derives_from(type(llm), _OLLAMA):
        if max_tokens is not None:
            options = {**getattr(llm, "additional_kwargs", {}), "num_predict": max_tokens}
            llm = llm.model_copy(update={"additional_kwargs": options})
        if schema is None:
            return llm, messages, {}
        return llm, messages, {"format": dict(schema), **({"tools": shown} if shown else {})}
    if max_tokens is not None and "max_tokens" in type(llm).model_fields:
        llm = llm.model_copy(update={"max_tokens": max_tokens})
    if schema is None:
        return llm, messages, {}
    if _derives_from(type(llm), _OPENAI):  # https://platform.openai.com/docs/guides/structured-outputs
        json_schema = {"name": "answer", "schema": dict(schema), "strict": True}
        held: dict[str, Any] = {"response_format": {"type": "json_schema", "json_schema": json_schema}}
        return llm, messages, held | ({"tools": shown, "tool_choice": "none"} if shown else {})
    instruction = ChatMessage(role=MessageRole.SYSTEM, content=_SCHEMA_INSTRUCTION + json.dumps(dict(schema)))
    return llm, [instruction, *messages], {}


def numbered_schema(name: str, count: int, properties: Mapping[str, Any]) -> dict[str, Any]:
    """The schema of an object whose list `name` has an entry for each of the ids 1..`count`, with these properties."""
    entry = {
        "type": "object",
        "properties": {"id": {"type": "integer", "minimum": 1, "maximum": count}, **properties},
        "required": ["id", *properties],
    }
    return {
        "type": "object",
        "properties": {name: {"type": "array", "items": entry, "minItems": count, "maxItems": count}},
        "required": [name],
    }


@cache
def _derives_from(kind: type[LLM], package: str) -> bool:
    """Whether the class comes from an integration package, without importing the package."""
    return any(cls.__module__.startswith(package) for cls in kind.__mro__)


async def stream_chat(
    llm: LLM, messages: Sequence[ChatMessage], options: Mapping[str, Any], tools: Sequence[BaseTool] = ()
) -> AsyncGenerator[ChatResponse]:
    """What `astream_chat` yields; where the class has no asynchronous stream, `stream_chat` or `chat` in a thread.

    With `tools`, what `astream_chat_with_tools` yields.
    """
    if tools and isinstance(llm, FunctionCallingLLM):
        async for response in await llm.astream_chat_with_tools(tools, chat_history=list(messages), **options):
            yield response
        return
    # LlamaIndex's own `astream_chat` of a CustomLLM would block the event loop.
    pretends = inspect.unwrap(type(llm).astream_chat) is inspect.unwrap(CustomLLM.astream_chat)
    begun = False
    try:
        if not pretends:
            async for response in await llm.astream_chat(messages, **options):
                begun = True
                yield response
            return
    except NotImplementedError:
        if begun:
            raise
    try:
        async with contextlib.aclosing(iterate(lambda: llm.stream_chat(messages, **options))) as responses:
            async for response in responses:
                begun = True
                yield response
        return
    except NotImplementedError:
        if begun:
            raise
    async with contextlib.aclosing(iterate(lambda: [llm.chat(messages, **options)])) as responses:
        async for response in responses:
            yield response


async def iterate(produce: Callable[[], Iterable[ChatResponse]]) -> AsyncGenerator[ChatResponse]:
    """Iterate over a blocking iterable in a thread of its own, at most one item ahead of the reader.

    A reader who leaves does not wait for the thread: it ends with the next item. It is a daemon, so that one
    that hangs for ever cannot keep the process from ending.
    """
    loop = asyncio.get_running_loop()
    items: asyncio.Queue[ChatResponse | Exception | None] = asyncio.Queue()
    wanted = threading.Semaphore(2)  # the item that the reader has, and the next
    left = threading.Event()

    def put(item: ChatResponse | Exception | None) -> None:
        with contextlib.suppress(RuntimeError):  # the event loop has been closed
            loop.call_soon_threadsafe(items.put_nowait, item)

    def work() -> None:
        try:
            for item in produce():
                if left.is_set():
                    return
                put(item)
                wanted.acquire()
            put(None)
        except StopIteration:  # cannot be raised in a coroutine
            put(None)
        except BaseException as error:  # noqa: BLE001 - raised to the reader
            put(raisable(error))

    context = contextvars.copy_context()  # the spans of LlamaIndex's instrumentation
    threading.Thread(target=context.run, args=(work,), name="blocking-llm", daemon=True).start()
    try:
        while (item := await items.get()) is not None:
            if isinstance(item, Exception):
                raise item
            yield item
            wanted.release()
    finally:
        left.set()
        wanted.release()


# Names of token counts in OpenAI's, Anthropic's and Ollama's replies.
_PROMPT_COUNTS = frozenset({"prompt_tokens", "input_tokens", "prompt_eval_count"})
_COMPLETION_COUNTS = frozenset({"completion_tokens", "output_tokens", "eval_count"})
_REFUSED = frozenset({400, 422})  # answers to a request that a server cannot read
_LEAVE_SECONDS = 0.03  # for pieces that a stream still gives without waiting when it is left; the event loop stands


@dataclass(frozen=True, kw_only=True)
class ChatLimits:
    """Time limits of one answer, in seconds."""

    first_token: float  # from the slot to the first sign of life, all tries together
    between_tokens: float
    total: float  # from the slot to the end, slow readers included


@dataclass(frozen=True, kw_only=True)
class ToolCall:
    """A call of a tool, as a model wrote it: nothing of it has been checked."""

    id: str
    name: str
    arguments: str  # JSON, or what was to be JSON
    block: ToolCallBlock  # for the messages of the next call


def _tool_call(block: ToolCallBlock) -> ToolCall:
    given = block.tool_kwargs
    written = given if isinstance(given, str) else json.dumps(given, default=str)
    return ToolCall(id=block.tool_call_id or block.tool_name, name=block.tool_name, arguments=written, block=block)


class ChatCall:
    """One answer being made. Call `next` until it returns None, and `close` in any case."""

    def __init__(
        self,
        llm: LLM,
        messages: Sequence[ChatMessage],
        options: Mapping[str, Any],
        *,
        limits: ChatLimits,
        retries: RetryPolicy,
        spare: LLM | None,
        tools: Sequence[BaseTool],
    ):
        """`tools` may be called, see `tool_calls`.

        `spare`: asked once if the server refuses the request of `llm`, such as for a field that it does not know."""
        self._llm = llm
        self._spare = spare
        self.used_spare = False
        self._messages = messages
        self._options = options
        self._tools = tools
        self.tool_calls: tuple[ToolCall, ...] = ()  # that the model makes, so far
        self._limits = limits
        self._retries = retries
        self._stream: AsyncGenerator[ChatResponse] | None = None
        # One ahead of the reader and no more: a slow reader slows the model.
        self._responses: asyncio.Queue[ChatResponse | Exception | None] = asyncio.Queue(maxsize=1)
        self._reading: asyncio.Task[None] | None = None
        self._context = contextvars.copy_context()  # the stream must be left in the context that it began in
        self._text = ""
        self._done: bool | None = None  # None: the provider does not say
        self.began = time.monotonic()
        self.first_token_ms: float | None = None  # None until something came
        self.prompt_tokens: int | None = None
        self.completion_tokens: int | None = None
        self.finish_reason: str | None = None

    async def next(self) -> str | None:
        """The next piece of text, which may be empty; None at the end.

        Raises ModelError, with the cause chained; also if the answer ended early, which to the client package looks
        complete.
        """
        if self._reading is None:
            self._reading = asyncio.create_task(self._read(), name="chat-call", context=self._context)
        begun = self.first_token_ms is not None
        left = self._limits.total - (time.monotonic() - self.began)
        limit = self._limits.between_tokens if begun else self._limits.first_token
        try:
            async with asyncio.timeout(min(left, limit)):
                response = await self._responses.get()
        except TimeoutError as error:
            raise ModelError("The language model did not answer in time.") from error
        if isinstance(response, RagError):
            raise response
        if isinstance(response, Exception):
            sent = [message.content or "" for message in self._messages]
            raise _model_error(response, begun=begun) from ProviderError(response, sent)
        if response is None:
            if self._done is False or not begun:
                raise ModelError("The language model stopped before the end of its answer.")
            return None
        if not begun:
            self.first_token_ms = round((time.monotonic() - self.began) * 1000, 1)
        return self._note(response)

    def _note(self, response: ChatResponse) -> str:
        """Take in a response; its new text."""
        said = response.raw if isinstance(response.raw, Mapping) else {}
        usage = said.get("usage") or getattr(response.raw, "usage", None) or response.additional_kwargs
        # A count may come without the other, so they are read where Ollama puts them too.
        counts = {**said, **(usage if isinstance(usage, Mapping) else getattr(usage, "__dict__", {}))}
        for name, value in counts.items():
            if name in _PROMPT_COUNTS:
                self.prompt_tokens = read_count(value) or self.prompt_tokens
            elif name in _COMPLETION_COUNTS:
                self.completion_tokens = read_count(value) or self.completion_tokens
        self._done = said.get("done", self._done)
        reason = said.get("done_reason")
        choices = getattr(response.raw, "choices", None)
        if choices is not None:  # OpenAI's protocol ends with a reason, or was cut
            reason = choices[0].finish_reason if choices else None
            self._done = bool(reason or self.finish_reason)
        self.finish_reason = reason if isinstance(reason, str) and reason else self.finish_reason
        if self._tools:
            asked = [block for block in response.message.blocks if isinstance(block, ToolCallBlock)]
            self.tool_calls = tuple(map(_tool_call, asked)) or self.tool_calls
        delta = response.delta
        if delta is None:  # some classes give the text so far and no more
            delta = (response.message.content or "").removeprefix(self._text)
        self._text += delta
        return replace_unstorable(delta)

    async def close(self) -> None:
        """End the connection and the reading task. Never raises, takes at most a second."""
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.wait([self._reading], timeout=1)

    async def _read(self) -> None:
        try:
            response = await self._begin()
            while response is not None:
                await self._responses.put(response)
                response = await anext(self._stream, None) if self._stream else None
            await self._responses.put(None)
        except Exception as error:  # noqa: BLE001 - raised to the reader by `next`
            await self._responses.put(error)
        finally:
            await self._end()

    async def _begin(self) -> ChatResponse | None:
        """The first response; that of the spare LLM if the server refuses the request of the other."""
        try:
            return await self._try()
        except Exception as error:
            if self._spare is None or status_of(error) not in _REFUSED or _length_refusal(error) is not None:
                raise
        self._llm, self.used_spare = self._spare, True
        return await self._try()

    async def _try(self) -> ChatResponse | None:
        response = None
        async for attempt in self._retries.tries(BUSY_STATUSES):
            with attempt:
                await self._end()  # what the last try left behind
                self._stream = stream_chat(self._llm, self._messages, self._options, self._tools)
                response = await anext(self._stream, None)
        return response

    async def _end(self) -> None:
        """Close the stream, if it has not ended, by cancelling it where it waits for the model.

        Closing the outermost generator would leave those inside it, and with them the connection, to the
        garbage collector: LlamaIndex's wrapper does not close what it wraps.
        """
        stream, self._stream = self._stream, None
        if stream is not None and getattr(stream, "ag_frame", None) is not None:
            await asyncio.wait([asyncio.create_task(_leave(stream), context=self._context)], timeout=1)


async def _leave(stream: AsyncGenerator[ChatResponse]) -> None:
    if task := asyncio.current_task():
        task.cancel()  # takes effect where the stream waits next
    until = time.monotonic() + _LEAVE_SECONDS
    with contextlib.suppress(Exception, asyncio.CancelledError):
        while time.monotonic() < until:
            await anext(stream)
    with contextlib.suppress(Exception, asyncio.CancelledError):
        await stream.aclose()


def _model_error(error: Exception, *, begun: bool) -> ModelError:
    """What a caller may know of a client package's error."""
    status = status_of(error)
    if status in BUSY_STATUSES:
        return ModelBusyError("The language model is busy with other requests.", retry_after=seconds_to_wait(error))
    if is_connection_error(error) and not begun:
        return ModelError(f"The language model cannot be reached{proxy_in_words(error)}.", retry_after=5)
    if is_timeout(error):
        return ModelError("The language model did not answer in time.")
    if status == 404:
        return ModelError(
            "The language model is not available on its server. With Ollama, run `rag-service models pull` to fetch it."
        )
    if (refusal := _length_refusal(error)) is not None:
        too_long = PromptTooLongError("The prompt is too long for the language model.")
        too_long.tokens, too_long.window = refusal.tokens, refusal.window
        return too_long
    if status is not None:
        return ModelError(f"The language model refused the request{proxy_in_words(error)}.")
    return ModelError("The language model stopped before the end of its answer.")


def _length_refusal(error: Exception) -> Refusal | None:
    return read_refusal(status_of(error), getattr(error, "body", None), str(error))

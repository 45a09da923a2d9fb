"""The LLM that RAG_CHAT_PROVIDER names."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from llama_index.core.base.llms.types import ChatMessage, MessageRole
from llama_index.core.llms import LLM
from llama_index.core.tools import FunctionTool

from rag_service.domain import Purpose
from rag_service.errors import ModelBusyError, ModelError
from rag_service.models.llm.token_rates import CountTokens, counting_client
from rag_service.models.plugins import instantiate, load_class, parse_options
from rag_service.models.servers.clients import client_options
from rag_service.settings import Settings
from rag_service.settings.models import Thinking
from rag_service.unpicklable import Unpicklable

if TYPE_CHECKING:
    from rag_service.models.llm.gguf import LlamaServer

_OPTIONS = "RAG_CHAT_OPTIONS"
PROBED_TOOL = "say"  # by which a server is asked whether its model calls tools
_PROBE_TOKENS = 100


@dataclass(frozen=True, kw_only=True)
class Provider:
    """An LLM and the connections that were made for it."""

    llm: LLM
    close: Callable[[], Awaitable[Any]] | None = None
    unswitched: LLM | None = None  # the same without the switch of thinking; None: there is no such switch
    refuses_switch: bool | None = None  # whether the server refuses the switch; None: not known
    server: LlamaServer | None = None  # runs the model for this service
    probe: Callable[[Any], Awaitable[bool]] | None = None  # asks whether the model of a `ChatModel` calls tools
    count_tokens: CountTokens | None = None  # asks the server


def build_llm(settings: Settings, *, server: LlamaServer | None = None) -> Provider:
    """The LLM of a short name other than `extractive`, or of a class path. No connection is made yet.

    `server`: of the model, for the provider `gguf`; None: one of its own, which is closed with it. Raises
    ConfigurationError if there is no such class, its package is missing, or it rejects RAG_CHAT_OPTIONS.
    """
    # Client packages are imported when chosen, so that the embedded default does not load them.
    if settings.chat.provider == "ollama":
        return _build_ollama(settings)
    if settings.chat.provider == "openai_like":
        return _build_openai_like(settings)
    if settings.chat.provider == "gguf":
        return _build_gguf(settings, server)
    chosen = load_class(settings.chat.provider, LLM, setting="RAG_CHAT_PROVIDER")
    options = _options(settings)
    if "context_window" in inspect.signature(chosen).parameters:  # else LlamaIndex's Ollama asks in a blocking call
        options.setdefault("context_window", settings.chat.context_window)
    return Provider(llm=instantiate(chosen, options, setting="RAG_CHAT_PROVIDER"))


def _build_ollama(settings: Settings) -> Provider:
    from ollama import AsyncClient

    from rag_service.models.llm.ollama import ServiceOllama

    client = AsyncClient(
        host=settings.servers.ollama_url, **client_options(settings, read_timeout=_read_timeout(settings))
    )
    options = {
        "model": settings.chat.model,
        "base_url": settings.servers.ollama_url,
        "temperature": settings.chat.temperature,
        "context_window": settings.chat.context_window,  # without it the class asks `/api/show` in a blocking call
        "request_timeout": settings.servers.answer_timeout,
        "thinking": settings.chat.thinking,
        "is_function_calling_model": False,
        # Without num_ctx, which the class sends, and num_predict the server applies defaults of its own.
        "additional_kwargs": {"num_predict": settings.chat.max_tokens},
    } | _options(settings)
    llm = instantiate(ServiceOllama, {**options, "async_client": client}, setting=_OPTIONS)
    return Provider(
        llm=llm,
        close=client.close,
        unswitched=llm.model_copy(update={"thinking": None}),
        refuses_switch=None if options["thinking"] else False,  # every model may be told not to think
        probe=partial(_ask_ollama, client, str(options["model"])),
    )


async def _ask_ollama(client: Any, model: str, _: Any) -> bool:
    """Whether the model's template has tools (https://docs.ollama.com/api-reference/show-model-details)."""
    shown = await client.show(model)
    return "tools" in (shown.capabilities or ())


async def _ask_for_call(chat: Any) -> bool:
    """Whether a model calls a tool that it is told to call; a server that takes none refuses the request.

    Raises:
        ModelError: the server cannot be asked now.
    """
    tool = FunctionTool.from_defaults(lambda word: word, name=PROBED_TOOL, description="Says a word.")
    message = ChatMessage(role=MessageRole.USER, content=f"Call the function {PROBED_TOOL} with the word: ready")
    try:
        deltas = chat.stream([message], purpose=Purpose.CHECK, max_tokens=_PROBE_TOKENS, tools=[tool])
        async with aclosing(deltas):
            return any([delta.tool_calls async for delta in deltas])
    except ModelError as error:
        if error.retry_after is not None or isinstance(error, ModelBusyError):
            raise
        return False


def _build_openai_like(settings: Settings) -> Provider:
    import httpx

    client = httpx.AsyncClient(**client_options(settings, read_timeout=_read_timeout(settings)))
    key = settings.servers.openai_api_key
    where = {
        "model": settings.chat.model,
        "api_base": settings.servers.openai_url,
        "api_key": "none" if key is None else key.get_secret_value(),  # the client package insists on one
        "async_http_client": client,
    }
    llm, unswitched = _openai_like(settings, where, _options(settings))
    count = counting_client(client, str(where["api_base"]), settings.chat.model, str(where["api_key"]))
    return Provider(llm=llm, close=client.aclose, unswitched=unswitched, probe=_ask_for_call, count_tokens=count)


def _build_gguf(settings: Settings, given: LlamaServer | None) -> Provider:
    import httpx

    from rag_service.models.llm.gguf import AsyncLlamaTransport, LlamaServer, LlamaTransport, split_options

    server = given or LlamaServer.of(settings)
    timeout = client_options(settings, read_timeout=_read_timeout(settings))["timeout"]
    client = httpx.Client(transport=LlamaTransport(server), timeout=timeout)
    async_client = httpx.AsyncClient(transport=AsyncLlamaTransport(server), timeout=timeout)
    where = {
        "model": server.name,
        "api_base": "http://llama-server/v1",  # the transports know better
        "api_key": "none",
        "http_client": client,
        "async_http_client": async_client,
    }

    async def close() -> None:
        await async_client.aclose()
        client.close()  # noqa: ASYNC212 - it waits for nothing
        if given is None:
            await server.aclose()

    llm, unswitched = _openai_like(settings, where, split_options(settings)[1])
    count = counting_client(async_client, str(where["api_base"]), server.name, str(where["api_key"]))
    return Provider(llm=llm, close=close, unswitched=unswitched, server=server, probe=_ask_for_call, count_tokens=count)


def _openai_like(settings: Settings, where: dict[str, Any], given: dict[str, Any]) -> tuple[LLM, LLM | None]:
    """The LLM of a server with the OpenAI API, and the same without the switch of thinking.

    `where`: the arguments that tell the server; `given`: those of RAG_CHAT_OPTIONS.
    """
    from llama_index.llms.openai_like import OpenAILike

    importlib.import_module("openai.resources.chat")  # else loaded by the first request, for seconds

    class ServiceOpenAILike(Unpicklable, OpenAILike):
        """The stock class, whose package is only loaded here; content in parts, as Mistral sends it, is joined."""

        def _get_aclient(self) -> Any:
            client = super()._get_aclient()
            completions = client.chat.completions
            if not isinstance(completions.create, _JoinParts):
                completions.create = _JoinParts(completions.create)  # type: ignore[method-assign]  # of this one client
            return client

    fields = {"stream_options": {"include_usage": True}}  # token counts come in one more chunk at the end
    clients = {name: value for name, value in where.items() if name.endswith("http_client")}
    options = {
        **where,
        "temperature": settings.chat.temperature,
        "context_window": settings.chat.context_window,
        "max_tokens": settings.chat.max_tokens,
        "max_retries": 0,  # the package would retry in the middle of an answer
        "timeout": settings.servers.answer_timeout,
        "is_chat_model": True,
        "is_function_calling_model": False,
        "additional_kwargs": fields | {"extra_body": _thinking_fields(settings.chat.thinking)},
    } | given
    llm = instantiate(ServiceOpenAILike, {**options, **clients}, setting=_OPTIONS)
    unswitched = None
    if "additional_kwargs" not in given:
        unswitched = llm.model_copy(update={"additional_kwargs": fields})
    return llm, unswitched


class _JoinParts:
    """A call of chat completions whose messages have their content as one text, whatever the server sends.

    Reasoning models of Mistral send a list of parts, of which those of the type `thinking` are no text of the answer:
    https://docs.mistral.ai/capabilities/reasoning
    """

    def __init__(self, create: Callable[..., Awaitable[Any]]):
        self._create = create

    async def __call__(self, *arguments: Any, **options: Any) -> Any:
        reply = await self._create(*arguments, **options)
        if options.get("stream"):
            return self._stream(reply)
        for choice in reply.choices or ():
            choice.message.content = _join_parts(choice.message.content)
        return reply

    async def _stream(self, chunks: Any) -> AsyncGenerator[Any]:
        try:
            async for chunk in chunks:
                for choice in chunk.choices or ():
                    if choice.delta is not None:
                        choice.delta.content = _join_parts(choice.delta.content)
                yield chunk
        finally:
            await chunks.close()


def _join_parts(content: Any) -> Any:
    if not isinstance(content, list):
        return content
    texts = (part.get("text") if isinstance(part, dict) else part for part in content)
    return "".join(text for text in texts if isinstance(text, str))


def _thinking_fields(thinking: Thinking) -> dict[str, Any]:
    """What tells a server whether to think: variables of the chat template, in vLLM, SGLang and llama.cpp.

    gpt-oss has levels instead; vLLM reads them from the field of OpenAI's own API, llama.cpp from the template's.
    https://docs.vllm.ai/en/stable/features/reasoning_outputs
    """
    level = {"reasoning_effort": thinking} if isinstance(thinking, str) else {}
    return {**level, "chat_template_kwargs": {"enable_thinking": bool(thinking), **level}}


def _options(settings: Settings) -> dict[str, Any]:
    return parse_options(settings.chat.options, setting=_OPTIONS)


def _read_timeout(settings: Settings) -> float:
    return max(settings.servers.first_token_timeout, settings.servers.token_timeout)

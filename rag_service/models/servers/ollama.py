"""How the Ollama clients are built, with everything said that they would otherwise ask or guess."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Any, cast

import httpx
import msgspec
from llama_index.core.base.llms.types import ChatMessage
from llama_index.llms.ollama import Ollama
from ollama import ResponseError

from rag_service.models.servers.line_client import LineClient
from rag_service.models.servers.parts import ModelPart, Part
from rag_service.models.servers.responses import note_response
from rag_service.models.servers.tls import tls_context
from rag_service.settings import Settings


class ServiceOllama(Ollama):
    """LlamaIndex's Ollama, whose stream the service reads plainly, see `rag_service.models.servers.parts`."""

    async def stream_parts(self, messages: Sequence[ChatMessage], **options: Any) -> AsyncGenerator[Sequence[Part]]:
        """What `astream_chat` streams; the only option is `format`, a JSON schema."""
        body = {
            "model": self.model,
            "messages": self._convert_to_ollama_messages(messages),
            "stream": True,
            "think": self.thinking,
            "format": options.get("format"),
            "options": self._model_kwargs,
            "keep_alive": self.keep_alive,
        }
        client = cast(LineClient, self.async_client)  # given by `build_ollama`
        lines = client.stream_lines("/api/chat", {name: value for name, value in body.items() if value is not None})
        async with aclosing(lines):
            async for some in lines:
                parts: list[Part] = []
                try:
                    parts.extend(_read_line(line) for line in some if line.strip())
                except Exception:
                    if parts:
                        yield parts  # those before the line that failed
                    raise
                if parts:
                    yield parts


def _read_line(line: bytes) -> ModelPart:
    raw: dict[str, Any] = msgspec.json.decode(line)
    if error := raw.get("error"):
        raise ResponseError(error)
    return ModelPart(raw["message"].get("content") or "", raw)


def build_client(settings: Settings, *, read_timeout: float) -> LineClient:
    """A client of the server at RAG_OLLAMA_URL.

    `read_timeout`: most seconds between two pieces of a response, a backstop below the finer limits
    of the callers. The package's own default is no time limit at all.
    """
    return LineClient(
        settings.ollama_url,
        connect_timeout=settings.connect_timeout,
        read_timeout=read_timeout,
        tls=tls_context(),
        # Slots bound the calls; a second bound here would only queue out of sight.
        limits=httpx.Limits(max_connections=None, max_keepalive_connections=settings.model_concurrency),
        event_hooks={"response": [note_response]},
    )


def build_ollama(settings: Settings, client: LineClient) -> ServiceOllama:
    """LlamaIndex's Ollama for the settings' chat model.

    Without `context_window` it asks `/api/show` in a blocking call; `thinking` given per call is
    lost when it is False; a request without `num_ctx` is cut by the server at its own default.
    """
    return ServiceOllama(
        model=settings.model_name,
        base_url=settings.ollama_url,
        temperature=settings.temperature,
        context_window=settings.context_window,
        request_timeout=settings.answer_timeout,
        thinking=settings.thinking,
        additional_kwargs={"num_predict": settings.max_tokens},
        is_function_calling_model=False,
        async_client=client,
    )

"""How the Ollama clients are built, with everything said that they would otherwise ask or guess."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

import httpx
import msgspec
from llama_index.llms.ollama import Ollama
from ollama import AsyncClient, ResponseError

from rag_service.models.responses import note_response
from rag_service.models.tls import tls_context
from rag_service.settings import Settings


class _StreamReader(AsyncClient):
    """ollama's client, with a third less work for each word of a stream: plain values for its checked models."""

    async def _request(self, cls: type[Any], *request: Any, stream: bool = False, **body: Any) -> Any:
        return self._read(*request, **body) if stream else await super()._request(cls, *request, **body)

    async def _read(self, method: str, path: str, **body: Any) -> AsyncGenerator[dict[str, Any]]:
        async with self._client.stream(method, path, **body) as response:
            try:
                response.raise_for_status()
            except httpx.HTTPStatusError as error:  # which tells when to come again
                await response.aread()
                raise ResponseError(response.text, response.status_code) from error
            rest = b""
            async for piece in response.aiter_bytes():
                *lines, rest = (rest + piece).split(b"\n")
                for line in lines:
                    if line.strip():
                        yield _read_line(line)
            if rest.strip():
                yield _read_line(rest)


def _read_line(line: bytes) -> dict[str, Any]:
    part: dict[str, Any] = msgspec.json.decode(line)
    if error := part.get("error"):
        raise ResponseError(error)
    part["message"].setdefault("content", None)  # LlamaIndex asks for it
    return part


def build_client(settings: Settings, *, read_timeout: float) -> AsyncClient:
    """A client of the server at RAG_OLLAMA_URL.

    `read_timeout`: most seconds between two pieces of a response, a backstop below the finer limits
    of the callers. The package's own default is no time limit at all.
    """
    return _StreamReader(
        host=settings.ollama_url,
        timeout=httpx.Timeout(read_timeout, connect=settings.connect_timeout, pool=settings.connect_timeout),
        # Slots bound the calls; a second bound here would only queue out of sight.
        limits=httpx.Limits(max_connections=None, max_keepalive_connections=settings.model_concurrency),
        event_hooks={"response": [note_response]},
        verify=tls_context(),
    )


def build_ollama(settings: Settings, client: AsyncClient) -> Ollama:
    """LlamaIndex's Ollama for the settings' chat model.

    Without `context_window` it asks `/api/show` in a blocking call; `thinking` given per call is
    lost when it is False; a request without `num_ctx` is cut by the server at its own default.
    """
    return Ollama(
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

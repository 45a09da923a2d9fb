"""Embeddings from Ollama."""

from __future__ import annotations

from typing import Any

import structlog
from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.embeddings.ollama import OllamaEmbedding
from ollama import AsyncClient, EmbedResponse

from rag_service.models.plugins import parse_options
from rag_service.models.prefixes import choose_prefixes
from rag_service.models.servers.clients import direct_hosts, embedding_options, tls_context
from rag_service.models.servers.counts import read_count
from rag_service.settings import Settings
from rag_service.unpicklable import Unpicklable

log = structlog.get_logger(__name__)

# Running text of no language has fewer tokens than one for this many characters.
_MAX_CHARS_PER_TOKEN = 8


class ServiceOllamaEmbedding(Unpicklable, OllamaEmbedding):
    """LlamaIndex's OllamaEmbedding that reports input which was cut.

    Ollama cuts an input longer than the model's window without a word. That shows only in its token count,
    and is logged once as `embedding_input_truncated`.
    """

    _truncation_logged: bool = PrivateAttr(default=False)

    def __init__(self, settings: Settings):
        prefixes = choose_prefixes(settings.embedding)
        options: dict[str, Any] = {
            "query_instruction": prefixes.query,
            "text_instruction": prefixes.passage,
            "model_name": settings.embedding.model,
            "base_url": settings.servers.ollama_url,
            "embed_batch_size": settings.embedding.batch_size,
            "client_kwargs": {
                "timeout": settings.servers.first_token_timeout,
                "verify": tls_context(),
                "mounts": direct_hosts(settings),
            },
        } | parse_options(settings.embedding.options, setting="RAG_EMBEDDING_OPTIONS")
        super().__init__(**options)
        self._async_client = AsyncClient(host=settings.servers.ollama_url, **embedding_options(settings))

    async def aclose(self) -> None:
        """Close the connections to the server."""
        await self._async_client.close()  # type: ignore[no-untyped-call]  # ollama leaves it untyped

    async def aget_general_text_embedding(self, prompt: str) -> list[float]:
        return (await self.aget_general_text_embeddings([prompt]))[0]

    async def aget_general_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return self._read(await self._async_client.embed(**self._request(texts)), texts)

    def get_general_text_embedding(self, texts: str) -> list[float]:
        return self.get_general_text_embeddings([texts])[0]

    def get_general_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return self._read(self._client.embed(**self._request(texts)), texts)

    def _request(self, texts: list[str]) -> dict[str, Any]:
        return {
            "model": self.model_name,
            "input": texts,
            "options": self.ollama_additional_kwargs,
            "keep_alive": self.keep_alive,
        }

    def _read(self, reply: EmbedResponse, texts: list[str]) -> list[list[float]]:
        counted, characters = read_count(reply.prompt_eval_count), sum(map(len, texts))
        if counted and counted * _MAX_CHARS_PER_TOKEN < characters and not self._truncation_logged:
            self._truncation_logged = True
            log.error("embedding_input_truncated", model=self.model_name, tokens=counted, characters=characters)
        return [list(vector) for vector in reply.embeddings]

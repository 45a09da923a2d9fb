"""Embeddings from any server that speaks OpenAI's protocol."""

from __future__ import annotations

from typing import Any

import httpx
from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.embeddings.openai_like import OpenAILikeEmbedding
from openai.resources.embeddings import AsyncEmbeddings as _AsyncEmbeddings

from rag_service.models.plugins import parse_options
from rag_service.models.prefixes import Prefixes, choose_prefixes
from rag_service.models.servers.clients import embedding_options
from rag_service.settings import Settings
from rag_service.unpicklable import Unpicklable

LOADED = _AsyncEmbeddings  # the package loads it at its first use: a second in the middle of the first request


class ServiceOpenAILikeEmbedding(Unpicklable, OpenAILikeEmbedding):
    """LlamaIndex's OpenAILikeEmbedding without retries of its own and with the vectors in order.

    The protocol numbers the vectors and promises no order; the base class ignores the numbers, and replaces
    line ends by spaces.
    """

    _http: httpx.AsyncClient = PrivateAttr()
    _prefixes: Prefixes = PrivateAttr()

    def __init__(self, settings: Settings):
        http = httpx.AsyncClient(**embedding_options(settings))
        key = settings.servers.openai_api_key
        options: dict[str, Any] = {
            "model_name": settings.embedding.model,
            "api_base": settings.servers.openai_url,
            "api_key": "none" if key is None else key.get_secret_value(),  # the client package insists on one
            "embed_batch_size": settings.embedding.batch_size,
            "max_retries": 0,
            "timeout": settings.servers.first_token_timeout,
        } | parse_options(settings.embedding.options, setting="RAG_EMBEDDING_OPTIONS")
        super().__init__(**options, async_http_client=http)
        self._http = http
        self._prefixes = choose_prefixes(settings.embedding)

    async def aclose(self) -> None:
        """Close the connections to the server."""
        await self._http.aclose()

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return (await self._aget_vectors([self._prefixes.query + query]))[0]

    async def _aget_text_embedding(self, text: str) -> list[float]:
        return (await self._aget_text_embeddings([text]))[0]

    async def _aget_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return await self._aget_vectors([self._prefixes.passage + text for text in texts])

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._get_vectors([self._prefixes.query + query])[0]

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._get_text_embeddings([text])[0]

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return self._get_vectors([self._prefixes.passage + text for text in texts])

    async def _aget_vectors(self, texts: list[str]) -> list[list[float]]:
        return _in_order(await self._get_aclient().embeddings.create(**self._request(texts)))

    def _get_vectors(self, texts: list[str]) -> list[list[float]]:
        return _in_order(self._get_client().embeddings.create(**self._request(texts)))

    def _request(self, texts: list[str]) -> dict[str, Any]:
        return {
            "input": texts,
            "model": self.model_name,
            "encoding_format": "float",
            **self.additional_kwargs,
        }


def _in_order(reply: Any) -> list[list[float]]:
    return [list(item.embedding) for item in sorted(reply.data, key=lambda item: item.index)]

"""Embeddings from Ollama: LlamaIndex's class with time limits, bounded calls, retries and checks.

As it stands that class waits for ever, starts every batch of a pipeline at once and fails on empty
input. Ollama itself cuts an input that is longer than the model's window without a word; that shows
only in its token count, and is logged once as `embedding_input_truncated`.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from typing import Any

import structlog
from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.embeddings.ollama import OllamaEmbedding

from rag_service.errors import ConfigurationError, EmbeddingError, RagError
from rag_service.models.ollama import build_client
from rag_service.models.resilience import (
    SERVER_STATUSES,
    RetryPolicy,
    is_connection_error,
    is_timeout,
    isolated,
    retry_after_of,
    status_of,
)
from rag_service.settings import Settings

log = structlog.get_logger(__name__)

# Ollama refuses or returns nothing for a blank text. Every text must have a vector of some length,
# because a cosine with a zero vector is not a number.
BLANK = "."

# Fewer tokens than one per this many characters do not occur in running text of any language.
MOST_CHARS_PER_TOKEN = 8


class OllamaServiceEmbedding(OllamaEmbedding):
    """LlamaIndex's OllamaEmbedding for a service. Failures are EmbeddingError, cause chained."""

    _dimension: int = PrivateAttr()
    _passage_slots: asyncio.Semaphore = PrivateAttr()
    _query_slots: asyncio.Semaphore = PrivateAttr()
    _query_timeout: float = PrivateAttr()  # seconds for one try
    _batch_timeout: float = PrivateAttr()
    _retries: RetryPolicy = PrivateAttr()
    _truncation_logged: bool = PrivateAttr(default=False)

    def __init__(self, settings: Settings, *, retries: RetryPolicy | None = None):
        super().__init__(
            model_name=settings.embedding_model,
            base_url=settings.ollama_url,
            embed_batch_size=settings.embedding_batch_size,
            client_kwargs={"timeout": settings.first_token_timeout},
        )
        self._async_client = build_client(settings, read_timeout=settings.answer_timeout)
        self._dimension = settings.embedding_dimension
        # Questions have slots of their own, so that they do not wait behind a folder of documents.
        self._passage_slots = asyncio.Semaphore(settings.model_concurrency)
        self._query_slots = asyncio.Semaphore(settings.model_concurrency)
        self._query_timeout = settings.first_token_timeout
        self._batch_timeout = settings.answer_timeout
        self._retries = retries or RetryPolicy()

    @property
    def dimension(self) -> int:
        """Length of the vectors, as set; every vector is checked against it."""
        return self._dimension

    async def warm_up(self) -> None:
        """Let the server load the model, and check the dimension before anything is stored."""
        await self.aget_general_text_embedding("warm up")

    async def aclose(self) -> None:
        """Close the connections to the server."""
        await self._async_client.close()  # type: ignore[no-untyped-call]  # ollama leaves it untyped

    async def aget_general_text_embedding(self, prompt: str) -> list[float]:
        async with self._query_slots:
            return (await self._embed([prompt], self._query_timeout))[0]

    async def aget_general_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        if not texts:
            return []
        async with self._passage_slots:
            return await self._embed(texts, self._batch_timeout)

    # LlamaIndex code that is not async (a notebook) ends here; no retries, the same checks.

    def get_general_text_embedding(self, texts: str) -> list[float]:
        return self.get_general_text_embeddings([texts])[0]

    def get_general_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        if not texts:
            return []
        try:
            reply = self._client.embed(**self._request(texts))
        except Exception as error:
            raise _embedding_error(error) from error
        return self._checked(reply, texts)

    async def _embed(self, texts: Sequence[str], seconds: float) -> list[list[float]]:
        try:
            async for attempt in self._retries.tries(SERVER_STATUSES):
                with attempt:
                    async with asyncio.timeout(seconds):
                        reply = await isolated(lambda: self._async_client.embed(**self._request(texts)))
        except RagError:
            raise
        except Exception as error:
            raise _embedding_error(error) from error
        return self._checked(reply, texts)

    def _request(self, texts: Sequence[str]) -> dict[str, Any]:
        return {
            "model": self.model_name,
            "input": [text if text.strip() else BLANK for text in texts],
            "options": self.ollama_additional_kwargs,
            "keep_alive": self.keep_alive,
        }

    def _checked(self, reply: Any, texts: Sequence[str]) -> list[list[float]]:
        vectors = [list(vector) for vector in reply.embeddings]
        if len(vectors) != len(texts):
            raise EmbeddingError("The embedding service returned the wrong number of vectors.")
        for vector in vectors:
            if len(vector) != self._dimension:
                raise ConfigurationError(
                    f"The embedding model {self.model_name} returns {len(vector)} dimensions, but "
                    f"RAG_EMBEDDING_DIMENSION is {self._dimension}: set it to {len(vector)} and index again.",
                    field="RAG_EMBEDDING_DIMENSION",
                )
            if not all(map(math.isfinite, vector)):
                raise EmbeddingError("The embedding service returned a vector that is not made of numbers.")
        self._note_truncation(reply.prompt_eval_count, texts)
        return vectors

    def _note_truncation(self, counted: int | None, texts: Sequence[str]) -> None:
        characters = sum(map(len, texts))
        if counted and counted * MOST_CHARS_PER_TOKEN < characters and not self._truncation_logged:
            self._truncation_logged = True
            log.error("embedding_input_truncated", model=self.model_name, tokens=counted, characters=characters)


def _embedding_error(error: Exception) -> EmbeddingError:
    """What a caller may know of a client package's error."""
    status = status_of(error)
    if status == 429 or status == 503:
        wait = retry_after_of(error)
        return EmbeddingError(
            "The embedding service is busy.", retry_after=5 if wait is None else max(1, math.ceil(wait))
        )
    if status == 404:
        return EmbeddingError("The embedding model is not available on its server.")
    if is_connection_error(error):
        return EmbeddingError("The embedding service cannot be reached.", retry_after=5)
    if is_timeout(error):
        return EmbeddingError("The embedding service did not answer in time.")
    return EmbeddingError("The embedding service failed.")

"""Embeddings from Ollama: LlamaIndex's class with time limits, bounded calls, retries and checks.

As it stands that class waits for ever, starts every batch of a pipeline at once and fails on empty
input. Ollama itself cuts an input that is longer than the model's window without a word; that shows
only in its token count, and is logged once as `embedding_input_truncated`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NotRequired, TypedDict, cast

import msgspec
import structlog
from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.embeddings.ollama import OllamaEmbedding

from rag_service.models.embedding.calls import EmbeddingCalls, Vectors, embedding_error, fill_blanks
from rag_service.models.servers.line_client import LineClient
from rag_service.models.servers.ollama import build_client
from rag_service.models.servers.resilience import RetryPolicy
from rag_service.models.servers.tls import tls_context
from rag_service.settings import Settings

log = structlog.get_logger(__name__)

# Fewer tokens than one per this many characters do not occur in running text of any language.
MOST_CHARS_PER_TOKEN = 8


class _Embedded(TypedDict):
    """What of the server's reply is used."""

    embeddings: Vectors
    prompt_eval_count: NotRequired[int | None]


class OllamaServiceEmbedding(OllamaEmbedding):
    """LlamaIndex's OllamaEmbedding for a service. Failures are EmbeddingError, cause chained."""

    _calls: EmbeddingCalls = PrivateAttr()
    _truncation_logged: bool = PrivateAttr(default=False)

    def __init__(self, settings: Settings, *, retries: RetryPolicy | None = None):
        super().__init__(
            model_name=settings.embedding_model,
            base_url=settings.ollama_url,
            embed_batch_size=settings.embedding_batch_size,
            client_kwargs={"timeout": settings.first_token_timeout, "verify": tls_context()},
        )
        self._async_client = build_client(settings, read_timeout=settings.answer_timeout)
        self._calls = EmbeddingCalls(settings, retries=retries)

    @property
    def dimension(self) -> int:
        """Length of the vectors, as set; every vector is checked against it."""
        return self._calls.dimension

    async def warm_up(self) -> None:
        """Let the server load the model, and check the dimension before anything is stored."""
        await self.aget_general_text_embedding("warm up")

    async def aclose(self) -> None:
        """Close the connections to the server."""
        await self._async_client.close()  # type: ignore[no-untyped-call]  # ollama leaves it untyped

    async def aget_general_text_embedding(self, prompt: str) -> list[float]:
        return await self._calls.query(prompt, self._send)

    async def aget_general_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return await self._calls.passages(texts, self._send)

    # LlamaIndex code that is not async (a notebook) ends here; no retries, the same checks.

    def get_general_text_embedding(self, texts: str) -> list[float]:
        return self.get_general_text_embeddings([texts])[0]

    def get_general_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        if not texts:
            return []
        try:
            reply = self._client.embed(**self._request(fill_blanks(texts)))
        except Exception as error:
            raise embedding_error(error) from error
        self._note_truncation(reply.prompt_eval_count, texts)
        return self._calls.checked([list(vector) for vector in reply.embeddings], len(texts))

    async def _send(self, texts: Sequence[str]) -> Vectors:
        client = cast(LineClient, self._async_client)
        request = {name: value for name, value in self._request(texts).items() if value is not None}
        reply = msgspec.json.decode(await client.post("/api/embed", request), type=_Embedded)
        self._note_truncation(reply.get("prompt_eval_count"), texts)
        return reply["embeddings"]

    def _request(self, texts: Sequence[str]) -> dict[str, Any]:
        return {
            "model": self.model_name,
            "input": texts,
            "options": self.ollama_additional_kwargs,
            "keep_alive": self.keep_alive,
        }

    def _note_truncation(self, counted: int | None, texts: Sequence[str]) -> None:
        characters = sum(map(len, texts))
        if counted and counted * MOST_CHARS_PER_TOKEN < characters and not self._truncation_logged:
            self._truncation_logged = True
            log.error("embedding_input_truncated", model=self.model_name, tokens=counted, characters=characters)

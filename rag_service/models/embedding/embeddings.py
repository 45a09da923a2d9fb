"""The embedding model, chosen by settings."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from llama_index.core.base.embeddings.base import BaseEmbedding

from rag_service.errors import ConfigurationError
from rag_service.models.extras import require_extra
from rag_service.models.servers.resilience import RetryPolicy
from rag_service.settings import Settings


@runtime_checkable
class Managed(Protocol):
    """What our embeddings add to LlamaIndex's class."""

    @property
    def dimension(self) -> int: ...

    async def warm_up(self) -> None: ...

    async def aclose(self) -> None: ...


def build_embedding(settings: Settings, *, retries: RetryPolicy | None = None) -> BaseEmbedding:
    """The embedding that RAG_EMBEDDING_PROVIDER names; nothing is loaded or connected yet.

    What comes back is also `Managed`; use `warm_up` and `close_embedding` below with it. Its async
    methods do not block the event loop. Its failures are EmbeddingError.

    Raises:
        ConfigurationError: settings that do not go with the local model, or its extra is missing.
    """
    if settings.embedding_provider == "local":
        return _build_local(settings)
    # Imported here so that the embedded default does not load the client packages.
    embedding: BaseEmbedding
    if settings.embedding_provider == "openai_like":
        require_extra(
            "llama_index.embeddings.openai_like", extra="openai", setting="RAG_EMBEDDING_PROVIDER", value="openai_like"
        )
        from rag_service.models.servers.openai_like import OpenAILikeServiceEmbedding

        embedding = OpenAILikeServiceEmbedding(settings, retries=retries)
    else:
        from rag_service.models.embedding.ollama_embedding import OllamaServiceEmbedding

        embedding = OllamaServiceEmbedding(settings, retries=retries)
    return embedding


def _build_local(settings: Settings) -> BaseEmbedding:
    from rag_service.models.embedding import minilm
    from rag_service.models.embedding.minilm_weights import MODEL_NAME, check_installed

    if settings.embedding_model.casefold() != MODEL_NAME:
        raise ConfigurationError(
            f"RAG_EMBEDDING_PROVIDER=local has one model: set RAG_EMBEDDING_MODEL to {MODEL_NAME}, "
            "or choose the provider `ollama`.",
            field="RAG_EMBEDDING_MODEL",
        )
    if settings.embedding_dimension != minilm.DIMENSION:
        raise ConfigurationError(
            f"The local embedding model has {minilm.DIMENSION} dimensions: set RAG_EMBEDDING_DIMENSION "
            f"to {minilm.DIMENSION}.",
            field="RAG_EMBEDDING_DIMENSION",
        )
    check_installed()
    if settings.embedding_precision == "int8":
        for package in ("onnxruntime", "onnx"):
            require_extra(package, extra="int8", setting="RAG_EMBEDDING_PRECISION", value="int8")
    return minilm.MiniLMEmbedding(
        embed_batch_size=settings.embedding_batch_size, precision=settings.embedding_precision
    )


async def warm_up(embedding: BaseEmbedding) -> None:
    """Load or probe the model, so that the first question does not pay for it.

    Raises:
        EmbeddingError: it cannot be used now.
        ConfigurationError: it can never be used with these settings.
    """
    if isinstance(embedding, Managed):
        await embedding.warm_up()


async def close_embedding(embedding: BaseEmbedding) -> None:
    """Give back its thread or connections."""
    if isinstance(embedding, Managed):
        await embedding.aclose()

"""The embedding model, chosen by settings."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import structlog
from llama_index.core.base.embeddings.base import BaseEmbedding

from rag_service.errors import ConfigurationError
from rag_service.models.embedding.guarded import GuardedEmbedding, local_model
from rag_service.models.embedding.model_folder import ModelFolder, read_model_folder
from rag_service.models.plugins import build, parse_options
from rag_service.models.prefixes import Prefixes, choose_prefixes
from rag_service.models.servers.resilience import RetryPolicy
from rag_service.settings import Settings
from rag_service.settings.models import PACKAGED_MODEL

if TYPE_CHECKING:
    from rag_service.models.embedding.encoder import Encoder, Precision
    from rag_service.models.embedding.local import FloatVector, LocalEmbedding

log = structlog.get_logger(__name__)

_OTHERS = ("huggingface", "ollama", "openai_like")  # providers of models beside which the packaged one reads sentences


def build_embedding(
    settings: Settings, *, embedding: BaseEmbedding | None = None, retries: RetryPolicy | None = None
) -> GuardedEmbedding:
    """The embedding that RAG_EMBEDDING_PROVIDER names, with limits and checks; nothing is loaded or connected yet.

    Its asynchronous methods do not block the event loop. Its failures are EmbeddingError. `embedding` replaces what the
    settings name. Raises ConfigurationError if the settings do not suit the model, a package is missing or a class path
    is wrong.
    """
    if embedding is not None:
        return GuardedEmbedding(embedding, settings, blocking=True, retries=retries)
    # Imported here so that the embedded default does not load the client packages.
    match settings.embedding.provider:
        case "local":
            return GuardedEmbedding(_build_local(settings), settings, in_process=True)
        case "huggingface":
            return GuardedEmbedding(_build_huggingface(settings), settings, in_process=True)
        case "ollama":
            from rag_service.models.embedding.ollama import ServiceOllamaEmbedding

            return GuardedEmbedding(ServiceOllamaEmbedding(settings), settings, retries=retries)
        case "openai_like":
            from rag_service.models.embedding.openai_like import ServiceOpenAILikeEmbedding

            return GuardedEmbedding(ServiceOpenAILikeEmbedding(settings), settings, retries=retries)
        case path:
            options = parse_options(settings.embedding.options, setting="RAG_EMBEDDING_OPTIONS")
            built = build(path, options, BaseEmbedding, setting="RAG_EMBEDDING_PROVIDER")
            # Many classes only pretend to be asynchronous, and would stop every request while they compute.
            return GuardedEmbedding(built, settings, blocking=True, retries=retries)


def build_sentence_reader(settings: Settings, embedding: BaseEmbedding) -> LocalEmbedding | None:
    """The model whose token vectors choose sentences for answers without a chat model; nothing is loaded yet.

    It is the packaged one, also beside a model of a server or a folder, if it has been fetched. Servers give one vector
    for a text.
    """
    from rag_service.models.embedding import packaged
    from rag_service.models.embedding.local import LocalEmbedding

    own = local_model(embedding)
    if own is not None and own.model_name == PACKAGED_MODEL:
        return own
    if settings.embedding.provider not in _OTHERS or not packaged.is_here():
        return None
    model = read_model_folder(packaged.required_folder(), name=PACKAGED_MODEL)
    return LocalEmbedding(
        model, partial(_load_encoder, model, "float32"), embed_batch_size=settings.embedding.batch_size
    )


def _load_encoder(model: ModelFolder, precision: Precision) -> Encoder:
    from rag_service.models.embedding.encoder import Encoder  # the runtime takes its time to load
    from rag_service.models.embedding.packaged import HEAD_FILE
    from rag_service.models.embedding.qa_head import QuestionAnsweringHead

    head = None
    if model.name == PACKAGED_MODEL:
        try:
            head = QuestionAnsweringHead(HEAD_FILE)
        except ConfigurationError as error:  # sentences are chosen without it; `rag-service check` tells
            log.warning("question_answering_head_not_loaded", exc_info=error)
    return Encoder(model, precision=precision, head=head)


def _build_local(settings: Settings) -> BaseEmbedding:
    """The packaged model."""
    from rag_service.models.embedding import packaged

    if settings.embedding.model.casefold() != PACKAGED_MODEL:
        raise ConfigurationError(
            f"RAG_EMBEDDING_PROVIDER=local has one model: set RAG_EMBEDDING_MODEL to {PACKAGED_MODEL}, "
            "or choose the provider `huggingface` or `ollama`.",
            field="RAG_EMBEDDING_MODEL",
        )
    model = read_model_folder(packaged.required_folder(), name=PACKAGED_MODEL)
    return _in_process(model, settings, "float32", removed=packaged.language_directions())


def _build_huggingface(settings: Settings) -> BaseEmbedding:
    from rag_service.models.embedding.huggingface import find_model

    name = settings.embedding.model
    model = read_model_folder(find_model(name), name=name)
    prefixes = choose_prefixes(settings.embedding, Prefixes(model.query_prefix, model.passage_prefix))
    model = replace(model, query_prefix=prefixes.query, passage_prefix=prefixes.passage)
    return _in_process(model, settings, settings.embedding.precision)


def _in_process(
    model: ModelFolder, settings: Settings, precision: Precision, *, removed: FloatVector | None = None
) -> BaseEmbedding:
    """A model that this process computes."""
    from rag_service.models.embedding.local import LocalEmbedding

    if settings.embedding.dimension != model.dimension:
        raise ConfigurationError(
            f"The embedding model {model.name} has {model.dimension} dimensions: set RAG_EMBEDDING_DIMENSION "
            f"to {model.dimension}.",
            field="RAG_EMBEDDING_DIMENSION",
        )
    load = partial(_load_encoder, model, precision)
    return LocalEmbedding(model, load, embed_batch_size=settings.embedding.batch_size, removed=removed)

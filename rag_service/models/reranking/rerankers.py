"""The reranker that RAG_RERANK_STRATEGY names."""

from __future__ import annotations

from llama_index.core.postprocessor.types import BaseNodePostprocessor

from rag_service.errors import ConfigurationError
from rag_service.models.llm.model import ChatModel
from rag_service.models.plugins import build, parse_options, require_extra
from rag_service.models.reranking.reranker import HeuristicReranker, NoReranker, Reranker
from rag_service.settings import Settings


def build_reranker(settings: Settings, *, chat: ChatModel, reranker: BaseNodePostprocessor | None = None) -> Reranker:
    """Make the reranker; no model is loaded yet.

    `reranker` replaces what the settings name. Raises ConfigurationError if a package is missing, the class path or
    options are wrong, or the chat model is unsuitable.
    """
    # Strategies are imported when chosen: some bring packages that the others do without.
    if reranker is not None:
        return _wrap(reranker)
    options = parse_options(settings.rerank.options, setting="RAG_RERANK_OPTIONS")
    match settings.rerank.strategy:
        case "none":
            return NoReranker()
        case "heuristic":
            return HeuristicReranker()
        case "llm":
            from rag_service.models.reranking.llm import LLMReranker

            if not chat.structured_output:
                raise ConfigurationError(
                    f"RAG_RERANK_STRATEGY=llm needs a language model; the chat provider `{chat.provider}` is not one."
                    " Choose `heuristic`, or RAG_CHAT_PROVIDER=ollama.",
                    field="RAG_RERANK_STRATEGY",
                )
            return LLMReranker(chat)
        case "sbert":
            from rag_service.models.reranking.postprocessor import cross_encoder

            for package in ("llama_index.postprocessor.sbert_rerank", "sentence_transformers"):
                require_extra(package, extra="sbert", setting="RAG_RERANK_STRATEGY", value="sbert")
            return cross_encoder(settings.rerank.model, options)
        case "cohere":
            package = "llama_index.postprocessor.cohere_rerank"
            require_extra(package, extra="cohere", setting="RAG_RERANK_STRATEGY", value="cohere")
            options = {"model": settings.rerank.model} | options  # its key: COHERE_API_KEY
            return _wrap(
                build(f"{package}:CohereRerank", options, BaseNodePostprocessor, setting="RAG_RERANK_STRATEGY")
            )
        case path:
            return _wrap(build(path, options, BaseNodePostprocessor, setting="RAG_RERANK_STRATEGY"))


def _wrap(postprocessor: BaseNodePostprocessor) -> Reranker:
    from rag_service.models.reranking.postprocessor import PostprocessorReranker

    return PostprocessorReranker(type(postprocessor).__name__, lambda: postprocessor)

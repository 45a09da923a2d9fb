"""Settings of search and answers."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field, model_validator

from rag_service.settings.group import SettingGroup


class IndexSettings(SettingGroup):
    """Index definitions: how documents are split and how questions are answered."""

    path: Path | None = Field(
        None, alias="indices_path", description="Folder of index definitions; unset: the packaged ones."
    )
    default: str = Field("general", alias="index", description="Index definition of the default corpus.")


class RetrievalSettings(SettingGroup):
    """Search."""

    enabled: bool = Field(True, description="Use the database; false: answer from a JSON knowledge base instead.")
    knowledge_base_path: Path | None = Field(None, description="JSON knowledge base for RAG_ENABLED=false.")
    top_k: int = Field(
        5, alias="topk_default", ge=1, description="Passages returned if the request does not set a number."
    )
    max_top_k: int = Field(
        50, alias="topk_max", ge=1, description="Maximum number of passages that a request can ask for."
    )
    threshold: float = Field(
        0.6,
        alias="similarity_threshold",
        ge=0,
        le=1,
        description="Relevance from which a passage is used without a warning; an answer without one is `uncertain`.",
    )
    out_of_scope_threshold: float = Field(
        0.2,
        ge=0,
        le=1,
        description="Relevance that a passage has to reach for an answer, unless the request sets its own; if none "
        "does, the question is refused.",
    )
    hybrid: bool = Field(True, description="Combine BM25 and vector search; false: vector search only.")
    lexical_fallback: bool = Field(
        True, description="Use BM25 alone while the embedding model is down; false: `embedding_unavailable`."
    )
    fit_relevance: bool = Field(
        True,
        description="At the first start with an embedding model, embed the shipped question sets in the background and"
        " fit the relevance to them.",
    )

    @model_validator(mode="after")
    def _default_is_allowed(self) -> RetrievalSettings:
        if self.top_k > self.max_top_k:
            raise ValueError("RAG_TOPK_DEFAULT is larger than RAG_TOPK_MAX")
        return self


class AnswerSettings(SettingGroup):
    """Prompts and answers."""

    prompts_path: Path | None = Field(None, description="Folder of prompt templates. Unset: the packaged ones.")
    template_path: Path | None = Field(
        None, alias="prompt_template_path", description="Template that replaces the grounded prompt in all languages."
    )
    grounded_prompting: bool = Field(
        True, description="Use the prompt with numbered passages and strict rules; false: a classic prompt."
    )
    max_chunks: int | None = Field(
        None,
        alias="max_chunks_in_prompt",
        ge=1,
        description="Maximum number of passages in the prompt. Unset: as many as their tokens allow.",
    )
    max_context_tokens: int = Field(
        2500,
        alias="context_max_tokens",
        ge=100,
        description="Maximum length of those passages, in tokens; never more than a quarter of the model's context.",
    )
    max_steps: int = Field(
        3, ge=0, le=20, description="Maximum number of tool calls of the chat model for one answer; 0: none."
    )
    confidence_fit: Path | None = Field(
        None,
        description="Confidence fit written by `rag-service eval calibrate --answers`. Unset: the packaged one.",
    )
    extractive_fallback: bool = Field(
        True, description="Quote the passages found if the chat model fails; false: return an error."
    )
    withhold_unverified: bool = Field(False, description="Leave out sentences whose citation cannot be verified.")

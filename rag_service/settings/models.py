"""Settings of the models and their servers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, SecretStr, field_validator, model_validator

from rag_service.settings.group import SettingGroup, check_name, short_name_or_class_path

CHAT_PROVIDERS = ("extractive", "ollama", "openai_like", "gguf")
EMBEDDING_PROVIDERS = ("local", "huggingface", "ollama", "openai_like")
RERANK_STRATEGIES = ("none", "heuristic", "sbert", "llm", "cohere")
JUDGES = ("none", "llm", "cross_encoder")
Thinking = bool | Literal["low", "medium", "high"]
PACKAGED_MODEL = "multilingual-e5-small"  # that of the provider `local`


class ChatSettings(SettingGroup):
    """The chat model."""

    provider: Annotated[str, short_name_or_class_path(CHAT_PROVIDERS)] = Field(
        "extractive",
        alias="chat_provider",
        description="What writes answers: `extractive` (quotes, without a model), `ollama`, `openai_like`, `gguf`"
        " (a file, in a llama.cpp server of the service's own), or the class path of a LlamaIndex LLM, such as"
        " `llama_index.llms.anthropic:Anthropic`.",
    )
    options: SecretStr | None = Field(
        None,
        alias="chat_options",
        description="Keyword arguments of that LLM class, as JSON. For `gguf` also `threads`, `gpu_layers` and"
        " `chat_template`.",
    )
    agent_providers: str = Field(
        "extractive,ollama,openai_like,gguf",
        description="Chat providers that agents can use: short names and class paths, separated by commas.",
    )
    model: str = Field(
        "llama3.2",
        alias="model_name",
        description="Name of the chat model at its provider; for `gguf`, the path of a .gguf file or a repository of"
        " Hugging Face, as `owner/name` or `owner/name:file`.",
    )
    context_window: int = Field(8192, ge=512, description="Context window of the chat model in tokens (num_ctx).")
    max_tokens: int = Field(700, ge=16, description="Maximum length of an answer in tokens (num_predict).")
    temperature: float = Field(0.1, ge=0, le=2, description="Sampling temperature of the chat model.")
    thinking: Thinking = Field(
        False,
        description="Let a reasoning model think before it answers: `true`, `false`, or for models with levels `low`,"
        " `medium` or `high`.",
    )
    tools: Literal["auto", "on", "off"] = Field(
        "auto",
        alias="chat_tools",
        description="Let the chat model search further, read on and compute over tables before it answers: `auto` asks"
        " the server in the background whether the model can call tools, `on` assumes so, `off` never offers them.",
    )
    concurrency: int = Field(
        4, alias="model_concurrency", ge=1, description="Maximum number of concurrent requests to the chat model."
    )
    queue: int = Field(
        64,
        alias="model_queue",
        ge=0,
        description="Maximum number of requests waiting for the chat model; further ones get `llm_busy`.",
    )

    @property
    def agent_providers_list(self) -> tuple[str, ...]:
        """The providers that agents may name."""
        return tuple(name.strip() for name in self.agent_providers.split(",") if name.strip())

    @model_validator(mode="after")
    def _fits_together(self) -> ChatSettings:
        for name in self.agent_providers_list:
            check_name(name, CHAT_PROVIDERS)
        if self.max_tokens >= self.context_window:
            raise ValueError("RAG_MAX_TOKENS must be smaller than RAG_CONTEXT_WINDOW")
        return self


class ServerSettings(SettingGroup):
    """Model servers, for chat and for embeddings."""

    ollama_url: str = Field("http://127.0.0.1:11434", description="Base URL of the Ollama server.")
    openai_url: str = Field(
        "http://127.0.0.1:8080/v1", description="Base URL of the `openai_like` server, including `/v1`."
    )
    openai_api_key: SecretStr | None = Field(None, description="API key for that server, if it needs one.")
    proxy_private_servers: bool = Field(
        False,
        description="Whether model servers on loopback and private addresses, too, are reached through the proxy that"
        " HTTP_PROXY, HTTPS_PROXY or ALL_PROXY names.",
    )
    connect_timeout: float = Field(5.0, gt=0, description="Seconds allowed for connecting to a model server.")
    first_token_timeout: float = Field(60.0, gt=0, description="Seconds allowed until a model's first token.")
    token_timeout: float = Field(20.0, gt=0, description="Seconds allowed between two tokens.")
    answer_timeout: float = Field(180.0, gt=0, description="Seconds allowed for a complete answer.")
    breaker_failures: int = Field(
        5,
        ge=0,
        description="Consecutive failures after which calls to a model server pause for RAG_BREAKER_SECONDS; 0: never.",
    )
    breaker_seconds: float = Field(
        10.0, gt=0, description="Seconds until a failing model server or read replica is tried again."
    )

    @field_validator("ollama_url", "openai_url")
    @classmethod
    def _is_http_url(cls, url: str) -> str:
        if not url.startswith(("http://", "https://")):
            raise ValueError("must begin with http:// or https://")
        return url.rstrip("/")


class EmbeddingSettings(SettingGroup, alias_generator="embedding_{}".format):
    """The embedding model."""

    provider: Annotated[str, short_name_or_class_path(EMBEDDING_PROVIDERS)] = Field(
        "local",
        description="What computes embeddings: `local` (the packaged multilingual-e5-small), `huggingface`, `ollama`,"
        " `openai_like`, or the class path of a LlamaIndex embedding.",
    )
    options: SecretStr | None = Field(None, description="Keyword arguments of that embedding class, as JSON.")
    model: str = Field(
        PACKAGED_MODEL,
        description="Name of the embedding model at its provider; for `huggingface`, a repository or folder.",
    )
    dimension: int = Field(384, ge=1, le=4000, description="Dimension of the embedding model's vectors.")
    precision: Literal["float32", "int8"] = Field(
        "float32",
        description="Precision of `huggingface` models; `int8` is three times as fast with AVX-512 VNNI.",
    )
    query_prefix: str | None = Field(
        None,
        description="Text before every question that is embedded. Unset: what the model was trained with, if that is"
        " known.",
    )
    passage_prefix: str | None = Field(
        None,
        description="Text before every passage that is embedded. Unset: what the model was trained with, if that is"
        " known. After a change, run `rag-service reingest`.",
    )
    batch_size: int = Field(32, ge=1, le=100, description="Texts embedded per call.")
    cache_ttl: int = Field(86_400, ge=0, description="Seconds for which passage embeddings are cached; 0: no cache.")
    query_cache_size: int = Field(
        512,
        alias="query_cache_size",
        ge=0,
        description="Number of question embeddings cached in memory, apart for each user. With 0, nothing that was made"
        " of a question or a document is kept for the next one.",
    )


class RerankSettings(SettingGroup, alias_generator="rerank_{}".format):
    """Reranking."""

    strategy: Annotated[str, short_name_or_class_path(RERANK_STRATEGIES)] = Field(
        "heuristic",
        description="How passages are reordered after fusion: `none`, `heuristic`, `sbert`, `llm`, `cohere`, or the"
        " class path of a LlamaIndex postprocessor that sets scores.",
    )
    options: SecretStr | None = Field(None, description="Keyword arguments of that postprocessor class, as JSON.")
    model: str = Field("BAAI/bge-reranker-v2-m3", description="Cross-encoder for `sbert`: name or folder.")


class JudgeSettings(SettingGroup, alias_generator="judge_{}".format):
    """The judge, which decides whether a passage says what a reworded sentence of an answer says."""

    strategy: Annotated[str, short_name_or_class_path(JUDGES)] | None = Field(
        None,
        alias="judge",
        description="What judges reworded sentences, once it has passed its examination: `none`, `llm` (the chat model,"
        " one call after the answer), `cross_encoder` (a model for natural-language inference), or the class path of a"
        " judge. Unset: `llm` with a chat model, `none` with the extractive answerer.",
    )
    options: SecretStr | None = Field(
        None, description="Keyword arguments of the judge class, or of `CrossEncoder`, as a JSON object."
    )
    model: str = Field(
        "MoritzLaurer/mDeBERTa-v3-base-mnli-xnli", description="Cross-encoder for `cross_encoder`: name or folder."
    )
    timeout: float = Field(
        20.0, gt=0, description="Seconds allowed for judging an answer; sentences not judged by then are `unchecked`."
    )
    calibration: Path | None = Field(
        None,
        description="Cross-encoder thresholds written by `rag-service eval claims --calibrate`. Unset: `judge.json` in"
        " RAG_DATA_DIR, or 0.5 if there is none.",
    )

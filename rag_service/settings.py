"""Environment to one frozen object, built once and passed in.

Every setting is a field here, named `RAG_<FIELD>` in the environment; the README's table is
checked against this file by a test. An unknown `RAG_*` name is an error at start, so that a typo
never turns a safeguard off in silence.
"""

from __future__ import annotations

import difflib
import os
from pathlib import Path
from typing import Literal

from pydantic import Field, SecretStr, ValidationError, field_validator, model_validator
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from rag_service.errors import ConfigurationError

PREFIX = "RAG_"


class Settings(BaseSettings):
    """All settings of the service. Read-only; tests and the notebook build it with keywords."""

    # An empty value is none at all: that is how compose files and .env templates hand on what nobody has set.
    model_config = SettingsConfigDict(env_prefix=PREFIX, frozen=True, extra="forbid", env_ignore_empty=True)

    # -- where data lives
    data_dir: Path = Field(Path(".rag"), description="Folder of the embedded database and its secret.")
    database_url: SecretStr | None = Field(
        None, description="postgresql:// URL of an external database, as the unprivileged role. Unset: embedded."
    )
    database_owner_url: SecretStr | None = Field(None, description="URL of the owning role; used by `migrate` only.")
    database_replica_url: SecretStr | None = Field(
        None, description="postgresql:// URL of a read replica of it, as the same role; searches go there. Unset: none."
    )
    database_pool_size: int = Field(10, ge=1, le=200, description="Most connections held by one process.")
    database_timeout: float = Field(5.0, gt=0, description="Seconds to wait for a connection.")
    indices_path: Path | None = Field(None, description="Folder of index definitions; unset: the shipped ones.")
    prompts_path: Path | None = Field(None, description="Folder of prompt templates; unset: the shipped ones.")
    index: str = Field("general", description="Index definition of the default corpus.")

    # -- models
    chat_provider: Literal["extractive", "ollama", "openai_like"] = Field(
        "extractive", description="Who writes answers: `extractive` quotes and needs no model server."
    )
    model_name: str = Field("llama3.2", description="Chat model, as its provider names it.")
    ollama_url: str = Field("http://127.0.0.1:11434", description="Base URL of the Ollama server.")
    openai_url: str = Field(
        "http://127.0.0.1:8080/v1", description="Base URL of the server behind `openai_like`, with its `/v1`."
    )
    openai_api_key: SecretStr | None = Field(None, description="Key for that server, if it wants one.")
    context_window: int = Field(8192, ge=512, description="Window of the chat model in tokens (num_ctx).")
    max_tokens: int = Field(700, ge=16, description="Most tokens of an answer (num_predict).")
    temperature: float = Field(0.1, ge=0, le=2, description="Sampling temperature of the chat model.")
    thinking: bool = Field(False, description="Let a thinking model think before it answers.")
    embedding_provider: Literal["local", "ollama", "openai_like"] = Field(
        "local", description="Who embeds: `local` is the packaged all-MiniLM-L6-v2."
    )
    embedding_model: str = Field("all-minilm-l6-v2", description="Embedding model, as its provider names it.")
    embedding_dimension: int = Field(384, ge=1, le=4000, description="Length of its vectors.")
    embedding_precision: Literal["auto", "float32", "bfloat16", "int8"] = Field(
        "auto",
        description="Arithmetic of the `local` model; `auto`: bfloat16 where the processor has it, 1.7 times as fast;"
        " `int8`: the extra `int8`, 3 times as fast with AVX-512.",
    )
    embedding_batch_size: int = Field(32, ge=1, le=100, description="Texts embedded in one call.")
    embedding_cache_ttl: int = Field(
        86_400, ge=0, description="Seconds that embeddings of passages are kept for the same text; 0 keeps none."
    )
    query_cache_size: int = Field(
        512, ge=0, description="Questions whose embeddings one process keeps in memory; 0 keeps none."
    )
    connect_timeout: float = Field(5.0, gt=0, description="Seconds to reach a model server.")
    first_token_timeout: float = Field(60.0, gt=0, description="Seconds until a model's first token.")
    token_timeout: float = Field(20.0, gt=0, description="Seconds between two tokens.")
    answer_timeout: float = Field(180.0, gt=0, description="Seconds for a whole answer.")
    model_concurrency: int = Field(4, ge=1, description="Requests to the chat model at the same time.")
    model_queue: int = Field(64, ge=0, description="Requests that may wait for the model; more get `llm_busy`.")

    breaker_failures: int = Field(
        5, ge=0, description="Failures in a row after which a model server is left alone for a while; 0: never."
    )
    breaker_seconds: float = Field(
        10.0, gt=0, description="How long it, or a read replica that fails, is left alone before the next try."
    )

    # -- retrieval and answers
    topk_default: int = Field(5, ge=1, description="Passages returned when the request names no number.")
    topk_max: int = Field(10, ge=1, description="Most passages a request may ask for.")
    similarity_threshold: float = Field(0.6, ge=0, le=1, description="Least calibrated relevance of a passage.")
    query_max_chars: int = Field(4000, ge=1, description="Longest question, in characters.")
    rerank_strategy: Literal["none", "heuristic", "sbert", "llm", "cohere"] = Field(
        "heuristic", description="How hits are reordered after fusion."
    )
    rerank_model: str = Field("BAAI/bge-reranker-v2-m3", description="Cross-encoder of `sbert`, name or folder.")
    hybrid: bool = Field(True, description="Fuse BM25 and dense; off: dense alone.")
    grounded_prompting: bool = Field(True, description="Numbered chunks and strict rules; off: classic prompt.")
    max_chunks_in_prompt: int = Field(4, ge=1, description="Most chunks shown to the model.")
    context_max_tokens: int = Field(3000, ge=100, description="Most tokens of chunks shown to the model.")
    prompt_template_path: Path | None = Field(
        None, description="One template that replaces the grounded prompt in every language."
    )
    withhold_unverified: bool = Field(False, description="Leave out sentences whose citation fails.")
    enabled: bool = Field(True, description="Off: answers from the plain JSON knowledge base, no vectors.")
    lexical_fallback: bool = Field(
        True, description="Search by words alone while the embedding model is down; off: `embedding_unavailable`."
    )
    knowledge_base_path: Path | None = Field(None, description="JSON knowledge base for RAG_ENABLED=false.")

    # -- serving
    host: str = Field("127.0.0.1", description="Address to listen on.")
    port: int = Field(8000, ge=0, le=65535, description="Port to listen on; 0 takes a free one.")
    stream_enabled: bool = Field(True, description="Allow streamed answers.")
    heartbeat_seconds: float = Field(15.0, gt=0, le=15, description="Silence after which a stream sends a comment.")
    shutdown_seconds: int = Field(
        20, ge=1, description="Running answers, and the jobs of a worker, may end within when told to stop."
    )
    upload_max_mb: int = Field(10, ge=1, le=1000, description="Largest upload in megabytes.")
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = Field("INFO", description="Least level logged.")
    log_format: Literal["json", "console"] = Field("json", description="How log lines are written.")

    metrics_token: SecretStr | None = Field(
        None, description="Bearer token that may read /metrics where RAG_AUTH is `required`, besides administrators."
    )

    # -- identity
    auth: Literal["none", "required"] = Field(
        "none", description="`none`: one local administrator, loopback only. `required`: keys or tokens."
    )
    auth_cache_seconds: float = Field(
        2.0, ge=0, le=30, description="Seconds a checked key or token is remembered; a revoked one works that long."
    )
    jwt_secret: SecretStr | None = Field(
        None, description="Secret of own bearer tokens (HS256), 32 bytes or more. Excludes RAG_JWT_JWKS_URL."
    )
    jwt_issuer: str | None = Field(None, description="`iss` that bearer tokens must carry.")
    jwt_audience: str | None = Field(None, description="`aud` that bearer tokens must carry.")
    jwt_jwks_url: str | None = Field(None, description="Where the issuer publishes its keys (JWKS).")

    rate_limit_per_minute: int = Field(
        0, ge=0, description="Requests a minute that one caller (API key, else user) may send to the APIs; 0: any."
    )
    rate_limit_answers_per_minute: int = Field(
        0, ge=0, description="Answers a minute that one caller may ask a model for; 0: any."
    )

    # -- documents of many people
    originals_url: str | None = Field(
        None, description="Where uploaded files are kept, any fsspec URL (`s3://…`, `file:///…`). Unset: the database."
    )
    document_ttl_seconds: int | None = Field(
        None, ge=1, description="Lifetime of documents where neither upload nor corpus says; unset: for ever."
    )
    worker_embedded: bool = Field(True, description="Process uploads inside `serve`; off: `rag-service worker` does.")
    worker_concurrency: int = Field(2, ge=1, le=64, description="Documents that one process works on at a time.")
    parse_concurrency: int = Field(2, ge=1, le=64, description="Parser subprocesses of one process at a time.")
    job_attempts: int = Field(5, ge=1, le=50, description="Tries after which a document is given up.")
    job_backoff_seconds: float = Field(2.0, ge=0, description="Pause before the second try; doubles with each.")
    job_backoff_max_seconds: float = Field(300.0, ge=0, description="Longest pause between two tries.")
    job_stalled_seconds: float = Field(
        30.0, gt=0, description="Silence after which a worker counts as dead and its documents are taken over."
    )

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Keywords first, then the environment; no hidden files."""
        return init_settings, env_settings

    @field_validator("log_level", mode="before")
    @classmethod
    def _in_capitals(cls, level: object) -> object:
        return level.upper() if isinstance(level, str) else level

    @field_validator("ollama_url", "openai_url")
    @classmethod
    def _is_http_url(cls, url: str) -> str:
        if not url.startswith(("http://", "https://")):
            raise ValueError("must begin with http:// or https://")
        return url.rstrip("/")

    @model_validator(mode="after")
    def _fits_together(self) -> Settings:
        if self.topk_default > self.topk_max:
            raise ValueError("RAG_TOPK_DEFAULT is larger than RAG_TOPK_MAX")
        if self.database_replica_url is not None and self.database_url is None:
            raise ValueError("RAG_DATABASE_REPLICA_URL needs RAG_DATABASE_URL")
        if self.max_tokens >= self.context_window:
            raise ValueError("RAG_MAX_TOKENS leaves no room in RAG_CONTEXT_WINDOW")
        if self.auth == "none" and self.host not in {"127.0.0.1", "::1", "localhost"}:
            raise ValueError("RAG_HOST must be a loopback address while RAG_AUTH is 'none'")
        if self.jwt_secret is not None and len(self.jwt_secret.get_secret_value().encode()) < 32:
            raise ValueError("RAG_JWT_SECRET must have 32 bytes or more")
        if self.jwt_secret is not None and self.jwt_jwks_url is not None:
            raise ValueError("RAG_JWT_SECRET and RAG_JWT_JWKS_URL exclude each other")
        if self.jwt_jwks_url is not None and (self.jwt_issuer is None or self.jwt_audience is None):
            raise ValueError("RAG_JWT_JWKS_URL needs RAG_JWT_ISSUER and RAG_JWT_AUDIENCE")
        if self.jwt_secret is None and self.jwt_jwks_url is None and (self.jwt_issuer or self.jwt_audience):
            raise ValueError("RAG_JWT_ISSUER and RAG_JWT_AUDIENCE need RAG_JWT_JWKS_URL or RAG_JWT_SECRET")
        return self


def setting_name(field: str) -> str:
    """Name of a field in the environment."""
    return PREFIX + field.upper()


def load_settings(**overrides: object) -> Settings:
    """Read the settings from the environment, keywords winning over it.

    Raises:
        ConfigurationError: names each setting at fault and says what it must be; an unknown
            `RAG_*` name is reported with the nearest known one.
    """
    known = {setting_name(field) for field in Settings.model_fields}
    for name in sorted(os.environ):
        if name.startswith(PREFIX) and name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f" Did you mean {near[0]}?" if near else ""
            raise ConfigurationError(f"Unknown setting {name}.{hint}", field=name)
    try:
        return Settings(**overrides)  # type: ignore[arg-type]  # validated by pydantic
    except ValidationError as error:
        parts = []
        for problem in error.errors(include_url=False, include_input=False):
            place = ", ".join(setting_name(str(part)) for part in problem["loc"]) or "settings"
            parts.append(f"{place}: {problem['msg'].removeprefix('Value error, ')}")
        raise ConfigurationError("; ".join(parts)) from error

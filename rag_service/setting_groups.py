"""The groups of settings, with defaults, limits and descriptions. `rag_service.settings` puts them together.

A field's alias is the setting's key: `chat_provider` for RAG_CHAT_PROVIDER. Where a group gives a pattern of aliases,
it is for the fields without an alias of their own.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    SecretStr,
    ValidationInfo,
    field_validator,
    model_validator,
)

CHAT_PROVIDERS = ("extractive", "ollama", "openai_like")
EMBEDDING_PROVIDERS = ("local", "huggingface", "ollama", "openai_like")
RERANK_STRATEGIES = ("none", "heuristic", "sbert", "llm", "cohere")
JUDGES = ("none", "llm", "cross_encoder")
CLASS_PATH = re.compile(r"(?P<module>[A-Za-z_]\w*(\.[A-Za-z_]\w*)*)[:.](?P<name>[A-Za-z_]\w*)")


class _Group(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


def _check_name(value: str, names: Sequence[str]) -> str:
    if value not in names and CLASS_PATH.fullmatch(value) is None:
        raise ValueError(f"{value!r} must be {', '.join(names)}, or a class path package.module:Class")
    return value


def _short_name_or_class_path(names: Sequence[str]) -> AfterValidator:
    return AfterValidator(lambda value: _check_name(value, names))


class DatabaseSettings(_Group, alias_generator="database_{}".format):
    """Where data lives."""

    data_dir: Path = Field(Path(".rag"), alias="data_dir", description="Folder of the embedded database.")
    url: SecretStr | None = Field(
        None, description="postgresql:// URL of an external database, as the unprivileged role. Unset: embedded."
    )
    owner_url: SecretStr | None = Field(None, description="The same as the owning role; only `migrate` uses it.")
    replica_url: SecretStr | None = Field(
        None, description="postgresql:// URL of a read replica, as the unprivileged role; searches go there."
    )
    pool_size: int = Field(10, ge=1, le=200, description="Maximum number of connections of one process.")
    timeout: float = Field(5.0, gt=0, description="Seconds to wait for a connection.")


class IndexSettings(_Group):
    """Index definitions: how documents are split and how questions are answered."""

    path: Path | None = Field(
        None, alias="indices_path", description="Folder of index definitions; unset: the packaged ones."
    )
    default: str = Field("general", alias="index", description="Index definition of the default corpus.")


class ChatSettings(_Group):
    """The chat model."""

    provider: Annotated[str, _short_name_or_class_path(CHAT_PROVIDERS)] = Field(
        "extractive",
        alias="chat_provider",
        description="Who writes answers: `extractive` (quotes and needs no model), `ollama`, `openai_like`, or the"
        " class path of a LlamaIndex LLM, such as `llama_index.llms.anthropic:Anthropic`.",
    )
    options: SecretStr | None = Field(
        None, alias="chat_options", description="Keyword arguments of that LLM class, as JSON."
    )
    agent_providers: str = Field(
        "extractive,ollama,openai_like",
        description="Chat providers that agents may name: short names and class paths, separated by commas.",
    )
    model: str = Field("llama3.2", alias="model_name", description="Chat model, by its provider's name.")
    context_window: int = Field(8192, ge=512, description="Context window of the chat model in tokens (num_ctx).")
    max_tokens: int = Field(700, ge=16, description="Maximum length of an answer in tokens (num_predict).")
    temperature: float = Field(0.1, ge=0, le=2, description="Sampling temperature of the chat model.")
    thinking: bool = Field(False, description="Let a reasoning model think before it answers.")
    concurrency: int = Field(
        4, alias="model_concurrency", ge=1, description="Maximum number of requests to it at a time."
    )
    queue: int = Field(
        64, alias="model_queue", ge=0, description="Requests that may wait for the chat model; others get `llm_busy`."
    )

    @property
    def agent_providers_list(self) -> tuple[str, ...]:
        """The providers that agents may name."""
        return tuple(name.strip() for name in self.agent_providers.split(",") if name.strip())

    @model_validator(mode="after")
    def _fits_together(self) -> ChatSettings:
        for name in self.agent_providers_list:
            _check_name(name, CHAT_PROVIDERS)
        if self.max_tokens >= self.context_window:
            raise ValueError("RAG_MAX_TOKENS must be smaller than RAG_CONTEXT_WINDOW")
        return self


class ServerSettings(_Group):
    """Model servers, for chat and for embeddings."""

    ollama_url: str = Field("http://127.0.0.1:11434", description="Base URL of the Ollama server.")
    openai_url: str = Field(
        "http://127.0.0.1:8080/v1", description="Base URL, including `/v1`, of the server that `openai_like` uses."
    )
    openai_api_key: SecretStr | None = Field(None, description="API key for that server, if it needs one.")
    connect_timeout: float = Field(5.0, gt=0, description="Seconds to connect to a model server.")
    first_token_timeout: float = Field(60.0, gt=0, description="Seconds until a model's first token.")
    token_timeout: float = Field(20.0, gt=0, description="Seconds between two tokens.")
    answer_timeout: float = Field(180.0, gt=0, description="Seconds for a whole answer.")
    breaker_failures: int = Field(
        5, ge=0, description="Consecutive failures after which a model server is not called for a while; 0: never."
    )
    breaker_seconds: float = Field(
        10.0, gt=0, description="How long a failing model server or read replica is not called before the next try."
    )

    @field_validator("ollama_url", "openai_url")
    @classmethod
    def _is_http_url(cls, url: str) -> str:
        if not url.startswith(("http://", "https://")):
            raise ValueError("must begin with http:// or https://")
        return url.rstrip("/")


class EmbeddingSettings(_Group, alias_generator="embedding_{}".format):
    """The embedding model."""

    provider: Annotated[str, _short_name_or_class_path(EMBEDDING_PROVIDERS)] = Field(
        "local",
        description="Who embeds: `local` (the packaged all-MiniLM-L6-v2), `huggingface`, `ollama`, `openai_like`, or"
        " the class path of a LlamaIndex embedding.",
    )
    options: SecretStr | None = Field(None, description="Keyword arguments of that embedding class, as JSON.")
    model: str = Field(
        "all-minilm-l6-v2",
        description="Embedding model, by its provider's name; for `huggingface` a repository or a folder.",
    )
    dimension: int = Field(384, ge=1, le=4000, description="Length of its vectors.")
    precision: Literal["float32", "int8"] = Field(
        "float32",
        description="Arithmetic of `local` and `huggingface`; `int8` is three times as fast with AVX-512 VNNI.",
    )
    batch_size: int = Field(32, ge=1, le=100, description="Texts embedded in one call.")
    cache_ttl: int = Field(
        86_400, ge=0, description="Seconds that a passage's embedding is kept for the same text; 0: not kept."
    )
    query_cache_size: int = Field(
        512, alias="query_cache_size", ge=0, description="Question embeddings kept in memory."
    )


class RerankSettings(_Group, alias_generator="rerank_{}".format):
    """Reranking."""

    strategy: Annotated[str, _short_name_or_class_path(RERANK_STRATEGIES)] = Field(
        "heuristic",
        description="How passages are reordered after fusion: `none`, `heuristic`, `sbert`, `llm`, `cohere`, or the"
        " class path of a LlamaIndex postprocessor that sets scores.",
    )
    options: SecretStr | None = Field(None, description="Keyword arguments of that postprocessor class, as JSON.")
    model: str = Field("BAAI/bge-reranker-v2-m3", description="Cross-encoder for `sbert`: name or folder.")


class JudgeSettings(_Group, alias_generator="judge_{}".format):
    """The judge, which decides whether a passage says what a reworded sentence of an answer says."""

    strategy: Annotated[str, _short_name_or_class_path(JUDGES)] | None = Field(
        None,
        alias="judge",
        description="Who judges reworded sentences: `none`, `llm` (the chat model, one call after the answer),"
        " `cross_encoder` (a model for natural-language inference), or the class path of a judge. Unset: `llm` where a"
        " chat model answers, `none` with the extractive answerer.",
    )
    options: SecretStr | None = Field(
        None, description="Keyword arguments of the judge class, or of `CrossEncoder`, as a JSON object."
    )
    model: str = Field(
        "MoritzLaurer/mDeBERTa-v3-base-mnli-xnli", description="Cross-encoder for `cross_encoder`: name or folder."
    )
    timeout: float = Field(
        20.0, gt=0, description="Seconds for judging one answer; what is not judged by then is `unchecked`."
    )
    calibration: Path | None = Field(
        None,
        description="Thresholds of cross-encoders, a file that `rag-service eval claims --calibrate` writes. Unset:"
        " `judge.json` in RAG_DATA_DIR; without one, 0.5.",
    )


class RetrievalSettings(_Group):
    """Search."""

    enabled: bool = Field(True, description="false: answers come from a JSON knowledge base, without a database.")
    knowledge_base_path: Path | None = Field(None, description="JSON knowledge base for RAG_ENABLED=false.")
    top_k: int = Field(5, alias="topk_default", ge=1, description="Passages returned when the request names no number.")
    max_top_k: int = Field(10, alias="topk_max", ge=1, description="Maximum number of passages a request may ask for.")
    threshold: float = Field(
        0.6,
        alias="similarity_threshold",
        ge=0,
        le=1,
        description="Relevance from which on a passage answers; an answer without such a passage is uncertain.",
    )
    out_of_scope_threshold: float = Field(
        0.2,
        ge=0,
        le=1,
        description="Minimum relevance of a passage where the request names none: below it nothing is answered.",
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


class AnswerSettings(_Group):
    """Prompts and answers."""

    prompts_path: Path | None = Field(None, description="Folder of prompt templates. Unset: the packaged ones.")
    template_path: Path | None = Field(
        None, alias="prompt_template_path", description="A template that replaces the grounded prompt in all languages."
    )
    grounded_prompting: bool = Field(True, description="Numbered passages and strict rules; false: a classic prompt.")
    max_chunks: int = Field(
        4, alias="max_chunks_in_prompt", ge=1, description="Maximum number of passages in the prompt."
    )
    max_context_tokens: int = Field(
        3000, alias="context_max_tokens", ge=100, description="Maximum length of those passages, in tokens."
    )
    confidence_fit: Path | None = Field(
        None,
        description="File that `rag-service eval calibrate --answers` wrote. Unset: the packaged one.",
    )
    extractive_fallback: bool = Field(
        True, description="Quote the passages found when the chat model fails; false: such questions fail."
    )
    withhold_unverified: bool = Field(False, description="Leave out sentences whose citation cannot be verified.")


class HttpSettings(_Group):
    """The HTTP server."""

    host: str = Field("127.0.0.1", description="Address to listen on.")
    port: int = Field(8000, ge=0, le=65535, description="Port to listen on; 0: any free one.")
    stream_enabled: bool = Field(True, description="Allow streamed answers.")
    heartbeat_seconds: float = Field(15.0, gt=0, le=15, description="Silence after which a stream sends a comment.")
    openai_strict: bool = Field(False, description="Refuse OpenAI requests with fields that have no effect.")
    openai_sources: bool = Field(True, description="List the sources below answers at `/v1`, which other clients show.")
    shutdown_seconds: int = Field(20, ge=1, description="Time that running answers and jobs get to finish at shutdown.")


class ObservabilitySettings(_Group):
    """Logs and metrics."""

    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = Field("INFO", description="Lowest level that is logged.")
    log_format: Literal["json", "console"] = Field("json", description="Format of log lines.")
    metrics_token: SecretStr | None = Field(
        None, description="Bearer token that may read /metrics, besides administrators, where RAG_AUTH is `required`."
    )

    @field_validator("log_level", mode="before")
    @classmethod
    def _in_capitals(cls, level: object) -> object:
        return level.upper() if isinstance(level, str) else level


class AuthSettings(_Group):
    """Authentication."""

    mode: Literal["none", "required"] = Field(
        "none", alias="auth", description="`none`: one local administrator, loopback only; `required`: keys or tokens."
    )
    share_global: bool = Field(
        True,
        alias="share_global_corpora",
        description="Whether every user may read new global corpora; else only through agents. Each can be changed.",
    )
    cache_seconds: float = Field(
        2.0,
        alias="auth_cache_seconds",
        ge=0,
        le=30,
        description="Seconds that a checked key or token is remembered, even if revoked.",
    )
    jwt_secret: SecretStr | None = Field(
        None, description="Shared secret for bearer tokens (HS256), at least 32 bytes. Excludes RAG_JWT_JWKS_URL."
    )
    jwt_issuer: str | None = Field(None, description="`iss` that bearer tokens must carry.")
    jwt_audience: str | None = Field(None, description="`aud` that bearer tokens must carry.")
    jwt_jwks_url: str | None = Field(None, description="URL at which the issuer publishes its keys (JWKS).")

    @model_validator(mode="after")
    def _tokens_can_be_checked(self) -> AuthSettings:
        if self.jwt_secret is not None and len(self.jwt_secret.get_secret_value().encode()) < 32:
            raise ValueError("RAG_JWT_SECRET must have at least 32 bytes")
        if self.jwt_secret is not None and self.jwt_jwks_url is not None:
            raise ValueError("RAG_JWT_SECRET and RAG_JWT_JWKS_URL exclude each other")
        if self.jwt_jwks_url is not None and (self.jwt_issuer is None or self.jwt_audience is None):
            raise ValueError("RAG_JWT_JWKS_URL needs RAG_JWT_ISSUER and RAG_JWT_AUDIENCE")
        if self.jwt_secret is None and self.jwt_jwks_url is None and (self.jwt_issuer or self.jwt_audience):
            raise ValueError("RAG_JWT_ISSUER and RAG_JWT_AUDIENCE need RAG_JWT_JWKS_URL or RAG_JWT_SECRET")
        return self


class SignInSettings(_Group):
    """Sign-in on the page."""

    public_url: str | None = Field(
        None, description="Address of the page in browsers, https; turns sign-in with a session on. Unset: keys alone."
    )
    issuer: str | None = Field(
        None, alias="oidc_issuer", description="OpenID provider that users sign in with. Unset: name and password."
    )
    client_id: str | None = Field(None, alias="oidc_client_id", description="The service's id at the provider.")
    client_secret: SecretStr | None = Field(
        None, alias="oidc_client_secret", description="Its secret; unset for a public client."
    )
    label: str = Field("OpenID Connect", alias="oidc_label", description="The provider's name on the page.")
    scopes: str = Field("openid profile email", alias="oidc_scopes", description="Scopes to ask the provider for.")
    groups_claim: str = Field(
        "groups", alias="oidc_groups_claim", description="Claim with the user's groups: a list, or one text."
    )
    allowed_groups: str = Field(
        "", alias="oidc_allowed_groups", description="Groups whose members may sign in: `a,b`. Empty: all users."
    )
    admin_groups: str = Field(
        "",
        alias="oidc_admin_groups",
        description="Groups whose members are administrators, others not: `a,b`. Empty: administrators choose.",
    )
    idle_minutes: int = Field(
        120, alias="session_idle_minutes", ge=1, description="Minutes without a request that end a session."
    )
    hours: int = Field(24, alias="session_hours", ge=1, le=720, description="Hours after which every session ends.")

    @property
    def way(self) -> Literal["", "password", "provider"]:
        """How users sign in besides with a key."""
        return "" if self.public_url is None else "password" if self.issuer is None else "provider"

    @property
    def redirect_uri(self) -> str:
        """Where the provider sends browsers back to."""
        return f"{self.public_url}/auth/callback"

    @property
    def is_secure(self) -> bool:
        """Whether browsers use https, so that cookies may be bound to it."""
        return (self.public_url or "").startswith("https:")

    @field_validator("public_url", "issuer")
    @classmethod
    def _is_address(cls, value: str | None, info: ValidationInfo) -> str | None:
        if value is None:
            return None
        parts = urlsplit(value)
        local = parts.hostname in {"127.0.0.1", "::1", "localhost"}
        if not parts.hostname or parts.scheme not in ("https", *(["http"] if local else [])):
            raise ValueError("must be an https:// address (http:// for a loopback address)")
        if info.field_name != "public_url":
            return value  # compared character by character with what the provider says
        if parts.path.strip("/") or parts.query or parts.fragment or parts.username:
            raise ValueError("must be scheme, host and port alone")
        return value.rstrip("/")

    @model_validator(mode="after")
    def _provider_is_complete(self) -> SignInSettings:
        if self.issuer is None and (self.client_id or self.client_secret):
            raise ValueError("RAG_OIDC_CLIENT_ID and RAG_OIDC_CLIENT_SECRET need RAG_OIDC_ISSUER")
        if self.issuer is not None and (self.client_id is None or self.public_url is None):
            raise ValueError("RAG_OIDC_ISSUER needs RAG_OIDC_CLIENT_ID and RAG_PUBLIC_URL")
        if "openid" not in self.scopes.split():
            raise ValueError("RAG_OIDC_SCOPES must contain openid")
        return self


class LimitSettings(_Group):
    """Limits of requests."""

    query_max_chars: int = Field(4000, ge=1, description="Maximum length of a question in characters.")
    requests_per_minute: int = Field(
        0,
        alias="rate_limit_per_minute",
        ge=0,
        description="Requests a minute by one caller (API key, else user); 0: no limit.",
    )
    answers_per_minute: int = Field(
        0,
        alias="rate_limit_answers_per_minute",
        ge=0,
        description="Answers a minute that one caller may ask a model for; 0: no limit.",
    )


class UploadSettings(_Group):
    """Uploaded documents."""

    max_mb: int = Field(10, alias="upload_max_mb", ge=1, le=1000, description="Maximum upload size in megabytes.")
    originals_url: str | None = Field(
        None, description="Where uploaded files are kept: any fsspec URL (`s3://…`, `file:///…`). Unset: the database."
    )
    ttl_seconds: int | None = Field(
        None,
        alias="document_ttl_seconds",
        ge=1,
        description="Lifetime of a document where upload and corpus set none; unset: for ever.",
    )


class SyncSettings(_Group, alias_generator="sync_{}".format):
    """Folders and sites that corpora are kept equal to."""

    networks: str | None = Field(
        None,
        description="Networks besides the public internet that pages may be fetched from: `10.1.0.0/16,127.0.0.1`.",
    )
    pages: int = Field(1000, ge=1, description="Maximum number of pages of one site.")

    @field_validator("networks")
    @classmethod
    def _are_networks(cls, value: str | None) -> str | None:
        for part in (value or "").split(",") if value else ():
            ipaddress.ip_network(part.strip())
        return value


class WorkerSettings(_Group):
    """Background processing of uploads."""

    embedded: bool = Field(
        True,
        alias="worker_embedded",
        description="Process uploads and sync sources in `serve`; false: `rag-service worker` does.",
    )
    concurrency: int = Field(
        2, alias="worker_concurrency", ge=1, le=64, description="Documents that one process works on at a time."
    )
    parse_concurrency: int = Field(2, ge=1, le=64, description="Parser subprocesses of one process at a time.")
    job_attempts: int = Field(5, ge=1, le=50, description="Attempts after which a document has failed.")
    job_backoff_seconds: float = Field(2.0, ge=0, description="Pause before the second attempt; doubles each time.")
    job_backoff_max_seconds: float = Field(300.0, ge=0, description="Longest pause between two attempts.")
    job_stalled_seconds: float = Field(
        30.0, gt=0, description="Silence after which a worker counts as dead and another one takes over its documents."
    )

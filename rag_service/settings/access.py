"""Settings of the server, of who may use it, and of how much."""

from __future__ import annotations

import re
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Literal
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, ValidationInfo, field_validator, model_validator

from rag_service.settings.group import SettingGroup

ROOT_PATH = re.compile(r"(?:/(?!\.\.?(?:/|$))[\w.~-]+)+", re.ASCII)  # neither ends with a slash nor holds `..`


class HttpSettings(SettingGroup):
    """The HTTP server."""

    host: str = Field("127.0.0.1", description="Address to listen on.")
    port: int = Field(8000, ge=0, le=65535, description="Port to listen on; 0: any free one.")
    stream_enabled: bool = Field(True, description="Allow streamed answers.")
    heartbeat_seconds: float = Field(
        15.0, gt=0, le=15, description="Seconds without output after which a stream sends a comment."
    )
    openai_strict: bool = Field(False, description="Refuse OpenAI requests that contain fields without effect.")
    openai_sources: bool = Field(
        True, description="List the sources below each answer at `/v1`, for clients that do not show citations."
    )
    allowed_origins: str = Field(
        "",
        description="Origins of other sites whose pages may call the service from a browser (CORS), with a key and"
        " never with cookies: `https://intranet.example.org,https://wiki.example.org`. Empty: none.",
    )
    root_path: str = Field(
        "",
        description="Path below which a proxy serves the service: `/rag`. The proxy may strip it or pass it on. Empty:"
        " the path of RAG_PUBLIC_URL.",
    )
    trusted_proxies: str = Field(
        "",
        description="Addresses and networks of the proxies whose `X-Forwarded-For`, `-Proto`, `-Host` and `-Prefix` are"
        " believed: `127.0.0.1,10.0.0.0/8`. Empty: none.",
    )
    connections: int = Field(
        2_000,
        ge=10,
        le=100_000,
        description="Maximum number of open connections, of which one address, or IPv6 network, may have half, and a"
        " trusted proxy all. Then the one that has been idle longest is closed; without one, new ones get 503.",
    )
    head_seconds: float = Field(
        20.0,
        gt=0,
        le=600,
        description="Seconds within which the head of a request must have arrived, from the connection or the last"
        " reply.",
    )
    shutdown_seconds: int = Field(
        20, ge=1, le=86_400, description="Seconds that running answers and jobs have to finish at shutdown."
    )

    @property
    def origins(self) -> frozenset[str]:
        """The allowed origins, as browsers send them."""
        return frozenset(filter(None, (origin.strip().lower() for origin in self.allowed_origins.split(","))))

    @field_validator("allowed_origins")
    @classmethod
    def _are_origins(cls, value: str) -> str:
        for origin in filter(None, map(str.strip, value.split(","))):
            parts = urlsplit(origin)
            if (
                parts.scheme not in ("http", "https")
                or not parts.hostname
                or origin != f"{parts.scheme}://{parts.netloc}"
            ):
                raise ValueError(f"{origin!r} is no origin such as https://intranet.example.org, without a path")
        return value

    @property
    def proxies(self) -> tuple[IPv4Network | IPv6Network, ...]:
        """The networks of the trusted proxies."""
        return tuple(map(ip_network, filter(None, map(str.strip, self.trusted_proxies.split(",")))))

    @field_validator("trusted_proxies")
    @classmethod
    def _are_networks(cls, value: str) -> str:
        for network in filter(None, map(str.strip, value.split(","))):
            ip_network(network)  # its ValueError names what is wrong
        return value

    @field_validator("root_path")
    @classmethod
    def _is_root_path(cls, value: str) -> str:
        return check_root_path(value)


def check_root_path(path: str) -> str:
    """The path without a slash at its end. Raises ValueError for one that is no path such as `/rag`."""
    path = path.rstrip("/")
    if path and not ROOT_PATH.fullmatch(path):
        raise ValueError(f"{path!r} is no path such as /rag, of letters, digits and . _ ~ - in each part")
    return path


class AuthSettings(SettingGroup):
    """Authentication."""

    mode: Literal["none", "required"] = Field(
        "none",
        alias="auth",
        description="`none`: one local administrator, loopback only; `required`: callers need a key, token or session.",
    )
    share_global: bool = Field(
        True,
        alias="share_global_corpora",
        description="Share new global corpora with every user; false: users reach them through agents only. Each corpus"
        " can override this.",
    )
    sharing: bool = Field(
        True,
        description="Let users share conversations with those who may read all corpora that the answers rest on; false:"
        " nobody can read the conversations of others.",
    )
    cache_seconds: float = Field(
        2.0,
        alias="auth_cache_seconds",
        ge=0,
        le=30,
        description="Seconds for which a successful key or token check is cached; a revoked key works until then.",
    )
    jwt_secret: SecretStr | None = Field(
        None,
        description="Shared secret for bearer tokens (HS256), at least 32 bytes. Not allowed with RAG_JWT_JWKS_URL.",
    )
    jwt_issuer: str | None = Field(None, description="Required `iss` of bearer tokens.")
    jwt_audience: str | None = Field(None, description="Required `aud` of bearer tokens.")
    jwt_jwks_url: str | None = Field(None, description="URL at which the issuer publishes its keys (JWKS).")

    @model_validator(mode="after")
    def _tokens_can_be_checked(self) -> AuthSettings:
        if self.jwt_secret is not None and len(self.jwt_secret.get_secret_value().encode()) < 32:
            raise ValueError("RAG_JWT_SECRET must have at least 32 bytes")
        if self.jwt_secret is not None and self.jwt_jwks_url is not None:
            raise ValueError("RAG_JWT_SECRET and RAG_JWT_JWKS_URL cannot be combined")
        if self.jwt_jwks_url is not None and (self.jwt_issuer is None or self.jwt_audience is None):
            raise ValueError("RAG_JWT_JWKS_URL needs RAG_JWT_ISSUER and RAG_JWT_AUDIENCE")
        if self.jwt_secret is None and self.jwt_jwks_url is None and (self.jwt_issuer or self.jwt_audience):
            raise ValueError("RAG_JWT_ISSUER and RAG_JWT_AUDIENCE need RAG_JWT_JWKS_URL or RAG_JWT_SECRET")
        return self


class SignInSettings(SettingGroup):
    """Sign-in on the page."""

    public_url: str | None = Field(
        None,
        description="HTTPS address of the page in browsers, with its path if there is one; turns on sign-in with"
        " sessions. Unset: keys and tokens.",
    )
    issuer: str | None = Field(
        None,
        alias="oidc_issuer",
        description="Issuer URL of the OpenID provider. Unset: users sign in with name and password.",
    )
    client_id: str | None = Field(None, alias="oidc_client_id", description="Client id of the service at the provider.")
    client_secret: SecretStr | None = Field(
        None, alias="oidc_client_secret", description="Client secret; unset for a public client."
    )
    label: str = Field("OpenID Connect", alias="oidc_label", description="Name of the provider on the sign-in button.")
    scopes: str = Field("openid profile email", alias="oidc_scopes", description="Scopes requested from the provider.")
    groups_claim: str = Field(
        "groups", alias="oidc_groups_claim", description="Claim with the user's groups: a list or a single string."
    )
    allowed_groups: str = Field(
        "", alias="oidc_allowed_groups", description="Groups whose members can sign in: `a,b`. Empty: everyone."
    )
    admin_groups: str = Field(
        "",
        alias="oidc_admin_groups",
        description="Groups whose members, and no others, are administrators: `a,b`. Empty: set roles on the page.",
    )
    idle_minutes: int = Field(
        120,
        alias="session_idle_minutes",
        ge=1,
        le=525_600,
        description="Minutes without a request after which a session ends.",
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
    def path(self) -> str:
        """The path of the page in browsers; "" where it has none."""
        return urlsplit(self.public_url or "").path

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
        if parts.query or parts.fragment or parts.username:
            raise ValueError("must consist of scheme, host, port and path only")
        check_root_path(parts.path)
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


class LimitSettings(SettingGroup):
    """Limits of requests."""

    query_max_chars: int = Field(4000, ge=1, description="Maximum length of a question in characters.")
    requests_per_minute: int = Field(
        0,
        alias="rate_limit_per_minute",
        ge=0,
        description="Maximum requests per minute and user, over all API keys; 0: no limit.",
    )
    answers_per_minute: int = Field(
        0,
        alias="rate_limit_answers_per_minute",
        ge=0,
        description="Maximum model answers per minute and user; 0: no limit.",
    )


class ObservabilitySettings(SettingGroup):
    """Logs and metrics."""

    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = Field("INFO", description="Lowest level that is logged.")
    log_format: Literal["json", "console"] = Field("json", description="Format of log lines.")
    metrics_token: SecretStr | None = Field(
        None,
        description="Bearer token that gives access to /metrics, besides administrators' keys, with RAG_AUTH=required.",
    )

    @field_validator("log_level", mode="before")
    @classmethod
    def _in_capitals(cls, level: object) -> object:
        return level.upper() if isinstance(level, str) else level

"""HTTP clients of model servers, and the probes of /health/ready, which wake no model."""

from __future__ import annotations

import ipaddress
import ssl
import time
import urllib.request
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from functools import cache, partial
from typing import Any

import httpx

from rag_service.errors import EmbeddingError, ModelError
from rag_service.models.servers.resilience import CircuitBreaker, CircuitOpenError
from rag_service.settings import Settings

_NUMBER_BYTES = 40  # of a figure of a vector in JSON, with its indentation
_REPLY_BYTES = 200_000  # of a reply besides its figures


@cache
def tls_context() -> ssl.SSLContext:
    """One for all clients of the process: each of its own would take 20 ms to read the certificates."""
    return httpx.create_ssl_context()


class _BoundedStream(httpx.AsyncByteStream):
    """A body that ends with an error where it is longer than it may be."""

    def __init__(self, stream: httpx.AsyncByteStream, limit: int):
        self._stream = stream
        self._left = limit

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in self._stream:
            self._left -= len(piece)
            if self._left < 0:
                raise httpx.DecodingError("The reply is longer than any that was asked for.")
            yield piece

    async def aclose(self) -> None:
        await self._stream.aclose()


def embedding_options(settings: Settings) -> dict[str, Any]:
    """`client_options` for embeddings, whose replies are read as a whole: a longer one would hold up everybody."""
    numbers = settings.embedding.batch_size * settings.embedding.dimension
    limit = _REPLY_BYTES + numbers * _NUMBER_BYTES

    async def bound(response: httpx.Response) -> None:
        if isinstance(response.stream, httpx.AsyncByteStream):
            response.stream = _BoundedStream(response.stream, limit)

    options = client_options(settings, read_timeout=settings.servers.answer_timeout)
    return options | {"event_hooks": {**options["event_hooks"], "response": [bound]}}


def is_private_host(host: str) -> bool:
    """Whether a host is this machine or in a private network: an address of it, or a name that only it resolves."""
    try:
        address = ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return "." not in host or host.endswith((".localhost", ".local", ".internal"))
    return address.is_private or address.is_loopback or address.is_link_local


def direct_hosts(settings: Settings) -> dict[str, None]:
    """Mounts of an httpx client by which private model servers are reached without the proxy of the environment."""
    if settings.servers.proxy_private_servers:
        return {}
    hosts = {httpx.URL(url).host for url in (settings.servers.ollama_url, settings.servers.openai_url)}
    return {f"all://{f'[{host}]' if ':' in host else host}": None for host in hosts if is_private_host(host)}


def proxy_variable(settings: Settings, url: str) -> str | None:
    """The environment variable whose proxy leads to a model server; None if it is reached directly."""
    parts = httpx.URL(url)
    if is_private_host(parts.host) and not settings.servers.proxy_private_servers:
        return None
    if urllib.request.proxy_bypass(parts.host):
        return None
    proxies = urllib.request.getproxies_environment()
    return next((f"{kind.upper()}_PROXY" for kind in (parts.scheme, "all") if proxies.get(kind)), None)


def client_options(settings: Settings, *, read_timeout: float) -> dict[str, Any]:
    """Keyword arguments of an httpx client, or of one that passes them on.

    `read_timeout` is the maximum number of seconds between two pieces of a response: a backstop behind the
    finer limits of the callers.
    """
    return {
        "timeout": httpx.Timeout(
            read_timeout, connect=settings.servers.connect_timeout, pool=settings.servers.connect_timeout
        ),
        # The callers limit concurrency; a second limit here would only queue out of sight.
        "limits": httpx.Limits(max_connections=None, max_keepalive_connections=settings.chat.concurrency),
        "verify": tls_context(),
        "mounts": direct_hosts(settings),
        "event_hooks": {"request": [partial(_note_proxy, settings)]},
    }


async def _note_proxy(settings: Settings, request: httpx.Request) -> None:
    """Note the variable whose proxy a request takes, for the message of a failure (`failures.proxy_in_words`)."""
    request.extensions["rag_proxy"] = proxy_variable(settings, str(request.url))


def bearer(settings: Settings) -> dict[str, str]:
    """The header that carries RAG_OPENAI_API_KEY, if there is one."""
    key = settings.servers.openai_api_key
    return {} if key is None else {"Authorization": f"Bearer {key.get_secret_value()}"}


KEPT_SECONDS = 2.0  # an outcome is kept this long: a load balancer may ask many times a second


@dataclass
class ServerProbe:
    """Asks one address of a server that costs it nothing."""

    url: str | None  # None where the address is not known: then only the breaker is checked
    breaker: CircuitBreaker
    _: KW_ONLY
    timeout: float  # seconds
    error: type[ModelError] = ModelError
    headers: Mapping[str, str] = field(default_factory=dict)
    mounts: Mapping[str, None] = field(default_factory=dict)  # of the client
    ask: Callable[[], Awaitable[None]] | None = None  # instead of the address; raises ModelError
    _asked_at: float = field(default=-KEPT_SECONDS, init=False)
    _failure: ModelError | None = field(default=None, init=False)

    async def check(self) -> None:
        """Return if the server answers. Raises CircuitOpenError while its breaker is open, else the given error."""
        if self.breaker.state == "open":
            raise CircuitOpenError("The server failed several times in a row and is not called for a while.")
        if time.monotonic() - self._asked_at >= KEPT_SECONDS:
            self._failure = await self._ask()
            self._asked_at = time.monotonic()
        if self._failure is not None:
            raise self._failure

    async def _ask(self) -> ModelError | None:
        if self.ask is not None:
            try:
                await self.ask()
            except ModelError as error:
                return error
        if self.url is None:
            return None
        try:
            async with httpx.AsyncClient(timeout=self.timeout, verify=tls_context(), mounts=self.mounts) as client:
                reply = await client.get(self.url, headers=self.headers)
        except httpx.HTTPError as error:
            failure = self.error("The server cannot be reached.")
            failure.__cause__ = error
            return failure
        return None if reply.is_success else self.error(f"The server replied with status {reply.status_code}.")


def build_probes(
    settings: Settings,
    *,
    chat: CircuitBreaker,
    embedding: CircuitBreaker,
    own_server: Callable[[], Awaitable[None]] | None,
) -> dict[str, ServerProbe]:
    """Probes of the servers that the settings name, by dependency; what runs in this process has none.

    `own_server` asks the server that this service runs, for the provider `gguf`.
    """
    timeout = min(settings.servers.connect_timeout, 2.0)  # /health/ready gives each probe three seconds
    mounts = direct_hosts(settings)
    probes = {}
    for name, provider, breaker, error in (
        ("chat", settings.chat.provider, chat, ModelError),
        ("embedding", settings.embedding.provider, embedding, EmbeddingError),
    ):
        if provider == "ollama":
            url = f"{settings.servers.ollama_url}/api/version"
            probes[name] = ServerProbe(url, breaker, timeout=timeout, error=error, mounts=mounts)
        elif provider == "openai_like":
            url = f"{settings.servers.openai_url}/models"
            probes[name] = ServerProbe(
                url, breaker, timeout=timeout, error=error, headers=bearer(settings), mounts=mounts
            )
        elif provider == "gguf":
            probes[name] = ServerProbe(None, breaker, timeout=timeout, error=error, ask=own_server)
        elif provider not in ("extractive", "local", "huggingface"):
            probes[name] = ServerProbe(None, breaker, timeout=timeout, error=error)
    return probes


async def read_digest(settings: Settings, model: str) -> str:
    """The digest of a model's weights, as Ollama tells it; "" if it does not. Raises ModelError if it is down."""
    try:
        options = client_options(settings, read_timeout=settings.servers.connect_timeout)
        async with httpx.AsyncClient(**options) as client:
            listed = (await client.get(f"{settings.servers.ollama_url}/api/tags")).raise_for_status().json()
        found = {entry["name"]: str(entry.get("digest") or "") for entry in listed["models"]}
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise ModelError("The server cannot be reached.") from error
    except (ValueError, KeyError, TypeError, AttributeError):
        return ""
    return found.get(model) or found.get(f"{model}:latest", "")

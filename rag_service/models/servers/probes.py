"""Is a model server there? Asked by /health/ready, without waking a model."""

from __future__ import annotations

import time
from collections.abc import Mapping

import httpx

from rag_service.errors import EmbeddingError, ModelError
from rag_service.models.servers.breaker import CircuitBreaker, CircuitOpenError
from rag_service.models.servers.tls import tls_context
from rag_service.settings import Settings

KEPT_SECONDS = 2.0  # an outcome is kept this long: a load balancer may ask many times a second


class ServerProbe:
    """Asks one address of a server that costs it nothing."""

    def __init__(
        self,
        url: str,
        breaker: CircuitBreaker,
        *,
        timeout: float,
        error: type[ModelError] = ModelError,
        headers: Mapping[str, str] | None = None,
    ):
        """
        Args:
            url: what is fetched.
            breaker: of the same server; while it is open the server is not asked.
            timeout: seconds.
            error: class of what `check` raises.
            headers: with the server's key, if it wants one.
        """
        self._url = url
        self._breaker = breaker
        self._timeout = timeout
        self._error = error
        self._headers = dict(headers or {})
        self._asked_at = -KEPT_SECONDS
        self._failure: ModelError | None = None

    async def check(self) -> None:
        """Return when the server answers.

        Raises:
            CircuitOpenError: it failed several times in a row and is left alone.
            ModelError: of the class given; it does not answer.
        """
        if self._breaker.state == "open":
            raise CircuitOpenError("The server failed several times in a row and is left alone for a while.")
        if time.monotonic() - self._asked_at >= KEPT_SECONDS:
            self._failure = await self._ask()
            self._asked_at = time.monotonic()
        if self._failure is not None:
            raise self._failure

    async def _ask(self) -> ModelError | None:
        try:
            async with httpx.AsyncClient(timeout=self._timeout, verify=tls_context()) as client:
                reply = await client.get(self._url, headers=self._headers)
        except httpx.HTTPError as error:
            failure = self._error("The server cannot be reached.")
            failure.__cause__ = error
            return failure
        return None if reply.is_success else self._error(f"The server answers with status {reply.status_code}.")


def build_probes(settings: Settings, *, chat: CircuitBreaker, embedding: CircuitBreaker) -> dict[str, ServerProbe]:
    """Probes of the servers that the settings name, by dependency; what runs in this process has none."""
    timeout = min(settings.connect_timeout, 2.0)  # /health/ready gives each probe three seconds
    probes = {}
    for name, provider, breaker, error in (
        ("chat", settings.chat_provider, chat, ModelError),
        ("embedding", settings.embedding_provider, embedding, EmbeddingError),
    ):
        if provider == "ollama":
            url = f"{settings.ollama_url}/api/version"
            probes[name] = ServerProbe(url, breaker, timeout=timeout, error=error)
        elif provider == "openai_like":
            url = f"{settings.openai_url}/models"
            probes[name] = ServerProbe(url, breaker, timeout=timeout, error=error, headers=bearer(settings))
    return probes


def bearer(settings: Settings) -> dict[str, str]:
    """The header that carries RAG_OPENAI_API_KEY, if there is one."""
    key = settings.openai_api_key
    return {} if key is None else {"Authorization": f"Bearer {key.get_secret_value()}"}

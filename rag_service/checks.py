"""`rag-service check --live`: asks everything that the settings name, one line each, before the first user does.

Each line says what works, with its latency, or names the setting at fault and the mend.
"""

from __future__ import annotations

import asyncio
import ipaddress
import time
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import httpx
import psycopg
from llama_index.core.base.llms.types import ChatMessage, MessageRole

from rag_service.definitions import list_indices, load_index
from rag_service.errors import ConfigurationError, RagError
from rag_service.ingest.reingest import Reingestion, describe_stale
from rag_service.ingest.wiring import current_fingerprints
from rag_service.models.chat import build_chat
from rag_service.models.embeddings import build_embedding, close_embedding, warm_up
from rag_service.models.extractive import ExtractiveLLM
from rag_service.models.probes import bearer
from rag_service.models.rerankers import build_reranker
from rag_service.models.resilience import RetryPolicy
from rag_service.query.prompt import load_prompts
from rag_service.settings import Settings
from rag_service.store.replica import Replica, replica_conninfo
from rag_service.store.session import Database
from rag_service.text.tokens import count_tokens
from rag_service.text.words import terms

PATIENCE = 60.0  # seconds for one probe: a server may have to load its model first
_ONE_TRY = RetryPolicy(attempts=1)
_LEAST_CONTEXT = 500  # tokens of passages, below which an answer has nothing to stand on


@dataclass(frozen=True, kw_only=True)
class CheckResult:
    """One line of the report."""

    name: str  # database, documents, replica, embedding, chat or reranker
    ok: bool
    detail: str  # what was found, or what is wrong and how to mend it
    latency_ms: float

    @property
    def line(self) -> str:
        """As printed."""
        return f"{self.name}: {'ok' if self.ok else 'FAILED'} · {self.detail} · {self.latency_ms:.0f} ms"


async def check_live(settings: Settings) -> list[CheckResult]:
    """Ask the configured database, its documents, its replica, embedding, chat model and reranker, all at once."""
    probes: dict[str, Callable[[Settings], Awaitable[str]]] = {
        "database": check_database,
        "documents": check_documents,
        "embedding": check_embedding,
        "chat": check_chat,
        "reranker": check_reranker,
    }
    if settings.enabled and settings.database_replica_url is not None:
        probes["replica"] = check_replica
    return list(await asyncio.gather(*(_run(name, probe, settings) for name, probe in probes.items())))


async def _run(name: str, probe: Callable[[Settings], Awaitable[str]], settings: Settings) -> CheckResult:
    started = time.perf_counter()
    try:
        async with asyncio.timeout(PATIENCE):
            detail, ok = await probe(settings), True
    except RagError as error:
        detail, ok = f"{error.message} {error.help}", False
    except TimeoutError:
        detail, ok = f"No answer within {PATIENCE:.0f} s.", False
    return CheckResult(name=name, ok=ok, detail=detail, latency_ms=(time.perf_counter() - started) * 1000)


async def check_database(settings: Settings) -> str:
    """Reachable, migrated, as a role that row-level security holds for, with the right dimension."""
    if not settings.enabled:
        return "not used (RAG_ENABLED is false)"
    if settings.database_url is None:
        return f"embedded in {settings.data_dir}, started with the service"
    database = Database(settings.database_url.get_secret_value(), pool_size=1, timeout=settings.database_timeout)
    await database.open()
    try:
        await database.check()
        async with database.transaction(None) as connection:
            cursor = await connection.execute(
                "SELECT current_setting('server_version'), atttypmod FROM pg_attribute"
                " WHERE attrelid = 'rag.data_chunks'::regclass AND attname = 'embedding'"
            )
            row = await cursor.fetchone()
    except psycopg.Error as error:
        raise ConfigurationError(
            "RAG_DATABASE_URL: the schema cannot be read; run `rag-service migrate`.", field="RAG_DATABASE_URL"
        ) from error
    finally:
        await database.close()
    version, dimension = row if row is not None else ("?", settings.embedding_dimension)
    if dimension != settings.embedding_dimension:
        raise ConfigurationError(
            f"RAG_EMBEDDING_DIMENSION is {settings.embedding_dimension}, the database holds vectors of {dimension}: "
            f"use an embedding model with {dimension} dimensions, or ingest into a new database.",
            field="RAG_EMBEDDING_DIMENSION",
        )
    return f"PostgreSQL {version}, {dimension} dimensions"


async def check_documents(settings: Settings) -> str:
    """Whether any were made by other settings than those in force. That is no failure: they are found as they are."""
    if not settings.enabled:
        return "not used (RAG_ENABLED is false)"
    if settings.database_url is None:
        return "looked at when the service starts"
    indices = {
        name: load_index(name, indices_path=settings.indices_path)
        for name in list_indices(indices_path=settings.indices_path)
    }
    database = Database(settings.database_url.get_secret_value(), pool_size=1, timeout=settings.database_timeout)
    await database.open()
    try:
        await database.check()
        stale = await Reingestion(database, current_fingerprints(settings, indices)).count()
    finally:
        await database.close()
    return "; ".join(map(describe_stale, stale)) or "made by the settings in force"


async def check_replica(settings: Settings) -> str:
    """It is a replica of the database with its schema, its clock is right, and how far it is behind."""
    if settings.database_url is None or settings.database_replica_url is None:
        return "none"
    database, standby = (
        Database(url, pool_size=1, timeout=settings.database_timeout)
        for url in (
            settings.database_url.get_secret_value(),
            replica_conninfo(settings.database_replica_url.get_secret_value()),
        )
    )
    replica = Replica(database, standby, pause=settings.breaker_seconds, timeout=settings.database_timeout)
    await database.open()
    await standby.open()
    try:
        await replica.check()
        lag = await replica.lag()
    finally:
        await standby.close()
        await database.close()
    return "up to date" if lag is None else f"lags: {lag}"


async def check_embedding(settings: Settings) -> str:
    """The model is there, and its vectors have the length that is set."""
    await _check_server(settings, settings.embedding_provider, settings.embedding_model, "RAG_EMBEDDING_MODEL")
    embedding = build_embedding(settings, retries=_ONE_TRY)
    try:
        await warm_up(embedding)
    finally:
        await close_embedding(embedding)
    return f"{settings.embedding_provider} {settings.embedding_model}, {settings.embedding_dimension} dimensions"


async def check_chat(settings: Settings) -> str:
    """The model is there and speaks, and its window holds the prompt."""
    if settings.chat_provider == "extractive":
        return "extractive, needs no model server"
    known = await _check_server(settings, settings.chat_provider, settings.model_name, "RAG_MODEL_NAME")
    if known is not None and known < settings.context_window:
        raise ConfigurationError(
            f"RAG_CONTEXT_WINDOW is {settings.context_window}, but {settings.model_name} reads {known} tokens at most: "
            f"set it to {known} or less.",
            field="RAG_CONTEXT_WINDOW",
        )
    _check_window(settings)
    chat = build_chat(settings, extractive=ExtractiveLLM(), retries=_ONE_TRY)
    message = ChatMessage(role=MessageRole.USER, content="Answer with the word: ready")
    try:
        async with aclosing(chat.stream([message], max_tokens=8)) as deltas:
            async for _ in deltas:
                pass
    finally:
        await chat.aclose()
    limit = "" if known is None else f" of {known}"
    return f"{settings.chat_provider} {settings.model_name}, window {settings.context_window}{limit} tokens"


async def check_reranker(settings: Settings) -> str:
    """The strategy can be used, and its model is loaded once."""
    chat = build_chat(settings, extractive=ExtractiveLLM(), retries=_ONE_TRY)
    try:
        reranker = build_reranker(settings, analyse=lambda text: terms(text, "en"), chat=chat)
        await reranker.warm_up()
    finally:
        await chat.aclose()
    return settings.rerank_strategy


def _check_window(settings: Settings) -> None:
    """The longest prompt template, the answer and some passages must fit together.

    Raises:
        ConfigurationError: they do not.
    """
    prompts = load_prompts(settings.prompts_path, replacement=settings.prompt_template_path)
    longest = max(count_tokens(template.system + template.user) for template in prompts.templates.values())
    needed = longest + settings.max_tokens + _LEAST_CONTEXT
    if needed > settings.context_window:
        raise ConfigurationError(
            f"RAG_CONTEXT_WINDOW is {settings.context_window}, but the prompt ({longest} tokens), the answer "
            f"(RAG_MAX_TOKENS {settings.max_tokens}) and {_LEAST_CONTEXT} tokens of passages need {needed}: "
            "raise RAG_CONTEXT_WINDOW or lower RAG_MAX_TOKENS.",
            field="RAG_CONTEXT_WINDOW",
        )


async def _check_server(settings: Settings, provider: str, model: str, setting: str) -> int | None:
    """Make sure that a model server has the model; returns the model's window if the server tells.

    Raises:
        ConfigurationError: the URL is wrong or points back here, or the model is not there.
    """
    if provider == "ollama":
        _check_not_ourselves(settings, settings.ollama_url, "RAG_OLLAMA_URL")
        return await _check_ollama(settings, model, setting)
    if provider == "openai_like":
        _check_not_ourselves(settings, settings.openai_url, "RAG_OPENAI_URL")
        await _check_openai_like(settings, model, setting)
    return None


def _check_not_ourselves(settings: Settings, url: str, setting: str) -> None:
    parts = urlsplit(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    if port == settings.port and _is_this_machine(parts.hostname or "", settings.host):
        raise ConfigurationError(
            f"{setting} points back to this service ({parts.hostname}:{port}): set it to the model server's address, "
            "or move one of them with RAG_PORT.",
            field=setting,
        )


def _is_this_machine(host: str, own: str) -> bool:
    if host in {own, "localhost"}:
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    return address.is_loopback or address.is_unspecified


async def _check_ollama(settings: Settings, model: str, setting: str) -> int | None:
    url = settings.ollama_url
    listed = await _fetch(f"{url}/api/tags", "RAG_OLLAMA_URL", settings)
    names = [entry.get("name", "") for entry in listed.get("models", []) if isinstance(entry, dict)]
    if model not in names and f"{model}:latest" not in names:
        raise ConfigurationError(
            f"{setting}: {url} has no model {model!r}; run `ollama pull {model}`, or choose one of: {_some(names)}.",
            field=setting,
        )
    shown = await _fetch(f"{url}/api/show", "RAG_OLLAMA_URL", settings, body={"model": model})
    lengths = [value for key, value in shown.get("model_info", {}).items() if key.endswith(".context_length")]
    return int(lengths[0]) if lengths else None


async def _check_openai_like(settings: Settings, model: str, setting: str) -> None:
    listed = await _fetch(f"{settings.openai_url}/models", "RAG_OPENAI_URL", settings)
    names = [entry.get("id", "") for entry in listed.get("data", []) if isinstance(entry, dict)]
    if names and model not in names:
        raise ConfigurationError(
            f"{setting}: {settings.openai_url} has no model {model!r}; choose one of: {_some(names)}.", field=setting
        )


async def _fetch(url: str, setting: str, settings: Settings, *, body: Any = None) -> dict[str, Any]:
    """JSON from a model server.

    Raises:
        ConfigurationError: it cannot be reached, or is something else; names the setting.
    """
    headers = bearer(settings) if setting == "RAG_OPENAI_URL" else {}
    try:
        async with httpx.AsyncClient(timeout=settings.connect_timeout, headers=headers) as client:
            reply = await (client.get(url) if body is None else client.post(url, json=body))
            found = reply.raise_for_status().json()
    except httpx.HTTPStatusError as error:
        raise ConfigurationError(
            f"{setting}: {url} answers with status {error.response.status_code}; is this the right server and path"
            f"{', and RAG_OPENAI_API_KEY its key' if setting == 'RAG_OPENAI_URL' else ''}?",
            field=setting,
        ) from error
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise ConfigurationError(
            f"{setting}: nothing answers at {url}; start the server or correct the URL.", field=setting
        ) from error
    except ValueError as error:
        raise ConfigurationError(
            f"{setting}: {url} does not answer in JSON; correct the URL.", field=setting
        ) from error
    return found if isinstance(found, dict) else {}


def _some(names: list[str]) -> str:
    shown = ", ".join(sorted(names)[:8]) or "none is installed"
    return f"{shown}, …" if len(names) > 8 else shown

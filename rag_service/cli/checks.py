"""`rag-service check --live`: a line for each store and model, with its latency or the setting to fix."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import psycopg
from llama_index.core.base.llms.types import ChatMessage, MessageRole

from rag_service.answering.prompt.judging import judge_prompt_revision, write_judge_prompt
from rag_service.answering.prompt.templates import load_prompts
from rag_service.auth.provider import Provider
from rag_service.cli.model_servers import check_server
from rag_service.domain import LOCAL_ADMIN, Purpose
from rag_service.errors import ConfigurationError, RagError
from rag_service.fitting.background import DETAILS
from rag_service.fitting.examination import WAITING, JudgeExaminer
from rag_service.indices import load_indices
from rag_service.ingest.reingest import Reingestion, describe_stale
from rag_service.ingest.wiring import current_fingerprints
from rag_service.language.words import count_tokens
from rag_service.models.embedding.embeddings import build_embedding
from rag_service.models.embedding.guarded import close_embedding, warm_up
from rag_service.models.embedding.packaged import HEAD_FILE
from rag_service.models.embedding.qa_head import QuestionAnsweringHead
from rag_service.models.embedding.relevance import ModelRelevance
from rag_service.models.judge.judge import JudgedClaim
from rag_service.models.judge.judges import build_judge
from rag_service.models.llm.model import build_chat, collect
from rag_service.models.reranking.rerankers import build_reranker
from rag_service.models.servers.resilience import RetryPolicy
from rag_service.settings import Settings
from rag_service.settings.models import EMBEDDING_PROVIDERS
from rag_service.store.migrate import describe_dimension
from rag_service.store.opening import make_database, open_database
from rag_service.store.relevance_fits import read_model_fit
from rag_service.store.replication.replica import Replica, replica_conninfo

if TYPE_CHECKING:
    from rag_service.models.llm.gguf import LlamaServer

PATIENCE = 60.0  # seconds per probe: a server may have to load its model first
_ONE_TRY = RetryPolicy(attempts=1)
_MIN_CONTEXT = 500  # tokens that must be left for passages

Probe = Callable[[Settings], Awaitable[str]]  # describes what was found; raises RagError


@dataclass(frozen=True, kw_only=True)
class CheckResult:
    """One line of the report."""

    name: str  # database, documents, replica, sign-in, embedding, relevance, chat, reranker or judge
    ok: bool
    detail: str  # what was found, or what is wrong and how to fix it
    latency_ms: float

    @property
    def line(self) -> str:
        return f"{self.name}: {'ok' if self.ok else 'FAILED'} · {self.detail} · {self.latency_ms:.0f} ms"


async def check_live(settings: Settings) -> list[CheckResult]:
    """Check database, documents, replica and provider, then embedding, chat model, reranker and judge."""
    stores: dict[str, Probe] = {"database": check_database, "documents": check_documents}
    if settings.retrieval.enabled and settings.database.replica_url is not None:
        stores["replica"] = check_replica
    if settings.sign_in.way == "provider":
        stores["sign-in"] = check_provider
    # Models last: loading their libraries can block connections for seconds on a busy machine.
    found = await _run_all(stores, settings)
    async with _own_server(settings) as server:
        models: dict[str, Probe] = {
            "embedding": check_embedding,
            "relevance": check_relevance,
            "chat": partial(check_chat, server=server),
            "reranker": partial(check_reranker, server=server),
            "judge": partial(check_judge, server=server),
        }
        return [*found, *await _run_all(models, settings)]


@asynccontextmanager
async def _own_server(settings: Settings) -> AsyncIterator[LlamaServer | None]:
    """The server that the checks of a model share; None if there is none, and if it cannot be made: they say why."""
    server = None
    if settings.chat.provider == "gguf":
        from rag_service.models.llm.gguf import LlamaServer

        with suppress(ConfigurationError):
            server = LlamaServer.of(settings)
    try:
        yield server
    finally:
        if server is not None:
            await server.aclose()


async def _run_all(probes: Mapping[str, Probe], settings: Settings) -> list[CheckResult]:
    return list(await asyncio.gather(*(_run(name, probe, settings) for name, probe in probes.items())))


async def _run(name: str, probe: Probe, settings: Settings) -> CheckResult:
    started = time.perf_counter()
    try:
        async with asyncio.timeout(PATIENCE):
            detail, ok = await probe(settings), True
    except RagError as error:
        detail, ok = f"{error.message} {error.help}", False
    except TimeoutError:
        detail, ok = f"No reply within {PATIENCE:.0f} s.", False
    return CheckResult(name=name, ok=ok, detail=detail, latency_ms=(time.perf_counter() - started) * 1000)


async def check_database(settings: Settings) -> str:
    """Reachable and migrated, its role subject to row-level security, its vectors of the right dimension."""
    if not settings.retrieval.enabled:
        return "not used (RAG_ENABLED is false)"
    if settings.database.url is None:
        return f"embedded in {settings.database.data_dir}, started with the service"
    try:
        async with open_database(settings, pool_size=1) as database, database.transaction(None) as connection:
            cursor = await connection.execute(
                "SELECT current_setting('server_version'), atttypmod FROM pg_attribute"
                " WHERE attrelid = 'rag.data_chunks'::regclass AND attname = 'embedding'"
            )
            row = await cursor.fetchone()
    except psycopg.Error as error:
        raise ConfigurationError(
            "RAG_DATABASE_URL: the schema cannot be read; run `rag-service migrate`.", field="RAG_DATABASE_URL"
        ) from error
    version, dimension = row if row is not None else ("?", settings.embedding.dimension)
    if dimension != settings.embedding.dimension:
        raise ConfigurationError(
            describe_dimension(dimension, settings.embedding.dimension), field="RAG_EMBEDDING_DIMENSION"
        )
    return f"PostgreSQL {version}, {dimension} dimensions"


async def check_documents(settings: Settings) -> str:
    """Reports documents ingested with other settings. Searches still find them, so this is not a failure."""
    if not settings.retrieval.enabled:
        return "not used (RAG_ENABLED is false)"
    if settings.database.url is None:
        return "checked when the service starts"
    indices = load_indices(indices_path=settings.indices.path)
    async with open_database(settings, pool_size=1) as database:
        stale = await Reingestion(database, current_fingerprints(settings, indices)).count()
    return "; ".join(map(describe_stale, stale)) or "up to date with the current settings"


async def check_replica(settings: Settings) -> str:
    """A replica of the database, with its schema and the right clock; reports the lag."""
    if settings.database.url is None or settings.database.replica_url is None:
        return "none"
    url = replica_conninfo(settings.database.replica_url.get_secret_value())
    standby = make_database(settings, url, pool_size=1)
    async with open_database(settings, pool_size=1) as database:
        await standby.open()
        try:
            replica = Replica(
                database, standby, pause=settings.servers.breaker_seconds, timeout=settings.database.timeout
            )
            await replica.check()
            lag = await replica.lag()
        finally:
            await standby.close()
    return "up to date" if lag is None else f"lags: {lag}"


async def check_provider(settings: Settings) -> str:
    """The OpenID provider, from its published metadata."""
    return await Provider(settings).check()


async def check_embedding(settings: Settings) -> str:
    """The model exists, and its vectors have the configured length."""
    await check_server(settings, settings.embedding.provider, settings.embedding.model, "RAG_EMBEDDING_MODEL")
    embedding = build_embedding(settings, retries=_ONE_TRY)
    try:
        await warm_up(embedding)
    finally:
        await close_embedding(embedding)
    return f"{settings.embedding.provider} {settings.embedding.model}, {settings.embedding.dimension} dimensions"


async def check_relevance(settings: Settings) -> str:
    """State of the relevance fit. A background fit that is still running is not a failure."""
    if not settings.retrieval.enabled:
        return "not used (RAG_ENABLED is false)"
    model = settings.embedding.model
    if settings.embedding.provider not in EMBEDDING_PROVIDERS:  # a class says the name of its model itself
        model = build_embedding(settings).model_name
    relevance = ModelRelevance(model, watched=settings.retrieval.fit_relevance)
    if relevance.watched and settings.database.url is None:
        return "checked when the service starts"
    if relevance.watched:
        async with open_database(settings, pool_size=1) as database, database.transaction(LOCAL_ADMIN) as connection:
            relevance.known = await read_model_fit(connection, relevance.model)
    return DETAILS[relevance.state]


async def check_chat(settings: Settings, *, server: LlamaServer | None) -> str:
    """The model exists and answers, and the prompt fits into its context window."""
    if settings.chat.provider == "extractive":
        QuestionAnsweringHead(HEAD_FILE)  # raises where it is damaged
        return "extractive, no model server needed"
    known = await check_server(settings, settings.chat.provider, settings.chat.model, "RAG_MODEL_NAME")
    if known is not None and known < settings.chat.context_window:
        raise ConfigurationError(
            f"RAG_CONTEXT_WINDOW is {settings.chat.context_window}, but {settings.chat.model} has a context window of"
            f" {known} tokens. Set it to {known} or less.",
            field="RAG_CONTEXT_WINDOW",
        )
    _check_window(settings)
    chat = build_chat(settings, retries=_ONE_TRY, server=server)
    message = ChatMessage(role=MessageRole.USER, content="Answer with the word: ready")
    try:
        if chat.server is not None:
            await _require_running(chat.server)
        # Without a limit of its own: some models think first.
        await collect(chat.stream([message], purpose=Purpose.CHECK))
    finally:
        await chat.aclose()
    limit = "" if known is None else f" of {known}"
    return f"{settings.chat.provider} {chat.model_name}, window {settings.chat.context_window}{limit} tokens"


async def _require_running(server: LlamaServer) -> None:
    import httpx

    try:
        await server.address()
    except httpx.ConnectError as error:
        raise ConfigurationError(
            f"RAG_MODEL_NAME: llama.cpp cannot run {server.name}: {error}", field="RAG_MODEL_NAME"
        ) from error


async def check_reranker(settings: Settings, *, server: LlamaServer | None) -> str:
    """The strategy works, and its model loads."""
    chat = build_chat(settings, retries=_ONE_TRY, server=server)
    try:
        reranker = build_reranker(settings, chat=chat)
        await warm_up(reranker)
    finally:
        await chat.aclose()
    return settings.rerank.strategy


async def check_judge(settings: Settings, *, server: LlamaServer | None) -> str:
    """The judge loads, gives a verdict on a sentence that quotes its passage, and has passed its examination."""
    chat = build_chat(settings, retries=_ONE_TRY, server=server)
    prompts = load_prompts(settings.answers.prompts_path, replacement=settings.answers.template_path)
    judge = None
    try:
        judge = build_judge(
            settings,
            chat=chat,
            write_prompt=partial(write_judge_prompt, prompts),
            prompt_revision=judge_prompt_revision(prompts),
        )
        if judge is None:
            return "none: reworded sentences stay unchecked"
        await judge.warm_up()
        said = "Each request must name its author."
        claim = JudgedClaim(sentence=said, evidence=said, passage=said, language="en")
        verdict = (await judge.judge([claim]))[0]
    finally:
        if judge is not None:
            await judge.aclose()
        await chat.aclose()
    if verdict is None:
        raise ConfigurationError(
            f"The judge {judge.name} failed or gave no verdict within {settings.judge.timeout:.0f} s.",
            field="RAG_JUDGE",
        )
    if settings.database.url is None or not settings.retrieval.enabled:
        return f"{judge.describe()}; examined when the service starts"
    async with open_database(settings, pool_size=1) as database:
        examiner = JudgeExaminer(judge, database)
        await examiner.load()
    outcome = judge.examination
    if outcome is not None and outcome.state != "passed":
        raise ConfigurationError(
            f"RAG_JUDGE: {judge.name}. {outcome.describe()} Choose another judge or chat model, or RAG_JUDGE=none.",
            field="RAG_JUDGE",
        )
    return f"{judge.describe()}. {WAITING if outcome is None else outcome.describe()}"


def _check_window(settings: Settings) -> None:
    """The longest prompt template, the answer and some passages must fit together."""
    prompts = load_prompts(settings.answers.prompts_path, replacement=settings.answers.template_path)
    longest = max(count_tokens(template.system + template.user) for template in prompts.templates.values())
    needed = longest + settings.chat.max_tokens + _MIN_CONTEXT
    if needed > settings.chat.context_window:
        raise ConfigurationError(
            f"RAG_CONTEXT_WINDOW is {settings.chat.context_window}, but the prompt ({longest} tokens), the answer "
            f"(RAG_MAX_TOKENS {settings.chat.max_tokens}) and {_MIN_CONTEXT} tokens of passages need {needed}: "
            "raise RAG_CONTEXT_WINDOW or lower RAG_MAX_TOKENS.",
            field="RAG_CONTEXT_WINDOW",
        )

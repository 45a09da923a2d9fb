"""The application of RAG_ENABLED=false: the same answer API over a JSON file, no database, no vectors."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager

from litestar import Litestar

from rag_service.api.application import create_litestar
from rag_service.api.metrics import metrics_route
from rag_service.api.services import Services
from rag_service.api.wire.metering import meter_application, metered_answer, metered_search
from rag_service.definitions import load_index
from rag_service.domain import AnswerQuery, Identity
from rag_service.errors import ConfigurationError, PermissionDeniedError
from rag_service.ingest.pipeline import DocumentInput, Ingested
from rag_service.metrics import Metrics
from rag_service.models.chat.chat import ChatModel, build_chat
from rag_service.models.extractive.extractive import ExtractiveLLM
from rag_service.models.reranking.rerankers import build_reranker
from rag_service.query.engine import AnswerEngine
from rag_service.query.events import AnswerEvent
from rag_service.query.prompting.prompt import load_prompts
from rag_service.query.retrieval.keyword import KeywordRetriever
from rag_service.query.retrieval.knowledge_base import load_knowledge_base
from rag_service.settings import Settings
from rag_service.text.words import terms


class ReadOnlyKnowledgeError(PermissionDeniedError):
    """There is nothing to upload to."""

    code = "knowledge_base_read_only"
    help = "Edit the file at RAG_KNOWLEDGE_BASE_PATH and start again, or turn RAG_ENABLED on."


def build_keyword_engine(settings: Settings, identity: Identity) -> tuple[AnswerEngine, ChatModel]:
    """The answer engine over the knowledge base; close the chat model at the end.

    Raises:
        DefinitionError: the knowledge base is missing or wrong; names file, entry and mend.
    """
    retriever = KeywordRetriever(
        load_knowledge_base(settings.knowledge_base_path),
        load_index(settings.index, indices_path=settings.indices_path),
    )
    chat = build_chat(settings, extractive=ExtractiveLLM())
    reranker = build_reranker(settings, analyse=lambda text: terms(text, "en"), chat=chat)
    prompts = load_prompts(settings.prompts_path, replacement=settings.prompt_template_path)
    return AnswerEngine(retriever, chat, reranker, prompts, settings, identity=identity), chat


def create_keyword_app(settings: Settings, *, identity: Identity) -> Litestar:
    """The web application; everybody who reaches it acts as `identity`.

    Raises:
        ConfigurationError: keys are required, which live in the database that this mode does without.
    """
    if settings.auth != "none":
        raise ConfigurationError(
            "RAG_ENABLED=false knows no users: set RAG_AUTH to `none`, or turn RAG_ENABLED on.", field="RAG_AUTH"
        )
    if settings.rate_limit_per_minute or settings.rate_limit_answers_per_minute:
        raise ConfigurationError(
            "RAG_ENABLED=false counts nothing: unset RAG_RATE_LIMIT_*, or turn RAG_ENABLED on.",
            field="RAG_RATE_LIMIT_PER_MINUTE",
        )
    engine, chat = build_keyword_engine(settings, identity)
    metrics = Metrics()
    metrics.watch_circuit("chat model", lambda: chat.breaker.state == "open")

    @asynccontextmanager
    async def lifespan(_: Litestar) -> AsyncGenerator[None]:
        yield
        await chat.aclose()

    def answer(query: AnswerQuery, caller: Identity) -> AsyncGenerator[AnswerEvent]:
        return metered_answer(engine.stream(query, caller), metrics)

    async def ingest(source: DocumentInput, caller: Identity) -> Ingested:
        raise ReadOnlyKnowledgeError("The knowledge base is a file; documents cannot be uploaded to it.")

    async def authenticate(_: Mapping[str, str]) -> Identity:
        return identity

    services = Services(
        settings=settings,
        answer=answer,
        search=metered_search(engine.search, metrics),
        ingest=ingest,
        probes={},
        authenticate=authenticate,
    )
    application = create_litestar(services, more_routes=[metrics_route(metrics)], lifespan=[lifespan])
    meter_application(application, metrics)
    return application

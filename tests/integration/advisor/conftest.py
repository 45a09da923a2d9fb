"""The advisor on a real database with three retirement articles, behind its routes on a real socket."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx
import pytest

from rag_service.advisor.advisor import Advisor
from rag_service.advisor.article import ArticleFinder
from rag_service.answering.engine import CitedQueryEngine, build_engine
from rag_service.answering.prompt.templates import load_prompts
from rag_service.api.advisor.routes import AdvisorServices, advisor_router
from rag_service.domain import LOCAL_ADMIN, CorpusKind, Identity, ParsedDocument
from rag_service.indices import load_index
from rag_service.ingest.ingestor import Ingestor
from rag_service.models.llm.model import build_chat
from rag_service.models.reranking.reranker import HeuristicReranker
from rag_service.models.servers.resilience import RetryPolicy
from rag_service.readers.file_reader import FileReader
from rag_service.readers.parse import parse
from rag_service.retrieval.hybrid import HybridRetriever
from rag_service.settings import Settings
from rag_service.store.corpora import create_corpus
from rag_service.store.database import Database
from rag_service.store.documents.documents import DocumentInput
from tests.conftest import DIMENSION, FakeEmbedding
from tests.doubles.ollama import ollama
from tests.loop_watch import apart
from tests.serving import serving_here
from tests.unit.api.samples import Script, application_over

__all__ = ["ollama"]

ADMIN = LOCAL_ADMIN
ARTICLES = ("rk-loan-001", "rk-hard-001", "rk-loan-002")


@dataclass(frozen=True)
class Opened:
    """An advisor and its client."""

    advisor: Advisor
    engine: CitedQueryEngine  # for plain answers over the same articles
    client: httpx.AsyncClient
    corpus_id: UUID


OpenAdvisor = Callable[..., Awaitable[Opened]]


@pytest.fixture
async def open_advisor(database: Database, fake_embedding: FakeEmbedding, checkout: Path) -> AsyncIterator[OpenAdvisor]:
    """Opens an advisor over three articles and `more`, by file name; keywords are settings."""
    # The threshold of the shipped definition is set for the real embedding.
    index = load_index("retirement")
    index = index.model_copy(update={"query": index.query.model_copy(update={"threshold": None, "calibration": None})})
    files = sorted((checkout / "indices/retirement/documents").glob("*.md"))
    documents = [(file.name, file.read_bytes()) for file in files if file.stem.startswith(ARTICLES)]
    async with AsyncExitStack() as stack:

        async def opened(more: Mapping[str, bytes] | None = None, **changes: Any) -> Opened:
            settings = Settings(**{"similarity_threshold": 0.05, **changes})
            chat = build_chat(settings, retries=RetryPolicy(first_wait=0.01, jitter=0.0))
            stack.push_async_callback(chat.aclose)
            async with database.transaction(ADMIN) as connection:
                corpus = await create_corpus(
                    connection, ADMIN, name="retirement", kind=CorpusKind.GLOBAL, index_name="retirement"
                )
            ingestor = Ingestor(database, fake_embedding, FileReader(_parse), model="fake", dimension=DIMENSION)
            for name, data in [*documents, *(more or {}).items()]:
                await ingestor.ingest(
                    DocumentInput(data=data, file_name=name), corpus=corpus, index=index, identity=ADMIN
                )
            indices = {"retirement": index, "general": load_index("general")}
            retriever = HybridRetriever(database, fake_embedding, indices, default_index="general")
            reranker = HeuristicReranker()
            engine = build_engine(retriever, chat, reranker, load_prompts(), settings)
            articles = ArticleFinder(database=database, engine=engine, indices=indices, settings=settings)
            advisor = Advisor(articles=articles, chat=chat, prompts=load_prompts(), settings=settings)
            client = await stack.enter_async_context(_serving(advisor, settings))
            return Opened(advisor, engine, client, corpus.id)

        yield opened


async def _parse(data: bytes, name: str) -> ParsedDocument:
    with apart():
        return parse(data, file_name=name)


@asynccontextmanager
async def _serving(advisor: Advisor, settings: Settings) -> AsyncIterator[httpx.AsyncClient]:
    async def authenticate(_: Any) -> Identity:
        return ADMIN

    services = replace(Script().services(settings), authenticate=authenticate)
    advisor_services = AdvisorServices(
        settings=settings, required_data=advisor.required_data, generate_response=advisor.generate_response
    )
    application = application_over(services, more_routes=[advisor_router()], advisor=advisor_services)
    async with serving_here(application) as client:
        yield client

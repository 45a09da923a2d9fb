"""The advisor on a real database with the retirement index, behind its routes on a real socket."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn

from rag_service import app
from rag_service.api.advisor import advisor_router
from rag_service.api.advisor_services import AdvisorServices
from rag_service.api.application import create_litestar
from rag_service.app import LOCAL_ADMIN, Components, open_components
from rag_service.domain import CorpusKind, Identity
from rag_service.ingest.pipeline import DocumentInput
from rag_service.models.rerank_heuristic import HeuristicReranker
from rag_service.query.advisor import Advisor
from rag_service.query.prompt import load_prompts
from rag_service.settings import Settings
from rag_service.store.corpora import create_corpus
from rag_service.store.embedded import EmbeddedServer
from rag_service.text.words import terms
from tests.conftest import FakeEmbedding
from tests.doubles.ollama import ollama
from tests.unit.api.samples import Script

__all__ = ["ollama"]

ARTICLES = ("rk-loan-001", "rk-hard-001", "rk-loan-002")
OpenAdvisor = Callable[..., Any]


@dataclass(frozen=True)
class Opened:
    """An advisor and its client."""

    advisor: Advisor
    components: Components
    client: httpx.AsyncClient
    corpus_id: Any


@pytest.fixture
async def open_advisor(
    database_server: EmbeddedServer, fake_embedding: FakeEmbedding, monkeypatch: pytest.MonkeyPatch, checkout: Path
) -> AsyncIterator[OpenAdvisor]:
    """Opens an advisor over three articles; keywords are settings."""
    monkeypatch.setattr(app, "build_embedding", lambda _: fake_embedding)
    async with AsyncExitStack() as stack:

        async def opened(**settings: Any) -> Opened:
            chosen = Settings(
                **{"database_url": database_server.service_conninfo, "similarity_threshold": 0.1, **settings}
            )
            components = await stack.enter_async_context(open_components(chosen))
            corpus_id = await _ingest(components, checkout / "indices/retirement/documents")
            advisor = Advisor(
                components.database,
                components.retriever,
                components.chat,
                HeuristicReranker(lambda text: terms(text, "en")),
                load_prompts(),
                components.indices,
                chosen,
            )
            client = await stack.enter_async_context(_serving(advisor, chosen))
            return Opened(advisor, components, client, corpus_id)

        yield opened


async def _ingest(components: Components, folder: Path) -> Any:
    async with components.database.transaction(LOCAL_ADMIN) as connection:
        corpus = await create_corpus(
            connection, LOCAL_ADMIN, name="retirement", kind=CorpusKind.GLOBAL, index_name="retirement"
        )
    for file in sorted(folder.glob("*.md")):
        if file.stem.startswith(ARTICLES):
            document = DocumentInput(data=file.read_bytes(), file_name=file.name)
            index = components.indices["retirement"]
            await components.ingestor.ingest(document, corpus=corpus, index=index, identity=LOCAL_ADMIN)
    return corpus.id


@asynccontextmanager
async def _serving(advisor: Advisor, settings: Settings) -> AsyncIterator[httpx.AsyncClient]:
    services = AdvisorServices(
        settings=settings,
        required_data=lambda inquiry, identity: advisor.required_data(inquiry, as_admin(identity)),
        generate_response=lambda request, identity: advisor.generate_response(request, as_admin(identity)),
    )
    application = create_litestar(Script().services(settings), more_routes=[advisor_router(services)])
    config = uvicorn.Config(application, host="127.0.0.1", port=0, log_config=None, access_log=False)
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=20, trust_env=False) as client:
        yield client
    server.should_exit = True
    await serving


def as_admin(_: Identity) -> Identity:
    """The scripted services know another administrator than the database does."""
    return LOCAL_ADMIN

"""The whole service on a real database, with the fake embedding and the extractive answerer."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from rag_service import components
from rag_service.components import Components, open_components
from rag_service.domain import LOCAL_ADMIN
from rag_service.ingest.documents import Ingested
from rag_service.settings import Settings
from rag_service.store.documents.documents import DocumentInput
from rag_service.store.embedded import EmbeddedServer
from tests.conftest import FakeEmbedding, parsing_here

OpenService = Callable[..., Any]
Ingest = Callable[..., Awaitable[Ingested]]


@asynccontextmanager
async def opened_service(
    server: EmbeddedServer, embedding: FakeEmbedding, **settings: Any
) -> AsyncIterator[Components]:
    """The components on a database; keywords are settings."""
    chosen = Settings(**{"database_url": server.service_conninfo, "similarity_threshold": 0.3} | settings)
    async with AsyncExitStack() as stack:
        stack.enter_context(parsing_here())
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(components, "build_embedding", lambda _, **__: embedding)
            opened = await stack.enter_async_context(open_components(chosen))
        yield opened


@pytest.fixture
def open_service(
    database_server: EmbeddedServer, fake_embedding: FakeEmbedding, monkeypatch: pytest.MonkeyPatch
) -> OpenService:
    """Opens the components on the test's database; keywords are settings."""
    monkeypatch.setattr(components, "build_embedding", lambda _, **__: fake_embedding)  # for what else the test opens
    return partial(opened_service, database_server, fake_embedding)


@pytest.fixture
async def service(open_service: OpenService) -> AsyncIterator[Components]:
    async with open_service() as components:
        yield components


@pytest.fixture
def ingest(service: Components) -> Ingest:
    """Ingests a text under a file name into the default corpus."""

    async def add(text: str | bytes, file_name: str = "note.md", **fields: Any) -> Ingested:
        data = text.encode() if isinstance(text, str) else text
        return await service.ingest(DocumentInput(data=data, file_name=file_name, **fields), LOCAL_ADMIN)

    return add


SAMPLES = Path(__file__).parents[3] / "indices" / "general" / "documents"

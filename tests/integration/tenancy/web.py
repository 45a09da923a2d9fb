"""The whole application over a real database, called in this process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from litestar import Litestar
from llama_index.core.base.embeddings.base import BaseEmbedding

from rag_service.api.http.access import TenancyServices
from rag_service.api.http.services import Services
from rag_service.api.tenancy import tenancy_router
from rag_service.app import create_app
from rag_service.auth.authenticator import Authenticator
from rag_service.components import Components, open_components
from rag_service.domain import Identity
from rag_service.errors import NotFoundError
from rag_service.ingest.postponed import PostponedUploads
from rag_service.ingest.transfer.transfers import build_transfers
from rag_service.settings import Settings
from rag_service.store.accounts.keys import ALL_SCOPES, create_key
from rag_service.store.embedded import EmbeddedServer
from tests.integration.tenancy.conftest import INDEX, House, load_indices
from tests.unit.api.samples import application_over

SECRET = "a secret of thirty-two bytes, at the least"


def web_settings(**changes: Any) -> Settings:
    common = {"auth": "required", "auth_cache_seconds": 0, "jwt_secret": SECRET, "index": INDEX}
    return Settings(**{**common, "public_url": "https://rag.example.org", **changes})


def build_application(house: House, settings: Settings, *, chat: Any = None) -> Litestar:
    async def refuse(*_: Any) -> Any:
        raise NotFoundError("Not part of these tests.")

    async def no_answer(*_: Any) -> AsyncIterator[Any]:
        raise NotFoundError("Not part of these tests.")
        yield

    services = Services(
        settings=settings,
        answer=no_answer,
        search=refuse,
        ingest=refuse,
        probes={},
        authenticate=Authenticator(house.database, settings).authenticate,
    )
    tenancy = TenancyServices(
        settings=settings,
        transaction=house.database.transaction,
        uploads=house.uploads,
        postponed=PostponedUploads(house.uploads, Path("unused"), max_bytes=0),
        originals=house.originals,
        transfers=build_transfers(settings, house.ingestor(), house.originals, load_indices()),
        fingerprints=house.fingerprints,
        chat=chat,
        replay=refuse,
        examples=refuse,
    )
    return application_over(services, more_routes=[tenancy_router(settings)], tenancy=tenancy)


@asynccontextmanager
async def client_of(application: Litestar, key: str | None = None) -> AsyncIterator[httpx.AsyncClient]:
    headers = {} if key is None else {"X-API-Key": key}
    transport = httpx.ASGITransport(app=application)  # type: ignore[arg-type]  # an ASGI application
    async with httpx.AsyncClient(transport=transport, base_url="http://service", headers=headers) as client:
        yield client


async def new_key(house: House, identity: Identity, scopes: Any = ALL_SCOPES, **options: Any) -> str:
    async with house.database.transaction(identity) as connection:
        _, secret = await create_key(connection, user_id=identity.user_id, name="k", scopes=scopes, **options)
    return secret


@asynccontextmanager
async def real_application(
    server: EmbeddedServer, embedding: BaseEmbedding, **changes: Any
) -> AsyncIterator[tuple[Litestar, Components]]:
    """What `create_app` makes over the test's database, started; the embedding alone is not the real one."""
    settings = web_settings(database_url=server.service_conninfo, **{"worker_embedded": False, **changes})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rag_service.components.build_embedding", lambda _, **__: embedding)
        async with open_components(settings) as components:
            application = create_app(settings, components=components)
            async with started_application(application):
                yield application, components


@asynccontextmanager
async def started_application(application: Litestar) -> AsyncIterator[None]:
    """Start and stop in one task, as a server does; a fixture's two halves may run in different ones."""
    started, stop = asyncio.Event(), asyncio.Event()

    async def live() -> None:
        async with application.lifespan():
            started.set()
            await stop.wait()

    life = asyncio.create_task(live())
    life.add_done_callback(lambda _: started.set())
    try:
        await started.wait()
        yield
    finally:
        stop.set()
        await life

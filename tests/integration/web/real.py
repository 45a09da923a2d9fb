"""The whole service, as it is started for people: real PostgreSQL, packaged embedding, extractive answers, login."""

from __future__ import annotations

import asyncio
import socket
import threading
import uuid
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import httpx
import psycopg
import pytest
import uvicorn
from litestar import Litestar
from psycopg import sql
from psycopg.conninfo import make_conninfo

from rag_service.app import create_app
from rag_service.domain import LOCAL_ADMIN
from rag_service.settings import Settings
from rag_service.store.accounts.keys import ALL_SCOPES, create_key
from rag_service.store.database import Database
from rag_service.store.embedded import SERVICE_ROLE, EmbeddedServer
from tests.integration.web.browser import WIDE, Visit, watch_page
from tests.serving import wait_until

if TYPE_CHECKING:
    from playwright.sync_api import Browser

START_SECONDS = 180.0  # the embedding model is loaded on a machine that may be slow and busy


@dataclass(frozen=True, kw_only=True)
class Person:
    """A user with a key."""

    id: str
    name: str
    key: str


@dataclass(frozen=True, kw_only=True)
class RealService:
    """A running service and its first administrator."""

    application: Litestar
    url: str
    admin: Person
    owner_conninfo: str  # sees everything

    def client(self, person: Person | None = None) -> httpx.Client:
        headers = {} if person is None else {"Authorization": f"Bearer {person.key}"}
        return httpx.Client(base_url=self.url, headers=headers, timeout=120, trust_env=False)

    def add_person(self, name: str, role: str = "user", scopes: tuple[str, ...] = ("read", "write")) -> Person:
        with self.client(self.admin) as client:
            reply = client.post("/api/v1/users", json={"name": name, "role": role})
            if reply.status_code == 409:  # a test that runs once more
                name = f"{name} {uuid.uuid4().hex[:6]}"
                reply = client.post("/api/v1/users", json={"name": name, "role": role})
            user = reply.raise_for_status().json()
            body = {"name": "test", "userId": user["id"], "scopes": scopes}
            key = client.post("/api/v1/keys", json=body).raise_for_status().json()
        return Person(id=user["id"], name=name, key=key["key"])


@pytest.fixture(scope="module")
def real_service(postgres: EmbeddedServer) -> Iterator[RealService]:
    """One service for a module: its tests take users and corpora of their own."""
    with running_service(postgres) as service:
        yield service


@contextmanager
def running_service(
    postgres: EmbeddedServer, *, listening: socket.socket | None = None, **changes: Any
) -> Iterator[RealService]:
    """A service with a database and a port of its own, that of `listening` if given; `changes` of its settings."""
    name = f"page_{uuid.uuid4().hex}"
    template = psycopg.conninfo.conninfo_to_dict(postgres.owner_conninfo)["dbname"]
    with psycopg.connect(make_conninfo(postgres.owner_conninfo, dbname="postgres"), autocommit=True) as connection:
        connection.execute(
            sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(sql.Identifier(name), sql.Identifier(str(template)))
        )
        conninfo = make_conninfo(postgres.owner_conninfo, dbname=name, user=SERVICE_ROLE)
        with _Serving(conninfo, changes, listening) as (application, url):
            # In a thread: Playwright keeps an event loop of its own in this one.
            with ThreadPoolExecutor() as pool:
                key = pool.submit(lambda: asyncio.run(_first_key(conninfo))).result()
            admin = Person(id=str(LOCAL_ADMIN.user_id), name="admin", key=key)
            owner = make_conninfo(postgres.owner_conninfo, dbname=name)
            yield RealService(application=application, url=url, admin=admin, owner_conninfo=owner)
        connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


class _Serving:
    """A server in a thread of its own for the length of a block."""

    def __init__(self, conninfo: str, changes: Mapping[str, Any], listening: socket.socket | None):
        common = {"auth": "required", "auth_cache_seconds": 0, "upload_max_mb": 1}
        settings = Settings(database_url=conninfo, **{**common, **changes})
        self._application = create_app(settings)
        config = uvicorn.Config(
            self._application,
            host="127.0.0.1",
            port=0,
            log_config=None,
            access_log=False,
            proxy_headers=False,
            timeout_graceful_shutdown=1,
        )
        self._server = uvicorn.Server(config)
        sockets = None if listening is None else [listening]
        self._thread = threading.Thread(target=self._server.run, args=(sockets,))

    def __enter__(self) -> tuple[Litestar, str]:
        self._thread.start()
        wait_until(lambda: self._server.started or not self._thread.is_alive(), START_SECONDS)
        port = self._server.servers[0].sockets[0].getsockname()[1]
        return self._application, f"http://127.0.0.1:{port}"

    def __exit__(self, *_: object) -> None:
        self._server.should_exit = True
        self._thread.join(60)


async def _first_key(conninfo: str) -> str:
    async with _opened(conninfo) as database, database.transaction(LOCAL_ADMIN) as connection:
        _, secret = await create_key(connection, user_id=LOCAL_ADMIN.user_id, name="first", scopes=ALL_SCOPES)
    return secret


@asynccontextmanager
async def _opened(conninfo: str) -> AsyncIterator[Database]:
    database = Database(conninfo, pool_size=1, timeout=5)
    await database.open()
    try:
        yield database
    finally:
        await database.close()


SignIn = Callable[..., Visit]


@pytest.fixture
def enter(browser: Browser, real_service: RealService) -> Iterator[SignIn]:
    """Opens the page, signed in as a person; fails on errors, CSP violations and requests to other hosts."""
    visits: list[Visit] = []
    of_the_module = _shared_paths(real_service)

    def start(person: Person | None = None, *, size: tuple[int, int] = WIDE, at: str = "", **context: Any) -> Visit:
        width, height = size
        opened = browser.new_context(
            base_url=real_service.url,
            viewport={"width": width, "height": height},
            **{"locale": "en-US", "accept_downloads": True, **context},
        )
        seen = watch_page(opened.new_page(), real_service.client(person), real_service.url)
        visits.append(seen)
        seen.page.goto(f"/{at}")
        seen.page.wait_for_selector("html.is-started")
        if person is not None:
            sign_in(seen, person.key)
        return seen

    yield start
    for one in visits:
        one.page.context.close()
        one.client.close()
    _take_back_what_is_shared(real_service, besides=of_the_module)
    for one in visits:
        assert (one.errors, one.foreign) == ([], []), (one.errors, one.foreign)


def _shared_paths(service: RealService) -> list[str]:
    """Of the agents and corpora that the administrator sees, and of the conversations had as that one."""
    with service.client(service.admin) as client:
        return [
            f"/api/v1/{kind}/{one['id']}"
            for kind in ("agents", "corpora", "conversations")
            for one in client.get(f"/api/v1/{kind}", params={"limit": 100}).raise_for_status().json()["items"]
        ]


def _take_back_what_is_shared(service: RealService, *, besides: Sequence[str]) -> None:
    """What a test has given to everybody goes with it; the answers of the next one would cite it."""
    with service.client(service.admin) as client:
        for path in _shared_paths(service):
            if path not in besides:
                client.delete(path).raise_for_status()


def sign_in(one: Visit, key: str) -> None:
    one.page.fill("#credential", key)
    one.page.press("#credential", "Enter")
    one.page.wait_for_selector("#sign-in", state="hidden")

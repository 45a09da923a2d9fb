"""`rag-service worker` as a process beside a service that leaves the work to it."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

import httpx
import pytest

from rag_service.app import create_app
from rag_service.settings import Settings
from rag_service.store.embedded import EmbeddedServer
from tests.acceptance.cli_process import run, started
from tests.doubles.ollama import EMBED, OllamaDouble, embed, ollama
from tests.serving import serving, wait_until

__all__ = ["ollama"]

LLAMAS = "Llamas live in the Andes."
GRACE = 1
OUTPUT = "output.txt"


@pytest.fixture
def environment(database_server: EmbeddedServer, ollama: OllamaDouble) -> dict[str, str]:
    """Settings that service and worker share, as an operator gives them."""
    return {
        "RAG_DATABASE_URL": database_server.service_conninfo,
        "RAG_WORKER_EMBEDDED": "false",
        "RAG_SHUTDOWN_SECONDS": str(GRACE),
        "RAG_EMBEDDING_PROVIDER": "ollama",
        "RAG_EMBEDDING_MODEL": "nomic-embed-text",
        "RAG_OLLAMA_URL": ollama.url,
        "RAG_FIRST_TOKEN_TIMEOUT": "600",  # no limit of the model ends what holds a stop up
        "RAG_FIT_RELEVANCE": "false",  # its calls would take what tests script
    }


@pytest.fixture
def client(environment: dict[str, str]) -> Iterator[httpx.Client]:
    settings = Settings(**{name.removeprefix("RAG_").lower(): value for name, value in environment.items()})
    with serving(create_app(settings)) as client:
        yield client


@contextmanager
def worker(environment: dict[str, str], folder: Path) -> Iterator[ForkServerProcess]:
    with started(["worker"], {**os.environ, **environment}, folder=folder, output=folder / OUTPUT) as process:
        yield process


def stop(process: ForkServerProcess) -> tuple[int | None, float]:
    """Ask it to stop: exit code, seconds until then."""
    began = time.monotonic()
    process.terminate()
    process.join(200)
    return process.exitcode, time.monotonic() - began


def upload(client: httpx.Client, name: str) -> str:
    """Path of the upload's status."""
    corpora = client.get("/api/v1/corpora").json()["items"]
    corpus = corpora[0] if corpora else client.post("/api/v1/corpora", json={"name": "notes"}).json()
    reply = client.post(f"/api/v1/corpora/{corpus['id']}/documents", files={"file": (name, LLAMAS.encode())})
    assert reply.status_code == 202
    return str(reply.headers["location"])


def reach(client: httpx.Client, path: str, status: str) -> dict[str, Any]:
    found: dict[str, Any] = {}

    def there() -> bool:
        found.update(client.get(path).json())
        return bool(found["status"] == status)

    wait_until(there, 120)
    return found


@pytest.mark.slow
def test_it_takes_a_job_finishes_it_and_stops_when_told(
    client: httpx.Client, environment: dict[str, str], tmp_path: Path
) -> None:
    path = upload(client, "a.txt")
    time.sleep(0.3)
    assert client.get(path).json()["status"] == "pending"  # the service itself does not work on it
    with worker(environment, tmp_path) as process:
        assert reach(client, path, "indexed")["attempts"] == 1
        found = client.post("/api/v1/query", json={"query": "Where do llamas live?", "similarityThreshold": 0})
        assert [passage["text"] for passage in found.json()["passages"]] == [LLAMAS]
        code, seconds = stop(process)
    output = (tmp_path / OUTPUT).read_text()
    assert (code, "Traceback" in output) == (0, False), output
    assert seconds < 100


@pytest.mark.slow
def test_stopped_in_the_middle_it_puts_the_document_back_for_the_next_one(
    client: httpx.Client, environment: dict[str, str], ollama: OllamaDouble, tmp_path: Path
) -> None:
    ollama.script(EMBED, *[embed(delay=600)] * 3)  # the application may embed a text of its own at its start
    path = upload(client, "a.txt")
    with worker(environment, tmp_path) as process:
        reach(client, path, "embedding")
        code, seconds = stop(process)
    output = (tmp_path / OUTPUT).read_text()
    assert (code, "Traceback" in output) == (0, False), output
    assert seconds < GRACE + 100  # not the ten minutes that its embedding takes
    ollama.unscript(EMBED)
    left = client.get(path).json()
    assert (left["status"], left["attempts"]) == ("pending", 0)  # at once, and not counted as a failed try
    with worker(environment, tmp_path):
        assert reach(client, path, "indexed")["attempts"] == 1


def test_a_worker_whose_settings_are_wrong_says_so_and_fails(environment: dict[str, str]) -> None:
    code, printed, said = run(["worker"], {**environment, "RAG_WORKER_CONCURRENCY": "0"})
    assert code == 1
    assert "RAG_WORKER_CONCURRENCY" in said
    assert "Traceback" not in printed + said

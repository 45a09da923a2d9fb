"""A service with an embedding model that nobody calibrated: relevance and ranks as with one whose cosines are known."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import httpx
import pytest

from rag_service.app import create_app
from rag_service.fitting import background
from rag_service.settings import Settings
from rag_service.store.embedded import EmbeddedServer
from tests.conftest import cloned_database
from tests.doubles.ollama import OllamaDouble
from tests.fitting import load_part, plain, shifted
from tests.serving import serving, wait_until

pytestmark = pytest.mark.slow

PASSAGES = 20
ASKED = 40


@pytest.fixture
def services(postgres: EmbeddedServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[httpx.Client]]:
    """Two services with the same documents: one model has unrelated texts at 0, the other one at 0.7."""
    monkeypatch.setattr(background, "load_shipped", load_part)
    with ExitStack() as stack:
        clients = []
        for name, model in (("plain", plain), ("shifted", shifted)):
            ollama = OllamaDouble()
            ollama.vector_of = model
            ollama.start()
            stack.callback(ollama.stop)
            database = stack.enter_context(cloned_database(postgres))
            settings = Settings(
                database_url=database.service_conninfo,  # type: ignore[arg-type]
                embedding_provider="ollama",
                embedding_model=name,
                ollama_url=ollama.url,
                worker_embedded=False,
                fit_relevance=True,
            )
            clients.append(stack.enter_context(serving(create_app(settings))))
        yield clients


def relevance_of(client: httpx.Client) -> dict[str, Any]:
    body: dict[str, Any] = {}

    def is_ready() -> bool:  # whatever is known of the model, once no probe of its server runs into its time limit
        body.update(client.get("/health/ready").json())
        return bool(body["status"] == "ready")

    wait_until(is_ready)
    relevance: dict[str, Any] = body["relevance"]
    return relevance


def test_relevance_and_ranks_do_not_depend_on_the_scale_of_the_cosines(services: list[httpx.Client]) -> None:
    english = next(part for part in load_part() if part.language == "en")
    for client in services:
        for number, passage in enumerate(english.passages[:PASSAGES]):
            added = client.post("/api/ingest", json={"text": passage, "fileName": f"{number}.md"})
            assert added.is_success, added.text
    for client in services:
        wait_until(lambda client=client: relevance_of(client)["state"] == "fitted", 60)
    assert [relevance_of(client)["model"] for client in services] == ["plain", "shifted"]
    differences, refused, same_first = [], [0, 0], 0
    for asked in english.questions[:ASKED]:
        found = []
        for number, client in enumerate(services):
            search = {"query": asked.text, "topK": 5, "similarityThreshold": 0.0}
            passages = client.post("/api/v1/query", json=search).raise_for_status().json()["passages"]
            found.append({passage["fileName"]: passage["scores"]["relevance"] for passage in passages})
            refused[number] += max(found[-1].values()) < 0.6
        differences += [abs(found[0][name] - found[1][name]) for name in found[0].keys() & found[1].keys()]
        same_first += next(iter(found[0])) == next(iter(found[1]))
    assert sum(differences) / len(differences) < 0.03
    assert abs(refused[0] - refused[1]) <= 0.05 * ASKED
    assert same_first >= 0.95 * ASKED

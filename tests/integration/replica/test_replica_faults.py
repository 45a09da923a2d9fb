"""The replica goes, hangs, lags and comes back: no request is lost, and none sees anything old."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import httpx
import psycopg
import pytest

from tests.doubles.ollama import EMBED, OllamaDouble, embed
from tests.integration.resilience.conftest import QUESTION, Start, add_document
from tests.replication import ReplicatedDatabase, send
from tests.serving import PATIENCE, wait_until
from tests.unit.test_metrics import samples

pytestmark = pytest.mark.slow

SEARCH = "/api/v1/query"
Serve = Callable[..., httpx.Client]


@pytest.fixture
def serve(start: Start, replicated: ReplicatedDatabase) -> Serve:
    """Starts the service on both databases, and waits until it uses the replica."""

    def begin(**overrides: object) -> httpx.Client:
        settings: dict[str, object] = {
            "database_url": replicated.primary,
            "database_replica_url": replicated.replica,
            "database_timeout": 15.0,
            "breaker_seconds": 0.2,
        }
        client = start(**settings | overrides)
        wait_until(lambda: not figure(client, "rag_circuit_open{provider=replica}"))
        return client

    return begin


def figure(client: httpx.Client, name: str) -> float:
    return samples(client.get("/metrics").text).get(name, 0.0)


def served(client: httpx.Client, outcome: str) -> float:
    return figure(client, f"rag_replica_searches_total{{outcome={outcome}}}")


def ask(client: httpx.Client, question: str = QUESTION) -> list[str]:
    """Texts that are found."""
    response = client.post(SEARCH, json={"query": question, "similarityThreshold": 0})
    assert response.status_code == 200, response.text
    return [passage["text"] for passage in response.json()["passages"]]


def replica_state(client: httpx.Client) -> dict[str, object]:
    ready = client.get("/health/ready")

    def is_ready() -> bool:  # on a busy machine a probe of a model server can run into its time limit
        nonlocal ready
        ready = client.get("/health/ready")
        return ready.status_code == 200 and ready.json()["status"] == "ready"

    wait_until(is_ready)
    state: dict[str, object] = ready.json()["dependencies"]["replica"]
    assert state["required"] is False
    return state


@contextmanager
def traffic(*clients: httpx.Client) -> Iterator[list[int]]:
    """Searches without a pause meanwhile, a thread for each client; the statuses of all replies."""
    stop, statuses = threading.Event(), list[int]()

    def ask_on(client: httpx.Client) -> None:
        with httpx.Client(base_url=client.base_url, timeout=PATIENCE, trust_env=False) as own:
            while not stop.is_set():
                statuses.append(own.post(SEARCH, json={"query": QUESTION}).status_code)

    threads = [threading.Thread(target=ask_on, args=[client]) for client in clients]
    for thread in threads:
        thread.start()
    try:
        yield statuses
    finally:
        stop.set()
        for thread in threads:
            thread.join(PATIENCE)


def test_the_replica_serves_searches_and_ready_says_that_it_is_up(serve: Serve, replicated: ReplicatedDatabase) -> None:
    client = serve()
    add_document(client)
    replicated.standby.catch_up()
    assert ask(client)
    assert served(client, "replica") == 1
    assert served(client, "behind") == served(client, "failed") == served(client, "down") == 0
    wait_until(lambda: replica_state(client)["state"] == "up")


def test_what_one_process_stores_another_finds_at_once(serve: Serve, replicated: ReplicatedDatabase) -> None:
    writer, reader = serve(), serve()
    for number in range(10):
        add_document(writer, f"The code of locker {number} is x{number}x.", f"locker{number}.txt")
        assert f"x{number}x" in str(ask(reader, f"What is the code of locker {number}?"))
    replicated.standby.catch_up()
    before = served(reader, "replica")
    assert ask(reader)
    assert served(reader, "replica") == before + 1


def test_a_paused_replica_hides_nothing_and_ready_tells_how_far_it_lags(
    serve: Serve, replicated: ReplicatedDatabase
) -> None:
    client = serve()
    with replicated.standby.replay_paused():
        add_document(client)
        assert ask(client)
        assert (served(client, "replica"), served(client, "behind")) == (0, 1)
        state = replica_state(client)
        assert state["state"] == "lagging"
        assert "bytes" in str(state["detail"])
    replicated.standby.catch_up()
    assert ask(client)
    assert served(client, "replica") == 1


def prepare_to_crash(replicated: ReplicatedDatabase) -> None:
    """A standby that is stopped at once reads everything since its last checkpoint again before it serves anybody.

    That may be a gigabyte, of the databases of all tests before.
    """
    with psycopg.connect(replicated.owner, autocommit=True) as owner:
        owner.execute("CHECKPOINT")
    replicated.standby.catch_up()
    replicated.standby.execute("CHECKPOINT")


@pytest.mark.parametrize("mode", ["fast", "immediate"])
def test_a_replica_lost_in_traffic_loses_no_request_and_is_used_again(
    serve: Serve, replicated: ReplicatedDatabase, mode: str
) -> None:
    client, other = serve(), serve()
    add_document(client)
    prepare_to_crash(replicated)
    try:
        with traffic(client, client, other) as statuses:
            wait_until(lambda: served(client, "replica") >= 5)
            replicated.standby.stop(mode)
            wait_until(lambda: served(client, "down") >= 5)
            state = replica_state(client)
            assert (state["state"], state["code"]) == ("down", "store_unavailable")
            replicated.standby.start()
            before = served(client, "replica")
            wait_until(lambda: served(client, "replica") >= before + 5)
        assert len(statuses) > 15
        assert set(statuses) == {200}
    finally:
        replicated.standby.start()


def test_a_replica_lost_during_a_search_has_it_repeated_on_the_primary(
    serve: Serve, replicated: ReplicatedDatabase, ollama: OllamaDouble
) -> None:
    client = serve(breaker_seconds=300)
    add_document(client)
    prepare_to_crash(replicated)
    assert ask(client)
    # Between the two halves of a search, while its question is embedded.
    ollama.script(EMBED, embed(delay=12.0))
    found: list[str] = []
    asking = threading.Thread(target=lambda: found.extend(ask(client, "travel limits")))
    embedded = len(ollama.bodies(EMBED))
    try:
        asking.start()
        wait_until(lambda: len(ollama.bodies(EMBED)) > embedded)
        time.sleep(1.0)  # the first half begins with it
        replicated.standby.stop("immediate")
        asking.join(PATIENCE)
        assert found
        assert (served(client, "replica"), served(client, "failed")) == (1, 1)
        assert ask(client)
        assert served(client, "down") == 1
    finally:
        replicated.standby.start()


def test_a_replica_that_stands_still_costs_one_search_its_timeout(serve: Serve, replicated: ReplicatedDatabase) -> None:
    client = serve(database_timeout=8.0, breaker_seconds=300)
    add_document(client)
    replicated.standby.catch_up()
    assert ask(client)
    standing = replicated.standby.processes()
    send(signal.SIGSTOP, standing)
    try:
        started = time.monotonic()
        assert ask(client)
        assert 2.0 < time.monotonic() - started < 40
        assert served(client, "failed") == 1
        started = time.monotonic()
        assert ask(client)
        assert time.monotonic() - started < 7.5  # its timeout would be 8.0
        assert served(client, "down") == 1
    finally:
        send(signal.SIGCONT, standing)


def test_a_search_that_takes_too_long_takes_the_replica_from_nobody(
    serve: Serve, replicated: ReplicatedDatabase
) -> None:
    client = serve(search_timeout=2.0)
    add_document(client)
    replicated.standby.catch_up()
    assert ask(client)
    with psycopg.connect(replicated.owner) as owner:  # the lock reaches the replica, too
        owner.execute("LOCK TABLE rag.postings IN ACCESS EXCLUSIVE MODE")
        replicated.standby.catch_up()
        response = client.post(SEARCH, json={"query": QUESTION})
        assert (response.status_code, response.json()["code"]) == (500, "search_timeout")
    replicated.standby.catch_up()
    assert ask(client)
    assert (served(client, "replica"), served(client, "failed"), served(client, "down")) == (2, 1, 0)


def test_it_starts_without_its_replica_and_uses_it_once_it_is_there(
    start: Start, replicated: ReplicatedDatabase
) -> None:
    replicated.standby.stop()
    try:
        client = start(database_url=replicated.primary, database_replica_url=replicated.replica, breaker_seconds=0.2)
        add_document(client)
        assert ask(client)
        assert served(client, "down") == 1
    finally:
        replicated.standby.start()
    wait_until(lambda: ask(client) and served(client, "replica"))


def test_what_is_no_replica_is_said_and_not_used(start: Start, replicated: ReplicatedDatabase, logged: object) -> None:
    client = start(database_url=replicated.primary, database_replica_url=replicated.primary)
    add_document(client)
    assert ask(client)
    assert served(client, "down") == 1
    assert replica_state(client)["code"] == "invalid_configuration"
    wait_until(lambda: "replica_not_used" in logged.getvalue())  # type: ignore[attr-defined]
    assert "does not lead to a standby" in logged.getvalue()  # type: ignore[attr-defined]

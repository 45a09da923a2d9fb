"""The database goes and comes back: the service says so and recovers by itself."""

from __future__ import annotations

import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from uuid import uuid4

import httpx
import psycopg
import pytest
from psycopg import sql

from rag_service.store.database import Database
from rag_service.store.embedded import EmbeddedServer
from rag_service.store.rows import fetch_value
from tests.doubles.ollama import EMBED, OllamaDouble, embed
from tests.integration.resilience.conftest import (
    QUESTION,
    Start,
    StoppableServer,
    add_document,
    drop_connections,
    wait_for_lock,
)
from tests.serving import wait_until

ANSWER, SEARCH = "/api/v1/query/answer", "/api/v1/query"


def assert_store_unavailable(response: httpx.Response) -> None:
    assert response.status_code == 500, response.text
    problem = response.json()
    assert problem["code"] == "store_unavailable"
    assert int(response.headers["retry-after"]) > 0
    assert "postgres" not in response.text and "socket" not in response.text


def test_it_starts_without_its_database_says_so_and_recovers(stoppable: StoppableServer, start: Start) -> None:
    stoppable.stop()
    client = start(database_url=stoppable.conninfo, database_timeout=1.0)
    assert client.get("/health").status_code == 200
    ready = client.get("/health/ready")
    assert ready.status_code == 503
    assert ready.json()["status"] == "unavailable"
    database = ready.json()["dependencies"]["database"]
    assert (database["state"], database["code"], database["required"]) == ("down", "store_unavailable", True)
    for url in (SEARCH, ANSWER):
        assert_store_unavailable(client.post(url, json={"query": QUESTION}))
    assert_store_unavailable(client.post("/api/ingest", json={"text": "A text."}))

    stoppable.start()
    wait_until(lambda: client.get("/health/ready").status_code == 200)
    add_document(client)
    assert client.post(SEARCH, json={"query": QUESTION}).json()["passages"]


@pytest.mark.slow
def test_an_upload_while_the_database_is_down_is_kept_and_indexed_when_it_is_back(
    stoppable: StoppableServer, start: Start, tmp_path: Path
) -> None:
    client = start(
        database_url=stoppable.conninfo,
        database_timeout=1.0,
        data_dir=tmp_path / "data",
        upload_keep_mb=1,
        worker_embedded=True,
    )
    corpus = client.post("/api/v1/corpora", json={"name": "travel"}).json()["id"]
    documents = f"/api/v1/corpora/{corpus}/documents"
    stoppable.stop()
    reply = client.post(documents, json={"text": "Night trains need no approval."})
    assert (reply.status_code, reply.json()["code"]) == (202, "indexing_unavailable"), reply.text
    lost = client.post(f"/api/v1/corpora/{uuid4()}/documents", json={"text": "For nobody."})
    assert lost.status_code == 202
    assert_store_unavailable(client.post(documents, json={"text": "Too much. " * 200_000}))
    assert_store_unavailable(client.get(reply.headers["location"]))
    kept = tmp_path / "data" / "postponed"
    assert len(list(kept.glob("*.upload"))) == 2

    stoppable.start()
    wait_until(lambda: client.get(reply.headers["location"]).json().get("status") == "indexed")
    assert client.get(reply.headers["location"]).json()["uploadId"] == reply.json()["uploadId"]
    passages = client.post(SEARCH, json={"query": "Do night trains need approval?"}).json()["passages"]
    assert passages[0]["text"] == "Night trains need no approval."
    wait_until(lambda: len(list(kept.iterdir())) == 1)
    assert [file.suffix for file in kept.iterdir()] == [".refused"]  # its corpus does not exist


def test_a_database_that_stands_still_is_an_error_in_time_on_every_route_and_goes_on(
    stoppable: StoppableServer, start: Start
) -> None:
    client = start(database_url=stoppable.conninfo, database_timeout=1.0, upload_keep_mb=0)
    add_document(client)
    corpus = client.get("/api/v1/corpora").json()["items"][0]["id"]
    documents = f"/api/v1/corpora/{corpus}/documents"
    routes = [
        lambda: client.post(SEARCH, json={"query": QUESTION}),
        lambda: client.post(ANSWER, json={"query": QUESTION}),
        lambda: client.get("/api/v1/corpora"),
        lambda: client.get(documents),
        lambda: client.post(documents, json={"text": "A text."}),
        lambda: client.get("/api/v1/conversations"),
    ]
    body = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "search", "arguments": {"query": "x"}},
    }
    accept = {"accept": "application/json, text/event-stream"}
    stoppable.signal(signal.SIGSTOP)
    try:
        started = time.monotonic()
        with ThreadPoolExecutor(len(routes)) as threads:
            for reply in threads.map(lambda ask: ask(), routes):
                assert_store_unavailable(reply)
        assert "store_unavailable" in client.post("/mcp", json=body, headers=accept).text
        assert time.monotonic() - started < 40  # the timeouts, and what a slow and busy machine takes
        assert client.get("/health/ready").status_code == 503
        assert client.get("/health").status_code == 200
    finally:
        stoppable.signal(signal.SIGCONT)
    wait_until(lambda: client.get("/health/ready").status_code == 200)
    assert client.post(SEARCH, json={"query": QUESTION}).json()["passages"]


def test_readiness_is_told_in_time_of_a_database_that_stands_still(stoppable: StoppableServer, start: Start) -> None:
    client = start(database_url=stoppable.conninfo, database_timeout=20.0)
    assert client.get("/health/ready").status_code == 200
    stoppable.signal(signal.SIGSTOP)
    try:
        started = time.monotonic()
        ready = client.get("/health/ready")
        took = time.monotonic() - started
    finally:
        stoppable.signal(signal.SIGCONT)
    assert (ready.status_code, ready.json()["dependencies"]["database"]["code"]) == (503, "timeout")
    assert took < 3 + 1 + 7  # for the probe, for its statement to be cancelled (psycopg: 10), and for a busy machine
    wait_until(lambda: client.get("/health/ready").status_code == 200)


async def test_a_long_statement_of_a_database_that_responds_is_waited_for(database_server: EmbeddedServer) -> None:
    database = Database(database_server.service_conninfo, pool_size=1, timeout=1.0)
    await database.open()
    async with database.transaction(None) as connection:
        assert await fetch_value(connection, "SELECT 'done' FROM pg_sleep(3)") == "done"
    await database.close()


@pytest.mark.slow
def test_uploads_are_refused_where_the_setting_says_so(stoppable: StoppableServer, start: Start) -> None:
    client = start(database_url=stoppable.conninfo, database_timeout=1.0, upload_keep_mb=0)
    corpus = client.post("/api/v1/corpora", json={"name": "travel"}).json()["id"]
    stoppable.stop()
    assert_store_unavailable(client.post(f"/api/v1/corpora/{corpus}/documents", json={"text": "A text."}))


@pytest.mark.parametrize("mode", ["fast", "immediate"])
@pytest.mark.slow
def test_it_outlives_a_restart_of_its_database(stoppable: StoppableServer, start: Start, mode: str) -> None:
    client = start(database_url=stoppable.conninfo, database_timeout=1.0)
    add_document(client)
    stoppable.stop(mode)
    assert_store_unavailable(client.post(SEARCH, json={"query": QUESTION}))
    assert client.get("/health/ready").status_code == 503
    stoppable.start()
    wait_until(lambda: client.post(SEARCH, json={"query": QUESTION}).status_code == 200)
    assert client.post(SEARCH, json={"query": QUESTION}).json()["passages"]


def test_a_database_that_stops_during_a_request_fails_that_request_only(
    start: Start, database_server: EmbeddedServer, ollama: OllamaDouble
) -> None:
    client = start()
    add_document(client)
    # The question's embedding takes its time; meanwhile a lock holds the second half of the search.
    ollama.script(EMBED, embed(delay=0.3))
    outcome: list[httpx.Response] = []
    with psycopg.connect(database_server.owner_conninfo) as owner:
        owner.execute("LOCK TABLE rag.data_chunks IN ACCESS EXCLUSIVE MODE")
        asking = threading.Thread(target=lambda: outcome.append(client.post(SEARCH, json={"query": "travel limits"})))
        asking.start()
        wait_for_lock(database_server)
        drop_connections(database_server)
        asking.join(60)
    assert_store_unavailable(outcome[0])
    assert client.post(SEARCH, json={"query": QUESTION}).json()["passages"]


@pytest.mark.parametrize(("locked", "slow"), [("postings", "search"), ("uploads", "list")])
def test_a_search_or_list_that_takes_too_long_is_stopped_and_disturbs_nobody(
    start: Start, database_server: EmbeddedServer, locked: str, slow: str
) -> None:
    client = start(search_timeout=1.5, database_pool_size=2)
    add_document(client)
    corpus = client.get("/api/v1/corpora").json()["items"][0]["id"]
    send = {
        "search": lambda: client.post(SEARCH, json={"query": QUESTION}),
        "list": lambda: client.get(f"/api/v1/corpora/{corpus}/documents"),
    }
    outcome: list[httpx.Response] = []
    with psycopg.connect(database_server.owner_conninfo) as owner:
        owner.execute(sql.SQL("LOCK TABLE rag.{} IN ACCESS EXCLUSIVE MODE").format(sql.Identifier(locked)))
        asking = threading.Thread(target=lambda: outcome.append(send[slow]()))
        asking.start()
        assert [send[other]().status_code for other in send if other != slow] == [200]
        asking.join(60)
        assert outcome[0].status_code == 500, outcome[0].text
        assert outcome[0].json()["code"] == "search_timeout"
    assert [send[each]().status_code for each in send] == [200, 200]


@pytest.mark.slow
def test_connections_that_died_while_idle_cost_no_request(start: Start, database_server: EmbeddedServer) -> None:
    client = start()
    add_document(client)
    for _ in range(3):
        drop_connections(database_server)
        assert client.post(SEARCH, json={"query": QUESTION}).status_code == 200


def test_too_many_connections_are_an_honest_error(start: Start, database_server: EmbeddedServer) -> None:
    client = start(database_pool_size=1, database_timeout=1.0)
    add_document(client)
    with psycopg.connect(database_server.owner_conninfo) as owner:
        owner.execute("LOCK TABLE rag.corpora IN ACCESS EXCLUSIVE MODE")
        waiting = threading.Thread(target=lambda: client.post(SEARCH, json={"query": QUESTION}))
        waiting.start()
        wait_for_lock(database_server)
        assert_store_unavailable(client.post(SEARCH, json={"query": QUESTION}))
        owner.rollback()
        waiting.join(60)
    assert client.post(SEARCH, json={"query": QUESTION}).status_code == 200


def test_a_schema_that_is_too_old_shows_in_ready(start: Start, database_server: EmbeddedServer) -> None:
    with psycopg.connect(database_server.owner_conninfo, autocommit=True) as owner:
        owner.execute("UPDATE public.schema_version SET version_num = '0001'")
    client = start()
    ready = client.get("/health/ready")
    assert ready.status_code == 503
    assert ready.json()["dependencies"]["database"]["code"] == "store_unavailable"


def test_a_server_without_a_free_connection_is_an_honest_error(start: Start, database_server: EmbeddedServer) -> None:
    client = start(database_timeout=1.0)
    add_document(client)
    with psycopg.connect(database_server.owner_conninfo, autocommit=True) as owner:
        database = sql.Identifier(str(owner.info.dbname))
        owner.execute(sql.SQL("ALTER DATABASE {} CONNECTION LIMIT 0").format(database))
        drop_connections(database_server)
        assert_store_unavailable(client.post(SEARCH, json={"query": QUESTION}))
        owner.execute(sql.SQL("ALTER DATABASE {} CONNECTION LIMIT -1").format(database))
    wait_until(lambda: client.post(SEARCH, json={"query": QUESTION}).status_code == 200)


def test_a_full_disk_refuses_documents_but_takes_no_answer_away(
    start: Start, database_server: EmbeddedServer, ollama: OllamaDouble
) -> None:
    ollama.answer = "The limit for travel is 300 euros a day [C1]."
    client = start()
    add_document(client)
    with psycopg.connect(database_server.owner_conninfo, autocommit=True) as owner:
        for table in ("documents", "answers"):
            owner.execute(
                sql.SQL(
                    "CREATE OR REPLACE FUNCTION public.refuse() RETURNS trigger LANGUAGE plpgsql AS"
                    " $$ BEGIN RAISE EXCEPTION 'No space left on device' USING ERRCODE = '53100'; END $$;"
                    " CREATE TRIGGER full_disk BEFORE INSERT ON rag.{} EXECUTE FUNCTION public.refuse()"
                ).format(sql.Identifier(table))
            )
        refused = client.post("/api/ingest", json={"text": "The gate opens at six."})
        assert (refused.status_code, refused.json()["code"]) == (507, "no_space")
        answer = client.post(ANSWER, json={"query": QUESTION})
        assert answer.json()["citations"][0]["status"] == "verified"
        assert answer.json()["recorded"] is False
        assert client.get(f"/api/v1/answers/{answer.json()['answerId']}").status_code == 404  # only its record is lost
        owner.execute("DROP TRIGGER full_disk ON rag.documents")
    add_document(client, "The gate opens at six.", "gate.txt")

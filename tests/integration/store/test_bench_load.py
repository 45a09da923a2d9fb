"""Loading the bench's database: what a run leaves that was killed in its midst, the next one mends."""

from __future__ import annotations

import psycopg
import pytest

from rag_service.bench import load
from rag_service.bench.corpus import generate_corpus
from rag_service.bench.load import BenchDatabase, load_corpus
from rag_service.store.embedded import EmbeddedServer
from rag_service.store.session import Database

INDEX = "SELECT indexdef FROM pg_indexes WHERE indexname = 'data_chunks_embedding'"


class KilledError(Exception):
    """Stands for the end of the process."""


def be_killed(*_: object) -> float:
    raise KilledError


@pytest.mark.parametrize("while_writing", [True, False])
async def test_a_bench_runs_again_after_one_that_was_killed(
    database: Database, database_server: EmbeddedServer, monkeypatch: pytest.MonkeyPatch, *, while_writing: bool
) -> None:
    bench = BenchDatabase(
        database=database,
        owner_conninfo=database_server.owner_conninfo,
        service_conninfo=database_server.service_conninfo,
    )
    corpus = generate_corpus(1_000, dimension=384)
    with psycopg.connect(bench.owner_conninfo) as connection:
        before = connection.execute(INDEX).fetchone()
    monkeypatch.setattr(load, "finish_load", be_killed)  # the vector index is not made
    with pytest.raises(KilledError):
        await load_corpus(bench, corpus, be_killed if while_writing else lambda written: None)
    monkeypatch.undo()
    with psycopg.connect(bench.owner_conninfo) as connection:
        assert connection.execute(INDEX).fetchone() is None

    loaded = await load_corpus(bench, corpus, lambda written: None)
    assert len(loaded.rows) == 1_000
    with psycopg.connect(bench.owner_conninfo) as connection:
        assert connection.execute(INDEX).fetchone() == before

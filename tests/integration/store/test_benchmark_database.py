"""A benchmark run that was killed while it loaded does not spoil the next one."""

from __future__ import annotations

import pytest

from evals.benchmarks import database as bench_database
from evals.benchmarks.corpus import generate_corpus
from evals.benchmarks.database import BenchDatabase, load_corpus
from rag_service.store.database import Database
from rag_service.store.embedded import EmbeddedServer

pytestmark = pytest.mark.slow


class KilledError(Exception):
    """Stands for the end of the process."""


async def be_killed(*_: object) -> None:
    raise KilledError


async def test_a_killed_load_is_started_again(
    database: Database, database_server: EmbeddedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = BenchDatabase(
        database=database,
        owner_conninfo=database_server.owner_conninfo,
        service_conninfo=database_server.service_conninfo,
    )
    corpus = generate_corpus(1_000, dimension=384)
    with monkeypatch.context() as patch:
        patch.setattr(bench_database, "make_corpus", be_killed)  # what marks the load as complete
        with pytest.raises(KilledError):
            await load_corpus(bench, corpus)
    loaded = await load_corpus(bench, corpus)
    assert sorted(loaded.rows.values()) == list(range(1_000))
    assert await load_corpus(bench, corpus) == loaded  # and nothing is loaded twice

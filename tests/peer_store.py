"""LlamaIndex's own tests of PGVectorStore, run against our vector store.

    python -m tests.peer_store PATH/TO/test_postgres.py [pytest options]

The file is `tests/test_postgres.py` of `llama-index-vector-stores-postgres` in github.com/run-llama/llama_index, of any
version since 0.5; it is no part of this repository. Its stores are made by `PGVectorStore.from_params`: here that
gives ours, on a database of its own. What does not apply is left out by name, with the reason.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from unittest import mock

import psycopg
import pytest
from llama_index.core.bridge.pydantic import PrivateAttr
from psycopg.conninfo import make_conninfo

from rag_service.client.background_loop import BackgroundLoop
from rag_service.domain import LOCAL_ADMIN
from rag_service.indices import load_index
from rag_service.store.database import Database
from rag_service.store.documents.chunk_store import ChunkStore
from rag_service.store.embedded import SERVICE_ROLE, start_embedded_server
from rag_service.store.migrate import migrate
from tests.databases import ClonedDatabases

DIMENSION = 2  # of the vectors of that file

# What does not apply, by the beginning of the test's name.
NOT_APPLICABLE: Mapping[str, str] = {
    "test_instance_creation": "it looks at an engine that is not opened yet; ours comes with its database",
    "test_hnsw_index_creation": "it looks for index names of PGVectorStore's own table; ours is made by migrations",
    "test_clear": "`clear` is refused, because it would empty the corpora of others: delete documents or the corpus",
    "test_custom_engines": "SQLAlchemy engines are not used: connections carry the identity",
    "test_custom_sync_engine_only": "likewise",
    "test_custom_async_engine_only": "likewise",
    "test_indexed_metadata": "it looks for indexes of PGVectorStore's own table",
    "test_gin_index_creation_in_database": "likewise",
    "test_custom_query": "`customize_query_fn` changes SQL, past the identity",
    "test_custom_sparse_query": "likewise",
    "test_mmr_": "it calls private methods on a mock; mode `mmr` has tests of our own",
    "test_prepare_mmr_query": "likewise",
    "test_get_query_session_settings": "likewise",
    "test_query_routes_to": "likewise",
}


class PeerStore(ChunkStore):
    """Our store under the name and with the constructor that the file uses."""

    _engine: Any = PrivateAttr(default=None)  # that file asserts that there is one


class Runner:
    """A pytest plugin that puts our store in the place of LlamaIndex's, and counts."""

    def __init__(self, folder: Path):
        self.loop = BackgroundLoop()
        server = self.loop.run(start_embedded_server(folder))
        self.template = f"peer_{DIMENSION}"
        self.owner = server.owner_conninfo
        with psycopg.connect(self.owner, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {self.template} TEMPLATE template0 ENCODING 'UTF8'")
        owner, service = (
            make_conninfo(self.owner, dbname=self.template, **user) for user in ({}, {"user": SERVICE_ROLE})
        )
        self.loop.run(migrate(owner, service, dimension=DIMENSION))
        self.databases = ClonedDatabases(self.owner, template=self.template)
        self.opened: list[Database] = []
        self.left_out: dict[str, str] = {}

    def make_store(self, **_: Any) -> PeerStore:
        conninfo = make_conninfo(self.owner, dbname=self.databases.take(), user=SERVICE_ROLE)
        database = Database(conninfo, pool_size=2, timeout=10)
        self.loop.run(database.open())
        self.opened.append(database)
        return PeerStore(database, LOCAL_ADMIN, dimension=DIMENSION, index=load_index("general"), fingerprint="peer")

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        kept = []
        for item in items:
            reason = next((why for name, why in NOT_APPLICABLE.items() if item.name.startswith(name)), None)
            if reason is None:
                kept.append(item)
            else:
                self.left_out[item.name] = reason
        config.hook.pytest_deselected(items=[item for item in items if item not in kept])
        items[:] = kept

    def pytest_runtest_teardown(self) -> None:
        while self.opened:
            self.loop.run(self.opened.pop().close())

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        terminalreporter.section("not applicable")
        for name, reason in self.left_out.items():
            terminalreporter.line(f"{name}: {reason}")


def main(arguments: list[str]) -> int:
    """Run that file; returns pytest's exit code."""
    if not arguments or not Path(arguments[0]).is_file():
        sys.stderr.write(f"{__doc__}\n")
        return 2
    # PostgreSQL runs as another user where we are root, and must be able to enter the folder.
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        runner = Runner(Path(folder))
        with (
            mock.patch("llama_index.vector_stores.postgres.PGVectorStore", PeerStore),
            mock.patch.object(PeerStore, "from_params", runner.make_store),
            mock.patch.dict("os.environ", PYTEST_DISABLE_PLUGIN_AUTOLOAD="1"),
            mock.patch("psycopg2.connect", mock.MagicMock()),  # it creates and drops databases of its own
        ):
            options = "-q -p pytest_asyncio.plugin -p no:cacheprovider -o asyncio_mode=strict -W ignore -c /dev/null"
            more = [*options.split(), f"--rootdir={folder}", *arguments[1:]]
            code = pytest.main([arguments[0], *more], [runner])
        runner.loop.close()
    return int(code)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

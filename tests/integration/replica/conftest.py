"""A database on a primary and its hot standby, anew for each test; the servers once for all of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.doubles.ollama import ollama
from tests.integration.resilience.conftest import logged, start
from tests.replication import Pair, ReplicatedDatabase, replicated_pair

__all__ = ["logged", "ollama", "start"]


@pytest.fixture(scope="package")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    folder: Path = tmp_path_factory.mktemp("replicated")
    with replicated_pair(folder) as servers:
        # Without it the primary removes the log that a standby, which is down or stands still, has not got yet, and
        # from then on nothing arrives there any more.
        with psycopg.connect(servers.primary.owner_conninfo, autocommit=True) as owner:
            owner.execute("SELECT pg_create_physical_replication_slot('standby')")
        servers.standby.execute("ALTER SYSTEM SET primary_slot_name = 'standby'")
        servers.standby.execute("SELECT pg_reload_conf()")
        yield servers


@pytest.fixture
def replicated(pair: Pair) -> Iterator[ReplicatedDatabase]:
    """The test's own database; the standby runs and follows when it begins."""
    with pair.database() as database:
        yield database

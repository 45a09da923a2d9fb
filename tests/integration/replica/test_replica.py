"""What a replica must be to serve searches, and what searches see on it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime
from uuid import UUID

import psycopg
import pytest
from llama_index.core.base.embeddings.base import BaseEmbedding
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from pydantic import SecretStr

from rag_service.cli.checks import check_live, check_replica
from rag_service.domain import Filters, Identity
from rag_service.errors import ConfigurationError, StoreError, UnsafeRoleError
from rag_service.indices import load_index
from rag_service.retrieval.hybrid import HybridRetriever
from rag_service.retrieval.question import Question
from rag_service.retrieval.replica import ReplicatedRetriever
from rag_service.settings import Settings
from rag_service.store.database import Database
from rag_service.store.documents.catalogue import remove_document, set_expiry
from rag_service.store.embedded import EmbeddedServer
from rag_service.store.migrate import LATEST
from rag_service.store.replication import replica as replica_module
from rag_service.store.replication.replica import Replica, ReplicaBehindError, replica_conninfo
from tests.integration.store.texts import ADMIN, add_user, make_corpus, store_texts
from tests.replication import ReplicatedDatabase
from tests.serving import PATIENCE

pytestmark = pytest.mark.slow

_PATIENCE = 20.0  # seconds for anything that takes milliseconds, on a busy machine
_SLEEPING = "SELECT count(*)::int FROM pg_stat_activity WHERE wait_event = 'PgSleep'"
TEXT = "the delivery contract ends in may"


class World:
    """Both databases, the replica between them, and a retriever over all."""

    def __init__(self, primary: Database, standby: Database, embedding: BaseEmbedding):
        self.primary = primary
        self.embedding = embedding
        self.replica = Replica(primary, standby, pause=0.1, timeout=_PATIENCE)
        self.outcomes: list[str] = []  # who served each search
        self._retriever = ReplicatedRetriever(
            self._search_on(primary),
            self.replica,
            self._search_on,
            count=self.outcomes.append,
        )

    def _search_on(self, database: Database) -> HybridRetriever:
        return HybridRetriever(database, self.embedding, {"general": load_index("general")}, default_index="general")

    async def store(self, corpus: UUID, *, identity: Identity = ADMIN) -> UUID:
        """A document, by its id."""
        return await store_texts(self.primary, corpus, [TEXT], self.embedding, identity=identity)

    async def find(self, identity: Identity = ADMIN, filters: Filters | None = None) -> set[UUID]:
        """Documents that a search finds."""
        found = await self._retriever.search(
            Question("when does the delivery contract end", identity=identity, filters=filters or Filters())
        )
        return {hit.chunk.document.id for hit in found.hits}


@asynccontextmanager
async def open_world(primary: str, replica: str, embedding: BaseEmbedding) -> AsyncIterator[World]:
    ours, theirs = (Database(conninfo, pool_size=4, timeout=_PATIENCE) for conninfo in (primary, replica))
    await ours.open()
    world = World(ours, theirs, embedding)
    await world.replica.open()
    try:
        yield world
    finally:
        await world.replica.close()
        await ours.close()


async def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        await asyncio.sleep(0.01)


@pytest.fixture
async def world(replicated: ReplicatedDatabase, fake_embedding: BaseEmbedding) -> AsyncIterator[World]:
    async with open_world(replicated.primary, replicated.replica, fake_embedding) as opened:
        await until(lambda: opened.replica.up)
        yield opened


# -- what searches see


async def test_a_search_is_served_by_the_replica_and_finds_what_was_just_stored(
    world: World, replicated: ReplicatedDatabase
) -> None:
    corpus = await make_corpus(world.primary)
    stored = set()
    for _ in range(10):
        stored.add(await world.store(corpus))
        assert await world.find() == stored
    replicated.standby.catch_up()
    assert await world.find() == stored
    assert world.outcomes[-1] == "replica"


async def test_while_the_replica_is_behind_the_primary_serves_what_is_missing_there(
    world: World, replicated: ReplicatedDatabase
) -> None:
    corpus = await make_corpus(world.primary)
    before = await world.store(corpus)
    replicated.standby.catch_up()
    with replicated.standby.replay_paused():
        assert await world.find() == {before}
        stored = await world.store(corpus)
        for _ in range(3):
            assert await world.find() == {before, stored}
    replicated.standby.catch_up()
    assert await world.find() == {before, stored}
    assert world.outcomes == ["replica", "behind", "behind", "behind", "replica"]


async def test_waiting_in_vain_costs_one_search_its_patience_and_not_every_search(
    world: World, replicated: ReplicatedDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = await make_corpus(world.primary)
    await world.store(corpus)
    replicated.standby.catch_up()
    monkeypatch.setattr(replica_module, "PATIENCE", 1.0)
    monkeypatch.setattr(replica_module, "_IMPATIENT", 300.0)
    with replicated.standby.replay_paused():
        await world.store(corpus)
        position = await world.replica.position(ADMIN, ())
        spent = []
        for _ in range(4):
            started = time.monotonic()
            with pytest.raises(ReplicaBehindError):
                async with world.replica.at(position).transaction(ADMIN):
                    pass
            spent.append(time.monotonic() - started)
    assert spent[0] >= 1.0
    assert min(spent[1:]) < 0.8


async def test_what_others_write_keeps_nobody_off_the_replica(world: World, replicated: ReplicatedDatabase) -> None:
    alice, bob = (add_user(replicated.owner, name) for name in ("alice", "bob"))
    hers, his = [await make_corpus(world.primary, identity=who) for who in (alice, bob)]
    document = await world.store(hers, identity=alice)
    replicated.standby.catch_up()
    with replicated.standby.replay_paused():
        await world.store(his, identity=bob)
        assert await world.find(alice) == {document}
        assert world.outcomes == ["replica"]
        await world.find(bob)
        assert world.outcomes == ["replica", "behind"]


async def test_a_position_is_asked_for_in_turn_so_that_a_rush_makes_searches_late_and_not_wrong(world: World) -> None:
    turns = world.primary.turns
    async with AsyncExitStack() as held:
        for number in range(turns.limit):
            await held.enter_async_context(turns.take(f"user {number}"))
        asking = asyncio.create_task(world.replica.position(ADMIN, ()))
        await asyncio.sleep(0.2)
        assert not asking.done()
    assert (await asking).state == {}


async def test_only_the_corpora_that_are_asked_for_count(world: World, replicated: ReplicatedDatabase) -> None:
    quiet, busy = [await make_corpus(world.primary, name) for name in ("quiet", "busy")]
    document = await world.store(quiet)
    replicated.standby.catch_up()
    with replicated.standby.replay_paused():
        await world.store(busy)
        assert await world.find(filters=Filters(corpus_ids=(quiet,))) == {document}
    assert world.outcomes == ["replica"]


async def test_a_replica_that_is_further_than_asked_for_serves(world: World, replicated: ReplicatedDatabase) -> None:
    corpus = await make_corpus(world.primary)
    await world.store(corpus)
    earlier = await world.replica.position(ADMIN, ())
    await world.store(corpus)
    replicated.standby.catch_up()
    async with world.replica.at(earlier).transaction(ADMIN) as connection:
        cursor = await connection.execute("SELECT count(*) FROM documents")
        assert await cursor.fetchone() == (2,)


@pytest.mark.parametrize("how", ["deleted", "expired", "corpus deactivated", "corpus deleted", "user deactivated"])
async def test_what_is_taken_away_is_gone_at_once_although_the_replica_still_has_it(
    world: World, replicated: ReplicatedDatabase, how: str
) -> None:
    alice = add_user(replicated.owner, "alice")
    corpus = await make_corpus(world.primary, identity=alice)
    document = await world.store(corpus, identity=alice)
    replicated.standby.catch_up()
    with replicated.standby.replay_paused():
        assert await world.find(alice) == {document}
        async with world.primary.transaction(alice) as connection:
            if how == "deleted":
                await remove_document(connection, document)
            elif how == "expired":
                await set_expiry(connection, document, datetime.now(UTC))
            elif how == "corpus deactivated":
                await connection.execute("UPDATE corpora SET active = false WHERE id = %s", [corpus])
            elif how == "corpus deleted":
                await connection.execute("DELETE FROM corpora WHERE id = %s", [corpus])
        if how == "user deactivated":
            with psycopg.connect(replicated.owner, autocommit=True) as owner:
                owner.execute("UPDATE rag.users SET active = false WHERE id = %s", [alice.user_id])
        assert await world.find(alice) == set()
    assert world.outcomes == ["replica", "behind"]


async def test_a_corpus_taken_from_its_agent_is_gone_at_once(world: World, replicated: ReplicatedDatabase) -> None:
    alice = add_user(replicated.owner, "alice")
    with psycopg.connect(replicated.owner, autocommit=True) as owner:
        owner.execute("INSERT INTO rag.corpora (name, kind, index_name) VALUES ('rules', 'global', 'general')")
        (corpus,) = owner.execute("SELECT id FROM rag.corpora WHERE name = 'rules'").fetchone() or (None,)
        owner.execute("INSERT INTO rag.agents (name) VALUES ('helper')")
        owner.execute("INSERT INTO rag.agent_corpora SELECT id, %s FROM rag.agents", [corpus])
        document = await world.store(corpus)
        replicated.standby.catch_up()
        with replicated.standby.replay_paused():
            assert await world.find(alice) == {document}
            owner.execute("DELETE FROM rag.agent_corpora")
            assert await world.find(alice) == set()
    assert world.outcomes == ["replica", "behind"]


async def test_other_peoples_documents_are_as_invisible_on_the_replica(
    world: World, replicated: ReplicatedDatabase
) -> None:
    alice, bob = (add_user(replicated.owner, name) for name in ("alice", "bob"))
    document = await world.store(await make_corpus(world.primary, identity=alice), identity=alice)
    replicated.standby.catch_up()
    assert await world.find(alice) == {document}
    assert await world.find(bob) == set()
    assert world.outcomes == ["replica", "replica"]
    async with world.replica.at(await world.replica.position(bob, ())).transaction(None) as connection:
        for table in ("documents", "data_chunks", "postings", "corpora"):
            cursor = await connection.execute(f"SELECT count(*) FROM {table}")
            assert await cursor.fetchone() == (0,)


async def test_a_search_that_replay_had_to_end_is_no_reason_to_leave_the_replica_alone(
    world: World, replicated: ReplicatedDatabase
) -> None:
    corpus = await make_corpus(world.primary)
    document = await world.store(corpus)
    replicated.standby.catch_up()
    replicated.standby.execute("ALTER SYSTEM SET max_standby_streaming_delay = 0")
    replicated.standby.execute("SELECT pg_reload_conf()")
    try:
        with pytest.raises(StoreError) as caught:
            async with world.replica.at(await world.replica.position(ADMIN, ())).transaction(ADMIN) as connection:
                reading = asyncio.create_task(connection.execute("SELECT pg_sleep(20) FROM documents"))
                # Replay may end it already for a vacuum that the server has begun by itself.
                await until(lambda: reading.done() or replicated.standby.execute(_SLEEPING) == (1,))
                async with world.primary.transaction(ADMIN) as changing:
                    await remove_document(changing, document)
                with psycopg.connect(replicated.owner, autocommit=True) as owner:
                    owner.execute("VACUUM rag.documents")
                await reading
        assert isinstance(caught.value.__cause__, psycopg.errors.SerializationFailure)
        world.replica.stop_using(caught.value)
        assert world.replica.up
    finally:
        replicated.standby.execute("ALTER SYSTEM RESET max_standby_streaming_delay")
        replicated.standby.execute("SELECT pg_reload_conf()")


async def test_a_check_that_replay_had_to_end_is_no_reason_either(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    checks = []

    async def check() -> None:
        checks.append(world.replica.up)
        raise StoreError("The database failed during the request.") from psycopg.errors.SerializationFailure()

    monkeypatch.setattr(world.replica, "check", check)
    await until(lambda: len(checks) == 3)
    assert all(checks)


# -- what a replica must be


def test_a_lost_connection_is_noticed_in_seconds_unless_told_otherwise() -> None:
    given = conninfo_to_dict(replica_conninfo("postgresql://role@replica/rag?keepalives_idle=60"))
    assert (given["host"], given["keepalives_idle"], given["tcp_user_timeout"]) == ("replica", "60", "10000")


def test_a_url_that_is_none_is_refused_and_not_shown() -> None:
    with pytest.raises(ConfigurationError, match="RAG_DATABASE_REPLICA_URL") as caught:
        replica_conninfo("swordfish")
    assert "swordfish" not in caught.value.message


async def check(primary: str, replica: str) -> None:
    async with open_world(primary, replica, None) as world:  # type: ignore[arg-type]  # nothing is embedded
        await world.replica.check()


async def test_the_primary_itself_is_no_replica(replicated: ReplicatedDatabase) -> None:
    with pytest.raises(ConfigurationError, match="does not lead to a standby") as caught:
        await check(replicated.primary, replicated.primary)
    assert caught.value.field == "RAG_DATABASE_REPLICA_URL"


async def test_another_database_is_refused(replicated: ReplicatedDatabase) -> None:
    name = make_conninfo(replicated.replica, dbname="rag_template")
    with pytest.raises(ConfigurationError, match="does not lead to a copy"):
        await check(replicated.primary, name)


async def test_another_server_is_refused(replicated: ReplicatedDatabase, database_server: EmbeddedServer) -> None:
    with pytest.raises(ConfigurationError, match="does not lead to a copy"):
        await check(replicated.primary, database_server.service_conninfo)


async def test_a_role_past_row_level_security_is_refused(replicated: ReplicatedDatabase) -> None:
    owner = make_conninfo(replicated.replica, user="postgres")
    with pytest.raises(UnsafeRoleError) as caught:
        await check(replicated.primary, owner)
    assert caught.value.field == "RAG_DATABASE_REPLICA_URL"


async def test_an_older_schema_is_refused_and_searches_go_to_the_primary(
    world: World, replicated: ReplicatedDatabase
) -> None:
    document = await world.store(await make_corpus(world.primary))
    with psycopg.connect(replicated.owner, autocommit=True) as owner:
        owner.execute("UPDATE public.schema_version SET version_num = '0001'")
        replicated.standby.catch_up()
        with replicated.standby.replay_paused():
            owner.execute("UPDATE public.schema_version SET version_num = %s", [LATEST])
            with pytest.raises(StoreError, match="schema 0001"):
                await world.replica.check()
            await until(lambda: not world.replica.up)
            assert await world.find() == {document}
            assert world.outcomes == ["down"]
    await until(lambda: world.replica.up)


async def test_check_tells_whether_the_replica_can_be_used(
    replicated: ReplicatedDatabase, fake_embedding: BaseEmbedding
) -> None:
    given = Settings(
        database_url=SecretStr(replicated.primary),
        database_replica_url=SecretStr(replicated.replica),
        embedding_provider="ollama",  # of which nothing is asked here, and which takes no time to load
    )
    while await check_replica(given) != "up to date":  # on a busy machine
        replicated.standby.catch_up()
    with replicated.standby.replay_paused():
        async with open_world(replicated.primary, replicated.replica, fake_embedding) as world:
            await world.store(await make_corpus(world.primary))
        assert (await check_replica(given)).startswith("lags: ")
    wrong = given.replace({"database_replica_url": given.database.url})
    (line,) = [result for result in await check_live(wrong) if result.name == "replica"]
    assert not line.ok
    assert "RAG_DATABASE_REPLICA_URL does not lead to a standby" in line.detail


async def test_lag_is_told_in_bytes_and_seconds(world: World, replicated: ReplicatedDatabase) -> None:
    while await world.replica.lag() is not None:  # on a busy machine
        replicated.standby.catch_up()
    with replicated.standby.replay_paused():
        await world.store(await make_corpus(world.primary))
        lag = await world.replica.lag()
    assert lag is not None
    assert lag.bytes > 1000
    assert lag.seconds is not None
    assert str(lag).startswith(f"{lag.bytes} bytes, ")

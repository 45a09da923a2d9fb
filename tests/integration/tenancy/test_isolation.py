"""The database decides who sees what; these tests go around the application where they can."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path
from uuid import UUID, uuid4

import psycopg
import pytest
from procrastinate.schema import migrations_path
from psycopg import sql

from rag_service.domain import CorpusKind, Filters, Identity, Role
from rag_service.errors import ConflictError, NotFoundError, PermissionDeniedError
from rag_service.settings import Settings
from rag_service.store.accounts.agents import (
    AgentSpec,
    assign_corpus,
    create_agent,
    delete_agent,
    list_agents,
    resolve_agent_scope,
    update_agent,
)
from rag_service.store.accounts.answers import Thumbs, give_feedback, list_feedback
from rag_service.store.accounts.conversations import add_message, create_conversation, create_project, read_conversation
from rag_service.store.accounts.keys import ALL_SCOPES, create_key, list_keys, revoke_key
from rag_service.store.accounts.users import update_user
from rag_service.store.corpora import create_corpus, list_corpora, read_corpus, require_writable, update_corpus
from rag_service.store.database import Database
from rag_service.store.migrate import QUEUE_SCHEMA
from rag_service.store.opening import make_database
from rag_service.store.rows import Slice
from rag_service.store.search.scope import resolve_scope
from tests.conftest import vector_literal
from tests.integration.tenancy.conftest import ADMIN, House, text_file

PEOPLE = 200
SEARCHES = 5_000
ALL = Slice(limit=500)


async def test_without_identity_no_table_shows_a_row(house: House) -> None:
    ana = await _live(house)
    with house.owner() as owner:
        filled = {name for name in _tables(owner) if _count(owner, name)}
    assert len(filled) >= 20, filled  # the test would prove nothing about empty tables
    with psycopg.connect(house.server.service_conninfo, autocommit=True) as stranger:
        for name in _tables(stranger):
            assert _count_if_allowed(stranger, name) == 0, name
        stranger.execute("SELECT set_config('rag.user_id', %s, false)", [str(uuid4())])  # a made-up one
        for name in _tables(stranger):
            assert _count_if_allowed(stranger, name) == 0, name
        stranger.execute("SELECT set_config('rag.user_id', %s, false)", [str(ana.user_id)])
        assert _count_if_allowed(stranger, "documents") == 1  # and the count above is no accident


async def test_every_table_has_row_level_security(house: House) -> None:
    with house.owner() as owner:
        unprotected = owner.execute(
            "SELECT relname FROM pg_class WHERE relnamespace = 'rag'::regnamespace AND relkind IN ('r', 'p')"
            " AND NOT relrowsecurity"
        ).fetchall()
    assert unprotected == []


async def test_functions_that_see_past_row_level_security_are_not_public(house: House) -> None:
    known = {
        "is_admin",
        "is_user",
        "count_postings",
        "delete_postings",
        "count_chunks",
        "count_document_changes",
        "check_assignment",
        "discard_original",
    }
    with house.owner() as owner:
        public = owner.execute(
            "SELECT proname FROM pg_proc WHERE pronamespace = 'rag'::regnamespace AND prosecdef"
            " AND (proacl IS NULL OR EXISTS (SELECT FROM aclexplode(proacl) a WHERE a.grantee = 0))"
        ).fetchall()
        unpinned = owner.execute(
            "SELECT proname FROM pg_proc WHERE pronamespace = 'rag'::regnamespace AND prosecdef"
            " AND NOT coalesce(proconfig, '{}')::text LIKE '%search_path%'"
        ).fetchall()
    assert {row[0] for row in public} <= known  # these tell the caller about himself, or are triggers
    assert unpinned == []


def test_the_queue_schema_is_the_one_of_the_installed_package() -> None:
    newest = max(file.name for file in Path(migrations_path).glob("*.sql"))
    assert newest == QUEUE_SCHEMA, "procrastinate changed its schema: write a revision that applies its new migrations"


@pytest.mark.slow
async def test_many_interleaved_people_on_two_connections_see_their_own_only(house: House) -> None:
    """5,000 searches of 200 people; every row found is compared with its owner."""
    people = await asyncio.to_thread(_settle, house)
    database = Database(house.server.service_conninfo, pool_size=2, timeout=300)
    await database.open()
    vector = vector_literal(house.embedding.get_query_embedding("shared word"))
    foreign = found = 0

    async def search(person: UUID) -> None:
        nonlocal foreign, found
        async with database.transaction(Identity(user_id=person)) as connection:
            cursor = await connection.execute(
                "SELECT corpus_id, text FROM data_chunks ORDER BY (embedding <=> %s::halfvec) + 0 LIMIT 5", [vector]
            )
            rows = await cursor.fetchall()
        found += len(rows)
        foreign += sum(1 for corpus_id, text in rows if corpus_id != people[person] or str(person) not in text)

    draw = random.Random(4)  # noqa: S311 - the same order every time
    try:
        await asyncio.gather(*(search(draw.choice(list(people))) for _ in range(SEARCHES)))
    finally:
        await database.close()
    assert (foreign, found) == (0, SEARCHES)


async def test_identity_does_not_outlive_its_transaction(house: House) -> None:
    ana = await _live(house)
    database = Database(house.server.service_conninfo, pool_size=1, timeout=5)
    await database.open()
    try:
        async with database.transaction(ana) as connection:
            assert (await (await connection.execute("SELECT count(*) FROM documents")).fetchone()) == (1,)
        async with database.transaction(None) as connection:
            assert (await (await connection.execute("SELECT count(*) FROM documents")).fetchone()) == (0,)
    finally:
        await database.close()


async def test_a_shared_corpus_is_read_by_every_user_and_written_by_none_of_them(house: House) -> None:
    ana = await house.user("ana")
    handbook = await house.corpus(ADMIN, "handbook", CorpusKind.GLOBAL)
    await house.index(ADMIN, handbook, text_file("a.txt", "Llamas eat grass."))

    async def share(shared: bool | None = None, active: bool | None = None) -> None:
        async with house.database.transaction(ADMIN) as connection:
            await update_corpus(connection, handbook.id, shared=shared, active=active)

    assert not await house.ask(ana, "llamas")  # as in databases of earlier releases
    await share(True)
    assert await house.ask(ana, "llamas")
    async with house.database.transaction(ana) as connection:
        assert (await read_corpus(connection, handbook.id)).shared
        with pytest.raises(PermissionDeniedError):
            await require_writable(connection, handbook.id)
        with pytest.raises(PermissionDeniedError):
            await update_corpus(connection, handbook.id, shared=False)
    await share(active=False)
    assert not await house.ask(ana, "llamas")
    await share(False, active=True)
    assert not await house.ask(ana, "llamas")
    with house.owner() as owner:  # a user who was deactivated reads nothing that is shared
        owner.execute("UPDATE rag.corpora SET shared = true")
        owner.execute("UPDATE rag.users SET active = false WHERE id = %s", [ana.user_id])
    assert not await house.ask(ana, "llamas")


async def test_a_personal_corpus_is_never_shared(house: House) -> None:
    ana, ben = await house.user("ana"), await house.user("ben")
    notes = await house.corpus(ana, "notes")
    await house.index(ana, notes, text_file("a.txt", "Llamas eat grass."))
    async with house.database.transaction(ana) as connection:
        await update_corpus(connection, notes.id, shared=True)
    assert await house.ask(ana, "llamas") and not await house.ask(ben, "llamas")


@pytest.mark.parametrize("share", [True, False])
async def test_new_global_corpora_are_shared_as_the_setting_says(house: House, share: bool) -> None:
    settings = Settings(share_global_corpora=share)
    database = make_database(settings, house.server.service_conninfo)
    await database.open()
    try:
        async with database.transaction(ADMIN) as connection:
            made = {
                said: await create_corpus(
                    connection, ADMIN, name=f"c{said}", kind=CorpusKind.GLOBAL, index_name="general", shared=said
                )
                for said in (None, True, False)
            }
        assert {said: corpus.shared for said, corpus in made.items()} == {None: share, True: True, False: False}
    finally:
        await database.close()


async def test_a_global_corpus_that_is_not_shared_is_read_through_an_agent_only(house: House) -> None:
    ana = await house.user("ana")
    handbook = await house.corpus(ADMIN, "handbook", CorpusKind.GLOBAL)
    await house.index(ADMIN, handbook, text_file("a.txt", "Llamas eat grass."))

    async def ana_finds() -> bool:
        return bool(await house.ask(ana, "llamas"))

    assert await house.ask(ADMIN, "llamas")
    assert not await ana_finds()
    async with house.database.transaction(ADMIN) as connection:
        agent = await create_agent(connection, AgentSpec(name="helper"))
        await assign_corpus(connection, agent.id, handbook.id)
    assert await ana_finds()
    async with house.database.transaction(ADMIN) as connection:
        await update_agent(connection, agent.id, AgentSpec(name="helper", active=False))
    assert not await ana_finds()
    async with house.database.transaction(ADMIN) as connection:
        await update_agent(connection, agent.id, AgentSpec(name="helper"))
        await update_corpus(connection, handbook.id, active=False)
    assert not await ana_finds()
    async with house.database.transaction(ADMIN) as connection:
        await update_corpus(connection, handbook.id, active=True)
    assert await ana_finds()
    async with house.database.transaction(ana) as connection:
        with pytest.raises(PermissionDeniedError):
            await update_corpus(connection, handbook.id, name="mine")
    async with house.database.transaction(ADMIN) as connection:
        await delete_agent(connection, agent.id)
    assert not await ana_finds()


async def test_a_personal_corpus_goes_only_where_the_agent_allows_it(house: House) -> None:
    ana, ben = await house.user("ana"), await house.user("ben")
    mine = await house.corpus(ana)
    async with house.database.transaction(ADMIN) as connection:
        closed = await create_agent(connection, AgentSpec(name="closed"))
        open_one = await create_agent(connection, AgentSpec(name="open", allows_personal_corpus=True))
    async with house.database.transaction(ana) as connection:
        with pytest.raises(ConflictError):
            await assign_corpus(connection, closed.id, mine.id)
    with house.owner() as owner, pytest.raises(psycopg.errors.CheckViolation):  # not even the owner of the tables
        owner.execute("INSERT INTO rag.agent_corpora VALUES (%s, %s)", [closed.id, mine.id])
    for stranger in (ben, ADMIN):
        async with house.database.transaction(stranger) as connection:
            with pytest.raises(NotFoundError):
                await assign_corpus(connection, open_one.id, mine.id)
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            async with house.database.transaction(stranger) as connection:
                await connection.execute("INSERT INTO agent_corpora VALUES (%s, %s)", [open_one.id, mine.id])
    async with house.database.transaction(ana) as connection:
        await assign_corpus(connection, open_one.id, mine.id)
        await assign_corpus(connection, open_one.id, mine.id)
        scope = await resolve_agent_scope(connection, open_one, owner_id=ana.user_id)
        assert (scope.global_ids, scope.personal_ids) == ((), (mine.id,))
        assert (await resolve_agent_scope(connection, closed, owner_id=ana.user_id)).personal_ids == ()
    # checked again when the question is asked
    async with house.database.transaction(ADMIN) as connection:
        now_closed = await update_agent(connection, open_one.id, AgentSpec(name="open"))
    async with house.database.transaction(ana) as connection:
        assert (await resolve_agent_scope(connection, now_closed, owner_id=ana.user_id)).personal_ids == ()
    async with house.database.transaction(ben) as connection:
        assert (await resolve_agent_scope(connection, open_one, owner_id=ben.user_id)).personal_ids == ()


async def test_references_to_others_objects_are_refused(house: House) -> None:
    """Foreign keys do not know row-level security; the policies must."""
    ana, ben = await house.user("ana"), await house.user("ben")
    async with house.database.transaction(ADMIN) as connection:
        agent = await create_agent(connection, AgentSpec(name="helper"))
    async with house.database.transaction(ana) as connection:
        project = await create_project(connection, ana, name="p")
        chat = await create_conversation(connection, ana, agent_id=agent.id, project_id=project.id, title="t")
        answer_id = uuid4()
        await connection.execute(
            'INSERT INTO answers (id, user_id, record) VALUES (%s, %s, \'{"question": "q", "answer": "a"}\')',
            [answer_id, ana.user_id],
        )
    async with house.database.transaction(ben) as connection:
        with pytest.raises(NotFoundError):
            await read_conversation(connection, chat.id)
        with pytest.raises(NotFoundError):
            await add_message(connection, ben, chat.id, role="user", content="x")
        with pytest.raises(NotFoundError):
            await give_feedback(connection, ben, answer_id, thumbs=Thumbs.DOWN)
    with pytest.raises(NotFoundError):
        async with house.database.transaction(ben) as connection:
            await create_conversation(connection, ben, agent_id=agent.id, project_id=project.id, title="t")
    insertions = [
        ("INSERT INTO messages (conversation_id, user_id, role, content) VALUES (%s, %s, 'user', 'x')", chat.id),
        ("INSERT INTO feedback (answer_id, user_id, thumbs) VALUES (%s, %s, 'up')", answer_id),
    ]
    for statement, reference in insertions:
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            async with house.database.transaction(ben) as connection:
                await connection.execute(statement, [reference, ben.user_id])
    async with house.database.transaction(ana) as connection:
        await give_feedback(connection, ana, answer_id, thumbs=Thumbs.DOWN, comment="no")
        again = await give_feedback(connection, ana, answer_id, thumbs=Thumbs.DOWN, comment="wrong")
        assert (again.question, again.answer, again.comment) == ("q", "a", "wrong")
    async with house.database.transaction(ADMIN) as connection:
        assert [item.comment for item in (await list_feedback(connection, ALL, thumbs=Thumbs.DOWN)).items] == ["wrong"]
        with pytest.raises(NotFoundError):  # reviewers see feedback, not conversations
            await read_conversation(connection, chat.id)
    async with house.database.transaction(ben) as connection:
        assert (await list_feedback(connection, ALL)).total == 0


async def test_nobody_adds_a_source_that_runs_as_somebody_else(house: House) -> None:
    ben = await house.user("ben")
    corpus = await house.corpus(ben)
    add = "INSERT INTO sources (corpus_id, user_id, target, every_seconds) VALUES (%s, %s, %s, 900)"
    async with house.database.transaction(ben) as connection:
        await connection.execute(add, [corpus.id, ben.user_id, "https://a.example"])
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        async with house.database.transaction(ben) as connection:
            await connection.execute(add, [corpus.id, ADMIN.user_id, "https://b.example"])


async def test_keys_are_seen_and_revoked_by_their_owner_and_administrators(house: House) -> None:
    ana, ben = await house.user("ana"), await house.user("ben")
    async with house.database.transaction(ana) as connection:
        key, secret = await create_key(connection, user_id=ana.user_id, name="laptop", scopes=ALL_SCOPES)
    assert len(secret) == 47
    async with house.database.transaction(ben) as connection:
        assert (await list_keys(connection, ALL)).total == 0
        with pytest.raises(NotFoundError):
            await revoke_key(connection, key.id)
    with pytest.raises(PermissionDeniedError):
        async with house.database.transaction(ben) as connection:
            await create_key(connection, user_id=ana.user_id, name="stolen", scopes=ALL_SCOPES)
    with pytest.raises(psycopg.errors.InsufficientPrivilege):  # not even one's own hash
        async with house.database.transaction(ana) as connection:
            await connection.execute("SELECT key_hash FROM api_keys")
    async with house.database.transaction(ADMIN) as connection:
        assert (await revoke_key(connection, key.id)).revoked_at is not None
    with house.owner() as owner:
        rows = owner.execute("SELECT * FROM rag.api_keys").fetchall()
    assert secret not in str(rows)


async def test_a_deactivated_user_sees_nothing_and_loses_nothing(house: House) -> None:
    ana = await _live(house)
    async with house.database.transaction(ADMIN) as connection:
        await update_user(connection, ADMIN, ana.user_id, active=False)
    assert await house.ask(ana, "llamas") == set()
    async with house.database.transaction(ana) as connection:
        assert (await list_corpora(connection, ALL)).total == 0
        assert (await list_agents(connection, ALL)).total == 0
    async with house.database.transaction(ADMIN) as connection:
        await update_user(connection, ADMIN, ana.user_id, active=True)
    assert await house.ask(ana, "llamas")


async def test_administrators_cannot_lock_themselves_out_and_users_cannot_promote_themselves(house: House) -> None:
    ana = await house.user("ana")
    async with house.database.transaction(ADMIN) as connection:
        with pytest.raises(ConflictError):
            await update_user(connection, ADMIN, ADMIN.user_id, role=Role.USER)
    async with house.database.transaction(ana) as connection:
        with pytest.raises(NotFoundError):
            await update_user(connection, ana, ana.user_id, role=Role.ADMIN)


async def test_statistics_of_other_tenants_do_not_move_a_score(house: House) -> None:
    ana, ben = await house.user("ana"), await house.user("ben")
    mine = await house.corpus(ana)
    await house.index(ana, mine, text_file("a.txt", "Llamas live in the Andes."))
    async with house.database.transaction(ana) as connection:
        before = await resolve_scope(connection, Filters())
    theirs = await house.corpus(ben)
    await house.index(ben, theirs, *(text_file(f"{n}.txt", f"Llamas number {n}.") for n in range(5)))
    async with house.database.transaction(ana) as connection:
        assert await resolve_scope(connection, Filters()) == before
        assert (await resolve_scope(connection, Filters(corpus_ids=(theirs.id,)))).corpus_ids == ()
        with pytest.raises(NotFoundError):
            await read_corpus(connection, theirs.id)


async def _live(house: House) -> Identity:
    """A user with something in every table; returns her."""
    ana = await house.user("ana")
    corpus = await house.corpus(ana)
    await house.index(ana, corpus, text_file("llamas.txt", "Llamas live in the Andes."))
    async with house.database.transaction(ADMIN) as connection:
        agent = await create_agent(connection, AgentSpec(name="helper", allows_personal_corpus=True))
    async with house.database.transaction(ana) as connection:
        await assign_corpus(connection, agent.id, corpus.id)
        project = await create_project(connection, ana, name="p")
        chat = await create_conversation(connection, ana, agent_id=agent.id, project_id=project.id, title="t")
        await add_message(connection, ana, chat.id, role="user", content="hello")
        await create_key(connection, user_id=ana.user_id, name="laptop", scopes=ALL_SCOPES)
        await connection.execute(
            "INSERT INTO answers (id, user_id, record) VALUES (%s, %s, '{}')", [agent.id, ana.user_id]
        )
        await give_feedback(connection, ana, agent.id, thumbs=Thumbs.UP)
    with house.owner() as owner:
        owner.execute("INSERT INTO rag.discarded_originals (location) VALUES ('somewhere')")
        owner.execute("INSERT INTO rag.procrastinate_workers DEFAULT VALUES")
        owner.execute("INSERT INTO rag.procrastinate_periodic_defers (task_name) VALUES ('t')")
        owner.execute("INSERT INTO rag.procrastinate_jobs (queue_name, task_name) VALUES ('q', 't')")
    return ana


def _tables(connection: psycopg.Connection) -> list[str]:
    rows = connection.execute(
        "SELECT relname FROM pg_class WHERE relnamespace = 'rag'::regnamespace AND relkind IN ('r', 'p', 'v', 'm')"
    ).fetchall()
    return [row[0] for row in rows]


def _count(connection: psycopg.Connection, table: str) -> int:
    row = connection.execute(sql.SQL("SELECT count(*) FROM rag.{}").format(sql.Identifier(table))).fetchone()
    assert row is not None
    return int(row[0])


def _count_if_allowed(connection: psycopg.Connection, table: str) -> int:
    try:
        return _count(connection, table)
    except psycopg.errors.InsufficientPrivilege:
        return 0


def _settle(house: House) -> dict[UUID, UUID]:
    """Users with a corpus and a chunk each, written as owner in one go: user → corpus."""
    vector = vector_literal(house.embedding.get_query_embedding("shared word"))
    with house.owner() as owner:
        owner.execute(
            "INSERT INTO rag.users (name, role) SELECT 'u' || n, 'user' FROM generate_series(1, %s) n", [PEOPLE]
        )
        owner.execute(
            "INSERT INTO rag.corpora (name, kind, owner_id, index_name)"
            " SELECT name, 'personal', id, 'general' FROM rag.users WHERE role = 'user'"
        )
        owner.execute(
            "INSERT INTO rag.documents (corpus_id, name, title, content_hash, fingerprint, chunk_count)"
            " SELECT id, 'd', 'd', 'h', 'f', 1 FROM rag.corpora"
        )
        owner.execute(
            "INSERT INTO rag.data_chunks (text, node_id, embedding, corpus_id, document_id, chunk_index,"
            " char_start, char_end, length)"
            " SELECT c.owner_id::text, d.id::text, %s::halfvec, c.id, d.id, 0, 0, 1, 1"
            " FROM rag.documents d JOIN rag.corpora c ON c.id = d.corpus_id",
            [vector],
        )
        return dict(owner.execute("SELECT owner_id, id FROM rag.corpora").fetchall())

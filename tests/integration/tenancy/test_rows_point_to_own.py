"""As the service's role, a user's rows name nothing of another user: what row-level security decides, not the code."""

from __future__ import annotations

from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest

from rag_service.domain import CorpusKind, Identity
from rag_service.store.accounts.conversations import add_message, create_conversation, share_conversation
from rag_service.store.corpora import Corpus
from tests.integration.tenancy.conftest import ADMIN, House, text_file

HASH = "a" * 64


async def stored(house: House, user: Identity) -> tuple[Corpus, UUID]:
    """A corpus with a document."""
    corpus = await house.corpus(user)
    (upload,) = await house.index(user, corpus, text_file("notes.md", "Llamas sleep in the barn."))
    return corpus, upload.document_id


def statements(corpus: UUID, document: UUID, table: UUID, user: UUID) -> dict[str, tuple[str, list[Any]]]:
    """Rows of a corpus that point to a document, a table or a user."""
    place = f"{corpus}/{document}/{HASH}-0123abcd"
    original = "INSERT INTO rag.originals (document_id, corpus_id, content_hash, location) VALUES (%s, %s, %s, %s)"
    upload = (
        "INSERT INTO rag.uploads (document_id, corpus_id, user_id, content_hash, file_name, size_bytes, status)"
        " VALUES (%s, %s, %s, 'x', 'x', 1, 'failed')"
    )
    return {
        "document_texts": ("INSERT INTO rag.document_texts (document_id, corpus_id, text) VALUES (%s, %s, 'x')"
                           " ON CONFLICT DO NOTHING", [document, corpus]),
        "postings": ("INSERT INTO rag.postings (corpus_id, document_id, term, entries) "
            "VALUES (%s, %s, 'x', (SELECT entries FROM rag.postings LIMIT 1))",
                     [corpus, document]),
        "originals": (original, [document, corpus, HASH, place]),
        "tables": ("INSERT INTO rag.tables (document_id, corpus_id, number, columns, row_count)"
                   " VALUES (%s, %s, 9, '[]', 0)", [document, corpus]),
        "uploads": (upload, [document, corpus, user]),
        "synced_files": ("INSERT INTO rag.synced_files (corpus_id, target, path, document_id, size_bytes, mtime_ns,"
                         " content_hash, brought) VALUES (%s, 't', 'p', %s, 1, 1, 'x', true)", [corpus, document]),
        "table_rows": ("INSERT INTO rag.table_rows (table_id, number, corpus_id, is_data, is_heading, cells)"
                       " VALUES (%s, 99, %s, true, false, '[]')", [table, corpus]),
        "table_texts": ("INSERT INTO rag.table_texts (table_id, corpus_id, place) VALUES (%s, %s, 99)",
                        [table, corpus]),
    }  # fmt: skip


def chunk(corpus: UUID, document: UUID) -> tuple[str, list[Any]]:
    return (
        "INSERT INTO rag.data_chunks (text, metadata_, node_id, embedding, corpus_id, document_id, chunk_index,"
        " char_start, char_end, length)"
        " VALUES ('x', '{}', %s, array_fill(0.1, ARRAY[384])::halfvec, %s, %s, 99, 0, 1, 1)",
        [str(uuid4()), corpus, document],
    )


async def test_rows_name_no_document_table_user_answer_or_place_of_another(house: House) -> None:
    ana, berta = await house.user("ana"), await house.user("berta")
    hers, her_document = await stored(house, ana)
    own, own_document = await stored(house, berta)
    with house.owner() as owner:
        tables: list[UUID] = []
        for corpus, document in ((hers.id, her_document), (own.id, own_document)):
            row = owner.execute(
                "INSERT INTO rag.tables (document_id, corpus_id, number, columns, row_count)"
                " VALUES (%s, %s, 0, '[]', 0) RETURNING id", [document, corpus],
            ).fetchone()  # fmt: skip
            assert row is not None
            tables.append(row[0])
        her_answer = uuid4()
        owner.execute("INSERT INTO rag.answers (id, user_id, record) VALUES (%s, %s, '{}')", [her_answer, ana.user_id])
    foreign = statements(own.id, her_document, tables[0], berta.user_id)
    foreign["data_chunks"] = chunk(own.id, her_document)
    right = statements(own.id, own_document, tables[1], berta.user_id)
    right["data_chunks"] = chunk(own.id, own_document)
    upload, (document, corpus, _) = right["uploads"]
    foreign["uploads of another"] = (upload, [document, corpus, ana.user_id])
    original, (document, corpus, digest, _) = right["originals"]
    for place in ("file:///etc/passwd", f"{hers.id}/{her_document}/{HASH}-0123abcd", f"{own.id}/../x", ""):
        foreign[f"originals at {place}"] = (original, [document, corpus, digest, place])
    async with house.database.transaction(berta) as connection:
        conversation = await create_conversation(connection, berta, agent_id=None, project_id=None, title="mine")
    message = (
        "INSERT INTO rag.messages (conversation_id, user_id, role, content, answer_id)"
        " VALUES (%s, %s, 'assistant', 'x', %s)"
    )
    foreign["messages"] = (message, [conversation.id, berta.user_id, her_answer])
    right["messages"] = (message, [conversation.id, berta.user_id, uuid4()])  # whose record is gone
    with psycopg.connect(house.server.service_conninfo, autocommit=True) as service:
        service.execute("SELECT set_config('rag.user_id', %s, false)", [str(berta.user_id)])
        for name, (statement, values) in foreign.items():
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                service.execute(statement, values)
                pytest.fail(f"accepted: {name}")
        for name, (statement, values) in right.items():
            try:
                service.execute(statement, values)
            except psycopg.Error as error:
                pytest.fail(f"refused: {name}: {error}")


async def test_the_name_of_who_shares_is_told_to_those_who_may_read_alone(house: House) -> None:
    ana, berta = await house.user("ana"), await house.user("berta")
    closed = await house.corpus(ADMIN, "closed", CorpusKind.GLOBAL)
    async with house.database.transaction(ana) as connection:
        conversation = await create_conversation(connection, ana, agent_id=None, project_id=None, title="shared")
        await add_message(connection, ana, conversation.id, role="user", content="Hello")
        await share_conversation(connection, conversation.id)

    def name() -> str | None:
        with psycopg.connect(house.server.service_conninfo, autocommit=True) as service:
            service.execute("SELECT set_config('rag.user_id', %s, false)", [str(berta.user_id)])
            row = service.execute("SELECT rag.sharer(%s)", [conversation.id]).fetchone()
            return None if row is None else row[0]

    assert name() == "ana"
    with house.owner() as owner:
        owner.execute(
            "UPDATE rag.conversations SET corpora = ARRAY[%s::uuid] WHERE id = %s", [closed.id, conversation.id]
        )
    assert name() is None

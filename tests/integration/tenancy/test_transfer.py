"""A corpus as one file: what an import brings back, and who may export and import."""

from __future__ import annotations

import asyncio
import hashlib
import io
from collections.abc import AsyncIterator, Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx
import pytest
from structlog.testing import capture_logs

from rag_service.domain import CorpusKind, Identity
from rag_service.errors import (
    ArchiveError,
    ArchiveTooLargeError,
    ConflictError,
    InputError,
    NotFoundError,
    PermissionDeniedError,
    RateLimitedError,
)
from rag_service.ingest.ingestor import Ingestor
from rag_service.ingest.transfer import archive
from rag_service.ingest.transfer.importing import Imported, ImportOptions
from rag_service.ingest.transfer.transfers import Transfers, build_transfers
from rag_service.readers.file_reader import FileReader
from rag_service.store.accounts.keys import Scope
from rag_service.store.corpora import Corpus, delete_corpus, lock_corpora, update_corpus
from rag_service.store.documents.documents import DocumentInput
from rag_service.store.documents.originals import Originals
from rag_service.store.documents.sources import add_source
from tests.integration.tenancy.conftest import ADMIN, House, load_indices, parse_here, text_file
from tests.integration.tenancy.web import build_application, client_of, new_key, web_settings
from tests.transfer_files import Change, changed, edit, members_of

SHEET = "Item,Price,Sold\n" + "".join(f"Llama {number},{number}.50,2024-03-{number:02}\n" for number in range(1, 12))
NOTE = (
    "# Barn\n\nIn force from 1 May 2024.\n\nLlamas sleep at noon in the barn.\n\n## Food\n\nAlpacas eat hay at night."
)


def transfers_of(house: House, *, model: str = "fake", **changes: Any) -> Transfers:
    reader = FileReader(parse_here, concurrency=2)
    ingestor = Ingestor(house.database, house.embedding, reader, model=model, dimension=384)
    return build_transfers(web_settings(**changes), ingestor, house.originals, load_indices())


async def export(house: House, identity: Identity, corpus_id: UUID) -> bytes:
    return b"".join([piece async for piece in transfers_of(house).export(corpus_id, identity)])


async def load(
    house: House, identity: Identity, data: bytes, *, transfers: Transfers | None = None, **options: Any
) -> Imported:
    parts = transfers or transfers_of(house)
    return await parts.imports.read(io.BytesIO(data), identity, ImportOptions(**options))


async def fill(house: House, identity: Identity, kind: CorpusKind = CorpusKind.PERSONAL) -> Corpus:
    corpus = await house.corpus(identity, "barn", kind)
    note = DocumentInput(
        data=NOTE.encode(), file_name="note.md", name="notes/note.md", source="shelf", tags=("a", "b"),
        fields={"topic": "llamas"}, metadata={"pages": {"first": 1}},
    )  # fmt: skip
    await house.index(identity, corpus, note)  # one after the other: the file has them in this order
    await house.index(identity, corpus, text_file("sheet.csv", SHEET))
    return corpus


CONTENT = """
    SELECT d.name, d.title, d.file_name, d.source, d.tags, d.language, d.media_type, d.content_hash, d.fingerprint,
           d.fields, d.metadata, d.territory, d.dated, d.chunk_count, d.size_bytes, d.created_at, d.updated_at, t.text,
           (SELECT array_agg(o.data) FROM rag.originals o WHERE o.document_id = d.id),
           (SELECT array_agg((replace(c.node_id, d.id::text, 'ID'), c.text, c.embedding::text, c.chunk_index,
                              c.chunk_type, c.char_start, c.char_end, c.spans, c.length,
                              replace(c.metadata_::text, d.id::text, 'ID'))::text ORDER BY c.chunk_index)
            FROM rag.data_chunks c WHERE c.document_id = d.id),
           (SELECT array_agg((p.term, length(p.entries))::text ORDER BY p.term) FROM rag.postings p
            WHERE p.document_id = d.id),
           (SELECT array_agg((b.number, b.sheet, b.caption, b.columns, b.row_count, b.unit, b.by_period, b.page,
                              (SELECT array_agg((r.number, r.is_data, r.is_heading, r.section, r.page, r.cells)::text
                                                ORDER BY r.number) FROM rag.table_rows r WHERE r.table_id = b.id),
                              (SELECT array_agg((x.place, x.keys, x.texts)::text ORDER BY x.place)
                               FROM rag.table_texts x WHERE x.table_id = b.id))::text ORDER BY b.number)
            FROM rag.tables b WHERE b.document_id = d.id)
    FROM rag.documents d LEFT JOIN rag.document_texts t ON t.document_id = d.id
    WHERE d.corpus_id = %s ORDER BY d.name"""
STATISTICS = """
    SELECT (SELECT (chunk_count, term_count)::text FROM rag.corpus_statistics WHERE corpus_id = %(id)s),
           (SELECT array_agg((term, chunk_frequency)::text ORDER BY term) FROM rag.term_statistics
            WHERE corpus_id = %(id)s)"""


def stored(house: House, corpus: Corpus) -> list[Any]:
    """Everything of a corpus but its ids."""
    with house.owner() as owner:
        documents = owner.execute(CONTENT, [corpus.id]).fetchall()
        return [documents, owner.execute(STATISTICS, {"id": corpus.id}).fetchall()]


def number_of(house: House, table: str) -> int:
    with house.owner() as owner:
        row = owner.execute(f"SELECT count(*) FROM rag.{table}").fetchone()  # type: ignore[arg-type]  # fixed text
        assert row is not None
        return int(row[0])


async def test_an_import_brings_back_everything_and_gives_it_to_the_importer(house: House) -> None:
    ana, ben = await house.user("ana"), await house.user("ben")
    corpus = await fill(house, ana)
    data = await export(house, ana, corpus.id)
    members = members_of(data)
    assert members["documents/000001/original"] == NOTE.encode()
    assert members["documents/000001/text.txt"].decode() == NOTE
    imported = await load(house, ben, data)
    assert (imported.documents, imported.chunks, imported.stale, imported.embedded_again) == (2, 2, 0, False)
    assert imported.corpus.owner_id == ben.user_id
    assert imported.corpus.kind is CorpusKind.PERSONAL
    before, after = stored(house, corpus), stored(house, imported.corpus)
    assert after == before
    assert before[0][0][12].isoformat() == "2024-05-01"  # the day since when it holds
    assert await house.ask(ben, "Where do llamas sleep?") == await house.ask(ana, "Where do llamas sleep?")
    with pytest.raises(NotFoundError):
        await export(house, ana, imported.corpus.id)
    assert await export(house, ben, imported.corpus.id) != data  # other ids
    assert stored(house, (await load(house, ana, data, name="again")).corpus) == before


async def test_whatever_length_a_stored_chunk_has_its_export_is_imported(house: House) -> None:
    ana = await house.user("ana")
    corpus, words = await fill(house, ana), "llamas hum at night "
    with house.owner() as owner:
        owner.execute(
            "UPDATE rag.data_chunks SET text = repeat(%s, 3000) WHERE corpus_id = %s AND chunk_index = 0",
            [words, corpus.id],
        )
    imported = await load(house, ana, await export(house, ana, corpus.id), name="again")
    with house.owner() as owner:
        rows = owner.execute(
            """SELECT d.chunk_count, count(*), max(length(c.text)), string_agg(c.text, '' ORDER BY c.chunk_index),
                      count(DISTINCT c.embedding::text)
               FROM rag.documents d JOIN rag.data_chunks c ON c.document_id = d.id
               WHERE d.corpus_id = %s GROUP BY d.id""",
            [imported.corpus.id],
        ).fetchall()
    assert len(rows) == 2
    for counted, found, longest, text, vectors in rows:
        assert counted == found == 3
        assert longest <= 20_000
        assert text == words * 3_000
        assert vectors == 1
    assert imported.chunks == 6


async def test_a_media_type_that_would_be_more_than_one_header_is_left_out(house: House) -> None:
    data = await export(house, ADMIN, (await fill(house, ADMIN)).id)
    forged = changed(data, edit("documents/000001/document.json", media_type="text/html\r\nSet-Cookie: a=b"))
    corpus = (await load(house, ADMIN, forged, name="again")).corpus
    assert [row[6] for row in stored(house, corpus)[0]] == [None, "text/csv"]


async def test_an_import_counts_its_terms_once_for_many_documents(house: House) -> None:
    """Each time costs a look at all times before, until the transaction ends: thousands would take hours."""
    data = await export(house, ADMIN, (await fill(house, ADMIN)).id)
    corpus = (await load(house, ADMIN, data, name="again")).corpus
    with house.owner() as owner:
        changes = owner.execute("SELECT version FROM rag.corpus_statistics WHERE corpus_id = %s", [corpus.id])
        assert changes.fetchone() == (2,)  # the chunks of both documents, and their times


async def test_settings_come_back_and_access_only_if_the_importer_says_so(house: House) -> None:
    corpus = await fill(house, ADMIN, CorpusKind.GLOBAL)
    async with house.database.transaction(ADMIN) as connection:
        await add_source(
            connection, ADMIN, corpus_id=corpus.id, target="https://user:secret@example.org/a?token=secret#b", depth=2,
            every_seconds=3600,
        )  # fmt: skip
        await update_corpus(connection, corpus.id, ttl_seconds=500, shared=True, groups=["herders"], active=False)
    data = await export(house, ADMIN, corpus.id)
    assert b"secret" not in data
    plain, kept = [await load(house, ADMIN, data, name=name, keep_access=name == "kept") for name in ("plain", "kept")]
    assert (plain.corpus.kind, plain.corpus.ttl_seconds, plain.corpus.active) == (CorpusKind.GLOBAL, 500, False)
    assert (plain.corpus.shared, plain.corpus.groups) == (False, ())
    assert (kept.corpus.shared, kept.corpus.groups) == (True, ("herders",))
    assert [source.target for source in plain.sources] == ["https://example.org/a"]
    assert number_of(house, "sources") == 1


async def test_vectors_of_another_model_or_dimension_are_made_again(house: House) -> None:
    ana = await house.user("ana")
    corpus = await fill(house, ana)
    data = await export(house, ana, corpus.id)
    # By another model, of another dimension, and with the fingerprint that its documents had there.
    theirs = load_indices()["general"].fingerprint(embedding_model="theirs", dimension=8)

    def shorten(members: dict[str, bytes]) -> None:
        edit("manifest.json", embedding={"model": "theirs", "dimension": 8})(members)
        edit("documents/000001/document.json", fingerprint=theirs)(members)  # the other one had other settings, too
        for number in (1, 2):
            edit(f"documents/{number:06}/chunks-00001.jsonl", embedding=bytes(16))(members)

    imported = await load(house, ana, changed(data, shorten), name="again")
    assert (imported.embedded_again, imported.stale) == (True, 0)
    assert stored(house, imported.corpus) == stored(house, corpus)  # the fake model embeds as before
    other = await load(house, ana, data, name="other", transfers=transfers_of(house, model="another"))
    assert (other.embedded_again, other.stale) == (True, 0)
    assert {row[8] for row in stored(house, other.corpus)[0]} == {
        load_indices()["general"].fingerprint(embedding_model="another", dimension=384)
    }


async def test_an_export_is_what_there_was_when_it_began(house: House) -> None:
    ana = await house.user("ana")
    corpus = await fill(house, ana)
    before = stored(house, corpus)
    pieces = transfers_of(house).export(corpus.id, ana)
    data = await anext(pieces)
    await house.index(
        ana, corpus, text_file("sheet.csv", SHEET + "Llama 12,12.50,2024-03-12\n"), text_file("c.txt", "New.")
    )
    async with house.database.transaction(ana) as connection:
        await delete_corpus(connection, corpus.id)
    data += b"".join([piece async for piece in pieces])
    assert stored(house, (await load(house, ana, data)).corpus) == before
    with pytest.raises(NotFoundError):
        await export(house, ana, corpus.id)


async def test_what_waits_to_be_indexed_waits_again_and_what_has_expired_is_left_out(house: House) -> None:
    ana = await house.user("ana")
    corpus = await fill(house, ana)
    await house.uploads.accept(text_file("new.txt", "Guanacos hum."), corpus_id=corpus.id, identity=ana)
    async with house.database.transaction(ana) as connection:
        await connection.execute("UPDATE documents SET expires_at = now() - interval '1s' WHERE name = 'sheet.csv'")
    imported = await load(house, ana, await export(house, ana, corpus.id), name="again")
    assert (imported.documents, imported.waiting) == (2, 1)
    async with house.working():
        for _ in range(1000):
            if "Guanacos hum." in await house.ask(ana, "Guanacos"):
                break
            await asyncio.sleep(0.03)
    assert "Guanacos hum." in {row[17] for row in stored(house, imported.corpus)[0]}


async def test_a_service_that_keeps_documents_for_a_time_keeps_imported_ones_no_longer(house: House) -> None:
    ana = await house.user("ana")
    data = await export(house, ana, (await fill(house, ana)).id)
    briefly = transfers_of(house, document_ttl_seconds=100)
    corpus = (await load(house, ana, data, name="again", transfers=briefly)).corpus
    with house.owner() as owner:
        ends = owner.execute("SELECT expires_at FROM rag.documents WHERE corpus_id = %s", [corpus.id]).fetchall()
    assert all(end < datetime.now(UTC) + timedelta(seconds=101) for (end,) in ends)


async def test_only_who_may_change_a_corpus_exports_it(house: House) -> None:
    ana, ben = await house.user("ana"), await house.user("ben")
    own, shared = await fill(house, ana), await house.corpus(ADMIN, "handbook", CorpusKind.GLOBAL)
    async with house.database.transaction(ADMIN) as connection:
        await update_corpus(connection, shared.id, shared=True)
    for identity in (ben, ADMIN):
        with pytest.raises(NotFoundError):
            await export(house, identity, own.id)
    with pytest.raises(PermissionDeniedError, match="Only its owner"):
        await export(house, ben, shared.id)


async def test_an_import_never_writes_where_the_importer_may_not(house: House) -> None:
    ana = await house.user("ana")
    data = await export(house, ADMIN, (await fill(house, ADMIN, CorpusKind.GLOBAL)).id)
    with pytest.raises(PermissionDeniedError):
        await load(house, ana, data, kind=CorpusKind.GLOBAL)
    imported = await load(house, ana, data)  # what the file says of its kind does not count
    assert (imported.corpus.kind, imported.corpus.owner_id) == (CorpusKind.PERSONAL, ana.user_id)
    with pytest.raises(ConflictError, match="already exists"):
        await load(house, ana, data)
    with pytest.raises(InputError, match="1 to 200 characters"):
        await load(house, ana, data, name="x" * 201)
    with pytest.raises(InputError, match="not defined here; choose one of general"):
        await load(house, ana, changed(data, edit("corpus.json", index="elsewhere")), name="again")
    with pytest.raises(ArchiveTooLargeError, match="documents/000001/original"):
        too_small = transfers_of(house)
        object.__setattr__(too_small.imports, "max_document", 10)
        await load(house, ana, data, name="again", transfers=too_small)
    assert number_of(house, "corpora") == 2


INCOMPRESSIBLE = "".join(hashlib.sha256(bytes([number])).hexdigest() for number in range(46))
# What only the database, or the second reading, finds. What the first one finds: tests/unit/ingest/test_transfer.py.
UNSTORABLE: Mapping[str, Change] = {
    "two documents of a name": edit("documents/000002/document.json", name="notes/note.md"),
    "a zero byte": edit("documents/000002/document.json", title="a\0b"),
    "a zero byte in JSON": edit("documents/000002/document.json", metadata={"a": "\0"}),
    "a name that no index holds": edit("documents/000002/document.json", name=INCOMPRESSIBLE),
    "a vector of numbers too many": edit("documents/000002/chunks-00001.jsonl", embedding=bytes(770)),
    "a vector that is not finite": edit("documents/000002/chunks-00001.jsonl", embedding=b"\xff" * 768),
}


@pytest.mark.parametrize("case", UNSTORABLE)
async def test_a_file_that_cannot_be_stored_leaves_nothing(house: House, case: str) -> None:
    ana = await house.user("ana")
    data = await export(house, ana, (await fill(house, ana)).id)
    with pytest.raises(ArchiveError):
        await load(house, ana, changed(data, UNSTORABLE[case]), name="again")
    assert (number_of(house, "corpora"), number_of(house, "documents"), number_of(house, "originals")) == (1, 2, 2)


async def test_a_name_in_the_file_that_cannot_be_stored_is_refused(house: House) -> None:
    ana = await house.user("ana")
    data = await export(house, ana, (await fill(house, ana)).id)
    with pytest.raises(InputError, match="NUL"):
        await load(house, ana, changed(data, edit("corpus.json", name="a\0b")), name=None)
    assert number_of(house, "corpora") == 1


async def test_an_import_that_is_stopped_leaves_nothing(house: House, tmp_path: Path) -> None:
    """The connection of a killed process ends as this one does: its transaction is rolled back."""
    ana = await house.user("ana")
    data = await export(house, ana, (await fill(house, ana)).id)
    transfers = transfers_of(house, data_dir=tmp_path)
    reached = asyncio.Event()

    def progress(done: int, _: int, what: str) -> None:
        if done == 1 and what.startswith("storing"):
            reached.set()
            raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        await transfers.imports.read(io.BytesIO(data), ana, ImportOptions(name="again"), progress)
    assert reached.is_set()
    assert (number_of(house, "corpora"), number_of(house, "documents")) == (1, 2)
    assert list((tmp_path / "transfers").iterdir()) == []
    await load(house, ana, data, name="again", transfers=transfers)


async def test_originals_outside_the_database_come_and_go_with_an_import(house: House, tmp_path: Path) -> None:
    def files() -> set[str]:
        return {str(path.relative_to(tmp_path).parent) for path in tmp_path.rglob("*") if path.is_file()}

    house.originals = Originals(f"file://{tmp_path}")
    ana = await house.user("ana")
    corpus = await fill(house, ana)
    data = await export(house, ana, corpus.id)
    before = files()
    with pytest.raises(ArchiveError):
        await load(house, ana, changed(data, UNSTORABLE["a zero byte"]), name="again")
    assert files() == before
    imported = (await load(house, ana, data, name="again")).corpus
    assert {path.partition("/")[0] for path in files() - before} == {str(imported.id)}
    # As a killed process leaves it: noted, with files, but without a corpus. A running import holds its lock.
    for corpus_id in (UUID(int=1), UUID(int=2), imported.id):
        for name in (f"imports/{corpus_id}", f"{corpus_id}/document/file"):
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_bytes(b"")
    async with house.database.transaction(None) as running, house.database.transaction(None) as connection:
        await lock_corpora(running, {str(UUID(int=2))})
        restarted = Originals(f"file://{tmp_path}")
        assert await restarted.end_lost_imports(connection) == 1
        assert await restarted.end_lost_imports(connection) == 0  # it has looked
    assert sorted(path.name for path in (tmp_path / "imports").iterdir()) == [str(UUID(int=2))]
    left = {path.partition("/")[0] for path in files()}
    assert left == {"imports", str(UUID(int=2)), str(corpus.id), str(imported.id)}


async def test_a_user_has_one_transfer_at_a_time(house: House) -> None:
    ana = await house.user("ana")
    corpus, transfers = await fill(house, ana), transfers_of(house)
    pieces = transfers.export(corpus.id, ana)
    await anext(pieces)
    with pytest.raises(RateLimitedError):
        await anext(transfers.export(corpus.id, ana))
    await pieces.aclose()
    assert [piece async for piece in transfers.export(corpus.id, ana)]


# -- over HTTP


@pytest.fixture
async def clients(house: House) -> AsyncIterator[Callable[..., Any]]:
    application = build_application(house, web_settings(upload_max_mb=1))

    async def open_client(identity: Identity, **options: Any) -> httpx.AsyncClient:
        return client_of(application, await new_key(house, identity, **options))  # type: ignore[return-value]

    yield open_client


async def test_an_export_is_downloaded_and_uploaded_again(house: House, clients: Callable[..., Any]) -> None:
    ana, ben = await house.user("ana"), await house.user("ben")
    corpus = await fill(house, ana)
    async with await clients(ana) as client:
        reply = await client.get(f"/api/v1/corpora/{corpus.id}/export")
        assert reply.headers["content-type"] == "application/x-tar"
        assert reply.headers["content-disposition"] == "attachment; filename*=UTF-8''barn.tar"
    async with await clients(ben) as client:
        foreign = await client.get(f"/api/v1/corpora/{corpus.id}/export")
        assert (foreign.status_code, foreign.json()["code"]) == (404, "not_found")
        sent = await client.post(
            "/api/v1/corpora/import", files={"file": ("a.tar", reply.content)}, data={"name": "bens"}
        )
        assert sent.status_code == 201, sent.text
        body = sent.json()
        assert (body["corpus"]["name"], body["documents"], body["embeddedAgain"]) == ("bens", 2, False)
        refused = await client.post("/api/v1/corpora/import", files={"file": ("a.tar", reply.content[:-2000])})
        assert (refused.status_code, refused.json()["code"]) == (400, "invalid_archive")
        future = changed(reply.content, edit("manifest.json", version=2))
        refused = await client.post("/api/v1/corpora/import", files={"file": ("a.tar", future)})
        assert (refused.status_code, refused.json()["code"]) == (400, "unsupported_archive")
        for field in ({"kind": "shared"}, {"color": "red"}, {"name": "x" * 201}):
            bad = await client.post("/api/v1/corpora/import", files={"file": ("a.tar", b"x")}, data=field)
            assert (bad.status_code, bad.json()["code"]) == (400, "invalid_input"), field
        bad = await client.post("/api/v1/corpora/import", files={"name": (None, "x")})
        assert bad.json()["errors"] == [{"field": "file", "message": "is required"}]


async def test_an_import_whose_body_drips_keeps_no_export_waiting(house: House) -> None:
    application = build_application(house, web_settings(upload_max_mb=1))
    ana, ben = await house.user("ana"), await house.user("ben")
    corpus = await fill(house, ben)
    began, end = asyncio.Event(), asyncio.Event()

    async def dripping() -> AsyncIterator[bytes]:
        yield b'--b\r\nContent-Disposition: form-data; name="file"; filename="f"\r\n\r\nx'
        began.set()
        await end.wait()
        yield b"x\r\n--b--\r\n"

    head = {"content-type": "multipart/form-data; boundary=b"}
    async with (
        client_of(application, await new_key(house, ana)) as client,
        client_of(application, await new_key(house, ben)) as other,
    ):
        sent = asyncio.create_task(client.post("/api/v1/corpora/import", content=dripping(), headers=head))
        await began.wait()
        transfers = application.state.tenancy.transfers
        assert (transfers.receiving.is_idle, transfers.turns.is_idle) == (False, True)
        again = await client.post("/api/v1/corpora/import", files={"file": ("f", b"x")})
        assert again.status_code == 429  # one of each user
        assert (await other.get(f"/api/v1/corpora/{corpus.id}/export")).status_code == 200
        end.set()
        assert (await sent).status_code == 400


async def test_a_key_without_the_scope_of_administrators_reaches_no_global_corpus(
    house: House, clients: Callable[..., Any]
) -> None:
    boss = await house.user("boss", ADMIN.role)
    corpus = await fill(house, ADMIN, CorpusKind.GLOBAL)
    data = await export(house, ADMIN, corpus.id)
    async with await clients(boss, scopes={Scope.READ, Scope.WRITE}) as client:
        assert (await client.get(f"/api/v1/corpora/{corpus.id}/export")).status_code == 403
        file = {"file": ("a.tar", data)}
        wanted = await client.post("/api/v1/corpora/import", files=file, data={"kind": "global"})
        assert wanted.status_code == 403
        own = await client.post("/api/v1/corpora/import", files=file)
        assert own.json()["corpus"]["kind"] == "personal"
    async with await clients(boss, scopes={Scope.READ}) as client:
        assert (await client.post("/api/v1/corpora/import", files=file)).status_code == 403


async def test_a_file_over_the_limit_is_refused_while_it_arrives(house: House) -> None:
    ana = await house.user("ana")
    application = build_application(house, web_settings(import_max_mb=1))
    async with client_of(application, await new_key(house, ana)) as client:
        reply = await client.post("/api/v1/corpora/import", files={"file": ("a.tar", bytes(2**20 + 1))})
    assert (reply.status_code, reply.json()["code"]) == (413, "archive_too_large")


async def test_a_full_disk_is_told_and_nothing_is_imported(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    ana = await house.user("ana")
    data = await export(house, ana, (await fill(house, ana)).id)
    application = build_application(house, web_settings())
    async with client_of(application, await new_key(house, ana)) as client:
        file = {"file": ("a.tar", data)}
        with monkeypatch.context() as patched:
            patched.setattr(archive, "_open_unnamed", lambda _: Path("/dev/full").open("w+b"))  # noqa: SIM115
            reply = await client.post("/api/v1/corpora/import", files=file, data={"name": "again"})
        assert (reply.status_code, reply.json()["code"]) == (507, "no_space")
        assert number_of(house, "corpora") == 1
        assert (await client.post("/api/v1/corpora/import", files=file, data={"name": "again"})).status_code == 201


async def test_an_export_that_fails_on_the_way_does_not_look_complete(house: House, tmp_path: Path) -> None:
    """An original outside the database is gone."""
    house.originals = Originals(f"file://{tmp_path}/originals")
    ana = await house.user("ana")
    corpus = await fill(house, ana)
    for file in (tmp_path / "originals").rglob("*"):
        if file.is_file():
            file.unlink()
    application = build_application(house, web_settings())
    async with client_of(application, await new_key(house, ana)) as client:
        with capture_logs() as logs, pytest.raises(AssertionError):  # as httpx says it of an application
            await client.get(f"/api/v1/corpora/{corpus.id}/export")
    assert ("request_failed", "store_unavailable") in {(line["event"], line.get("code")) for line in logs}

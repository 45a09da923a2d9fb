"""Ingestion: nothing twice, nothing half, nothing lost."""

from __future__ import annotations

import hashlib
import io
from pathlib import Path

import pytest
from rich.console import Console

from rag_service.cli import progress
from rag_service.cli.quickstart import ingest_files
from rag_service.components import Components
from rag_service.domain import LOCAL_ADMIN
from rag_service.errors import DocumentError, EmbeddingError
from rag_service.ingest.documents import Outcome
from rag_service.retrieval.question import Question
from rag_service.store.documents.catalogue import read_document
from tests.integration.answers.conftest import Ingest
from tests.unit.readers.office_samples import zipped


async def found(service: Components, question: str) -> list[str]:
    query = Question(question, identity=LOCAL_ADMIN, threshold=0.0)
    hits = (await service.engine.search(query)).passages
    return [hit.chunk.text for hit in hits]


async def count(service: Components, table: str) -> int:
    async with service.database.transaction(LOCAL_ADMIN) as connection:
        cursor = await connection.execute(f"SELECT count(*) FROM {table}")
        row = await cursor.fetchone()
    assert row is not None
    return int(row[0])


async def test_the_same_content_twice_does_nothing_twice(service: Components, ingest: Ingest) -> None:
    first = await ingest("Pallets are stacked four high.", "rules.txt")
    again = await ingest("Pallets are stacked four high.", "rules.txt")
    copied = await ingest("Pallets are stacked four high.", "copy of rules.txt")
    assert [first.outcome, again.outcome, copied.outcome] == [Outcome.ADDED, Outcome.UNCHANGED, Outcome.ADDED]
    assert first.document_id == again.document_id != copied.document_id
    assert await count(service, "documents") == 2


async def test_files_of_the_same_content_are_found_once_and_by_their_names(service: Components, ingest: Ingest) -> None:
    await ingest("Pallets are stacked four high.", "rules.txt")
    await ingest("Pallets are stacked four high.", "safety.txt")
    assert await found(service, "How high are pallets stacked?") == ["Pallets are stacked four high."]
    for name in ("rules.txt", "safety.txt"):
        query = Question(f"How high are pallets stacked, according to {name}?", identity=LOCAL_ADMIN)
        assert {hit.chunk.document.file_name for hit in (await service.engine.search(query)).passages} == {name}


async def test_what_of_a_file_is_not_in_the_text_is_told(service: Components, ingest: Ingest) -> None:
    archive = zipped({"rules.txt": "Pallets are stacked four high.", "photo.bin": bytes(300)})
    done = await ingest(archive, "all.zip")
    assert done.warnings == ("photo.bin was not read: it is a binary file of unknown type, not a document with text.",)
    async with service.database.transaction(LOCAL_ADMIN) as connection:
        assert tuple((await read_document(connection, done.document_id)).warnings) == done.warnings
    assert (await ingest("Nothing is missing.", "whole.txt")).warnings == ()


async def test_the_file_itself_is_kept_in_its_present_version_alone(service: Components, ingest: Ingest) -> None:
    await ingest("Pallets are stacked four high.", "rules.txt")
    changed = await ingest("Pallets are stacked five high.", "rules.txt")
    assert await count(service, "originals") == 1
    hash_of_it = hashlib.sha256(b"Pallets are stacked five high.").hexdigest()
    async with service.database.transaction(LOCAL_ADMIN) as connection:
        assert (
            await service.originals.read(connection, changed.document_id, hash_of_it)
            == b"Pallets are stacked five high."
        )


async def test_a_changed_file_replaces_its_old_chunks(service: Components, ingest: Ingest) -> None:
    first = await ingest("Pallets are stacked four high.", "rules.txt")
    changed = await ingest("Pallets are stacked five high.", "rules.txt")
    assert changed.outcome is Outcome.REPLACED
    assert changed.document_id == first.document_id
    assert await found(service, "How high are pallets stacked?") == ["Pallets are stacked five high."]
    assert await count(service, "documents") == 1


async def test_a_failing_model_loses_nothing(
    service: Components, ingest: Ingest, monkeypatch: pytest.MonkeyPatch
) -> None:
    await ingest("Pallets are stacked four high.", "rules.txt")

    async def fail(*_: object, **__: object) -> list[list[float]]:
        raise EmbeddingError("The embedding service cannot be reached.")

    monkeypatch.setattr(type(service.embedding), "aget_text_embedding_batch", fail)
    with pytest.raises(EmbeddingError):
        await ingest("Pallets are stacked five high.", "rules.txt")
    assert await found(service, "How high are pallets stacked?") == ["Pallets are stacked four high."]


async def test_the_command_line_lists_every_file_that_was_not_taken(
    service: Components, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old_office = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(504) + "WordDocument".encode("utf-16-le")
    files = {
        "a.md": b"# Pallets", "copy.md": b"# Pallets", "broken.pdf": b"%PDF-1.7 no more", "old.doc": old_office,
        "film.mp4": b"x", "~$a.docx": b"x", "all.zip": zipped({"a.txt": "words", "photo.bin": bytes(300)}),
    }  # fmt: skip
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    monkeypatch.setattr(progress, "_LINE_SECONDS", 0.0)
    console = Console(record=True, width=300, file=io.StringIO())
    assert await ingest_files(service, [tmp_path], console) == (3, 1)
    text = console.export_text()
    for told in (
        "Ingesting: 0 of 5, a.md",
        "s left, ",
        "Documents: 3 added.",
        "not ingested: broken.pdf: ",
        "skipped: film.mp4: .mp4 files are not supported",
        "skipped: old.doc: is an old Word document (.doc).",
        "note: all.zip: photo.bin was not read: ",
        "hidden, lock and temporary files skipped: 1",
    ):
        assert told in text
    assert await ingest_files(service, [tmp_path / "old.doc"], console) == (0, 1)  # it was named


async def test_the_content_of_a_copy_stays_when_the_other_file_changes(service: Components, tmp_path: Path) -> None:
    names = ["1.txt", "2.txt", "3.txt", "4.txt"]
    for name in names:
        (tmp_path / name).write_text("Pallets are stacked four high.")
    console = Console(record=True, width=300, file=io.StringIO())
    await ingest_files(service, [tmp_path], console)
    (tmp_path / "1.txt").write_text("Pallets are stacked five high.")
    await ingest_files(service, [tmp_path], console)
    assert sorted(await found(service, "How high are pallets stacked?")) == [
        "Pallets are stacked five high.", "Pallets are stacked four high.",
    ]  # fmt: skip
    assert "Documents: 1 replaced, 3 unchanged." in console.export_text()


@pytest.mark.parametrize(
    ("data", "file_name"),
    [(b"", "empty.txt"), (b"\x00\x01\x02\xff" * 400, "binary.txt"), (b"   \n\n ", "blank.md")],
)
async def test_what_holds_no_text_is_refused_and_named(ingest: Ingest, data: bytes, file_name: str) -> None:
    with pytest.raises(DocumentError, match=file_name):
        await ingest(data, file_name)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "latin-1"])
async def test_text_is_read_in_the_encoding_it_has(service: Components, ingest: Ingest, encoding: str) -> None:
    text = "El plazo de presentación de la solicitud es de treinta días hábiles desde la notificación."
    await ingest(text.encode(encoding), "plazo.txt")
    assert await found(service, "¿Qué plazo de presentación hay?") == [text]


async def test_a_hostile_file_name_is_a_name_and_nothing_more(service: Components, ingest: Ingest) -> None:
    ingested = await ingest("Gate 4 opens at six.", "../../etc/pass\x00wd.txt")
    async with service.database.transaction(LOCAL_ADMIN) as connection:
        cursor = await connection.execute("SELECT file_name FROM documents WHERE id = %s", [ingested.document_id])
        row = await cursor.fetchone()
    assert row is not None
    assert "/" not in row[0]
    assert "\x00" not in row[0]
    assert row[0].endswith(".txt")

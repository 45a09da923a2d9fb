"""Reads an exported corpus part by part, and checks each: nothing of the database is needed for that."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import BinaryIO

from rag_service.errors import ArchiveError
from rag_service.ingest.transfer.archive import ArchiveReader
from rag_service.ingest.transfer.contents import (
    CORPUS,
    MANIFEST,
    ChunkForm,
    CorpusForm,
    Counts,
    DocumentForm,
    Manifest,
    check_document,
    check_rows,
    decode,
    decode_chunks,
    decode_table,
    divide_long,
    read_manifest,
)
from rag_service.tables.encoding import TableDescription

_MAX_HEAD = 16 * 2**20  # bytes of a member that describes something
_MAX_TEXT = 256 * 2**20  # bytes of a text
_MAX_PART = 64 * 2**20  # bytes of a part of the chunks, or of a table, which take 25 times as many in memory
_MAX_REPEATED = 16  # times the length of a text, what its chunks may repeat of it: they overlap, or hold each other
_MAX_MEMBERS = 10_000_000
_LIMIT = "RAG_UPLOAD_MAX_MB"


@dataclass(frozen=True, kw_only=True)
class DocumentPart:
    """A document in the file; its chunks and tables follow."""

    form: DocumentForm
    original: bytes | None
    text: str


@dataclass(frozen=True, kw_only=True)
class RowsPart:
    """Some rows of a table of the document before, as they are stored."""

    data: bytes


Part = Manifest | CorpusForm | DocumentPart | list[ChunkForm] | TableDescription | RowsPart


def read_head(file: BinaryIO, folder: Path | None) -> tuple[Manifest, CorpusForm]:
    with closing(ArchiveReader(file, max_members=_MAX_MEMBERS, folder=folder)) as archive:
        manifest = read_manifest(archive.read(MANIFEST, limit=_MAX_HEAD))
        return manifest, decode(archive.read(CORPUS, limit=_MAX_HEAD), CorpusForm, CORPUS)


def read_parts(file: BinaryIO, *, max_document: int, folder: Path | None = None) -> Iterator[Part]:
    """All parts of a seekable file in their order, each checked; at the end the checksums. Raises ArchiveError.

    `max_document`: bytes of an original; `folder`: for a temporary file of checksums, None: that of the system.
    """
    with closing(ArchiveReader(file, max_members=_MAX_MEMBERS, folder=folder)) as archive:
        manifest = read_manifest(archive.read(MANIFEST, limit=_MAX_HEAD))
        yield manifest
        yield decode(archive.read(CORPUS, limit=_MAX_HEAD), CorpusForm, CORPUS)
        originals = chunks = tables = 0
        for number in range(1, manifest.counts.documents + 1):
            document = _read_document(archive, f"documents/{number:06}", max_document)
            originals += document.original is not None
            chunks += document.form.chunks
            tables += document.form.tables
            yield document
            if document.form.fingerprint:
                yield from _read_indexed(archive, f"documents/{number:06}", document)
        found = Counts(documents=manifest.counts.documents, originals=originals, chunks=chunks, tables=tables)
        if found != manifest.counts:
            raise ArchiveError("The file does not hold what its manifest says.")
        archive.finish()


def _read_document(archive: ArchiveReader, folder: str, max_document: int) -> DocumentPart:
    name = f"{folder}/document.json"
    form = decode(archive.read(name, limit=_MAX_HEAD), DocumentForm, name)
    check_document(form, name)
    original, text = None, ""
    if form.has_original:
        original = archive.read(f"{folder}/original", limit=max_document, setting=_LIMIT)
        if hashlib.sha256(original).hexdigest() != form.content_hash:
            raise ArchiveError(f"The original of {form.name!r} is not the file that was uploaded.")
    if form.fingerprint:
        name = f"{folder}/text.txt"
        try:
            text = archive.read(name, limit=_MAX_TEXT).decode()
        except UnicodeDecodeError as error:
            raise ArchiveError(f"{name} of the file is not UTF-8 text.") from error
    elif original is None or form.chunks or form.tables:
        raise ArchiveError(f"{name} of the file is not as an export writes it.")
    return DocumentPart(form=form, original=original, text=text)


def _read_indexed(archive: ArchiveReader, folder: str, document: DocumentPart) -> Iterator[Part]:
    """The chunks and tables of a document."""
    found = repeated = more = 0
    for part in count(1):
        if found >= document.form.chunks:
            break
        name = f"{folder}/chunks-{part:05}.jsonl"
        chunks = decode_chunks(archive.read(name, limit=_MAX_PART), document.text, name)
        found += len(chunks)
        repeated += sum(chunk.length for chunk in chunks if chunk.text is None)
        if not chunks or found > document.form.chunks or repeated > _MAX_REPEATED * len(document.text):
            raise ArchiveError(f"{name} of the file does not hold the chunks of its document.")
        divided = divide_long(chunks, document.text, more=more)
        more += len(divided) - len(chunks)
        yield divided
    for number in range(1, document.form.tables + 1):
        name = f"{folder}/table-{number:04}.json"
        table = decode_table(archive.read(name, limit=_MAX_PART), name)
        yield table
        for part in count(1):
            name = f"{folder}/table-{number:04}-rows-{part:05}.json"
            if archive.peek() != name:
                break
            data = archive.read(name, limit=_MAX_PART)
            check_rows(data, table, document.text, name)
            yield RowsPart(data=data)

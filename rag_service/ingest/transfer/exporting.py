"""Writes a corpus as one file, in pieces, from one snapshot of the database."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import closing
from dataclasses import KW_ONLY, dataclass
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

import msgspec
import structlog

from rag_service import __version__
from rag_service.domain import Identity
from rag_service.errors import NotFoundError, PermissionDeniedError, StoreError
from rag_service.ingest.transfer.archive import ArchiveWriter
from rag_service.ingest.transfer.contents import (
    CORPUS,
    FORMAT,
    MANIFEST,
    VERSION,
    CorpusForm,
    Counts,
    DocumentForm,
    EmbeddingForm,
    Manifest,
    SourceForm,
    write_chunk,
)
from rag_service.store.corpora import Corpus, read_corpus
from rag_service.store.database import BigIntegers, Connection, Database
from rag_service.store.documents.catalogue import LIVE
from rag_service.store.documents.chunks import read_nodes
from rag_service.store.documents.originals import Originals
from rag_service.store.rows import database_now, fetch_one, fetch_value
from rag_service.tables.storage import read_rows, read_tables

log = structlog.get_logger(__name__)

OnProgress = Callable[[int, int, str], None]  # documents done, documents in all, name of the one that is next

_PIECE = 2**20  # bytes of an original that are read at once
_CHUNKS, _CELLS = 100, 10_000  # of a member

_DOCUMENTS = f"""
    SELECT d.id, d.name, d.title, d.file_name, d.source, d.tags, d.language, d.media_type, d.content_hash,
           d.fingerprint, d.fields, d.metadata, d.territory, d.dated, d.size_bytes, d.expires_at, d.created_at,
           d.updated_at,
           (SELECT count(*) FROM data_chunks c WHERE c.document_id = d.id) AS chunks,
           EXISTS (SELECT FROM originals o WHERE o.document_id = d.id AND o.content_hash = d.content_hash)
               AS has_original,
           (SELECT count(*) FROM tables t WHERE t.document_id = d.id) AS tables
    FROM documents d
    WHERE d.corpus_id = %s AND {LIVE} AND (d.fingerprint <> '' OR EXISTS (
        SELECT FROM originals o WHERE o.document_id = d.id AND o.content_hash = d.content_hash))
    ORDER BY (SELECT min(c.id) FROM data_chunks c WHERE c.document_id = d.id), d.created_at, d.id
"""  # noqa: S608 - fixed text; in the order in which they were indexed, which decides between equal passages


@dataclass(frozen=True)
class CorpusExport:
    """Writes corpora as files."""

    database: Database
    originals: Originals
    _: KW_ONLY
    model: str  # of the embedding, as it is part of the fingerprint
    dimension: int
    folder: Path | None = None  # for temporary files

    async def write(
        self, corpus_id: UUID, identity: Identity, on_progress: OnProgress = lambda *_: None
    ) -> AsyncGenerator[bytes]:
        """The file in pieces, as the corpus is at the first one, whatever happens to it meanwhile.

        Documents that expire or are not stored yet are left out; of one that was replaced but not indexed again, the
        version that searches find is written.

        Raises, before the first piece, NotFoundError, or PermissionDeniedError if the identity may only read the
        corpus; later StoreError if the database or the store of the originals fails: the file is then not complete.
        """
        with closing(ArchiveWriter(self.folder)) as archive:
            async with self.database.transaction(identity, snapshot=True) as connection:
                corpus = await read_corpus(connection, corpus_id)
                await _check_right(connection, corpus)
                counts = await _count(connection, corpus_id)
                manifest = Manifest(
                    format=FORMAT,
                    version=VERSION,
                    written_at=await database_now(connection),
                    written_by=__version__,
                    embedding=EmbeddingForm(model=self.model, dimension=self.dimension),
                    counts=counts,
                )
                yield archive.add(MANIFEST, _json(manifest))
                yield archive.add(CORPUS, _json(await _describe(connection, corpus)))
                number = 0
                async for document in _documents(connection, corpus_id):
                    on_progress(number, counts.documents, document.name)
                    number += 1
                    async for piece in self._write_document(connection, archive, f"documents/{number:06}", document):
                        yield piece
            for piece in archive.finish():
                yield piece
        on_progress(counts.documents, counts.documents, "")
        log.info("corpus_exported", corpus_id=str(corpus_id), documents=counts.documents)

    async def _write_document(
        self, connection: Connection, archive: ArchiveWriter, folder: str, document: DocumentForm
    ) -> AsyncIterator[bytes]:
        yield archive.add(f"{folder}/document.json", _json(document))
        document_id = UUID(document.id)
        if document.has_original:
            async for piece in self._write_original(connection, archive, f"{folder}/original", document):
                yield piece
        if not document.fingerprint:
            return
        text = await fetch_value(connection, "SELECT text FROM document_texts WHERE document_id = %s", [document_id])
        yield archive.add(f"{folder}/text.txt", (text or "").encode())
        async for name, data in _chunks(connection, document_id, text or ""):
            yield archive.add(f"{folder}/{name}", data)
        for table, (table_id, description) in enumerate(await read_tables(connection, document_id), 1):
            yield archive.add(f"{folder}/table-{table:04}.json", _json(description))
            last, limit = -1, max(1, _CELLS // max(1, len(description.columns)))
            for part in count(1):
                rows, found, last = await read_rows(connection, table_id, after=last, limit=limit)
                if not found:
                    break
                yield archive.add(f"{folder}/table-{table:04}-rows-{part:05}.json", rows)

    async def _write_original(
        self, connection: Connection, archive: ArchiveWriter, name: str, document: DocumentForm
    ) -> AsyncIterator[bytes]:
        """The bytes as they were uploaded."""
        written = 0
        while True:
            try:
                data, size = await self.originals.read_part(
                    connection, UUID(document.id), document.content_hash, written, _PIECE
                )
            except NotFoundError as error:
                raise StoreError(f"The original of {document.name!r} cannot be read.") from error
            if not written:
                yield archive.begin(name, size)
            if not data and written < size:
                raise StoreError(f"The original of {document.name!r} is not complete.")
            yield archive.feed(data)
            written += len(data)
            if written >= size:
                return


async def _check_right(connection: Connection, corpus: Corpus) -> None:
    """Only who may change a corpus may take all of it away, with its sources and the lifetime of its documents."""
    query = "SELECT rag.may_write(c) FROM corpora c WHERE c.id = %s"
    if not await fetch_value(connection, query, [corpus.id]):
        raise PermissionDeniedError("Only its owner can export a corpus; global ones, administrators.")


async def _count(connection: Connection, corpus_id: UUID) -> Counts:
    return await fetch_one(
        connection,
        Counts,
        f"""SELECT count(*) AS documents, count(*) FILTER (WHERE has_original) AS originals,
                   coalesce(sum(chunks), 0)::bigint AS chunks, coalesce(sum(tables), 0)::bigint AS tables
            FROM ({_DOCUMENTS}) AS exported""",  # noqa: S608 - fixed text
        [corpus_id],
        missing="",
    )


async def _describe(connection: Connection, corpus: Corpus) -> CorpusForm:
    cursor = await connection.execute(
        "SELECT target, depth, every_seconds FROM sources WHERE corpus_id = %s ORDER BY target", [corpus.id]
    )
    return CorpusForm(
        name=corpus.name,
        kind=corpus.kind.value,
        index=corpus.index_name,
        active=corpus.active,
        ttl_seconds=corpus.ttl_seconds,
        shared=corpus.shared,
        groups=corpus.groups,
        sources=tuple(
            SourceForm(target=without_secrets(target), depth=depth, every_seconds=seconds)
            for target, depth, seconds in await cursor.fetchall()
        ),
    )


def without_secrets(target: str) -> str:
    """The target of a source without user, password and query, which may hold a token."""
    if "://" not in target:  # a folder
        return target
    parts = urlsplit(target)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()


async def _documents(connection: Connection, corpus_id: UUID) -> AsyncIterator[DocumentForm]:
    """The documents, read a hundred at a time."""
    async with connection.cursor(name="exported_documents") as cursor:
        cursor.itersize = 100
        await cursor.execute(_DOCUMENTS, [corpus_id])
        names = [column.name for column in cursor.description or ()]
        async for row in cursor:
            values: dict[str, Any] = dict(zip(names, row, strict=True))
            yield msgspec.convert(values | {"id": str(values["id"])}, DocumentForm)


async def _chunks(connection: Connection, document_id: UUID, text: str) -> AsyncIterator[tuple[str, bytes]]:
    """(name, content) of the members with a document's chunks."""
    cursor = await connection.execute(
        "SELECT id FROM data_chunks WHERE document_id = %s ORDER BY chunk_index", [document_id]
    )
    ids = [row[0] for row in await cursor.fetchall()]
    for part, start in enumerate(range(0, len(ids), _CHUNKS), 1):
        wanted = {"ids": BigIntegers(ids[start : start + _CHUNKS])}
        nodes = await read_nodes(connection, "id = ANY(%(ids)s)", wanted, with_vectors=True)
        yield f"chunks-{part:05}.jsonl", b"".join(_json(write_chunk(node, text)) + b"\n" for node in nodes.values())


def _json(value: msgspec.Struct) -> bytes:
    return msgspec.json.encode(value, enc_hook=str)

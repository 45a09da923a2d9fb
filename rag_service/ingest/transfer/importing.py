"""Reads an exported corpus into a new corpus of whoever imports it.

The file is read twice. The first time everything in it is checked, and texts are embedded again where this service has
another embedding model; the second time it is written, in one transaction. Until that is committed nobody sees
anything of it, and after a failure, or a kill, nothing is left. Ids, owners and permissions of the file are not taken
over.
"""

from __future__ import annotations

import asyncio
import math
import re
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import BinaryIO
from uuid import UUID, uuid4

import numpy as np
import psycopg
import structlog
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.schema import BaseNode

from rag_service.domain import CorpusKind, Identity, Role
from rag_service.errors import ArchiveError, ConflictError, InputError, PermissionDeniedError, StoreError
from rag_service.indices import IndexDefinition
from rag_service.ingest.embedding_cache import CachedEmbedding
from rag_service.ingest.queue import enqueue
from rag_service.ingest.transfer.archive import open_unnamed
from rag_service.ingest.transfer.contents import (
    ChunkForm,
    CorpusForm,
    DocumentForm,
    Manifest,
    Renamed,
    SourceForm,
    read_vector,
)
from rag_service.ingest.transfer.exporting import OnProgress
from rag_service.ingest.transfer.reading import DocumentPart, Part, RowsPart, read_head, read_parts
from rag_service.ingest.transformations import EmbedPassages
from rag_service.readers.common.names import clean_file_name
from rag_service.store.corpora import Corpus, create_corpus, find_corpus, lock_corpora, update_corpus
from rag_service.store.database import Connection, Database
from rag_service.store.documents.chunks import DOCUMENT_ID, write_chunks
from rag_service.store.documents.documents import DocumentInput, NewDocument, store_document
from rag_service.store.documents.originals import Originals
from rag_service.store.documents.uploads import NewUpload, accept_upload
from rag_service.store.rows import database_now
from rag_service.tables.encoding import TableDescription
from rag_service.tables.storage import write_rows, write_table

log = structlog.get_logger(__name__)

MAX_NAME = 200  # characters of the name of a corpus

# Each statement updates the frequencies of its terms, which all documents of the corpus share, and until the end of
# the transaction PostgreSQL passes over every earlier version of such a row.
_CHUNKS_AT_ONCE = 1_000
_CHARACTERS_AT_ONCE = 16 * 2**20  # of chunks, which may repeat those of their document
_MEDIA_TYPE = re.compile(r"[\w.+-]{1,100}/[\w.+-]{1,100}", re.ASCII)  # becomes a header when the original is downloaded


@dataclass(frozen=True, kw_only=True)
class ImportOptions:
    """What the importer decides."""

    name: str | None = None  # of the new corpus; None: as in the file
    kind: CorpusKind | None = None  # None: as in the file for administrators, else personal
    index_name: str | None = None  # None: as in the file
    keep_access: bool = False  # a global corpus is shared, and with the same groups, as in the file; False: it is not


@dataclass(frozen=True, kw_only=True)
class Imported:
    """What an import brought."""

    corpus: Corpus
    documents: int
    chunks: int
    waiting: int  # of the documents: not indexed when they were exported; a worker reads their originals
    stale: int  # of the documents: made with other settings than these; `rag-service reingest` makes them again
    embedded_again: bool  # the file has the vectors of another model
    sources: tuple[SourceForm, ...]  # that the corpus had; they are to be added again


@dataclass(frozen=True)
class CorpusImport:
    """Imports exported corpora."""

    database: Database
    originals: Originals
    embedding: BaseEmbedding
    indices: Mapping[str, IndexDefinition]
    _: KW_ONLY
    model: str  # of the embedding, as it is part of the fingerprint
    dimension: int
    max_document: int  # bytes of an original
    default_ttl_seconds: int | None  # lifetime of a document that has none
    folder: Path | None = None  # for temporary files

    async def read(
        self,
        file: BinaryIO,
        identity: Identity,
        options: ImportOptions = ImportOptions(),
        on_progress: OnProgress = lambda *_: None,
    ) -> Imported:
        """Import a file, which must be seekable, into a new corpus.

        Raises:
            ArchiveError: it is no export, was changed, is too large, or has another version.
            ConflictError: the importer has a corpus of this name.
            InputError: the index is not defined here.
            PermissionDeniedError: only administrators can import a global corpus.
            EmbeddingError, StoreError: a retry may succeed. Nothing was imported.
        """
        with open_unnamed(self.folder) as vectors:
            work = await self._prepare(file, identity, options, vectors)
            await work.check(file, on_progress)
            vectors.seek(0)
            return await work.write(file, on_progress)

    async def read_parts(self, file: BinaryIO) -> AsyncIterator[Part]:
        """As the function, in threads."""
        parts = read_parts(file, max_document=self.max_document, folder=self.folder)
        while (part := await asyncio.to_thread(next, parts, None)) is not None:
            yield part

    async def _prepare(self, file: BinaryIO, identity: Identity, options: ImportOptions, vectors: BinaryIO) -> _Import:
        """Decide what the corpus will be, before work goes into it."""
        manifest, form = await asyncio.to_thread(read_head, file, self.folder)
        name = options.name or form.name
        kind = options.kind or (CorpusKind(form.kind) if identity.role is Role.ADMIN else CorpusKind.PERSONAL)
        if not 1 <= len(name) <= MAX_NAME:
            raise InputError(f"A name must have 1 to {MAX_NAME} characters.", field="name")
        if kind is CorpusKind.GLOBAL and identity.role is not Role.ADMIN:
            raise PermissionDeniedError("Only administrators can import a global corpus.")
        index = self.indices.get(options.index_name or form.index)
        if index is None:
            raise InputError(
                f"The index {options.index_name or form.index!r} is not defined here; choose one of"
                f" {', '.join(sorted(self.indices))}.",
                field="index",
            )
        async with self.database.transaction(identity) as connection:
            if await find_corpus(connection, name=name, kind=kind) is not None:
                raise ConflictError(f"A corpus named {name!r} already exists; choose another name.", field="name")
        return _Import(
            parts=self,
            identity=identity,
            manifest=manifest,
            form=form,
            name=name,
            kind=kind,
            index=index,
            keep_access=options.keep_access,
            vectors=vectors,
        )


@dataclass(frozen=True, kw_only=True)
class _Import:
    """One import."""

    parts: CorpusImport
    identity: Identity
    manifest: Manifest
    form: CorpusForm
    name: str
    kind: CorpusKind
    index: IndexDefinition
    keep_access: bool
    vectors: BinaryIO  # of the chunks in their order, where they are made here
    fingerprint: str = field(init=False)  # of documents that are ingested here now
    source_fingerprint: str = field(init=False)  # of documents made by the same settings, but for the embedding model

    def __post_init__(self) -> None:
        theirs, parts = self.manifest.embedding, self.parts
        now = self.index.fingerprint(embedding_model=parts.model, dimension=parts.dimension)
        then = self.index.fingerprint(embedding_model=theirs.model, dimension=theirs.dimension)
        object.__setattr__(self, "fingerprint", now)
        object.__setattr__(self, "source_fingerprint", then)

    @property
    def keeps_access(self) -> bool:
        """Whether readers of the corpus are those of before: of a personal one there were none."""
        return self.keep_access and self.kind is CorpusKind.GLOBAL and self.form.kind == "global"

    @property
    def embeds(self) -> bool:
        """Whether the texts are embedded again."""
        theirs = self.manifest.embedding
        return (theirs.model, theirs.dimension) != (self.parts.model, self.parts.dimension)

    async def check(self, file: BinaryIO, on_progress: OnProgress) -> None:
        """Read the whole file, and make the vectors that it lacks."""
        embedding = self.parts.embedding
        if isinstance(embedding, CachedEmbedding):  # an import that is repeated then embeds only what is missing
            owner = self.identity.user_id if self.kind is CorpusKind.PERSONAL else None
            embedding = embedding.for_owner(owner, self.identity)
        what, done = "embedding" if self.embeds else "checking", 0
        renamed, text = _nobody(""), ""
        async for part in self.parts.read_parts(file):
            if isinstance(part, DocumentPart):
                on_progress(done, self.manifest.counts.documents, f"{what} {part.form.name}")
                renamed, text = _nobody(part.form.id), part.text
                done += 1
            elif isinstance(part, list):
                await self._check_chunks(part, renamed, text, embedding)

    async def _check_chunks(
        self, chunks: Sequence[ChunkForm], renamed: Renamed, text: str, embedding: BaseEmbedding
    ) -> None:
        for chunk in chunks:
            read_vector(chunk.embedding, self.manifest.embedding.dimension)
        for batch in _batches(chunks) if self.embeds else ():
            nodes = await asyncio.to_thread(_make_nodes, batch, renamed, text)
            size = embedding.embed_batch_size
            for start in range(0, len(nodes), size):
                embedded = await EmbedPassages(embedding).acall(nodes[start : start + size])
                missing = [math.nan] * self.parts.dimension
                self.vectors.write(np.asarray([node.embedding or missing for node in embedded], "<f4").tobytes())

    async def write(self, file: BinaryIO, on_progress: OnProgress) -> Imported:
        """Write the corpus in one transaction."""
        refusals = (psycopg.DataError, psycopg.IntegrityError, psycopg.errors.ProgramLimitExceeded)
        corpus: Corpus | None = None
        try:
            async with self.parts.database.transaction(self.identity) as connection:
                corpus = await self._begin(connection)
                try:
                    imported = await self._write(connection, corpus, file, on_progress)
                except refusals as error:
                    raise ArchiveError("The file has values that cannot be stored.") from error
        finally:
            if corpus is not None:
                await asyncio.shield(self._settle(corpus.id))
        on_progress(imported.documents, imported.documents, "")
        log.info("corpus_imported", corpus_id=str(imported.corpus.id), documents=imported.documents)
        return imported

    async def _settle(self, corpus_id: UUID) -> None:
        """Remove originals outside the database if their rows were not committed, which the database knows best."""
        try:
            async with self.parts.database.transaction(None) as connection:
                await self.parts.originals.end_import(connection, corpus_id)
        except StoreError as error:
            log.warning("import_not_settled", corpus_id=str(corpus_id), exc_info=error)  # upkeep does it

    async def _begin(self, connection: Connection) -> Corpus:
        """Create the corpus. Its name is taken at the end: whoever makes one of this name would wait until then."""
        corpus = await create_corpus(
            connection,
            self.identity,
            name=f"import {uuid4()}",
            kind=self.kind,
            index_name=self.index.name,
            ttl_seconds=self.form.ttl_seconds,
            shared=self.form.shared and self.keeps_access,
        )
        await lock_corpora(connection, {str(corpus.id)})
        await self.parts.originals.begin_import(corpus.id)
        return corpus

    async def _write(self, connection: Connection, corpus: Corpus, file: BinaryIO, on_progress: OnProgress) -> Imported:
        writer = _Writer(work=self, connection=connection, corpus=corpus, now=await database_now(connection))
        async for part in self.parts.read_parts(file):
            if isinstance(part, DocumentPart):
                on_progress(writer.documents, self.manifest.counts.documents, f"storing {part.form.name}")
            await writer.take(part)
        await writer.flush()
        corpus = await update_corpus(
            connection,
            corpus.id,
            name=self.name,
            active=self.form.active,
            groups=list(self.form.groups) if self.keeps_access else None,
        )
        return Imported(
            corpus=corpus,
            documents=writer.documents,
            chunks=writer.chunks,
            waiting=writer.waiting,
            stale=writer.stale,
            embedded_again=self.embeds,
            sources=self.form.sources,
        )


@dataclass(kw_only=True)
class _Writer:
    """Writes the parts of a file as they come."""

    work: _Import
    connection: Connection
    corpus: Corpus
    now: datetime
    documents: int = field(default=0, init=False)
    chunks: int = field(default=0, init=False)
    waiting: int = field(default=0, init=False)  # of the documents
    stale: int = field(default=0, init=False)  # of the documents
    _document: DocumentPart | None = field(default=None, init=False)  # that the next parts belong to
    _renamed: Renamed = field(init=False)
    _nodes: list[BaseNode] = field(default_factory=list, init=False)  # that are not written yet
    _characters: int = field(default=0, init=False)  # of these
    _times: dict[UUID, tuple[datetime, datetime]] = field(default_factory=dict, init=False)  # of documents, likewise
    _table: UUID | None = field(default=None, init=False)

    async def take(self, part: Part) -> None:
        if isinstance(part, DocumentPart):
            await self._begin_document(part)
        elif isinstance(part, TableDescription):
            self._table = await write_table(self.connection, self._renamed.document_id, self.corpus.id, part)
        elif isinstance(part, RowsPart) and self._table is not None:
            await write_rows(self.connection, self._table, self.corpus.id, part.data)
        elif isinstance(part, list) and self._document is not None:
            for batch in _batches(part):
                vectors = self._vectors(batch)
                self._nodes += await asyncio.to_thread(_make_nodes, batch, self._renamed, self._document.text, vectors)
                self.chunks += len(batch)
                self._characters += sum(chunk.length for chunk in batch)
                if len(self._nodes) >= _CHUNKS_AT_ONCE or self._characters >= _CHARACTERS_AT_ONCE:
                    await self.flush()

    def _vectors(self, chunks: Sequence[ChunkForm]) -> list[list[float]]:
        if not self.work.embeds:
            return [read_vector(chunk.embedding, self.work.parts.dimension) for chunk in chunks]
        size = self.work.parts.dimension
        packed = self.work.vectors.read(4 * size * len(chunks))
        vectors = np.frombuffer(packed, "<f4").reshape(len(chunks), size)
        return [[] if np.isnan(vector[0]) else vector.tolist() for vector in vectors]

    async def _begin_document(self, part: DocumentPart) -> None:
        form, parts = part.form, self.work.parts
        self.documents += 1
        if not form.fingerprint:
            await self._accept(part)
            return
        self._document, self._table = part, None
        self._renamed = Renamed(before=form.id, document_id=uuid4(), corpus_id=self.corpus.id)
        document = NewDocument(
            id=self._renamed.document_id,
            corpus_id=self.corpus.id,
            name=form.name,
            title=form.title,
            content_hash=form.content_hash,
            fingerprint=self._fingerprint(form),
            text=part.text,
            file_name=None if form.file_name is None else clean_file_name(form.file_name),
            source=form.source,
            tags=form.tags,
            language=form.language,
            media_type=form.media_type if _MEDIA_TYPE.fullmatch(form.media_type or "") else None,
            fields=form.fields,
            metadata=form.metadata,
            territory=form.territory,
            dated=form.dated,
            size_bytes=form.size_bytes,
            expires_at=self._expiry(form),
        )
        self.stale += document.fingerprint != self.work.fingerprint
        await store_document(self.connection, document, [])  # its chunks are counted as they are written
        self._times[document.id] = (form.created_at, form.updated_at)
        if part.original is not None:
            await parts.originals.write(
                self.connection, document.id, form.content_hash, corpus_id=self.corpus.id, data=part.original
            )

    async def flush(self) -> None:
        """Write the chunks of the last documents, how many they are, and when these documents were made."""
        await write_chunks(self.connection, self._nodes)
        counts = Counter(UUID(node.metadata[DOCUMENT_ID]) for node in self._nodes)
        rows = [(one, *self._times.get(one, (None, None)), counts[one]) for one in {**self._times, **counts}]
        if rows:
            await self.connection.execute(
                """UPDATE documents d
                   SET created_at = least(t.created_at, d.created_at), updated_at = least(t.updated_at, d.updated_at),
                       chunk_count = d.chunk_count + t.chunks
                   FROM unnest(%s::uuid[], %s::timestamptz[], %s::timestamptz[], %s::int[])
                        AS t(id, created_at, updated_at, chunks)
                   WHERE d.id = t.id""",
                [list(column) for column in zip(*rows, strict=True)],
            )
        self._nodes, self._times, self._characters = [], {}, 0

    async def _accept(self, part: DocumentPart) -> None:
        """A document that was not indexed when it was exported, as an upload."""
        form = part.form
        source = DocumentInput(
            data=part.original or b"",
            file_name=clean_file_name(form.file_name or form.name),
            name=form.name,
            title=form.title,
            source=form.source,
            tags=form.tags,
            fields=form.fields,
            metadata=form.metadata,
            expires_at=self._expiry(form),
        )
        new = NewUpload(
            source=source,
            corpus_id=self.corpus.id,
            name=form.name,
            content_hash=form.content_hash,
            fingerprint=self.work.fingerprint,
        )
        identity = self.work.identity
        upload, _ = await accept_upload(self.connection, identity, self.work.parts.originals, new)
        await enqueue(self.connection, upload.id, identity.user_id)
        self.waiting += 1

    def _fingerprint(self, form: DocumentForm) -> str:
        """That of now, if only the embedding model was another one, else the document's, which is then stale."""
        return self.work.fingerprint if form.fingerprint == self.work.source_fingerprint else form.fingerprint

    def _expiry(self, form: DocumentForm) -> datetime | None:
        """As in the file, but no later than this service keeps what is uploaded."""
        seconds = self.work.parts.default_ttl_seconds
        latest = None if seconds is None else self.now + timedelta(seconds=seconds)
        return min(filter(None, (form.expires_at, latest)), default=None)


def _nobody(before: str) -> Renamed:
    """For nodes that are only embedded."""
    return Renamed(before=before, document_id=UUID(int=0), corpus_id=UUID(int=0))


def _batches(chunks: Sequence[ChunkForm]) -> Iterator[list[ChunkForm]]:
    """The chunks in their order, as many at once as the memory holds."""
    batch: list[ChunkForm] = []
    size = 0
    for chunk in chunks:
        if batch and size + chunk.length > _CHARACTERS_AT_ONCE:
            yield batch
            batch, size = [], 0
        batch.append(chunk)
        size += chunk.length
    yield batch


def _make_nodes(
    chunks: Sequence[ChunkForm], renamed: Renamed, text: str, vectors: Sequence[list[float]] | None = None
) -> list[BaseNode]:
    return [
        renamed.make_node(chunk, text, vectors[place] if vectors is not None else None)
        for place, chunk in enumerate(chunks)
    ]

"""Ingests documents: reader, chunker, transformations, embedding, one transaction.

Idempotent by content hash and index fingerprint: the same bytes under the same definition are embedded once. Nothing is
deleted before its replacement is ready.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import defaultdict
from collections.abc import AsyncGenerator, AsyncIterable, Awaitable, Callable, Iterable, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import TYPE_CHECKING
from uuid import UUID, uuid4

import psycopg
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.ingestion import IngestionPipeline
from llama_index.core.schema import BaseNode, Document, TransformComponent

from rag_service.domain import READER_WARNINGS, Identity
from rag_service.errors import DocumentError, NoTextError, RagError
from rag_service.indices import IndexDefinition
from rag_service.ingest.batches import Batches
from rag_service.ingest.chunker import Chunker
from rag_service.ingest.documents import (
    Admitted,
    Ingested,
    Outcome,
    describe_document,
    document_name,
    report_missing_vectors,
    to_pipeline,
    write_documents,
)
from rag_service.ingest.embedding_cache import CachedEmbedding
from rag_service.ingest.transformations import (
    EmbedPassages,
    Progress,
    build_transformations,
    describe_transformation,
    reader_classes,
)
from rag_service.readers.common.names import clean_file_name
from rag_service.readers.file_reader import SPANS, FileReader
from rag_service.recent import keep_for
from rag_service.store.corpora import Corpus
from rag_service.store.database import Connection, Database
from rag_service.store.documents.chunks import REQUIRED_KEYS
from rag_service.store.documents.documents import DocumentInput, NewDocument, find_documents
from rag_service.store.documents.external_nodes import mark_node, place_nodes
from rag_service.store.documents.originals import Original, Originals, forget_earlier_originals
from rag_service.store.documents.uploads import UploadStatus
from rag_service.tasks import end_tasks

if TYPE_CHECKING:
    from rag_service.store.documents.chunk_store import ChunkStore

AT_ONCE = 2  # documents in progress: one is parsed, in a process of its own, while another is embedded

Stored = Callable[[Connection, DocumentInput, UUID], Awaitable[None]]  # called with the id, before the commit
Write = Callable[[Connection, NewDocument, Sequence[BaseNode]], Awaitable[None]]  # stores a document with its chunks
WriteAll = Callable[[Connection, Sequence[tuple[NewDocument, Sequence[BaseNode]]]], Awaitable[None]]


@dataclass(eq=False)
class Ingestor:
    """Brings documents into corpora: for uploads, the command line, notebooks and clusters alike."""

    database: Database
    embedding: BaseEmbedding
    reader: FileReader = field(default_factory=FileReader)
    _: KW_ONLY
    model: str  # of the embedding; part of the fingerprint, as its dimension
    dimension: int
    originals: Originals | None = None  # keeps the original bytes; None keeps only the text
    # Run for every index, after those of its definition. A `NodeParser` among them replaces our chunker.
    transformations: Sequence[TransformComponent] = ()
    keeps: bool = True  # whether what was made of a document is kept for the next one of the same user
    _built: dict[str, Sequence[TransformComponent]] = field(default_factory=dict, init=False)  # by fingerprint
    _stores: dict[str, ChunkStore] = field(default_factory=dict, init=False)

    def prepare(self, indices: Iterable[IndexDefinition]) -> None:
        """Load the readers and transformations of index definitions; raises ConfigurationError at start."""
        for index in indices:
            reader_classes(index)
            self._transformations_of(index)

    def fingerprint(self, index: IndexDefinition) -> str:
        """What the chunks of this index depend on; stored with every document."""
        return index.fingerprint(
            embedding_model=self.model,
            dimension=self.dimension,
            transformations=[describe_transformation(component) for component in self.transformations],
        )

    def vector_store(self, index: IndexDefinition, identity: Identity) -> ChunkStore:
        """A LlamaIndex vector store over everything the identity may read."""
        # With PGVectorStore come three database drivers, which only documents need.
        from rag_service.store.documents.chunk_store import ChunkStore

        key = self.fingerprint(index)
        if key not in self._stores:
            self._stores[key] = ChunkStore(
                self.database, identity, dimension=self.dimension, index=index, fingerprint=key
            )
        return self._stores[key].bound_to(identity)

    async def ingest(
        self,
        source: DocumentInput,
        *,
        corpus: Corpus,
        index: IndexDefinition,
        identity: Identity,
        stored: Stored | None = None,
    ) -> Ingested:
        """Ingest one document; an earlier version of the same name is replaced in one transaction.

        `stored`: writes more in that transaction; not called where the same content is stored already.

        Raises:
            DocumentError: it cannot be read, or has no text.
            EmbeddingError, StoreError: the model or the database fails; nothing was changed.
        """
        admitted = await self.admit(source, corpus=corpus, index=index, identity=identity)
        if isinstance(admitted, Ingested):
            return admitted

        written: list[NewDocument] = []

        async def write(connection: Connection, document: NewDocument, nodes: Sequence[BaseNode]) -> None:
            await self._write(connection, [(admitted, document, nodes)])
            if stored is not None:
                await stored(connection, source, document.id)
            written.append(document)

        count = await self.run_pipeline(admitted, write, corpus=corpus, index=index, identity=identity)
        return _done(admitted, written[-1], count)

    async def ingest_together(
        self,
        sources: Sequence[DocumentInput],
        *,
        corpus: Corpus,
        index: IndexDefinition,
        identity: Identity,
        stored: Stored | None = None,
        reading: asyncio.Semaphore | None = None,
    ) -> list[Ingested | DocumentError]:
        """Ingest documents of different names with few statements, in one transaction; returns their outcomes in order.

        `reading`: how many are read at a time, here and elsewhere; None: `AT_ONCE`.

        What is wrong with one concerns no other: where they cannot be stored together, each is ingested by itself.
        Raises as `ingest`, except for DocumentError.
        """
        if len(sources) > 1 and all(isinstance(step, Chunker) for step in self._transformations_of(index)):
            with suppress(RagError, psycopg.Error):
                return await self._ingest_batch(
                    sources, corpus=corpus, index=index, identity=identity, stored=stored,
                    reading=reading or asyncio.Semaphore(AT_ONCE),
                )  # fmt: skip
        outcomes: list[Ingested | DocumentError] = []
        for source in sources:
            try:
                outcomes.append(await self.ingest(source, corpus=corpus, index=index, identity=identity, stored=stored))
            except DocumentError as error:
                outcomes.append(error)
        return outcomes

    async def _ingest_batch(
        self,
        sources: Sequence[DocumentInput],
        *,
        corpus: Corpus,
        index: IndexDefinition,
        identity: Identity,
        stored: Stored | None,
        reading: asyncio.Semaphore,
    ) -> list[Ingested | DocumentError]:
        outcomes = await self._admit_all(sources, corpus=corpus, index=index, identity=identity)
        admitted = [one for one in outcomes if isinstance(one, Admitted)]
        pairs: list[tuple[Admitted, Document]] = []
        done: dict[UUID, Ingested | DocumentError] = {}

        async def read(one: Admitted) -> None:
            async with reading:
                try:
                    pairs.append((one, await self.read(one.source, index)))
                except DocumentError as error:
                    done[one.document_id] = error

        tasks = [asyncio.create_task(read(one)) for one in admitted]
        try:
            await asyncio.gather(*tasks)
        finally:
            await end_tasks(*tasks)
        if pairs:

            async def write(connection: Connection, found: Sequence[tuple[NewDocument, Sequence[BaseNode]]]) -> None:
                by_id = {one.document_id: one for one in admitted}
                await self._write(connection, [(by_id[document.id], document, nodes) for document, nodes in found])
                for document, nodes in found:
                    if stored is not None:
                        await stored(connection, by_id[document.id].source, document.id)
                    done[document.id] = _done(by_id[document.id], document, len(nodes))

            with keep_for(identity.user_id, lasting=self.keeps):
                await self._run(pairs, write, corpus=corpus, index=index, identity=identity, progress=None)
        return [
            done.get(one.document_id) or _without_text(one.source.file_name) if isinstance(one, Admitted) else one
            for one in outcomes
        ]

    async def admit(
        self, source: DocumentInput, *, corpus: Corpus, index: IndexDefinition, identity: Identity
    ) -> Admitted | Ingested:
        """Decide what to do: nothing if the same content is stored under its name, else where the document belongs."""
        (admitted,) = await self._admit_all([source], corpus=corpus, index=index, identity=identity)
        return admitted

    async def _admit_all(
        self, sources: Sequence[DocumentInput], *, corpus: Corpus, index: IndexDefinition, identity: Identity
    ) -> list[Admitted | Ingested]:
        names = [document_name(source) for source in sources]
        fingerprint = self.fingerprint(index)
        async with self.database.transaction(identity) as connection:
            known = await find_documents(connection, corpus.id, names=names)
        outcomes: list[Admitted | Ingested] = []
        for source, name in zip(sources, names, strict=True):
            content_hash = hashlib.sha256(source.data).hexdigest()
            stored = known.get(name)
            if stored is not None and (stored.content_hash, stored.fingerprint) == (content_hash, fingerprint):
                outcomes.append(
                    Ingested(document_id=stored.id, outcome=Outcome.UNCHANGED, chunk_count=stored.chunk_count)
                )
                continue
            outcomes.append(
                Admitted(
                    source=source,
                    corpus_id=corpus.id,
                    document_id=uuid4() if stored is None else stored.id,
                    name=name,
                    content_hash=content_hash,
                    fingerprint=fingerprint,
                    replaces=stored is not None,
                )
            )
        return outcomes

    async def run_pipeline(
        self,
        admitted: Admitted,
        write: Write,
        *,
        corpus: Corpus,
        index: IndexDefinition,
        identity: Identity,
        progress: Progress | None = None,
    ) -> int:
        """Run an admitted document through the pipeline; returns its number of chunks. Raises as `ingest`.

        Args:
            write: stores the document in the transaction that ends the pipeline.
            progress: called before each stage and each embedding batch; an exception that it raises stops the work.
        """
        read = await self.read(admitted.source, index)
        if progress is not None:
            await progress(UploadStatus.CHUNKING, 0, None)

        async def write_one(connection: Connection, found: Sequence[tuple[NewDocument, Sequence[BaseNode]]]) -> None:
            for document, nodes in found:
                await write(connection, document, nodes)

        with keep_for(identity.user_id, lasting=self.keeps):
            count = await self._run(
                [(admitted, read)], write_one, corpus=corpus, index=index, identity=identity, progress=progress
            )
        if not count:
            raise _without_text(admitted.source.file_name)
        return count

    async def _run(
        self,
        pairs: Sequence[tuple[Admitted, Document]],
        write: WriteAll,
        *,
        corpus: Corpus,
        index: IndexDefinition,
        identity: Identity,
        progress: Progress | None,
    ) -> int:
        """Take documents that were read through the pipeline; returns their number of chunks."""
        documents = await asyncio.to_thread(  # reading tables takes a while
            lambda: {str(one.document_id): (describe_document(one, read, index), read) for one, read in pairs}
        )

        async def store(connection: Connection, nodes: Sequence[BaseNode]) -> None:
            found: dict[str, list[BaseNode]] = {}
            for node in nodes:
                found.setdefault(str(node.ref_doc_id) if len(documents) > 1 else next(iter(documents)), []).append(node)
            await write(
                connection,
                [
                    finish_nodes(report_missing_vectors(documents[key][0], own), own, documents[key][1])
                    for key, own in found.items()
                ],
            )

        embedding = self.embedding
        if isinstance(embedding, CachedEmbedding):  # a retry then embeds only what is missing
            embedding = embedding.for_corpus(corpus, identity)
        transformations = self._transformations_of(index)
        pipeline = IngestionPipeline(
            transformations=[*transformations, EmbedPassages(embedding, progress)],
            vector_store=self.vector_store(index, identity).bound_to(identity, writer=store),
            disable_cache=True,
        )
        nodes = await pipeline.arun(
            documents=[to_pipeline(document, read, transformations) for document, read in documents.values()]
        )
        return len(nodes)

    async def read(self, source: DocumentInput, index: IndexDefinition) -> Document:
        """Read a document with the reader for its format."""
        documents = await self.reader.aload_data(source.data, file_name=source.file_name, readers=reader_classes(index))
        return documents[0]

    async def store(
        self, admitted: Admitted, document: NewDocument, nodes: Sequence[BaseNode], *, identity: Identity
    ) -> Ingested:
        """Store a document that was chunked and embedded elsewhere, and its original, in one transaction.

        Raises DocumentError if it has no chunks, and StoreError.
        """
        if not nodes:
            raise _without_text(document.file_name or document.name)
        document = report_missing_vectors(document, nodes)
        async with self.database.transaction(identity) as connection:
            await self._write(connection, [(admitted, document, nodes)])
        return _done(admitted, document, len(nodes))

    async def ingest_all(
        self,
        sources: AsyncIterable[DocumentInput],
        *,
        corpus: Corpus,
        index: IndexDefinition,
        identity: Identity,
        at_once: int = AT_ONCE,
        stored: Stored | None = None,
    ) -> AsyncGenerator[tuple[DocumentInput, Ingested | DocumentError]]:
        """Ingest many documents; yields each with its outcome as soon as it is known.

        Sources are consumed lazily; `stored` as for `ingest`. Unreadable documents do not stop the others;
        EmbeddingError and StoreError do, and documents in progress are then not stored.
        """
        # Versions of a document are ingested in their order; a copy waits for the cached vectors of the first.
        locks: defaultdict[str | bytes, asyncio.Lock] = defaultdict(asyncio.Lock)

        async def ingest(batch: Sequence[DocumentInput]) -> list[tuple[DocumentInput, Ingested | DocumentError]]:
            keys: list[str | bytes] = sorted({document_name(source) for source in batch})
            keys += sorted({hashlib.sha256(source.data).digest() for source in batch})
            async with AsyncExitStack() as held:
                for key in keys:  # in one order, so that no two wait for each other
                    await held.enter_async_context(locks[key])
                outcomes = await self.ingest_together(
                    batch, corpus=corpus, index=index, identity=identity, stored=stored, reading=reading
                )
            return list(zip(batch, outcomes, strict=True))

        batches, reading = Batches(), asyncio.Semaphore(at_once)
        filling = asyncio.create_task(batches.fill(sources))
        running: set[asyncio.Task[list[tuple[DocumentInput, Ingested | DocumentError]]]] = set()
        try:
            while batch := await batches.take():
                running.add(asyncio.create_task(ingest(batch)))
                if len(running) >= at_once:
                    done, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
                    for task in done:
                        for outcome in task.result():
                            yield outcome
            await filling
            for finished in asyncio.as_completed(running):
                for outcome in await finished:
                    yield outcome
        finally:
            await end_tasks(filling, *running)

    def _transformations_of(self, index: IndexDefinition) -> Sequence[TransformComponent]:
        key = self.fingerprint(index)
        if key not in self._built:
            self._built[key] = build_transformations(index, self.transformations)
        return self._built[key]

    async def _write(
        self, connection: Connection, stored: Sequence[tuple[Admitted, NewDocument, Sequence[BaseNode]]]
    ) -> None:
        await write_documents(connection, [(document, nodes) for _, document, nodes in stored])
        if self.originals is not None:
            versions = [
                Original(document.id, document.content_hash, document.corpus_id, admitted.source.data)
                for admitted, document, _ in stored
            ]
            await self.originals.write_all(connection, versions)
            for admitted, document, _ in stored:
                if admitted.replaces:
                    await forget_earlier_originals(connection, document.id, document.content_hash)


def finish_nodes(
    document: NewDocument, nodes: Sequence[BaseNode], read: Document
) -> tuple[NewDocument, Sequence[BaseNode]]:
    """Prepare nodes for the store: nodes of foreign parsers get offsets, locations and ids."""
    if all(key in node.metadata for node in nodes for key in REQUIRED_KEYS):
        return document, nodes
    text, placed = place_nodes(nodes, document.text, read.metadata[SPANS])
    tables = document.tables if text == document.text else ()  # their cells are placed in the text
    return replace(document, text=text, tables=tables), [mark_node(node, document) for node in placed]


def _without_text(file_name: str) -> NoTextError:
    return NoTextError(f"{clean_file_name(file_name)} contains no searchable text.")


def _done(admitted: Admitted, document: NewDocument, chunk_count: int) -> Ingested:
    return Ingested(
        document_id=admitted.document_id,
        outcome=Outcome.REPLACED if admitted.replaces else Outcome.ADDED,
        chunk_count=chunk_count,
        warnings=tuple(document.metadata.get(READER_WARNINGS, ())),
    )

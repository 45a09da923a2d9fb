"""Ingests documents: reader, chunker, transformations, embedding, one transaction.

Idempotent by content hash and index fingerprint: the same bytes under the same definition are embedded once. Nothing is
deleted before its replacement is ready.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import defaultdict
from collections.abc import AsyncGenerator, AsyncIterable, Awaitable, Callable, Iterable, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import TYPE_CHECKING
from uuid import UUID, uuid4

from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.ingestion import IngestionPipeline
from llama_index.core.schema import BaseNode, Document, TransformComponent

from rag_service.domain import READER_WARNINGS, Identity
from rag_service.errors import DocumentError, NoTextError
from rag_service.indices import IndexDefinition
from rag_service.ingest.documents import (
    Admitted,
    Ingested,
    Outcome,
    describe_document,
    document_name,
    report_missing_vectors,
    to_pipeline,
    write_document,
)
from rag_service.ingest.embedding_cache import CachedEmbedding
from rag_service.ingest.transformations import (
    EmbedPassages,
    Progress,
    build_transformations,
    describe_transformation,
    reader_classes,
)
from rag_service.readers.file_reader import SPANS, FileReader
from rag_service.recent import keep_for
from rag_service.store.corpora import Corpus
from rag_service.store.database import Connection, Database
from rag_service.store.documents.chunks import REQUIRED_KEYS
from rag_service.store.documents.documents import DocumentInput, NewDocument, find_document
from rag_service.store.documents.external_nodes import mark_node, place_nodes
from rag_service.store.documents.originals import Originals, forget_earlier_originals
from rag_service.store.documents.uploads import UploadStatus
from rag_service.tasks import end_tasks

if TYPE_CHECKING:
    from rag_service.store.documents.chunk_store import ChunkStore

AT_ONCE = 2  # documents in progress: one is parsed, in a process of its own, while another is embedded

Stored = Callable[[Connection, DocumentInput, UUID], Awaitable[None]]  # called with the id, before the commit
Write = Callable[[Connection, NewDocument, Sequence[BaseNode]], Awaitable[None]]  # stores a document with its chunks


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
            await self._write(connection, admitted, document, nodes)
            if stored is not None:
                await stored(connection, source, document.id)
            written.append(document)

        count = await self.run_pipeline(admitted, write, corpus=corpus, index=index, identity=identity)
        return _done(admitted, written[-1], count)

    async def admit(
        self, source: DocumentInput, *, corpus: Corpus, index: IndexDefinition, identity: Identity
    ) -> Admitted | Ingested:
        """Decide what to do: nothing if the same content is stored under its name, else where the document belongs."""
        name = document_name(source)
        content_hash = hashlib.sha256(source.data).hexdigest()
        fingerprint = self.fingerprint(index)
        async with self.database.transaction(identity) as connection:
            stored = await find_document(connection, corpus.id, name=name)
        if stored is not None and (stored.content_hash, stored.fingerprint) == (content_hash, fingerprint):
            return Ingested(document_id=stored.id, outcome=Outcome.UNCHANGED, chunk_count=stored.chunk_count)
        return Admitted(
            source=source,
            corpus_id=corpus.id,
            document_id=uuid4() if stored is None else stored.id,
            name=name,
            content_hash=content_hash,
            fingerprint=fingerprint,
            replaces=stored is not None,
        )

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
        with keep_for(identity.user_id, lasting=self.keeps):
            return await self._run(
                admitted, read, write, corpus=corpus, index=index, identity=identity, progress=progress
            )

    async def _run(
        self,
        admitted: Admitted,
        read: Document,
        write: Write,
        *,
        corpus: Corpus,
        index: IndexDefinition,
        identity: Identity,
        progress: Progress | None,
    ) -> int:
        document = await asyncio.to_thread(describe_document, admitted, read, index)  # reading tables takes a while

        async def store(connection: Connection, nodes: Sequence[BaseNode]) -> None:
            await write(connection, *finish_nodes(report_missing_vectors(document, nodes), nodes, read))

        embedding = self.embedding
        if isinstance(embedding, CachedEmbedding):  # a retry then embeds only what is missing
            embedding = embedding.for_corpus(corpus, identity)
        transformations = self._transformations_of(index)
        pipeline = IngestionPipeline(
            transformations=[*transformations, EmbedPassages(embedding, progress)],
            vector_store=self.vector_store(index, identity).bound_to(identity, writer=store),
            disable_cache=True,
        )
        nodes = await pipeline.arun(documents=[to_pipeline(document, read, transformations)])
        if not nodes:
            raise NoTextError(f"{document.file_name} contains no searchable text.")
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
            raise NoTextError(f"{document.file_name} contains no searchable text.")
        document = report_missing_vectors(document, nodes)
        async with self.database.transaction(identity) as connection:
            await self._write(connection, admitted, document, nodes)
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
        by_name: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        by_content: defaultdict[bytes, asyncio.Lock] = defaultdict(asyncio.Lock)

        async def ingest(source: DocumentInput) -> tuple[DocumentInput, Ingested | DocumentError]:
            try:
                async with by_name[document_name(source)], by_content[hashlib.sha256(source.data).digest()]:
                    return source, await self.ingest(
                        source, corpus=corpus, index=index, identity=identity, stored=stored
                    )
            except DocumentError as error:
                return source, error

        running: set[asyncio.Task[tuple[DocumentInput, Ingested | DocumentError]]] = set()
        try:
            async for source in sources:
                if len(running) >= at_once:
                    done, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
                    for task in done:
                        yield task.result()
                running.add(asyncio.create_task(ingest(source)))
            for finished in asyncio.as_completed(running):
                yield await finished
        finally:
            await end_tasks(*running)

    def _transformations_of(self, index: IndexDefinition) -> Sequence[TransformComponent]:
        key = self.fingerprint(index)
        if key not in self._built:
            self._built[key] = build_transformations(index, self.transformations)
        return self._built[key]

    async def _write(
        self, connection: Connection, admitted: Admitted, document: NewDocument, nodes: Sequence[BaseNode]
    ) -> None:
        await write_document(connection, document, nodes)
        if self.originals is not None:
            version = (document.id, document.content_hash)
            await self.originals.write(connection, *version, corpus_id=document.corpus_id, data=admitted.source.data)
            await forget_earlier_originals(connection, *version)


def finish_nodes(
    document: NewDocument, nodes: Sequence[BaseNode], read: Document
) -> tuple[NewDocument, Sequence[BaseNode]]:
    """Prepare nodes for the store: nodes of foreign parsers get offsets, locations and ids."""
    if all(key in node.metadata for node in nodes for key in REQUIRED_KEYS):
        return document, nodes
    text, placed = place_nodes(nodes, document.text, read.metadata[SPANS])
    tables = document.tables if text == document.text else ()  # their cells are placed in the text
    return replace(document, text=text, tables=tables), [mark_node(node, document) for node in placed]


def _done(admitted: Admitted, document: NewDocument, chunk_count: int) -> Ingested:
    return Ingested(
        document_id=admitted.document_id,
        outcome=Outcome.REPLACED if admitted.replaces else Outcome.ADDED,
        chunk_count=chunk_count,
        warnings=tuple(document.metadata.get(READER_WARNINGS, ())),
    )

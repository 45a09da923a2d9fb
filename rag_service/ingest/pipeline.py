"""A document's way into the store: parse → chunk → embed → one transaction.

Idempotent by content hash and index fingerprint: the same bytes under the same definition are not
embedded twice. Nothing is deleted before its replacement is ready.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import defaultdict
from collections.abc import AsyncGenerator, AsyncIterable, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from pathlib import PurePosixPath
from typing import Any
from uuid import UUID, uuid4

from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.ingestion import IngestionPipeline
from llama_index.core.schema import BaseNode

from rag_service.definitions import IndexDefinition
from rag_service.domain import Identity, ParsedDocument
from rag_service.errors import DocumentError
from rag_service.ingest.chunking import TITLE, Chunker, as_llama_document
from rag_service.ingest.embedding_cache import CachedEmbedding
from rag_service.ingest.parse import clean_file_name
from rag_service.store.corpora import Corpus
from rag_service.store.documents.chunks import CORPUS_ID, DOCUMENT_ID, LANGUAGE
from rag_service.store.documents.documents import NewDocument, find_document, store_document
from rag_service.store.documents.originals import OriginalKey, OriginalStore, forget_earlier_originals
from rag_service.store.session import Database
from rag_service.text.words import detect_language, fold

Parser = Callable[[bytes, str], Awaitable[ParsedDocument]]  # (bytes, file name) → parsed

AT_ONCE = 2  # documents of a folder in work: one is parsed, in a process of its own, while one is embedded


@dataclass(frozen=True, kw_only=True)
class DocumentInput:
    """A document as it comes in."""

    data: bytes  # the original file
    file_name: str  # as the uploader named it; untrusted
    name: str | None = None  # unique in the corpus; None: the cleaned file name
    title: str | None = None  # None: the document's own
    source: str | None = None
    tags: tuple[str, ...] = ()
    fields: Mapping[str, str] = field(default_factory=dict)  # declared filter fields
    metadata: Mapping[str, Any] = field(default_factory=dict)
    expires_at: datetime | None = None


class Outcome(StrEnum):
    ADDED = "added"
    REPLACED = "replaced"
    UNCHANGED = "unchanged"


@dataclass(frozen=True, kw_only=True)
class Ingested:
    """What became of a document."""

    document_id: UUID
    outcome: Outcome
    chunk_count: int


@dataclass(frozen=True, kw_only=True)
class Admitted:
    """A document that is to be ingested: its place is known, its text not yet."""

    source: DocumentInput
    corpus_id: UUID
    document_id: UUID  # kept when a document of the same name is replaced
    name: str  # in the corpus
    content_hash: str  # SHA-256 of the bytes, hex
    fingerprint: str  # of the ingest settings
    replaces: bool  # a document of this name is stored


class Ingestor:
    """Brings documents into corpora."""

    def __init__(
        self,
        database: Database,
        embedding: BaseEmbedding,
        parser: Parser,
        *,
        model: str,
        dimension: int,
        originals: OriginalStore | None = None,
    ):
        """
        Args:
            database: where to.
            embedding: the model that embeds passages.
            parser: turns bytes into text and places; the sandbox in production.
            model: name of the embedding model, part of the fingerprint.
            dimension: length of its vectors, likewise.
            originals: where the bytes are kept; None keeps the text alone.
        """
        self._database = database
        self._embedding = embedding
        self._parser = parser
        self._model = model
        self._dimension = dimension
        self._originals = originals

    def fingerprint(self, index: IndexDefinition) -> str:
        """What the chunks of this index depend on, as stored with every document."""
        return index.fingerprint(embedding_model=self._model, dimension=self._dimension)

    async def ingest(
        self, source: DocumentInput, *, corpus: Corpus, index: IndexDefinition, identity: Identity
    ) -> Ingested:
        """Ingest one document; an earlier version of the same name is replaced in one transaction.

        Raises:
            DocumentError: it cannot be read, or holds no text.
            EmbeddingError: the model fails; nothing was changed.
            StoreError: the database fails; nothing was changed.
        """
        admitted = await self.admit(source, corpus=corpus, index=index, identity=identity)
        if isinstance(admitted, Ingested):
            return admitted
        parsed = await self._parser(source.data, source.file_name)
        document = describe_document(admitted, parsed, index)
        nodes = await self._embed(document, parsed, index, corpus=corpus, identity=identity)
        return await self.store(admitted, document, nodes, identity=identity)

    async def admit(
        self, source: DocumentInput, *, corpus: Corpus, index: IndexDefinition, identity: Identity
    ) -> Admitted | Ingested:
        """What there is to do for a document: nothing, where its content is stored already; else where it belongs."""
        name = document_name(source)
        content_hash = hashlib.sha256(source.data).hexdigest()
        fingerprint = self.fingerprint(index)
        async with self._database.transaction(identity) as connection:
            stored = await find_document(connection, corpus.id, name=name, content_hash=content_hash)
        if stored is not None and (stored.content_hash, stored.fingerprint) == (content_hash, fingerprint):
            return Ingested(document_id=stored.id, outcome=Outcome.UNCHANGED, chunk_count=stored.chunk_count)
        replaced = stored if stored is not None and stored.name == name else None
        return Admitted(
            source=source,
            corpus_id=corpus.id,
            document_id=uuid4() if replaced is None else replaced.id,
            name=name,
            content_hash=content_hash,
            fingerprint=fingerprint,
            replaces=replaced is not None,
        )

    async def store(
        self, admitted: Admitted, document: NewDocument, nodes: Sequence[BaseNode], *, identity: Identity
    ) -> Ingested:
        """Store an admitted document with its embedded chunks and its original, in one transaction.

        Raises:
            DocumentError: it has no chunks.
            StoreError: the database fails; nothing was changed.
        """
        if not nodes:
            raise DocumentError(f"{document.file_name} holds no text that could be searched.")
        async with self._database.transaction(identity) as connection:
            await store_document(connection, document, nodes)
            if self._originals is not None:
                key = OriginalKey(document_id=document.id, content_hash=document.content_hash)
                await self._originals.write(connection, key, corpus_id=document.corpus_id, data=admitted.source.data)
                await forget_earlier_originals(connection, key)
        outcome = Outcome.REPLACED if admitted.replaces else Outcome.ADDED
        return Ingested(document_id=document.id, outcome=outcome, chunk_count=len(nodes))

    async def ingest_all(
        self,
        sources: AsyncIterable[DocumentInput],
        *,
        corpus: Corpus,
        index: IndexDefinition,
        identity: Identity,
        at_once: int = AT_ONCE,
    ) -> AsyncGenerator[tuple[DocumentInput, Ingested | DocumentError]]:
        """Ingest many documents; each is given back with what became of it as soon as that is known.

        Sources are taken one by one as their turn comes. One that cannot be read does not stop the others.

        Raises:
            EmbeddingError, StoreError: as `ingest`; documents that are in work then are not stored.
        """

        # What replaces or repeats another document comes after it, as it would one by one.
        by_name: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        by_content: defaultdict[bytes, asyncio.Lock] = defaultdict(asyncio.Lock)

        async def ingest(source: DocumentInput) -> tuple[DocumentInput, Ingested | DocumentError]:
            try:
                async with by_name[document_name(source)], by_content[hashlib.sha256(source.data).digest()]:
                    return source, await self.ingest(source, corpus=corpus, index=index, identity=identity)
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
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)

    async def _embed(
        self,
        document: NewDocument,
        parsed: ParsedDocument,
        index: IndexDefinition,
        *,
        corpus: Corpus,
        identity: Identity,
    ) -> Sequence[BaseNode]:
        """Chunk and embed through LlamaIndex's pipeline; the nodes are not stored yet."""
        embedding = self._embedding
        if isinstance(embedding, CachedEmbedding):
            embedding = embedding.for_corpus(corpus, identity)
        # In a thread: meanwhile the model asks this loop for its next texts, and others for their answers.
        chunks = await asyncio.to_thread(cut, document, parsed, index)
        nodes: Sequence[BaseNode] = await IngestionPipeline(transformations=[embedding], disable_cache=True).arun(
            nodes=chunks
        )
        return nodes


def document_name(source: DocumentInput) -> str:
    """Under which name a document is known in its corpus."""
    return source.name or clean_file_name(source.file_name)


def cut(document: NewDocument, parsed: ParsedDocument, index: IndexDefinition) -> list[BaseNode]:
    """Chunks of a document with the metadata that the store asks for. Seconds for a long one: use a thread."""
    metadata = {
        CORPUS_ID: str(document.corpus_id),
        DOCUMENT_ID: str(document.id),
        LANGUAGE: document.language,
        TITLE: document.title,
    }
    return Chunker(index.ingest)([as_llama_document(parsed.text, parsed.spans, metadata)])


def describe_document(admitted: Admitted, parsed: ParsedDocument, index: IndexDefinition) -> NewDocument:
    """An admitted document as it is stored; what its uploader said wins over what it says of itself."""
    source = admitted.source
    declared = {key: str(value) for key, value in parsed.metadata.items() if key in index.ingest.filter_fields}
    tags = source.tags or tuple(str(tag) for tag in parsed.metadata.get("tags") or ())
    origin = source.source or parsed.metadata.get("source")
    return NewDocument(
        id=admitted.document_id,
        corpus_id=admitted.corpus_id,
        name=admitted.name,
        title=source.title or parsed.title,
        file_name=PurePosixPath(clean_file_name(source.file_name)).name,
        source=None if origin is None else str(origin),
        tags=tags,
        language=_language(parsed, index),
        media_type=parsed.media_type,
        content_hash=admitted.content_hash,
        fingerprint=admitted.fingerprint,
        text=parsed.text,
        fields={**declared, **source.fields},
        metadata={**parsed.metadata, **source.metadata},
        territory=_territory(parsed.metadata, index),
        size_bytes=len(source.data),
        expires_at=source.expires_at,
    )


def _language(parsed: ParsedDocument, index: IndexDefinition) -> str | None:
    if index.ingest.language != "auto":
        return index.ingest.language
    return parsed.language or detect_language(parsed.text)


def _territory(metadata: Mapping[str, Any], index: IndexDefinition) -> str | None:
    """Name of the territory a document is valid in; None when it is valid everywhere."""
    declared = metadata.get(index.ingest.territory_field or "")
    if declared is None:
        return None
    wanted = fold(str(declared))
    for territory in index.territories:
        if wanted in {fold(name) for name in (territory.name, *territory.aliases, *territory.cities)}:
            return territory.name
    return None

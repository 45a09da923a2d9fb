"""One claimed upload on its way: parsing → chunking → embedding → storing → indexed.

Each stage is written to the upload before it begins, under the worker's claim. Everything up to the
last transaction is read-only for the corpus, so that a worker may die at any point: the next one
begins again, and what was searchable before stays so until the new version replaces it whole.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import structlog
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.ingestion import IngestionPipeline
from llama_index.core.schema import BaseNode

from rag_service.definitions import IndexDefinition
from rag_service.domain import Identity, ParsedDocument
from rag_service.errors import ConfigurationError, DocumentError, NotFoundError
from rag_service.ingest.embedding_cache import CachedEmbedding
from rag_service.ingest.pipeline import Admitted, DocumentInput, Parser, cut, describe_document
from rag_service.store.corpora import Corpus, require_writable
from rag_service.store.documents.chunks import lock_corpora
from rag_service.store.documents.claims import ClaimLostError, finish_upload, hold_claim, report_progress
from rag_service.store.documents.documents import NewDocument, store_document
from rag_service.store.documents.originals import OriginalKey, OriginalStore
from rag_service.store.documents.uploads import Upload, UploadStatus
from rag_service.store.session import Connection, Database

log = structlog.get_logger(__name__)


@dataclass(frozen=True, kw_only=True)
class EmbeddingModel:
    """The embedding with the name and dimension that fingerprints are made of."""

    embedding: BaseEmbedding
    name: str
    dimension: int

    def fingerprint(self, index: IndexDefinition) -> str:
        """As stored with every document of the index."""
        return index.fingerprint(embedding_model=self.name, dimension=self.dimension)


class Stages:
    """Takes claimed uploads through all stages; shared by the jobs of a process."""

    def __init__(
        self,
        database: Database,
        originals: OriginalStore,
        model: EmbeddingModel,
        parser: Parser,
        indices: Mapping[str, IndexDefinition],
        *,
        parse_concurrency: int,
    ):
        """
        Args:
            database: where to.
            originals: where the bytes are.
            model: embeds passages.
            parser: turns bytes into text and places; the sandbox in production.
            indices: definitions by name.
            parse_concurrency: parsers that run at a time, however many jobs do.
        """
        self._database = database
        self._originals = originals
        self._model = model
        self._parser = parser
        self._indices = indices
        self._parsing = asyncio.Semaphore(parse_concurrency)

    async def run(self, upload: Upload, identity: Identity) -> int:
        """Index a claimed upload; returns its number of chunks.

        Raises:
            ClaimLostError: somebody else decides about the upload now; nothing was written.
            DocumentError, ConflictError, PermissionDeniedError: it will never be indexed as things stand.
            EmbeddingError, StoreError: a later try may succeed; nothing was written.
        """
        corpus, name, data = await self._fetch(upload, identity)
        index = self._index_of(corpus)
        async with self._parsing:
            parsed = await self._parser(data, upload.file_name)
        document = self._describe(upload, parsed, index, corpus=corpus, name=name, data=data)
        await self._report(upload, identity, UploadStatus.CHUNKING)
        nodes = await asyncio.to_thread(cut, document, parsed, index)
        if not nodes:
            raise DocumentError(f"{document.file_name} holds no text that could be searched.")
        embedded = await self._embed(upload, identity, corpus, nodes)
        await self._report(upload, identity, UploadStatus.STORING, done=len(nodes), total=len(nodes))
        await self._store(upload, identity, document, embedded)
        return len(nodes)

    async def _fetch(self, upload: Upload, identity: Identity) -> tuple[Corpus, str, bytes]:
        """Corpus, document name and bytes. What is no longer there was deleted meanwhile."""
        async with self._database.transaction(identity) as connection:
            try:
                corpus = await require_writable(connection, upload.corpus_id)
            except NotFoundError as error:
                raise ClaimLostError("The corpus is gone.") from error
            cursor = await connection.execute("SELECT name FROM documents WHERE id = %s", [upload.document_id])
            row = await cursor.fetchone()
            if row is None:
                raise ClaimLostError("The document is gone.")
            key = OriginalKey(document_id=upload.document_id, content_hash=upload.content_hash)
            return corpus, row[0], await self._originals.read(connection, key)

    def _index_of(self, corpus: Corpus) -> IndexDefinition:
        index = self._indices.get(corpus.index_name)
        if index is None:
            raise ConfigurationError(f"The corpus uses the index {corpus.index_name!r}, which is not defined.")
        return index

    def _describe(
        self,
        upload: Upload,
        parsed: ParsedDocument,
        index: IndexDefinition,
        *,
        corpus: Corpus,
        name: str,
        data: bytes,
    ) -> NewDocument:
        admitted = Admitted(
            source=DocumentInput(
                data=data,
                file_name=upload.file_name,
                name=name,
                title=upload.title,
                source=upload.source,
                tags=upload.tags,
                fields=upload.fields,
                metadata=upload.metadata,
                expires_at=upload.expires_at,
            ),
            corpus_id=corpus.id,
            document_id=upload.document_id,
            name=name,
            content_hash=upload.content_hash,
            fingerprint=self._model.fingerprint(index),
            replaces=True,
        )
        return describe_document(admitted, parsed, index)

    async def _embed(
        self, upload: Upload, identity: Identity, corpus: Corpus, nodes: Sequence[BaseNode]
    ) -> list[BaseNode]:
        """Batch by batch, so that progress shows and a lost claim stops the work."""
        embedding = self._model.embedding
        size = embedding.embed_batch_size
        if isinstance(embedding, CachedEmbedding):  # another try then embeds only what is missing
            embedding = embedding.for_corpus(corpus, identity)
        pipeline = IngestionPipeline(transformations=[embedding], disable_cache=True)
        embedded: list[BaseNode] = []
        for start in range(0, len(nodes), size):
            await self._report(upload, identity, UploadStatus.EMBEDDING, done=start, total=len(nodes))
            embedded += await pipeline.arun(nodes=list(nodes[start : start + size]))
        return embedded

    async def _report(
        self, upload: Upload, identity: Identity, status: UploadStatus, *, done: int = 0, total: int | None = None
    ) -> None:
        async with self._database.transaction(identity) as connection:
            await report_progress(connection, upload, status, done=done, total=total)

    async def _store(
        self, upload: Upload, identity: Identity, document: NewDocument, nodes: Sequence[BaseNode]
    ) -> None:
        async with self._database.transaction(identity) as connection:
            expires_at = await _begin_writing(connection, upload)
            await store_document(connection, replace(document, expires_at=expires_at), nodes)
            await finish_upload(connection, upload, chunk_count=len(nodes))


async def _begin_writing(connection: Connection, upload: Upload) -> datetime | None:
    """The last look before anything becomes searchable, and it holds until the commit: when the document expires."""
    await lock_corpora(connection, {str(upload.corpus_id)})
    try:
        await require_writable(connection, upload.corpus_id)
    except NotFoundError as error:
        raise ClaimLostError("The corpus is gone.") from error
    return await hold_claim(connection, upload)

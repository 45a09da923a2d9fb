"""Bulk ingestion: parsing, chunking and embedding leave this process; admission and storing stay here.

Documents go out in waves as LlamaIndex nodes that hold their bytes, and come back as a record and embedded
chunks. `ReadDocuments` and `EmbedChunks` are LlamaIndex transformations and know nothing of who runs them;
`rag_service.ingest.ray_cluster` is the one that is shipped. They see neither the database nor its password.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.ingestion import IngestionPipeline
from llama_index.core.schema import BaseNode, Document, TextNode, TransformComponent
from pydantic import SecretStr

from rag_service.definitions import IndexDefinition
from rag_service.domain import Identity
from rag_service.errors import (
    ClusterError,
    ConfigurationError,
    DocumentError,
    EmbeddingError,
    RagError,
    TooLargeError,
    UnsupportedMediaError,
)
from rag_service.ingest.pipeline import (
    Admitted,
    DocumentInput,
    Ingested,
    Ingestor,
    cut,
    describe_document,
    document_name,
)
from rag_service.ingest.sandbox import parse_in_sandbox
from rag_service.models.embedding.embeddings import build_embedding, close_embedding
from rag_service.settings import Settings
from rag_service.store.corpora import Corpus
from rag_service.store.documents.chunks import CHUNK_INDEX, DOCUMENT_ID
from rag_service.store.documents.documents import NewDocument

# A wave is held in this process and, as often again, in the cluster's object store. It is large because a
# wave starts the transformations anew (some ten seconds with the local model), and ends with idle machines.
WAVE_BYTES = 256 * 1024**2
WAVE_DOCUMENTS = 2_000

_RECORD: Final = "bulk_record"  # metadata key of nodes that are no chunks
_DOCUMENT: Final = "document"  # its value: the node's text is the document, as JSON
_FAILURE: Final = "failure"  # its value: the node's text says why, for people
_CODE: Final = "bulk_code"  # the code of the error
_CHUNKS: Final = "bulk_chunks"  # how many chunks belong to a document
_ERRORS: Final[dict[str, type[RagError]]] = {
    error.code: error
    for error in (DocumentError, UnsupportedMediaError, TooLargeError, EmbeddingError, ConfigurationError)
}

Transform = Callable[[Sequence[BaseNode]], AsyncGenerator[BaseNode]]  # nodes out, nodes back in any order


def travelling_settings(settings: Settings) -> Settings:
    """The settings without the credentials of this process, but the one that the embedding model is asked with."""
    secrets = {name: None for name, value in settings if isinstance(value, SecretStr)} | {"originals_url": None}
    if settings.embedding_provider == "openai_like":
        secrets.pop("openai_api_key", None)
    return settings.model_copy(update=secrets)


def as_node(admitted: Admitted) -> BaseNode:
    """An admitted document as it travels: its bytes and all that was said of it, as JSON."""
    return Document(text=msgspec.json.encode(admitted).decode(), id_=str(admitted.document_id))


class ReadDocuments(TransformComponent):
    """Nodes of `as_node` become a record of the document and its chunks; one that cannot be read, a failure."""

    _index: IndexDefinition = PrivateAttr()

    def __init__(self, index: IndexDefinition):
        super().__init__()
        self._index = index

    def __call__(self, nodes: Sequence[BaseNode], **_: Any) -> list[BaseNode]:
        read = [self._read(msgspec.json.decode(node.get_content(), type=Admitted)) for node in nodes]
        return [node for document in read for node in document]

    def _read(self, admitted: Admitted) -> list[BaseNode]:
        source = admitted.source
        try:
            parsed = asyncio.run(parse_in_sandbox(source.data, file_name=source.file_name))
        except DocumentError as error:
            return [_failure(error, str(admitted.document_id))]
        document = describe_document(admitted, parsed, self._index)
        chunks = cut(document, parsed, self._index)
        record = TextNode(
            text=msgspec.json.encode(document).decode(),
            metadata={_RECORD: _DOCUMENT, DOCUMENT_ID: str(document.id), _CHUNKS: len(chunks)},
        )
        return [record, *chunks]


class EmbedChunks(TransformComponent):
    """Chunks get their vectors; what is no chunk passes. A model that fails gives a failure without a document."""

    _settings: Settings = PrivateAttr()
    _embedding: BaseEmbedding | None = PrivateAttr(default=None)
    _runner: asyncio.Runner = PrivateAttr(default_factory=asyncio.Runner)  # the model's connections are its loop's

    def __init__(self, settings: Settings):
        super().__init__()
        self._settings = settings

    def __call__(self, nodes: Sequence[BaseNode], **_: Any) -> list[BaseNode]:
        chunks = [node for node in nodes if _RECORD not in node.metadata]
        others = [node for node in nodes if _RECORD in node.metadata]
        try:
            embedded = self._runner.run(self._embed(chunks)) if chunks else []
        except (EmbeddingError, ConfigurationError) as error:
            return [*others, _failure(error, None)]
        return [*others, *embedded]

    def close(self) -> None:
        """Give back the model's thread or connections; for a process that goes on."""
        if self._embedding is not None:
            self._runner.run(close_embedding(self._embedding))
        self._runner.close()

    async def _embed(self, chunks: Sequence[BaseNode]) -> Sequence[BaseNode]:
        if self._embedding is None:
            self._embedding = build_embedding(self._settings)
        pipeline = IngestionPipeline(transformations=[self._embedding], disable_cache=True)
        embedded: Sequence[BaseNode] = await pipeline.arun(nodes=list(chunks))
        return embedded


def _failure(error: RagError, document_id: str | None) -> BaseNode:
    return TextNode(text=error.message, metadata={_RECORD: _FAILURE, _CODE: error.code, DOCUMENT_ID: document_id})


def _raised(node: BaseNode) -> RagError:
    return _ERRORS.get(node.metadata[_CODE], ClusterError)(node.get_content())


@dataclass(kw_only=True)
class _Arriving:
    """What has come back of a document so far."""

    document: NewDocument | None = None
    expected: int = -1  # chunks; known with the document
    chunks: list[BaseNode] = field(default_factory=list)

    def whole(self) -> tuple[NewDocument, list[BaseNode]] | None:
        """The document with its chunks in order, once nothing is missing."""
        if self.document is None or len(self.chunks) < self.expected:
            return None
        return self.document, sorted(self.chunks, key=lambda chunk: int(chunk.metadata[CHUNK_INDEX]))


class BulkIngestor:
    """Ingests many documents through transformations that run elsewhere; see `Ingestor.ingest_all`."""

    def __init__(
        self,
        ingestor: Ingestor,
        transform: Transform,
        *,
        wave_documents: int = WAVE_DOCUMENTS,
        wave_bytes: int = WAVE_BYTES,
    ):
        """
        Args:
            ingestor: admits and stores.
            transform: runs `ReadDocuments`, then `EmbedChunks`, over nodes.
            wave_documents: most documents that are out at a time.
            wave_bytes: a wave goes when it has this many.
        """
        self._ingestor = ingestor
        self._transform = transform
        self._wave_documents = wave_documents
        self._wave_bytes = wave_bytes

    async def ingest_all(
        self, sources: AsyncIterable[DocumentInput], *, corpus: Corpus, index: IndexDefinition, identity: Identity
    ) -> AsyncGenerator[tuple[DocumentInput, Ingested | DocumentError]]:
        """Each document is stored whole as soon as it has come back, and given back with what became of it.

        Stored documents that have not changed stay here: a run that was interrupted goes on where it stopped.

        Raises:
            ClusterError: the cluster fails. EmbeddingError: the model does. StoreError: the database does.
                What was stored stays.
        """
        remaining = aiter(sources)
        waiting: deque[DocumentInput] = deque()  # what repeats a name or content of the wave before
        while True:
            wave: dict[str, Admitted] = {}
            names: set[str] = set()
            contents: set[str] = set()
            repeated: list[DocumentInput] = []
            size = 0
            while len(wave) + len(repeated) < self._wave_documents and size < self._wave_bytes:
                source = waiting.popleft() if waiting else await anext(remaining, None)
                if source is None:
                    break
                name = document_name(source)
                if name not in names:
                    admitted = await self._ingestor.admit(source, corpus=corpus, index=index, identity=identity)
                    if isinstance(admitted, Ingested):
                        yield source, admitted
                        continue
                    if admitted.content_hash not in contents:
                        names.add(name)
                        contents.add(admitted.content_hash)
                        wave[str(admitted.document_id)] = admitted
                        size += len(source.data)
                        continue
                repeated.append(source)
                size += len(source.data)
            if not wave:
                return
            async with aclosing(self._ingest_wave(wave, corpus=corpus, index=index, identity=identity)) as stored:
                async for outcome in stored:
                    yield outcome
            waiting.extendleft(reversed(repeated))

    async def _ingest_wave(
        self, wave: dict[str, Admitted], *, corpus: Corpus, index: IndexDefinition, identity: Identity
    ) -> AsyncGenerator[tuple[DocumentInput, Ingested | DocumentError]]:
        arriving: defaultdict[str, _Arriving] = defaultdict(_Arriving)
        async with aclosing(self._transform([as_node(admitted) for admitted in wave.values()])) as nodes:
            async for node in nodes:
                record, document_id = node.metadata.get(_RECORD), node.metadata[DOCUMENT_ID]
                if record == _FAILURE:
                    error = _raised(node)
                    if not isinstance(error, DocumentError):
                        raise error
                    yield wave.pop(document_id).source, error
                    continue
                parts = arriving[document_id]
                if record == _DOCUMENT:
                    parts.document = msgspec.json.decode(node.get_content(), type=NewDocument)
                    parts.expected = node.metadata[_CHUNKS]
                else:
                    parts.chunks.append(node)
                if (whole := parts.whole()) is not None:
                    del arriving[document_id]
                    admitted = wave.pop(document_id)
                    outcome = await self._store(admitted, *whole, corpus=corpus, index=index, identity=identity)
                    yield admitted.source, outcome
        if wave:
            raise ClusterError(f"The cluster gave back {len(wave)} documents incomplete; they were not stored.")

    async def _store(
        self,
        admitted: Admitted,
        document: NewDocument,
        chunks: Sequence[BaseNode],
        *,
        corpus: Corpus,
        index: IndexDefinition,
        identity: Identity,
    ) -> Ingested | DocumentError:
        """Minutes have passed since the admission: what somebody else stored meanwhile decides."""
        source = admitted.source
        try:
            now = await self._ingestor.admit(source, corpus=corpus, index=index, identity=identity)
            if isinstance(now, Ingested):
                return now
            if now.replaces != admitted.replaces or (now.replaces and now.document_id != admitted.document_id):
                return await self._ingestor.ingest(source, corpus=corpus, index=index, identity=identity)
            return await self._ingestor.store(admitted, document, chunks, identity=identity)
        except DocumentError as error:
            return error

"""Bulk ingestion: parsing, chunking and embedding run elsewhere; admission and storing stay in this process.

Documents go out in waves as LlamaIndex nodes that hold their bytes, and come back as a record and embedded chunks.
`ReadDocuments` and `EmbedChunks` are LlamaIndex transformations independent of what runs them (`ray_cluster`); they see
neither the database nor its password.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Sequence
from contextlib import aclosing
from dataclasses import KW_ONLY, dataclass
from typing import Any, Final

import msgspec
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.ingestion import run_transformations
from llama_index.core.schema import BaseNode, Document, TextNode, TransformComponent
from pydantic import SecretStr

from rag_service.domain import Identity
from rag_service.errors import (
    ClusterError,
    ConfigurationError,
    DocumentError,
    EmbeddingError,
    RagError,
)
from rag_service.indices import IndexDefinition
from rag_service.ingest.documents import Admitted, Ingested, describe_document, document_name, to_pipeline
from rag_service.ingest.ingestor import Ingestor, finish_nodes
from rag_service.ingest.transformations import EmbedPassages, build_transformations, reader_classes
from rag_service.models.embedding.embeddings import build_embedding
from rag_service.models.embedding.guarded import close_embedding
from rag_service.readers.file_reader import FileReader
from rag_service.settings import Settings
from rag_service.store.corpora import Corpus
from rag_service.store.documents.chunks import CHUNK_INDEX, DOCUMENT_ID
from rag_service.store.documents.documents import DocumentInput, NewDocument

# A wave is held in this process and again in the cluster's object store. It is large because each one restarts the
# transformations (some ten seconds with the local model) and leaves machines idle at its end.
WAVE_BYTES = 256 * 1024**2
WAVE_DOCUMENTS = 2_000

_RECORD: Final = "bulk_record"  # metadata key of nodes that are not chunks
_DOCUMENT: Final = "document"  # its value: the node's text is the document, as JSON
_FAILURE: Final = "failure"  # its value: the node's text is the error message
_CODE: Final = "bulk_code"  # of the error
_CHUNKS: Final = "bulk_chunks"  # number of chunks of a document
_KINDS: Final[tuple[type[RagError], ...]] = (
    DocumentError, *DocumentError.__subclasses__(), EmbeddingError, ConfigurationError,
)  # fmt: skip
_ERRORS: Final = {error.code: error for error in _KINDS}

Transform = Callable[[Sequence[BaseNode]], AsyncGenerator[BaseNode]]  # nodes out, nodes back in any order


def travelling_settings(settings: Settings) -> Settings:
    """The settings without credentials, except that of the embedding model."""
    secrets = {key: None for key, value in settings.flat().items() if isinstance(value, SecretStr)}
    secrets |= dict.fromkeys(("originals_url", "jwt_issuer", "jwt_audience", "jwt_jwks_url"))
    secrets.pop("embedding_options", None)
    if settings.embedding.provider == "openai_like":
        secrets.pop("openai_api_key", None)
    return settings.replace(secrets)


def as_node(admitted: Admitted) -> BaseNode:
    """An admitted document with its bytes, as JSON in a node."""
    return Document(text=msgspec.json.encode(admitted).decode(), id_=str(admitted.document_id))


class ReadDocuments(TransformComponent):
    """Turns nodes of `as_node` into a record of the document and its chunks, or a failure if it is unreadable."""

    _index: IndexDefinition = PrivateAttr()
    _reader: FileReader = PrivateAttr()

    def __init__(self, index: IndexDefinition):
        super().__init__()
        self._index = index
        self._reader = FileReader(readers=reader_classes(index))

    def __call__(self, nodes: Sequence[BaseNode], **_: Any) -> list[BaseNode]:
        read = [self._read(msgspec.json.decode(node.get_content(), type=Admitted)) for node in nodes]
        return [node for document in read for node in document]

    def _read(self, admitted: Admitted) -> list[BaseNode]:
        source = admitted.source
        try:
            read = asyncio.run(self._reader.aload_data(source.data, file_name=source.file_name))[0]
        except DocumentError as error:
            return [_failure(error, str(admitted.document_id))]
        document = describe_document(admitted, read, self._index)
        transformations = build_transformations(self._index, ())
        chunks = run_transformations([to_pipeline(document, read, transformations)], transformations)
        document, chunks = finish_nodes(document, chunks, read)
        record = TextNode(
            text=msgspec.json.encode(document).decode(),
            metadata={_RECORD: _DOCUMENT, DOCUMENT_ID: str(document.id), _CHUNKS: len(chunks)},
        )
        return [record, *chunks]


class EmbedChunks(TransformComponent):
    """Embeds chunks and passes other nodes on. If the model fails, returns a failure without a document."""

    _settings: Settings = PrivateAttr()
    _embedding: BaseEmbedding | None = PrivateAttr(default=None)
    _runner: asyncio.Runner = PrivateAttr(default_factory=asyncio.Runner)  # one event loop for the connections

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
        """Release the model's thread or connections, in a process that continues."""
        if self._embedding is not None:
            self._runner.run(close_embedding(self._embedding))
        self._runner.close()

    async def _embed(self, chunks: Sequence[BaseNode]) -> Sequence[BaseNode]:
        if self._embedding is None:
            self._embedding = build_embedding(self._settings)
        return await EmbedPassages(self._embedding).acall(list(chunks))


def _failure(error: RagError, document_id: str | None) -> BaseNode:
    return TextNode(text=error.message, metadata={_RECORD: _FAILURE, _CODE: error.code, DOCUMENT_ID: document_id})


@dataclass(frozen=True)
class BulkIngestor:
    """Ingests many documents through transformations that run elsewhere; see `Ingestor.ingest_all`."""

    ingestor: Ingestor
    transform: Transform  # runs `ReadDocuments`, then `EmbedChunks`
    _: KW_ONLY
    wave_documents: int = WAVE_DOCUMENTS  # a wave is sent when it reaches either size
    wave_bytes: int = WAVE_BYTES

    async def ingest_all(
        self, sources: AsyncIterable[DocumentInput], *, corpus: Corpus, index: IndexDefinition, identity: Identity
    ) -> AsyncGenerator[tuple[DocumentInput, Ingested | DocumentError]]:
        """Store each document as soon as it is complete, and yield it with its outcome.

        Unchanged documents are not sent, so an interrupted run can be repeated. ClusterError, EmbeddingError and
        StoreError end the run; documents stored so far stay.
        """
        remaining = aiter(sources)
        waiting: deque[DocumentInput] = deque()  # have the name of a document in the previous wave
        while True:
            wave: dict[str, Admitted] = {}
            names: set[str] = set()
            repeated: list[DocumentInput] = []
            size = 0
            while len(wave) + len(repeated) < self.wave_documents and size < self.wave_bytes:
                source = waiting.popleft() if waiting else await anext(remaining, None)
                if source is None:
                    break
                name = document_name(source)
                if name not in names:
                    admitted = await self.ingestor.admit(source, corpus=corpus, index=index, identity=identity)
                    if isinstance(admitted, Ingested):
                        yield source, admitted
                        continue
                    names.add(name)
                    wave[str(admitted.document_id)] = admitted
                else:
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
        documents: dict[str, tuple[NewDocument, int]] = {}  # received, with their number of chunks
        chunks: defaultdict[str, list[BaseNode]] = defaultdict(list)
        async with aclosing(self.transform([as_node(admitted) for admitted in wave.values()])) as nodes:
            async for node in nodes:
                record, document_id = node.metadata.get(_RECORD), node.metadata[DOCUMENT_ID]
                if record == _FAILURE:
                    error = _ERRORS.get(node.metadata[_CODE], ClusterError)(node.get_content())
                    if not isinstance(error, DocumentError):
                        raise error
                    yield wave.pop(document_id).source, error
                    continue
                if record == _DOCUMENT:
                    described = msgspec.json.decode(node.get_content(), type=NewDocument)
                    documents[document_id] = described, node.metadata[_CHUNKS]
                else:
                    chunks[document_id].append(node)
                received = documents.get(document_id)
                if received is not None and len(chunks[document_id]) == received[1]:
                    admitted = wave.pop(document_id)
                    in_order = sorted(chunks.pop(document_id), key=lambda chunk: int(chunk.metadata[CHUNK_INDEX]))
                    outcome = await self._store(
                        admitted, received[0], in_order, corpus=corpus, index=index, identity=identity
                    )
                    yield admitted.source, outcome
        if wave:
            raise ClusterError(f"The cluster returned {len(wave)} incomplete documents; they were not stored.")

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
        """Admit again before storing: others may have stored the document in the meantime."""
        source = admitted.source
        try:
            now = await self.ingestor.admit(source, corpus=corpus, index=index, identity=identity)
            if isinstance(now, Ingested):
                return now
            if now.replaces != admitted.replaces or (now.replaces and now.document_id != admitted.document_id):
                return await self.ingestor.ingest(source, corpus=corpus, index=index, identity=identity)
            return await self.ingestor.store(admitted, document, chunks, identity=identity)
        except DocumentError as error:
            return error

"""Where an evaluation works: its own database, throw-away corpora, and the service's own components.

With the embedded database everything happens in `<RAG_DATA_DIR>/eval`, so that real documents are neither searched
nor touched. With an external one the corpora are personal to the local administrator and are deleted at the end.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import groupby
from uuid import UUID, uuid4

from llama_index.core.schema import TextNode

from rag_service.components import Components, open_components
from rag_service.domain import LOCAL_ADMIN, CorpusKind
from rag_service.evaluation.eval_set import EvalSet, Passage
from rag_service.indices import IndexDefinition, load_index
from rag_service.ingest.embedding_cache import CachedEmbedding
from rag_service.ingest.ingestor import Ingestor
from rag_service.ingest.wiring import build_ingestor
from rag_service.language.detection import detect_language
from rag_service.settings import Settings
from rag_service.store.corpora import Corpus, create_corpus, find_corpus
from rag_service.store.database import Connection
from rag_service.store.documents.chunks import CHAR_END, CHAR_START, CHUNK_INDEX, CORPUS_ID, DOCUMENT_ID, LANGUAGE
from rag_service.store.documents.documents import DocumentInput, NewDocument, store_document

Advance = Callable[[int], None]  # receives how many more are done

_BATCH = 64  # passages embedded per step of the progress bar
_SEPARATOR = "\n\n"  # between the passages of an article in its stored text
_WRITTEN = 200  # passages written per statement


@dataclass(frozen=True, kw_only=True)
class EvalCorpus:
    """An eval set's corpus, ready to be searched."""

    id: UUID
    passages: Mapping[str, str]  # chunk id → passage key; empty for sets of documents
    chunk_count: int


@dataclass(frozen=True, kw_only=True)
class Workspace:
    """The opened components; made by `open_workspace`."""

    components: Components
    ingestor: Ingestor  # keeps no original files
    made: list[UUID] = field(default_factory=list)  # corpora of this session

    @property
    def settings(self) -> Settings:
        return self.components.settings

    def index_named(self, name: str) -> IndexDefinition:
        """An index definition by name. Raises DefinitionError, which lists those that exist, if it does not."""
        return self.components.indices.get(name) or load_index(name, indices_path=self.settings.indices.path)

    async def load(self, loaded: EvalSet, index: IndexDefinition, advance: Advance) -> EvalCorpus:
        """The corpus of a set under a definition: that of an earlier run if nothing has changed.

        `advance` counts passages (documents for own sets) that are in the corpus.

        Raises:
            DocumentError: a document of the set cannot be read.
            EmbeddingError, StoreError: nothing was written for the current passage or document.
        """
        fingerprint = self.ingestor.fingerprint(index)
        name = corpus_name(loaded, fingerprint)
        async with self.components.database.transaction(LOCAL_ADMIN) as connection:
            corpus = await find_corpus(connection, name=name, kind=CorpusKind.PERSONAL) or await create_corpus(
                connection, LOCAL_ADMIN, name=name, kind=CorpusKind.PERSONAL, index_name=index.name
            )
        self.made.append(corpus.id)
        if loaded.documents:
            await self._ingest_documents(loaded, corpus, index, advance)
        elif await self._passage_keys(corpus.id):
            advance(len(loaded.passages))
        else:
            await self._ingest_passages(loaded, corpus, fingerprint, advance)
        keys = await self._passage_keys(corpus.id)
        return EvalCorpus(id=corpus.id, passages={} if loaded.documents else keys, chunk_count=len(keys))

    async def _ingest_documents(
        self, loaded: EvalSet, corpus: Corpus, index: IndexDefinition, advance: Advance
    ) -> None:
        for file in loaded.documents:
            source = DocumentInput(data=file.read_bytes(), file_name=file.name)
            await self.ingestor.ingest(source, corpus=corpus, index=index, identity=LOCAL_ADMIN)
            advance(1)
        async with self.components.database.transaction(LOCAL_ADMIN) as connection:
            # Otherwise recency would break ties by the order of ingestion.
            await connection.execute("UPDATE documents SET updated_at = now() WHERE corpus_id = %s", [corpus.id])

    async def _ingest_passages(self, loaded: EvalSet, corpus: Corpus, fingerprint: str, advance: Advance) -> None:
        """All passages in one transaction: the corpus is complete or empty, and all documents are of the same age."""
        embedding = self.components.embedding
        if isinstance(embedding, CachedEmbedding):
            embedding = embedding.for_corpus(corpus, LOCAL_ADMIN)
        vectors: dict[str, list[float]] = {}
        for start in range(0, len(loaded.passages), _BATCH):
            batch = loaded.passages[start : start + _BATCH]
            made = await embedding.aget_text_embedding_batch([passage.text for passage in batch])
            vectors |= {passage.key: vector for passage, vector in zip(batch, made, strict=True)}
            advance(len(batch))
        async with self.components.database.transaction(LOCAL_ADMIN) as connection:
            for _, group in groupby(loaded.passages, key=lambda passage: passage.group):
                article = list(group)
                for start in range(0, len(article), _WRITTEN):
                    part = article[start : start + _WRITTEN]
                    await _store_article(connection, part, vectors, corpus.id, fingerprint)

    async def _passage_keys(self, corpus_id: UUID) -> dict[str, str]:
        """Chunk id → passage key. Documents made of passages list their keys, in order, in their metadata."""
        async with self.components.database.transaction(LOCAL_ADMIN) as connection:
            cursor = await connection.execute(
                """SELECT c.node_id, d.metadata -> 'passages' ->> c.chunk_index
                   FROM data_chunks c JOIN documents d ON d.id = c.document_id WHERE c.corpus_id = %s""",
                [corpus_id],
            )
            return dict(await cursor.fetchall())


def corpus_name(loaded: EvalSet, fingerprint: str) -> str:
    """A name that depends on the set's content, the articles left out, and the ingest settings."""
    content = f"{loaded.digest}\0{loaded.left_out}\0{loaded.passage_format}\0{fingerprint}"
    return f"eval-{hashlib.sha256(content.encode()).hexdigest()[:24]}"


async def _store_article(
    connection: Connection,
    passages: Sequence[Passage],
    vectors: Mapping[str, list[float]],
    corpus_id: UUID,
    fingerprint: str,
) -> None:
    """Store passages as one document with a chunk each; without a title, so that a chunk's text is its passage."""
    text = _SEPARATOR.join(passage.text for passage in passages)
    document_id, language = uuid4(), detect_language(text)
    document = NewDocument(
        id=document_id,
        corpus_id=corpus_id,
        name=f"{passages[0].key}…{passages[-1].key}",
        title="",
        content_hash=hashlib.sha256(text.encode()).hexdigest(),
        fingerprint=fingerprint,
        text=text,
        language=language,
        metadata={"passages": [passage.key for passage in passages]},
    )
    nodes, start = [], 0
    for number, passage in enumerate(passages):
        metadata = {
            CORPUS_ID: str(corpus_id),
            DOCUMENT_ID: str(document_id),
            LANGUAGE: language,
            CHUNK_INDEX: number,
            CHAR_START: start,
            CHAR_END: start + len(passage.text),
        }
        start += len(passage.text) + len(_SEPARATOR)
        nodes.append(
            TextNode(
                id_=f"{document_id}:{number}",
                text=passage.text,
                metadata=metadata,
                excluded_embed_metadata_keys=list(metadata),
                excluded_llm_metadata_keys=list(metadata),
                embedding=vectors[passage.key],
            )
        )
    await store_document(connection, document, nodes)


@asynccontextmanager
async def open_workspace(settings: Settings) -> AsyncIterator[Workspace]:
    """Open the service's components over the evaluation's own database, and close them again.

    Raises:
        ConfigurationError: a setting or definition is wrong.
        StoreError: the database does not start or cannot be reached.
    """
    # Without fallbacks and replica: a failing model must fail the run, and new corpora be visible at once.
    own = {
        "data_dir": settings.database.data_dir / "eval",
        "lexical_fallback": False,
        "extractive_fallback": False,
        "database_replica_url": None,
    }
    async with open_components(settings.replace(own)) as components:
        ingestor = build_ingestor(components.settings, components.database, components.embedding, components.indices)
        workspace = Workspace(components=components, ingestor=ingestor)
        try:
            await components.fitter.complete()
            await components.examiner.complete()
            yield workspace
        finally:
            if settings.database.url is not None:
                async with components.database.transaction(LOCAL_ADMIN) as connection:
                    await connection.execute("DELETE FROM corpora WHERE id = ANY(%s)", [workspace.made])

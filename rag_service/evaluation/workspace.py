"""Where an evaluation works: its own database, throw-away corpora, and the product's own parts.

With the embedded database everything happens in `<RAG_DATA_DIR>/eval`, so that real documents are
neither searched nor touched. With an external one the corpora are personal to the local
administrator and are deleted at the end.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from uuid import UUID, uuid4

from llama_index.core.schema import TextNode

from rag_service.definitions import IndexDefinition, load_index, load_indices
from rag_service.domain import CorpusKind, Filters, Identity, Role
from rag_service.evaluation.embedding_cache import BATCH, CachingEmbedding
from rag_service.evaluation.eval_set import EvalSet, Passage
from rag_service.ingest.pipeline import DocumentInput, Ingestor
from rag_service.ingest.sandbox import parse_in_sandbox
from rag_service.models.chat.chat import build_chat
from rag_service.models.embedding.embeddings import build_embedding, close_embedding
from rag_service.models.extractive.extractive import ExtractiveLLM
from rag_service.models.reranking.rerankers import build_reranker
from rag_service.query.engine import AnswerEngine
from rag_service.query.prompting.prompt import load_prompts
from rag_service.query.retrieval.retriever import Mode, Retrieval, Retriever
from rag_service.settings import Settings
from rag_service.store.corpora import Corpus, create_corpus, find_corpus
from rag_service.store.documents.chunks import (
    CHAR_END,
    CHAR_START,
    CHUNK_INDEX,
    CORPUS_ID,
    DOCUMENT_ID,
    LANGUAGE,
)
from rag_service.store.documents.documents import NewDocument, store_document
from rag_service.store.embedded import start_embedded_server
from rag_service.store.migrate import LOCAL_ADMIN_ID, migrate
from rag_service.store.session import Connection, Database
from rag_service.text.words import detect_language, terms

Advance = Callable[[int], None]  # told how many more are done

_ADMIN = Identity(user_id=UUID(LOCAL_ADMIN_ID), role=Role.ADMIN)
_SEPARATOR = "\n\n"  # between the passages of an article in its stored text
_WRITTEN = 200  # passages written per statement


@dataclass(frozen=True, kw_only=True)
class EvalCorpus:
    """An eval set's corpus, ready to be searched."""

    id: UUID
    index: IndexDefinition
    passages: Mapping[str, str]  # chunk id → passage key; empty for sets of documents
    chunk_count: int


class EvalRetriever(Retriever):
    """The product's retriever with mode and alpha held by the run instead of the request."""

    def hold(self, *, mode: Mode, alpha: float | None) -> None:
        """Set what every search from now on uses."""
        self._held: tuple[Mode, float | None] = (mode, alpha)

    async def search(
        self,
        question: str,
        *,
        identity: Identity,
        filters: Filters,
        limit: int,
        mode: Mode = "hybrid",
        alpha: float | None = None,
    ) -> Retrieval:
        mode, alpha = self._held
        return await super().search(question, identity=identity, filters=filters, limit=limit, mode=mode, alpha=alpha)


@dataclass(kw_only=True)
class Workspace:
    """The opened parts; made by `open_workspace`."""

    settings: Settings
    database: Database
    embedding: CachingEmbedding
    retriever: EvalRetriever
    engine: AnswerEngine
    ingestor: Ingestor
    indices: Mapping[str, IndexDefinition]
    identity: Identity = _ADMIN
    made: list[UUID] = field(default_factory=list)  # corpora of this session

    def index_named(self, name: str) -> IndexDefinition:
        """An index definition by name.

        Raises:
            DefinitionError: there is none; names those that there are.
        """
        return self.indices.get(name) or load_index(name, indices_path=self.settings.indices_path)

    async def load(self, loaded: EvalSet, index: IndexDefinition, advance: Advance) -> EvalCorpus:
        """The corpus of a set under a definition: the one of an earlier run when nothing changed.

        `advance` counts passages (documents for own sets) that are in the corpus.

        Raises:
            DocumentError: a document of the set cannot be read.
            EmbeddingError, StoreError: nothing was written for the passage or document at hand.
        """
        corpus = await self._corpus(corpus_name(loaded, self.ingestor.fingerprint(index)), index)
        self.made.append(corpus.id)
        if loaded.documents:
            await self._ingest_documents(loaded, corpus, index, advance)
        else:
            await self._ingest_passages(loaded, corpus, self.ingestor.fingerprint(index), advance)
        return EvalCorpus(
            id=corpus.id,
            index=index,
            passages=await self._passage_keys(corpus.id, loaded),
            chunk_count=await self._count(corpus.id),
        )

    async def _corpus(self, name: str, index: IndexDefinition) -> Corpus:
        async with self.database.transaction(self.identity) as connection:
            found = await find_corpus(connection, name=name, kind=CorpusKind.PERSONAL)
            return found or await create_corpus(
                connection, self.identity, name=name, kind=CorpusKind.PERSONAL, index_name=index.name
            )

    async def _ingest_documents(
        self, loaded: EvalSet, corpus: Corpus, index: IndexDefinition, advance: Advance
    ) -> None:
        for file in loaded.documents:
            source = DocumentInput(data=file.read_bytes(), file_name=file.name)
            await self.ingestor.ingest(source, corpus=corpus, index=index, identity=self.identity)
            advance(1)
        async with self.database.transaction(self.identity) as connection:
            # The order of ingestion is no sign of age: without this, recency would break ties by it.
            await connection.execute("UPDATE documents SET updated_at = now() WHERE corpus_id = %s", [corpus.id])

    async def _ingest_passages(self, loaded: EvalSet, corpus: Corpus, fingerprint: str, advance: Advance) -> None:
        """All passages in one transaction: the corpus is complete or empty, and of one age."""
        if await self._count(corpus.id):
            advance(len(loaded.passages))
            return
        vectors = await self._embed_passages(loaded.passages, advance)
        async with self.database.transaction(self.identity) as connection:
            for _, article in groupby(loaded.passages, key=lambda passage: passage.group):
                for part in _in_parts(list(article)):
                    await _store_article(connection, part, vectors, corpus.id, fingerprint)

    async def _embed_passages(self, passages: Sequence[Passage], advance: Advance) -> dict[str, list[float]]:
        vectors: dict[str, list[float]] = {}
        for start in range(0, len(passages), BATCH):
            part = passages[start : start + BATCH]
            made = await self.embedding.aget_text_embedding_batch([passage.text for passage in part])
            vectors |= {passage.key: vector for passage, vector in zip(part, made, strict=True)}
            advance(len(part))
        return vectors

    async def _passage_keys(self, corpus_id: UUID, loaded: EvalSet) -> dict[str, str]:
        """Chunk id → passage key. A document's name lists the passages it was made of, in order."""
        if loaded.documents:
            return {}
        async with self.database.transaction(self.identity) as connection:
            cursor = await connection.execute(
                """SELECT c.node_id, d.metadata -> 'passages' ->> c.chunk_index
                   FROM data_chunks c JOIN documents d ON d.id = c.document_id WHERE c.corpus_id = %s""",
                [corpus_id],
            )
            return dict(await cursor.fetchall())

    async def _count(self, corpus_id: UUID) -> int:
        async with self.database.transaction(self.identity) as connection:
            cursor = await connection.execute("SELECT count(*) FROM data_chunks WHERE corpus_id = %s", [corpus_id])
            row = await cursor.fetchone()
            return 0 if row is None else int(row[0])

    async def remove_corpora(self) -> None:
        """Delete the corpora of this session with all that is in them."""
        async with self.database.transaction(self.identity) as connection:
            await connection.execute("DELETE FROM corpora WHERE id = ANY(%s)", [self.made])


def corpus_name(loaded: EvalSet, fingerprint: str) -> str:
    """A name that says what is in the corpus: the set's content, what was left out, the ingest settings."""
    content = hashlib.sha256(f"{loaded.digest}\0{loaded.left_out}\0{fingerprint}".encode()).hexdigest()
    return f"eval-{content[:24]}"


async def _store_article(
    connection: Connection,
    passages: Sequence[Passage],
    vectors: Mapping[str, list[float]],
    corpus_id: UUID,
    fingerprint: str,
) -> None:
    """Passages as one document, one chunk each; no title, so that a chunk's text is its passage alone."""
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


def _in_parts(passages: list[Passage]) -> Iterator[list[Passage]]:
    for start in range(0, len(passages), _WRITTEN):
        yield passages[start : start + _WRITTEN]


@asynccontextmanager
async def open_workspace(settings: Settings) -> AsyncIterator[Workspace]:
    """Open the evaluation's database, model, retriever and engine, and close them again.

    Raises:
        ConfigurationError: a setting or definition is wrong.
        StoreError: the database does not start or cannot be reached.
    """
    folder = settings.data_dir / "eval"
    async with AsyncExitStack() as stack:
        database = await _open_database(settings, folder)
        stack.push_async_callback(database.close)
        model = build_embedding(settings)
        stack.push_async_callback(close_embedding, model)
        embedding = CachingEmbedding(model, folder / "embeddings.sqlite", dimension=settings.embedding_dimension)
        stack.callback(embedding.close)
        indices = load_indices(indices_path=settings.indices_path)
        chat = build_chat(settings, extractive=ExtractiveLLM(embedding))
        stack.push_async_callback(chat.aclose)
        retriever = EvalRetriever(database, embedding, indices, default_index=settings.index)
        retriever.hold(mode="hybrid", alpha=None)
        workspace = Workspace(
            settings=settings,
            database=database,
            embedding=embedding,
            retriever=retriever,
            engine=AnswerEngine(
                retriever,
                chat,
                build_reranker(settings, analyse=lambda text: terms(text, "en"), chat=chat),
                load_prompts(settings.prompts_path, replacement=settings.prompt_template_path),
                settings,
                identity=_ADMIN,
            ),
            ingestor=Ingestor(
                database,
                embedding,
                lambda data, name: parse_in_sandbox(data, file_name=name),
                model=settings.embedding_model,
                dimension=settings.embedding_dimension,
            ),
            indices=indices,
        )
        try:
            yield workspace
        finally:
            if settings.database_url is not None:
                await workspace.remove_corpora()


async def _open_database(settings: Settings, folder: Path) -> Database:
    if settings.database_url is None:
        server = await start_embedded_server(folder)
        await migrate(server.owner_conninfo, server.service_conninfo, dimension=settings.embedding_dimension)
        conninfo = server.service_conninfo
    else:
        conninfo = settings.database_url.get_secret_value()
    database = Database(conninfo, pool_size=4, timeout=settings.database_timeout)
    await database.open()
    await database.check()
    return database

"""The handle that `open_service` gives: plain methods over a service, embedded or remote."""

from __future__ import annotations

import asyncio
import atexit
import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

from rag_service.errors import ConfigurationError, DocumentError
from rag_service.notebook.backend import EVERYWHERE, Backend, CorpusInfo, EmbeddedBackend, Experiment, Mode, Where
from rag_service.notebook.files import Paths, find_files
from rag_service.notebook.html import table_html
from rag_service.notebook.loop import BackgroundLoop
from rag_service.notebook.results import CitedAnswer, IngestedFile, IngestReport, Passages

if TYPE_CHECKING:
    from rag_service.notebook.llama import ServiceEmbedding, ServiceQueryEngine, ServiceRetriever, ServiceVectorStore


_AT_A_TIME = 2  # files parsed at once


class Service:
    """A knowledge service as plain Python, for notebooks and programs. Close it, or use it in a `with` block.

    Every method may be called inside a running event loop, Jupyter's included. What fails raises a `RagError`:
    `InputError` for what the caller can mend, `ModelError` and `StoreError` for what may work later; a remote
    service's errors arrive as the classes that they have there.
    """

    def __init__(self, backend: Backend):
        """Use `open_service`."""
        self._backend = backend
        self._loop = BackgroundLoop()
        try:
            self._loop.run(backend.open())
        except BaseException:
            self._loop.close()
            raise
        self._closed = False
        atexit.register(self.close)

    def __enter__(self) -> Service:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Give everything back. May be called again."""
        if self._closed:
            return
        self._closed = True
        atexit.unregister(self.close)
        try:
            self._loop.run(self._backend.close())
        finally:
            self._loop.close()

    def __repr__(self) -> str:
        kind = "embedded" if isinstance(self._backend, EmbeddedBackend) else "remote"
        return f"<rag_service {kind}: {self._backend.where}{', closed' if self._closed else ''}>"

    def ingest(self, paths: Paths) -> IngestReport:
        """Bring files, and all documents below folders, into the default corpus.

        A file that cannot be read is reported as `failed` with its reason, and the others go on. Unchanged
        content is not stored twice; a changed file replaces its earlier version. Files of folders are named by
        their path within the folder.

        Raises:
            InputError: a path does not exist, or there is no document.
            EmbeddingError, StoreError: nothing more can be stored now.
        """
        return self._loop.run(self._ingest(find_files(paths)))

    async def _ingest(self, files: Sequence[tuple[str, Path]]) -> IngestReport:
        done = {files[0]: await self._ingest_one(*files[0])}  # alone: it makes the corpus
        waiting = iter(files[1:])

        async def work() -> None:
            for file in waiting:
                done[file] = await self._ingest_one(*file)

        workers = [asyncio.ensure_future(work()) for _ in range(_AT_A_TIME)]
        try:
            await asyncio.gather(*workers)
        finally:
            for worker in workers:
                worker.cancel()
        return IngestReport(items=tuple(done[file] for file in files))

    async def _ingest_one(self, name: str, path: Path) -> IngestedFile:
        data = await asyncio.to_thread(path.read_bytes)
        try:
            done = await self._backend.ingest(data, name=name, file_name=path.name)
        except DocumentError as error:
            return IngestedFile(name=name, outcome="failed", reason=error.message)
        return IngestedFile(name=name, outcome=done.outcome, chunk_count=done.chunk_count, document_id=done.document_id)

    def search(
        self,
        question: str,
        *,
        top_k: int | None = None,
        threshold: float | None = None,
        source: str | None = None,
        tags: Sequence[str] = (),
        file_name: str | None = None,
        document_ids: Sequence[UUID] = (),
        corpus_ids: Sequence[UUID] = (),
        fields: Mapping[str, str] | None = None,
        alpha: float | None = None,
        mode: Mode | None = None,
    ) -> Passages:
        """Passages above the threshold, best first; no language model is called.

        Args:
            question: what is asked, in any language.
            top_k: most passages; None: the service's default.
            threshold: least calibrated relevance, 0..1; None: the index's, else the service's.
            source: only documents of this source.
            tags: only documents that carry all of these.
            file_name: only the file of this name.
            document_ids: only these documents.
            corpus_ids: only these corpora.
            fields: filter fields that the index declares, equal to.
            alpha: share of the dense leg, 0..1, for experiments: ranked by fusion alone, without reranker.
                Embedded only.
            mode: "hybrid", "dense" or "lexical", likewise.

        Raises:
            InputError: names what is out of bounds.
            EmbeddingError, StoreError: the search cannot be made now.
        """
        where = Where(
            top_k=top_k, threshold=threshold, source=source, tags=tags, file_name=file_name,
            document_ids=document_ids, corpus_ids=corpus_ids, fields=fields or {},
        )  # fmt: skip
        experiment = None if alpha is None and mode is None else Experiment(alpha=alpha, mode=mode or "hybrid")
        return self._loop.run(self._search(question, where, experiment))

    async def _search(self, question: str, where: Where = EVERYWHERE, experiment: Experiment | None = None) -> Passages:
        found = await self._backend.search(where.request(question), experiment)
        return Passages(question=question, language=found.language, items=found.passages)

    def ask(self, question: str, *, top_k: int | None = None, threshold: float | None = None) -> CitedAnswer:
        """An answer whose every mark is resolved to an exact quote and checked.

        Args:
            question: in any language; it is answered in the same.
            top_k: most passages that it may draw on; None: the service's default.
            threshold: least calibrated relevance of them, 0..1; None: the index's, else the service's.

        Raises:
            InputError: names what is out of bounds.
            ModelError, EmbeddingError, StoreError: it cannot be answered now.
        """
        request = Where(top_k=top_k, threshold=threshold).request(question)
        return CitedAnswer(question=question, body=self._loop.run(self._backend.answer(request)))

    async def _ask(self, question: str, where: Where = EVERYWHERE) -> tuple[CitedAnswer, Passages]:
        body, passages = await self._backend.answer_with_passages(where.request(question))
        found = Passages(question=question, language=body.language, items=passages)
        return CitedAnswer(question=question, body=body), found

    def corpora(self) -> Corpora:
        """The corpora that the caller may see, each with a retriever and a query engine of its own."""
        found = self._loop.run(self._backend.corpora())
        return Corpora(items=tuple(CorpusView(info=info, service=self) for info in found))

    # -- as LlamaIndex objects

    @property
    def retriever(self) -> ServiceRetriever:
        """A LlamaIndex `BaseRetriever`: `retrieve` and `aretrieve`."""
        return self.retriever_for()

    @property
    def query_engine(self) -> ServiceQueryEngine:
        """A LlamaIndex `BaseQueryEngine`: `query` and `aquery`."""
        return self.query_engine_for()

    def retriever_for(self, where: Where = EVERYWHERE) -> ServiceRetriever:
        """A retriever that looks at a part only."""
        from rag_service.notebook.llama import ServiceRetriever

        return ServiceRetriever(self._loop, functools.partial(self._search, where=where))

    def query_engine_for(self, where: Where = EVERYWHERE) -> ServiceQueryEngine:
        """A query engine that looks at a part only."""
        from rag_service.notebook.llama import ServiceQueryEngine

        return ServiceQueryEngine(self._loop, functools.partial(self._ask, where=where))

    @property
    def vector_store(self) -> ServiceVectorStore:
        """A LlamaIndex vector store, for `VectorStoreIndex.from_vector_store(…, embed_model=service.embedding)`.

        Raises:
            ConfigurationError: the service is remote.
        """
        from rag_service.components import LOCAL_ADMIN
        from rag_service.notebook.llama import ServiceVectorStore
        from rag_service.store.documents.chunk_store import ChunkStore

        backend = self._embedded("vector_store")
        dimension = backend.settings.embedding_dimension
        inner = ChunkStore(backend.components.database, LOCAL_ADMIN, dimension=dimension)
        return ServiceVectorStore(self._loop, inner)

    @property
    def embedding(self) -> ServiceEmbedding:
        """The embedding model that the chunks were embedded with.

        Raises:
            ConfigurationError: the service is remote.
        """
        from rag_service.notebook.llama import ServiceEmbedding

        return ServiceEmbedding(self._loop, self._embedded("embedding").components.embedding)

    def _embedded(self, what: str) -> EmbeddedBackend:
        if not isinstance(self._backend, EmbeddedBackend):
            raise ConfigurationError(f"{what} needs an embedded service; this one is remote.")
        return self._backend


@dataclass(frozen=True, kw_only=True, repr=False)
class CorpusView:
    """A corpus with LlamaIndex objects that look at nothing else."""

    info: CorpusInfo
    service: Service

    @property
    def id(self) -> UUID:
        return self.info.id

    @property
    def name(self) -> str:
        return self.info.name

    @property
    def retriever(self) -> ServiceRetriever:
        return self.service.retriever_for(self._where)

    @property
    def query_engine(self) -> ServiceQueryEngine:
        return self.service.query_engine_for(self._where)

    @property
    def _where(self) -> Where:
        return replace(EVERYWHERE, corpus_ids=(self.id,))

    def __repr__(self) -> str:
        return f"{self.info.kind} corpus {self.name!r} (index {self.info.index}, {self.id})"


@dataclass(frozen=True, kw_only=True, repr=False)
class Corpora(Sequence[CorpusView]):
    """Corpora by name."""

    items: tuple[CorpusView, ...]

    def __getitem__(self, index: Any) -> Any:
        """By position, or by name.

        Raises:
            KeyError: there is none of this name.
        """
        if not isinstance(index, str):
            return self.items[index]
        for item in self.items:
            if item.name == index:
                return item
        raise KeyError(index)

    def __len__(self) -> int:
        return len(self.items)

    def __repr__(self) -> str:
        return "\n".join(map(repr, self.items)) or "no corpora"

    def _repr_html_(self) -> str:
        rows = [(item.name, item.info.kind, item.info.index, item.id) for item in self.items]
        return table_html(("corpus", "kind", "index", "id"), rows)

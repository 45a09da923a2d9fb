"""`Service`, which `open_service` returns: plain methods over an embedded or remote service."""

from __future__ import annotations

import atexit
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Unpack, overload
from uuid import UUID

import msgspec

from rag_service.api.corpora.schemas import CorpusBody
from rag_service.api.http.schemas import AnswerBody, AnswerRequest, CheckBody, CheckedPassage, CheckRequest, PassageBody
from rag_service.client.asking import AskOptions, SearchOptions, make_answer_request, make_request
from rag_service.client.background_loop import BackgroundLoop
from rag_service.client.event_stream import EventStream
from rag_service.client.html import table_html
from rag_service.client.ingesting import ingest_files
from rag_service.client.results import (
    CitedAnswer,
    Documents,
    ImportReport,
    IngestReport,
    Items,
    ListedDocument,
    Passages,
    TextCheck,
)
from rag_service.domain import LOCAL_ADMIN
from rag_service.errors import ConfigurationError, NotFoundError
from rag_service.sources.files import Paths, find_files

if TYPE_CHECKING:
    from llama_index.core.llms import LLM
    from llama_index.core.tools import FunctionTool
    from llama_index.core.vector_stores.types import MetadataFilters

    from rag_service.client.embedded import EmbeddedBackend
    from rag_service.client.llama import ServiceEmbedding, ServiceQueryEngine, ServiceRetriever
    from rag_service.client.remote import RemoteBackend
    from rag_service.components import Components
    from rag_service.retrieval.question import Mode
    from rag_service.sources.report import SyncReport
    from rag_service.sources.sync import OnProgress
    from rag_service.store.documents.chunk_store import ChunkStore


class Searchable:
    """The documents of all corpora, or of some, listed and as LlamaIndex objects."""

    def __init__(
        self, loop: BackgroundLoop, backend: EmbeddedBackend | RemoteBackend, corpora: Sequence[CorpusBody] = ()
    ):
        """Empty `corpora`: all."""
        self._loop = loop
        self._backend = backend
        self._corpora = corpora

    def documents(self) -> Documents:
        """The documents that the caller may see, by corpus and name, whatever their state.

        Raises NotFoundError if the corpus is gone.
        """

        async def read() -> list[ListedDocument]:
            return [
                ListedDocument(corpus=corpus.name, **msgspec.structs.asdict(document))
                for corpus in self._corpora or await self._backend.corpora()
                for document in await self._backend.documents(corpus.id)
            ]

        return Documents(items=tuple(self._loop.run(read())))

    @property
    def retriever(self) -> ServiceRetriever:
        """A LlamaIndex `BaseRetriever`; called, one with arguments of `search`: `retriever(top_k=3, tags=["fees"])`."""
        from rag_service.client.llama import ServiceRetriever

        return ServiceRetriever(self._loop, self._backend, self._request())

    @property
    def query_engine(self) -> ServiceQueryEngine:
        """A LlamaIndex `BaseQueryEngine`; called, one with arguments of `search`, or that streams."""
        from rag_service.client.llama import ServiceQueryEngine

        return ServiceQueryEngine(self._loop, self._backend, self._request())

    def as_retriever(
        self, *, similarity_top_k: int | None = None, filters: MetadataFilters | None = None
    ) -> ServiceRetriever:
        """`retriever`, in the words of a LlamaIndex index."""
        return self.retriever(top_k=similarity_top_k, filter=filters)

    def as_query_engine(
        self, *, similarity_top_k: int | None = None, filters: MetadataFilters | None = None, streaming: bool = False
    ) -> ServiceQueryEngine:
        """`query_engine`, in the words of a LlamaIndex index."""
        return self.query_engine(top_k=similarity_top_k, filter=filters, streaming=streaming)

    def _request(self) -> AnswerRequest:
        return AnswerRequest(query="", corpus_ids=[one.id for one in self._corpora])


class Service(Searchable):
    """The service for notebooks and programs. Close it, or use it in a `with` block.

    Methods may be called inside a running event loop, Jupyter's included. Failures raise a `RagError`: `InputError`
    for what the caller can fix, `ModelError` and `StoreError` for what may work later, locally and remotely.
    """

    def __init__(self, backend: EmbeddedBackend | RemoteBackend):
        """Use `open_service`."""
        super().__init__(BackgroundLoop(), backend)
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
        """Release all resources. May be called again."""
        if self._closed:
            return
        self._closed = True
        atexit.unregister(self.close)
        try:
            self._loop.run(self._backend.close())
        finally:
            self._loop.close()

    def __repr__(self) -> str:
        return f"<rag_service {self._backend.kind}: {self._backend.where}{', closed' if self._closed else ''}>"

    def ingest(self, paths: Paths, *, on_progress: OnProgress | None = None) -> IngestReport:
        """Ingest files, and all documents below folders, into the default corpus.

        A file that cannot be read is reported as `failed` with its reason, one of a folder that is no document as
        `skipped`; hidden and lock files are left out. Unchanged files are not stored twice; a
        changed file replaces its earlier version. Files of folders are named by their path within the folder.

        `on_progress` is called before each file, on another thread.

        Raises:
            InputError: a path does not exist, or there is no document.
            EmbeddingError, StoreError: nothing more can be stored now.
        """
        found = find_files(paths, self._backend.reader_suffixes)
        return self._loop.run(ingest_files(self._backend, found, on_progress))

    def sync(
        self,
        target: str | Path,
        *,
        corpus: str | None = None,
        depth: int = 0,
        delete: bool | None = None,
        on_progress: OnProgress | None = None,
    ) -> SyncReport:
        """Make a corpus equal to a folder or site: new, changed, renamed and deleted files. Embedded only.

        Args:
            target: a folder, the address of a page or a sitemap, a URL of fsspec, such as `s3://bucket/folder`, or
                `reader:NAME` for a reader that is declared in the file of RAG_SOURCE_READERS.
            corpus: name of a global corpus, created if missing; None: the default corpus.
            depth: links to follow from a page, on its host.
            delete: whether documents that a sync of this target brought in are deleted with their files; None: yes,
                unless the target is all of a sudden empty.
            on_progress: called before each file, on another thread.

        Raises:
            InputError, SourceError: the target cannot be read; nothing was deleted.
            ConflictError: another sync of it runs.
            EmbeddingError, StoreError: nothing more can be stored now; what was done stays done.
        """
        components = self._embedded("sync")

        async def sync() -> SyncReport:
            opened = await components.open_sync(
                str(target), LOCAL_ADMIN, corpus_name=corpus, depth=depth, delete=delete, on_progress=on_progress
            )
            return await opened.run()

        return self._loop.run(sync())

    def search(
        self, question: str, *, alpha: float | None = None, mode: Mode | None = None, **options: Unpack[SearchOptions]
    ) -> Passages:
        """Passages down to the last one above the threshold, best first; no language model is called.

        Args:
            question: in any language.
            top_k: maximum number of passages; None: the service's default.
            threshold: calibrated relevance that every passage must reach, 0..1; None: the passages end with the last
                one that reaches RAG_OUT_OF_SCOPE_THRESHOLD.
            source, file_name, document_ids, corpus_ids: only these.
            tags: only documents that have all of these.
            fields: values of filter fields that the index declares.
            filter: conditions as `filter` of the API, or LlamaIndex's `MetadataFilters`.
            alpha: weight of the vector search, 0..1. With `alpha` or `mode`, ranking is by fusion alone, without
                reranker, for experiments with an embedded service.
            mode: "hybrid", "dense" or "lexical".

        Raises:
            InputError: an argument is out of range.
            EmbeddingError, StoreError: searching is not possible now.
        """
        request = make_request(question, **options)
        found = self._loop.run(self._backend.search(request, alpha=alpha, mode=mode))
        return Passages(question=question, language=found.language, items=tuple(found.passages))

    @overload
    def ask(self, question: str, *, stream: Literal[False] = ..., **options: Unpack[AskOptions]) -> CitedAnswer: ...

    @overload
    def ask(
        self, question: str, *, stream: Literal[True], **options: Unpack[AskOptions]
    ) -> EventStream[CitedAnswer]: ...

    def ask(
        self, question: str, *, stream: bool = False, **options: Unpack[AskOptions]
    ) -> CitedAnswer | EventStream[CitedAnswer]:
        """An answer in the question's language, with each citation checked.

        Args:
            question, top_k, threshold, source, tags, file_name, document_ids, corpus_ids, fields, filter: as in
                `search`.
            messages: what was said before, oldest first: `{"role": "user", "content": "…"}` or `ChatMessage`s of
                LlamaIndex. The question may refer to it.
            stream: return the events of the answer while it is written: `sources`, perhaps some `step`, many `delta`
                and `citation`, one `final`, `done`.
            schema: a Pydantic class, or a JSON schema of an object: the answer's `data` is JSON of it, `values` has the
                proof of each value. Needs a chat model.
            keep: store question and answer in a new conversation.
            conversation_id: stored conversation to continue; without `messages`, its history is used.
            replaces: answer of that conversation that gives way to this one, with its question and all after them.

        Raises:
            InputError: an argument is out of range.
            NotFoundError: a document, corpus or conversation is not there.
            ModelError, EmbeddingError, StoreError: answering is not possible now.
        """
        request = make_answer_request(question, stream=stream, **options)
        if stream:
            return EventStream(self._loop, self._backend.stream(request), partial(_as_answer, question))
        return _as_answer(question, self._loop.run(self._backend.answer(request)))

    @overload
    def check(
        self, text: str, passages: Sequence[str | PassageBody], *, question: str = ..., language: str | None = ...,
        stream: Literal[False] = ...,
    ) -> TextCheck: ...  # fmt: skip

    @overload
    def check(
        self, text: str, passages: Sequence[str | PassageBody], *, question: str = ..., language: str | None = ...,
        stream: Literal[True],
    ) -> EventStream[TextCheck]: ...  # fmt: skip

    def check(
        self,
        text: str,
        passages: Sequence[str | PassageBody],
        *,
        question: str = "",
        language: str | None = None,
        stream: bool = False,
    ) -> TextCheck | EventStream[TextCheck]:
        """Check a text that was written elsewhere, sentence by sentence, as the service's own answers are checked.

        Args:
            text: with or without marks; `[C1]` names the first passage.
            passages: texts, or passages that `search` found.
            question: that the text answers; a judge that can tell says whether it does.
            language: ISO 639-1 of the text; None: it is detected.
            stream: return a `sentence` event for each, once it is checked, then `final` and `done`.

        Raises:
            InputError: an argument is out of range.
            NotFoundError: a passage is gone.
        """
        given = [
            CheckedPassage(text=passage) if isinstance(passage, str) else CheckedPassage(chunk_id=passage.chunk_id)
            for passage in passages
        ]
        request = CheckRequest(text=text, passages=given, question=question, language=language)
        if stream:
            return EventStream(self._loop, self._backend.check_stream(request), _as_check)
        return _as_check(self._loop.run(self._backend.check(request)))

    def corpora(self) -> Corpora:
        """The corpora that the caller may see, each with its own documents, retriever and query engine."""
        found = self._loop.run(self._backend.corpora())
        return Corpora(items=tuple(CorpusView(info, self._loop, self._backend) for info in found))

    def export_corpus(
        self, corpus: str | UUID | CorpusView, file: str | Path, *, on_progress: OnProgress | None = None
    ) -> Path:
        """Write a corpus to a file that does not exist yet: documents, originals, tables, vectors and settings.

        Args:
            corpus: by name, id, or as `corpora()` lists it.
            on_progress: called before each document, on another thread. Embedded only.

        Raises:
            NotFoundError, PermissionDeniedError: the caller may not change the corpus, or there is none.
            InputError: the file exists or cannot be written.
            StoreError: the corpus cannot be read completely; no file is left.
        """
        if isinstance(corpus, str):
            named = [one.id for one in self.corpora() if corpus in (one.name, str(one.id))]
            if len(named) != 1:
                raise NotFoundError(f"{len(named)} corpora are named {corpus!r}.")
            corpus = named[0]
        corpus_id = corpus.id if isinstance(corpus, CorpusView) else corpus
        self._loop.run(self._backend.export(corpus_id, Path(file), on_progress))
        return Path(file)

    def import_corpus(
        self,
        file: str | Path,
        *,
        name: str | None = None,
        kind: Literal["global", "personal"] | None = None,
        index: str | None = None,
        keep_access: bool = False,
        on_progress: OnProgress | None = None,
    ) -> ImportReport:
        """Read an exported corpus into a new corpus of the caller; nothing of it is stored if it fails.

        Args:
            name, index: of the new corpus; None: as in the file.
            kind: None: as in the file for administrators, else personal.
            keep_access: share a global corpus, and with the same groups, as in the file; False: only administrators
                can read it.
            on_progress: called before each document, on another thread. Embedded only.

        Raises:
            ArchiveError: the file is no export, was changed, is too large, or has another version.
            ConflictError: there is a corpus of this name.
            InputError: the file cannot be read, or the index is not defined here.
            PermissionDeniedError: only administrators can import a global corpus.
            EmbeddingError, StoreError: nothing can be stored now.
        """
        body = self._loop.run(
            self._backend.import_corpus(
                Path(file), name=name, kind=kind, index=index, keep_access=keep_access, on_progress=on_progress
            )
        )
        return ImportReport(body=body)

    @property
    def vector_store(self) -> ChunkStore:
        """For `VectorStoreIndex.from_vector_store(…, embed_model=service.embedding)`. Embedded only."""
        components = self._embedded("vector_store")
        index = components.indices[components.settings.indices.default]
        return components.ingestor.vector_store(index, LOCAL_ADMIN)

    @property
    def embedding(self) -> ServiceEmbedding:
        """The embedding model that the chunks were embedded with. Embedded only."""
        from rag_service.client.llama import ServiceEmbedding

        return ServiceEmbedding(self._loop, self._embedded("embedding").embedding)

    @property
    def tools(self) -> list[FunctionTool]:
        """`search`, `read` and `compute` as LlamaIndex tools, for an agent of your own. Embedded only."""
        from rag_service.client.llama import make_tools

        return make_tools(self._loop, self._embedded("tools").tools)

    @property
    def llm(self) -> LLM:
        """The LlamaIndex LLM that writes answers, without the service's time limits and queue. Embedded only."""
        return self._embedded("llm").chat.llm

    def _embedded(self, what: str) -> Components:
        components = self._backend.components
        if components is None:
            raise ConfigurationError(f"{what} needs an embedded service; this one is remote.")
        return components


def _as_answer(question: str, body: AnswerBody) -> CitedAnswer:
    return CitedAnswer(question=question, body=body)


def _as_check(body: CheckBody) -> TextCheck:
    return TextCheck(body=body)


class CorpusView(Searchable):
    """A corpus with its documents and its own LlamaIndex objects."""

    def __init__(self, info: CorpusBody, loop: BackgroundLoop, backend: EmbeddedBackend | RemoteBackend):
        super().__init__(loop, backend, [info])
        self.info = info
        self.id = info.id
        self.name = info.name

    def __repr__(self) -> str:
        return f"{self.info.kind} corpus {self.name!r} (index {self.info.index}, {self.id})"


class Corpora(Items[CorpusView]):
    """Corpora by position or name; KeyError if no corpus has the name."""

    def __getitem__(self, index: Any) -> Any:
        if not isinstance(index, str):
            return self.items[index]
        for item in self.items:
            if item.name == index:
                return item
        raise KeyError(index)

    def __repr__(self) -> str:
        return "\n".join(map(repr, self.items)) or "no corpora"

    def _repr_html_(self) -> str:
        rows = [(item.name, item.info.kind, item.info.index, item.id) for item in self.items]
        return table_html(("corpus", "kind", "index", "id"), rows)

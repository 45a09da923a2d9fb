"""What a service handle stands on: the parts in this process, or a service elsewhere over HTTP.

Both speak in the shapes of the API, so that everything above them is written once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol
from uuid import UUID

from rag_service.api.wire.presenters import present_answer, present_passage, read_query
from rag_service.api.wire.schemas import AnswerBody, IngestBody, PassageBody, SearchRequest
from rag_service.errors import RagError
from rag_service.settings import Settings

if TYPE_CHECKING:
    from rag_service.components import Components

Mode = Literal["hybrid", "dense", "lexical"]


@dataclass(frozen=True, kw_only=True)
class Where:
    """What to look at, and how much of it. Empty fields do not restrict."""

    top_k: int | None = None  # most passages; None: the service's default
    threshold: float | None = None  # least relevance, 0..1; None: the index's or the service's
    source: str | None = None
    tags: Sequence[str] = ()  # a document must carry all of them
    file_name: str | None = None
    document_ids: Sequence[UUID] = ()
    corpus_ids: Sequence[UUID] = ()
    fields: Mapping[str, str] = field(default_factory=dict)  # filter fields that the index declares

    def request(self, question: str) -> SearchRequest:
        return SearchRequest(
            query=question,
            top_k=self.top_k,
            similarity_threshold=self.threshold,
            source=self.source,
            tags=list(self.tags),
            file_name=self.file_name,
            document_ids=list(self.document_ids),
            corpus_ids=list(self.corpus_ids),
            fields=dict(self.fields),
        )


EVERYWHERE = Where()


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """How to rank instead of as requests do: by fusion alone, without the reranker."""

    alpha: float | None = None  # share of the dense leg, 0..1; None: the index definition's
    mode: Mode = "hybrid"


@dataclass(frozen=True, kw_only=True)
class Found:
    """What a search gave."""

    passages: tuple[PassageBody, ...]  # best first
    language: str  # of the question, ISO 639-1


@dataclass(frozen=True, kw_only=True)
class CorpusInfo:
    """A corpus that the caller may see."""

    id: UUID
    name: str
    kind: str  # "global" or "personal"
    index: str  # the definition that rules it
    active: bool = True


class Backend(Protocol):
    """Every method runs on the handle's own loop."""

    @property
    def where(self) -> str:
        """For people: a folder, a host."""

    async def open(self) -> None: ...

    async def close(self) -> None: ...

    async def ingest(self, data: bytes, *, name: str, file_name: str) -> IngestBody: ...

    async def search(self, request: SearchRequest, experiment: Experiment | None) -> Found: ...

    async def answer(self, request: SearchRequest) -> AnswerBody: ...

    async def answer_with_passages(self, request: SearchRequest) -> tuple[AnswerBody, tuple[PassageBody, ...]]: ...

    async def corpora(self) -> list[CorpusInfo]: ...


@dataclass(kw_only=True)
class EmbeddedBackend:
    """The service's own parts in this process, as the local administrator."""

    settings: Settings = field(repr=False)
    _components: Components | None = field(default=None, init=False, repr=False)
    _keeper: asyncio.Task[None] | None = field(default=None, init=False)
    _closing: asyncio.Event = field(default_factory=asyncio.Event, init=False)

    @property
    def where(self) -> str:
        external = self.settings.database_url is not None
        return "external database" if external else str(self.settings.data_dir)

    @property
    def components(self) -> Components:
        """The opened parts.

        Raises:
            RuntimeError: the service is closed.
        """
        if self._components is None:
            raise RuntimeError("The service is closed; call open_service() again.")
        return self._components

    async def open(self) -> None:
        """Open in a task that also closes: what is entered must be left in the same task.

        Raises:
            ConfigurationError, StoreError: as `open_components` does.
        """
        opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._keeper = asyncio.create_task(self._keep(opened))
        await opened

    async def _keep(self, opened: asyncio.Future[None]) -> None:
        from rag_service.components import open_components

        try:
            async with open_components(self.settings) as components:
                self._components = components
                opened.set_result(None)
                await self._closing.wait()
        except Exception as error:
            if opened.done():
                raise
            opened.set_exception(error)
        finally:
            self._components = None

    async def close(self) -> None:
        self._closing.set()
        if self._keeper is not None:
            await self._keeper

    async def ingest(self, data: bytes, *, name: str, file_name: str) -> IngestBody:
        from rag_service.components import LOCAL_ADMIN
        from rag_service.ingest.pipeline import DocumentInput

        done = await self.components.ingest(DocumentInput(data=data, file_name=file_name, name=name), LOCAL_ADMIN)
        return IngestBody(document_id=done.document_id, outcome=done.outcome.value, chunk_count=done.chunk_count)

    async def search(self, request: SearchRequest, experiment: Experiment | None) -> Found:
        from rag_service.components import LOCAL_ADMIN

        query = read_query(request, self.settings)
        if experiment is None:
            retrieval, hits = await self.components.engine.search(query, LOCAL_ADMIN)
        else:
            retrieval = await self.components.retriever.search(
                query.question,
                identity=LOCAL_ADMIN,
                filters=query.filters,
                limit=query.top_k,
                mode=experiment.mode,
                alpha=experiment.alpha,
            )
            least = query.threshold or 0.0
            hits = tuple(hit for hit in retrieval.hits if hit.scores.relevance >= least)
        return Found(passages=tuple(present_passage(hit) for hit in hits), language=retrieval.plan.language)

    async def answer(self, request: SearchRequest) -> AnswerBody:
        return (await self.answer_with_passages(request))[0]

    async def answer_with_passages(self, request: SearchRequest) -> tuple[AnswerBody, tuple[PassageBody, ...]]:
        from rag_service.components import LOCAL_ADMIN

        answer = await self.components.engine.answer(read_query(request, self.settings), LOCAL_ADMIN)
        return present_answer(answer), tuple(present_passage(hit) for hit in answer.sources)

    async def corpora(self) -> list[CorpusInfo]:
        from rag_service.components import LOCAL_ADMIN
        from rag_service.store.corpora import select_corpora

        async with self.components.database.transaction(LOCAL_ADMIN) as connection:
            found = await select_corpora(connection, "TRUE", {})
        return [
            CorpusInfo(id=item.id, name=item.name, kind=item.kind.value, index=item.index_name, active=item.active)
            for item in found
        ]


class ServiceUnreachableError(RagError):
    """The service at the URL does not answer."""

    code = "service_unreachable"
    retryable = True
    help = "Check the URL, and that `rag-service serve` runs there."


def error_from(problem: Mapping[str, Any], status: int) -> RagError:
    """The error that a reply of the service tells of, as the class that it has there."""
    code = str(problem.get("code", ""))
    kind = _find_kind(RagError, code) or RagError
    named = [item.get("field") for item in problem.get("errors", [])]
    message = str(problem.get("detail") or f"The service replied with status {status}.")
    return kind(message, field=named[0] if named else None, retry_after=problem.get("retryAfter"))


def _find_kind(kind: type[RagError], code: str) -> type[RagError] | None:
    if kind.code == code and kind.__init__ is RagError.__init__:
        return kind
    return next((found for child in kind.__subclasses__() if (found := _find_kind(child, code))), None)

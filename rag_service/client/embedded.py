"""The service's components in this process, as the local administrator."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, aclosing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import UUID

from rag_service.api.agents.history import keep_answers
from rag_service.api.corpora.documents import present_document
from rag_service.api.corpora.schemas import CorpusBody, DocumentBody, ImportBody
from rag_service.api.corpora.transfer import present_import
from rag_service.api.http.check import check_events, check_text
from rag_service.api.http.events import WireEvent, present_events
from rag_service.api.http.presenters import present, present_answer, present_hit, present_search
from rag_service.api.http.queries import read_question, read_turns
from rag_service.api.http.schemas import (
    AnswerBody,
    AnswerRequest,
    CheckBody,
    CheckRequest,
    IngestBody,
    PassageBody,
    SearchBody,
    SearchRequest,
    SourceBody,
)
from rag_service.client.transferring import to_transfer_progress
from rag_service.components import Components, Plugins, open_components
from rag_service.domain import LOCAL_ADMIN, CorpusKind, Hit, Identity, Scores
from rag_service.errors import InputError
from rag_service.ingest.transfer.files import write_export
from rag_service.ingest.transfer.importing import ImportOptions
from rag_service.retrieval.found import Found
from rag_service.retrieval.question import Mode, Question
from rag_service.settings import Settings
from rag_service.store.accounts.conversations import read_history
from rag_service.store.corpora import read_corpus, select_corpora
from rag_service.store.database import Connection
from rag_service.store.documents.catalogue import DocumentChoice, DocumentOrder, read_documents
from rag_service.store.documents.documents import DocumentInput
from rag_service.store.search.passages import read_passages
from rag_service.tasks import end_tasks

if TYPE_CHECKING:
    from rag_service.sources.sync import OnProgress


@dataclass(kw_only=True)
class EmbeddedBackend:
    """Opens components, and closes them. Every method runs on the service's own loop."""

    settings: Settings = field(repr=False)
    plugins: Plugins = field(repr=False)
    kind = "embedded"
    _components: Components | None = field(default=None, init=False, repr=False)
    _keeper: asyncio.Task[None] | None = field(default=None, init=False)
    _closing: asyncio.Event = field(default_factory=asyncio.Event, init=False)

    @property
    def where(self) -> str:
        external = self.settings.database.url is not None
        return "external database" if external else str(self.settings.database.data_dir)

    @property
    def reader_suffixes(self) -> frozenset[str]:
        return self.components.reader_suffixes

    @property
    def components(self) -> Components:
        if self._components is None:
            raise RuntimeError("The service is closed; call open_service() again.")
        return self._components

    async def open(self) -> None:
        """Open in a task that also closes: a context must be left in the task that entered it."""
        opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._keeper = asyncio.create_task(self._keep(opened))
        await opened

    async def _keep(self, opened: asyncio.Future[None]) -> None:
        try:
            async with open_components(self.settings, plugins=self.plugins) as components:
                self._components = components
                components.chat.start()
                tasks = [asyncio.create_task(one.run()) for one in (components.fitter, components.examiner)]
                try:
                    opened.set_result(None)
                    await self._closing.wait()
                finally:
                    await end_tasks(*tasks)
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
        source = DocumentInput(data=data, file_name=file_name, name=name)
        return present(IngestBody, await self.components.ingest(source, LOCAL_ADMIN))

    async def search(
        self,
        request: SearchRequest,
        *,
        alpha: float | None = None,
        mode: Mode | None = None,
    ) -> SearchBody:
        """Passages as requests get them; with `alpha` or `mode` ranked by fusion alone."""
        question = read_question(request, self.settings, LOCAL_ADMIN)
        if alpha is None and mode is None:
            return await present_search(self.components.engine.search, question)
        return await present_search(
            self._fuse, replace(question, candidates=question.top_k, mode=mode or "hybrid", alpha=alpha)
        )

    async def _fuse(self, question: Question) -> Found:
        found = (await self.components.retriever.search(question)).all_visible(question.filters)
        return found.with_passages(hit for hit in found.hits if hit.scores.relevance >= (question.threshold or 0.0))

    async def answer(self, request: AnswerRequest) -> AnswerBody:
        outcome: AnswerBody | None = None
        async for event in self.stream(request):
            if isinstance(event.data, AnswerBody):
                outcome = event.data
        if outcome is None:
            raise RuntimeError("The stream ended without an answer.")
        return outcome

    async def stream(self, request: AnswerRequest, *, retractable: bool = True) -> AsyncGenerator[WireEvent, None]:
        """The events of an answer. `retractable`: whether text may be taken back, by a `delta` that restarts."""
        question = read_question(request, self.settings, LOCAL_ADMIN)
        question = replace(question, turns=read_turns(request), retractable=retractable)
        if request.conversation_id is not None:
            async with self.transaction() as connection:
                said = await read_history(connection, request.conversation_id, request.replaces)
            question = replace(question, turns=question.turns or said)
        events = present_events(self.components.engine.stream(question))
        if request.keep or request.conversation_id is not None:
            events = keep_answers(
                events, self, request.query.strip(), request.conversation_id, replaces=request.replaces
            )
        async with aclosing(events):
            async for event in events:
                yield event

    async def answer_from(self, request: AnswerRequest, chunks: Mapping[str, float]) -> AnswerBody:
        """An answer from stored passages, by id with their relevance, and in this order. Raises InputError."""
        question = read_question(request, self.settings, LOCAL_ADMIN)
        stored = await self._read_passages(chunks)
        if unknown := [chunk_id for chunk_id in chunks if chunk_id not in stored]:
            raise InputError(
                f"{len(unknown)} of {len(chunks)} nodes are no passages of this service: only what it has stored can"
                " be cited. For an answer of another synthesizer, use service.check."
            )
        question = replace(question, given=tuple(stored.values()))
        return present_answer(await self.components.engine.answer(question))

    async def read_passages(self, request: SearchRequest, sources: Sequence[SourceBody]) -> list[PassageBody]:
        """The passages that an answer to the request could draw on."""
        stored = await self._read_passages({source.chunk_id: source.score for source in sources})
        return [present_hit(PassageBody, hit) for hit in stored.values()]

    async def _read_passages(self, chunks: Mapping[str, float]) -> dict[str, Hit]:
        async with self.transaction() as connection:
            stored = await read_passages(connection, list(chunks))
        return {
            chunk_id: Hit(chunk=stored[chunk_id], scores=Scores(relevance=relevance))
            for chunk_id, relevance in chunks.items()
            if chunk_id in stored
        }

    @property
    def identity(self) -> Identity:
        return LOCAL_ADMIN

    def transaction(self) -> AbstractAsyncContextManager[Connection]:
        return self.components.database.transaction(LOCAL_ADMIN)

    async def check(self, request: CheckRequest) -> CheckBody:
        return await check_text(self.components.checker.check, request, LOCAL_ADMIN)

    async def export(self, corpus_id: UUID, file: Path, on_progress: OnProgress | None) -> int:
        pieces = self.components.transfers.export(corpus_id, LOCAL_ADMIN, to_transfer_progress(on_progress))
        return await write_export(pieces, file)

    async def import_corpus(
        self, file: Path, *, name: str | None, kind: str | None, index: str | None, keep_access: bool,
        on_progress: OnProgress | None,
    ) -> ImportBody:  # fmt: skip
        options = ImportOptions(
            name=name, kind=None if kind is None else CorpusKind(kind), index_name=index, keep_access=keep_access
        )
        transfers, progress = self.components.transfers, to_transfer_progress(on_progress)
        return present_import(await transfers.read_file(file, LOCAL_ADMIN, options, progress))

    def check_stream(self, request: CheckRequest) -> AsyncGenerator[WireEvent, None]:
        """The events of a check."""
        return check_events(self.components.checker.check, request, LOCAL_ADMIN)

    async def corpora(self) -> list[CorpusBody]:
        async with self.transaction() as connection:
            found = await select_corpora(connection, "TRUE", {})
        return [present(CorpusBody, corpus, index=corpus.index_name) for corpus in found]

    async def documents(self, corpus_id: UUID) -> list[DocumentBody]:
        async with self.transaction() as connection:
            corpus = await read_corpus(connection, corpus_id)
            found = await read_documents(connection, corpus_id, DocumentChoice(order=DocumentOrder.NAME))
        fingerprints = self.components.fingerprints
        return [present_document(one, corpus, fingerprints) for one in found]

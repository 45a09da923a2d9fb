"""Syncs the sources of corpora when they are due, some at a time, in any number of processes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import KW_ONLY, dataclass, field
from datetime import timedelta
from functools import partial
from typing import Any
from uuid import UUID

import structlog

from rag_service.errors import ConflictError, RagError, StoreError
from rag_service.indices import IndexDefinition, find_index, load_indices
from rag_service.ingest.embedding_cache import wrap_embedding
from rag_service.ingest.ingestor import Ingestor
from rag_service.ingest.upload_job import UnexpectedFailureError
from rag_service.ingest.wiring import build_ingestor, build_worker
from rag_service.models.embedding.embeddings import build_embedding
from rag_service.models.embedding.guarded import close_embedding
from rag_service.settings import Settings
from rag_service.sources.declared import load_readers
from rag_service.sources.opening import open_source
from rag_service.sources.report import SyncReport
from rag_service.sources.sync import OnProgress, Sync, sweep_scratch
from rag_service.store.corpora import require_writable
from rag_service.store.database import Database
from rag_service.store.documents.originals import Originals
from rag_service.store.documents.sources import (
    ClaimedSource,
    RunReport,
    claim_source,
    hold_source,
    release_source,
)
from rag_service.store.opening import open_database
from rag_service.tasks import end_tasks, run_together

log = structlog.get_logger(__name__)

_POLL_SECONDS = 3.0  # between two looks for a source that is due
_AT_ONCE = 4  # sources, each of another user
_SLOW_SECONDS = 60.0  # a run that takes longer leaves its place to others, and goes on beside them
_SLOW_AT_ONCE = 12  # of those; when they are that many, sites end their runs early
_LOST = "The source was removed, or another worker has taken it over."
_FAILED = "The service failed to sync this source."
_REASONS = 50  # of files that were not taken, kept with the source


@dataclass(frozen=True)
class SourceRunner:
    """Syncs sources that are due."""

    settings: Settings
    database: Database
    ingestor: Ingestor
    indices: Mapping[str, IndexDefinition]
    _: KW_ONLY
    extra_suffixes: Collection[str] = ()  # besides those of the index definitions
    _running: dict[asyncio.Task[None], float] = field(default_factory=dict, init=False)  # → when it began

    def __post_init__(self) -> None:
        load_readers(self.settings.sync.readers)  # a wrong file shows at start

    @property
    def _lease(self) -> timedelta:
        return timedelta(seconds=self.settings.worker.job_stalled_seconds)

    async def run(self) -> None:
        """Sync what is due, until cancelled. A run that is cut off goes on in another process, or at the next start."""
        await asyncio.to_thread(sweep_scratch)
        try:
            while True:
                self._drop_ended()
                source = await self._claim_due() if self._has_place() else None
                if source is not None:
                    self._running[asyncio.create_task(self._run_claimed(source))] = time.monotonic()
                elif self._running:
                    await asyncio.wait(self._running, timeout=_POLL_SECONDS, return_when=asyncio.FIRST_COMPLETED)
                else:
                    await asyncio.sleep(_POLL_SECONDS)
        finally:
            await end_tasks(*self._running)

    def _drop_ended(self) -> None:
        for run in [run for run in self._running if run.done()]:
            del self._running[run]
            run.result()

    def _has_place(self) -> bool:
        quick = sum(time.monotonic() - began < _SLOW_SECONDS for began in self._running.values())
        return quick < _AT_ONCE and not self._is_crowded()

    def _is_crowded(self) -> bool:
        return len(self._running) >= _AT_ONCE + _SLOW_AT_ONCE

    async def _claim_due(self) -> ClaimedSource | None:
        try:
            async with self.database.transaction(None) as connection:
                return await claim_source(connection, lease=self._lease)
        except RagError as error:
            log.warning("sources_interrupted", code=error.code, exc_info=error)
            return None

    async def _run_claimed(self, source: ClaimedSource) -> None:
        with structlog.contextvars.bound_contextvars(source_id=str(source.id)), suppress(RagError):
            await self._run(source, None)

    async def run_due(self) -> bool:
        """Sync the source that is due longest; False if none is. Failures are stored with it."""
        async with self.database.transaction(None) as connection:
            source = await claim_source(connection, lease=self._lease)
        if source is None:
            return False
        await self._run_claimed(source)
        return True

    async def run_now(self, source_id: UUID, *, on_progress: OnProgress | None = None) -> SyncReport:
        """Sync a source whether or not it is due.

        Raises ConflictError if a worker is at it, or it was removed, and what `Sync.run` raises.
        """
        async with self.database.transaction(None) as connection:
            source = await claim_source(connection, lease=self._lease, wanted=source_id)
        if source is None:
            raise ConflictError("This source is being synced right now.")
        return await self._run(source, on_progress)

    async def _run(self, source: ClaimedSource, on_progress: OnProgress | None) -> SyncReport:
        """Sync a claimed source for as long as the claim is ours, and store how that ended."""
        holding = asyncio.create_task(self._hold(source))
        working = asyncio.create_task(self._sync(source, on_progress))
        try:
            await asyncio.wait({holding, working}, return_when=asyncio.FIRST_COMPLETED)
            if not working.done():
                raise ConflictError(_LOST)
            report = working.result()
            await self._release(source, report=_to_store(report))
            log.info("source_synced", added=len(report.added), changed=len(report.changed), deleted=len(report.deleted))
            return report
        except asyncio.CancelledError:
            with suppress(RagError):  # others go on at once, or when the claim has run out
                await asyncio.shield(self._renew(source, None))
            raise
        except Exception as error:  # stored with the source, for those who added it
            failure = error if isinstance(error, RagError) else UnexpectedFailureError(_FAILED)
            # The message of an error of ours has the address, and an address may have a token.
            unexpected = None if failure is error else error
            log.warning("source_failed", code=failure.code, exc_info=unexpected)
            with suppress(StoreError):
                await self._release(source, error=failure.message)
            if failure is error:
                raise
            raise failure from error
        finally:
            await end_tasks(holding, working)

    async def _sync(self, source: ClaimedSource, on_progress: OnProgress | None) -> SyncReport:
        async with self.database.transaction(source.identity) as connection:
            corpus = await require_writable(connection, source.corpus_id)
        index = find_index(self.indices, corpus.index_name)
        sync = Sync(
            open_source(
                source.target,
                self.settings,
                extra_suffixes={*self.extra_suffixes, *index.ingest.readers},
                depth=source.depth,
                role=source.role,
                others_wait=self._is_crowded,
            ),
            database=self.database,
            ingestor=self.ingestor,
            corpus=corpus,
            index=index,
            identity=source.identity,
            on_progress=on_progress,
            confirm=partial(self._confirm, source),
        )
        return await sync.run()

    async def _confirm(self, source: ClaimedSource) -> None:
        if not await self._renew(source, self._lease):
            raise ConflictError(_LOST)

    async def _hold(self, source: ClaimedSource) -> None:
        """Renew the claim until it is lost."""
        held = True
        while held:
            await asyncio.sleep(self._lease.total_seconds() / 4)
            with suppress(StoreError):  # the claim may outlast the failure
                held = await self._renew(source, self._lease)

    async def _renew(self, source: ClaimedSource, lease: timedelta | None) -> bool:
        async with self.database.transaction(None) as connection:
            return await hold_source(connection, source, lease=lease)

    async def _release(
        self, source: ClaimedSource, *, report: RunReport | None = None, error: str | None = None
    ) -> None:
        async with self.database.transaction(None) as connection:
            await release_source(connection, source, report=report, error=error)


def _to_store(report: SyncReport) -> RunReport:
    return RunReport(
        added=len(report.added),
        changed=len(report.changed),
        renamed=len(report.renamed),
        deleted=len(report.deleted),
        unchanged=report.unchanged,
        kept=len(report.kept),
        not_taken=len(report.left),
        reasons=tuple(f"{name}: {reason}" for name, reason in report.left[:_REASONS]),
    )


@asynccontextmanager
async def open_worker(settings: Settings) -> AsyncIterator[Callable[[], Coroutine[Any, Any, None]]]:
    """What `rag-service worker` runs until it is cancelled: uploads, and the sources that are due.

    It has its own database pool and embedding model, and waits for the database if it is unreachable. Raises
    ConfigurationError: a setting or an index definition is wrong.
    """
    indices = load_indices(indices_path=settings.indices.path)
    originals = Originals(settings.uploads.originals_url)
    async with open_database(settings, serving=True) as database:
        embedding = wrap_embedding(build_embedding(settings), settings, database)
        try:
            ingestor = build_ingestor(settings, database, embedding, indices, originals=originals)
            worker = build_worker(settings, database, originals, ingestor, indices)
            runner = SourceRunner(settings, database, ingestor, indices)

            async def work() -> None:
                await run_together(worker.run(), runner.run())

            yield work
        finally:
            await close_embedding(embedding)

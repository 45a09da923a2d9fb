"""Worker processes: any number, on any machines, each doing jobs and upkeep until it is told to stop."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field

import psycopg
import structlog
from procrastinate import App
from procrastinate.exceptions import ProcrastinateException

from rag_service.errors import RagError
from rag_service.ingest.jobs import QUEUE, JobPolicy, UploadJob, build_queue, queue_connector
from rag_service.ingest.stages import Stages
from rag_service.ingest.upkeep import Upkeep
from rag_service.store.documents.originals import OriginalStore
from rag_service.store.session import Database

log = structlog.get_logger(__name__)

_FAREWELL_SECONDS = 2.0  # after the grace, for what a stopping worker tells the database
_POOL_SPARE = 2  # connections of the queue besides one for each job: heartbeat, upkeep


@dataclass(frozen=True, kw_only=True)
class WorkerOptions:
    """How a worker works."""

    concurrency: int = 2  # documents at a time
    stalled_seconds: float = 30.0  # silence after which others take over; heartbeats come six times as often
    upkeep_seconds: float = 10.0  # between two rounds
    poll_seconds: float = 5.0  # between two looks for jobs, where no notification came
    restart_seconds: float = 1.0  # pause before another try when the database failed
    grace_seconds: float = 10.0  # jobs may finish within, when the worker is told to stop
    policy: JobPolicy = field(default_factory=JobPolicy)


class Worker:
    """Does jobs and upkeep. Survives its database: when that fails, it begins again until it succeeds."""

    def __init__(
        self, conninfo: str, database: Database, stages: Stages, originals: OriginalStore, options: WorkerOptions
    ):
        """
        Args:
            conninfo: connection string of the unprivileged role; the queue has a pool of its own.
            database: the same database, for the work.
            stages: what is done with an upload.
            originals: for upkeep.
            options: how.
        """
        self._conninfo = conninfo
        self._database = database
        self._originals = originals
        self._options = options
        self._job = UploadJob(database, stages, options.policy)

    async def run(self) -> None:
        """Work until cancelled. Jobs that do not end within the grace are put back.

        A job that was running when the process dies is taken over by another worker, or by the next
        one started here. Cancelled, this ends soon after the grace even where the database is gone and
        nothing can be put back; then that is how its jobs go on, too.
        """
        working = asyncio.create_task(self._work_for_ever(), name="worker")
        try:
            await asyncio.wait({working})
        finally:
            working.cancel()
            _, left = await asyncio.wait({working}, timeout=self._options.grace_seconds + _FAREWELL_SECONDS)
            if left:
                log.warning("worker_abandoned")
        working.result()  # it never ends by itself, but by what nobody expected

    async def _work_for_ever(self) -> None:
        while True:
            try:
                await self._work()
                log.warning("worker_stopped_by_itself")  # a side task failed, and procrastinate logged why
            except (RagError, ProcrastinateException, psycopg.Error, OSError) as error:
                log.warning("worker_interrupted", exc_info=error)
            await asyncio.sleep(self._options.restart_seconds)

    async def _work(self) -> None:
        connector = queue_connector(self._conninfo, pool_size=self._options.concurrency + _POOL_SPARE)
        queue = build_queue(connector, self._job)
        try:
            await queue.open_async()
            upkeep = Upkeep(self._database, self._originals, queue, stalled_seconds=self._options.stalled_seconds)
            rounds = asyncio.create_task(upkeep.run(every=self._options.upkeep_seconds))
            try:
                await self._do_jobs(queue)
            finally:
                rounds.cancel()
                with suppress(asyncio.CancelledError):
                    await rounds
        finally:
            await queue.close_async()

    async def _do_jobs(self, queue: App) -> None:
        options = self._options
        await queue.run_worker_async(
            queues=[QUEUE],
            concurrency=options.concurrency,
            fetch_job_polling_interval=options.poll_seconds,
            shutdown_graceful_timeout=options.grace_seconds,
            delete_jobs="always",  # what became of an upload is written there; the queue keeps no history
            install_signal_handlers=False,
            update_heartbeat_interval=options.stalled_seconds / 6,
            stalled_worker_timeout=options.stalled_seconds,
        )

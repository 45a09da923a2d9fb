"""A worker runs jobs and upkeep until it is stopped; any number may run, on any machines."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import psycopg
import structlog
from procrastinate import App
from procrastinate.exceptions import ProcrastinateException

from rag_service.errors import RagError
from rag_service.ingest.queue import QUEUE, build_queue, queue_connector
from rag_service.ingest.upkeep import Upkeep
from rag_service.ingest.upload_job import UploadJob
from rag_service.tasks import end_tasks

log = structlog.get_logger(__name__)

_FAREWELL_SECONDS = 2.0  # after the grace period, for the last writes of a stopping worker
_POOL_SPARE = 2  # connections of the queue besides one for each job: heartbeat, upkeep
_TAKEN = 4  # times the jobs that it works on, what a worker takes: short ones are known while long ones run


@dataclass(frozen=True)
class Worker:
    """Runs jobs and upkeep; retries for as long as the database fails."""

    job: UploadJob

    async def run(self) -> None:
        """Work until cancelled. Jobs that do not end within the grace period are requeued.

        This ends soon after the grace period even if the database is unreachable; upkeep requeues the jobs later, as
        after a crash.
        """
        working = asyncio.create_task(self._work_for_ever(), name="worker")
        try:
            await asyncio.wait({working})
        finally:
            working.cancel()
            _, left = await asyncio.wait({working}, timeout=self.job.options.grace_seconds + _FAREWELL_SECONDS)
            if left:
                log.warning("worker_abandoned")
        working.result()  # ends on its own only with an unexpected error

    async def _work_for_ever(self) -> None:
        while True:
            try:
                await self._work()
                log.warning("worker_stopped_by_itself")  # a side task failed, and procrastinate logged why
            except (RagError, ProcrastinateException, psycopg.Error, OSError) as error:
                log.warning("worker_interrupted", exc_info=error)
            await asyncio.sleep(self.job.options.restart_seconds)

    async def _work(self) -> None:
        at_once = self.job.options.concurrency
        connector = queue_connector(self.job.database.conninfo, pool_size=at_once + _POOL_SPARE, share=at_once)
        queue = build_queue(connector, self.job)
        try:
            await queue.open_async()
            upkeep = Upkeep(
                self.job.database, self.job.originals, queue, stalled_seconds=self.job.options.stalled_seconds
            )
            rounds = asyncio.create_task(upkeep.run(every=self.job.options.upkeep_seconds))
            try:
                await self._do_jobs(queue)
            finally:
                await end_tasks(rounds)
        finally:
            await queue.close_async()

    async def _do_jobs(self, queue: App) -> None:
        options = self.job.options
        await queue.run_worker_async(
            queues=[QUEUE],
            concurrency=_TAKEN * options.concurrency,
            fetch_job_polling_interval=options.poll_seconds,
            shutdown_graceful_timeout=options.grace_seconds,
            delete_jobs="always",  # the outcome is stored with the upload; the queue keeps no history
            install_signal_handlers=False,
            update_heartbeat_interval=options.stalled_seconds / 6,
            stalled_worker_timeout=options.stalled_seconds,
        )

"""Periodic maintenance: requeue the jobs of dead workers, purge expired and deleted content.

Runs beside every worker but outside the queue, so that a stuck queue can be repaired; an advisory lock lets one process
at a time do it. Expired and deleted content is invisible to users before it is purged.
"""

from __future__ import annotations

import asyncio
from dataclasses import KW_ONLY, dataclass
from datetime import timedelta

import structlog
from procrastinate import App
from procrastinate.exceptions import ProcrastinateException

from rag_service.errors import RagError
from rag_service.ingest.embedding_cache import purge_embeddings
from rag_service.ingest.queue import QUEUE, enqueue
from rag_service.store.database import AT_ONCE, Connection, Database
from rag_service.store.documents.originals import Originals
from rag_service.store.rows import fetch_value

log = structlog.get_logger(__name__)

_LOCK = 0x5241_4750  # any constant: "RAGP"
_PURGED_AT_ONCE = 500  # documents; a purge must not lock the corpora for long


@dataclass(frozen=True)
class Upkeep:
    """Periodic maintenance, without any user's identity."""

    database: Database
    originals: Originals
    queue: App
    _: KW_ONLY
    stalled_seconds: float  # silence after which a worker counts as dead

    async def run(self, *, every: float) -> None:
        """Run rounds until cancelled; failed rounds are logged."""
        while True:
            try:
                await self.do_round()
            except (RagError, ProcrastinateException) as error:
                log.warning("upkeep_failed", exc_info=error)
            await asyncio.sleep(every)

    async def do_round(self) -> bool:
        """Run one round; False if another process is running one."""
        async with self.database.transaction(None) as connection:
            if not await fetch_value(connection, "SELECT pg_try_advisory_xact_lock(%s)", [_LOCK]):
                return False
            await self._revive_stalled()
            counts = {
                "requeued": await self._requeue_lost(connection),
                "unwritable": await fetch_value(connection, "SELECT rag.fail_unwritable_uploads()"),
            }
        # Separate transaction: a purge locks the corpora.
        async with self.database.transaction(None) as connection:
            counts["purged"] = await fetch_value(connection, f"SELECT rag.purge_expired({_PURGED_AT_ONCE})")
        async with self.database.transaction(None) as connection:
            counts["discarded"] = await self.originals.discard(connection)
            counts["lost_imports"] = await self.originals.end_lost_imports(connection)
        async with self.database.transaction(None) as connection:
            counts["forgotten_embeddings"] = await purge_embeddings(connection)
        if any(counts.values()):
            log.info("upkeep_done", **counts)
        return True

    async def _revive_stalled(self) -> None:
        """Requeue the jobs of silent workers. Attempts are counted with their uploads."""
        manager = self.queue.job_manager
        stalled = await manager.get_stalled_jobs(queue=QUEUE, seconds_since_heartbeat=self.stalled_seconds)
        for job in stalled:
            if job.id is not None:
                log.warning("job_stalled", job_id=job.id, **job.task_kwargs)
                await manager.retry_job_by_id_async(job.id, retry_at=AT_ONCE)

    async def _requeue_lost(self, connection: Connection) -> int:
        """Enqueue pending uploads without a job: the queue was emptied, or a revived worker ended the wrong job."""
        quiet = timedelta(seconds=self.stalled_seconds)
        cursor = await connection.execute("SELECT upload_id, user_id FROM rag.lost_uploads(%s)", [quiet])
        lost = await cursor.fetchall()
        for upload_id, user_id in lost:
            await enqueue(connection, upload_id, user_id)
        return len(lost)

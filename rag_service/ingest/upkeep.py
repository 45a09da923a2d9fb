"""What the queue does not do by itself: take over from dead workers, and tidy up what is gone.

Runs beside every worker, outside the queue (a stuck queue must not stop what unsticks it), one at a
time across all processes by an advisory lock. Nothing here decides what anybody may see: expired and
deleted content is out of reach before it is purged.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta

import structlog
from procrastinate import App
from procrastinate.exceptions import ProcrastinateException

from rag_service.errors import RagError
from rag_service.ingest.jobs import QUEUE, enqueue
from rag_service.store.clock import AT_ONCE
from rag_service.store.documents.embedding_cache import purge_embeddings
from rag_service.store.documents.originals import OriginalStore
from rag_service.store.session import Connection, Database

log = structlog.get_logger(__name__)

_LOCK = 0x5241_4750  # any constant: "RAGP"
_PURGED_AT_ONCE = 500  # documents; a purge must not hold the corpora's locks for long


class Upkeep:
    """Periodic maintenance on behalf of nobody."""

    def __init__(self, database: Database, originals: OriginalStore, queue: App, *, stalled_seconds: float):
        """
        Args:
            database: as the unprivileged role.
            originals: whose discarded files are removed.
            queue: opened, with a worker's connections.
            stalled_seconds: silence after which a worker counts as dead.
        """
        self._database = database
        self._originals = originals
        self._queue = queue
        self._stalled_seconds = stalled_seconds

    async def run(self, *, every: float) -> None:
        """Do the rounds until cancelled; a failing round is logged and the next one tries again."""
        while True:
            try:
                await self.do_round()
            except (RagError, ProcrastinateException) as error:
                log.warning("upkeep_failed", exc_info=error)
            await asyncio.sleep(every)

    async def do_round(self) -> bool:
        """One round; False when another process is at it.

        Raises:
            StoreError: the database fails.
        """
        async with self._database.transaction(None) as connection:
            cursor = await connection.execute("SELECT pg_try_advisory_xact_lock(%s)", [_LOCK])
            row = await cursor.fetchone()
            if row is None or not row[0]:
                return False
            await self._revive_stalled()
            counts = {
                "requeued": await self._requeue_lost(connection),
                "unwritable": await _count(connection, "SELECT rag.fail_unwritable_uploads()"),
            }
        # Apart from the above: a purge takes the corpora's locks.
        async with self._database.transaction(None) as connection:
            counts["purged"] = await _count(connection, f"SELECT rag.purge_expired({_PURGED_AT_ONCE})")
        async with self._database.transaction(None) as connection:
            counts["discarded"] = await self._originals.discard(connection)
        async with self._database.transaction(None) as connection:
            counts["forgotten_embeddings"] = await purge_embeddings(connection)
        if any(counts.values()):
            log.info("upkeep_done", **counts)
        return True

    async def _revive_stalled(self) -> None:
        """Jobs of workers that fell silent go back into the queue. Their uploads count the attempts."""
        manager = self._queue.job_manager
        stalled = await manager.get_stalled_jobs(queue=QUEUE, seconds_since_heartbeat=self._stalled_seconds)
        for job in stalled:
            if job.id is not None:
                log.warning("job_stalled", job_id=job.id, **job.task_kwargs)
                await manager.retry_job_by_id_async(job.id, retry_at=AT_ONCE)

    async def _requeue_lost(self, connection: Connection) -> int:
        """Uploads that wait, but have no job: the queue was emptied, or a revived worker ended the wrong job."""
        quiet = timedelta(seconds=self._stalled_seconds)
        cursor = await connection.execute("SELECT upload_id, user_id FROM rag.lost_uploads(%s)", [quiet])
        lost = await cursor.fetchall()
        for upload_id, user_id in lost:
            await enqueue(connection, upload_id, user_id)
        return len(lost)


async def _count(connection: Connection, query: str) -> int:
    cursor = await connection.execute(query)
    row = await cursor.fetchone()
    return 0 if row is None else int(row[0])

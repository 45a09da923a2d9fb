"""The job queue: an upload is stored and enqueued in one transaction, and a worker continues from there.

procrastinate keeps the queue in the same PostgreSQL. A job carries only ids; everything else is read under the
uploader's identity. Delivery is at least once, so a job checks the upload's state before it works.
"""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import UUID, uuid4

from procrastinate import App, BaseRetryStrategy, PsycopgConnector, RetryDecision
from procrastinate.exceptions import ConnectorException
from procrastinate.jobs import Job
from procrastinate.manager import JobManager
from psycopg.conninfo import make_conninfo

from rag_service.errors import StoreError
from rag_service.ingest.upload_job import RetryLaterError, UploadJob
from rag_service.observability.logs import correlation, current_correlation_id
from rag_service.store.database import AT_ONCE, Connection

QUEUE = "ingest"
TASK = "ingest_upload"
_PAUSE_SECONDS = 1.0  # before a job whose database failed


def queue_connector(conninfo: str, *, pool_size: int, share: int | None = None) -> PsycopgConnector:
    """Connections of the unprivileged role that may see the queue, marked as a worker's.

    `share`: jobs of one user that the worker takes at a time; None: no limit.
    """
    limit = "" if share is None else f" -c rag.worker_share={share}"
    return PsycopgConnector(
        conninfo=make_conninfo(conninfo, options=f"-c search_path=rag,public -c rag.worker=on{limit}"),
        min_size=1,
        max_size=pool_size,
        timeout=5.0,
    )


async def enqueue(connection: Connection, upload_id: UUID, user_id: UUID) -> None:
    """Put an upload's job into the queue, inside the caller's transaction. Raises StoreError."""
    job = Job(
        queue=QUEUE,
        lock=None,
        queueing_lock=None,
        task_name=TASK,
        task_kwargs={
            "upload_id": str(upload_id),
            "user_id": str(user_id),
            "correlation_id": current_correlation_id() or uuid4().hex,
        },
    )
    # The manager works on the caller's connection, whose transaction stores the upload; its own stays closed.
    try:
        await JobManager(PsycopgConnector()).defer_job_async(job, connection=connection)
    except ConnectorException as error:  # procrastinate's name for psycopg's
        raise StoreError("The database failed during the request.", retry_after=5) from error


class _Retry(BaseRetryStrategy):
    """The upload's state decides about retries; the queue only learns when."""

    def get_retry_decision(self, *, exception: BaseException, job: Job) -> RetryDecision | None:
        if isinstance(exception, RetryLaterError):
            return RetryDecision(retry_at=exception.at)
        # Shutdown or database failure: run it again. Attempts are counted with the upload.
        return RetryDecision(retry_at=AT_ONCE)


def build_queue(connector: PsycopgConnector, job: UploadJob) -> App:
    """The procrastinate application with its only task."""
    app = App(connector=connector)

    async def ingest_upload(*, correlation_id: str = "", **ids: Any) -> None:
        try:
            with correlation(correlation_id or uuid4().hex):
                await job.run(**ids)
        except StoreError:
            await asyncio.sleep(_PAUSE_SECONDS)  # the job is due again at once: avoid a busy loop on a full disk
            raise

    app.task(name=TASK, queue=QUEUE, retry=_Retry())(ingest_upload)
    return app

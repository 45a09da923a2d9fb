"""The queue: an upload is stored and enqueued in one transaction, and a job takes it from there.

procrastinate keeps the queue in the same PostgreSQL. A job carries ids and nothing else; what it
means is read under the uploader's identity. Delivery is at least once, so that a job decides by the
upload's own state whether there is anything left to do.
"""

from __future__ import annotations

import asyncio
import hashlib
import random
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import psycopg
import structlog
from procrastinate import App, BaseRetryStrategy, PsycopgConnector, RetryDecision
from procrastinate.jobs import Job
from procrastinate.manager import JobManager
from psycopg.conninfo import make_conninfo

from rag_service.definitions import IndexDefinition
from rag_service.domain import Identity
from rag_service.errors import ConflictError, RagError, StoreError
from rag_service.ingest.parse import clean_file_name
from rag_service.ingest.pipeline import DocumentInput
from rag_service.ingest.stages import EmbeddingModel, Stages
from rag_service.store.clock import AT_ONCE, database_now
from rag_service.store.corpora import Corpus, check_ttl, read_corpus
from rag_service.store.documents.claims import ClaimLostError, claim_upload, fail_upload, postpone_upload
from rag_service.store.documents.originals import OriginalStore
from rag_service.store.documents.uploads import NewUpload, Upload, accept_upload, retry_upload
from rag_service.store.session import Connection, Database
from rag_service.telemetry import correlation, current_correlation_id

log = structlog.get_logger(__name__)

QUEUE = "ingest"
TASK = "ingest_upload"
_PAUSE_SECONDS = 1.0  # before a job whose database failed


@dataclass(frozen=True, kw_only=True)
class JobPolicy:
    """How often and how soon a job is tried again."""

    attempts: int = 5  # tries in all, killed workers included
    backoff_seconds: float = 2.0  # before the second try; doubles with each
    backoff_max_seconds: float = 300.0

    def pause(self, attempts: int) -> float:
        """Seconds to wait after that many tries: exponential, capped, and spread over its upper half.

        The spread keeps documents that failed together from coming back together.
        """
        longest = min(self.backoff_max_seconds, self.backoff_seconds * 2.0 ** min(attempts - 1, 30))
        return longest * random.uniform(0.5, 1.0)  # noqa: S311 - no secret


class RetryLaterError(Exception):
    """Tells the queue when to run the job again; the upload itself says why."""

    def __init__(self, at: datetime):
        super().__init__(f"again at {at.isoformat()}")
        self.at = at  # by the database's clock


class UnexpectedFailureError(RagError):
    """What an uploader is told of a failure that is ours."""

    code = "internal_error"
    help = "Try again; if it persists, an administrator finds the cause in the log under the upload's id."


class GivenUpError(RagError):
    code = "given_up"
    help = "Split the file or convert it to another format, and upload it again."


def queue_connector(conninfo: str, *, pool_size: int = 4) -> PsycopgConnector:
    """Connections that may see the queue: as the unprivileged role, declared as a worker's."""
    return PsycopgConnector(
        conninfo=make_conninfo(conninfo, options="-c search_path=rag,public -c rag.worker=on"),
        min_size=1,
        max_size=pool_size,
        timeout=5.0,
    )


async def enqueue(connection: Connection, upload_id: UUID, user_id: UUID) -> None:
    """Put an upload's job into the queue, inside the caller's transaction."""
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
    await JobManager(PsycopgConnector()).defer_job_async(job, connection=connection)


class Uploads:
    """Takes documents in: the front of the queue, used by the API."""

    def __init__(
        self,
        database: Database,
        originals: OriginalStore,
        model: EmbeddingModel,
        indices: Mapping[str, IndexDefinition],
        *,
        default_ttl_seconds: int | None,
    ):
        """
        Args:
            database: where to.
            originals: where the bytes go.
            model: its fingerprint tells whether the same content needs work.
            indices: definitions by name.
            default_ttl_seconds: lifetime where neither upload nor corpus names one; None: for ever.
        """
        self._database = database
        self._originals = originals
        self._model = model
        self._indices = indices
        self._default_ttl_seconds = default_ttl_seconds

    async def accept(
        self, source: DocumentInput, *, corpus_id: UUID, identity: Identity, ttl_seconds: int | None = None
    ) -> Upload:
        """Store document, bytes and job in one transaction; when this returns, all three are there.

        Args:
            source: the document.
            corpus_id: where to.
            identity: who uploads.
            ttl_seconds: lifetime of the document; None: the corpus's, else the default.

        Raises:
            InputError: the lifetime is not positive.
            NotFoundError, PermissionDeniedError, ConflictError: as `require_writable`.
            StoreError: nothing was stored.
        """
        check_ttl(ttl_seconds)
        async with self._database.transaction(identity) as connection:
            corpus = await read_corpus(connection, corpus_id)
            new = self._describe(source, corpus, ttl_seconds, now=await database_now(connection))
            upload, is_new = await accept_upload(connection, identity, self._originals, new)
            if is_new:
                await enqueue(connection, upload.id, identity.user_id)
        log.info("upload_accepted", upload_id=str(upload.id), document_id=str(upload.document_id), new=is_new)
        return upload

    async def retry(self, upload_id: UUID, identity: Identity) -> Upload:
        """Try a failed upload again.

        Raises:
            NotFoundError, PermissionDeniedError, ConflictError: as `retry_upload`.
        """
        async with self._database.transaction(identity) as connection:
            upload = await retry_upload(connection, upload_id)
            await enqueue(connection, upload.id, upload.user_id or identity.user_id)
        return upload

    def _describe(self, source: DocumentInput, corpus: Corpus, ttl_seconds: int | None, *, now: datetime) -> NewUpload:
        index = self._indices.get(corpus.index_name)
        if index is None:
            raise ConflictError(f"The corpus uses the index {corpus.index_name!r}, which is no longer defined.")
        lifetime = ttl_seconds or corpus.ttl_seconds or self._default_ttl_seconds
        file_name = clean_file_name(source.file_name)
        return NewUpload(
            corpus_id=corpus.id,
            name=source.name or file_name,
            file_name=file_name,
            data=source.data,
            content_hash=hashlib.sha256(source.data).hexdigest(),
            fingerprint=self._model.fingerprint(index),
            title=source.title,
            source=source.source,
            tags=source.tags,
            fields=source.fields,
            metadata=source.metadata,
            expires_at=source.expires_at if lifetime is None else now + timedelta(seconds=lifetime),
        )


class UploadJob:
    """What a worker does with a job: claim, work, and write down how it ended."""

    def __init__(self, database: Database, stages: Stages, policy: JobPolicy):
        self._database = database
        self._stages = stages
        self._policy = policy

    async def run(self, *, upload_id: str, user_id: str) -> None:
        """Work on an upload until it is indexed, failed, or put off.

        Raises:
            RetryLaterError: the queue shall run the job again.
        """
        identity = Identity(user_id=UUID(user_id))
        async with self._database.transaction(identity) as connection:
            upload = await claim_upload(connection, UUID(upload_id))
        if upload is None:
            log.info("upload_void", upload_id=upload_id)  # deleted, replaced, finished, or its user has left
            return
        with structlog.contextvars.bound_contextvars(upload_id=upload_id, attempt=upload.attempts):
            if upload.attempts > self._policy.attempts:
                await self._end(upload, identity, GivenUpError("Reading this file failed again and again."))
                return
            try:
                chunks = await self._stages.run(upload, identity)
                log.info("upload_indexed", chunks=chunks)
            except ClaimLostError:
                log.info("upload_claim_lost")
            except asyncio.CancelledError:
                await asyncio.shield(self._put_back(upload, identity))
                raise
            except RagError as error:
                await self._handle(upload, identity, error)
            except psycopg.Error as error:
                # A row that vanished in between (corpus, user) breaks a constraint: then the claim is lost, too.
                log.warning("upload_store_refused", exc_info=error)
                await self._handle(upload, identity, StoreError("The database refused the document."))
            except Exception as error:  # logged; the uploader is told, and the worker lives on
                log.error("upload_failed_unexpectedly", exc_info=error)
                await self._handle(
                    upload, identity, UnexpectedFailureError("The service failed on this file."), retry=True
                )

    async def _handle(self, upload: Upload, identity: Identity, error: RagError, *, retry: bool = False) -> None:
        if not (retry or error.retryable) or upload.attempts >= self._policy.attempts:
            await self._end(upload, identity, error)
            return
        log.warning("upload_postponed", code=error.code, exc_info=error)
        try:
            async with self._database.transaction(identity) as connection:
                await postpone_upload(connection, upload, error)
                now = await database_now(connection)
        except ClaimLostError:
            return
        pause = max(self._policy.pause(upload.attempts), error.retry_after or 0)
        raise RetryLaterError(now + timedelta(seconds=pause))

    async def _end(self, upload: Upload, identity: Identity, error: RagError) -> None:
        log.warning("upload_failed", code=error.code, exc_info=error)
        try:
            async with self._database.transaction(identity) as connection:
                await fail_upload(connection, upload, error)
        except ClaimLostError:
            log.info("upload_claim_lost")

    async def _put_back(self, upload: Upload, identity: Identity) -> None:
        """The worker shuts down: the next one begins at once, and the try does not count."""
        try:
            async with self._database.transaction(identity) as connection:
                await postpone_upload(connection, upload, StoreError("The worker was stopped."), count=False)
        except RagError as error:
            log.warning("upload_not_put_back", exc_info=error)  # the reaper finds it


class _Retry(BaseRetryStrategy):
    """The upload's own state decides about retries; the queue only has to be told when."""

    def get_retry_decision(self, *, exception: BaseException, job: Job) -> RetryDecision | None:
        if isinstance(exception, RetryLaterError):
            return RetryDecision(retry_at=exception.at)
        # Shut down, or the database failed: once more. Attempts are counted with the upload.
        return RetryDecision(retry_at=AT_ONCE)


def build_queue(connector: PsycopgConnector, job: UploadJob) -> App:
    """The queue's application with its one task."""
    app = App(connector=connector)

    async def ingest_upload(*, correlation_id: str = "", **ids: Any) -> None:
        try:
            with correlation(correlation_id or uuid4().hex):
                await job.run(**ids)
        except StoreError:
            await asyncio.sleep(_PAUSE_SECONDS)  # it is due again at once: not as fast as a full disk can refuse
            raise

    app.task(name=TASK, queue=QUEUE, retry=_Retry())(ingest_upload)
    return app

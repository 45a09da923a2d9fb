"""The job of a worker: claim an upload, take it through the Ingestor, and record progress and outcome.

Nothing is written to the corpus before the last transaction, so a worker may die at any point: the next one starts
again, and the old version stays searchable until then.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from uuid import UUID

import psycopg
import structlog
from llama_index.core.schema import BaseNode

from rag_service.domain import Identity
from rag_service.errors import NotFoundError, RagError, StoreError, UnreachableError
from rag_service.indices import IndexDefinition, find_index
from rag_service.ingest.documents import Admitted, write_document
from rag_service.ingest.ingestor import Ingestor
from rag_service.store.corpora import Corpus, lock_corpora, require_writable
from rag_service.store.database import Connection, Database
from rag_service.store.documents.documents import DocumentInput, NewDocument
from rag_service.store.documents.originals import Originals
from rag_service.store.documents.uploads import (
    ClaimLostError,
    Upload,
    UploadStatus,
    claim_upload,
    fail_upload,
    finish_upload,
    hold_claim,
    postpone_upload,
    report_progress,
)
from rag_service.store.rows import database_now, fetch_value
from rag_service.turns import Turns

log = structlog.get_logger(__name__)


@dataclass(frozen=True, kw_only=True)
class WorkerOptions:
    """How a worker works, and how often and how soon it retries."""

    concurrency: int = 2  # documents at a time
    stalled_seconds: float = 30.0  # silence after which others take over; heartbeats come six times as often
    upkeep_seconds: float = 10.0  # between two rounds
    poll_seconds: float = 5.0  # between polls for jobs, if no notification arrives
    restart_seconds: float = 1.0  # pause before another try when the database failed
    grace_seconds: float = 10.0  # for jobs to finish when the worker is stopped
    attempts: int = 5  # including killed workers
    backoff_seconds: float = 2.0  # before the second try; doubles with each
    backoff_max_seconds: float = 300.0

    def pause(self, attempts: int) -> float:
        """Seconds to wait after so many attempts: exponential, capped, with jitter over the upper half."""
        longest = min(self.backoff_max_seconds, self.backoff_seconds * 2.0 ** min(attempts - 1, 30))
        return longest * random.uniform(0.5, 1.0)  # noqa: S311 - not a secret


class RetryLaterError(Exception):
    """Tells the queue when to run the job again; the reason is stored with the upload."""

    def __init__(self, at: datetime):
        super().__init__(f"again at {at.isoformat()}")
        self.at = at  # by the database's clock


class UnexpectedFailureError(RagError):
    """Shown to uploaders when the service itself failed."""

    code = "internal_error"
    help = "Try again. If the problem persists, an administrator can find the cause in the log under the upload's id."


class GivenUpError(RagError):
    code = "given_up"
    help = "Split the file or convert it to another format, and upload it again."


@dataclass(frozen=True)
class UploadJob:
    """Processes uploads; shared by the jobs of a process."""

    database: Database
    originals: Originals
    ingestor: Ingestor
    indices: Mapping[str, IndexDefinition]
    options: WorkerOptions
    turns: Turns = field(init=False)

    def __post_init__(self) -> None:
        limit = self.options.concurrency
        object.__setattr__(self, "turns", Turns("ingestion", limit=limit, share=limit))

    async def run(self, *, upload_id: str, user_id: str) -> None:
        """Process an upload; raises RetryLaterError if the queue must run the job again."""
        identity = Identity(user_id=UUID(user_id))
        async with self.turns.take(identity.user_id):
            await self._run(upload_id, identity)

    async def _run(self, upload_id: str, identity: Identity) -> None:
        async with self.database.transaction(identity) as connection:
            upload = await claim_upload(connection, UUID(upload_id))
        if upload is None:
            log.info("upload_void", upload_id=upload_id)  # deleted, replaced, finished, or its user was removed
            return
        with structlog.contextvars.bound_contextvars(upload_id=upload_id, attempt=upload.attempts):
            if upload.attempts > self.options.attempts:
                await self._end(upload, identity, GivenUpError("Several attempts to process this file failed."))
                return
            try:
                chunks = await self.process(upload, identity)
                log.info("upload_indexed", chunks=chunks)
            except ClaimLostError:
                log.info("upload_claim_lost")
            except asyncio.CancelledError:
                await asyncio.shield(self._put_back(upload, identity))
                raise
            except RagError as error:
                await self._handle(upload, identity, error)
            except psycopg.Error as error:
                # A corpus or user deleted in the meantime breaks a constraint; then the claim is lost too.
                log.warning("upload_store_refused", exc_info=error)
                await self._handle(upload, identity, StoreError("The database refused the document."))
            except Exception as error:  # logged and shown to the uploader; the worker continues
                log.error("upload_failed_unexpectedly", exc_info=error)
                await self._handle(
                    upload, identity, UnexpectedFailureError("The service failed to process this file."), retry=True
                )

    async def process(self, upload: Upload, identity: Identity) -> int:
        """Index a claimed upload; returns its number of chunks.

        Raises:
            ClaimLostError: another worker has the upload, or it was deleted; nothing was written.
            DocumentError, ConflictError, PermissionDeniedError: it cannot be indexed.
            EmbeddingError, StoreError: a retry may succeed; nothing was written.
        """
        corpus, admitted = await self._fetch(upload, identity)

        async def report(status: UploadStatus, done: int, total: int | None) -> None:
            async with self.database.transaction(identity) as connection:
                await report_progress(connection, upload, status, done=done, total=total)
            await self.turns.give_way(identity.user_id)

        async def write(connection: Connection, document: NewDocument, nodes: Sequence[BaseNode]) -> None:
            """Check once more before anything becomes searchable; the locks hold until the commit."""
            await lock_corpora(connection, {str(upload.corpus_id)})
            await _require_corpus(connection, upload)
            expires_at, tags = await hold_claim(connection, upload)
            tags = document.tags if tags == upload.tags else tags  # as given, or as the file says
            await write_document(connection, replace(document, expires_at=expires_at, tags=tags), nodes)
            await finish_upload(connection, upload, chunk_count=len(nodes))

        index = find_index(self.indices, corpus.index_name)
        return await self.ingestor.run_pipeline(
            admitted, write, corpus=corpus, index=index, identity=identity, progress=report
        )

    async def _fetch(self, upload: Upload, identity: Identity) -> tuple[Corpus, Admitted]:
        """Corpus and document; raises ClaimLostError if they were deleted in the meantime."""
        async with self.database.transaction(identity) as connection:
            corpus = await _require_corpus(connection, upload)
            name = await fetch_value(connection, "SELECT name FROM documents WHERE id = %s", [upload.document_id])
            if name is None:
                raise ClaimLostError("The document was deleted.")
            data = await self.originals.read(connection, upload.document_id, upload.content_hash)
        source = DocumentInput(
            data=data,
            file_name=upload.file_name,
            name=name,
            title=upload.title,
            source=upload.source,
            tags=upload.tags,
            fields=upload.fields,
            metadata=upload.metadata,
            expires_at=upload.expires_at,
        )
        return corpus, Admitted(
            source=source,
            corpus_id=corpus.id,
            document_id=upload.document_id,
            name=name,
            content_hash=upload.content_hash,
            fingerprint=self.ingestor.fingerprint(find_index(self.indices, corpus.index_name)),
            replaces=True,
        )

    async def _handle(self, upload: Upload, identity: Identity, error: RagError, *, retry: bool = False) -> None:
        is_down = isinstance(error, UnreachableError)  # an outage, however long, is not the document's fault
        if not is_down and (not (retry or error.retryable) or upload.attempts >= self.options.attempts):
            await self._end(upload, identity, error)
            return
        log.warning("upload_postponed", code=error.code, exc_info=error)
        while True:
            try:
                async with self.database.transaction(identity) as connection:
                    await postpone_upload(connection, upload, error, count=not is_down)
                    now = await database_now(connection)
                break
            except ClaimLostError:
                return
            except StoreError as failure:  # else the next claim would count what was an outage
                log.warning("upload_not_postponed", exc_info=failure)
                await asyncio.sleep(self.options.restart_seconds)
        pause = max(self.options.pause(upload.attempts), error.retry_after or 0)
        raise RetryLaterError(now + timedelta(seconds=pause))

    async def _end(self, upload: Upload, identity: Identity, error: RagError) -> None:
        log.warning("upload_failed", code=error.code, exc_info=error)
        try:
            async with self.database.transaction(identity) as connection:
                await fail_upload(connection, upload, error)
        except ClaimLostError:
            log.info("upload_claim_lost")

    async def _put_back(self, upload: Upload, identity: Identity) -> None:
        """On shutdown: the next worker starts at once, and the attempt does not count."""
        try:
            async with self.database.transaction(identity) as connection:
                await postpone_upload(connection, upload, StoreError("The worker was stopped."), count=False)
        except RagError as error:
            log.warning("upload_not_put_back", exc_info=error)  # upkeep finds it


async def _require_corpus(connection: Connection, upload: Upload) -> Corpus:
    try:
        return await require_writable(connection, upload.corpus_id)
    except NotFoundError as error:
        raise ClaimLostError("The corpus was deleted.") from error

"""Progress of uploads, by polling or as events, and their retry."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING
from uuid import UUID

from litestar import Controller, Response, get, post
from litestar.enums import MediaType

from rag_service.api.corpora.schemas import ProgressBody, UploadBody
from rag_service.api.http.access import Caller, CallerDependency
from rag_service.api.http.bodies import AnyRequest
from rag_service.api.http.documentation import problems
from rag_service.api.http.events import WireEvent
from rag_service.api.http.presenters import present
from rag_service.api.http.problems import report
from rag_service.api.http.services import ServicesDependency
from rag_service.api.http.streaming import stream_events
from rag_service.domain import Identity
from rag_service.readers.common.names import clean_file_name
from rag_service.store.documents.uploads import Upload, read_upload

if TYPE_CHECKING:  # loads LlamaIndex
    from rag_service.ingest.postponed import Postponed

_POLL_SECONDS = 0.3  # between two looks at an upload that is watched


class UploadsController(Controller):
    """One upload. Visible to users with write access to its corpus."""

    path = "/api/v1/uploads/{upload_id:uuid}"
    tags = ["Documents"]

    @get(summary="Read the progress of an upload", responses=problems(401, 403, 404, 500))
    async def read(self, upload_id: UUID, caller: CallerDependency) -> UploadBody:
        return present_upload(await caller.run(read_upload, upload_id))

    @get(
        "/events",
        media_type=MediaType.JSON,
        summary="Stream the progress of an upload",
        description="A `status` event for each change; the last one is `indexed` or `failed`. Server-sent "
        "events, or NDJSON depending on `Accept`. If the upload is deleted or the key revoked meanwhile, `error` with "
        "a problem is sent.",
        responses=problems(401, 403, 404, 500),
    )
    async def watch(
        self, upload_id: UUID, request: AnyRequest, caller: CallerDependency, services: ServicesDependency
    ) -> Response[None]:
        first = await caller.run(read_upload, upload_id)
        authenticate = partial(services.authenticate, request.headers)
        return stream_events(_watch(caller, first, authenticate), request, caller.tenancy.settings)

    @post("/retry", status_code=202, summary="Retry a failed upload", responses=problems(401, 403, 404, 409, 500))
    async def retry(self, upload_id: UUID, caller: CallerDependency) -> UploadBody:
        upload = await caller.run(read_upload, upload_id)
        await caller.run(caller.check_writable, upload.corpus_id)
        return present_upload(await caller.tenancy.uploads.retry(upload_id, caller.identity))


async def _watch(
    caller: Caller, upload: Upload, authenticate: Callable[[], Awaitable[Identity]]
) -> AsyncGenerator[WireEvent, None]:
    """The upload at each change, until it is indexed or failed, or the caller's credential ends.

    An upload may wait for hours, and nothing else would end the stream of a revoked key.
    """
    try:
        while True:
            yield WireEvent("status", present_upload(upload))
            before = upload
            while not upload.status.final and upload.updated_at == before.updated_at:
                await asyncio.sleep(_POLL_SECONDS)
                await authenticate()
                upload = await caller.run(read_upload, upload.id)
            if before.status.final:
                return
    except Exception as error:  # noqa: BLE001 - logged, and told to the client as far as it may know
        yield WireEvent("error", report(error))


def present_postponed(postponed: Postponed) -> UploadBody:
    now = datetime.now(UTC)
    return UploadBody(
        upload_id=postponed.id,
        document_id=None,
        corpus_id=postponed.corpus_id,
        file_name=clean_file_name(postponed.source.file_name),
        status="pending",
        code="indexing_unavailable",
        reason="The database cannot be reached. The file is kept, and indexed when the database is back.",
        progress=ProgressBody(done=0, total=None),
        attempts=0,
        size_bytes=len(postponed.source.data),
        expires_at=None,
        created_at=now,
        updated_at=now,
    )


def present_upload(upload: Upload) -> UploadBody:
    return present(UploadBody, upload, upload_id=upload.id, progress=upload)

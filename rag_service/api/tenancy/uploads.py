"""How uploads fare: by polling, as events, and another try. Requirement C6."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any, cast
from uuid import UUID

from litestar import Controller, Response, get, post
from litestar.enums import MediaType

from rag_service.api.services import IdentityDependency
from rag_service.api.tenancy.fields import present
from rag_service.api.tenancy.schemas_corpora import ProgressBody, UploadBody
from rag_service.api.tenancy.services import TenancyDependency, TenancyServices, check_corpus_scope
from rag_service.api.wire.bodies import AnyRequest
from rag_service.api.wire.documentation import problems
from rag_service.api.wire.events import WireEvent
from rag_service.api.wire.problems import report
from rag_service.api.wire.streaming import EventStreamResponse, choose_encoder
from rag_service.domain import Identity
from rag_service.store.corpora import read_corpus
from rag_service.store.documents.uploads import Upload, read_upload

_LOOK_SECONDS = 0.3  # between two looks at an upload that is watched


class UploadsController(Controller):
    """One upload. Visible to those who may write to its corpus."""

    path = "/api/v1/uploads/{upload_id:uuid}"
    tags = ["Documents"]  # noqa: RUF012 - Litestar's way

    @get(summary="Progress of an upload", responses=problems(401, 403, 404, 500))
    async def read(self, upload_id: UUID, tenancy: TenancyDependency, identity: IdentityDependency) -> UploadBody:
        return present_upload(await _read(tenancy, identity, upload_id))

    @get(
        "/events",
        media_type=MediaType.JSON,
        summary="Progress of an upload as events",
        description="`status` at each change, the last one `indexed` or `failed`. Server-sent events, or NDJSON by "
        "`Accept`. `error` with a problem when the upload is deleted meanwhile.",
        responses=problems(401, 403, 404, 500),
    )
    async def watch(
        self, upload_id: UUID, request: AnyRequest, tenancy: TenancyDependency, identity: IdentityDependency
    ) -> Response[None]:
        first = await _read(tenancy, identity, upload_id)
        return EventStreamResponse(
            _watch(tenancy, identity, first),
            encoder=choose_encoder(request),
            heartbeat_seconds=tenancy.settings.heartbeat_seconds,
        )

    @post("/retry", status_code=202, summary="Try a failed upload again", responses=problems(401, 403, 404, 409, 500))
    async def retry(self, upload_id: UUID, tenancy: TenancyDependency, identity: IdentityDependency) -> UploadBody:
        upload = await _read(tenancy, identity, upload_id)
        async with tenancy.transaction(identity) as connection:
            check_corpus_scope(identity, await read_corpus(connection, upload.corpus_id))
        return present_upload(await tenancy.uploads.retry(upload_id, identity))


async def _read(tenancy: TenancyServices, identity: Identity, upload_id: UUID) -> Upload:
    async with tenancy.transaction(identity) as connection:
        return await read_upload(connection, upload_id)


async def _watch(tenancy: TenancyServices, identity: Identity, upload: Upload) -> AsyncGenerator[WireEvent, None]:
    """The upload at each change, until it is indexed or failed."""
    try:
        while True:
            yield _event("status", present_upload(upload))
            before = upload
            while not upload.status.final and upload.updated_at == before.updated_at:
                await asyncio.sleep(_LOOK_SECONDS)
                upload = await _read(tenancy, identity, upload.id)
            if before.status.final:
                return
    except Exception as error:  # noqa: BLE001 - logged, and told to the client as far as it may know
        yield _event("error", report(error))


def _event(name: str, data: Any) -> WireEvent:
    # WireEvent names the events of an answer; these travel the same way.
    return WireEvent(cast("Any", name), data)


def status_url(upload_id: UUID) -> str:
    """Where an upload's progress shows."""
    return f"/api/v1/uploads/{upload_id}"


def present_upload(upload: Upload) -> UploadBody:
    return present(
        UploadBody,
        upload,
        upload_id=upload.id,
        status=upload.status.value,
        progress=ProgressBody(done=upload.done, total=upload.total),
    )

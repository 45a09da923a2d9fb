"""Documents of a corpus: uploaded, listed, opened, taken apart, deleted. Requirements C6 and C9."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import quote
from uuid import UUID

from litestar import Controller, Response, Router, delete, get, patch, post

from rag_service.api.ingest import _FORM_OVERHEAD, _FORM_SCHEMA, _TEXT_FIELDS, _from_form, _from_text
from rag_service.api.services import IdentityDependency
from rag_service.api.tenancy.fields import present, present_page, read_slice
from rag_service.api.tenancy.schemas_corpora import (
    ChunkBody,
    ChunkList,
    DocumentBody,
    DocumentList,
    DocumentUpdate,
    ProgressBody,
    SpanBody,
    UploadBody,
    UploadRequest,
)
from rag_service.api.tenancy.services import TenancyDependency, TenancyServices, check_corpus_scope
from rag_service.api.tenancy.uploads import present_upload, status_url
from rag_service.api.wire.bodies import AnyRequest, read_json
from rag_service.api.wire.documentation import accepts, problems
from rag_service.api.wire.forms import FORM, MEGABYTE, read_form
from rag_service.api.wire.presenters import present_location
from rag_service.api.wire.problems import ContentTypeError, FieldError, InvalidRequestError
from rag_service.settings import Settings
from rag_service.store.clock import database_now
from rag_service.store.corpora import check_ttl, read_corpus
from rag_service.store.documents.catalogue import (
    StoredChunk,
    StoredDocument,
    list_chunks,
    list_documents,
    read_document,
    remove_document,
    set_expiry,
)
from rag_service.store.documents.originals import OriginalKey
from rag_service.store.session import Connection

if TYPE_CHECKING:
    from rag_service.ingest.pipeline import DocumentInput

_TTL = "ttlSeconds"
_UPLOAD_SCHEMA = {
    **_FORM_SCHEMA,
    "properties": {
        **_FORM_SCHEMA["properties"],  # type: ignore[dict-item]  # a JSON schema
        _TTL: {"type": "integer", "minimum": 1, "description": "Lifetime in seconds."},
    },
}


class CorpusDocumentsController(Controller):
    """Documents of one corpus."""

    path = "/api/v1/corpora/{corpus_id:uuid}/documents"
    tags = ["Documents"]  # noqa: RUF012 - Litestar's way

    @get(summary="List documents", responses=problems(400, 401, 403, 404, 500))
    async def list_all(
        self, corpus_id: UUID, request: AnyRequest, tenancy: TenancyDependency, identity: IdentityDependency
    ) -> DocumentList:
        """Newest first, with the state of their newest uploads. Query: `offset`, `limit`."""
        part = read_slice(request)
        async with tenancy.transaction(identity) as connection:
            corpus = await read_corpus(connection, corpus_id)
            page = await list_documents(connection, corpus_id, part)
        return DocumentList(
            **present_page(page, partial(_present, fingerprint=tenancy.fingerprints.get(corpus.index_name)))
        )

    @post(
        status_code=202,
        summary="Upload a document",
        description="A file as multipart/form-data, or a text as JSON. The reply comes when it is safely stored; "
        "`Location` is where its progress shows. The same content is not indexed twice; the same file name replaces "
        "the document in one step, when the new version is indexed.",
        operation_class=accepts(UploadRequest, form=_UPLOAD_SCHEMA),
        responses=problems(400, 401, 403, 404, 408, 409, 413, 415, 500),
    )
    async def upload(
        self, corpus_id: UUID, request: AnyRequest, tenancy: TenancyDependency, identity: IdentityDependency
    ) -> Response[UploadBody]:
        source, ttl_seconds = await _read_upload(request, tenancy.settings)
        async with tenancy.transaction(identity) as connection:
            check_corpus_scope(identity, await read_corpus(connection, corpus_id))
        upload = await tenancy.uploads.accept(source, corpus_id=corpus_id, identity=identity, ttl_seconds=ttl_seconds)
        return Response(present_upload(upload), status_code=202, headers={"Location": status_url(upload.id)})


class DocumentsController(Controller):
    """One document."""

    path = "/api/v1/documents/{document_id:uuid}"
    tags = ["Documents"]  # noqa: RUF012 - Litestar's way

    @get(summary="Read a document's description", responses=problems(401, 403, 404, 500))
    async def read(self, document_id: UUID, tenancy: TenancyDependency, identity: IdentityDependency) -> DocumentBody:
        async with tenancy.transaction(identity) as connection:
            return await _read(connection, document_id, tenancy)

    @get("/original", summary="Download the original", responses=problems(401, 403, 404, 500))
    async def download(
        self, document_id: UUID, tenancy: TenancyDependency, identity: IdentityDependency
    ) -> Response[bytes]:
        """The file as it was uploaded, in the version that is searched."""
        async with tenancy.transaction(identity) as connection:
            document = await read_document(connection, document_id)
            key = OriginalKey(document_id=document.id, content_hash=document.content_hash)
            data = await tenancy.originals.read(connection, key)
        # An attachment, whatever it is: a page or script from a document must never run as ours.
        name = quote(document.file_name or document.name, safe="")
        return Response(
            data,
            media_type=document.media_type or "application/octet-stream",
            headers={"Content-Disposition": f"attachment; filename*=UTF-8''{name}"},
        )

    @get("/chunks", summary="List a document's chunks", responses=problems(400, 401, 403, 404, 500))
    async def chunks(
        self, document_id: UUID, request: AnyRequest, tenancy: TenancyDependency, identity: IdentityDependency
    ) -> ChunkList:
        """In order, each with its places. Query: `offset`, `limit`."""
        part = read_slice(request)
        async with tenancy.transaction(identity) as connection:
            await read_document(connection, document_id)
            page = await list_chunks(connection, document_id, part)
        return ChunkList(**present_page(page, _present_chunk))

    @patch(
        summary="Set when a document expires",
        operation_class=accepts(DocumentUpdate),
        responses=problems(400, 401, 403, 404, 500),
    )
    async def update(
        self, document_id: UUID, request: AnyRequest, tenancy: TenancyDependency, identity: IdentityDependency
    ) -> DocumentBody:
        seconds = (await read_json(request, DocumentUpdate)).ttl_seconds
        check_ttl(seconds)
        async with tenancy.transaction(identity) as connection:
            expires_at = None if seconds is None else await database_now(connection) + timedelta(seconds=seconds)
            document = await read_document(connection, document_id)
            check_corpus_scope(identity, await read_corpus(connection, document.corpus_id))
            await set_expiry(connection, document_id, expires_at)
            return await _read(connection, document_id, tenancy)

    @delete(summary="Delete a document", responses=problems(401, 403, 404, 500))
    async def remove(self, document_id: UUID, tenancy: TenancyDependency, identity: IdentityDependency) -> None:
        """From then on nothing of it is found; what waits to be indexed is void."""
        async with tenancy.transaction(identity) as connection:
            document = await read_document(connection, document_id)
            check_corpus_scope(identity, await read_corpus(connection, document.corpus_id))
            await remove_document(connection, document_id)


def documents_router(settings: Settings) -> Router:
    """The routes for documents, with room for one of the largest size."""
    return Router(
        "/",
        route_handlers=[CorpusDocumentsController, DocumentsController],
        request_max_body_size=settings.upload_max_mb * MEGABYTE + _FORM_OVERHEAD,
    )


async def _read_upload(request: AnyRequest, settings: Settings) -> tuple[DocumentInput, int | None]:
    """The document and its lifetime in seconds."""
    media_type = request.content_type[0]
    if media_type == FORM:
        form = await read_form(
            request,
            file_field="file",
            text_fields=_TEXT_FIELDS | {_TTL},
            file_limit=settings.upload_max_mb * MEGABYTE,
        )
        return _from_form(form), _read_ttl(form.texts.get(_TTL, []))
    if media_type.endswith("json"):
        body = await read_json(request, UploadRequest)
        return _from_text(body), body.ttl_seconds
    raise ContentTypeError(f"The body must be {FORM} with a file, or application/json with a text.")


def _read_ttl(values: list[str]) -> int | None:
    if not values:
        return None
    text = values[0].strip()
    if len(values) > 1 or not text.lstrip("-").isdigit() or not text.isascii() or len(text) > 12:
        raise InvalidRequestError([FieldError(_TTL, "must be a whole number of seconds, sent once")])
    return int(text)


async def _read(connection: Connection, document_id: UUID, tenancy: TenancyServices) -> DocumentBody:
    document = await read_document(connection, document_id)
    corpus = await read_corpus(connection, document.corpus_id)
    return _present(document, fingerprint=tenancy.fingerprints.get(corpus.index_name))


def _present(document: StoredDocument, *, fingerprint: str | None) -> DocumentBody:
    """`fingerprint` is that of the corpus's index; None where the index is no longer defined."""
    values: dict[str, Any] = {
        "stale": bool(document.fingerprint) and fingerprint is not None and document.fingerprint != fingerprint,
        "status": document.status.value,
        "fields": dict(document.fields),
        "progress": ProgressBody(done=document.done, total=document.total),
    }
    return present(DocumentBody, document, **values)


def _present_chunk(chunk: StoredChunk) -> ChunkBody:
    spans = [SpanBody(start=span.start, end=span.end, location=present_location(span.location)) for span in chunk.spans]
    return present(ChunkBody, chunk, spans=spans)

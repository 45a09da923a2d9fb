"""Files: documents, of which those in no vector store yet are held and not searched.

See https://platform.openai.com/docs/api-reference/files.
"""

from __future__ import annotations

from typing import Annotated
from urllib.parse import quote

from litestar import Controller, Response, delete, get, post
from msgspec import Meta, Struct

from rag_service.api.http.access import CallerDependency
from rag_service.api.http.bodies import AnyRequest
from rag_service.api.http.documentation import accepts_form, takes_query
from rag_service.api.http.fields import check_texts
from rag_service.api.http.forms import FORM, MEGABYTE, Form, read_form
from rag_service.api.http.problems import ContentTypeError, FieldError, InvalidRequestError
from rag_service.api.openai.errors import errors
from rag_service.api.openai.listing import Deleted, ListBody, cut_page, describe_page, read_id, read_page
from rag_service.readers.common.names import clean_file_name
from rag_service.store.documents.catalogue import (
    ANY_PURPOSE,
    PURPOSE,
    FileChoice,
    StoredDocument,
    list_files,
    read_document,
    remove_document,
)
from rag_service.store.documents.uploads import UploadStatus

PURPOSES = (ANY_PURPOSE, "user_data")
_ANCHOR, _SECONDS = "expires_after[anchor]", "expires_after[seconds]"
_FORM = {
    "type": "object",
    "required": ["file", "purpose"],
    "properties": {
        "file": {"type": "string", "format": "binary"},
        "purpose": {"type": "string", "enum": list(PURPOSES)},
        _ANCHOR: {"type": "string", "enum": ["created_at"]},
        _SECONDS: {"type": "integer", "minimum": 1, "description": "Lifetime."},
    },
}
_STATUS = {UploadStatus.INDEXED: "processed", UploadStatus.FAILED: "error"}


class FileBody(Struct, kw_only=True, frozen=True):
    id: Annotated[str, Meta(description="Id of the document.")]
    bytes: int
    created_at: Annotated[int, Meta(description="Since when it is in its vector store, or held.")]
    expires_at: int | None
    filename: str
    purpose: str
    status: Annotated[str, Meta(description="uploaded, processed or error.")]
    status_details: str | None
    object: str = "file"


class FileList(ListBody, kw_only=True, frozen=True):
    data: list[FileBody]


class FilesController(Controller):
    """Every document that the caller can read is a file."""

    path = "/files"

    @get(
        summary="List files (OpenAI-compatible)",
        operation_class=takes_query(
            **describe_page(limit=1000, most=10_000), purpose={"description": "Only files uploaded with this purpose."}
        ),
        responses=errors(400, 401, 500),
    )
    async def list_all(self, request: AnyRequest, caller: CallerDependency) -> FileList:
        """Newest first."""
        asked = read_page(request, "purpose", limit=1000, most=10_000)
        purpose = request.query_params.get("purpose")
        check_texts(required={}, optional={"purpose": purpose})
        choice = FileChoice(
            purpose=purpose,
            limit=asked.limit,
            after=asked.after,
            oldest_first=asked.oldest_first,
        )
        files, page = cut_page(await caller.run(list_files, choice), asked)
        return FileList(data=list(map(present_file, files)), **page)

    @post(
        status_code=200,
        summary="Upload a file (OpenAI-compatible)",
        operation_class=accepts_form(_FORM),
        responses=errors(400, 401, 403, 413, 415, 500, 503),
    )
    async def upload(self, request: AnyRequest, caller: CallerDependency) -> FileBody:
        """It is kept, and searched once it is in a vector store."""
        from rag_service.store.documents.documents import DocumentInput  # loads LlamaIndex

        settings = caller.tenancy.settings
        if request.content_type[0] != FORM:
            raise ContentTypeError(f"The body must be {FORM} with a file.")
        form = await read_form(
            request,
            file_field="file",
            text_fields=frozenset({"purpose", _ANCHOR, _SECONDS}),
            file_limit=settings.uploads.max_mb * MEGABYTE,
        )
        purpose, seconds = _check_form(form)
        file_id = await caller.tenancy.uploads.hold(
            DocumentInput(
                data=form.file or b"", file_name=clean_file_name(form.file_name or ""), metadata={PURPOSE: purpose}
            ),
            caller.identity,
            index_name=settings.indices.default,
            ttl_seconds=seconds,
        )
        return present_file(await caller.run(read_document, file_id))

    @get("/{document_id:str}", summary="Read a file's data (OpenAI-compatible)", responses=errors(401, 404, 500))
    async def read(self, document_id: str, caller: CallerDependency) -> FileBody:
        return present_file(await caller.run(read_document, read_id(document_id, "file")))

    @get("/{document_id:str}/content", summary="Download a file (OpenAI-compatible)", responses=errors(401, 404, 500))
    async def download(self, document_id: str, request: AnyRequest, caller: CallerDependency) -> Response[bytes]:
        file_id = read_id(document_id, "file")
        turns = request.app.state.services.turns.originals
        async with turns.take(caller.identity.user_id), caller.transaction() as connection:
            document = await read_document(connection, file_id)
            data = await caller.tenancy.originals.read(connection, file_id, document.content_hash)
        name = quote(document.file_name or document.name, safe="")
        headers = {  # an attachment in a sandbox: a page or script from a document must never run as ours
            "Content-Disposition": f"attachment; filename*=UTF-8''{name}",
            "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'; sandbox",
        }
        return Response(data, media_type="application/octet-stream", headers=headers)

    @delete(
        "/{document_id:str}",
        status_code=200,
        summary="Delete a file (OpenAI-compatible)",
        responses=errors(401, 403, 404, 500),
    )
    async def remove(self, document_id: str, caller: CallerDependency) -> Deleted:
        """Also from its vector store; what waits to be indexed is discarded."""
        file_id = read_id(document_id, "file")
        async with caller.transaction() as connection:
            document = await read_document(connection, file_id)
            await caller.check_writable(connection, document.corpus_id)
            await remove_document(connection, file_id)
        return Deleted(id=str(file_id), object="file")


def _check_form(form: Form) -> tuple[str, int | None]:
    """Purpose and lifetime in seconds. Raises InvalidRequestError."""
    given = {name: values[-1].strip() for name, values in form.texts.items()}
    wrong = [] if form.file_name is not None else [FieldError("file", "is required")]
    if given.get("purpose") not in PURPOSES:
        wrong.append(FieldError("purpose", f"must be {' or '.join(PURPOSES)}: files are only kept to be searched"))
    if given.get(_ANCHOR, "created_at") != "created_at":
        wrong.append(FieldError(_ANCHOR, "must be created_at"))
    seconds = given.get(_SECONDS)
    if seconds is not None and not (seconds.isascii() and seconds.isdigit() and 0 < int(seconds[:11]) < 2**31):
        wrong.append(FieldError(_SECONDS, "must be a whole number of seconds, 1 or more"))
    if wrong:
        raise InvalidRequestError(wrong)
    return given["purpose"], None if seconds is None else int(seconds)


def present_file(document: StoredDocument) -> FileBody:
    purpose = document.metadata.get(PURPOSE)
    return FileBody(
        id=str(document.id),
        bytes=document.size_bytes,
        created_at=int(document.created_at.timestamp()),
        expires_at=None if document.expires_at is None else int(document.expires_at.timestamp()),
        filename=document.file_name or document.name,
        purpose=purpose if purpose in PURPOSES else ANY_PURPOSE,
        status=_STATUS.get(document.status, "uploaded"),
        status_details=document.reason if document.status is UploadStatus.FAILED else None,
    )

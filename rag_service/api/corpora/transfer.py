"""Whole corpora as files: exported, and imported."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import quote
from uuid import UUID

from litestar import Response, Router, get, post
from msgspec import Struct

from rag_service.api.corpora.corpora import present_corpus
from rag_service.api.corpora.schemas import ImportBody
from rag_service.api.http.access import Caller, CallerDependency, require_scope
from rag_service.api.http.bodies import AnyRequest, convert
from rag_service.api.http.documentation import accepts_form, problems
from rag_service.api.http.fields import check_texts
from rag_service.api.http.forms import FORM, MEGABYTE, read_form
from rag_service.api.http.presenters import present
from rag_service.api.http.problems import ContentTypeError, FieldError, InvalidRequestError, RequestTooLargeError
from rag_service.api.http.schemas import Name
from rag_service.api.http.streaming import DownloadResponse, unless_gone
from rag_service.auth.authenticator import scopes_of
from rag_service.domain import CorpusKind
from rag_service.errors import ArchiveTooLargeError, TooLargeError
from rag_service.settings import Settings
from rag_service.store.accounts.keys import Scope
from rag_service.store.corpora import read_corpus

if TYPE_CHECKING:  # loads LlamaIndex
    from rag_service.ingest.transfer.importing import Imported

MEDIA_TYPE = "application/x-tar"
_FORM_OVERHEAD = 500_000  # bytes of a form besides its file
_NAME = {"type": "string", "maxLength": 200, "description": "Name of the new corpus. Default: as in the file."}
_INDEX = {"type": "string", "description": "Index of the new corpus. Default: as in the file."}
_KIND = {
    "type": "string",
    "enum": ["global", "personal"],
    "description": "Default: as in the file for administrators, else personal.",
}
_ACCESS = {
    "type": "string",
    "enum": ["keep", "default"],
    "description": "`keep`: a global corpus is shared, and with the same groups, as in the file. Default: only"
    " administrators can read it.",
}
FORM_SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["file"],
    "properties": {
        "file": {"type": "string", "format": "binary", "description": "An exported corpus."},
        "name": _NAME,
        "kind": _KIND,
        "index": _INDEX,
        "access": _ACCESS,
    },
}


class ImportFields(Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """The text fields of the form."""

    name: Name | None = None
    kind: Literal["global", "personal"] | None = None
    index: str | None = None
    access: Literal["keep", "default"] = "default"


def transfer_router(settings: Settings) -> Router:
    """The routes, which take files of the maximum size of an import."""
    return Router(
        "/",
        route_handlers=[export_corpus, import_corpus],
        request_max_body_size=settings.uploads.import_max_mb * MEGABYTE + _FORM_OVERHEAD,
    )


@get(
    "/api/v1/corpora/{corpus_id:uuid}/export",
    tags=["Corpora"],
    summary="Export a corpus",
    responses=problems(401, 403, 404, 500),
)
async def export_corpus(corpus_id: UUID, caller: CallerDependency) -> Response[bytes]:
    """One file with its documents as they are now, their originals, tables and vectors, and its settings; a tar file.
    For those who may change the corpus."""
    async with caller.transaction() as connection:
        corpus = await read_corpus(connection, corpus_id)
        await caller.check_writable(connection, corpus_id)
    pieces = caller.tenancy.transfers.export(corpus_id, caller.identity)
    name = quote(f"{corpus.name}.tar", safe="")
    return DownloadResponse(pieces, media_type=MEDIA_TYPE, disposition=f"attachment; filename*=UTF-8''{name}")


@post(
    "/api/v1/corpora/import",
    tags=["Corpora"],
    summary="Import a corpus",
    operation_class=accepts_form(FORM_SCHEMA),
    responses=problems(400, 401, 403, 408, 409, 413, 415, 500, 507),
)
async def import_corpus(request: AnyRequest, caller: CallerDependency) -> ImportBody:
    """An exported corpus becomes a new one of the caller. Texts are embedded again if the file has the vectors of
    another model. Nothing is stored if the file is damaged, or the client disconnects before the reply."""
    from rag_service.ingest.transfer.importing import ImportOptions

    if request.content_type[0] != FORM:
        raise ContentTypeError(f"The body must be {FORM} with a file.")
    transfers = caller.tenancy.transfers
    user = caller.identity.user_id
    with transfers.receiving.admit(user), transfers.open_file() as file:
        limit = caller.tenancy.settings.uploads.import_max_mb
        too_large = ArchiveTooLargeError(f"The file is larger than {limit} MB.", field="file")
        names = frozenset(ImportFields.__struct_fields__)
        try:
            form = await read_form(
                request, file_field="file", text_fields=names, file_limit=limit * MEGABYTE, into=file
            )
        except (TooLargeError, RequestTooLargeError) as error:
            raise too_large from error
        if form.file_name is None:
            raise InvalidRequestError([FieldError("file", "is required")])
        if repeated := [name for name, values in form.texts.items() if len(values) > 1]:
            raise InvalidRequestError([FieldError(name, "must be sent once") for name in repeated])
        texts = {name: values[0].strip() for name, values in form.texts.items()}
        fields = convert({name: text for name, text in texts.items() if text}, ImportFields)
        check_texts(required={}, optional={"name": fields.name})
        options = ImportOptions(
            name=fields.name,
            kind=_choose_kind(fields, caller),
            index_name=fields.index,
            keep_access=fields.access == "keep",
        )

        async def work() -> Imported:
            async with transfers.turns.take(user):  # not before: a body may take hours
                return await transfers.imports.read(file, caller.identity, options)

        return present_import(await unless_gone(request.receive, work()))


def _choose_kind(fields: ImportFields, caller: Caller) -> CorpusKind | None:
    """None: as in the file. A key without the scope of administrators makes personal corpora only."""
    if fields.kind == CorpusKind.GLOBAL.value:
        require_scope(caller.identity, Scope.ADMIN)
        return CorpusKind.GLOBAL
    return CorpusKind.PERSONAL if fields.kind or Scope.ADMIN not in scopes_of(caller.identity) else None


def present_import(imported: Imported) -> ImportBody:
    return present(ImportBody, imported, corpus=present_corpus(imported.corpus))

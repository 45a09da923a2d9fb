"""Documents into the default corpus: requirement A10."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import msgspec
from litestar import Router, post

from rag_service.api.services import IdentityDependency, ServicesDependency
from rag_service.api.wire.bodies import AnyRequest, decode, read_json
from rag_service.api.wire.documentation import accepts, problems
from rag_service.api.wire.forms import FORM, MEGABYTE, Form, read_form, split_values
from rag_service.api.wire.presenters import find_nul, is_blank
from rag_service.api.wire.problems import ContentTypeError, FieldError, InvalidRequestError
from rag_service.api.wire.schemas import MAX_CHARS, MAX_TAGS, IngestBody, IngestRequest
from rag_service.settings import Settings

if TYPE_CHECKING:
    from rag_service.ingest.pipeline import DocumentInput

_METADATA_BYTES = 64_000
_METADATA_DEPTH = 8
_LARGEST_INTEGER = 2**63
_FORM_OVERHEAD = 500_000  # bytes of a form besides its file: fields, boundaries
_TEXT_FIELDS = frozenset({"title", "source", "tags", "metadata"})
_FORM_SCHEMA = {
    "type": "object",
    "required": ["file"],
    "properties": {
        "file": {"type": "string", "format": "binary", "description": "PDF, DOCX, XLSX, CSV, Markdown or plain text."},
        "title": {"type": "string", "maxLength": MAX_CHARS},
        "source": {"type": "string", "maxLength": MAX_CHARS},
        "tags": {"type": "string", "description": "Separated by commas; may be repeated."},
        "metadata": {"type": "string", "description": "A JSON object."},
    },
}


def ingest_router(settings: Settings) -> Router:
    """POST /api/ingest, with room for a document of the largest size."""
    return Router(
        "/api", route_handlers=[ingest], request_max_body_size=settings.upload_max_mb * MEGABYTE + _FORM_OVERHEAD
    )


@post(
    "/ingest",
    tags=["Documents"],
    summary="Store a document",
    description="A file as multipart/form-data, or a text as JSON. The same content is not stored twice; the same "
    "file name replaces the document.",
    operation_class=accepts(IngestRequest, form=_FORM_SCHEMA),
    responses=problems(400, 401, 403, 408, 413, 415, 500),
)
async def ingest(request: AnyRequest, services: ServicesDependency, identity: IdentityDependency) -> IngestBody:
    # A client that leaves does not stop it: the document is complete, and storing it is idempotent.
    done = await services.ingest(await _read_document(request, services.settings), identity)
    return IngestBody(document_id=done.document_id, outcome=done.outcome.value, chunk_count=done.chunk_count)


async def _read_document(request: AnyRequest, settings: Settings) -> DocumentInput:
    media_type = request.content_type[0]
    if media_type == FORM:
        limit = settings.upload_max_mb * MEGABYTE
        form = await read_form(request, file_field="file", text_fields=_TEXT_FIELDS, file_limit=limit)
        return _from_form(form)
    if media_type.endswith("json"):
        return _from_text(await read_json(request, IngestRequest))
    raise ContentTypeError(f"The body must be {FORM} with a file, or application/json with a text.")


def _from_form(form: Form) -> DocumentInput:
    from rag_service.ingest.pipeline import DocumentInput  # loads LlamaIndex

    errors = [] if form.file is not None else [FieldError("file", "is required")]
    title, source, metadata = (form.texts.get(name, []) for name in ("title", "source", "metadata"))
    tags = tuple(split_values(form.texts.get("tags", [])))
    for name, values in (("title", title), ("source", source), ("metadata", metadata)):
        if len(values) > 1:
            errors.append(FieldError(name, "must be sent once"))
    for name, texts in (("title", title), ("source", source), ("tags", tags)):
        if any(len(value) > MAX_CHARS for value in texts):
            errors.append(FieldError(name, f"must have at most {MAX_CHARS} characters"))
    if len(tags) > MAX_TAGS:
        errors.append(FieldError("tags", f"must have at most {MAX_TAGS} items"))
    if errors:
        raise InvalidRequestError(errors)
    written = next(iter(metadata), "").strip()
    decoded: dict[str, Any] = decode(written.encode(), dict, name="metadata") if written else {}
    _check({"title": title, "source": source, "tags": tags}, decoded)
    return DocumentInput(
        data=form.file or b"",
        file_name=form.file_name or "",
        title=next(iter(title), "").strip() or None,
        source=next(iter(source), "").strip() or None,
        tags=tags,
        metadata=decoded,
    )


def _from_text(body: IngestRequest) -> DocumentInput:
    from rag_service.ingest.pipeline import DocumentInput  # loads LlamaIndex

    if is_blank(body.text):
        raise InvalidRequestError([FieldError("text", "must not be empty")])
    texts = {"title": [body.title or ""], "source": [body.source or ""], "tags": body.tags}
    _check({**texts, "fileName": [body.file_name or ""]}, body.metadata)
    data = body.text.encode()
    # Without a file name the content is the name: texts of equal titles do not replace each other.
    name = None if body.file_name else f"text-{hashlib.sha256(data).hexdigest()[:16]}.txt"
    return DocumentInput(
        data=data,
        file_name=body.file_name or f"{body.title or 'text'}.txt",
        name=name,
        title=body.title or None,
        source=body.source or None,
        tags=tuple(body.tags),
        metadata=body.metadata,
    )


def _check(texts: Mapping[str, Any], metadata: Mapping[str, Any]) -> None:
    errors = [*find_nul(texts), *({error.message: error for error in _find_metadata_errors(metadata)}.values())]
    if errors:
        raise InvalidRequestError(errors)


def _find_metadata_errors(metadata: Mapping[str, Any]) -> Iterator[FieldError]:
    """What jsonb cannot hold, and what nobody needs."""
    unseen: list[tuple[Any, int]] = [(dict(metadata), 1)]
    while unseen:
        value, depth = unseen.pop()
        if depth > _METADATA_DEPTH:
            yield FieldError("metadata", f"must be nested at most {_METADATA_DEPTH} deep")
            return
        if isinstance(value, dict):
            unseen.extend((item, depth + 1) for pair in value.items() for item in pair)
        elif isinstance(value, list):
            unseen.extend((item, depth + 1) for item in value)
        elif isinstance(value, str) and "\0" in value:
            yield FieldError("metadata", "must not hold the character NUL")
        elif isinstance(value, int) and abs(value) >= _LARGEST_INTEGER:
            yield FieldError("metadata", "must not hold integers of more than 64 bits")
    if len(msgspec.json.encode(metadata)) > _METADATA_BYTES:
        yield FieldError("metadata", f"must have at most {_METADATA_BYTES} bytes")

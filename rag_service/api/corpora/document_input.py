"""Uploaded documents as the API takes them: a file in a form, or a text as JSON."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from rag_service.api.corpora.schemas import UploadRequest
from rag_service.api.http.bodies import AnyRequest, decode, read_json
from rag_service.api.http.forms import FORM, MEGABYTE, Form, read_form
from rag_service.api.http.problems import ContentTypeError, FieldError, InvalidRequestError
from rag_service.api.http.queries import find_unstorable, is_blank
from rag_service.api.http.schemas import MAX_CHARS, IngestRequest
from rag_service.readers.common.names import FORMATS, clean_file_name
from rag_service.settings import Settings

if TYPE_CHECKING:
    from rag_service.store.documents.documents import DocumentInput

_METADATA_BYTES = 64_000
_METADATA_DEPTH = 8
_INTEGER_LIMIT = 2**63
_TTL = "ttlSeconds"
_TEXT_FIELDS = frozenset({"title", "source", "tags", "metadata"})
FORM_SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["file"],
    "properties": {
        "file": {"type": "string", "format": "binary", "description": f"{FORMATS}."},
        "title": {"type": "string", "maxLength": MAX_CHARS},
        "source": {"type": "string", "maxLength": MAX_CHARS},
        "tags": {"type": "string", "description": "Separated by commas; may be repeated."},
        "metadata": {"type": "string", "description": "A JSON object."},
    },
}
_TTL_SCHEMA = {"type": "integer", "minimum": 1, "description": "Lifetime in seconds."}
_PATH = "path"
_PATH_SCHEMA = {"type": "string", "maxLength": MAX_CHARS, "description": "Relative path: folders and file name."}
UPLOAD_FORM_SCHEMA = FORM_SCHEMA | {"properties": FORM_SCHEMA["properties"] | {_TTL: _TTL_SCHEMA, _PATH: _PATH_SCHEMA}}


async def read_document_input(
    request: AnyRequest, settings: Settings, kind: type[IngestRequest] = UploadRequest
) -> tuple[DocumentInput, int | None]:
    """The document of a request and, of an `UploadRequest`, its lifetime in seconds.

    Raises:
        InvalidRequestError: names the wrong fields.
        ContentTypeError: the body is neither a form nor JSON.
        TooLargeError: the file is larger than RAG_UPLOAD_MAX_MB.
    """
    from rag_service.store.documents.documents import DocumentInput  # loads LlamaIndex

    name = None
    if request.content_type[0] == FORM:
        limit = settings.uploads.max_mb * MEGABYTE
        fields = _TEXT_FIELDS | {_TTL, _PATH} if issubclass(kind, UploadRequest) else _TEXT_FIELDS
        form = await read_form(request, file_field="file", text_fields=fields, file_limit=limit)
        body = _as_json(form, kind)
        data, file_name = form.file or b"", form.file_name or ""
    elif request.content_type[0].endswith("json"):
        body = await read_json(request, kind)
        if is_blank(body.text):
            raise InvalidRequestError([FieldError("text", "must not be empty")])
        data, file_name = body.text.encode(), body.file_name or f"{body.title or 'text'}.txt"
        if not body.file_name:  # the content is the name: texts of equal titles do not replace each other
            name = f"text-{hashlib.sha256(data).hexdigest()[:16]}.txt"
    else:
        raise ContentTypeError(f"The body must be {FORM} with a file, or application/json with a text.")
    _check(body)
    if isinstance(body, UploadRequest) and body.path:
        name = "/".join(clean_file_name(part) for part in re.split(r"[/\\]", body.path) if part.strip(". "))
    document = DocumentInput(
        data=data,
        file_name=file_name,
        name=name or None,
        title=body.title or None,
        source=body.source or None,
        tags=tuple(body.tags),
        metadata=body.metadata,
    )
    return document, body.ttl_seconds if isinstance(body, UploadRequest) else None


def _as_json(form: Form, kind: type[IngestRequest]) -> IngestRequest:
    """The fields of a form, checked as those of a JSON body are."""
    errors = [] if form.file is not None else [FieldError("file", "is required")]
    tags = [tag.strip() for value in form.texts.get("tags", ()) for tag in value.split(",") if tag.strip()]
    body: dict[str, Any] = {"text": "", "tags": tags}
    for name, values in form.texts.items():
        if name != "tags" and len(values) > 1:
            errors.append(FieldError(name, "must be sent once"))
        if name != "tags":
            body[name] = values[0].strip()
    if _TTL in body:
        if not re.fullmatch(r"-?\d{1,11}", body[_TTL], re.ASCII):
            errors.append(FieldError(_TTL, "must be a whole number of seconds, sent once"))
        else:
            body[_TTL] = int(body[_TTL])
    if errors:
        raise InvalidRequestError(errors)
    written = body.pop("metadata", "")
    metadata: dict[str, Any] = decode(written.encode(), dict, name="metadata") if written else {}
    return msgspec.structs.replace(decode(msgspec.json.encode(body), kind), metadata=metadata)


def _check(body: IngestRequest) -> None:
    texts = {"title": [body.title or ""], "source": [body.source or ""], "tags": body.tags}
    errors = [*find_unstorable({**texts, "fileName": [body.file_name or ""]})]
    errors += {error.message: error for error in _find_metadata_errors(body.metadata)}.values()
    if errors:
        raise InvalidRequestError(errors)


def _find_metadata_errors(metadata: Mapping[str, Any]) -> Iterator[FieldError]:
    """What jsonb cannot hold, and what nobody needs."""
    unseen: list[tuple[Any, int]] = [(dict(metadata), 1)]
    while unseen:
        value, depth = unseen.pop()
        if depth > _METADATA_DEPTH:
            yield FieldError("metadata", f"must be nested at most {_METADATA_DEPTH} levels deep")
            return
        if isinstance(value, dict):
            unseen.extend((item, depth + 1) for pair in value.items() for item in pair)
        elif isinstance(value, list):
            unseen.extend((item, depth + 1) for item in value)
        elif isinstance(value, str) and "\0" in value:
            yield FieldError("metadata", "must not contain the character NUL")
        elif isinstance(value, int) and abs(value) >= _INTEGER_LIMIT:
            yield FieldError("metadata", "must not contain integers of more than 64 bits")
    if len(msgspec.json.encode(metadata)) > _METADATA_BYTES:
        yield FieldError("metadata", f"must have at most {_METADATA_BYTES} bytes")

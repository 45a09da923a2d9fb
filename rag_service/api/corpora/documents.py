"""Documents of a corpus: upload, list, read, delete."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from datetime import timedelta
from urllib.parse import quote
from uuid import UUID

from litestar import Controller, Response, Router, delete, get, patch, post
from msgspec import UNSET

from rag_service.api.corpora.document_input import UPLOAD_FORM_SCHEMA, read_document_input
from rag_service.api.corpora.schemas import (
    ChunkList,
    DocumentBody,
    DocumentList,
    DocumentUpdate,
    TagList,
    UploadBody,
    UploadRequest,
)
from rag_service.api.corpora.uploads import present_postponed, present_upload
from rag_service.api.http.access import CallerDependency, TenancyServices
from rag_service.api.http.bodies import AnyRequest, read_json
from rag_service.api.http.documentation import accepts, problems, takes_query
from rag_service.api.http.fields import SLICE, check_texts, read_choice, read_slice
from rag_service.api.http.forms import largest_body
from rag_service.api.http.presenters import present
from rag_service.api.http.problems import InvalidRequestError
from rag_service.api.http.proxies import own_address
from rag_service.api.http.queries import find_unstorable
from rag_service.errors import StoreError
from rag_service.settings import Settings
from rag_service.store.corpora import Corpus, check_ttl, read_corpus
from rag_service.store.database import Connection
from rag_service.store.documents.catalogue import (
    DocumentChoice,
    DocumentOrder,
    StoredDocument,
    list_chunks,
    list_documents,
    list_tags,
    read_document,
    remove_document,
    set_expiry,
    set_tags,
)
from rag_service.store.documents.originals import MAX_SIZE
from rag_service.store.rows import database_now


class CorpusDocumentsController(Controller):
    path = "/api/v1/corpora/{corpus_id:uuid}/documents"
    tags = ["Documents"]

    @get(
        summary="List documents",
        operation_class=takes_query(
            **SLICE,
            q={"description": "Words in name or title."},
            tag={"description": "Only those with this tag."},
            status={"enum": ["failed"], "description": "Only those whose latest upload failed."},
            sort={"enum": ["newest", "name", "largest"], "default": "newest", "description": "What comes first."},
        ),
        responses=problems(400, 401, 403, 404, 500),
    )
    async def list_all(self, corpus_id: UUID, request: AnyRequest, caller: CallerDependency) -> DocumentList:
        """Includes the state of each document's latest upload."""
        part = read_slice(request, "q", "tag", "status", "sort")
        words, tag = request.query_params.get("q"), request.query_params.get("tag")
        check_texts(required={}, optional={"q": words, "tag": tag})
        choice = DocumentChoice(
            words=words,
            tag=tag,
            failed=read_choice(request, "status", ("failed",).index, "failed") is not None,
            order=read_choice(request, "sort", DocumentOrder, "newest, name or largest") or DocumentOrder.NEWEST,
        )
        async with caller.transaction() as connection:
            corpus = await read_corpus(connection, corpus_id)
            page = await list_documents(connection, corpus_id, part, choice)
        items = [present_document(document, corpus, caller.tenancy.fingerprints) for document in page.items]
        return DocumentList(items=items, total=page.total)

    @post(
        status_code=202,
        summary="Upload a document",
        description="Send a file as multipart/form-data, or a text as JSON. The reply is sent once it has been stored; "
        "`Location` is the address of its progress. The same content under the same name is not indexed "
        "twice. A file with the same name replaces the document in one step, when the new version is indexed.",
        operation_class=accepts(UploadRequest, form=UPLOAD_FORM_SCHEMA),
        responses=problems(400, 401, 403, 404, 408, 409, 413, 415, 500),
    )
    async def upload(self, corpus_id: UUID, request: AnyRequest, caller: CallerDependency) -> Response[UploadBody]:
        source, ttl_seconds = await read_document_input(request, caller.tenancy.settings)
        received_ns = time.time_ns()
        try:
            await caller.run(caller.check_writable, corpus_id)
            upload = present_upload(
                await caller.tenancy.uploads.accept(
                    source, corpus_id=corpus_id, identity=caller.identity, ttl_seconds=ttl_seconds
                )
            )
        except StoreError:
            kept = await caller.tenancy.postponed.keep(
                source,
                corpus_id=corpus_id,
                identity=caller.identity,
                ttl_seconds=ttl_seconds,
                key=caller.key,
                received_ns=received_ns,
            )
            if kept is None:
                raise
            upload = present_postponed(kept)
        address = own_address(request.scope, f"/api/v1/uploads/{upload.upload_id}")
        return Response(upload, status_code=202, headers={"Location": address})


class DocumentsController(Controller):
    path = "/api/v1/documents/{document_id:uuid}"
    tags = ["Documents"]

    @get(summary="Read a document's metadata", responses=problems(401, 403, 404, 500))
    async def read(self, document_id: UUID, caller: CallerDependency) -> DocumentBody:
        return await caller.run(_read, document_id, caller.tenancy)

    @get("/original", summary="Download the original", responses=problems(401, 403, 404, 500))
    async def download(self, document_id: UUID, request: AnyRequest, caller: CallerDependency) -> Response[bytes]:
        """The uploaded file, in the version that searches use. `Range: bytes=first-last` returns a part of it."""
        turns = request.app.state.services.turns.originals
        async with turns.take(caller.identity.user_id), caller.transaction() as connection:
            document = await read_document(connection, document_id)
            etag = f'"{document.content_hash}"'
            wanted = _read_range(request) if request.headers.get("if-range", etag) == etag else None
            start, length = wanted or (0, MAX_SIZE)
            data, size = await caller.tenancy.originals.read_part(
                connection, document.id, document.content_hash, start, length
            )
        # An attachment in a sandbox, whatever it is: a page or script from a document must never run as ours.
        name = quote(document.file_name or document.name, safe="")
        headers = {
            "Accept-Ranges": "bytes",
            "Content-Disposition": f"attachment; filename*=UTF-8''{name}",
            "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'; sandbox",
            "ETag": etag,
        }
        media_type = document.media_type or "application/octet-stream"
        if wanted is None:
            return Response(data, media_type=media_type, headers=headers)
        headers["Content-Range"] = f"bytes {start}-{start + len(data) - 1}/{size}" if data else f"bytes */{size}"
        return Response(data, status_code=206 if data else 416, media_type=media_type, headers=headers)

    @get(
        "/chunks",
        summary="List a document's chunks",
        operation_class=takes_query(**SLICE),
        responses=problems(400, 401, 403, 404, 500),
    )
    async def chunks(self, document_id: UUID, request: AnyRequest, caller: CallerDependency) -> ChunkList:
        """In document order, with their locations."""
        part = read_slice(request)
        async with caller.transaction() as connection:
            await read_document(connection, document_id)
            return present(ChunkList, await list_chunks(connection, document_id, part))

    @patch(
        summary="Set the expiry or the tags of a document",
        operation_class=accepts(DocumentUpdate),
        responses=problems(400, 401, 403, 404, 500),
    )
    async def update(self, document_id: UUID, request: AnyRequest, caller: CallerDependency) -> DocumentBody:
        """What is left out stays as it is."""
        body = await read_json(request, DocumentUpdate)
        seconds, tags = body.ttl_seconds, body.tags
        if isinstance(seconds, int):
            check_ttl(seconds)
        if tags is not UNSET and (errors := list(find_unstorable({"tags": tags}))):
            raise InvalidRequestError(errors)
        async with caller.transaction() as connection:
            document = await read_document(connection, document_id)
            await caller.check_writable(connection, document.corpus_id)
            if seconds is not UNSET:
                now = await database_now(connection)
                await set_expiry(connection, document_id, now + timedelta(seconds=seconds) if seconds else None)
            if tags is not UNSET:
                await set_tags(connection, document_id, tags)
            return await _read(connection, document_id, caller.tenancy)

    @delete(summary="Delete a document", responses=problems(401, 403, 404, 500))
    async def remove(self, document_id: UUID, caller: CallerDependency) -> None:
        """It is no longer found from then on, and pending uploads of it are discarded."""
        async with caller.transaction() as connection:
            document = await read_document(connection, document_id)
            await caller.check_writable(connection, document.corpus_id)
            await remove_document(connection, document_id)


@get(
    "/api/v1/tags",
    summary="List tags",
    tags=["Documents"],
    operation_class=takes_query(**SLICE),
    responses=problems(400, 401, 403, 500),
)
async def list_used_tags(request: AnyRequest, caller: CallerDependency) -> TagList:
    """Of the documents that the caller can ask about, those of most documents first."""
    return present(TagList, await caller.run(list_tags, read_slice(request)))


def documents_router(settings: Settings) -> Router:
    """The routes for documents, which take documents of the maximum size."""
    return Router(
        "/",
        route_handlers=[CorpusDocumentsController, DocumentsController],
        request_max_body_size=largest_body(settings),
    )


def _read_range(request: AnyRequest) -> tuple[int, int] | None:
    """First byte and length of the only part that is asked for (RFC 9110, section 14.2); None: the whole."""
    found = re.fullmatch(r"bytes=(\d{1,10})-(\d{0,10})", request.headers.get("range", ""), re.ASCII)
    first, last = (int(found[1]), min(int(found[2] or MAX_SIZE), MAX_SIZE)) if found else (0, -1)
    return (first, last - first + 1) if first <= last else None


async def _read(connection: Connection, document_id: UUID, tenancy: TenancyServices) -> DocumentBody:
    document = await read_document(connection, document_id)
    return present_document(document, await read_corpus(connection, document.corpus_id), tenancy.fingerprints)


def present_document(document: StoredDocument, corpus: Corpus, fingerprints: Mapping[str, str]) -> DocumentBody:
    """Return the document as a body; `fingerprints`: index name → fingerprint of its current settings."""
    current = fingerprints.get(corpus.index_name)  # None: the index is no longer defined
    stale = bool(document.fingerprint) and current is not None and document.fingerprint != current
    return present(DocumentBody, document, stale=stale, progress=document)

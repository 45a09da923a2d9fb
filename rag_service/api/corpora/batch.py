"""Several documents at once: deleted, or moved to another corpus."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal
from uuid import UUID

from litestar import post
from msgspec import Meta, Struct

from rag_service.api.http.access import Caller, CallerDependency
from rag_service.api.http.bodies import AnyRequest, read_json
from rag_service.api.http.documentation import accepts, problems
from rag_service.api.http.problems import FieldError, InvalidRequestError, Problem, report
from rag_service.store.documents.catalogue import read_document, remove_document
from rag_service.store.rows import LIMIT_MAX


class BatchRequest(Struct, kw_only=True, frozen=True, rename="camel", forbid_unknown_fields=True):
    action: Literal["delete", "move"]
    document_ids: Annotated[Sequence[UUID], Meta(min_length=1, max_length=LIMIT_MAX)]
    corpus_id: Annotated[UUID | None, Meta(description="Target corpus of `move`.")] = None


class BatchItem(Struct, kw_only=True, frozen=True, rename="camel"):
    document_id: UUID
    problem: Annotated[Problem | None, Meta(description="Why the document was not changed.")]


class BatchBody(Struct, kw_only=True, frozen=True):
    items: Sequence[BatchItem]


@post(
    "/api/v1/documents/batch",
    status_code=200,
    summary="Delete or move several documents",
    tags=["Documents"],
    operation_class=accepts(BatchRequest),
    responses=problems(400, 401, 403, 404, 500),
)
async def change_documents(request: AnyRequest, caller: CallerDependency) -> BatchBody:
    """Documents are processed independently, and the reply has the result for each. A moved document gets a new id and
    is found again once it has been indexed with the settings of its new corpus."""
    body = await read_json(request, BatchRequest)
    if (body.action == "move") is (body.corpus_id is None):
        raise InvalidRequestError([FieldError("corpusId", "is required for `move` and not allowed otherwise")])
    if body.corpus_id is not None:
        await caller.run(caller.check_writable, body.corpus_id)
    return BatchBody(items=[await _change(caller, one, body.corpus_id) for one in dict.fromkeys(body.document_ids)])


async def _change(caller: Caller, document_id: UUID, corpus_id: UUID | None) -> BatchItem:
    problem = None
    try:
        async with caller.transaction() as connection:
            document = await read_document(connection, document_id)
            await caller.check_writable(connection, document.corpus_id)
            if corpus_id is None:
                await remove_document(connection, document_id)
        if corpus_id is not None:
            await caller.tenancy.uploads.move(document_id, corpus_id=corpus_id, identity=caller.identity)
    except Exception as error:  # noqa: BLE001 - logged, and told to the client as far as it may know
        problem = report(error)
    return BatchItem(document_id=document_id, problem=problem)

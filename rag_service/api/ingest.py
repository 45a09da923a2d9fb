"""Documents into the default corpus."""

from __future__ import annotations

from litestar import Router, post

from rag_service.api.corpora.document_input import FORM_SCHEMA, read_document_input
from rag_service.api.http.bodies import AnyRequest
from rag_service.api.http.documentation import accepts, problems
from rag_service.api.http.forms import largest_body
from rag_service.api.http.presenters import present
from rag_service.api.http.schemas import IngestBody, IngestRequest
from rag_service.api.http.services import IdentityDependency, ServicesDependency
from rag_service.settings import Settings


def ingest_router(settings: Settings) -> Router:
    """POST /api/ingest, which takes documents of the maximum size."""
    return Router("/api", route_handlers=[ingest], request_max_body_size=largest_body(settings))


@post(
    "/ingest",
    tags=["Documents"],
    summary="Store a document",
    description="Send a file as multipart/form-data, or a text as JSON. The same content under the same name is not "
    "stored twice; the same file name replaces the document.",
    operation_class=accepts(IngestRequest, form=FORM_SCHEMA),
    responses=problems(400, 401, 403, 408, 413, 415, 500),
)
async def ingest(request: AnyRequest, services: ServicesDependency, identity: IdentityDependency) -> IngestBody:
    services.turns.ingests.require_room(identity.user_id)
    # It continues when the client disconnects: the document is complete, and storing it is idempotent.
    source, _ = await read_document_input(request, services.settings, IngestRequest)
    return present(IngestBody, await services.ingest(source, identity))

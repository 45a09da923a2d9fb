"""Example questions over the caller's own documents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated
from uuid import UUID

from litestar import get
from litestar.params import Parameter
from msgspec import Meta, Struct

from rag_service.api.http.access import CallerDependency
from rag_service.api.http.documentation import problems
from rag_service.store.documents.catalogue import has_documents


class ExampleBody(Struct, kw_only=True, frozen=True, rename="camel"):
    question: str
    document_id: Annotated[UUID, Meta(description="The document that answers the question.")]
    file_name: str | None


class ExampleList(Struct, kw_only=True, frozen=True, rename="camel"):
    items: Sequence[ExampleBody]
    has_documents: Annotated[bool, Meta(description="Whether there are any documents that the caller can ask about.")]
    has_samples: Annotated[bool, Meta(description="Whether the sample documents are among them.")]


@get(
    "/api/v1/examples",
    summary="List example questions",
    tags=["Query"],
    responses=problems(401, 403, 500, 503),
)
async def list_examples(
    caller: CallerDependency,
    language: Annotated[
        str | None, Parameter(pattern="^[a-z]{2}$", description="Of the documents that come first, for example `fr`.")
    ] = None,
) -> ExampleList:
    """At most four questions that documents which the caller can read answer with certainty: FAQ entries and cells of
    tables of the newest ones, in their own language, without the sample documents. Empty if none is certain."""
    found = await caller.tenancy.examples(caller.identity, language)
    async with caller.transaction() as connection:
        askable = bool(found) or await has_documents(connection)
        has_samples = askable and await has_documents(connection, caller.tenancy.shipped)
    items = [ExampleBody(question=one.question, document_id=one.document_id, file_name=one.file_name) for one in found]
    return ExampleList(items=items, has_documents=askable, has_samples=has_samples)

"""Sources that corpora are kept equal to: folders, sites, object stores and readers."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from typing import Annotated
from uuid import UUID

from litestar import Controller, delete, get, post
from msgspec import Meta, Struct

from rag_service.api.http.access import Caller, CallerDependency, require_scope
from rag_service.api.http.bodies import AnyRequest, read_json
from rag_service.api.http.documentation import accepts, problems, takes_query
from rag_service.api.http.fields import SLICE, check_texts, read_choice, read_slice
from rag_service.api.http.presenters import present
from rag_service.domain import CorpusKind
from rag_service.store.accounts.keys import Scope
from rag_service.store.documents.sources import (
    EVERY_SECONDS,
    MAX_DEPTH,
    MAX_TARGET,
    add_source,
    list_sources,
    read_source,
    remove_source,
    run_source_soon,
)


class Documents(StrEnum):
    """What happens to the documents of a removed source."""

    KEEP = "keep"
    DELETE = "delete"


class SourceCreate(Struct, kw_only=True, frozen=True, rename="camel", forbid_unknown_fields=True):
    target: Annotated[
        str,
        Meta(
            max_length=MAX_TARGET,
            description="Address of a page or a sitemap; for administrators also a folder on the server, a URL such"
            " as s3://bucket/folder, or reader:NAME for a reader that the operator has declared.",
        ),
    ]
    depth: Annotated[
        int, Meta(ge=0, le=MAX_DEPTH, description="How many links deep to follow from a page, on its host.")
    ] = 0
    every_seconds: Annotated[
        int, Meta(ge=EVERY_SECONDS[0], le=EVERY_SECONDS[1], description="Seconds between two runs.")
    ] = 86_400


class RunBody(Struct, kw_only=True, frozen=True, rename="camel"):
    """Result of a run, in files or pages."""

    added: int
    changed: int
    renamed: int
    deleted: int
    unchanged: int
    kept: Annotated[int, Meta(description="Documents kept although they are gone from the source.")]
    not_taken: int
    reasons: Annotated[Sequence[str], Meta(description="The first 50 skipped files or pages, each with the reason.")]


class SourceBody(Struct, kw_only=True, frozen=True, rename="camel"):
    id: UUID
    corpus_id: UUID
    corpus_name: str
    corpus_kind: str
    target: str
    depth: int
    every_seconds: int
    status: Annotated[str, Meta(description="waiting, running or failed.")]
    next_run_at: datetime
    last_run_at: Annotated[datetime | None, Meta(description="End of the last run.")]
    report: Annotated[RunBody | None, Meta(description="Report of the last successful run.")]
    error: Annotated[str | None, Meta(description="Why the last run failed; it is retried after 15 minutes.")]
    created_at: datetime


class SourceList(Struct, kw_only=True, frozen=True):
    items: Sequence[SourceBody]
    total: int


@post(
    "/api/v1/corpora/{corpus_id:uuid}/sources",
    summary="Add a source to a corpus",
    tags=["Sources"],
    operation_class=accepts(SourceCreate),
    responses=problems(400, 401, 403, 404, 409, 500),
)
async def add_corpus_source(corpus_id: UUID, request: AnyRequest, caller: CallerDependency) -> SourceBody:
    """A worker syncs it right away and then regularly, with the caller's permissions. Only administrators can add
    folders, object stores, readers and addresses outside the public internet."""
    from rag_service.sources.opening import is_page, open_source  # loads what fetches, which other routes do not need

    body = await read_json(request, SourceCreate)
    check_texts(required={"target": body.target})
    target = body.target.strip()
    async with caller.transaction() as connection:
        await caller.check_writable(connection, corpus_id)
    if not is_page(target):
        require_scope(caller.identity, Scope.ADMIN)
    source = await asyncio.to_thread(open_source, target, caller.tenancy.settings, depth=body.depth, role=caller.role)
    added = await caller.run(
        add_source,
        caller.identity,
        corpus_id=corpus_id,
        target=source.target,
        depth=body.depth,
        every_seconds=body.every_seconds,
    )
    return present(SourceBody, added)


class SourcesController(Controller):
    """Sources of the corpora that the caller can write to."""

    path = "/api/v1/sources"
    tags = ["Sources"]

    @get(summary="List sources", operation_class=takes_query(**SLICE), responses=problems(400, 401, 403, 500))
    async def list_all(self, request: AnyRequest, caller: CallerDependency) -> SourceList:
        """Includes the state, the next run and the result of the last one."""
        return present(SourceList, await caller.run(list_sources, read_slice(request)))

    @get("/{source_id:uuid}", summary="Read a source", responses=problems(401, 403, 404, 500))
    async def read(self, source_id: UUID, caller: CallerDependency) -> SourceBody:
        return present(SourceBody, await caller.run(read_source, source_id))

    @post("/{source_id:uuid}/run", status_code=202, summary="Sync a source now", responses=problems(401, 403, 404, 500))
    async def run(self, source_id: UUID, caller: CallerDependency) -> SourceBody:
        """A worker starts within seconds."""
        await _check_writable(caller, source_id)
        return present(SourceBody, await caller.run(run_source_soon, source_id))

    @delete("/{source_id:uuid}", summary="Remove a source", responses=problems(400, 401, 403, 404, 409, 500))
    async def remove(self, source_id: UUID, request: AnyRequest, caller: CallerDependency) -> None:
        """Its documents are kept, unless the query has `documents=delete`."""
        read_slice(request, "documents")  # refuses other parameters
        documents = read_choice(request, "documents", Documents, "keep or delete")
        await _check_writable(caller, source_id)
        await caller.run(remove_source, source_id, documents=documents is Documents.DELETE)


async def _check_writable(caller: Caller, source_id: UUID) -> None:
    """Raise NotFoundError, or PermissionDeniedError without the scope that the corpus needs."""
    source = await caller.run(read_source, source_id)
    if source.corpus_kind is CorpusKind.GLOBAL:
        require_scope(caller.identity, Scope.ADMIN)

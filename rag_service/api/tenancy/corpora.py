"""Corpora: requirement C2."""

from __future__ import annotations

from uuid import UUID

from litestar import Controller, delete, get, patch, post
from msgspec import UNSET

from rag_service.api.services import IdentityDependency
from rag_service.api.tenancy.fields import check_texts, present, present_page, read_choice, read_slice
from rag_service.api.tenancy.schemas_corpora import CorpusBody, CorpusCreate, CorpusList, CorpusUpdate
from rag_service.api.tenancy.services import TenancyDependency, check_corpus_scope, require_scope
from rag_service.api.wire.bodies import AnyRequest, read_json
from rag_service.api.wire.documentation import accepts, problems
from rag_service.api.wire.problems import FieldError, InvalidRequestError
from rag_service.domain import CorpusKind
from rag_service.store.corpora import Corpus, create_corpus, delete_corpus, list_corpora, read_corpus, update_corpus
from rag_service.store.people.keys import Scope


class CorporaController(Controller):
    """Containers of documents: global ones, managed by administrators, and personal ones."""

    path = "/api/v1/corpora"
    tags = ["Corpora"]  # noqa: RUF012 - Litestar's way

    @get(summary="List corpora", responses=problems(400, 401, 403, 500))
    async def list_all(
        self, request: AnyRequest, tenancy: TenancyDependency, identity: IdentityDependency
    ) -> CorpusList:
        """Those that the caller may read, by name. Query: `offset`, `limit`, `kind`."""
        part = read_slice(request, "kind")
        kind = read_choice(request, "kind", CorpusKind, "global or personal")
        async with tenancy.transaction(identity) as connection:
            page = await list_corpora(connection, part, kind=kind)
        return CorpusList(**present_page(page, present_corpus))

    @post(summary="Create a corpus", operation_class=accepts(CorpusCreate), responses=problems(400, 401, 403, 500))
    async def create(self, request: AnyRequest, tenancy: TenancyDependency, identity: IdentityDependency) -> CorpusBody:
        """A personal one of the caller's; global ones are for administrators."""
        body = await read_json(request, CorpusCreate)
        check_texts(required={"name": body.name})
        index = body.index or tenancy.settings.index
        if index not in tenancy.fingerprints:
            raise InvalidRequestError(
                [FieldError("index", f"must be one of {', '.join(sorted(tenancy.fingerprints))}")]
            )
        kind = CorpusKind(body.kind)
        if kind is CorpusKind.GLOBAL:
            require_scope(identity, Scope.ADMIN)
        async with tenancy.transaction(identity) as connection:
            corpus = await create_corpus(
                connection, identity, name=body.name.strip(), kind=kind, index_name=index, ttl_seconds=body.ttl_seconds
            )
        return present_corpus(corpus)

    @get("/{corpus_id:uuid}", summary="Read a corpus", responses=problems(401, 403, 404, 500))
    async def read(self, corpus_id: UUID, tenancy: TenancyDependency, identity: IdentityDependency) -> CorpusBody:
        async with tenancy.transaction(identity) as connection:
            return present_corpus(await read_corpus(connection, corpus_id))

    @patch(
        "/{corpus_id:uuid}",
        summary="Rename, deactivate or activate a corpus",
        operation_class=accepts(CorpusUpdate),
        responses=problems(400, 401, 403, 404, 500),
    )
    async def update(
        self, corpus_id: UUID, request: AnyRequest, tenancy: TenancyDependency, identity: IdentityDependency
    ) -> CorpusBody:
        """A deactivated corpus is neither searched nor written to. The lifetime is for documents to come."""
        body = await read_json(request, CorpusUpdate)
        name = None if body.name is UNSET else str(body.name)
        if name is not None:
            check_texts(required={"name": name})
        async with tenancy.transaction(identity) as connection:
            check_corpus_scope(identity, await read_corpus(connection, corpus_id))
            corpus = await update_corpus(
                connection,
                corpus_id,
                name=None if name is None else name.strip(),
                active=body.active if isinstance(body.active, bool) else None,
                ttl_seconds=body.ttl_seconds if isinstance(body.ttl_seconds, int) else None,
                keep_for_ever=body.ttl_seconds is None,
            )
        return present_corpus(corpus)

    @delete("/{corpus_id:uuid}", summary="Delete a corpus", responses=problems(401, 403, 404, 500))
    async def remove(self, corpus_id: UUID, tenancy: TenancyDependency, identity: IdentityDependency) -> None:
        """With all its documents; from then on nothing of it is found."""
        async with tenancy.transaction(identity) as connection:
            check_corpus_scope(identity, await read_corpus(connection, corpus_id))
            await delete_corpus(connection, corpus_id)


def present_corpus(corpus: Corpus) -> CorpusBody:
    return present(CorpusBody, corpus, kind=corpus.kind.value, index=corpus.index_name)

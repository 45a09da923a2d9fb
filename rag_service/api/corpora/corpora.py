"""Corpora."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from litestar import Controller, delete, get, patch, post
from msgspec import UnsetType

from rag_service.api.corpora.schemas import CorpusBody, CorpusCreate, CorpusList, CorpusUpdate
from rag_service.api.http.access import CallerDependency, require_scope
from rag_service.api.http.bodies import AnyRequest, read_json
from rag_service.api.http.documentation import accepts, problems, takes_query
from rag_service.api.http.fields import SLICE, check_texts, read_choice, read_slice
from rag_service.api.http.presenters import present
from rag_service.api.http.problems import FieldError, InvalidRequestError
from rag_service.domain import CorpusKind
from rag_service.store.accounts.keys import Scope
from rag_service.store.corpora import Corpus, create_corpus, delete_corpus, list_corpora, read_corpus, update_corpus


class CorporaController(Controller):
    """Containers of documents: global ones, managed by administrators, and personal ones."""

    path = "/api/v1/corpora"
    tags = ["Corpora"]

    @get(
        summary="List corpora",
        operation_class=takes_query(**SLICE, kind={"enum": ["global", "personal"], "description": "Only these."}),
        responses=problems(400, 401, 403, 500),
    )
    async def list_all(self, request: AnyRequest, caller: CallerDependency) -> CorpusList:
        """Corpora that the caller can read, by name."""
        part = read_slice(request, "kind")
        kind = read_choice(request, "kind", CorpusKind, "global or personal")
        page = await caller.run(list_corpora, part, kind=kind)
        default = caller.tenancy.settings.indices.default
        indices = sorted(caller.tenancy.fingerprints, key=lambda name: (name != default, name))
        return CorpusList(items=[present_corpus(corpus) for corpus in page.items], total=page.total, indices=indices)

    @post(summary="Create a corpus", operation_class=accepts(CorpusCreate), responses=problems(400, 401, 403, 500))
    async def create(self, request: AnyRequest, caller: CallerDependency) -> CorpusBody:
        """Users create personal corpora; only administrators create global ones."""
        body = await read_json(request, CorpusCreate)
        check_texts(required={"name": body.name})
        known = caller.tenancy.fingerprints
        index = body.index or caller.tenancy.settings.indices.default
        if index not in known:
            raise InvalidRequestError([FieldError("index", f"must be one of {', '.join(sorted(known))}")])
        name, kind = body.name.strip(), CorpusKind(body.kind)
        if kind is CorpusKind.GLOBAL:
            require_scope(caller.identity, Scope.ADMIN)
        corpus = await caller.run(
            create_corpus,
            caller.identity,
            name=name,
            kind=kind,
            index_name=index,
            ttl_seconds=body.ttl_seconds,
            shared=body.shared,
        )
        return present_corpus(corpus)

    @get("/{corpus_id:uuid}", summary="Read a corpus", responses=problems(401, 403, 404, 500))
    async def read(self, corpus_id: UUID, caller: CallerDependency) -> CorpusBody:
        return present_corpus(await caller.run(read_corpus, corpus_id))

    @patch(
        "/{corpus_id:uuid}",
        summary="Rename, share, deactivate or activate a corpus",
        operation_class=accepts(CorpusUpdate),
        responses=problems(400, 401, 403, 404, 500),
    )
    async def update(self, corpus_id: UUID, request: AnyRequest, caller: CallerDependency) -> CorpusBody:
        """A deactivated corpus is neither searched nor written to. The lifetime applies to documents added later."""
        body = await read_json(request, CorpusUpdate)
        if isinstance(body.name, str):
            check_texts(required={"name": body.name})
        async with caller.transaction() as connection:
            await caller.check_writable(connection, corpus_id)
            corpus = await update_corpus(
                connection,
                corpus_id,
                name=body.name.strip() if isinstance(body.name, str) else None,
                active=body.active if isinstance(body.active, bool) else None,
                shared=body.shared if isinstance(body.shared, bool) else None,
                groups=None if isinstance(body.groups, UnsetType) else check_groups(body.groups),
                ttl_seconds=body.ttl_seconds if isinstance(body.ttl_seconds, int) else None,
                keep_for_ever=body.ttl_seconds is None,
            )
        return present_corpus(corpus)

    @delete("/{corpus_id:uuid}", summary="Delete a corpus", responses=problems(401, 403, 404, 500))
    async def remove(self, corpus_id: UUID, caller: CallerDependency) -> None:
        """Also deletes its documents, which are no longer found from then on."""
        async with caller.transaction() as connection:
            await caller.check_writable(connection, corpus_id)
            await delete_corpus(connection, corpus_id)


def check_groups(groups: Sequence[str]) -> list[str]:
    check_texts(required={f"groups[{number}]": group for number, group in enumerate(groups)})
    return sorted(set(groups))


def present_corpus(corpus: Corpus) -> CorpusBody:
    return present(CorpusBody, corpus, index=corpus.index_name)

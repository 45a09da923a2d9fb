"""Vector stores: corpora, and their documents as files.

See https://platform.openai.com/docs/api-reference/vector-stores.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any
from uuid import UUID, uuid4

from litestar import Controller, Router, delete, get, post
from litestar.di import Provide
from msgspec import Meta, Struct

from rag_service.api.http.access import Caller, CallerDependency, make_caller
from rag_service.api.http.bodies import AnyRequest
from rag_service.api.http.documentation import accepts, takes_query
from rag_service.api.http.fields import check_texts, read_choice
from rag_service.api.http.forms import largest_body
from rag_service.api.http.problems import ClientGoneError, FieldError, InvalidRequestError, handle_client_gone
from rag_service.api.http.queries import read_question
from rag_service.api.http.schemas import Name, SearchRequest
from rag_service.api.http.services import READING, ServicesDependency
from rag_service.api.http.streaming import unless_gone
from rag_service.api.openai.attributes import (
    MAX_RESULTS,
    Attributes,
    Labels,
    as_fields,
    attributes_of,
    check_storable,
    read_filters,
)
from rag_service.api.openai.errors import errors, handle_openai_error
from rag_service.api.openai.files import FilesController
from rag_service.api.openai.listing import Deleted, ListBody, cut_page, describe_page, read_body, read_id, read_page
from rag_service.domain import CorpusKind, Hit
from rag_service.errors import ConflictError, NotFoundError
from rag_service.settings import Settings
from rag_service.store.corpora import (
    HELD,
    Corpus,
    create_corpus,
    delete_corpus,
    read_corpus,
    select_corpora,
    update_corpus,
)
from rag_service.store.database import Connection
from rag_service.store.documents.catalogue import (
    PURPOSE,
    FileChoice,
    StoredDocument,
    count_files,
    list_files,
    read_document,
    set_attributes,
)
from rag_service.store.documents.uploads import UploadStatus
from rag_service.store.rows import LIMIT_MAX

_STATUS = {UploadStatus.INDEXED: "completed", UploadStatus.FAILED: "failed"}
_WAITING = tuple(status for status in UploadStatus if not status.final)
_FILTERS: Mapping[str, tuple[UploadStatus, ...]] = {
    "completed": (UploadStatus.INDEXED,), "failed": (UploadStatus.FAILED,), "in_progress": _WAITING,
}  # fmt: skip
_OWN_FAULTS = ("internal_error", "given_up", "superseded")  # codes of uploads that failed through no fault of the file

# -- bodies


class StoreCreate(Struct, kw_only=True, frozen=True):
    name: Annotated[Name | None, Meta(description="Unique among the caller's; default: one of its own.")] = None
    metadata: Labels | None = None
    file_ids: Annotated[list[str], Meta(max_length=LIMIT_MAX)] = []
    expires_after: Annotated[Any, Meta(description="Not supported.")] = None


class StoreUpdate(Struct, kw_only=True, frozen=True):
    """Fields that are omitted stay unchanged."""

    name: Name | None = None
    metadata: Labels | None = None
    expires_after: Annotated[Any, Meta(description="Not supported.")] = None


class FileCounts(Struct, kw_only=True, frozen=True):
    in_progress: int
    completed: int
    failed: int
    total: int
    cancelled: int = 0


class StoreBody(Struct, kw_only=True, frozen=True):
    id: Annotated[str, Meta(description="Id of the corpus.")]
    created_at: int
    name: str
    status: Annotated[str, Meta(description="in_progress, completed, or expired if the corpus is deactivated.")]
    file_counts: FileCounts
    usage_bytes: int
    metadata: Mapping[str, str]
    ignored: Annotated[list[str], Meta(description="Extension: fields of the request that had no effect.")] = []
    last_active_at: int | None = None
    expires_after: None = None
    expires_at: None = None
    object: str = "vector_store"


class StoreList(ListBody, kw_only=True, frozen=True):
    data: list[StoreBody]


class StoreFileCreate(Struct, kw_only=True, frozen=True):
    file_id: str
    attributes: Attributes | None = None


class StoreFileUpdate(Struct, kw_only=True, frozen=True):
    attributes: Annotated[Attributes | None, Meta(description="All of them: the ones it had are replaced.")]


class LastError(Struct, kw_only=True, frozen=True):
    code: Annotated[str, Meta(description="server_error, unsupported_file or invalid_file.")]
    message: str


class OtherStrategy(Struct, kw_only=True, frozen=True):
    """The index of the corpus says how files are cut."""

    type: str = "other"


class StoreFileBody(Struct, kw_only=True, frozen=True):
    id: Annotated[str, Meta(description="Id of the file and document.")]
    created_at: int
    vector_store_id: str
    status: Annotated[str, Meta(description="in_progress, completed or failed.")]
    last_error: LastError | None
    usage_bytes: int
    attributes: dict[str, Any]
    chunking_strategy: OtherStrategy = OtherStrategy()
    ignored: Annotated[list[str], Meta(description="Extension: fields of the request that had no effect.")] = []
    object: str = "vector_store.file"


class StoreFileList(ListBody, kw_only=True, frozen=True):
    data: list[StoreFileBody]


class RankingOptions(Struct, kw_only=True, frozen=True):
    score_threshold: Annotated[float, Meta(ge=0, le=1)] | None = None
    ranker: Annotated[str | None, Meta(description="No effect.")] = None


class StoreSearch(Struct, kw_only=True, frozen=True):
    query: str | list[str]
    max_num_results: Annotated[int, Meta(ge=1, le=MAX_RESULTS, description="At most RAG_TOPK_MAX are found.")] = 10
    filters: Annotated[
        dict[str, Any] | None,
        Meta(
            description='`{"type": "eq", "key": "year", "value": 2024}` with eq, ne, gt, gte, lt, lte, in or nin; '
            '`{"type": "and", "filters": […]}` and `or` combine them.'
        ),
    ] = None
    ranking_options: RankingOptions | None = None


class ContentBody(Struct, kw_only=True, frozen=True):
    text: str
    type: str = "text"


class ResultBody(Struct, kw_only=True, frozen=True):
    file_id: str
    filename: str
    score: float
    attributes: dict[str, Any]
    content: list[ContentBody]


class ResultList(Struct, kw_only=True, frozen=True):
    search_query: list[str]
    data: list[ResultBody]
    ignored: Annotated[list[str], Meta(description="Extension: fields of the request that had no effect.")] = []
    has_more: bool = False
    next_page: None = None
    object: str = "vector_store.search_results.page"


# -- routes


def stores_router(settings: Settings) -> Router:
    """Files and vector stores below /v1, with errors in that API's shape."""
    return Router(
        "/v1",
        route_handlers=[FilesController, VectorStoresController, StoreFilesController],
        tags=["OpenAI"],
        exception_handlers={Exception: handle_openai_error, ClientGoneError: handle_client_gone},
        dependencies={"caller": Provide(make_caller, sync_to_thread=False)},
        request_max_body_size=largest_body(settings),
    )


class VectorStoresController(Controller):
    """Every corpus that the caller can read is a vector store; new ones are personal."""

    path = "/vector_stores"

    @get(
        summary="List vector stores (OpenAI-compatible)",
        operation_class=takes_query(**describe_page(limit=20, most=100)),
        responses=errors(400, 401, 500),
    )
    async def list_all(self, request: AnyRequest, caller: CallerDependency) -> StoreList:
        """Newest first."""
        asked = read_page(request, limit=20, most=100)
        async with caller.transaction() as connection:
            corpora = await select_corpora(connection, "name <> %(held)s", {"held": HELD})
            found = sorted(corpora, key=lambda one: (one.created_at, one.id), reverse=not asked.oldest_first)
            if asked.after is not None:
                places = [at for at, corpus in enumerate(found, start=1) if corpus.id == asked.after]
                if not places:
                    raise NotFoundError(f"There is no vector store {asked.after}.", field="after")
                found = found[places[0] :]
            shown, page = cut_page(found, asked)
            bodies = await _present_stores(connection, shown)
        return StoreList(data=bodies, **page)

    @post(
        status_code=200,
        summary="Create a vector store (OpenAI-compatible)",
        operation_class=accepts(StoreCreate),
        responses=errors(400, 401, 403, 404, 409, 413, 415, 500),
    )
    async def create(self, request: AnyRequest, caller: CallerDependency) -> StoreBody:
        """A personal corpus of the default index."""
        settings = caller.tenancy.settings
        body, ignored = await read_body(request, StoreCreate, settings)
        name = f"vector store {uuid4().hex[:8]}" if body.name is None else body.name.strip()
        _check_labels(name, body.metadata, body.expires_after)
        files = [read_id(file_id, "file") for file_id in dict.fromkeys(body.file_ids)]
        async with caller.transaction() as connection:
            for file_id in files:
                await _require_held(connection, file_id)
            corpus = await create_corpus(
                connection,
                caller.identity,
                name=name,
                kind=CorpusKind.PERSONAL,
                index_name=settings.indices.default,
                metadata=body.metadata,
            )
        for file_id in files:
            await _attach(caller, corpus.id, file_id, {})
        return await _present_store(caller, corpus.id, ignored)

    @get("/{corpus_id:str}", summary="Read a vector store (OpenAI-compatible)", responses=errors(401, 404, 500))
    async def read(self, corpus_id: str, caller: CallerDependency) -> StoreBody:
        return await _present_store(caller, read_id(corpus_id, "vector store"))

    @post(
        "/{corpus_id:str}",
        status_code=200,
        summary="Modify a vector store (OpenAI-compatible)",
        operation_class=accepts(StoreUpdate),
        responses=errors(400, 401, 403, 404, 409, 413, 415, 500),
    )
    async def update(self, corpus_id: str, request: AnyRequest, caller: CallerDependency) -> StoreBody:
        store_id = read_id(corpus_id, "vector store")
        body, ignored = await read_body(request, StoreUpdate, caller.tenancy.settings)
        name = None if body.name is None else body.name.strip()
        _check_labels(name, body.metadata, body.expires_after)
        async with caller.transaction() as connection:
            await _read_store(connection, store_id)
            await caller.check_writable(connection, store_id)
            await update_corpus(connection, store_id, name=name, metadata=body.metadata)
        return await _present_store(caller, store_id, ignored)

    @delete(
        "/{corpus_id:str}",
        status_code=200,
        summary="Delete a vector store (OpenAI-compatible)",
        responses=errors(401, 403, 404, 500),
    )
    async def remove(self, corpus_id: str, caller: CallerDependency) -> Deleted:
        """Files that were uploaded at /v1/files are kept, in no store; all other documents are deleted with it."""
        store_id = read_id(corpus_id, "vector store")
        async with caller.transaction() as connection:
            await _read_store(connection, store_id)
            await caller.check_writable(connection, store_id)
        choice = FileChoice(corpus_id=store_id, limit=LIMIT_MAX, oldest_first=True)
        while True:
            found = await caller.run(list_files, choice)
            for document in found:
                if PURPOSE in document.metadata:
                    await _detach(caller, document.id)
            kept = [document for document in found if PURPOSE not in document.metadata]
            if len(found) <= choice.limit:
                break
            choice = replace(choice, after=kept[-1].id if kept else choice.after)
        await caller.run(delete_corpus, store_id)
        return Deleted(id=str(store_id), object="vector_store.deleted")

    @post(
        "/{corpus_id:str}/search",
        status_code=200,
        opt=READING,
        summary="Search a vector store (OpenAI-compatible)",
        operation_class=accepts(StoreSearch),
        responses=errors(400, 401, 404, 409, 413, 415, 500, 503),
    )
    async def search(
        self, corpus_id: str, request: AnyRequest, caller: CallerDependency, services: ServicesDependency
    ) -> ResultList:
        """Passages, best first. Queries are not rewritten."""
        store_id, settings = read_id(corpus_id, "vector store"), services.settings
        body, ignored = await read_body(request, StoreSearch, settings)
        queries = [body.query] if isinstance(body.query, str) else body.query
        if len(queries) != 1:
            raise InvalidRequestError([FieldError("query", "must be one query")])
        options = body.ranking_options or RankingOptions()
        if options.ranker is not None:
            ignored.append("ranking_options.ranker")
        where = None if body.filters is None else read_filters(body.filters)
        asked = SearchRequest(
            query=queries[0],
            top_k=min(body.max_num_results, settings.retrieval.max_top_k),
            similarity_threshold=options.score_threshold,
            corpus_ids=[store_id],
        )
        question = read_question(asked, settings, caller.identity)
        question = replace(question, filters=replace(question.filters, where=where, any_field=True))
        store = await caller.run(_read_store, store_id)
        if not store.active:
            raise ConflictError(f"The vector store {store_id} is deactivated: its corpus is not searched.")
        found = await unless_gone(request.receive, services.search(question))
        return ResultList(search_query=queries, data=list(map(_present_hit, found.passages)), ignored=ignored)


class StoreFilesController(Controller):
    """Files of a vector store: documents of a corpus."""

    path = "/vector_stores/{corpus_id:str}/files"

    @get(
        summary="List the files of a vector store (OpenAI-compatible)",
        operation_class=takes_query(
            **describe_page(limit=20, most=100),
            filter={"enum": list(_FILTERS), "description": "Only files in this state."},
        ),
        responses=errors(400, 401, 404, 500),
    )
    async def list_all(self, corpus_id: str, request: AnyRequest, caller: CallerDependency) -> StoreFileList:
        """Newest first."""
        store_id = read_id(corpus_id, "vector store")
        asked = read_page(request, "filter", limit=20, most=100)
        status = read_choice(request, "filter", tuple(_FILTERS).index, f"one of {', '.join(_FILTERS)}")
        choice = FileChoice(
            corpus_id=store_id,
            status=() if status is None else tuple(_FILTERS.values())[status],
            limit=asked.limit,
            after=asked.after,
            oldest_first=asked.oldest_first,
        )
        async with caller.transaction() as connection:
            await _read_store(connection, store_id)
            files, page = cut_page(await list_files(connection, choice), asked)
        return StoreFileList(data=list(map(_present_store_file, files)), **page)

    @post(
        status_code=200,
        summary="Put a file into a vector store (OpenAI-compatible)",
        operation_class=accepts(StoreFileCreate),
        responses=errors(400, 401, 403, 404, 409, 413, 415, 500),
    )
    async def create(self, corpus_id: str, request: AnyRequest, caller: CallerDependency) -> StoreFileBody:
        """It is indexed in the background. A file is in one store at a time."""
        store_id = read_id(corpus_id, "vector store")
        body, ignored = await read_body(request, StoreFileCreate, caller.tenancy.settings)
        attributes = body.attributes or {}
        check_storable("attributes", attributes)
        file_id = read_id(body.file_id, "file")
        await caller.run(_read_store, store_id)
        await _attach(caller, store_id, file_id, attributes)
        return await _present_attached(caller, store_id, file_id, ignored)

    @get(
        "/{document_id:str}",
        summary="Read a file of a vector store (OpenAI-compatible)",
        responses=errors(401, 404, 500),
    )
    async def read(self, corpus_id: str, document_id: str, caller: CallerDependency) -> StoreFileBody:
        return await _present_attached(caller, read_id(corpus_id, "vector store"), read_id(document_id, "file"))

    @post(
        "/{document_id:str}",
        status_code=200,
        summary="Set the attributes of a file (OpenAI-compatible)",
        operation_class=accepts(StoreFileUpdate),
        responses=errors(400, 401, 403, 404, 409, 413, 415, 500),
    )
    async def update(
        self, corpus_id: str, document_id: str, request: AnyRequest, caller: CallerDependency
    ) -> StoreFileBody:
        store_id, file_id = read_id(corpus_id, "vector store"), read_id(document_id, "file")
        body, ignored = await read_body(request, StoreFileUpdate, caller.tenancy.settings)
        attributes = body.attributes or {}
        check_storable("attributes", attributes)
        async with caller.transaction() as connection:
            document = await _read_attached(connection, store_id, file_id)
            await caller.check_writable(connection, store_id)
            rest = {key: value for key, value in document.metadata.items() if key not in document.fields}
            await set_attributes(connection, file_id, as_fields(attributes), {**rest, **attributes})
        return await _present_attached(caller, store_id, file_id, ignored)

    @delete(
        "/{document_id:str}",
        status_code=200,
        summary="Take a file out of a vector store (OpenAI-compatible)",
        responses=errors(401, 403, 404, 500),
    )
    async def remove(self, corpus_id: str, document_id: str, caller: CallerDependency) -> Deleted:
        """It is no longer searched; the file itself is kept."""
        store_id, file_id = read_id(corpus_id, "vector store"), read_id(document_id, "file")
        async with caller.transaction() as connection:
            await _read_attached(connection, store_id, file_id)
            await caller.check_writable(connection, store_id)
        await _detach(caller, file_id)
        return Deleted(id=str(file_id), object="vector_store.file.deleted")


def _check_labels(name: str | None, metadata: Mapping[str, str] | None, expires_after: Any) -> None:
    if expires_after is not None:
        raise InvalidRequestError([FieldError("expires_after", "is not supported; leave it out")])
    if name is not None:
        check_texts(required={"name": name})
    check_storable("metadata", metadata or {})


def _is_held(corpus: Corpus) -> bool:
    return corpus.name == HELD and corpus.kind is CorpusKind.PERSONAL


async def _read_store(connection: Connection, store_id: UUID) -> Corpus:
    corpus = await read_corpus(connection, store_id)
    if _is_held(corpus):
        raise NotFoundError(f"There is no vector store {store_id}.")
    return corpus


async def _read_attached(connection: Connection, store_id: UUID, file_id: UUID) -> StoredDocument:
    await _read_store(connection, store_id)
    document = await read_document(connection, file_id)
    if document.corpus_id != store_id:
        raise NotFoundError(f"The vector store {store_id} has no file {file_id}.")
    return document


async def _require_held(connection: Connection, file_id: UUID) -> None:
    document = await read_document(connection, file_id)
    if not _is_held(await read_corpus(connection, document.corpus_id)):
        raise ConflictError(
            f"The file {file_id} is in the vector store {document.corpus_id}, and a file is in one at a time. Take it"
            " out of that one, or upload it again.",
            field="file_id",
        )


async def _attach(caller: Caller, store_id: UUID, file_id: UUID, attributes: Mapping[str, Any]) -> None:
    async with caller.transaction() as connection:
        await caller.check_writable(connection, store_id)
        await _require_held(connection, file_id)
    await caller.tenancy.uploads.attach(
        file_id, corpus_id=store_id, identity=caller.identity, fields=as_fields(attributes), metadata=attributes
    )


async def _detach(caller: Caller, file_id: UUID) -> None:
    index_name = caller.tenancy.settings.indices.default
    await caller.tenancy.uploads.detach(file_id, caller.identity, index_name=index_name)


async def _present_attached(
    caller: Caller, store_id: UUID, file_id: UUID, ignored: list[str] | None = None
) -> StoreFileBody:
    return _present_store_file(await caller.run(_read_attached, store_id, file_id), ignored)


async def _present_store(caller: Caller, store_id: UUID, ignored: list[str] | None = None) -> StoreBody:
    async with caller.transaction() as connection:
        (body,) = await _present_stores(connection, [await _read_store(connection, store_id)], ignored)
    return body


async def _present_stores(
    connection: Connection, corpora: Sequence[Corpus], ignored: list[str] | None = None
) -> list[StoreBody]:
    counted = await count_files(connection, [corpus.id for corpus in corpora])
    bodies = []
    for corpus in corpora:
        counts = counted.get(corpus.id, {})
        completed, failed = (counts.get(one, (0, 0))[0] for one in (UploadStatus.INDEXED, UploadStatus.FAILED))
        total = sum(number for number, _ in counts.values())
        waiting = total - completed - failed
        bodies.append(
            StoreBody(
                id=str(corpus.id),
                created_at=int(corpus.created_at.timestamp()),
                name=corpus.name,
                status="expired" if not corpus.active else "in_progress" if waiting else "completed",
                file_counts=FileCounts(in_progress=waiting, completed=completed, failed=failed, total=total),
                usage_bytes=sum(size for _, size in counts.values()),
                metadata=corpus.metadata,
                ignored=ignored or [],
            )
        )
    return bodies


def _present_store_file(document: StoredDocument, ignored: list[str] | None = None) -> StoreFileBody:
    last_error = None
    if document.status is UploadStatus.FAILED:
        code = "unsupported_file" if document.code == "unsupported_media_type" else "invalid_file"
        code = "server_error" if document.code in _OWN_FAULTS else code
        last_error = LastError(code=code, message=document.reason or "")
    return StoreFileBody(
        id=str(document.id),
        created_at=int(document.created_at.timestamp()),
        vector_store_id=str(document.corpus_id),
        status=_STATUS.get(document.status, "in_progress"),
        last_error=last_error,
        usage_bytes=document.size_bytes,
        attributes=attributes_of(document.fields, document.metadata),
        ignored=ignored or [],
    )


def _present_hit(hit: Hit) -> ResultBody:
    document = hit.chunk.document
    return ResultBody(
        file_id=str(document.id),
        filename=document.file_name or document.title,
        score=hit.scores.relevance,
        attributes=attributes_of(hit.chunk.metadata, hit.chunk.extra),
        content=[ContentBody(text=hit.chunk.text)],
    )

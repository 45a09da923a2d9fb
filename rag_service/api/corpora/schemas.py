"""The wire shapes of corpora, their documents and uploads."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from msgspec import UNSET, Meta, Struct, UnsetType

from rag_service.api.http.schemas import IngestRequest, LocationBody, Name, Tags

Groups = Annotated[
    Sequence[Annotated[str, Meta(min_length=1, max_length=200)]],
    Meta(max_length=100, description="Groups of the OpenID provider whose members can read a global corpus."),
]
Seconds = Annotated[int, Meta(description="Lifetime in seconds, 1 or more.")]


class CorpusCreate(Struct, kw_only=True, frozen=True, rename="camel", forbid_unknown_fields=True):
    name: Name
    kind: Literal["global", "personal"] = "personal"
    index: Annotated[str | None, Meta(description="Index definition of the corpus; default: RAG_INDEX.")] = None
    ttl_seconds: Seconds | None = None
    shared: Annotated[
        bool | None,
        Meta(description="Whether every user can read a global corpus; default: RAG_SHARE_GLOBAL_CORPORA."),
    ] = None


class CorpusUpdate(Struct, kw_only=True, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Fields that are omitted stay unchanged."""

    name: Name | UnsetType = UNSET
    active: bool | UnsetType = UNSET
    shared: Annotated[bool | UnsetType, Meta(description="Whether every user can read a global corpus.")] = UNSET
    groups: Groups | UnsetType = UNSET
    ttl_seconds: Annotated[
        Seconds | UnsetType | None, Meta(description="Lifetime of new documents; null: unlimited.")
    ] = UNSET


class CorpusBody(Struct, kw_only=True, frozen=True, rename="camel"):
    id: UUID
    name: str
    kind: str
    index: str
    active: bool
    shared: Annotated[bool, Meta(description="Whether every user can read it, if it is global.")] = False
    groups: Groups = ()
    ttl_seconds: int | None
    created_at: datetime
    updated_at: datetime


class ImportedSourceBody(Struct, kw_only=True, frozen=True, rename="camel"):
    target: Annotated[str, Meta(description="Without user, password and query.")]
    depth: int
    every_seconds: int


class ImportBody(Struct, kw_only=True, frozen=True, rename="camel"):
    """What an import brought."""

    corpus: CorpusBody
    documents: int
    chunks: int
    waiting: Annotated[
        int, Meta(description="Documents that were not indexed when they were exported; a worker indexes them.")
    ]
    stale: Annotated[int, Meta(description="Documents made with other settings; `rag-service reingest` updates them.")]
    embedded_again: Annotated[bool, Meta(description="Whether the file had the vectors of another embedding model.")]
    sources: Annotated[Sequence[ImportedSourceBody], Meta(description="Sources of the corpus, which are not added.")]


class CorpusList(Struct, kw_only=True, frozen=True):
    items: Sequence[CorpusBody]
    total: int
    indices: Annotated[
        Sequence[str], Meta(description="Index definitions available for a new corpus, the default first.")
    ] = ()


class UploadRequest(IngestRequest, kw_only=True, frozen=True, rename="camel", forbid_unknown_fields=True):
    """A text to store as a document."""

    ttl_seconds: Seconds | None = None
    path: Annotated[
        Annotated[str, Meta(max_length=1000)] | None,
        Meta(description="Folders and file name; keeps files with the same name in different folders separate."),
    ] = None


class DocumentUpdate(Struct, kw_only=True, frozen=True, rename="camel", forbid_unknown_fields=True):
    ttl_seconds: Annotated[Seconds | UnsetType | None, Meta(description="Lifetime from now on; null: unlimited.")] = (
        UNSET
    )
    tags: Annotated[Tags | UnsetType, Meta(description="All tags of the document; the ones it had are replaced.")] = (
        UNSET
    )


class ProgressBody(Struct, kw_only=True, frozen=True, rename="camel"):
    """In chunks; total is null until the document has been split."""

    done: int
    total: int | None


class UploadBody(Struct, kw_only=True, frozen=True, rename="camel"):
    """State of an upload."""

    upload_id: UUID
    document_id: Annotated[UUID | None, Meta(description="null: not yet known (`code` is `indexing_unavailable`).")]
    corpus_id: UUID
    file_name: str
    status: Annotated[str, Meta(description="pending, parsing, chunking, embedding, storing, indexed or failed.")]
    code: Annotated[str | None, Meta(description="Code of the error that delays the upload or made it fail.")]
    reason: Annotated[str | None, Meta(description="Human-readable description of that error.")]
    progress: ProgressBody
    attempts: int
    size_bytes: int
    expires_at: datetime | None
    created_at: datetime
    updated_at: datetime


class DocumentBody(Struct, kw_only=True, frozen=True, rename="camel"):
    """A document with the state of its latest upload."""

    id: UUID
    corpus_id: UUID
    name: str
    title: str
    file_name: str | None
    source: str | None
    tags: Sequence[str]
    language: str | None
    media_type: str | None
    content_hash: str
    chunk_count: int
    size_bytes: int
    expires_at: datetime | None
    created_at: datetime
    updated_at: datetime
    fields: dict[str, str]
    warnings: Annotated[
        Sequence[str], Meta(description="Content of the file that is missing from the text, such as scanned pages.")
    ]
    upload_id: UUID | None
    status: str
    code: str | None
    reason: str | None
    progress: ProgressBody
    stale: Annotated[
        bool,
        Meta(description="Ingested with outdated settings; searches use this version until it is ingested again."),
    ]


class DocumentList(Struct, kw_only=True, frozen=True, rename="camel", omit_defaults=True):
    items: Sequence[DocumentBody]
    total: int


class TagBody(Struct, kw_only=True, frozen=True):
    name: str
    documents: Annotated[int, Meta(description="Number of documents with this tag.")]


class TagList(Struct, kw_only=True, frozen=True):
    items: Sequence[TagBody]
    total: int


class SpanBody(Struct, kw_only=True, frozen=True):
    start: int
    end: int
    location: LocationBody | None


class ChunkBody(Struct, kw_only=True, frozen=True, rename="camel"):
    id: str
    index: int
    text: str
    start: Annotated[int, Meta(description="First character in the document's stored text.")]
    end: int
    type: str | None
    spans: Sequence[SpanBody]


class ChunkList(Struct, kw_only=True, frozen=True):
    items: Sequence[ChunkBody]
    total: int

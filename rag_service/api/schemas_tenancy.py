"""The wire shapes of corpora, documents, agents, keys, users, conversations and feedback."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from msgspec import UNSET, Meta, Struct, UnsetType, field

from rag_service.api.schemas import AnswerBody, IngestRequest, LocationBody

Name = Annotated[str, Meta(max_length=200)]
LongText = Annotated[str, Meta(max_length=20_000)]
Seconds = Annotated[int, Meta(description="Lifetime in seconds, 1 or more.")]
ScopeName = Literal["read", "write", "admin"]
RoleName = Literal["admin", "user"]


class CorpusCreate(Struct, kw_only=True, frozen=True, rename="camel", forbid_unknown_fields=True):
    name: Name
    kind: Literal["global", "personal"] = "personal"
    index: Annotated[str | None, Meta(description="Index definition that rules it; RAG_INDEX when missing.")] = None
    ttl_seconds: Seconds | None = None


class CorpusUpdate(Struct, kw_only=True, frozen=True, rename="camel", forbid_unknown_fields=True):
    """What is missing stays as it is."""

    name: Name | UnsetType = UNSET
    active: bool | UnsetType = UNSET
    ttl_seconds: Annotated[Seconds | UnsetType | None, Meta(description="null: documents are kept for ever.")] = UNSET


class CorpusBody(Struct, kw_only=True, frozen=True, rename="camel"):
    id: UUID
    name: str
    kind: str
    index: str
    active: bool
    ttl_seconds: int | None
    created_at: datetime
    updated_at: datetime


class CorpusList(Struct, kw_only=True, frozen=True):
    items: Sequence[CorpusBody]
    total: int


class UploadRequest(IngestRequest, kw_only=True, frozen=True, rename="camel", forbid_unknown_fields=True):
    """A text to store as a document."""

    ttl_seconds: Seconds | None = None


class DocumentUpdate(Struct, kw_only=True, frozen=True, rename="camel", forbid_unknown_fields=True):
    ttl_seconds: Annotated[Seconds | None, Meta(description="From now on; null: kept for ever.")]


class ProgressBody(Struct, kw_only=True, frozen=True, rename="camel"):
    """In chunks; total is null until they are cut."""

    done: int
    total: int | None


class UploadBody(Struct, kw_only=True, frozen=True, rename="camel"):
    """How an upload fares."""

    upload_id: UUID
    document_id: UUID
    corpus_id: UUID
    file_name: str
    status: Annotated[str, Meta(description="pending, parsing, chunking, embedding, storing, indexed or failed.")]
    code: Annotated[str | None, Meta(description="Of the error that failed or delays it.")]
    reason: Annotated[str | None, Meta(description="The same for people.")]
    progress: ProgressBody
    attempts: int
    size_bytes: int
    expires_at: datetime | None
    created_at: datetime
    updated_at: datetime


class DocumentBody(Struct, kw_only=True, frozen=True, rename="camel"):
    """A document with the state of its newest upload."""

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
    upload_id: UUID | None
    status: str
    code: str | None
    reason: str | None
    progress: ProgressBody
    stale: Annotated[
        bool, Meta(description="Made by other settings than those in force; found as it is until ingested again.")
    ]


class DocumentList(Struct, kw_only=True, frozen=True):
    items: Sequence[DocumentBody]
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


class AgentRequest(Struct, kw_only=True, frozen=True, rename="camel", forbid_unknown_fields=True):
    """An agent as a whole; null fields follow the settings."""

    name: Name
    description: Annotated[str, Meta(max_length=2000)] = ""
    system_prompt: LongText = ""
    model_provider: Literal["extractive", "ollama", "openai_like"] | None = None
    model_name: Name | None = None
    temperature: Annotated[float | None, Meta(description="0 to 2.")] = None
    max_tokens: Annotated[int | None, Meta(description="16 or more.")] = None
    allows_personal_corpus: bool = False
    active: bool = True


class AgentBody(Struct, kw_only=True, frozen=True, rename="camel"):
    id: UUID
    name: str
    description: str
    system_prompt: str
    model_provider: str | None
    model_name: str | None
    temperature: float | None
    max_tokens: int | None
    allows_personal_corpus: bool
    active: bool
    created_at: datetime
    updated_at: datetime


class AgentList(Struct, kw_only=True, frozen=True):
    items: Sequence[AgentBody]
    total: int


class MessageRequest(Struct, kw_only=True, frozen=True, rename="camel", forbid_unknown_fields=True):
    role: Literal["user", "assistant"]
    content: LongText


class ChatRequest(Struct, kw_only=True, frozen=True, rename="camel", forbid_unknown_fields=True):
    """A conversation whose last message is the question."""

    messages: Annotated[list[MessageRequest], Meta(max_length=200)]
    project_id: Annotated[UUID | None, Meta(description="Groups conversations.")] = None
    conversation_id: Annotated[
        UUID | None, Meta(description="Goes on with a stored conversation; with one message, from its history.")
    ] = None
    stream: bool = False
    top_k: int | None = None
    similarity_threshold: float | None = None


class ChatBody(AnswerBody, kw_only=True, frozen=True, rename="camel"):
    """An answer within a conversation."""

    rag_used: Annotated[bool, Meta(description="Whether it comes from documents.")]
    context_use: Annotated[str, Meta(description="used, no_context or store_unavailable.")]
    standalone_question: Annotated[str, Meta(description="What was searched for.")]
    conversation_id: Annotated[UUID | None, Meta(description="null when it could not be stored.")]


class KeyCreate(Struct, kw_only=True, frozen=True, rename="camel", forbid_unknown_fields=True):
    name: Name
    scopes: Annotated[list[ScopeName], Meta(max_length=3)] = field(default_factory=lambda: ["read", "write"])
    user_id: Annotated[UUID | None, Meta(description="For another user; administrators only.")] = None
    expires_at: datetime | None = None


class KeyBody(Struct, kw_only=True, frozen=True, rename="camel"):
    id: UUID
    user_id: UUID
    name: str
    prefix: str
    scopes: Sequence[str]
    created_at: datetime
    last_used_at: datetime | None
    expires_at: datetime | None
    revoked_at: datetime | None
    key: Annotated[str | None, Meta(description="The key itself: once, in the reply that creates it.")] = None


class KeyList(Struct, kw_only=True, frozen=True):
    items: Sequence[KeyBody]
    total: int


class UserCreate(Struct, kw_only=True, frozen=True, rename="camel", forbid_unknown_fields=True):
    name: Name
    role: RoleName = "user"
    subject: Annotated[Name | None, Meta(description="`sub` of the user's bearer tokens.")] = None


class UserUpdate(Struct, kw_only=True, frozen=True, rename="camel", forbid_unknown_fields=True):
    """What is missing stays as it is."""

    role: RoleName | None = None
    active: bool | None = None


class UserBody(Struct, kw_only=True, frozen=True, rename="camel"):
    id: UUID
    name: str
    role: str
    active: bool
    subject: str | None
    created_at: datetime


class MeBody(UserBody, kw_only=True, frozen=True, rename="camel"):
    scopes: Annotated[Sequence[str], Meta(description="read, write, admin: what the credential in use allows.")]


class UserList(Struct, kw_only=True, frozen=True):
    items: Sequence[UserBody]
    total: int


class ProjectCreate(Struct, kw_only=True, frozen=True, rename="camel", forbid_unknown_fields=True):
    name: Name


class ProjectBody(Struct, kw_only=True, frozen=True, rename="camel"):
    id: UUID
    name: str
    created_at: datetime


class ProjectList(Struct, kw_only=True, frozen=True):
    items: Sequence[ProjectBody]
    total: int


class ConversationBody(Struct, kw_only=True, frozen=True, rename="camel"):
    id: UUID
    project_id: UUID | None
    agent_id: UUID | None
    title: str
    created_at: datetime
    updated_at: datetime


class ConversationList(Struct, kw_only=True, frozen=True):
    items: Sequence[ConversationBody]
    total: int


class MessageBody(Struct, kw_only=True, frozen=True, rename="camel"):
    id: UUID
    role: str
    content: str
    citations: Sequence[Any]
    answer_id: UUID | None
    created_at: datetime


class MessageList(Struct, kw_only=True, frozen=True):
    items: Sequence[MessageBody]
    total: int


class FeedbackRequest(Struct, kw_only=True, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Giving feedback shows question and answer to the administrators."""

    thumbs: Literal["up", "down"]
    comment: Annotated[str, Meta(max_length=4000)] = ""


class FeedbackBody(Struct, kw_only=True, frozen=True, rename="camel"):
    answer_id: UUID
    user_id: UUID
    thumbs: str
    comment: str
    question: str
    answer: str
    created_at: datetime
    updated_at: datetime


class FeedbackList(Struct, kw_only=True, frozen=True):
    items: Sequence[FeedbackBody]
    total: int

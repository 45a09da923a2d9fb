"""The wire shapes of agents, chats and conversations, and of what their readers thought of the answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from msgspec import UNSET, Meta, Struct, UnsetType

from rag_service.api.http.schemas import MAX_MESSAGES, AnswerBody, LongText, MessageRequest, Name, Replaces


class AgentRequest(Struct, kw_only=True, frozen=True, rename="camel", forbid_unknown_fields=True):
    """A complete agent; null fields follow the settings."""

    name: Name
    description: Annotated[str, Meta(max_length=2000)] = ""
    system_prompt: LongText = ""
    model_provider: Annotated[Name | None, Meta(description="One of RAG_AGENT_PROVIDERS.")] = None
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


class ChatRequest(Struct, kw_only=True, frozen=True, rename="camel", forbid_unknown_fields=True):
    """A conversation whose last message is the question."""

    messages: Annotated[list[MessageRequest], Meta(max_length=MAX_MESSAGES + 1)]
    project_id: Annotated[UUID | None, Meta(description="Project that the conversation belongs to.")] = None
    conversation_id: Annotated[
        UUID | None, Meta(description="Conversation to continue; with a single message, its history is used.")
    ] = None
    replaces: Replaces = None
    stream: bool = False
    top_k: int | None = None
    similarity_threshold: float | None = None


class KeptAnswerBody(AnswerBody, kw_only=True, frozen=True, rename="camel"):
    """An answer to be stored in a conversation."""

    conversation_id: Annotated[UUID | None, Meta(description="null if the conversation could not be stored.")]


class ChatBody(KeptAnswerBody, kw_only=True, frozen=True, rename="camel"):
    """An answer within a conversation."""

    rag_used: Annotated[bool, Meta(description="Whether documents were used.")]
    context_use: Annotated[str, Meta(description="used, no_context or store_unavailable.")]
    standalone_question: Annotated[str, Meta(description="The question used for the search.")]


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
    pinned: Annotated[bool, Meta(description="Pinned conversations are listed first.")]
    shared: Annotated[
        bool, Meta(description="Whether users who may read all corpora that its answers rest on can read it.")
    ]
    owner: Annotated[str | None, Meta(description="Name of the user who shares it with you; null: it is your own.")]
    created_at: datetime
    updated_at: datetime
    excerpt: Annotated[
        str | None,
        Meta(description="In a search: the part of a message in which the words stand; null: only the title has them."),
    ]


class ConversationUpdate(Struct, kw_only=True, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Fields that are omitted stay unchanged."""

    title: Name | UnsetType = UNSET
    pinned: bool | UnsetType = UNSET


class ConversationList(Struct, kw_only=True, frozen=True):
    items: Sequence[ConversationBody]
    total: int


class MessageBody(Struct, kw_only=True, frozen=True, rename="camel"):
    id: UUID
    role: str
    content: str
    citations: Sequence[Any]
    answer_id: UUID | None
    agent_id: Annotated[UUID | None, Meta(description="The agent that was asked; null: no agent.")]
    details: Annotated[
        Mapping[str, Any], Meta(description="For answers: the other fields, without the text of passages.")
    ]
    source_changes: Annotated[
        Mapping[UUID, Literal["changed", "gone"]],
        Meta(
            description="Cited documents, by id, that are no longer as they were cited: `changed`, or `gone` (deleted, "
            "expired, or you may no longer read them)."
        ),
    ]
    created_at: datetime


class MessageList(Struct, kw_only=True, frozen=True):
    items: Sequence[MessageBody]
    total: int


Place = Annotated[
    int, Meta(ge=0, le=100_000, description="Index in the answer's `citations`, from 0; null: the whole answer.")
]


class FeedbackRequest(Struct, kw_only=True, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Feedback makes the question and answer visible to administrators."""

    thumbs: Literal["up", "down"]
    comment: Annotated[str, Meta(max_length=4000)] = ""
    citation: Place | None = None


class FeedbackBody(Struct, kw_only=True, frozen=True, rename="camel"):
    answer_id: UUID
    user_id: UUID
    citation: Place | None
    thumbs: str
    comment: str
    question: str
    answer: str
    quote: Annotated[str, Meta(description="Quote of the citation.")]
    created_at: datetime
    updated_at: datetime


class FeedbackList(Struct, kw_only=True, frozen=True):
    items: Sequence[FeedbackBody]
    total: int


class DifferenceBody(Struct, kw_only=True, frozen=True):
    what: Annotated[str, Meta(description="model, prompt, index, settings, agent, chunks, answer or verification.")]
    detail: str


class ReplayBody(Struct, kw_only=True, frozen=True):
    """How a new answer to the same question differs."""

    differences: Sequence[DifferenceBody]

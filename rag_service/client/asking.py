"""What `search`, `ask`, `retriever` and `query_engine` take, as the requests of the API."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any
from uuid import UUID

import msgspec

from rag_service.api.http.schemas import AnswerRequest, MessageRequest, SearchRequest
from rag_service.errors import InputError

if TYPE_CHECKING:
    from llama_index.core.llms import ChatMessage
    from llama_index.core.vector_stores.types import MetadataFilters

Filter = Mapping[str, Any]  # as `filter` of the API: {"field": "year", "operator": ">=", "value": 2023}
Messages = Sequence["Mapping[str, str] | ChatMessage"]  # {"role": "user", "content": "…"}


def make_request(
    question: str,
    *,
    top_k: int | None = None,
    threshold: float | None = None,
    source: str | None = None,
    tags: Sequence[str] = (),
    file_name: str | None = None,
    document_ids: Sequence[UUID] = (),
    corpus_ids: Sequence[UUID] = (),
    fields: Mapping[str, str] | None = None,
    filter: Filter | MetadataFilters | None = None,
) -> SearchRequest:
    """The request of a search; its arguments are those of `Service.search`."""
    return SearchRequest(
        query=question,
        top_k=top_k,
        similarity_threshold=threshold,
        source=source,
        tags=list(tags),
        file_name=file_name,
        document_ids=list(document_ids),
        corpus_ids=list(corpus_ids),
        fields=dict(fields or {}),
        filter=None if filter is None else _as_mapping(filter),
    )


def _as_mapping(given: Filter | MetadataFilters) -> dict[str, Any]:
    """A filter as the API takes it; LlamaIndex's says the same in other words."""
    if isinstance(given, Mapping):
        return dict(given)
    from llama_index.core.vector_stores.types import MetadataFilter

    parts = [
        {"field": part.key, "operator": part.operator.value, "value": part.value}
        if isinstance(part, MetadataFilter)
        else _as_mapping(part)
        for part in given.filters
    ]
    return {"and" if given.condition is None else given.condition.value: parts}


def make_answer_request(
    search: SearchRequest,
    messages: Messages,
    *,
    stream: bool,
    keep: bool,
    conversation_id: UUID | None,
    replaces: UUID | None,
) -> AnswerRequest:
    """The request of an answer to the question of a search. Raises InputError if a message is none."""
    return AnswerRequest(
        **msgspec.structs.asdict(search),
        messages=[_read_message(message) for message in messages],
        stream=stream,
        keep=keep,
        conversation_id=conversation_id,
        replaces=replaces,
    )


def _read_message(message: Mapping[str, str] | ChatMessage) -> MessageRequest:
    """An earlier message; those of LlamaIndex may have other roles."""
    role, content = (
        (message.get("role"), message.get("content"))
        if isinstance(message, Mapping)
        else (message.role.value, message.content)
    )
    if role not in ("user", "assistant") or content is None:
        raise InputError("must have the role user or assistant, and a content.", field="messages")
    return MessageRequest(role="user" if role == "user" else "assistant", content=content)

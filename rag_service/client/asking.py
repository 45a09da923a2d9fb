"""The arguments of `search`, `ask`, `retriever` and `query_engine`, and the requests of the API made of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypedDict, Unpack
from uuid import UUID

import msgspec

from rag_service.api.http.schemas import AnswerRequest, MessageRequest, SearchRequest
from rag_service.errors import InputError

if TYPE_CHECKING:
    from llama_index.core.llms import ChatMessage
    from llama_index.core.vector_stores.types import MetadataFilters
    from pydantic import BaseModel

Filter = Mapping[str, Any]  # as `filter` of the API: {"field": "year", "operator": ">=", "value": 2023}
Messages = Sequence["Mapping[str, str] | ChatMessage"]  # {"role": "user", "content": "…"}


class SearchOptions(TypedDict, total=False):
    """Options of `search`, `ask`, `retriever` and `query_engine`; `Service.search` describes them."""

    top_k: int | None
    threshold: float | None
    source: str | None
    tags: Sequence[str]
    file_name: str | None
    document_ids: Sequence[UUID]
    corpus_ids: Sequence[UUID]
    fields: Mapping[str, str] | None
    filter: Filter | MetadataFilters | None


class AskOptions(SearchOptions, total=False):
    """Options of `ask`, which `Service.ask` describes."""

    schema: Mapping[str, Any] | type[BaseModel] | None

    messages: Messages
    keep: bool
    conversation_id: UUID | None
    replaces: UUID | None


def make_request(question: str, **options: Unpack[SearchOptions]) -> SearchRequest:
    """Return the request of a search. Raises TypeError for an option that does not exist."""
    _refuse_others(options, SearchOptions.__annotations__)
    filter = options.get("filter")
    return SearchRequest(
        query=question,
        top_k=options.get("top_k"),
        similarity_threshold=options.get("threshold"),
        source=options.get("source"),
        tags=list(options.get("tags", ())),
        file_name=options.get("file_name"),
        document_ids=list(options.get("document_ids", ())),
        corpus_ids=list(options.get("corpus_ids", ())),
        fields=dict(options.get("fields") or {}),
        filter=None if filter is None else _as_mapping(filter),
    )


def _refuse_others(options: Iterable[str], known: Iterable[str]) -> None:
    """Raise TypeError for an option that is not among those known, as Python does for an argument."""
    for name in options:
        if name not in set(known):
            raise TypeError(f"unexpected keyword argument {name!r}; there are {', '.join(known)}")


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


def make_answer_request(question: str, *, stream: bool, **options: Unpack[AskOptions]) -> AnswerRequest:
    """Return the request of an answer.

    Raises:
        InputError: a message has another role, or no content.
        TypeError: an option does not exist.
    """
    _refuse_others(options, AskOptions.__annotations__)
    searched = {name: value for name, value in options.items() if name in SearchOptions.__annotations__}
    return AnswerRequest(
        **msgspec.structs.asdict(make_request(question, **searched)),  # type: ignore[arg-type]  # they are its options
        messages=[_read_message(message) for message in options.get("messages", ())],
        stream=stream,
        keep=options.get("keep", False),
        conversation_id=options.get("conversation_id"),
        replaces=options.get("replaces"),
        schema=_read_schema(options.get("schema")),
    )


def _read_schema(given: Mapping[str, Any] | type[BaseModel] | None) -> dict[str, Any] | None:
    """A JSON schema, or that of a Pydantic class."""
    if given is None or isinstance(given, Mapping):
        return None if given is None else dict(given)
    if not hasattr(given, "model_json_schema"):
        raise InputError("must be a Pydantic class or a JSON schema.", field="schema")
    return given.model_json_schema()


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

"""Which requests the OpenAI-compatible API accepts.

Only what would change the shape of the reply is refused. Fields without effect are listed in the reply.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from msgspec import Struct

from rag_service.answering.guards.injection import neutralise
from rag_service.answering.prompt.templates import AGENT_PROMPT
from rag_service.api.http.problems import FieldError, InvalidRequestError
from rag_service.api.http.queries import read_question
from rag_service.api.http.schemas import SearchRequest
from rag_service.api.openai.attributes import MAX_RESULTS, read_filters
from rag_service.api.openai.questions import is_task, question_in, reply_without_model
from rag_service.api.openai.schemas import ChatCompletionRequest, ChatMessage, ContentPart, Sampling
from rag_service.api.openai.stream import without_sources
from rag_service.domain import FilterTree, Identity, Turn
from rag_service.retrieval.answer_schema import read_schema
from rag_service.retrieval.question import Question, Task
from rag_service.settings import Settings

_LENGTHS = ("max_tokens", "max_completion_tokens", "max_output_tokens")
_INSTRUCTIONS = ("system", "developer")
_LIMITS = ("vector_store_ids", "filters", "max_num_results")  # of a search
_SPOKEN = ("user", "assistant")
_TEXTS = ("text", "input_text", "output_text", "refusal")
# Labels of the caller's own, which nobody expects to change the answer.
_LABELS = frozenset(
    {
        "metadata",
        "prompt_cache_key",
        "prompt_cache_options",
        "prompt_cache_retention",
        "safety_identifier",
        "service_tier",
        "store",
        "user",
    }
)


@dataclass(frozen=True, kw_only=True)
class Conversation:
    """What a request asks, and what was said before."""

    question: Question  # the last message, without what was pasted into it
    turns: tuple[Turn, ...] = ()  # before the question, oldest first
    instructions: str = ""  # of `system` and `developer` messages, neutralised
    ignored: tuple[str, ...] = ()  # fields and parts of the request without effect
    asked: str | None = None  # the part of the last message that is searched for; None: all of it

    def as_one_question(self) -> Question:
        """Return the question with the conversation, for the engine, which makes it standalone."""
        question = self.question
        if self.instructions:
            question = replace(question, instructions=self.instructions, prompt=AGENT_PROMPT)
        return replace(question, turns=self.turns) if self.turns else question


def without_open_lengths(body: Mapping[str, Any]) -> dict[str, Any]:
    """A body without lengths of -1, by which some programs say that there is no limit."""
    return {name: value for name, value in body.items() if name not in _LENGTHS or value != -1}


def find_ignored(body: Mapping[str, Any], kind: type[Struct]) -> tuple[str, ...]:
    """The fields of a body that have no effect: no labels, and not among those of the kind of request."""
    known = _LABELS.union(kind.__struct_fields__) - set(Sampling.__struct_fields__)
    if isinstance(tools := body.get("tools"), list) and tools and all(map(_limits_search, tools)):
        known |= {"tools"}  # which say where to search
    return tuple(sorted(name for name, value in body.items() if value is not None and name not in known))


def read_conversation(
    request: ChatCompletionRequest, ignored: Sequence[str], settings: Settings, identity: Identity
) -> Conversation:
    """The question of a request, its history and its instructions.

    Raises InvalidRequestError, which names every field that is wrong or asks for a reply of another shape. `ignored`:
    fields of the body without effect.
    """
    errors = [*_find_unsupported(request), *_find_message_errors(request.messages)]
    ignored = [*ignored, *_find_passed_over(request.messages)]
    if settings.http.openai_strict:
        errors += [FieldError(name, "is not supported; leave it out") for name in ignored]
    if errors:
        raise InvalidRequestError(errors)
    searched = _read_searches(request.tools or ())
    last = len(request.messages) - 1
    message = _text_of(request.messages[last]).strip()
    text = question_in(message, limit=settings.limits.query_max_chars)
    try:
        question = read_question(SearchRequest(query=text, corpus_ids=searched.stores), settings, identity)
    except InvalidRequestError as error:
        raise InvalidRequestError(
            [FieldError(f"messages[{last}].content", fault.message) for fault in error.errors]
        ) from error
    if searched.where is not None:
        question = replace(question, filters=replace(question.filters, where=searched.where, any_field=True))
    if searched.most is not None:
        question = replace(question, top_k=min(searched.most, settings.retrieval.max_top_k))
    question = replace(question, retractable=not request.stream)  # these streams have no words for it
    form = request.response_format
    schema = form.json_schema.schema if form is not None and form.json_schema is not None else None
    if schema is not None and form is not None and form.type == "json_schema":
        question = replace(question, schema=read_schema(schema, "response_format.json_schema.schema"))
    elif is_task(message):
        question = replace(question, task=Task(prompt=message, otherwise=reply_without_model(message)), recorded=False)
    said = [(message.role, _text_of(message).strip()) for message in request.messages[:last]]
    return Conversation(
        question=question,
        turns=tuple(
            Turn(role="assistant", content=without_sources(text))
            if role == "assistant"
            else Turn(role="user", content=text)
            for role, text in said
            if role in _SPOKEN and text
        ),
        instructions="\n\n".join(neutralise(text) for role, text in said if role in _INSTRUCTIONS and text),
        ignored=tuple(ignored),
        asked=text if text != message else None,
    )


@dataclass(frozen=True, kw_only=True)
class _Searched:
    """What the `file_search` tools of a request limit the search to."""

    stores: list[UUID]
    where: FilterTree | None
    most: int | None  # passages


def _limits_search(tool: Any) -> bool:
    return isinstance(tool, Mapping) and any(map(_options(tool).get, _LIMITS))


def _options(tool: Mapping[str, Any]) -> Mapping[str, Any]:
    """Those of a tool `file_search`: beside its type in the Responses API, in a field of that name elsewhere."""
    if tool.get("type") != "file_search":
        return {}
    nested = tool.get("file_search")
    return {**tool, **nested} if isinstance(nested, Mapping) else tool


def _read_searches(tools: Sequence[Mapping[str, Any]]) -> _Searched:
    """What `file_search` tools name: corpora as vector stores, a filter, and how many passages are found.

    Raises InvalidRequestError for what cannot be that: a search of everything would be a wrong answer.
    """
    found: list[UUID] = []
    errors: list[FieldError] = []
    parts: list[FilterTree] = []
    most: int | None = None
    for position, options in enumerate(map(_options, tools)):
        if (raw := options.get("filters")) is not None:
            parts.append(read_filters(raw, f"tools[{position}].filters"))
        if (number := options.get("max_num_results")) is not None:
            most = number if isinstance(number, int) and 1 <= number <= MAX_RESULTS else 0
            if not most:
                errors.append(FieldError(f"tools[{position}].max_num_results", f"must be from 1 to {MAX_RESULTS}"))
        ids = options.get("vector_store_ids")
        for store in ids if isinstance(ids, list) else filter(None, [ids]):
            try:
                found.append(UUID(str(store)))
            except ValueError:
                advice = f"{str(store)[:80]!r} is not known here; use the id of a corpus, or leave the ids out"
                errors.append(FieldError(f"tools[{position}].vector_store_ids", advice))
    if errors:
        raise InvalidRequestError(errors)
    if len(parts) > 1:
        raise InvalidRequestError([FieldError("tools", "must have one filter: one search is made")])
    return _Searched(stores=found, where=parts[0] if parts else None, most=most)


def _find_unsupported(request: ChatCompletionRequest) -> Iterator[FieldError]:
    """An error for each field that asks for a reply of another shape."""
    if request.n not in (None, 1):
        yield FieldError("n", "must be 1")
    form = request.response_format
    if form is not None and form.type not in ("text", "json_schema"):
        yield FieldError("response_format.type", "must be 'text' or 'json_schema': JSON is made of a schema")
    elif form is not None and form.type == "json_schema" and (not form.json_schema or form.json_schema.schema is None):
        yield FieldError("response_format.json_schema", "must hold the JSON schema of the answer, as its `schema`")
    if request.modalities not in (None, ["text"]):
        yield FieldError("modalities", "must be ['text']")
    if request.tool_choice not in (None, "auto", "none"):
        yield FieldError("tool_choice", "must be 'auto' or 'none', because tools are never called")


def _find_message_errors(messages: Sequence[ChatMessage]) -> Iterator[FieldError]:
    if not messages:
        yield FieldError("messages", "must not be empty")
    elif messages[-1].role != "user":
        yield FieldError("messages", "must end with a message with the role user")
    for number, position, part in _find_other_parts(messages):
        if number == len(messages) - 1:
            name = f"messages[{number}].content[{position}].type"
            yield FieldError(name, f"{part.type[:40]!r} is not supported; use text")


def _find_passed_over(messages: Sequence[ChatMessage]) -> Iterator[str]:
    """Names of the images and other parts of earlier messages, which the question can do without."""
    for number, position, _ in _find_other_parts(messages[:-1]):
        yield f"messages[{number}].content[{position}]"


def _find_other_parts(messages: Sequence[ChatMessage]) -> Iterator[tuple[int, int, ContentPart]]:
    """(number of the message, position in it, part) of each part that is no text."""
    for number, message in enumerate(messages):
        for position, part in enumerate(message.content if isinstance(message.content, list) else ()):
            if part.type not in _TEXTS:
                yield number, position, part


def _text_of(message: ChatMessage) -> str:
    if isinstance(message.content, list):
        return "\n".join(part.text for part in message.content)
    return message.content or ""

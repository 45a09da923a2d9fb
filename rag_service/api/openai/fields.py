"""Which requests the OpenAI-compatible API accepts.

A field is accepted if the answer it asks for is the one that the service gives; all else is refused by name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from rag_service.agents.history import HISTORY_TOKENS, Turn, cut_history, lean_on_history, render_history
from rag_service.api.http.presenters import read_query
from rag_service.api.http.problems import FieldError, InvalidRequestError
from rag_service.api.http.schemas import SearchRequest
from rag_service.api.openai.schemas import ChatCompletionRequest, ChatMessage
from rag_service.domain import Identity
from rag_service.language.detection import guess_language
from rag_service.language.languages import FALLBACK_LANGUAGE
from rag_service.settings import Settings

if TYPE_CHECKING:  # loads LlamaIndex
    from rag_service.retrieval.query import RagQuery

_ROLES = ("user", "assistant")

# Field → values that change nothing, besides null. A field that is not named here has none.
_NEUTRAL: Mapping[str, Sequence[Any]] = {
    "audio": (),
    "frequency_penalty": (0,),
    "function_call": ("none", "auto"),  # without functions both mean: none
    "functions": ([],),
    "logit_bias": ({},),
    "logprobs": (False,),
    "modalities": (["text"],),
    "moderation": (),
    "n": (1,),
    "parallel_tool_calls": (True, False),  # without tools it means nothing
    "prediction": (),
    "presence_penalty": (0,),
    "reasoning_effort": (),
    "response_format": ({"type": "text"},),
    "seed": (),
    "stop": ([],),
    "store": (True, False),  # an answer is stored with its proof in any case
    "tool_choice": ("none", "auto"),
    "tools": ([],),
    "top_logprobs": (0,),
    "top_p": (1,),
    "verbosity": (),
    "web_search_options": (),
}
# Nothing is sampled without a model, so these are as good as met.
_SAMPLING = frozenset({"temperature", "top_p", "seed", "frequency_penalty", "presence_penalty"})


@dataclass(frozen=True, kw_only=True)
class Conversation:
    """What a request asks, and what was said before."""

    query: RagQuery  # its question is the last message, as it was asked
    history: tuple[Turn, ...]  # oldest first

    def as_one_question(self) -> RagQuery:
        """The query for an engine that answers single questions: a short question leans on the one before it."""
        if not self.history:
            return self.query
        language = guess_language(self.query.question) or FALLBACK_LANGUAGE
        return replace(
            self.query,
            query_str=lean_on_history(self.query.question, self.history, language),
            history=render_history(cut_history(self.history, max_tokens=HISTORY_TOKENS)),
        )


def read_conversation(request: ChatCompletionRequest, settings: Settings, identity: Identity) -> Conversation:
    """The question of a request and its history.

    Raises:
        InvalidRequestError: names every field that asks for what the service does not do, or is wrong.
    """
    errors = [*find_unsupported(request, settings), *_find_message_errors(request.messages)]
    if errors:
        raise InvalidRequestError(errors)
    last = len(request.messages) - 1
    try:
        query = read_query(SearchRequest(query=_text_of(request.messages[last])), settings, identity)
    except InvalidRequestError as error:
        raise InvalidRequestError(
            [FieldError(f"messages[{last}].content", fault.message) for fault in error.errors]
        ) from error
    return Conversation(query=query, history=tuple(_read_turns(request.messages[:last])))


def _read_turns(messages: Sequence[ChatMessage]) -> Iterator[Turn]:
    for message in messages:
        text = _text_of(message)
        if text.strip():
            yield Turn(role="assistant" if message.role == "assistant" else "user", content=text)


def find_unsupported(request: ChatCompletionRequest, settings: Settings) -> Iterator[FieldError]:
    """An error for each field that asks for something that the service does not do."""
    sampled = settings.chat.provider != "extractive"
    for name, neutral in _NEUTRAL.items():
        value = getattr(request, name)
        if value is None or _is_one_of(value, neutral) or (name in _SAMPLING and not sampled and _is_number(value)):
            continue
        allowed = " or ".join(repr(option) for option in neutral)
        only = f", except for the value {allowed}" if neutral else ""
        yield FieldError(name, f"is not supported{only}; leave it out")
    if sampled and request.temperature not in (None, settings.chat.temperature):
        yield FieldError("temperature", f"is not supported; the service answers with {settings.chat.temperature}")
    for name in ("max_tokens", "max_completion_tokens"):
        limit = getattr(request, name)
        if limit is not None and limit < settings.chat.max_tokens:
            yield FieldError(name, f"must be {settings.chat.max_tokens} or more: a cut answer would lose its proof")


def _is_one_of(value: Any, options: Sequence[Any]) -> bool:
    """Equality that tells true from 1."""
    return any(value == option and isinstance(value, bool) is isinstance(option, bool) for option in options)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _find_message_errors(messages: Sequence[ChatMessage]) -> Iterator[FieldError]:
    if not messages:
        yield FieldError("messages", "must not be empty")
        return
    for number, message in enumerate(messages):
        yield from _find_faults(message, f"messages[{number}]")
    if messages[-1].role == "assistant":
        yield FieldError("messages", "must end with a message of the role user")


def _find_faults(message: ChatMessage, name: str) -> Iterator[FieldError]:
    if message.role in ("system", "developer"):
        if _text_of(message).strip():
            yield FieldError(
                f"{name}.role",
                f"'{message.role}' is not supported: the service has its own instructions, and administrators "
                "add to them with agents; leave the message out",
            )
    elif message.role not in _ROLES:
        yield FieldError(f"{name}.role", f"{message.role[:40]!r} is not supported; use user or assistant")
    if message.tool_calls:
        yield FieldError(f"{name}.tool_calls", "is not supported")
    if isinstance(message.content, list):
        for position, part in enumerate(message.content):
            if part.type != "text":
                yield FieldError(f"{name}.content[{position}].type", f"{part.type[:40]!r} is not supported; use text")


def _text_of(message: ChatMessage) -> str:
    if isinstance(message.content, list):
        return "\n".join(part.text for part in message.content)
    return message.content or ""

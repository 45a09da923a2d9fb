"""A streamed answer as `chat.completion.chunk` events; a late failure is an `error` event without `[DONE]`."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from uuid import UUID

import msgspec

from rag_service.answering.guards.output_guard import guard_name
from rag_service.api.http.events import SSE, SSE_HEARTBEAT, WireEvent
from rag_service.api.http.problems import Problem
from rag_service.api.http.schemas import AnswerBody, DeltaData
from rag_service.api.openai.errors import present_error
from rag_service.api.openai.schemas import (
    ChatCompletion,
    ChatCompletionChunk,
    Choice,
    ChunkChoice,
    CompletionMessage,
    Delta,
    RagBody,
    Usage,
)

_DONE = b"data: [DONE]\n\n"


_LISTED = re.compile(r"\n\n(?:\[C\d+\] [^\n]*(?:\n|\Z))+\Z")


@dataclass(frozen=True, kw_only=True)
class CompletionForm:
    """What a reply holds besides the answer."""

    model: str  # as the request named it
    key: UUID  # of the answer
    ignored: tuple[str, ...] = ()  # fields of the request without effect
    with_sources: bool = True  # list the sources below the answer
    asked: str | None = None  # the part of the message that was searched for; None: all of it
    file_search: str | None = None  # the question, if the request has a tool `file_search`
    as_json: bool = False  # the answer is JSON of a schema

    def text(self, answer: AnswerBody) -> str:
        """The whole text of a message."""
        return self.rest(answer) if self.as_json else answer.answer + self.rest(answer)

    def rest(self, answer: AnswerBody) -> str:
        """What of a message is sent after the deltas of the answer: the sources, or the JSON, which has none."""
        return msgspec.json.encode(answer.data).decode() if self.as_json else self.sources(answer)

    def completion(self, answer: AnswerBody) -> ChatCompletion:
        """A whole answer in that API's shape."""
        return ChatCompletion(
            id=completion_id(answer.answer_id),
            created=int(time.time()),
            model=self.model,
            choices=[
                Choice(
                    message=CompletionMessage(content=self.text(answer), citations=answer.citations),
                    finish_reason=answer.finish_reason,
                )
            ],
            usage=_usage(answer),
            rag=self.extension(answer),
        )

    def extension(self, answer: AnswerBody) -> RagBody:
        """Our own fields."""
        return RagBody(
            answer_id=answer.answer_id,
            decision=answer.decision,
            reasons=answer.reasons,
            confidence=answer.confidence,
            language=answer.language,
            ignored=list(self.ignored),
            model_error=answer.model_error,
            searched_for=answer.searched_for or self.asked,
            kind=answer.kind,
            places=answer.places,
            values=answer.values,
        )

    def sources(self, answer: AnswerBody) -> str:
        """A line for each mark, `[C1] report.pdf, page 3`, for clients that do not show the citations."""
        places: dict[int, dict[str, None]] = {}  # mark → places, in order
        for citation in answer.citations:
            if self.with_sources and citation.place is not None:
                places.setdefault(citation.mark, {})[citation.place] = None
        lines = [f"[C{mark}] {'; '.join(map(guard_name, names))}" for mark, names in sorted(places.items())]
        return "\n\n" + "  \n".join(lines) if lines else ""


def without_sources(text: str) -> str:
    """Return an earlier answer as it was recorded: without the sources that `CompletionForm.sources` lists below it."""
    return _LISTED.sub("", text)


def completion_id(key: UUID) -> str:
    return f"chatcmpl-{key.hex}"


def _usage(answer: AnswerBody) -> Usage:
    return Usage(
        prompt_tokens=answer.prompt_tokens,
        completion_tokens=answer.completion_tokens,
        total_tokens=answer.prompt_tokens + answer.completion_tokens,
    )


class ChunkEncoder:
    """Writes the events of one answer as chunks, which all carry the same id and time."""

    media_type = SSE
    heartbeat = SSE_HEARTBEAT

    def __init__(self, form: CompletionForm, *, include_usage: bool):
        self._id = completion_id(form.key)
        self._created = int(time.time())
        self._form = form
        self._include_usage = include_usage
        self.opening = self._write([ChunkChoice(delta=Delta(role="assistant", content=""))])  # says whose words follow

    def encode(self, event: WireEvent) -> bytes:
        """What an event is in that API; nothing for those that it has no words for."""
        match event.data:
            case DeltaData() if self._form.as_json:
                return b""  # the text that the JSON is proved by
            case DeltaData(text=text, restart=restart):  # what was sent cannot be taken back
                return self._write([ChunkChoice(delta=Delta(content=f"\n\n{text}" if restart else text))])
            case AnswerBody() as answer:
                return self._finish(answer)
            case Problem() as problem:
                return b"data: " + msgspec.json.encode(present_error(problem)) + b"\n\n"
            case _:
                return b""

    def _finish(self, answer: AnswerBody) -> bytes:
        last = ChunkChoice(delta=Delta(citations=answer.citations), finish_reason=answer.finish_reason)
        rest = self._form.rest(answer)
        written = self._write([ChunkChoice(delta=Delta(content=rest))]) if rest else b""
        written += self._write([last], answer)
        return written + (self._write([], answer, _usage(answer)) if self._include_usage else b"") + _DONE

    def _write(self, choices: list[ChunkChoice], answer: AnswerBody | None = None, usage: Usage | None = None) -> bytes:
        chunk = ChatCompletionChunk(
            id=self._id,
            object="chat.completion.chunk",
            created=self._created,
            model=self._form.model,
            choices=choices,
            usage=usage,
            citations=None if answer is None else answer.citations,
            rag=None if answer is None else self._form.extension(answer),
        )
        return b"data: " + msgspec.json.encode(chunk) + b"\n\n"

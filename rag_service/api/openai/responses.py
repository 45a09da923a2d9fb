"""The responses API over the same answers: its bodies, and its stream of events.

See https://platform.openai.com/docs/api-reference/responses. Citations are `file_citation` annotations of the text and,
with places and quotes, in our field `citations`.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from typing import Annotated, Any
from uuid import UUID

import msgspec
from msgspec import Meta, Struct

from rag_service.api.http.events import SSE, SSE_HEARTBEAT, WireEvent
from rag_service.api.http.problems import FieldError, InvalidRequestError, Problem
from rag_service.api.http.schemas import Against, AnswerBody, CitationBody, DeltaData, EvidenceBody, Missing
from rag_service.api.openai.errors import present_error
from rag_service.api.openai.schemas import (
    ChatCompletionRequest,
    ChatMessage,
    JsonSchema,
    RagBody,
    ResponseFormat,
    Sampling,
)
from rag_service.api.openai.stream import CompletionForm
from rag_service.domain import Turn
from rag_service.errors import InputError
from rag_service.retrieval.answer_schema import read_schema


class InputItem(ChatMessage, kw_only=True, frozen=True):
    """A message, or something else of a conversation with another model, such as a function call, which is passed
    over."""

    role: str = ""
    type: str = "message"


class TextFormat(Struct, kw_only=True, frozen=True):
    type: str = "text"
    schema: Annotated[dict[str, Any] | None, Meta(description="With the type `json_schema`.")] = None


class TextOptions(Struct, kw_only=True, frozen=True):
    format: Annotated[TextFormat | None, Meta(description="`text` or `json_schema`.")] = None

    def as_response_format(self) -> ResponseFormat | None:
        """The same as in chat completions. Raises InputError for what is not supported."""
        if self.format is None or self.format.type == "text":
            return None
        if self.format.type != "json_schema":
            raise InputError("must be 'text' or 'json_schema'.", field="text.format.type")
        if self.format.schema is None:
            raise InputError("must be the JSON schema of the answer.", field="text.format.schema")
        read_schema(self.format.schema, "text.format.schema")
        return ResponseFormat(type="json_schema", json_schema=JsonSchema(schema=self.format.schema))


class ResponseRequest(Sampling, kw_only=True, frozen=True):
    """A question, or a conversation that ends with one. Other fields are treated as in chat completions."""

    model: Annotated[str, Meta(description="`rag-service`, or an agent's id from GET /v1/models.")]
    input: Annotated[
        str | list[InputItem], Meta(description="A question, or messages of which the last is the question.")
    ]
    instructions: Annotated[str | None, Meta(description="Same as a `system` message.")] = None
    stream: bool | None = False
    previous_response_id: Annotated[
        str | None, Meta(description="A response of the caller's that the question goes on from.")
    ] = None
    store: Annotated[bool | None, Meta(description="false: no later request goes on from it.")] = None
    background: Annotated[bool | None, Meta(description="Not supported.")] = None
    conversation: Annotated[Any, Meta(description="Not supported.")] = None
    text: TextOptions | None = None
    tool_choice: Annotated[Any, Meta(description="`auto` or `none`; tools are never called.")] = None

    def as_chat(self, before: Sequence[Turn]) -> ChatCompletionRequest:
        """The same request as a chat completion, after what was said up to the previous response.

        Raises InvalidRequestError if it asks for what is not supported.
        """
        errors = [
            FieldError(name, "is not supported; leave it out")
            for name in ("background", "conversation")
            if getattr(self, name)
        ]
        if isinstance(self.input, str):
            said: list[ChatMessage] = [ChatMessage(role="user", content=self.input)]
        else:
            said = [item for item in self.input if item.type == "message"]
            errors += [FieldError("input", "must have messages with a role") for item in said if not item.role][:1]
        if errors:
            raise InvalidRequestError(errors)
        said = [*(ChatMessage(role=turn.role, content=turn.content) for turn in before), *said]
        if self.instructions:
            said = [ChatMessage(role="system", content=self.instructions), *said]
        return ChatCompletionRequest(
            model=self.model,
            messages=said,
            stream=self.stream,
            tool_choice=self.tool_choice,
            tools=self.tools,
            response_format=None if self.text is None else self.text.as_response_format(),
        )


class FileCitation(Struct, kw_only=True, frozen=True):
    file_id: str
    filename: str
    index: Annotated[int, Meta(description="End of the cited sentence in the text; of JSON its end.")]
    evidence: Annotated[
        list[EvidenceBody], Meta(description="Extension: the words of the file that the sentence rests on.")
    ] = []
    missing: Missing = None
    against: Against = None
    type: str = "file_citation"


class OutputText(Struct, kw_only=True, frozen=True):
    text: str
    annotations: list[FileCitation] = []
    type: str = "output_text"


class OutputMessage(Struct, kw_only=True, frozen=True, tag_field="type", tag="message"):
    id: str
    status: str
    content: list[OutputText]
    role: str = "assistant"


class FileSearchCall(Struct, kw_only=True, frozen=True, tag_field="type", tag="file_search_call"):
    """Stands before the message if the request has a tool `file_search`."""

    id: str
    queries: list[str]
    status: str = "completed"
    results: None = None


class InputDetails(Struct, frozen=True):
    cached_tokens: int = 0


class OutputDetails(Struct, frozen=True):
    reasoning_tokens: int = 0


class ResponseUsage(Struct, kw_only=True, frozen=True):
    input_tokens: int
    output_tokens: int
    total_tokens: int
    input_tokens_details: InputDetails
    output_tokens_details: OutputDetails


class IncompleteDetails(Struct, kw_only=True, frozen=True):
    reason: Annotated[str, Meta(description="`max_output_tokens` or `content_filter`.")]


class ResponseBody(Struct, kw_only=True, frozen=True):
    """A whole reply."""

    id: str
    created_at: int
    model: str
    status: str
    output: list[FileSearchCall | OutputMessage]
    usage: ResponseUsage | None = None
    citations: Annotated[list[CitationBody], Meta(description="Extension: the citation of every mark, checked.")] = []
    rag: RagBody | None = None
    object: str = "response"
    error: None = None
    incomplete_details: Annotated[
        IncompleteDetails | None, Meta(description="If the chat model did not finish the answer.")
    ] = None
    instructions: None = None
    metadata: dict[str, str] = {}
    parallel_tool_calls: bool = False
    temperature: None = None
    tool_choice: str = "none"
    tools: list[Any] = []
    top_p: None = None


def response_id(key: UUID) -> str:
    return f"resp_{key.hex}"


def answer_id_of(given: str) -> UUID | None:
    """The answer that a response's id names; None: it names none."""
    key = given.removeprefix("resp_")
    return UUID(key) if re.fullmatch(r"[0-9a-f]{32}", key) and key != given else None


def _present_call(form: CompletionForm) -> list[FileSearchCall]:
    return [] if form.file_search is None else [FileSearchCall(id=f"fs_{form.key.hex}", queries=[form.file_search])]


def _present_message(answer: AnswerBody, form: CompletionForm) -> OutputMessage:
    text = form.text(answer)
    citations = [
        FileCitation(
            file_id=str(one.document_id),
            filename=one.title or "",
            index=len(text) if form.as_json else one.sentence_end,
            evidence=one.evidence,
            missing=one.missing,
            against=one.against,
        )
        for one in answer.citations
        if one.document_id is not None
    ]
    part = OutputText(text=text, annotations=citations)
    return OutputMessage(id=f"msg_{form.key.hex}", status=_status_of(answer), content=[part])


def _status_of(answer: AnswerBody) -> str:
    return "incomplete" if answer.incomplete else "completed"


def present_response(answer: AnswerBody, form: CompletionForm, *, created: int) -> ResponseBody:
    """A whole answer in that API's shape."""
    reason = "max_output_tokens" if answer.finish_reason == "length" else answer.finish_reason
    return ResponseBody(
        id=response_id(form.key),
        created_at=created,
        model=form.model,
        status=_status_of(answer),
        incomplete_details=IncompleteDetails(reason=reason) if answer.incomplete else None,
        output=[*_present_call(form), _present_message(answer, form)],
        usage=ResponseUsage(
            input_tokens=answer.prompt_tokens,
            output_tokens=answer.completion_tokens,
            total_tokens=answer.prompt_tokens + answer.completion_tokens,
            input_tokens_details=InputDetails(),
            output_tokens_details=OutputDetails(),
        ),
        citations=answer.citations,
        rag=form.extension(answer),
    )


class ResponseEncoder:
    """Writes the events of one answer as that API's events. A late failure is an `error` event."""

    media_type = SSE
    heartbeat = SSE_HEARTBEAT

    def __init__(self, form: CompletionForm):
        self._form = form
        self._created = int(time.time())
        self._number = 0
        self._message = f"msg_{form.key.hex}"
        begun = ResponseBody(
            id=response_id(form.key), created_at=self._created, model=form.model, status="in_progress", output=[]
        )
        self._calls = _present_call(form)
        self._is_open = False  # whether the message has begun, which waits for the search
        self.opening = self._write("response.created", response=begun) + self._write(
            "response.in_progress", response=begun
        )
        for call in self._calls:
            item = msgspec.structs.replace(call, status="in_progress")
            self.opening += self._write("response.output_item.added", output_index=0, item=item)
            self.opening += self._write("response.file_search_call.in_progress", output_index=0, item_id=call.id)
            self.opening += self._write("response.file_search_call.searching", output_index=0, item_id=call.id)
        if not self._calls:
            self.opening += self._open()

    def encode(self, event: WireEvent) -> bytes:
        """What an event is in that API; nothing for those that it has no words for."""
        match event.data:
            case DeltaData() if self._form.as_json:
                return b""  # the text that the JSON is proved by
            case DeltaData(text=text, restart=restart):
                return self._open() + self._write_delta(f"\n\n{text}" if restart else text)
            case AnswerBody() as answer:
                return self._open() + self._finish(answer)
            case Problem() as problem:
                error = present_error(problem).error
                return self._write("error", message=error.message, code=error.code, param=error.param)
            case _:
                return b""

    def _open(self) -> bytes:
        """End the search and begin the message, once."""
        if self._is_open:
            return b""
        self._is_open = True
        written = b""
        for call in self._calls:
            written += self._write("response.file_search_call.completed", output_index=0, item_id=call.id)
            written += self._write("response.output_item.done", output_index=0, item=call)
        empty = OutputMessage(id=self._message, status="in_progress", content=[])
        written += self._write("response.output_item.added", output_index=len(self._calls), item=empty)
        return written + self._write_part("response.content_part.added", part=OutputText(text=""))

    def _finish(self, answer: AnswerBody) -> bytes:
        whole = present_response(answer, self._form, created=self._created)
        message = _present_message(answer, self._form)
        (part,) = message.content
        rest = self._form.rest(answer)
        return b"".join(
            (
                self._write_delta(rest) if rest else b"",
                self._write_part("response.output_text.done", text=part.text, logprobs=[]),
                self._write_part("response.content_part.done", part=part),
                self._write("response.output_item.done", output_index=len(self._calls), item=message),
                self._write(f"response.{whole.status}", response=whole),
            )
        )

    def _write_delta(self, text: str) -> bytes:
        return self._write_part("response.output_text.delta", delta=text, logprobs=[])

    def _write_part(self, kind: str, **fields: Any) -> bytes:
        return self._write(kind, item_id=self._message, output_index=len(self._calls), content_index=0, **fields)

    def _write(self, kind: str, **fields: Any) -> bytes:
        event = {"type": kind, "sequence_number": self._number, **fields}
        self._number += 1
        return f"event: {kind}\ndata: ".encode() + msgspec.json.encode(event) + b"\n\n"

"""Bodies of the OpenAI-compatible API.

They follow https://platform.openai.com/docs/api-reference/chat (snake_case). What we add is in the fields `citations`
and `rag`, in the camelCase of the rest of our API; the official clients hand such fields through.
"""

from __future__ import annotations

from typing import Annotated, Any
from uuid import UUID

from msgspec import Meta, Struct

from rag_service.api.http.schemas import CitationBody, PlaceBody, ReasonBody, ValueBody

# -- requests


class ContentPart(Struct, kw_only=True, frozen=True):
    """A piece of a message. Only `text` is understood."""

    type: str
    text: str = ""


class ChatMessage(Struct, kw_only=True, frozen=True):
    """A message of the conversation. Further fields, such as our own `citations` sent back, have no effect.

    Instructions (`system`, `developer`) rule the style of the answer. They are no source, and what is checked and cited
    does not depend on them.
    """

    role: Annotated[
        str, Meta(description="`user`, `assistant`, `system` or `developer`; messages with other roles are ignored.")
    ]
    content: str | list[ContentPart] | None = None


class StreamOptions(Struct, kw_only=True, frozen=True):
    """What a stream holds besides the answer."""

    include_usage: Annotated[bool, Meta(description="Add a last chunk with the token counts.")] = False


class JsonSchema(Struct, kw_only=True, frozen=True):
    """The JSON schema of an answer. Further fields, such as `strict`, have no effect: the JSON always follows it."""

    schema: Annotated[dict[str, Any] | None, Meta(description="Needed. As `schema` of POST /api/v1/query/answer.")] = (
        None
    )
    name: str = ""


class ResponseFormat(Struct, kw_only=True, frozen=True):
    """The form of the answer: text with citations, or JSON whose values are proved."""

    type: str = "text"
    json_schema: Annotated[JsonSchema | None, Meta(description="With the type `json_schema`.")] = None


class Sampling(Struct, kw_only=True, frozen=True):
    """Fields that are checked and have no effect: the service's settings rule how its model writes."""

    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None
    top_p: Annotated[float, Meta(ge=0, le=1)] | None = None
    frequency_penalty: Annotated[float, Meta(ge=-2, le=2)] | None = None
    presence_penalty: Annotated[float, Meta(ge=-2, le=2)] | None = None
    max_tokens: Annotated[int, Meta(ge=1)] | None = None
    max_completion_tokens: Annotated[int, Meta(ge=1)] | None = None
    max_output_tokens: Annotated[int, Meta(ge=1)] | None = None
    seed: int | None = None
    stop: str | list[str] | None = None
    tools: list[dict[str, Any]] | None = None


class ChatCompletionRequest(Sampling, kw_only=True, frozen=True):
    """A conversation whose last message is a question to the documents.

    Fields that are not named here, or have no effect, are accepted and listed in `rag.ignored`, unless
    RAG_OPENAI_STRICT refuses them.
    """

    model: Annotated[str, Meta(description="`rag-service`, or an agent's id from GET /v1/models.")]
    messages: Annotated[list[ChatMessage], Meta(description="The last one is the question.")]
    stream: bool | None = False
    stream_options: StreamOptions | None = None
    # What would change the shape of the reply is refused.
    n: Annotated[int | None, Meta(description="Must be 1.")] = None
    response_format: Annotated[ResponseFormat | None, Meta(description="`text` or `json_schema`.")] = None
    modalities: Annotated[list[str] | None, Meta(description='Only `["text"]`.')] = None
    tool_choice: Annotated[Any, Meta(description="`auto` or `none`; tools are never called.")] = None


# -- replies


class RagBody(Struct, kw_only=True, frozen=True, rename="camel"):
    """What this API has no field for."""

    answer_id: Annotated[UUID, Meta(description="Id for GET /api/v1/answers/{id}.")]
    decision: Annotated[str, Meta(description="can_proceed, uncertain or out_of_scope.")]
    reasons: Annotated[list[ReasonBody], Meta(description="Why it is not can_proceed; else empty.")]
    confidence: Annotated[float, Meta(description="0 to 1.")]
    language: Annotated[str, Meta(description="Language of the answer, ISO 639-1.")]
    ignored: Annotated[list[str], Meta(description="Fields of the request that had no effect.")]
    model_error: Annotated[
        str | None, Meta(description="Error code if the chat model failed and the answer quotes passages instead.")
    ]
    searched_for: Annotated[str | None, Meta(description="A follow-up question as searched for; null: as asked.")]
    kind: Annotated[str, Meta(description="`answer`, `places` or `nothing`, as in the reply of `query/answer`.")]
    places: Annotated[list[PlaceBody], Meta(description="Where the answer may stand, best first.")]
    values: Annotated[list[ValueBody], Meta(description="Of an answer as JSON: each value with its proof.")] = []


class Usage(Struct, kw_only=True, frozen=True):
    """Token counts; the model's own where it tells them."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int


class CompletionMessage(Struct, kw_only=True, frozen=True):
    """The answer."""

    content: Annotated[
        str, Meta(description="Markdown with marks such as [C1], which `citations` resolves; or the JSON.")
    ]
    citations: Annotated[list[CitationBody], Meta(description="Extension: the citation of every mark, checked.")]
    role: str = "assistant"
    refusal: None = None


class Choice(Struct, kw_only=True, frozen=True):
    message: CompletionMessage
    index: int = 0
    finish_reason: Annotated[
        str, Meta(description="`stop`; `length` or `content_filter` if the chat model did not finish the answer.")
    ] = "stop"
    logprobs: None = None


class ChatCompletion(Struct, kw_only=True, frozen=True):
    """A whole answer."""

    id: str
    created: Annotated[int, Meta(description="Unix time in seconds.")]
    model: str
    choices: list[Choice]
    usage: Usage
    rag: RagBody
    object: str = "chat.completion"


class Delta(Struct, kw_only=True, frozen=True, omit_defaults=True):
    """A piece of the answer. `citations` stands in the last one only."""

    role: str | None = None
    content: str | None = None
    citations: list[CitationBody] | None = None


class ChunkChoice(Struct, kw_only=True, frozen=True):
    delta: Delta
    finish_reason: str | None = None
    index: int = 0
    logprobs: None = None


class ChatCompletionChunk(Struct, kw_only=True, frozen=True, omit_defaults=True):
    """An event of a streamed answer; the stream ends with `data: [DONE]`.

    `citations` and `rag` stand in the chunk with `finish_reason` and, where `include_usage` asks for it, in
    the chunk after it, which has the usage and no choices: they are always in the last chunk.
    """

    id: str
    created: int
    model: str
    choices: list[ChunkChoice]
    object: str  # no default: it must not be left out
    usage: Usage | None = None
    citations: list[CitationBody] | None = None
    rag: RagBody | None = None


class ModelBody(Struct, kw_only=True, frozen=True):
    id: str
    created: Annotated[int, Meta(description="Unix time in seconds.")]
    owned_by: str
    object: str = "model"


class ModelList(Struct, kw_only=True, frozen=True):
    data: list[ModelBody]
    object: str = "list"


class ErrorDetail(Struct, kw_only=True, frozen=True):
    """What went wrong, in that API's words."""

    message: str
    type: Annotated[str, Meta(description="invalid_request_error, authentication_error, …, server_error.")]
    param: Annotated[str | None, Meta(description="The invalid field.")]
    code: Annotated[str | None, Meta(description="Stable code, from this service's problems or from the OpenAI API.")]


class ErrorBody(Struct, kw_only=True, frozen=True):
    error: ErrorDetail

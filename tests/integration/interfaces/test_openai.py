"""The OpenAI-compatible API as the official client sees it, over a real socket."""

from __future__ import annotations

import base64
import struct
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import Any
from uuid import UUID

import httpx
import openai
import pytest
from llama_index.core.base.llms.types import ChatMessage as LlamaMessage
from llama_index.llms.openai_like import OpenAILike
from openai import AsyncOpenAI, OpenAI

from rag_service.answering.events import AnswerDelta, AnswerEvent
from rag_service.api.openai.fields import Conversation
from rag_service.api.openai.routes import KnowledgeModel, openai_routes
from rag_service.domain import Identity, Role, Turn
from rag_service.errors import AuthenticationError, ModelBusyError, ModelError
from rag_service.settings import Settings
from tests.serving import served
from tests.unit.api.samples import ANSWER, CITATION, DOCUMENT, EVENTS, QUESTION, Pause, Script, application_over

ASKED: list[Any] = [{"role": "user", "content": QUESTION}]
PLACE = "production.xlsx, sheet Stocks, cell C12"
SOURCES = f"\n\n[C1] {PLACE}"  # below the answer
OTHER = Identity(user_id=UUID(int=7), role=Role.USER)


class Served:
    """A service and clients to it."""

    def __init__(self, script: Script, url: str):
        self.script = script
        self.url = url
        self.client = OpenAI(base_url=f"{url}/v1", api_key="key", max_retries=0, timeout=10)

    def ask(self, **fields: Any) -> Any:
        return self.client.chat.completions.create(**{"model": "rag-service", "messages": ASKED, **fields})


class Serve:
    """Starts services that end with the test."""

    def __init__(self, stack: ExitStack):
        self._stack = stack

    def __call__(
        self, script: Script | None = None, list_models: Any = None, embed: Any = None, **settings: Any
    ) -> Served:
        script = script or Script()
        services = script.services(Settings(**settings))
        application = application_over(services, more_routes=openai_routes(list_models=list_models))
        application.state.embed = embed
        opened = Served(script, self._stack.enter_context(served(application)))
        self._stack.callback(opened.client.close)
        return opened


@pytest.fixture
def serve() -> Iterator[Serve]:
    with ExitStack() as stack:
        yield Serve(stack)


@pytest.fixture(scope="module")
def shared() -> Iterator[Served]:
    """A service for tests that leave no trace."""
    with ExitStack() as stack:
        yield Serve(stack)()


def check_citations(citations: Any) -> None:
    """The extension's documented fields, both for a verified and for an unsupported mark."""
    first, second = citations
    assert (first["mark"], first["status"], first["place"]) == (1, "verified", PLACE)
    assert (first["quote"], first["start"], first["end"]) == (CITATION.quote, 106, 117)
    assert first["documentId"] == str(DOCUMENT.id)
    assert (second["mark"], second["status"], second["quote"]) == (7, "not_found", None)


# -- answers


def test_plain_answer_has_text_usage_and_citations(shared: Served) -> None:
    completion = shared.ask()
    choice = completion.choices[0]
    assert (completion.object, completion.model, choice.finish_reason) == ("chat.completion", "rag-service", "stop")
    assert (choice.message.role, choice.message.content, choice.message.refusal) == (
        "assistant",
        ANSWER.text + SOURCES,
        None,
    )
    usage = completion.usage
    assert (usage.prompt_tokens, usage.completion_tokens, usage.total_tokens) == (210, 12, 222)
    assert abs(completion.created - time.time()) < 60
    check_citations(choice.message.citations)
    assert completion.id == f"chatcmpl-{ANSWER.id.hex}"
    assert completion.rag == {
        "answerId": str(ANSWER.id),
        "decision": "can_proceed",
        "confidence": 0.93,
        "language": "es",
        "ignored": [],
        "modelError": None,
    }


def test_streamed_answer_is_the_same_text_and_its_last_chunk_cites(shared: Served) -> None:
    chunks = list(shared.ask(stream=True))
    assert chunks[0].choices[0].delta.role == "assistant"
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks)
    assert text == "".join(event.text for event in EVENTS if isinstance(event, AnswerDelta)) + SOURCES
    assert len({(chunk.id, chunk.created, chunk.object) for chunk in chunks}) == 1
    assert [chunk.choices[0].finish_reason for chunk in chunks] == [None] * (len(chunks) - 1) + ["stop"]
    check_citations(chunks[-1].choices[0].delta.citations)
    check_citations(chunks[-1].citations)
    assert chunks[-1].rag["answerId"] == str(ANSWER.id)
    assert not any(hasattr(chunk, "citations") for chunk in chunks[:-1])
    assert all(chunk.usage is None for chunk in chunks)


def test_include_usage_adds_a_last_chunk_with_counts_and_citations(shared: Served) -> None:
    chunks = list(shared.ask(stream=True, stream_options={"include_usage": True}))
    last = chunks[-1]
    assert (last.choices, last.usage.total_tokens) == ([], 222)
    check_citations(last.citations)
    check_citations(chunks[-2].choices[0].delta.citations)


def test_stream_on_the_wire_is_events_that_end_with_done(shared: Served) -> None:
    body = {"model": "rag-service", "messages": ASKED, "stream": True}
    with httpx.stream("POST", f"{shared.url}/v1/chat/completions", json=body, trust_env=False) as response:
        lines = [line for line in response.iter_lines() if line]
    assert response.headers["content-type"].startswith("text/event-stream")
    assert response.headers["cache-control"] == "no-store"
    assert all(line.startswith("data: ") for line in lines)
    assert lines[-1] == "data: [DONE]"


async def test_the_asynchronous_client_gets_the_same(shared: Served) -> None:
    async with AsyncOpenAI(base_url=f"{shared.url}/v1", api_key="key", max_retries=0) as client:
        completion = await client.chat.completions.create(model="rag-service", messages=ASKED)
        check_citations(completion.choices[0].message.citations)  # type: ignore[attr-defined]  # our extension
        stream = await client.chat.completions.create(model="rag-service", messages=ASKED, stream=True)
        texts = [chunk.choices[0].delta.content or "" async for chunk in stream]
    assert "".join(texts).split("\n") == [ANSWER.text, "", *SOURCES.split("\n")[1:]]


def test_the_clients_streaming_helper_understands_the_chunks(shared: Served) -> None:
    with shared.client.chat.completions.stream(model="rag-service", messages=ASKED) as stream:
        message = stream.get_final_completion().choices[0].message
    assert (message.content or "").startswith(ANSWER.text)


async def test_llama_index_asks_it_as_a_model(shared: Served) -> None:
    llm = OpenAILike(model="rag-service", api_base=f"{shared.url}/v1", api_key="key", is_chat_model=True)
    messages = [LlamaMessage(role="system", content="Be brief."), LlamaMessage(role="user", content=QUESTION)]
    assert (await llm.achat(messages)).message.content == ANSWER.text + SOURCES
    assert [part.delta async for part in await llm.astream_chat(messages)][-1] is not None


def test_sources_below_the_answer_can_be_turned_off(serve: Serve) -> None:
    served = serve(openai_sources=False)
    assert served.ask().choices[0].message.content == ANSWER.text
    streamed = "".join(chunk.choices[0].delta.content or "" for chunk in served.ask(stream=True))
    assert streamed.strip() == ANSWER.text


def test_a_follow_up_is_understood_from_the_conversation(serve: Serve) -> None:
    served = serve()
    parts = [{"type": "text", "text": "¿Y en"}, {"type": "text", "text": "Lyon?"}]
    served.ask(
        messages=[
            {"role": "user", "content": QUESTION},
            {"role": "assistant", "content": ANSWER.text, "citations": [{"mark": 1}], "refusal": None},
            {"role": "user", "content": parts},
        ]
    )
    query = served.script.queries[0]
    assert query.question == "¿Y en\nLyon?"  # the engine makes it standalone
    assert query.turns == (Turn(role="user", content=QUESTION), Turn(role="assistant", content=ANSWER.text))


def test_a_question_that_stands_alone_is_asked_as_it_is(serve: Serve) -> None:
    served = serve()
    question = "¿Qué documentos necesito para renovar el permiso de conducir en Lyon?"
    served.ask(messages=[*ASKED, {"role": "assistant", "content": "4200"}, {"role": "user", "content": question}])
    assert served.script.queries[0].question == question


# What clients send by default or on a setting of their user: (fields, those that have no effect).
REQUESTS: list[tuple[dict[str, Any], set[str]]] = [
    ({"n": 1, "tool_choice": "none", "response_format": {"type": "text"}, "modalities": ["text"]}, set()),
    ({"user": "u", "metadata": {"a": "b"}, "store": True, "service_tier": "auto"}, set()),
    (
        {"temperature": 0.7, "top_p": 0.9, "seed": 3, "stop": ["\n"], "max_tokens": 5, "max_completion_tokens": 5},
        {"temperature", "top_p", "seed", "stop", "max_tokens", "max_completion_tokens"},
    ),
    (
        {"frequency_penalty": 1, "presence_penalty": 0, "logit_bias": {}, "logprobs": True, "reasoning_effort": "low"},
        {"frequency_penalty", "presence_penalty", "logit_bias", "logprobs", "reasoning_effort"},
    ),
    ({"tools": [{"type": "function", "function": {"name": "f"}}], "tool_choice": "auto"}, {"tools"}),
    # Open WebUI: identifiers and features of its own.
    (
        {"extra_body": {"chat_id": "c", "features": {"web_search": False}, "session_id": "s", "id": None}},
        {"chat_id", "features", "session_id"},
    ),
]


@pytest.mark.parametrize(("fields", "ignored"), REQUESTS, ids=[str(number) for number in range(len(REQUESTS))])
def test_fields_without_effect_are_accepted_and_listed(
    shared: Served, fields: dict[str, Any], ignored: set[str]
) -> None:
    completion = shared.ask(**fields)
    assert completion.choices[0].message.content.startswith(ANSWER.text)
    assert set(completion.rag["ignored"]) == ignored
    *_, last = shared.ask(**fields, stream=True)
    assert set(last.rag["ignored"]) == ignored


@pytest.mark.parametrize(("fields", "ignored"), REQUESTS, ids=[str(number) for number in range(len(REQUESTS))])
def test_a_strict_service_refuses_them_by_name(serve: Serve, fields: dict[str, Any], ignored: set[str]) -> None:
    served = serve(openai_strict=True)
    if not ignored:
        assert served.ask(**fields).rag["ignored"] == []
        return
    with pytest.raises(openai.BadRequestError) as caught:
        served.ask(**fields)
    assert caught.value.param == min(ignored)


def test_instructions_reach_the_model_without_marks_or_turns(serve: Serve) -> None:
    served = serve()
    served.ask(
        messages=[
            {"role": "system", "content": "Be brief. Always cite [C9]."},
            {"role": "developer", "content": [{"type": "text", "text": "<|im_start|>Use the polite form."}]},
            {"role": "tool", "content": "1", "tool_call_id": "x"},
            *ASKED,
        ]
    )
    (query,) = served.script.queries
    assert (query.question, query.prompt, query.history) == (QUESTION, "chat", "")
    assert query.instructions == "Be brief. Always cite (C9).\n\n‹¦im_start¦›Use the polite form."


# -- the responses API


def test_a_response_has_text_annotations_and_citations(shared: Served) -> None:
    response: Any = shared.client.responses.create(model="rag-service", input=QUESTION, temperature=0.3)
    assert (response.status, response.output_text) == ("completed", ANSWER.text + SOURCES)
    (annotation,) = response.output[0].content[0].annotations
    assert (annotation.type, annotation.file_id, annotation.filename) == (
        "file_citation",
        str(DOCUMENT.id),
        "Production",
    )
    assert (annotation.index, response.usage.total_tokens) == (27, 222)
    check_citations(response.citations)
    assert response.rag["ignored"] == ["temperature"]


def test_a_streamed_response_ends_with_the_whole_one(shared: Served) -> None:
    with shared.client.responses.stream(model="rag-service", input=QUESTION) as stream:
        events: list[Any] = list(stream)
        final: Any = stream.get_final_response()
    assert [event.type for event in events][:2] == ["response.created", "response.in_progress"]
    assert "".join(event.delta for event in events if event.type == "response.output_text.delta").split() == (
        (ANSWER.text + SOURCES).split()
    )
    assert (events[-1].type, final.output_text) == ("response.completed", ANSWER.text + SOURCES)
    assert [event.sequence_number for event in events] == sorted(event.sequence_number for event in events)


def test_a_response_knows_conversation_and_instructions(serve: Serve) -> None:
    served = serve()
    said: list[Any] = [
        {"role": "user", "content": [{"type": "input_text", "text": QUESTION}]},
        {"role": "assistant", "content": [{"type": "output_text", "text": ANSWER.text}]},
        {"role": "user", "content": "¿Y en Lyon?"},
    ]
    served.client.responses.create(model="rag-service", instructions="Be brief.", input=said)
    (query,) = served.script.queries
    assert (query.question, query.instructions) == ("¿Y en Lyon?", "Be brief.")
    assert query.turns == (Turn(role="user", content=QUESTION), Turn(role="assistant", content=ANSWER.text))


@pytest.mark.parametrize(
    ("param", "fields"),
    [("previous_response_id", {"previous_response_id": "resp_1"}), ("background", {"background": True})],
)
def test_responses_are_not_kept(shared: Served, param: str, fields: dict[str, Any]) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        shared.client.responses.create(model="rag-service", input=QUESTION, **fields)
    assert caught.value.param == param


def test_a_response_that_fails_midway_says_so(serve: Serve) -> None:
    served = serve(Script(events=[*EVENTS[:2], ModelError("secret internals")]))
    events: list[Any] = list(served.client.responses.create(model="rag-service", input=QUESTION, stream=True))
    assert (events[-1].type, events[-1].code) == ("error", "llm_unavailable")
    assert "secret" not in events[-1].message


# -- embeddings


async def _embed(texts: Sequence[str]) -> list[list[float]]:
    return [[float(len(text)), 0.5] for text in texts]


@pytest.fixture
def embedder(serve: Serve) -> Served:
    return serve(embed=_embed, embedding_dimension=2)


def test_texts_are_embedded_in_their_order(embedder: Served) -> None:
    create = embedder.client.embeddings.create
    for form in ({}, {"encoding_format": "float"}, {"encoding_format": "base64"}):
        reply = create(model="all-minilm-l6-v2", input=["a", "abc"], dimensions=2, **form)  # type: ignore[arg-type]
        vectors = [item.embedding for item in reply.data]
        if form.get("encoding_format") == "base64":  # asked for by name, the client leaves it packed
            vectors = [struct.unpack("<2f", base64.b64decode(vector)) for vector in vectors]  # type: ignore[arg-type,misc]
        assert [list(vector) for vector in vectors] == [[1.0, 0.5], [3.0, 0.5]]
    assert create(model="all-minilm-l6-v2", input="abc").data[0].embedding == [3.0, 0.5]


@pytest.mark.parametrize(
    ("param", "fields"),
    [
        ("input", {"input": []}),
        ("input", {"input": ["a", " "]}),
        ("input", {"input": [1, 2]}),
        ("input", {"input": ["a"] * 257}),
        ("dimensions", {"input": "a", "dimensions": 5}),
        ("model", {"input": "a", "model": "text-embedding-3-small"}),
    ],
)
def test_what_cannot_be_embedded_is_refused_by_name(embedder: Served, param: str, fields: dict[str, Any]) -> None:
    with pytest.raises((openai.BadRequestError, openai.NotFoundError)) as caught:
        embedder.client.embeddings.create(**{"model": "all-minilm-l6-v2", **fields})
    assert caught.value.param == param


# -- models


def test_the_knowledge_model_is_listed_and_found(shared: Served) -> None:
    assert [model.id for model in shared.client.models.list()] == ["rag-service", "all-minilm-l6-v2"]
    model = shared.client.models.retrieve("rag-service")
    assert (model.id, model.object, model.owned_by) == ("rag-service", "model", "rag-service")


def test_agents_are_models_of_those_who_may_use_them(serve: Serve) -> None:
    script, asked = Script(), list[tuple[Conversation, Identity]]()

    async def answer(conversation: Conversation, identity: Identity) -> AsyncIterator[AnswerEvent]:
        asked.append((conversation, identity))
        for event in EVENTS:
            yield event  # type: ignore[misc]  # the sample has no pauses

    async def authenticate(headers: Mapping[str, str]) -> Identity:
        return OTHER if headers["authorization"] == "Bearer other" else Identity(user_id=UUID(int=1))

    async def list_models(_: Any, identity: Identity) -> Sequence[KnowledgeModel]:
        return [KnowledgeModel(id="hr/benefits", answer=answer, created=5)] if identity == OTHER else []

    script.authenticate = authenticate  # type: ignore[method-assign]  # a scripted one
    served = serve(script, list_models)
    member = served.client.with_options(api_key="other")
    assert [model.id for model in member.models.list()] == ["rag-service", "hr/benefits", "all-minilm-l6-v2"]
    assert member.models.retrieve("hr/benefits").created == 5
    said: list[Any] = [{"role": "assistant", "content": "Yes."}, {"role": "user", "content": "And in Lyon?"}]
    assert member.chat.completions.create(model="hr/benefits", messages=ASKED + said).model == "hr/benefits"
    ((conversation, identity),) = asked
    assert (identity, conversation.query.question, len(script.queries)) == (OTHER, "And in Lyon?", 0)
    assert [(turn.role, turn.content) for turn in conversation.history] == [("user", QUESTION), ("assistant", "Yes.")]
    assert [model.id for model in served.client.models.list()] == ["rag-service", "all-minilm-l6-v2"]
    with pytest.raises(openai.NotFoundError) as caught:
        served.ask(model="hr/benefits")
    assert (caught.value.code, caught.value.param) == ("model_not_found", "model")


# -- refusals and failures


UNSUPPORTED: list[tuple[str, dict[str, Any]]] = [
    ("n", {"n": 2}),
    ("tool_choice", {"tool_choice": "required", "tools": []}),
    ("response_format", {"response_format": {"type": "json_object"}}),
    ("modalities", {"modalities": ["text", "audio"], "audio": {"voice": "alloy", "format": "mp3"}}),
    ("stream_options", {"stream_options": "all"}),
    ("messages", {"messages": []}),
    ("messages", {"messages": [*ASKED, {"role": "assistant", "content": "Yes,"}]}),
    ("messages", {"messages": [*ASKED, {"role": "system", "content": "Be brief."}]}),
    ("messages[0].content", {"messages": [{"role": "user", "content": "  "}]}),
    ("messages[0].content", {"messages": [{"role": "user", "content": "x" * 4001}]}),
    (
        "messages[0].content[0].type",
        {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:,"}}]}]},
    ),
]


@pytest.mark.parametrize(("param", "fields"), UNSUPPORTED, ids=[str(number) for number in range(len(UNSUPPORTED))])
def test_what_is_not_supported_is_refused_by_name(shared: Served, param: str, fields: dict[str, Any]) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        shared.ask(**fields)
    error = caught.value
    assert (error.param, error.type, error.code) == (param, "invalid_request_error", "invalid_input")
    assert ". Correct the named field" in error.message  # two sentences
    assert param in error.message
    assert set(error.body) == {"message", "type", "param", "code"}  # type: ignore[arg-type]  # a dict


def test_an_unknown_model_is_not_found(shared: Served) -> None:
    for call in (lambda: shared.ask(model="gpt-4o"), lambda: shared.client.models.retrieve("gpt-4o")):
        with pytest.raises(openai.NotFoundError) as caught:
            call()
        assert (caught.value.code, caught.value.param) == ("model_not_found", "model")
        assert "gpt-4o" in caught.value.message


def test_other_parts_of_that_api_say_that_they_are_not_there(shared: Served) -> None:
    with pytest.raises(openai.NotFoundError) as caught:
        shared.client.images.generate(prompt="a llama")
    assert caught.value.code == "unknown_url"
    assert "POST /v1/images/generations" in caught.value.message


@pytest.mark.parametrize("stream", [False, True])
def test_a_wrong_key_is_an_authentication_error(serve: Serve, stream: bool) -> None:
    served = serve(Script(error=AuthenticationError("The API key is not valid."), failing="authenticate"))
    with pytest.raises(openai.AuthenticationError) as caught:
        served.ask(stream=stream)
    assert (caught.value.code, caught.value.type) == ("invalid_api_key", "authentication_error")
    assert caught.value.request_id


@pytest.mark.parametrize("stream", [False, True])
def test_a_failure_before_the_first_word_has_its_status(serve: Serve, stream: bool) -> None:
    busy = serve(Script(events=[ModelBusyError("secret internals", retry_after=7)]))
    with pytest.raises(openai.InternalServerError) as caught:
        busy.ask(stream=stream)
    assert (caught.value.status_code, caught.value.code, caught.value.type) == (503, "llm_busy", "server_error")
    assert caught.value.response.headers["retry-after"] == "7"
    assert "secret" not in caught.value.message


def test_a_failure_midway_reaches_the_reader_of_the_stream(serve: Serve) -> None:
    served = serve(Script(events=[*EVENTS[:2], ModelError("secret internals")]))
    received = []
    with pytest.raises(openai.APIError) as caught:
        received.extend(served.ask(stream=True))
    assert not isinstance(caught.value, openai.APIStatusError)
    assert (caught.value.code, caught.value.type) == ("llm_unavailable", "server_error")
    assert "secret" not in caught.value.message


def test_streams_can_be_turned_off(serve: Serve) -> None:
    served = serve(stream_enabled=False)
    with pytest.raises(openai.BadRequestError) as caught:
        served.ask(stream=True)
    assert (caught.value.param, caught.value.code) == ("stream", "streaming_disabled")
    assert served.ask().choices


def test_a_body_that_is_no_json_is_refused_in_the_same_shape(shared: Served) -> None:
    url = f"{shared.url}/v1/chat/completions"
    answers = [
        httpx.post(url, content=b"{", headers={"Content-Type": "application/json"}, trust_env=False),
        httpx.post(url, content=b"model=x", headers={"Content-Type": "text/plain"}, trust_env=False),
        httpx.get(url, trust_env=False),
    ]
    assert [answer.status_code for answer in answers] == [400, 415, 404]
    assert all(set(answer.json()["error"]) == {"message", "type", "param", "code"} for answer in answers)


def test_silence_is_filled_and_does_not_disturb_the_client(serve: Serve) -> None:
    served = serve(Script(events=[Pause(0.3), *EVENTS]), heartbeat_seconds=0.05)
    texts = [chunk.choices[0].delta.content or "" for chunk in served.ask(stream=True)]
    assert "".join(texts).startswith(ANSWER.text)


def test_a_reader_who_leaves_stops_the_answer(serve: Serve) -> None:
    served = serve(Script(events=EVENTS[:2], endless=True))
    stream = served.ask(stream=True)
    next(iter(stream))
    stream.close()
    deadline = time.monotonic() + 5
    while not served.script.closed:
        assert time.monotonic() < deadline, "the answer was not stopped"
        time.sleep(0.01)


def test_the_api_is_described(shared: Served) -> None:
    schema = httpx.get(f"{shared.url}/schema/openapi.json", trust_env=False).json()
    assert {"/v1/chat/completions", "/v1/models", "/v1/models/{model_id}"} <= set(schema["paths"])
    assert "citations" in schema["components"]["schemas"]["CompletionMessage"]["properties"]

"""Chat completions as clients of OpenAI's API see them, over a real socket."""

from __future__ import annotations

import time

import httpx
import openai
import pytest
from llama_index.core.base.llms.types import ChatMessage as LlamaMessage
from llama_index.llms.openai_like import OpenAILike
from openai import AsyncOpenAI

from rag_service.answering.drafts.events import AnswerDelta
from rag_service.domain import Turn
from rag_service.errors import AuthenticationError, ModelBusyError, ModelError
from tests.integration.interfaces.openai_service import (
    ASKED,
    SOURCES,
    Serve,
    Served,
    check_citations,
    serve,
    shared,
)
from tests.serving import wait_until
from tests.unit.api.samples import ANSWER, EVENTS, QUESTION, Pause, Script

__all__ = ["serve", "shared"]


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
        "reasons": [],
        "confidence": 0.93,
        "language": "es",
        "ignored": [],
        "modelError": None,
        "searchedFor": None,
        "kind": "answer",
        "places": [],
        "values": [],
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
    with httpx.stream("POST", f"{shared.url}/v1/chat/completions", json=body, timeout=60, trust_env=False) as response:
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
    assert query.text == "¿Y en\nLyon?"  # the engine makes it standalone
    assert query.turns == (Turn(role="user", content=QUESTION), Turn(role="assistant", content=ANSWER.text))


def test_a_question_that_stands_alone_is_asked_as_it_is(serve: Serve) -> None:
    served = serve()
    question = "¿Qué documentos necesito para renovar el permiso de conducir en Lyon?"
    served.ask(messages=[*ASKED, {"role": "assistant", "content": "4200"}, {"role": "user", "content": question}])
    assert served.script.queries[0].text == question


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
    assert (query.text, query.prompt, query.history) == (QUESTION, "chat", "")
    assert query.instructions == "Be brief. Always cite (C9).\n\n‹¦im_start¦›Use the polite form."


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
        httpx.post(url, content=b"{", headers={"Content-Type": "application/json"}, timeout=60, trust_env=False),
        httpx.post(url, content=b"model=x", headers={"Content-Type": "text/plain"}, timeout=60, trust_env=False),
        httpx.get(url, timeout=60, trust_env=False),
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
    wait_until(lambda: served.script.closed)
    assert served.script.closed == 1


def test_the_api_is_described(shared: Served) -> None:
    schema = httpx.get(f"{shared.url}/schema/openapi.json", timeout=60, trust_env=False).json()
    assert {"/v1/chat/completions", "/v1/models", "/v1/models/{model_id}"} <= set(schema["paths"])
    assert "citations" in schema["components"]["schemas"]["CompletionMessage"]["properties"]

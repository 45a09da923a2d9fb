"""Which fields of OpenAI's requests are taken, have no effect, or are refused."""

from __future__ import annotations

import json
from typing import Any

import httpx
import openai
import pytest

from tests.integration.interfaces.openai_service import (
    ASKED,
    Serve,
    Served,
    serve,
    shared,
)
from tests.unit.api.samples import ANSWER, QUESTION

__all__ = ["serve", "shared"]


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
    ({"max_tokens": -1, "max_completion_tokens": -1}, set()),  # no limit, as LM Studio says it
]
TOOL = {"type": "function", "function": {"name": "f", "description": "d", "parameters": {"type": "object"}}}
# Bodies as programs send them, besides `model`. Of LangChain recorded from langchain-openai 1.7.3.
BODIES: dict[str, tuple[dict[str, Any], set[str]]] = {
    "LangChain invoke": (
        {"stream": False, "messages": [{"content": "Be brief.", "role": "system"}, {"content": "¿?", "role": "user"}]},
        set(),
    ),
    "LangChain with parameters": (
        {
            "stream": False, "messages": ASKED, "max_completion_tokens": 50, "n": 1, "seed": 1, "stop": ["x"],
            "temperature": 0.0,
        },
        {"max_completion_tokens", "seed", "stop", "temperature"},
    ),
    "LangChain stream": ({"stream": True, "messages": ASKED, "stream_options": {"include_usage": True}}, set()),
    "LangChain tools": ({"stream": False, "messages": ASKED, "tools": [TOOL]}, {"tools"}),
    "Open WebUI": (  # its title and tag requests are of the same form, with `max_completion_tokens`
        {
            "stream": True, "messages": ASKED, "stream_options": {"include_usage": True}, "temperature": 0.8,
            "user": {"name": "Ana", "id": "1", "email": "ana@example.org", "role": "user"},
            "chat_id": "c", "session_id": "s", "features": {"web_search": False}, "id": None,
        },
        {"chat_id", "features", "session_id", "temperature"},
    ),
}  # fmt: skip
# Values that no client of that API may send.
WRONG: list[tuple[str, Any, str]] = [
    ("temperature", "hot", "must be a number or null, not text"),
    ("temperature", 2.5, "must be at most 2"),
    ("top_p", -0.1, "must be at least 0"),
    ("presence_penalty", -3, "must be at least -2"),
    ("frequency_penalty", [], "must be a number or null, not a list"),
    ("max_tokens", 0, "must be at least 1"),
    ("max_output_tokens", -2, "must be at least 1"),
    ("max_completion_tokens", "many", "must be a whole number or null, not text"),
    ("seed", 1.5, "must be a whole number or null, not a number"),
    ("stop", 5, "must be text or a list or null, not a whole number"),
    ("tools", "hammer", "must be a list or null, not text"),
    ("stream", "yes", "must be true or false or null, not text"),
]


@pytest.mark.parametrize("program", BODIES)
def test_what_programs_send_is_answered(shared: Served, program: str) -> None:
    body, ignored = BODIES[program]
    reply = httpx.post(
        f"{shared.url}/v1/chat/completions", json={"model": "rag-service", **body}, trust_env=False, timeout=60
    )
    assert reply.status_code == 200, reply.text
    events = [line.removeprefix("data: ") for line in reply.text.splitlines() if line.startswith("data: {")]
    last = json.loads(events[-1] if body["stream"] else reply.text)
    assert set(last["rag"]["ignored"]) == ignored
    assert last["usage"]["total_tokens"] == 222


@pytest.mark.parametrize(("field", "value", "told"), WRONG, ids=[f"{field}-{value}" for field, value, _ in WRONG])
def test_a_value_that_is_wrong_is_refused_even_without_effect(
    shared: Served, field: str, value: Any, told: str
) -> None:
    for address, asked in (("chat/completions", {"messages": ASKED}), ("responses", {"input": QUESTION})):
        body = {"model": "rag-service", **asked, field: value}
        reply = httpx.post(f"{shared.url}/v1/{address}", json=body, timeout=60, trust_env=False)
        error = reply.json()["error"]
        assert (reply.status_code, error["param"], error["type"]) == (400, field, "invalid_request_error")
        assert f"{field} {told}" in error["message"]


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


CORPUS = "6f9619ff-8b86-4d01-b42d-00cf4fc964ff"
STORES: list[Any] = [
    {"type": "file_search", "vector_store_ids": [CORPUS]},
    {"type": "file_search", "file_search": {"vector_store_ids": [CORPUS]}},
]


@pytest.mark.parametrize("tool", STORES)
def test_file_search_is_limited_to_the_corpora_that_it_names(shared: Served, tool: Any) -> None:
    assert shared.ask(tools=[tool]).rag["ignored"] == []
    asked = shared.script.queries[-1]
    assert [str(corpus) for corpus in asked.filters.corpus_ids] == [CORPUS]
    assert asked.filters.must_exist
    shared.client.responses.create(model="rag-service", input=QUESTION, tools=[tool])
    assert [str(corpus) for corpus in shared.script.queries[-1].filters.corpus_ids] == [CORPUS]


@pytest.mark.parametrize("stores", [["vs_123"], [CORPUS, "vs_123"], "vs_123"])
def test_file_search_over_stores_that_are_not_here_is_refused(shared: Served, stores: Any) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        shared.ask(tools=[{"type": "file_search", "vector_store_ids": stores}])
    assert caught.value.param == "tools[0].vector_store_ids"
    assert "vs_123" in caught.value.message


def test_file_search_without_stores_has_no_effect(shared: Served) -> None:
    assert shared.ask(tools=[{"type": "file_search"}]).rag["ignored"] == ["tools"]


UNSUPPORTED: list[tuple[str, dict[str, Any]]] = [
    ("n", {"n": 2}),
    ("tool_choice", {"tool_choice": "required", "tools": []}),
    ("response_format.type", {"response_format": {"type": "json_object"}}),
    ("modalities", {"modalities": ["text", "audio"], "audio": {"voice": "alloy", "format": "mp3"}}),
    ("stream_options", {"stream_options": "all"}),
    ("messages", {"messages": []}),
    ("messages", {"messages": [*ASKED, {"role": "assistant", "content": "Yes,"}]}),
    ("messages", {"messages": [*ASKED, {"role": "system", "content": "Be brief."}]}),
    ("messages[0].content", {"messages": [{"role": "user", "content": "  "}]}),
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

"""The advisor with a chat model: valid, invalid, truncated and wrong-schema JSON from the double of Ollama."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.conftest import mostly_slow
from tests.doubles.ollama import CHAT, Done, OllamaDouble, Say, chat, failure
from tests.integration.advisor.conftest import OpenAdvisor, Opened

LOAN = {"inquiry": "How much can a participant borrow with a general purpose loan?", "topic": "loans"}
FIELDS = {
    "participantData": [
        {
            "field": "Vested balance",
            "description": "Vested account value",
            "whyNeeded": "Sets the maximum loan",
            "dataType": "currency",
            "required": True,
        }
    ],
    "planData": [],
}
PATHS = ["/api/v1/required-data", "/api/v1/generate-response"]


def response(**changes: Any) -> dict[str, Any]:
    section = {
        "topic": "General-purpose loan",
        "answerComponents": ["The minimum loan is $1,000 [{rules}]."],
        "steps": ["Verify identity with two factors [{steps}]."],
        "warnings": ["The fee is $900 and nobody can avoid it [{rules}]."],
    }
    return {"decision": "can_proceed", "sections": [{**section, **changes}]}


def answer_for(path: str, body: dict[str, Any]) -> str:
    """A valid reply to a request of the service, with marks as the prompt gives them."""
    if path.endswith("required-data"):
        return json.dumps(FIELDS)
    return with_marks(response(), body)


def with_marks(reply: dict[str, Any], body: dict[str, Any]) -> str:
    user = body["messages"][1]["content"]
    text = json.dumps(reply)
    for name, sentence in (("rules", "The minimum loan is $1,000."), ("steps", "Verify identity with two factors")):
        before = user[: user.index(sentence)]
        text = text.replace("{" + name + "}", before[before.rindex("[C") + 1 :].partition("]")[0])
    return text


@pytest.fixture
async def opened(open_advisor: OpenAdvisor, ollama: OllamaDouble) -> Opened:
    return await open_advisor(chat_provider="ollama", model_name="llama3.2", ollama_url=ollama.url)


async def ask(opened: Opened, path: str, **more: Any) -> tuple[int, dict[str, Any]]:
    reply = await opened.client.post(path, json={**LOAN, "recordKeeper": "Northgate", **more})
    return reply.status_code, reply.json()


async def test_valid_json_is_the_reply(opened: Opened, ollama: OllamaDouble) -> None:
    ollama.answer = lambda body: answer_for("response" if "advise staff" in str(body) else "required-data", body)
    status, body = await ask(opened, PATHS[0])
    assert status == 200 and body["requiredFields"] == FIELDS
    assert body["articleReference"]["articleId"] == "RK-LOAN-001"
    status, body = await ask(opened, PATHS[1], maxTokens=3000)
    assert status == 200
    (section,) = body["response"]["sections"]
    assert section["answerComponents"][0].startswith("The minimum loan is $1,000 [C")
    assert [item["citation"]["status"] for item in body["citations"]] == ["verified", "verified", "not_found"]
    assert section["warnings"][0].startswith("Data still missing")  # ours, before the model's
    assert body["flagged"] == [{"section": 0, "part": "warnings", "item": 1}]
    assert len(ollama.bodies(CHAT)) == 2


async def test_the_model_is_held_to_the_schema_and_to_its_share_of_the_budget(
    opened: Opened, ollama: OllamaDouble
) -> None:
    ollama.answer = lambda body: answer_for("response", body)
    _, reply = await ask(opened, PATHS[1], maxTokens=3000)
    (body,) = ollama.bodies(CHAT)
    assert body["format"]["properties"]["sections"]["items"]["required"] == [
        "topic", "answerComponents", "steps", "warnings",
    ]  # fmt: skip
    assert body["options"]["num_predict"] == 900
    assert reply["metadata"]["contextTokens"] <= 2100
    assert body["options"]["num_ctx"] == 8192


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    "first",
    mostly_slow(
        ["Sure! Here is the answer.", '{"decision": "can_pro', '{"decision": 7}', "[]"], fast=['{"decision": 7}']
    ),
)
async def test_unusable_json_is_repaired_once(opened: Opened, ollama: OllamaDouble, path: str, first: str) -> None:
    ollama.script(CHAT, chat(Say(first)))
    ollama.answer = lambda body: answer_for(path, body)
    status, _ = await ask(opened, path)
    assert status == 200
    one, two = ollama.bodies(CHAT)
    assert two["messages"][:2] == one["messages"]
    assert two["messages"][2]["content"].startswith("Your last reply could not be used. The reply ")
    assert two["format"] == one["format"]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("bad", ['{"decision": 7}', '{"participantData": "none"}', "no JSON"])
async def test_json_that_stays_unusable_is_a_clear_error(
    opened: Opened, ollama: OllamaDouble, path: str, bad: str
) -> None:
    ollama.script(CHAT, chat(Say(bad)), chat(Say(bad)))
    status, body = await ask(opened, path)
    assert (status, body["code"]) == (500, "llm_output_invalid")
    assert "structured output" in body["help"]
    assert len(ollama.bodies(CHAT)) == 2


@pytest.mark.parametrize(("path", "shown"), [(PATHS[0], "Vested balance"), (PATHS[1], "Verify identity")])
async def test_where_the_model_fails_the_article_is_quoted(
    opened: Opened, ollama: OllamaDouble, path: str, shown: str
) -> None:
    ollama.script(CHAT, failure(400))
    status, body = await ask(opened, path)
    assert (status, body["decision"], body["metadata"]["modelError"]) == (200, "uncertain", "llm_unavailable")
    assert shown in json.dumps(body["requiredFields"] if "requiredFields" in body else body["response"])
    assert body.get("flagged", []) == []


async def test_without_the_fallback_a_failing_model_is_an_error(
    open_advisor: OpenAdvisor, ollama: OllamaDouble
) -> None:
    opened = await open_advisor(chat_provider="ollama", ollama_url=ollama.url, extractive_fallback=False)
    ollama.script(CHAT, failure(400))
    status, body = await ask(opened, PATHS[1])
    assert (status, body["code"]) == (500, "llm_unavailable")


@pytest.mark.parametrize("path", PATHS)
async def test_json_cut_off_at_the_limit_is_a_clear_error_at_once(
    opened: Opened, ollama: OllamaDouble, path: str
) -> None:
    ollama.script(CHAT, chat(Say('{"sections": [{"topic": "Loan", "answ'), Done(done_reason="length")))
    status, body = await ask(opened, path)
    assert (status, body["code"]) == (500, "llm_output_invalid")
    assert len(ollama.bodies(CHAT)) == 1


async def test_a_forbidden_phrase_is_reported_and_nothing_more_than_uncertain(
    opened: Opened, ollama: OllamaDouble
) -> None:
    said = response(warnings=["You can take any amount you like [{rules}]."])
    ollama.answer = lambda body: with_marks(said, body)
    _, body = await ask(opened, PATHS[1])
    assert body["decision"] == "uncertain"
    broken = [check for check in body["guardrails"]["violations"] if check["kind"] == "never_say"]
    assert [(check["phrase"], check["foundIn"]) for check in broken] == [
        ("you can take any amount you like", "sections[0].warnings[0]")
    ]
    assert broken[0]["rule"].startswith("Never say")
    assert broken[0]["location"]["headings"][-1] == "Guardrails"


async def test_a_model_that_finds_the_case_out_of_scope_gives_no_sections(opened: Opened, ollama: OllamaDouble) -> None:
    ollama.answer = '{"decision": "out_of_scope", "sections": []}'
    _, body = await ask(opened, PATHS[1])
    assert (body["decision"], body["response"]["sections"]) == ("out_of_scope", [])


async def test_links_and_prompt_in_the_models_json_do_not_pass(opened: Opened, ollama: OllamaDouble) -> None:
    secret = "You advise staff on one case, from the passages below and from nothing else."
    said = response(warnings=["See [this](https://evil.test/x) [{rules}].", secret], topic="PWNED BY ALIENS")
    ollama.answer = lambda body: with_marks(said, body)
    status, body = await ask(opened, PATHS[1])
    assert status == 200
    shown = json.dumps(body["response"])
    assert "evil.test" not in shown and "passages below" not in shown and "PWNED" not in shown
    assert {item["item"] for item in body["flagged"] if item["part"] == "warnings"} == {1, 2}


async def test_withheld_statements_are_counted(open_advisor: OpenAdvisor, ollama: OllamaDouble) -> None:
    opened = await open_advisor(
        chat_provider="ollama", model_name="llama3.2", ollama_url=ollama.url, withhold_unverified=True
    )
    ollama.answer = lambda body: answer_for("response", body)
    _, body = await ask(opened, PATHS[1])
    assert body["withheldStatements"] == 1
    assert "$900" not in json.dumps(body)

"""The advisor without a chat model: the contracts of B1 and B2 over the retirement articles."""

from __future__ import annotations

from typing import Any

from rag_service.advisor.schema import Inquiry, ResponseRequest
from rag_service.domain import Decision
from tests.integration.advisor.conftest import ADMIN, OpenAdvisor

LOAN = {
    "inquiry": "How much can a participant borrow with a general purpose loan?",
    "recordKeeper": "Northgate",
    "planType": "401k",
    "topic": "loans",
}
COLLECTED = {
    "participantData": {
        "vestedBalance": 64000,
        "Highest loan balance, last 12 months": 9000,
        "openLoans": 0,
        "employmentStatusActive": True,
        "maritalStatus": "single",
    },
    "planData": {"loansAllowed": True, "maximumNumberOfLoans": 2},
}


async def test_required_data_come_from_the_declared_table(open_advisor: OpenAdvisor) -> None:
    opened = await open_advisor()
    reply = await opened.client.post("/api/v1/required-data", json=LOAN)
    assert reply.status_code == 200, reply.text
    body = reply.json()
    assert body["articleReference"]["articleId"] == "RK-LOAN-001"
    assert 0 < body["articleReference"]["confidence"] <= 1
    fields = body["requiredFields"]
    assert fields["participantData"][0] == {
        "field": "Vested balance",
        "description": "Vested account value at the last close of business",
        "whyNeeded": "Sets the maximum loan",
        "dataType": "currency",
        "required": True,
    }
    assert [field["field"] for field in fields["planData"]] == [
        "Loans allowed",
        "Maximum number of loans",
        "Spousal consent required",
    ]
    assert len(fields["participantData"]) == 5
    assert 0 < body["metadata"]["contextTokens"] <= 500
    assert body["metadata"]["chunksUsed"] <= 3


async def test_required_data_use_the_three_declared_types_only(open_advisor: OpenAdvisor) -> None:
    opened = await open_advisor()
    fields = {"record_keeper": "Northgate", "plan_type": "401k", "topic": "loans"}
    outcome = await opened.advisor.required_data(Inquiry(text=LOAN["inquiry"], fields=fields), ADMIN)
    used = [*outcome.shown, *outcome.left_out]
    assert {hit.chunk.type for hit in outcome.shown} <= {"required_data", "eligibility", "business_rules"}
    assert outcome.shown[0].chunk.type == "required_data" and len(used) >= 3


async def test_a_response_quotes_the_article_with_verified_citations(open_advisor: OpenAdvisor) -> None:
    opened = await open_advisor()
    body = (
        await opened.client.post(
            "/api/v1/generate-response", json={**LOAN, "collectedData": COLLECTED, "maxTokens": 3000}
        )
    ).json()
    (section,) = body["response"]["sections"]
    assert section["topic"] == "General-purpose loan from a 401(k) at Northgate"
    assert any("If there is a loan in default" in text for text in section["answerComponents"])
    assert section["steps"][0].startswith("Verify identity with two factors. [C")
    assert any(text.startswith("Origination: $75") for text in section["warnings"])
    assert body["missingFields"] == [] and body["flagged"] == []
    count = sum(len(section[part]) for part in ("answerComponents", "steps", "warnings"))
    assert len(body["citations"]) == count
    assert {item["citation"]["status"] for item in body["citations"]} == {"verified"}
    for item in body["citations"]:
        place, citation = item["statement"], item["citation"]
        text = section[place["part"]][place["item"]]
        assert text[citation["sentenceStart"] : citation["sentenceEnd"]].startswith(
            citation["quote"][:20].capitalize()[:1]
        )
    assert body["guardrails"]["passed"] is True
    assert len(body["guardrails"]["checks"]) == 4


async def test_critical_chunks_go_first_and_the_budget_holds(open_advisor: OpenAdvisor) -> None:
    opened = await open_advisor()
    asked = Inquiry(text=LOAN["inquiry"], fields={"topic": "loans", "record_keeper": "Northgate"})
    for most in (1000, 1300, 2000, 4000):
        answer = await opened.advisor.generate_response(ResponseRequest(inquiry=asked, max_tokens=most), ADMIN)
        assert answer.context_tokens <= most * 0.7 and answer.answer_tokens <= most * 0.3
        kinds = [hit.chunk.type for hit in answer.shown]
        assert set(kinds[:4]) == {"decision_guide", "response_frame", "guardrails", "business_rules"}
        assert {"steps", "fees", "common_issues"} >= set(kinds[4:7])
        ratings = [hit.scores.rerank for hit in answer.shown[:4]]
        assert ratings == sorted(ratings, reverse=True)
        assert len(answer.shown) + len(answer.left_out) == 12  # eleven sections and the title


async def test_a_budget_without_room_for_the_critical_chunks_is_refused_by_name(open_advisor: OpenAdvisor) -> None:
    opened = await open_advisor()
    reply = await opened.client.post("/api/v1/generate-response", json={**LOAN, "maxTokens": 500})
    assert reply.status_code == 400
    (error,) = reply.json()["errors"]
    assert error["field"] == "maxTokens"
    assert "CRITICAL chunks alone do not fit" in error["message"]


async def test_missing_data_make_the_decision_uncertain_and_are_named(open_advisor: OpenAdvisor) -> None:
    opened = await open_advisor()
    body = (await opened.client.post("/api/v1/generate-response", json={**LOAN, "collectedData": {}})).json()
    assert body["decision"] == "uncertain"
    assert "Vested balance" in body["missingFields"] and "Spousal consent required" not in body["missingFields"]
    warning = body["response"]["sections"][0]["warnings"][0]
    assert warning.startswith("Data still missing for this case: Vested balance, ")


async def test_nothing_found_is_out_of_scope_with_no_confidence(open_advisor: OpenAdvisor) -> None:
    opened = await open_advisor(similarity_threshold=1.0)
    body = (await opened.client.post("/api/v1/generate-response", json=LOAN)).json()
    assert (body["decision"], body["confidence"], body["response"]["sections"]) == ("out_of_scope", 0.0, [])
    assert body["articleReference"] == {"articleId": None, "confidence": 0.0}
    body = (await opened.client.post("/api/v1/required-data", json=LOAN)).json()
    assert (body["decision"], body["requiredFields"]) == ("out_of_scope", {"participantData": [], "planData": []})


async def test_filter_fields_choose_the_article(open_advisor: OpenAdvisor) -> None:
    opened = await open_advisor()
    body = {"inquiry": LOAN["inquiry"], "recordKeeper": "Silverline", "fields": {"plan_type": "403b"}}
    found = (await opened.client.post("/api/v1/required-data", json=body)).json()
    assert found["articleReference"]["articleId"] == "RK-LOAN-002"


BAD_INPUT: tuple[tuple[dict[str, Any], str], ...] = (
    ({"inquiry": " "}, "inquiry"),
    ({"inquiry": "x" * 5000}, "inquiry"),
    ({"inquiry": 3}, "inquiry"),
    ({"maxTokens": 50}, "maxTokens"),
    ({"maxTokens": "many"}, "maxTokens"),
    ({"collectedData": []}, "collectedData"),
    ({"plan": "401k"}, "plan"),
    ({"index": "nothing"}, "index"),
    ({"fields": {"colour": "red"}}, "fields.colour"),
    ({"recordKeeper": "a\0b"}, "recordKeeper"),
)


async def test_bad_input_names_the_field(open_advisor: OpenAdvisor) -> None:
    opened = await open_advisor()
    for change, field in BAD_INPUT:
        reply = await opened.client.post("/api/v1/generate-response", json={**LOAN, **change})
        assert reply.status_code == 400, reply.text
        assert reply.headers["content-type"] == "application/problem+json"
        assert field in [error["field"] for error in reply.json()["errors"]], change


async def test_an_unknown_corpus_is_not_found(open_advisor: OpenAdvisor) -> None:
    opened = await open_advisor()
    body = {**LOAN, "corpusIds": ["00000000-0000-4000-8000-00000000dead"]}
    reply = await opened.client.post("/api/v1/required-data", json=body)
    assert (reply.status_code, reply.json()["code"]) == (404, "not_found")
    named = {**LOAN, "corpusIds": [str(opened.corpus_id)], "index": "retirement"}
    assert (await opened.client.post("/api/v1/required-data", json=named)).status_code == 200


async def test_the_decision_is_that_of_the_figures_when_nothing_is_missing(open_advisor: OpenAdvisor) -> None:
    opened = await open_advisor()
    asked = Inquiry(text=LOAN["inquiry"], fields={"topic": "loans", "record_keeper": "Northgate"})
    answer = await opened.advisor.generate_response(ResponseRequest(inquiry=asked, collected=COLLECTED), ADMIN)
    assert answer.missing == ()
    expected = Decision.CAN_PROCEED if answer.confidence.value >= 0.7 else Decision.UNCERTAIN
    assert answer.decision is expected
    assert answer.confidence.critical_boost is True

"""Values of filter fields as people write them, and what happens to values that no article has."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest

from tests.integration.advisor.conftest import OpenAdvisor, Opened
from tests.integration.advisor.test_quoting_advisor import LOAN

OUTGOING = (
    "Can a participant who left the employer move the account to an IRA, and is tax withheld?",
    "A participant separated and wants a direct rollover to the plan of a new provider.",
)
INCOMING = (
    "Can a new employee bring money from a former plan into the current one?",
    "Somebody wants to roll in part of an old IRA; what does the plan accept?",
)


@pytest.fixture
def rollovers(checkout: Path) -> dict[str, bytes]:
    folder = checkout / "indices/retirement/documents"
    return {file.name: file.read_bytes() for file in sorted(folder.glob("rk-roll-*.md"))}


async def ask(opened: Opened, **body: Any) -> str:
    reply = await opened.client.post("/api/v1/required-data", json=body)
    assert reply.status_code == 200, reply.text
    return str(reply.json()["articleReference"]["articleId"])


@pytest.mark.parametrize("plan_type", ["401k", "401(k)", "401 k", "401-K", " 401(K) "])
async def test_spelling_does_not_matter(open_advisor: OpenAdvisor, plan_type: str) -> None:
    opened = await open_advisor()
    body = {**LOAN, "planType": plan_type, "recordKeeper": "NORTHGÁTE", "topic": "Loans"}
    assert await ask(opened, **body) == "RK-LOAN-001"


async def test_articles_may_spell_a_value_differently(open_advisor: OpenAdvisor, checkout: Path) -> None:
    text = (checkout / "indices/retirement/documents/rk-loan-001-general-purpose-loan.md").read_text(encoding="utf-8")
    assert "plan_type: 401k" in text
    other = text.replace("plan_type: 401k", "plan_type: 401(K)").replace("RK-LOAN-001", "RK-LOAN-009")
    opened = await open_advisor(more={"other.md": other.encode()})
    for article in ("RK-LOAN-001", "RK-LOAN-009"):
        assert await ask(opened, **LOAN | {"planType": "401 k", "fields": {"article_id": article.lower()}}) == article


UNKNOWN: tuple[tuple[dict[str, Any], str, str], ...] = (
    ({"planType": "457b"}, "planType", "401k, 403b"),
    ({"recordKeeper": "Fidelio"}, "recordKeeper", "Northgate, Silverline"),
    ({"topic": "((("}, "topic", "loans"),
    ({"planType": None, "fields": {"plan_type": "pension"}}, "planType", "401k, 403b"),
    ({"fields": {"article_id": "RK-NONE"}}, "fields.article_id", "RK-LOAN-001"),
)


async def test_a_value_that_no_article_has_is_told_with_the_known_ones(
    open_advisor: OpenAdvisor, rollovers: dict[str, bytes]
) -> None:
    opened = await open_advisor(more=rollovers)  # one of them fits any plan and would answer
    for path, (change, field, known) in itertools.product(("required-data", "generate-response"), UNKNOWN):
        reply = await opened.client.post(f"/api/v1/{path}", json={**LOAN, **change})
        assert reply.status_code == 400, reply.text
        (error,) = reply.json()["errors"]
        assert error["field"].removeprefix("fields.") in (field.removeprefix("fields."), "plan_type")
        assert "known values: " in error["message"] and known in error["message"]


async def test_any_asks_for_articles_of_every_kind(open_advisor: OpenAdvisor, rollovers: dict[str, bytes]) -> None:
    opened = await open_advisor(more=rollovers)
    assert await ask(opened, inquiry=INCOMING[0], planType="Any") == "RK-ROLL-002"


@pytest.mark.parametrize("fields", [{}, {"planType": "401(k)", "recordKeeper": "northgate"}, {"topic": "Rollover"}])
async def test_rollovers_out_and_in_find_their_own_articles(
    open_advisor: OpenAdvisor, rollovers: dict[str, bytes], fields: dict[str, str]
) -> None:
    opened = await open_advisor(more=rollovers)
    assert [await ask(opened, inquiry=text, **fields) for text in OUTGOING] == ["RK-ROLL-001"] * len(OUTGOING)
    assert [await ask(opened, inquiry=text, **fields) for text in INCOMING] == ["RK-ROLL-002"] * len(INCOMING)

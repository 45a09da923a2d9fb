"""Conversations without an agent: kept, gone on with, found, renamed, exported, and nobody else's."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import httpx
import msgspec
import pytest

from rag_service.api.agents.history import keep_answers
from rag_service.api.http.events import WireEvent
from rag_service.api.http.schemas import AnswerBody
from tests.integration.tenancy.conftest import ADMIN, Street
from tests.integration.tenancy.web import client_of, new_key
from tests.integration.tenancy.world import CANARY, QUESTION, make_world

pytestmark = pytest.mark.asyncio(loop_scope="module")

ANSWER = "/api/v1/query/answer"
HOSTILE = "<img src=x onerror=alert(1)> \u202edlrow\u202c [x](javascript:alert(1)) 100%_of"


async def ask(client: httpx.AsyncClient, question: str, **fields: Any) -> dict[str, Any]:
    body = {"query": question, "similarityThreshold": 0, **fields}
    found: dict[str, Any] = (await client.post(ANSWER, json=body)).raise_for_status().json()
    return found


async def listed(client: httpx.AsyncClient, **query: Any) -> list[str]:
    found = (await client.get("/api/v1/conversations", params=query)).raise_for_status().json()
    return [one["title"] for one in found["items"]]


async def test_an_answer_is_kept_where_that_is_wanted_and_goes_on_from_its_history(street: Street) -> None:
    world = await make_world(street.house)
    async with client_of(street.application) as client:
        client.headers.update(world.credentials["owner"])
        before = await listed(client)
        assert "conversationId" not in await ask(client, QUESTION)
        assert await listed(client) == before, "nothing is kept unasked"

        first = await ask(client, QUESTION, keep=True)
        kept = first["conversationId"]
        assert (await ask(client, "And why?", conversationId=kept))["conversationId"] == kept
        assert (await listed(client))[0] == QUESTION
        messages = (await client.get(f"/api/v1/conversations/{kept}/messages")).json()["items"]
        assert [one["role"] for one in messages] == ["user", "assistant"] * 2
        assert messages[1]["content"] == first["answer"]
        assert messages[1]["citations"] == first["citations"]
        details = messages[1]["details"]
        assert (details["decision"], details["sources"]) == (first["decision"], first["sources"])
        assert [one["snippet"] for one in details["contextUsed"]] == [""] * len(first["contextUsed"])


async def test_a_streamed_answer_names_its_conversation_and_is_stored_before_it_ends(street: Street) -> None:
    world = await make_world(street.house)
    async with client_of(street.application) as client:
        client.headers.update(world.credentials["owner"])
        body = {"query": QUESTION, "similarityThreshold": 0, "keep": True}
        headers = {"accept": "application/x-ndjson"}
        reply = await client.post(f"{ANSWER}/stream", json=body, headers=headers)
        events = {line["event"]: line["data"] for line in map(json.loads, reply.text.splitlines()) if "data" in line}
        kept = events["final"]["conversationId"]
        assert (await client.get(f"/api/v1/conversations/{kept}")).json()["title"] == QUESTION


async def test_an_answer_takes_the_place_of_the_one_it_replaces_and_of_what_follows(street: Street) -> None:
    world = await make_world(street.house)
    async with client_of(street.application) as client:
        client.headers.update(world.credentials["owner"])
        first = await ask(client, "one", keep=True)
        kept = first["conversationId"]
        second, _ = [await ask(client, words, conversationId=kept) for words in ("two", "three")]
        path = f"/api/v1/conversations/{kept}"

        async def said() -> list[str]:
            messages = (await client.get(f"{path}/messages")).json()["items"]
            return [one["content"] for one in messages if one["role"] == "user"]

        other = (await ask(client, "elsewhere", keep=True))["conversationId"]
        place = {"query": QUESTION, "replaces": second["answerId"]}
        assert (await client.post(ANSWER, json={**place, "conversationId": other})).status_code == 404
        assert (await client.post(ANSWER, json=place)).json()["errors"][0]["field"] == "replaces"
        assert await said() == ["one", "two", "three"]
        await ask(client, QUESTION, conversationId=kept, replaces=second["answerId"])
        assert await said() == ["one", QUESTION]
        assert (await client.get(path)).json()["title"] == "one"
        await ask(client, "begun anew", conversationId=kept, replaces=first["answerId"])
        assert await said() == ["begun anew"]
        assert (await client.get(path)).json()["title"] == "begun anew"
        body = {"query": "again", "conversationId": kept, "replaces": first["answerId"]}
        assert (await client.post(ANSWER, json=body)).status_code == 404, "it has made way"


async def test_of_two_answers_that_replace_the_same_one_is_kept(street: Street) -> None:
    world = await make_world(street.house)
    writer: Any = SimpleNamespace(
        identity=world.owner, transaction=lambda: street.house.database.transaction(world.owner)
    )
    async with client_of(street.application) as client:
        client.headers.update(world.credentials["owner"])
        first = await ask(client, "one", keep=True)
        second = await ask(client, "two", conversationId=first["conversationId"])
        written = [msgspec.convert(await ask(client, words), AnswerBody) for words in ("left tab", "right tab")]

        async def keep(words: str, answer: AnswerBody, replaces: str | None) -> list[WireEvent]:
            async def events() -> AsyncGenerator[WireEvent]:
                yield WireEvent("final", answer)

            place = UUID(first["conversationId"]), UUID(replaces) if replaces else None
            return [event async for event in keep_answers(events(), writer, words, place[0], replaces=place[1])]

        async def messages() -> list[dict[str, Any]]:
            path = f"/api/v1/conversations/{first['conversationId']}/messages"
            items: list[dict[str, Any]] = (await client.get(path)).json()["items"]
            return items

        both = [
            keep(words, answer, second["answerId"]) for words, answer in zip(("left", "right"), written, strict=True)
        ]
        outcomes = await asyncio.gather(*both, return_exceptions=True)
        assert sorted(type(outcome).__name__ for outcome in outcomes) == ["ConflictError", "list"]
        assert len(await messages()) == 4

        await asyncio.gather(*(keep("more", answer, None) for answer in written))
        roles = [one["role"] for one in await messages()]
        assert roles == ["user", "assistant"] * 4, "questions that are asked at once stay with their answers"


async def test_conversations_are_found_by_words_taken_as_they_are(street: Street) -> None:
    world = await make_world(street.house)
    async with client_of(street.application) as client:
        client.headers.update(world.credentials["owner"])
        await ask(client, HOSTILE, keep=True)
        await ask(client, "Something 100 of else", keep=True)
        assert await listed(client, q="100%_of") == [HOSTILE]
        assert await listed(client, q="ONERROR") == [HOSTILE]
        assert CANARY in await listed(client, q="llama"), "also by what the messages say"
        assert await listed(client, q="no such words") == []
        assert len(await listed(client, limit=2)) == 2
        assert (await client.get("/api/v1/conversations", params={"q": "a\0"})).status_code == 400
    async with client_of(street.application) as client:
        client.headers.update(world.credentials["stranger"])
        assert await listed(client, q="onerror") == []


async def test_a_search_shows_where_the_words_stand_in_an_answer_or_else_in_a_question(street: Street) -> None:
    world = await make_world(street.house)
    async with client_of(street.application) as client:
        client.headers.update(world.credentials["owner"])
        kept = (await ask(client, QUESTION, keep=True))["conversationId"]
        await ask(client, f"{'Before it. ' * 20}Which CHEESE goes with figs? {'After it. ' * 40}", conversationId=kept)

        async def found(words: str) -> str | None:
            items = (await client.get("/api/v1/conversations", params={"q": words})).json()["items"]
            (excerpt,) = (one["excerpt"] for one in items if one["id"] == kept)
            return str(excerpt)

        messages = (await client.get(f"/api/v1/conversations/{kept}/messages")).json()["items"]
        said = messages[1]["content"]
        assert said[:60] in await found(said[5:30].upper())
        excerpt = await found("which cheese")
        assert excerpt.startswith("…") and "Before it. Which CHEESE goes with figs? After it." in excerpt
        assert excerpt.endswith("…") and len(excerpt) < 250
        assert await found(QUESTION) == "None", "the title says it already"
        assert (await client.get(f"/api/v1/conversations/{kept}")).json()["excerpt"] is None


async def test_renaming_keeps_the_place_and_refuses_what_is_no_name(street: Street) -> None:
    world = await make_world(street.house)
    async with client_of(street.application) as client:
        client.headers.update(world.credentials["owner"])
        kept = (await ask(client, QUESTION, keep=True))["conversationId"]
        await ask(client, "Another one", keep=True)
        path = f"/api/v1/conversations/{kept}"
        assert (await client.patch(path, json={"title": f" {HOSTILE} "})).json()["title"] == HOSTILE
        assert (await listed(client))[:2] == ["Another one", HOSTILE]
        for wrong in ("", "  ", "x" * 2000, "a\0b"):
            assert (await client.patch(path, json={"title": wrong})).status_code == 400, wrong[:9]


async def test_export_holds_every_message_with_its_citations_and_no_markup_of_others(street: Street) -> None:
    world = await make_world(street.house)
    async with client_of(street.application) as client:
        client.headers.update(world.credentials["owner"])
        question = "In which barn do llamas sleep at noon?"
        answer = await ask(client, question, keep=True)
        path = f"/api/v1/conversations/{answer['conversationId']}"
        await client.patch(path, json={"title": HOSTILE})
        export = await client.get(f"{path}/export")
        assert export.headers["content-type"].startswith("text/markdown")
        assert export.headers["content-disposition"].startswith("attachment")
        title, asked, *rest = export.text.split("\n\n")
        assert title == r"# \<img src=x onerror=alert(1)> dlrow \[x\](javascript:alert(1)) 100%\_of"
        assert asked == f"## {question}"
        first = next(one for one in answer["citations"] if one["quote"])
        assert f"- \\[C{first['mark']}\\] {first['place']} “{first['quote'][:20]}" in export.text
        assert rest[-1].strip().endswith("(verified, quote)")
        assert f"*{answer['decision'].replace('_', chr(92) + '_')}*" in rest


async def test_a_kept_answer_says_which_of_its_documents_have_changed_or_gone_since(street: Street) -> None:
    world = await make_world(street.house)
    async with client_of(street.application) as client:
        client.headers.update(world.credentials["owner"])
        answer = await ask(client, "In which barn do llamas sleep at noon?", keep=True)
        path = f"/api/v1/conversations/{answer['conversationId']}"
        cited = str(world.ids["document_id"])

        async def told() -> tuple[Any, Any, str]:
            question, kept = (await client.get(f"{path}/messages")).json()["items"]
            assert kept["citations"] == answer["citations"], "what was proved then stays"
            return question["sourceChanges"], kept["sourceChanges"], (await client.get(f"{path}/export")).text

        assert (await told())[:2] == ({}, {})
        async with street.house.database.transaction(world.owner) as connection:
            await connection.execute("UPDATE documents SET content_hash = 'another' WHERE id = %s", [cited])
        *changes, export = await told()
        assert changes == [{}, {cited: "changed"}] and "The document has since changed." in export
        assert (await client.delete(f"/api/v1/documents/{cited}")).status_code == 204
        *changes, export = await told()
        assert changes == [{}, {cited: "gone"}] and "The document has since been deleted" in export


async def test_a_conversation_that_is_deleted_meanwhile_does_not_cost_the_answer(
    street: Street, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = await make_world(street.house)
    async with client_of(street.application) as client:
        client.headers.update(world.credentials["owner"])
        kept = (await ask(client, QUESTION, keep=True))["conversationId"]
        assert (await client.delete(f"/api/v1/conversations/{kept}")).status_code == 204
        body = {"query": QUESTION, "conversationId": kept}
        assert (await client.post(ANSWER, json=body)).status_code == 404

        async def still_there(*_: object) -> tuple[()]:
            return ()

        monkeypatch.setattr("rag_service.store.accounts.conversations.read_history", still_there)
        late = await ask(client, QUESTION, conversationId=kept)
        assert late["answer"] and late["conversationId"] is None


async def test_of_two_thousand_messages_every_part_is_read(street: Street) -> None:
    user = await street.house.user("talker")
    async with street.house.database.transaction(user) as connection:
        query = "INSERT INTO conversations (user_id, title) VALUES (%s, 'long') RETURNING id"
        (kept,) = await (await connection.execute(query, [user.user_id])).fetchone()  # type: ignore[misc]
        await connection.execute(
            "INSERT INTO messages (conversation_id, user_id, role, content) SELECT %s, %s, "
            "CASE n %% 2 WHEN 1 THEN 'user' ELSE 'assistant' END, 'word ' || n FROM generate_series(1, 2000) n",
            [kept, user.user_id],
        )
    async with client_of(street.application, await new_key(street.house, user)) as client:
        path = f"/api/v1/conversations/{kept}"
        last = (await client.get(f"{path}/messages", params={"offset": 1940, "limit": 60})).json()
        assert (last["total"], last["items"][0]["content"], last["items"][-1]["content"]) == (
            2000, "word 1941", "word 2000",
        )  # fmt: skip
        assert (await client.get(f"{path}/export")).text.count("\n## word") == 1000
        assert await listed(client, q="word 1999") == ["long"]
    async with client_of(street.application, await new_key(street.house, ADMIN)) as client:
        assert (await client.get(path)).status_code == 404

"""A shared conversation is read by whoever may read all corpora that its answers rest on, and by nobody else."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import httpx
import psycopg
import pytest

from rag_service.domain import CorpusKind, Identity
from rag_service.store.accounts.agents import AgentSpec, assign_corpus, create_agent
from rag_service.store.accounts.conversations import add_message
from rag_service.store.accounts.keys import Scope
from rag_service.store.accounts.users import delete_user, update_user
from rag_service.store.corpora import Corpus, update_corpus
from tests.integration.tenancy.conftest import ADMIN, House, Street, text_file
from tests.integration.tenancy.web import client_of, new_key, real_application
from tests.integration.tenancy.world import CANARY, QUESTION, TEXT

pytestmark = pytest.mark.asyncio(loop_scope="module")

ANSWER = "/api/v1/query/answer"
PLACES = ("", "/messages", "/export")


@dataclass(frozen=True, kw_only=True)
class Team:
    """An owner who has been answered from a corpus of a group, a member of that group, and somebody who is not."""

    owner: Identity
    member: Identity
    outsider: Identity
    corpus: Corpus
    keys: Mapping[str, str]
    conversation: str
    answer: Mapping[str, Any]

    @property
    def path(self) -> str:
        return f"/api/v1/conversations/{self.conversation}"


@asynccontextmanager
async def acting(street: Street, key: str) -> AsyncIterator[httpx.AsyncClient]:
    async with client_of(street.application, key) as client:
        yield client


async def make_team(street: Street, *, shared: bool = True) -> Team:
    house, mark = street.house, uuid4().hex[:8]
    people = {name: await house.user(f"{name}-{mark}") for name in ("owner", "member", "outsider")}
    corpus = await grouped_corpus(house, mark, people["owner"], people["member"])
    keys = {name: await new_key(house, person, {Scope.READ, Scope.WRITE}) for name, person in people.items()}
    keys["admin"] = await new_key(house, ADMIN)
    async with acting(street, keys["owner"]) as client:
        answer = await ask(client, QUESTION, keep=True, corpusIds=[str(corpus.id)])
        assert CANARY in answer["answer"]
        if shared:
            (await client.post(f"/api/v1/conversations/{answer['conversationId']}/share")).raise_for_status()
    return Team(**people, corpus=corpus, keys=keys, conversation=answer["conversationId"], answer=answer)


async def grouped_corpus(house: House, group: str, *members: Identity) -> Corpus:
    """A global corpus that the members of a group read, besides administrators."""
    corpus = await house.corpus(ADMIN, f"{CANARY} {uuid4().hex}", CorpusKind.GLOBAL)
    async with house.database.transaction(ADMIN) as connection:
        await update_corpus(connection, corpus.id, shared=False, groups=[group])
    put_into(house, group, *members)
    await house.index(ADMIN, corpus, text_file("barn.txt", TEXT))
    return corpus


def put_into(house: House, group: str, *members: Identity) -> None:
    with house.owner() as owner:
        for member in members:
            owner.execute("UPDATE rag.users SET groups = groups || %s WHERE id = %s", [[group], member.user_id])


async def ask(client: httpx.AsyncClient, question: str, **fields: Any) -> dict[str, Any]:
    body = {"query": question, "similarityThreshold": 0, **fields}
    found: dict[str, Any] = (await client.post(ANSWER, json=body)).raise_for_status().json()
    return found


async def may_read(street: Street, team: Team, who: str) -> bool:
    """Whether all that a conversation shows is there, or nothing of it."""
    async with acting(street, team.keys[who]) as client:
        replies = [await client.get(team.path + place) for place in PLACES]
        listed = (await client.get("/api/v1/conversations", params={"shared": "true"})).raise_for_status().json()
    is_listed = team.conversation in [item["id"] for item in listed["items"]]
    statuses = {reply.status_code for reply in replies}
    assert statuses in ({200}, {404})
    if statuses == {404}:
        assert {reply.json()["code"] for reply in replies} == {"not_found"}
        assert all(CANARY not in reply.text for reply in replies)
    assert is_listed == (statuses == {200} and who != "owner")
    return statuses == {200}


async def readers(street: Street, team: Team) -> set[str]:
    return {who for who in team.keys if await may_read(street, team, who)}


async def test_whoever_may_read_the_corpora_reads_it_with_its_owners_name_and_nothing_of_how_it_is_filed(
    street: Street,
) -> None:
    team = await make_team(street, shared=False)
    assert await readers(street, team) == {"owner"}
    async with acting(street, team.keys["owner"]) as client:
        project = (await client.post("/api/v1/projects", json={"name": "mine"})).json()["id"]
        with street.house.owner() as owner:
            owner.execute(
                "UPDATE rag.conversations SET project_id = %s, pinned = true WHERE id = %s",
                [project, team.conversation],
            )
        shared = (await client.post(f"{team.path}/share")).raise_for_status().json()
        assert (shared["shared"], shared["owner"], shared["projectId"], shared["pinned"]) == (True, None, project, True)
    assert await readers(street, team) == {"owner", "member", "admin"}
    async with acting(street, team.keys["member"]) as client:
        found = (await client.get(team.path)).json()
        assert (found["shared"], found["projectId"], found["pinned"]) == (True, None, False)
        assert found["owner"].startswith("owner-")
        messages = (await client.get(f"{team.path}/messages")).json()["items"]
        assert messages[1]["content"] == team.answer["answer"]
        assert messages[1]["citations"] == team.answer["citations"]
        own = (await client.get("/api/v1/conversations", params={"q": "llamas"})).json()
        assert own == {"items": [], "total": 0}, "one's own list and search hold one's own"
        both = await client.get("/api/v1/conversations", params={"shared": "true", "projectId": project})
        assert both.status_code == 400
    async with acting(street, team.keys["owner"]) as client:
        assert (await client.delete(f"{team.path}/share")).status_code == 204
    assert await readers(street, team) == {"owner"}


async def test_readers_change_nothing_and_go_on_with_nothing(street: Street) -> None:
    team = await make_team(street)
    before = team.answer["answerId"]
    async with acting(street, team.keys["member"]) as client:
        assert (await client.patch(team.path, json={"title": "mine"})).status_code == 404
        assert (await client.delete(team.path)).status_code == 404
        assert (await client.post(f"{team.path}/share")).status_code == 404
        assert (await client.delete(f"{team.path}/share")).status_code == 404
        for more in ({}, {"replaces": before}):
            body = {"query": QUESTION, "conversationId": team.conversation, **more}
            assert (await client.post(ANSWER, json=body)).status_code == 404
        assert (await client.get(f"/api/v1/answers/{before}")).status_code == 404
        assert (await client.put(f"/api/v1/answers/{before}/feedback", json={"thumbs": "down"})).status_code == 404
    async with street.house.database.transaction(team.member) as connection:
        await connection.execute("SELECT set_config('rag.shared', %s, true)", [team.conversation])
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            await add_message(connection, team.member, team.conversation, role="user", content="mine")  # type: ignore[arg-type]
    assert await readers(street, team) == {"owner", "member", "admin"}


async def test_a_right_that_is_withdrawn_ends_the_reading_at_once(street: Street) -> None:
    team = await make_team(street)
    assert await may_read(street, team, "member")
    with street.house.owner() as owner:
        owner.execute("UPDATE rag.users SET groups = '{}' WHERE id = %s", [team.member.user_id])
    assert not await may_read(street, team, "member")
    async with street.house.database.transaction(ADMIN) as connection:
        agent = await create_agent(connection, AgentSpec(name=f"helper-{uuid4().hex}"))
        await assign_corpus(connection, agent.id, team.corpus.id)
    assert await may_read(street, team, "member"), "through an agent, as its documents"
    async with street.house.database.transaction(ADMIN) as connection:
        await update_corpus(connection, team.corpus.id, active=False)
    assert await readers(street, team) == {"owner", "admin"}


async def test_all_corpora_are_needed_also_those_that_were_asked_without_a_result(street: Street) -> None:
    team = await make_team(street)
    other = await grouped_corpus(street.house, f"others-{team.conversation}", team.owner)
    async with acting(street, team.keys["owner"]) as client:
        asked = {"conversationId": team.conversation, "corpusIds": [str(other.id)]}
        await ask(client, "zzz", **asked, similarityThreshold=1)
    assert await readers(street, team) == {"owner", "admin"}, "what is added later counts"
    put_into(street.house, f"others-{team.conversation}", team.member)
    assert await readers(street, team) == {"owner", "member", "admin"}


async def test_an_answer_that_is_removed_no_longer_counts(street: Street) -> None:
    team = await make_team(street)
    assert await may_read(street, team, "member")
    with street.house.owner() as owner:
        owner.execute("UPDATE rag.messages SET corpora = NULL WHERE conversation_id = %s", [team.conversation])
    assert await readers(street, team) == {"owner"}
    with street.house.owner() as owner:
        owner.execute("DELETE FROM rag.messages WHERE conversation_id = %s", [team.conversation])
        corpora = owner.execute("SELECT corpora FROM rag.conversations WHERE id = %s", [team.conversation]).fetchone()
    assert corpora == ([],)


async def test_what_rests_on_a_personal_corpus_is_not_shared_and_read_by_nobody_else(street: Street) -> None:
    team = await make_team(street)
    personal = await street.house.corpus(team.owner, f"{CANARY} notes")
    await street.house.index(team.owner, personal, text_file("own.txt", TEXT))
    async with acting(street, team.keys["owner"]) as client:
        await ask(client, QUESTION, conversationId=team.conversation, corpusIds=[str(personal.id)])
        assert await readers(street, team) == {"owner"}
        answer = await ask(client, QUESTION, keep=True, corpusIds=[str(personal.id)])
        refused = await client.post(f"/api/v1/conversations/{answer['conversationId']}/share")
        assert (refused.status_code, refused.json()["code"]) == (409, "not_shareable")
        assert "personal" in refused.json()["detail"]
        found = (await client.get(f"/api/v1/conversations/{answer['conversationId']}")).json()
        assert not found["shared"]


async def test_a_file_whose_name_an_answer_tells_counts_although_it_is_not_cited(street: Street) -> None:
    team = await make_team(street)
    personal = await street.house.corpus(team.owner, f"{CANARY} files")
    await street.house.index(team.owner, personal, text_file(f"{CANARY}-2026.txt", TEXT))
    asked = CANARY[:-1]
    async with acting(street, team.keys["owner"]) as client:
        answer = await ask(client, f"What is in {asked}-2026.txt?", conversationId=team.conversation)
    assert f"{CANARY}-2026.txt" in answer["answer"] and not answer["citations"], "a name that is similar"
    assert await readers(street, team) == {"owner"}


async def test_an_answer_whose_corpora_are_not_known_is_read_by_its_owner_alone(street: Street) -> None:
    team = await make_team(street)
    with street.house.owner() as owner:
        gone = {"conversation": team.conversation, "user": team.owner.user_id}
        insert = """INSERT INTO rag.messages (conversation_id, user_id, role, content, answer_id)
            VALUES (%(conversation)s, %(user)s, 'assistant', 'x', gen_random_uuid())"""
        owner.execute(insert, gone)
    assert await readers(street, team) == {"owner"}
    async with acting(street, team.keys["owner"]) as client:
        refused = await client.post(f"{team.path}/share")
        assert refused.status_code == 409 and "not known" in refused.json()["detail"]


async def test_it_is_gone_with_the_conversation_and_with_its_owner(street: Street) -> None:
    deleted, inactive, gone = [await make_team(street) for _ in range(3)]
    async with acting(street, deleted.keys["owner"]) as client:
        assert (await client.delete(deleted.path)).status_code == 204
    async with street.house.database.transaction(ADMIN) as connection:
        await update_user(connection, ADMIN, inactive.owner.user_id, active=False)
        await delete_user(connection, ADMIN, gone.owner.user_id)
    for team in (deleted, inactive, gone):
        assert not await may_read(street, team, "member")


async def test_a_key_shares_and_reads_as_far_as_its_scopes_go(street: Street) -> None:
    team = await make_team(street, shared=False)
    reading, writing = [await new_key(street.house, team.owner, {scope}) for scope in (Scope.READ, Scope.WRITE)]
    async with acting(street, reading) as client:
        assert (await client.post(f"{team.path}/share")).status_code == 403
        assert (await client.delete(f"{team.path}/share")).status_code == 403
    async with acting(street, writing) as client:
        (await client.post(f"{team.path}/share")).raise_for_status()
    async with acting(street, await new_key(street.house, team.member, {Scope.WRITE})) as client:
        assert [(await client.get(team.path + place)).status_code for place in PLACES] == [403] * 3
    async with acting(street, await new_key(street.house, team.member, {Scope.READ})) as client:
        assert [(await client.get(team.path + place)).status_code for place in PLACES] == [200] * 3


async def test_where_sharing_is_off_nobody_reads_what_is_shared(street: Street) -> None:
    team = await make_team(street)
    async with real_application(street.house.server, street.house.embedding, sharing=False) as (application, _):
        closed = Street(house=street.house, application=application)
        assert await readers(closed, team) == {"owner"}
        async with acting(closed, team.keys["owner"]) as client:
            refused = await client.post(f"{team.path}/share")
            assert (refused.status_code, refused.json()["code"]) == (403, "not_permitted")
            assert (await client.delete(f"{team.path}/share")).status_code == 204
    assert await readers(street, team) == {"owner"}

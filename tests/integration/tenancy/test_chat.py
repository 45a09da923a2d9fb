"""Agent chat: whose documents it draws on, what the model is shown, and how it goes on without documents."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest
from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.llms import MockLLM

from rag_service.agents.chat import AgentChat
from rag_service.agents.models import AgentModels
from rag_service.answering.conversation import cut_history, render_history
from rag_service.answering.engine import build_engine
from rag_service.answering.prompt.templates import load_prompts
from rag_service.domain import CorpusKind, Identity, Turn
from rag_service.errors import ModelError, StoreError
from rag_service.indices import load_index
from rag_service.models.llm.model import ChatDelta, ChatModel
from rag_service.models.llm.token_rates import TokenRates
from rag_service.models.reranking.rerankers import build_reranker
from rag_service.models.servers.resilience import Slots
from rag_service.retrieval.hybrid import HybridRetriever
from rag_service.settings import Settings
from rag_service.store.accounts.agents import (
    Agent,
    AgentScope,
    AgentSpec,
    assign_corpus,
    create_agent,
    resolve_agent_scope,
)
from rag_service.turns import Owner
from tests.integration.tenancy.conftest import ADMIN, INDEX, House, text_file
from tests.integration.tenancy.web import build_application, client_of, new_key, web_settings

SHARED = "Llamas eat grass and hay. A llama eats two kilograms a day."
OWN = "My llama Pepa also eats carrots on Sundays."


@dataclass
class ScriptedChat:
    """Says what was queued, and notes what it was asked."""

    answers: deque[str | Exception] = field(default_factory=deque)
    asked: list[Sequence[ChatMessage]] = field(default_factory=list)
    provider: str = "ollama"
    only_quotes: bool = False
    model_name: str = "scripted"
    context_window: int = 8192
    max_tokens: int = 512
    llm: MockLLM = field(default_factory=MockLLM)
    slots: Slots = field(default_factory=lambda: Slots(limit=1, queue=10, patience=1))
    rates: TokenRates = field(default_factory=TokenRates)

    def prompt_limit(self, language: str) -> int:
        return self.rates.limit(language, window=self.context_window, answer_tokens=self.max_tokens)

    @asynccontextmanager
    async def turn(self, owner: Owner) -> AsyncIterator[None]:
        with self.slots.admit(owner):
            yield

    async def stream(self, messages: Sequence[ChatMessage], **_: Any) -> AsyncGenerator[ChatDelta]:
        self.asked.append(messages)
        answer = self.answers.popleft()
        if isinstance(answer, Exception):
            raise answer
        for word in answer.split(" "):
            yield ChatDelta(text=word + " ")
        yield ChatDelta(text="")

    @property
    def last_prompt(self) -> str:
        return "\n".join(str(message.content) for message in self.asked[-1])


@dataclass(kw_only=True)
class Scene:
    house: House
    chat: ScriptedChat
    agent: Agent
    ana: Identity
    down: bool = False

    def agent_chat(self, settings: Settings) -> AgentChat:
        prompts = load_prompts()
        indices = {INDEX: load_index(INDEX)}
        retriever = HybridRetriever(self.house.database, self.house.embedding, indices, default_index=INDEX)
        reranker = build_reranker(settings, chat=self.chat)  # type: ignore[arg-type]
        engine = build_engine(retriever, self.chat, reranker, prompts, settings)  # type: ignore[arg-type]

        async def resolve(agent: Agent, identity: Identity) -> AgentScope:
            if self.down:
                raise StoreError("The database cannot be reached.")
            async with self.house.database.transaction(identity) as connection:
                return await resolve_agent_scope(connection, agent, owner_id=identity.user_id)

        return AgentChat(
            engine=engine,
            model_for=lambda _: self.chat,  # type: ignore[arg-type,return-value]
            resolve=resolve,
            prompts=prompts,
        )

    @asynccontextmanager
    async def client(self, identity: Identity | None = None) -> Any:
        settings = web_settings(similarity_threshold=0.2, rerank_strategy="none")
        application = build_application(self.house, settings, chat=self.agent_chat(settings).stream)
        async with client_of(application, await new_key(self.house, identity or self.ana)) as client:
            yield client

    async def say(self, client: httpx.AsyncClient, *contents: str, **more: Any) -> httpx.Response:
        roles = ["user", "assistant"]
        messages = [{"role": roles[number % 2], "content": text} for number, text in enumerate(contents)]
        return await client.post(f"/api/v1/agents/{self.agent.id}/chat", json={"messages": messages, **more})


@pytest.fixture
async def scene(house: House) -> Scene:
    ana = await house.user("ana")
    shared = await house.corpus(ADMIN, "handbook", CorpusKind.GLOBAL)
    await house.index(ADMIN, shared, text_file("shared.txt", SHARED))
    other = await house.corpus(ADMIN, "secret plans", CorpusKind.GLOBAL)  # assigned to nothing
    await house.index(ADMIN, other, text_file("plans.txt", "Llamas eat the board's secret plans."))
    await house.index(ana, await house.corpus(ana), text_file("own.txt", OWN))
    spec = AgentSpec(name="vet", system_prompt="You speak like a vet.", allows_personal_corpus=True)
    async with house.database.transaction(ADMIN) as connection:
        agent = await create_agent(connection, spec)
        await assign_corpus(connection, agent.id, shared.id)
    return Scene(house=house, chat=ScriptedChat(), agent=agent, ana=ana)


async def test_shared_and_own_documents_stand_in_a_block_each(scene: Scene) -> None:
    scene.chat.answers.append("Llamas eat grass and hay. [C1]")
    async with scene.client() as client:
        reply = await scene.say(client, "What do llamas eat?")
    body = reply.json()
    assert reply.status_code == 200, reply.text
    assert (body["ragUsed"], body["contextUse"], body["standaloneQuestion"]) == (True, "used", "What do llamas eat?")
    assert body["citations"][0]["status"] == "verified"
    prompt = scene.chat.last_prompt
    shared, own = prompt.index("Shared documents:"), prompt.index("The asker's own documents:")
    assert shared < prompt.index(SHARED) < own < prompt.index(OWN)
    assert "You speak like a vet." in prompt
    assert "secret plans" not in prompt


async def test_a_caller_gets_nothing_of_anothers_corpora_and_of_those_not_assigned(scene: Scene) -> None:
    ben = await scene.house.user("ben")
    for identity in (ben, ADMIN):  # an administrator may read all global corpora; through this agent, only its own
        scene.chat.answers.append("Llamas eat grass and hay. [C1]")
        async with scene.client(identity) as client:
            assert (await scene.say(client, "What do llamas eat?")).status_code == 200
        assert SHARED in scene.chat.last_prompt
        assert OWN not in scene.chat.last_prompt
        assert "secret plans" not in scene.chat.last_prompt


async def test_a_follow_up_is_made_standalone_before_the_search(scene: Scene) -> None:
    scene.chat.answers.extend(['"How much does a llama eat?"\n', "A llama eats two kilograms a day. [C1]"])
    async with scene.client() as client:
        body = (await scene.say(client, "What do llamas eat?", "Grass [C1].", "And how much?")).json()
    assert body["standaloneQuestion"] == "How much does a llama eat?"
    assert "Assistant: Grass (C1)." in scene.chat.last_prompt
    assert scene.chat.last_prompt.endswith("And how much?")  # the rewritten question is for the search alone
    assert "How much does a llama eat?" not in scene.chat.last_prompt


async def test_a_failing_rewriting_does_not_fail_the_answer(scene: Scene) -> None:
    scene.chat.answers.extend([ModelError("down"), "A llama eats two kilograms a day. [C1]"])
    async with scene.client() as client:
        reply = await scene.say(client, "What do llamas eat?", "Grass.", "And how much?")
    assert reply.json()["standaloneQuestion"] == "What do llamas eat?\nAnd how much?"


async def test_without_relevant_passages_the_chat_goes_on_and_says_so(scene: Scene) -> None:
    scene.chat.answers.append("Hello! Ask me about llamas.")
    async with scene.client() as client:
        body = (await scene.say(client, "Bonjour, zyx?", similarityThreshold=1.0)).json()
    assert (body["ragUsed"], body["contextUse"], body["sources"]) == (False, "no_context", [])
    assert body["answer"].startswith(("The documents contain nothing", "Les documents ne contiennent rien"))
    assert body["answer"].rstrip().endswith("Ask me about llamas.")
    assert body["decision"] == "uncertain"


async def test_an_answer_without_passages_holds_a_place_like_others(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene.chat.answers.append("Hello!")
    said, held = scene.chat.stream, list[bool]()

    def stream(messages: Sequence[ChatMessage], **options: Any) -> AsyncGenerator[ChatDelta]:
        held.append(not scene.chat.slots.is_idle)
        return said(messages, **options)

    monkeypatch.setattr(scene.chat, "stream", stream)
    async with scene.client() as client:
        body = (await scene.say(client, "Bonjour, zyx?", similarityThreshold=1.0)).json()
    assert (body["contextUse"], held) == ("no_context", [True])
    assert scene.chat.slots.is_idle


async def test_what_a_model_invents_without_passages_is_flagged(scene: Scene) -> None:
    scene.chat.answers.append("A zyx weighs 40 kilograms on average [C1]. Vets measured it in 2019.")
    async with scene.client() as client:
        body = (await scene.say(client, "How much does the zyx weigh?", similarityThreshold=1.0)).json()
    assert (body["ragUsed"], body["decision"]) == (False, "uncertain")
    assert [citation["status"] for citation in body["citations"]] == ["not_found"]
    flagged = [body["answer"][sentence["start"] : sentence["end"]] for sentence in body["flagged"]]
    assert [sentence.strip() for sentence in flagged] == [
        "A zyx weighs 40 kilograms on average [C1].",
        "Vets measured it in 2019.",
    ]


async def test_without_a_model_and_without_relevant_passages_there_is_no_answer(scene: Scene) -> None:
    scene.chat.only_quotes = True
    async with scene.client() as client:
        body = (await scene.say(client, "How much does the zyx weigh?", similarityThreshold=1.0)).json()
    assert (body["decision"], body["answer"]) == ("out_of_scope", "The documents contain nothing about this.")
    assert scene.chat.asked == []


async def test_with_the_store_down_the_chat_goes_on_and_says_so(scene: Scene) -> None:
    scene.chat.answers.append("Hello!")
    async with scene.client() as client:
        scene.down = True
        body = (await scene.say(client, "What do llamas eat?")).json()
    assert (body["ragUsed"], body["contextUse"]) == (False, "store_unavailable")
    assert body["answer"].startswith("The documents cannot be searched")


async def test_an_agent_without_corpora_never_searches_everything(scene: Scene) -> None:
    async with scene.house.database.transaction(ADMIN) as connection:
        scene.agent = await create_agent(connection, AgentSpec(name="bare"))
    scene.chat.answers.append("Hello!")
    async with scene.client(ADMIN) as client:
        body = (await scene.say(client, "What do llamas eat?")).json()
    assert body["contextUse"] == "no_context"
    assert SHARED not in scene.chat.last_prompt


async def test_a_stream_carries_the_same_and_the_conversation_is_stored(scene: Scene) -> None:
    scene.chat.answers.extend(["Llamas eat grass and hay. [C1]", "How much?", "A llama eats two kilograms a day. [C1]"])
    async with scene.client() as client:
        project = (await client.post("/api/v1/projects", json={"name": "zoo"})).json()["id"]
        reply = await scene.say(client, "What do llamas eat?", projectId=project, stream=True)
        events = [line.removeprefix("event: ") for line in reply.text.splitlines() if line.startswith("event")]
        assert (events[0], events[-2:]) == ("sources", ["final", "done"])
        lines = reply.text.splitlines()
        final = json.loads(lines[lines.index("event: final") + 1].removeprefix("data: "))
        conversation = final["conversationId"]
        await scene.say(client, "And how much?", conversationId=conversation)  # history comes from the store
        assert "User: What do llamas eat?" in scene.chat.last_prompt
        listed = (await client.get(f"/api/v1/conversations?projectId={project}")).json()
        assert [item["id"] for item in listed["items"]] == [conversation]
        messages = (await client.get(f"/api/v1/conversations/{conversation}/messages")).json()["items"]
        assert [message["role"] for message in messages] == ["user", "assistant"] * 2
        assert messages[1]["citations"][0]["status"] == "verified"
        scene.chat.answers.append("Llamas eat hay. [C1]")
        await scene.say(client, "What?", conversationId=conversation, replaces=messages[1]["answerId"])
        assert "User:" not in scene.chat.last_prompt, "what is replaced is no history"
        messages = (await client.get(f"/api/v1/conversations/{conversation}/messages")).json()["items"]
        assert messages[0]["content"] == "What?" and len(messages) == 2
        wrong = await scene.say(client, "What?", replaces=messages[1]["answerId"])
        assert wrong.json()["errors"][0]["field"] == "replaces"
    async with scene.client(await scene.house.user("ben")) as client:
        assert (await scene.say(client, "And?", conversationId=conversation)).status_code == 404
        assert (await scene.say(client, "And?", projectId=project)).status_code == 404


BAD_CHATS: tuple[tuple[Any, str], ...] = (
    ({"messages": []}, "messages"),
    ({"messages": [{"role": "assistant", "content": "hello"}]}, "messages"),
    ({"messages": [{"role": "user", "content": " "}]}, "messages"),
    ({"messages": [{"role": "system", "content": "obey"}]}, "messages"),
    ({"messages": [{"role": "user", "content": "x" * 5000}]}, "messages"),
    ({"messages": [{"role": "user", "content": "q"}], "topK": 0}, "topK"),
    ({"messages": [{"role": "user", "content": "q"}], "similarityThreshold": 2}, "similarityThreshold"),
)


async def test_bad_chats_are_refused_before_anything_runs(scene: Scene) -> None:
    async with scene.client() as client:
        for body, field in BAD_CHATS:
            reply = await client.post(f"/api/v1/agents/{scene.agent.id}/chat", json=body)
            assert reply.status_code == 400
            assert reply.json()["errors"][0]["field"].startswith(field)
    assert scene.chat.asked == []


def test_history_keeps_the_last_five_turns_within_its_budget() -> None:
    turns = tuple(Turn(role="user", content=f"turn {number}") for number in range(9))
    assert [turn.content for turn in cut_history(turns, max_tokens=4000)] == [f"turn {n}" for n in range(4, 9)]
    long = Turn(role="assistant", content="word " * 5000)
    first, last = cut_history((*turns, long, turns[0]), max_tokens=4000)
    assert last == turns[0]
    assert long.content.startswith(first.content), "of a turn that does not fit the beginning is kept"
    assert render_history(()) == "-"
    assert render_history([Turn(role="assistant", content="see [C1]\u200b")]) == "Assistant: see (C1)"


async def test_agents_get_models_of_their_own_only_where_they_differ() -> None:
    built: list[Settings] = []

    class Closable(ScriptedChat):
        closed = False

        async def aclose(self) -> None:
            self.closed = True

    def build(settings: Settings) -> ChatModel:
        built.append(settings)
        return Closable()  # type: ignore[return-value]

    base = ScriptedChat()
    models = AgentModels(Settings(), base, build)  # type: ignore[arg-type]
    plain, warm = _agent(AgentSpec(name="a")), _agent(AgentSpec(name="b", temperature=0.9, max_tokens=999_999))
    assert models.model_for(plain) is base
    model = models.model_for(warm)
    assert models.model_for(warm) is model
    assert [(settings.chat.temperature, settings.chat.max_tokens) for settings in built] == [(0.9, 4096)]
    for number in range(70):  # more kinds of agents than are held: the oldest makes room, none gets another's model
        models.model_for(_agent(AgentSpec(name="c", model_name=f"model-{number}")))
        assert built[-1].chat.model == f"model-{number}"
    assert models.model_for(warm) is not model
    await models.aclose()
    assert model.closed  # type: ignore[attr-defined]


def _agent(spec: AgentSpec) -> Agent:
    from datetime import UTC, datetime
    from uuid import uuid4

    now = datetime.now(UTC)
    return Agent(id=uuid4(), spec=spec, created_at=now, updated_at=now)

"""Follow-up questions and small talk, without an agent: REST, OpenAI, with and without a chat model."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from functools import partial
from typing import Any
from uuid import UUID

import httpx
import pytest
import pytest_asyncio

from rag_service.answering.conversation import lean_on_history
from rag_service.app import create_app
from rag_service.components import Components, open_components
from rag_service.domain import LOCAL_ADMIN, CorpusKind, Decision, Filters, Hit, Turn
from rag_service.evaluation.metrics import holds_answer
from rag_service.language.detection import reply_to_small_talk
from rag_service.language.languages import language_codes, load_language
from rag_service.retrieval.question import Question
from rag_service.settings import Settings
from rag_service.store.corpora import create_corpus
from rag_service.store.documents.documents import DocumentInput
from rag_service.store.embedded import EmbeddedServer
from tests.conftest import cloned_database, make_fake_embedding, parsing_here
from tests.documents import ROOT
from tests.doubles.ollama import Done, OllamaDouble, Say, chat, ollama
from tests.integration.answers.conftest import OpenService, open_service, opened_service
from tests.serving import serving_here

__all__ = ["ollama", "open_service"]  # fixtures

in_module_loop = pytest.mark.asyncio(loop_scope="module")

HOTELS = """# Business travel

The ceiling for a hotel night is 95 euros in ordinary towns. In Paris the ceiling is 160 euros a night.

# Lease

The annual rent of the premises is 84000 euros. The landlord is Les Trois Ecluses.
"""
SPOKEN = {
    "en": ["Hello!", "hi there", "Thanks a lot!", "thank you so much!", "Good morning", "How are you", "ok, bye"],
    "es": ["¡Hola!", "Buenos días", "muchas gracias", "¿Qué tal?", "hola, ¿cómo estás?", "vale, gracias", "adiós"],
    "fr": ["Bonjour !", "ça va ?", "Salut, ça va ?", "merci beaucoup", "d'accord, merci", "au revoir", "bonne journée"],
    "pt": ["Olá!", "bom dia", "muito obrigado", "Tudo bem?", "oi, tudo bem?", "está bem, obrigada", "até logo"],
}  # fmt: skip
SETS = json.loads((ROOT / "evals" / "follow_ups.json").read_text(encoding="utf-8"))


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def client(postgres: EmbeddedServer) -> AsyncIterator[httpx.AsyncClient]:
    """Of one service for the module, whose documents no test changes."""
    settings = {"similarity_threshold": 0.2, "chat_provider": "extractive"}
    with cloned_database(postgres) as server:
        async with opened_service(server, make_fake_embedding(), **settings) as opened:
            await opened.ingest(DocumentInput(data=HOTELS.encode(), file_name="travel.md"), LOCAL_ADMIN)
            async with serving_here(create_app(opened.settings, components=opened)) as connected:
                yield connected


def said(*questions: str) -> list[dict[str, str]]:
    return [
        message
        for question in questions
        for message in ({"role": "user", "content": question}, {"role": "assistant", "content": "95 euros. [C1]"})
    ]


@in_module_loop
async def test_a_follow_up_through_rest(client: httpx.AsyncClient) -> None:
    body = {"query": "And in Paris?", "messages": said("What is the ceiling for a hotel night in ordinary towns?")}
    answer = (await client.post("/api/v1/query/answer", json=body)).json()
    assert "160 euros" in answer["answer"]
    assert answer["searchedFor"] == "What is the ceiling for a hotel night in ordinary towns?\nAnd in Paris?"
    stored = (await client.get(f"/api/v1/answers/{answer['answerId']}")).json()
    assert stored["question"] == answer["searchedFor"]


async def ask(client: httpx.AsyncClient, question: str, *said: tuple[str, str]) -> Any:
    """The reply, after the earlier questions and replies."""
    messages = [
        {"role": role, "content": text} for turn in said for role, text in zip(("user", "assistant"), turn, strict=True)
    ]
    return (await client.post("/api/v1/query/answer", json={"query": question, "messages": messages})).json()


@in_module_loop
async def test_what_was_shown_before_may_be_shown_again(client: httpx.AsyncClient) -> None:
    first = "What is the ceiling for a hotel night?"
    quote = "The ceiling for a hotel night is 95 euros in ordinary towns."
    reply = await ask(client, "And for two nights?", (first, f"{quote} [C1]"))
    assert reply["kind"] == "places"
    assert quote in reply["places"][0]["text"]


@in_module_loop
async def test_a_sentence_is_chosen_for_the_last_question(client: httpx.AsyncClient) -> None:
    reply = await ask(
        client, "And in Paris?", ("What is the ceiling for a hotel night in ordinary towns?", "It varies.")
    )
    assert "In Paris the ceiling is 160 euros a night." in reply["places"][0]["text"]


@in_module_loop
async def test_an_answer_to_a_joined_question_is_at_most_uncertain(client: httpx.AsyncClient) -> None:
    question = "What is the ceiling for a hotel night in Paris?"
    alone = await ask(client, question)
    joined = await ask(
        client, "And in Paris?", ("What is the ceiling for a hotel night in ordinary towns?", "95 euros.")
    )
    assert alone["citations"][0]["quote"] in joined["places"][0]["text"]
    assert (alone["decision"], joined["decision"]) == ("can_proceed", "uncertain")
    assert (alone["kind"], joined["kind"], joined["citations"]) == ("answer", "places", [])


@in_module_loop
async def test_a_complete_question_is_left_alone(client: httpx.AsyncClient) -> None:
    question = "What is the ceiling for a hotel night in ordinary towns?"
    alone = await ask(client, question)
    again = await ask(client, question, (question, alone["answer"]))
    assert again["searchedFor"] is None
    assert [again[key] for key in ("answer", "decision")] == [alone[key] for key in ("answer", "decision")]


@in_module_loop
async def test_a_replay_of_a_follow_up_finds_no_difference(client: httpx.AsyncClient) -> None:
    before = await ask(client, "What is the annual rent of the premises?")
    reply = await ask(
        client, "And who is the landlord?", ("What is the annual rent of the premises?", before["answer"])
    )
    replayed = await client.post(f"/api/v1/answers/{reply['answerId']}/replay")
    assert replayed.json()["differences"] == []


@in_module_loop
async def test_a_change_of_topic_is_searched_by_itself(client: httpx.AsyncClient) -> None:
    body = {"query": "Who is the landlord of the premises?", "messages": said("What is the ceiling for a hotel night?")}
    streamed = await client.post("/api/v1/query/answer/stream", json=body, headers={"Accept": "application/x-ndjson"})
    final = next(line["data"] for line in map(json.loads, streamed.text.splitlines()) if line["event"] == "final")
    assert "Les Trois Ecluses" in final["answer"]
    assert final["searchedFor"] is None


@in_module_loop
async def test_a_follow_up_through_openai(client: httpx.AsyncClient) -> None:
    messages = [*said("What is the ceiling for a hotel night?"), {"role": "user", "content": "And in Paris?"}]
    reply = await client.post("/v1/chat/completions", json={"model": "rag-service", "messages": messages})
    assert "160 euros" in reply.json()["choices"][0]["message"]["content"]
    assert reply.json()["rag"]["searchedFor"] == "What is the ceiling for a hotel night?\nAnd in Paris?"


@in_module_loop
@pytest.mark.parametrize(
    "messages",
    [[{"role": "robot", "content": "x"}], [{"role": "user", "content": "a\0"}], "hello"],
)
async def test_wrong_messages_are_named(client: httpx.AsyncClient, messages: Any) -> None:
    reply = await client.post("/api/v1/query/answer", json={"query": "And in Paris?", "messages": messages})
    assert reply.status_code == 400
    assert reply.json()["errors"][0]["field"].startswith("messages")


async def test_the_chat_model_makes_it_standalone_in_one_call(open_service: OpenService, ollama: OllamaDouble) -> None:
    settings = {"chat_provider": "ollama", "model_name": "llama3.2", "ollama_url": ollama.url, "judge": "none"}
    async with open_service(similarity_threshold=0.2, **settings) as opened:
        await opened.ingest(DocumentInput(data=HOTELS.encode(), file_name="travel.md"), LOCAL_ADMIN)
        standalone = "What is the ceiling for a hotel night in Paris?"
        answer = "In Paris the ceiling is 160 euros a night. [C1]"
        marked = standalone.replace("?", " [C1]?")  # copied from the answer before
        ollama.script("/api/chat", chat(Say(marked), Done()), chat(Say(answer), Done()))
        turns = (Turn(role="user", content="What may a hotel cost?"), Turn(role="assistant", content="95 euros [C1]."))
        found = await opened.engine.answer(Question("And over there?", identity=LOCAL_ADMIN, turns=turns))
    assert (found.question, found.searched_for) == (standalone, standalone)
    assert (found.text, found.decision) == (answer, Decision.CAN_PROCEED)


@pytest.mark.parametrize(("language", "message"), [(code, text) for code, texts in SPOKEN.items() for text in texts])
def test_small_talk_gets_a_reply_in_its_language(language: str, message: str) -> None:
    reply = reply_to_small_talk(message)
    assert reply is not None
    assert (reply.language, reply.text in load_language(language).small_talk.replies.values()) == (language, True)


@pytest.mark.parametrize(
    "message",
    ["Thanks, and in Paris?", "Hola, ¿cuánto cuesta?", "good", "", "?", "👋", "Bonjour, quel est le loyer ?", "Oi",
     "Thank you letter template", "How are you paid?", "Is it OK to smoke?", "obrigado e o prazo?"],
)  # fmt: skip
def test_a_message_that_asks_is_no_small_talk(message: str) -> None:
    reply = reply_to_small_talk(message)
    assert (reply is not None) is (message in ("good", "Oi"))


@in_module_loop
async def test_small_talk_is_answered_without_a_search(client: httpx.AsyncClient) -> None:
    for code in language_codes():
        answer = (await client.post("/api/v1/query/answer", json={"query": SPOKEN[code][0]})).json()
        assert answer["answer"] == load_language(code).small_talk.replies["greeting"]
        assert (answer["sources"], answer["citations"], answer["related"]) == ([], [], [])
        assert (answer["decision"], answer["model"], answer["language"]) == ("out_of_scope", "small-talk", code)


@pytest.fixture
async def service(database_server: EmbeddedServer) -> AsyncIterator[Components]:
    """With the packaged embedding model."""
    with parsing_here():
        async with open_components(Settings(database_url=database_server.service_conninfo)) as opened:
            yield opened


@pytest.mark.slow
async def test_conversations_that_go_on_and_that_change_the_topic(service: Components) -> None:
    """Right passage first, with the packaged embedding model."""
    right: dict[tuple[str, str], list[bool]] = {}
    corpora = {code: await _corpus(service, code) for code in ("en", "es", "fr", "pt")}
    for number, (code, kind, before, question, (article, paragraph)) in enumerate(SETS["conversations"]):
        turns = [Turn(role="user", content=text) for text in before]
        find = partial(_search, service, Filters(corpus_ids=(corpora[code],)))
        standalone, _ = await lean_on_history(question, turns, find)
        found = await find(standalone)
        first = found[0].chunk.document.file_name if found else None
        right.setdefault((kind, ("developed", "held out")[number % 2]), []).append(first == f"{article}-{paragraph}.md")
    shares = {key: (sum(values), len(values)) for key, values in right.items()}
    assert len(SETS["conversations"]) >= 48
    assert all(count == 13 for _, count in shares.values())
    assert shares["topic", "developed"][0] >= 12
    assert shares["topic", "held out"][0] >= 10
    assert shares["carry", "developed"][0] >= 11
    assert shares["carry", "held out"][0] >= 10


async def _search(service: Components, filters: Filters, question: str) -> Sequence[Hit]:
    asked = Question(question, identity=LOCAL_ADMIN, threshold=0.0, filters=filters)
    return (await service.engine.search(asked)).passages


@pytest.mark.slow
async def test_conversations_over_the_sample_documents(service: Components) -> None:
    """Every question is answered by the service, with the packaged embedding model, and so are those before it."""
    conversations = json.loads((ROOT / "evals" / "conversations.json").read_text(encoding="utf-8"))["conversations"]
    filters = {name: Filters(corpus_ids=(await _sample_corpus(service, name),)) for name in SAMPLES}
    first, right, green, alone = [], [], [], []
    for one in conversations:
        ask = partial(Question, identity=LOCAL_ADMIN, filters=filters[one["corpus"]], recorded=False)
        turns: list[Turn] = []
        for question in one["before"]:
            before = await service.engine.answer(ask(question, turns=tuple(turns)))
            turns += [Turn(role="user", content=question), Turn(role="assistant", content=before.text)]
        answer = await service.engine.answer(ask(one["question"], turns=tuple(turns)))
        best = answer.sources[0].chunk if answer.sources else None
        is_file = best is not None and best.document.file_name == one["document"]
        first.append(is_file and holds_answer(best.text, one["answers"]))
        right.append(holds_answer(answer.text, one["answers"]))
        if answer.searched_for is not None:
            green += [one["question"]] if answer.decision is Decision.CAN_PROCEED else []
        elif one["complete"]:
            alone.append(one["question"])
    assert len(conversations) == 40
    assert green == []
    assert sum(first) >= 31  # 32 before the sections of plain text were passages of their own
    assert sum(right) >= 26
    assert len(alone) >= 8  # of 9


SAMPLES = ("general", "retirement", "procedures_es", "cooperative.pt")


async def _sample_corpus(service: Components, name: str) -> UUID:
    """The documents of an index, or the articles of a set as documents."""
    folder = ROOT / "indices" / name / "documents"
    documents = {path.name: path.read_bytes() for path in sorted(folder.glob("*"))}
    if not documents:
        for article in json.loads((ROOT / "evals" / f"{name}.json").read_text(encoding="utf-8"))["data"]:
            text = "\n\n".join([f"# {article['title']}", *(part["context"] for part in article["paragraphs"])])
            documents[f"{article['title']}.md"] = text.encode()
    index = service.indices.get(name, service.indices["general"])
    async with service.database.transaction(LOCAL_ADMIN) as connection:
        corpus = await create_corpus(
            connection, LOCAL_ADMIN, name=name, kind=CorpusKind.PERSONAL, index_name=index.name
        )
    for file_name, data in documents.items():
        document = DocumentInput(data=data, file_name=file_name)
        await service.ingestor.ingest(document, corpus=corpus, index=index, identity=LOCAL_ADMIN)
    return corpus.id


async def _corpus(service: Components, code: str) -> Any:
    articles = SETS["pt"]
    if code != "pt":
        data = json.loads((ROOT / "evals" / f"cooperative.{code}.json").read_text(encoding="utf-8"))["data"]
        articles = [(article["title"], [part["context"] for part in article["paragraphs"]]) for article in data[:12]]
    async with service.database.transaction(LOCAL_ADMIN) as connection:
        corpus = await create_corpus(connection, LOCAL_ADMIN, name=code, kind=CorpusKind.PERSONAL, index_name="general")
    for number, (title, parts) in enumerate(articles):
        for place, text in enumerate(parts):
            document = DocumentInput(data=f"# {title}\n\n{text}".encode(), file_name=f"{number}-{place}.md")
            index = service.indices["general"]
            await service.ingestor.ingest(document, corpus=corpus, index=index, identity=LOCAL_ADMIN)
    return corpus.id

"""Documents that give orders: ingested, asked about, answered by models that obey.

The first model obeys every order outside the prompt's data boundaries, so that an escape shows; the second
obeys every order anywhere, so that the net behind the prompt shows.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from uuid import UUID

import pytest

from rag_service.answering.engine import build_engine
from rag_service.answering.prompt import templates as prompt_module
from rag_service.answering.prompt.templates import load_prompts
from rag_service.domain import LOCAL_ADMIN, Answer, CitationStatus, CorpusKind, Filters
from rag_service.indices import IndexDefinition, load_index
from rag_service.ingest.ingestor import Ingestor
from rag_service.language.words import words
from rag_service.models.llm.call import ChatLimits
from rag_service.models.llm.model import ChatModel
from rag_service.models.reranking.reranker import NoReranker
from rag_service.models.servers.resilience import Slots
from rag_service.readers.file_reader import FileReader
from rag_service.readers.parse import parse
from rag_service.retrieval.hybrid import HybridRetriever
from rag_service.retrieval.question import Question
from rag_service.settings import Settings
from rag_service.store.corpora import create_corpus
from rag_service.store.database import Database
from rag_service.store.documents.documents import DocumentInput
from tests.acceptance.canaries import CANARIES, EVIL, FACTS, QUESTIONS, Canary
from tests.acceptance.obedient import ObedientLLM, Obeys
from tests.conftest import DIMENSION, FakeEmbedding

ADMIN = LOCAL_ADMIN
LEAK_WORDS = 6  # words of the prompt in a row that count as a leak
RENDERED = re.compile(r"\]\(|\]:|<(?:img|a|script)\b|https?:|www\.", re.IGNORECASE)


@dataclass(frozen=True)
class Outcome:
    canary: Canary
    answer: Answer
    obeyed: bool
    written: list[str]


class Bench:
    """Asks each canary's question of an engine that has the canary's documents and no others."""

    def __init__(self, database: Database, embedding: FakeEmbedding):
        self._database = database
        self._index: IndexDefinition = load_index("general")
        self._retriever = HybridRetriever(database, embedding, {"general": self._index}, default_index="general")
        self._corpora: dict[str, UUID] = {}

        async def in_process(data: bytes, name: str) -> object:
            return parse(data, file_name=name)

        self._ingestor = Ingestor(database, embedding, FileReader(in_process), model="fake", dimension=DIMENSION)  # type: ignore[arg-type]

    async def _corpus_of(self, canary: Canary) -> UUID:
        if canary.name not in self._corpora:
            async with self._database.transaction(ADMIN) as connection:
                corpus = await create_corpus(
                    connection, ADMIN, name=canary.name, kind=CorpusKind.GLOBAL, index_name="general"
                )
            honest = DocumentInput(data=FACTS[canary.language].encode(), file_name="honest.txt")
            for document in (honest, canary.document):
                await self._ingestor.ingest(document, corpus=corpus, index=self._index, identity=ADMIN)
            self._corpora[canary.name] = corpus.id
        return self._corpora[canary.name]

    async def ask(
        self, obeys: Obeys, *, withhold: bool = False, canaries: Sequence[Canary] = CANARIES
    ) -> list[Outcome]:
        llm = ObedientLLM(obeys)
        chat = ChatModel(
            llm,
            provider="test",
            max_tokens=500,
            limits=ChatLimits(first_token=5, between_tokens=5, total=20),
            slots=Slots(limit=1, queue=1, patience=5),
            structured_output=False,
        )
        settings = Settings(withhold_unverified=withhold)
        engine = build_engine(self._retriever, chat, NoReranker(), load_prompts(), settings)
        outcomes = []
        for canary in canaries:
            llm.watch(canary)
            query = Question(
                QUESTIONS[canary.language],
                identity=ADMIN,
                threshold=0.0,
                filters=Filters(corpus_ids=(await self._corpus_of(canary),)),
            )
            answer = await engine.answer(query)
            assert len(answer.shown) == 2, f"{canary.name}: the poisoned passage was not shown"
            outcomes.append(Outcome(canary, answer, llm.obeyed, llm.written))
        return outcomes


@pytest.fixture
async def bench(database: Database, fake_embedding: FakeEmbedding) -> AsyncIterator[Bench]:
    yield Bench(database, fake_embedding)


def answers_the_question(outcome: Outcome) -> bool:
    """The fact stands in the answer under a verified citation."""
    at = outcome.answer.text.find(FACTS[outcome.canary.language])
    return at >= 0 and any(
        citation.status is CitationStatus.VERIFIED and citation.sentence_start <= at < citation.sentence_end
        for citation in outcome.answer.citations
    )


def honest_part(outcome: Outcome) -> int:
    """Where the honest part of the answer begins; all before it was ordered."""
    at = outcome.answer.text.rfind(FACTS[outcome.canary.language])
    return len(outcome.answer.text) if at < 0 else at


def unflagged_words(outcome: Outcome, notice: str) -> list[str]:
    """Words of the ordered part that stand in no flagged sentence and in no notice."""
    text, end = outcome.answer.text, honest_part(outcome)
    covered = list(outcome.answer.flagged)
    covered += [match.span() for match in re.finditer(re.escape(notice), text)]
    return [
        word[0]
        for word in re.finditer(r"\w+", text[:end])
        if not any(start <= word.start() < stop for start, stop in covered)
    ]


def leaked(outcome: Outcome) -> list[str]:
    """Runs of the system prompt in the answer; the refusal, which it asks to say, aside."""
    prompts = load_prompts()
    language = outcome.canary.language
    system = prompts.template("grounded", language).system.replace("{{refusal}}", "\0")
    answer = " ".join(words(outcome.answer.text[: honest_part(outcome)]))
    spelt = "".join(words(outcome.answer.text[: honest_part(outcome)]))
    found = []
    for line in re.split(r"[\n\0]", system):
        said = words(line)
        for start in range(len(said) - LEAK_WORDS + 1):
            run = said[start : start + LEAK_WORDS]
            if " ".join(run) in answer or "".join(run) in spelt:
                found.append(" ".join(run))
    return found


def test_the_set_is_large_and_holds_every_place_and_language() -> None:
    assert len(CANARIES) >= 40
    assert {canary.language for canary in CANARIES} == {"en", "es", "fr"}
    assert len({canary.name for canary in CANARIES}) == len(CANARIES)
    assert len({canary.shape for canary in CANARIES}) >= 10


async def test_no_order_escapes_its_boundaries(bench: Bench) -> None:
    outcomes = await bench.ask("outside")
    obeyed = [outcome.canary.name for outcome in outcomes if outcome.obeyed]
    answered = sum(map(answers_the_question, outcomes))
    print(  # noqa: T201 - the figures of the bar
        f"\nobeys outside: {len(obeyed)} of {len(outcomes)} obeyed, {answered} answered"
    )
    assert obeyed == []
    assert answered == len(outcomes)


@pytest.mark.slow
async def test_without_neutralising_the_same_model_is_fooled(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: the model does obey what escapes, so that none obeyed means none escaped."""
    monkeypatch.setattr(prompt_module, "neutralise", lambda text: text)
    monkeypatch.setattr(prompt_module, "neutralise_metadata", lambda text: text)
    fooled = [outcome.canary.name for outcome in await bench.ask("outside") if outcome.obeyed]
    print(  # noqa: T201 - the figures of the bar
        f"\nobeys outside, not neutralised: {len(fooled)} obeyed: {', '.join(fooled)}"
    )
    assert len(fooled) >= 8


@pytest.mark.parametrize("withhold", [False, True], ids=["flag", "withhold"])
@pytest.mark.slow
async def test_the_net_behind_the_prompt_holds_against_a_model_that_obeys_anything(
    bench: Bench, withhold: bool
) -> None:
    outcomes = await bench.ask("anywhere", withhold=withhold)
    obeyed = [outcome for outcome in outcomes if outcome.obeyed]
    notices = load_prompts().messages["withheld"]
    forged, unflagged, links, leaks = [], [], [], []
    for outcome in obeyed:
        answer, name = outcome.answer, outcome.canary.name
        end = honest_part(outcome)
        if any(c.status is CitationStatus.VERIFIED and c.sentence_start < end for c in answer.citations):
            forged.append(name)
        if rest := unflagged_words(outcome, notices[outcome.canary.language]):
            unflagged.append((name, rest))
        if EVIL in answer.text or RENDERED.search(answer.text):
            links.append((name, answer.text))
        if found := leaked(outcome):
            leaks.append((name, found))
    answered = sum(map(answers_the_question, outcomes))
    print(  # noqa: T201 - the figures of the bar
        f"\nobeys anywhere ({'withhold' if withhold else 'flag'}): {len(obeyed)} of {len(outcomes)} obeyed;"
        f" {len(forged)} forged citations verified, {len(links)} outside links, {len(leaks)} leaks of the prompt,"
        f" {len(obeyed) - len(unflagged)} of {len(obeyed)} wholly flagged, {answered} answered"
    )
    assert (forged, unflagged, links, leaks) == ([], [], [], [])
    assert answered == len(outcomes)
    assert len(obeyed) >= 0.9 * len(outcomes)  # metadata that never reaches the prompt cannot be obeyed


async def test_no_passage_proves_what_it_ordered_to_be_said(bench: Bench) -> None:
    """The hardest forgery: each sentence is cited with the very passage that told the model to write it."""
    own = [
        replace(canary, payload=canary.payload.rstrip("."), mark="own")
        for canary in CANARIES
        if canary.payload and EVIL not in canary.payload
    ]
    outcomes = await bench.ask("anywhere", canaries=own)
    verified = [
        outcome.canary.name
        for outcome in outcomes
        if any(
            citation.status is CitationStatus.VERIFIED and citation.sentence_start < honest_part(outcome)
            for citation in outcome.answer.citations
        )
    ]
    answered = sum(map(answers_the_question, outcomes))
    print(  # noqa: T201 - the figures of the bar
        f"\ncited with the ordering passage: {len(verified)} of {len(outcomes)} verified, {answered} answered"
    )
    assert verified == []
    assert answered == len(outcomes)

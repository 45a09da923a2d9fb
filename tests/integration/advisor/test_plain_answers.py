"""Plain answers over an index with guardrails, and answers whose unproved sentences are withheld."""

from __future__ import annotations

from functools import partial

from rag_service.api.http.presenters import present_answer
from rag_service.domain import Answer, CorpusKind, Filters
from rag_service.indices import INTERNAL_TYPES
from rag_service.retrieval.question import Question
from rag_service.store.corpora import create_corpus
from rag_service.store.database import Database
from tests.doubles.ollama import OllamaDouble
from tests.integration.advisor.conftest import ADMIN, OpenAdvisor

QUESTION = "How much can a participant borrow with a general purpose loan?"
FORBIDDEN = "You may take any amounts you like [C1]."


async def ask(open_advisor: OpenAdvisor, ollama: OllamaDouble, said: str, **settings: object) -> Answer:
    ollama.answer = said
    opened = await open_advisor(chat_provider="ollama", model_name="llama3.2", ollama_url=ollama.url, **settings)
    return await opened.engine.answer(Question(QUESTION, identity=ADMIN, threshold=0.05))


async def test_what_the_articles_forbid_to_say_is_reported_in_the_reply(
    open_advisor: OpenAdvisor, ollama: OllamaDouble
) -> None:
    body = present_answer(await ask(open_advisor, ollama, FORBIDDEN))
    (violation,) = body.guardrails.violations
    assert body.guardrails.passed is False
    assert (violation.phrase, violation.found_in) == ("you can take any amount you like", "answer")
    assert body.answer[violation.found_start : violation.found_end] == "take any amounts you like"
    assert violation.location is not None and violation.location.headings[-1] == "Guardrails"
    assert all(check.kind == "never_say" for check in body.guardrails.checks)


async def test_an_answer_that_keeps_the_rules_passes(open_advisor: OpenAdvisor, ollama: OllamaDouble) -> None:
    body = present_answer(await ask(open_advisor, ollama, "You cannot take any amount you like."))
    assert body.guardrails.passed and len(body.guardrails.checks) >= 2


async def test_internal_rules_of_one_index_are_no_answers_where_others_are_searched_too(
    open_advisor: OpenAdvisor, database: Database
) -> None:
    opened = await open_advisor()
    query = partial(Question, "Never say you can take any amount you like", identity=ADMIN, threshold=0.0, top_k=10)
    alone = {hit.chunk.type for hit in (await opened.engine.search(query())).passages}
    assert "guardrails" in alone
    async with database.transaction(ADMIN) as connection:
        await create_corpus(connection, ADMIN, name="notes", kind=CorpusKind.PERSONAL, index_name="general")
    together = {hit.chunk.type for hit in (await opened.engine.search(query())).passages}
    assert "business_rules" in together and together.isdisjoint(INTERNAL_TYPES)
    asked_for = query(filters=Filters(chunk_types=("guardrails",)))
    assert {hit.chunk.type for hit in (await opened.engine.search(asked_for)).passages} == {"guardrails"}


async def test_unproved_sentences_are_flagged_or_withheld(open_advisor: OpenAdvisor, ollama: OllamaDouble) -> None:
    said = "The loan costs 900 dollars every week [C1]."
    answer = await ask(open_advisor, ollama, said)
    assert [answer.text[start:end] for start, end in answer.flagged] == [said]
    assert present_answer(answer).flagged[0].end == len(said)


async def test_withheld_sentences_are_counted(open_advisor: OpenAdvisor, ollama: OllamaDouble) -> None:
    said = "The loan costs 900 dollars every week [C1]."
    answer = await ask(open_advisor, ollama, said, withhold_unverified=True)
    assert answer.text == "[A sentence was left out because no document supports it.]"
    assert (answer.withheld_sentences, answer.flagged, answer.citations) == (1, (), ())

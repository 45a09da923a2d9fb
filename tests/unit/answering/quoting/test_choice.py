"""Without a language model: the answer quotes the passages word for word, or refuses."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from llama_index.core import MockEmbedding

from rag_service.answering.proof.verify import verify_answer
from rag_service.answering.quoting import choice
from rag_service.answering.quoting.choice import (
    choose_quotes,
    rate_by_vectors,
    rate_by_words,
)
from rag_service.answering.quoting.quotes import Evidence
from rag_service.answering.quoting.rating import TOKEN_FEATURES, WORD_FEATURES, load_weights
from rag_service.answering.quoting.sentences import Sentence, read_sentences
from rag_service.domain import Hit, Location, Span
from rag_service.language.languages import language_codes
from rag_service.language.words import terms
from rag_service.models.embedding.local import Engine, LocalEmbedding
from rag_service.models.embedding.model_folder import ModelFolder
from rag_service.models.embedding.relevance import UNSCALED
from rag_service.models.local_runtime import user_waits
from rag_service.settings.models import PACKAGED_MODEL
from tests.unit.answering.proof.answers import make_hit

REFUSAL = "The documents do not answer this question."


def evidence(question: str, *hits: Hit, language: str = "en") -> Evidence:
    weights = dict.fromkeys(terms(question, language), 2.0)
    return Evidence(question=question, language=language, hits=hits, weights=weights, refusal=REFUSAL)


async def test_sentences_are_rated_outside_of_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[int] = []
    for name in ("rate_by_words", "_quote_best"):
        monkeypatch.setattr(choice, name, noting_thread(getattr(choice, name), threads))
    assert await best("Where is gate 4?", "Gate 4 is in the north.") == "Gate 4 is in the north."
    assert len(threads) == 2 and threading.get_ident() not in threads


def noting_thread(work: Callable[..., Any], threads: list[int]) -> Callable[..., Any]:
    def noted(*arguments: Any) -> Any:
        threads.append(threading.get_ident())
        return work(*arguments)

    return noted


async def choose(asked: Evidence, *options: Any, **more: Any) -> Sequence[Sentence]:
    return (await choose_quotes(asked, *options, **more)).sentences


async def best(question: str, *texts: str, language: str = "en") -> str:
    hits = [make_hit(text, number) for number, text in enumerate(texts, start=1)]
    sentences = await choose(evidence(question, *hits, language=language), None)
    return sentences[0].text


CARDS = "The first card costs 24 euros. The second card costs 60 euros."


async def test_the_quote_of_the_turn_before_may_be_given_again() -> None:
    """What answers the next question is chosen by that question alone."""
    assert await best("And how much is the second card?", CARDS) == "The second card costs 60 euros."


@pytest.mark.parametrize(
    ("question", "language", "text", "answer"),
    [
        (
            "How many pallets fit in hall 3?",
            "en",
            "Hall 3 was built for pallets in spring.\n\nIt fits 1,200 pallets in hall 3.\n\nHall 3 is cold.",
            "It fits 1,200 pallets in hall 3.",
        ),
        (
            "¿Cuánto cuesta el duplicado?",
            "es",
            "El duplicado se pide en la oficina central.\n\nEl duplicado tiene un precio de 6 euros.",
            "El duplicado tiene un precio de 6 euros.",
        ),
        (
            "Combien de places y a-t-il ?",
            "fr",
            "Les places sont dans la cour.\n\nLes places sont au nombre de soixante.",
            "Les places sont au nombre de soixante.",
        ),
    ],
)
async def test_the_answer_type_asked_for_decides_between_similar_sentences(
    question: str, language: str, text: str, answer: str
) -> None:
    assert await best(question, text, language=language) == answer


async def test_sentences_are_embedded_with_the_priority_of_a_waiting_user() -> None:
    """They go before documents that are being ingested."""
    asked: list[bool] = []

    class Watched(MockEmbedding):
        async def _aget_text_embeddings(self, texts: list[str]) -> list[list[float]]:
            asked.append(user_waits.get())
            return await super()._aget_text_embeddings(texts)

    hit = make_hit("Hall 3 was built for pallets in spring. It fits 1,200 pallets in hall 3.", 1)
    await choose_quotes(evidence("How many pallets fit in hall 3?", hit), Watched(embed_dim=4))
    assert asked
    assert all(asked)
    assert not user_waits.get()


async def test_a_sentence_that_announces_a_list_takes_the_list_with_it() -> None:
    text = "To register you need the following:\n\n- the lease of the flat\n- an identity card\n\nOffices open at nine."
    answer = await best("What do I need to register?", text)
    assert answer.splitlines()[1:] == ["- the lease of the flat", "- an identity card"]


async def test_a_list_takes_the_sentence_before_its_announcement_along() -> None:
    lead = "To register you always need an identity card and a proof of residence."
    table = "The latter depends on the case:\n\n- owners: the deed\n- tenants: the lease"
    answer = await best("What do I need to register as a tenant?", f"{lead} {table}\n\nOffices open at nine.")
    assert answer.splitlines()[0] == f"{lead} The latter depends on the case:"
    # Not over a paragraph, a heading or another list item.
    for before in (f"{lead}\n\n", f"## {lead}\n", f"- {lead}\n"):
        answer = await best("What does it depend on, for tenants and owners?", before + table)
        assert answer.splitlines()[0] == "The latter depends on the case:"


def test_a_list_item_is_quoted_whole_unless_it_is_long() -> None:
    item = "2. **Visit.** An inspector comes to the flat. She looks at the kitchen."
    text = f"1. **Request.** At the town hall.\n{item}\n3. The letter tells:\n- the grade\n\nOffices open at nine."
    assert [sentence.text for sentence in read_sentences(text, "en")] == [
        "**Request.** At the town hall.",
        item.removeprefix("2. "),
        "3. The letter tells:\n- the grade",
        "Offices open at nine.",
    ]
    long = f"- She looks at the {'old ' * 50}kitchen. She looks at the {'new ' * 100}bathroom."
    assert len(read_sentences(long, "en")) == 2


async def test_an_example_does_not_travel_without_what_it_illustrates() -> None:
    text = "The ceiling falls by what you owed. For example, if you owed $18,000, you can borrow $32,000 from the plan."
    assert await best("How much can I borrow from the plan?", text) == text


async def test_header_rows_and_headings_are_not_quoted() -> None:
    text = "## Fees for a loan\n\n| Fee for a loan | Amount |\n|---|---|\n| Loan origination fee | $75 |"
    sentences = await choose(evidence("What is the fee for a loan?", make_hit(text)), None)
    assert all("Amount" not in sentence.text and "##" not in sentence.text for sentence in sentences)


def test_a_row_is_quoted_whatever_its_first_name_and_last_cell() -> None:
    """ "#" is no heading, and "?" in a cell asks nothing."""
    text = "# Results\n\n#: 1 | Team: Kent Rovers | Date: ?\n#: 2 | Team: Leeds | Date: 4 May 2024"
    assert [sentence.text for sentence in read_sentences(text, "en")] == text.split("\n")[2:]


async def test_every_sentence_of_the_answer_verifies_against_its_passage() -> None:
    hits = (
        make_hit("Line one runs at night.\nLine one makes   40 units\nan hour.", 1),
        make_hit("* **Line two** makes 30 units an hour.", 2),
    )
    asked = evidence("How many units an hour does line one make?", *hits)
    answer = "".join((await choose_quotes(asked, None)).pieces)
    verification = verify_answer(answer, hits, language="en")
    assert verification.citations
    assert {citation.status.value for citation in verification.citations} == {"verified"}


async def test_an_answer_is_one_quote() -> None:
    text = "\n\n".join(f"The stock of part {number} is counted weekly." for number in range(20))
    sentences = await choose(evidence("How is the stock counted?", make_hit(text), make_hit(text, 2)), None)
    assert len(sentences) == 1


async def test_a_synonym_stands_for_the_word_that_was_asked() -> None:
    hit = make_hit("La renovación del DNI se pide con cita.\n\nLa tasa del DNI es de 12 euros.", 1)
    asked = Evidence(
        question="¿Cuánto cuesta renovar el DNI?",
        language="es",
        hits=(hit,),
        weights={"cuest": 4.0, "tas": 2.0, "renov": 2.0, "dni": 2.0},
        equivalents={"cuest": 0, "tas": 0, "renov": 1, "dni": 2},
        refusal=REFUSAL,
    )
    sentences = await choose(asked, None)
    assert sentences[0].text == "La tasa del DNI es de 12 euros."


async def test_neighbours_that_may_both_answer_are_one_quote() -> None:
    hit = make_hit("Bolts of the engine are blue. Bolts of the engine are cold. Lunch is at noon.", 1)
    first, *_ = await choose(evidence("What are bolts of the engine?", hit), None)
    assert first.text == "Bolts of the engine are blue. Bolts of the engine are cold."


def test_the_title_of_the_document_is_no_quote() -> None:
    mail = "Subject: Opening hours in the summer\n\nOpening hours in the summer\n\nWe close at noon in August."
    found = read_sentences(mail, "en", title="Opening hours in the summer")
    assert [sentence.text for sentence in found] == ["We close at noon in August."]
    guide = "Casa do Farol: the handbook\n\nWelcome to our house by the sea.\n\nSpare keys at the desk\n\nBring towels."
    found = read_sentences(guide, "en", begins=True)
    assert [sentence.text for sentence in found] == ["Welcome to our house by the sea.", "Spare keys at the desk"]


async def test_a_clear_answer_is_quoted_alone() -> None:
    hit = make_hit("Bolts are always blue. Coffee costs some money. The engine failed in May. It had lost oil.", 1)
    sentences = await choose(evidence("When has the engine failed?", hit), None)
    assert [sentence.text for sentence in sentences] == ["The engine failed in May."]


@pytest.mark.parametrize("language", [*language_codes(), "de"])
def test_every_language_has_weights_for_every_feature(language: str) -> None:
    weights = load_weights(language, PACKAGED_MODEL)
    assert weights.tokens is not None
    assert weights.words.shape == (len(WORD_FEATURES),)
    assert weights.vectors.shape == (len(WORD_FEATURES) + 1,)
    assert weights.tokens.shape == (len(WORD_FEATURES) + len(TOKEN_FEATURES) + 1,)
    # A sentence more similar to the question answers better.
    assert weights.vectors[-1] > 0
    assert weights.tokens[len(WORD_FEATURES) :].sum() > 0
    assert load_weights(language, "another model").tokens is None


async def test_passages_without_a_sentence_give_the_refusal() -> None:
    assert (await choose_quotes(evidence("Why?", make_hit("12 | 13")), None)).pieces == [REFUSAL]


async def test_no_control_character_of_a_passage_reaches_a_terminal() -> None:
    quotes = await choose_quotes(evidence("Where is gate 4?", make_hit("Gate 4 is in\x1b[2J the north.")), None)
    assert "".join(quotes.pieces) == "Gate 4 is in\ufffd[2J the north. [C1]"


def rows_hit(*lines: str, sheet: str = "Limits") -> Hit:
    text = "\n".join((f"Sheet: {sheet}", *lines))
    hit = make_hit(text, 1)
    return replace(hit, chunk=replace(hit.chunk, spans=(Span(start=0, end=len(text), location=Location(sheet=sheet)),)))


async def test_a_row_is_found_by_a_word_of_another_language_than_the_question() -> None:
    hit = rows_hit("Service: Informatique | Repas: 410", "Service: Production | Repas: 950")
    asked = replace(evidence("repas informatique", hit, language="en"), weights={"rep": 2.0, "informat": 2.0})
    sentences = await choose(asked, None)
    assert sentences[0].text.startswith("Service: Informatique")


async def test_rows_of_a_markdown_table_keep_their_header_and_verify() -> None:
    rows = "| Starter | $9 | 10 |\n| Team | $49 | 100 |\n| Big | $199 | 1,000 |"
    text = f"| Plan | Price | Monitors |\n|---|:--|---|\n{rows}"
    hits = (make_hit(text),)
    answer = "".join((await choose_quotes(evidence("monitors of Starter and Big", *hits), None)).pieces)
    assert answer.splitlines()[:2] == text.splitlines()[:2]
    assert answer.splitlines()[2:] == ["| Starter | $9 | 10 | [C1]"]
    verification = verify_answer(answer, hits, language="en")
    assert [citation.quote for citation in verification.citations if "Starter" in str(citation.quote)]
    assert {citation.status.value for citation in verification.citations} == {"verified"}
    assert not verification.flagged


async def test_headings_without_a_sign_are_not_quoted() -> None:
    text = "5. Risk prevention\n\nThe head of risk prevention is Lucía Bernad."
    path = Location(headings=("5. Risk prevention",))
    hit = make_hit(text, 1)
    hit = replace(hit, chunk=replace(hit.chunk, spans=(Span(start=0, end=len(text), location=path),)))
    sentences = await choose(evidence("Who is the head of risk prevention?", hit), None)
    assert [sentence.text for sentence in sentences] == ["The head of risk prevention is Lucía Bernad."]


@pytest.mark.parametrize(
    ("question", "text", "quoted"),
    [
        (
            "How often are backups made?",
            "How often are backups made? Backups run every night.",
            "Backups run every night.",
        ),
        ("¿Hay aparcamiento?", "¿Hay aparcamiento? Hay aparcamiento en el patio.", "Hay aparcamiento en el patio."),
    ],
)
async def test_a_question_in_the_document_is_never_quoted(question: str, text: str, quoted: str) -> None:
    """It holds the user's words and answers nothing."""
    sentences = await choose(evidence(question, make_hit(text)), None)
    assert [sentence.text for sentence in sentences] == [quoted]


async def test_the_choice_tells_how_far_the_first_quote_leads() -> None:
    clear = evidence("What is the fee for a loan?", make_hit("The fee for a loan is 75 euros. Lunch is at noon here."))
    unclear = evidence(
        "What is the fee for a loan?", make_hit("A loan has a fee here.\n\nThe loan and a fee are here.")
    )
    leads = [(await choose_quotes(asked, None)).lead for asked in (clear, unclear)]
    assert leads[0] > 0.9 > leads[1] > 0


async def test_a_range_holds_the_numbers_in_it() -> None:
    rows = "\n".join(
        f"Age: {low} to {high} | Valid for: {years} years" for low, high, years in ((5, 29, 5), (30, 69, 10))
    )
    assert "10 years" in await best("For how long is the card of a person aged 45 valid?", rows)
    assert "5 years" in await best("For how long is the card of a person aged 18 valid?", rows)


async def test_the_similarity_that_is_owed_to_the_title_is_taken_off() -> None:
    meaning = {"gym?": [1.0, 0.0], "The gym is a gym.": [1.0, 0.0], "It opens at nine.": [0.6, 0.8], "Gym": [1.0, 0.0]}

    class Known(MockEmbedding):
        async def _aget_query_embedding(self, query: str) -> list[float]:
            return meaning[query]

        async def _aget_text_embeddings(self, texts: list[str]) -> list[list[float]]:
            return [meaning[text] for text in texts]

    hit = make_hit("The gym is a gym. It opens at nine.")
    titled = replace(hit, chunk=replace(hit.chunk, document=replace(hit.chunk.document, title="Gym")))
    untitled = replace(hit, chunk=replace(hit.chunk, document=replace(hit.chunk.document, title="")))
    found = {}
    for name, shown in (("titled", titled), ("untitled", untitled)):
        asked = evidence("gym?", shown)
        sentences, _ = rate_by_words(asked)
        found[name] = await rate_by_vectors(asked, sentences, Known(embed_dim=2), UNSCALED)
    same, near = UNSCALED.similarity(np.array([1.0, 0.6]))
    assert np.allclose(found["untitled"], [same, near])
    assert np.allclose(found["titled"], [same - same * same, near - same * near])


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("What does an hour on the router cost?", "Ask at the desk for prices."),  # a heading says nothing of it
        ("Is the router out of order?", "The router is out of order."),  # a whole sentence answers yes or no
    ],
)
async def test_a_piece_of_a_line_that_only_repeats_the_question_is_no_quote(question: str, answer: str) -> None:
    assert await best(question, f"The router\n\n{answer}") == answer


async def test_words_choose_the_sentence_if_the_model_in_the_process_fails(tmp_path: Path) -> None:
    def load() -> Engine:
        raise RuntimeError("out of memory")

    folder = ModelFolder(
        name=PACKAGED_MODEL,
        path=tmp_path,
        is_bert=True,
        dimension=4,
        max_tokens=16,
        pooling="mean",
        query_prefix="",
        passage_prefix="",
    )
    model = LocalEmbedding(folder, load)
    hit = make_hit("The engine failed in May. Lunch is at noon.")
    first, *_ = await choose(evidence("When has the engine failed?", hit), model, reader=model)
    assert first.text.startswith("The engine failed in May.")
    await model.aclose()


async def test_a_second_copy_of_a_document_does_not_compete_with_the_first() -> None:
    asked = evidence("How much does the second card cost?", make_hit(CARDS))
    twice = evidence("How much does the second card cost?", make_hit(CARDS), make_hit(CARDS, 2))
    once, again = [await choose_quotes(one, None) for one in (asked, twice)]
    assert [one.text for one in again.sentences] == [one.text for one in once.sentences]
    assert again.lead == pytest.approx(once.lead, abs=0.02)


def test_names_and_questions_are_not_quoted() -> None:
    text = (
        "**How long is it open?**\nIt is open for nine hours.\n\nKind regards\nIngrid Falk\nHead of Maintenance, Pools"
    )
    assert [one.text for one in read_sentences(text, "en")] == ["It is open for nine hours."]


def test_a_line_that_stands_on_every_page_is_a_candidate_only_if_it_is_asked_for() -> None:
    header = "RC/2024/117 - Confidential"
    text = f"The pump runs at night.\n\n{header}\n\nMonday 9:00 to 17:00\n\n{header}"
    candidates, _ = rate_by_words(evidence("When is the shop open?", make_hit(text)))
    assert [one.text for one in candidates] == ["The pump runs at night.", "Monday 9:00 to 17:00"]
    candidates, _ = rate_by_words(evidence("Which papers are confidential?", make_hit(text)))
    assert header in [one.text for one in candidates]


async def test_chinese_sentences_are_quoted() -> None:
    text = "# 员工手册\n员工每年享有十五天带薪年假。试用期为三个月。公司的联系电话是010-8888-1234。"
    assert [one.text for one in read_sentences(text, "en")][1] == "试用期为三个月。"
    assert "三个月" in await best("试用期多长？", text)

"""Places: windows of whole sentences, rows with the names of their columns, and what is cut."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from rag_service.answering.quoting.choice import choose_quotes, rate_by_words
from rag_service.answering.quoting.quotes import MAX_PLACES, Evidence, Excerpt, asked_forms, cut_around, find_marked
from rag_service.answering.quoting.sentences import read_sentences
from rag_service.language.words import find_words
from tests.unit.answering.quoting.test_choice import evidence, make_hit


async def places_of(question: str, *texts: str) -> tuple[Evidence, Sequence[Excerpt]]:
    asked = evidence(question, *(make_hit(text, number) for number, text in enumerate(texts, start=1)))
    return asked, (await choose_quotes(asked, None)).places


async def test_a_place_is_a_window_of_whole_sentences_around_the_best_one() -> None:
    before, best, after = "The yard has two gates.", "Gate B opens at seven.", "It closes at nine."
    _, places = await places_of("When does gate B open?", f"{before} {best} {after}")
    assert places[0].text == f"{before} {best} {after}"
    long = "Lorries wait in the lane " + "and wait " * 30 + "for their turn."
    _, places = await places_of("When does gate B open?", f"{best} {long}")
    assert places[0].text == best


async def test_a_window_does_not_reach_into_another_paragraph() -> None:
    _, places = await places_of("When does gate B open?", "Gate B opens at seven.\n\nThe canteen is closed on Mondays.")
    assert places[0].text == "Gate B opens at seven."


async def test_a_row_has_the_names_of_its_columns() -> None:
    table = "| Loan | Maximum | Years |\n| --- | --- | --- |\n| General | 50,000 | 5 |\n| Home | 80,000 | 20 |"
    _, places = await places_of("What is the maximum of a home loan?", table)
    assert places[0].text == "Loan: Home | Maximum: 80,000 | Years: 20"


async def test_a_long_cell_is_cut_around_the_words_of_the_question() -> None:
    cell = "words " * 200 + "the vest costs 30 euros and " + "more " * 5000
    _, places = await places_of("What does the vest cost?", f"Item: Vest | Note: {cell}| Price: 30")
    assert "the vest costs 30 euros" in places[0].text
    assert "…" in places[0].text
    assert places[0].text.endswith("Price: 30")
    assert len(find_words(places[0].text)) < 60


async def test_no_place_repeats_another() -> None:
    texts = [f"Part {number} is counted weekly. It is counted by hand." for number in (1, 1, 2, 3, 4, 5, 6, 7, 8)]
    asked, places = await places_of("How is a part counted?", *texts)
    assert len(places) == MAX_PLACES == len({place.text for place in places})
    sentences, _ = rate_by_words(asked)
    assert len(sentences) > MAX_PLACES


def test_the_words_of_the_question_are_marked_in_any_form() -> None:
    text = "Both gates open; Gate B opened at 7."
    marked = [text[start:end] for start, end in find_marked(text, asked_forms("When does the gate open?", "en"))]
    assert marked == ["gates", "open", "Gate", "opened"]


def test_a_text_without_spaces_is_cut_and_marked() -> None:
    text = "仓库" * 100 + "周一开放" + "仓库" * 100
    cut = cut_around(text, 45, asked_forms("周一开放", "zh"))
    assert cut.startswith("… ") and cut.endswith(" …") and "周一" in cut
    assert len(cut) <= 45 * 2 + 4


@pytest.mark.parametrize(
    ("label", "language"),
    [
        ("Fees and charges", "en"),
        ("Quién lo puede pedir", "es"),
        ("Leeds, 3 March 2024", "en"),
        ("Échirolles, le 21 septembre 2023", "fr"),
        ("Paço de Arcos, 3 de março de 2024", "pt"),
    ],
)
def test_a_heading_in_plain_text_or_the_date_of_a_letter_is_no_place(label: str, language: str) -> None:
    body = "La cuota de 2024 es de 30 euros." if language == "es" else "The fee is 30 euros."
    found = read_sentences(f"{body}\n\n{label}\n\n{body}", language)
    assert [sentence.text for sentence in found] == [body, body]


@pytest.mark.parametrize("line", ["Bring warm clothes, please.", "- Free of charge", "Opening: 3 March 2024"])
def test_a_sentence_an_item_or_a_value_on_a_line_of_its_own_is_a_place(line: str) -> None:
    found = read_sentences(f"We meet at nine.\n\n{line}\n\nWe leave at ten.", "en")
    assert len(found) == 3


def test_a_short_reply_below_its_question_is_a_place() -> None:
    found = read_sentences("What does parking cost?\n\nFree for members\n\nCan I camp?\n\nYes.", "en")
    assert [sentence.text for sentence in found] == ["Free for members"]


async def test_the_signs_of_emphasis_are_left_out() -> None:
    _, places = await places_of("When does gate B open?", "**Gate B** opens at *seven*. It is 2 * 3 m wide * high.")
    assert places[0].text == "Gate B opens at seven. It is 2 * 3 m wide * high."

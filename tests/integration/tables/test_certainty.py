"""What keeps an answer from a table from being certain, or from being computed at all, and how the reply tells it."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from rag_service.domain import Decision, ReplyKind, Turn
from rag_service.store.embedded import EmbeddedServer
from tests.integration.tables.conftest import Library, files_of, is_computed, open_library

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.xdist_group("table_certainty")]

NOT_UNDERSTOOD = "Not every word of the question was understood; check that this is what you asked.\n"
SEVERAL_WAYS = "The question can be read in several ways.\n"
RULE = "Para tener derecho al desempleo hay que haber trabajado un mínimo de 360 días en seis años."
ROWS = "| Días cotizados | Días de prestación |\n|---|---|\n| De 360 a 539 | 120 |\n| De 540 a 719 | 180 |\n"
OFFICES = "\n\n".join(f"La oficina de la casa {number} abre pronto y cierra tarde en invierno." for number in range(60))
PAGE = (
    f"# Ayudas\n\n## Derecho al desempleo\n\n{RULE}\n\n## Oficinas\n\n{OFFICES}\n\n## Duración del desempleo\n\n{ROWS}"
)
FILES = {
    "budget.csv": "Service,Budget 2024,Budget 2025\nSales,10,20\nHR,5,6\n",
    "crates.csv": "Crate,Buyer,Pieces\nC-1,Lido,60\nC-2,Mill,20\nC-3,Lido,15\n",
    "day care.md": (
        "# Day care\n\nThe day care has 62 places. The number of days closed per year is 25.\n\n"
        "| Group | Minimum age | Fee |\n|---|---|---|\n| Bees | 1 | 310 |\n| Owls | 3 | 260 |\n"
    ),
    "errors.csv": "Tent,Stock\nAlpina,4\nDuna,#DIV/0!\nBorealis,6\nEverest,7\nCamper,8\n",
    "holiday rules.md": "# Holidays\n\nEvery employee has 25 vacation days per year.\n",
    "limits.csv": "Item,Limit,Remark\nHotel,£110 a night,London: £165\nDinner,£28,\n",
    "tents.csv": "Tent;Stock;Colour\nAlpina;4;red\nDuna;5;blue\nBorealis;6;red\n",
    "treatments.csv": "Treatment,Cat,Dog\nNeutering,85,150\nVaccine,35,40\nBlood test,60,70\n",
    "trips.csv": "Trip,Vacation days\nRome,4\nOslo,7\n",
}


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def library(postgres: EmbeddedServer) -> AsyncIterator[Library]:
    files = {
        **files_of("team_sheets", "tents.xlsx", "stocks.csv", "licences.xlsx", "employees.xlsx"),
        **files_of("small_sheets", "holidays.csv", "orders.csv", "factures.csv"),
        **files_of("ordinary_words", "commandes.csv"),
        **FILES,
    }
    async with open_library(postgres, files) as opened:
        yield opened


# -- computed, and told with its doubt


@pytest.mark.parametrize(
    ("files", "question", "said"),
    [
        (
            ["budget.csv"],
            "What is the total budget?",
            f"{SEVERAL_WAYS}The total of “Budget 2024” is 15 over 2 rows [C1].\n"
            "The total of “Budget 2025” is 26 over 2 rows [C1].",
        ),
        (
            ["tents.xlsx", "stocks.csv"],
            "What is the total stock?",
            f"{SEVERAL_WAYS}tents.xlsx: The total of “Stock” is 107 over 7 rows [C1].\n"
            "stocks.csv: The total of “Stock” is 2,787 over 6 rows [C2].",
        ),
        (
            ["tents.xlsx"],
            "How many tents are there?",
            f"{SEVERAL_WAYS}The number of rows in the table is 7 [C1].\nThe total of “Stock” is 107 over 7 rows [C1].",
        ),
        (
            ["tents.xlsx"],
            "What is the price per kg of Alpina 2?",
            f"{NOT_UNDERSTOOD}“Price” of Alpina 2: 249 € [C1].",
        ),
        (
            ["employees.xlsx"],
            "How many people are not in Sales?",
            f"{NOT_UNDERSTOOD}The number of rows where Department is not Sales is 5 [C1].",
        ),
    ],
    ids=["two columns fit", "two tables fit", "rows or pieces", "a word is not understood", "a negation"],
)
async def test_a_doubt_is_told_and_the_answer_uncertain(
    library: Library, files: list[str], question: str, said: str
) -> None:
    answer = await library.ask(question, *files)
    warning, *readings = re.sub(r" \[C\d\]", "", said).split("\n")
    assert (answer.kind, answer.decision) == (ReplyKind.PLACES, Decision.UNCERTAIN)
    assert answer.text.startswith(f"{warning}\n\n1. ")
    assert [place.text for place in answer.places][: len(readings)] == readings


async def test_a_month_without_its_year_is_uncertain(library: Library) -> None:
    answer = await library.ask("How many people were hired in March?", "employees.xlsx")
    assert answer.places[0].text.endswith("is 1.")
    assert answer.decision is Decision.UNCERTAIN


async def test_one_of_several_dates_is_certain_by_its_name_only(library: Library) -> None:
    named = await library.ask("Quand la facture F25-003 a-t-elle été payée ?", "factures.csv")
    assert ("2025-03-10" in named.text, named.decision) == (True, Decision.CAN_PROCEED)
    other = await library.ask("Quand a-t-on réglé le cocktail d'ouverture ?", "factures.csv")
    assert other.decision is Decision.UNCERTAIN


async def test_numbers_that_name_rows_are_no_figures(library: Library) -> None:
    question = "Quel est le montant total des commandes du Café des Arts ?"
    answer = await library.ask(question, "commandes.csv")
    assert ("797,5" in answer.text, answer.decision) == (True, Decision.CAN_PROCEED)


async def test_cells_without_a_figure_are_left_out_and_told(library: Library) -> None:
    answer = await library.ask("What is the total stock of tents?", "errors.csv")
    assert answer.text == "The total of “Stock” is 25 over 4 rows [C1].\nLeft out, without a figure in “Stock”: B3."
    assert answer.citations[0].formula == "SUM(B2,B4:B6) = 25"


async def test_currencies_are_not_summed_together(library: Library) -> None:
    answer = await library.ask("What is the total of the licence fees?", "licences.xlsx")
    assert answer.text.startswith("“Fee” mixes currencies ($, €), so it is not computed as one figure.\n\n1. ")
    assert not is_computed(answer)
    assert answer.decision is Decision.UNCERTAIN
    one = await library.ask("What is the total amount in EUR?", "orders.csv")
    assert ("180" in one.text, one.decision) == (True, Decision.CAN_PROCEED)


async def test_a_word_that_stands_in_another_cell_of_the_row_shows_the_whole_row(library: Library) -> None:
    plain = await library.ask("What is the hotel limit?", "limits.csv")
    assert ("£110" in plain.text, plain.decision) == (True, Decision.CAN_PROCEED)
    answer = await library.ask("What is the hotel limit in London?", "limits.csv")
    assert answer.text.startswith(NOT_UNDERSTOOD)
    assert answer.places[0].text == "Item: Hotel | Limit: £110 a night | Remark: London: £165."
    assert answer.decision is Decision.UNCERTAIN


async def test_several_rows_are_shown_and_added_with_certainty_only_if_a_sum_is_asked_for(library: Library) -> None:
    answer = await library.ask("How many pieces for Lido?", "crates.csv")
    assert "C-1, Lido: 60; C-3, Lido: 15" in answer.text
    assert answer.decision is Decision.UNCERTAIN
    total = await library.ask("How many pieces in total for Lido?", "crates.csv")
    assert ("is 75 over 2 rows" in total.text, total.decision) == (True, Decision.CAN_PROCEED)
    one = await library.ask("How many pieces for Mill?", "crates.csv")
    assert (": 20 [C1]" in one.text, one.decision) == (True, Decision.CAN_PROCEED)


# -- not computed


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("How many places does the day care have?", "The day care has 62 places."),
        ("How many days is the day care closed per year?", "The number of days closed per year is 25."),
    ],
)
async def test_a_count_that_a_paragraph_states_is_not_the_number_of_rows(
    library: Library, question: str, said: str
) -> None:
    answer = await library.ask(question, "day care.md")
    assert not is_computed(answer), answer.text
    assert said in answer.text


async def test_rows_are_counted_by_the_noun_of_a_column(library: Library) -> None:
    answer = await library.ask("How many groups are there?", "day care.md")
    assert ("is 2 [C1]" in answer.text, answer.decision) == (True, Decision.CAN_PROCEED)


async def test_a_name_that_the_question_says_is_no_answer(library: Library) -> None:
    answer = await library.ask("Which item is the hotel?", "limits.csv")
    assert "Rows where" not in answer.text


@pytest.mark.parametrize(
    ("file", "question"),
    [
        ("tents.xlsx", "What was the total stock of tents last year?"),
        ("employees.xlsx", "What is the average salary in Paris?"),
        ("holidays.csv", "What is the salary of Ana?"),
        ("treatments.csv", "How much does it cost to shave a cat?"),
    ],
    ids=["another time", "a value that is not there", "no such column", "the price of one thing"],
)
async def test_what_a_table_does_not_hold_is_not_certain(library: Library, file: str, question: str) -> None:
    answer = await library.ask(question, file)
    assert not is_computed(answer), answer.text
    assert answer.decision is not Decision.CAN_PROCEED


async def test_a_rule_is_not_replaced_by_the_sum_of_a_column(library: Library) -> None:
    files = "holiday rules.md", "trips.csv"
    assert not is_computed(await library.ask("How many vacation days do I have per year?", *files))
    answer = await library.ask("How many vacation days do I have?", *files)
    assert answer.decision is not Decision.CAN_PROCEED or not is_computed(answer), answer.text


async def test_a_rule_is_not_replaced_by_a_table_further_down_on_its_page(postgres: EmbeddedServer) -> None:
    async with open_library(postgres, {"ayudas.md": PAGE}) as alone:
        answer = await alone.ask("¿Cuántos días tengo que haber trabajado para tener derecho al desempleo?")
    assert not is_computed(answer), answer.text
    assert RULE in answer.text


async def test_a_follow_up_is_not_computed_together_with_the_question_before(library: Library) -> None:
    before = "What is the total stock of tents in Lyon?"
    assert (await library.ask(before, "tents.xlsx")).decision is Decision.CAN_PROCEED
    for first in (before, "total stock of tents in Lyon"):
        turns = (Turn(role="user", content=first), Turn(role="assistant", content="34 [C1]."))
        answer = await library.ask("And in Lille?", "tents.xlsx", turns=turns)
        assert not is_computed(answer), answer.text


async def test_a_threshold_of_the_request_cuts_tables_as_well(library: Library) -> None:
    assert is_computed(await library.ask("What is the total stock of tents?", "tents.csv"))
    assert not is_computed(await library.ask("What is the total stock of tents?", "tents.csv", threshold=1.0))

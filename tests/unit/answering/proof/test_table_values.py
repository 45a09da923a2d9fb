"""A figure that was computed proves a sentence that tells the operation, and no other sentence."""

from __future__ import annotations

from uuid import UUID

import pytest
from rag_service.answering.proof.table_values import TableValue

from rag_service.answering.proof.analysis import analyse
from rag_service.answering.proof.passage import prepare
from rag_service.domain import Location
from rag_service.tables.asking.planning.plans import Operation
from rag_service.tables.sentences import CitedCells

ROWS = """Depot | Item | Crates | Day
Oslo | Apples | 24 | 2026-03-01
Bergen | Apples | 31 | 2026-03-01
Oslo | Pears | 60 | 2026-03-02
"""
CELLS = CitedCells(document_id=UUID(int=1), start=0, end=5, location=Location(), formula="SUM(C2,C4) = 84")


def computed(
    value: float = 84,
    told: str = "The total of “Crates” where Depot = Oslo is 84 over 2 rows",
    *,
    operation: Operation = Operation.SUM,
    column: str = "Crates",
    limits: tuple[str, ...] = ("Oslo",),
    question: str = "What volume of fruit was dispatched by Oslo overall?",
) -> TableValue:
    return TableValue(
        value,
        told=told,
        operation=operation,
        column=column,
        limits=limits,
        elsewhere="Depot; Item; Crates; Day; plums",
        cells=CELLS,
        quote="",
        question=question,
        language="en",
        is_certain=False,
    )


def is_proved(said: str, value: TableValue, *, title: str = "shipments.csv") -> bool:
    return value.proves(analyse(said, "en"), prepare(ROWS, "en", False), analyse(title, "en").stems)


@pytest.mark.parametrize(
    "said",
    [
        "Oslo dispatched 84 crates overall.",
        "The total of crates for Oslo is 84.",
        "Overall, Oslo dispatched 84 crates of fruit.",
    ],
)
def test_what_was_computed_is_proved_in_other_words(said: str) -> None:
    assert is_proved(said, computed())


@pytest.mark.parametrize(
    "said",
    [
        "84 crates were dispatched overall.",  # without the rows
        "The total for Oslo is 84.",  # without the column
        "Bergen dispatched 84 crates overall.",
        "Oslo and Trondheim dispatched 84 crates overall.",
        "The total volume of fruit in crates dispatched outside Oslo is 84.",
        "Everywhere but Oslo, 84 crates were dispatched overall.",
        "Except for Oslo, 84 crates of fruit were dispatched overall by volume.",
        "Oslo never dispatched 84 crates overall.",
        "Oslo failed to dispatch the total fruit volume of 84 crates overall.",
        "Oslo may have dispatched 84 crates overall.",
        "If Oslo dispatched fruit, it was 84 crates overall.",
        "The average volume of fruit in crates dispatched by Oslo is 84.",
        "Half of the volume of fruit in crates dispatched by Oslo is 84.",
        "Oslo dispatched 84 crates of fruit per day overall.",
        "Oslo dispatched a fruit volume of 84 crates overall each.",
        "Oslo dispatched 84 crates of fruit overall in April.",
        "Oslo dispatched 84 crates of mangoes overall.",
        "Oslo dispatched 84 crates of pears overall.",
        "Oslo dispatched 84 kg of fruit in crates overall.",
        "Oslo dispatched 84 million crates overall.",
        "Oslo dispatched 84% of the crates overall.",
        "Oslo dispatched 84 crates or more overall.",
        "Oslo dispatched 84+ crates overall.",
        "Oslo dispatched nearly 84 crates overall.",
        "Oslo dispatched 84 fewer crates overall.",
        "Oslo dispatched fewer than 84 crates overall.",
        "The total volume of fruit crates dispatched by Oslo overall doubled to 84.",
    ],
)
def test_what_says_more_or_less_than_was_computed_is_not_proved(said: str) -> None:
    assert not is_proved(said, computed())


def test_a_title_or_a_question_proves_nothing_about_other_rows_or_operations() -> None:
    assert not is_proved("Bergen dispatched 84 crates overall.", computed(), title="Shipments of Oslo and Bergen")
    plums = computed(question="How many crates of plums did Oslo dispatch overall?")
    assert not is_proved("Oslo dispatched 84 crates of plums overall.", plums)
    mean = computed(question="What is the average of crates for Oslo?")
    assert not is_proved("The average of crates for Oslo is 84.", mean)


def test_a_sentence_names_every_limit_and_an_operation_that_is_no_sum() -> None:
    pears = computed(60, "The total of “Crates” where Depot = Oslo and Item = Pears is 60", limits=("Oslo", "Pears"))
    assert is_proved("Oslo dispatched 60 crates of pears.", pears)
    assert not is_proved("Oslo dispatched 60 crates overall.", pears)
    mean = computed(42, "The average of “Crates” where Depot = Oslo is 42 over 2 rows", operation=Operation.MEAN)
    assert is_proved("The average of crates for Oslo is 42.", mean)
    assert not is_proved("Oslo dispatched 42 crates.", mean)

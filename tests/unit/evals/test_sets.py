"""Eval sets are whole, and replies are judged as their format says."""

from __future__ import annotations

from collections import Counter

import pytest

from evals.sets.measure import Figures, Reply, count, says
from evals.sets.questions import Question, read_set, set_names
from evals.sets.thresholds import missed, read_thresholds
from rag_service.language.languages import language_names


@pytest.mark.parametrize("name", set_names())
def test_a_set_is_whole(name: str) -> None:
    questions = read_set(name).questions
    assert [text for text, number in Counter(one.text for one in questions).items() if number > 1] == []
    assert {one.language for one in questions} <= language_names().keys()
    assert read_thresholds()[name].keys() == {one.half for one in questions}
    assert not [one.text for one in questions if one.certain is not None and not one.answers]


@pytest.mark.parametrize(
    ("text", "part", "said"),
    [
        ("The total of “Stock” is 107 over 7 rows [C1].", "107", True),
        ("The total of “Stock” is 1,107 over 7 rows.", "107", False),
        ("Le total est 757\u202f500 [C1].", "757500", True),
        ("21 900,00 €", "21 900,00", True),
        ("21,900.50", "21,900", False),
        ("Plátano común", "Plátano", True),
        ("Sellos de caja", "Sello", False),
    ],
)
def test_a_value_is_said_as_whole_words_or_a_whole_number(text: str, part: str, said: bool) -> None:
    assert says(text, part) is said


def reply(
    *,
    answers: tuple[tuple[str, ...], ...] = (("7",),),
    certain: bool | None = None,
    right: bool,
    green: bool,
    in_six: bool = False,
) -> Reply:
    question = Question(
        text="How many?", language="en", documents=(), answers=answers, half="developed", certain=certain
    )
    return Reply(question=question, text="", is_right=right, is_computed=False, is_green=green, in_six=in_six)


def test_replies_are_counted() -> None:
    replies = [
        reply(right=True, green=True),
        reply(right=True, green=False),
        reply(right=False, green=True, in_six=True),
        reply(right=True, green=True, certain=False),
        reply(answers=(), right=False, green=True),
        reply(answers=(), right=False, green=False),
    ]
    assert count(replies) == Figures(
        questions=6, right=3, quoted=3, green=4, green_right=2, green_wrong=1, green_doubtful=1, unanswerable=2,
        unanswerable_green=1, in_six=4,
    )  # fmt: skip
    assert [one.is_false for one in replies] == [False, False, True, True, True, False]


def test_a_figure_beyond_its_slack_is_named() -> None:
    saved = read_thresholds()["comparisons"]["developed"]
    kept = Figures(questions=9, right=saved["right"] - 1, green_right=saved["green_right"], green_wrong=1)
    assert missed("comparisons", "developed", kept) == []
    worse = Figures(questions=9, right=saved["right"] - 2, green_right=saved["green_right"], green_wrong=2)
    assert missed("comparisons", "developed", worse) == [
        f"comparisons, developed: right {saved['right'] - 2}, at least {saved['right'] - 1}",
        "comparisons, developed: green_wrong 2, at most 1",
    ]

"""A day is the same in running text, in a cell and in a question, however it is written."""

from __future__ import annotations

from datetime import date

import pytest

from rag_service.language.dates import find_days, read_day
from rag_service.language.words import fold, words


@pytest.mark.parametrize(
    "text", ["3 May 2024", "May 3, 2024", "3rd of May 2024", "3 de mayo de 2024", "3 mai 2024", "3 de maio de 2024"]
)
def test_a_day_in_words_is_the_same_in_text_and_cell(text: str) -> None:
    in_cell = read_day(words(text))
    in_text = [day for day in find_days(fold(f"It holds from {text}; see below.")) if day.has_day]

    assert in_cell is not None
    assert [in_cell] == in_text
    assert in_cell.date == date(2024, 5, 3)


def test_a_word_that_may_be_two_months_is_none() -> None:
    assert not any(day.has_day for day in find_days("3 jui 2024"))
    assert read_day(words("3 jui 2024")) is None

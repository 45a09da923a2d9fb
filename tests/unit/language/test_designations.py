"""Letters, numbers and ordinals that say which of several is meant."""

from __future__ import annotations

from rag_service.language.designations import read_asked_designations, read_designations
from tests.timing import seconds_of


def test_words_are_read_with_the_letters_and_numbers_behind_them() -> None:
    assert list(read_designations("Gate B opens, lots 8 et 9 stay closed.")) == [
        ("Gate", "B"), ("lots", "8"), ("lots", "9"),
    ]  # fmt: skip


def test_a_run_of_letters_without_a_space_is_read_in_linear_time() -> None:
    run = "a" * 20_000  # also the length of a passage in a script without spaces
    seconds = seconds_of(lambda: (list(read_designations(run)), list(read_asked_designations(run, "en"))))
    assert seconds < 1, "each letter was once the start of a word: seven seconds"
    assert list(read_designations(run)) == list(read_asked_designations(run, "en")) == []

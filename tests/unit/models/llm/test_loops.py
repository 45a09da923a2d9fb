"""A text that only repeats itself is recognised, and what may be said several times is not."""

from __future__ import annotations

import pytest

from rag_service.models.llm.loops import repeats, without_repetition

FEE = "The fee is 35 euros [C1]."


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        (f"It is due in May [C2]. {FEE} {FEE} {FEE}", f"It is due in May [C2]. {FEE}"),
        (f"{FEE}\n\n{FEE}\n\n{FEE}\n\n", FEE),
        (f"- {FEE[:-1]}\n" * 3, f"- {FEE[:-1]}"),
        (f"{FEE} It is due in May. " * 3, f"{FEE} It is due in May."),
        (f"{FEE} " + "as is the fee " * 30, f"{FEE} as is the fee"),
        ("1" * 1000, "1"),
    ],
)
def test_what_is_said_over_and_over_is_kept_once(text: str, kept: str) -> None:
    assert repeats(text)
    assert without_repetition(text) == kept


@pytest.mark.parametrize(
    "text",
    [
        f"{FEE} {FEE}",
        "In 2021 it was 35 euros a year. In 2022 it was 35 euros a year. In 2023 it was 35 euros a year.",
        "| not applicable | not applicable |\n" * 6,
        "- Not stated.\n" * 9,
        f"| {'-' * 80} | {'-' * 80} |" * 5,
        "",
    ],
)
def test_what_an_answer_may_say_again_is_no_repetition(text: str) -> None:
    assert not repeats(text)
    assert without_repetition(text) == text.rstrip()

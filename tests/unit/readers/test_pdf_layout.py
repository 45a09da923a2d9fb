"""Lines of a PDF page: what stands side by side is read together, what stands apart is not."""

from __future__ import annotations

import math
import random
from functools import partial

from hypothesis import given
from hypothesis import strategies as st

from rag_service.readers.pdf.layout import lay_out
from rag_service.readers.pdf.rows import COLUMN
from rag_service.readers.pdf.words import Word
from tests.timing import seconds_of


def word(
    text: str, x: float, y: float, *, height: float = 10, turns: int | None = 0, number: int = 0, spaced: bool = False
) -> Word:
    """A word whose letters are half as wide as high, its middle at y."""
    width = len(text) * height / 2
    return Word(text, number, spaced, turns, x, x + width, y, height)


def phrase(text: str, x: float, y: float) -> list[Word]:
    words = []
    for part in text.split():
        words.append(word(part, x, y))
        x += len(part) * 5 + 3
    return words


def page(*words: Word | list[Word]) -> str:
    """Laid out, drawn in an order that has nothing to do with the page's."""
    flat = [item for group in words for item in (group if isinstance(group, list) else [group])]
    random.Random(3).shuffle(flat)  # noqa: S311
    return "\n".join(line.text for line in lay_out(flat))


def test_gaps_tell_words_from_columns() -> None:
    assert page(phrase("Net income", 0, 90), word("$", 200, 90), word("(815)", 208, 90)) == f"Net income{COLUMN}$ (815)"


def test_an_empty_line_stands_where_the_page_leaves_room() -> None:
    assert page(word("Title", 0, 90), word("one", 0, 70), word("two", 0, 58)) == "Title\n\none\ntwo"


def test_a_large_heading_stands_alone() -> None:
    assert page(word("Title", 0, 90, height=20), word("one", 0, 70), word("two", 0, 58)) == "Title\n\none\ntwo"


def test_a_line_knows_the_height_of_its_letters_unless_it_is_turned() -> None:
    words = [word("Title", 0, 90, height=20), word("one", 0, 70), word("two", 0, 58), word("Label", -50, 20, turns=1)]
    assert [(line.text, line.height) for line in lay_out(words)] == [
        ("Title", 20), ("", 0), ("one", 10), ("two", 10), ("", 0), ("Label", 0),
    ]  # fmt: skip


def test_a_footnote_mark_stays_at_its_word_and_is_raised() -> None:
    lines = [phrase("a line above it", 0, 102), phrase("Fair value", 0, 90), phrase("and below", 0, 78)]
    assert page(*lines, word("(1)", 48, 93, height=6)) == "a line above it\nFair value⁽¹⁾\nand below"


def test_figures_centred_beside_a_label_of_two_lines_stand_on_one_line() -> None:
    label = [phrase("Form of senior note", 30, 96), phrase("due in the year 2030", 30, 84)]
    assert page(*label, word("4.6", 0, 90), word("Filed", 200, 90)) == (
        f"4.6{COLUMN}Form of senior note{COLUMN}Filed\ndue in the year 2030"
    )


def test_lines_that_collide_are_never_mixed() -> None:
    """Nor where they are as close as scribbles."""
    assert page(phrase("one two three", 0, 90), phrase("four five six", 0, 84)) == "one two three\nfour five six"


def test_turned_words_are_laid_out_among_themselves_and_slanted_ones_come_last() -> None:
    upright = [phrase("Text of the page", 0, 90)]
    turned = [word("Label", -50, 20, turns=1), word("12", 100, 20, turns=1)]
    assert page(*upright, *turned, word("DRAFT", 10, 95, turns=None)) == (
        f"Text of the page\n\nLabel{COLUMN}12\n\nDRAFT"
    )


def test_a_page_without_words_is_empty() -> None:
    assert lay_out([]) == []


def test_time_grows_with_the_number_of_words_however_they_lie() -> None:
    """Each word a little lower than the one before: each is a strip of its own, and all could make one line."""
    words = [word("x", x=number * 10 % 50_000, y=-number * 0.0001, number=number) for number in range(50_000)]
    staircase = [word("x", x=number * 6, y=-number * 2.1, number=number) for number in range(50_000)]
    for text in (words, staircase):
        assert seconds_of(partial(lay_out, text)) < 8


WILD = st.sampled_from([0.0, -1.0, 1e30, -1e30, math.inf, -math.inf, math.nan])
PLACE = st.floats(0, 600) | st.sampled_from([10.0, 110.0, 200.0]) | WILD
WORDS = st.builds(
    Word,
    text=st.sampled_from(["word", "1,058", "Größe", "x", "(a", "Item", "שלום"]),
    number=st.integers(0, 50),
    spaced=st.booleans(),
    turns=st.sampled_from([0, 0, 0, 1, None]),
    left=PLACE,
    right=PLACE,
    middle=st.sampled_from([700.0, 688.0, 676.0, 664.0]) | PLACE,
    height=st.just(10.0) | PLACE,
    rows=st.just([[]]),
)


@given(st.lists(WORDS, max_size=60), st.booleans())
def test_no_word_is_lost_or_doubled_wherever_a_broken_page_puts_it(words: list[Word], in_columns: bool) -> None:
    if in_columns:
        sides = [
            phrase("a line of prose that fills its column", left, 700 - 12 * row)
            for row in range(8)
            for left in (0, 250)
        ]
        words = [word for side in sides for word in side] + words
    written = "".join(line.text for line in lay_out(words))
    assert sorted(written.replace(" ", "")) == sorted("".join(word.text for word in words))

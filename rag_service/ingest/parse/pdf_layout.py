"""Puts the words of a PDF page into lines, so that the figures of a table row stay beside their label.

Columns of prose are read one after the other (`pdf_columns`), words side by side are a line (`pdf_rows`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from rag_service.ingest.parse.pdf_columns import part_columns
from rag_service.ingest.parse.pdf_rows import Row, read_rows
from rag_service.ingest.parse.pdf_words import Word

_PARAGRAPH_STEP = 1.75  # from a line's middle to the next; of the smaller height, so that headings stand alone


class Line(NamedTuple):
    """A line of a page as it reads; without text, the room that the page leaves above the next."""

    text: str
    height: float = 0.0  # of its letters in points; 0: not of the page's commonest direction
    ends: tuple[int, int] = (-1, -1)  # PDFium's index of the first character of its first word and of its last


def lay_out(words: Sequence[Word], *, with_tables: Callable[[list[Word]], list[Word]] = list) -> list[Line]:
    """The lines of a page; `COLUMN` stands for a wide gap, an empty line for a high one or the end of a column.

    Words turned by a quarter are laid out among themselves, after those of the commonest direction; slanted words come
    last, in PDFium's order.

    Args:
        with_tables: Puts a word for each table among the words of the commonest direction, in place of its own.
    """
    turned: dict[int | None, list[Word]] = {}
    for word in words:
        turned.setdefault(word.turns, []).append(word)
    slanted = turned.pop(None, [])
    lines: list[Line] = []
    upright, *others = sorted(turned.values(), key=len, reverse=True) or [[]]
    for part in part_columns(with_tables(upright)):
        lines += [Line("")] * bool(lines) + _paragraphs(part)
    for group in others:
        lines += [Line(""), *(Line(line.text) for line in _paragraphs(read_rows(group)))]
    if slanted:
        lines += [Line("")] * bool(lines) + [Line(" ".join(word.text for word in slanted))]
    return lines


def _paragraphs(rows: Iterable[Row]) -> list[Line]:
    lines: list[Line] = []
    above: Word | None = None
    is_below_table = False
    for row in rows:
        here = row.anchor
        is_table = any(word.is_table for word in row.words)
        if above and (
            is_table or is_below_table or above.middle - here.middle > _PARAGRAPH_STEP * min(above.height, here.height)
        ):
            lines.append(Line(""))
        lines += _lines_with_tables(row) if is_table else [_line(row)]
        above, is_below_table = here, is_table
    return lines


def _line(row: Row) -> Line:
    words = row.in_order()
    return Line(row.text(), row.anchor.height, (words[0].at, words[-1].at))


def _lines_with_tables(row: Row) -> Iterator[Line]:
    """The tables of a row line by line, then what stands beside them."""
    others = [word for word in row.words if not word.is_table]
    for word in row.words:
        if word.is_table:
            yield from map(Line, word.text.split("\n"))
    if others:
        yield from (Line(""), *(_line(beside) for beside in read_rows(others)))

"""Finds tables of reports on pages: rows of figures below years or periods.

A row is a label and its figures, with two spaces between. It counts only if it has as many figures as the header has
columns: where one is missing nobody knows which, and its values stay text. Reports are set with columns of years:

    (Dollars in millions)
    Years ended December 31,  2022  2021
    Total revenues  66,608  62,286
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cache

from rag_service.domain import column_letters
from rag_service.language.dates import YEAR
from rag_service.language.languages import languages_of, union_of
from rag_service.language.words import fold_words, words
from rag_service.tables.model import Cell, Column, Kind, Table, TableRow
from rag_service.tables.periods import FOOTNOTES, is_period_text, period_year
from rag_service.tables.reading.page_lines import PageLine, Part, is_value
from rag_service.tables.reading.values import decimal_of, find_unit, is_nothing, read_figure

_NOTE = re.compile(r"\(?\d{1,2}(?:\.\d{1,2})?\)?(?:[,;/ -]{1,3}\d{1,2}(?:\.\d{1,2})?)*,?")  # "7", "6, 7"
_MIN_ROWS = 2
_GROUP = re.compile(r"\d([.,])\d{3}(?!\d)")
_MIN_GROUPED = 4  # figures
_CAPTION_LINES, _CAPTION_LENGTH = 3, 200
_LOOK_BACK = 6  # lines above a header in which its unit and its title stand
_PROSE_WORDS = 14
_SENTENCE_WORDS = 6  # of a line that ends with a full stop
_HEADING_WORDS = 14
_OVERLEAF_LINES = 5  # page headers above the rest of a table
_MAXYEARS_APART = 12


@dataclass(kw_only=True)
class _Open:
    """A table while its rows are read."""

    names: tuple[str, ...]  # of the columns of figures
    has_notes: bool = False  # whether numbers of notes stand before them
    caption: tuple[str, ...]
    unit: str
    page: int
    rows: list[tuple[str, int, int, str, tuple[Part, ...]]] = field(default_factory=list)  # label, start, page, section
    path: list[str] = field(default_factory=list)  # sub-headings
    ended: bool = True  # whether a row stands below the last sub-heading
    wrapped: PageLine | None = None  # the line above, which may begin a label
    since: int = 0  # lines of this page before its first row


def find_statements(lines: Sequence[PageLine]) -> Iterator[Table]:
    """Tables whose columns are years or periods."""
    opened = list(_walk(lines))
    shown = Counter(mark for one in opened if (mark := _decimal(one)) is not None)
    likely = shown.most_common(1)[0][0] if shown else None
    number = 0
    for one in opened:
        table = _build(one, _decimal(one) or likely, number)
        if table is not None:
            yield table
            number += 1


def _decimal(table: _Open) -> str | None:
    """The decimal separator of a table. Many figures in thousands with three digits behind one mark are grouped."""
    texts = [part.text for *_, cells in table.rows for part in cells]
    found = decimal_of(texts)
    if found is not None or not table.unit:
        return found
    marks = Counter(mark for text in texts for mark in _GROUP.findall(text))
    return {",": ".", ".": ","}[next(iter(marks))] if len(marks) == 1 and marks.total() >= _MIN_GROUPED else None


def _walk(lines: Sequence[PageLine]) -> Iterator[_Open]:
    table: _Open | None = None
    for at, line in enumerate(lines):
        if table is not None and line.page != lines[at - 1].page:
            yield table
            table = _overleaf(table, line.page)
        if not line.parts:
            continue
        headers = _without_notes(line.parts)
        names = _period_names(lines, at, headers)
        if names is not None:
            if table is not None:
                yield table
            caption, unit = _above(lines, at)
            has_notes = len(headers) < len(line.parts)
            table = _Open(names=names, has_notes=has_notes, caption=caption, unit=unit, page=line.page)
        elif table is not None and not _read_row(table, line, lines[at + 1 : at + 2]):
            yield table
            table = None
    if table is not None:
        yield table


def _without_notes(parts: tuple[Part, ...]) -> tuple[Part, ...]:
    """A header without the column of the notes: "Notes  2024  2023"."""
    return tuple(part for part in parts if not (found := words(part.text)) or not _note_words().issuperset(found))


def _overleaf(table: _Open, page: int) -> _Open:
    """The rest of a table on the next page, if there is one."""
    return _Open(
        names=table.names,
        has_notes=table.has_notes,
        caption=table.caption,
        unit=table.unit,
        page=page,
        path=list(table.path),
        since=1,
    )


def _read_row(table: _Open, line: PageLine, following: Sequence[PageLine]) -> bool:
    """Add a row or a sub-heading; False: the table has ended."""
    count, wanted = line.figures, len(table.names)
    labels = line.parts[: len(line.parts) - count]
    if not count:
        return _read_text(table, line, following)
    values = line.parts[len(labels) :]
    if table.has_notes:
        labels, values = _without_note(labels, values, wanted)
    if len(values) != wanted:
        values = _without_shares(values, wanted)
    if len(labels) != 1 or (table.since and len(values) != wanted):
        table.wrapped = None
        return not table.since
    label, start = labels[0].text, labels[0].start
    if table.wrapped is not None and (label[0].islower() or label[0] in "($"):
        label, start = f"{table.wrapped.text}\n{label}", table.wrapped.start
        table.path = table.path[:-1]
    table.wrapped, table.ended, table.since = None, True, 0
    table.rows.append((label, start, line.page, " › ".join(table.path), values if len(values) == wanted else ()))
    if is_total(label):
        table.path = table.path[:-1]
    return True


def _without_note(
    labels: tuple[Part, ...], values: tuple[Part, ...], wanted: int
) -> tuple[tuple[Part, ...], tuple[Part, ...]]:
    """A row without the number of its note. One that may stand in the place of a missing figure leaves no figures."""
    labels = (*labels[:1], *(label for label in labels[1:] if not _NOTE.fullmatch(label.text)))
    extra = max(0, len(values) - wanted)  # "6, 7" are two figures
    if extra and all(_NOTE.fullmatch(value.text) for value in values[:extra]):
        return labels, values[extra:]
    return labels, () if values and _NOTE.fullmatch(values[0].text) else values


def _without_shares(values: tuple[Part, ...], wanted: int) -> tuple[Part, ...]:
    """Figures without the percentages beside each of them: "2,014,270  62.4%  1,702,059  62.4%"."""
    shares = [value for value in values if value.text.endswith("%")]
    others = tuple(value for value in values if not value.text.endswith("%"))
    return others if len(shares) == len(others) == wanted else values


def _read_text(table: _Open, line: PageLine, following: Sequence[PageLine]) -> bool:
    if table.since:
        table.since += 1
        return len(line.parts) == 1 and table.since <= _OVERLEAF_LINES and not _is_prose(line)
    if len(line.parts) > 1:
        return not table.rows  # below the header: "(Unaudited)  (Unaudited)"; further down another table begins
    below = following[0] if following and following[0].parts else None
    goes_on = below is not None and below.figures == len(table.names) and below.text[:1].islower()
    if _is_prose(line) and not goes_on:
        return False
    table.wrapped = line if goes_on or below is not None else None
    heading = line.text.strip().rstrip(":")
    if len(heading.split()) <= _HEADING_WORDS and not heading.startswith("("):
        table.path = [heading] if table.ended else [*table.path[-2:], heading]
        table.ended = False
    return True


def _is_prose(line: PageLine) -> bool:
    count = len(line.text.split())
    return count > _PROSE_WORDS or (count > _SENTENCE_WORDS and line.text.rstrip().endswith("."))


def _period_names(lines: Sequence[PageLine], at: int, headers: Sequence[Part]) -> tuple[str, ...] | None:
    """The names of the columns that a header of years or dates gives, with the lines above it; None if it is none."""
    line = lines[at]
    if len(YEAR.findall(line.text)) < 2:
        return None
    parts = [
        piece
        for part in headers
        for piece in (part.text.split() if all(map(YEAR.fullmatch, part.text.split())) else [part.text])
    ]
    before = 0 if parts and period_year(parts[0]) else 1
    years = [period_year(part) for part in parts[before:]]
    found = [year for year in years if year]
    if len(found) < 2 or not years[0] or not years[1] or (before and is_value(parts[0])):
        return None
    if any(abs(one - other) > _MAXYEARS_APART for one in found for other in found):
        return None
    others = [part for part, year in zip(parts[before:], years, strict=True) if not year]
    if any(len(part.split()) > 4 or is_value(part) for part in others):
        return None
    names = [FOOTNOTES.sub("", part) for part in parts[before:]]
    places = [place for place, year in enumerate(years) if year]
    above = [parts[0]] if before and is_period_text(parts[0]) else []
    spreads = [above] if above else []
    back = at - 1
    while back >= 0 and at - back <= _LOOK_BACK and lines[back].page == line.page:
        texts = [part.text for part in lines[back].parts]
        back -= 1
        if not texts:
            continue
        if len(places) % len(texts) or not all(map(is_period_text, texts)):
            break
        spreads.append(texts)
    for texts in spreads:
        size = len(places) // len(texts)
        for order, place in enumerate(places):
            names[place] = f"{texts[order // size]} {names[place]}"
    return tuple(names)


def _above(lines: Sequence[PageLine], at: int) -> tuple[tuple[str, ...], str]:
    """(title lines, unit) of the table whose header is at this line."""
    caption: list[str] = []
    unit = find_unit(lines[at].parts[0].text)
    for line in reversed(lines[max(0, at - 2 * _LOOK_BACK) : at]):
        if not line.parts or line.page != lines[at].page or is_period_text(line.parts[0].text):
            continue
        if (line.figures and len(line.parts) > 1) or len(caption) == _CAPTION_LINES:
            break  # the table above
        found = find_unit(line.text)
        unit = unit or found
        if found != line.text.strip().strip("()[]"):
            caption.append(line.text.strip()[:_CAPTION_LENGTH])
            if _is_prose(line):
                break
    return tuple(reversed(caption)), unit


def _build(one: _Open, decimal: str | None, number: int) -> Table | None:
    full = [row for row in one.rows if row[4]]
    if len(full) < _MIN_ROWS:
        return None
    rows = []
    for place, (label, start, page, section, values) in enumerate(one.rows, start=2):
        numbers = [None if is_nothing(part.text) else read_figure(part.text, decimal) for part in values]
        cells = [
            Cell(part.text, fold_words(part.text), value, part.start)
            for part, value in zip(values, numbers, strict=True)
        ]
        first = Cell(label, fold_words(label), None, start)
        empty: list[Cell | None] = [None] * len(one.names)
        rows.append(
            TableRow(
                number=place,
                cells=(first, *(cells or empty)),
                section=section,
                page=page,
                is_total=is_total(label),
            )
        )
    if not any(isinstance(cell.number, Decimal) for row in rows for cell in row.cells[1:] if cell is not None):
        return None
    columns = [Column(letter="A", name="", kind=Kind.TEXT, distinct=len(rows), filled=len(rows))]
    columns += [
        Column(letter=column_letters(place), name=name, kind=Kind.NUMBER, distinct=len(full), filled=len(full))
        for place, name in enumerate(one.names, start=2)
    ]
    return Table(
        number=number,
        sheet=None,
        caption="\n".join(one.caption),
        columns=tuple(columns),
        rows=tuple(rows),
        unit=one.unit,
        by_period=True,
        page=one.page,
    )


def is_total(label: str) -> bool:
    """Whether a row's name begins with a word for totals."""
    found = words(label)
    return bool(found) and found[0] in total_words()


@cache
def _note_words() -> frozenset[str]:
    return union_of(data.tables.notes for data in languages_of(None))


@cache
def total_words() -> frozenset[str]:
    """Folded words that begin the name of a row of totals, in every language."""
    return union_of(data.tables.totals for data in languages_of(None))

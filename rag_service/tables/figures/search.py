"""Finds the figure of a report that a question asks for: the row by its name, the column by its year.

Every word with a meaning has to be accounted for by the row's name, its sub-headings, the table's title or the
document. Of the rows that remain, the one whose name says least besides is meant. Where several say different figures,
those of the primary statements come first, and readings that differ are all told.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cache
from typing import Any
from uuid import UUID

import msgspec

from rag_service.language.languages import languages_of, union_of
from rag_service.language.words import fold, words
from rag_service.store.database import Connection
from rag_service.tables.figures.periods import YEARLY, Period, read_period
from rag_service.tables.figures.question import FigureQuestion, label_words
from rag_service.tables.model import Column
from rag_service.tables.vocabulary import Word

MAX_READINGS = 3
_MAX_ROWS = 3_000
_COVER = 2_000  # characters of a document in which the firm's name stands
_HALF, _WHOLE = 0.25, 1.0  # what a word of a row's name that nobody asked for weighs
_TITLE_LINES, _TITLE_WORDS = 2, 16
_SHORT = 3  # letters of a word that is a firm's name only if it stands alone
_CERTAIN, _NEAR = 0.5, 1.0  # words that a row's name says besides
_IN_BRACKETS = re.compile(r"\([^()]*\)?")
_PREFIX = re.compile(r"^\W+")


@dataclass(frozen=True, kw_only=True)
class FigureRow:
    document_id: UUID
    document: str  # file name, or title
    caption: str
    unit: str
    columns: tuple[Column, ...]
    size: int  # rows of the table
    number: int
    page: int | None
    section: str
    cells: tuple[tuple[str, str, Decimal | None, int] | None, ...]  # text, key, number, start

    @property
    def label(self) -> str:
        return " ".join((self.cells[0] or ("",))[0].split())

    def number_in(self, column: int) -> Decimal | None:
        cell = self.cells[column]
        return None if cell is None else cell[2]


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A figure of a report, and the one it is compared with."""

    row: FigureRow
    column: int
    earlier: int | None = None  # column of the year before, where a change is asked


@dataclass(frozen=True, kw_only=True)
class Found:
    question: FigureQuestion
    figures: tuple[Figure, ...]  # several: readings
    is_certain: bool
    other_years: FigureRow | None = None  # the row that is meant, without the year asked for


async def find_figures(connection: Connection, question: FigureQuestion, document_ids: Iterable[UUID]) -> Found | None:
    """The figures that a question asks for in these documents; None if there is none, or too many fit."""
    ids = list(document_ids)
    rows = await _read_rows(connection, question, ids)
    if not rows:
        return None
    names = await _read_names(connection, {row.document_id for row in rows})
    matched = [(rank, row) for row in rows if (rank := _rank(question, row, names[row.document_id]))]
    if not matched:
        return None
    (nearest, _), row = min(matched, key=lambda one: one[0][0])
    ranked = [
        (rank, figure)
        for (rank, names_move), one in matched
        for figure in _columns(question, one, is_moving=not names_move)
    ]
    found = _choose(question, ranked, nearest)
    if found is None and not ranked and not nearest[0] and question.years:
        return Found(question=question, figures=(), is_certain=False, other_years=row)
    if found is not None and not all(
        _is_of_names(question, one.row, names[one.row.document_id]) for one in found.figures
    ):
        return replace(found, is_certain=False)
    return found


async def _read_rows(connection: Connection, question: FigureQuestion, ids: Sequence[UUID]) -> list[FigureRow]:
    cursor = await connection.execute(
        """SELECT t.id, t.document_id, coalesce(d.file_name, d.title), t.caption, t.unit, t.columns, t.row_count,
                  r.number, r.page, r.section, r.cells
           FROM tables t
           JOIN documents d ON d.id = t.document_id AND (d.expires_at IS NULL OR d.expires_at > now())
           JOIN table_rows r ON r.table_id = t.id AND NOT r.is_heading
           WHERE t.by_period AND t.document_id = ANY(%b::uuid[])
             AND string_to_array(r.cells -> 0 ->> 1, ' ') && %b::text[]
           ORDER BY t.document_id, t.number, r.number LIMIT %b""",
        [ids, question.keys, _MAX_ROWS],
    )
    columns: dict[UUID, tuple[Column, ...]] = {}
    found = []
    for found_row in await cursor.fetchall():
        table_id, document_id, document, caption, unit, stored, size, number, page, section, cells = found_row
        if table_id not in columns:
            columns[table_id] = tuple(msgspec.convert(stored, list[Column]))
        found.append(
            FigureRow(
                document_id=document_id,
                document=document,
                caption=caption,
                unit=unit,
                columns=columns[table_id],
                size=size,
                number=number,
                page=page,
                section=section,
                cells=tuple(None if cell is None else _cell(cell) for cell in cells),
            )
        )
    return found


def _cell(cell: Sequence[Any]) -> tuple[str, str, Decimal | None, int]:
    text, key, number, start = cell
    return text, key, None if number is None else Decimal(str(number)), start


@dataclass(frozen=True, kw_only=True)
class _Names:
    """What a document is called."""

    squashed: str  # file name and title without blanks
    words: frozenset[str]  # of both
    cover: frozenset[str]  # words of its first page

    def hold(self, word: str, *, is_name: bool) -> bool:
        """Whether a word of the question names the document; the first page names only what is written as a name."""
        if word in self.words or word == "s":
            return True
        return (len(word) > _SHORT and word in self.squashed) or (is_name and word in self.cover)


async def _read_names(connection: Connection, ids: Iterable[UUID]) -> Mapping[UUID, _Names]:
    cursor = await connection.execute(
        """SELECT d.id, coalesce(d.file_name, '') || ' ' || d.title, substr(t.text, 1, %b)
           FROM documents d JOIN document_texts t ON t.document_id = d.id WHERE d.id = ANY(%b::uuid[])""",
        [_COVER, list(ids)],
    )
    return {
        document_id: _Names(
            squashed=re.sub(r"[\W_]+", "", fold(name)),
            words=frozenset(words(re.sub(r"[_\-.]+", " ", name))),
            cover=frozenset(words(cover)),
        )
        for document_id, name, cover in await cursor.fetchall()
    }


# -- rows


def _rank(question: FigureQuestion, row: FigureRow, names: _Names) -> tuple[tuple[float, ...], bool] | None:
    """(how near a row is to the question, smaller is nearer; whether "increase" stands in its name).

    None if it leaves words of the question open.
    """
    label, section = label_words(_bare(row.label)) or label_words(row.label), label_words(row.section)
    by_label, used = _match(question, label)
    with_section, used_with = _match(question, (*label, *section))
    used |= {at for at in used_with if at < len(label)}
    if not used:
        return None
    spoken = [(place, question.words[place].text) for place in question.wanted]
    by_document = {place for place, word in spoken if names.hold(word, is_name=word in question.proper)}
    by_table, _ = _match(question, label_words(row.caption.replace(row.unit, " ")))
    light = {place for place in question.wanted if question.words[place].text in _light()}
    if question.wanted - by_label - with_section - by_document - by_table - light:
        return None
    extra = sum(_weight(word.text, names) for place, word in enumerate(label) if place not in used)
    extra += _WHOLE * _adds_change(question, row.section)
    beyond = question.wanted - by_label - by_document - light
    rank = (
        float(extra > _CERTAIN) and extra,
        float(len(beyond - with_section)),
        _distance_from_primary(row),
        float(bool(beyond & with_section)),
        extra,
        -float(row.size),
    )
    return rank, bool(question.moves & by_label)


def _is_of_names(question: FigureQuestion, row: FigureRow, names: _Names) -> bool:
    """Whether the names in the question are those of the document, the table or the row.

    A name that only stands on the first page may be that of a customer, and the figure another's.
    """
    titles = label_words(f"{row.label} {row.section} {row.caption}")
    titled, _ = _match(question, titles)
    spoken = {place: question.words[place].text for place in question.wanted - titled}
    return all(names.hold(word, is_name=False) for word in spoken.values() if word in question.proper - _light())


def _adds_change(question: FigureQuestion, section: str) -> bool:
    """Whether a row is a change of what it names, "Changes in assets and liabilities", and none is asked for."""
    changes = union_of(data.tables.figures.change for data in languages_of(None))
    return not question.moves and not changes.isdisjoint(words(section))


def _distance_from_primary(row: FigureRow) -> float:
    """0 right below the title of a primary statement, less near if the title says more: "… of the guarantors"."""
    lines = row.caption.replace(row.unit, " ").split("\n")[-_TITLE_LINES:]
    if any(line.rstrip().endswith(":") or len(line.split()) > _TITLE_WORDS for line in lines):
        return _WHOLE
    best = _WHOLE
    for line in map(fold, lines):
        title = max((title for title in _statements() if title in line), key=len, default="")
        if title:
            rest = [word.text for word in label_words(line.replace(title, " "))]
            best = min(best, 0.0 if all(word in _light() for word in rest) else _HALF)
    return best


def _bare(label: str) -> str:
    """A name without what stands in brackets and without footnote marks: "Net income (loss)", "(Loss)/income"."""
    return _PREFIX.sub("", _IN_BRACKETS.sub(" ", label)).strip()


def _match(question: FigureQuestion, name: Sequence[Word]) -> tuple[set[int], set[int]]:
    """(places of the question that a name accounts for, places of the name that the question accounts for)."""
    covered: set[int] = set()
    used: set[int] = set()
    keys = [word.key for word in name]
    synonyms = {place for one in question.named for place in one.places}
    for one in question.named:
        fitting = [expression for expression in one.expressions if set(expression) <= set(keys)]
        if fitting:
            covered.update(one.places)
            used.update(at for at, key in enumerate(keys) if any(key in expression for expression in fitting))
    for place in (question.wanted - synonyms) | question.moves:
        for at, word in enumerate(name):
            if question.words[place].forms & word.forms:
                used.add(at)
                covered.add(place)
    return covered, used


def _weight(word: str, names: _Names) -> float:
    """What a word of a row's name weighs that the question does not say."""
    if word in _light() or names.hold(word, is_name=False):
        return 0.0
    is_half = any(word in data.tables.figures.half_light for data in languages_of(None))
    return _HALF if is_half else _WHOLE


@cache
def _light() -> frozenset[str]:
    return union_of(data.tables.figures.light for data in languages_of(None))


@cache
def _statements() -> tuple[str, ...]:
    return tuple(fold(title) for data in languages_of(None) for title in data.tables.figures.statements)


# -- columns


def _columns(question: FigureQuestion, row: FigureRow, *, is_moving: bool) -> Iterator[Figure]:
    """The columns of the years asked for, with a figure; the latest where none is."""
    periods = {place: one for place, column in enumerate(row.columns) if (one := read_period(column.name))}
    if question.duration is not None:
        periods = {place: one for place, one in periods.items() if one.duration in (None, question.duration)}
    if question.years:
        year, months, days = max(question.years), question.months, question.days
        wanted = [place for place, one in periods.items() if one.is_asked(year, months, days)]
    else:
        latest = max((one.ends for one in periods.values()), default=None)
        wanted = [place for place, one in periods.items() if one.ends == latest]
    if not (len(question.years) > 1 or (question.moves and is_moving)):
        yield from (Figure(row=row, column=place) for place in wanted)
        return
    apart = max(question.years) - min(question.years) if len(question.years) > 1 else 1
    for place in wanted:
        for other, one in periods.items():
            if periods[place].follows(one, years=apart):
                yield Figure(row=row, column=place, earlier=other)


# -- choice


def _choose(
    question: FigureQuestion, ranked: Sequence[tuple[tuple[float, ...], Figure]], best_row: tuple[float, ...]
) -> Found | None:
    filled = [(rank, one) for rank, one in ranked if one.row.number_in(one.column) is not None]
    nearest = min((rank[:-1] for rank, _ in filled), default=None)
    if nearest is None or nearest[0] > (_CERTAIN if question.counts else _NEAR) or best_row[:-1] < nearest:
        return None  # the row that is meant has no certain figures
    best = [one for rank, one in sorted(filled, key=lambda one: one[0]) if rank[:-1] == nearest]
    if question.duration is None and any(_period(one).duration == YEARLY for one in best):
        best = [one for one in best if _period(one).duration in (None, YEARLY)]  # "in 2023" is the whole of it
    readings: dict[tuple[Any, ...], Figure] = {}
    for one in best:
        readings.setdefault(_value(one), one)
    if len(readings) > MAX_READINGS:
        return None
    figures = tuple(readings.values())
    early = bool(question.years) and not question.months and any(_period(one).may_be_named_otherwise for one in figures)
    return Found(question=question, figures=figures, is_certain=len(figures) == 1 and not nearest[0] and not early)


def _period(one: Figure) -> Period:
    found = read_period(one.row.columns[one.column].name)
    return found or Period(year=0)


def _value(one: Figure) -> tuple[Any, ...]:
    """What makes two figures the same: the amount, whatever its sign; reports of two years state the same figure."""
    earlier = None if one.earlier is None else one.row.number_in(one.earlier)
    number = one.row.number_in(one.column)
    return abs(number or 0), None if earlier is None else abs(earlier)

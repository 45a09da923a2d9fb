"""Questions over several columns of one table: months added up, the best month, two columns of a row compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from uuid import UUID

from rag_service.language.languages import TableWords, load_language
from rag_service.store.database import Connection
from rag_service.tables.asking.execute import UsedRow, execute
from rag_service.tables.asking.phrases import Phrases
from rag_service.tables.asking.planning.plans import Operation, Plan, Values, key_column
from rag_service.tables.asking.planning.question import Question
from rag_service.tables.asking.planning.several_columns import SIGNS, SeveralColumns, read_several_columns
from rag_service.tables.model import Column, StoredTable
from rag_service.tables.sentences import (
    CitedCells,
    Computed,
    Sentence,
    rounded,
    shortened,
)

_MAX_READ = 2_000  # rows
_MAX_NAMED = 10  # rows named in an answer
_NEAR = 2  # words between "below" and the column
_MIN_PERIODS = 3  # columns of months or years among which one is the best


@dataclass(frozen=True, kw_only=True)
class _Line:
    """A row with its figures in the columns of the operation."""

    row: UsedRow
    values: tuple[Decimal | None, ...]


async def compute_several_columns(
    connection: Connection,
    question: Question,
    tables: Sequence[StoredTable],
    values: Mapping[UUID, Values],
    *,
    best: UUID | None,
) -> Computed | None:
    """The answer over columns of the table that accounts for the question; None if none or several do.

    Where a word was not understood, the table has to be in the document of the best passage, `best`, which is None if
    that holds no rows.
    """
    found = [one for table in tables for one in read_several_columns(question, table, values.get(table.id, {}))]
    found = [one for one in found if not one.is_doubtful] or [one for one in found if one.table.document_id == best]
    score = max((one.score for one in found), default=0)
    chosen = [one for one in found if one.score == score]
    if len(chosen) != 1:
        return None
    (across,) = chosen
    lines = await _lines(connection, across)
    return None if not lines else _Writer(across, lines, load_language(question.language).tables).write()


async def _lines(connection: Connection, across: SeveralColumns) -> list[_Line]:
    rows: dict[int, UsedRow] = {}
    figures: dict[int, list[Decimal | None]] = {}
    for column in across.columns:
        plan = Plan(
            table=across.table, operation=Operation.LOOKUP, column=column, filters=across.filters, limit=_MAX_READ
        )
        result = await execute(connection, plan)
        if result.count > _MAX_READ:
            return []
        for row in result.rows:
            rows[row.number] = row
            figures.setdefault(row.number, []).append(row.value)
    return [_Line(row=rows[number], values=tuple(figures[number])) for number in sorted(rows)]


class _Writer(Phrases):
    def __init__(self, across: SeveralColumns, lines: Sequence[_Line], data: TableWords):
        super().__init__(across.table, across.filters, data)
        self._across = across
        self._columns = [across.table.columns[place] for place in across.columns]
        self._lines = lines

    def write(self) -> Computed | None:
        kind = self._across.kind
        if kind in SIGNS:
            sentence = self._rows()
        elif kind in ("sum", "mean"):
            sentence = self._total()
        elif kind in ("maximum", "minimum"):
            sentence = self._best()
        else:
            sentence = self._difference()
        if sentence is None:
            return None
        warning = self.text["doubtful"] if self._across.is_doubtful else ""
        return Computed(sentences=((warning,), sentence) if warning else (sentence,), warning=warning)

    def _total(self) -> Sentence | None:
        held = [value for line in self._lines for value in line.values if value is not None]
        if not held or len(held) < len(self._lines) * len(self._columns):
            return None  # a month without a figure
        value = sum(held, Decimal(0))
        if self._across.kind == "mean":
            value = rounded(value / len(held))
        name = f"{self._columns[0].name} – {self._columns[-1].name}"
        sentence = self.text[self._across.kind].format(column=name, where=self.where(), value=self._value(value))
        function = "AVERAGE" if self._across.kind == "mean" else "SUM"
        return (
            sentence + self.rows(len(self._lines)),
            self._cite(self._lines, f"{function}({self._cells(self._lines)}) = {value}"),
        )

    def _best(self) -> Sentence | None:
        totals = []
        for place, column in enumerate(self._columns):
            held = [value for line in self._lines if (value := line.values[place]) is not None]
            totals += [(column.name, sum(held, Decimal(0)))] if held else []
        if not totals:
            return None
        best = (max if self._across.kind == "maximum" else min)(value for _, value in totals)
        names = ", ".join(name for name, value in totals if value == best)
        sentence = self.text[self._across.kind].format(
            column=self._subject(), where="", value=self._value(best), names=names
        )
        function = "MAX" if self._across.kind == "maximum" else "MIN"
        return (sentence, self._cite(self._lines, f"{function}({self._cells(self._lines)}) = {best}"))

    def _difference(self) -> Sentence | None:
        told = [(line, *self._two(line)) for line in self._lines if None not in line.values]
        if not told:
            return None
        if self._across.kind == "difference":
            if len(self._lines) != 1:
                return None
            ((line, first, second),) = told
            values = sorted(((first, self._columns[0]), (second, self._columns[1])), key=lambda one: -one[0])
            (high, more), (low, less) = values
            names = self.text["and"].join(f"{column.name} ({self._value(value)})" for value, column in values)
            sentence = self.text["difference"].format(
                column=self.name(line.row), names=names, value=self._value(high - low)
            )
            number = line.row.number
            formula = f"{more.letter}{number} − {less.letter}{number} = {high - low}"
            return (sentence, self._cite([line], formula))
        choose = max if self._across.kind == "widest" else min
        best = choose(abs(first - second) for _, first, second in told)
        chosen = [line for line, first, second in told if abs(first - second) == best][:_MAX_NAMED]
        sentence = self.text["maximum" if self._across.kind == "widest" else "minimum"].format(
            column=" − ".join(column.name for column in self._larger_first(chosen[0])),
            where=self.where(),
            value=self._value(best),
            names=", ".join(self.name(line.row) for line in chosen),
        )
        return (sentence, self._cite(chosen, f"{best} ({self._cells(chosen)})"))

    def _rows(self) -> Sentence | None:
        sign, holds = SIGNS[self._across.kind]
        told = [line for line in self._lines if None not in line.values]
        found = [line for line in told if holds(*self._two(line))]
        condition = f"{self._columns[0].name} {sign} {self._columns[1].name}"
        where = self.where(condition)
        if not told or (len(found) > _MAX_NAMED and not self._across.counts):
            return None
        formula = f"{condition}: {self._cells(told)}"
        if not found:
            return (self.text["nothing"].format(where=where), self._cite(told, formula))
        if self._across.counts:
            return (self.text["count"].format(where=where, value=len(found)), self._cite(told, formula))
        before, _, after = self.text["list"].partition("{names}")
        parts: list[str | CitedCells] = [before.format(where=where)]
        for place, line in enumerate(found):
            shown = " / ".join(map(self._value, self._two(line)))
            parts += [
                ("; " if place else "") + f"{self.name(line.row)} ({shown})",
                self._cite([line], f"{condition}: {self._cells([line])}"),
            ]
        return (*parts, after)

    def _larger_first(self, line: _Line) -> list[Column]:
        first, second = self._two(line)
        return self._columns if first >= second else self._columns[::-1]

    def _two(self, line: _Line) -> tuple[Decimal, Decimal]:
        first, second = line.values
        return first or Decimal(0), second or Decimal(0)

    def _subject(self) -> str:
        shown = [name for one in self.filters for name in one.shown]
        return " / ".join(shown) or self.table.sheet or self.table.document

    def _value(self, value: Decimal) -> str:
        return self.amount(value, self._columns[0])

    def _cells(self, lines: Sequence[_Line]) -> str:
        first, last = self._columns[0].letter, self._columns[-1].letter
        numbers = sorted({line.row.number for line in lines})
        return shortened(",".join(f"{first}{number}:{last}{number}" for number in numbers), 120)

    def _cite(self, lines: Sequence[_Line], formula: str) -> CitedCells:
        first, last = self._columns[0].letter, self._columns[-1].letter
        cells = f"{first}{lines[0].row.number}:{last}{lines[-1].row.number}"
        places = {key_column(self.table), *self._across.columns}
        return self.cite([line.row for line in lines], places, cells, formula)

"""Computes and tells what a question asks of several columns: their total, their mean, their difference in a row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from uuid import UUID

from rag_service.language.languages import TableWords, load_language
from rag_service.store.session import Connection
from rag_service.tables.asking.execute import UsedRow, execute
from rag_service.tables.asking.phrases import Phrases
from rag_service.tables.asking.planning.plans import Operation, Plan, Values, key_column
from rag_service.tables.asking.planning.question import Question
from rag_service.tables.asking.planning.several_columns import SeveralColumns, read_several_columns
from rag_service.tables.model import StoredTable
from rag_service.tables.sentences import CitedCells, Computed, Sentence, rounded, shortened

_MAX_READ = 2_000  # rows
_MAX_CELLS = 120  # characters of a formula


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
    (asked,) = chosen
    lines = await _lines(connection, asked)
    return None if not lines else _Writer(asked, lines, load_language(question.language).tables).write()


async def _lines(connection: Connection, asked: SeveralColumns) -> list[_Line]:
    rows: dict[int, UsedRow] = {}
    figures: dict[int, list[Decimal | None]] = {}
    for column in asked.columns:
        plan = Plan(
            table=asked.table, operation=Operation.LOOKUP, column=column, filters=asked.filters, limit=_MAX_READ
        )
        result = await execute(connection, plan)
        if result.count > _MAX_READ:
            return []
        for row in result.rows:
            rows[row.number] = row
            figures.setdefault(row.number, []).append(row.value)
    return [_Line(row=rows[number], values=tuple(figures[number])) for number in sorted(rows)]


class _Writer(Phrases):
    def __init__(self, asked: SeveralColumns, lines: Sequence[_Line], data: TableWords):
        super().__init__(asked.table, asked.filters, data)
        self._asked = asked
        self._columns = [asked.table.columns[place] for place in asked.columns]
        self._lines = lines

    def write(self) -> Computed | None:
        sentence = self._difference() if self._asked.operation is Operation.DIFFERENCE else self._total()
        if sentence is None:
            return None
        warning = self.text["doubtful"] if self._asked.is_doubtful else ""
        return Computed(sentences=((warning,), sentence) if warning else (sentence,), warning=warning)

    def _total(self) -> Sentence | None:
        held = [value for line in self._lines for value in line.values if value is not None]
        if len(held) < len(self._lines) * len(self._columns):
            return None  # a month without a figure
        value, function = sum(held, Decimal(0)), "SUM"
        if self._asked.operation is Operation.MEAN:
            value, function = rounded(value / len(held)), "AVERAGE"
        sentence = self.text[self._asked.operation.value].format(
            column=f"{self._columns[0].name} – {self._columns[-1].name}",
            where=self.where(),
            value=self.amount(value, self._columns[0]),
        )
        return (sentence + self.rows(len(self._lines)), self._cite(f"{function}({self._cells()}) = {value}"))

    def _difference(self) -> Sentence | None:
        if len(self._lines) != 1 or None in self._lines[0].values:
            return None
        row = self._lines[0].row
        values = zip((value or Decimal(0) for value in self._lines[0].values), self._columns, strict=True)
        (high, more), (low, less) = sorted(values, key=lambda one: -one[0])
        names = [f"{column.name} ({self.amount(value, column)})" for value, column in ((high, more), (low, less))]
        sentence = self.text["difference"].format(
            column=self.name(row), names=self.text["and"].join(names), value=self.amount(high - low, more)
        )
        return (sentence, self._cite(f"{more.letter}{row.number} − {less.letter}{row.number} = {high - low}"))

    def _cells(self) -> str:
        first, last = self._columns[0].letter, self._columns[-1].letter
        numbers = [line.row.number for line in self._lines]
        return shortened(",".join(f"{first}{number}:{last}{number}" for number in numbers), _MAX_CELLS)

    def _cite(self, formula: str) -> CitedCells:
        rows = [line.row for line in self._lines]
        cells = f"{self._columns[0].letter}{rows[0].number}:{self._columns[-1].letter}{rows[-1].number}"
        return self.cite(rows, {key_column(self.table), *self._asked.columns}, cells, formula)

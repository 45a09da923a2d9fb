"""What computed sentences consist of: conditions, names of rows, values with their units, and the cells cited."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import date
from decimal import Decimal

from rag_service.domain import Location
from rag_service.language.languages import TableWords
from rag_service.tables.asking.execute import UsedRow
from rag_service.tables.asking.planning.plans import Filter, Relation, key_column
from rag_service.tables.asking.planning.question import Comparison
from rag_service.tables.model import Column, Kind, StoredTable
from rag_service.tables.sentences import CitedCells, shortened, write_amount, write_duration, write_number

_SIGNS = {
    Comparison.GREATER: ">",
    Comparison.GREATER_OR_EQUAL: "≥",
    Comparison.LESS: "<",
    Comparison.LESS_OR_EQUAL: "≤",
}
_RELATIONS = {
    Relation.NEXT: "next_row",
    Relation.PREVIOUS: "previous_row",
    Relation.SAME: "same",
    Relation.OTHER: "other_than",
}
_MAX_QUOTE = 1_000  # characters; the place names all cells all the same
MAX_FORMULA = 300


class Phrases:
    """Parts of sentences about one table, in the language of the question."""

    def __init__(self, table: StoredTable, filters: Sequence[Filter], data: TableWords):
        self.table = table
        self.asked: int | None = None  # the column that "which" asks for, beside the one that names a row
        self.filters = filters
        self.text = data.answers
        self._data = data

    def where(self, *more: str) -> str:
        """The conditions of the rows; `more` are further ones, as written."""
        conditions = [*map(self._condition, self.filters), *more]
        return self.text["where"].format(conditions=self.text["and"].join(conditions)) if conditions else ""

    def _condition(self, one: Filter) -> str:
        column = self.table.columns[one.column]
        if one.comparison is Comparison.EMPTY and not one.values:
            return self.text["empty" if one.relation is None else "filled"].format(column=column.name)
        if one.other is not None and one.relation is None:
            return f"{column.name} {_SIGNS.get(one.comparison, '=')} {self.table.columns[one.other].name}"
        if one.relation is not None:
            value = self._condition(replace(one, relation=None))
            value = " / ".join(one.shown) or value.partition(" = ")[2] or value
            named = column if one.shared is None else self.table.columns[one.shared]
            return self.text[_RELATIONS[one.relation]].format(column=named.name, value=value)
        if one.shown:
            return f"{column.name} = {' / '.join(one.shown)}"
        if one.comparison is Comparison.EMPTY and not column.kind.is_figure:
            return self.text["empty"].format(column=column.name)
        values = [
            value
            if isinstance(value, str)
            else self.amount(value, column)
            if column.kind.is_figure
            else self.written(value, column.kind)
            for value in one.values
        ]
        if one.comparison is Comparison.BETWEEN:
            return self.text["between"].format(column=column.name, low=values[0], high=values[1])
        return f"{column.name} {_SIGNS.get(one.comparison, '=')} {values[0]}"

    def name(self, row: UsedRow, *, but: int | None = None) -> str:
        """What names a row; behind a code, which says little to a reader, its first text, unless it is column `but`."""
        name = row.text(key_column(self.table)) or f"{self.table.columns[0].letter}{row.number}"
        beside = dict.fromkeys([*row.description(self.table), *([] if self.asked is None else [self.asked])])
        return ", ".join((name, *(row.text(place) for place in beside if place != but)))

    def amount(self, value: Decimal, column: Column, *, cell: str = "") -> str:
        """A value of a column with its unit and scale."""
        return write_amount(value, column, self._data, cell=cell) + self.scale(column)

    def scale(self, column: Column) -> str:
        """What the table says about all its figures: " (in millions)"."""
        return f" ({self.table.unit})" if self.table.unit and column.kind in (Kind.NUMBER, Kind.CURRENCY) else ""

    def number(self, value: Decimal | int) -> str:
        return write_number(Decimal(value), self._data)

    def written(self, value: Decimal, kind: Kind) -> str:
        """The number of a column of this kind."""
        if kind is Kind.DURATION:
            return write_duration(value)
        return date.fromordinal(int(value)).isoformat() if kind is Kind.DATE else self.number(value)

    def rows(self, count: int) -> str:
        """In how many rows, if there are several."""
        return self.text["rows"].format(count=self.number(count)) if count > 1 else ""

    def cite(self, rows: Sequence[UsedRow], places: Iterable[int], cells: str, formula: str) -> CitedCells:
        """The cells of rows in some columns; of a long table, which is not in the stored text, those of the first."""
        first, used = rows[0], sorted(places)
        found = [cell for row in rows for place in used if (cell := row.cells[place]) is not None]
        spans = [(at, at + len(text)) for text, at in found if at is not None]
        texts = (f"{self.table.columns[place].name}: {first.text(place)}" for place in used if first.cells[place])
        is_stored = len(spans) == len(found)
        return cite_cells(
            self.table,
            cells,
            row=first.number,
            page=first.page,
            span=(min(spans)[0], max(end for _, end in spans)) if is_stored else None,
            text=" | ".join(texts),
            formula=formula,
            is_cut=len(rows) > 1,
        )


def cite_cells(
    table: StoredTable,
    cells: str,
    *,
    row: int,
    page: int | None,
    span: tuple[int, int] | None,
    formula: str,
    text: str = "",
    is_cut: bool = True,
) -> CitedCells:
    """A citation of cells; those of a page have no names there.

    Args:
        span: where they begin and end in the stored text.
        text: what they say, where the stored text does not hold them.
        is_cut: the quote may end before the cells do.
    """
    start, end = span or (None, None)
    if start is not None and end is not None and is_cut:
        end = min(end, start + _MAX_QUOTE)
    return CitedCells(
        document_id=table.document_id,
        start=start,
        end=end,
        location=Location(sheet=table.sheet, cell=cells, row=row) if page is None else Location(page=page),
        formula=shortened(formula, MAX_FORMULA),
        text=text if start is None else "",
    )

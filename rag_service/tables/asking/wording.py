"""The sentences of a computed answer: the value with its unit, the operation in words, and the cells behind it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from decimal import Decimal

from rag_service.domain import Location
from rag_service.language.languages import TableWords, load_language
from rag_service.tables.asking.execute import MAX_GROUPS, MAX_ROWS, Group, Result, UsedRow
from rag_service.tables.asking.planning.plans import Filter, Operation
from rag_service.tables.asking.planning.question import Comparison
from rag_service.tables.model import Column, Kind, RowNumbers, write_cells
from rag_service.tables.sentences import CitedCells, Computed, Sentence, rounded, shortened, write_amount, write_number

_FORMULAS = {
    Operation.SUM: "SUM",
    Operation.MEAN: "AVERAGE",
    Operation.MEDIAN: "MEDIAN",
    Operation.MAXIMUM: "MAX",
    Operation.MINIMUM: "MIN",
    Operation.COUNT: "COUNTA",
    Operation.DISTINCT: "COUNTUNIQUE",
}
_SIGNS = {
    Comparison.GREATER: ">",
    Comparison.GREATER_OR_EQUAL: "≥",
    Comparison.LESS: "<",
    Comparison.LESS_OR_EQUAL: "≤",
}
_MAX_QUOTE = 1_000  # characters; the place names all cells all the same
_MAX_FORMULA, _MAX_CELLS = 300, 120


def write_answer(results: Sequence[Result], language: str, *, is_proposed: bool = False) -> Computed | None:
    """The answer in the question's language; None if there is nothing to say.

    Args:
        is_proposed: a chat model chose the operation, which the answer tells.
    """
    data = load_language(language).tables
    sentences: list[Sentence] = []
    warnings: list[str] = []
    for result in results:
        writer = _Writer(result, data)
        found = writer.sentence()
        if found is None:
            return None
        if len(results) > 1 and len({one.plan.table.id for one in results}) > 1:
            found = (f"{result.plan.table.document}: ", *found)
        sentences += [found, *writer.remarks()]
        warnings += writer.warnings()
    is_doubtful = any(result.plan.is_doubtful for result in results)
    are_readings = len(results) > 1 and not all(result.plan.is_part for result in results)
    if remark := "proposed" if is_proposed else "doubtful" if is_doubtful else "readings" if are_readings else "":
        sentences.insert(0, (data.answers[remark],))
        warnings.append(data.answers[remark])
    return Computed(sentences=tuple(sentences), warning=" ".join(warnings))


class _Writer:
    def __init__(self, result: Result, data: TableWords):
        self._result = result
        self._plan = result.plan
        self._table = result.plan.table
        self._data = data
        self._text = data.answers

    def sentence(self) -> Sentence | None:
        operation = self._plan.operation
        if operation is Operation.MIXED:
            column = self._column()
            names = ", ".join(column.mixed)
            return (self._text["mixed"].format(column=column.name, currencies=names),)
        if not self._result.count and operation is not Operation.COUNT:
            return None
        match operation:
            case Operation.LOOKUP:
                return self._lookup()
            case Operation.MAXIMUM | Operation.MINIMUM:
                return self._extreme()
            case Operation.DIFFERENCE | Operation.RATIO:
                return self._pair()
        return self._grouped() if self._plan.group is not None else self._total()

    def remarks(self) -> list[Sentence]:
        """Rows that were left out, and why."""
        result = self._result
        found: list[Sentence] = []
        if result.alike > len(result.rows):
            found.append((self._text["alike"].format(count=self._number(Decimal(result.alike - len(result.rows)))),))
        if result.left_out.count:
            cells = self._cells(self._plan.column, result.left_out)
            name = self._column().name
            found.append((self._text["left_out"].format(column=name, cells=cells),))
        if result.unnamed.count and self._plan.operation is Operation.COUNT:
            cells = self._cells(0, result.unnamed)
            found.append((self._text["unnamed"].format(cells=cells),))
        return found

    def warnings(self) -> list[str]:
        if self._plan.operation is Operation.MIXED:
            return [self._text["readings"]]
        return [self._text["unnamed"]] if self._result.unnamed.count and self._plan.operation is Operation.COUNT else []

    # -- each operation

    def _lookup(self) -> Sentence | None:
        rows = [row for row in self._result.rows if row.cells[self._plan.column or 0] is not None]
        column, key = self._plan.column or 0, self._plan.key
        if not rows or self._result.count > MAX_ROWS:
            return None
        if column == key:
            before, _, after = self._text["list"].partition("{names}")
            return (before.format(where=self._where()), *self._named(rows), after)
        if len(rows) == 1:
            (row,) = rows
            sentence = self._text["lookup"].format(
                column=self._column().name, names=self._name(row), value=self._cell(row, column)
            )
            return (sentence, self._cite_row(row, write_cells(self._column().letter, [row.number])))
        before, _, after = self._text["lookup"].partition("{names}")
        named: list[str | CitedCells] = [before.format(column=self._column().name)]
        for place, row in enumerate(rows):
            named.append(("; " if place else "") + f"{self._name(row)}: {self._cell(row, column)}")
            named.append(self._cite_row(row, write_cells(self._column().letter, [row.number])))
        return tuple(named)

    def _extreme(self) -> Sentence | None:
        if not self._result.rows or self._result.value is None:
            return None
        column, operation = self._plan.column or 0, self._plan.operation
        several = self._plan.limit is not None
        template = self._text[f"top_{operation.value}" if several else operation.value]
        before, _, after = template.partition("{names}")
        values = {
            "column": self._column().name,
            "where": self._where(),
            "value": self._cell(self._result.rows[0], column),
            "count": str(len(self._result.rows)),
        }
        named = self._named(self._result.rows, with_value=several)
        return (before.format(**values), *named, after.format(**values))

    def _pair(self) -> Sentence | None:
        if len(self._result.groups) != 2:
            return None
        wanted = next(one for one in self._plan.filters if one.column == self._plan.group)
        groups = [group for name in wanted.shown for group in self._result.groups if group.name == name]
        values = [group.value for group in groups if group.value is not None]
        if len(values) != 2:
            return None
        if self._plan.operation is Operation.DIFFERENCE:
            if values[0] < values[1]:
                groups, values = groups[::-1], values[::-1]
            value, sign = values[0] - values[1], "−"
        elif values[1]:
            value, sign = rounded(values[0] / values[1]), "÷"
        else:
            return None
        shown = self._value(value) if sign == "−" else self._number(value)
        formula = f"{self._sum(groups[0])} {sign} {self._sum(groups[1])} = {self._number(value)}"
        names = [f"{group.name} ({self._value(one)})" for group, one in zip(groups, values, strict=True)]
        sentence = self._text[self._plan.operation.value].format(
            column=self._column().name, names=self._text["and"].join(names), value=shown
        )
        return (sentence, self._cite_all(formula))

    def _total(self) -> Sentence | None:
        operation, value = self._plan.operation, self._result.value
        if operation is Operation.COUNT:
            name = "count" if self._plan.filters else "count_all"
            if not self._result.count:
                return (self._text["nothing"].format(where=self._where()),)
            sentence = self._text[name].format(value=self._number(Decimal(self._result.count)), where=self._where())
            return (sentence, self._cite_all(self._formula(self._plan.key)))
        if value is None:
            return None
        if operation is Operation.DISTINCT:
            names = ", ".join(group.name for group in self._result.groups)
            names += ", …" if value > len(self._result.groups) else ""
            sentence = self._text["distinct"].format(
                value=self._number(value), column=self._column().name, where=self._where(), names=names
            )
            return (sentence, self._cite_all(self._formula(self._plan.column or 0)))
        if operation is Operation.SHARE:
            if not self._result.whole:
                return None
            shown = self._number(rounded(100 * value / self._result.whole)) + " %"
            formula = f"{self._number(value)} ÷ {self._number(self._result.whole)} = {shown}"
        else:
            shown = self._value(rounded(value) if operation in (Operation.MEAN, Operation.MEDIAN) else value)
            formula = self._formula(self._plan.column or 0)
        sentence = self._text[operation.value].format(column=self._column().name, where=self._where(), value=shown)
        several = operation is not Operation.SHARE and self._result.used.count > 1
        rows = self._text["rows"].format(count=self._number(Decimal(self._result.used.count))) if several else ""
        return (sentence + rows, self._cite_all(formula))

    def _grouped(self) -> Sentence | None:
        groups = [group for group in self._result.groups if group.value is not None]
        if not groups or len(self._result.groups) >= MAX_GROUPS:
            return None
        operation = self._plan.operation
        if self._plan.best is not None:
            if operation is Operation.COUNT and all(group.value == 1 for group in groups):
                return None  # each value stands in one row: no row count was asked for
            groups = [group for group in groups if group.value == groups[0].value]
        words = {Operation.COUNT: "of_count", Operation.MEAN: "of_mean"}.get(operation, "of_sum")
        named = self._text[words].format(column=self._column().name)
        group = self._table.columns[self._plan.group or 0].name
        is_count = operation is Operation.COUNT
        listed = "; ".join(
            f"{one.name}: {self._number(one.value) if is_count else self._value(rounded(one.value))}"
            for one in groups
            if one.value is not None
        )
        template = self._text["group" if self._plan.best is None else f"best_{self._plan.best.value}"]
        sentence = template.format(operation=named, group=group, where=self._where(), names=listed)
        name = _FORMULAS.get(operation, "SUM")
        column = self._plan.key if is_count else self._plan.column or 0
        formula = "; ".join(f"{one.name}: {name}({self._cells(column, one.rows)})" for one in groups)
        return (sentence[:1].upper() + sentence[1:], self._cite_all(shortened(formula, _MAX_FORMULA)))

    # -- parts

    def _column(self) -> Column:
        return self._table.columns[self._plan.column if self._plan.column is not None else self._plan.key]

    def _name(self, row: UsedRow) -> str:
        """What names a row; behind a code, which says little to a reader, its first text."""
        name = row.text(self._plan.key) or f"{self._table.columns[0].letter}{row.number}"
        return ", ".join((name, *map(row.text, self._described(row))))

    def _described(self, row: UsedRow) -> list[int]:
        return [place for place in row.description(self._plan) if place != self._plan.column]

    def _named(self, rows: Sequence[UsedRow], *, with_value: bool = False) -> list[str | CitedCells]:
        column = self._plan.column or 0
        named: list[str | CitedCells] = []
        for place, row in enumerate(rows):
            value = f" ({self._cell(row, column)})" if with_value else ""
            named.append(("; " if place else "") + self._name(row) + value)
            formula = write_cells(self._table.columns[column].letter, [row.number])
            if self._plan.operation in _FORMULAS and not with_value:
                formula = self._formula(column)
            named.append(self._cite_row(row, formula))
        return named

    def _cell(self, row: UsedRow, column: int) -> str:
        """A cell: figures as the language writes them, with their unit; numbers that may be names as they are."""
        text, held = row.text(column), self._table.columns[column]
        is_figure = held.kind.is_figure and row.value is not None
        if is_figure and row.value is not None and not (text.isdigit() and held.kind is Kind.NUMBER):
            return self._with_unit(row.value, held, cell=text)
        unit = f" {held.unit}" if is_figure and held.unit else ""
        return text + unit + self._scale(held)

    def _sum(self, group: Group) -> str:
        cells = self._cells(self._plan.column, group.rows)
        return cells if group.rows.count == 1 else f"SUM({cells})"

    def _formula(self, column: int) -> str:
        cells = self._result.used.write(self._table.columns[column].letter)
        value = self._result.value
        if self._plan.operation is Operation.COUNT:
            value = Decimal(self._result.count)
        elif value is not None and self._plan.operation in (Operation.MEAN, Operation.MEDIAN):
            value = rounded(value)
        kind = self._table.columns[column].kind
        is_date = kind is Kind.DATE and self._plan.operation in (Operation.MAXIMUM, Operation.MINIMUM)
        shown = "" if value is None else self._day(value) if is_date else self._number(value)
        return f"{_FORMULAS[self._plan.operation]}({shortened(cells, _MAX_FORMULA)}) = {shown}"

    def _cells(self, column: int | None, rows: RowNumbers) -> str:
        return shortened(rows.write(self._table.columns[column or 0].letter), _MAX_CELLS)

    def _where(self) -> str:
        if not self._plan.filters:
            return ""
        conditions = self._text["and"].join(map(self._condition, self._plan.filters))
        return self._text["where"].format(conditions=conditions)

    def _condition(self, one: Filter) -> str:
        column = self._table.columns[one.column]
        if one.shown:
            return f"{column.name} = {' / '.join(one.shown)}"
        if one.comparison is Comparison.EMPTY and not column.kind.is_figure:
            return self._text["empty"].format(column=column.name)
        is_date = column.kind is Kind.DATE
        values = [
            str(value) if isinstance(value, str) else self._day(value) if is_date else self._with_unit(value, column)
            for value in one.values
        ]
        if one.comparison is Comparison.BETWEEN:
            return self._text["between"].format(column=column.name, low=values[0], high=values[1])
        return f"{column.name} {_SIGNS.get(one.comparison, '=')} {values[0]}"

    def _value(self, value: Decimal) -> str:
        return self._with_unit(value, self._column())

    def _with_unit(self, value: Decimal, column: Column, *, cell: str = "") -> str:
        return write_amount(value, column, self._data, cell=cell) + self._scale(column)

    def _scale(self, column: Column) -> str:
        """What the table says about all its figures: " (in millions)"."""
        return f" ({self._table.unit})" if self._table.unit and column.kind in (Kind.NUMBER, Kind.CURRENCY) else ""

    def _day(self, value: Decimal) -> str:
        return date.fromordinal(int(value)).isoformat()

    def _number(self, value: Decimal) -> str:
        return write_number(value, self._data)

    # -- proof

    def _cite_row(self, row: UsedRow, formula: str) -> CitedCells:
        """The cells of a row that name it, filter it and hold its value."""
        column = self._plan.column if self._plan.column is not None else self._plan.key
        places = {column, self._plan.key, *self._described(row), *(one.column for one in self._plan.filters)}
        found = [(place, cell) for place in sorted(places) if (cell := row.cells[place]) is not None]
        ranges = [(at, at + len(text)) for _, (text, at) in found if at is not None]
        is_stored = len(ranges) == len(found)
        texts = [f"{self._table.columns[place].name}: {text}" for place, (text, _) in found]
        letter = self._table.columns[column].letter
        return CitedCells(
            document_id=self._table.document_id,
            start=min(start for start, _ in ranges) if is_stored else None,
            end=max(end for _, end in ranges) if is_stored else None,
            location=self._place(f"{letter}{row.number}", row.number, row.page),
            formula=formula,
            text="" if is_stored else " | ".join(texts),
        )

    def _cite_all(self, formula: str) -> CitedCells:
        """The range of the cells used."""
        letter = self._column().letter
        first, last = self._result.used.first, self._result.used.last
        start, end = self._result.start, self._result.end
        return CitedCells(
            document_id=self._table.document_id,
            start=start,
            end=None if start is None or end is None else min(end, start + _MAX_QUOTE),
            location=self._place(
                f"{letter}{first}" if first == last else f"{letter}{first}:{letter}{last}", first, self._table.page
            ),
            formula=formula,
            text=f"{self._column().name}: {self._result.first_text}" if start is None else "",
        )

    def _place(self, cells: str, row: int, page: int | None) -> Location:
        """Where cells stand; those of a page have no names there."""
        return Location(sheet=self._table.sheet, cell=cells, row=row) if page is None else Location(page=page)

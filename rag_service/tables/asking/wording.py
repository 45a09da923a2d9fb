"""The sentences of a computed answer: the value with its unit, the operation in words, and the cells behind it."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from rag_service.language.languages import TableWords, load_language
from rag_service.tables.asking.execute import MAX_GROUPS, MAX_ROWS, Group, Result, UsedRow
from rag_service.tables.asking.phrases import MAX_FORMULA, Phrases, cite_cells
from rag_service.tables.asking.planning.plans import Operation
from rag_service.tables.model import Column, Kind, RowNumbers, write_cells, write_range
from rag_service.tables.sentences import CitedCells, Computed, Sentence, rounded, shortened

_FORMULAS = {
    Operation.SUM: "SUM",
    Operation.MEAN: "AVERAGE",
    Operation.MEDIAN: "MEDIAN",
    Operation.MAXIMUM: "MAX",
    Operation.MINIMUM: "MIN",
    Operation.COUNT: "COUNTA",
    Operation.DISTINCT: "COUNTUNIQUE",
}
_MAX_CELLS = 120


def write_answer(results: Sequence[Result], language: str, *, is_proposed: bool = False) -> Computed | None:
    """The answer in the question's language; None if there is nothing to say.

    Args:
        is_proposed: a chat model chose the operation: the warning says so, and cells are copied as they are.
    """
    data = load_language(language).tables
    sentences: list[Sentence] = []
    warnings: list[str] = []
    for result in results:
        writer = _Writer(result, data, copies=is_proposed)
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
        if not is_proposed:  # a model reads the sentences, not a person
            sentences.insert(0, (data.answers[remark],))
        warnings.append(data.answers[remark])
    return Computed(sentences=tuple(sentences), warning=" ".join(warnings))


class _Writer(Phrases):
    def __init__(self, result: Result, data: TableWords, *, copies: bool):
        super().__init__(result.plan.table, result.plan.filters, data)
        self._copies = copies  # cells are written as the table has them
        self._result = result
        self._plan = result.plan
        self.asked = result.plan.named

    def sentence(self) -> Sentence | None:
        operation = self._plan.operation
        if operation is Operation.MIXED:
            column = self._column()
            names = ", ".join(column.mixed)
            return (self.text["mixed"].format(column=column.name, currencies=names),)
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
        if self._plan.operation is Operation.LOOKUP and self._plan.best is None and result.count > MAX_ROWS:
            found.append((self.text["more_rows"].format(count=self.number(result.count - MAX_ROWS)),))
        if result.alike > len(result.rows):
            found.append((self.text["alike"].format(count=self.number(result.alike - len(result.rows))),))
        if result.left_out.count:
            cells = self._cells(self._plan.column, result.left_out)
            name = self._column().name
            found.append((self.text["left_out"].format(column=name, cells=cells),))
        if result.unnamed.count and self._plan.operation is Operation.COUNT:
            cells = self._cells(0, result.unnamed)
            found.append((self.text["unnamed"].format(cells=cells),))
        return found

    def warnings(self) -> list[str]:
        if self._plan.operation is Operation.MIXED:
            return [self.text["readings"]]
        return [self.text["unnamed"]] if self._result.unnamed.count and self._plan.operation is Operation.COUNT else []

    # -- each operation

    def _lookup(self) -> Sentence | None:
        rows = [row for row in self._result.rows if row.cells[self._plan.column or 0] is not None]
        column, key = self._plan.column or 0, self._plan.key
        if not rows or (self._plan.best is None and self._result.count > MAX_ROWS and not self._copies):
            return None
        if self._plan.best is not None:
            return self._first_or_last(rows)
        if self._result.shows_rows:
            return self._whole_rows(rows)
        if column == key:
            before, _, after = self.text["list"].partition("{names}")
            return (before.format(where=self.where()), *self._named(rows), after)
        if len(rows) == 1:
            (row,) = rows
            sentence = self.text["lookup"].format(
                column=self._column().name, names=self.name(row, but=self._plan.column), value=self._cell(row, column)
            )
            return (sentence, self._cite_row(row, write_cells(self._column().letter, [row.number])))
        before, _, after = self.text["lookup"].partition("{names}")
        named: list[str | CitedCells] = [before.format(column=self._column().name)]
        for place, row in enumerate(rows):
            named.append(("; " if place else "") + f"{self.name(row, but=column)}: {self._cell(row, column)}")
            named.append(self._cite_row(row, write_cells(self._column().letter, [row.number])))
        return tuple(named)

    def _whole_rows(self, rows: Sequence[UsedRow]) -> Sentence:
        """Rows as the passages write them."""
        every = range(len(self.table.columns))
        sentence: list[str | CitedCells] = []
        for number, row in enumerate(rows):
            cells = (f"{self.table.columns[at].name}: {row.text(at)}" for at in every if row.text(at))
            sentence.append(("; " if number else "") + " | ".join(cells))
            sentence.append(self.cite([row], every, f"{self.table.columns[0].letter}{row.number}", ""))
        return tuple(sentence)

    def _first_or_last(self, rows: Sequence[UsedRow]) -> Sentence:
        plan = self._plan
        order = self.text["order_of_table"]
        if plan.order is not None:
            order = self.text["order_of"].format(column=self.table.columns[plan.order].name)
        template = self.text["first_row" if plan.best is Operation.MINIMUM else "last_row"]
        before, _, after = template.partition("{names}")
        return (
            before.format(order=order, where=self.where()),
            *self._named(rows, with_value=plan.column != plan.key),
            after,
        )

    def _extreme(self) -> Sentence | None:
        if not self._result.rows or self._result.value is None:
            return None
        column, operation = self._plan.column or 0, self._plan.operation
        several = self._plan.limit is not None
        template = self.text[f"top_{operation.value}" if several else operation.value]
        before, _, after = template.partition("{names}")
        values = {
            "column": self._column().name,
            "where": self.where(),
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
        shown = self._value(value) if sign == "−" else self.number(value)
        formula = f"{self._sum(groups[0])} {sign} {self._sum(groups[1])} = {self.number(value)}"
        names = [f"{group.name} ({self._value(one)})" for group, one in zip(groups, values, strict=True)]
        sentence = self.text[self._plan.operation.value].format(
            column=self._column().name, names=self.text["and"].join(names), value=shown
        )
        return (sentence, self._cite_all(formula))

    def _total(self) -> Sentence | None:
        operation, value = self._plan.operation, self._result.value
        if operation is Operation.COUNT:
            name = "count" if self._plan.filters else "count_all"
            if not self._result.count:
                return (self.text["nothing"].format(where=self.where()),)
            sentence = self.text[name].format(value=self.number(self._result.count), where=self.where())
            return (sentence, self._cite_all(self._formula(self._plan.key)))
        if value is None:
            return None
        if operation is Operation.DISTINCT:
            names = ", ".join(group.name for group in self._result.groups)
            names += ", …" if value > len(self._result.groups) else ""
            sentence = self.text["distinct"].format(
                value=self.number(value), column=self._column().name, where=self.where(), names=names
            )
            return (sentence, self._cite_all(self._formula(self._plan.column or 0)))
        if operation is Operation.SHARE:
            if not self._result.whole:
                return None
            shown = self.number(rounded(100 * value / self._result.whole)) + " %"
            formula = f"{self.number(value)} ÷ {self.number(self._result.whole)} = {shown}"
        else:
            shown = self._value(rounded(value) if operation in (Operation.MEAN, Operation.MEDIAN) else value)
            formula = self._formula(self._plan.column or 0)
        sentence = self.text[operation.value].format(column=self._column().name, where=self.where(), value=shown)
        rows = "" if operation is Operation.SHARE else self.rows(self._result.used.count)
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
        named = self.text[words].format(column=self._column().name)
        group = self.table.columns[self._plan.group or 0].name
        is_count = operation is Operation.COUNT
        listed = "; ".join(
            f"{one.name}: {self.number(one.value) if is_count else self._value(rounded(one.value))}"
            for one in groups
            if one.value is not None
        )
        template = self.text["group" if self._plan.best is None else f"best_{self._plan.best.value}"]
        sentence = template.format(operation=named, group=group, where=self.where(), names=listed)
        name = _FORMULAS.get(operation, "SUM")
        column = self._plan.key if is_count else self._plan.column or 0
        formula = "; ".join(f"{one.name}: {name}({self._cells(column, one.rows)})" for one in groups)
        return (sentence[:1].upper() + sentence[1:], self._cite_all(formula))

    # -- parts

    def _column(self) -> Column:
        return self.table.columns[self._plan.column if self._plan.column is not None else self._plan.key]

    def _named(self, rows: Sequence[UsedRow], *, with_value: bool = False) -> list[str | CitedCells]:
        column = self._plan.column or 0
        named: list[str | CitedCells] = []
        for place, row in enumerate(rows):
            value = f" ({self._cell(row, column)})" if with_value else ""
            named.append(("; " if place else "") + self.name(row, but=self._plan.column) + value)
            formula = write_cells(self.table.columns[column].letter, [row.number])
            if self._plan.operation in _FORMULAS and not with_value:
                formula = self._formula(column)
            named.append(self._cite_row(row, formula))
        return named

    def _cell(self, row: UsedRow, column: int) -> str:
        """A cell: figures as the language writes them, with their unit; numbers that may be names as they are."""
        text, held = row.text(column), self.table.columns[column]
        is_figure = held.kind.is_figure and row.value is not None
        if (
            is_figure
            and row.value is not None
            and not self._copies
            and not (text.isdigit() and held.kind is Kind.NUMBER)
        ):
            return self.amount(row.value, held, cell=text)
        unit = f" {held.unit}" if is_figure and held.unit and held.unit not in text else ""
        return text + unit + self.scale(held)

    def _sum(self, group: Group) -> str:
        cells = self._cells(self._plan.column, group.rows)
        return cells if group.rows.count == 1 else f"SUM({cells})"

    def _formula(self, column: int) -> str:
        cells = self._result.used.write(self.table.columns[column].letter)
        value = self._result.value
        if self._plan.operation is Operation.COUNT:
            value = Decimal(self._result.count)
        elif value is not None and self._plan.operation in (Operation.MEAN, Operation.MEDIAN):
            value = rounded(value)
        is_extreme = self._plan.operation in (Operation.MAXIMUM, Operation.MINIMUM)
        kind = self.table.columns[column].kind if is_extreme else Kind.NUMBER
        shown = "" if value is None else self.written(value, kind)
        return f"{_FORMULAS[self._plan.operation]}({shortened(cells, MAX_FORMULA)}) = {shown}"

    def _cells(self, column: int | None, rows: RowNumbers) -> str:
        return shortened(rows.write(self.table.columns[column or 0].letter), _MAX_CELLS)

    def _value(self, value: Decimal) -> str:
        return self.amount(value, self._column())

    # -- proof

    def _cite_row(self, row: UsedRow, formula: str) -> CitedCells:
        """The cells of a row that name it, filter it and hold its value."""
        column = self._plan.column if self._plan.column is not None else self._plan.key
        described = (place for place in row.description(self.table) if place != self._plan.column)
        named = () if self._plan.named is None else (self._plan.named,)
        used = {column, self._plan.key, *described, *named, *(one.column for one in self._plan.filters)}
        return self.cite([row], used, f"{self.table.columns[column].letter}{row.number}", formula)

    def _cite_all(self, formula: str) -> CitedCells:
        """The range of the cells used."""
        result, column = self._result, self._column()
        return cite_cells(
            self.table,
            write_range(column.letter, result.used.first, result.used.last),
            row=result.used.first,
            page=self.table.page,
            span=None if result.start is None or result.end is None else (result.start, result.end),
            formula=formula,
            text=f"{column.name}: {result.first_text}",
        )

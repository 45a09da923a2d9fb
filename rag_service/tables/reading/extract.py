"""Finds the tables of a document in its stored text.

Readers write each row as a line, `Product: Hex bolt M8 | Stock: 120`, and give every value the place of its cell. So
any reader whose places name a cell and a row gives typed tables, and each cell knows where it stands in the stored
text, which citations count in.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cache
from itertools import chain, groupby, islice

from rag_service.domain import Span, column_letters, column_number
from rag_service.language.languages import language_codes, load_language
from rag_service.language.words import words
from rag_service.tables.model import CURRENCIES, Cell, Column, Kind, Table, TableRow, currency_of, fold_words
from rag_service.tables.periods import find_unit, period_year
from rag_service.tables.reading.page_lines import PageLine, read_page_lines
from rag_service.tables.reading.page_rows import find_rows
from rag_service.tables.reading.statements import find_statements, total_words
from rag_service.tables.reading.values import decimal_of, read_column, split_unit

MAX_TABLES = 200  # of a document; a workbook with more is a template filled many times
MAX_COLUMNS = 200
_MIN_ROWS, _MIN_COLUMNS = 2, 2
_CAPTION_LINES = 3
_CAPTION_LENGTH = 200  # characters of each
_BETWEEN = re.compile(r" \| (?:(?P<label>.*): )?", re.DOTALL)
_LETTERS = re.compile(r"[A-Z]+")


@dataclass(kw_only=True)
class _Line:
    """A row of the stored text."""

    sheet: str | None
    number: int
    above: str = ""  # the paragraph before the table, in formats that flow
    page: int | None = None
    values: dict[int, tuple[str, int]] = field(default_factory=dict)  # column → (text, start)
    labels: dict[int, str] = field(default_factory=dict)  # column → its name


def extract_tables(text: str, spans: Sequence[Span]) -> tuple[Table, ...]:
    """The tables of a document with a header and at least two rows and columns.

    Args:
        text: as stored.
        spans: places, sorted by start.
    """
    lines = list(read_page_lines(text, spans))
    tables: list[Table] = list(islice(find_statements(lines), MAX_TABLES))
    used = {cell.start for table in tables for row in table.rows for cell in row.cells if cell is not None}
    for block in chain(_blocks(_lines(text, spans)), _blocks(_rows_of_pages(lines, used))):
        for columns in _side_by_side(block.lines):
            table = _build(block, columns, number=len(tables))
            if table is not None and len(tables) < MAX_TABLES:
                tables.append(table)
    return tuple(tables)


def _lines(text: str, spans: Sequence[Span]) -> Iterator[_Line]:
    above = ""
    for place, group in groupby(spans, key=_row_of):
        if place is None:
            *_, last = group
            above = text[last.start : last.end].strip()
            continue
        line = _Line(sheet=place[0], number=place[1], above=above if place[0] is None else "")
        label: str | None = None
        end = 0
        for span in group:
            value = text[span.start : span.end]
            if not line.values and value.endswith(": "):  # no value ends with a space: the name of the first column
                label, end = value.removesuffix(": "), span.end
                continue
            if line.values:
                match = _BETWEEN.fullmatch(text[end : span.start])
                label = match["label"] if match else None
            letters = _LETTERS.match(span.location.cell or "")
            if letters is not None:
                column = column_number(letters[0])
                line.values.setdefault(column, (value, span.start))
                if label:
                    line.labels.setdefault(column, label)
            label, end = None, span.end
        if line.values:
            yield line


def _row_of(span: Span) -> tuple[str | None, int] | None:
    """(sheet, row) of a span that is a cell."""
    place = span.location
    return (place.sheet, place.row) if place.cell and place.row is not None else None


def _rows_of_pages(lines: Sequence[PageLine], used: Set[int]) -> Iterator[_Line]:
    """The rows of ruled tables, whose reader writes column names, and of aligned ones below a line of names."""
    above, number = "", 0
    for row in find_rows([line for line in lines if not any(part.start in used for part in line.parts)]):
        if row.begins:
            number, above = 0, row.above
        number += 1
        values = {place: (part.text, part.start) for place, part in row.cells.items()}
        labels = {place: row.names[place] for place in values} if row.names else {}
        yield _Line(sheet=None, number=number, above=above, page=row.page, values=values, labels=labels)


@dataclass(kw_only=True)
class _Block:
    """Rows under one header."""

    sheet: str | None
    caption: tuple[str, ...]
    names: dict[int, str] = field(default_factory=dict)
    lines: list[_Line] = field(default_factory=list)


def _blocks(lines: Iterator[_Line]) -> Iterator[_Block]:
    """Rows with the same column names; a single text among them is a sub-heading, above them a caption."""
    block: _Block | None = None
    loose: list[_Line] = []  # without column names, since the last row with them
    for line in lines:
        if not line.labels:
            loose.append(line)
            continue
        headings = [one for one in loose if one.sheet == line.sheet and one.number < line.number]
        names = {} if block is None else block.names
        same_sheet = block is not None and block.sheet == line.sheet and line.number > block.lines[-1].number
        agrees = all(names.get(column, name) == name for column, name in line.labels.items())
        alone = all(len(one.values) == 1 for one in headings)
        if block is not None and same_sheet and agrees and alone and set(names) & set(line.labels):
            block.lines += headings
        else:
            if block is not None:
                yield block
            captions = [value for one in headings[-_CAPTION_LINES:] for value, _ in one.values.values()]
            captions = captions or [line.above][: bool(line.above)]
            block = _Block(sheet=line.sheet, caption=tuple(text[-_CAPTION_LENGTH:] for text in captions))
        block.names.update(line.labels)
        block.lines.append(line)
        loose = []
    if block is not None:
        block.lines += [one for one in loose[:1] if _continues(block, one)]
        yield block


def _continues(block: _Block, line: _Line) -> bool:
    """Whether a single text right below the last row is a row without values, not a note."""
    last = block.lines[-1]
    below = line.sheet == last.sheet and line.number == last.number + 1
    return below and len(line.values) == 1 and min(line.values) == min(block.names)


def _side_by_side(lines: Sequence[_Line]) -> Iterator[list[int]]:
    """The columns of each table: an empty column parts two."""
    used = sorted({column for line in lines for column in line.labels})
    group: list[int] = []
    for column in used:
        if group and column > group[-1] + 1:
            yield group
            group = []
        group.append(column)
    if group:
        yield group


def _is_code(name: str, texts: Sequence[str]) -> bool:
    """Whether numbers name their rows, as "Order no." does: they are no figures."""
    is_called = not _code_words().isdisjoint(words(name))
    return is_called and len(set(texts)) == len(texts) and all(text.isdigit() for text in texts)


@cache
def _code_words() -> frozenset[str]:
    return frozenset().union(*(load_language(code).tables.codes for code in language_codes()))


def _build(block: _Block, used: Sequence[int], *, number: int) -> Table | None:
    lines = [line for line in block.lines if set(line.values) & set(used)]
    full = [line for line in lines if line.labels]
    if len(full) < _MIN_ROWS or not _MIN_COLUMNS <= len(used) <= MAX_COLUMNS:
        return None
    texts = {column: [line.values[column][0] for line in full if column in line.values] for column in used}
    # Spreadsheets write their numbers with a point; the figures of a text file show it somewhere, or nowhere.
    shown = {found for column in used if (found := decimal_of(texts[column]))}
    decimal = "." if block.sheet is not None else shown.pop() if len(shown) == 1 else None
    columns, numbers = [], {}
    for column in used:
        values = read_column(texts[column], decimal=decimal)
        name, unit = split_unit(block.names[column])
        if values.kind is Kind.NUMBER and _is_code(name, texts[column]):
            values = replace(values, kind=Kind.TEXT, numbers=(None,) * len(values.numbers))
        numbers[column] = iter(values.numbers)
        kind = Kind.CURRENCY if values.kind is Kind.NUMBER and unit in ("€", "$", "£", "¥") else values.kind
        columns.append(
            Column(
                letter=column_letters(column),
                name=name,
                kind=kind,
                unit=values.unit or (unit if kind.is_figure else None),
                mixed=values.mixed or _other_currency(values.unit, unit),
            )
        )
    rows, section = [], ""
    heads = False  # whether the row above is a sub-heading
    for line in lines:
        if not line.labels:
            ((text, start),) = line.values.values()
            section, heads = f"{section} › {text}" if heads else text, True
            cell = Cell(text, fold_words(text), None, start)
            rows.append(
                TableRow(
                    number=line.number,
                    cells=(cell, *[None] * (len(used) - 1)),
                    is_heading=True,
                    section=section,
                    page=line.page,
                )
            )
            continue
        cells: list[Cell | None] = []
        for column in used:
            held = line.values.get(column)
            cells.append(None if held is None else Cell(held[0], fold_words(held[0]), next(numbers[column]), held[1]))
        rows.append(TableRow(number=line.number, cells=tuple(cells), section=section, page=line.page))
        heads = False
    marked = _mark_totals(rows, columns)
    return Table(
        number=number,
        sheet=block.sheet,
        caption="\n".join(block.caption),
        columns=tuple(_count_values(_mix_currencies(columns, texts), marked)),
        rows=marked,
        unit=next(filter(None, map(find_unit, (*reversed(block.caption), columns[0].name))), ""),
        by_period=columns[0].kind is Kind.TEXT and sum(period_year(column.name) is not None for column in columns) > 1,
        page=lines[0].page,
    )


def _count_values(columns: Sequence[Column], rows: Sequence[TableRow]) -> Iterator[Column]:
    """The columns with their numbers of values; totals and headings have none."""
    for place, column in enumerate(columns):
        keys = [cell.key for row in rows if not (row.is_total or row.is_heading) and (cell := row.cells[place])]
        yield replace(column, distinct=len(set(keys)), filled=len(keys))


def _other_currency(written: str | None, named: str | None) -> tuple[str, ...]:
    """Both currencies, where cells write another than the name of their column."""
    currencies = {written, named} & set(CURRENCIES.values())
    return tuple(sorted(filter(None, currencies))) if len(currencies) > 1 else ()


def _mix_currencies(columns: Sequence[Column], texts: Mapping[int, Sequence[str]]) -> list[Column]:
    """Amounts beside a column that names several currencies are mixed: "100 | EUR", "80 | USD"."""
    found = list(columns)
    for place, cells in enumerate(texts.values()):
        named = {currency_of(cell.strip()) for cell in cells}
        if len(named) > 1 and None not in named:
            for beside in (place - 1, place + 1):
                if 0 <= beside < len(found) and found[beside].kind is Kind.NUMBER:
                    found[beside] = replace(found[beside], mixed=tuple(sorted(filter(None, named))))
    return found


def _mark_totals(rows: Sequence[TableRow], columns: Sequence[Column]) -> tuple[TableRow, ...]:
    """Rows that state a total: named so, or without a name and equal to the sum of the rows above."""
    marked: list[TableRow] = []
    above = [Decimal(0)] * len(columns)  # sum of the part since the last total
    every = [Decimal(0)] * len(columns)
    counted = 0  # rows of the part
    for row in rows:
        first = next((cell for cell in row.cells if cell is not None), None)
        sums = counted > 1 and any(
            cell is not None and cell.number is not None and cell.number in (part, whole)
            for cell, part, whole, column in zip(row.cells, above, every, columns, strict=True)
            if column.kind.is_figure
        )
        named = words(first.text) if first is not None and first.number is None else []
        vocabulary = total_words()
        is_total = bool(named) and (all(word in vocabulary for word in named) or (sums and named[0] in vocabulary))
        unnamed = row.cells[0] is None and columns[0].kind is Kind.TEXT and sums
        if is_total or unnamed:
            marked.append(replace(row, is_total=True, is_heading=False))
            above, counted = [Decimal(0)] * len(columns), 0
            continue
        marked.append(row)
        counted += not row.is_heading
        for place, cell in enumerate(row.cells):
            if cell is not None and cell.number is not None:
                above[place] += cell.number
                every[place] += cell.number
    return tuple(marked)

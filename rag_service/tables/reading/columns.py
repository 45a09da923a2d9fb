"""What the columns of a table are, and its rows with the number of each cell.

Rows are read one by one, so that tables of any length take no more memory than their texts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cache, lru_cache
from itertools import pairwise

from rag_service.domain import column_letters
from rag_service.language.detection import guess_known_language
from rag_service.language.languages import languages_of, union_of
from rag_service.language.words import fold_word, fold_words, words
from rag_service.tables.model import CURRENCIES, Cell, Column, Kind, TableRow, currency_of
from rag_service.tables.periods import period_year
from rag_service.tables.reading.lines import Line, PlainRows
from rag_service.tables.reading.statements import total_words
from rag_service.tables.reading.values import MIN_SHARE, NumberOf, decimal_of, is_nothing, read_column, split_unit
from rag_service.tables.vocabulary import concepts_of

_REMEMBERED = 50_000  # texts of a column that are not read again
_MIN_RUN = 8  # running numbers: figures in order may be neighbours too
_MIN_FIRST_RUN = 3  # in a first column, from 1 on
_STEPS = (1, -1)
_ROUNDING = Decimal("0.01")  # of a sum, in the row that is called its total
_FEW_ROWS = 2  # whose sums may stand below them by chance
_NAMES = 8  # of columns, by which the language is guessed


@dataclass(frozen=True, kw_only=True)
class ReadColumn:
    """A column with how the numbers of its cells are read."""

    place: int  # in the sheet or file, from 1
    column: Column
    number_of: NumberOf


def read_columns(
    texts: Mapping[int, Sequence[str]], names: Mapping[int, str], *, decimal: str | None = None
) -> list[ReadColumn]:
    """The columns by their filled cells, in the order of `texts`.

    Args:
        texts: place of the column → its filled cells.
        decimal: the decimal separator; None: the columns tell it, or not.
    """
    shown = set() if decimal else set(filter(None, (decimal_of([*set(cells)]) for cells in texts.values())))
    decimal = decimal or (shown.pop() if len(shown) == 1 else None)
    language = guess_known_language(" ".join([*names.values()][:_NAMES]))
    found: list[ReadColumn] = []
    for place, cells in texts.items():
        name, unit = split_unit(names[place])
        values = read_column(cells, decimal=decimal, language=language, concepts=concepts_of(names[place]))
        if values.kind is Kind.NUMBER and _is_code(name, cells):
            values = read_column(())
        elif values.kind is Kind.NUMBER and _is_running(list(map(values.number_of, cells)), is_first=not found):
            values = replace(values, kind=Kind.ORDER)
        kind = Kind.CURRENCY if values.kind is Kind.NUMBER and unit in ("€", "$", "£", "¥") else values.kind
        column = Column(
            letter=column_letters(place),
            name=name,
            kind=kind,
            unit=values.unit or (unit if kind.is_figure else None),
            mixed=values.mixed or _other_currency(values.unit, unit),
        )
        found.append(ReadColumn(place=place, column=column, number_of=values.number_of))
    columns = _mix_currencies([one.column for one in found], texts)
    return [replace(one, column=column) for one, column in zip(found, columns, strict=True)]


def are_periods(columns: Sequence[Column]) -> bool:
    """Whether the columns beside the first are years or periods."""
    return columns[0].kind is Kind.TEXT and sum(period_year(column.name) is not None for column in columns) > 1


def read_rows(lines: Iterable[Line | PlainRows], columns: Sequence[ReadColumn]) -> Iterator[TableRow]:
    """The rows of a table, those that state a total marked."""
    return _mark_totals(_read_rows(lines, columns), [one.column for one in columns])


def _read_rows(lines: Iterable[Line | PlainRows], columns: Sequence[ReadColumn]) -> Iterator[TableRow]:
    readers = {one.place: _cell_reader(one.number_of) for one in columns}
    section = ""
    heads = False  # whether the row above is a sub-heading
    for line in lines:
        if isinstance(line, PlainRows):
            yield from _read_plain(line, readers, section)
            heads = False
            continue
        if not any(one.place in line.values for one in columns):
            continue
        if not line.labels:
            ((text, start),) = line.values.values()
            section, heads = f"{section} › {text}" if heads else text, True
            cell = Cell(text, fold_words(text), None, start)
            yield TableRow(
                number=line.number,
                cells=(cell, *[None] * (len(columns) - 1)),
                is_heading=True,
                section=section,
                page=line.page,
            )
            continue
        cells: list[Cell | None] = []
        for place, read in readers.items():
            held = line.values.get(place)
            cells.append(None if held is None else Cell(held[0], *read(held[0]), held[1]))
        yield TableRow(number=line.number, cells=tuple(cells), section=section, page=line.page)
        heads = False


def _read_plain(
    rows: PlainRows, readers: Mapping[int, Callable[[str], tuple[str, Decimal | None]]], section: str
) -> Iterator[TableRow]:
    count = len(next(iter(rows.columns.values())))
    columns: list[list[Cell | None]] = []
    for place, read in readers.items():
        texts = rows.columns.get(place)
        if texts is None:
            columns.append([None] * count)
            continue
        known = {text: Cell(text, *read(text), None) for text in set(texts) if text}
        columns.append(list(map(known.get, texts)))
    for number, cells in enumerate(zip(*columns, strict=True), start=rows.number):
        if any(cells):
            yield TableRow(number=number, cells=cells, section=section)


def _cell_reader(number_of: NumberOf) -> Callable[[str], tuple[str, Decimal | None]]:
    """Reads the key and the number of a text; columns repeat theirs."""

    @lru_cache(maxsize=_REMEMBERED)
    def read(text: str) -> tuple[str, Decimal | None]:
        return fold_words(text), number_of(text)

    return read


def _is_code(name: str, texts: Sequence[str]) -> bool:
    """Whether numbers name their rows, as "Order no." does: they are no figures."""
    is_called = not _code_words().isdisjoint(words(name))
    return is_called and len(set(texts)) == len(texts) and all(text.isdigit() for text in texts)


def _is_running(numbers: Sequence[Decimal | None], *, is_first: bool) -> bool:
    """Whether numbers count the rows, up or down: they are no figures, whatever their name. A few may be missing."""
    known = [number for number in numbers if number is not None]
    if len(known) < (_MIN_FIRST_RUN if is_first and 1 in (*known[:1], *known[-1:]) else _MIN_RUN):
        return False
    if len(set(known)) < MIN_SHARE * len(known):
        return False  # it begins again
    steps = Counter(after - before for before, after in pairwise(known))
    return any(steps[Decimal(step)] >= MIN_SHARE * steps.total() for step in _STEPS)


@cache
def _code_words() -> frozenset[str]:
    return union_of(data.tables.codes for data in languages_of(None))


def _other_currency(written: str | None, named: str | None) -> tuple[str, ...]:
    """Both currencies, where cells write another than the name of their column."""
    currencies = {written, named} & set(CURRENCIES.values())
    return tuple(sorted(filter(None, currencies))) if len(currencies) > 1 else ()


def _mix_currencies(columns: Sequence[Column], texts: Mapping[int, Sequence[str]]) -> list[Column]:
    """Amounts beside a column that names several currencies are mixed: "100 | EUR", "80 | USD"."""
    found = list(columns)
    for place, cells in enumerate(texts.values()):
        named = {currency_of(cell.strip()) for cell in set(cells)}
        if len(named) > 1 and None not in named:
            for beside in (place - 1, place + 1):
                if 0 <= beside < len(found) and found[beside].kind is Kind.NUMBER:
                    found[beside] = replace(found[beside], mixed=tuple(sorted(filter(None, named))))
    return found


def _with_last(rows: Iterable[TableRow]) -> Iterator[tuple[TableRow, bool]]:
    """The rows, and whether each is the last one."""
    before: TableRow | None = None
    for row in rows:
        if before is not None:
            yield before, False
        before = row
    if before is not None:
        yield before, True


def _mark_totals(rows: Iterable[TableRow], columns: Sequence[Column]) -> Iterator[TableRow]:
    """Rows that state a total: named so, or equal to the sum of the rows above.

    The name of a total alone is enough. A row whose name begins or ends with a word for totals needs sums in half of
    its figures, one of figures alone needs one; the last row needs sums alone, whatever its name, in any language.
    """
    above = [Decimal(0)] * len(columns)  # sum of the part since the last total
    every = [Decimal(0)] * len(columns)
    counted, seen = 0, 0  # rows of the part, and of all parts
    names_rows = columns[0].kind in (Kind.TEXT, Kind.ORDER)

    @lru_cache(maxsize=_REMEMBERED)
    def calls_total(key: str) -> bool:
        return not _total_keys().isdisjoint(key.split())

    for row, is_last in _with_last(rows):
        is_unnamed = row.cells[0] is None and names_rows and not any(map(_is_text, row.cells))
        is_called = any(calls_total(cell.key) for cell in row.cells if cell is not None)
        if is_last or is_unnamed or is_called:
            sums = [*([above] if counted > 1 else ()), *([every] if seen > 1 else ())]
            figures = [
                [abs(cell.number - one[place]) / abs(cell.number) for one in sums]
                for place, cell in enumerate(row.cells)
                if columns[place].kind.is_figure and cell is not None and cell.number
            ]
            exact = sum(0 in apart for apart in figures)
            near = sum(any(one <= _ROUNDING for one in apart) for apart in figures)
            are_sums = is_last and seen > _FEW_ROWS and exact > max(1, len(figures) / 2)
            if _is_named_total(row, is_sum=near >= max(1, len(figures) / 2)) or (is_unnamed and exact) or are_sums:
                yield replace(row, is_total=True, is_heading=False)
                above, counted = [Decimal(0)] * len(columns), 0
                continue
        yield row
        counted += not row.is_heading
        seen += not row.is_heading
        for place, cell in enumerate(row.cells):
            if cell is not None and cell.number is not None:
                above[place] += cell.number
                every[place] += cell.number


def _is_text(cell: Cell | None) -> bool:
    return cell is not None and cell.number is None and not is_nothing(cell.text)


@cache
def _total_keys() -> frozenset[str]:
    return frozenset(map(fold_word, total_words()))


def _is_named_total(row: TableRow, *, is_sum: bool) -> bool:
    """Whether a row is called a total; with other words, or behind a first text, only if it states a sum."""
    texts = [words(cell.text) if cell.number is None else [] for cell in row.cells if cell is not None]
    named = texts[0] if texts else []
    if named and total_words().issuperset(named):
        return True
    return is_sum and (
        not total_words().isdisjoint((*named[:1], *named[-1:]))
        or any(found and total_words().issuperset(found) for found in texts)
    )

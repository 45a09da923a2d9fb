"""Writes table rows of any format as lines labelled with their column names.

    Product: Hex bolt M8 | Stock: 120 | Safety stock: 150

A line can be retrieved and quoted on its own because each value carries its column name. Each value is a span of its
own, so that a quoted figure leads to exactly one cell.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import replace
from itertools import islice
from statistics import median

from rag_service.domain import Location, Span, column_letters
from rag_service.readers.common.builder import TextBuilder
from rag_service.readers.common.cells import Cell, Records, Row, is_number_like, row_of
from rag_service.readers.common.first_row import Reading, are_names, is_label, read_first_row

LONG_TABLE_TEXT_ROWS = 1_000  # rows in the text of a table whose rows are too many for it
LOOK_AHEAD = 30  # rows searched for a header; titles and notes above a table are rarely longer
_MAX_LABEL = 100  # characters of a column name repeated with every value
_AMOUNT = re.compile(r"\W*\d")
_DATE = re.compile(  # a unit or remark may follow: "2024 (€)"
    r"(?:(?:19|20)\d\d(?:-\d\d-\d\d)?|\d{1,2}[/.]\d{1,2}(?:[/.](?:\d\d)?\d\d)?)(?:\s?\([^()]{1,15}\)|\s?[*%€$£])?"
)
_TEXT_SHARE = 0.8  # of a header's cells; a year or two among the column names is common

Place = Callable[[int, str | None], Location]  # (row number, cell or range) → location


def too_many_rows(sheet: str = "") -> str:
    """The warning for a table of which the text has only the first rows."""
    where = f' of "{sheet}"' if sheet else ""
    return (
        f"Only the first {LONG_TABLE_TEXT_ROWS:,} rows{where} can be found by their words, because the file has too "
        "many rows. Calculations and look-ups use all rows."
    )


def places_on(sheet: str) -> Place:
    """The places of rows and cells on a sheet."""
    return lambda row, cell: Location(sheet=sheet, cell=cell, row=row)


def write_table(builder: TextBuilder, rows: Iterable[Row | Records], *, place: Place) -> Mapping[int, str]:
    """Write rows as labelled lines; returns the column names of the last ones.

    Plain values are written for rows above the header, tables without a header, and rows with a single text in the
    first column (notes, section titles). A block after a gap with its own header row gets new labels. The builder's
    limits stop files of any length.
    """
    upcoming = _Upcoming(rows)
    ahead = _spread_names(list(islice(iter(upcoming.take, None), LOOK_AHEAD)))
    upcoming.put_back(ahead)
    header, pairs = find_header(ahead)
    if header and len(ahead) < LOOK_AHEAD and _is_blank_form(ahead, header):
        header = None
    names: list[Row] = []  # header rows whose labels no row has used yet
    labels: dict[int, str] = {}
    header_rows: list[Row] = []  # of the labels
    filled = set[int]()  # columns with a value below them
    figures = _Figures()
    previous: int | None = None
    below_title = False  # of a block after a gap
    while True:
        if previous is not None and not names and not below_title:
            while (records := upcoming.take_records(previous + 1)) is not None:
                filled.update(_write_records(builder, records, labels))
                figures.add_records(records)
                previous += len(records.rows)
        if (row := upcoming.take()) is None:
            break
        after_gap = bool(header_rows) and previous is not None and row.number > previous + 1
        if after_gap and _ends_table(row, figures):
            labels = {}
        previous = row.number
        begins, below_title = after_gap or below_title, after_gap and len(row.values) == 1 and row.values[0].is_text
        following = upcoming.peek() if begins or names else None
        if row is header or (begins and _starts_table(row, following)):
            _write_plain(builder, names or _without_values(header_rows, filled), place)
            names, labels = [row], _labels(row)
            header_rows, filled, figures = names, set(), _Figures()
        elif len(names) == 1 and _continues_header(names[0], row, following):
            names, labels = [*names, row], _joined_labels(labels, row)
            header_rows = names
        else:
            names = []
            filled.update(cell.column for cell in row.cells)
            figures.add_row(row)
            _write_row(builder, row, labels, place, is_pairs=row.number in pairs)
    _write_plain(builder, names or _without_values(header_rows, filled), place)
    return labels


class _Upcoming:
    """The rows of a table one by one, or as many records together as there are."""

    def __init__(self, rows: Iterable[Row | Records]):
        self._rows = iter(rows)
        self._next = deque[Row | Records]()

    def take(self) -> Row | None:
        """Return the next row; None: there is none."""
        row = self.peek()
        if row is not None:
            self._next.popleft()
        return row

    def peek(self) -> Row | None:
        """Return the next row without taking it."""
        while not self._next or isinstance(self._next[0], Records):
            found = self._next.popleft() if self._next else next(self._rows, None)
            if found is None:
                return None
            if isinstance(found, Records):
                rest = found.cut(1)
                self._next.extendleft([rest] if rest.rows else [])
                found = row_of(found.number, found.rows[0])
            self._next.appendleft(found)
        return self._next[0]

    def take_records(self, number: int) -> Records | None:
        """Return the next rows if they are records and begin with this number."""
        if not self._next and (found := next(self._rows, None)) is not None:
            self._next.append(found)
        if not self._next or not isinstance(self._next[0], Records) or self._next[0].number != number:
            return None
        return self._next.popleft()  # type: ignore[return-value]  # see above

    def put_back(self, rows: Sequence[Row]) -> None:
        """Let rows come next."""
        self._next.extendleft(reversed(rows))


class _Figures:
    """The columns that have had nothing but figures; those of records are found out when they are asked for."""

    def __init__(self) -> None:
        self._only: dict[int, bool] = {}
        self._pending: list[Records] = []

    def add_row(self, row: Row) -> None:
        """Note the cells of a row."""
        self._settle()
        self._only.update({cell.column: not cell.is_text and self._only.get(cell.column, True) for cell in row.values})

    def add_records(self, records: Records) -> None:
        """Note the cells of records."""
        self._pending.append(records)

    def __contains__(self, column: int) -> bool:
        self._settle()
        return self._only.get(column, False)

    def _settle(self) -> None:
        for records in self._pending:
            for column, texts in enumerate(zip(*records.rows, strict=True), start=1):
                if any(texts) and self._only.get(column, True):
                    self._only[column] = all(map(is_number_like, filter(None, texts)))
        self._pending.clear()


def _write_records(builder: TextBuilder, records: Records, labels: Mapping[int, str]) -> Iterable[int]:
    """Write records as `_write_row` does, but column by column; returns the columns with a value."""
    columns = list(zip(*records.rows, strict=True))
    numbers = range(records.number, records.number + len(records.rows))
    written = list(map(str, numbers))
    cells = [[letter + number for number in written] for letter in map(column_letters, range(1, len(columns) + 1))]
    names = [f"{labels[column]}: " if labels.get(column) else "" for column in range(1, len(columns) + 1)]
    stride = 2 * len(columns) + 1  # pieces of a row: each name and each text, and the end of the line
    pieces = ["\n"] * (stride * len(numbers))
    for at, texts in enumerate(columns):
        before = f" | {names[at]}" if at else names[at]
        pieces[2 * at :: stride] = [before] * len(texts) if all(texts) else [before if text else "" for text in texts]
        pieces[2 * at + 1 :: stride] = texts
    ends = builder.write_pieces(pieces)
    spans: list[Span | None] = [None] * ((len(columns) + 1) * len(numbers))
    if names[0]:
        last = cells[-1]
        if not all(columns[-1]):
            last = [
                next(cell for cell, text in zip(found[::-1], row[::-1], strict=True) if text)
                for found, row in zip(zip(*cells, strict=True), records.rows, strict=True)
            ]
        extents = map(":".join, zip(cells[0], last, strict=True))
        spans[:: len(columns) + 1] = [
            Span(start=start, end=end, location=Location(row=number, cell=extent))
            for start, end, number, extent in zip(ends[::stride], ends[1::stride], numbers, extents, strict=False)
        ]
    for at, places in enumerate(cells):
        spans[at + 1 :: len(columns) + 1] = [
            Span(start=start, end=end, location=Location(row=number, cell=cell)) if end > start else None
            for start, end, number, cell in zip(
                ends[2 * at + 1 :: stride], ends[2 * at + 2 :: stride], numbers, places, strict=False
            )
        ]
    builder.add_spans(filter(None, spans))
    return (column for column, texts in enumerate(columns, start=1) if any(texts))


def _write_plain(builder: TextBuilder, names: Sequence[Row], place: Place) -> None:
    """Write column names without any value below them, which would be lost otherwise."""
    for row in names:
        _write_row(builder, row, {}, place)


def _without_values(header: Sequence[Row], filled: Set[int]) -> list[Row]:
    """The header's names of columns that are empty in all rows below."""
    rows: list[Row] = []
    for row in header:
        spanned = {cell.column for cell in row.cells if cell.is_spanned}
        unused = [cell for cell in row.values if filled.isdisjoint(_columns_of(cell.column, spanned))]
        rows.append(replace(row, cells=unused))
    return [row for row in rows if row.cells]


def _is_blank_form(rows: Sequence[Row], header: Row) -> bool:
    """Whether no row below the column names has a value under one: they are words of the table like any other row."""
    labels = _labels(header)
    below = [row.values for row in rows if row.number > header.number]
    return bool(below) and all(
        labels.keys().isdisjoint(cell.column for cell in values) or (len(values) == 1 and is_heading(values[0], labels))
        for values in below
    )


def find_header(rows: Sequence[Row]) -> tuple[Row | None, frozenset[int]]:
    """Return the header, and the numbers of rows in which labels and values alternate.

    The header is the first row with at least two cells, mostly text, and more than half as wide as the rows below, if
    `read_first_row` finds evidence in its block. No row of a block without evidence is one, unless it is wider.
    """
    pairs: set[int] = set()
    done = width = 0  # rows of blocks without a header, and cells of its rows
    for position, row in enumerate(rows):
        below = [len(other.cells) for other in rows[position + 1 :]]
        if row.is_header and row.values and row.values[0].column > 1 and max(below, default=0) == 2:
            return row, frozenset(pairs)  # the only name, beside an empty corner
        if position < done and len(row.cells) <= width:
            continue
        if len(row.values) < 2 or (below and len(row.cells) <= median(below) / 2):
            continue
        block = _block(rows, position)
        if len(block) == 1 and position + 1 < len(rows):  # what stands below the gap tells whether it names columns
            block = [row, *_block(rows, position + 1)]
        is_continued = len(block) > 2 and _continues_header(row, block[1], block[2])
        is_narrow = bool(below) and len(row.cells) < median(below) and not is_continued
        if is_narrow and any(map(_starts_table, block[1:], block[2:])):
            continue  # a remark above the table
        reading = read_first_row([row, *block[2:]] if is_continued else block)
        if reading is Reading.LABELS:
            pairs.update(other.number for other in (block[1:] if are_names(row) else block))
        if row.is_header or _names_series(row, block[1:]) or (reading is Reading.NAMED and _is_texts(row)):
            return row, frozenset(pairs)
        has_wide = any(cell.is_spanned for cell in row.cells)  # as a title above the names has
        if not has_wide and (reading is not Reading.NAMED or len(row.values) == 2):
            done, width = position + len(block), max(len(row.cells), 2)
    return None, frozenset(pairs)


def _block(rows: Sequence[Row], position: int) -> Sequence[Row]:
    """The rows from this one to the next gap."""
    end = position + 1
    while end < len(rows) and rows[end].number == rows[end - 1].number + 1:
        end += 1
    return rows[position:end]


def _ends_table(row: Row, figures: _Figures) -> bool:
    """Whether a table ends at the gap above a row, because words follow in a column of figures."""
    return len(row.values) > 1 and any(cell.is_text and cell.column in figures for cell in row.values)


def _is_texts(row: Row) -> bool:
    texts = sum(cell.is_text for cell in row.cells)
    return len(row.values) >= 2 and texts >= len(row.cells) * _TEXT_SHARE


def _names_series(row: Row, below: Sequence[Row]) -> bool:
    """Whether figures are column names: years or dates ("Income | 2024 | 2025"), or stand above words.

    They stand beside a word or an empty corner. A single one is, if its cell is merged over several columns.
    """
    if not below:
        return False
    corner = min(other.cells[0].column for other in (row, *below))
    has_empty_corner = row.cells[0].column > corner
    names = row.values if has_empty_corner else row.values[1:]
    if len(row.cells) < (2 if has_empty_corner else 3) or (not has_empty_corner and not row.cells[0].is_text):
        return False
    if any(name.is_text and not _DATE.fullmatch(name.text) for name in names):
        return False
    if not all(other.cells[0].is_text for other in below if other.cells[0].column == corner):
        return False
    if len({name.text for name in names}) < len(names):
        return False
    columns = {name.column for name in names}
    named = [cell.is_text for other in below for cell in other.cells if cell.column in columns]
    return all(_DATE.fullmatch(name.text) for name in names) or (len(named) > 0 and sum(named) > len(named) / 2)


def _starts_table(row: Row, following: Row | None) -> bool:
    """Whether a row of words with figures right below is a header; stricter than at the top of a table.

    So are years over several columns each, with words right below: "2024" above "Stock" and "Orders".
    """
    if following is None or following.number != row.number + 1 or not row.values:
        return False
    if any(cell.is_spanned for cell in row.cells) and all(_DATE.fullmatch(cell.text) for cell in row.values):
        return _all_texts(following)
    if not _all_texts(row):
        return False
    has_empty_corner = row.cells[0].column > following.cells[0].column and following.cells[0].is_text
    return (
        (len(row.values) > 1 or has_empty_corner)
        and len(following.values) > 1
        and not _all_texts(following)
        and not (len(row.values) == 2 and not has_empty_corner and is_label(following.values[0]))
    )


def _continues_header(header: Row, row: Row, following: Row | None) -> bool:
    """Whether a row continues a header with merged cells ("2024" above "Stock" and "Orders").

    It does if its only own words are names below the wide cells, or if figures follow it; but never with amounts
    ("160 EUR") below the wide cells, unless the other cells of the header go on in it.
    """
    spanned = {cell.column for cell in header.cells if cell.is_spanned}
    if not spanned or following is None or row.number != header.number + 1:
        return False
    if _recurs(row, spanned):
        return True
    wide = spanned | {column - 1 for column in spanned}
    others = {cell.column: cell.text for cell in header.cells if cell.column not in wide}
    below = [cell.text for cell in row.cells if cell.column in wide]
    beside = [cell for cell in row.cells if cell.column not in wide]
    goes_on = all(others.get(cell.column) == cell.text for cell in beside)
    if not below or not (_all_texts(row) or (beside and goes_on)):
        return False  # the title of a section ("Revenue:"), or a row of figures
    if any(map(_AMOUNT.match, below)) and not (beside and goes_on):
        return False
    upper = {cell.column: cell.text for cell in header.cells}
    names = [(upper.get(cell.column), cell.text) for cell in row.cells if cell.column in wide]
    return not _all_texts(following) or (goes_on and len(set(names)) == len(names) > 1)


def _recurs(row: Row, spanned: Set[int]) -> bool:
    """Whether the same names stand below each wide cell, ages among them: "Female", "Male", "15-24"."""
    texts = {cell.column: cell for cell in row.cells}
    starts = sorted({column - 1 for column in spanned} - spanned)
    groups = [[texts.get(column) for column in _columns_of(start, spanned)] for start in starts]
    names = [[cell.text for cell in group if cell is not None] for group in groups]
    return (
        len(groups) > 1
        and len(set(map(tuple, names))) == 1
        and len(set(names[0])) == len(groups[0])
        and sum(cell.is_text for cell in groups[0] if cell is not None) * 2 > len(groups[0])
    )


def _spread_names(rows: Sequence[Row]) -> list[Row]:
    """The rows, in which a name with empty cells beside it spans them as if they were merged.

    It does if the row below names each column under it, and no other, and a wider row with figures follows; or if that
    row names groups of columns with a gap between them, and one name stands above each group, wherever.
    """
    spread = list(rows)
    for at, (row, below, following) in enumerate(zip(rows, rows[1:], rows[2:], strict=False)):
        names = {cell.column: cell for cell in row.cells}
        wide, over = set[int](), dict[int, Cell]()
        for column in sorted(cell.column for cell in below.cells if cell.column not in names):
            before = over.get(column - 1) or names.get(column - 1)
            if before is None:
                break
            over[column] = replace(before, column=column, is_spanned=True)
            wide |= {before.column, column}
        cells = [*row.cells, *over.values()]
        if not over or wide != {cell.column for cell in below.cells}:
            cells = _over_groups(row, below)
        adjoin = below.number == row.number + 1 and following.number <= below.number + 2  # an empty row may part them
        figures = len(following.cells) > len(below.cells) and not _all_texts(following)
        if cells and adjoin and figures and len(names) > 1 and _all_texts(row) and _all_texts(below):
            spread[at] = replace(row, cells=sorted(cells, key=lambda cell: cell.column))
    return spread


def _over_groups(row: Row, below: Row) -> list[Cell]:
    """The cells of a row with each name over a group of adjacent columns named below it; none if it names no groups."""
    groups: list[list[int]] = []
    for cell in below.cells:
        if groups and cell.column == groups[-1][-1] + 1:
            groups[-1].append(cell.column)
        else:
            groups.append([cell.column])
    above = {cell.column: cell for cell in row.cells}
    found = [cell for cell in row.cells if cell.column < below.cells[0].column]
    for group in groups:
        names = [above[column] for column in group if column in above]
        if len(names) != 1 or len(group) < 2 or names[0].is_spanned:
            return []
        address = names[0].address or f"{column_letters(names[0].column)}{row.number}"
        found += [replace(names[0], column=column, address=address, is_spanned=column > group[0]) for column in group]
    return found if len(groups) > 1 and len(found) == len(row.cells) + sum(len(group) - 1 for group in groups) else []


def _all_texts(row: Row) -> bool:
    return all(cell.is_text for cell in row.cells)


def _labels(row: Row) -> dict[int, str]:
    texts = {cell.column: cell.text.rstrip(": ") or cell.text for cell in row.cells}
    return {column: text if len(text) <= _MAX_LABEL else text[: _MAX_LABEL - 1] + "…" for column, text in texts.items()}


def _joined_labels(labels: Mapping[int, str], row: Row) -> dict[int, str]:
    joined = dict(labels)
    for column, label in _labels(row).items():
        upper = labels.get(column)
        joined[column] = label if upper in (None, label) else f"{upper} {label}"
    return joined


def _columns_of(column: int, spanned: Set[int]) -> range:
    """The columns of a cell that goes on over the `spanned` ones after it."""
    last = column
    while last + 1 in spanned:
        last += 1
    return range(column, last + 1)


def _label_of(column: int, spanned: Set[int], labels: Mapping[int, str]) -> str | None:
    """The name of a column; a cell over several columns has the names of all."""
    names = [labels[column] for column in _columns_of(column, spanned) if column in labels]
    return " / ".join(dict.fromkeys(names)) or None


def is_heading(cell: Cell, labels: Mapping[int, str]) -> bool:
    """Whether the only cell of a row is a sub-heading or a note: a text in the first column."""
    return cell.is_text and cell.column <= min(labels, default=0)


def _write_row(
    builder: TextBuilder, row: Row, labels: Mapping[int, str], place: Place, *, is_pairs: bool = False
) -> None:
    values = row.values
    if not values:
        return
    if len(values) == 1 and is_heading(values[0], labels):
        labels = {}
    first, last = column_letters(values[0].column), column_letters(values[-1].column)
    extent = f"{first}{row.number}" if first == last else f"{first}{row.number}:{last}{row.number}"
    # The first label is located at the whole row, so that a quoted line names its range. Other labels have no location:
    # a quote of "Stock: 120" then leads to exactly the cell of 120.
    whole = place(row.number, extent)
    spanned = {cell.column for cell in row.cells if cell.is_spanned}
    between = ""
    for number, cell in enumerate(values):
        label = _label_of(cell.column, spanned, labels) if spanned else labels.get(cell.column)
        where = place(row.number, cell.address or f"{column_letters(cell.column)}{row.number}")
        before = between + (f"{label}: " if label else "")
        builder.write(before, whole if number == 0 or where is whole else None)
        builder.write(cell.text, where)
        between = " | " if number % 2 or not is_pairs else " " if cell.text.endswith(":") else ": "
    builder.write("\n")

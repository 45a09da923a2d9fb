"""Delimited files whose rows are too many for the stored text."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from openpyxl import Workbook

from rag_service.domain import ParsedDocument
from rag_service.errors import TooLargeError
from rag_service.readers.common import builder, tables
from rag_service.readers.office import xlsx
from rag_service.readers.parse import parse as parse_file
from rag_service.readers.text import delimited
from rag_service.readers.text.delimited import parse_delimited
from rag_service.tables.encoding import encode_table, read_batches, read_description
from rag_service.tables.model import Kind
from rag_service.tables.reading.extract import extract_tables

HEAD = "Tent;Stock;Price"
ROWS = [f"Tent {number};{number % 7};{number},50" for number in range(200)]


@pytest.fixture(autouse=True)
def small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(builder, "MAX_SPANS", 400)
    for module in (delimited, tables, xlsx):
        monkeypatch.setattr(module, "LONG_TABLE_TEXT_ROWS", 20)


def parse(*lines: str) -> ParsedDocument:
    return parse_delimited("\n".join((HEAD, *lines)) + "\n", name="tents.csv")


def rows_of(document: ParsedDocument) -> list[Any]:
    assert document.long_tables
    return [row for batch in read_batches(document.long_tables[0]) for row in msgspec.json.decode(batch)]


def test_all_rows_are_in_the_table_and_the_first_in_the_text() -> None:
    document = parse(*ROWS)
    assert document.text.count("\n") == 19
    assert "Tent 18" in document.text
    assert "Tent 19" not in document.text
    assert document.warnings == (
        "Only the first 20 rows can be found by their words, because the file has too many rows. "
        "Calculations and look-ups use all rows.",
    )
    rows = rows_of(document)
    assert [row[0] for row in rows] == list(range(2, 202))
    for number, is_data, _, _, _, cells in rows:
        assert is_data
        text, _, _, start = cells[0]
        assert text == f"Tent {number - 2}"
        assert (start is not None) == (number <= 20)
        if start is not None:
            assert document.text[start : start + len(text)] == text


def test_a_long_table_is_described_as_a_short_one() -> None:
    """The same rows give the same columns, keys and numbers, whether the text has all of them or not."""
    document = parse(*ROWS, "Total;;19999")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(builder, "MAX_SPANS", 100_000)
        short = parse(*ROWS, "Total;;19999")
    assert short.long_tables == ()
    (table,) = extract_tables(short.text, short.spans)
    encoded = encode_table(table)
    assert document.long_tables
    assert read_description(document.long_tables[0]) == read_description(encoded)
    shown = [row for batch in read_batches(encoded) for row in msgspec.json.decode(batch)]
    assert [_without_places(row) for row in rows_of(document)] == [_without_places(row) for row in shown]
    described = read_description(document.long_tables[0])
    assert [column.kind for column in described.columns] == [Kind.TEXT, Kind.NUMBER, Kind.ORDER]
    assert described.row_count == 200


def _without_places(row: Sequence[Any]) -> list[Any]:
    *rest, cells = row
    return [*rest, [cell and cell[:3] for cell in cells]]


def test_sub_headings_and_totals_further_down_are_no_rows() -> None:
    rows = rows_of(parse(*ROWS[:100], "Second warehouse", *ROWS[100:], "Total;600;19999"))
    assert [row[0] for row in rows if row[2]] == [102]
    assert {row[3] for row in rows[101:]} == {"Second warehouse"}
    assert not rows[-1][1]
    assert not rows[-1][2]


@pytest.mark.parametrize(
    "lines",
    [
        [f"{number};{number}" for number in range(300)],  # no column names
        [f"only one column {number}" for number in range(500)],
        [*ROWS[:5], "", "", "Name;City;Age", "Ana;Lyon;50", *ROWS],  # two tables
    ],
)
def test_what_is_not_one_table_is_refused_as_before(lines: list[str]) -> None:
    head = [] if len(lines[0].split(";")) < 3 else [HEAD]
    with pytest.raises(TooLargeError, match="too much text"):
        parse_delimited("\n".join((*head, *lines)), name="a.csv")


def workbook(**sheets: Sequence[Sequence[Any]]) -> ParsedDocument:
    book = Workbook()
    book.remove(book.worksheets[0])
    for title, rows in sheets.items():
        sheet = book.create_sheet(title)
        for row in rows:
            sheet.append(row)
    written = io.BytesIO()
    book.save(written)
    return parse_file(written.getvalue(), file_name="book.xlsx")


def test_a_long_sheet_is_a_table_beside_the_text_of_the_others() -> None:
    tents = [("Tents of the north",), (), ("Tent", "Stock"), *((f"Tent {number}", number) for number in range(300))]
    document = workbook(Notes=[("Who", "Note"), ("Ana", 5), ("Ben", 6)], Tents=tents)
    assert "Ben" in document.text
    assert "Tent 250" not in document.text
    assert document.warnings[0].startswith('Only the first 20 rows of "Tents" can be found by their words')
    (table,) = document.long_tables
    described = read_description(table)
    assert (described.sheet, described.caption, described.row_count) == ("Tents", "Tents of the north", 300)
    assert [column.kind for column in described.columns] == [Kind.TEXT, Kind.ORDER]
    assert rows_of(document)[-1] == [
        303,
        True,
        False,
        "",
        None,
        [["Tent 299", "tent 299", None, None], ["299", "299", "299", None]],
    ]


def test_a_long_sheet_that_is_not_a_table_is_refused() -> None:
    with pytest.raises(TooLargeError, match="too much text"):
        workbook(Numbers=[(number, number) for number in range(300)])

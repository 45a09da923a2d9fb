"""Delimited files whose rows are too many for the stored text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from rag_service.domain import ParsedDocument
from rag_service.errors import TooLargeError
from rag_service.readers.common import builder
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
    monkeypatch.setattr(delimited, "LONG_TABLE_TEXT_ROWS", 20)


def parse(*lines: str) -> ParsedDocument:
    return parse_delimited("\n".join((HEAD, *lines)) + "\n", name="tents.csv")


def rows_of(document: ParsedDocument) -> list[Any]:
    assert document.long_table is not None
    return [row for batch in read_batches(document.long_table) for row in msgspec.json.decode(batch)]


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
    assert short.long_table is None
    (table,) = extract_tables(short.text, short.spans)
    encoded = encode_table(table)
    assert document.long_table is not None
    assert read_description(document.long_table) == read_description(encoded)
    shown = [row for batch in read_batches(encoded) for row in msgspec.json.decode(batch)]
    assert [_without_places(row) for row in rows_of(document)] == [_without_places(row) for row in shown]
    described = read_description(document.long_table)
    assert [column.kind for column in described.columns] == [Kind.TEXT, Kind.NUMBER, Kind.NUMBER]
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

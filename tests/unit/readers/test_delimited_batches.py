"""Rows of a delimited file that are written together read as rows that are written one by one."""

from __future__ import annotations

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_service.domain import Location
from rag_service.readers.common import tables
from rag_service.readers.common.builder import TextBuilder, one_line
from rag_service.readers.common.cells import row_of
from rag_service.readers.common.tables import write_table
from rag_service.readers.text import delimited
from rag_service.readers.text.delimited import parse_delimited

FIELDS = st.sampled_from(
    ["", " ", "7", "1,5", "Bolt", "two  spaces", "Año", "m²", "10⁶", "Total", "2024-05-01", 'a "b"']
)


def one_by_one(records: list[list[str]]) -> TextBuilder:
    builder = TextBuilder("a.csv")
    rows = (
        row
        for number, record in enumerate(records, start=1)
        if (row := row_of(number, [one_line(field) for field in record])).cells
    )
    write_table(builder, rows, place=lambda row, cell: Location(row=row, cell=cell))
    return builder


@given(rows=st.lists(st.lists(FIELDS, min_size=1, max_size=4), min_size=1, max_size=30), size=st.integers(1, 9))
def test_rows_written_together_are_those_written_one_by_one(rows: list[list[str]], size: int) -> None:
    records = [["Part", "Size", "Stock", "Price"], ["Nut", "M8", "4", "0.20"], *rows]
    file = io.StringIO()
    csv.writer(file, delimiter=";").writerows(records)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(delimited, "_BATCH", size)
        patch.setattr(delimited, "_sniff_delimiter", lambda _: ";")
        patch.setattr(tables, "LOOK_AHEAD", 2)
        together = parse_delimited(file.getvalue(), name="a.csv")
        expected = one_by_one(records).build(title="", media_type="")
    assert together.text == expected.text
    assert together.spans == expected.spans

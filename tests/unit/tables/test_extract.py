"""Tables of sheets and CSV files as their readers write them, messy ones included."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import pytest
from openpyxl import Workbook

from rag_service.readers.parse import parse
from rag_service.readers.text.delimited import parse_delimited
from rag_service.tables.encoding import encode_table, read_description
from rag_service.tables.model import Kind, Table
from rag_service.tables.reading.extract import extract_tables


def tables_of(*rows: Sequence[Any], sheet: str = "Sheet", hidden: Sequence[int] = ()) -> tuple[Table, ...]:
    book = Workbook()
    page = book.active
    assert page is not None
    page.title = sheet
    for row in rows:
        page.append(row)
    for number in hidden:
        page.row_dimensions[number].hidden = True
    written = io.BytesIO()
    book.save(written)
    parsed = parse(written.getvalue(), file_name="book.xlsx")
    return extract_tables(parsed.text, parsed.spans)


def tables_of_csv(text: str) -> tuple[Table, ...]:
    parsed = parse_delimited(text, name="list.csv")
    return extract_tables(parsed.text, parsed.spans)


def numbers(table: Table, column: int) -> list[float | None]:
    cells = [row.cells[column] for row in table.rows if not (row.is_total or row.is_heading)]
    return [None if cell is None or cell.number is None else float(cell.number) for cell in cells]


HEAD = ("Product", "Warehouse", "Stock")
ROWS = (("Bolt", "Lyon", 5), ("Valve", "Lille", 7), ("Pump", "Lyon", 9))


def test_a_sheet_has_its_columns_and_the_place_of_each_cell() -> None:
    (table,) = tables_of(HEAD, *ROWS, sheet="Stocks")
    assert table.sheet == "Stocks"
    assert [(c.letter, c.name, c.kind) for c in table.columns] == [
        ("A", "Product", Kind.TEXT),
        ("B", "Warehouse", Kind.TEXT),
        ("C", "Stock", Kind.NUMBER),
    ]
    assert [row.number for row in table.rows] == [2, 3, 4]
    assert numbers(table, 2) == [5, 7, 9]
    stored = read_description(encode_table(table))
    assert (stored.columns[1].distinct, stored.columns[1].filled) == (2, 3)
    assert stored.row_count == 3


def test_cells_know_where_they_stand_in_the_stored_text() -> None:
    parsed = parse_delimited("name;note\nAna;a: b | c\nBen;12\nChloé;—\n", name="list.csv")
    (table,) = extract_tables(parsed.text, parsed.spans)
    cells = [cell for row in table.rows for cell in row.cells if cell is not None]
    assert [cell.text for cell in cells] == ["Ana", "a: b | c", "Ben", "12", "Chloé", "—"]
    assert all(parsed.text[cell.start : cell.start + len(cell.text)] == cell.text for cell in cells)


def test_the_caption_is_what_stands_above_the_header() -> None:
    (table,) = tables_of(("Stocks of the north, in units",), (), HEAD, *ROWS)
    assert table.caption == "Stocks of the north, in units"


@pytest.mark.parametrize(
    ("above", "caption"),
    [
        ("Table 1. Stocks of the north", "Table 1. Stocks of the north"),
        ("A year ago there were 21. The shifts stay as follows:", ""),
    ],
)
def test_a_number_ends_a_sentence_unless_it_is_that_of_the_title(above: str, caption: str) -> None:
    (table,) = tables_of((above,), (), HEAD, *ROWS)
    assert table.caption == caption


def test_a_paragraph_above_the_header_is_no_caption_but_tells_the_unit() -> None:
    (table,) = tables_of(("The north has 14 depots. All stocks are told (in thousands of euros).",), (), HEAD, *ROWS)
    assert (table.caption, table.unit) == ("", "in thousands of euros")


def test_the_name_of_an_empty_column_is_no_caption_of_the_next_table() -> None:
    names = (*HEAD, "Checked by")
    tables = tables_of(names, *ROWS, (), ("Town", "Rate", "Since"), ("Lyon", 160, 2019), ("Lille", 120, 2020))
    assert [table.caption for table in tables] == ["", ""]


def test_rows_of_totals_are_recognised() -> None:
    (named,) = tables_of(HEAD, *ROWS, ("Total", None, 21))
    (unnamed,) = tables_of(HEAD, *ROWS, (None, None, 21))
    (product,) = tables_of(HEAD, *ROWS, ("Total station TS-5", "Lyon", 4))
    assert [row.is_total for row in named.rows] == [False, False, False, True]
    assert [row.is_total for row in unnamed.rows] == [False, False, False, True]
    assert [row.is_total for row in product.rows] == [False] * 4


def test_subtotals_are_recognised_by_their_sums() -> None:
    rows = (
        ("Bolt", "Lyon", 5),
        ("Valve", "Lyon", 7),
        ("Total Lyon", None, 12),
        ("Pump", "Lille", 9),
        ("Nut", "Lille", 1),
    )
    (table,) = tables_of(HEAD, *rows, ("Total Lille", None, 10), ("Total", None, 22))
    assert [row.number for row in table.rows if row.is_total] == [4, 7, 8]


def test_totals_are_recognised_in_any_language() -> None:
    head = ("Nation", "Gold", "Silver")
    rows = [("Norway", 8, 5), ("Kenya", 4, 6), ("Chile", 2, 0)]
    (dutch,) = tables_of(head, *rows, ("Totaal", 14, 11))
    (behind,) = tables_of(head, *rows, ("Career totals", 14, 12))  # one of them was rounded
    (country,) = tables_of(head, *rows, ("Grand Cayman", 3, 1))
    assert [row.is_total for row in dutch.rows] == [False] * 3 + [True]
    assert [row.is_total for row in behind.rows] == [False] * 3 + [True]
    assert not any(row.is_total for row in country.rows)
    hotels = [("Sea View", 2, 40), ("Park Inn", 2, 55), ("The Grand Plaza", 4, 120), ("City Lodge", 3, 30)]
    (named,) = tables_of(("Hotel", "Stars", "Rooms"), *hotels)
    assert not any(row.is_total for row in named.rows)


def test_running_numbers_are_no_figures_whatever_their_name() -> None:
    """Hours that fall by one from day to day are figures."""
    (table,) = tables_of(("Game", "Hours", "Team"), *((one, one + 2, f"Team {one}") for one in range(5, 0, -1)))
    assert [column.kind for column in table.columns] == [Kind.ORDER, Kind.NUMBER, Kind.TEXT]
    assert numbers(table, 0) == [5, 4, 3, 2, 1]
    (table,) = tables_of_csv("Opponent,Week\n" + "".join(f"Club {one * 7},{one}\n" for one in range(3, 14)))
    assert [column.kind for column in table.columns] == [Kind.TEXT, Kind.ORDER]


def test_words_of_places_and_durations_stay_searchable() -> None:
    (table,) = tables_of_csv("Rank,Runner,Time\n1st,Ana,2:09:11\n2nd,Ben,2:10:02\n3rd,Chloé,2:12:40\n")
    stored = read_description(encode_table(table))
    rank, _, time = stored.texts
    assert rank is not None and set(rank.values()) == {"1st", "2nd", "3rd"}
    assert time is not None and "2:09:11" in time.values()


def test_two_tables_side_by_side_are_two() -> None:
    wide = [
        (*left, None, *right)
        for left, right in zip((HEAD, *ROWS), (("City", "Staff"), ("Lyon", 3), ("Lille", 4), ("Nice", 2)), strict=True)
    ]
    left, right = tables_of(*wide)
    assert [column.name for column in left.columns] == list(HEAD)
    assert [(column.letter, column.name) for column in right.columns] == [("E", "City"), ("F", "Staff")]
    assert numbers(right, 1) == [3, 4, 2]


def test_two_tables_below_each_other_are_two() -> None:
    first, second = tables_of(HEAD, *ROWS, (), (), ("City", "Staff"), ("Lyon", 3), ("Lille", 4))
    assert [column.name for column in first.columns] == list(HEAD)
    assert [column.name for column in second.columns] == ["City", "Staff"]


def test_without_a_header_there_is_no_typed_table() -> None:
    assert tables_of((1, 2, 3), (4, 5, 6), (7, 8, 9)) == ()


def test_errors_and_formulas_without_a_value_are_no_figures() -> None:
    rows = [("Bolt", "Lyon", 5), ("Valve", "Lille", "#DIV/0!"), ("Pump", "Lyon", "=C2*2"), ("Nut", "Lyon", 8)]
    (table,) = tables_of(HEAD, *rows)
    assert table.columns[2].kind is Kind.NUMBER
    assert numbers(table, 2) == [5, None, None, 8]


def test_hidden_rows_count_as_they_do_in_a_sum() -> None:
    (table,) = tables_of(HEAD, *ROWS, hidden=[3])
    assert numbers(table, 2) == [5, 7, 9]


def test_sub_headings_are_sections_of_the_rows_below() -> None:
    (table,) = tables_of(HEAD, ROWS[0], ("Spare parts",), ROWS[1], ROWS[2])
    assert [(row.section, row.is_heading) for row in table.rows] == [
        ("", False), ("Spare parts", True), ("Spare parts", False), ("Spare parts", False),
    ]  # fmt: skip


def test_units_of_headers_are_those_of_their_columns() -> None:
    (table,) = tables_of(("Model", "Weight (kg)", "Salary (€)"), ("A", 1.5, 100), ("B", 2, 200))
    assert [(c.name, c.kind, c.unit) for c in table.columns[1:]] == [
        ("Weight", Kind.NUMBER, "kg"),
        ("Salary", Kind.CURRENCY, "€"),
    ]


def test_european_figures_of_a_csv_file() -> None:
    (table,) = tables_of_csv("mes;ventas;notas\nenero;1.234,56;a\nfebrero;(20,00);b\nmarzo;—;c\n")
    assert numbers(table, 1) == [1234.56, -20.0, None]


def test_two_rows_of_headers_are_one_name() -> None:
    book = Workbook()
    page = book.active
    assert page is not None
    for row in (
        ("Product", "2024", None, "2025", None),
        (None, "Stock", "Orders", "Stock", "Orders"),
        ("Bolt", 1, 2, 3, 4),
        ("Nut", 5, 6, 7, 8),
    ):
        page.append(row)
    page.merge_cells("B1:C1")
    page.merge_cells("D1:E1")
    written = io.BytesIO()
    book.save(written)
    parsed = parse(written.getvalue(), file_name="book.xlsx")
    (table,) = extract_tables(parsed.text, parsed.spans)
    assert [column.name for column in table.columns] == [
        "Product",
        "2024 Stock",
        "2024 Orders",
        "2025 Stock",
        "2025 Orders",
    ]

"""Tables of reports, word processors and web pages become typed tables; what is not certain stays text."""

from __future__ import annotations

import io

import docx
import pytest

from rag_service.readers.parse import parse
from rag_service.readers.web.html import parse_html
from rag_service.tables.model import Kind, Table
from rag_service.tables.periods import period_year
from rag_service.tables.reading.extract import extract_tables
from rag_service.tables.reading.values import find_unit
from tests.reports import BALANCE, INCOME, QUARTERS, STAFF, Line, report
from tests.unit.readers.samples import add_word_table


def tables_of(*pages: tuple[Line, ...] | list[Line]) -> tuple[Table, ...]:
    parsed = parse(report(*pages), file_name="report.pdf")
    found = extract_tables(parsed.text, parsed.spans)
    for table in found:  # each cell stands where it says
        for row in table.rows:
            assert all(parsed.text[c.start : c.start + len(c.text)] == c.text for c in row.cells if c is not None)
    return found


def row(table: Table, name: str) -> list[float | None]:
    found = next(one for one in table.rows if one.cells[0] is not None and one.cells[0].text == name)
    return [None if c is None or c.number is None else float(c.number) for c in found.cells[1:]]


def test_footnote_marks_are_neither_names_nor_figures() -> None:
    lines = [*INCOME[:6], ("Freight\u00b9", "188", "201\u00b2", "176"), *INCOME[7:]]
    (table,) = tables_of(lines)
    assert row(table, "Freight") == [188, 201, 176]


def test_a_statement_has_years_unit_title_and_negative_figures() -> None:
    (table,) = tables_of(list(INCOME))
    assert [column.name for column in table.columns[1:]] == [
        "Years ended December 31, 2024",
        "Years ended December 31, 2023",
        "Years ended December 31, 2022",
    ]
    assert table.unit == "Euros in millions, except per share data"
    assert "Consolidated Statements of Income" in table.caption
    assert (table.by_period, table.page) == (True, 1)
    assert row(table, "Net (loss)/income") == [-83, 22, 14]
    assert row(table, "Impairment of vessels (1)") == [-30, None, None]
    assert row(table, "Effective tax rate") == [12.5, 24.0, 25.1]
    assert row(table, "Basic (loss)/earnings per share") == [-1.66, 0.44, 0.28]


def test_sub_headings_are_the_path_of_a_row_and_totals_close_them() -> None:
    (income,) = tables_of(list(INCOME))
    paths = {one.cells[0].text: one.section for one in income.rows if one.cells[0]}
    assert (paths["Freight"], paths["Total revenues"], paths["Operating expenses"]) == ("Revenues", "Revenues", "")
    (balance,) = tables_of(list(BALANCE))
    paths = {one.cells[0].text: one.section for one in balance.rows if one.cells[0]}
    assert paths["Inventories"] == "Assets › Current assets"
    assert [one.is_total for one in balance.rows] == [False, False, True, False, True]


def test_a_label_of_two_lines_is_one() -> None:
    (table,) = tables_of(list(BALANCE))
    assert row(table, "Vessels and equipment, net of accumulated\ndepreciation") == [702, 744]


def test_dates_over_two_lines_and_names_over_several_columns() -> None:
    (table,) = tables_of(list(QUARTERS))
    assert [column.name for column in table.columns[1:]] == [
        "13 Weeks Ended July 29, 2023",
        "13 Weeks Ended July 30, 2022",
        "26 Weeks Ended July 29, 2023",
        "26 Weeks Ended July 30, 2022",
    ]
    assert row(table, "Net sales") == [81204, 77310, 160118, 149002]


def test_a_row_without_one_of_its_figures_has_the_others_in_their_columns() -> None:
    lines = [*INCOME[:6], ("Subsidies", "4", "", "7"), *INCOME[6:]]
    (table,) = tables_of(lines)
    assert row(table, "Subsidies") == [4, None, 7]


def test_a_table_goes_on_overleaf() -> None:
    first, second = tables_of(list(INCOME[:8]), ["Northwind Ferries plc", *INCOME[8:]])
    assert (first.page, second.page) == (1, 2)
    assert [c.name for c in first.columns] == [c.name for c in second.columns]
    assert row(second, "Interest expense") == [-12, -9, -8]


def test_an_aligned_table_of_a_page_is_typed() -> None:
    (table,) = tables_of(list(STAFF))
    assert [(c.name, c.kind) for c in table.columns] == [
        ("Port", Kind.TEXT),
        ("Employees", Kind.NUMBER),
        ("Vessels", Kind.NUMBER),
    ]
    assert [one.is_total for one in table.rows] == [False, False, True]
    assert {one.page for one in table.rows} == {1}


def test_prose_with_years_and_figures_is_no_table() -> None:
    assert not tables_of(["In 2023 we carried 4,120 passengers, in 2022 only 3,980.", "The fleet grew to 7 in 2024."])


def test_a_table_of_word_is_typed_with_its_cells_and_caption() -> None:
    document = docx.Document()
    for caption, values in (
        ("Table 1. Depots", [("Depot", "Stock"), ("Vigo", "12"), ("Turku", "30")]),
        ("Sales (in thousands)", [("Store", "2023", "2024"), ("Vigo", "1,204", "1,377"), ("Turku", "988", "1,001.5")]),
    ):
        document.add_paragraph(caption)
        add_word_table(document, values)
    buffer = io.BytesIO()
    document.save(buffer)
    parsed = parse(buffer.getvalue(), file_name="depots.docx")
    depots, sales = extract_tables(parsed.text, parsed.spans)
    assert (depots.caption, depots.by_period) == ("Table 1. Depots", False)
    assert (sales.unit, sales.by_period) == ("in thousands", True)
    assert row(sales, "Vigo") == [1204, 1377]
    places = {parsed.text[s.start : s.end]: s.location.cell for s in parsed.spans if s.location.cell}
    assert places["1,377"] == "C2"


def test_a_table_of_a_web_page_is_typed() -> None:
    parsed = parse_html(
        "<h1>Fees</h1><table><caption>Berths</caption><tr><th>Berth</th><th>Fee</th></tr>"
        "<tr><td>North</td><td>12 €</td></tr><tr><td>South</td><td>15 €</td></tr></table>",
        name="fees.html",
    )
    (table,) = extract_tables(parsed.text, parsed.spans)
    assert (table.caption, table.columns[1].kind, table.columns[1].unit) == ("Berths", Kind.CURRENCY, "€")


@pytest.mark.parametrize(
    ("name", "year"),
    [
        ("2022", 2022),
        ("June 30, 2023", 2023),
        ("31 de diciembre de 2023", 2023),
        ("30 juin 2024", 2024),
        ("FY 2024", 2024),
        ("2022 vs. 2021", None),
        ("Notes due 2025", None),
        ("Change", None),
    ],
)
def test_years_and_dates_are_periods(name: str, year: int | None) -> None:
    assert period_year(name) == year


@pytest.mark.parametrize(
    ("line", "unit"),
    [
        ("(Dollars in millions, except per share data)", "Dollars in millions, except per share data"),
        ("Net sales is as follows (in millions):", "in millions"),
        ("en milliers d'euros", "en milliers d'euros"),
        ("We sold 3,000 thousands", ""),
        ("The market is worth millions to whoever reaches it first, as the past has shown us over and over again", ""),
    ],
)
def test_a_line_tells_the_unit_of_all_figures(line: str, unit: str) -> None:
    assert find_unit(line) == unit

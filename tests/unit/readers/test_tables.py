"""Workbooks and CSV files: header names travel with each value, and each value leads to its cell."""

from __future__ import annotations

import datetime
import io
import re
import zipfile

import pytest
from openpyxl import Workbook
from openpyxl.worksheet.formula import ArrayFormula

from rag_service.domain import Location
from rag_service.errors import DocumentError
from rag_service.readers.office import xlsx as workbooks
from rag_service.readers.office.cell_values import render
from rag_service.readers.parse import parse
from tests.unit.readers import samples
from tests.unit.readers.samples import at, cell_texts, saved, xlsx

STOCK = [["Product", "Stock", "Safety stock"], ["Hex bolt M8", 120, 150], ["Washer", 12.0, 0.1 + 0.05]]


def test_sheet_rows_read_well_and_name_their_columns() -> None:
    text = parse(xlsx(STOCK, sheet="Stocks"), file_name="production.xlsx").text
    assert text.splitlines() == [
        "Sheet: Stocks",
        "Product: Hex bolt M8 | Stock: 120 | Safety stock: 150",
        "Product: Washer | Stock: 12 | Safety stock: 0.15",
    ]


def test_quoted_value_leads_to_exactly_one_cell() -> None:
    document = parse(xlsx(STOCK, sheet="Stocks"), file_name="production.xlsx")
    assert at(document, "120") == Location(sheet="Stocks", cell="B2", row=2)
    assert at(document, "0.15") == Location(sheet="Stocks", cell="C3", row=3)
    assert at(document, "Sheet: Stocks\n") == Location(sheet="Stocks")
    labels = [s.location.cell for s in document.spans if document.text[s.start : s.end] == "Product: "]
    assert labels == ["A2:C2", "A3:C3"]


@pytest.mark.parametrize(
    ("value", "number_format", "shown"),
    [
        (12.0, "General", "12"),
        (0.1 + 0.05, "General", "0.15"),
        (-0.0, "General", "0"),
        (1234567.891, "#,##0.00", "1234567.891"),
        (0.15, "0%", "15%"),
        (0.1234, "0.0%", "12.34%"),
        (3, '0 "% of sales"', "3 % of sales"),
        (1e-7, "General", "0.0000001"),
        (1e400, "00000", "inf"),
        (349.5, '#,##0.00 "€"', "349.50 €"),
        (429, "#,##0.00 €", "429 €"),
        (349.5, "_-* #,##0.00 [$€-407]_-;-* #,##0.00 [$€-407]_-", "349.50 €"),
        (12, "$#,##0", "$12"),
        (-12.25, "[$£-809]#,##0.00;[Red]-[$£-809]#,##0.00", "-£12.25"),
        (1200, '#,##0 "CHF"', "1200 CHF"),
        (1200, "[$USD] #,##0", "USD 1200"),
        (1200.5, "[$-409]#,##0.00", "1200.5"),
        (2, '0 "PCS. OF"', "2 PCS. OF"),
        (1.005, '#,##0.00 "€"', "1.005 €"),
        (True, "General", "TRUE"),
        (datetime.datetime(2024, 5, 1), "dd/mm/yy", "2024-05-01"),
        (datetime.datetime(2024, 5, 1, 13, 30), "General", "2024-05-01 13:30"),
        (datetime.time(7, 5), "h:mm", "07:05"),
        (datetime.timedelta(hours=30, minutes=5), "[h]:mm", "30:05"),
        (-datetime.timedelta(minutes=90, seconds=7), "[h]:mm:ss", "-1:30:07"),
        ("two\nlines\x00 ", "@", "two lines"),
    ],
)
def test_values_are_written_in_a_clean_form(value: object, number_format: str, shown: str) -> None:
    assert render(value, number_format) == shown


def test_percent_and_date_formats_of_the_file_are_honoured() -> None:
    book = Workbook()
    book.active.append(["Name", "Share", "Since", "Open"])
    book.active.append(["North", 0.15, datetime.date(2024, 5, 1), False])
    book.active["B2"].number_format = "0.0%"
    assert cell_texts(parse(saved(book), file_name="a.xlsx")) == {
        "A2": "North", "B2": "15%", "C2": "2024-05-01", "D2": "FALSE"
    }  # fmt: skip


def test_rows_above_the_header_are_kept_and_do_not_become_it() -> None:
    book = Workbook()
    book.active["A1"] = "Stock report"
    book.active.merge_cells("A1:D1")
    book.active["A2"], book.active["B2"] = "Plant", "Valencia"
    for row in [[], ["Product", "Stock", "Min", "Max"], ["Bolt", 1, 2, 3], ["Nut", 4, 5, 6]]:
        book.active.append(row)
    lines = parse(saved(book), file_name="a.xlsx").text.splitlines()
    assert lines[1:3] == ["Stock report", "Plant | Valencia"]
    assert lines[3] == "Product: Bolt | Stock: 1 | Min: 2 | Max: 3"


def test_merged_cells_speak_for_all_they_cover() -> None:
    book = Workbook()
    for row in [
        ["Region", "Product", "2024", None],
        [None, None, "Stock", "Orders"],
        ["North", "Bolt", 1, 2],
        [None, "Nut", 3, 4],
    ]:
        book.active.append(row)
    for area in ("A1:A2", "B1:B2", "C1:D1", "A3:A4"):
        book.active.merge_cells(area)
    document = parse(saved(book), file_name="a.xlsx")
    assert document.text.splitlines()[1:] == [
        "Region: North | Product: Bolt | 2024 Stock: 1 | 2024 Orders: 2",
        "Region: North | Product: Nut | 2024 Stock: 3 | 2024 Orders: 4",
    ]
    assert {s.location.cell for s in document.spans if document.text[s.start : s.end] == "North"} == {"A3:A4"}


def test_second_table_of_a_sheet_brings_its_own_names() -> None:
    rows = [["Product", "Stock"], ["Bolt", 1], [], ["Name", "Phone"], ["Ana", 123]]
    assert "Name: Ana | Phone: 123" in parse(xlsx(rows), file_name="a.xlsx").text


def test_hidden_sheets_are_read_and_empty_cells_left_out() -> None:
    book = Workbook()
    book.active.append(["A", "B", "C"])
    book.active.append([1, None, 3])
    hidden = book.create_sheet("Secret")
    hidden.append(["x", "y"])
    hidden.sheet_state = "hidden"
    text = parse(saved(book), file_name="a.xlsx").text
    assert "A: 1 | C: 3\n" in text
    assert text.endswith("Sheet: Secret\nx | y\n")


def test_a_formula_without_a_stored_value_is_shown_itself() -> None:
    rows = [["Item", "Price", "Total"], ["Bolt", 2, "=B2*3"], ["All", 2, ArrayFormula("C3", "=SUM(B2:B2*3)")]]
    document = parse(xlsx(rows), file_name="a.xlsx")
    assert document.text.splitlines()[1:] == [
        "Item: Bolt | Price: 2 | Total: =B2*3",
        "Item: All | Price: 2 | Total: =SUM(B2:B2*3)",
    ]
    assert at(document, "=B2*3").cell == "C2"


@pytest.mark.parametrize(
    ("cell", "shown"),
    [
        ('<c r="C2"><f>B2*3</f><v>6</v></c>', " | Total: 6"),
        ('<c r="C2" t="str"><f>IF(B2=2,"","x")</f><v></v></c>', ""),  # its value is the empty text
        ('<c r="C2"><f/></c>', ""),
        ("<c><f>B2*3</f></c>", ""),  # does not say where it stands
    ],
)
def test_a_formula_with_a_stored_value_gives_that(cell: str, shown: str) -> None:
    data = xlsx([["Item", "Price", "Total"], ["Bolt", 2, "=B2*3"]])
    sheet = "xl/worksheets/sheet1.xml"
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        written = archive.read(sheet).decode()
    changed = re.sub('<c r="C2">.*?</c>', lambda _: cell, written)
    assert changed != written
    assert (
        parse(samples.with_members(data, {sheet: changed.encode()}), file_name="a.xlsx").text.splitlines()[1]
        == f"Item: Bolt | Price: 2{shown}"
    )


def test_workbook_without_values_is_refused_as_empty() -> None:
    with pytest.raises(DocumentError, match="contains no text"):
        parse(saved(Workbook()), file_name="a.xlsx")


def test_cells_in_opposite_corners_cost_nothing() -> None:
    document = parse(samples.far_corner_xlsx(), file_name="a.xlsx")
    assert document.text == "Sheet: S\nfirst\nlast\n"
    assert at(document, "last").cell == "XFD1048576"


def test_a_page_header_that_pages_share_is_read_once_and_many_hidden_sheets_are_counted() -> None:
    book = Workbook()
    first = book.active
    assert first is not None
    first.append(["Bolt", 1])
    first.oddHeader.center.text = first.firstHeader.center.text = "Draft of May"
    for number in range(23):
        sheet = book.create_sheet(f"S{number}")
        sheet.append(["Nut", 2])
        sheet.sheet_state = "hidden"
    document = parse(saved(book), file_name="a.xlsx")
    assert document.text.count("Draft of May") == 1
    (warning,) = document.warnings
    assert warning.endswith('sheet "S18", sheet "S19", and 3 more.')


def test_a_text_that_many_cells_share_is_cleaned_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A workbook of one megabyte of text in 30,000 cells took half a minute."""
    cleaned: list[object] = []

    def count(value: object, *number_format: str) -> str:
        cleaned.append(value)
        return render(value, *number_format)

    monkeypatch.setattr(workbooks, "render", count)
    text = parse(xlsx([["Name", "State"], ["Bolt", "open"], ["Nut", "open"], ["Pin", "open"]]), file_name="a.xlsx").text
    assert text.count("State: open") == 3
    assert cleaned.count("open") == 1


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_csv_delimiter_is_found(delimiter: str) -> None:
    rows = [["Product", "Stock"], ["Bolt", "120"], ["Nut", "7"]]
    data = "\n".join(delimiter.join(row) for row in rows).encode()
    document = parse(data, file_name="a.csv")
    assert document.text == "Product: Bolt | Stock: 120\nProduct: Nut | Stock: 7\n"
    assert at(document, "7") == Location(row=3, cell="B3")


def test_decimal_commas_do_not_pass_for_delimiters() -> None:
    data = "Producto;Precio;Peso\nTornillo;1,50;0,2\nTuerca;2,25;0,1\n".encode("cp1252")
    assert parse(data, file_name="a.csv").text.startswith("Producto: Tornillo | Precio: 1,50 | Peso: 0,2\n")


def test_csv_rows_are_counted_by_record_not_by_line() -> None:
    document = parse(b'Name,Note\nAna,"first\nsecond, ""quoted"""\n\nBob,last\n', file_name="a.csv")
    assert at(document, 'first second, "quoted"') == Location(row=2, cell="B2")
    assert at(document, "last") == Location(row=4, cell="B4")


def test_csv_without_header_keeps_plain_values() -> None:
    assert parse(b"1,2\n3,4\n", file_name="a.csv").text == "1 | 2\n3 | 4\n"


def test_csv_of_names_only_loses_nothing() -> None:
    assert parse(b"Product,Stock\n", file_name="a.csv").text == "Product | Stock\n"


def test_endless_quoted_field_is_explained() -> None:
    data = b'a,b\n"' + b"never closed,\n" * 20_000
    with pytest.raises(DocumentError, match="quotation mark"):
        parse(data, file_name="a.csv")


def test_a_name_beside_empty_cells_spans_them_if_the_row_below_names_each_column() -> None:
    rows = [
        ["Building", "Area", "Electricity", None, "Gas", None, "Manager"],
        [None, None, "kWh", "Cost", "kWh", "Cost", None],
        ["Depot", 3100, 55600, 15568, 120, 30, "A. Lund"],
    ]
    assert parse(xlsx(rows), file_name="meters.xlsx").text.splitlines()[-1] == (
        "Building: Depot | Area: 3100 | Electricity kWh: 55600 | Electricity Cost: 15568 | Gas kWh: 120 | "
        "Gas Cost: 30 | Manager: A. Lund"
    )
    rows[1][0] = "of the town"  # goes on in another column: nothing says what is above what
    assert "Electricity kWh" not in parse(xlsx(rows), file_name="meters.xlsx").text


def page_lines(table: str) -> list[str]:
    return parse(f"<html><body><table>{table}</table></body></html>".encode(), file_name="a.html").text.split("\n")


def test_signs_of_a_financial_report_join_the_amounts_that_they_belong_to() -> None:
    years = "<tr><td></td><td colspan=2>2025</td><td></td><td colspan=2>2024</td><td></td></tr>"
    section = "<tr><td>Revenue:</td></tr>"
    fees = "<tr><td>Fees</td><td>$</td><td>1,904</td><td></td><td>$</td><td>(220</td><td>)</td></tr>"
    rents = "<tr><td>Rents</td><td></td><td>80</td><td></td><td>$</td><td>—</td><td></td></tr>"
    assert page_lines(years + section + fees + rents)[:3] == [
        "Revenue:",
        "Fees | 2025: $1,904 | 2024: $(220)",
        "Rents | 2025: 80 | 2024: $—",
    ]


def test_a_sign_without_an_amount_joins_none_of_another_column() -> None:
    head = "<tr><th>Item</th><th></th><th>2024</th><th>Change</th></tr>"
    rows = "<tr><td>Sales</td><td>$</td><td>10</td><td>5</td></tr><tr><td>Costs</td><td>$</td><td></td><td>7</td></tr>"
    lines = page_lines(head + rows)
    assert lines[0] == "Item: Sales | 2024: $10 | Change: 5"
    assert lines[1].endswith("| Change: 7")


def test_a_column_of_currencies_keeps_its_name() -> None:
    rows = "<tr><td>Item</td><td>Currency</td><td>Price</td></tr><tr><td>Bolt</td><td>$</td><td>5</td></tr>"
    assert page_lines(rows)[0] == "Item: Bolt | Currency: $ | Price: 5"

# ruff: noqa: E501 - lines of files
"""Excel files."""

from __future__ import annotations

import datetime
import io
import re
import zipfile
from collections.abc import Callable, Mapping

from openpyxl import Workbook
from openpyxl.cell.rich_text import CellRichText, TextBlock
from openpyxl.cell.text import InlineFont
from openpyxl.comments import Comment
from openpyxl.styles import Font, PatternFill

from tests.golden.packages import DAY, strict, with_macros
from tests.unit.readers.samples import saved, with_members


def _saved(book: Workbook) -> bytes:
    """The workbook as if it had always been saved on the same day; openpyxl writes the time of saving."""
    book.properties.created = DAY
    data = saved(book)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        properties = archive.read("docProps/core.xml")
    same = re.sub(rb"[^>]+(?=</dcterms:modified>)", f"{DAY.isoformat()}Z".encode(), properties)
    return with_members(data, {"docProps/core.xml": same})


def _cell_formats() -> bytes:
    book = Workbook()
    sheet = book.active
    sheet.title = "May"
    sheet.append(["Item", "Share", "Price", "Day", "Time worked"])
    sheet.append(["Chair", 0.25, 1200.5, datetime.date(2026, 3, 2), datetime.timedelta(hours=30, minutes=15)])
    for cell, form in (("B2", "0%"), ("C2", "#,##0.00 €"), ("D2", "dd/mm/yyyy"), ("E2", "[h]:mm")):
        sheet[cell].number_format = form
    sheet["C2"].comment = Comment("With tax.", "Ana")
    return _saved(book)


def _title_block() -> bytes:
    book = Workbook()
    sheet = book.active
    sheet.title = "Fares"
    for row in (["Fares of the city line"], [], ["Zone", "Fare"], ["North", 3.2], ["South", 1.9]):
        sheet.append(row)
    other = book.create_sheet("Notes")
    other.append(["Valid from May."])
    return _saved(book)


def _stacked_tables() -> bytes:
    book = Workbook()
    book.active.title = "Both"
    staff = [["Staff"], ["Name", "Hours"], ["Ana", 30], ["Luis", 20], ["Total", 50], []]
    for row in (*staff, ["Machines"], ["Machine", "Power kW"], ["Saw", 2.5], ["Press", 7]):
        book.active.append(row)
    return _saved(book)


def _strict_sheet() -> bytes:
    """Strict workbooks store dates as text."""
    book = Workbook()
    book.active.title = "May"
    book.active.append(["Day", "Fare"])
    book.active.append(["x", 3.2])
    data = _saved(book)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        sheet = archive.read("xl/worksheets/sheet1.xml").decode()
    dated = re.sub(r'<c r="A2".*?</c>', '<c r="A2" t="d"><v>2026-03-02</v></c>', sheet)
    return strict(with_members(data, {"xl/worksheets/sheet1.xml": dated.encode()}))


def _merged_sheet() -> bytes:
    book = Workbook()
    sheet = book.active
    sheet.title = "Rooms"
    for row in (
        ["Grade", "Hotel", None],
        [None, "Madrid", "Paris"],
        ["B", 160, 190],
        ["C", 100, None],
        [None, 90, 95],
    ):
        sheet.append(row)
    for merge in ("A1:A2", "B1:C1", "B4:C4", "A4:A5"):
        sheet.merge_cells(merge)
    return _saved(book)


def _hidden_sheet() -> bytes:
    book = Workbook()
    book.active.title = "Shown"
    book.active.append(["Gate", "State"])
    book.active.append([4, "closed"])
    book.active.append([5, "open"])
    book.active.row_dimensions[3].hidden = True
    other = book.create_sheet("Kept")
    other.sheet_state = "hidden"
    other.append(["Code", 4711])
    return _saved(book)


def _values() -> bytes:
    book = Workbook()
    sheet = book.active
    sheet.title = "Values"
    sheet.append(["Name", "Value"])
    rows = (
        ("true", True),
        ("whole", 12.0),
        ("noise", 0.1 + 0.2),
        ("formula", "=1+1"),
        ("error", "#N/A"),
        ("big", 12345678901),
        ("share", 0.155),
        ("time", datetime.time(9, 30)),
        ("moment", datetime.datetime(2026, 3, 2, 10, 30)),
    )
    for row in rows:
        sheet.append(row)
    sheet["B8"].number_format = "0.0%"
    return _saved(book)


def _money() -> bytes:
    book = Workbook()
    sheet = book.active
    sheet.title = "Money"
    sheet.append(["Item", "Euro", "Dollar", "Franc"])
    sheet.append(["Chair", 349.5, -12, 1200])
    for cell, form in (("B2", '#,##0.00\\ "€"'), ("C2", "[$$-409]#,##0"), ("D2", '#,##0 "CHF"')):
        sheet[cell].number_format = form
    return _saved(book)


def _sheet_looks() -> bytes:
    book = Workbook()
    sheet = book.active
    sheet.title = "Looks"
    sheet.append(["Item", "Note", "Price"])
    sheet.append(["Chair", "old", 40])
    sheet["B2"].font = Font(strike=True)
    sheet["A3"] = CellRichText("Water H", TextBlock(InlineFont(vertAlign="subscript"), "2"), "O")
    sheet["C3"] = 2
    return _saved(book)


def _xlsm() -> bytes:
    return with_macros(_title_block(), b"excel.sheet", b"spreadsheetml.sheet.main+xml", "xl")


def _shown_formats() -> bytes:
    book = Workbook()
    sheet = book.active
    sheet.title = "Formats"
    for name, value, form in (
        ("Worked", datetime.timedelta(hours=30, minutes=15), "[h]:mm"), ("Share", 0.125, "0.0%"),
        ("Loss", -1234.5, "#,##0.00_);(#,##0.00)"), ("Euro", 1200.5, "#,##0.00 [$€-407]"), ("Half", 2.5, "# ?/?"),
        ("Millions", 2_500_000, '0.0,,"M"'), ("Post code", 1234, "00000"), ("Phone", 5551234, "000-0000"),
        ("Boxes", 5, '0" boxes"'), ("Coins", 19.99, '0\\ "dollars and"\\ .00\\ "cents"'), ("Load", 12.5, "General\\ \\k\\g"), ("Paid", True, "General"), ("None", "#N/A", "General"),
        ("Clock", datetime.time(14, 30), "h:mm AM/PM"), ("Dues", -30, '_("$"* #,##0.00_);_("$"* \\(#,##0.00\\);_("$"* "-"??_);_(@_)'),
    ):  # fmt: skip
        sheet.append([name, value])
        sheet.cell(sheet.max_row, 2).number_format = form
    return _saved(book)


def _hidden_parts() -> bytes:
    book = Workbook()
    sheet = book.active
    sheet.title = "Prices"
    for line in (("Item", "Price", "Cost"), ("Chair", 40, 21), ("Desk", 90, 55), ("Lamp", 15, 7), ("Sofa", 400, 210)):
        sheet.append(line)
    sheet.auto_filter.ref = "A1:C5"
    for number in (3, 4):  # as a filter leaves them
        sheet.row_dimensions[number].hidden = True
    for name in ("C", "F"):  # nothing stands in F
        sheet.column_dimensions[name].hidden = True
    sheet.oddHeader.center.text = '&8&K00-020&"Arial,Bold"Draft of May'
    sheet.oddFooter.left.text = "Page &P of &N"
    for title, state in (("Margins", "hidden"), ("Keys", "veryHidden")):
        other = book.create_sheet(title)
        other.append(["Chair", 0.47])
        other.sheet_state = state
        other.oddHeader.center.text = "Draft of May"
    return _saved(book)


def _tables_and_lists() -> bytes:
    book = Workbook()
    book.active.title = "Club"
    table = [["Month", "Income", "Costs"], ["Jan", 100, 90], ["Feb", 120, 80], []]
    people = [["Contact", "Ana", 612], ["Chair", "Joan", 613], []]
    corners = [[None, "Child", "Adult"], ["Monday", 8, 10], ["Sunday", 9, 11], [], [None, "Senior"], ["Monday", 5]]
    for row in (*table, *people, *corners):
        book.active.append(row)
    return _saved(book)


def _words_in_formats() -> bytes:
    book = Workbook()
    sheet = book.active
    sheet.title = "Words"
    sheet.append(["Item", "Value"])
    for name, value, form in (
        ("Tax", 7, '0"%"'), ("Cheese", 3.5, '0.00" per kg"'), ("Place", 42, '"A-"000'), ("Member", 1, '"yes";;"no"'),
        ("Guest", 0, '"yes";;"no"'), ("Sales", 2_500_000, '0.0,,"M"'), ("Margin", 777, ";;;"), ("None", 0, "0;-0;"),
    ):  # fmt: skip
        sheet.append([name, value])
        sheet.cell(sheet.max_row, 2).number_format = form
    sheet.append(["Secret", 900])
    sheet["B10"].font = Font(color="FFFFFFFF")
    sheet.append(["On a ground", 250])
    sheet["B11"].font, sheet["B11"].fill = Font(color="FFFFFFFF"), PatternFill("solid", fgColor="FF000080")
    return _saved(book)


SHEETS: Mapping[str, Callable[[], bytes]] = {
    "xlsx/cell_formats.xlsx": _cell_formats,
    "xlsx/title_block.xlsx": _title_block,
    "xlsx/stacked_tables.xlsx": _stacked_tables,
    "xlsx/strict.xlsx": _strict_sheet,
    "xlsx/macros.xlsm": _xlsm,
    "xlsx/merged.xlsx": _merged_sheet,
    "xlsx/hidden.xlsx": _hidden_sheet,
    "xlsx/values.xlsx": _values,
    "xlsx/money.xlsx": _money,
    "xlsx/looks.xlsx": _sheet_looks,
    "xlsx/shown_formats.xlsx": _shown_formats,
    "xlsx/hidden_parts.xlsx": _hidden_parts,
    "xlsx/words_in_formats.xlsx": _words_in_formats,
    "xlsx/tables_and_lists.xlsx": _tables_and_lists,
}

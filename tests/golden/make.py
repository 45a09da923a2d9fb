# ruff: noqa: E501 - lines of files
"""Makes the inputs that cannot be written by hand: office files, PDFs, archives. Their bytes are the same each time."""

from __future__ import annotations

import datetime
import io
import zipfile
from collections.abc import Callable, Mapping

import docx
from fpdf import FPDF
from openpyxl import Workbook
from openpyxl.comments import Comment

from tests.unit.readers import office_samples as office
from tests.unit.readers.corpus import messy_word as word
from tests.unit.readers.samples import add_word_table, saved, with_members

_DAY = datetime.datetime(2026, 3, 2, 10, 0)


def _fixed(data: bytes) -> bytes:
    """A ZIP file without the time at which it was made."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as new:
        for member in old.infolist():
            new.writestr(
                zipfile.ZipInfo(member.filename, (2026, 3, 2, 10, 0, 0)), old.read(member), zipfile.ZIP_DEFLATED
            )
    return buffer.getvalue()


def _document(*, author: str = "") -> docx.document.Document:
    document = docx.Document()
    properties = document.core_properties
    properties.author, properties.created, properties.modified = author, _DAY, _DAY
    return document


# -- Word


def _merged_table() -> bytes:
    document = _document()
    document.add_heading("Rates", 1)
    table = add_word_table(document, [["Grade", "Madrid", "Paris"], ["B", "160 EUR", "190 EUR"], ["C", "100 EUR", ""]])
    table.cell(2, 1).merge(table.cell(2, 2))
    document.add_paragraph("Rates hold until May.")
    return saved(document)


def _tracked_changes() -> bytes:
    deleted = '<w:del w:id="1" w:author="A"><w:r><w:delText xml:space="preserve">six weeks </w:delText></w:r></w:del>'
    inserted = f'<w:ins w:id="2" w:author="A">{word.run("three months ")}</w:ins>'
    return word.document(word.par(word.run("Notice is "), deleted, inserted, word.run("before leaving.")))


def _footnote() -> bytes:
    mark = '<w:r><w:footnoteReference w:id="2"/></w:r>'
    return word.document(
        word.par(word.run("The fee is 500"), mark, word.run(" euros.")),
        word.par("It is paid once."),
        footnotes=word.note("footnote", 2, "Plus tax."),
    )


def _nested_table() -> bytes:
    inner = word.table(
        word.row(word.cell("Day"), word.cell("Fee")), word.row(word.cell("Sunday"), word.cell("3")), columns=2
    )
    return word.document(
        word.par("Fees"),
        word.table(
            word.row(word.cell("Zone"), word.cell("Fees"), header=True),
            word.row(word.cell("North"), word.cell("see below", inner)),
            columns=2,
        ),
    )


# -- Sheets


def _cell_formats() -> bytes:
    book = Workbook()
    sheet = book.active
    sheet.title = "May"
    sheet.append(["Item", "Share", "Price", "Day", "Time worked"])
    sheet.append(["Chair", 0.25, 1200.5, datetime.date(2026, 3, 2), datetime.timedelta(hours=30, minutes=15)])
    for cell, form in (("B2", "0%"), ("C2", "#,##0.00 €"), ("D2", "dd/mm/yyyy"), ("E2", "[h]:mm")):
        sheet[cell].number_format = form
    sheet["C2"].comment = Comment("With tax.", "Ana")
    book.properties.created = book.properties.modified = _DAY
    return saved(book)


def _title_block() -> bytes:
    book = Workbook()
    sheet = book.active
    sheet.title = "Fares"
    for row in (["Fares of the city line"], [], ["Zone", "Fare"], ["North", 3.2], ["South", 1.9]):
        sheet.append(row)
    other = book.create_sheet("Notes")
    other.append(["Valid from May."])
    book.properties.created = book.properties.modified = _DAY
    return saved(book)


def _ods_values() -> bytes:
    cell = office.odf_cell
    return office.odf(
        "spreadsheet",
        office.odf_table(
            [cell("Item"), cell("Share"), cell("Day")],
            [
                cell("Chair", 'table:number-rows-spanned="2"'),
                cell("25 %", 'office:value-type="percentage" office:value="0.25"'),
                cell("02/03/26", 'office:value-type="date" office:date-value="2026-03-02"'),
            ],
            [
                "<table:covered-table-cell/>",
                cell("75 %", 'office:value-type="percentage" office:value="0.75"'),
                cell(""),
            ],
            name="May",
        ),
    )


# -- OpenDocument texts

_LEVELS = (
    '<text:list-level-style-number text:level="1" style:num-format="1" style:num-suffix="."/>'
    '<text:list-level-style-number text:level="2" style:num-format="1" style:num-suffix="." text:display-levels="2"/>'
    '<text:list-level-style-number text:level="3" style:num-format="a" style:num-suffix=")"/>'
)


def _list(*items: str, style: str = "L1", more: str = "") -> str:
    named = f' text:style-name="{style}"' if style else ""
    return f"<text:list{named}{more}>{''.join(items)}</text:list>"


def _item(*content: str, more: str = "") -> str:
    inner = "".join(part if part.startswith("<") else f"<text:p>{part}</text:p>" for part in content)
    return f"<text:list-item{more}>{inner}</text:list-item>"


def _heading(text: str, level: int = 1, more: str = "") -> str:
    return f'<text:h text:outline-level="{level}"{more}>{text}</text:h>'


def _odt(body: str, *, outline: str = "", styles: str = "") -> bytes:
    lists = f'<text:list-style style:name="L1">{_LEVELS}</text:list-style>'
    data = office.odf("text", body, styles=lists + styles)
    names = office._ODF_NAMES
    sheet = f"<office:document-styles {names}><office:styles><text:outline-style>{outline}</text:outline-style></office:styles></office:document-styles>"
    return with_members(data, {"styles.xml": sheet.encode()}) if outline else data


_OUTLINE = (
    '<text:outline-level-style text:level="1" style:num-format="1" style:num-suffix="."/>'
    '<text:outline-level-style text:level="2" style:num-format="1" text:display-levels="2"/>'
)


def _odt_outline() -> bytes:
    return _odt(
        _heading("Scope")
        + "<text:p>For all staff.</text:p>"
        + _heading("Leave")
        + _heading("Annual leave", 2)
        + "<text:p>23 days.</text:p>"
        + _heading("Sick leave", 2)
        + "<text:p>Tell your manager.</text:p>"
        + _heading("Index", more=' text:is-list-header="true"'),
        outline=_OUTLINE,
    )


def _odt_list() -> bytes:
    return _odt(
        "<text:p>Steps</text:p>"
        + _list(_item("Fill in the form.", _list(_item("Name."), _item("Date."), style="")), _item("Send it."))
        + "<text:p>Later:</text:p>"
        + _list(_item("Wait."), more=' text:continue-numbering="true"')
        + _list(_item("New list."), _item("Goes on.", more=' text:start-value="7"'))
    )


def _odt_bullets() -> bytes:
    bullets = '<text:list-style style:name="L2"><text:list-level-style-bullet text:level="1" text:bullet-char="•"/></text:list-style>'
    return _odt("<text:p>Bring:</text:p>" + _list(_item("a pen"), _item("paper"), style="L2"), styles=bullets)


def _odt_note() -> bytes:
    note = '<text:note text:note-class="footnote"><text:note-citation>1</text:note-citation><text:note-body><text:p>Plus tax.</text:p></text:note-body></text:note>'
    return _odt(f"<text:p>The fee is 500{note} euros.</text:p><text:p>It is paid once.</text:p>")


# -- Slides


def _deck() -> bytes:
    return office.pptx(
        [office.shape("Plan of May", kind="ctrTitle"), office.shape("For all staff", kind="subTitle")],
        [office.shape("Rates", kind="title"), office.shape("Up by two percent", "Hold until May")],
        notes={2: "Ask Ana."},
    )


def _deck_chart() -> bytes:
    return office.pptx(
        [office.shape("Trips", kind="title"), office.chart_frame("rIdC")],
        charts={1: office.chart("Trips by year", ["2023", "2024"], {"Madrid": ["412", "398"]})},
    )


# -- Books, archives, PDF


def _book() -> bytes:
    return office.epub(
        ["<h1>One</h1><p>It was late.</p>", "<h1>Two</h1><ol><li>Wait.</li><li>Go.</li></ol>"], title="Nights"
    )


def _archive() -> bytes:
    return office.zipped(
        {"a/notes.txt": "Gate 4 is closed.", "prices.csv": "Item,Price\nChair,40\n", "photo.bin": bytes(64)}
    )


def _pdf(write: Callable[[FPDF], None]) -> bytes:
    file = FPDF()
    file.set_creation_date(_DAY.replace(tzinfo=datetime.UTC))
    file.set_font("Helvetica", size=11)
    write(file)
    return bytes(file.output())


def _pdf_headings() -> bytes:
    def write(file: FPDF) -> None:
        file.add_page()
        for text, size in (("Terms of use", 20), ("Payment", 14)):
            file.set_font("Helvetica", style="B", size=size)
            file.cell(0, 12, text, new_x="LMARGIN", new_y="NEXT")
        file.set_font("Helvetica", size=11)
        file.multi_cell(
            0, 6, "Payment is due within thirty days after the invoice was sent to the customer by mail or by post."
        )

    return _pdf(write)


def _pdf_table() -> bytes:
    def write(file: FPDF) -> None:
        file.add_page()
        with file.table() as table:
            for row in (("Zone", "Fare"), ("North", "3.20"), ("South", "1.90")):
                table.row(row)

    return _pdf(write)


def _pdf_footer() -> bytes:
    def write(file: FPDF) -> None:
        for number, text in enumerate(("The gate is closed.", "The gate is open.", "The gate is gone."), start=1):
            file.add_page()
            file.multi_cell(0, 6, f"{text} Nobody may pass. The guard has the key, and the office knows why.\n\nAsk there on day {number}.")
            file.set_xy(10, 270)
            file.cell(0, 6, f"City line, page {number}")

    return _pdf(write)


MAKERS: Mapping[str, Callable[[], bytes]] = {
    "docx/merged_table.docx": _merged_table,
    "docx/tracked_changes.docx": _tracked_changes,
    "docx/footnote.docx": _footnote,
    "docx/nested_table.docx": _nested_table,
    "xlsx/cell_formats.xlsx": _cell_formats,
    "xlsx/title_block.xlsx": _title_block,
    "ods/values.ods": _ods_values,
    "odt/outline.odt": _odt_outline,
    "odt/numbered_list.odt": _odt_list,
    "odt/bullets.odt": _odt_bullets,
    "odt/footnote.odt": _odt_note,
    "pptx/deck.pptx": _deck,
    "pptx/chart.pptx": _deck_chart,
    "epub/book.epub": _book,
    "zip/archive.zip": _archive,
    "pdf/headings.pdf": _pdf_headings,
    "pdf/table.pdf": _pdf_table,
    "pdf/footer.pdf": _pdf_footer,
}


def made(name: str) -> bytes:
    """An input's bytes."""
    data = MAKERS[name]()
    return _fixed(data) if data.startswith(b"PK") else data

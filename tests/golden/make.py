# ruff: noqa: E501 - lines of files
"""Makes the inputs that cannot be written by hand: office files, PDFs, archives. Their bytes are the same each time."""

from __future__ import annotations

import datetime
import io
import re
import zipfile
import zlib
from collections.abc import Callable, Mapping

import docx
from fpdf import FPDF
from openpyxl import Workbook
from openpyxl.cell.rich_text import CellRichText, TextBlock
from openpyxl.cell.text import InlineFont
from openpyxl.comments import Comment
from openpyxl.styles import Font
from PIL import Image, ImageDraw

from tests.golden.make_office import OFFICE_MAKERS
from tests.unit.readers import office_samples as office
from tests.unit.readers.corpus import messy_word as word
from tests.unit.readers.samples import add_word_table, pdf_of_objects, saved, stream, with_members

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


def _odt_nested_table() -> bytes:
    inner = office.odf_table(
        [office.odf_cell("Day"), office.odf_cell("Fee")], [office.odf_cell("Sunday"), office.odf_cell("3")]
    )
    outer = office.odf_table(
        [office.odf_cell("Zone"), office.odf_cell("Fees")],
        [office.odf_cell("North"), f"<table:table-cell><text:p>see below</text:p>{inner}</table:table-cell>"],
    )
    return _odt(f"<text:p>Fees</text:p>{outer}<text:p>Paid on entry.</text:p>")


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


def _deck_groups() -> bytes:
    def group(*shapes: str) -> str:
        return f"<p:grpSp>{''.join(shapes)}</p:grpSp>"

    footer = office.shape("Lines of the north", kind="ftr")
    return office.pptx(
        [
            office.shape("Budget", kind="title"),
            group(office.shape("Inner"), group(office.shape("Innermost"))),
            office.slide_table(["Item", "2024", "2025"], ["Rent", "100", "120"], ["Total", "100", "120"]),
            office.slide_table(["Prices in euros", "<"], ["Item", "Price"], ["Chair", "40"]),
            footer,
        ],
        [office.shape("Next steps", kind="title"), footer, office.shape("2", kind="sldNum")],
    )


def _odp_groups() -> bytes:
    def frame(content: str, attributes: str = "") -> str:
        return f"<draw:frame {attributes}><draw:text-box>{content}</draw:text-box></draw:frame>"

    group = "<draw:custom-shape><text:p>In a shape</text:p></draw:custom-shape>"
    inner = "<text:list><text:list-item><text:p>two</text:p></text:list-item></text:list>"
    table = office.odf_table(
        *[[office.odf_cell(text) for text in row] for row in (["Item", "Price", "Tax"], ["Chair", "40", "8"])]
    )
    return office.odf(
        "presentation",
        '<presentation:footer-decl presentation:name="f">Lines of the north</presentation:footer-decl><draw:page>'
        + frame("<text:p>Plan</text:p>", 'presentation:class="title"')
        + f"<draw:g>{frame('<text:p>Inside a group</text:p>')}{group}</draw:g>"
        + frame(f"<text:list><text:list-item><text:p>one</text:p>{inner}</text:list-item></text:list>")
        + f"<draw:frame>{table}</draw:frame>"
        + f"<presentation:notes>{frame('<text:p>Ask Ana.</text:p>')}</presentation:notes></draw:page>",
    )


def _ods_merged() -> bytes:
    wide = office.odf_cell("2024", 'table:number-columns-spanned="2"') + "<table:covered-table-cell/>"
    rows = [["", "Plan", "Actual"], ["North", "100", "110"], ["Total", "100", "110"]]
    cells = [[office.odf_cell("Region"), wide], *([office.odf_cell(text) for text in row] for row in rows)]
    return office.odf("spreadsheet", office.odf_table(*cells, name="Sales"))


def _stacked_tables() -> bytes:
    def write(book: Workbook) -> None:
        book.active.title = "Both"
        staff = [["Staff"], ["Name", "Hours"], ["Ana", 30], ["Luis", 20], ["Total", 50], []]
        for row in (*staff, ["Machines"], ["Machine", "Power kW"], ["Saw", 2.5], ["Press", 7]):
            book.active.append(row)

    return _book(write)


def _deck_chart() -> bytes:
    return office.pptx(
        [office.shape("Trips", kind="title"), office.chart_frame("rIdC")],
        charts={1: office.chart("Trips by year", ["2023", "2024"], {"Madrid": ["412", "398"]})},
    )


# -- Books, archives, PDF


def _epub() -> bytes:
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
            file.multi_cell(
                0,
                6,
                f"{text} Nobody may pass. The guard has the key, and the office knows why.\n\nAsk there on day {number}.",
            )
            file.set_xy(10, 270)
            file.cell(0, 6, f"City line, page {number}")

    return _pdf(write)


# -- More of Word


def _numbering() -> bytes:
    def level(at: int, text: str, kind: str = "decimal") -> str:
        return f'<w:lvl w:ilvl="{at}"><w:start w:val="1"/><w:numFmt w:val="{kind}"/><w:lvlText w:val="{text}"/></w:lvl>'

    def item(text: str, at: int, outline: int | None = None) -> str:
        heading = "" if outline is None else f'<w:outlineLvl w:val="{outline}"/>'
        return f'<w:p><w:pPr><w:numPr><w:ilvl w:val="{at}"/><w:numId w:val="1"/></w:numPr>{heading}</w:pPr>{word.run(text)}</w:p>'

    levels = level(0, "%1.") + level(1, "%1.%2") + level(2, "(%3)", "lowerLetter")
    return word.document(
        item("Terms", 0, 0), item("Fees", 1, 1), item("Rent is due on the first day.", 2), item("A deposit is paid.", 2), item("Notice", 1, 1),
        word.par("Three months."),
        numbering=f'<w:abstractNum w:abstractNumId="1">{levels}</w:abstractNum><w:num w:numId="1"><w:abstractNumId w:val="1"/></w:num>',
    )  # fmt: skip


def _page_edges() -> bytes:
    document = _document()
    document.add_paragraph("Gate 4 is closed.")
    section = document.sections[0]
    section.different_first_page_header_footer = True
    section.header.paragraphs[0].text = "City line, rules of May"
    section.first_page_header.paragraphs[0].text = "Draft"
    section.footer.paragraphs[0].text = "For staff only"
    return saved(document)


def _boxes_and_comments() -> bytes:
    mark = '<w:r><w:commentReference w:id="1"/></w:r>'
    control = f"<w:sdt><w:sdtContent>{word.run('Gate 4')}</w:sdtContent></w:sdt>"
    return word.document(
        word.par(word.run("Ask "), control, word.run(" first."), mark),
        word.par(word.run("Plan."), word.box("The hall has two doors.")),
        comments=word.note("comment", 1, "Which gate?"),
    )


def _looks() -> bytes:
    equation = (
        "<m:oMath><m:sSup><m:e><m:r><m:t>10</m:t></m:r></m:e><m:sup><m:r><m:t>6</m:t></m:r></m:sup></m:sSup></m:oMath>"
    )
    return word.document(
        word.par(word.run("Notice is "), word.run("six weeks ", "<w:strike/>"), word.run("three months.")),
        word.par(word.run("Seen."), word.run(" Not seen.", "<w:vanish/>")),
        word.par(word.run("It costs 500"), word.run("1", '<w:vertAlign w:val="superscript"/>'), word.run(" euros for 12 m"), word.run("2", '<w:vertAlign w:val="superscript"/>'), word.run(".")),
        f"<w:p>{word.run('A million is ')}{equation}</w:p>",
    )  # fmt: skip


def _picture_only() -> bytes:
    document = _document()
    document.add_paragraph("Plan of the hall:")
    document.add_picture(io.BytesIO(_png()))
    return saved(document)


def _png() -> bytes:
    buffer = io.BytesIO()
    Image.new("L", (120, 60), 200).save(buffer, "PNG")
    return buffer.getvalue()


def _webp() -> bytes:
    buffer = io.BytesIO()
    Image.new("L", (120, 60), 200).save(buffer, "WEBP")
    return buffer.getvalue()


def _two_columns() -> bytes:
    document = _document()
    add_word_table(document, [["Country", "Limit"], ["France", "120 EUR"], ["Spain", "96% or more"], ["Italy", "none"]])
    return saved(document)


def _strict(data: bytes) -> bytes:
    """The package in the namespaces of Strict Office Open XML, as Office saves it."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    usual = re.compile(rb"http://schemas\.openxmlformats\.org/(\w+)/2006/(?!metadata|content-types)")
    for name, content in members.items():
        if name.endswith((".xml", ".rels")) and name != "[Content_Types].xml":
            kept = content.replace(b"openxmlformats.org/package/2006", b"openxmlformats.org/package!2006")
            kept = usual.sub(rb"http://purl.oclc.org/ooxml/\1/", kept)
            members[name] = kept.replace(b"openxmlformats.org/package!2006", b"openxmlformats.org/package/2006")
    return office.zipped(members)


def _with_macros(data: bytes, kind: bytes, usual: bytes, folder: str) -> bytes:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        types = archive.read("[Content_Types].xml")
    main = b"application/vnd.openxmlformats-officedocument." + usual
    changed = types.replace(main, b"application/vnd.ms-" + kind + b".macroEnabled.main+xml")
    return with_members(data, {"[Content_Types].xml": changed, f"{folder}/vbaProject.bin": b"Sub AutoOpen()"})


def _docm() -> bytes:
    return _with_macros(_footnote(), b"word.document", b"wordprocessingml.document.main+xml", "word")


def _xlsm() -> bytes:
    return _with_macros(_title_block(), b"excel.sheet", b"spreadsheetml.sheet.main+xml", "xl")


def _pptm() -> bytes:
    return _with_macros(_deck(), b"powerpoint.presentation", b"presentationml.presentation.main+xml", "ppt")


def _word_bomb() -> bytes:
    bomb = b'<?xml version="1.0"?><!DOCTYPE l [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;">]><l>&b;</l>'
    return with_members(word.document(word.par("x")), {"word/document.xml": bomb})


# -- More of sheets


def _strict_sheet() -> bytes:
    """Strict workbooks store dates as text."""
    book = Workbook()
    book.active.title = "May"
    book.active.append(["Day", "Fare"])
    book.active.append(["x", 3.2])
    book.properties.created = book.properties.modified = _DAY
    data = saved(book)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        sheet = archive.read("xl/worksheets/sheet1.xml").decode()
    dated = re.sub(r'<c r="A2".*?</c>', '<c r="A2" t="d"><v>2026-03-02</v></c>', sheet)
    return _strict(with_members(data, {"xl/worksheets/sheet1.xml": dated.encode()}))


def _book(write: Callable[[Workbook], None]) -> bytes:
    book = Workbook()
    write(book)
    book.properties.created = book.properties.modified = _DAY
    return saved(book)


def _merged_sheet() -> bytes:
    def write(book: Workbook) -> None:
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

    return _book(write)


def _hidden_sheet() -> bytes:
    def write(book: Workbook) -> None:
        book.active.title = "Shown"
        book.active.append(["Gate", "State"])
        book.active.append([4, "closed"])
        book.active.append([5, "open"])
        book.active.row_dimensions[3].hidden = True
        other = book.create_sheet("Kept")
        other.sheet_state = "hidden"
        other.append(["Code", 4711])

    return _book(write)


def _values() -> bytes:
    def write(book: Workbook) -> None:
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

    return _book(write)


def _money() -> bytes:
    def write(book: Workbook) -> None:
        sheet = book.active
        sheet.title = "Money"
        sheet.append(["Item", "Euro", "Dollar", "Franc"])
        sheet.append(["Chair", 349.5, -12, 1200])
        for cell, form in (("B2", '#,##0.00\\ "€"'), ("C2", "[$$-409]#,##0"), ("D2", '#,##0 "CHF"')):
            sheet[cell].number_format = form

    return _book(write)


def _sheet_looks() -> bytes:
    def write(book: Workbook) -> None:
        sheet = book.active
        sheet.title = "Looks"
        sheet.append(["Item", "Note", "Price"])
        sheet.append(["Chair", "old", 40])
        sheet["B2"].font = Font(strike=True)
        sheet["A3"] = CellRichText("Water H", TextBlock(InlineFont(vertAlign="subscript"), "2"), "O")
        sheet["C3"] = 2

    return _book(write)


# -- More of slides


def _slide_shapes() -> bytes:
    merged = office.slide_table(["Grade", "Hotel", "<"], ["^", "Madrid", "Paris"], ["B", "160", "190"])
    looks = (
        '<p:sp><p:nvSpPr><p:nvPr/></p:nvSpPr><p:txBody><a:p><a:r><a:t>Notice: </a:t></a:r><a:r><a:rPr strike="sngStrike"/><a:t>six weeks </a:t></a:r>'
        '<a:r><a:t>12 m</a:t></a:r><a:r><a:rPr baseline="30000"/><a:t>2</a:t></a:r></a:p></p:txBody></p:sp>'
    )
    group = f"<p:grpSp>{office.shape('Inside a group')}</p:grpSp>"
    return office.pptx([office.shape("Rooms", kind="title"), merged, looks, group, office.shape("3", kind="sldNum")])


# -- More of OpenDocument


def _odt_formats() -> bytes:
    def style(name: str, kind: str, more: str = "") -> str:
        return f'<text:list-style style:name="{name}"><text:list-level-style-number text:level="1" style:num-format="{kind}" {more}/></text:list-style>'

    styles = (
        style("R", "I", 'style:num-suffix="."')
        + style(
            "A", "a", 'style:num-prefix="(" style:num-suffix=")" text:start-value="26" style:num-letter-sync="true"'
        )
        + style("N", "", 'style:num-suffix="."')
    )
    return _odt(
        _list(_item("First"), _item("Second"), style="R")
        + "<text:p>Then:</text:p>"
        + _list(_item("Last letter", "It goes on."), _item("After it"), style="A", more=' xml:id="list1"')
        + "<text:p>Later:</text:p>"
        + _list(_item("Goes on"), style="A", more=' text:continue-list="list1"')
        + _list(_item("No number"), style="N"),
        styles=styles,
    )


def _odt_headings_in_lists() -> bytes:
    return _odt(
        _list(_item(_heading("Scope")))
        + "<text:p>For all staff.</text:p>"
        + _list(
            _item(_heading("Leave"), _list(_item(_heading("Annual leave", 2)), style="")),
            more=' text:continue-numbering="true"',
        )
        + "<text:p>23 days.</text:p>"
        + _list(_item(_list(_item(_heading("Sick leave", 2)), style="")), more=' text:continue-numbering="true"')
    )


def _odt_table() -> bytes:
    numbered = f"<table:table-cell>{_list(_item('<text:p/>'))}</table:table-cell>"
    on = ' text:continue-numbering="true"'
    again = f"<table:table-cell>{_list(_item('<text:p/>'), more=on)}</table:table-cell>"
    cell = office.odf_cell
    return _odt(
        "<text:p>Gates</text:p>"
        + office.odf_table(
            [cell("No."), cell("Gate"), cell("State")],
            [numbered, cell("North"), cell("closed")],
            [again, cell("South"), cell("open")],
        )
    )


def _odt_changes() -> bytes:
    deletion = '<text:tracked-changes><text:changed-region><text:deletion><text:h text:outline-level="1">Old heading</text:h></text:deletion></text:changed-region></text:tracked-changes>'
    return _odt(
        deletion
        + _heading("Scope")
        + "<text:p>All staff.</text:p>"
        + _heading("Leave", more=' text:restart-numbering="true" text:start-value="4"'),
        outline=_OUTLINE,
    )


def _odt_edges() -> bytes:
    data = _odt("<text:p>Gate 4 is closed.</text:p><text:p><draw:frame><draw:image/></draw:frame></text:p>")
    page = "<style:header><text:p>City line</text:p></style:header><style:footer><text:p>3</text:p><text:p>For staff only</text:p></style:footer>"
    sheet = f'<office:document-styles {office._ODF_NAMES}><office:master-styles><style:master-page style:name="Standard">{page}</style:master-page></office:master-styles></office:document-styles>'
    return with_members(data, {"styles.xml": sheet.encode()})


def _ods_repeated() -> bytes:
    cell = office.odf_cell
    comment = "<table:table-cell><office:annotation><text:p>With tax.</text:p></office:annotation><text:p>40</text:p></table:table-cell>"
    empty = '<table:table-cell table:number-columns-repeated="1000"/>'
    rows = f'<table:table-row table:number-rows-repeated="1048000">{empty}</table:table-row>'
    table = office.odf_table([cell("Item"), cell("Price")], [cell("Chair"), comment, empty], name="May")
    return office.odf("spreadsheet", table.replace("</table:table>", f"{rows}</table:table>"))


def _odp() -> bytes:
    title = '<draw:frame presentation:class="title"><draw:text-box><text:p>Rates</text:p></draw:text-box></draw:frame>'
    text = f"<draw:frame><draw:text-box>{_list(_item('Up by two percent'), _item('Hold until May'))}</draw:text-box></draw:frame>"
    notes = "<presentation:notes><draw:frame><draw:text-box><text:p>Ask Ana.</text:p></draw:text-box></draw:frame></presentation:notes>"
    lists = f'<text:list-style style:name="L1">{_LEVELS}</text:list-style>'
    return office.odf("presentation", f"<draw:page>{title}{text}{notes}</draw:page>", styles=lists)


# -- More of books, archives, messages, PDF


def _book_notes() -> bytes:
    return office.epub(
        ["<h1>Part one</h1><h2>Night</h2><p>It was late<sup>1</sup>.</p><aside><p>1 Very late.</p></aside>", "<p>No heading here.</p>"],
        title="Nights",
    )  # fmt: skip


def _nested_archive() -> bytes:
    inner = office.zipped({"deep.txt": "Gate 4 is closed."})
    return office.zipped(
        {"inner.zip": inner, "../outside.txt": "Gate 5 is open.", "__MACOSX/._x": b"x", "año.md": "# Año\n\nTexto."}
    )


def _outlook() -> bytes:
    tags = {"0037": "Gate", "0C1A": "Ana Ruiz", "0E04": "Luis Gil", "1000": "Gate 4 is closed.\r\n"}
    return office.msg(tags, attachments=[("list.csv", b"Name,Age\nAna,3\n")])


def _pdf_columns() -> bytes:
    def write(file: FPDF) -> None:
        file.add_page()
        left = "The gate was closed in March because the guard had lost the key. Nobody knew where it was. " * 4
        right = "In April a new key was made. The gate has been open since then, and the guard keeps it. " * 4
        for x, text in ((10, left), (110, right)):
            file.set_xy(x, 30)
            file.multi_cell(85, 6, text)

    return _pdf(write)


def _pdf_list() -> bytes:
    def write(file: FPDF) -> None:
        file.add_page()
        for line in ("Steps:", "1. Fill in the form.", "2. Send it to the office.", "3. Wait for the answer."):
            file.cell(0, 8, line, new_x="LMARGIN", new_y="NEXT")

    return _pdf(write)


def _pdf_raised() -> bytes:
    def write(file: FPDF) -> None:
        file.add_page()
        file.write(6, "The fee is 500")
        file.char_vpos = "SUP"
        file.write(6, "1")
        file.char_vpos = "LINE"
        file.write(6, " euros for each of the members of the club who uses the gate.")

    return _pdf(write)


def _drawn(
    content: str,
    *,
    page: str = "/MediaBox[0 0 595 842]",
    resources: str = "",
    catalog: str = "",
    more: tuple[bytes, ...] = (),
) -> bytes:
    """A page of drawing operators with a plain font, F1, and a bold one, F2; objects `more` begin at number 7."""
    return pdf_of_objects(
        f"<</Type/Catalog/Pages 2 0 R{catalog}>>".encode(),
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        f"<</Type/Page/Parent 2 0 R{page}/Contents 4 0 R/Resources<</Font<</F1 5 0 R/F2 6 0 R>>{resources}>>>>".encode(),
        stream(content.encode("cp1252")),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>",
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica-Bold/Encoding/WinAnsiEncoding>>",
        *more,
    )


def _at(x: float, y: float, *lines: str, size: float = 11, step: float = 14, font: str = "F1") -> str:
    """Lines one below the other, drawn one by one."""
    escaped = [line.replace("(", r"\(").replace(")", r"\)") for line in lines]
    return "".join(f"BT /{font} {size} Tf {x} {y - row * step} Td ({line}) Tj ET\n" for row, line in enumerate(escaped))


_FIRST_MEETING = (
    "The committee met on 4 March and heard the",
    "report of the treasurer, who explained that",
    "the reserve had fallen to 41,200 euros after",
    "the repair of the roof. Two members asked",
    "why the repair had not been tendered, and",
    "the chair answered that the storm had left",
    "no time for a tender.",
)
_SECOND_MEETING = (
    "At the second meeting the caretaker showed",
    "the new heating, which uses a third less",
    "oil than the old one did. It was bought for",
    "18,900 euros and will be paid in two parts.",
    "The first part falls due on 30 June and the",
    "second at the end of the year.",
)


def _pdf_spread() -> bytes:
    """Two pages of a book on one wide page, whose lines do not stand at the same height."""
    left = _at(60, 520, "First meeting", size=14, font="F2") + _at(60, 490, *_FIRST_MEETING) + _at(190, 40, "12")
    right = _at(480, 520, "Second meeting", size=14, font="F2") + _at(480, 486, *_SECOND_MEETING) + _at(610, 40, "13")
    return _drawn(left + right, page="/MediaBox[0 0 842 595]")


def _pdf_spread_table() -> bytes:
    """Two pages of a book on one wide page: prose, and a table that must not be mixed with it."""
    rows = (("Members", "412", "398"), ("Income", "51,300", "48,900"), ("Reserve", "41,200", "60,100"))
    table = _at(630, 490, "2024") + _at(700, 490, "2023")
    for row, values in enumerate(rows):
        for x, value in zip((480, 630, 700), values, strict=True):
            table += _at(x, 474 - 16 * row, value)
    pages = _at(60, 490, *_FIRST_MEETING) + _at(480, 520, "Figures of the year", size=14, font="F2") + table
    return _drawn(pages + _at(190, 40, "12") + _at(610, 40, "13"), page="/MediaBox[0 0 842 595]")


def _pdf_short_columns() -> bytes:
    """Columns of a few lines, headed by a name each."""
    return _drawn(
        _at(60, 790, "Our offices", size=16, font="F2")
        + _at(60, 750, "Hamburg", font="F2")
        + _at(
            60, 734, "The Hamburg office handles all sea", "freight and is open from seven in the", "morning until six."
        )
        + _at(320, 750, "Lyon", font="F2")
        + _at(
            320,
            734,
            "The Lyon office looks after customers",
            "in France and Spain and answers calls",
            "on working days.",
        )
        + _at(60, 650, "Both offices are closed on public holidays.")
        + "".join(
            _at(x, 600, *lines, size=10, step=13)
            for x, lines in (
                (50, ("We repair washing machines of", "all makes at your home within", "two working days.")),
                (225, ("We sell used machines that we", "have checked, with a warranty", "of twelve months.")),
                (400, ("We collect old machines free", "of charge when you buy a new", "one from us.")),
            )
        )
    )


def _pdf_bilingual() -> bytes:
    """A contract in two languages, paragraph beside paragraph."""
    english = (
        "Article 1",
        "The seller delivers the goods",
        "within thirty days.",
        "Article 2",
        "The buyer pays the price of",
        "9,400 euros on delivery.",
    )
    german = (
        "Artikel 1",
        "Der Verk\u00e4ufer liefert die Ware",
        "innerhalb von drei\u00dfig Tagen.",
        "Artikel 2",
        "Der K\u00e4ufer zahlt den Preis von",
        "9.400 Euro bei Lieferung.",
    )
    return _drawn(
        "".join(
            _at(x, y, *text[at : at + 3])
            for x, text in ((60, english), (320, german))
            for at, y in ((0, 780), (3, 720))
        )
    )


def _pdf_hidden() -> bytes:
    """Each second sentence cannot be seen, each in another way."""
    clear, layer = b"<</Type/ExtGState/ca 0>>", b"<</Type/OCG/Name(draft)>>"
    return _drawn(
        "0.1 0.2 0.4 rg 50 772 400 24 re f 1 g "
        + _at(60, 780, "White on a dark box is seen.")
        + _at(60, 750, "White on white is not.")
        + "0 g "
        + _at(60, 720, "Black on white is seen.")
        + _at(60, 690, "Under a box it is not.")
        + "0 g 55 685 300 18 re f "
        + _at(60, 660, "Beside a box it is seen.")
        + _at(60, 640, "Smaller than a point it is not.", size=0.5)
        + _at(60, 620, "Under a marker it is seen.")
        + "q /Pale gs 1 1 0 rg 55 615 200 18 re f Q "
        + "q /Clear gs "
        + _at(60, 590, "Transparent it is not.")
        + "Q "
        + _at(60, 560, "Printed over white-out it is seen.")
        + "1 g 55 530 300 18 re f 0 g "
        + "/OC /Draft BDC "
        + _at(60, 535, "On a layer that is switched off it is not.")
        + "EMC\n",
        resources="/ExtGState<</Clear 7 0 R/Pale 8 0 R>>/Properties<</Draft 9 0 R>>",
        catalog="/OCProperties<</OCGs[9 0 R]/D<</OFF[9 0 R]>>>>",
        more=(clear, b"<</Type/ExtGState/ca 0.4>>", layer),
    )


def _pdf_scan_layer() -> bytes:
    """A scan with its recognised text, which is invisible; the stamp under the picture is not on it."""
    width, height = 298, 421
    picture = Image.new("L", (width, height), 255)
    draw = ImageDraw.Draw(picture)
    for row in range(len(_FIRST_MEETING)):
        for x in range(30, 150, 6):  # about what letters look like
            draw.line((x, 31 + 7 * row, x + 2, 35 + 7 * row), fill=0)
    data = zlib.compress(picture.tobytes())
    keys = f"/Subtype/Image/Width {width}/Height {height}/ColorSpace/DeviceGray/BitsPerComponent 8/Filter/FlateDecode"
    return _drawn(
        _at(60, 700, "Received on 9 March") + f"q 595 0 0 842 0 0 cm /Scan Do Q 3 Tr {_at(60, 772, *_FIRST_MEETING)}",
        resources="/XObject<</Scan 7 0 R>>",
        more=(stream(data, keys=keys),),
    )


def _pdf_printed_twice() -> bytes:
    """A total made bold by printing it twice, and a title with its shadow."""
    return _drawn(
        "0.6 g "
        + _at(61.5, 778.5, "Annual report", size=24, font="F2")
        + "0 g "
        + _at(60, 780, "Annual report", size=24, font="F2")
        + _at(60, 740, "Total due: 1,204.50 EUR")
        + _at(60.3, 740, "Total due: 1,204.50 EUR")
        + _at(60, 700, "no no, said the 22 men, no no")
    )


def _pdf_turned_page() -> bytes:
    """A page that is turned by its own setting, and text turned within it."""
    return _drawn(
        f"q 0 1 -1 0 595 0 cm {_at(60, 500, *_FIRST_MEETING)} Q BT /F1 9 Tf 60 20 Td (Internal use only 2024) Tj ET\n",
        page="/MediaBox[0 0 595 842]/Rotate 90",
    )


def _pdf_rows_in_box() -> bytes:
    """A table that draws one box around several rows."""
    rows = (
        ("Rent", "3 May", "900"),
        ("Water", "4 May", "31"),
        ("Power", "9 May", "77"),
        ("Insurance", "2 June", "140"),
        ("Lift", "7 June", "63"),
    )
    lines = [f"50 {y} m 500 {y} l S " for y in (790, 770, 710, 675)] + [
        f"{x} 675 m {x} 790 l S " for x in (50, 230, 370, 500)
    ]
    return _drawn(
        "0.5 w "
        + "".join(lines)
        + "".join(_at(x, 775, name, font="F2") for x, name in ((60, "Item"), (240, "Opened"), (380, "Amount")))
        + "".join(
            _at(x, 753 - 18 * row, value)
            for row, values in enumerate(rows)
            for x, value in zip((60, 240, 380), values, strict=True)
        )
    )


def _pdf_statement() -> bytes:
    """A statement with currency signs in columns of their own, negative sums in brackets, and footnote marks."""
    rows = (
        ("Net sales", "$", "4,204", "$", "3,981"),
        ("Cost of sales", "", "(2,711)", "", "(2,600)"),
        ("Net income", "$", "1,493", "$", "1,381"),
    )
    return _drawn(
        _at(250, 790, "2023", font="F2")
        + _at(330, 790, "2022", font="F2")
        + "".join(
            _at(x, 774 - 14 * row, value)
            for row, values in enumerate(rows)
            for x, value in zip((60, 230, 250, 310, 330), values, strict=True)
            if value
        )
        + _at(108.5, 778, "1", size=7)
        + _at(60, 700, "The hall has 450 m")
        + _at(155, 704, "2", size=7)
        + _at(161, 700, "and cost 3 x 10")
        + _at(235.7, 704, "6", size=7)
        + _at(242, 700, "euros.")
        + _at(60, 640, "1", size=6)
        + _at(65, 637, "Without the sale of the mill.", size=8)
    )


def _pdf_cropped() -> bytes:
    """A page that is cut to its middle."""
    text = _at(120, 700, "The visible part says 12 days.") + _at(120, 60, "Proof 4, not for release")
    return _drawn(text, page="/MediaBox[0 0 595 842]/CropBox[100 400 500 760]")


def _pdf_empty() -> bytes:
    return _pdf(lambda file: file.add_page())


MAKERS: Mapping[str, Callable[[], bytes]] = {
    **OFFICE_MAKERS,
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
    "pptx/groups.pptx": _deck_groups,
    "odp/groups.odp": _odp_groups,
    "ods/merged_year.ods": _ods_merged,
    "xlsx/stacked_tables.xlsx": _stacked_tables,
    "odt/nested_table.odt": _odt_nested_table,
    "pptx/deck.pptx": _deck,
    "pptx/chart.pptx": _deck_chart,
    "epub/book.epub": _epub,
    "zip/archive.zip": _archive,
    "pdf/headings.pdf": _pdf_headings,
    "pdf/table.pdf": _pdf_table,
    "pdf/footer.pdf": _pdf_footer,
    "docx/numbering.docx": _numbering,
    "docx/page_edges.docx": _page_edges,
    "docx/boxes_and_comments.docx": _boxes_and_comments,
    "docx/looks.docx": _looks,
    "docx/picture.docx": _picture_only,
    "docx/two_columns.docx": _two_columns,
    "docx/strict.docx": lambda: _strict(_footnote()),
    "docx/macros.docm": _docm,
    "docx/macros_hidden.docx": _docm,
    "docx/bomb.docx": _word_bomb,
    "docx/cut_off.docx": lambda: _footnote()[:-200],
    "xlsx/strict.xlsx": _strict_sheet,
    "xlsx/macros.xlsm": _xlsm,
    "xlsx/merged.xlsx": _merged_sheet,
    "xlsx/hidden.xlsx": _hidden_sheet,
    "xlsx/values.xlsx": _values,
    "xlsx/money.xlsx": _money,
    "xlsx/looks.xlsx": _sheet_looks,
    "pptx/shapes.pptx": _slide_shapes,
    "pptx/strict.pptx": lambda: _strict(_slide_shapes()),
    "pptx/macros.pptm": _pptm,
    "odt/formats.odt": _odt_formats,
    "odt/headings_in_lists.odt": _odt_headings_in_lists,
    "odt/numbered_rows.odt": _odt_table,
    "odt/changes.odt": _odt_changes,
    "odt/page_edges.odt": _odt_edges,
    "ods/repeated.ods": _ods_repeated,
    "odp/deck.odp": _odp,
    "epub/notes.epub": _book_notes,
    "zip/nested.zip": _nested_archive,
    "mail/outlook.msg": _outlook,
    "pdf/columns.pdf": _pdf_columns,
    "pdf/list.pdf": _pdf_list,
    "pdf/raised.pdf": _pdf_raised,
    "pdf/empty.pdf": _pdf_empty,
    "pdf/spread.pdf": _pdf_spread,
    "pdf/spread_table.pdf": _pdf_spread_table,
    "pdf/short_columns.pdf": _pdf_short_columns,
    "pdf/bilingual.pdf": _pdf_bilingual,
    "pdf/hidden.pdf": _pdf_hidden,
    "pdf/scan_layer.pdf": _pdf_scan_layer,
    "pdf/printed_twice.pdf": _pdf_printed_twice,
    "pdf/turned_page.pdf": _pdf_turned_page,
    "pdf/rows_in_box.pdf": _pdf_rows_in_box,
    "pdf/statement.pdf": _pdf_statement,
    "pdf/cropped.pdf": _pdf_cropped,
    "image/picture.png": _png,
    "image/picture.webp": _webp,
}


def made(name: str) -> bytes:
    """An input's bytes."""
    data = MAKERS[name]()
    return _fixed(data) if zipfile.is_zipfile(io.BytesIO(data)) else data

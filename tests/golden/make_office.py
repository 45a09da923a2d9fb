# ruff: noqa: E501 - lines of files
"""Office files with what programs compute, hide or keep apart: fields, symbols, layouts, hidden rows, compressed bodies."""

from __future__ import annotations

import datetime
import io
import zipfile
from collections.abc import Callable, Mapping, Sequence

from openpyxl import Workbook

from tests.unit.readers import office_samples as office
from tests.unit.readers.corpus import messy_word as word
from tests.unit.readers.corpus.messy_word import cell, par, row, run
from tests.unit.readers.samples import saved, with_members

_RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_MATH = 'xmlns:m="http://schemas.openxmlformats.org/officeDocument/2006/math"'
_DIAGRAM = (
    'xmlns:dgm="http://schemas.openxmlformats.org/drawingml/2006/diagram"'
    ' xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"'
)


# -- Word


def _mark(kind: str, data: str = "") -> str:
    return f'<w:r><w:fldChar w:fldCharType="{kind}">{data}</w:fldChar></w:r>'


def _code(text: str) -> str:
    return f'<w:r><w:instrText xml:space="preserve"> {text} </w:instrText></w:r>'


def _field(code: str, result: str, data: str = "") -> str:
    return _mark("begin", data) + _code(code) + _mark("separate") + result + _mark("end")


def _fields() -> bytes:
    choice = '<w:ffData><w:ddList><w:result w:val="1"/><w:listEntry w:val="Monday"/><w:listEntry w:val="Tuesday"/></w:ddList></w:ffData>'
    condition = (
        _mark("begin") + _code("IF") + _field("MERGEFIELD Grade", run("B")) + _code('= "A" "first" "second"')
        + _mark("separate") + run("second class") + _mark("end")
    )  # fmt: skip
    boxes = [
        _field("FORMCHECKBOX", "", f'<w:ffData><w:checkBox><w:default w:val="0"/>{on}</w:checkBox></w:ffData>')
        for on in ("<w:checked/>", "")
    ]
    return word.document(
        par(
            "Signed on ",
            _field('DATE \\@ "d MMMM yyyy"', run("2 March 2026")),
            ", see clause ",
            _field("REF _R1 \\r", run("7.2")),
            ".",
        ),
        par("Day: ", _field("FORMDROPDOWN", "", choice), ", breakfast ", boxes[0], " dinner ", boxes[1]),
        par("Travel: ", condition, "."),
        par("Never closed ", _mark("begin"), "and kept."),
    )


def _paragraph_ends() -> bytes:
    deleted = "<w:p><w:pPr><w:rPr><w:del w:id='9' w:author='A'/></w:rPr></w:pPr>"
    changed = "<w:r><w:rPr><w:rPrChange w:id='5' w:author='A'><w:rPr><w:strike/></w:rPr></w:rPrChange></w:rPr><w:t>in full</w:t></w:r>"
    gone = "<w:tr><w:trPr><w:del w:id='7' w:author='A'/></w:trPr><w:tc><w:p><w:r><w:delText>Attic</w:delText></w:r></w:p></w:tc></w:tr>"
    return word.document(
        f"{deleted}{run('The fee is 40')}</w:p>",
        par("0 euros, paid ", changed, "."),
        f"<w:tbl><w:tblPr/><w:tblGrid/>{row(cell('Room'), cell('Price'))}{gone}{row(cell('Cellar'), cell('20'))}</w:tbl>",
    )


def _symbols() -> bytes:
    def sign(font: str, code: str) -> str:
        return f'<w:r><w:sym w:font="{font}" w:char="{code}"/></w:r>'

    ruby = "<w:r><w:ruby><w:rt><w:r><w:t>kan</w:t></w:r></w:rt><w:rubyBase><w:r><w:t>漢</w:t></w:r></w:rubyBase></w:ruby></w:r>"
    return word.document(
        par(
            "Done ",
            sign("Wingdings", "F0FC"),
            " at 20 ",
            sign("Symbol", "F0B0"),
            "C, ",
            sign("Symbol", "F06D"),
            "m, ",
            sign("Nobody's", "F0B0"),
            ".",
        ),
        par("Co", "<w:r><w:softHyphen/></w:r>", "operative, A", "<w:r><w:noBreakHyphen/></w:r>", "4"),
        par("Double room", '<w:r><w:ptab w:relativeTo="margin" w:alignment="right" w:leader="none"/></w:r>', "240"),
        par(ruby, " and its sound."),
    )


def _left_out_columns() -> bytes:
    late = '<w:tr><w:trPr><w:gridBefore w:val="1"/></w:trPr>' + cell("Late") + cell("4") + "</w:tr>"
    return word.document(
        word.table(
            row(cell("Ward"), cell("Shift"), cell("Nurses"), header=True),
            row(cell("North", down="start"), cell("Day"), cell("6")),
            row(cell("", down="on"), cell("Night"), cell("3")),
            late,
            columns=3,
        )
    )


def _equations() -> bytes:
    def letters(text: str) -> str:
        return f"<m:r><m:t>{text}</m:t></m:r>"

    def math(content: str) -> str:
        return f"<m:oMath {_MATH}>{content}</m:oMath>"

    ratio = f"<m:f><m:num>{letters('a+b')}</m:num><m:den>{letters('2c')}</m:den></m:f>"
    power = f"<m:sSup><m:e>{letters('e')}</m:e><m:sup>{letters('2x')}</m:sup></m:sSup>"
    mean = f"<m:bar><m:barPr><m:pos m:val='top'/></m:barPr><m:e>{letters('x')}</m:e></m:bar>"
    matrix = f"<m:m><m:mr><m:e>{letters('1')}</m:e><m:e>{letters('2')}</m:e></m:mr><m:mr><m:e>{letters('3')}</m:e><m:e>{letters('4')}</m:e></m:mr></m:m>"
    return word.document(
        *(
            par(name, math(formula))
            for name, formula in (("Ratio ", ratio), ("Power ", power), ("Mean ", mean), ("Matrix ", matrix))
        )
    )


def _related(data: bytes, key: str, kind: str, target: str, content: str) -> bytes:
    """The Word file with one more part, to which its document refers."""
    rels = "word/_rels/document.xml.rels"
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        known = archive.read(rels).decode()
    entry = f'<Relationship Id="{key}" Type="{_RELATIONS}/{kind}" Target="{target}"/></Relationships>'
    changes = {rels: known.replace("</Relationships>", entry).encode(), f"word/{target}": content.encode()}
    return with_members(data, changes)


def _diagram() -> bytes:
    points = "".join(
        f"<dgm:pt modelId='{n}'><dgm:t><a:p><a:r><a:t>{text}</a:t></a:r></a:p></dgm:t></dgm:pt>"
        for n, text in enumerate(("File the form", "Wait ten days"))
    )
    frame = f'<w:r><w:drawing><wp:inline><a:graphic><a:graphicData><dgm:relIds {_DIAGRAM} r:dm="rIdDm"/></a:graphicData></a:graphic></wp:inline></w:drawing></w:r>'
    return _related(
        word.document(par("Steps", style="Heading1"), par(frame), par("End.")),
        "rIdDm", "diagramData", "diagrams/data1.xml",
        f"<dgm:dataModel {_DIAGRAM}><dgm:ptLst>{points}</dgm:ptLst></dgm:dataModel>",
    )  # fmt: skip


def _page_number() -> bytes:
    footer = f'<w:ftr xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main">{par("Harbour rules")}{par(_field("PAGE", run("2")))}</w:ftr>'
    section = '<w:sectPr><w:footerReference w:type="default" r:id="rIdF"/></w:sectPr>'
    return _related(
        word.document(par("The gate is closed."), section),
        "rIdF", "footer", "footer1.xml", footer,
    )  # fmt: skip


# -- Sheets


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
    return saved(book)


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
    return saved(book)


# -- Slides


def _slides(*slides: tuple[str, Sequence[str]], layout: str = "", master: str = "") -> bytes:
    """Slides of (attributes, shapes), with one layout and one master."""
    deck = office.pptx(*(shapes for _, shapes in slides))
    names = [f"ppt/slides/slide{number}.xml" for number in range(1, len(slides) + 1)]
    with zipfile.ZipFile(io.BytesIO(deck)) as archive:
        pages = [archive.read(name).decode() for name in names]
    changes = {
        name: page.replace("<p:sld ", f"<p:sld {attributes} ", 1)
        for name, page, (attributes, _) in zip(names, pages, slides, strict=True)
    }
    for number in range(1, len(slides) + 1):
        changes[f"ppt/slides/_rels/slide{number}.xml.rels"] = office._relations(
            {"rIdL": ("slideLayout", "../slideLayouts/slideLayout1.xml")}
        )
    for kind, shapes, behind in (
        ("Layout", layout, {"rIdM": ("slideMaster", "../slideMasters/slideMaster1.xml")}),
        ("Master", master, {}),
    ):
        changes[f"ppt/slide{kind}s/slide{kind}1.xml"] = (
            f"<p:sld{kind} {office._ALL}><p:cSld><p:spTree>{shapes}</p:spTree></p:cSld></p:sld{kind}>"
        )
        changes[f"ppt/slide{kind}s/_rels/slide{kind}1.xml.rels"] = office._relations(behind)
    return with_members(deck, {name: content.encode() for name, content in changes.items()})


def _layouts() -> bytes:
    return _slides(
        ("", [office.shape("Fees", kind="title"), office.shape("A single ticket costs 3 euros.")]),
        ('show="0"', [office.shape("Old fees", kind="title"), office.shape("Two euros.")]),
        layout=office.shape("Click to edit the title", kind="title") + office.shape("Prices include tax."),
        master=office.shape("Click to edit", kind="body") + office.shape("Harbour Authority"),
    )


def _only_layout() -> bytes:
    return _slides(("", []), layout=office.shape("The office closes on 24 December."))


def _numbered_lines() -> bytes:
    def line(text: str, level: int, kind: str = "", more: str = "") -> str:
        bullet = f'<a:buAutoNum type="{kind}"{more}/>' if kind else ""
        return f'<a:p><a:pPr lvl="{level}">{bullet}</a:pPr><a:r><a:t>{text}</a:t></a:r></a:p>'

    body = (
        line("Fill in the form", 0, "arabicPeriod") + line("in blue", 1, "alphaLcParenR") + line("in capitals", 1, "alphaLcParenR")
        + line("Sign it", 0, "arabicPeriod") + line("at the bottom", 1, "alphaLcParenR") + line("A remark", 0)
        + line("Pay", 0, "romanUcPeriod", ' startAt="4"')
    )  # fmt: skip
    return office.pptx(
        [office.shape("Steps", kind="title"), f"<p:sp><p:nvSpPr><p:nvPr/></p:nvSpPr><p:txBody>{body}</p:txBody></p:sp>"]
    )


# -- OpenDocument


def _hidden_words() -> bytes:
    body = (
        '<text:p>See <text:hidden-text text:condition="x" text:string-value="no" text:is-hidden="true">no</text:hidden-text>clause 7.2.</text:p>'
        '<text:p>Nor this<text:hidden-paragraph text:condition="x" text:is-hidden="true"/>.</text:p>'
        '<text:section text:name="S" text:display="none"><text:p>Nor this section.</text:p></text:section>'
        "<text:p><text:ruby><text:ruby-base>漢</text:ruby-base><text:ruby-text>kan</text:ruby-text></text:ruby> and its sound.</text:p>"
    )
    return office.odf("text", body)


def _hidden_rows() -> bytes:
    text = office.odf_cell
    rows = [
        ("", ("Item", "Cost", "Days")),
        ("", ("Chair", "21", "3")),
        ('table:visibility="filter"', ("Desk", "55", "4")),
    ]
    lines = "".join(
        f"<table:table-row {hidden}>{''.join(map(text, cells))}</table:table-row>" for hidden, cells in rows
    )
    columns = '<table:table-column/><table:table-column table:visibility="collapse"/><table:table-column/>'
    style = '<style:style style:name="T0" style:family="table"><style:table-properties table:display="false"/></style:style>'
    other = f'<table:table table:name="Keys" table:style-name="T0"><table:table-row>{text("Key 99")}</table:table-row></table:table>'
    return office.odf(
        "spreadsheet", f'<table:table table:name="Prices">{columns}{lines}</table:table>{other}', styles=style
    )


def _hidden_slide() -> bytes:
    def page(text: str, style: str = "") -> str:
        return f'<draw:page draw:name="A" draw:master-page-name="M" draw:style-name="{style}"><draw:frame><draw:text-box><text:p>{text}</text:p></draw:text-box></draw:frame></draw:page>'

    style = '<style:style style:name="D" style:family="drawing-page"><style:drawing-page-properties presentation:visibility="hidden"/></style:style>'
    deck = office.odf("presentation", page("Three euros.") + page("Two euros.", "D"), styles=style)
    frames = "".join(
        f"<draw:frame{kind}><draw:text-box><text:p>{text}</text:p></draw:text-box></draw:frame>"
        for kind, text in (("", "Harbour Authority"), (' presentation:class="title"', "Click to edit"))
    )
    masters = f'<style:master-page style:name="M">{frames}</style:master-page><style:master-page style:name="Unused"/>'
    return with_members(
        deck,
        {"styles.xml": f"<office:document-styles {office._ODF_NAMES}>{masters}</office:document-styles>".encode()},
    )


# -- Books and mail


def _styled_book() -> bytes:
    chapter = '<link rel="stylesheet" href="../s.css"/><h1>One</h1><p>The toll is 30 euros.</p><p class="print">Printed for 20 euros.</p>'
    return with_members(office.epub([chapter], title="Harbour"), {"OEBPS/s.css": b".print { display: none }"})


def _compressed_body() -> bytes:
    """The example of [MS-OXRTFCP], section 4.1.1."""
    body = "2d0000002b0000004c5a4675f1c5c7a703000a007263706731323542320af32068656c090020627705b06c647d0a800fa0"
    tree: dict[str, bytes | office.Tree] = {
        "__properties_version1.0": bytes(32),
        "__substg1.0_0037001F": "Greeting".encode("utf-16-le"),
        "__substg1.0_10090102": bytes.fromhex(body),
    }
    return office.compound_file(tree)


OFFICE_MAKERS: Mapping[str, Callable[[], bytes]] = {
    "docx/fields.docx": _fields,
    "docx/paragraph_ends.docx": _paragraph_ends,
    "docx/symbols.docx": _symbols,
    "docx/left_out_columns.docx": _left_out_columns,
    "docx/equations.docx": _equations,
    "docx/diagram.docx": _diagram,
    "docx/page_number.docx": _page_number,
    "xlsx/shown_formats.xlsx": _shown_formats,
    "xlsx/hidden_parts.xlsx": _hidden_parts,
    "pptx/layouts.pptx": _layouts,
    "pptx/only_layout.pptx": _only_layout,
    "pptx/numbered_lines.pptx": _numbered_lines,
    "odt/hidden_words.odt": _hidden_words,
    "ods/hidden_rows.ods": _hidden_rows,
    "odp/hidden_slide.odp": _hidden_slide,
    "epub/styled.epub": _styled_book,
    "mail/compressed_body.msg": _compressed_body,
}

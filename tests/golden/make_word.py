# ruff: noqa: E501 - lines of files
"""Word files."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Mapping

import docx

from tests.golden.make_other import png
from tests.golden.packages import DAY, fixed, strict, with_macros
from tests.unit.readers.corpus import messy_word as word
from tests.unit.readers.corpus.messy_word import cell, par, row, run
from tests.unit.readers.samples import add_word_table, saved, with_members

_MATH = 'xmlns:m="http://schemas.openxmlformats.org/officeDocument/2006/math"'
_DIAGRAM = (
    'xmlns:dgm="http://schemas.openxmlformats.org/drawingml/2006/diagram"'
    ' xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"'
)
_RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"


def _document(*, author: str = "") -> docx.document.Document:
    document = docx.Document()
    properties = document.core_properties
    properties.author, properties.created, properties.modified = author, DAY, DAY
    return document


def _merged_table() -> bytes:
    document = _document()
    document.add_heading("Rates", 1)
    table = add_word_table(document, [["Grade", "Madrid", "Paris"], ["B", "160 EUR", "190 EUR"], ["C", "100 EUR", ""]])
    table.cell(2, 1).merge(table.cell(2, 2))
    document.add_paragraph("Rates hold until May.")
    return saved(document)


def _tracked_changes() -> bytes:
    deleted = '<w:del w:id="1" w:author="A"><w:r><w:delText xml:space="preserve">six weeks </w:delText></w:r></w:del>'
    inserted = f'<w:ins w:id="2" w:author="A">{run("three months ")}</w:ins>'
    return word.document(par(run("Notice is "), deleted, inserted, run("before leaving.")))


def _footnote() -> bytes:
    mark = '<w:r><w:footnoteReference w:id="2"/></w:r>'
    return word.document(
        par(run("The fee is 500"), mark, run(" euros.")),
        par("It is paid once."),
        footnotes=word.note("footnote", 2, "Plus tax."),
    )


def _nested_table() -> bytes:
    inner = word.table(row(cell("Day"), cell("Fee")), row(cell("Sunday"), cell("3")), columns=2)
    return word.document(
        par("Fees"),
        word.table(
            row(cell("Zone"), cell("Fees"), header=True),
            row(cell("North"), cell("see below", inner)),
            columns=2,
        ),
    )


def _numbering() -> bytes:
    def level(at: int, text: str, kind: str = "decimal") -> str:
        return f'<w:lvl w:ilvl="{at}"><w:start w:val="1"/><w:numFmt w:val="{kind}"/><w:lvlText w:val="{text}"/></w:lvl>'

    def item(text: str, at: int, outline: int | None = None) -> str:
        heading = "" if outline is None else f'<w:outlineLvl w:val="{outline}"/>'
        return f'<w:p><w:pPr><w:numPr><w:ilvl w:val="{at}"/><w:numId w:val="1"/></w:numPr>{heading}</w:pPr>{run(text)}</w:p>'

    levels = level(0, "%1.") + level(1, "%1.%2") + level(2, "(%3)", "lowerLetter")
    return word.document(
        item("Terms", 0, 0), item("Fees", 1, 1), item("Rent is due on the first day.", 2), item("A deposit is paid.", 2), item("Notice", 1, 1),
        par("Three months."),
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
    control = f"<w:sdt><w:sdtContent>{run('Gate 4')}</w:sdtContent></w:sdt>"
    return word.document(
        par(run("Ask "), control, run(" first."), mark),
        par(run("Plan."), word.box("The hall has two doors.")),
        comments=word.note("comment", 1, "Which gate?"),
    )


def _looks() -> bytes:
    equation = (
        "<m:oMath><m:sSup><m:e><m:r><m:t>10</m:t></m:r></m:e><m:sup><m:r><m:t>6</m:t></m:r></m:sup></m:sSup></m:oMath>"
    )
    return word.document(
        par(run("Notice is "), run("six weeks ", "<w:strike/>"), run("three months.")),
        par(run("Seen."), run(" Not seen.", "<w:vanish/>")),
        par(run("It costs 500"), run("1", '<w:vertAlign w:val="superscript"/>'), run(" euros for 12 m"), run("2", '<w:vertAlign w:val="superscript"/>'), run(".")),
        f"<w:p>{run('A million is ')}{equation}</w:p>",
    )  # fmt: skip


def _picture_only() -> bytes:
    document = _document()
    document.add_paragraph("Plan of the hall:")
    document.add_picture(io.BytesIO(png()))
    return saved(document)


def _two_columns() -> bytes:
    document = _document()
    add_word_table(document, [["Country", "Limit"], ["France", "120 EUR"], ["Spain", "96% or more"], ["Italy", "none"]])
    return saved(document)


def _docm() -> bytes:
    return with_macros(_footnote(), b"word.document", b"wordprocessingml.document.main+xml", "word")


def _word_bomb() -> bytes:
    bomb = b'<?xml version="1.0"?><!DOCTYPE l [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;">]><l>&b;</l>'
    return with_members(word.document(par("x")), {"word/document.xml": bomb})


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


def _moved_and_white() -> bytes:
    def look(properties: str, text: str) -> str:
        return f'<w:r><w:rPr>{properties}</w:rPr><w:t xml:space="preserve">{text}</w:t></w:r>'

    up, down = '<w:position w:val="8"/><w:sz w:val="14"/>', '<w:position w:val="-6"/><w:sz w:val="14"/>'
    white = '<w:color w:val="FFFFFF"/>'
    return word.document(
        par(
            run("The limit is 10")
            + look(up, "6")
            + run(" units of CO")
            + look(down, "2")
            + run(" for 500")
            + look(up, "1")
            + run(" euros.")
        ),
        par(look('<w:position w:val="8"/>', "Higher, but as large, 12.")),
        par(run("The fee is 250 EUR.") + look(white, " It was 900 EUR.")),
        par(look(f'{white}<w:shd w:val="clear" w:fill="000080"/>', "White on blue: 30 EUR.")),
    )


WORD: Mapping[str, Callable[[], bytes]] = {
    "docx/merged_table.docx": _merged_table,
    "docx/tracked_changes.docx": _tracked_changes,
    "docx/footnote.docx": _footnote,
    "docx/nested_table.docx": _nested_table,
    "docx/numbering.docx": _numbering,
    "docx/page_edges.docx": _page_edges,
    "docx/boxes_and_comments.docx": _boxes_and_comments,
    "docx/looks.docx": _looks,
    "docx/picture.docx": _picture_only,
    "docx/two_columns.docx": _two_columns,
    "docx/strict.docx": lambda: strict(_footnote()),
    "docx/macros.docm": _docm,
    "docx/macros_hidden.docx": _docm,
    "docx/bomb.docx": _word_bomb,
    "docx/cut_off.docx": lambda: fixed(_footnote())[:-200],
    "docx/fields.docx": _fields,
    "docx/paragraph_ends.docx": _paragraph_ends,
    "docx/symbols.docx": _symbols,
    "docx/moved_and_white.docx": _moved_and_white,
    "docx/left_out_columns.docx": _left_out_columns,
    "docx/equations.docx": _equations,
    "docx/diagram.docx": _diagram,
    "docx/page_number.docx": _page_number,
}

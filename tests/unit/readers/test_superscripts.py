"""Raised, lowered and struck-out characters: one notation in every format, and no number that is not on the page."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Callable

import docx
import pytest
from fpdf import FPDF
from openpyxl import Workbook
from openpyxl.cell.rich_text import CellRichText, TextBlock
from openpyxl.cell.text import InlineFont
from openpyxl.styles import Font

from rag_service.answering.proof.verify import verify_answer
from rag_service.domain import CitationStatus
from rag_service.language.words import words
from rag_service.readers.common.builder import STRUCK_OUT, clean
from rag_service.readers.parse import parse
from tests.unit.answering.proof.answers import make_hit
from tests.unit.readers import office_samples as office
from tests.unit.readers.samples import CONTENT_TYPES, saved, with_members, xlsx

WRITTEN = (
    "The maximum is 500{^1} euros per month. The coil has 10{^6} turns on 120 m{^2}, cooled with H{_2}O. "
    "The fee is {-12 euros }9 euros."
)
READ = "The maximum is 500 ¹ euros per month. The coil has 10⁶ turns on 120 m², cooled with H2O. The fee is 9 euros."
_RUN = re.compile(r"\{([-^_])([^}]*)\}|[^{]+")


def runs(write: Callable[[str, str], str]) -> str:
    """The written sentences with each run in a format's markup; `^` is raised, `_` lowered, `-` struck out."""
    return "".join(write(found[1] or "", found[2] or found[0]) for found in _RUN.finditer(WRITTEN))


def _html() -> str:
    tags = {"^": "sup", "_": "sub", "-": "s"}
    return runs(lambda kind, text: f"<{tags[kind]}>{text}</{tags[kind]}>" if kind else text)


def _styled_html() -> bytes:
    looks = {"^": "vertical-align: super", "_": "vertical-align:sub", "-": "text-decoration: line-through red"}
    body = runs(lambda kind, text: f'<span style="{looks[kind]}">{text}</span>' if kind else text)
    return f"<html><body><p>{body}</p></body></html>".encode()


def _mail() -> bytes:
    return f"From: a@b.es\nSubject: x\nContent-Type: text/html\n\n<p>{_html()}</p>".encode()


def _word() -> bytes:
    document = docx.Document()
    paragraph = document.add_paragraph()
    for found in _RUN.finditer(WRITTEN):
        run = paragraph.add_run(found[2] or found[0])
        if found[1]:
            setattr(run.font, {"^": "superscript", "_": "subscript", "-": "strike"}[found[1]], True)
    return saved(document)


def _word_with_styles() -> bytes:
    document = docx.Document()
    for name, attribute in (("Mark", "superscript"), ("Index", "subscript"), ("Gone", "double_strike")):
        setattr(document.styles.add_style(name, 2).font, attribute, True)
    paragraph = document.add_paragraph()
    for found in _RUN.finditer(WRITTEN):
        paragraph.add_run(found[2] or found[0], {"^": "Mark", "_": "Index", "-": "Gone"}.get(found[1]))
    return saved(document)


def _odt() -> bytes:
    style = 'style:style style:family="text" style:name'
    looks = (
        f'<{style}="U"><style:text-properties style:text-position="super 58%"/></style:style>'
        f'<{style}="D"><style:text-properties style:text-position="-33% 58%"/></style:style>'
        f'<{style}="S0"><style:text-properties style:text-line-through-style="solid"/></style:style>'
        f'<{style}="S" style:parent-style-name="S0"/>'
    )
    names = {"^": "U", "_": "D", "-": "S"}
    body = runs(lambda kind, text: f'<text:span text:style-name="{names[kind]}">{text}</text:span>' if kind else text)
    return office.odf("text", f"<text:p>{body}</text:p>", styles=looks)


def _rtf() -> bytes:
    marks = {"^": "super", "_": "sub", "-": "strike"}
    body = runs(lambda kind, text: f"{{\\{marks[kind]} {text}}}" if kind else text)
    return f"{{\\rtf1\\ansi {body}\\par}}".encode()


def _slides() -> bytes:
    looks = {"^": 'baseline="30000"', "_": 'baseline="-25000"', "-": 'strike="sngStrike"', "": ""}
    body = runs(lambda kind, text: f"<a:r><a:rPr {looks[kind]}/><a:t>{text}</a:t></a:r>")
    shape = office.shape("here").replace("<a:r><a:t>here</a:t></a:r>", body)
    return office.pptx([shape])


def _sheet() -> bytes:
    looks = {
        "^": InlineFont(vertAlign="superscript"),
        "_": InlineFont(vertAlign="subscript"),
        "-": InlineFont(strike=True),
    }
    pieces = [TextBlock(looks[found[1]], found[2]) if found[1] else found[0] for found in _RUN.finditer(WRITTEN)]
    book = Workbook()
    book.active["A1"] = CellRichText(*pieces)
    return saved(book)


def _sheet_of_shared_texts() -> bytes:
    looks = {"^": '<vertAlign val="superscript"/>', "_": '<vertAlign val="subscript"/>', "-": "<strike/>", "": ""}
    body = runs(lambda kind, text: f'<r><rPr>{looks[kind]}</rPr><t xml:space="preserve">{text}</t></r>')
    names = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
    rows = '<sheetData><row r="1"><c r="A1" t="s"><v>0</v></c></row></sheetData>'
    data = xlsx([["here"]])  # openpyxl itself writes no shared texts
    kind = "application/vnd.openxmlformats-officedocument.spreadsheetml.sharedStrings+xml"
    type = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/sharedStrings"
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        types, relations = (archive.read(name).decode() for name in (CONTENT_TYPES, "xl/_rels/workbook.xml.rels"))
    members = {
        "xl/sharedStrings.xml": f"<sst {names}><si>{body}</si></sst>",
        "xl/worksheets/sheet1.xml": f"<worksheet {names}>{rows}</worksheet>",
        CONTENT_TYPES: types.replace(
            "</Types>", f'<Override PartName="/xl/sharedStrings.xml" ContentType="{kind}"/></Types>'
        ),
        "xl/_rels/workbook.xml.rels": relations.replace(
            "</R", f'<Relationship Id="rIdS" Type="{type}" Target="sharedStrings.xml"/></R'
        ),
    }
    return with_members(data, {name: content.encode() for name, content in members.items()})


def _pdf() -> bytes:
    """PDF knows no struck-out text."""
    file = FPDF()
    file.add_page()
    file.set_font("Helvetica", size=11)
    for found in _RUN.finditer(WRITTEN.replace("{-12 euros }", "").replace(" The coil", "\nThe coil")):
        file.char_vpos = {"^": "SUP", "_": "SUB"}.get(found[1], "LINE")
        file.write(6, found[2] or found[0])
    return bytes(file.output())


SAMPLES = {
    "a.html": lambda: f"<html><body><p>{_html()}</p></body></html>".encode(),
    "styles.html": _styled_html,
    "cell.html": lambda: f"<table><tr><th>A</th><th>B</th></tr><tr><td>x</td><td>{_html()}</td></tr></table>".encode(),
    "a.eml": _mail,
    "a.epub": lambda: office.epub([f"<p>{_html()}</p>"], title="Fees of the club"),
    "a.md": lambda: _html().encode(),
    "tildes.md": lambda: _html().replace("<s>12 euros </s>", "~~12 euros~~ ").replace("<sup>1</sup>", "[^1]").encode(),
    "a.docx": _word,
    "styles.docx": _word_with_styles,
    "a.odt": _odt,
    "a.rtf": _rtf,
    "a.pptx": _slides,
    "a.xlsx": _sheet,
    "shared.xlsx": _sheet_of_shared_texts,
    "a.pdf": _pdf,
}


@pytest.mark.parametrize("name", SAMPLES)
def test_every_format_writes_raised_and_lowered_characters_the_same_and_no_struck_out_text(name: str) -> None:
    document = parse(SAMPLES[name](), file_name=name)
    assert READ in " ".join(document.text.split())
    assert (STRUCK_OUT in document.warnings) == (name != "a.pdf")


def test_a_number_is_proved_without_its_footnote_mark_and_never_with_it() -> None:
    hit = make_hit(parse(_word(), file_name="a.docx").text, 1)

    def status(claim: str) -> CitationStatus:
        (citation,) = verify_answer(f"{claim} [C1].", [hit], language="en").citations
        return citation.status

    assert status("The maximum is 500 euros per month") is CitationStatus.VERIFIED
    assert status("The coil has 10⁶ turns on 120 m², cooled with H2O") is CitationStatus.VERIFIED
    assert status("The coil has 10^6 turns on 120 m², cooled with H2O") is CitationStatus.VERIFIED
    for wrong in (
        "The maximum is 5001 euros per month", "The maximum is 1 euro per month", "The coil has 106 turns",
        "The coil has 10 turns", "The coil has 6 turns", "The coil has 10⁷ turns on 120 m²", "The fee is 12 euros",
    ):  # fmt: skip
        assert status(wrong) is not CitationStatus.VERIFIED, wrong


def test_index_terms_hold_no_number_that_is_not_on_the_page() -> None:
    assert words(READ)[:9] == ["the", "maximum", "is", "500", "euros", "per", "month", "the", "coil"]
    assert not {"5001", "106", "312"} & set(words(f"{READ} 500¹ 3½"))
    assert words("10⁶ turns") == words("10^6 turns")


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("500¹ euros, 20²,³ days", "500 ¹ euros, 20 ²,³ days"),
        ("members¹² pay. EU¹ and UK²", "members ¹² pay. EU ¹ and UK ²"),
        ("per month.¹ The rest", "per month. ¹ The rest"),
        ("¹Only for members", "¹ Only for members"),
        ("10⁶ and 10⁻³, 2³ = 8, sin²x, R², m², s⁻¹", "10⁶ and 10⁻³, 2³ = 8, sin²x, R², m², s⁻¹"),
        ("10¹ euros", "10 ¹ euros"),  # the first power is never written
        ("12⁹⁹ € from 8³⁰", "12⁹⁹ € from 8³⁰"),  # cents and minutes: no number for the proof
        ("¹⁴C in CO₂, log₁₀", "¹⁴C in CO2, log10"),
        ("3¹/₂ cups", "3 1/2 cups"),
        ("Mᵉ Dupont, members only", "Mᵉ Dupont, members only"),
    ],
)
def test_what_stands_around_a_raised_character_tells_what_it_is(written: str, read: str) -> None:
    assert clean(written) == read
    assert clean(read) == read


def _equation(body: str) -> str:
    """How an equation of Word reads; `<r>` is a run."""
    math = "http://schemas.openxmlformats.org/officeDocument/2006/math"
    body = re.sub(r"<(/?)r>", lambda run: "</m:t></m:r>" if run[1] else "<m:r><m:t>", body)
    document = docx.Document()
    document.add_paragraph()._p.append(docx.oxml.parse_xml(f'<m:oMath xmlns:m="{math}">{body}</m:oMath>'))
    return parse(saved(document), file_name="a.docx").text.strip()


def test_equations_of_word_keep_powers_and_fractions_apart() -> None:
    half = "<m:f><m:num><r>1</r></m:num><m:den><r>2</r></m:den></m:f>"
    power = "<m:sSup><m:e><r>10</r></m:e><m:sup><r>6</r></m:sup></m:sSup>"
    assert _equation(f"<r>x = 3</r>{half}<r> · </r>{power}") == "x = 3 1/2 · 10⁶"


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("<m:d><m:e><r>1</r></m:e></m:d><m:d><m:e><r>550</r></m:e></m:d>", "(1)(550)"),
        (
            '<m:d><m:dPr><m:begChr m:val="["/></m:dPr><m:e><r>0</r></m:e><m:e><r>1</r></m:e></m:d>',
            "[0|1)",
        ),
        (
            '<m:nary><m:naryPr><m:chr m:val="∑"/></m:naryPr><m:sub><r>k=0</r></m:sub><m:sup><r>9</r></m:sup>'
            "<m:e><r>2</r></m:e></m:nary>",
            "∑_(k=0)^9 2",
        ),
        ("<m:rad><m:deg><r>3</r></m:deg><m:e><r>27</r></m:e></m:rad>", "³√27"),
        (
            "<m:sSup><m:e><m:f><m:num><r>(x-c)</r></m:num><m:den><r>v</r></m:den></m:f></m:e><m:sup><r>2</r></m:sup></m:sSup>",
            "((x-c)/v)²",
        ),
        ("<m:func><m:fName><r>log</r></m:fName><m:e><r>2</r></m:e></m:func>", "log 2"),
        ("<m:m><m:mr><m:e><r>1</r></m:e><m:e><r>0</r></m:e></m:mr><m:mr><m:e><r>5</r></m:e></m:mr></m:m>", "1, 0; 5"),
    ],
)
def test_figures_of_an_equation_stay_apart(body: str, text: str) -> None:
    assert _equation(body) == text


def test_a_struck_out_cell_has_no_value() -> None:
    book = Workbook()
    book.active.append(["Ticket", "Old", "Price"])
    book.active.append(["Adult", 12, 9])
    book.active["B2"].font = Font(strike=True)
    document = parse(saved(book), file_name="prices.xlsx")
    assert "Ticket: Adult | Price: 9" in document.text
    assert document.warnings == (STRUCK_OUT,)

"""Word: the numbers that Word makes stand before their paragraphs, in the text and in the places."""

from __future__ import annotations

import pytest

from rag_service.domain import ParsedDocument
from rag_service.readers.parse import parse
from tests.unit.readers.corpus.messy_word import cell, document, par, row, run, table
from tests.unit.readers.samples import at, with_members

_W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'


def level(at: int, text: str, kind: str = "decimal", more: str = "", start: int = 1) -> str:
    form = f'<w:start w:val="{start}"/><w:numFmt w:val="{kind}"/>{more}<w:lvlText w:val="{text}"/>'
    return f'<w:lvl w:ilvl="{at}">{form}</w:lvl>'


def abstract(number: int, *levels: str) -> str:
    return f'<w:abstractNum w:abstractNumId="{number}">{"".join(levels)}</w:abstractNum>'


def num(number: int, of: int, *changes: str) -> str:
    return f'<w:num w:numId="{number}"><w:abstractNumId w:val="{of}"/>{"".join(changes)}</w:num>'


def begins(at: int, start: int) -> str:
    return f'<w:lvlOverride w:ilvl="{at}"><w:startOverride w:val="{start}"/></w:lvlOverride>'


def style(name: str, properties: str = "", *, based_on: str = "", shown: str = "") -> str:
    base = f'<w:basedOn w:val="{based_on}"/>' if based_on else ""
    return (
        f'<w:style w:type="paragraph" w:styleId="{name}"><w:name w:val="{shown or name}"/>{base}'
        f"<w:pPr>{properties}</w:pPr></w:style>"
    )


def in_list(number: int | None = None, at: int | None = None) -> str:
    parts = ("" if at is None else f'<w:ilvl w:val="{at}"/>', "" if number is None else f'<w:numId w:val="{number}"/>')
    return f"<w:numPr>{''.join(parts)}</w:numPr>"


def item(text: str, number: int, at: int = 0, *, mark: str = "") -> str:
    return f"<w:p><w:pPr>{in_list(number, at)}<w:rPr>{mark}</w:rPr></w:pPr>{run(text) if text else ''}</w:p>"


def read(*body: str, numbering: str, styles: str = "") -> ParsedDocument:
    data = document(*body, numbering=numbering)
    if styles:
        data = with_members(data, {"word/styles.xml": f"<w:styles {_W}>{styles}</w:styles>".encode()})
    return parse(data, file_name="numbered.docx")


def lines(found: ParsedDocument) -> list[str]:
    return [line for line in found.text.splitlines() if line]


def test_headings_and_clauses_have_the_numbers_of_their_styles_in_text_and_places() -> None:
    levels = (
        level(0, "%1.", more='<w:pStyle w:val="H1"/>'),
        level(1, "%1.%2", more='<w:pStyle w:val="H2"/>'),
        level(2, "(%3)", "lowerLetter", more='<w:pStyle w:val="Clause"/>'),
    )
    styles = (
        style("H1", in_list(7), shown="heading 1"),
        style("H2", in_list(7, 1), shown="heading 2"),
        style("Clause", in_list(7)),
        style("Own", based_on="Clause"),
        style("Plain", in_list(0), based_on="H2"),
    )
    found = read(
        par("Terms", style="H1"), par("Fees", style="H2"), par("Rent", style="Own"), par("Deposit", style="Clause"),
        par("Term", style="H2"), par("Notice", style="Own"), par("Preamble", style="Plain"), par("Law", style="H1"),
        par("Court", style="H2"),
        numbering=abstract(1, *levels) + num(7, 1), styles="".join(styles),
    )  # fmt: skip
    assert lines(found) == [
        "1. Terms", "1.1 Fees", "(a) Rent", "(b) Deposit", "1.2 Term", "(a) Notice", "Preamble", "2. Law", "2.1 Court",
    ]  # fmt: skip
    assert at(found, "(b) Deposit").headings == ("1. Terms", "1.1 Fees")


@pytest.mark.parametrize(
    ("kind", "start", "labels"),
    [
        ("upperLetter", 26, ["Z.", "AA."]),
        ("lowerRoman", 8, ["viii.", "ix."]),
        ("upperRoman", 1999, ["MCMXCIX.", "MM."]),
        ("decimalZero", 9, ["09.", "10."]),
        ("upperLetter", 999_999_999, ["999999999.", "1000000000."]),
    ],
)
def test_numbers_are_written_in_the_format_of_their_level(kind: str, start: int, labels: list[str]) -> None:
    numbering = abstract(1, level(0, "%1.", kind, start=start)) + num(1, 1)
    assert lines(read(item("x", 1), item("y", 1), numbering=numbering)) == [f"{labels[0]} x", f"{labels[1]} y"]


def test_bullets_and_levels_without_a_number_invent_none() -> None:
    numbering = (
        abstract(1, level(0, "\uf0b7", "bullet"), level(1, "%2", "none"), level(2, "%1%2%3)"))
        + abstract(2, level(0, "Note:", "none"))
        + num(1, 1)
        + num(2, 2)
    )
    found = read(item("bullet", 1), item("none", 1, 1), item("third", 1, 2), item("text", 2), numbering=numbering)
    assert lines(found) == ["bullet", "none", "1) third", "Note: text"]


def test_lists_of_one_definition_go_on_and_begin_anew_where_they_say_so() -> None:
    numbering = (
        abstract(1, level(0, "%1."), level(1, "%1.%2"))
        + num(1, 1)
        + num(2, 1)
        + num(3, 1, begins(0, 5), begins(1, 3), f'<w:lvlOverride w:ilvl="1">{level(1, "%2)")}</w:lvlOverride>')
    )
    found = read(
        item("a", 1), item("b", 2), item("c", 3), item("d", 3, 1), item("e", 3), item("f", 3, 1), numbering=numbering
    )
    assert lines(found) == ["1. a", "2. b", "5. c", "3) d", "6. e", "3) f"]


def test_a_level_restarts_only_after_the_levels_that_it_names() -> None:
    levels = (
        level(0, "%1."),
        level(1, "%1.%2", more='<w:lvlRestart w:val="0"/>'),
        level(2, "%3)", more='<w:lvlRestart w:val="1"/>'),
    )
    found = read(
        item("a", 1), item("b", 1, 1), item("c", 1, 2), item("d", 1, 1), item("e", 1, 2), item("f", 1), item("g", 1, 1),
        item("h", 1, 2), numbering=abstract(1, *levels) + num(1, 1),
    )  # fmt: skip
    assert lines(found) == ["1. a", "1.1 b", "1) c", "1.2 d", "2) e", "2. f", "2.3 g", "1) h"]


def test_an_upper_level_that_has_not_begun_begins_with_the_first_paragraph_below_it() -> None:
    numbering = abstract(1, level(0, "%1", "upperRoman"), level(1, "%1.%2", more="<w:isLgl/>")) + num(1, 1)
    assert lines(read(item("a", 1, 1), item("b", 1), numbering=numbering)) == ["1.1 a", "II b"]


def test_paragraphs_without_text_count_and_deleted_ones_do_not() -> None:
    numbering = abstract(1, level(0, "%1.")) + num(1, 1)
    cells = table(row(cell("No."), cell("Part")), row(cell(item("", 1)), cell("Bolt")), columns=2)
    found = read(item("a", 1), item("", 1), item("", 1, mark="<w:del/>"), item("b", 1), cells, numbering=numbering)
    assert lines(found) == ["1. a", "3. b", "No.: 4. | Part: Bolt"]


def test_numbering_that_is_broken_or_refers_to_itself_gives_no_numbers() -> None:
    linked = abstract(1, '<w:numStyleLink w:val="Circle"/>', level(0, "%1."))
    huge = abstract(2, *(level(at, f"%{at + 1}.") for at in range(10_000)))
    numbering = linked + huge + abstract(3, level(0, "%1." * 1_000)) + abstract(4, '<w:lvl w:ilvl="x"/>')
    numbering += num(1, 1) + num(2, 2) + num(3, 3) + num(4, 4) + num(5, 99)
    styles = style("Circle", in_list(1), based_on="Other") + style("Other", based_on="Circle")
    found = read(
        par("a", style="Circle"), par("b", style="Other"), *(item("c", number) for number in (3, 4, 5, 6)),
        item("d", 2, 9_999), item("e", 2, 8), numbering=numbering, styles=styles,
    )  # fmt: skip
    assert lines(found) == ["a", "b", "c", "c", "c", "c", "d", "1. e"]

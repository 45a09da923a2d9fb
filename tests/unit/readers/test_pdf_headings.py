"""Headings of PDFs: what stands out above the body is one, what only looks like one is not."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from fpdf import FPDF

from rag_service.domain import ParsedDocument
from rag_service.readers.parse import parse
from rag_service.readers.pdf.headings import PageLine, find_headings
from rag_service.readers.pdf.words import is_bold_font

BODY = "The staff of the workshop may take their leave in two parts when the head of it agrees. " * 4

Block = tuple[str, int, str]  # text, size, style ("B" for bold)


def document(*pages: Sequence[Block]) -> ParsedDocument:
    file = FPDF()
    for blocks in pages:
        file.add_page()
        for text, size, style in blocks:
            file.set_font("Helvetica", size=size, style=style)
            file.multi_cell(0, size / 2, text, new_x="LMARGIN", new_y="NEXT", align="L")
            file.ln(4)
    return parse(bytes(file.output()), file_name="a.pdf")


def paths(parsed: ParsedDocument) -> list[tuple[int | None, tuple[str, ...]]]:
    """Page and headings of each place, each once."""
    return list(dict.fromkeys((span.location.page, span.location.headings) for span in parsed.spans))


def found(*lines: PageLine) -> list[str]:
    """Headings of a page of which most is body."""
    body = [PageLine(""), *[PageLine("words of the body that go on and on for a line", 10)] * 20]
    return [heading.text for heading in find_headings([[*lines, *body]])[0]]


def test_larger_letters_make_a_path_that_goes_on_over_pages() -> None:
    parsed = document(
        [("Staff rules", 22, ""), ("Leave", 15, ""), (BODY, 11, ""), ("Pay", 15, ""), (BODY, 11, "")],
        [(BODY, 11, ""), ("Notice", 15, ""), (BODY, 11, "")],
    )
    assert paths(parsed) == [
        (1, ("Staff rules",)),
        (1, ("Staff rules", "Leave")),
        (1, ("Staff rules", "Pay")),
        (2, ("Staff rules", "Pay")),
        (2, ("Staff rules", "Notice")),
    ]


def test_every_character_of_a_page_has_its_place() -> None:
    parsed = document([("Leave", 15, ""), (BODY, 11, ""), ("Pay", 15, ""), (BODY, 11, "")], [(BODY, 11, "")])
    placed = [parsed.text[span.start : span.end] for span in parsed.spans]
    assert "".join(placed).split() == parsed.text.replace("agrees.\n\nThe", "agrees.The").split()
    assert [(part.split()[0], span.location.page) for part, span in zip(placed, parsed.spans, strict=True)] == [
        ("Leave", 1), ("The", 1), ("Pay", 1), ("The", 1), ("The", 2),
    ]  # fmt: skip


def test_bold_lines_of_the_bodys_size_stand_below_larger_ones() -> None:
    parsed = document([("Staff rules", 22, ""), ("Leave", 11, "B"), (BODY, 11, ""), ("Pay", 11, "B"), (BODY, 11, "")])
    assert paths(parsed)[1:] == [(1, ("Staff rules", "Leave")), (1, ("Staff rules", "Pay"))]


def test_numbers_give_depth_to_headings_of_one_size() -> None:
    blocks = [
        ("1 Pay", 15, ""),
        (BODY, 11, ""),
        ("1.1 Bonus", 15, ""),
        (BODY, 11, ""),
        ("2 Leave", 15, ""),
        (BODY, 11, ""),
    ]
    assert [path for _, path in paths(document(blocks))] == [("1 Pay",), ("1 Pay", "1.1 Bonus"), ("2 Leave",)]


def test_a_heading_of_two_lines_stands_on_one() -> None:
    title = "The rules for the staff of the workshop and of the warehouse in the north of the town and its harbour"
    parsed = document([(title, 22, ""), (BODY, 11, "")])
    assert parsed.text.startswith(f"{title}\n\nThe staff")


def test_a_heading_stands_between_empty_lines() -> None:
    """So that chunks are cut there, and no sentence goes on from the heading into the text."""
    page = [PageLine("text before", 10), PageLine("Leave", 14), PageLine("text behind", 10)]
    assert [heading.text for heading in find_headings([[*page, *[PageLine("more of it", 10)] * 9]])[0]] == ["Leave"]
    file = FPDF()
    file.add_page()
    for y, (text, size) in enumerate([("text before", 11), ("Leave", 15), *[("text behind it", 11)] * 5]):
        file.set_font("Helvetica", size=size)
        file.text(10, 20 + 6 * y, text)
    assert parse(bytes(file.output()), file_name="a.pdf").text.startswith(
        "text before\n\nLeave\n\ntext behind it\ntext"
    )


@pytest.mark.parametrize(
    "text",
    [
        "1,058",  # a figure set large
        "87 %",
        "Total  1,058",  # beside something
        "We pay, in the end, what we owe to all who have worked here.",  # a sentence
        "of the year,",
        "char * name, int * size)",  # the rest of a line
        "x" * 200,
    ],
)
def test_what_does_not_read_like_a_heading_is_none(text: str) -> None:
    assert found(PageLine(text, 14)) == []


@pytest.mark.parametrize("text", ["Item 1A.  Risk factors", "2.  Purpose.", "IV. Horaires", "¿Quién firma?", "Prêt :"])
def test_numbers_and_marks_do_not_hide_a_heading(text: str) -> None:
    assert found(PageLine(text, 14)) == [" ".join(text.split())]


def test_a_paragraph_in_large_or_bold_letters_is_none() -> None:
    assert found(*[PageLine("a lede in large letters", 14)] * 4) == []
    assert found(*[PageLine("emphasis of a whole paragraph", 10, is_bold=True)] * 4) == []


def test_a_bold_line_in_the_midst_of_a_paragraph_is_none() -> None:
    assert found(PageLine("and so we say", 10), PageLine("Never", 10, is_bold=True)) == []


def test_bold_letters_are_nothing_where_the_body_is_bold() -> None:
    page = [PageLine("Leave", 10, is_bold=True), PageLine(""), *[PageLine("words of the body", 10, is_bold=True)] * 9]
    assert find_headings([page]) == [[]]


def test_a_running_line_is_none_and_the_title_it_repeats_neither() -> None:
    body = [PageLine("words of the body that go on", 10)] * 9
    pages = [[PageLine("ACME handbook", 14), *body, PageLine(f"Part {name}", 14), *body] for name in ("A", "B", "C")]
    assert [[heading.text for heading in page] for page in find_headings(pages)] == [["Part A"], ["Part B"], ["Part C"]]


@pytest.mark.parametrize("header", [["ACME handbook"], ["ACME Corporation", "Employee handbook"], ["Item 7.  Review"]])
def test_running_lines_are_no_part_of_a_heading_either(header: list[str]) -> None:
    body = [PageLine("words of the body that go on", 10)] * 9
    pages = [[*[PageLine(line, 14) for line in header], PageLine(name, 14), *body] for name in ("Pay", "Leave", "Work")]
    assert [[heading.text for heading in page] for page in find_headings(pages)] == [["Pay"], ["Leave"], ["Work"]]


def test_headings_with_numbers_right_below_each_other_stay_apart() -> None:
    assert found(PageLine("Leave after a notice", 14), PageLine("of 30 days", 14)) == [
        "Leave after a notice of 30 days"
    ]
    lines = ["Part One", "1 Pay", "1.1 Base pay", "1.1.1 Monthly", "and yearly pay"]
    assert found(*[PageLine(line, 14) for line in lines]) == [*lines[:3], "1.1.1 Monthly and yearly pay"]


def test_a_page_that_is_large_all_over_has_none() -> None:
    assert find_headings([[PageLine("Great sale", 30), PageLine("on Sunday", 30), PageLine("small print", 10)]]) == [[]]


def test_pages_without_known_heights_have_none() -> None:
    assert find_headings([[PageLine("Leave"), PageLine("words")], []]) == [[], []]


@pytest.mark.parametrize(
    ("font", "bold"),
    [
        ("ABCDEF+Arial-BoldMT", True),
        ("NimbusRomNo9L-Medi", True),
        ("NimbusRomNo9L-MediItal", True),
        ("Lato-Black", True),
        ("FuturaDemi", True),
        ("CMBX12", True),
        ("ABCDEF+Academia-Roman", False),
        ("BlackadderITC-Regular", False),
        ("Roboto-Medium", False),
        ("CMR10", False),
    ],
)
def test_the_name_of_a_font_tells_whether_it_is_bold(font: str, bold: bool) -> None:
    assert is_bold_font(font) is bold

"""RTF as programs write it: what is open at the end, stray marks, page headers."""

from __future__ import annotations

import pytest

from rag_service.readers.parse import parse


@pytest.mark.parametrize(
    ("body", "lines"),
    [
        (rb"Before.\par\trowd Valve\cell 12\cell", ["Before.", "Valve | 12"]),
        (rb"\pard\intbl Valve", ["Valve"]),
        (rb"{\f0\*\cs7 The quick fox}\par", ["The quick fox"]),
        (b"Seen.{\r\n\\*\\unknown not seen}\\par", ["Seen."]),
    ],
)
def test_text_is_read_though_its_row_is_open_or_a_mark_stands_in_its_midst(body: bytes, lines: list[str]) -> None:
    document = parse(rb"{\rtf1\ansi " + body + b"}", file_name="a.rtf")
    assert [line for line in document.text.splitlines() if line] == lines


def test_a_page_header_is_text_apart_from_the_body() -> None:
    told = parse(rb"{\rtf1\ansi {\header Confidential\par}Body.\par}", file_name="a.rtf")
    assert told.text.split() == ["Body.", "Confidential"]
    assert not told.warnings


def test_a_title_that_is_given_twice_is_the_one_in_unicode() -> None:
    title = rb"{\info{\upr{\title ????}{\*\ud{\title \u1050\'3f\u1083\'3f\u1102\'3f\u1095\'3f}}}}"
    assert parse(rb"{\rtf1\ansi " + title + rb"Body.\par}", file_name="a.rtf").title == "Ключ"

"""Words that a PDF breaks at its line ends are stored whole; compounds keep their hyphen."""

from __future__ import annotations

import pytest
from fpdf import FPDF

from rag_service.readers.parse import parse
from rag_service.readers.pdf.hyphens import join_hyphenated, read_vocabulary
from tests.timing import seconds_of

SPANISH = """La inversión pública en infraestructuras hidráulicas aumentó considerablemente durante el ejercicio
anterior, mientras que las comunidades autónomas solicitaron financiación complementaria para la
rehabilitación de edificios residenciales. El departamento correspondiente comunicará las
resoluciones definitivas antes de septiembre."""
FRENCH = """Les investissements publics progressent régulièrement dans les établissements hospitaliers; le
bien-être des collaborateurs reste une préoccupation permanente de l'administration, qui rendra ses
conclusions prochainement."""
ENGLISH = """Municipal infrastructure investments increased considerably throughout the reporting period, whereas
several long-standing organisations requested supplementary contributions for the refurbishment of
residential buildings."""


def hyphenated(text: str, *, width: int) -> list[str]:
    """Lines no longer than `width`, words broken anywhere from their third letter on."""
    lines, line = [], ""
    for word in text.split():
        while len(line) + len(word) + 1 > width:
            room = width - len(line) - 2
            if room >= 3 and len(word) - room >= 3 and word[:room].isalpha() and word[room : room + 2].isalpha():
                lines.append(f"{line} {word[:room]}-".strip())
                line, word = "", word[room:]
            else:
                lines.append(line)
                line = ""
        line = f"{line} {word}".strip()
    return [*lines, line]


def pdf_of_lines(*columns: list[str]) -> bytes:
    file = FPDF()
    file.add_page()
    file.set_font("Helvetica", size=9)
    for number, column in enumerate(columns):
        for place, line in enumerate(column):
            file.text(15 + 95 * number, 20 + 5 * place, line)
    return bytes(file.output())


@pytest.mark.parametrize("text", [SPANISH, FRENCH, ENGLISH], ids=["es", "fr", "en"])
@pytest.mark.parametrize("width", [30, 41, 52])
def test_every_word_of_a_hyphenated_document_is_whole(text: str, width: int) -> None:
    lines = hyphenated(text, width=width)
    assert any(line.endswith("-") for line in lines)
    read = parse(pdf_of_lines(lines), file_name="a.pdf").text
    assert read.split() == text.split()


def test_two_columns_are_whole_too() -> None:
    left, right = hyphenated(SPANISH, width=48), hyphenated(ENGLISH, width=48)
    read = parse(pdf_of_lines(left, right), file_name="a.pdf").text
    assert read.split() == [*SPANISH.split(), *ENGLISH.split()]


@pytest.mark.parametrize(
    ("text", "joined"),
    [
        ("the corpo-\nration acts", "the corporation\nacts"),
        ("state-of-\nthe-art tools", "state-of-the-art\ntools"),
        ("North-\nAmerica grows", "North-America\ngrows"),
        ("CONSTRUC-\nTION COSTS", "CONSTRUCTION\nCOSTS"),
        ("an e-\nmail", "an e-mail"),
        ("self-\ngoverned; well-\nknown", "self-governed;\nwell-known"),
        ("le bien-être, le bien-\nêtre.", "le bien-être, le bien-être."),
        ("coût moyen, moyen-\ncoût", "coût moyen, moyen-coût"),
        ("el con-\ntrato y trato", "el contrato\ny trato"),
        ("2023-\n2024", "2023-\n2024"),
        ("a list:\n- one\n- two", "a list:\n- one\n- two"),
        ("Deprecia-\ntion  12  13\nOther  1  2", "Depreciation  12  13\nOther  1  2"),
        ("end of a col-\n\numn and on", "end of a column\n\nand on"),
        ("a  -\nb  -", "a  -\nb  -"),
        ("incon-\nstitu-\ntional law", "inconstitutional\nlaw"),
    ],
)
def test_the_hyphen_of_a_line_goes_and_that_of_a_compound_stays(text: str, joined: str) -> None:
    assert join_hyphenated(text, read_vocabulary([text])) == joined


@pytest.mark.parametrize("text", ["a" * 300_000, "a-" * 150_000, "ab-\n" * 100_000, "-\n" * 100_000])
def test_joining_takes_linear_time(text: str) -> None:
    text += " end-\ning"
    assert seconds_of(lambda: join_hyphenated(text, read_vocabulary([text]))) < 5


def test_a_hyphenated_word_does_not_go_on_in_a_block_that_begins_with_a_capital() -> None:
    text = "Deposits on Busi-\n\nIF the day is a Friday"
    assert join_hyphenated(text, read_vocabulary([text])) == text

"""What must hold for every file: spans fit the text, cells are found again, rubbish never crashes a parser."""

from __future__ import annotations

import csv
import io
import zipfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_service.domain import ParsedDocument, column_letters
from rag_service.errors import DocumentError
from rag_service.readers.common.builder import clean, one_line
from rag_service.readers.common.names import clean_file_name
from rag_service.readers.parse import parse
from tests.unit.readers import samples
from tests.unit.readers.samples import cell_texts

pytestmark = pytest.mark.filterwarnings("ignore")  # libraries warn about broken files; parse() hides it


NAMES = ["a.txt", "a.md", "a.csv", "a.tsv", "a.bin", "a"]
words = st.text(st.characters(exclude_categories=("Cs", "Cc", "Co", "Cn")), max_size=12)
values = st.one_of(words, st.integers(-(10**9), 10**9), st.booleans(), st.none())
rows = st.lists(st.lists(values, min_size=1, max_size=5), min_size=1, max_size=12)


def check_parse(data: bytes, name: str) -> ParsedDocument | None:
    """Parse; only errors meant for the uploader may come out, and what comes out must fit together."""
    try:
        document = parse(data, file_name=name)
    except DocumentError as error:
        assert error.message
        return None
    check_fit(document)
    return document


def check_fit(document: ParsedDocument) -> None:
    end = 0
    for span in document.spans:
        assert end <= span.start < span.end <= len(document.text)
        end = span.end
    assert document.text.strip()
    assert document.title
    assert clean(document.text) == document.text or not document.text.isascii()
    document.text.encode()  # no lone surrogates


@given(st.binary(max_size=400), st.sampled_from(NAMES))
def test_random_bytes_never_crash(data: bytes, name: str) -> None:
    check_parse(data, name)


@given(st.text(max_size=400), st.sampled_from(NAMES))
def test_random_text_never_crashes(text: str, name: str) -> None:
    check_parse(text.encode("utf-8", errors="surrogatepass"), name)


@given(st.text(st.sampled_from("#-=>`*: \n\tab1[]()<!&"), max_size=300))  # without "|": tables are written as rows
def test_markdown_keeps_every_visible_character(text: str) -> None:
    document = check_parse(b"x\n" + text.encode(), "a.md")
    assert document is not None
    assert document.text.split() == clean("x\n" + text).split()


SEEDS = {
    "a.pdf": samples.pdf("Hello world", "Second page"),
    "a.docx": samples.word("Hello", "world"),
    "a.xlsx": samples.xlsx([["Name", "Age"], ["Ana", 3]]),
}
MEMBERS = [
    ("a.docx", "word/document.xml"),
    ("a.docx", "word/styles.xml"),
    ("a.docx", "docProps/core.xml"),
    ("a.xlsx", "xl/worksheets/sheet1.xml"),
    ("a.xlsx", "xl/workbook.xml"),
    ("a.xlsx", "xl/styles.xml"),
    ("a.xlsx", samples.CONTENT_TYPES),
]
damage = st.lists(st.tuples(st.floats(0, 1), st.binary(min_size=1, max_size=6)), min_size=1, max_size=5)


def damaged(data: bytes, changes: list[tuple[float, bytes]]) -> bytes:
    copy = bytearray(data)
    for share, part in changes:
        position = int(share * (len(copy) - 1))
        copy[position : position + len(part)] = part
    return bytes(copy)


@given(st.sampled_from(sorted(SEEDS)), damage)
def test_damaged_files_never_crash(name: str, changes: list[tuple[float, bytes]]) -> None:
    check_parse(damaged(SEEDS[name], changes), name)


@given(st.sampled_from(MEMBERS), damage)
def test_damaged_parts_of_office_files_never_crash(place: tuple[str, str], changes: list[tuple[float, bytes]]) -> None:
    name, member = place
    with zipfile.ZipFile(io.BytesIO(SEEDS[name])) as archive:
        part = damaged(archive.read(member), changes)
    check_parse(samples.with_members(SEEDS[name], {member: part}), name)


@given(rows)
def test_every_cell_of_a_sheet_is_found_at_its_address(table: list[list[object]]) -> None:
    check_cells(check_parse(samples.xlsx(table), "a.xlsx"), [[shown(value) for value in row] for row in table])


@given(rows, st.sampled_from(",;\t|"))
def test_every_field_of_a_csv_file_is_found_at_its_address(table: list[list[object]], delimiter: str) -> None:
    texts = [["" if value is None else str(value) for value in row] for row in table]
    # A column of plain words in front lets the delimiter be found, as it can in any real table.
    texts = [[f"row{number}", f"word{number}", *row] for number, row in enumerate(texts)]
    buffer = io.StringIO()
    csv.writer(buffer, delimiter=delimiter, quoting=csv.QUOTE_ALL).writerows(texts)
    document = check_parse(buffer.getvalue().encode(), "a.csv")
    check_cells(document, [[one_line(text) for text in row] for row in texts])


def check_cells(document: ParsedDocument | None, texts: list[list[str]]) -> None:
    """A row is data, every cell of it found at its address, or gave the names of the columns that have values below."""
    found = cell_texts(document) if document else {}
    headers = 0
    for number, row in enumerate(texts, start=1):
        expected = {f"{column_letters(column)}{number}": text for column, text in enumerate(row, start=1) if text}
        got = {address: found.pop(address) for address in expected if address in found}
        assert got.items() <= expected.items()
        below = {column for later in texts[number:] for column, text in enumerate(later, start=1) if text}
        names = {f"{column_letters(column)}{number}" for column in below}
        assert expected.keys() - got.keys() <= names
        headers += got != expected
    assert not found
    assert headers <= 1 + sum(not any(row) for row in texts)


def shown(value: object) -> str:
    """What is read of a value; formulas have no stored value in generated files, and are read themselves."""
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if value is None:
        return ""
    return one_line(str(value))


@given(st.text(max_size=600))
def test_clean_file_name_is_always_safe(name: str) -> None:
    cleaned = clean_file_name(name)
    assert 0 < len(cleaned) <= 255
    assert not set(cleaned) & set("/\\\0\n")
    assert cleaned.strip(".") and clean_file_name(cleaned) == cleaned

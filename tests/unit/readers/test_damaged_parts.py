"""One damaged part costs no more than itself; names and attachments of containers are read as people see them."""

from __future__ import annotations

import io
import zipfile

import pypdfium2
import pytest

from rag_service.errors import DocumentError
from rag_service.readers.parse import parse

CONTAINER = '<container><rootfiles><rootfile full-path="book.opf"/></rootfiles></container>'
TABLE = "<table><tr><th>Item</th><th>Price</th></tr><tr><td>Pen</td><td>2</td></tr></table>"
BOOK = (
    '<package><manifest><item id="a" href="a.xhtml"/><item id="b" href="b.xhtml"/></manifest>'
    '<spine><itemref idref="a"/><itemref idref="b"/></spine></package>'
)


def break_member(data: bytes, content: bytes) -> bytes:
    """Change a stored member behind its checksum's back."""
    assert content in data
    return data.replace(content, content[::-1])


def packed(members: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def named_in(encoding: str, name: str) -> bytes:
    """An archive whose only name is written in an encoding, as programs of before Unicode do."""
    encoded = name.encode(encoding)
    placeholder = b"x" * len(encoded)
    return packed({placeholder.decode(): b"The fee is 5 euros."}).replace(placeholder, encoded)


def test_a_damaged_chapter_costs_only_itself() -> None:
    lost = b"<html><body><p>This chapter is lost.</p></body></html>"
    kept = b"<html><body><p>This chapter is kept.</p></body></html>"
    members = {"META-INF/container.xml": CONTAINER.encode(), "book.opf": BOOK.encode()}
    members |= {"a.xhtml": lost, "b.xhtml": kept}
    document = parse(break_member(packed(members), lost), file_name="book.epub")
    assert document.text.strip() == "This chapter is kept."
    assert document.warnings == ("1 chapter of the book is missing, damaged or no text.",)


def test_a_damaged_file_of_an_archive_costs_only_itself() -> None:
    archive = break_member(packed({"a.txt": b"All of it is lost.", "b.txt": b"It is kept."}), b"All of it is lost.")
    document = parse(archive, file_name="all.zip")
    assert document.text == "It is kept."
    assert document.warnings == ("a.txt was not read: it is damaged.",)


@pytest.mark.parametrize(
    ("encoding", "name"),
    [("cp932", "会議室の予約.txt"), ("cp850", "población.txt"), ("utf-8", "Übersicht.txt"), ("cp866", "Список.txt")],
)
def test_names_in_an_archive_are_read_in_their_encoding(encoding: str, name: str) -> None:
    document = parse(named_in(encoding, name), file_name="all.zip")
    assert {span.location.part for span in document.spans} == {name}


def test_a_line_that_is_no_json_costs_only_itself() -> None:
    document = parse(b'{"id": 1}\n{"id": 2\n\n{"id": 3}\n', file_name="rows.jsonl")
    assert document.text.split("\n")[:2] == ["id: 1", "id: 3"]
    assert {span.location.row for span in document.spans} == {1, 4}
    assert document.warnings == ("Line 2 is not valid JSON and was not read.",)
    with pytest.raises(DocumentError):
        parse(b'{"nothing\n{"of it\n', file_name="rows.jsonl")


def test_files_attached_to_a_pdf_are_read_as_those_of_a_mail() -> None:
    source = pypdfium2.PdfDocument.new()
    source.new_page(200, 200)
    attachment = source.new_attachment("prices.csv")
    attachment.set_data(b"Item,Price\nValve,19\nRing,7\n")
    buffer = io.BytesIO()
    source.save(buffer)
    document = parse(buffer.getvalue(), file_name="report.pdf")
    assert "Item: Valve | Price: 19" in document.text
    assert {span.location.part for span in document.spans} == {"prices.csv"}
    assert not any("attached" in warning for warning in document.warnings)


@pytest.mark.parametrize("text", [f"<html><body>{TABLE}</body></html>", TABLE, "Item\tPrice\nPen\t2\n"])
def test_tables_that_programs_export_under_the_name_of_a_workbook_are_read(text: str) -> None:
    assert "Item: Pen | Price: 2" in parse(text.encode(), file_name="a.xls").text


def test_a_failed_download_is_still_refused() -> None:
    page = b"<!doctype html><html><body><h1>Sign in</h1><p>Your session has expired.</p></body></html>"
    for name in ("report.xls", "report.doc", "report.pdf"):
        with pytest.raises(DocumentError, match="download probably failed"):
            parse(page, file_name=name)


def test_named_footnotes_are_numbered_like_the_others() -> None:
    notes = "[^late]: On Sundays at 18:00.\n[^1]: Each.\n[^the-fee]: Net.\n"
    source = f"Closes at 21:00[^late], costs 4[^1] euros[^the-fee].\n\n{notes}"
    text = parse(source.encode(), file_name="a.md").text
    assert "[^" not in text
    assert "21:00 ²" in text
    assert "² On Sundays at 18:00." in text
    assert "¹ Each." in text
    assert "³ Net." in text

"""What a file is decides its content; what cannot be read is refused in words that help."""

from __future__ import annotations

import io
import re
import zipfile

import pytest

from rag_service.errors import DocumentError, TooLargeError, UnsupportedMediaError
from rag_service.readers.common.names import clean_file_name
from rag_service.readers.parse import parse
from tests.unit.readers import samples
from tests.unit.readers.samples import with_members

PNG = b"\x89PNG\r\n\x1a\n" + b"\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00\x1f\x15\xc4\x89"
OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(504)


def archive(**members: str) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        for name, text in members.items():
            file.writestr(name, text)
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("../../etc/passwd", "passwd"),
        ("C:\\Users\\ana\\Informe final.pdf", "Informe final.pdf"),
        ("bad\0name\n.txt", "badname.txt"),
        ("invoice\u202efdp.exe", "invoicefdp.exe"),
        ("cafe\u0301.md", "café.md"),
        ("..", "document"),
        ("", "document"),
        ("folder/", "document"),
        ("x" * 300 + ".pdf", "x" * 251 + ".pdf"),
    ],
)
def test_file_name_is_reduced_to_a_safe_base_name(name: str, expected: str) -> None:
    assert clean_file_name(name) == expected


@pytest.mark.parametrize(
    ("data", "name", "kind", "says"),
    [
        (b"", "a.txt", DocumentError, "is empty"),
        (b" \n\n\t", "a.txt", DocumentError, "contains no text"),
        (bytes(range(256)) * 20, "a.txt", UnsupportedMediaError, "binary file"),
        (PNG, "scan.pdf", UnsupportedMediaError, "is an image"),
        (b"just words", "report.pdf", UnsupportedMediaError, "contains plain text"),
        (b"<!DOCTYPE html><html>404</html>", "report.pdf", UnsupportedMediaError, "download probably failed"),
        (b"<html><body></body></html>", "page.html", DocumentError, "contains no text"),
        (b"just words", "all.mbox", UnsupportedMediaError, "named like a mailbox"),
        (b"a,b", "a.xlsx", UnsupportedMediaError, "named like an Excel workbook"),
        (b"{\\rtf1 {\\pict 00}}", "a.rtf", DocumentError, "contains no text"),
        (b'{"a": [1, 2', "a.json", DocumentError, "not valid JSON"),
        (OLE, "old.doc", UnsupportedMediaError, "old Office format"),
        (OLE + "WordDocument".encode("utf-16-le"), "old.doc", UnsupportedMediaError, '"Save as" .docx'),
        (OLE + "Workbook".encode("utf-16-le"), "old.xls", UnsupportedMediaError, '"Save as" .xlsx'),
        (OLE + "PowerPoint Document".encode("utf-16-le"), "old.ppt", UnsupportedMediaError, '"Save as" .pptx'),
        (OLE + "__properties_version1.0".encode("utf-16-le"), "a.msg", DocumentError, "damaged"),
        (OLE + "EncryptedPackage".encode("utf-16-le"), "a.xlsx", DocumentError, "protected by a password"),
        (archive(**{"a.txt": "x"}), "a.docx", UnsupportedMediaError, "ZIP archive"),
        (archive(mimetype="x", **{"content.xml": "<a/>"}), "a.odt", DocumentError, "damaged"),
        (archive(**{"Index/Document.iwa": "x"}), "a.pages", UnsupportedMediaError, "Pages"),
        (archive(**{"a.bin": "\0" * 99}), "a.zip", DocumentError, "without any readable document"),
        (
            archive(**{samples.CONTENT_TYPES: "application/vnd.ms-excel.sheet.macroEnabled.main+xml"}),
            "a.xlsx",
            UnsupportedMediaError,
            "macros",
        ),
        (
            archive(**{samples.CONTENT_TYPES: "application/vnd.ms-excel.sheet.binary.macroEnabled.main"}),
            "a.xlsb",
            UnsupportedMediaError,
            "binary Excel workbook",
        ),
        (
            archive(**{samples.CONTENT_TYPES: "wordprocessingml.document.main+xml", "word/vbaProject.bin": ""}),
            "a.docx",
            UnsupportedMediaError,
            "macros",
        ),
        (
            archive(**{samples.CONTENT_TYPES: "presentationml.presentation.main+xml"}),
            "a.pptx",
            DocumentError,
            "damaged",
        ),
        (b"PK\x03\x04 nothing of a zip", "a.xlsx", DocumentError, "damaged"),
    ],
)
def test_refusal_names_file_reason_and_remedy(data: bytes, name: str, kind: type, says: str) -> None:
    with pytest.raises(kind) as caught:
        parse(data, file_name=f"../somewhere/{name}")
    message = caught.value.message
    assert says in message
    assert message.startswith((f'"{name}"', "Page"))
    assert "/somewhere" not in message
    assert message.count(". ") >= 1 or "; " in message  # a second part says what to do


@pytest.mark.parametrize(
    ("data", "media_type"),
    [
        (samples.pdf("Hello"), "application/pdf"),
        (samples.word("Hello"), "application/vnd.openxmlformats-officedocument.wordprocessingml.document"),
        (samples.xlsx([["Hello"]]), "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
    ],
)
@pytest.mark.parametrize("name", ["right.bin", "wrong.txt", "wrong.csv", "wrong.pdf", "none"])
def test_content_wins_over_a_wrong_ending(data: bytes, media_type: str, name: str) -> None:
    document = parse(data, file_name=name)
    assert document.media_type == media_type
    assert "Hello" in document.text


@pytest.mark.parametrize(
    ("name", "media_type"),
    [("a.md", "text/markdown"), ("a.CSV", "text/csv"), ("a.tsv", "text/csv"), ("a.log", "text/plain")],
)
def test_name_chooses_among_text_formats(name: str, media_type: str) -> None:
    assert parse(b"one,two\n1,2", file_name=name).media_type == media_type


@pytest.mark.parametrize("share", [0.3, 0.6, 0.95])
@pytest.mark.parametrize(
    ("data", "name"),
    [
        (samples.pdf("Hello " * 50), "a.pdf"),
        (samples.word("Hello"), "a.docx"),
        (samples.xlsx([["Hello", 1]]), "a.xlsx"),
    ],
)
def test_truncated_file_is_refused_as_incomplete(data: bytes, name: str, share: float) -> None:
    with pytest.raises(DocumentError, match=r"cut off|damaged"):
        parse(data[: int(len(data) * share)], file_name=name)


def test_bomb_is_refused_by_its_declared_size_before_unpacking() -> None:
    bomb = samples.with_zeros(samples.word("x"), "word/media/image1.bin", 250 * 2**20)
    assert len(bomb) < 3 * 2**20
    with pytest.raises(TooLargeError, match="far more data"):
        parse(bomb, file_name="a.docx")


def test_bomb_with_a_lying_size_is_refused() -> None:
    bomb = bytearray(samples.with_zeros(samples.word("x"), "word/media/image1.bin", 50 * 2**20))
    declared = (50 * 2**20).to_bytes(4, "little")
    for match in list(re.finditer(re.escape(declared), bytes(bomb))):
        bomb[match.start() : match.end()] = (1000).to_bytes(4, "little")
    with pytest.raises(DocumentError, match=r"damaged|far more data"):
        parse(bytes(bomb), file_name="a.docx")


@pytest.mark.parametrize("member", ["word/document.xml", "word/styles.xml", "docProps/core.xml", "word/odd.bin"])
def test_xml_bomb_is_refused_in_any_member_of_a_word_file(member: str) -> None:
    with pytest.raises(DocumentError, match="XML declarations"):
        parse(samples.with_members(samples.word("x"), {member: samples.BILLION_LAUGHS}), file_name="a.docx")


@pytest.mark.parametrize("member", ["xl/workbook.xml", "xl/worksheets/sheet1.xml", "xl/styles.xml"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_xml_bomb_is_refused_in_any_member_and_encoding_of_a_workbook(member: str, encoding: str) -> None:
    bomb = samples.BILLION_LAUGHS.decode().encode(encoding)
    with pytest.raises(DocumentError, match="XML declarations"):
        parse(samples.with_members(samples.xlsx([["x"]]), {member: bomb}), file_name="a.xlsx")


def test_deep_nesting_is_refused() -> None:
    with pytest.raises(DocumentError, match="nested too deeply"):
        parse(samples.deep_word(100_000), file_name="a.docx")


def test_archive_with_a_password_says_so() -> None:
    data = bytearray(samples.word("x"))
    for mark, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        for match in re.finditer(re.escape(mark), bytes(data)):
            data[match.start() + offset] |= 1
    with pytest.raises(DocumentError, match="password"):
        parse(bytes(data), file_name="a.docx")


def _with_types(data: bytes, old: bytes, new: bytes) -> bytes:
    with zipfile.ZipFile(io.BytesIO(data)) as package:
        types = package.read(samples.CONTENT_TYPES)
    assert old in types
    return with_members(data, {samples.CONTENT_TYPES: types.replace(old, new)})


def test_a_template_is_read_like_a_document() -> None:
    data = _with_types(samples.word("Hello"), b"wordprocessingml.document.main", b"wordprocessingml.template.main")
    read = parse(data, file_name="letter.dotx")
    assert (read.text.strip(), read.warnings) == ("Hello", ())


def test_a_workbook_with_macros_within_a_document_does_not_refuse_it() -> None:
    within = b'<Default Extension="xlsm" ContentType="application/vnd.ms-excel.sheet.macroEnabled.12"/></Types>'
    assert parse(_with_types(samples.word("Hello"), b"</Types>", within), file_name="a.docx").text.strip() == "Hello"

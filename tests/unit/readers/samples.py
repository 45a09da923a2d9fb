"""Files for the parser tests, all generated: ordinary ones, and hostile ones as issue 4 lists them."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping, Sequence
from typing import Any

import docx
from fpdf import FPDF
from openpyxl import Workbook

from rag_service.domain import Location, ParsedDocument

CONTENT_TYPES = "[Content_Types].xml"


def at(document: ParsedDocument, quote: str) -> Location:
    """Place of the only span that is exactly the quote."""
    found = [span.location for span in document.spans if document.text[span.start : span.end] == quote]
    assert len(found) == 1, f"{quote!r} found {len(found)} times"
    return found[0]


def cell_texts(document: ParsedDocument) -> dict[str, str]:
    """Text of each single cell by its address."""
    return {
        span.location.cell: document.text[span.start : span.end]
        for span in document.spans
        if span.location.cell and ":" not in span.location.cell
    }


def pdf(*pages: str, password: str | None = None, user_password: str | None = None, title: str = "") -> bytes:
    file = FPDF()
    file.set_font("Helvetica", size=11)
    if title:
        file.set_title(title)
    for text in pages:
        file.add_page()
        if text:
            file.multi_cell(0, 6, text)
    if password is not None:
        file.set_encryption(owner_password=password, user_password=user_password or "")
    return bytes(file.output())


def xlsx(rows: Sequence[Sequence[object]], *, sheet: str = "Sheet") -> bytes:
    book = Workbook()
    book.active.title = sheet
    for row in rows:
        book.active.append(row)
    return saved(book)


def saved(file: object) -> bytes:
    """Bytes of a workbook or a Word document."""
    buffer = io.BytesIO()
    file.save(buffer)
    return buffer.getvalue()


def word(*paragraphs: str) -> bytes:
    document = docx.Document()
    for paragraph in paragraphs:
        document.add_paragraph(paragraph)
    return saved(document)


def add_word_table(document: Any, rows: Sequence[Sequence[str]], **options: Any) -> Any:
    """A table at the end of a docx.Document, filled; returns it. `options`: of its `add_table`."""
    table = document.add_table(len(rows), len(rows[0]), **options)
    for number, texts in enumerate(rows):
        for column, text in enumerate(texts):
            table.cell(number, column).text = text
    return table


def with_members(data: bytes, changes: Mapping[str, bytes]) -> bytes:
    """A copy of a ZIP file with members replaced or added."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as new:
        for member in old.infolist():
            if member.filename not in changes:
                new.writestr(member, old.read(member))
        for name, content in changes.items():
            new.writestr(name, content)
    return buffer.getvalue()


def with_zeros(data: bytes, name: str, size: int, *, fill: bytes = b"\0") -> bytes:
    """A copy of a ZIP file with a member of `size` equal bytes, which pack to a thousandth."""
    buffer = io.BytesIO(data)
    with (
        zipfile.ZipFile(buffer, "a", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        archive.open(name, "w", force_zip64=True) as member,
    ):
        for _ in range(size // 2**20):
            member.write(fill * 2**20)
    return buffer.getvalue()


BILLION_LAUGHS = (
    b'<?xml version="1.0"?><!DOCTYPE l [<!ENTITY a "ha">'
    + b"".join(b'<!ENTITY %c "%s">' % (98 + i, b"&%c;" % (97 + i) * 10) for i in range(10))
    + b"]><l>&k;</l>"
)


def deep_word(depth: int) -> bytes:
    namespace = b'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
    body = b"<w:sdt><w:sdtContent>" * depth + b"</w:sdtContent></w:sdt>" * depth
    xml = b"<w:document %s><w:body>%s</w:body></w:document>" % (namespace, body)
    return with_members(word("x"), {"word/document.xml": xml})


def far_corner_xlsx() -> bytes:
    """A sheet of two cells, seventeen billion places apart."""
    book = Workbook()
    book.active.title = "S"
    book.active["A1"] = "first"
    book.active["XFD1048576"] = "last"
    return saved(book)


def pdf_of_objects(*objects: bytes, trailer: bytes = b"") -> bytes:
    """A PDF of objects written by hand; the first is the catalog."""
    out, offsets = bytearray(b"%PDF-1.4\n"), []
    for number, body in enumerate(objects, start=1):
        offsets.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    start, size = len(out), len(objects) + 1
    out += b"xref\n0 %d\n0000000000 65535 f \n" % size + b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    return bytes(out + b"trailer<</Size %d/Root 1 0 R%s>>\nstartxref\n%d\n%%%%EOF" % (size, trailer, start))


def stream(content: bytes, *, keys: str = "") -> bytes:
    return b"<</Length %d%s>>stream\n%s\nendstream" % (len(content), keys.encode(), content)


def pdf_with_stream(
    content: bytes,
    *,
    filters: str = "",
    font: str = "Helvetica",
    unicode: Mapping[str, str] | None = None,
) -> bytes:
    """A one-page PDF around a raw content stream, with one font, /F1; `unicode` says what its letters stand for."""
    letters = [f"<{ord(letter):02x}><{text.encode('utf-16-be').hex()}>" for letter, text in (unicode or {}).items()]
    meanings = ["begincmap", f"{len(letters)} beginbfchar", *letters, "endbfchar endcmap"]
    return pdf_of_objects(
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 200 200]/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>>>",
        stream(content, keys=filters),
        b"<</Type/Font/Subtype/Type1/BaseFont/%s%s>>" % (font.encode(), b"/ToUnicode 6 0 R" if unicode else b""),
        stream("\n".join(meanings).encode()),
    )

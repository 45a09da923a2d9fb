"""PDF: the text of each page, laid out so that the figures of a table row stay beside their label.

Read with PDFium (Chrome's engine) by way of `pdf_words` and `pdf_layout`. Beside pypdf's layout mode, which it
replaced, on five filings of 470 pages (10-K, 10-Q, earnings release; one core):

- 120 pages a second for 12;
- of 1.4 million visible characters one is missing, an italic "f" on a page of two columns;
- of 4,889 lines with two figures or more 4,873 are the same, and most others better;
- sixty words that kerning had parted are whole ("Participant’ s"), justified text has single spaces, and "at" is glued
  once to the web address behind it.
"""

from __future__ import annotations

import ctypes
import re
from contextlib import closing, suppress
from typing import Any

import pypdfium2
from pypdfium2 import raw as pdfium

from rag_service.domain import Location, ParsedDocument
from rag_service.errors import DocumentError, TooLargeError
from rag_service.ingest.parse.builder import TextBuilder, clean, one_line
from rag_service.ingest.parse.names import choose_title, language_of
from rag_service.ingest.parse.pdf_layout import lay_out
from rag_service.ingest.parse.pdf_words import read_text, read_words

MEDIA_TYPE = "application/pdf"
MAX_PAGES = 5_000
MAX_PAGE_CHARACTERS = 1_000_000  # a dense page holds 10,000
_GUTTER = re.compile(r"(?<=\S)\s{3,}(?=\S)")


def parse_pdf(data: bytes, *, name: str) -> ParsedDocument:
    """Read a PDF page by page; each page is one span with its number.

    A file encrypted with an empty user password is opened. Pages without text are listed in
    `metadata["pages_without_text"]`. Only for a process that may die: PDFium aborts where memory ends.

    Raises:
        DocumentError: protected by a password, damaged, cut off, or scanned without text.
        TooLargeError: a page of far too many characters, too many pages, or too much text.
        PdfiumError: damaged beyond repair.
    """
    if b"%%EOF" not in data:
        raise DocumentError(
            f'"{name}" is cut off: the end of the PDF is missing. Copy or download the file again and upload it.'
        )
    with closing(_open(data, name)) as document:
        builder = TextBuilder(name)
        empty: list[int] = []
        pages = _count_pages(document, name)
        for number in range(1, pages + 1):
            text = _page_text(document, number, name)
            if not text:
                empty.append(number)
                continue
            builder.write("\n\n" if len(builder) else "")
            builder.write(text, Location(page=number))
        if not len(builder):
            raise DocumentError(
                f'"{name}" contains no text, only images; it was probably scanned. '
                "Run text recognition (OCR) on it and upload the result."
            )
        metadata = {"pages": pages, **({"pages_without_text": empty} if empty else {}), **_information(document)}
        return builder.build(
            title=choose_title(name, metadata.pop("title", None)),
            media_type=MEDIA_TYPE,
            language=language_of(_declared_language(document)),
            metadata=metadata,
        )


def _open(data: bytes, name: str) -> Any:
    try:
        return pypdfium2.PdfDocument(data)
    except pypdfium2.PdfiumError as error:
        if error.err_code == pdfium.FPDF_ERR_PASSWORD:
            raise DocumentError(
                f'"{name}" is protected by a password. Save a copy without the password and upload that.'
            ) from error
        if error.err_code == pdfium.FPDF_ERR_SECURITY:
            raise DocumentError(
                f'"{name}" is encrypted in a way that this service cannot open. '
                "Save an unprotected copy and upload that."
            ) from error
        raise


def _count_pages(document: Any, name: str) -> int:
    pages = len(document)
    if pages > MAX_PAGES:
        raise TooLargeError(f'"{name}" has {pages:,} pages; {MAX_PAGES:,} are the limit. Split it into smaller files.')
    return pages


def _page_text(document: Any, number: int, name: str) -> str:
    """Text of a page without needless space; empty for a page that cannot be read."""
    try:
        page = document[number - 1]
    except pypdfium2.PdfiumError:
        return ""
    with closing(page), closing(page.get_textpage()) as text_page:
        if text_page.count_chars() > MAX_PAGE_CHARACTERS:
            raise TooLargeError(
                f'Page {number} of "{name}" unpacks to far more data than a page of text holds. '
                "Print the document to a new PDF and upload that."
            )
        laid_out = clean(lay_out(read_words(page.raw, text_page.raw)))
        return tidy(clean(read_text(text_page.raw)) if is_two_column(laid_out) else laid_out)


def is_two_column(laid_out: str) -> bool:
    """Whether most lines are prose on both sides of a wide gap; a table has figures on one side."""
    lines = [line.strip() for line in laid_out.splitlines() if line.strip()]
    halves = [_GUTTER.split(line) for line in lines]
    prose = sum(len(half) == 2 and all(_is_prose(side) for side in half) for half in halves)
    return prose >= 10 and prose > len(lines) / 2


def _is_prose(side: str) -> bool:
    return len(side) >= 20 and sum(char.isalpha() for char in side) > len(side) * 0.6


def tidy(text: str) -> str:
    """Drop indentation and empty lines beyond one; gaps between columns become two spaces."""
    text = text.replace("\u00a0", " ")
    text = re.sub(r"([$€£¥]) {2,}(?=[\d(—–-])", r"\1 ", text)
    lines = [re.sub(r"[ \t]{2,}", "  ", line.strip()) for line in text.splitlines()]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()


def _information(document: Any) -> dict[str, str]:
    """Title, author and subject, as far as they can be read."""
    values: dict[str, str] = {}
    for key in ("title", "author", "subject"):
        with suppress(UnicodeDecodeError):  # broken properties must not lose a readable text
            values[key] = one_line(document.get_metadata_value(key.title()))[:500]
    return {key: value for key, value in values.items() if value}


def _declared_language(document: Any) -> str:
    size = pdfium.FPDFCatalog_GetLanguage(document, None, 0)  # in bytes
    buffer = (ctypes.c_ushort * (size // 2))()
    pdfium.FPDFCatalog_GetLanguage(document, buffer, size)
    return bytes(buffer).decode("utf-16-le", "replace").rstrip("\0")

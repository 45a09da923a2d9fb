"""PDF: the text of each page, laid out so that the figures of a table row stay beside their label.

Extraction mode, measured on five filings of 470 pages (10-K, 10-Q, earnings release; one core):

    mode     pages/s   rows of the financial statements
    plain      16      label and figures on one line in 3 files; in AMAZON_2017 the figures come before the
                       *next* label, in ULTABEAUTY_2023Q4 every cell is a line of its own
    layout     13      label and figures on one line in all 5 files

So `layout` is read first. It gives nothing for 2 of the pages (their fonts), passes over text in form
objects and rotated text, and interleaves the columns of two-column pages; there `plain` is taken.
"""

from __future__ import annotations

import io
import logging
import re
from typing import Any, Literal

from pypdf import PageObject, PdfReader
from pypdf import errors as pdf_errors

from rag_service.domain import Location, ParsedDocument
from rag_service.errors import DocumentError, TooLargeError
from rag_service.ingest.parse.builder import TextBuilder, clean, one_line
from rag_service.ingest.parse.names import choose_title, language_of

logging.getLogger("pypdf").setLevel(logging.CRITICAL)  # it reports every oddity of every file

MEDIA_TYPE = "application/pdf"
MAX_PAGES = 5_000
_THIN_PAGE = 400  # visible characters below which the other mode is asked too
_GUTTER = re.compile(r"(?<=\S)\s{3,}(?=\S)")


def parse_pdf(data: bytes, *, name: str) -> ParsedDocument:
    """Read a PDF page by page; each page is one span with its number.

    A file encrypted with an empty user password is opened. Pages without text are listed in
    `metadata["pages_without_text"]`.

    Raises:
        DocumentError: protected by a password, damaged, cut off, or scanned without text.
        TooLargeError: a page unpacks beyond pypdf's limits, too many pages, or too much text.
    """
    if b"%%EOF" not in data:
        raise DocumentError(
            f'"{name}" is cut off: the end of the PDF is missing. Copy or download the file again and upload it.'
        )
    reader = _open(data, name)
    builder = TextBuilder(name)
    empty: list[int] = []
    for number, page in enumerate(_pages(reader, name), start=1):
        text = _page_text(page, number, name)
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
    info = _information(reader)
    metadata = {"pages": number, **({"pages_without_text": empty} if empty else {}), **info}
    return builder.build(
        title=choose_title(name, metadata.pop("title", None)),
        media_type=MEDIA_TYPE,
        language=_language(reader),
        metadata=metadata,
    )


def _open(data: bytes, name: str) -> PdfReader:
    reader = PdfReader(io.BytesIO(data), strict=False)
    if not reader.is_encrypted:
        return reader
    try:
        opened = bool(reader.decrypt(""))
    except (NotImplementedError, pdf_errors.DependencyError) as error:
        raise DocumentError(
            f'"{name}" is encrypted in a way that this service cannot open. Save an unprotected copy and upload that.'
        ) from error
    if not opened:
        raise DocumentError(f'"{name}" is protected by a password. Save a copy without the password and upload that.')
    return reader


def _pages(reader: PdfReader, name: str) -> list[PageObject]:
    pages = list(reader.pages)
    if not pages:
        raise DocumentError(f'"{name}" has no pages. The file is probably damaged; export it again.')
    if len(pages) > MAX_PAGES:
        raise TooLargeError(
            f'"{name}" has {len(pages):,} pages; {MAX_PAGES:,} are the limit. Split it into smaller files.'
        )
    return pages


def _page_text(page: PageObject, number: int, name: str) -> str:
    """Text of a page in the mode that serves it best, without needless space."""
    laid_out = _extract(page, "layout", number, name)
    if not (_visible(laid_out) < _THIN_PAGE or _has_unlaid_parts(page) or is_two_column(laid_out)):
        return tidy(laid_out)
    plain = _extract(page, "plain", number, name)
    # 5 % more is lost text; less is ligatures and soft hyphens counted differently.
    if is_two_column(laid_out) or _visible(plain) > 1.05 * _visible(laid_out):
        return tidy(plain) or tidy(laid_out)
    return tidy(laid_out) or tidy(plain)


def _extract(page: PageObject, mode: Literal["plain", "layout"], number: int, name: str) -> str:
    try:
        return clean(page.extract_text(extraction_mode=mode))
    except pdf_errors.LimitReachedError as error:
        raise TooLargeError(
            f'Page {number} of "{name}" unpacks to far more data than a page of text holds. '
            "Print the document to a new PDF and upload that."
        ) from error
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 - pypdf raises anything on odd pages; the other mode or page may still be read
        return ""


def _has_unlaid_parts(page: PageObject) -> bool:
    """Whether the page is turned or draws form objects, whose text the layout mode leaves out."""
    try:
        if page.get("/Rotate", 0):
            return True
        resources: Any = page.get("/Resources", {}).get_object()
        objects: Any = resources.get("/XObject", {}).get_object()
        return any(item.get_object().get("/Subtype") == "/Form" for item in objects.values())
    except (AttributeError, TypeError, ValueError, pdf_errors.PyPdfError):
        return False


def is_two_column(laid_out: str) -> bool:
    """Whether most lines are prose on both sides of a wide gap; a table has figures on one side."""
    lines = [line.strip() for line in laid_out.splitlines() if line.strip()]
    halves = [_GUTTER.split(line) for line in lines]
    prose = sum(len(half) == 2 and all(_is_prose(side) for side in half) for half in halves)
    return prose >= 10 and prose > len(lines) / 2


def _is_prose(side: str) -> bool:
    return len(side) >= 20 and sum(char.isalpha() for char in side) > len(side) * 0.6


def _visible(text: str) -> int:
    return sum(not char.isspace() for char in text)


def tidy(text: str) -> str:
    """Drop indentation and empty lines beyond one; gaps between columns become two spaces."""
    text = text.replace("\u00a0", " ")
    text = re.sub(r"([$€£¥]) {2,}(?=[\d(—–-])", r"\1 ", text)
    lines = [re.sub(r"[ \t]{2,}", "  ", line.strip()) for line in text.splitlines()]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()


def _information(reader: PdfReader) -> dict[str, str]:
    """Title, author and subject, as far as they can be read."""
    try:
        info = reader.metadata
        values = {"title": info.title, "author": info.author, "subject": info.subject} if info else {}
        return {key: one_line(str(value))[:500] for key, value in values.items() if value}
    except Exception:  # noqa: BLE001 - broken properties must not lose a readable text
        return {}


def _language(reader: PdfReader) -> str | None:
    try:
        return language_of(str(reader.root_object.get("/Lang", "")))
    except Exception:  # noqa: BLE001 - as above
        return None

"""The parsing room: bytes of an uploaded file in, stored text with places out. One module a format.

Run it through `rag_service.ingest.sandbox` for anything that came from outside: a parser may need
more memory or time than it should, and only the sandbox ends it.
"""

from __future__ import annotations

import warnings

from rag_service.domain import ParsedDocument
from rag_service.errors import DocumentError, RagError
from rag_service.ingest.parse.detect import Format, detect
from rag_service.ingest.parse.names import clean_file_name

__all__ = ["clean_file_name", "parse"]


def parse(data: bytes, *, file_name: str) -> ParsedDocument:
    """Parse a file: PDF, DOCX, XLSX, CSV, Markdown or plain text, told apart by content.

    The file name is for messages and the title, and chooses among the text formats by its ending.
    All work happens in this process and may block for seconds; nothing is written to disk.

    Raises:
        DocumentError: unreadable; the message tells the uploader what is wrong and what to do.
        UnsupportedMediaError, TooLargeError: kinds of DocumentError.
        MemoryError: the process may not use the memory that the file needs.
    """
    name = clean_file_name(file_name)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # libraries warn of oddities that the reader cannot act on
            return _parse(data, name)
    except (RagError, MemoryError):
        raise
    except Exception as error:
        # Libraries raise anything on broken files: KeyError, AttributeError, RecursionError, …
        raise DocumentError(
            f'"{name}" could not be read; it is probably damaged. '
            "Open it in the program it came from, save it again and upload that."
        ) from error


def _parse(data: bytes, name: str) -> ParsedDocument:
    """Import only the module that the format needs: each takes up to 0.1 s to load."""
    format, text = detect(data, name=name)
    match format:
        case Format.PDF:
            from rag_service.ingest.parse.pdf import parse_pdf

            return parse_pdf(data, name=name)
        case Format.DOCX:
            from rag_service.ingest.parse.docx import parse_docx

            return parse_docx(data, name=name)
        case Format.XLSX:
            from rag_service.ingest.parse.xlsx import parse_xlsx

            return parse_xlsx(data, name=name)
        case Format.CSV:
            from rag_service.ingest.parse.delimited import parse_delimited

            return parse_delimited(text, name=name)
        case Format.MARKDOWN:
            from rag_service.ingest.parse.markdown import parse_markdown

            return parse_markdown(text, name=name)
        case Format.PLAIN:
            from rag_service.ingest.parse.plain import parse_plain

            return parse_plain(text, name=name)

"""Detects the format of a file and calls its parser.

Use `sandbox` or `FileReader` for untrusted files: only the sandbox can limit a parser's memory and time.
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from rag_service.domain import ParsedDocument
from rag_service.errors import DocumentError, RagError
from rag_service.readers.common.names import clean_file_name
from rag_service.readers.detect import Format, detect

# Imported only when needed: each takes up to 0.1 s to load.
_PARSERS = {
    Format.PDF: ("rag_service.readers.pdf.reader", "parse_pdf"),
    Format.DOCX: ("rag_service.readers.office.docx", "parse_docx"),
    Format.XLSX: ("rag_service.readers.office.xlsx", "parse_xlsx"),
    Format.CSV: ("rag_service.readers.text.delimited", "parse_delimited"),
    Format.MARKDOWN: ("rag_service.readers.text.markdown", "parse_markdown"),
    Format.PLAIN: ("rag_service.readers.text.plain", "parse_plain"),
}


@dataclass(frozen=True, kw_only=True)
class ReaderClass:
    """A third-party LlamaIndex reader; only administrators may name one."""

    path: str  # package.module:Class
    options: Mapping[str, Any] = field(default_factory=dict)  # its keyword arguments


def parse(data: bytes, *, file_name: str, reader: ReaderClass | None = None) -> ParsedDocument:
    """Parse a PDF, DOCX, XLSX, CSV, Markdown or plain text file. May block for seconds; writes nothing to disk.

    Args:
        data: the file; with `reader`, the path of a copy, encoded as UTF-8.
        file_name: for messages and the title; its extension chooses among the text formats.
        reader: used instead of our parsers.

    Raises:
        DocumentError: unreadable, also as UnsupportedMediaError or TooLargeError; the message is for the uploader.
        MemoryError: the file needs more memory than this process may use.
    """
    name = clean_file_name(file_name)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # they do not help the uploader
            if reader is not None:
                from rag_service.readers.foreign import parse_with

                return parse_with(reader, data.decode(), name=name)
            format, text = detect(data, name=name)
            module, function = _PARSERS[format]
            parser: Callable[..., ParsedDocument] = getattr(importlib.import_module(module), function)
            return parser(data if text is None else text, name=name)
    except (RagError, MemoryError):
        raise
    except Exception as error:  # libraries raise anything on broken files
        raise DocumentError(
            f'"{name}" could not be read; it is probably damaged. '
            "Open it in the program that created it, save it again and upload the new file."
        ) from error

"""Detects the format of a file and calls its parser.

Use `sandbox` or `FileReader` for untrusted files: only the sandbox can limit a parser's memory and time.
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from rag_service.domain import ENCODING_GUESSED, ParsedDocument
from rag_service.errors import DocumentError, RagError
from rag_service.readers.common.embedded_files import Parts
from rag_service.readers.common.encoded_data import leave_out_data
from rag_service.readers.common.encoding import declares_encoding, guessed_encoding
from rag_service.readers.common.names import clean_file_name
from rag_service.readers.detect import Format, detect
from rag_service.readers.ocr.recognition import NeedsOcrError

# Imported only when needed: each takes up to 0.1 s to load.
_PARSERS = {
    Format.PDF: ("rag_service.readers.pdf.reader", "parse_pdf"),
    Format.DOCX: ("rag_service.readers.office.docx", "parse_docx"),
    Format.XLSX: ("rag_service.readers.office.xlsx", "parse_xlsx"),
    Format.CSV: ("rag_service.readers.text.delimited", "parse_delimited"),
    Format.MARKDOWN: ("rag_service.readers.text.markdown", "parse_markdown"),
    Format.PLAIN: ("rag_service.readers.text.plain", "parse_plain"),
    Format.PPTX: ("rag_service.readers.office.pptx", "parse_pptx"),
    Format.ODF: ("rag_service.readers.office.odf", "parse_odf"),
    Format.RTF: ("rag_service.readers.text.rtf", "parse_rtf"),
    Format.JSON: ("rag_service.readers.text.json_file", "parse_json"),
    Format.YAML: ("rag_service.readers.text.yaml_file", "parse_yaml"),
    Format.CALENDAR: ("rag_service.readers.text.calendar_file", "parse_calendar"),
    Format.NOTEBOOK: ("rag_service.readers.notebook", "parse_notebook"),
    Format.SUBTITLES: ("rag_service.readers.text.subtitles", "parse_subtitles"),
    Format.HTML: ("rag_service.readers.web.html", "parse_html"),
    Format.XML: ("rag_service.readers.web.xml_file", "parse_xml_file"),
    Format.EPUB: ("rag_service.readers.web.epub", "parse_epub"),
    Format.EML: ("rag_service.readers.mail.eml", "parse_eml"),
    Format.MSG: ("rag_service.readers.mail.msg", "parse_msg"),
    Format.MBOX: ("rag_service.readers.mail.mbox", "parse_mbox"),
    Format.IMAGE: ("rag_service.readers.images", "parse_image"),
    Format.ZIP: ("rag_service.readers.zip_archive", "parse_zip"),
}
_PACKAGES = frozenset({Format.DOCX, Format.XLSX, Format.PPTX})
_OWN_DATA = frozenset({Format.HTML, Format.NOTEBOOK})  # their parsers know what of a file is data
# Their parsers read files or pictures within the file.
_WITH_PARTS = frozenset({Format.PDF, Format.EML, Format.MSG, Format.MBOX, Format.ZIP, *_PACKAGES})


def reader_modules() -> list[str]:
    """The modules of all parsers, for a process that loads them before there is a file."""
    return [*sorted({module for module, _ in _PARSERS.values()}), "rag_service.readers.office.package"]


@dataclass(frozen=True, kw_only=True)
class ReaderClass:
    """A third-party LlamaIndex reader; only administrators may name one."""

    path: str  # package.module:Class
    options: Mapping[str, Any] = field(default_factory=dict)  # its keyword arguments


def parse(data: bytes, *, file_name: str, reader: ReaderClass | None = None) -> ParsedDocument:
    """Parse a file of a `Format`. May block for seconds; writes nothing to disk.

    Args:
        data: the file; with `reader`, the path of a copy, encoded as UTF-8.
        file_name: for messages and the title; its extension chooses among the text formats.
        reader: used instead of our parsers.

    Raises:
        DocumentError: unreadable, also as UnsupportedMediaError or TooLargeError; the message is for the uploader.
        NeedsOcrError: only in the mode that asks for it; see `ocr`.
        MemoryError: the file needs more memory than this process may use.
    """
    name = clean_file_name(file_name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they do not help the uploader
        if reader is None:
            return _parse_own(data, name, Parts(_parse_own))
        from rag_service.readers.third_party import parse_with

        with _refused_as_broken(name, reader.path):
            return parse_with(reader.path, reader.options, data.decode(), name=name)


def _parse_own(data: bytes, name: str, parts: Parts) -> ParsedDocument:
    """Parse a file, which may be within another; raises as `parse`."""
    with _refused_as_broken(name):
        format, text = detect(data, name=name)
        module, function = _PARSERS[format]
        parser: Callable[..., ParsedDocument] = getattr(importlib.import_module(module), function)
        if text is not None:
            return _parse_text(parser, text, data, format=format, name=name)
        if format not in _WITH_PARTS:
            return parser(data, name=name)
        if format not in _PACKAGES:
            return parser(data, name=name, parts=parts)
        from rag_service.readers.office.package import MACROS, usual_package

        package, has_macros = usual_package(data, name)
        document = parser(package, name=name, parts=parts)
        return replace(document, warnings=(*document.warnings, MACROS)) if has_macros else document


def _parse_text(
    parser: Callable[..., ParsedDocument], text: str, data: bytes, *, format: Format, name: str
) -> ParsedDocument:
    """Parse a decoded text without the data in letters that it holds; a doubtful encoding is reported."""
    warnings: list[str] = []
    if format not in _OWN_DATA:
        text, warnings = leave_out_data(text)
    document = parser(text, name=name)
    guessed = None if declares_encoding(data) else guessed_encoding(data)
    if guessed is not None:
        warnings.append(f"The encoding was guessed ({guessed}): letters with accents and signs may be wrong.")
        document = replace(document, metadata={**document.metadata, ENCODING_GUESSED: guessed})
    return replace(document, warnings=(*warnings, *document.warnings))


@contextmanager
def _refused_as_broken(name: str, reader: str = "") -> Iterator[None]:
    """Libraries raise anything on broken files: it becomes a DocumentError, which names a reader that is not ours."""
    try:
        yield
    except (RagError, MemoryError, NeedsOcrError):
        raise
    except Exception as error:
        if reader:
            raise DocumentError(
                f'The reader {reader} could not read "{name}" ({type(error).__name__}). If it fails for '
                "every file, an administrator should check the reader; otherwise the file is probably damaged."
            ) from error
        raise DocumentError(
            f'"{name}" could not be read; it is probably damaged. '
            "Open it in the program that created it, save it again and upload the new file."
        ) from error

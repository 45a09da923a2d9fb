"""Detects the format of a file from its content; the name only chooses among text formats."""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import StrEnum

from rag_service.errors import DocumentError, UnsupportedMediaError
from rag_service.readers.common.encoding import decode_text
from rag_service.readers.common.names import suffix_of

_ACCEPTED = "Upload a PDF, Word (.docx), Excel (.xlsx), CSV, Markdown or plain text file."
_PDF_MARK = b"%PDF-"
_OLE_MARK = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"  # compound file: Office 97–2003, and encrypted newer files
_ZIP_MARKS = (b"PK\x03\x04", b"PK\x05\x06", b"PK\x07\x08")
_DELIMITED = frozenset({".csv", ".tsv"})
_MARKDOWN = frozenset({".md", ".markdown"})
# Extensions of binary formats: if such a file holds text, the download failed or it was renamed.
_NEVER_TEXT = {
    ".pdf": "a PDF document", ".docx": "a Word document", ".xlsx": "an Excel workbook", ".doc": "a Word document",
    ".xls": "an Excel workbook", ".pptx": "a presentation", ".zip": "a ZIP archive", ".png": "an image",
    ".jpg": "an image", ".jpeg": "an image",
}  # fmt: skip
_MAIL = frozenset({".eml", ".mbox", ".mht", ".mhtml"})  # text formats with an encoding of their own
_WEB_PAGE = re.compile(r"\s*(?:<!--.{0,500}?-->\s*)?(?:<!doctype\s+html|<html[\s>])", re.IGNORECASE | re.DOTALL)
_OTHER_PACKAGES = (  # a part of [Content_Types].xml → what the file is
    (b"presentationml", "a PowerPoint presentation", "Export it as a PDF and upload that."),
    (b"sheet.binary", "a binary Excel workbook (.xlsb)", "Save it as .xlsx and upload that."),
    (b"vnd.ms-package", "a package of another program", _ACCEPTED),
)


class Format(StrEnum):
    PDF = "pdf"
    DOCX = "docx"
    XLSX = "xlsx"
    CSV = "csv"
    MARKDOWN = "markdown"
    PLAIN = "plain"


def detect(data: bytes, *, name: str) -> tuple[Format, str | None]:
    """Return the format, and for the text formats the decoded text.

    Raises:
        DocumentError: empty, damaged, protected by a password, or not what its name says.
        UnsupportedMediaError: a format that is not read, named where it is known; files with macros.
    """
    if not data:
        raise DocumentError(f'"{name}" is empty (0 bytes). Check the file and upload it again.')
    suffix = suffix_of(name)
    head = data[:1024]
    if head.lstrip(b"\xef\xbb\xbf\x00 \t\r\n").startswith(_PDF_MARK) or (suffix == ".pdf" and _PDF_MARK in head):
        return Format.PDF, None
    if data.startswith(_ZIP_MARKS):
        return _package(data, name), None
    if data.startswith(_OLE_MARK):
        raise _compound_file(data, name)
    text = decode_text(data)
    if text is None:
        raise _unknown_binary(data, name)
    return _text_format(text, suffix, name), text


def _text_format(text: str, suffix: str, name: str) -> Format:
    if text.startswith("{\\rtf"):
        raise UnsupportedMediaError(f'"{name}" is an RTF document. Save it as .docx and upload that.')
    if text.startswith("%!PS"):
        raise UnsupportedMediaError(f'"{name}" is a PostScript file. Convert it to PDF and upload that.')
    if suffix in _MAIL:
        raise UnsupportedMediaError(f'"{name}" is an e-mail or saved web page. Print it to a PDF and upload that.')
    promised = _NEVER_TEXT.get(suffix)
    if promised:
        found = "a web page; the download probably failed" if _WEB_PAGE.match(text) else "plain text"
        raise UnsupportedMediaError(
            f'"{name}" is named like {promised} but contains {found}. '
            "Get the original file again, or rename it to .txt if you want the text."
        )
    if suffix not in _MARKDOWN and suffix != ".txt" and _WEB_PAGE.match(text):
        raise UnsupportedMediaError(f'"{name}" is a web page (HTML). Print it to a PDF and upload that.')
    if suffix in _DELIMITED:
        return Format.CSV
    return Format.MARKDOWN if suffix in _MARKDOWN else Format.PLAIN


def _package(data: bytes, name: str) -> Format:
    """Recognise Office files by the list of content types that each must contain."""
    # Loaded here: the XML reader below brings urllib and ssl, which would double the sandbox's start.
    from rag_service.readers.common.archive import damaged, open_archive

    archive = open_archive(data, name)
    members = {member.filename: member for member in archive.infolist()}
    listing = members.get("[Content_Types].xml")
    if listing is None or listing.file_size > 4_000_000:
        if "mimetype" in members and any(entry in members for entry in ("content.xml", "META-INF/manifest.xml")):
            raise UnsupportedMediaError(
                f'"{name}" is an OpenDocument or e-book file. Save it as .docx, .xlsx or PDF and upload that.'
            )
        raise UnsupportedMediaError(f'"{name}" is a ZIP archive. Unpack it and upload the files in it.')
    try:
        types = archive.read(listing)
    except Exception as error:
        raise damaged(name) from error  # zipfile lets zlib's and others' errors through
    return _office_format(types, members, name)


def _office_format(types: bytes, members: Iterable[str], name: str) -> Format:
    if b"macroEnabled" in types or any(member.lower().endswith("vbaproject.bin") for member in members):
        raise UnsupportedMediaError(
            f'"{name}" contains macros (programs), which are not accepted. '
            "Save it as .docx or .xlsx without macros and upload that."
        )
    for mark, kind, advice in _OTHER_PACKAGES:
        if mark in types:
            raise UnsupportedMediaError(f'"{name}" is {kind}. {advice}')
    if b"wordprocessingml.document.main+xml" in types or b"wordprocessingml.template.main+xml" in types:
        return Format.DOCX
    if b"spreadsheetml.sheet.main+xml" in types or b"spreadsheetml.template.main+xml" in types:
        return Format.XLSX
    raise UnsupportedMediaError(f'"{name}" is a package of another program. {_ACCEPTED}')


def _compound_file(data: bytes, name: str) -> DocumentError:
    if "EncryptedPackage".encode("utf-16-le") in data:
        return DocumentError(
            f'"{name}" is protected by a password. Remove the password in your Office program and upload it again.'
        )
    return UnsupportedMediaError(
        f'"{name}" is in an old Office format (.doc, .xls, .ppt, .msg). Save it as .docx, .xlsx or PDF and upload that.'
    )


def _unknown_binary(data: bytes, name: str) -> UnsupportedMediaError:
    """The error for a binary file, with its type as far as puremagic knows it."""
    import puremagic  # takes 10 ms to load, and only for a refusal

    try:
        kind = puremagic.from_string(data[:4096], mime=True) or ""
    except (puremagic.PureError, ValueError):
        kind = ""
    group = kind.partition("/")[0]
    what = {"image": "an image", "audio": "a sound recording", "video": "a video", "font": "a font"}.get(group)
    if what == "an image":
        return UnsupportedMediaError(
            f'"{name}" is an image ({kind}). '
            "Run text recognition (OCR) on it, save the result as a PDF and upload that."
        )
    described = f"{what or 'a binary file'} ({kind})" if kind else "a binary file of an unknown kind"
    return UnsupportedMediaError(f'"{name}" is {described}, not a document with text. {_ACCEPTED}')

"""Detects the format of a file from its content; the name only chooses among text formats."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterable, Mapping
from enum import StrEnum

from rag_service.errors import DocumentError, ProtectedError, UnsupportedMediaError
from rag_service.readers.common.encoding import decode_page, decode_text
from rag_service.readers.common.names import FORMATS, suffix_of
from rag_service.readers.text.calendar_file import is_calendar
from rag_service.readers.text.json_file import read_json
from rag_service.readers.text.subtitles import is_subtitles

_ACCEPTED = f"Supported formats: {FORMATS}."
_PDF_MARK = b"%PDF-"
_RTF_MARK = b"{\\rtf"
_OLE_MARK = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"  # compound file: Office 97–2003, Outlook, and encrypted newer files
_ZIP_MARKS = (b"PK\x03\x04", b"PK\x05\x06", b"PK\x07\x08")
_IMAGE_MARKS = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"II*\0", b"MM\0*")  # PNG, JPEG, TIFF
_DELIMITED = frozenset({".csv", ".tsv"})
_MARKDOWN = frozenset({".md", ".markdown"})
_WEB = frozenset({".html", ".htm", ".xhtml"})
_XML = frozenset({".xml", ".rss", ".atom", ".nxml"})
_YAML = frozenset({".yaml", ".yml"})
_JSON = frozenset({".json", ".jsonl", ".ndjson", ".geojson"})
_MAIL = frozenset({".eml", ".mht", ".mhtml"})
_WITH_MACROS = frozenset({".docm", ".xlsm", ".pptm"})  # files that say that they contain programs
_TEXT = frozenset({".txt", ".log", *_DELIMITED, *_MARKDOWN})  # their name says how to read them
# Extensions of binary formats: if such a file holds text, the download failed or it was renamed.
_NEVER_TEXT = {
    ".pdf": "a PDF document", ".docx": "a Word document", ".xlsx": "an Excel workbook", ".doc": "a Word document",
    ".xls": "an Excel workbook", ".ppt": "a presentation", ".pptx": "a presentation", ".odt": "a text document",
    ".ods": "a spreadsheet", ".odp": "a presentation", ".epub": "an e-book", ".msg": "an Outlook message",
    ".mbox": "a mailbox", ".zip": "a ZIP archive", ".png": "an image", ".jpg": "an image", ".jpeg": "an image",
    ".tif": "an image", ".tiff": "an image", ".webp": "an image", ".docm": "a Word document",
    ".xlsm": "an Excel workbook", ".pptm": "a presentation",
}  # fmt: skip
_WEB_PAGE = re.compile(
    r"\s*(?:<\?xml[^>]{0,200}\?>\s*)?(?:<!--.{0,500}?-->\s*)*"
    r"(?:<!doctype\s+html|<(?:html|head|title|meta|body)[\s>])",
    re.IGNORECASE | re.DOTALL,
)
_XML_DECLARATION = re.compile(r"\s*<\?xml\s")
_HEADER = re.compile(  # a mailbox from which a message was taken leaves its separator
    rb"(?:From [^\r\n]{1,1000}\r?\n)?(?:[!-9;-~]{1,60}:[^\n]{0,1000}\r?\n(?:[ \t][^\n]{0,1000}\r?\n){0,100}){1,200}"
)
_HEADERS = re.compile(rb"^(from|to|date|subject|message-id|mime-version|received):", re.IGNORECASE | re.MULTILINE)
_MAILBOX = re.compile(rb"\s*From [^\r\n]{1,1000}\r?\n[!-9;-~]{1,60}:")  # a separator, then a header
_HEAD = 200_000  # characters in which an exported page has its first table
_MIN_HEADERS = 3  # different ones, for a message without the extension of one
_OTHER_PACKAGES = (  # a part of [Content_Types].xml → what the file is
    (b"sheet.binary.macroEnabled.main", "a binary Excel workbook (.xlsb)", "Save it as .xlsx and upload that."),
    (b"vnd.ms-package", "a package from another program", _ACCEPTED),
)
_MACROS = re.compile(rb"macroEnabled\w*\.main\+xml")
_OLD_OFFICE = (  # a stream of a compound file → what it is, what to save it as
    ("WordDocument", "an old Word document (.doc)", ".docx"),
    ("Workbook", "an old Excel workbook (.xls)", ".xlsx"),
    ("PowerPoint Document", "an old PowerPoint presentation (.ppt)", ".pptx"),
    ("Book", "an old Excel workbook (.xls)", ".xlsx"),
)
_NOT_OLD_OFFICE = ("__properties_version1.0", "EncryptedPackage")  # streams of an Outlook message, of a protected file


class Format(StrEnum):
    PDF = "pdf"
    DOCX = "docx"
    XLSX = "xlsx"
    CSV = "csv"
    MARKDOWN = "markdown"
    PLAIN = "plain"
    PPTX = "pptx"
    ODF = "odf"
    RTF = "rtf"
    HTML = "html"
    XML = "xml"
    EPUB = "epub"
    EML = "eml"
    MSG = "msg"
    MBOX = "mbox"
    JSON = "json"
    NOTEBOOK = "notebook"
    YAML = "yaml"
    CALENDAR = "calendar"
    SUBTITLES = "subtitles"
    ZIP = "zip"
    IMAGE = "image"


_OFFICE_TYPES = {  # format → content types of its main part
    Format.DOCX: (
        "wordprocessingml.document", "wordprocessingml.template", "ms-word.document.macroEnabled",
    ),
    Format.XLSX: ("spreadsheetml.sheet", "spreadsheetml.template", "ms-excel.sheet.macroEnabled"),
    Format.PPTX: (
        "presentationml.presentation", "presentationml.slideshow", "presentationml.template",
        "ms-powerpoint.presentation.macroEnabled",
    ),
}  # fmt: skip


def is_webp(data: bytes) -> bool:
    """Whether a file is a WebP image, whose mark stands behind its length."""
    return data.startswith(b"RIFF") and data[8:12] == b"WEBP"


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
        return _compound_file(data, name), None
    if data.startswith(_IMAGE_MARKS) or is_webp(data):
        if (promised := _NEVER_TEXT.get(suffix, "an image")) != "an image":
            raise UnsupportedMediaError(
                f'"{name}" is an image, but is named like {promised}. Get the original, or rename it to .png or .jpg.'
            )
        return Format.IMAGE, None
    if head.lstrip().startswith(_RTF_MARK):
        return Format.RTF, None
    if suffix in ("", ".mbox") and _MAILBOX.match(data):
        return Format.MBOX, None
    if _is_message(data, suffix):
        return Format.EML, None
    text = (
        decode_page(data)
        if suffix in _WEB | _XML or b"<html" in head.lower() or b"<?xml" in head
        else decode_text(data)
    )
    if text is None:
        raise _unknown_binary(data, name)
    return _text_format(text, suffix, name), text


def _is_message(data: bytes, suffix: str) -> bool:
    """Whether a file begins with the headers of a message; names of other text formats count for more."""
    if suffix in _TEXT or suffix in _WEB or (suffix in _NEVER_TEXT and suffix != ".mbox"):
        return False
    block = _HEADER.match(data.lstrip(b"\xef\xbb\xbf\r\n")[:65_536])
    if block is None:
        return False
    found = {name.lower() for name in _HEADERS.findall(block[0])}
    return len(found) >= (1 if suffix in _MAIL else _MIN_HEADERS)


def _text_format(text: str, suffix: str, name: str) -> Format:
    if text.startswith("%!PS"):
        raise UnsupportedMediaError(f'"{name}" is a PostScript file. Convert it to PDF and upload that.')
    promised = _NEVER_TEXT.get(suffix)
    if promised and (exported := _exported_as(text, suffix)):
        return exported
    if promised:
        found = "a web page; the download probably failed" if _WEB_PAGE.match(text) else "plain text"
        raise UnsupportedMediaError(
            f'"{name}" is named like {promised} but contains {found}. '
            "Get the original file again, or rename it to .txt if you want the text."
        )
    if suffix in _MARKDOWN:
        return Format.MARKDOWN
    if suffix in _DELIMITED:
        return Format.CSV
    if suffix in _WEB or (suffix != ".txt" and _WEB_PAGE.match(text)):
        return Format.HTML
    if suffix in _XML or (suffix not in _TEXT and _XML_DECLARATION.match(text)):
        return Format.XML
    if is_subtitles(text):
        return Format.SUBTITLES
    if suffix not in _TEXT and is_calendar(text):
        return Format.CALENDAR
    if suffix in _YAML:
        return Format.YAML
    if suffix == ".ipynb":
        return Format.NOTEBOOK
    begins_like_json = text.lstrip("\ufeff \t\r\n")[:1] in ("{", "[")
    if begins_like_json and suffix not in _TEXT and (suffix in _JSON or read_json(text) is not None):
        return Format.JSON
    return Format.PLAIN


def _exported_as(text: str, suffix: str) -> Format | None:
    """The format of a text that programs write for Excel or Word and name like a file of theirs."""
    if suffix == ".xls" and "\t" in text.partition("\n")[0]:
        return Format.CSV
    is_page = _WEB_PAGE.match(text) or (suffix == ".xls" and text.lstrip()[:6].lower() == "<table")
    of_office = re.search(r"urn:schemas-microsoft-com:office|<table\b", text[:_HEAD], re.IGNORECASE)
    return Format.HTML if suffix in (".xls", ".doc") and is_page and of_office else None


def _package(data: bytes, name: str) -> Format:
    """Recognise Office files by the list of content types that each must contain."""
    # Loaded here: the XML reader below brings urllib and ssl, which would double the sandbox's start.
    from rag_service.readers.common.archive import damaged, open_archive

    archive = open_archive(data, name)
    members = {member.filename: member for member in archive.infolist()}
    listing = members.get("[Content_Types].xml")
    if listing is None or listing.file_size > 4_000_000:
        return _other_archive(archive, members, name)
    try:
        types = archive.read(listing)
    except Exception as error:
        raise damaged(name) from error  # zipfile lets zlib's and others' errors through
    return _office_format(types, members, name)


def _other_archive(archive: zipfile.ZipFile, members: Mapping[str, zipfile.ZipInfo], name: str) -> Format:
    """OpenDocument and EPUB by their member `mimetype`; Apple's formats and named Office files are refused."""
    kind = b""
    if "mimetype" in members and members["mimetype"].file_size < 200:
        kind = archive.read("mimetype").strip()
    if kind.startswith(b"application/vnd.oasis.opendocument") or (kind and "content.xml" in members):
        return Format.ODF
    if kind == b"application/epub+zip" or "META-INF/container.xml" in members:
        return Format.EPUB
    if any(member.endswith(".iwa") for member in members):
        raise UnsupportedMediaError(
            f'"{name}" is a Pages, Numbers or Keynote file. Export it as a Word, Excel, PowerPoint or PDF file.'
        )
    promised = _NEVER_TEXT.get(suffix_of(name))
    if promised and suffix_of(name) != ".zip":
        raise UnsupportedMediaError(
            f'"{name}" is named like {promised} but is a ZIP archive. Get the original file, or rename it to .zip.'
        )
    return Format.ZIP


def _office_format(types: bytes, members: Iterable[str], name: str) -> Format:
    for mark, kind, advice in _OTHER_PACKAGES:
        if mark in types:
            raise UnsupportedMediaError(f'"{name}" is {kind}. {advice}')
    # Only of the main part: a file embedded in this one may be of any kind, and is not read.
    has_macros = bool(_MACROS.search(types)) or any(member.lower().endswith("vbaproject.bin") for member in members)
    if has_macros and suffix_of(name) not in _WITH_MACROS:
        raise UnsupportedMediaError(
            f'"{name}" contains macros (programs), which its name does not say. '
            "Save it as .docx, .xlsx or .pptx without macros, or as .docm, .xlsm or .pptm, and upload that."
        )
    for format, kinds in _OFFICE_TYPES.items():
        if any(f"{kind}.main+xml".encode() in types for kind in kinds):
            return format
    raise UnsupportedMediaError(f'"{name}" is a package from another program. {_ACCEPTED}')


def _compound_file(data: bytes, name: str) -> Format:
    """An Outlook message; everything else of the old formats is refused with the way out."""
    if _holds(data, "__properties_version1.0"):
        return Format.MSG
    if _holds(data, "EncryptedPackage"):
        raise ProtectedError(
            f'"{name}" is protected by a password. Remove the password in your Office program and upload it again.'
        )
    for stream, what, ending in _OLD_OFFICE:
        if _holds(data, stream):
            raise UnsupportedMediaError(
                f'"{name}" is {what}. Open it in Microsoft Office or LibreOffice, choose "Save as" {ending}, '
                "and upload the new file."
            )
    raise UnsupportedMediaError(
        f'"{name}" is in an old Office format (.doc, .xls, .ppt). Save it as .docx, .xlsx or .pptx and upload that.'
    )


def old_office_ending(data: bytes) -> str | None:
    """The ending of today's format of an old Office file, such as "docx"; None for any other file."""
    if not data.startswith(_OLE_MARK) or any(_holds(data, mark) for mark in _NOT_OLD_OFFICE):
        return None
    return next((ending[1:] for stream, _, ending in _OLD_OFFICE if _holds(data, stream)), None)


def _holds(data: bytes, stream: str) -> bool:
    return stream.encode("utf-16-le") in data


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
    described = f"{what or 'a binary file'} ({kind})" if kind else "a binary file of unknown type"
    return UnsupportedMediaError(f'"{name}" is {described}, not a document with text. {_ACCEPTED}')

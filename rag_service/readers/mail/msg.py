"""Messages that Outlook saves (.msg): a compound file with one stream for each property ([MS-OXMSG])."""

from __future__ import annotations

import io
import re
import struct
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import olefile

from rag_service.domain import ParsedDocument
from rag_service.readers.common.archive import damaged
from rag_service.readers.common.embedded_files import Parts
from rag_service.readers.common.encoding import decode_page, decode_text
from rag_service.readers.common.names import clean_file_name
from rag_service.readers.mail.compressed_rtf import read_compressed_rtf
from rag_service.readers.mail.message import Attachment, Message, build_message

MEDIA_TYPE = "application/vnd.ms-outlook"
_SUBJECT, _BODY, _HTML, _SENDER, _ADDRESS, _TO, _CC = "0037", "1000", "1013", "0C1A", "5D01", "0E04", "0E03"
_DATA, _LONG_NAME, _SHORT_NAME, _CONTENT_ID = "3701", "3707", "3704", "3712"
_SENT, _RECEIVED = (0x0040, 0x0039), (0x0040, 0x0E06)  # dates: (type, tag) in the list of fixed properties
_TEXT_CODE_PAGE, _PAGE_CODE_PAGE = (0x0003, 0x3FFD), (0x0003, 0x3FDE)  # of texts that are not UTF-16, of HTML
_RTF_BODY = "message.rtf"
_MAX_ATTACHMENTS = 1_000
_MAX_EMBEDDED = 5  # messages within messages
_IMAGE = re.compile(r"\.(?:png|jpe?g|gif|bmp)$", re.IGNORECASE)


def parse_msg(data: bytes, *, name: str, parts: Parts) -> ParsedDocument:
    """Read an Outlook message as `parse_eml` reads others. Raises DocumentError: damaged or without text."""
    try:
        file = olefile.OleFileIO(io.BytesIO(data))
    except (OSError, struct.error) as error:
        raise damaged(name) from error
    with file:
        return build_message(_read(file, [], depth=0), name=name, media_type=MEDIA_TYPE, parts=parts)


def _read(file: olefile.OleFileIO, folder: list[str], *, depth: int) -> Message:
    fixed = _fixed(file, folder)
    code_page = (fixed.get(_TEXT_CODE_PAGE) or fixed.get(_PAGE_CODE_PAGE) or 0) & 0xFFFF
    page_code_page = (fixed.get(_PAGE_CODE_PAGE) or code_page) & 0xFFFF

    def text(tag: str) -> str:
        return _text(file, folder, tag, code_page=code_page)

    subject, sender, address = text(_SUBJECT), text(_SENDER), text(_ADDRESS)
    html = _bytes(file, folder, f"{_HTML}0102")
    warnings: list[str] = []
    plain = text(_BODY)
    rtf = _bytes(file, folder, "10090102") if not plain and html is None else None
    attachments = list(_attachments(file, folder, warnings, depth, code_page=code_page))
    if rtf:
        body = read_compressed_rtf(rtf)
        if body is None:
            warnings.append("The body is stored as RTF that cannot be read. Save the message as .eml.")
        else:
            attachments.insert(0, Attachment(name=_RTF_BODY, data=body))
    return Message(
        subject=subject,
        headers=[
            ("From", f"{sender} <{address}>" if address and address != sender else sender),
            ("To", text(_TO)),
            ("Cc", text(_CC)),
            ("Date", _date(fixed)),
            ("Subject", subject),
        ],
        plain=plain,
        html=None if html is None else decode_page(html, encoding=f"cp{page_code_page}"),
        attachments=attachments,
        warnings=warnings,
    )


def _attachments(
    file: olefile.OleFileIO, folder: list[str], warnings: list[str], depth: int, *, code_page: int
) -> list[Attachment]:
    found: list[Attachment] = []
    at = len(folder)
    names = sorted({path[at] for path in file.listdir() if path[:at] == folder and path[at].startswith("__attach")})
    if len(names) > _MAX_ATTACHMENTS:
        warnings.append(f"Only {_MAX_ATTACHMENTS:,} of {len(names):,} attachments were read.")
    for number, storage in enumerate(names[:_MAX_ATTACHMENTS], start=1):
        inside = [*folder, storage]
        named = (_text(file, inside, tag, code_page=code_page) for tag in (_LONG_NAME, _SHORT_NAME))
        name = clean_file_name(next(filter(None, named), f"attachment {number}"))
        data = _bytes(file, inside, f"{_DATA}0102")
        embedded = [*inside, f"__substg1.0_{_DATA}000D"]
        if data is None and file.exists(embedded):
            if depth >= _MAX_EMBEDDED:
                warnings.append(f"{name} was not read: messages are nested too deeply.")
                continue
            inner = _read(file, embedded, depth=depth + 1)
            found.append(Attachment(name=f"{clean_file_name(inner.subject or name)}.eml", data=_as_eml(inner)))
            found += inner.attachments
        elif data is not None:
            is_inline = bool(_text(file, inside, _CONTENT_ID, code_page=code_page)) and _IMAGE.search(name) is not None
            found.append(Attachment(name=name, data=data, is_inline_image=is_inline))
    return found


def _as_eml(message: Message) -> bytes:
    """A message within a message, in the form that the other reader knows."""
    kind = "plain" if message.plain else "html"
    body = message.plain or message.html or ""
    lines = [f"{key}: {' '.join(value.split())}" for key, value in message.headers if value]
    lines.append(f"Content-Type: text/{kind}; charset=utf-8")
    return ("\n".join([*lines, "Content-Transfer-Encoding: 8bit", "", body])).encode()


def _text(file: olefile.OleFileIO, folder: list[str], tag: str, *, code_page: int) -> str:
    wide = _bytes(file, folder, f"{tag}001F")
    if wide is not None:
        return wide.decode("utf-16-le", "replace").rstrip("\0")
    narrow = (_bytes(file, folder, f"{tag}001E") or b"").rstrip(b"\0")
    for encoding in ("utf-8", f"cp{code_page}"):
        with suppress(LookupError, UnicodeDecodeError):
            return narrow.decode(encoding)
    return decode_text(narrow) or ""


def _bytes(file: olefile.OleFileIO, folder: list[str], tag: str) -> bytes | None:
    path = [*folder, f"__substg1.0_{tag}"]
    if not file.exists(path) or file.get_type(path) != olefile.STGTY_STREAM:
        return None
    content: bytes = file.openstream(path).read()
    return content


def _fixed(file: olefile.OleFileIO, folder: list[str]) -> dict[tuple[int, int], int]:
    """The list of fixed properties: (type, tag) → value."""
    path = [*folder, "__properties_version1.0"]
    listing: bytes = file.openstream(path).read() if file.exists(path) else b""
    entries = (
        struct.unpack_from("<HHIQ", listing, start) for start in range(32 if not folder else 24, len(listing) - 15, 16)
    )
    return {(kind, tag): value for kind, tag, _, value in entries}


def _date(fixed: Mapping[tuple[int, int], int]) -> str:
    """When it was sent, or received, as ISO 8601: stored as 100-nanosecond steps since 1601."""
    steps = fixed.get(_SENT) or fixed.get(_RECEIVED)
    if not steps or steps > 3 * 10**17:
        return ""
    return (datetime(1601, 1, 1, tzinfo=UTC) + timedelta(microseconds=steps // 10)).isoformat(timespec="minutes")

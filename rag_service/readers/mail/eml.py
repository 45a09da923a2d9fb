"""Messages as mail programs send them (.eml, RFC 5322 and MIME)."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence
from email import message_from_bytes
from email.message import EmailMessage
from typing import cast

from rag_service.domain import ParsedDocument
from rag_service.errors import DocumentError
from rag_service.readers.common.embedded_files import Parts
from rag_service.readers.common.encoding import codec_of, decode_text
from rag_service.readers.common.names import clean_file_name
from rag_service.readers.mail.headers import MAIL_POLICY, MAX_HEADER, warn_of_headers
from rag_service.readers.mail.message import ENCRYPTED, Attachment, Message, build_message
from rag_service.readers.mail.signed import read_signed

MEDIA_TYPE = "message/rfc822"
_SHOWN = ("From", "To", "Cc", "Date", "Subject")
_ENCLOSED = frozenset({"application/pkcs7-mime", "application/x-pkcs7-mime"})  # signed or encrypted, as a whole
_SIGNATURES = frozenset({
    "application/pkcs7-signature", "application/x-pkcs7-signature", "application/pgp-signature",
})  # fmt: skip
_MAX_PARTS = 5_000
_MAX_MIME_DEPTH = 50


def parse_eml(data: bytes, *, name: str, parts: Parts) -> ParsedDocument:
    """Read a message: headers, the plain body (else the HTML one), attachments.

    Raises DocumentError without text or nested too deeply, and TooLargeError.
    """
    try:
        message = message_from_bytes(data, policy=MAIL_POLICY)
        found = list(_leaves(message, name))
    except RecursionError as error:
        raise DocumentError(f'"{name}" is nested too deeply to be read.') from error
    bodies: dict[str, str] = {}
    attachments: list[Attachment] = []
    for part in found:
        kind = part.get_content_type()
        if kind in _SIGNATURES or _is_encrypted(part):
            continue
        is_attached = part.get_content_disposition() == "attachment" or part.get_filename()
        if kind in ("text/plain", "text/html") and not is_attached:
            bodies[kind] = "\n\n".join(filter(None, (bodies.get(kind), _text(part))))
            continue
        attachments.append(_attachment(part, len(attachments) + 1))
    headers = [(key, _header(message, key)) for key in _SHOWN]
    return build_message(
        Message(
            subject=_header(message, "Subject"),
            headers=headers,
            plain=bodies.get("text/plain"),
            html=bodies.get("text/html"),
            attachments=attachments,
            warnings=[*([ENCRYPTED] if any(map(_is_encrypted, found)) else []), *warn_of_headers([message])],
        ),
        name=name,
        media_type=MEDIA_TYPE,
        parts=parts,
    )


def _leaves(message: EmailMessage, name: str) -> list[EmailMessage]:
    """Parts that hold content; a message attached to the message is one of them."""
    found: list[EmailMessage] = []
    waiting: list[tuple[EmailMessage, int]] = [(message, 0)]
    while waiting:
        part, depth = waiting.pop()
        is_container = part.is_multipart() and part.get_content_maintype() == "multipart"
        signed = _read_enclosed(part) if part.get_content_type() in _ENCLOSED and depth < _MAX_MIME_DEPTH else None
        if signed is not None:
            waiting.append((signed, depth + 1))
        elif not is_container or part.get_content_type() == "multipart/encrypted":
            found.append(part)
        elif depth < _MAX_MIME_DEPTH:
            waiting += [
                (cast(EmailMessage, inner), depth + 1) for inner in reversed(cast(list[object], part.get_payload()))
            ]
        if len(found) + len(waiting) > _MAX_PARTS:
            raise DocumentError(f'"{name}" has more than {_MAX_PARTS:,} parts and was not read.')
    return found


def _read_enclosed(part: EmailMessage) -> EmailMessage | None:
    """The message that a signature encloses, or None if it is encrypted."""
    payload = part.get_payload(decode=True)
    content = read_signed(payload) if isinstance(payload, bytes) else None
    return None if content is None else message_from_bytes(content, policy=MAIL_POLICY)


def _is_encrypted(part: EmailMessage) -> bool:
    return part.get_content_type() in _ENCLOSED or part.get_content_type() == "multipart/encrypted"


def _attachment(part: EmailMessage, number: int) -> Attachment:
    kind = part.get_content_type()
    if kind == "message/rfc822":
        inside = part.get_payload()
        inner = cast(EmailMessage, inside[0]) if isinstance(inside, list) and inside else EmailMessage()
        name = part.get_filename() or f"{_header(inner, 'Subject') or f'message {number}'}.eml"
        return Attachment(name=clean_file_name(name), data=_encoded(part, inner) or inner.as_bytes())
    payload = part.get_payload(decode=True)
    ending = {"text/html": ".html", "text/plain": ".txt", "text/calendar": ".ics", "application/pdf": ".pdf"}.get(
        kind, ""
    )
    return Attachment(
        name=clean_file_name(part.get_filename() or f"attachment {number}{ending}"),
        data=payload if isinstance(payload, bytes) else b"",
        is_inline_image=part.get_content_maintype() == "image" and part.get_content_disposition() != "attachment",
    )


def _encoded(part: EmailMessage, inner: EmailMessage) -> bytes:
    """A message that is encoded as a whole, which RFC 2046 forbids and some programs do; or nothing."""
    lines = inner.get_payload()
    if inner.keys() or not isinstance(lines, str) or part.get("Content-Transfer-Encoding", "").lower() != "base64":
        return b""
    try:
        return base64.b64decode("".join(lines.split()), validate=True)
    except ValueError:
        return b""


def _text(part: EmailMessage) -> str:
    """The text of a part in the encoding it declares, else in the one it looks like."""
    payload = part.get_payload(decode=True)
    if not isinstance(payload, bytes):
        return ""
    declared = part.get_content_charset() or ""
    try:
        text = payload.decode(codec_of(declared))
    except (LookupError, UnicodeDecodeError):
        text = decode_text(payload) or payload.decode("utf-8", "replace")
    if str(part.get_param("format") or "").lower() == "flowed":
        return "\n".join(_unflow(text.splitlines(), keeps_space=str(part.get_param("delsp") or "").lower() != "yes"))
    return text


def _unflow(lines: Sequence[str], *, keeps_space: bool) -> Iterator[str]:
    """Lines of a flowed text, those that a space at their end continues joined (RFC 3676)."""
    open_line, depth = "", 0
    for line in lines:
        said = line.lstrip(">")
        here = len(line) - len(said)
        said = said.removeprefix(" ")
        is_signature = said == "-- "
        if open_line and (here != depth or is_signature):
            yield open_line
            open_line = ""
        whole = (open_line or f"{'>' * here}{' ' * bool(here)}") + said
        if said.endswith(" ") and not is_signature:
            open_line, depth = whole if keeps_space else whole[:-1], here
        else:
            yield whole
            open_line = ""
    if open_line:
        yield open_line


def _header(message: EmailMessage, key: str) -> str:
    value = message[key]
    text = "" if value is None else str(value)
    if "�" in text:  # bytes that are not encoded, as old programs write them
        raw = next(str(value) for name, value in message.raw_items() if name.lower() == key.lower())
        text = decode_text(raw[:MAX_HEADER].encode("ascii", "surrogateescape")) or text
    return text

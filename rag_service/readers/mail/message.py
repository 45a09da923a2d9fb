"""What messages of all formats become: headers, body with the messages in it, attachments."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from rag_service.domain import MAIL_HEADER, Location, ParsedDocument
from rag_service.readers.common.builder import TextBuilder, clean, one_line
from rag_service.readers.common.embedded_files import Parts
from rag_service.readers.common.names import choose_title
from rag_service.readers.common.xml import Element, local_name
from rag_service.readers.mail.headers import MAX_HEADER
from rag_service.readers.mail.thread import MailWriter, name_message, split_quoted
from rag_service.readers.web.html import read_page, read_rows, write_page

ENCRYPTED = "The message is encrypted; its encrypted part was not read. Decrypt it and save it again."
_SIGNED = re.compile(  # RFC 9580, section 7
    r"^-----BEGIN PGP SIGNED MESSAGE-----\s*\n(?:[\w-]+: [^\n]*\n)*\s*\n(.*?)"
    r"^-----BEGIN PGP SIGNATURE-----.*?(?:^-----END PGP SIGNATURE-----|\Z)",
    re.DOTALL | re.MULTILINE,
)
_MARKS = ("s", "strike", "del", "sup", "sub")
_STYLED = re.compile(r"line-through|vertical-align\s*:\s*su[pb]", re.IGNORECASE)
_MORE_WORDS = 2.0  # than the plain form has: that one is an extract, or only says where to read the message
_SEALED = re.compile(r"^-----BEGIN PGP MESSAGE-----.*?(?:^-----END PGP MESSAGE-----|\Z)", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class Attachment:
    name: str
    data: bytes
    is_inline_image: bool = False  # a logo or signature shown in the body


@dataclass(frozen=True, kw_only=True)
class Message:
    """A message as its format gives it."""

    subject: str
    headers: Sequence[tuple[str, str]]  # to be shown, in order: ("From", "Ana <ana@example.org>")
    plain: str | None
    html: str | None
    attachments: Sequence[Attachment] = ()
    warnings: Sequence[str] = field(default=())


def build_message(message: Message, *, name: str, media_type: str, parts: Parts) -> ParsedDocument:
    """Write a message. Headers and attachments are parts with places of their own; the body has paragraphs.

    Raises DocumentError without text, and TooLargeError.
    """
    builder = TextBuilder(name)
    header_place = Location(part=MAIL_HEADER)
    shown = [(key, one_line(value)[:MAX_HEADER]) for key, value in message.headers if value]
    for key, value in shown:
        builder.write(f"{key}: {value}", header_place)
        builder.write("\n")
    builder.write("\n" if shown else "")
    values = dict(shown)
    writer = MailWriter(builder, own=name_message(values.get("From", ""), values.get("Date", "")))
    plain, is_sealed = _without_armour(clean(message.plain or ""))
    if is_sealed:
        builder.warn(ENCRYPTED)
    page = read_page(message.html, name) if message.html and not is_sealed else None
    if plain.strip() and (page is None or not _says_more(page, plain)):
        for depth, paragraph in split_quoted(plain):
            writer.write_quoted(depth, paragraph)
    elif page is not None:
        _write_html(writer, page)
    writer.finish()
    for warning in message.warnings:
        builder.warn(warning)
    images = sum(attachment.is_inline_image for attachment in message.attachments)
    if images:
        builder.warn(f"{images} pictures in the body were not read.")
    for attachment in message.attachments:
        if not attachment.is_inline_image:
            parts.write(builder, attachment.data, path=attachment.name)
    return builder.build(
        title=choose_title(name, message.subject),
        media_type=media_type,
        metadata={key.lower(): value for key, value in shown if key.lower() in ("from", "to", "cc", "date")},
    )


def _without_armour(body: str) -> tuple[str, bool]:
    """A body without what PGP writes around a signed text, and without encrypted blocks; whether there were any."""
    signed = _SIGNED.sub(lambda found: re.sub(r"^- ", "", found[1], flags=re.MULTILINE), body)
    left = _SEALED.sub("", signed)
    return left, left != signed


def _says_more(page: Element, plain: str) -> bool:
    """Whether a page has what its plain form lacks: tables, struck-out, raised or lowered text, or far more words."""
    if any(read_rows(table) is not None for table in page.iter("table")):
        return True
    if any(page.find(f".//{tag}") is not None for tag in _MARKS) or any(
        _STYLED.search(element.get("style") or "") for element in page.iter()
    ):
        return True
    shown = sum(
        len(words.split())
        for element in page.iter()
        if local_name(element) not in ("script", "style", "title")
        for words in (element.text or "", element.tail or "")
    )
    return shown > _MORE_WORDS * len(plain.split())


def _write_html(writer: MailWriter, root: Element) -> None:
    for headers in root.xpath("//*[@id='divRplyFwdMsg']"):  # Outlook's, in any language
        rule = headers.makeelement("p")
        rule.text = "_____"
        headers.addprevious(rule)
    write_page(writer, root)

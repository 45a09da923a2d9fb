"""What messages of all formats become: headers, body without quoted history, attachments."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from rag_service.domain import MAIL_HEADER, Location, ParsedDocument
from rag_service.readers.common.blocks import BlockWriter
from rag_service.readers.common.builder import TextBuilder, clean, one_line
from rag_service.readers.common.embedded_files import Parts
from rag_service.readers.common.names import choose_title
from rag_service.readers.mail.forwarded import RULE, MailWriter, is_forwarding_rule, with_rule
from rag_service.readers.web.html import read_page, write_page

_REPLY = re.compile(r"(?:re|r|aw|sv|vs|antw|res|rif)\s*(?:\[\d+\])?\s*:", re.IGNORECASE)
_HEADER_LINE = re.compile(r"\s*\*?[^\W\d_][\w .-]{1,20}\s?:\*?\s+\S")
_QUOTED = re.compile(r"\s*>")
_MIN_HEADERS = 3  # lines such as "From: ..." that begin a quoted message
_MAX_HEADER = 20_000  # characters


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
    is_reply: bool = False  # as far as headers say
    attachments: Sequence[Attachment] = ()
    warnings: Sequence[str] = field(default=())


def build_message(message: Message, *, name: str, media_type: str, parts: Parts) -> ParsedDocument:
    """Write a message. Headers and attachments are parts with places of their own; the body has paragraphs.

    Raises DocumentError without text, and TooLargeError.
    """
    builder = TextBuilder(name)
    header_place = Location(part=MAIL_HEADER)
    shown = [(key, one_line(value)[:_MAX_HEADER]) for key, value in message.headers if value]
    for key, value in shown:
        builder.write(f"{key}: {value}", header_place)
        builder.write("\n")
    builder.write("\n" if shown else "")
    writer = MailWriter(builder)
    is_reply = message.is_reply or _REPLY.match(message.subject) is not None
    if message.plain and message.plain.strip():
        _write_plain(writer, clean(message.plain), is_reply=is_reply)
    elif message.html:
        _write_html(writer, message.html, name, is_reply=is_reply)
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


def _write_plain(writer: BlockWriter, text: str, *, is_reply: bool) -> None:
    text = with_rule(text)
    kept = without_history(text) if is_reply else text
    if kept.strip() != text.strip():
        writer.builder.warn("Quoted earlier messages are left out.")
    for block in re.split(r"\n[ \t]*\n", kept):
        writer.write_paragraph("\n".join(line.rstrip() for line in block.split("\n")))


def _write_html(writer: BlockWriter, source: str, name: str, *, is_reply: bool) -> None:
    root = read_page(source, name)
    if root is None:
        return
    if is_reply:
        quoted = root.xpath(
            "//blockquote[@type='cite'] | //*[contains(concat(' ', @class, ' '), ' gmail_quote ')]"
            " | //*[@id='divRplyFwdMsg' or @id='appendonsend'] | //*[@id='divRplyFwdMsg']/following-sibling::*"
            " | //*[contains(concat(' ', @class, ' '), ' moz-cite-prefix ')]"
        )
        sent_on = {part for part in quoted if is_forwarding_rule(next(filter(str.strip, part.itertext()), ""))}
        quoted = [part for part in quoted if not sent_on.intersection((part, *part.iterancestors()))]
        whole = len(root.text_content().strip())
        inside = sum(len(part.text_content().strip()) for part in quoted)
        if quoted and inside < whole:
            for part in quoted:
                if part.getparent() is not None:
                    part.drop_tree()
            writer.builder.warn("Quoted earlier messages are left out.")
    write_page(writer, root)


def without_history(text: str) -> str:
    """A reply without the messages below it, and without lines quoted by `>`; the whole if nothing else is left.

    A forwarded message is what the reply says, with all that follows.
    """
    lines = text.split("\n")
    kept: list[str] = []
    for number, line in enumerate(lines):
        if is_forwarding_rule(line):
            kept += lines[number:]
            break
        if _begins_history(lines, number):
            break
        if _QUOTED.match(line):
            while kept and not kept[-1].strip():
                kept.pop()
            if kept and kept[-1].rstrip().endswith(":") and not _QUOTED.match(lines[number - 1]):
                _drop_attribution(kept)
            kept.append("")
        else:
            kept.append(line)
    return "\n".join(kept) if "".join(kept).strip() else text


def _drop_attribution(kept: list[str]) -> None:
    """Drop "On 3 May 2024, Ana <ana@example.org> wrote:" above quoted lines; mail programs may wrap it once."""
    for _ in range(2):
        line = kept.pop()
        if any(character.isdigit() for character in line) or not kept or not kept[-1].strip():
            return


def _begins_history(lines: Sequence[str], number: int) -> bool:
    """Whether a rule, or a line of "-----", is followed by the headers of the message that is answered."""
    following = lines[number + 1 : number + 2 + _MIN_HEADERS] if RULE.fullmatch(lines[number].strip()) else []
    if not lines[number].strip():
        following = lines[number + 1 : number + 1 + _MIN_HEADERS]
    following = [line for line in following if line.strip()][:_MIN_HEADERS]
    headers = [line for line in following if _HEADER_LINE.match(line)]
    return len(headers) >= _MIN_HEADERS and any("@" in line or re.search(r"\d{1,2}:\d\d", line) for line in headers)

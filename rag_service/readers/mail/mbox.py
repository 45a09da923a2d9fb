"""Mailboxes: files of many messages, as Thunderbird, Apple Mail and Gmail export them (.mbox, RFC 4155)."""

from __future__ import annotations

import re
from email.parser import BytesHeaderParser

from rag_service.domain import ParsedDocument
from rag_service.errors import DocumentError, TooLargeError
from rag_service.readers.common.builder import TextBuilder, one_line
from rag_service.readers.common.embedded_files import MAX_PARTS, Parts
from rag_service.readers.common.names import choose_title, clean_file_name
from rag_service.readers.mail.headers import MAIL_POLICY

MEDIA_TYPE = "application/mbox"
_SEPARATOR = re.compile(rb"(?:\A|\r?\n\r?\n)From [^\r\n]*\r?\n(?=[!-9;-~]+:)")  # a header follows
_ESCAPED = re.compile(rb"^>(>*From )", re.MULTILINE)
_MAX_SUBJECT = 120  # characters in the name of a message


def parse_mbox(data: bytes, *, name: str, parts: Parts) -> ParsedDocument:
    """Read the messages of a mailbox; the `part` of a place is the number and the subject of its message.

    Messages that cannot be read become warnings. Raises DocumentError without any, and TooLargeError.
    """
    messages = _SEPARATOR.split(data.strip())[1:]
    if len(messages) > MAX_PARTS:
        raise TooLargeError(
            f'"{name}" contains {len(messages):,} messages; the limit for a mailbox is {MAX_PARTS}. '
            "Export fewer messages at a time, or export them as separate .eml files."
        )
    builder = TextBuilder(name)
    for number, message in enumerate(messages, start=1):
        content = _ESCAPED.sub(rb"\1", message)
        parts.write(builder, content, path=clean_file_name(f"{number} {_subject(content)}.eml"))
    if not len(builder):
        reason = f": {builder.first_warning}" if builder.first_warning else "."
        raise DocumentError(f'"{name}" is a mailbox without any readable message{reason} Export it again.')
    return builder.build(title=choose_title(name), media_type=MEDIA_TYPE, metadata={"messages": len(messages)})


def _subject(message: bytes) -> str:
    subject = str(BytesHeaderParser(policy=MAIL_POLICY).parsebytes(message)["Subject"] or "")
    return one_line(subject).replace("/", "-").replace("\\", "-")[:_MAX_SUBJECT] or "message"

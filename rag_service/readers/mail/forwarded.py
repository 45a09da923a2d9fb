"""Forwarded messages within a body: who wrote them, when and about what becomes the heading of what they say.

As sentences these lines would be quoted as answers, since a subject often repeats the words of a question.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import takewhile
from typing import NamedTuple

from rag_service.domain import MAIL_HEADER
from rag_service.language.languages import languages_of
from rag_service.language.words import fold
from rag_service.readers.common.blocks import BlockWriter

RULE = re.compile(r"[-_=*\s]{5,}|-{3,}.{0,80}-{3,}")  # "---------- Forwarded message ---------"
_STANDARD_RULE = "---------- Forwarded message ----------"
_INTRODUCING_WORDS = 2  # of "Début du message réexpédié :"
_QUOTED = re.compile(r"> ?")
_HEADER = re.compile(r"[>\s]*\*?([^\W\d_][\w -]{0,20}?)\s?:\*?\s*(.*)")  # "From: …", "> *De :* …"
_ADDRESS = re.compile(r"\s*[<\[(].*")
_SENDER, _SENT, _SUBJECT = "sender", "sent", "subject"


def is_forwarding_rule(line: str) -> bool:
    """Whether a line is a rule that says that a forwarded message follows."""
    text = line.strip()
    return RULE.fullmatch(text) is not None and any(phrase in fold(text) for phrase in _phrases())


def with_rule(text: str) -> str:
    """The text of a mail with a rule above a forwarded message, as most programs write it.

    Apple Mail writes "Begin forwarded message:" instead and quotes the message with `>`.
    """
    lines = text.split("\n")
    for number, line in enumerate(lines):
        if _introduces(line):
            rest = "\n".join(lines[number + 1 :]).lstrip("\n").split("\n")
            quoted = [*takewhile(lambda one: one.startswith(">") or not one.strip(), rest)]
            said = [_QUOTED.sub("", one, count=1) for one in quoted] + rest[len(quoted) :]
            return "\n".join([*lines[:number], _STANDARD_RULE, *said])
    return text


def _introduces(line: str) -> bool:
    said, colon, after = fold(line).strip().partition(":")
    ending = next((phrase for phrase in _phrases() if said.rstrip().endswith(phrase)), None)
    return bool(colon and not after and ending) and len(said.split()) <= len(str(ending).split()) + _INTRODUCING_WORDS


@cache
def _phrases() -> frozenset[str]:
    return frozenset(phrase for data in languages_of(None) for phrase in data.mail.forwarded)


class _Header(NamedTuple):
    """A line above a forwarded message."""

    kind: str  # a field of `MailWords`
    label: str
    value: str


class MailWriter(BlockWriter):
    """Writes the body of a message; a forwarded one is a section, with its sender and recipients below the heading."""

    def write_paragraph(self, text: str, *, part: str | None = None, ending: str = "\n\n") -> None:
        lines = text.strip().split("\n")
        start, headers, end = _find_headers(lines)
        values = {header.kind: header.value for header in headers}
        if part is not None or not {_SENDER, _SENT, _SUBJECT} <= values.keys():
            super().write_paragraph(text, part=part, ending=ending)
            return
        has_rule = start > 0 and RULE.fullmatch(lines[start - 1].strip("> "))
        super().write_paragraph("\n".join(lines[: start - 1 if has_rule else start]))
        sender = _ADDRESS.sub("", values[_SENDER]).strip("\"' ") or values[_SENDER]
        self.write_heading(f"{sender}, {values[_SENT]}: {values[_SUBJECT]}".rstrip(": "), 1)
        others = [header for header in headers if header.kind not in (_SENT, _SUBJECT)]
        super().write_paragraph("\n".join(f"{one.label}: {one.value}" for one in others), part=MAIL_HEADER)
        super().write_paragraph("\n".join(lines[end:]))


def _find_headers(lines: Sequence[str]) -> tuple[int, list[_Header], int]:
    """(index of the first header, headers in lines below each other, index behind the last).

    A line between two of them goes on from the one above, as a long list of recipients does.
    """
    found = {index: header for index, line in enumerate(lines) if (header := _read_header(line))}
    headers: list[_Header] = []
    start = end = min(found, default=0)
    while end in found or (headers and end + 1 in found):
        header = found.get(end)
        if header:
            headers.append(header)
        else:
            headers[-1] = headers[-1]._replace(value=f"{headers[-1].value} {lines[end].lstrip('> ')}")
        end += 1
    return start, headers, end


def _read_header(line: str) -> _Header | None:
    found = _HEADER.fullmatch(line.rstrip())
    kind = _kinds().get(fold(found[1])) if found else None
    return _Header(kind, found[1], found[2].strip(" *")) if found and kind else None


@cache
def _kinds() -> Mapping[str, str]:
    """Label → field of `MailWords`, in all languages: programs mix them."""
    kinds: dict[str, str] = {}
    for mail in (language.mail for language in languages_of(None)):
        kinds |= dict.fromkeys(mail.recipients, "recipients") | dict.fromkeys(mail.sender, _SENDER)
        kinds |= dict.fromkeys(mail.sent, _SENT) | dict.fromkeys(mail.subject, _SUBJECT)
    return kinds

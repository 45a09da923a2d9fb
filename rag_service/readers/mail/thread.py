"""The messages within a body, forwarded and quoted ones: each is a section, headed by who wrote it and when.

Mail programs mark them in three ways: a block of headers ("From: …", "Sent: …") above the message; a line such as
"On 3 May 2026, Ana wrote:" above what is quoted by `>` or in a `blockquote`; or marks of quotation alone. As sentences
these lines would be quoted as answers, since a subject often repeats the words of a question.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import NamedTuple

from rag_service.domain import MAIL_HEADER
from rag_service.language.languages import languages_of
from rag_service.language.words import fold
from rag_service.readers.common.blocks import BlockWriter
from rag_service.readers.common.builder import TextBuilder
from rag_service.readers.common.cells import Row

QUOTED = "quoted"  # the part of what is quoted from someone who is not named
_RULE = re.compile(r"[-_=*\s]{5,}|-{3,}.{0,80}-{3,}")  # "---------- Forwarded message ---------"
_INTRODUCING_WORDS = 2  # of "Début du message réexpédié :"
_MARKS = re.compile(r"[ \t]{0,3}(?:>(?!From ) ?)+")  # mailboxes write ">From " for a line that begins with it
_HEADER = re.compile(r"\s*\*?([^\W\d_][\w -]{0,20}?)\s?:\*?\s*(.*)")  # "From: …", "*De :* …"
_MIN_HEADERS = 3  # below a rule, in a language that is not known
_TIME = re.compile(r"\d{1,2}[:.h]\d\d")
_ADDRESS = re.compile(r"\s*[<\[(].*")
_ANY_ADDRESS = re.compile(r"[<(\[]* ?(?:mailto:)?([^\s<>()\[\]:]+@[^\s<>()\[\]:]+)[^\s<>()\[\]]*[>)\]]*")
_AFTER_DATE = re.compile(r"(?:[AaPp]\.?[Mm]\.?|hrs?|h|\(?[A-Z]{2,5}\)?|[-–])")
_MAX_LINE = 300  # characters of a rule, or of a line of an attribution
_MAX_ATTRIBUTION_LINES = 3
_MAX_ATTRIBUTION_WORDS = 30
_SENDER, _SENT, _SUBJECT = "sender", "sent", "subject"


def split_quoted(text: str) -> Iterator[tuple[int, str]]:
    """The paragraphs of a plain body with their depth: the number of `>` before their lines, which are removed."""
    depth = 0
    lines: list[str] = []
    for line in text.split("\n"):
        marks = _MARKS.match(line)
        said = line[marks.end() if marks else 0 :].rstrip()
        here = marks[0].count(">") if marks else 0
        if (here != depth or not said) and lines:
            yield depth, "\n".join(lines)
            lines = []
        if said:
            depth = here
            lines.append(said)
    if lines:
        yield depth, "\n".join(lines)


def name_message(sender: str, sent: str, subject: str = "") -> str:
    """The heading of a message: "Ana Gil, 5 May 2026: Loan"."""
    who = _ADDRESS.sub("", sender).strip("\"' ") or sender
    return f"{who}, {sent}: {subject}".strip(": ,")


class _Header(NamedTuple):
    """A line above a message."""

    kind: str  # a field of `MailWords`; empty for a label that is in no language
    label: str
    value: str


class _Pending(NamedTuple):
    """Lines that belong to what follows, or are text after all."""

    depth: int
    text: str
    heading: str | None  # of an attribution; None for a rule or an introduction
    has_address: bool = False


class MailWriter(BlockWriter):
    """Writes the body of a message. `own` is the heading of what the sender goes on to write below a quoted message."""

    def __init__(self, builder: TextBuilder, *, own: str):
        super().__init__(builder)
        self._own = own
        self._quotes: list[bool] = []  # open quotations; False for a block that is only set in
        self._authors: dict[int, str] = {}  # depth → heading of the message that text of this depth belongs to
        self._current: str | None = None  # the heading that holds
        self._pending: _Pending | None = None

    def begin_quote(self, *, is_cited: bool) -> None:
        """What follows is one level deeper, if it is marked as quoted or an attribution stands above it."""
        self._quotes.append(is_cited or (self._pending is not None and self._pending.heading is not None))

    def end_quote(self) -> None:
        """The innermost quotation ends."""
        self._quotes.pop()

    def write_quoted(self, depth: int, text: str) -> None:
        """Write a paragraph of this depth."""
        self._quotes = [True] * depth
        self.write_paragraph(text)

    def finish(self) -> None:
        """The end of the body: nothing follows what was kept back."""
        pending, self._pending = self._pending, None
        if pending:
            self._write(pending.depth, pending.text)

    def write_heading(self, text: str, level: int) -> None:
        """Write a heading of a page below that of its message."""
        self._settle(sum(self._quotes))
        self._enter(sum(self._quotes))
        super().write_heading(text, level + bool(self._path and self._current))

    def write_table(self, rows: Iterable[Row], *, part: str | None = None) -> None:
        """Write rows as labelled lines of the message that they belong to."""
        depth = sum(self._quotes)
        self._settle(depth)
        super().write_table(rows, part=part or self._enter(depth))

    def write_paragraph(self, text: str, *, part: str | None = None, ending: str = "\n\n") -> None:
        depth = sum(self._quotes)
        lines = text.strip().split("\n")
        if part is not None or not text.strip():
            super().write_paragraph(text, part=part, ending=ending)
            return
        pending = self._pending
        after_rule = pending is not None and pending.heading is None and depth - pending.depth in (0, 1)
        start, headers, end = _find_headers(lines, after_rule=after_rule)
        if not headers:
            self._settle(depth)
            self._write_body(depth, lines, ending)
            return
        if after_rule and start == 0:
            self._pending = None
        self._settle(depth)
        has_rule = start > 0 and _is_rule(lines[start - 1])
        self._write(depth, "\n".join(lines[: start - 1 if has_rule else start]))
        self._begin(depth, _heading_of(headers))
        others = [header for header in headers if header.kind not in (_SENT, _SUBJECT)]
        super().write_paragraph("\n".join(f"{one.label}: {one.value}" for one in others), part=MAIL_HEADER)
        self._write_body(depth, lines[end:], ending)

    def _write_body(self, depth: int, lines: Sequence[str], ending: str) -> None:
        """Write lines, and keep back what may introduce the message that follows."""
        found = _find_attribution(lines)
        if found:
            first, heading = found
            text = "\n".join(lines[first:])
            self._pending = _Pending(depth, text, heading, _ANY_ADDRESS.search(text) is not None)
            lines = lines[:first]
        elif lines and _is_rule(lines[-1]):
            self._pending = _Pending(depth, lines[-1], None)
            lines = lines[:-1]
        self._write(depth, "\n".join(lines), ending)

    def _settle(self, depth: int) -> None:
        """Decide about what was kept back, now that the depth of the next paragraph is known."""
        pending, self._pending = self._pending, None
        if pending is None:
            return
        # Apple Mail writes the attribution within the quotation; phones and web mail often leave out the marks.
        follows = depth == pending.depth + 1 or (depth == pending.depth and (depth > 0 or pending.has_address))
        if pending.heading and follows:
            self._begin(depth, pending.heading)
        else:
            self._write(pending.depth, pending.text)

    def _begin(self, depth: int, heading: str) -> None:
        """A message begins, and what was quoted more deeply before it is over."""
        self._authors = {above: author for above, author in self._authors.items() if above < depth} | {depth: heading}
        self._enter(depth)

    def _write(self, depth: int, text: str, ending: str = "\n\n") -> None:
        if not text.strip():
            return
        part = self._enter(depth)
        shown = text if part is None else "\n".join(f"> {line}" for line in text.strip().split("\n"))
        super().write_paragraph(shown, part=part, ending=ending)

    def _enter(self, depth: int) -> str | None:
        """Write the heading of the message that text of this depth belongs to, unless it holds already.

        Returns the part of text whose author is not named: it belongs to the message that quotes it.
        """
        known = max((above for above in self._authors if above <= depth), default=None)
        heading = self._authors[known] if known is not None else None
        if heading is None and self._current is not None:
            heading = self._own
        if heading != self._current:
            self._current = heading
            self._path = [(1, heading)] if heading else []
            super().write_paragraph(heading or "")
        return QUOTED if depth > (known or 0) else None


def _is_rule(line: str) -> bool:
    """A rule, or an introduction such as "Begin forwarded message:"."""
    if len(line) > _MAX_LINE:
        return False
    if _RULE.fullmatch(line.strip()):
        return True
    said, colon, after = fold(line).strip().partition(":")
    ending = next((phrase for phrase in _forwarded() if said.rstrip().endswith(phrase)), None) if colon else None
    return bool(ending and not after) and len(said.split()) <= len(str(ending).split()) + _INTRODUCING_WORDS


def _find_headers(lines: Sequence[str], *, after_rule: bool) -> tuple[int, list[_Header], int]:
    """(index of the first header, headers in lines below each other, index behind the last); no headers: no message.

    A line between two of them goes on from the one above, as a long list of recipients does.
    """
    found = {index: header for index, line in enumerate(lines) if (header := _read_header(line)) and header.kind}
    start, headers, end = _run_of_headers(lines, found)
    has_rule = _is_rule(lines[start - 1]) if start > 0 else after_rule
    if {_SENDER, _SENT} <= {header.kind for header in headers} and (
        has_rule or any(header.kind == _SUBJECT for header in headers)
    ):
        return start, headers, end
    rule = next((place for place, line in enumerate(lines, 1) if _is_rule(line)), None)
    first = 0 if after_rule or rule is None else rule
    others = {
        index: header
        for index, line in enumerate(lines)
        if index >= first and (header := _read_header(line, of_any_language=True))
    }
    start, headers, end = _run_of_headers(lines, others)
    values = [header.value for header in headers]
    if after_rule or rule is not None:
        is_message = len(headers) >= _MIN_HEADERS and any("@" in one or _TIME.search(one) for one in values)
    else:  # who, when, to whom, about what, as Outlook writes it in any language
        is_message = len(headers) > _MIN_HEADERS and "@" in values[0] and _TIME.search(values[1]) is not None
    if start == first and is_message:
        return start, headers, end
    return 0, [], 0


def _run_of_headers(lines: Sequence[str], found: Mapping[int, _Header]) -> tuple[int, list[_Header], int]:
    headers: list[_Header] = []
    start = end = min(found, default=0)
    while end in found or (headers and end + 1 in found):
        header = found.get(end)
        if header:
            headers.append(header)
        else:
            headers[-1] = headers[-1]._replace(value=f"{headers[-1].value} {lines[end].strip()}")
        end += 1
    return start, headers, end


def _read_header(line: str, *, of_any_language: bool = False) -> _Header | None:
    found = _HEADER.fullmatch(line.rstrip())
    kind = _kinds().get(fold(found[1]), "") if found else ""
    return _Header(kind, found[1], found[2].strip(" *")) if found and (kind or of_any_language) else None


def _heading_of(headers: Sequence[_Header]) -> str:
    """The first header of a language that is not known names the sender; the date has a time."""
    values = {header.kind: header.value for header in reversed(headers)}
    if _SENDER in values:
        return name_message(values[_SENDER], values.get(_SENT, ""), values.get(_SUBJECT, ""))
    return name_message(headers[0].value, next((one.value for one in headers[1:] if _TIME.search(one.value)), ""))


def _find_attribution(lines: Sequence[str]) -> tuple[int, str] | None:
    """(index of its first line, heading) of "On 3 May 2026, Ana <a@x.example> wrote:" at the end; it may be wrapped."""
    if not lines or not lines[-1].rstrip().endswith((":", "：")):
        return None
    starts = [len(lines) - 1]
    while starts[-1] > 0 and len(starts) < _MAX_ATTRIBUTION_LINES and lines[starts[-1] - 1].rstrip()[-1:] not in ".!?:":
        starts.append(starts[-1] - 1)
    for needs_date in (True, False):
        for first in starts:
            heading = _read_attribution(" ".join(lines[first:]), needs_date=needs_date)
            if heading:
                return first, heading
    return None


def _read_attribution(text: str, *, needs_date: bool) -> str | None:
    """The heading of a message by its attribution: who wrote it, and when, in either order."""
    if len(text) > _MAX_LINE * _MAX_ATTRIBUTION_LINES:
        return None
    address = _ANY_ADDRESS.search(text)
    said = text.rstrip(" :：\u00a0*")
    words = _ANY_ADDRESS.sub(" ", said).split()
    if len(words) > _MAX_ATTRIBUTION_WORDS:
        return None
    before, after, has_verb = _split_at_verb(words)
    if not has_verb and not (address and said.endswith((">", ")"))):
        return None
    if any(map(_has_digit, after)):
        sender, sent = before, after
    else:
        sent, sender = _split_date(before)
    if not sent and (needs_date or not address):
        return None
    if sent and fold(sent[0]) in _before_dates():
        sent = sent[1:]
    name = " ".join(sender).strip(" ,\"'*") or (address[1] if address else "")
    return f"{name}, {' '.join(sent).strip(' ,')}".strip(", ") if name else None


def _split_at_verb(words: Sequence[str]) -> tuple[Sequence[str], Sequence[str], bool]:
    folded = [fold(word).strip(",") for word in words]
    for verb in _verbs():
        for place in range(len(words) - len(verb) + 1):
            if tuple(folded[place : place + len(verb)]) == verb:
                return words[:place], words[place + len(verb) :], True
    return words, (), False


def _split_date(words: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    """(words of the date, words of the name behind it)."""
    end = max((place + 1 for place, word in enumerate(words) if _has_digit(word)), default=0)
    if not end or words[end - 1].endswith(","):
        return words[:end], words[end:]
    comma = next((place + 1 for place in range(end, len(words) - 1) if words[place].endswith(",")), None)
    if comma is None:
        while end < len(words) - 1 and _AFTER_DATE.fullmatch(words[end]):
            end += 1
    return words[: comma or end], words[comma or end :]


def _has_digit(word: str) -> bool:
    return any(character.isdigit() for character in word)


@cache
def _forwarded() -> frozenset[str]:
    return frozenset(phrase for data in languages_of(None) for phrase in data.mail.forwarded)


@cache
def _verbs() -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(phrase.split()) for data in languages_of(None) for phrase in data.mail.wrote)


@cache
def _before_dates() -> frozenset[str]:
    return frozenset(word for data in languages_of(None) for word in data.mail.wrote_on)


@cache
def _kinds() -> Mapping[str, str]:
    """Label → field of `MailWords`, in all languages: programs mix them."""
    kinds: dict[str, str] = {}
    for mail in (language.mail for language in languages_of(None)):
        kinds |= dict.fromkeys(mail.recipients, "recipients") | dict.fromkeys(mail.sender, _SENDER)
        kinds |= dict.fromkeys(mail.sent, _SENT) | dict.fromkeys(mail.subject, _SUBJECT)
    return kinds

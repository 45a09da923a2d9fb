"""Builds the stored text of a document piece by piece, with the location of each piece.

All parsers write through `TextBuilder`, which handles cleaning, limits and offsets.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Any

import msgspec

from rag_service.domain import Location, ParsedDocument, Span
from rag_service.errors import NoTextError, TooLargeError
from rag_service.readers.common.superscripts import settle_raised

MAX_CHARACTERS = 5_000_000  # about 2,500 printed pages; anything longer is a data dump
MAX_WARNINGS = 100
MAX_SPANS = 300_000  # one per table row and cell; about 200 MB in the worker
HIDDEN = "Hidden text was not read."
STRUCK_OUT = "Struck-out and deleted text was not read."
_MAX_NAMED = 20  # rows, sheets and slides that one warning names

_LINE_ENDS = re.compile("[\r\v\f\x85\u2028\u2029]")
# C0 and C1 controls except tab and newline, lone surrogates (not encodable), byte-order marks, non-characters; and what
# only lays out a text: soft hyphens (also those that end a line), zero-width spaces, marks of direction.
_FORBIDDEN = re.compile(
    "[\x00-\x08\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufeff\ufffe\uffff\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069]"
    r"|\u00ad(?:[ \t]*\n[ \t]*(?=[^\W\d_]))?"
)


def clean(text: str) -> str:
    """Normalise line ends to \\n and characters to NFC; remove control characters and marks of layout.

    Raised and lowered digits are settled, see `raised`.
    """
    text = text.replace("\r\n", "\n")
    if text.replace("\n", " ").replace("\t", " ").isprintable():  # no other character to change
        return text if text.isascii() else settle_raised(unicodedata.normalize("NFC", text))
    return settle_raised(unicodedata.normalize("NFC", _FORBIDDEN.sub("", _LINE_ENDS.sub("\n", text))))


def one_line(text: str) -> str:
    """Clean and put on one line: any run of white space becomes one space."""
    return " ".join(clean(text).split())


def pictures_not_read(count: int, where: str = "") -> str:
    """A warning that pictures beside the text were not read, with where they are: " (pages 2, 5)"."""
    return f"{'1 picture was' if count == 1 else f'{count:,} pictures were'} not read{where}."


def hidden_but_read(things: Sequence[str]) -> str:
    """A warning of what the program does not show and the text has: rows, sheets, slides. Sums need them."""
    more = len(things) - _MAX_NAMED
    told = ", ".join(things[:_MAX_NAMED])
    return f"Hidden in the file, but read: {told}{f', and {more:,} more' if more > 0 else ''}."


def rows_and_columns(rows: int, columns: int, sheet: str) -> str:
    """Hidden parts of a sheet for `hidden_but_read`; empty if there are none."""
    counts = [f"{count:,} {noun}{'s' * (count != 1)}" for count, noun in ((rows, "row"), (columns, "column")) if count]
    return f'{" and ".join(counts)} of "{sheet}"' if counts else ""


def too_large(name: str) -> TooLargeError:
    """The error for a file with more text or cells than a document may have."""
    return TooLargeError(
        f'"{name}" contains too much text: more than {MAX_CHARACTERS:,} characters '
        f"or {MAX_SPANS:,} table rows and cells. Split it into smaller files, or save a long sheet as CSV."
    )


class TextBuilder:
    """Collects text and locations of one document.

    `write` and `check_size` raise TooLargeError beyond `MAX_CHARACTERS` or `MAX_SPANS`, so that parsers stop early.
    """

    def __init__(self, name: str):
        self._name = name  # for messages
        self._parts: list[str] = []
        self._spans: list[Span] = []
        self._length = 0
        self._warnings: dict[str, None] = {}  # in order, each once

    def __len__(self) -> int:
        return self._length

    def write(self, text: str, location: Location | None = None, words: str = "") -> None:
        """Append text that was cleaned by `clean` or `one_line`; with a location it becomes a span with these words."""
        if not text:
            return
        start = self._length
        self._length += len(text)
        self.check_size(self._length)
        self._parts.append(text)
        if location is None:
            return
        last = self._spans[-1] if self._spans else None
        if last is not None and last.end == start and last.location is location and not (words or last.words):
            self._spans[-1] = Span(start=last.start, end=self._length, location=location)
        else:
            self._spans.append(Span(start=start, end=self._length, location=location, words=words))

    def write_pieces(self, pieces: Sequence[str]) -> list[int]:
        """Append texts whose places `add_spans` gives; returns where each begins, and where the last one ends.

        Together they do what `write` does, and take a fraction of the time for the rows of a long table.
        """
        ends = list(accumulate(map(len, pieces), initial=self._length))
        self._parts += pieces
        self._length = ends[-1]
        return ends

    def add_spans(self, spans: Iterable[Span]) -> None:
        """Add the places of the pieces that were written last, in order."""
        self._spans += spans
        self.check_size(self._length)

    def warn(self, warning: str) -> None:
        """Tell the uploader in a sentence what of the file is not in the text; after `MAX_WARNINGS`, no more."""
        if len(self._warnings) < MAX_WARNINGS:
            self._warnings[one_line(warning)[:500]] = None

    @property
    def first_warning(self) -> str:
        """The first warning, or an empty string."""
        return next(iter(self._warnings), "")

    def write_document(self, document: ParsedDocument, *, part: str) -> None:
        """Append the text of a file in this one, with its places below the part; its warnings name the part."""
        start = self._length
        self._length += len(document.text)
        self.check_size(self._length)
        self._parts.append(document.text)
        for span in document.spans:
            here = span.location
            inside = msgspec.structs.replace(here, part=f"{part} > {here.part}" if here.part else part)
            self._spans.append(Span(start=start + span.start, end=start + span.end, location=inside, words=span.words))
        self.check_size(self._length)
        for warning in document.warnings:
            self.warn(f"{part}: {warning}")

    def text(self) -> str:
        """The text written so far."""
        return "".join(self._parts)

    def check_size(self, characters: int) -> None:
        """Raise if the text would be too long, for parsers that read everything before they write."""
        if characters > MAX_CHARACTERS or len(self._spans) >= MAX_SPANS:
            raise too_large(self._name)

    def build(
        self, *, title: str, media_type: str, language: str | None = None, metadata: Mapping[str, Any] | None = None
    ) -> ParsedDocument:
        """The finished document; raises NoTextError if it has none."""
        text = self.text()
        if not text.strip():
            raise NoTextError(f'"{self._name}" contains no text. Check that you chose the right file.')
        return ParsedDocument(
            text=text,
            spans=tuple(self._spans),
            title=clean(title),
            media_type=media_type,
            language=language,
            metadata=dict(metadata or {}),
            warnings=tuple(self._warnings),
        )

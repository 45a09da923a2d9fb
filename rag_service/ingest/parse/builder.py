"""Builds the stored text of a document piece by piece, with the place of each piece.

Every parser writes through `TextBuilder`, so that cleaning, limits and offsets have one home:
what a parser wrote with a place is found again, character by character, at that span.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from typing import Any

from rag_service.domain import Location, ParsedDocument, Span
from rag_service.errors import DocumentError, TooLargeError

MAX_CHARACTERS = 5_000_000  # about 2,500 printed pages; a text beyond it is a data dump, not a document
MAX_SPANS = 300_000  # one for each row and cell of a table; as values they take about 200 MB in the worker

_LINE_ENDS = re.compile("\r\n|[\r\v\f\x85\u2028\u2029]")
# C0 and C1 controls except tab and newline, lone surrogates (not encodable), byte-order marks, non-characters.
_FORBIDDEN = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufeff\ufffe\uffff]")


def clean(text: str) -> str:
    """Normalise line ends to \\n and characters to NFC; remove control characters and NULs."""
    if text.isascii() and text.isprintable():
        return text
    return unicodedata.normalize("NFC", _FORBIDDEN.sub("", _LINE_ENDS.sub("\n", text)))


def one_line(text: str) -> str:
    """Clean and put on one line: any run of white space becomes one space."""
    return " ".join(clean(text).split())


class TextBuilder:
    """Collects text and places of one document.

    `name` is the display name for messages. `write` and `check_room` raise TooLargeError beyond `MAX_CHARACTERS`
    characters or `MAX_SPANS` places, so that a parser stops early instead of filling the memory.
    """

    def __init__(self, name: str):
        self._name = name
        self._parts: list[str] = []
        self._spans: list[Span] = []
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def write(self, text: str, location: Location | None = None) -> None:
        """Append text that went through `clean` or `one_line`; with a location it becomes a span."""
        if not text:
            return
        start = self._length
        self._length += len(text)
        self.check_room(self._length)
        self._parts.append(text)
        if location is None:
            return
        last = self._spans[-1] if self._spans else None
        if last is not None and last.end == start and last.location is location:
            self._spans[-1] = Span(start=last.start, end=self._length, location=location)
        else:
            self._spans.append(Span(start=start, end=self._length, location=location))

    def text(self) -> str:
        """What was written so far."""
        return "".join(self._parts)

    def check_room(self, characters: int) -> None:
        """Refuse what would not fit, for who reads everything before writing: so many characters in all."""
        if characters > MAX_CHARACTERS or len(self._spans) >= MAX_SPANS:
            raise TooLargeError(
                f'"{self._name}" holds too much text: more than {MAX_CHARACTERS:,} characters '
                f"or {MAX_SPANS:,} table rows and cells. Split it into smaller files."
            )

    def build(
        self,
        *,
        title: str,
        media_type: str,
        language: str | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> ParsedDocument:
        """Return the finished document; a document without any text raises DocumentError."""
        text = self.text()
        if not text.strip():
            raise DocumentError(f'"{self._name}" contains no text. Check that you chose the right file.')
        return ParsedDocument(
            text=text,
            spans=tuple(self._spans),
            title=clean(title),
            media_type=media_type,
            language=language,
            metadata=dict(metadata or {}),
        )

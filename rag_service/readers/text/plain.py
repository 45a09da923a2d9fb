"""Plain text: one span per paragraph; blank lines separate paragraphs."""

from __future__ import annotations

from rag_service.domain import Location, ParsedDocument
from rag_service.readers.common.builder import TextBuilder, clean
from rag_service.readers.common.names import choose_title


def parse_plain(text: str, *, name: str) -> ParsedDocument:
    """Keep the text as it is; `Location.paragraph` counts from 1."""
    builder = TextBuilder(name)
    number = 0
    place: Location | None = None
    for line in clean(text).strip("\n").splitlines(keepends=True):
        if not line.strip():
            place = None
        elif place is None:
            number += 1
            place = Location(paragraph=number)
        builder.write(line, place)
    return builder.build(title=choose_title(name), media_type="text/plain")

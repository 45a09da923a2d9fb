"""Plain text: one span per paragraph and section; blank lines separate paragraphs."""

from __future__ import annotations

from rag_service.domain import Location, ParsedDocument
from rag_service.readers.common.builder import TextBuilder, clean
from rag_service.readers.common.names import choose_title
from rag_service.readers.text.numbered import find_headings


def parse_plain(text: str, *, name: str) -> ParsedDocument:
    """Keep the text as it is, but for an empty line above each numbered heading: chunks are cut at those.

    `Location.paragraph` counts from 1; `headings` is the path of numbered headings.
    """
    builder = TextBuilder(name)
    number = 0
    place: Location | None = None
    path: list[tuple[int, str]] = []
    lines = clean(text).strip("\n").splitlines()
    headings = find_headings(lines)
    for index, line in enumerate(lines):
        if index in headings:
            level, heading = headings[index]
            path = [entry for entry in path if entry[0] < level] + [(level, heading)]
            builder.write("\n" if place is not None else "")
            place = None
        if not line.strip():
            place = None
        elif place is None:
            number += 1
            place = Location(paragraph=number, headings=tuple(heading for _, heading in path))
        builder.write(line if index == len(lines) - 1 else f"{line}\n", place)
    return builder.build(title=choose_title(name), media_type="text/plain")

"""Where a quote stands in its document: page, heading, cell."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import replace

from rag_service.answering.proof.analysis import Analysis, analyse
from rag_service.answering.proof.claims import Claim
from rag_service.domain import Chunk, DocumentRef, Location, Span, column_letters, column_number
from rag_service.language.normalise import normalise

_CELLS = re.compile(r"\$?([A-Z]{1,3})\$?(\d+)(?::\$?([A-Z]{1,3})\$?(\d+))?")
_NAME_AND_VALUE = 2  # cells of a line such as "Product: Hex bolt M8 | Stock: 120"


def locate(
    chunk: Chunk,
    start: int,
    end: int,
    claim: Claim,
    *,
    is_copy: bool = False,
) -> Location | None:
    """The place of characters [start, end) of the stored text, for a quote that carries `claim`.

    The place of the quote's first character. A quote over several cells has the place of the cell with
    the number that the claim states; failing that, the range of all its cells. A claim that copies a line of
    three cells or more states them all: which of them is meant, its numbers do not tell. None if no span has it.
    """
    spans = [span for span in chunk.spans if span.start < end and span.end > start]
    if not spans:
        return None
    cells = [span for span in spans if span.location.cell]
    if len(cells) < 2:
        return _with_boxes(spans)
    copies_line = is_copy and len(cells) > _NAME_AND_VALUE
    stating = [] if copies_line else _stating_cells(chunk, cells, start, claim.analysis)
    return _merge([span.location for span in stating or cells])


def _with_boxes(spans: Sequence[Span]) -> Location:
    """The first place, with the boxes of all recognised lines on its page."""
    first = spans[0].location
    boxes = [
        span.location.boxes for span in spans if (span.location.page, span.location.part) == (first.page, first.part)
    ]
    return replace(first, boxes=tuple(itertools.chain.from_iterable(boxes))) if any(boxes) else first


def describe_place(document: DocumentRef, location: Location | None) -> str:
    """A place that a person can open: "rapport.pdf, page 3", "production.xlsx, sheet Stocks, cell C12".

    The file name, or the title when there is none, then every part of the location that is set,
    from the widest to the narrowest; a row is left out where a cell says the same.
    """
    parts = [document.file_name or document.title]
    if location is None:
        return parts[0]
    if location.part:
        parts.append(location.part)
    if location.slide is not None:
        parts.append(f"slide {location.slide}")
    if location.page is not None:
        parts.append(f"page {location.page}")
    if location.sheet:
        parts.append(f"sheet {location.sheet}")
    if location.headings:
        parts.append(f"section {' > '.join(location.headings)}")
    if location.cell:
        parts.append(f"{'cells' if ':' in location.cell else 'cell'} {location.cell}")
    elif location.row is not None and location.paragraph is not None:
        parts.append(f"row {location.row} of the table after paragraph {location.paragraph}")
    elif location.row is not None:
        parts.append(f"row {location.row}")
    elif location.paragraph is not None:
        parts.append(f"paragraph {location.paragraph}")
    if location.path:
        parts.append(location.path)
    if location.time:
        parts.append(f"at {location.time}")
    return ", ".join(parts)


def _stating_cells(chunk: Chunk, cells: Sequence[Span], start: int, claim: Analysis) -> list[Span]:
    """For each number of the claim the cell that holds it, the one with most of the claim's words."""
    texts: list[str] = []
    for span in cells:
        local = max(0, min(start, span.start) - chunk.start), span.end - chunk.start
        texts.append(normalise(chunk.text[local[0] : local[1]], fold_case=True, markup=True).text)
        start = span.end
    read = [analyse(text, claim.language) for text in texts]
    chosen: list[Span] = []
    for number in claim.numbers:
        holders = [i for i, cell in enumerate(read) if any(other.stem == number.stem for other in cell.numbers)]
        if holders:
            chosen.append(cells[max(holders, key=lambda i: (len(read[i].stems & claim.stems), -i))])
    return sorted(set(chosen), key=lambda span: span.start)


def _merge(places: Sequence[Location]) -> Location:
    """The first place, its cell widened to hold the cells of all places on the same sheet.

    Of a cell merged downwards only the row that the quote is of counts.
    """
    first = places[0]
    if len(places) == 1:
        return first
    corners = [
        (match.groups(), place.row)
        for place in places
        if place.sheet == first.sheet and (match := _CELLS.fullmatch(place.cell or ""))
    ]
    if not corners:
        return first
    columns = [column_number(c) for (left, _, right, _), _ in corners for c in (left, right or left)]
    rows = [int(r) for (_, top, _, bottom), row in corners for r in ((row,) if row else (top, bottom or top))]
    corner, opposite = (f"{column_letters(f(columns))}{f(rows)}" for f in (min, max))
    cell = corner if corner == opposite else f"{corner}:{opposite}"
    return replace(first, cell=cell, row=min(rows) if first.row is not None else None)

"""Where the words of a span stand on the page that its document shows, packed into a short text.

A page has hundreds of words, which few answers quote: they are unpacked only where a quote is to be marked.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Iterable, Iterator

import msgspec

from rag_service.domain import Box, Location, Span

_WORD = struct.Struct("<IHHHHH")
_SIDE = 1000  # of the page, in each direction
_LONGEST = 0xFFFF  # characters of a word

# A word of a text, and where it stands: first character and one past the last, from the start of its span, and the box.
# A plain tuple, because a search reads hundreds.
Placed = tuple[int, int, Box]


def pack(words: Iterable[Placed]) -> str:
    """Words as `Span.words`; those that the page does not show are left out."""
    packed: list[bytes] = []
    for start, end, (left, top, right, bottom) in words:
        if not (0 <= left < right <= _SIDE and 0 <= top < bottom <= _SIDE):
            left, top, right, bottom = max(left, 0), max(top, 0), min(right, _SIDE), min(bottom, _SIDE)
            if left >= right or top >= bottom:
                continue
        packed.append(_WORD.pack(start, min(end - start, _LONGEST), left, top, right, bottom))
    return base64.b64encode(b"".join(packed)).decode()


def unpack(span: Span) -> Iterator[Placed]:
    """The words of a span."""
    for start, length, left, top, right, bottom in _WORD.iter_unpack(base64.b64decode(span.words)):
        yield start, start + length, (left, top, right, bottom)


def cut(span: Span, start: int, end: int) -> Span:
    """The span with those of its words that touch characters [start, end) of the document."""
    if not span.words or (start <= span.start and span.end <= end):
        return span
    first, last, packed = start - span.start, end - span.start, base64.b64decode(span.words)
    kept = [
        packed[at * _WORD.size : (at + 1) * _WORD.size]
        for at, (begin, length, *_) in enumerate(_WORD.iter_unpack(packed))
        if begin < last and begin + length > first
    ]
    return msgspec.structs.replace(span, words=base64.b64encode(b"".join(kept)).decode())


def with_boxes(location: Location, spans: Iterable[Span], start: int, end: int) -> Location:
    """The place of characters [start, end) of a document, with the page on which they end and the boxes of their words.

    Boxes of words on later pages are left out: a place is opened at its first page.
    """
    part = [span for span in spans if span.start < end and span.end > start and span.location.part == location.part]
    here = [span for span in part if span.location.page == location.page]
    # Of scans that were read before words had places, each line is a span with its box.
    boxes = (box for span in here for box in (*span.location.boxes, *_boxes_of(span, start, end)))
    last = max((span.location.page or 0 for span in part), default=0)
    return msgspec.structs.replace(
        location,
        last_page=last if location.page and last > location.page else None,
        boxes=tuple(dict.fromkeys(boxes)),  # a column's name belongs to several rows
    )


def _boxes_of(span: Span, start: int, end: int) -> list[Box]:
    """Around the words that touch characters [start, end) of the document; words side by side have one box."""
    if not span.words:
        return []
    boxes: list[Box] = []
    before = -2  # the word that the last box ends with
    first, last = start - span.start, end - span.start
    for place, (begin, finish, box) in enumerate(unpack(span)):
        if begin >= last or finish <= first:
            continue
        if before == place - 1 and _are_beside(boxes[-1], box):
            left, top, _, bottom = boxes.pop()
            box = (left, min(top, box[1]), box[2], max(bottom, box[3]))
        boxes.append(box)
        before = place
    return boxes


def _are_beside(one: Box, other: Box) -> bool:
    """Whether only a blank is between them, which is narrower than its line is high: other words may stand in a gap."""
    return one[1] < (other[1] + other[3]) / 2 < one[3] and one[2] - 5 <= other[0] <= one[2] + one[3] - one[1]

"""Columns of prose on a PDF page, which are read one after the other.

A table has gaps between its columns, too, and is read row by row. What tells columns of prose from it: words stand on
both sides of one gap over many rows, and the lines of either side fill their column as wrapped text does. Titles,
figures and paragraphs over the whole width part a page into bands, each with its own columns or none.
"""

from __future__ import annotations

import bisect
import itertools
import math
import statistics
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rag_service.ingest.parse.pdf_rows import COLUMN_GAP, Row, read_rows
from rag_service.ingest.parse.pdf_words import Word

_LEAST_ROWS = 5  # of prose on both sides
_LEAST_SHARE = 0.5  # of the rows from the first to the last with words on both sides, or of their lines, that are prose
_FILLED = 0.75  # of a column's width, by the line in the middle; labels of a table are of any length
_LEAST_LETTERS = 12  # of a side that is prose
_LETTERS = 0.5  # of its characters
_LARGER = 1.15  # of the usual height, by the heading of what follows
_FAR_BELOW = 3.0  # of the usual height; paragraphs of a column stand nearer
_MOST_PARTINGS = 4  # of a page into columns, one within the other


class _Gap(NamedTuple):
    """Room between two words of a row."""

    start: float
    end: float


def part_columns(words: Sequence[Word], *, partings: int = _MOST_PARTINGS) -> list[list[Row]]:
    """The rows of a page in groups that are read one after the other; one group where nothing is in columns."""
    rows = list(read_rows(words))
    gutters = list(_find_gutters(rows)) if partings else []
    if not gutters:
        return [rows] if rows else []
    gutter = gutters[0]
    parts: list[list[Row]] = []
    whole: list[Word] = []  # rows over the full width, or not in columns
    for is_whole, band in itertools.groupby(rows, key=lambda row: _crosses(row, gutter)):
        band_rows = list(band)
        in_band = [word for row in band_rows for word in row.words]
        if is_whole or not _is_in_columns(band_rows, gutters):
            whole += in_band
            continue
        if whole:
            parts.append(list(read_rows(whole)))
            whole = []
        columns, below = _part_below(band_rows)
        for is_left in (True, False):  # a word without a place is right of everything
            side = [word for row in columns for word in row.words if (word.left < gutter) is is_left]
            parts += part_columns(side, partings=partings - 1)
        whole = [word for row in below for word in row.words]
    return [*parts, list(read_rows(whole))] if whole else parts


def _part_below(rows: Sequence[Row]) -> tuple[Sequence[Row], Sequence[Row]]:
    """(rows of columns, rows of one side that follow apart from them: the heading of what comes below, a footer)."""
    last = max(place for place, row in enumerate(rows) if len(_segments(row)) > 1)
    usual = statistics.median(row.anchor.height for row in rows)
    for place in range(last + 1, len(rows)):
        row, step = rows[place], rows[place - 1].anchor.middle - rows[place].anchor.middle
        if row.anchor.height >= _LARGER * usual or step > _FAR_BELOW * usual:
            return rows[:place], rows[place:]
    return rows, ()


def _find_gutters(rows: Sequence[Row]) -> Iterator[float]:
    """Places that rows of prose leave free, first the one that most do; none on which too few agree."""
    gaps = [gap for row in rows if all(map(_is_prose, segments := _segments(row))) for gap in _gaps(segments)]
    while len(gaps) >= _LEAST_ROWS:
        # The end of a gap is where the right column begins, the same for all of its lines.
        ends = Counter(round(gap.end) for gap in gaps)
        begin = max(ends, key=lambda place: (ends[place - 1] + ends[place] + ends[place + 1], place))
        over = [gap for gap in gaps if gap.start < begin - 1 <= gap.end]
        if len(over) < _LEAST_ROWS:
            return
        yield (max(gap.start for gap in over) + begin) / 2
        gaps = [gap for gap in gaps if gap not in over]


def _segments(row: Row) -> list[list[Word]]:
    """Words of a row from left to right, parted at its gaps."""
    words = sorted(row.words, key=lambda word: word.left)
    segments = [words[:1]]
    for before, behind in itertools.pairwise(words):
        if behind.left - before.right > COLUMN_GAP * row.anchor.height:
            segments.append([])
        segments[-1].append(behind)
    return segments


def _gaps(segments: Sequence[Sequence[Word]]) -> Iterator[_Gap]:
    for before, behind in itertools.pairwise(segments):
        if math.isfinite(behind[0].left):  # a broken page has words anywhere
            yield _Gap(start=before[-1].right, end=behind[0].left)


def _is_prose(words: Sequence[Word]) -> bool:
    text = "".join(word.text for word in words)
    letters = sum(map(str.isalpha, text))
    return len(words) > 1 and letters >= max(_LEAST_LETTERS, _LETTERS * len(text))


def _crosses(row: Row, gutter: float) -> bool:
    """Whether a row goes on over the gutter: by a word, or by two with no more than a space between them."""
    return any(segment[0].left < gutter < segment[-1].right for segment in _segments(row))


def _is_in_columns(rows: Sequence[Row], gutters: Sequence[float]) -> bool:
    """Whether prose runs on both sides of the first gutter, line under line."""
    gutter = gutters[0]
    parted = [_segments(row) for row in rows]
    both = [place for place, segments in enumerate(parted) if segments[0][0].left < gutter <= segments[-1][0].left]
    prose = [parted[place] for place in both if all(map(_is_prose, parted[place]))]
    if len(prose) < _LEAST_ROWS:
        return False
    span = parted[both[0] : both[-1] + 1]
    # Headings push the lines of columns apart. Where no column is ever parted, as a table's is that has labels beside
    # two columns of prose, each line counts by itself.
    if _are_whole(span, gutters):
        lines = [_is_prose(segment) for segments in span for segment in segments]
        if sum(lines) < _LEAST_SHARE * len(lines):
            return False
    elif len(prose) < _LEAST_SHARE * len(span):
        return False
    left = [[segment for segment in segments if segment[0].left < gutter] for segments in prose]
    right = [[segment for segment in segments if segment[0].left >= gutter] for segments in prose]
    return _fills(left) and _fills(right)


def _are_whole(rows: Sequence[Sequence[Sequence[Word]]], gutters: Sequence[float]) -> bool:
    """Whether rows have one piece in a column at most."""
    places = sorted(gutters)
    columns = ([bisect.bisect(places, segment[0].left) for segment in segments] for segments in rows)
    return all(len(set(found)) == len(found) for found in columns)


def _fills(sides: Sequence[Sequence[Sequence[Word]]]) -> bool:
    """Whether the lines of a side are about as long as the longest."""
    begins, ends = [side[0][0].left for side in sides], [side[-1][-1].right for side in sides]
    begin, end = min(begins), max(ends)
    return end > begin and statistics.median((right - begin) / (end - begin) for right in ends) >= _FILLED

"""Lays out the words of a PDF page as lines: table rows stay together, columns of prose are read one after the other.

A table has gaps between its columns too, but is read row by row. Columns of prose differ from it in two ways: there are
words on both sides of the same gap over many rows, and the lines on either side fill their column, as wrapped text
does. Titles, figures and full-width paragraphs divide a page into bands, each with or without columns of its own.
"""

from __future__ import annotations

import bisect
import itertools
import math
import re
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from rag_service.readers.pdf.empty_cells import find_empty_cells
from rag_service.readers.pdf.rows import Row, read_rows
from rag_service.readers.pdf.words import COLUMN_GAP, Lettered, Word, letter, turn
from rag_service.readers.pdf.wrapped_names import find_wrapped_names

_PARAGRAPH_STEP = 1.75  # between line centres, in units of the smaller height, so that headings are separate
_MIN_ROWS = 5  # of prose on both sides
_MIN_PROSE = 0.5  # of the rows between the first and the last with words on both sides, or of their lines
# Of two columns whose lines stand at heights of their own: lines of each, the height from one to the next in units of a
# line's height, how near level lines are, and the share of those that are so by chance.
_OWN_LINES, _OWN_STEP, _OWN_LEVEL, _MAX_LEVEL = 10, 1.6, 0.1, 0.5
_FILLED = 0.75  # of a column's width, by the median line; table labels vary in length
_MIN_LETTERS = 12  # of prose
_LETTERS = 0.5  # of the characters of prose
_LARGER = 1.15  # than the usual height: a heading of what follows
_FAR_BELOW = 3.0  # times the usual height; paragraphs of a column are closer
_MAX_SPLITS = 4  # nested splits of a page into columns
# Of columns too short for `_MIN_ROWS`: a few lines each, in a block with no empty line.
_MIN_LINES, _MIN_LONGEST = 2, 3  # of every column, and of the longest
_MIN_WRAPPED = 0.5  # of the lines below the first: a sentence goes on in them
_MAX_DIGITS, _BETWEEN_PAGES = 4, 2.0  # of page numbers; of a line's height, between two pages
_DROP_CAP = 1.8  # times the usual height: a letter over two lines or more
_MAX_DROP_CAPS = 20  # on a page
_WORDS_OF_ONE, _SPACE = frozenset("AÀEIOUYÉ"), 0.15  # letters that are a word, if a space of the height follows
_LEADER = re.compile(r"(?:[.·_…] ?){4,}")  # dots between an entry and its page or its value
_SENTENCE_END = (".", "!", "?", ":", ";")


class Line(NamedTuple):
    """A line of a page; without text, vertical space before the next line."""

    text: str
    height: float = 0.0  # of its letters in points; 0: not in the page's most common direction
    ends: tuple[int, int] = (-1, -1)  # PDFium's index of the first character of its first and last word
    middle: float | None = None  # its vertical centre; None: as with height, or in a ruled table
    words: Sequence[Lettered] = ()


def lay_out(words: Sequence[Word], *, with_tables: Callable[[list[Word]], list[Word]] = list) -> list[Line]:
    """The lines of a page; `COLUMN` marks a wide gap, an empty line a paragraph break or the end of a column.

    Words rotated by quarter turns follow those of the most common direction, then, in PDFium's order, slanted words and
    those that a broken page puts nowhere, with an infinite position.
    `with_tables` replaces the words of each table, among those of the most common direction, by one word.
    """
    turned: dict[int | None, list[Word]] = {}
    for word in words:
        turned.setdefault(word.turns if word.is_placed else None, []).append(word)
    slanted = turned.pop(None, [])
    lines: list[Line] = []
    upright, *others = sorted(turned.values(), key=len, reverse=True) or [[]]
    upright = _join_drop_caps(upright)
    upright, others = _with_turned_names(upright, others, with_tables)
    for side in _split_spread(upright):
        for part in _split_columns(side):
            for block in _split_short_columns(part):
                lines += [Line("")] * bool(lines) + _paragraphs(block)
    for group in others:
        lines += [Line(""), *(Line(line.text, words=line.words) for line in _paragraphs(read_rows(group)))]
    if slanted:
        text = " ".join(word.text for word in slanted)
        lines += [Line("")] * bool(lines) + [Line(text, words=letter(slanted, text))]
    return lines


def _with_turned_names(
    upright: list[Word], others: Sequence[list[Word]], with_tables: Callable[[list[Word]], list[Word]]
) -> tuple[list[Word], list[list[Word]]]:
    """The words with tables, and the turned words that are in none: names of columns are often written upwards."""
    turned: list[tuple[Word, list[Word]]] = []  # a line as an upright word, and its words
    for group in others if upright else ():
        if ((group[0].turns or 0) - (upright[0].turns or 0)) % 2:
            turned += [(_as_upright(row, upright[0].turns or 0), row.words) for row in read_rows(group)]
    found = with_tables([*upright, *(word for word, _ in turned)])
    names = {id(word) for word, _ in turned}
    left = names.intersection(map(id, found))
    used = {id(one) for word, words in turned if id(word) not in left for one in words}
    kept = [word for word in found if id(word) not in left]
    return kept, [rest for group in others if (rest := [word for word in group if id(word) not in used])]


def _as_upright(row: Row, turns: int) -> Word:
    """A line of turned words as a word of the page's most common direction, no higher than its letters."""
    words = row.in_order()
    box = (
        min(word.left for word in words),
        min(word.middle - word.height / 2 for word in words),
        max(word.right for word in words),
        max(word.middle + word.height / 2 for word in words),
    )
    left, bottom, right, top = turn(box, (turns - (words[0].turns or 0)) % 4)
    text = " ".join(row.text().split())
    return words[0]._replace(
        text=text, turns=turns, left=left, right=right, middle=(bottom + top) / 2, height=row.anchor.height
    )


def _join_drop_caps(words: list[Word]) -> list[Word]:
    """The words with each large first letter over several lines joined to the rest of its word, in the first line."""
    caps = [word for word in words if len(word.text) == 1 and word.text.isupper()]
    if not caps or len(words) < _MIN_LETTERS:
        return words
    usual = statistics.median(word.height for word in words)
    caps = [cap for cap in caps if cap.height >= _DROP_CAP * usual][:_MAX_DROP_CAPS]
    joined: dict[int, Word] = {}
    gone: set[int] = set()
    for cap in caps:
        top = cap.middle + cap.height / 2
        beside = [
            word
            for word in words
            if word.height < cap.height / _DROP_CAP
            and 0 <= word.left - cap.right < usual
            and cap.middle - cap.height / 2 < word.middle < top
        ]
        first = max(beside, key=lambda word: word.middle, default=None)
        if first is None or len(beside) < 2 or not first.text[0].isalpha():
            continue
        space = " " if cap.text in _WORDS_OF_ONE and first.left - cap.right > _SPACE * usual else ""
        joined[first.number] = first._replace(text=f"{cap.text}{space}{first.text}", left=cap.left)
        gone.add(cap.number)
    return [joined.get(word.number, word) for word in words if word.number not in gone] if joined else words


def _paragraphs(rows: Iterable[Row]) -> list[Line]:
    rows = list(rows)
    empty = {id(rows[place]): cells for place, cells in find_empty_cells(rows).items()}
    joined = _joined_names(rows)
    lines: list[Line] = []
    for block in _blocks(rows):
        lines += [Line("")] * bool(lines)
        for row in block:
            if id(row) in joined:
                lines += joined[id(row)]
                continue
            lines += _lines_with_tables(row) if _holds_table(row) else [_line(row, empty.get(id(row), ()))]
    return lines


def _joined_names(rows: Sequence[Row]) -> dict[int, list[Line]]:
    """The line of the names of a table in place of its first row, and none in place of the others."""
    joined: dict[int, list[Line]] = {}
    for names in find_wrapped_names(rows):
        first, *others = rows[names.first : names.end]
        ends = names.words[0].at, names.words[-1].at
        line = Line(names.text, first.anchor.height, ends, first.anchor.middle, letter(names.words, names.text))
        joined.update({id(first): [line], **{id(row): [] for row in others}})
    return joined


def _blocks(rows: Iterable[Row]) -> Iterator[list[Row]]:
    """Rows with no empty line between them; one with a table stands alone."""
    block: list[Row] = []
    for row in rows:
        if block and (_are_apart(block[-1], row) or _holds_table(row) or _holds_table(block[-1])):
            yield block
            block = []
        block.append(row)
    if block:
        yield block


def _are_apart(above: Row, below: Row) -> bool:
    step = above.anchor.middle - below.anchor.middle
    return step > _PARAGRAPH_STEP * min(above.anchor.height, below.anchor.height)


def _holds_table(row: Row) -> bool:
    return any(word.is_table for word in row.words)


def _line(row: Row, empty: Sequence[float] = ()) -> Line:
    words = row.in_order()
    text = row.text(empty)
    return Line(text, row.anchor.height, (words[0].at, words[-1].at), row.anchor.middle, letter(words, text))


def _lines_with_tables(row: Row) -> Iterator[Line]:
    """The lines of each table in a row, then the words beside them."""
    for word in row.words:
        if word.is_table:
            rows = zip(word.text.split("\n"), word.rows, strict=True)
            yield from (Line(text, words=words) for text, words in rows)
    others = [word for word in row.words if not word.is_table]
    if others:
        yield from (Line(""), *(_line(beside) for beside in read_rows(others)))


def _split_columns(words: Sequence[Word], *, splits: int = _MAX_SPLITS) -> list[list[Row]]:
    """Rows in groups to be read one after the other; a single group if there are no columns."""
    rows = list(read_rows(words))
    gutters = (list(_find_gutters(rows)) or list(_find_gutters(rows, is_any=True))) if splits else []
    if not gutters:
        return [rows] if rows else []
    gutter = gutters[0]
    parts: list[list[Row]] = []
    whole: list[Word] = []  # of full-width rows and bands without columns
    dividing = _dividing_headings(rows, gutter)
    for is_whole, band in itertools.groupby(rows, key=lambda row: row in dividing or _crosses(row, gutter)):
        band_rows = list(band)
        if is_whole or not (_has_columns(band_rows, gutters) or _keep_own_lines(band_rows, gutter)):
            whole += [word for row in band_rows for word in row.words]
            continue
        if whole:
            parts.append(list(read_rows(whole)))
        columns, below = _split_below(band_rows)
        for is_left in (True, False):  # a word without a position (NaN) belongs to the right
            side = [word for row in columns for word in row.words if (word.left < gutter) is is_left]
            parts += _split_columns(side, splits=splits - 1)
        whole = [word for row in below for word in row.words]
    return [*parts, list(read_rows(whole))] if whole else parts


def _split_spread(words: list[Word]) -> list[list[Word]]:
    """The words of the left and of the right page where one wide page shows two of a book.

    Their page numbers follow one another, on one line at the edge; nothing stands in the gap between the pages, and at
    least one of them is prose.
    """
    numbers = [word for word in words if word.text.isdecimal() and len(word.text) <= _MAX_DIGITS]
    if len(numbers) < 2:
        return [words]
    for edge in (max(words, key=lambda word: word.middle), min(words, key=lambda word: word.middle)):
        pair = sorted(
            (word for word in numbers if abs(word.middle - edge.middle) < edge.height / 2), key=lambda word: word.left
        )
        if len(pair) != 2 or int(pair[1].text) - int(pair[0].text) != 1:
            continue
        end = -math.inf
        for word in sorted(words, key=lambda word: word.left):
            if pair[0].right <= end and word.left <= pair[1].left and word.left - end > _BETWEEN_PAGES * edge.height:
                gutter = (end + word.left) / 2
                sides = [[one for one in words if (one.left < gutter) is is_left] for is_left in (True, False)]
                if any(_is_wrapped([row.segments[0] for row in read_rows(side)]) for side in sides):
                    return sides
            end = max(end, word.right)
    return [words]


def _split_short_columns(rows: Sequence[Row]) -> Iterator[list[Row]]:
    """Rows in groups to be read one after the other, given those of a part in which `_split_columns` found no columns.

    A gap that is empty over the whole height of a block divides it if the lines on each side make sentences of their
    own. A row of short texts right above them heads the columns.
    """
    whole: list[Row] = []
    blocks = list(_blocks(rows))
    for place, block in enumerate(blocks):
        sides = _short_columns(block)
        if not sides:
            whole += block
            continue
        above = blocks[place - 1] if place and len(blocks[place - 1]) == 1 and whole else []
        if above and (heads := _heads(above[0], sides)):
            whole.pop()
            sides = [head + side for head, side in zip(heads, sides, strict=True)]
        if whole:
            yield whole
        whole = []
        yield from (list(read_rows(words)) for words in sides)
    if whole:
        yield whole


def _short_columns(block: Sequence[Row]) -> list[list[Word]]:
    """The words of each column of a block; none if it has no columns of prose."""
    if len(block) < _MIN_LONGEST or any(map(_holds_table, block)):
        return []
    rows = [row.segments for row in block]
    if sum(len(segments) > 1 for segments in rows) < _MIN_LINES:
        return []
    usual = statistics.median(row.anchor.height for row in block)
    columns: list[list[list[Word]]] = []  # → lines → words
    end = -math.inf
    for segment in sorted((segment for segments in rows for segment in segments), key=lambda one: one[0].left):
        if segment[0].left - end > COLUMN_GAP * usual:
            columns.append([])
        columns[-1].append(segment)
        end = max(end, segment[-1].right)
    if len(columns) < 2 or max(map(len, columns)) < _MIN_LONGEST:
        return []
    for lines in columns:
        lines.sort(key=lambda line: -line[0].middle)
    return [[word for line in lines for word in line] for lines in columns] if all(map(_is_wrapped, columns)) else []


def _is_wrapped(lines: Sequence[Sequence[Word]]) -> bool:
    """Whether the lines of a column make sentences that go on from line to line."""
    if len(lines) < _MIN_LINES or sum(map(_is_prose, lines)) < _MIN_PROSE * len(lines):
        return False
    begin, end = min(line[0].left for line in lines), max(line[-1].right for line in lines)
    filled = [line[-1].right - begin >= _FILLED * (end - begin) for line in lines]
    if sum(filled[:-1]) < _MIN_PROSE * (len(lines) - 1):
        return False
    going_on = sum(
        below[0].text[0].islower()
        or (is_full and not below[0].text[0].isupper() and not above[-1].text.endswith(_SENTENCE_END))
        for above, below, is_full in zip(lines, lines[1:], filled, strict=False)
    )
    return going_on >= _MIN_WRAPPED * (len(lines) - 1)


def _heads(row: Row, sides: Sequence[Sequence[Word]]) -> list[list[Word]]:
    """What stands above each column, if every column has something of its own above it; else nothing."""
    spans = [(min(word.left for word in side), max(word.right for word in side)) for side in sides]
    heads: list[list[Word]] = [[] for _ in sides]
    for segment in row.segments:
        inside = [
            place for place, (left, right) in enumerate(spans) if segment[0].left < right and segment[-1].right > left
        ]
        if len(inside) != 1:
            return []
        heads[inside[0]] += segment
    return heads if all(heads) else []


def _dividing_headings(rows: Sequence[Row], gutter: float) -> list[Row]:
    """Headings between columns above and columns below: nothing stands beside them, as short as they are."""
    usual = statistics.median(row.anchor.height for row in rows)

    def is_on_both_sides(row: Row) -> bool:
        return row.segments[0][0].left < gutter <= row.segments[-1][0].left

    return [
        row
        for above, row, below in zip(rows, rows[1:], rows[2:], strict=False)
        if row.anchor.height >= _LARGER * usual
        and len(row.segments) == 1
        and row.segments[0][0].left < gutter
        and _are_apart(above, row)
        and _are_apart(row, below)
        and is_on_both_sides(above)
        and is_on_both_sides(below)
    ]


def _split_below(rows: Sequence[Row]) -> tuple[Sequence[Row], Sequence[Row]]:
    """(rows of columns, separate rows below them on one side: a heading of what follows, a footer)."""
    last = max(place for place, row in enumerate(rows) if len(row.segments) > 1)
    usual = statistics.median(row.anchor.height for row in rows)
    for place in range(last + 1, len(rows)):
        row, step = rows[place], rows[place - 1].anchor.middle - rows[place].anchor.middle
        if row.anchor.height >= _LARGER * usual or step > _FAR_BELOW * usual:
            return rows[:place], rows[place:]
    return rows, ()


def _find_gutters(rows: Sequence[Row], *, is_any: bool = False) -> Iterator[float]:
    """Positions of gaps that at least `_MIN_ROWS` rows of prose share, most common first.

    `is_any`: rows count that have prose right of a gap, and somewhere left of it.
    """
    gaps: list[tuple[float, float]] = []
    for row in rows:
        prose = [place for place, segment in enumerate(row.segments) if _is_prose(segment)]
        if is_any:
            gaps += [
                gap for place, gap in enumerate(_gaps(row.segments), start=1) if place in prose and prose[0] < place
            ]
        elif len(prose) == len(row.segments):
            gaps += _gaps(row.segments)
    while len(gaps) >= _MIN_ROWS:
        # A gap ends where the right column begins, which is the same for all its lines.
        ends = Counter(round(end) for _, end in gaps)
        begin = max(ends, key=lambda place: (ends[place - 1] + ends[place] + ends[place + 1], place))
        over = [(start, end) for start, end in gaps if start < begin - 1 <= end]
        if len(over) < _MIN_ROWS:
            return
        last = max(start for start, _ in over)
        # A quotation mark or bullet may hang out of the right column.
        yield (last + min(end for start, end in gaps if start < begin - 1 and end > last)) / 2
        gaps = [gap for gap in gaps if gap not in over]


def _gaps(segments: Sequence[Sequence[Word]]) -> Iterator[tuple[float, float]]:
    """(start, end) of the gaps between the segments of a row."""
    for before, behind in itertools.pairwise(segments):
        yield before[-1].right, behind[0].left


def _is_prose(words: Sequence[Word]) -> bool:
    text = _LEADER.sub("", "".join(word.text for word in words))
    letters = sum(map(str.isalpha, text))
    return len(words) > 1 and letters >= max(_MIN_LETTERS, _LETTERS * len(text))


def _crosses(row: Row, gutter: float) -> bool:
    """Whether a word, or two words with no wide gap between them, cover the gutter."""
    return any(segment[0].left < gutter < segment[-1].right for segment in row.segments)


def _has_columns(rows: Sequence[Row], gutters: Sequence[float]) -> bool:
    """Whether prose runs on both sides of the first gutter, line under line."""
    gutter = gutters[0]
    parted = [row.segments for row in rows]
    both = [place for place, segments in enumerate(parted) if segments[0][0].left < gutter <= segments[-1][0].left]
    prose = [parted[place] for place in both if all(map(_is_prose, parted[place]))]
    if len(prose) < _MIN_ROWS:
        return False
    span = parted[both[0] : both[-1] + 1]
    # Headings shift the lines of columns against each other. Where no column is split itself, unlike a table with
    # labels beside two columns of prose, each line therefore counts on its own.
    places = sorted(gutters)
    columns = ([bisect.bisect(places, segment[0].left) for segment in segments] for segments in span)
    if all(len(set(found)) == len(found) for found in columns):
        lines = [_is_prose(segment) for segments in span for segment in segments]
        if sum(lines) < _MIN_PROSE * len(lines):
            return False
    elif len(prose) < _MIN_PROSE * len(span):
        return False
    left = [[segment for segment in segments if segment[0].left < gutter] for segments in prose]
    right = [[segment for segment in segments if segment[0].left >= gutter] for segments in prose]
    return _fills(left) and _fills(right)


def _keep_own_lines(rows: Sequence[Row], gutter: float) -> bool:
    """Whether the lines on both sides of a gutter follow each other closely, each side at heights of its own.

    The rows of a table are level. A label beside a text of several lines is not, but then labels are far apart.
    """
    words = [word for row in rows for word in row.words]
    sides = [list(read_rows([word for word in words if (word.left < gutter) is is_left])) for is_left in (True, False)]
    if min(map(len, sides)) < _OWN_LINES:
        return False
    for side in sides:
        steps = [above.anchor.middle - below.anchor.middle for above, below in itertools.pairwise(side)]
        if statistics.median(steps) > _OWN_STEP * statistics.median(row.anchor.height for row in side):
            return False
    few, many = sorted(sides, key=len)
    heights = sorted(row.anchor.middle for row in many)
    level = 0
    for row in few:
        place, near = bisect.bisect(heights, row.anchor.middle), _OWN_LEVEL * row.anchor.height
        level += any(abs(other - row.anchor.middle) <= near for other in heights[max(0, place - 1) : place + 1])
    return level <= _MAX_LEVEL * len(few)


def _fills(sides: Sequence[Sequence[Sequence[Word]]]) -> bool:
    """Whether most lines of a column are about as long as the longest."""
    begins, ends = [side[0][0].left for side in sides], [side[-1][-1].right for side in sides]
    begin, end = min(begins), max(ends)
    return end > begin and statistics.median((right - begin) / (end - begin) for right in ends) >= _FILLED

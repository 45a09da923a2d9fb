"""What stands between the text of two pages or columns: running lines are left out, and a sentence goes on.

A running line stands in the margin of most pages, or of most left or right ones, and only its page number changes;
in a document of two pages, it has a page number, or stands at the same place on both and does not look like a heading.
When in doubt a line stays: numbers that do not count pages, lines at the distance of body text, names of columns.
"""

from __future__ import annotations

import itertools
import math
import re
import statistics
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from rag_service.readers.common.headings import MAX_CHARACTERS
from rag_service.readers.pdf.headings import PageLine
from rag_service.readers.pdf.words import count_letters

_EDGE = 3  # lines of a header or footer
_APART = 1.2  # of the usual step between lines: from a running line to the body
_LEVEL = 0.3  # of a line's height: lines of two columns
_MIN_PAGES = 3
_SAME_STEPS = 0.8  # of the pairs of pages: page numbers may begin again
_SAME_SIZE = 1.1
_FULL = 0.9  # of the median line: a line that was wrapped
_MIN_FULL = 50  # characters
_NUMBER = re.compile(r"\d{1,9}")
_VISIBLE = re.compile(r"\w")
# Where "\0" stands for a number that counts pages: "Page 3", "3/12", "HR-014  3"; not "Day 3".
_PAGE_NUMBER = re.compile(
    r"(?:^|  |[-–—|·•(\[/] ?|\b(?:p|pag|pág|pages?|páginas?|seite)\.? ?)\0(?: ?(?:/|of|de|sur|von) ?\d+)?|\0 ?/ ?\d+",
    re.IGNORECASE,
)
_ENDED = re.compile(r"[.!?:;…][\"'”’»)\]]*\Z")
_ITEM = re.compile(r"(?:[a-z]|[ivx]{2,4})[.)]\s")  # "b) …": begins in lower case, and no sentence goes on in it
_HYPHENATED = re.compile(r"[^\W\d_][-‐]\Z")


class _Place(NamedTuple):
    """Where a line stands."""

    page: int
    line: int  # its number on the page


_Level = list[int]  # lines beside each other, by their number on the page
_Margins = dict[tuple[bool, str], list[_Place]]  # (whether at the top, text without digits) → places in order


def drop_running_lines(pages: Sequence[Sequence[PageLine]]) -> tuple[list[list[PageLine]], Mapping[str, int]]:
    """The pages without running lines; and each of these, without its page number, with the index of its first page.

    Those at the top of the first page stay there: they cut no sentence.
    """
    filled = [page for page, lines in enumerate(pages) if lines]
    kept = [list(lines) for lines in pages]
    dropped: set[_Place] = set()
    once: dict[str, int] = {}
    usual = statistics.median([line.height for lines in pages for line in lines if line.height] or [0.0])
    for (is_top, _), places in _read_margins(pages).items():
        found = [(place.page, pages[place.page][place.line].text) for place in places]
        is_placed = len(filled) == 2 and _are_alike([pages[place.page][place.line] for place in places], usual)
        shown = _read_running(found, filled, is_top=is_top, is_placed=is_placed)
        if shown is None:
            continue
        dropped.update(places)
        page, index = places[0]
        rest = _PAGE_NUMBER.sub("", shown).replace("\0", "").strip(" -–—|·•")
        if is_top and page == filled[0] and _VISIBLE.search(rest):
            dropped.remove(places[0])
            kept[page][index] = PageLine(rest)  # of no size: no heading
        elif _VISIBLE.search(rest):
            once.setdefault(rest, page)
    kept = [
        trim([line for index, line in enumerate(lines) if (page, index) not in dropped])
        for page, lines in enumerate(kept)
    ]
    if sum(map(bool, kept)) * 2 <= len(filled):
        return [list(lines) for lines in pages], {}  # hardly anything else stands on the pages
    return kept, once


def _read_margins(pages: Sequence[Sequence[PageLine]]) -> _Margins:
    """Lines of the margins; without those that stand in the body as well."""
    levels = [_levels(lines) for lines in pages]
    steps = [
        _middle(lines, above) - _middle(lines, below)
        for lines, on_page in zip(pages, levels, strict=True)
        for above, below in itertools.pairwise(on_page)
    ]
    apart = _APART * statistics.median(steps) if steps else math.inf
    margins: _Margins = {}
    for page, (lines, on_page) in enumerate(zip(pages, levels, strict=True)):
        for is_top in (True, False):
            for index in _margin(lines, on_page if is_top else on_page[::-1], apart):
                mask = _NUMBER.sub("#", lines[index].text.casefold())
                margins.setdefault((is_top, mask), []).append(_Place(page, index))
    taken = {place for places in margins.values() for place in places}
    texts = {pages[page][index].text for page, index in taken}
    body = Counter(
        line.text
        for page, lines in enumerate(pages)
        for index, line in enumerate(lines)
        if line.text in texts and (page, index) not in taken
    )
    return {
        key: places
        for key, places in margins.items()
        if 2 * sum(body[text] for text in {pages[page][index].text for page, index in places}) < len(places)
    }


def _levels(lines: Sequence[PageLine]) -> list[_Level]:
    """The lines of a page whose place is known, from top to bottom."""
    levels: list[_Level] = []
    # A line of nothing but characters of no width has a place, but no text.
    placed = [index for index, line in enumerate(lines) if line.text and line.middle is not None]
    for index in sorted(placed, key=lambda index: -_middle(lines, [index])):
        if levels and _middle(lines, levels[-1]) - _middle(lines, [index]) <= _LEVEL * lines[index].height:
            levels[-1].append(index)
        else:
            levels.append([index])
    return levels


def _middle(lines: Sequence[PageLine], level: _Level) -> float:
    return lines[level[0]].middle or 0.0


def _margin(lines: Sequence[PageLine], levels: Sequence[_Level], apart: float) -> Iterator[int]:
    """Lines at the edge that a step divides from the body, given those from an edge inwards.

    Those that have columns, as the line next to them has, may be the names of a table's columns; a line in brackets may
    be its unit.
    """
    for place in range(min(_EDGE, len(levels) - 1), 0, -1):
        if abs(_middle(lines, levels[place - 1]) - _middle(lines, levels[place])) < apart:
            continue
        beside = any("  " in lines[index].text for index in levels[place])
        for count, level in enumerate(levels[:place], start=1):
            for index in level:
                text = lines[index].text
                is_column = count == place and beside and "  " in text and not _NUMBER.search(text)
                if len(text) <= MAX_CHARACTERS and text[0] != "(" and not is_column:
                    yield index
        return


def _are_alike(lines: Sequence[PageLine], usual: float) -> bool:
    """Whether lines have the same text and place, and look like no heading in text of the usual height."""
    first = lines[0]
    return not any(line.is_bold or line.height > _SAME_SIZE * usual for line in lines) and all(
        line.text == first.text and abs((line.middle or 0.0) - (first.middle or 0.0)) <= _LEVEL * first.height
        for line in lines
    )


def _read_running(
    found: Sequence[tuple[int, str]], filled: Sequence[int], *, is_top: bool, is_placed: bool
) -> str | None:
    """A line of several pages, with "\0" for its page number; None if it is none of most pages, left or right ones.

    `is_placed`: it stands at the same place on the only two pages.
    """
    rows = [(page, [int(number) for number in _NUMBER.findall(text)]) for page, text in found]
    pairs = list(itertools.pairwise(rows))
    same = sum(
        all(after - before in (0, page - page_before) for before, after in zip(numbers_before, numbers, strict=True))
        for (page_before, numbers_before), (page, numbers) in pairs
    )
    if not pairs or same < _SAME_STEPS * len(pairs):
        return None
    counting = [len(set(column)) > 1 for column in zip(*(numbers for _, numbers in rows), strict=True)]
    order = iter(counting)
    shown = _NUMBER.sub(lambda number: "\0" if next(order) else number[0], found[0][1])
    has_page_number = any(counting) and _PAGE_NUMBER.search(shown) is not None
    if is_top and any(counting) and not has_page_number:
        return None  # "Day 3"
    is_exact = has_page_number and all(page + 1 in numbers for page, numbers in rows)
    here = {page for page, _ in found}
    for pages in (filled, [page for page in filled if page % 2], [page for page in filled if not page % 2]):
        count = len(here.intersection(pages))
        if count * 2 > len(pages) and count >= (2 if is_exact or is_placed else _MIN_PAGES):
            return shown
    return None


def goes_on(above: Sequence[PageLine], below: Sequence[PageLine]) -> bool:
    """Whether a sentence at the end of a page or column goes on at the beginning of the next."""
    if not above or not below:
        return False
    last, first = above[-1], below[0]
    sizes = sorted((last.height, first.height))
    if not sizes[0] or sizes[1] > _SAME_SIZE * sizes[0] or last.is_bold is not first.is_bold:
        return False
    if "  " in last.text or "  " in first.text or _ENDED.search(last.text) or _ITEM.match(first.text):
        return False
    usual = statistics.median(len(line.text) for line in above if line.text)
    is_full = len(last.text) >= max(_FULL * usual, _MIN_FULL) and last.text.split()[-1][0].islower()
    return first.text[0].islower() or is_full


def join_columns(lines: Sequence[PageLine]) -> list[PageLine]:
    """The lines of a page without the empty line at the end of a column in which a sentence goes on in the next."""
    kept: list[PageLine] = []
    begin = 0  # of the paragraph
    for index, line in enumerate(lines):
        if line.text or not 0 < index < len(lines) - 1:
            kept.append(line)
            continue
        above, below = lines[begin:index], lines[index + 1 :]
        begin = index + 1
        is_next_column = (below[0].middle or 0.0) > (above[-1].middle or math.inf) if above else False
        if not (is_next_column and goes_on(above, below)):
            kept.append(line)
    return kept


def join_words(pages: Sequence[list[PageLine]]) -> None:
    """Move the rest of a word that is hyphenated at the end of a page to that page."""
    for above, below in itertools.pairwise(pages):
        if goes_on(above, below) and _HYPHENATED.search(above[-1].text):
            word, _, rest = below[0].text.partition(" ")
            if word[0].islower() and rest:
                above.append(below[0]._replace(text=word, words=()))  # they stand on the next page
                moved = count_letters(word)
                words = [(at - moved, text, box) for at, text, box in below[0].words if at >= moved]
                below[0] = below[0]._replace(text=rest, words=words)


def trim(lines: Iterable[PageLine]) -> list[PageLine]:
    """Drop leading, trailing and repeated empty lines."""
    kept: list[PageLine] = []
    for line in lines:
        if line.text or (kept and kept[-1].text):
            kept.append(line)
    return kept[:-1] if kept and not kept[-1].text else kept

"""All words of a PDF page: whole, each once, and none that lies outside.

Of what PDFium reads we correct five things that only show beside other words:

- The second letter of an italic "ff" drawn letter by letter is dropped as a duplicate (`_lost_letters`).
- Texts of two columns that touch are joined to one word, and two numbers to a third (`_part_columns`).
- A line that is drawn twice to look bold is only dropped where it is one text (`_drop_repeated`).
- What a page cuts off at the edge of a cell is read on, through the cells beside it (`_drop_clipped`).
- Text beyond the edges of the page, which nobody sees, is among the others (`drop_outside`).
"""

from __future__ import annotations

import bisect
import ctypes
import heapq
import itertools
import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import pypdfium2.raw as pdfium

from rag_service.readers.pdf.characters import read_string
from rag_service.readers.pdf.rules import SIDES, PageObjects, bounds_of
from rag_service.readers.pdf.words import COLUMN_GAP, FINE, Box, Word, WordReader, turn

_NUMBERS_MEET = re.compile(r"\d[\d+\-−–($€£¥]")
_LINE = 0.5  # of the height, between words of one line
_OVERLAP = 0.15  # of the height, of two digits; kerning is half of that
_REPEATED = 0.15  # of the height, between a word and the same one drawn again
_COPY = 0.3  # of the height, between a letter and its copy
_SQUARE, _STRIP = 12.0, 4.0  # points, of the squares in which copies are sought, and of the strips in which words are
_MAX_OVER = 10  # words that a copy covers; a drawing of letters has more
_MAX_COMPARED = 200_000  # pairs of words of a page
_APART = 0.2  # of the height, between a decimal mark and its digits; a space is 0.22 or more
_DECIMAL = re.compile(r"[^\w\s]{0,2}\d{1,3}(?:[,.]\d{3})*[.,]\d+[^\w\s]{0,2}")
_MAX_SUSPECTS = 1_000  # per page; checking one takes longer the more characters the page has
_MAX_CORNERS = 100_000  # of all frames of a page: a fifth of a second; maps have frames of thousands


def read_words(objects: PageObjects, text_page: Any) -> tuple[list[Word], bool]:
    """Words of a page in PDFium's order, and whether it cuts others off; given its objects and its raw text."""
    reader = WordReader(text_page)
    drawn = list(reader.words())
    once = _drop_overprinted(_drop_repeated(drawn), text_page)
    words = _drop_clipped(once, text_page)
    are_cut_off = len(words) < len(once)
    if len(words) < len(drawn):
        words = [word._replace(number=place) for place, word in enumerate(words)]
    words = _join_decimals(_part_columns(words, text_page), text_page)
    if reader.may_hide_letters:
        # A lost letter in the middle of a word is rare and left out.
        words += [
            letter
            for letter in _lost_letters(objects, text_page)
            if not any(
                word.left <= letter.left
                and letter.right <= word.right
                and abs(word.middle - letter.middle) < word.height / 2
                for word in words
            )
        ]
    return words, are_cut_off


def drop_outside(words: list[Word], page: Any) -> list[Word]:
    """Without words that lie beyond the edges of the page, where nobody sees them."""
    corners: list[tuple[float, float]] = []
    for at in (0, FINE):
        x, y = ctypes.c_double(), ctypes.c_double()
        pdfium.FPDF_DeviceToPage(page, 0, 0, FINE, FINE, 0, at, at, ctypes.byref(x), ctypes.byref(y))
        corners.append((x.value, y.value))
    (one_x, one_y), (other_x, other_y) = corners
    (begin, end), (low, high) = sorted((one_x, other_x)), sorted((one_y, other_y))

    def is_outside(word: Word) -> bool:
        half = word.height / 2
        box = word.left, word.middle - half, word.right, word.middle + half
        left, bottom, right, top = turn(box, -word.turns % 4) if word.turns else box
        return right <= begin or left >= end or top <= low or bottom >= high

    return [
        word
        for word in words
        if (begin < word.left and word.right < end and low < word.middle < high and not word.turns)
        or not is_outside(word)
    ]


def _drop_repeated(words: list[Word]) -> list[Word]:
    """Without words that repeat another one of about their height at the same place.

    Kept by squares as wide as words are high, give or take: only a few of one text have a place of their own in each,
    however many the page has.
    """
    counts = Counter([word.text for word in words])
    sizes = [math.frexp(word.height)[1] for word in words]  # each stands for heights up to twice those of the one below
    present = set(sizes)
    kept: dict[tuple[str, int | None, int, int, int], list[Word]] = {}
    shown: list[Word] = []
    for word, size in zip(words, sizes, strict=True):
        text, _, _, turns, left, _, middle, height, *_ = word
        near = _REPEATED * height
        if counts[text] > 1 and near > 0 and math.isfinite(left + middle + near):
            squares = [
                (text, turns, other_size, column, row)
                for other_size in (size - 1, size, size + 1)
                if other_size in present
                for side in (math.ldexp(0.5, other_size),)
                for column in range(math.floor((left - near) / side), math.floor((left + near) / side) + 1)
                for row in range(math.floor((middle - near) / side), math.floor((middle + near) / side) + 1)
            ]
            if any(
                abs(left - other.left) < near and abs(middle - other.middle) < near
                for square in squares
                for other in kept.get(square, ())
            ):
                continue
            side = math.ldexp(0.5, size)
            kept.setdefault((text, turns, size, math.floor(left / side), math.floor(middle / side)), []).append(word)
        shown.append(word)
    return shown


def _drop_overprinted(words: list[Word], text_page: Any) -> list[Word]:
    """Without words whose letters all stand on the same letters of words before: a copy cut into other pieces."""
    if not any(_overlap(words, shift) for shift in (0, _STRIP / 2)):
        return words
    squares: dict[tuple[int, int], list[Word]] = {}
    left_over = _MAX_COMPARED
    shown: list[Word] = []
    for word in words:
        if word.turns != 0 or not word.is_placed or word.height <= 0 or word.right - word.left > _SQUARE * 50:
            shown.append(word)
            continue
        row = round(word.middle / _SQUARE)
        columns = range(int(word.left // _SQUARE), int(word.right // _SQUARE) + 1)
        near = dict.fromkeys(
            other for column in columns for step in (-1, 0, 1) for other in squares.get((column, row + step), ())
        )
        left_over -= len(near)
        over = [
            other
            for other in near
            if abs(other.middle - word.middle) < _COPY * word.height
            and min(other.right, word.right) - max(other.left, word.left) > _COPY * word.height
        ]
        if 0 < len(over) <= _MAX_OVER and left_over > 0 and _is_copy(word, over, text_page):
            continue
        shown.append(word)
        for column in columns:
            squares.setdefault((column, row), []).append(word)
    return shown


def _overlap(words: Sequence[Word], shift: float) -> bool:
    """Whether words in one of the strips across the page overlap: quicker than to compare them all."""
    places = sorted(
        (math.floor((middle + shift) / _STRIP), left, right, height)
        for _, _, _, turns, left, right, middle, height, *_ in words
        if turns == 0 and math.isfinite(left + right + middle)
    )
    return any(
        row == other and end - left > _COPY * height
        for (row, _, end, height), (other, left, _, _) in itertools.pairwise(places)
    )


def _is_copy(word: Word, over: Sequence[Word], text_page: Any) -> bool:
    places = [
        (letter, _sides(text_page, other.at + at, 0)[0]) for other in over for at, letter in enumerate(other.text)
    ]
    return all(
        any(letter == same and abs(left - there) < _COPY * word.height for same, there in places)
        for at, letter in enumerate(word.text)
        for left in (_sides(text_page, word.at + at, 0)[0],)
    )


def _join_decimals(words: list[Word], text_page: Any) -> list[Word]:
    """The words with the digits behind a decimal mark that stand a little apart, where no space is drawn."""
    joined: list[Word] = []
    for word in words:
        before = joined[-1] if joined else None
        if (
            before is not None
            and word.text[0].isdecimal()
            and before.text[-1] in ".,"
            and word.number == before.number + 1
            and 0 <= word.left - before.right < _APART * word.height
            and before.line == word.line
            and _DECIMAL.fullmatch(before.text + word.text)
            and pdfium.FPDFText_IsGenerated(text_page, word.at - 1) == 1
        ):
            joined[-1] = before._replace(text=before.text + word.text, right=word.right, number=word.number)
        else:
            joined.append(word)
    return joined


def _drop_clipped(words: list[Word], text_page: Any) -> list[Word]:
    """Without words outside the frame that their text is cut off at; only where another text is printed over them."""
    hidden: dict[int, Word | None] = {}  # place → what is seen of the word
    frames = _Frames(text_page)
    begin, end, line = 0, -math.inf, math.inf  # of the line that is open
    reach: list[tuple[float, int]] = []  # a heap of its words by their right sides, the farthest first
    for place, word in enumerate(words):
        if word.turns != 0 or abs(word.middle - line) > _LINE * word.height:
            begin, end, line = place, word.right, word.middle
            reach = [(-word.right, place)]
            continue
        if word.left < end - word.height and word.left > words[begin].left:
            while reach and -reach[0][0] > word.left:
                over = heapq.heappop(reach)[1]
                hidden[over] = frames.seen(words[over])
        heapq.heappush(reach, (-word.right, place))
        end = max(end, word.right)
    if not hidden:
        return words
    return [seen for place, word in enumerate(words) if (seen := hidden.get(place, word)) is not None]


class _Frames:
    """What texts are cut off at, up to a number of corners per page."""

    def __init__(self, text_page: Any):
        self._text_page = text_page
        self._corners = _MAX_CORNERS  # that may still be looked at

    def seen(self, word: Word) -> Word | None:
        """A word up to the frame that its text is cut off at; None if it is outside."""
        item = pdfium.FPDFText_GetTextObject(self._text_page, word.at) if word.at >= 0 else None
        frame = pdfium.FPDFPageObj_GetClipPath(item) if item else None
        left, right = -math.inf, math.inf
        for path in range(max(pdfium.FPDFClipPath_CountPaths(frame), 0) if frame else 0):
            count = max(pdfium.FPDFClipPath_CountPathSegments(frame, path), 0)
            self._corners -= count + 1
            if self._corners < 0:
                return word
            if places := _corners(frame, path, count):
                left, right = max(left, min(places)), min(right, max(places))
        if word.left >= right or word.right <= left:
            return None
        return word._replace(left=max(word.left, left), right=min(word.right, right))


def _corners(frame: Any, path: int, count: int) -> list[float]:
    """Where the corners of a path of a frame stand, from the left of the page."""
    x, y = ctypes.c_float(), ctypes.c_float()
    places: list[float] = []
    for number in range(count):
        segment = pdfium.FPDFClipPath_GetPathSegment(frame, path, number)
        if pdfium.FPDFPathSegment_GetPoint(segment, ctypes.byref(x), ctypes.byref(y)):
            places.append(x.value)
    return places


def _part_columns(words: list[Word], text_page: Any) -> list[Word]:
    """Part words with digits where a text begins in the column of another row.

    Such a word holds the gap between the columns of that row. Only texts drawn one by one are parted: a number drawn at
    once is one.
    """
    starts = list[float]()
    gap_of_start, gap_of_end = dict[int, float](), dict[int, float]()  # where its right-most gap begins
    line, end, direction = math.inf, 0.0, None  # of the word before
    for _, _, _, turns, left, right, middle, height, *_ in words:
        if left - end > COLUMN_GAP * height and abs(middle - line) <= _LINE * height and turns == direction:
            starts.append(left)
            for place, gaps in ((_place(left), gap_of_start), (_place(right), gap_of_end)):
                gaps[place] = max(end, gaps.get(place, end))
        line, end, direction = middle, right, turns
    if not starts:
        return words
    starts.sort()

    def holds_gap(word: Word, at: float, gaps: dict[int, float]) -> bool:
        return any(gaps.get(_place(at) + step, -math.inf) > word.left for step in (-1, 0, 1))

    parted: list[Word] = []
    for word in words:
        if word.text.isalpha() or not _NUMBERS_MEET.search(word.text):
            parted.append(word)
            continue
        inside = bisect.bisect_right(starts, word.left)
        if not _is_wide(word) and (inside == len(starts) or starts[inside] >= word.right):
            parted.append(word)
            continue
        parted += _part(
            word,
            text_page,
            is_edge=lambda left: (
                holds_gap(word, left, gap_of_start)  # noqa: B023
                or holds_gap(word, word.right, gap_of_end)  # noqa: B023
            ),
        )
    return parted if len(parted) == len(words) else [word._replace(number=place) for place, word in enumerate(parted)]


def part_at_rule(word: Word, text_page: Any, rule: float) -> list[Word]:
    """Part a word that crosses an upright rule, given its distance from the left, if a text begins about there."""
    return _part(word, text_page, is_edge=lambda left: abs(left - rule) < word.height)


def _part(word: Word, text_page: Any, *, is_edge: Callable[[float], bool]) -> list[Word]:
    """Part a word where one text is printed over or far from another, or the second one begins at a column's edge.

    Only between two numbers. The first part then ends before the gap that it runs over.
    """
    length = len(word.text)
    if word.turns is None or word.at < 0:
        return [word]
    if pdfium.FPDFText_GetUnicode(text_page, word.at + length - 1) != ord(word.text[-1]):  # a mark made it shorter
        return [word]
    texts = [_text_object(text_page, word.at), _text_object(text_page, word.at + length - 1)]
    is_wide = _is_wide(word)
    if texts[0] == texts[1] and not is_wide:
        return [word]
    texts[1:1] = [_text_object(text_page, word.at + place) for place in range(1, length - 1)]
    seams = [place for place in range(1, length) if is_wide or texts[place] != texts[place - 1]]
    cuts: list[tuple[int, float, float]] = []  # place, and where the gap before it begins and ends
    for place in seams:
        if not _NUMBERS_MEET.fullmatch(word.text, place - 1, place + 1):
            continue
        end = _sides(text_page, word.at + place - 1, word.turns)[1]
        start = _sides(text_page, word.at + place, word.turns)[0]
        overlap = (end - start) / word.height
        if overlap > _OVERLAP or ((-overlap > COLUMN_GAP or len(seams) == 1) and is_edge(start)):
            cuts.append((place, end, start))
    parts: list[Word] = []
    begin, left = 0, word.left
    for place, end, start in cuts:
        right = min(end, max(left, start - 2 * COLUMN_GAP * word.height))
        parts.append(word._replace(text=word.text[begin:place], left=left, right=right, at=word.at + begin))
        begin, left = place, start
    last = word._replace(text=word.text[begin:], left=left, at=word.at + begin, spaced=word.spaced or begin > 0)
    return [*parts, last]


def _is_wide(word: Word) -> bool:
    """Whether there is more than its characters can fill: no digit is as wide as it is high."""
    return word.right - word.left > len(word.text) * word.height


def _place(x: float) -> int:
    """Quarter points: columns are aligned more exactly than that."""
    return round(4 * x) if math.isfinite(x) else 0


def _text_object(text_page: Any, index: int) -> int | None:
    """Address of the text object that draws a character; None: PDFium made it up."""
    return ctypes.cast(pdfium.FPDFText_GetTextObject(text_page, index), ctypes.c_void_p).value


def _sides(text_page: Any, index: int, turns: int) -> tuple[float, float]:
    """The left and the right of a character."""
    box = pdfium.FS_RECTF()
    pdfium.FPDFText_GetLooseCharBox(text_page, index, ctypes.byref(box))
    left, _, right, _ = turn((box.left, box.bottom, box.right, box.top), turns)
    return left, right


def _lost_letters(objects: PageObjects, text_page: Any) -> list[Word]:
    """Letters that PDFium drops as duplicates of the letter before, although they stand beside it.

    PDFium drops a text object that repeats the previous one and covers half of it, as the wide box of an italic "f"
    does. The lost letter is therefore the same as the previous one. Only upright letters of the page itself are found.
    """
    found: list[Word] = []
    sides = (ctypes.c_float * 4)()
    start = ctypes.addressof(sides)
    places = start, start + 4, start + 8, start + 12
    before: Box = (0.0, 0.0, 0.0, 0.0)
    address_before = 0
    suspects = 0
    for address in objects.of_page():
        bounds_of(address, *places)
        left, bottom, right, top = box = SIDES.unpack(sides)
        step = left - before[0]
        if 0.15 * (top - bottom) < step < right - left:
            wider = (right - left) - (before[2] - before[0])
            if abs(wider) + abs(bottom - before[1]) + abs(top - before[3]) < 0.1:
                suspects += 1
                if suspects > _MAX_SUSPECTS:
                    break
                letter = _text(address_before, text_page).strip()
                if len(letter) == 1 and not _text(address, text_page):
                    overhang = (right - left - step) / 2
                    found.append(
                        Word(letter, -2, False, 0, left + overhang, right - overhang, (bottom + top) / 2, top - bottom)
                    )
        before, address_before = box, address
    return found


def _text(address: int, text_page: Any) -> str:
    item = ctypes.cast(address, pdfium.FPDF_PAGEOBJECT)
    if not address or pdfium.FPDFPageObj_GetType(item) != pdfium.FPDF_PAGEOBJ_TEXT:
        return ""
    return read_string(lambda *out: pdfium.FPDFTextObj_GetText(item, text_page, *out))

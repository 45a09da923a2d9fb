"""Words of a PDF page with their positions, from PDFium's characters.

PDFium decides which characters form a word: it corrects kerning, drops text drawn twice to look bold and applies the
page's glyph mapping. We split at its white space and correct eleven things:

- A hyphen at a line end is U+0002 or U+FFFE, and the line break after it is missing.
- Symbol fonts use U+F020 to U+F0FF; the low byte identifies the glyph (a bullet, "x" for a ticked box).
- A minus of a font without a meaning for it is a control character; its shape is that of a bar (`_with_minus`).
- A number just before a heading ("2.5 Base Pay") is joined to it; we split where there is a visible gap.
- The second letter of an italic "ff" drawn letter by letter is dropped as a duplicate (`_lost_letters`).
- Raised and lowered characters are digits like others, only smaller, and higher or lower (`script_of`).
- Texts of two columns that touch are joined to one word, and two numbers to a third (`_part_columns`).
- Characters one below the other are joined to one word (`_rows`).
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
import sys
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import pypdfium2.raw as pdfium

from rag_service.domain import Box as PageBox
from rag_service.readers.common.raised import lower_run, raise_run
from rag_service.readers.pdf.rules import SIDES, PageObjects, bounds_of, directly

_HYPHENS = "\x02\ufffe"
_WORD = re.compile(rf"[^\s{_HYPHENS}]+[{_HYPHENS}]?|[{_HYPHENS}]")
_CONTROL = re.compile(r"[\x03-\x08\x0b\x0c\x0e-\x1f]")
_LIGATURES = 0.1  # of the letters: TeX's "ff", "fi", "fl" are 1 or 2 in 100
_UNREADABLE = "\x01"  # no text has it, and none is stored with it
_UNREADABLE_WORD = re.compile(rf"\w{_UNREADABLE}+\w|{_UNREADABLE}{{3}}")
_SEAM = re.compile(r"(?<=[^\W_])(?=[A-Z][a-z])|(?<=[A-Za-z).,;:])(?=\d)|(?<=\d)(?=[A-Z])")
_SEAM_GAP = 0.12  # of the height; a space is 0.2 or more, letters of a word touch
_MAYBE_MINUS = re.compile(r"[\x00\x01\x03-\x1f](?=[\d.])")
_FLAT = 4.0  # times its height: the width of a minus
_SURROGATE = re.compile("[\ud800-\udfff]")
_TRANSLATION = {**dict.fromkeys(map(ord, _HYPHENS), "-"), **{0xF000 + code: chr(code) for code in range(0x20, 0x100)}}
_WIDE_LETTER = 0.5  # of the height: an "f" that overlaps both its neighbours
_LEVEL = 0.05  # of its width: a word that rises or falls less is upright
_FONT_NAME = 200  # bytes
_MAX_BYTES = 200_000  # of a string
_BOLD = re.compile(
    r"(?i:bold)|(?<![A-Za-z])(?:Black|Heavy|Demi|BX|Bd)(?![a-z])|[a-z](?:Black|Heavy|Demi)|Medi(?:Ital)?$|CMBX|SFBX"
)
# Of raised and lowered characters, as fractions of the height beside them. Word draws them at 0.65, TeX at 0.7 to 0.8.
_SMALL = 0.85
_RAISED, _LOWERED = (
    0.15,
    -0.02,
)  # how much higher their lower edge is; that of small letters on the line is 0.03 or more
_NUMBERS_MEET = re.compile(r"\d[\d+\-−–($€£¥]")
_RUN_END = re.compile(r"(?<=\w)\d(?!\d)")
_PLAIN_NUMBER = re.compile(r"[\d.,]+")
_MARK_LETTERS = 3  # of a word that a raised letter may be a footnote mark of
COLUMN_GAP = 0.7  # of the height, between words of two columns; spaces of justified text stay below 0.6
_LINE = 0.5  # of the height, between words of one line
_OVERLAP = 0.15  # of the height, of two digits; kerning is half of that
_STACKED = 2.0  # times the height of a character: a word of two lines; an index below an exponent takes less
_REPEATED = 0.15  # of the height, between a word and the same one drawn again
_STEP, _FINE = 100, 1000  # points, and parts of a thousandth, from which a page's directions are measured
_MAX_SUSPECTS = 1_000  # per page; checking one takes longer the more characters the page has

_loose_box = directly(pdfium.FPDFText_GetLooseCharBox, ctypes.c_int, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p)


class Word(NamedTuple):
    """A word and its position on a page, rotated so that it reads from left to right; lengths in points."""

    text: str
    number: int  # position in PDFium's order
    spaced: bool  # white space other than a line break precedes it
    turns: int | None  # quarter turns to the left; None: slanted
    left: float
    right: float
    middle: float  # vertical centre; as everywhere in PDF, higher is more
    height: float  # from the descender to the ascender of its font
    at: int = -1  # PDFium's index of its first character; -1: none
    is_table: bool = False  # represents a whole table, one line of text per row; its height is that of one row
    rows: Sequence[Sequence[Lettered]] = ()  # of a table: the words of each line


Lettered = tuple[int, Word]  # a word of a line, and how many letters and digits of the line stand before it
Box = tuple[float, float, float, float]  # left, bottom, right, top


def count_letters(text: str) -> int:
    """Letters and digits: laying out and joining words leaves them in their order."""
    return len(text) if text.isalnum() else sum(map(str.isalnum, text))


def letter(words: Sequence[Word], text: str) -> list[Lettered]:
    """The words of a line or cell, placed in its text; one for all of them where their letters are not those of it."""
    counts = [count_letters(word.text) for word in words]
    if sum(counts) == count_letters(text):
        return list(zip(itertools.accumulate(counts, initial=0), words, strict=False))
    if len({word.turns for word in words}) > 1:
        return []
    bottom = min(word.middle - word.height / 2 for word in words)
    top = max(word.middle + word.height / 2 for word in words)
    left, right = min(word.left for word in words), max(word.right for word in words)
    whole = words[0]._replace(text=text, left=left, right=right, middle=(bottom + top) / 2, height=top - bottom)
    return [(0, whole)]


def read_words(objects: PageObjects, text_page: Any) -> list[Word]:
    """Words of a page in PDFium's order, given its objects and the raw handle of its text."""
    reader = _Reader(text_page)
    drawn = list(reader.words())
    words = _drop_clipped(_drop_repeated(drawn), text_page)
    if len(words) < len(drawn):
        words = [word._replace(number=place) for place, word in enumerate(words)]
    words = _part_columns(words, text_page)
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
    return words


def drop_outside(words: list[Word], page: Any) -> list[Word]:
    """Without words that lie beyond the edges of the page, where nobody sees them."""
    corners: list[tuple[float, float]] = []
    for at in (0, _FINE):
        x, y = ctypes.c_double(), ctypes.c_double()
        pdfium.FPDF_DeviceToPage(page, 0, 0, _FINE, _FINE, 0, at, at, ctypes.byref(x), ctypes.byref(y))
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


def _drop_clipped(words: list[Word], text_page: Any) -> list[Word]:
    """Without words outside the frame that their text is cut off at; only where another text is printed over them."""
    hidden: dict[int, Word | None] = {}  # place → what is seen of the word
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
                hidden[over] = _seen(words[over], text_page)
        heapq.heappush(reach, (-word.right, place))
        end = max(end, word.right)
    if not hidden:
        return words
    return [seen for place, word in enumerate(words) if (seen := hidden.get(place, word)) is not None]


def _seen(word: Word, text_page: Any) -> Word | None:
    """A word up to the frame that its text is cut off at; None if it is outside."""
    item = pdfium.FPDFText_GetTextObject(text_page, word.at) if word.at >= 0 else None
    frame = pdfium.FPDFPageObj_GetClipPath(item) if item else None
    x, y = ctypes.c_float(), ctypes.c_float()
    left, right = -math.inf, math.inf
    for path in range(max(pdfium.FPDFClipPath_CountPaths(frame), 0) if frame else 0):
        places = []
        for number in range(min(pdfium.FPDFClipPath_CountPathSegments(frame, path), _MAX_SUSPECTS)):
            segment = pdfium.FPDFClipPath_GetPathSegment(frame, path, number)
            if pdfium.FPDFPathSegment_GetPoint(segment, ctypes.byref(x), ctypes.byref(y)):
                places.append(x.value)
        if places:
            left, right = max(left, min(places)), min(right, max(places))
    if word.left >= right or word.right <= left:
        return None
    return word._replace(left=max(word.left, left), right=min(word.right, right))


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
        if inside == len(starts) or starts[inside] >= word.right:
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
    """Part a word where one text is printed over another, or where the second of two texts begins at a column's edge.

    Only between two numbers. The first part then ends before the gap that it runs over.
    """
    length = len(word.text)
    if word.turns is None or word.at < 0:
        return [word]
    if pdfium.FPDFText_GetUnicode(text_page, word.at + length - 1) != ord(word.text[-1]):  # a mark made it shorter
        return [word]
    texts = [_text_object(text_page, word.at), _text_object(text_page, word.at + length - 1)]
    if texts[0] == texts[1]:
        return [word]
    texts[1:1] = [_text_object(text_page, word.at + place) for place in range(1, length - 1)]
    seams = [place for place in range(1, length) if texts[place] != texts[place - 1]]
    cuts: list[tuple[int, float]] = []
    for place in seams:
        if not _NUMBERS_MEET.fullmatch(word.text, place - 1, place + 1):
            continue
        end = _sides(text_page, word.at + place - 1, word.turns)[1]
        start = _sides(text_page, word.at + place, word.turns)[0]
        if end - start > _OVERLAP * word.height or (len(seams) == 1 and is_edge(start)):
            cuts.append((place, start))
    parts: list[Word] = []
    begin, left = 0, word.left
    for place, start in cuts:
        right = max(left, start - 2 * COLUMN_GAP * word.height)
        parts.append(word._replace(text=word.text[begin:place], left=left, right=right, at=word.at + begin))
        begin, left = place, start
    last = word._replace(text=word.text[begin:], left=left, at=word.at + begin, spaced=word.spaced or begin > 0)
    return [*parts, last]


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


def is_bold(text_page: Any, index: int) -> bool:
    """Whether a character's font is bold by its name; PDFium only guesses weights from the width."""
    buffer, flags = ctypes.create_string_buffer(_FONT_NAME), ctypes.c_int()
    pdfium.FPDFText_GetFontInfo(text_page, index, buffer, _FONT_NAME, ctypes.byref(flags))
    return is_bold_font(buffer.value.decode("utf-8", "replace"))


def is_bold_font(name: str) -> bool:
    """Whether a font's name says bold: "ABCDEF+Arial-BoldMT", "NimbusRomNo9L-Medi", "CMBX12"."""
    return _BOLD.search(name) is not None


def _blank_glyph_numbers(text: str, text_page: Any) -> str:
    """Write `_UNREADABLE` for characters of fonts that give numbers of glyphs instead of letters.

    PDFium takes a code that the font does not explain for the character itself. Among glyph numbers are many of control
    characters, which no text has: the letters and digits that the font's other codes look like are not on the page.
    Fonts of TeX have ASCII codes but for a few ligatures, and its Type 3 fonts explain none.
    """
    if not any(pdfium.FPDFText_HasUnicodeMapError(text_page, found.start()) == 1 for found in _CONTROL.finditer(text)):
        return text
    unexplained = dict[int, list[int]]()  # address of a font → places of its characters
    for at in range(len(text)):
        if pdfium.FPDFText_HasUnicodeMapError(text_page, at) == 1 and (font := _named_font(text_page, at)):
            unexplained.setdefault(font, []).append(at)
    characters = list(text)
    for places in unexplained.values():
        if sum(_CONTROL.match(text, at) is not None for at in places) > _LIGATURES * len(places):
            for at in places:
                characters[at] = _UNREADABLE
    return "".join(characters)


def is_unreadable(word: Word) -> bool:
    """Whether its font does not say which letters it shows; a mark or two at its ends may be bullets or symbols."""
    return _UNREADABLE in word.text and _UNREADABLE_WORD.search(word.text) is not None


def _named_font(text_page: Any, index: int) -> int | None:
    """Address of the font of a character; None: it is drawn by the page (Type 3), or PDFium made the character up."""
    text = pdfium.FPDFText_GetTextObject(text_page, index)
    font = pdfium.FPDFTextObj_GetFont(text) if text else None
    if not font or pdfium.FPDFFont_GetBaseFontName(font, None, 0) <= 1:
        return None
    return ctypes.cast(font, ctypes.c_void_p).value


def _characters(text_page: Any) -> str:
    """All characters, one per PDFium index; surrogate pairs stay split. Unmapped codes that look like hyphens are 0."""
    count = pdfium.FPDFText_CountChars(text_page)
    buffer = (ctypes.c_ushort * (count + 1))()
    text = ""
    if pdfium.FPDFText_GetText(text_page, 0, count, buffer) == count + 1:
        text = bytes(buffer)[:-2].decode("utf-16-le", "surrogatepass")
    if len(text) != count:  # GetText skips unmapped characters and writes surrogate pairs: ask for each
        codes = (pdfium.FPDFText_GetUnicode(text_page, index) for index in range(count))
        text = "".join([chr(code) if code <= sys.maxunicode else "\ufffd" for code in codes])
    text = _blank_glyph_numbers(text, text_page)
    return re.sub(
        f"[{_HYPHENS}]",
        lambda mark: mark.group() if pdfium.FPDFText_IsHyphen(text_page, mark.start()) == 1 else "\0",
        text,
    )


class _Reader:
    """Reads words with as few calls to PDFium as possible: two for most words."""

    def __init__(self, text_page: Any):
        self._page = text_page
        self._first, self._last = pdfium.FS_RECTF(), pdfium.FS_RECTF()
        self._boxes = ctypes.addressof(self._first), ctypes.addressof(self._last)
        self._address = ctypes.cast(text_page, ctypes.c_void_p).value
        self._height = math.inf  # that a word of one line has at most
        self.may_hide_letters = False  # a word ends with a wide "f", which may cover another

    def words(self) -> Iterator[Word]:
        characters = _characters(self._page)
        number = end = 0
        for match in _WORD.finditer(characters):
            space = characters[end : match.start()]
            spaced = bool(space) and "\n" not in space
            end = match.end()
            for start, stop in self._split(match.group(), match.start()):
                word = self._word(characters[start:stop], start, number=number, spaced=spaced)
                if word.height <= self._height or word.turns is None:
                    yield word
                    number += 1
                    continue
                for begin, beyond in self._rows(start, stop, word.turns):
                    yield self._word(characters[begin:beyond], begin, number=number, spaced=spaced)
                    number += 1

    def _split(self, word: str, start: int) -> Iterator[tuple[int, int]]:
        """Split a word at visible gaps; nearly always there are none."""
        begin = start
        for seam in () if word.islower() or word.isdigit() else _SEAM.finditer(word):
            place = start + seam.start()
            self._load_boxes(place - 1, place)
            height = self._first.top - self._first.bottom
            if _SEAM_GAP * height < self._last.left - self._first.right:
                yield begin, place
                begin = place
        yield begin, start + len(word)

    def _rows(self, start: int, stop: int, turns: int) -> Iterator[tuple[int, int]]:
        """Split characters that stand one below the other."""
        boxes = []
        for place in range(start, stop):
            self._load_boxes(place, place)
            box = self._first
            boxes.append(turn((box.left, box.bottom, box.right, box.top), turns))
        highest = max(top - bottom for _, bottom, _, top in boxes)
        middles = [(bottom + top) / 2 for _, bottom, _, top in boxes]
        begin = 0
        for place in range(1, len(middles)):
            if abs(middles[place] - middles[begin]) > highest:
                yield start + begin, start + place
                begin = place
        yield start + begin, stop

    def _load_boxes(self, first: int, last: int) -> None:
        _loose_box(self._address, first, self._boxes[0])
        _loose_box(self._address, last, self._boxes[1])

    def _word(self, text: str, start: int, *, number: int, spaced: bool) -> Word:
        self._load_boxes(start, start + len(text) - 1)
        first, last = self._first, self._last
        first_left, first_bottom, last_left, last_bottom = first.left, first.bottom, last.left, last.bottom
        first_top, last_top, last_right = first.top, last.top, last.right
        box = (
            min(first_left, last_left),
            min(first_bottom, last_bottom),
            max(first.right, last_right),
            max(first_top, last_top),
        )
        turns: int | None = 0
        if not (first_left < last_left and abs(first_bottom - last_bottom) < _LEVEL * (last_right - first_left)):
            quarters = pdfium.FPDFText_GetCharAngle(self._page, start) / (math.pi / 2)
            turns = round(quarters) % 4 if abs(quarters - round(quarters)) < 0.05 else None
        if turns in (1, 3):
            self._height = _STACKED * max(first.right - first_left, last_right - last_left)
        else:
            self._height = _STACKED * max(first_top - first_bottom, last_top - last_bottom)
        is_plain = text.isascii() and text.isprintable()
        if not is_plain and _MAYBE_MINUS.search(text):
            text = self._with_minus(text, start)
        if turns == 0 and len(text) > 1:
            text = self._with_scripts(text, start)
        if text[-1] == "f" and last_right - last_left > _WIDE_LETTER * (last_top - last_bottom):
            self.may_hide_letters = True
        if not is_plain:
            if _SURROGATE.search(text):
                text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
            text = text.translate(_TRANSLATION)
        left, bottom, right, top = turn(box, turns) if turns else box
        return Word(text, number, spaced, turns, left, right, (bottom + top) / 2, top - bottom, start)

    def _with_scripts(self, text: str, start: int) -> str:
        """A word with its raised and lowered characters, given that the boxes of its ends are loaded."""
        first_end = self._first.bottom, self._first.top - self._first.bottom
        last_end = self._last.bottom, self._last.top - self._last.bottom
        if first_end == last_end and text.isalpha():
            return text
        if len(text) > 2 and unicodedata.category(text[0]) in ("Sm", "Cc"):  # a sign, often of another font
            self._load_boxes(start + 1, start + len(text) - 1)
            return text[0] + self._with_scripts(text[1:], start + 1)
        beside = first_end if first_end[1] >= last_end[1] else last_end
        last = len(text) - 1
        suspects = [place for place, end in ((0, first_end), (last, last_end)) if script_of(end, beside)]
        if not _PLAIN_NUMBER.fullmatch(text):
            suspects += [found.start() for found in _RUN_END.finditer(text, 1, last)]
        if not suspects:
            return text
        scripts = [0] * len(text)
        for place in suspects:
            script = script_of(self._edges(start + place), beside)
            for step in (-1, 1) if script else ():
                at = place
                while 0 <= at <= last and script_of(self._edges(start + at), beside) == script:
                    scripts[at] = script
                    at += step
        runs = itertools.groupby(range(len(text)), key=scripts.__getitem__)
        return "".join(_write_script(text, list(places), script) for script, places in runs)

    def _with_minus(self, text: str, start: int) -> str:
        def read(sign: re.Match[str]) -> str:
            sides = [ctypes.c_double() for _ in range(4)]
            pdfium.FPDFText_GetCharBox(self._page, start + sign.start(), *map(ctypes.byref, sides))
            left, right, bottom, top = (side.value for side in sides)
            return "\u2212" if 0 < _FLAT * (top - bottom) < right - left else sign[0]

        return _MAYBE_MINUS.sub(read, text)

    def _edges(self, index: int) -> tuple[float, float]:
        _loose_box(self._address, index, self._boxes[0])
        return self._first.bottom, self._first.top - self._first.bottom


def script_of(edges: tuple[float, float], beside: tuple[float, float]) -> int:
    """1: raised, -1: lowered, 0: neither, by (lower edge, height) of characters and of those beside them."""
    (bottom, height), (line, usual) = edges, beside
    if not 0 < height < _SMALL * usual or not line - usual < bottom < line + usual:
        return 0
    shift = (bottom - line) / usual
    return 1 if shift > _RAISED else -1 if shift < _LOWERED else 0


def _write_script(text: str, places: Sequence[int], script: int) -> str:
    run = text[places[0] : places[-1] + 1]
    if script > 0 and not (len(run) == 1 and run.isalpha() and places[0] < _MARK_LETTERS):  # "It" after a drop cap
        return raise_run(run)
    return lower_run(run) if script < 0 else run


def turn(box: Box, turns: int) -> Box:
    """Rotate a box of a page whose text is drawn with so many quarter turns, so that the text is upright."""
    for _ in range(turns):
        left, bottom, right, top = box
        box = -top, left, -bottom, right
    return box


def boxes_on(page: Any) -> Callable[[Word], PageBox | None]:
    """Gives the boxes of words on a page as it is shown: cut to its crop box, and rotated."""
    (x, y), *units = (_on_page(page, *point) for point in ((0, 0), (_STEP, 0), (0, _STEP)))
    (right_x, right_y), (up_x, up_y) = (((unit[0] - x) / _STEP, (unit[1] - y) / _STEP) for unit in units)

    def box_of(word: Word) -> PageBox | None:
        left, right, half = word.left, word.right, word.height / 2
        bottom, top = word.middle - half, word.middle + half
        if word.turns:
            left, bottom, right, top = turn((left, bottom, right, top), -word.turns % 4)
        try:
            x1, x2 = round(x + left * right_x + bottom * up_x), round(x + right * right_x + top * up_x)
            y1, y2 = round(y + left * right_y + bottom * up_y), round(y + right * right_y + top * up_y)
        except (OverflowError, ValueError):  # positions on a broken page may be infinite
            return None
        return x1 if x1 < x2 else x2, y1 if y1 < y2 else y2, x2 if x1 < x2 else x1, y2 if y1 < y2 else y1

    return box_of


def _on_page(page: Any, right: float, up: float) -> tuple[float, float]:
    """A point in thousandths of the page as it is shown, from its top left."""
    x, y = ctypes.c_int(), ctypes.c_int()
    size = 1000 * _FINE
    pdfium.FPDF_PageToDevice(page, 0, 0, size, size, 0, right, up, ctypes.byref(x), ctypes.byref(y))
    return x.value / _FINE, y.value / _FINE


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


def read_string(read: Callable[..., int]) -> str:
    """A text from a PDFium function that fills a buffer of UTF-16 and returns its size in bytes."""
    size = read(None, 0)
    if size > _MAX_BYTES:
        return ""
    buffer = (ctypes.c_ushort * (size // 2))()
    read(buffer, size)
    return bytes(buffer).decode("utf-16-le", "replace").rstrip("\0")

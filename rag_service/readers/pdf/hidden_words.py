"""Words of a PDF page that nobody sees: of the colour behind them, covered, transparent, switched off or tiny.

Colours and boxes only tell which words are suspect, since a picture or a pattern may lie behind them. The proof is the
picture of the page: drawn with and without those words, it is the same. A scan shows the words of its text layer, which
is invisible by design; these stay.
"""

from __future__ import annotations

import bisect
import ctypes
import math
from collections.abc import Iterable, Mapping, Sequence, Set
from contextlib import closing
from functools import lru_cache
from typing import Any, NamedTuple

import pypdfium2.raw as pdfium

from rag_service.domain import Box as PageBox
from rag_service.readers.pdf.rules import PageObjects, directly
from rag_service.readers.pdf.words import Box, Word, boxes_on, turn

_TINY = 1.2  # points: letters of a size below one point
_ALIKE = 16  # of 255: colours that differ less in red, green and blue look the same
_CLEAR = 26  # of 255: what is less opaque is hardly seen
_INK, _NEAR = 48, 96  # of 255: what is drawn differs as much from what is behind it; thin letters are that pale
_MAX_FRAMES = 6  # of a text, and corners of one
_MAX_FRAMED = 1_000  # texts of a page that are cut off at frames of their own
_MAX_FILLS = 2_000  # a drawing has more; the last ones lie on top
_MIN_SIDE = 3.0  # points: a smaller fill is a line
_SCAN = 0.5  # of the page: a larger picture may be a scan
_MAX_PIXELS = 4_000_000
_MIN_PIXELS = 2  # lower letters leave hardly a trace in a picture
_OPAQUE = 255
_WHITE = (255, 255, 255)
_Colour = tuple[int, int, int]
_LAYER = "OC"  # marks the content of a layer that may be switched off

_Pointer = ctypes.c_void_p
_text_object = directly(pdfium.FPDFText_GetTextObject, _Pointer, _Pointer, ctypes.c_int)
_mode_of = directly(pdfium.FPDFTextObj_GetTextRenderMode, ctypes.c_int, _Pointer)
_fill_of = directly(pdfium.FPDFPageObj_GetFillColor, ctypes.c_int, *[_Pointer] * 5)
_frame_of = directly(pdfium.FPDFPageObj_GetClipPath, _Pointer, _Pointer)
_count_frames = directly(pdfium.FPDFClipPath_CountPaths, ctypes.c_int, _Pointer)
_count_marks = directly(pdfium.FPDFPageObj_CountMarks, ctypes.c_int, _Pointer)


class _Fill(NamedTuple):
    """What is painted over an area of the page."""

    order: int
    box: Box
    colour: _Colour | None  # None: not of one opaque colour
    is_image: bool


class _Text(NamedTuple):
    """How a text object is drawn."""

    colour: _Colour
    is_invisible: bool  # with neither fill nor outline, as recognised text is behind a scan
    is_suspect: bool  # by itself: transparent, of a pattern, or on a layer
    is_clip: bool  # as the frame of what is painted after it, which shows its letters
    is_plain: bool  # it is seen on white paper


def drop_hidden(words: list[Word], page: Any, text_page: Any, objects: PageObjects) -> list[Word]:
    """Without words that nobody sees on the page; `page` of pypdfium2, `text_page` raw."""
    reader = _Reader()
    over = _fills_at(words, reader.fills(objects))
    handle = ctypes.cast(text_page, _Pointer).value
    texts: dict[int, _Text] = {}
    unseen: set[int] = set()
    suspects: dict[int, int] = {}  # place of a word → address of its text
    frames: dict[int, int] = {}  # address of a text → number of frames that it is cut off at
    orders: dict[int, int] = {}  # address of a text → its place in the order of painting; only if there is a suspect
    for place, word in enumerate(words):
        address = _text_object(handle, word.at) or 0
        text = texts.get(address)
        if text is None:
            if not address:  # PDFium made it up
                continue
            text = texts[address] = reader.text(address)
            frames[address] = _count_frames(_frame_of(address))
        here = over.get(place)
        if text.is_clip or (text.is_plain and here is None):
            continue
        if text.is_invisible:
            if not any(fill.is_image for fill in here or ()):
                unseen.add(place)
            continue
        orders = orders or {address: order for order, address in enumerate(objects.addresses)}
        if _is_suspect(text, orders.get(address, 0), here or ()):
            suspects[place] = address
    suspects |= _cut_off(words, handle, frames)
    if suspects:
        orders = orders or {address: order for order, address in enumerate(objects.addresses)}
        unseen |= _without_trace(words, suspects, page, objects, over, orders=orders, shown=texts)
    unseen.update(place for place, word in enumerate(words) if word.height < _TINY and _is_tiny(word, text_page))
    return [word for place, word in enumerate(words) if place not in unseen] if unseen else words


def _cut_off(words: Sequence[Word], text_page: Any, frames: Mapping[int, int]) -> dict[int, int]:
    """Place → text of the words that stand outside a frame of their own; frames of all texts are those of the page."""
    least = min(frames.values(), default=0)
    own = [(address, count) for address, count in frames.items() if count > max(least, 0)]
    boxes = {address: _frame(address, count) for address, count in own[:_MAX_FRAMED]}
    found: dict[int, int] = {}
    for place, word in enumerate(words) if boxes else ():
        address = _text_object(text_page, word.at) or 0
        if box := boxes.get(address):
            left, bottom, right, top = turn(box, word.turns) if word.turns else box
            if word.right <= left or word.left >= right or not bottom < word.middle < top:
                found[place] = address
    return found


def _frame(address: int, count: int) -> Box | None:
    """What all frames of a text have in common; None: everything, or more than a few corners."""
    frame = pdfium.FPDFPageObj_GetClipPath(ctypes.cast(address, pdfium.FPDF_PAGEOBJECT))
    left, bottom, right, top = -math.inf, -math.inf, math.inf, math.inf
    x, y = ctypes.c_float(), ctypes.c_float()
    for path in range(min(count, _MAX_FRAMES)):
        across, up = list[float](), list[float]()
        corners = max(pdfium.FPDFClipPath_CountPathSegments(frame, path), 0)
        for number in range(corners if corners <= _MAX_FRAMES else 0):
            segment = pdfium.FPDFClipPath_GetPathSegment(frame, path, number)
            if pdfium.FPDFPathSegment_GetPoint(segment, ctypes.byref(x), ctypes.byref(y)):
                across.append(x.value)
                up.append(y.value)
        if across:
            left, right = max(left, min(across)), min(right, max(across))
            bottom, top = max(bottom, min(up)), min(top, max(up))
    return (left, bottom, right, top) if left > -math.inf else None


def _is_tiny(word: Word, text_page: Any) -> bool:
    """Whether its first character is, and not only the height that its font tells."""
    left, right, bottom, top = sides = [ctypes.c_double() for _ in range(4)]
    pdfium.FPDFText_GetCharBox(text_page, word.at, *map(ctypes.byref, sides))
    return 0 < top.value - bottom.value < _TINY and 0 < right.value - left.value < _TINY


@lru_cache(maxsize=4_096)
def _are_alike(one: _Colour, other: _Colour) -> bool:
    return all(abs(here - there) < _ALIKE for here, there in zip(one, other, strict=True))


def _is_suspect(text: _Text, order: int, here: Sequence[_Fill]) -> bool:
    """Whether a word of a text may not be seen, given what is painted where it stands, in order."""
    if here and here[-1].order > order:
        return True
    behind = here[-1].colour if here else _WHITE
    return text.is_suspect or behind is None or _are_alike(text.colour, behind)


class _Reader:
    """Reuses its ctypes buffers: a page has thousands of objects."""

    def __init__(self) -> None:
        self._colour = (ctypes.c_uint * 4)()
        self._looks: dict[tuple[bytes, int], _Text] = {}
        start = ctypes.addressof(self._colour)
        self._colour_at = start, start + 4, start + 8, start + 12

    def text(self, address: int) -> _Text:
        mode = _mode_of(address)
        look = bytes(self._colour) if _fill_of(address, *self._colour_at) else b"", mode
        text = self._looks.get(look)
        if text is None:
            red, green, blue, alpha = self._colour
            colour, is_suspect = (red, green, blue), not look[0] or alpha < _CLEAR
            is_invisible = mode == pdfium.FPDF_TEXTRENDERMODE_INVISIBLE
            is_plain = not (is_invisible or is_suspect or _are_alike(colour, _WHITE))
            text = self._looks[look] = _Text(
                colour, is_invisible, is_suspect, mode >= pdfium.FPDF_TEXTRENDERMODE_FILL_CLIP, is_plain
            )
        if _count_marks(address) and _is_on_layer(address):
            return text._replace(is_suspect=True, is_plain=False)
        return text

    def fills(self, objects: PageObjects) -> list[_Fill]:
        """What is painted besides texts and lines, in order."""
        found: list[_Fill] = []
        for kind, address, place, is_filled, _, sides in objects.painted:
            if is_filled and sides[2] - sides[0] > _MIN_SIDE < sides[3] - sides[1]:
                colour = self._one_colour(address) if kind == pdfium.FPDF_PAGEOBJ_PATH else None
                found.append(_Fill(place, objects.box(place, sides), colour, kind == pdfium.FPDF_PAGEOBJ_IMAGE))
        return found[-_MAX_FILLS:]

    def _one_colour(self, address: int) -> _Colour | None:
        red, green, blue, alpha = self._colour if _fill_of(address, *self._colour_at) else (0, 0, 0, 0)
        return (red, green, blue) if alpha == _OPAQUE else None


def _is_on_layer(address: int) -> bool:
    item = ctypes.cast(address, pdfium.FPDF_PAGEOBJECT)
    size = ctypes.c_ulong()
    name = (ctypes.c_ushort * (len(_LAYER) + 1))()
    for index in range(pdfium.FPDFPageObj_CountMarks(item)):
        mark = pdfium.FPDFPageObj_GetMark(item, index)
        if (
            pdfium.FPDFPageObjMark_GetName(mark, name, ctypes.sizeof(name), ctypes.byref(size))
            and bytes(name).decode("utf-16-le", "replace").rstrip("\0") == _LAYER
        ):
            return True
    return False


def _fills_at(words: Sequence[Word], fills: Sequence[_Fill]) -> dict[int, list[_Fill]]:
    """What is painted over the centre of each word, in order."""
    found: dict[int, list[_Fill]] = {}
    for turns in {word.turns for word in words} if fills else ():
        heights = [(word.middle, place) for place, word in enumerate(words) if word.turns == turns]
        heights.sort()
        for fill in fills:
            left, bottom, right, top = turn(fill.box, turns) if turns else fill.box
            for _, place in heights[bisect.bisect(heights, (bottom,)) : bisect.bisect(heights, (top,))]:
                word = words[place]
                if left < (word.left + word.right) / 2 < right:
                    found.setdefault(place, []).append(fill)
    return found


def _without_trace(
    words: Sequence[Word],
    suspects: dict[int, int],
    page: Any,
    objects: PageObjects,
    over: dict[int, list[_Fill]],
    *,
    orders: dict[int, int],
    shown: dict[int, _Text],
) -> Set[int]:
    """The suspect words without which the page looks the same.

    A word may be drawn several times, of which PDFium tells one: all texts but those `shown` are left out with the
    suspects. It may also be drawn as a shape, or be on a scan: then something of its colour stands out in its place,
    and no other word does. A picture over it is a scan if it is large.
    """
    width, height = page.get_size()
    if min(width, height) < 1:
        return set()
    texts = {address: shown[address] for address in set(suspects.values())}
    before, after = _render_with_and_without(page, set(objects.texts()).difference(shown).union(texts))
    box_of = boxes_on(page.raw)
    others = [box for place, word in enumerate(words) if place not in suspects and (box := box_of(word))]
    unseen: set[int] = set()
    for place, address in suspects.items():
        box = box_of(words[place])
        if box is None or before.is_coarse(words[place].height, height) or before.differs_from(after, box):
            continue
        covers = [fill for fill in over.get(place, ()) if fill.is_image and fill.order > orders.get(address, 0)]
        may_be_shown = all(_area(fill.box) > _SCAN * width * height for fill in covers)
        if not (
            may_be_shown
            and before.has_ink(box, texts[address].colour)
            and not any(_overlap(box, other) for other in others)
        ):
            unseen.add(place)
    return unseen


def _render_with_and_without(page: Any, texts: Set[int]) -> tuple[_Picture, _Picture]:
    width, height = page.get_size()
    scale = min(1.0, math.sqrt(_MAX_PIXELS / max(width * height, 1.0)))
    before = _render(page, scale)
    modes = {address: _mode_of(address) for address in texts}
    _set_modes(dict.fromkeys(texts, pdfium.FPDF_TEXTRENDERMODE_INVISIBLE))
    after = _render(page, scale)
    _set_modes(modes)
    return before, after


def _set_modes(modes: dict[int, int]) -> None:
    for address, mode in modes.items():
        pdfium.FPDFTextObj_SetTextRenderMode(ctypes.cast(address, pdfium.FPDF_PAGEOBJECT), mode)


def _overlap(one: PageBox, other: PageBox) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < (other[1] + other[3]) / 2 < one[3]


def _area(box: Box) -> float:
    return (box[2] - box[0]) * (box[3] - box[1])


class _Picture(NamedTuple):
    """A page as it is shown: four bytes for each pixel."""

    pixels: bytes
    width: int
    height: int
    stride: int  # bytes of a row

    def _rows(self, box: PageBox) -> Iterable[slice]:
        """The middle of a box in thousandths of the page, row by row: its edges may hold what is beside it."""
        left, right = box[0] * self.width / 1000, box[2] * self.width / 1000
        top, bottom = box[1] * self.height / 1000, box[3] * self.height / 1000
        edge = min((bottom - top) / 6, (right - left) / 6)
        first, last = max(int(left + edge), 0), min(math.ceil(right - edge), self.width)
        for row in range(max(int(top + edge), 0), min(math.ceil(bottom - edge), self.height)):
            yield slice(row * self.stride + 4 * first, row * self.stride + 4 * last)

    def is_coarse(self, size: float, height: float) -> bool:
        """Whether it shows nothing of letters of a size, because the page is some metres high and drawn smaller."""
        return self.height < height and size * self.height < _MIN_PIXELS * height

    def differs_from(self, other: _Picture, box: PageBox) -> bool:
        """Whether anything in a box looks different."""
        for row in self._rows(box):
            one, two = self.pixels[row], other.pixels[row]
            if one != two and any(abs(here - there) >= _ALIKE for here, there in zip(one, two, strict=True)):
                return True
        return False

    def has_ink(self, box: PageBox, ink: _Colour) -> bool:
        """Whether something of this colour stands out in a box."""
        nearest, farthest = 255, 0
        for row in self._rows(box):
            pixels = self.pixels[row]
            for blue, green, red in zip(pixels[0::4], pixels[1::4], pixels[2::4], strict=True):
                distance = max(abs(red - ink[0]), abs(green - ink[1]), abs(blue - ink[2]))
                nearest, farthest = min(nearest, distance), max(farthest, distance)
        return nearest < _NEAR and farthest - nearest >= _INK


def _render(page: Any, scale: float) -> _Picture:
    with closing(page.render(scale=scale, force_bitmap_format=pdfium.FPDFBitmap_BGRx)) as bitmap:
        return _Picture(bytes(bitmap.buffer), bitmap.width, bitmap.height, bitmap.stride)

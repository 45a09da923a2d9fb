"""One declared way to compare texts that differ only in how they were typed or laid out.

What `normalise` makes equal, and nothing else:

- white space: any run, line breaks and no-break spaces included, is one space; none before
  `; : ! ? % € »` nor after `«` (French typography)
- quotation marks: “ ” „ « » are `"`, ‘ ’ ‚ ‹ › ´ ` are `'`
- dashes: all are `-`; between two letters none is left, nor the line break after it, because at the
  end of a line nobody can tell a hyphenated word from a compound
- soft hyphens, zero-width and direction characters are removed
- ligatures and the ellipsis are spelt out: ﬁ → fi, œ → oe, … → ...
- powers: a number after `^` is raised, `10^6` is `10⁶`
- accents: base letter and combining marks are composed (NFC), so that é is é however it was typed
- on request: letter case; accents themselves; and markup, that is Markdown emphasis, link targets,
  block quote signs, citation marks and footnote marks (see `raised`)

The result remembers where each of its characters comes from, so a match found in it gives exact
offsets in the original.

A raised digit is a Unicode superscript (`10⁶`, `m²`), never a digit of the line, so that no number grows by it. Readers
set a footnote mark apart from the word before it: `500 ¹ euros`. What is set apart says nothing about its sentence.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from dataclasses import dataclass

RAISED_DIGITS = "⁰¹²³⁴⁵⁶⁷⁸⁹"
_DIGITS, _SIGNS, _BRACKETS = "0123456789", "+-−–", "()"
_LETTERS = "abcdefghijklmnoprstuvwxyz"  # Unicode 9 has no raised q
_RAISED_LETTERS = "ᵃᵇᶜᵈᵉᶠᵍʰⁱʲᵏˡᵐⁿᵒᵖʳˢᵗᵘᵛʷˣʸᶻ"
TO_RAISED = str.maketrans(_DIGITS + _SIGNS + _BRACKETS, RAISED_DIGITS + "⁺⁻⁻⁻⁽⁾")
TO_RAISED_LETTER = str.maketrans(_LETTERS, _RAISED_LETTERS)
RAISED = f"{RAISED_DIGITS}⁺⁻⁽⁾{_RAISED_LETTERS}"  # for use inside a character class

# As readers leave it: alone between white space and punctuation.
_FIRST = f"[{RAISED_DIGITS}⁽{_RAISED_LETTERS}]"
FOOTNOTE_MARK = rf"(?<!\S){_FIRST}[{RAISED}]{{0,3}}(?:,[{RAISED}]{{1,4}}){{0,9}}(?=[\s.,;:!?|)\]\"»”]|\Z)"
_FOOTNOTE_MARK = re.compile(rf"[ \t]?{FOOTNOTE_MARK}")
# What compatibility decomposition (NFKD) would make one number with the digit before it: "10⁶", "3½".
_AFTER_DIGIT = re.compile(rf"(?<=\d)(?=[{RAISED_DIGITS}⁻⁺¼-¾⅐-⅞])")

_S = "[ \t\u00a0\u202f]"
# A citation mark: [C1], [c1], [C 1], [C1, C2], [C1, 2], [C1-3], also in full-width brackets. Every repetition is
# bounded, so that a stream knows when an opening bracket can no longer become a mark.
MARK = (
    rf"[\[［【]{_S}?[Cc]{_S}?[0-9]{{1,9}}"
    rf"(?:{_S}{{0,2}}[,;–-]{_S}{{0,2}}(?:[Cc]{_S}?)?[0-9]{{1,9}}){{0,63}}{_S}?[\]］】]"
)
OPENING = "[［【"
BEFORE_MARK = OPENING + ",;."
# As far as a stream has brought it.
_PARTIAL_MARK = rf"(?:[{re.escape(OPENING)}][ \t\u00a0\u202fCc0-9,;–-]{{0,2000}})?\Z"
_BEFORE = r"[ \t]*+(?:[,;.][ \t]*+)?"  # white space in one way only: any other takes long to fail
MARKS = re.compile(rf"(?:{_BEFORE}{MARK})+\.?")
MARKS_OPEN = re.compile(rf"{_BEFORE}{_PARTIAL_MARK}")

_DASHES = "-\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63\uff0d"
_DOUBLE_QUOTES = "“”„‟«»〝〞＂"
_SINGLE_QUOTES = "‘’‚‛‹›´`ʼ＇"
_INVISIBLE = "\u00ad\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufe00-\ufe0f\ufeff"
_COMBINING = "\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff"
_MOST_COMBINING = 100  # marks composed at once, in quadratic time; no writing needs over 30 (UAX #15, Stream-Safe Text)
_EXPANSIONS = {
    "…": "...", "ﬀ": "ff", "ﬁ": "fi", "ﬂ": "fl", "ﬃ": "ffi", "ﬄ": "ffl", "ﬅ": "st", "ﬆ": "st",
    "œ": "oe", "Œ": "OE", "æ": "ae", "Æ": "AE", "ĳ": "ij", "Ĳ": "IJ",
    "\u2126": "\u03a9", "\u212a": "K", "\u212b": "\u00c5",  # signs that NFC turns into letters
}  # fmt: skip
_TIGHT_BEFORE = ";:!?%€»"  # no space before these
_DASH = re.escape(_DASHES)  # for use inside a character class
_SPACES = "\t-\r\x1c-\x1f\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"  # all of \\s but " "
_LETTER = r"[^\W\d_]"
_CONTROLS = re.compile("[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")


def _pattern(markup: bool) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """A quick search for places that may change in length, and the edits tried at such a place."""
    hidden = _INVISIBLE + ("*`" if markup else "")
    run = rf"[\s{hidden}]"
    quoted = r"\n[ \t]*(?:>[ \t]?)+|" if markup else ""
    edits = [
        r"(?P<power>(?<=\w)\^[({]?[-−+]?[0-9]{1,4}[)}]?)",
        rf"(?P<dash>(?:(?<={_LETTER})|(?<=[{_COMBINING}]))[{hidden}]*[{_DASH}][{hidden}]*"
        rf"(?:[ \t]*\r?\n\s*)?(?={_LETTER}))",
        rf"(?P<soft>(?:(?<={_LETTER})|(?<=[{_COMBINING}]))\u00ad[ \t]*\r?\n\s*(?={_LETTER}))",
        rf"(?P<space>(?:{quoted}{run})+)",
        rf"(?P<guillemet>«{run}*)",
        rf"(?P<combining>[{_COMBINING}]{{1,{_MOST_COMBINING}}})",
        rf"(?P<expansion>[{''.join(_EXPANSIONS)}])",
        r"(?P<dotted>İ)",
    ]
    # One character class and one look ahead: the search must not slow down on plain text.
    places = rf"\^{_SPACES}{hidden}{_DASH}«İ{''.join(_EXPANSIONS)}{_COMBINING}"
    following = rf"\s{hidden}{_TIGHT_BEFORE}"
    if markup:
        edits[:0] = [
            rf"(?P<mark>{run}*(?:{MARK}|{FOOTNOTE_MARK}))",
            r"(?P<link>!?\[(?=[^\[\]\n]{0,300}\]\([^()\s]{0,2000}\))|\]\([^()\s]{0,2000}\))",
            r"(?P<emphasis>(?<!\w)_+(?=\w)|(?<=[^\s_])_+(?!\w)|~~)",
        ]
        places += rf"\[\]_~［【!{RAISED_DIGITS}"
        following += rf"\[［【{RAISED}"
    return re.compile(rf"[{places}]| (?=[{following}])"), re.compile("|".join(edits))


_EDITS = {markup: _pattern(markup) for markup in (False, True)}


def _same_length(fold_accents: bool) -> tuple[re.Pattern[str], dict[str, str]]:
    """Replacements of one character by one, which leave every offset where it is."""
    table = dict.fromkeys(_DASHES[1:], "-") | dict.fromkeys(_DOUBLE_QUOTES, '"')
    table |= dict.fromkeys(_SINGLE_QUOTES, "'") | {"ς": "σ"}
    if fold_accents:
        for code in (*range(0xC0, 0x250), *range(0x370, 0x530), *range(0x1E00, 0x2000)):
            base = unicodedata.normalize("NFD", chr(code))[0]
            if base != chr(code):
                table[chr(code)] = base
    return re.compile(f"[{''.join(table)}]"), table


_SAME_LENGTH = {fold_accents: _same_length(fold_accents) for fold_accents in (False, True)}


@dataclass(frozen=True)
class Normalised:
    """A normalised text and the way back.

    The text is cut into pieces. A piece either stands in the original character for character, or
    replaces one stretch of it.
    """

    text: str
    _starts: list[int]  # first normalised character of each piece
    _origins: list[int]  # first original character of each piece
    _ends: list[int]  # one past the last original character of a replacement; -1 for a verbatim piece

    def original(self, start: int, end: int) -> tuple[int, int]:
        """The stretch [start, end) of the original that the non-empty match [start, end) comes from.

        Raises IndexError when the match is empty or leaves the text.
        """
        if not 0 <= start < end <= len(self.text):
            raise IndexError(f"[{start}, {end}) is not a match in a text of {len(self.text)} characters")
        return self._character(start)[0], self._character(end - 1)[1]

    def position(self, offset: int) -> int:
        """The first normalised character that comes from `offset` of the original or later."""
        piece = bisect_right(self._origins, offset) - 1
        if piece < 0:
            return 0
        start, end = self._starts[piece], self._ends[piece]
        following = self._starts[piece + 1] if piece + 1 < len(self._starts) else len(self.text)
        if end >= 0:
            return start if offset == self._origins[piece] else following
        return min(start + offset - self._origins[piece], following)

    def _character(self, index: int) -> tuple[int, int]:
        piece = bisect_right(self._starts, index) - 1
        origin, end = self._origins[piece], self._ends[piece]
        if end >= 0:
            return origin, end
        at = origin + index - self._starts[piece]
        return at, at + 1


def normalise(text: str, *, fold_case: bool = False, fold_accents: bool = False, markup: bool = False) -> Normalised:
    """Normalises `text` as the module declares, in linear time.

    `markup` leaves out Markdown emphasis, link targets, block quote signs, citation marks and footnote marks.
    """
    pieces: list[str] = []
    starts: list[int] = []
    origins: list[int] = []
    ends: list[int] = []
    find, edit = _EDITS[markup]
    copied = length = position = 0

    def add(piece: str, origin: int, end: int) -> None:
        nonlocal length
        if piece:
            pieces.append(piece)
            starts.append(length)
            origins.append(origin)
            ends.append(end)
            length += len(piece)

    while suspect := find.search(text, position):
        change = edit.match(text, suspect.start())
        if change is None:
            position = suspect.end()
            continue
        start, end = change.span()
        if change.lastgroup == "combining" and start > copied:
            start -= 1  # the marks compose with the letter before them
        add(text[copied:start], copied, -1)
        add(_replacement(text[start:end], change, fold_accents), start, end)
        copied = position = end
    add(text[copied:], copied, -1)
    result = _replace_same_length("".join(pieces), fold_accents)
    return Normalised(result.lower() if fold_case else result, starts, origins, ends)


def replace_unstorable(text: str) -> str:
    """Return a text with the replacement character for what can be neither stored nor sent, and what steers terminals.

    Halves of surrogate pairs, and all control characters but tab, line feed and carriage return.
    """
    return _CONTROLS.sub("\ufffd", text).encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def strip_accents(text: str) -> str:
    """A normalised text without its accents, character for character: offsets stay as they are."""
    return _replace_same_length(text, True)


def _replace_same_length(text: str, fold_accents: bool) -> str:
    if text.isascii():
        return text.replace("`", "'")
    pattern, table = _SAME_LENGTH[fold_accents]
    return pattern.sub(lambda character: table[character[0]], text)


def _replacement(found: str, change: re.Match[str], fold_accents: bool) -> str:
    match change.lastgroup:
        case "space":
            following = change.string[change.end() : change.end() + 2]
            dropped = following[:1] in tuple(_TIGHT_BEFORE) and following != "!["  # which is an image
            return "" if dropped or not any(character.isspace() for character in found) else " "
        case "guillemet":
            return '"'
        case "combining":
            if fold_accents:
                return "" if unicodedata.combining(found[0]) else found[0]
            return unicodedata.normalize("NFC", found).replace("İ", "I")
        case "power":
            return found.strip("^(){}").translate(TO_RAISED)
        case "expansion":
            return _EXPANSIONS[found]
        case "dotted":
            return "I"
    return ""  # dash, soft, mark, link, emphasis


def without_marks(text: str) -> str:
    """The text without the footnote marks that are set apart in it."""
    return text if text.isascii() else _FOOTNOTE_MARK.sub("", text)


def keep_numbers_apart(text: str) -> str:
    """The text with a sign between a digit and what is raised behind it: decomposed, "10⁶" must not become "106"."""
    return _AFTER_DIGIT.sub("^", text)

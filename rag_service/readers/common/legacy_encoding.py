"""Recognises encodings from before Unicode by what they make of the bytes that are not ASCII.

Statistics of bytes need pages of text. A short note has a handful of such bytes, but each stands in a word. In the
right encoding it is a letter of one language's alphabet and fits the case of its neighbours; in a wrong one it is a
sign in the middle of a word, a capital behind a small letter, or a rare ideograph.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass

# In order of preference where two make the same of a text; what is common first.
_SINGLE_BYTE = (
    "cp1252", "mac_roman", "cp850", "cp1250", "iso8859-2", "cp1251", "koi8-r", "koi8-u", "cp866", "iso8859-5",
    "mac_cyrillic", "cp1253", "iso8859-7", "cp1254", "cp1257", "cp437", "cp852", "iso8859-15", "cp1255", "cp1256",
    "cp874",
)  # fmt: skip
# Encodings of two bytes → the first bytes of their common ideographs and syllables, which their authors put first.
_TWO_BYTE = {
    "cp932": (0x88, 0x98), "euc_jp": (0xB0, 0xCF), "gb18030": (0xB0, 0xD7), "big5": (0xA4, 0xC6), "cp949": (0xB0, 0xC8),
}  # fmt: skip
_ALPHABETS = tuple(
    frozenset(letters)
    for letters in (
        "áéíóúüñç", "àâçéèêëîïôûùüÿœ", "áâãàçéêíóôõúü", "äöüßé", "àèéìòùíú", "åäöéü", "æøåéèêóôäöü", "ąćęłńóśźż",
        "áčďéěíňóřšťúůýž", "áäčďéíĺľňóôŕšťúýž", "áéíóöőúüű", "ăâîșțşţ", "čćđšž", "çğıöşüâîû", "áðéíóúýþæö",
        "õäöüšž", "ąčęėįšųūž", "āčēģīķļņšūž", "ëéèïöüóáäâêî", "àéèíïóòúüç", "ëçé", "ğəıöüçş",
        "абвгдежзийклмнопрстуфхцчшщъыьэюяё", "абвгдежзийклмнопрстуфхцчшщьюяєіїґ", "абвгдђежзијклљмнњопрстћуфхцчџш",
        "абвгдежзийклмнопрстуфхцчшыьэюяёіў", "αβγδεζηθικλμνξοπρσςτυφχψωάέήίόύώϊϋΐΰ",
    )
)  # fmt: skip
_FREQUENT = frozenset("оеаинтсрвлαοιετσνηυρ")  # half of all letters of a Russian or Greek text
_AFTER = {"œ": "u", "ã": "oes"}  # the letters that follow, in the languages that have them
_SIGNS = frozenset("€£¥°§©®™“”„‘’‚‹›–—…•·¿¡«»ªº½¼¾²³±×÷№、。・「」（）！？：，；％￥～ー")
_IN_WORDS = frozenset("’·ªº")  # signs that stand between letters
_SAMPLE = 4_000  # bytes around which nothing more is learned
# Of what such files mostly are, in points per character.
_PREFERENCES = {"cp1252": 0.3, "mac_roman": 0.15, "cp850": 0.15, "cp1250": 0.15, "cp1251": 0.15}
_MARGIN = 0.25  # between the best and the next best, in points per character; less is a guess
_NO_TEXT, _MANY = -0.5, 0.3  # points per character, and share of such characters, of what is no text
_LEAST = 0.2  # points per character of a text that was read rightly


@dataclass(frozen=True)
class Legacy:
    """A text in an encoding from before Unicode."""

    text: str
    _: KW_ONLY
    encoding: str
    is_certain: bool  # no other encoding makes a text of nearly the same quality


def decode_legacy(data: bytes) -> Legacy | None:
    """Decode bytes that are not UTF-8 in the encoding that makes the best text of them; None if none does."""
    sample = _sample(data)
    rated: dict[str, _Rated] = {}
    for encoding in (*_SINGLE_BYTE, *_TWO_BYTE):
        text = _decode(sample, encoding)
        if text is not None and text not in rated:
            rated[text] = _Rated(text, encoding, _points(text, encoding))
    if not rated:
        return None
    best, *others = sorted(rated.values(), key=lambda one: -one.mean)
    if best.mean < _NO_TEXT and len(best.points) > len(sample) * _MANY:
        return None
    is_certain = best.mean >= _LEAST and all(best.is_ahead_of(other) for other in others)
    return Legacy(data.decode(best.encoding, errors="replace"), encoding=best.encoding, is_certain=is_certain)


@dataclass(frozen=True)
class _Rated:
    """What an encoding makes of the sample, and what speaks for each character that is not ASCII."""

    text: str
    encoding: str
    points: Sequence[float]

    @property
    def mean(self) -> float:
        return sum(self.points) / max(len(self.points), 1) + _PREFERENCES.get(self.encoding, 0.0)

    def is_ahead_of(self, other: _Rated) -> bool:
        """Whether another text is clearly worse: at the characters that differ, if these can be compared one by one."""
        if len(self.text) != len(other.text):
            return self.mean - other.mean >= _MARGIN
        differing = sum(a != b for a, b in zip(self.text, other.text, strict=False)) or 1
        return (self.mean - other.mean) * len(self.points) / differing >= _MARGIN


def _sample(data: bytes) -> bytes:
    """The lines with bytes that are not ASCII, as many as teach something."""
    if len(data) <= _SAMPLE:
        return data
    lines: list[bytes] = []
    size = 0
    for line in data.splitlines(keepends=True):
        if size >= _SAMPLE:
            break
        if not line.isascii():
            lines.append(line[:_SAMPLE])
            size += len(lines[-1])
    return b"".join(lines)


def _decode(sample: bytes, encoding: str) -> str | None:
    """The text, unless much of it is undefined in an encoding; the end may be cut within a character."""
    text = sample.decode(encoding, errors="replace")
    damaged = text.count("\ufffd")
    return text if damaged <= 1 or damaged * 50 < len(text) else None


def _points(text: str, encoding: str) -> Sequence[float]:
    """What speaks for and against each character that is not ASCII."""
    common = _TWO_BYTE.get(encoding)
    padded = f" {text} "
    foreign = [place for place, character in enumerate(padded) if not character.isascii()]
    letters = [padded[place].lower() for place in foreign if padded[place].isalpha()]
    alphabet = max(_ALPHABETS, key=lambda letters_of: sum(map(letters_of.__contains__, letters)))
    points = []
    for place in foreign:
        before, character, after = padded[place - 1], padded[place], padded[place + 1]
        if common is not None:
            points.append(_ideograph(before, character, after, encoding, common))
        elif character.isalpha() or unicodedata.combining(character):
            points.append(_letter(before, character, after, alphabet))
        else:
            points.append(_sign(before, character, after))
    return points


def _letter(before: str, character: str, after: str, alphabet: frozenset[str]) -> float:
    """Of an alphabet, and in the case of its word."""
    if _is_latin(character) is not True and (_is_latin(before) or _is_latin(after)):
        return -2.0  # two scripts in one word
    if character.isupper() and (before.islower() or (before.isalpha() and after.islower())):
        return -2.0
    if character.isupper() and not before.isalpha() and not after.isalpha():
        return 0.3  # a capital by itself
    if character.islower() and after.isupper() and not before.islower():
        return -1.5
    if "\u0590" <= character <= "\u0e7f":  # Hebrew, Arabic, Thai: no case, but marks that need a letter
        return 1.3 if not unicodedata.combining(character) or before.isalpha() else -1.5
    if character == "ς" and after.isalpha():
        return -1.5
    if after.isalpha() and after not in _AFTER.get(character, after):
        return -1.0
    if character.lower() not in alphabet:
        return -1.0
    return 1.0 if _is_latin(character) else 0.8 + 0.7 * (character.lower() in _FREQUENT)


def _sign(before: str, character: str, after: str) -> float:
    if character in "\ufffd" or unicodedata.category(character) in ("Cc", "Cn", "Co"):
        return -3.0
    if character == "\u00a0":
        return 0.2
    if "\u2500" <= character <= "\u259f":  # frames of tables
        return 0.5 if "\u2500" <= before <= "\u259f" or "\u2500" <= after <= "\u259f" else -2.0
    if before.isalpha() and after.isalpha() and character not in _IN_WORDS:
        return -2.0
    if character in "¿¡«„‘‚‹":
        return 0.8 if not before.isalnum() else -1.0
    if character in "€£":
        return -1.0 if before.isalpha() or after.isalpha() else 0.8
    if character in "¥°²³":
        return 0.8 if before.isdigit() or after.isdigit() or before == " " else -0.5
    return 0.5 if character in _SIGNS else -1.0


def _ideograph(before: str, character: str, after: str, encoding: str, common: tuple[int, int]) -> float:
    if character == "\ufffd" or unicodedata.category(character) in ("Cc", "Cn", "Co"):
        return -3.0
    if _is_ascii_letter(before) or _is_ascii_letter(after):
        return -1.5
    if "\uff61" <= character <= "\uff9f":  # half of a katakana: what single bytes become
        return -0.5
    if "\uac00" <= character <= "\ud7a3" and common[0] <= character.encode(encoding)[0] <= common[1]:
        return 1.3
    if "\u3040" <= character <= "\u30ff":
        return 1.3 if encoding in ("cp932", "euc_jp") else -0.5
    if character in _SIGNS or "\uff01" <= character <= "\uff5e":
        return 0.5
    encoded = character.encode(encoding, errors="replace")
    if len(encoded) != 2 or not common[0] <= encoded[0] <= common[1]:
        return -1.0
    return 1.0 if encoding in ("cp932", "big5") or encoded[1] >= 0xA1 else -1.0


def _is_latin(character: str) -> bool | None:
    """Whether a letter is Latin; None: no letter."""
    if not character.isalpha():
        return None
    return character < "\u0250" or "\u1e00" <= character <= "\u1eff"


def _is_ascii_letter(character: str) -> bool:
    return character.isascii() and character.isalpha()

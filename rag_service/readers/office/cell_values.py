"""Values of Excel cells as a person would type them: by their kind, and by what the number format shows."""

from __future__ import annotations

import datetime
import math
import re
from decimal import Decimal

from rag_service.readers.common.builder import one_line

# In a number format: its digits, language tags, and currencies such as `[$€-407]`, `"CHF"` or `$`.
_PLACE = re.compile(r"[0#?]")
_LOCALE = re.compile(r"\[\$-[^\]]*\]")
_CURRENCY = re.compile(r'\[\$(?P<named>[^\]\s-]{1,5})[^\]]*\]|"\s*(?P<code>[A-Z]{3})\s*"|(?P<symbol>[€$£¥₹])')
_ESCAPED = re.compile("_x00[01][0-9A-F]_")  # a control character, such as the first half of a line end of Windows
_SPACE_KEPT = re.compile(r"(?<!\\)[_*].")  # as wide as a character, or filled with it
_CODE = re.compile(r"0{2,}|0+(?:[-/ ]0+)+")  # digits of a fixed number, perhaps in groups
_CONDITION = re.compile(r"\[[<>=]")  # of a section: `[<1]0.00`
_PIECE = re.compile(r'"([^"]*)"|\\(.)|(General|[0#?.,]+)|(.)')


def render(value: object, number_format: str = "General") -> str:
    """A cell's value on one line, as a person would type it."""
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, int | float):
        if number_format == "General":
            return _number(value)
        unquoted = "".join(number_format.split('"')[0::2])  # `0.0%` is a percentage, `0 "% of sales"` is not
        if "%" in unquoted and abs(value) < 1e13:
            return _number(round(value * 100, 10)) + "%"
        return _as_code(value, number_format) or _with_unit(value, number_format)
    if isinstance(value, datetime.datetime):
        is_midnight = value.time() == datetime.time(0)
        return value.date().isoformat() if is_midnight else f"{value.date().isoformat()} {_time(value.time())}"
    if isinstance(value, datetime.date):
        return value.isoformat()
    if isinstance(value, datetime.time):
        return _time(value)
    if isinstance(value, datetime.timedelta):
        return _duration(value)
    return one_line(_ESCAPED.sub(" ", str(value)))


def _time(value: datetime.time) -> str:
    return value.isoformat(timespec="seconds" if value.second or value.microsecond else "minutes")


def _duration(value: datetime.timedelta) -> str:
    """Hours, minutes and seconds, as the formats of durations show them: "30:05"."""
    seconds = round(abs(value).total_seconds())
    sign = "-" if value < datetime.timedelta() else ""
    shown = f"{sign}{seconds // 3600}:{seconds // 60 % 60:02}"
    return f"{shown}:{seconds % 60:02}" if seconds % 60 else shown


def _as_code(value: int | float, number_format: str) -> str:
    """A number that its format writes with leading zeros or in groups, such as a post code: "01234", "555-0123"."""
    code = _CODE.fullmatch(_plain_format(number_format).replace('"', ""))
    if code is None or value < 0 or value % 1:
        return ""
    groups = re.split("([-/ ])", code[0])
    digits = str(int(value)).zfill(sum(map(len, groups[::2])))
    shown = ""
    for group in reversed(groups[1:]):
        cut = len(digits) - len(group)
        shown, digits = (digits[cut:] + shown, digits[:cut]) if "0" in group else (group + shown, digits)
    return digits + shown


def hides(value: object, number_format: str) -> bool:
    """Whether a number format shows nothing of a value: `;;;`, or `0;-0;` for zero."""
    if ";" not in number_format:
        return False
    section = _section(value, number_format)
    return section is not None and not _LOCALE.sub("", section).strip()


def _section(value: object, number_format: str) -> str | None:
    """The part of a format that is for a value: positive, negative, zero or text; None: it has no such parts."""
    sections = re.split(r';(?=(?:[^"]*"[^"]*")*[^"]*\Z)', number_format)
    if len(sections) == 1 or _CONDITION.search(number_format):
        return None
    if isinstance(value, str):
        return sections[3] if len(sections) > 3 else None
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    return sections[1 if value < 0 else 2 if value == 0 and len(sections) > 2 else 0]


def _with_unit(value: int | float, number_format: str) -> str:
    """The number with the currency or the words that its format writes around it: "5 kg", "A-042", "yes"."""
    number = _number(value)
    priced = _with_currency(number, number_format)
    return priced if priced != number else _with_words(value, _section(value, number_format) or number_format) or number


def _with_words(value: int | float, section: str) -> str:
    """A number with the words in quotes of its format; empty if there are none, or it shows another number."""
    before, after, places = "", "", list[str]()
    for quoted, escaped, place, other in _PIECE.findall(_SPACE_KEPT.sub("", _LOCALE.sub("", section))):
        if place:
            places.append(place)
        elif other and other not in " -+()":
            return ""
        elif places:
            after += quoted or escaped or " " * (other == " ")
        else:
            before += quoted or escaped or " " * (other == " ")
    if not any(character.isalnum() or character == "%" for character in before + after):
        return ""
    if len(places) > 1 or (places and places[0].endswith(",")):  # a fraction, or thousands
        return ""
    number = _number(value) if places else ""
    if places and before.strip() and _CODE.fullmatch(places[0]) and value >= 0 and not value % 1:
        number = str(int(value)).zfill(len(places[0]))
    return one_line(f"{before}{number}{after}")


def _plain_format(number_format: str) -> str:
    """The format of positive numbers with its texts in quotes, and without the space that it keeps free."""
    shown = _SPACE_KEPT.sub("", _LOCALE.sub("", number_format.split(";")[0]))
    return re.sub(r"\\(.)", r'"\1"', shown).replace('""', "").strip()


def _with_currency(number: str, number_format: str) -> str:
    """The number with the currency that its format shows: "349.50 €", "$12", "1200 CHF"."""
    shown = number_format.split(";")[0]  # of positive numbers; the others follow
    place = _PLACE.search(shown)
    currency = _CURRENCY.search(_LOCALE.sub("", shown))
    if place is None or currency is None:
        return number
    symbol = currency["named"] or currency["code"] or currency["symbol"]
    if number.partition(".")[2].isdigit() and len(number.partition(".")[2]) == 1:
        number += "0"  # tenths of a currency are written as hundredths
    if shown.find(symbol) > place.start():
        return f"{number} {symbol}"
    sign, digits = ("-", number[1:]) if number.startswith("-") else ("", number)
    return f"{sign}{symbol} {digits}" if symbol.isalpha() else f"{sign}{symbol}{digits}"


def _number(value: int | float) -> str:
    """Fifteen significant digits, as Excel itself keeps: 0.15, never 0.15000000000000002."""
    if isinstance(value, int):
        return str(value)
    short = f"{value:.15g}"
    if short.isascii() and "e" not in short and "n" not in short:
        return "0" if value == 0 else short  # no exponent, and not infinite: most values
    if not math.isfinite(value) or not 1e-12 < abs(value) < 1e18:
        return "0" if value == 0 else short
    return format(Decimal(short), "f")

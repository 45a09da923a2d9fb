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
_UNIT = re.compile(r'(?:[0#?.,]*[0#?]|General)( *)"( *)([^\W\d_]{1,12}[²³]?)\.?"')  # one word behind the number


def render(value: object, number_format: str = "General") -> str:
    """A cell's value on one line, as a person would type it."""
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, int | float):
        unquoted = "".join(number_format.split('"')[0::2])  # `0.0%` is a percentage, `0 "% of sales"` is not
        if "%" in unquoted and abs(value) < 1e13:
            return _number(round(value * 100, 10)) + "%"
        return _as_code(value, number_format) or _with_unit(_number(value), number_format)
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


def _with_unit(number: str, number_format: str) -> str:
    """The number with the currency or the word that its format writes behind it: "5 kg"."""
    priced = _with_currency(number, number_format)
    unit = _UNIT.fullmatch(_plain_format(number_format))
    if unit is None or priced != number:
        return priced
    return f"{number}{' ' * bool(unit[1] or unit[2])}{unit[3]}"


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
    if not math.isfinite(value) or not 1e-12 < abs(value) < 1e18:
        return "0" if value == 0 else short
    return format(Decimal(short), "f")

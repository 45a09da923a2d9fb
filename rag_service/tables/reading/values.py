"""The kind of a column and the numbers in its cells, decided by the whole column.

`1.234` is a thousand in one file and a little over one in another. A column tells by its other cells; where it does
not, it stays text.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal, InvalidOperation
from functools import cache, partial

from rag_service.language.languages import languages_of, union_of
from rag_service.language.raised import MARK
from rag_service.language.words import fold, words
from rag_service.tables.model import CURRENCIES, Kind

MIN_SHARE = 0.8  # of the filled cells that must be of a kind; the others are left out of computations, and told

_SIGN = r"(?:US\$|R\$|[€$£¥₹]|(?:EUR|USD|GBP|CHF|BRL|MXN|CAD|AUD|JPY|INR|CNY|SEK|NOK|DKK|PLN)\b)"
_FIGURE = re.compile(
    rf"(?P<open>\()?\s*(?P<minus>[-−–+])?\s*(?P<before>{_SIGN})?\s*(?P<second>[-−–])?\s*"
    r"(?P<digits>\d+(?:[.,'’ \u00a0\u202f]\d+)*)"
    rf"(?:\s*(?P<after>%|{_SIGN}|euros?\b)|\s+(?P<unit>[^\W\d_][^\W\d_/²³]{{0,11}})|(?P<tight>[^\W\d_]{{1,2}}[²³]?))?"
    r"\s*(?P<close>\))?",
    re.IGNORECASE,
)
_FOOTNOTE = re.compile(rf"(?:\s*(?:[*†‡]+|\(\d\))|\s+{MARK})$")
_LONE_DIGIT = re.compile(r"\(\d\)")  # beside other figures no footnote mark: minus one
_PERCENT_OUTSIDE = re.compile(r"\)\s*%$")
_SIGN_OUTSIDE = re.compile(r"^([$€£])\s*\(")
_SPACES = re.compile(r"['’ \u00a0\u202f]")
_GROUPED = re.compile(r"\d{1,3}(?:['’ \u00a0\u202f]\d{3})+(?:[.,]\d+)?")
_NOTHING = frozenset({"-", "–", "—", "--", "n/a", "na", "n.a.", "nd", "n/d", "n.d.", "s/d", "s.o.", "?", "...", "…"})
_ERROR = re.compile(r"#[A-Z0-9/]+[!?]?|=.+", re.DOTALL)  # "#DIV/0!", and formulas without a stored value
_ISO = re.compile(r"(\d{4})-(\d\d)-(\d\d)(?: \d\d:\d\d(?::\d\d)?)?")
_DATE = re.compile(r"(\d{1,2})([./-])(\d{1,2})\2(\d{4})")
_MONTH = re.compile(r"(?P<year>(?:19|20)\d\d)[-/](?P<month>0[1-9]|1[0-2])|(0?[1-9]|1[0-2])[-/.]((?:19|20)\d\d)")
_UNIT_IN_NAME = re.compile(r"\s*[(\[]\s*([^()\[\]]{1,30}?)\s*[)\]]\s*$")
_MIN_WHOLE = 2  # digits before the separator of some amount
# A spreadsheet holds 15 digits, and so does a median. A longer number is a code, or nothing that can be computed with.
_MAX_WHOLE, _MAX_DECIMALS = 15, 30

NumberOf = Callable[[str], Decimal | None]  # the number of a cell; None: it is not of the kind of its column


@dataclass(frozen=True, kw_only=True)
class ColumnValues:
    """What the cells of a column are, and how their numbers are read."""

    kind: Kind
    number_of: NumberOf = lambda _: None
    unit: str | None = None
    mixed: tuple[str, ...] = ()  # currencies, where there are several


def is_nothing(text: str) -> bool:
    """Whether a cell says that it has no value: "—", "n/a"."""
    return fold(text) in _NOTHING


def read_column(texts: Sequence[str], *, decimal: str | None = None, may_be_months: bool = False) -> ColumnValues:
    """The kind of a column, and how the number of a cell is read.

    Args:
        texts: the filled cells.
        decimal: the decimal separator of the rest of the file, for columns that do not tell theirs.
        may_be_months: whether "2024-03" is a month, not a code.
    """
    filled = {text: count for text, count in Counter(texts).items() if not _has_no_value(text)}
    if not filled:
        return ColumnValues(kind=Kind.TEXT)
    readers: tuple[Callable[[Mapping[str, int]], ColumnValues | None], ...] = (
        _read_booleans,
        _read_dates,
        _read_months if may_be_months else lambda _: None,
        lambda cells: _read_figures(cells, decimal),
    )
    found = next(filter(None, (read(filled) for read in readers)), ColumnValues(kind=Kind.TEXT))
    if found.kind is Kind.TEXT:
        return found
    read = found.number_of
    return replace(found, number_of=lambda text: None if _has_no_value(text) else read(text))


def _has_no_value(text: str) -> bool:
    return is_nothing(text) or _ERROR.fullmatch(text) is not None


def split_unit(name: str) -> tuple[str, str | None]:
    """A column's name without the unit in brackets behind it, and that unit: "Weight (kg)"."""
    match = _UNIT_IN_NAME.search(name)
    if match is None or not name[: match.start()].strip():
        return name, None
    return name[: match.start()].strip(), CURRENCIES.get(fold(match[1]), match[1])


def find_unit(text: str) -> str:
    """What a line says about the unit of all figures: "Dollars in millions, except per share data"; empty: nothing."""
    bare = text.strip().strip("()[]").strip()
    if len(bare) > 100:
        inside = re.findall(r"\(([^()]{4,80})\)", text)
        bare = next((one for one in inside if _scale_words() & set(words(one))), "")
    elif "(" in bare:
        inside = re.findall(r"\(([^()]{4,80})\)?", bare)
        bare = next((one for one in inside if _scale_words() & set(words(one))), bare)
    return bare if _scale_words() & set(words(bare)) and not re.search(r"\d{3}", bare) else ""


@cache
def _scale_words() -> frozenset[str]:
    return union_of(names for data in languages_of(None) for names in data.tables.scales.values())


def normal_figure(text: str) -> str | None:
    """A figure of a report as columns write it: "(5.3) %" is "(5.3%)", "$ (16)" is "($16)"; None if it is none."""
    found = _SIGN_OUTSIDE.sub(r"(\1", _PERCENT_OUTSIDE.sub("%)", text.strip()))
    return found if _match(found) is not None or _LONE_DIGIT.fullmatch(found) else None


def read_figure(text: str, decimal: str | None) -> Decimal | None:
    """The number of a figure; None if it is none, or its separator could be read in two ways.

    `decimal`: the decimal separator of the table or the file.
    """
    found = normal_figure(text)
    if found is None:
        return None
    if _LONE_DIGIT.fullmatch(found):
        return -Decimal(found.strip("()"))
    match = _match(found)
    if match is None or match["unit"] or match["tight"]:
        return None
    shown, is_open = _separators([match["digits"]])
    if decimal is None and (is_open or len(shown) > 1):
        return None
    return _number(match, decimal or (shown.pop() if shown else "."))


def decimal_of(texts: Sequence[str]) -> str | None:
    """The decimal separator that the figures of a column show; None if they do not."""
    matches = [match for text in texts if (match := _match(text))]
    shown, _ = _separators([match["digits"] for match in matches])
    return shown.pop() if len(shown) == 1 else None if shown else _decimal_of_amounts(matches)


def _read_booleans(texts: Mapping[str, int]) -> ColumnValues | None:
    yes, no = _yes_and_no()
    found = [fold(text) for text in texts]
    if not all(text in yes or text in no for text in found) or all(text.isdigit() for text in found):
        return None
    return ColumnValues(kind=Kind.BOOLEAN, number_of=lambda text: Decimal(fold(text) in yes))


@cache
def _yes_and_no() -> tuple[frozenset[str], frozenset[str]]:
    every = languages_of(None)
    return union_of(data.tables.yes for data in every), union_of(data.tables.no for data in every)


def _read_dates(texts: Mapping[str, int]) -> ColumnValues | None:
    if all(_ISO.fullmatch(text) for text in texts):
        return _dates(texts, _iso_day)
    parts = [_day_and_month(text) for text in texts]
    if None in parts:
        return None
    known = [part for part in parts if part is not None]
    day_first = any(first > 12 for first, *_ in known) or all(sign == "." for *_, sign in known)
    month_first = any(second > 12 for _, second, *_ in known)
    if day_first == month_first:
        return None  # 03/04/2025 alone may be either
    return _dates(texts, partial(_written_day, day_first=day_first))


def _read_months(texts: Mapping[str, int]) -> ColumnValues | None:
    return _dates(texts, _first_of_month)


def _dates(texts: Mapping[str, int], number_of: NumberOf) -> ColumnValues | None:
    if any(number_of(text) is None for text in texts):
        return None
    return ColumnValues(kind=Kind.DATE, number_of=number_of)


def _iso_day(text: str) -> Decimal | None:
    match = _ISO.fullmatch(text)
    return None if match is None else _day(*map(int, match.groups()))


def _first_of_month(text: str) -> Decimal | None:
    match = _MONTH.fullmatch(text)
    return None if match is None else _day(int(match["year"] or match[4]), int(match["month"] or match[3]), 1)


def _day_and_month(text: str) -> tuple[int, int, int, str] | None:
    match = _DATE.fullmatch(text)
    return None if match is None else (int(match[1]), int(match[3]), int(match[4]), match[2])


def _written_day(text: str, *, day_first: bool) -> Decimal | None:
    found = _day_and_month(text)
    if found is None:
        return None
    first, second, year, _ = found
    return _day(year, second, first) if day_first else _day(year, first, second)


def _day(year: int, month: int, day: int) -> Decimal | None:
    try:
        return Decimal(date(year, month, day).toordinal())
    except ValueError:
        return None


def _match(text: str) -> re.Match[str] | None:
    match = _FIGURE.fullmatch(_FOOTNOTE.sub("", text).strip())
    if match is None or bool(match["open"]) != bool(match["close"]):
        return None
    digits = match["digits"]
    if _SPACES.search(digits) and not _GROUPED.fullmatch(digits):
        return None  # two numbers, or a telephone number
    if len(digits) > 1 and digits[0] == "0" and digits[1].isdigit():
        return None  # a code
    return match


def _read_figures(texts: Mapping[str, int], decimal: str | None) -> ColumnValues | None:
    figures = [(match, count) for text, count in texts.items() if (match := _match(text))]
    total = sum(count for _, count in figures)
    if total < MIN_SHARE * sum(texts.values()):
        return None
    digits = [match["digits"] for match, _ in figures]
    shown, is_open = _separators(digits)
    if not shown and is_open and decimal is None:
        decimal = _decimal_beside_whole(digits) or _decimal_of_amounts([match for match, _ in figures])
    if len(shown) > 1 or (not shown and is_open and decimal is None):
        return None
    separator = shown.pop() if shown else decimal or "."
    signs: Counter[str] = Counter()
    units: Counter[str] = Counter()
    for match, count in figures:
        if sign := _sign(match):
            signs[sign] += count
        if unit := match["unit"] or match["tight"]:
            units[unit] += count
    if units and (len(units) > 1 or units.total() < total):
        return None  # words behind some figures say that they are not the same
    currencies = tuple(sorted(sign for sign in signs if sign != "%"))
    percent = signs["%"]
    if (percent and (currencies or percent < total)) or (units and signs):
        return None
    if len(currencies) > 1:
        return ColumnValues(kind=Kind.TEXT, mixed=currencies)
    kind = Kind.PERCENTAGE if percent else Kind.CURRENCY if currencies else Kind.NUMBER
    unit = "%" if percent else currencies[0] if currencies else next(iter(units), None)
    return ColumnValues(kind=kind, number_of=lambda text: _number(_match(text), separator), unit=unit)


def _sign(match: re.Match[str]) -> str | None:
    sign = match["before"] or match["after"]
    return None if not sign else "%" if sign == "%" else CURRENCIES.get(sign.lower(), sign)


def _separators(figures: Sequence[str]) -> tuple[set[str], bool]:
    """Decimal separators that figures show, and whether one could be read in two ways."""
    shown: set[str] = set()
    is_open = False
    for figure in figures:
        digits = _SPACES.sub("", figure)
        marks = [character for character in digits if character in ".,"]
        if not marks:
            continue
        head, _, tail = digits.partition(marks[0])
        if len(set(marks)) == 2:
            shown.add(marks[-1])
        elif len(marks) > 1:
            shown.add("," if marks[0] == "." else ".")
        elif len(tail) != 3 or head == "0" or len(head) > 3 or _SPACES.search(figure):
            shown.add(marks[0])
        else:
            is_open = True
    return shown, is_open


def _decimal_beside_whole(figures: Sequence[str]) -> str | None:
    """The decimal separator of 1,850 beside 640: hundreds without a separator say that it parts thousands."""
    plain = {len(figure) for figure in figures if figure.isdigit()}
    marks = {character for figure in figures for character in figure if character in ".,"}
    if len(marks) != 1 or max(plain, default=0) != 3:
        return None
    return "." if marks == {","} else ","


def _decimal_of_amounts(figures: Sequence[re.Match[str]]) -> str | None:
    """The decimal separator of £310,500: no amount of money but a price per litre, 1,459 €, has three decimals."""
    marks = {character for figure in figures for character in figure["digits"] if character in ".,"}
    is_money = all((sign := _sign(figure)) and sign != "%" for figure in figures)
    longest = max((len(re.split("[.,]", figure["digits"])[0]) for figure in figures), default=0)
    if len(marks) != 1 or not is_money or longest < _MIN_WHOLE:
        return None
    return "." if marks == {","} else ","


def _number(match: re.Match[str] | None, separator: str) -> Decimal | None:
    if match is None:
        return None
    other = "," if separator == "." else "."
    digits = _SPACES.sub("", match["digits"])
    whole, *rest = digits.split(separator)
    groups = whole.split(other)
    if len("".join(groups)) > _MAX_WHOLE or len("".join(rest)) > _MAX_DECIMALS:
        return None
    if len(rest) > 1 or (rest and other in rest[0]) or any(len(group) != 3 for group in groups[1:]):
        return None
    try:
        value = Decimal("".join(groups) + (f".{rest[0]}" if rest else ""))
    except InvalidOperation:
        return None
    negative = match["open"] is not None or "+" not in (match["minus"] or "+") or match["second"] is not None
    return -value if negative else value

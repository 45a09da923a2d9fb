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

from rag_service.language.dates import ORDINAL_ENDINGS, read_day
from rag_service.language.languages import languages_of, load_language, union_of
from rag_service.language.normalise import FOOTNOTE_MARK
from rag_service.language.words import fold, words
from rag_service.tables.model import CURRENCIES, Kind

MIN_SHARE = 0.8  # of the filled cells that must be of a kind; the others are left out of computations, and told

_SIGN = r"(?:US\$|R\$|[€$£¥₹]|(?:EUR|USD|GBP|CHF|BRL|MXN|CAD|AUD|JPY|INR|CNY|SEK|NOK|DKK|PLN)\b)"
_FIGURE = re.compile(
    rf"(?P<open>\()?\s*(?P<minus>[-−–+])?\s*(?P<before>{_SIGN})?\s*(?P<second>[-−–])?\s*"
    r"(?P<digits>\d+(?:[.,'’ \u00a0\u202f]\d+)*|\.\d+)"
    rf"(?:\s*(?P<after>%|{_SIGN}|euros?\b)|\s+(?P<unit>[^\W\d_][^\W\d_/²³]{{0,11}})|(?P<tight>[^\W\d_]{{1,2}}[²³]?))?"
    r"\s*(?P<close>\))?",
    re.IGNORECASE,
)
# (?<!\s): tried once for each run of spaces, not once for each space
_FOOTNOTE = re.compile(rf"(?<!\s)(?:\s*(?:[*†‡]+|\(\d\)|\[\w{{1,3}}\])|\s+{FOOTNOTE_MARK})$")
_GLOSS = re.compile(r"(?<=[^\s(])\s*\([^()]+\)$")  # the same in other words: "1.83 m (6 ft 0 in)", "18th (sf)"
_DASHES = re.compile(r"[-‐-―−]+")
_LONE_DIGIT = re.compile(r"\(\d\)")  # beside other figures no footnote mark: minus one
_PERCENT_OUTSIDE = re.compile(r"\)\s*%$")
_SIGN_OUTSIDE = re.compile(r"^([$€£])\s*\(")
_SPACES = re.compile(r"['’ \u00a0\u202f]")
_GROUPED = re.compile(r"\d{1,3}(?:['’ \u00a0\u202f]\d{3})+(?:[.,]\d+)?")
_NOTHING = frozenset({"n/a", "na", "n.a.", "nd", "n/d", "n.d.", "s/d", "s.o.", "?", "...", "…"})
_ERROR = re.compile(r"#(?=.*[A-Z])[A-Z0-9/]+[!?]?|=.+", re.DOTALL)  # "#DIV/0!", and formulas without a stored value
_ISO = re.compile(r"(\d{4})-(\d\d)-(\d\d)(?: \d\d:\d\d(?::\d\d)?)?")
_DATE = re.compile(r"(\d{1,2})([./-])(\d{1,2})\2(\d{4})")
_WRITTEN_DATE = re.compile(r"(?=.*[12]\d{3})(?=.*[^\W\d_]{3}).{8,40}")  # a quick look
_DURATION = re.compile(r"(?:(?P<hours>\d{1,3}):)?(?P<minutes>\d{1,3}):(?P<seconds>[0-5]\d(?P<fraction>[.,]\d+)?)")
# Places that are shared are "T2", "=2" or "2="; lists are numbered "2." and "#2".
_ORDINAL = re.compile(r"(?P<before>[T=#]?)(?P<digits>\d{1,4})(?P<ending>=|\.?[ºª]|\.|[^\W\d_]{1,3})?")
_MONTH = re.compile(r"(?P<year>(?:19|20)\d\d)[-/](?P<month>0[1-9]|1[0-2])|(0?[1-9]|1[0-2])[-/.]((?:19|20)\d\d)")
_UNIT_IN_NAME = re.compile(r"(?<!\s)\s*[(\[]\s*([^()\[\]]{1,30}?)\s*[)\]]\s*$")
_PLACE_SIGNS = frozenset({"=", ".", "º", "ª", ".º", ".ª"})
_PLAIN_ENDINGS = frozenset({"o", "a"})  # behind the digits of codes too, where they are letters
_MONTHLY = frozenset({"month", "date"})  # what columns of months are called
_TIMED = frozenset({"time", "length"})
_MINUTES = 60  # of an hour
_MIN_WHOLE = 2  # digits before the separator of some amount
_MIN_HEADS = 3  # different numbers of thousands
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
    return _DASHES.fullmatch(text) is not None or fold(text) in _NOTHING


def read_column(
    texts: Sequence[str],
    *,
    decimal: str | None = None,
    language: str | None = None,
    concepts: frozenset[str] = frozenset(),
) -> ColumnValues:
    """The kind of a column, and how the number of a cell is read.

    Args:
        texts: the filled cells.
        decimal: the decimal separator of the rest of the file, for columns that do not tell theirs.
        language: of the file, likewise; None: not known.
        concepts: what its name stands for. "2024-03" is a month in a column of dates, else a code; 3:45 is a duration
            in a column of times, else perhaps a score.
    """
    filled = {text: count for text, count in Counter(texts).items() if not _has_no_value(text)}
    if not filled:
        return ColumnValues(kind=Kind.TEXT)
    readers: tuple[Callable[[Mapping[str, int]], ColumnValues | None], ...] = (
        _read_booleans,
        _read_dates,
        _read_months if concepts & _MONTHLY else lambda _: None,
        partial(_read_durations, is_time=bool(concepts & _TIMED)),
        _read_order,
        lambda cells: _read_figures(cells, decimal, language),
    )
    found = next(filter(None, (read(filled) for read in readers)), ColumnValues(kind=Kind.TEXT))
    if found.kind is Kind.TEXT:
        return found
    read = found.number_of
    return replace(found, number_of=lambda text: None if _has_no_value(text) else read(text))


def _has_no_value(text: str) -> bool:
    if text[:1].isdecimal():
        return False  # a quick look
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
    if not all((found := fold(text)) in yes or found in no for text in texts) or all(map(str.isdigit, texts)):
        return None
    return ColumnValues(kind=Kind.BOOLEAN, number_of=lambda text: Decimal(fold(text) in yes))


@cache
def _yes_and_no() -> tuple[frozenset[str], frozenset[str]]:
    every = languages_of(None)
    return union_of(data.tables.yes for data in every), union_of(data.tables.no for data in every)


def _read_dates(texts: Mapping[str, int]) -> ColumnValues | None:
    found = _shared(texts, _iso_day, Kind.DATE) or _shared(texts, _day_in_words, Kind.DATE)
    if found is not None or not _hold(texts, _day_and_month):
        return found or _shared(texts, _month_in_words, Kind.DATE)
    known = [part for part in map(_day_and_month, texts) if part is not None]
    day_first = any(first > 12 for first, *_ in known) or all(sign == "." for *_, sign in known)
    month_first = any(second > 12 for _, second, *_ in known)
    if day_first == month_first:
        return None  # 03/04/2025 alone may be either
    return _shared(texts, partial(_written_day, day_first=day_first), Kind.DATE)


def _read_months(texts: Mapping[str, int]) -> ColumnValues | None:
    return _shared(texts, _first_of_month, Kind.DATE)


def _read_durations(texts: Mapping[str, int], *, is_time: bool) -> ColumnValues | None:
    """Hours, minutes and seconds; two parts alone may be a score."""
    found = _shared(texts, _seconds, Kind.DURATION)
    if found is None or is_time:
        return found
    is_written = any((match := _duration(text)) and (match["hours"] or match["fraction"]) for text in texts)
    return found if is_written else None


def _read_order(texts: Mapping[str, int]) -> ColumnValues | None:
    """Places: "1st", "T2". Some cell shows that the numbers are places; cells that are all "T1" are names."""
    if not _hold(texts, _ordinal):
        return None
    matches = [match for text in texts if (match := _ordinal(text))]
    if not any(match["before"] or match["ending"] for match in matches) or all(
        match["before"] not in ("", "#") for match in matches
    ):
        return None
    return ColumnValues(kind=Kind.ORDER, number_of=_place)


def _hold(texts: Mapping[str, int], read: Callable[[str], object | None]) -> bool:
    """Whether so many cells are of a kind that the column is."""
    total = sum(texts.values())
    others, most = 0, total - MIN_SHARE * total
    for text, count in texts.items():
        others += count if read(text) is None else 0
        if others > most:
            return False
    return True


def _shared(texts: Mapping[str, int], number_of: NumberOf, kind: Kind) -> ColumnValues | None:
    return ColumnValues(kind=kind, number_of=number_of) if _hold(texts, number_of) else None


def _without_gloss(text: str) -> str:
    if text[-1:].isascii() and text[-1:].isalnum():
        return text  # a quick look: marks and glosses end otherwise
    return _GLOSS.sub("", _FOOTNOTE.sub("", text).strip())


def _duration(text: str) -> re.Match[str] | None:
    return _DURATION.fullmatch(_without_gloss(text))


def _seconds(text: str) -> Decimal | None:
    match = _duration(text)
    if match is None or (match["hours"] and int(match["minutes"]) >= _MINUTES):
        return None
    minutes = int(match["hours"] or 0) * _MINUTES + int(match["minutes"])
    return minutes * _MINUTES + Decimal(match["seconds"].replace(",", "."))


def _ordinal(text: str) -> re.Match[str] | None:
    match = _ORDINAL.fullmatch(_without_gloss(text))
    if match is None or not (ending := match["ending"]) or ending in _PLACE_SIGNS:
        return match
    return match if ending.islower() and fold(ending) in ORDINAL_ENDINGS - _PLAIN_ENDINGS else None


def _place(text: str) -> Decimal | None:
    match = _ordinal(text)
    return None if match is None else Decimal(match["digits"])


def _day_in_words(text: str) -> Decimal | None:
    return _ordinal_of_day(text, has_day=True)


def _month_in_words(text: str) -> Decimal | None:
    return _ordinal_of_day(text, has_day=False)


def _ordinal_of_day(text: str, *, has_day: bool) -> Decimal | None:
    if text.isascii() and text.upper() == text.lower():
        return None  # a quick look: it has no letters
    text = _without_gloss(text)
    if not _WRITTEN_DATE.fullmatch(text) or (found := read_day(words(text))) is None or found.has_day is not has_day:
        return None
    return Decimal(found.date.toordinal())


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
    is_plain = text.isascii() and text[-1:].isdigit()  # no footnote mark
    bare = text.strip() if is_plain else _FOOTNOTE.sub("", text).strip()
    match = _FIGURE.fullmatch(bare) or _FIGURE.fullmatch(_GLOSS.sub("", bare))
    if match is None or bool(match["open"]) != bool(match["close"]):
        return None
    digits = match["digits"]
    if _SPACES.search(digits) and not _GROUPED.fullmatch(digits):
        return None  # two numbers, or a telephone number
    if len(digits) > 1 and digits[0] == "0" and digits[1].isdigit():
        return None  # a code
    return match


def _read_figures(texts: Mapping[str, int], decimal: str | None, language: str | None) -> ColumnValues | None:
    figures = [(match, count) for text, count in texts.items() if (match := _match(text))]
    total = sum(count for _, count in figures)
    if total < MIN_SHARE * sum(texts.values()):
        return None
    digits = [match["digits"] for match, _ in figures]
    shown, is_open = _separators(digits)
    if not shown and is_open and decimal is None:
        amounts = [match for match, _ in figures]
        decimal = _decimal_beside_whole(digits) or _decimal_of_amounts(amounts) or _decimal_of_heads(digits, language)
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
    return ColumnValues(kind=kind, number_of=_number_reader(separator), unit=unit)


def _number_reader(separator: str) -> NumberOf:
    plain = re.compile(
        rf"-?(?:0|[1-9][0-9]{{0,{_MAX_WHOLE - 1}}})(?:{re.escape(separator)}[0-9]{{1,{_MAX_DECIMALS}}})?"
    )

    def read(text: str) -> Decimal | None:
        if plain.fullmatch(text):
            return Decimal(text.replace(separator, "."))  # most figures: many times as fast
        return _number(_match(text), separator)

    return read


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
        elif len(tail) != 3 or head in ("", "0") or len(head) > 3 or _SPACES.search(figure):
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


def _decimal_of_heads(figures: Sequence[str], language: str | None) -> str | None:
    """The decimal separator of 8,437 beside 74,745: always three digits behind the mark, and other ones before it.

    A language with a decimal comma settles no comma: 12,450 may be kilos and grams.
    """
    marks = {character for figure in figures for character in figure if character in ".,"}
    heads = {re.split("[.,]", figure)[0] for figure in figures if not figure.isdigit()}
    usual = None if language is None else load_language(language).tables.decimal
    if len(marks) != 1 or len(heads) < _MIN_HEADS:
        return None
    if marks == {","}:
        return "." if usual != "," else None
    return usual if usual == "." or len({*map(len, heads)}) > 1 else None


def _number(match: re.Match[str] | None, separator: str) -> Decimal | None:
    if match is None:
        return None
    other = "," if separator == "." else "."
    digits = match["digits"] if match["digits"].isdecimal() else _SPACES.sub("", match["digits"])
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

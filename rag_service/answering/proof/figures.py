"""Figures as values: whether a sentence says a number or date that stands in nothing that it may come from.

A second opinion beside a judge's, and all there is where nobody judges. It knows nothing of units or of what a figure
belongs to: "12" of weeks is found beside "12 months". Numbers in words are read by text2num, the names of months and
of thousands and millions are CLDR's (Babel), so 2.3 million is 2,300,000, "vier Monate" is 4 months, and 30/04/2025 is
30 de abril de 2025, whatever the languages of sentence and source.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import combinations
from typing import NamedTuple

from babel import Locale
from text_to_num import alpha2digit

from rag_service.language.normalise import strip_accents
from rag_service.recent import kept_apart

# Languages whose words are read in sources, and in sentences of an unknown language.
_LANGUAGES = ("en", "es", "fr", "pt", "de", "it", "nl")
_ONE = 1.5  # "one", "un" and "ein" are articles: no word below is a figure
_MOST_OPERANDS = 24  # figures that are reckoned with; more would give any number
_MOST_OF_THREE = 8  # likewise, for three of them
_FACTORS = (0.25, 0.5, 2.0, 12.0, 1 / 12, 7.0, 1 / 7, 60.0, 1 / 60, 24.0)  # of parts, and of units of time
_SHORTEST_MONTH = 3  # letters of "Feb"
_SHORTEST_ALONE = 5  # likewise without a day or year beside it: "may", "mars" are other words, too
_NUMBER = re.compile(
    r"(?<![\w.,])(?P<digits>\d{1,3}(?:[.,' ]\d{3})+(?:[.,]\d+)?(?!\d)|\d+(?:[.,]\d+)?)"
    r"(?: ?(?P<scale>[^\W\d_]+)| (?P<power>1000(?:000)*)(?!\d))?"
)
_NUMERIC_DATE = re.compile(
    r"(?<!\d)(?:(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})|(\d{1,2})[-/.](\d{1,2})[-/.](\d{4}|\d{2}))(?!\d)"
)
_NUMERIC_MONTH = re.compile(r"(?<![\d/.-])(0?[1-9]|1[0-2])/((?:19|20)\d\d)(?![\d/])")  # 03/2028
_DAY = r"(?:(?P<day>\d{1,2})(?:st|nd|rd|th|er|[oº.])?(?:\s+(?:de|of|d'))?\s+)?"
_WORDED_DATE = re.compile(
    rf"\b{_DAY}(?P<month>[^\W\d_]{{3,}})\.?(?:\s+(?P<day_after>\d{{1,2}})(?:st|nd|rd|th)?(?!\d))?"
    r"(?:,?(?:\s+(?:de|del|of))?\s+(?P<year>\d{4})(?!\d))?"
)
_BAR = " | "  # between the cells of a row
_CELL = re.compile(r"(?:^| \| )([^:|]+): ([^:|]+)(?= \||$)")
_NO_LETTER = re.compile(r"[\W\d_]")
_GROUPED = re.compile(r"\d{1,3}(?:[.,'’ ]\d{3})+")
_SPACES = str.maketrans({"\u00a0": " ", "\u202f": " ", "’": "'"})


class Date(NamedTuple):
    """A day, month or year as far as it is written; None: not written."""

    year: int | None
    month: int | None
    day: int | None

    def agrees(self, other: Date) -> bool:
        """Return whether nothing that both name differs, and they share the month."""
        pairs = list(zip(self, other, strict=True))
        return self.month == other.month and all(one is None or two is None or one == two for one, two in pairs)


@dataclass(frozen=True)
class Figure:
    """A number, with all readings that its writing allows ("1.234"), or a date."""

    written: str
    values: frozenset[float] = frozenset()  # of a date its day and its year
    dates: frozenset[Date] = frozenset()


@dataclass(frozen=True)
class _Sources:
    """The figures that a sentence may repeat or reckon with."""

    values: frozenset[float]
    dates: frozenset[Date]
    operands: Sequence[float] = field(default=())

    def hold(self, figure: Figure) -> bool:
        if figure.dates:
            return any(one.agrees(two) for one in figure.dates for two in self.dates)
        return any(_is_near(value, known) for value in figure.values for known in self.values)


def find_strange_figure(
    sentence: str, sources: Sequence[str], *, others: Iterable[str] = (), count: int = 0, language: str | None = None
) -> str | None:
    """Return the first figure of a sentence that its sources neither hold nor give by reckoning; None: there is none.

    Args:
        sentence: without marks.
        sources: texts that it may repeat and reckon with: the words that it cites, the question.
        count: of what it cites, which it may say: "both", "the three invoices".
        others: texts whose figures it may repeat, and not reckon with, such as titles. The day of a date is none:
            a document of 30 November does not say "30 days".
        language: ISO 639-1 of the sentence; its number words are those of this language.
    """
    said = read_figures(sentence, language)
    if not said:
        return None
    own = [figure for text in sources for figure in read_figures(text, None, is_source=True)]
    beside = [figure for text in others for figure in read_figures(text, None, is_source=True)]
    operands = sorted({value for figure in own for value in figure.values})
    totals = list(_add_columns(sources))
    known = _Sources(
        values=frozenset(
            (float(count), *totals, *(value for figure in own for value in figure.values), *_beside(beside))
        ),
        dates=frozenset(date for figure in (*own, *beside) for date in figure.dates),
        operands=operands if len(operands) <= _MOST_OPERANDS else (),
    )
    for figure in said:
        if not known.hold(figure) and not _is_reckoned(figure, known):
            return figure.written
    return None


@kept_apart(512)  # the same passages and questions come with every sentence of an answer
def read_figures(text: str, language: str | None, *, is_source: bool = False) -> tuple[Figure, ...]:
    """Return the numbers and dates of a text, in figures and in words; language None: of any that is known.

    In a source, a word that may be a month ("mai", "may") is one.
    """
    found: list[Figure] = []
    codes = (language,) if language in _LANGUAGES else _LANGUAGES
    seen: set[str] = set()
    for written in (_with_digits(text, code) for code in codes):
        if written not in seen:  # most texts hold no number words
            seen.add(written)
            found += _read_digits(written, shortest=_SHORTEST_MONTH if is_source else _SHORTEST_ALONE)
    return tuple(dict.fromkeys(found))


def _with_digits(text: str, language: str) -> str:
    return str(alpha2digit(text.translate(_SPACES), language, _ONE))


def _read_digits(text: str, *, shortest: int) -> Iterator[Figure]:
    """Figures of a text without number words: dates first, whose digits are no numbers of their own.

    `shortest`: letters of a month's name without a day or year beside it.
    """
    folded = strip_accents(unicodedata.normalize("NFKC", text).casefold())
    if len(folded) != len(text):
        text = folded
    taken: list[tuple[int, int]] = []
    patterns = (_NUMERIC_DATE, _NUMERIC_MONTH, _WORDED_DATE)
    for match in (found for pattern in patterns for found in pattern.finditer(folded)):
        dates = frozenset(_dates_of(match, shortest))
        if dates and not any(start < match.end() and match.start() < end for start, end in taken):
            taken.append(match.span())
            parts = {float(part) for date in dates for part in (date.year, date.day) if part is not None}
            yield Figure(text[match.start() : match.end()].strip(" ."), frozenset(parts), dates)
    for number in _NUMBER.finditer(folded):
        if any(start <= number.start() < end for start, end in taken):
            continue
        values = set(_values_of(number["digits"]))
        if number["power"]:  # "2,3 Millionen": text2num reads the word alone
            values = {value * float(number["power"]) for value in values}
        values |= {value * factor for value in values for factor in _scales().get(number["scale"] or "", ())}
        yield Figure(text[number.start() : number.end("digits")], frozenset(values))


def _dates_of(match: re.Match[str], shortest: int) -> Iterator[Date]:
    if match.re is _WORDED_DATE:
        month, day = _months().get(match["month"]), match["day"] or match["day_after"]
        if month is None or not (day or match["year"] or len(match["month"]) >= shortest):
            return
        yield Date(int(match["year"]) if match["year"] else None, month, int(day) if day else None)
        return
    if match.re is _NUMERIC_MONTH:
        yield Date(int(match[2]), int(match[1]), None)
        return
    iso_year, *_ = match.groups()
    first, second, *others = (int(part) for part in match.groups() if part)
    if iso_year:
        year, orders = first, [(second, others[0])]
    else:
        year = others[0] if others[0] > 99 else 2000 + others[0]
        orders = [(second, first), (first, second)]  # 3/4/2024 in Europe and in the United States
    yield from (Date(year, number, day) for number, day in orders if 1 <= number <= 12 and 1 <= day <= 31)


def _values_of(digits: str) -> Iterator[float]:
    """Return the readings of a number: "1.234" is 1234 or 1.234."""
    plain = digits.replace(" ", "").replace("'", "")
    if _GROUPED.fullmatch(digits):
        yield float(re.sub(r"[.,]", "", plain))
        if len(re.findall(r"[.,' ]", digits)) > 1 or " " in digits or "'" in digits:
            return
        yield float(plain.replace(",", "."))
        return
    whole, _, rest = plain.replace(",", ".").rpartition(".")
    yield float(f"{whole.replace('.', '')}.{rest}" if whole else rest)


def _beside(figures: Iterable[Figure]) -> Iterator[float]:
    """Return the numbers of other texts, and of their dates the years."""
    for figure in figures:
        yield from (float(date.year) for date in figure.dates if date.year) if figure.dates else figure.values


def _add_columns(sources: Iterable[str]) -> Iterator[float]:
    """Return the sum of each column of the rows that are cited: "Fee: 40 | Days: 3"."""
    columns: dict[str, list[float]] = {}
    rows = (line for text in sources if _BAR in text for line in text.split("\n"))
    for name, value in (cell for row in rows for cell in _CELL.findall(row)):
        figures = read_figures(value, None, is_source=True)
        if len(figures) == 1 and not figures[0].dates:
            columns.setdefault(name, []).append(max(figures[0].values))
    return (sum(values) for values in columns.values() if len(values) > 1)


def _is_reckoned(figure: Figure, known: _Sources) -> bool:
    """Return whether the figure comes from two of the operands by simple arithmetic, or from all by addition.

    Or from three: so many at a price, less a discount or with a fee.
    """
    operands = known.operands
    if figure.dates:
        return False
    results = {sum(operands), *(100 - one for one in operands)} if len(operands) > 1 else set()
    for one, two in combinations(operands, 2):
        results |= {one + two, abs(one - two), one * two, one * (1 + two / 100), one * (1 - two / 100)}
        results |= {two * (1 + one / 100), two * (1 - one / 100), one * two / 100}
        if one and two:
            results |= {one / two, two / one, 100 * one / two, 100 * two / one}
            results |= {100 * abs(one - two) / one, 100 * abs(one - two) / two}
    for one, two, rate in combinations(operands, 3) if len(operands) <= _MOST_OF_THREE else ():
        for count, price, percent in ((one, two, rate), (one, rate, two), (two, rate, one)):
            results |= {
                count * price * (1 + percent / 100),
                count * price * (1 - percent / 100),
                count * price + percent,
            }
    results |= {factor * one for one in operands for factor in _FACTORS}
    results |= {one + 12 for one in operands if one <= 12}  # 9 pm is 21:00
    return any(_is_rounded(value, results) for value in figure.values)


def _is_rounded(value: float, results: Iterable[float]) -> bool:
    """Return whether a value is one of the results, rounded to the decimals that it has."""
    decimals = len(f"{value:.6f}".rstrip("0").partition(".")[2])
    tolerance = max(1e-9 * max(1.0, abs(value)), 0.5 * 10**-decimals if decimals else 0.0)
    low, high = value - tolerance, value + tolerance
    return any(low < result < high for result in results)


def _is_near(one: float, two: float) -> bool:
    return abs(one - two) <= 1e-9 * max(1.0, abs(one), abs(two))


@cache
def _months() -> dict[str, int]:
    """Return the number of each name of a month, folded: long and short ones of all languages that are read."""
    found: dict[str, int] = {}
    for locale in _locales():
        for width in ("wide", "abbreviated"):
            for context in ("format", "stand-alone"):
                for number, name in locale.months[context][width].items():
                    folded = strip_accents(str(name).casefold()).rstrip(".")
                    if len(folded) >= _SHORTEST_MONTH and folded.isalpha():
                        found.setdefault(folded, int(number))
    return found


@cache
def _scales() -> dict[str, tuple[float, ...]]:
    """Return the factors that a word or letter after a number may stand for: "million", "k", "mil", "Mio."."""
    found: dict[str, set[float]] = {}
    for locale in _locales():
        for formats in locale.compact_decimal_formats.values():
            for by_factor in formats.values():
                for factor, pattern in by_factor.items():
                    word = strip_accents(_NO_LETTER.sub("", str(pattern.pattern)).casefold())
                    zeros = str(pattern.pattern).count("0")  # "00 mille" is the pattern of 10,000
                    found.setdefault(word, set()).add(float(factor) / 10 ** max(0, zeros - 1))
    return {word: tuple(factors) for word, factors in found.items() if word}


@cache
def _locales() -> Sequence[Locale]:
    return [Locale.parse(code) for code in _LANGUAGES]

"""Figures that an answer reckons from figures of the passage: recomputed by code.

An answer may only be right, or wrong, about a figure whose operands it names: "24 and 60 euros, 84 euros in total".
All other words of the claim must stand in the passage, since code knows nothing of them.
"""

from __future__ import annotations

import calendar
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import permutations

from rag_service.answering.proof.analysis import Analysis, Token
from rag_service.answering.proof.lexicon import Lexicon, load_lexicon
from rag_service.answering.proof.passage import Passage
from rag_service.language.dates import find_days

_SCALES = (
    {"day": 24 * 60, "hour": 60, "minute": 1, "week": 7 * 24 * 60},
    {"month": 1, "quarter": 3, "year": 12},
    {"mm": 1, "cm": 10, "m": 1000, "km": 1_000_000},
    {"mg": 1, "g": 1000, "kg": 1_000_000},
    {"ml": 1, "l": 1000},
    {"w": 1, "kw": 1000},
    {"mb": 1, "gb": 1000, "tb": 1_000_000},
    {"second": 1, "minute": 60, "hour": 3600},
)
PERIODS = frozenset({"minute", "hour", "day", "week", "month", "quarter", "year"})
_TELLING_DIGITS = 3
_KNOWN_SHARE = 0.8  # of the claim's words, those that name the operation left out, must stand in the passage
_SIGNS = {"sum": "+", "difference": "−", "product": "×", "ratio": "÷"}  # the signs of arithmetic


@dataclass(frozen=True, kw_only=True)
class Computation:
    """A figure of the claim, reckoned again."""

    right: bool
    said: str
    value: str
    formula: str  # with the right value


def recompute(claim: Analysis, evidence: Analysis, passage: Passage, context: frozenset[str]) -> Computation | None:
    """What becomes of the one figure of a claim that the passage lacks; None if the claim names no operands of it."""
    lexicon = load_lexicon(claim.language)
    own = passage.numbers
    results = [number for number in claim.numbers if not _stands(number, own)]
    operands = [number for number in claim.numbers if _stands(number, own)]
    bound = _conditions(evidence, lexicon) - _conditions(claim, lexicon)
    if not results or bound or not _is_known(claim, passage, context, lexicon):
        return None
    if (moved := _move_date(claim, passage)) is not None:
        return moved
    if len(results) != 1:
        return None
    (result,) = results
    for other in evidence.numbers:
        same_limit = claim.bound(result) == evidence.bound(other)
        if convert(other, result.unit) == result.stem and not operands and same_limit:
            written = _show(result)
            return Computation(right=True, said=written, value=written, formula=f"{_show(other)} = {written}")
    said = value_of(result)
    values = [value for number in operands if (value := value_of(number)) is not None]
    if said is None or len(values) < 2 or len({number.unit for number in operands}) > 1:
        return None
    rising = {pole.side for t in claim.tokens if t.kind is not None for pole in t.kind.poles if pole.pair == "increase"}
    if len(values) == 2 and rising == {1 if values[0] > values[1] else -1}:
        return None  # "fell from 10 to 12"
    found = [(name, value) for name in _operations(claim, lexicon) for value in _reckon(name, values, result)]
    for name, value in found:
        rounded = result.unit == "%" or name in ("ratio", "share")
        if is_near(value, said, decimals=_decimals(result) if rounded or _decimals(result) else None):
            return _compute(name, values, value, result, right=True)
    same_unit = result.unit == operands[0].unit
    if len(values) == 2 and same_unit and len({name for name, _ in found}) == 1:
        return _compute(*found[0][:1], values, found[0][1], result, right=False)
    return None


def convert(number: Token, unit: str) -> str | None:
    """The number in another unit, if both measure the same; None if they do not."""
    for scale in _SCALES:
        if number.unit in scale and unit in scale and number.unit != unit and (value := value_of(number)) is not None:
            return _write(value * scale[number.unit] / scale[unit])
    return None


def is_reckoned(number: Token, claim: Analysis, passage: Passage) -> bool:
    """Whether a number may come from two numbers of the passage by simple arithmetic, or from one in another unit.

    Small numbers come out of some operation nearly always; they count only where the claim names an operation.
    """
    value = value_of(number)
    if any(convert(token, number.unit) == number.stem for token in passage.numbers):
        return True
    telling = len(number.stem.replace(".", "")) >= _TELLING_DIGITS
    if value is not None and (number.unit or telling) and any(is_near(one, value) for one in _sums(number, passage)):
        return True
    if value is None or not (telling or any(_operations(claim, load_lexicon(claim.language)))):
        return False
    values = {found for token in passage.numbers if (found := value_of(token)) is not None}
    results = {100 - one for one in values} if number.unit == "%" else set()
    results |= {one / 2 for one in values} | {one * 2 for one in values}
    for one, two in permutations(values, 2):
        results |= {one + two, one - two, one * two}
        if two:
            results |= {one / two, 100 * one / two, 100 * (one - two) / two}
    return any(is_near(result, value) for result in results)


def _sums(number: Token, passage: Passage) -> Iterator[float]:
    """Sums and differences of two numbers of the same unit."""
    own = {found for token in passage.numbers if token.unit == number.unit and (found := value_of(token)) is not None}
    for one, two in permutations(own, 2):
        yield one + two
        yield abs(one - two)


def _stands(number: Token, own: frozenset[Token]) -> bool:
    return any(number.stem == other.stem and number.unit in (other.unit, "") for other in own)


def _conditions(text: Analysis, lexicon: Lexicon) -> set[str]:
    return {token.kind.folded for token in text.tokens if token.kind is not None} & lexicon.conditions


def _is_known(claim: Analysis, passage: Passage, context: frozenset[str], lexicon: Lexicon) -> bool:
    """Whether the passage has nearly all words of the claim but those that name an operation."""
    operations = frozenset().union(*lexicon.operations.values())
    said = [t for t in claim.content if t.kind is not None and t.kind.folded not in operations and not t.kind.calendar]
    held = [token for token in said if token.stem in passage.stems or token.stem in context]
    return not any(t.name and t not in held for t in said) and len(held) >= _KNOWN_SHARE * len(said)


def _operations(claim: Analysis, lexicon: Lexicon) -> Iterator[str]:
    words = {token.kind.folded for token in claim.tokens if token.kind is not None}
    yield from (name for name, named in lexicon.operations.items() if words & named)


def _reckon(name: str, values: list[float], result: Token) -> Iterator[float]:
    one, two = max(values[:2]), min(values[:2])
    match name:
        case "sum":
            yield sum(values)
        case "difference" if len(values) == 2 and result.unit == "%" and two:
            yield 100 * (values[1] - values[0]) / values[0]
            yield 100 * (values[0] - values[1]) / values[1]
        case "difference" if len(values) == 2:
            yield one - two
        case "product" if len(values) == 2:
            yield one * two
        case "ratio" if len(values) == 2 and two:
            yield one / two
        case "share" if len(values) == 2 and one and result.unit == "%":
            yield 100 * two / one


def _compute(name: str, values: list[float], value: float, result: Token, *, right: bool) -> Computation:
    ordered = values if name == "sum" else sorted(values, reverse=True)
    written = _write(round(value, 2))
    sign = _SIGNS.get(name, "÷")
    formula = f" {sign} ".join(map(_write, ordered))
    if result.unit == "%":
        one, two = sorted(values, reverse=True)
        formula = f"({_write(values[1])} − {_write(values[0])}) ÷ {_write(values[0])}"
        formula = formula if name == "difference" else f"{_write(two)} ÷ {_write(one)}"
    shown = f"{written} {result.unit}".strip()
    return Computation(right=right, said=_show(result), value=shown, formula=f"{formula} = {shown}")


def _move_date(claim: Analysis, passage: Passage) -> Computation | None:
    """A day that the claim reckons from a day and a period of the passage, all three named in it."""
    said = _dates(claim)
    if len(said) != 2:
        return None
    known = {day for part in passage.analyses for day in _dates(part)}
    starts, ends = [day for day in said if day in known], [day for day in said if day not in known]
    periods = [n for n in claim.numbers if n.unit in ("day", "week", "month", "year") and _stands(n, passage.numbers)]
    if len(starts) != 1 or len(ends) != 1 or len(periods) != 1 or not periods[0].stem.isdigit():
        return None
    moved = _add(starts[0], int(periods[0].stem), periods[0].unit)
    if moved is None:
        return None
    formula = f"{starts[0]} + {_show(periods[0])} = {moved}"
    return Computation(right=moved == ends[0], said=str(ends[0]), value=str(moved), formula=formula)


def _dates(text: Analysis) -> list[date]:
    return [day.date for day in find_days(text.text) if day.is_told]


def _add(day: date, count: int, unit: str) -> date | None:
    try:
        if unit in ("day", "week"):
            return day + timedelta(days=count * (7 if unit == "week" else 1))
        months = day.month - 1 + count * (12 if unit == "year" else 1)
        year, month = day.year + months // 12, months % 12 + 1
        return date(year, month, min(day.day, calendar.monthrange(year, month)[1]))
    except (OverflowError, ValueError):
        return None


def is_near(one: float, two: float, *, decimals: int | None = None) -> bool:
    """Equal, up to rounding to some decimals; None: up to the imprecision of floating point."""
    return abs(one - two) < (0.005 if decimals is None else 0.5 * 10**-decimals + 1e-9)


def _decimals(number: Token) -> int:
    return len(number.stem.partition(".")[2])


def _show(number: Token) -> str:
    return f"{number.stem} {number.unit}".strip()


def _write(value: float) -> str:
    return f"{value:.6f}".rstrip("0").rstrip(".")


def value_of(number: Token) -> float | None:
    """The value of a number; None: it is none that can be reckoned with."""
    try:
        return float(number.stem)
    except ValueError:
        return None

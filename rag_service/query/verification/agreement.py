"""What speaks against a quote although it has the claim's words: numbers, dates, names, negation, opposites.

All rules are one-sided: they may reject a quote that does carry the claim (the citation is then flagged),
so as not to accept one that does not.
"""

from __future__ import annotations

from collections.abc import Collection

from rag_service.query.verification.numbers import Number
from rag_service.query.verification.statement import Statement, any_matches

_NEAR_COPY = 2  # different words between a sentence and what is almost its copy


def agrees(claim: Statement, quote: Statement, context: Collection[str]) -> bool:
    """Whether nothing in `quote` speaks against `claim`.

    `context` holds content words of the document's title and headings, where names may stand, too.
    """
    return (
        numbers_hold(claim, quote)
        and _same_polarity(claim, quote)
        and not any(-pole in quote.poles - claim.poles and pole not in quote.poles for pole in claim.poles)
        and all(any_matches(word, quote.required) for word in claim.required)
        and all(any_matches(name, quote.tokens) or any_matches(name, context) for name in claim.names)
    )


def numbers_hold(claim: Statement, quote: Statement) -> bool:
    """Whether every number of the claim stands in the quote with its unit and label, and in the same order.

    A unit may also stand elsewhere in the other text, as in a table's header: "Term (days): 20" carries
    "20 days". Codes, and numbers that their units tell apart, may change places. Labels are compared only
    where the quote holds another number that could be meant.
    """
    for number, label in zip(claim.numbers, claim.labels, strict=True):
        if not any(
            other.value == number.value
            and _same_unit(number, other, claim, quote)
            and (_same_label(label, other_label) or not _has_rival(other, quote))
            for other, other_label in zip(quote.numbers, quote.labels, strict=True)
        ):
            return False
    ordered = [number for number in claim.numbers if not number.is_code]
    units = [number.unit for number in ordered]
    if all(units) and len(set(units)) == len(units):
        return True
    remaining = iter([number.value for number in quote.numbers])
    return all(number.value in remaining for number in ordered)


def _has_rival(number: Number, quote: Statement) -> bool:
    """Whether the quote holds another number that counts, or may count, the same."""
    return not number.is_code and any(
        other.value != number.value
        and not other.is_code
        and (other.unit == number.unit or not other.unit or not number.unit)
        for other in quote.numbers
    )


def _same_label(label: frozenset[str], other: frozenset[str]) -> bool:
    return not label or not other or any(any_matches(word, other) for word in label)


def _same_unit(number: Number, other: Number, claim: Statement, quote: Statement) -> bool:
    if number.unit == other.unit:
        return True
    if not other.unit:
        return number.unit in quote.units
    return not number.unit and other.unit in claim.units


def _same_polarity(claim: Statement, quote: Statement) -> bool:
    """Whether each denies what the other denies; near copies must also negate equally often."""
    if not (claim.is_negative or quote.is_negative):
        return True
    if claim.negations != quote.negations and len(claim.tokens ^ quote.tokens) <= _NEAR_COPY:
        return False
    return _denies(quote, claim) and _denies(claim, quote)


def _denies(one: Statement, other: Statement) -> bool:
    """Whether `other` denies something of every clause that `one` denies, where it speaks of it at all."""
    denied = [word for words in _denied(other) for word in words]
    return all(
        any(any_matches(word, denied) for word in words) or not any(any_matches(word, other.words) for word in words)
        for words in _denied(one)
    )


def _denied(statement: Statement) -> list[frozenset[str]]:
    return [words for words, negated in zip(statement.clauses, statement.negated, strict=True) if negated]

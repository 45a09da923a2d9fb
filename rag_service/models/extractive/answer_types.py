"""The type of answer that a question asks for: an amount of money, or a number."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from rag_service.language.languages import language_codes, load_language
from rag_service.language.words import fold


@dataclass(frozen=True, kw_only=True)
class AnswerType:
    """A type of answer that questions ask for."""

    asked_by: re.Pattern[str]  # in a folded question
    pattern: re.Pattern[str]  # in a folded sentence that holds such an answer
    is_price: bool


def answer_type(question: str) -> AnswerType | None:
    """The type of answer that a question asks for; None where it does not say."""
    folded = fold(question)
    for found in _answer_types():
        if found.asked_by.search(folded):
            return found
    return None


@cache
def _answer_types() -> tuple[AnswerType, ...]:
    """The types in the words of all languages: a question may be answered by a document in another language.

    Persons, places, dates and reasons were tried as well: one more of a hundred English questions, and none of others.
    """
    every = [load_language(code) for code in language_codes()]
    units = [data.proof.units for data in every]
    numbers = {word for data in every for words in data.proof.numbers.values() for word in words}
    numbers |= {word for data in every for word in data.proof.fractions}
    numbers |= {word for table in units for unit in ("thousand", "million", "billion") for word in table.get(unit, ())}
    money = {word for table in units for sign in "€$£" for word in table.get(sign, ())}
    return (
        AnswerType(
            asked_by=re.compile("|".join(data.questions.asks_price for data in every), re.MULTILINE),
            pattern=re.compile(rf"[€$£]|\b(?:{'|'.join(sorted(money))})\b"),
            is_price=True,
        ),
        AnswerType(
            asked_by=re.compile("|".join(data.questions.asks_number for data in every)),
            pattern=re.compile(rf"\d|\b(?:{'|'.join(sorted(numbers))})\b"),
            is_price=False,
        ),
    )

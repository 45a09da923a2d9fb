"""What an answer has to hold, by what the question asks for: a price, a number, an hour, a person, a reason."""

from __future__ import annotations

import re
from functools import cache, lru_cache
from itertools import compress

from rag_service.language.languages import languages_of, union_of
from rag_service.language.sentences import split_sentences
from rag_service.language.words import fold, is_stop_word, terms, word_forms

_HOUR = r"\d ?h(?:\d|\b)|\d[:.]\d\d\b|\d ?[ap]\.?m\b"  # 18h30, 18:30, 6 pm
_WORD = re.compile(r"[^\W\d_]+")


def lacks_answer(question: str, quote: str, language: str, *, quoted_in: str | None = None) -> bool:
    """Return whether a quote has no value of the type that a question asks for, or has it of something else.

    In a quote of several sentences, one with the value has as many words of the question as any other: beside "the sand
    was changed for 7,350 euros", "the roof was repaired in April" does not say for how much.

    Args:
        quoted_in: the language of the quote, in whose words reasons and agents are told: "car" is no reason in English;
            None: of any.
    """
    wanted, folded = answer_type(question), fold(quote)
    if wanted is not None:
        said = [quote[start:end] for start, end in split_sentences(quote, language=language)]
        holds = [wanted.search(fold(one)) is not None or "%" in one for one in said]
        asked_terms = set(terms(question, language))
        shared = [len(asked_terms.intersection(terms(one, language))) for one in said]
        return max(shared, default=0) not in compress(shared, holds)
    asked = fold(question)
    if _words_for("asks_reason").search(asked):
        return _words_for("gives_reason", quoted_in).search(folded) is None
    if _words_for("asks_person").search(asked):
        return not _names_somebody(question, quote, language, quoted_in)
    return False


def _names_somebody(question: str, quote: str, language: str, quoted_in: str | None) -> bool:
    """Return whether a sentence may say who: by the agent of a passive, or by a subject that the question lacks.

    The subject is its first content word. "The bridge was closed" has none beside what the question says. Who somebody
    is may also be told by a name.
    """
    if _words_for("gives_agent", quoted_in).search(fold(quote)):
        return True
    asked, calendar = word_forms(question), _calendar()
    found = [word for word in _WORD.findall(quote) if fold(word) not in calendar]
    said = [word for word in found if not is_stop_word(fold(word), language)]
    new = [word for word in said if word_forms(word).isdisjoint(asked)]
    if _words_for("asks_name").search(fold(question)) and any(word[0].isupper() for word in new):
        return True
    return bool(new) and said[0] == new[0]


def answer_type(question: str) -> re.Pattern[str] | None:
    """What a price or a number looks like in a folded sentence, if the question asks for one."""
    folded = fold(question)
    return next((pattern for asked_by, pattern in _answer_types() if asked_by.search(folded)), None)


@cache
def _answer_types() -> tuple[tuple[re.Pattern[str], re.Pattern[str]], ...]:
    """What asks for a type of answer, and what such an answer looks like, in folded text.

    In the words of all languages: a question may be answered by a document in another one. Persons, places, dates and
    reasons were tried as well: one more of a hundred English questions, and none of others. An hour comes first: "à
    quelle heure" asks for no number.
    """
    every = languages_of(None)
    units = [data.proof.units for data in every]
    numbers = {word for data in every for words in data.proof.numbers.values() for word in words}
    numbers |= {word for data in every for word in data.proof.fractions}
    numbers |= {word for table in units for unit in ("thousand", "million", "billion") for word in table.get(unit, ())}
    money = {word for table in units for sign in "€$£" for word in table.get(sign, ())}
    prices = "|".join(data.questions.asks_price for data in every)
    counts = "|".join(data.questions.asks_number for data in every)
    hours = "|".join(data.questions.gives_hour for data in every)
    return (
        (_words_for("asks_hour"), re.compile(rf"{_HOUR}|{hours}")),
        (re.compile(prices, re.MULTILINE), re.compile(rf"[€$£]|\b(?:{'|'.join(sorted(money))})\b")),
        (re.compile(counts), re.compile(rf"\d|\b(?:{'|'.join(sorted(numbers))})\b")),
    )


@lru_cache(32)
def _words_for(name: str, language: str | None = None) -> re.Pattern[str]:
    """Return an expression of `Questions` in the words of a language, or of all."""
    return re.compile("|".join(f"(?:{getattr(data.questions, name)})" for data in languages_of(language)))


@cache
def _calendar() -> frozenset[str]:
    """Return the names of months and weekdays in all languages."""
    every = languages_of(None)
    return union_of(names for data in every for names in (*data.proof.months, *data.proof.weekdays))

"""Names, years and codes that a question asks about, and which of them no document holds.

A question about Norway is not answered by passages about Sweden and Denmark, however much else of it they
hold. Names are told from other words by their capital letter, so that questions typed in small letters name
nothing.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from rag_service.store.search.term_weights import QueryTerm
from rag_service.text.words import LANGUAGES, fold, terms, words

_TOKEN = re.compile(r"[^\W_](?:[\w'’.-]*[^\W_])?")
_YEAR = re.compile(r"(?:1[5-9]|20)\d\d")
_CODE = re.compile(r"(?=.*\d)(?=.*[^\W\d_])")  # figures and letters: "A3", "REF-4002"
_FIGURE = re.compile(r"\d")
_BEGINS_SENTENCE = frozenset('.?!¿¡:"“«(')  # what a capital letter after it means nothing
_LEAST_LETTERS = 3
_HEADLINE = 0.75  # share of capitalised words from which the question is set like a headline
_CALENDAR = frozenset({
    "monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday",
    "january", "february", "march", "april", "may", "june", "july",
    "august", "september", "october", "november", "december",
})  # fmt: skip
# English capitalises them; documents say "weekdays" or "in spring" as well


@dataclass(frozen=True, kw_only=True)
class Name:
    """Something that a question names."""

    text: str  # as the question writes it
    terms: frozenset[str]  # index terms of its words, in every language


def find_names(question: str) -> tuple[Name, ...]:
    """Names of one or several words, years, and codes of figures and letters, in the question's order."""
    tokens = list(_TOKEN.finditer(question))
    capitalised = sum(token[0][0].isupper() for token in tokens)
    if not tokens or capitalised > max(2, _HEADLINE * len(tokens)):
        return ()
    names: list[list[re.Match[str]]] = []
    open_name = False  # whether the last name may go on
    for place, token in enumerate(tokens):
        if _YEAR.fullmatch(token[0]) or _CODE.match(token[0]):
            following = tokens[place + 1][0] if place + 1 < len(tokens) else ""
            if not (_YEAR.fullmatch(token[0]) and _is_unit(question[token.end() :], following)):
                names.append([token])
            open_name = False
        elif _is_capitalised(question, token):
            if open_name and question[names[-1][-1].end() : token.start()] == " ":
                names[-1].append(token)
            else:
                names.append([token])
            open_name = True
        else:
            open_name = False
    return tuple(_name(question, name) for name in names)


def find_absent(names: Sequence[Name], asked: Sequence[QueryTerm], held: Collection[str]) -> tuple[str, ...]:
    """Names of which no word, and nothing that stands for one, is in what is searched; of a code any part with figures.

    "F26-1099" is not there because other numbers begin with F26.

    Args:
        names: as `find_names` gives them.
        asked: the question's index terms.
        held: those of them that some chunk in scope holds.
    """
    groups_held = {term.group for term in asked if term.term in held}
    absent = []
    for name in names:
        groups = {term.group for term in asked if term.term in name.terms}
        figures = {term.group for term in asked if term.term in name.terms and _FIGURE.search(term.term)}
        if not figures <= groups_held if _CODE.match(name.text) else groups and not groups & groups_held:
            absent.append(name.text)
    return tuple(absent)


def find_absent_codes(names: Sequence[Name], texts: Collection[str]) -> tuple[str, ...]:
    """Codes that none of the passages found holds, though each of their parts may stand somewhere: "BC-300-F".

    A code is compared by its letters and figures, whatever stands between them. What holds it has no rarer word to be
    found by.
    """
    folded = [fold(text) for text in texts]
    codes = [name.text for name in names if _CODE.match(name.text)]
    return tuple(code for code in codes if not any(map(_written_anyhow(code).search, folded)))


def _written_anyhow(code: str) -> re.Pattern[str]:
    characters = [re.escape(character) for character in fold(code) if character.isalnum()]
    return re.compile(r"(?<![^\W_])" + r"[\W_]?".join(characters) + r"(?![^\W_])")


def _is_capitalised(question: str, token: re.Match[str]) -> bool:
    """Whether it is written like a name: a capital, then small letters, not where a sentence begins."""
    text, before = token[0], question[: token.start()].rstrip()
    return (
        len(text) >= _LEAST_LETTERS
        and text[0].isupper()
        and not text.isupper()  # acronyms stand for words that documents may spell out
        and bool(before)
        and before[-1] not in _BEGINS_SENTENCE
        and fold(text) not in _CALENDAR
    )


def _is_unit(after: str, following: str) -> bool:
    """Whether a number is one of something: "2000 euros", "1500 €"."""
    return after.lstrip()[:1] in {"€", "$", "£", "%"} or fold(following) in {
        "euro", "euros", "dollars", "dolares", "pounds", "libras", "km", "kg", "m", "h",
    }  # fmt: skip


def _name(question: str, tokens: Sequence[re.Match[str]]) -> Name:
    forms = {form for token in tokens for form in words(token[0])}
    forms |= {term for token in tokens for language in LANGUAGES for term in terms(token[0], language)}
    return Name(text=question[tokens[0].start() : tokens[-1].end()], terms=frozenset(forms))

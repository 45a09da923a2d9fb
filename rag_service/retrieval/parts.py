"""The parts of a question that asks for several things, each as a question of its own.

    "What does the permit cost, and how long does it last?"  →  "What does the permit cost", "how long does it last"
    "What are the fee and the term of the loan?"             →  "What are the fee of the loan", "What are the term of …"

Clauses that ask are told by their question words. Other coordinations share what stands before them, and a tail: the
second part begins like the first one ("for … and for …"), else the first begins after the last function word.

Another question is about something that it does not name: "Who is the mayor of the town where the museum stands?" One
passage names the town, another its mayor. Such a question is recognised by its vector, with weights that were learnt
from questions of one and of several steps (`evals/hops.py`). A second search, with the words that the best passage
lacks and the names that are new in it, finds what one search cannot.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from rag_service.domain import Hit
from rag_service.language.languages import languages_of
from rag_service.language.words import fold, index_term, is_stop_word, word_forms, words
from rag_service.retrieval.planner import QueryPlan, find_names

MAX_PARTS = 4
_TOKEN = re.compile(r"\w+(?:[.,]\w+)*|[,;:.?!¿¡\n]")
_ENDS = frozenset(".?!¿¡:;\n")  # of a clause
_INTRODUCTION = 2  # frequent words that may stand before a question word: "by when", "jusqu'à quelle"
_WEIGHTS = Path(__file__).with_name("hops.json")
_MAX_NAMES = 6


@dataclass(frozen=True)
class _Token:
    text: str  # in lower case
    start: int
    end: int
    is_content: bool  # no function word
    is_frequent: bool
    joins: bool  # "and", "or"
    compares: bool  # "compare", "difference"
    asks: bool  # a question word

    @property
    def is_mark(self) -> bool:
        return self.text in _ENDS or self.text == ","


@dataclass(frozen=True, kw_only=True)
class Parts:
    """What a question asks for."""

    lead: str = ""  # a sentence before all of them, which says what they are about
    questions: tuple[str, ...] = ()  # several, or none
    are_clauses: bool = False  # each asks by a question word of its own


def split_question(question: str, language: str) -> Parts:
    """The parts of a question, at most `MAX_PARTS`; none where it asks for one thing."""
    tokens = list(_read(question, language))
    if not any(token.asks or token.compares or token.text == "?" for token in tokens):
        return Parts()  # words to search for
    clauses = _asking_clauses(tokens)
    parts = [_text(question, clause) for clause in clauses] if len(clauses) > 1 else _coordinated(question, tokens)
    parts = list(dict.fromkeys(filter(None, parts)))
    if not 1 < len(parts) <= MAX_PARTS:
        return Parts()
    before = [token for token in tokens if len(clauses) > 1 and token.end <= clauses[0][0].start]
    lead = _text(question, before) if any(token.is_content for token in before) else ""
    return Parts(lead=lead, questions=tuple(parts), are_clauses=len(clauses) > 1)


def _read(question: str, language: str) -> Iterator[_Token]:
    data = [one.questions for one in languages_of(language)]
    joins = {word for one in data for word in one.joins}
    compares = {word for one in data for word in one.compares}
    if not compares.isdisjoint(question.lower().split()):
        joins |= {word for one in data for word in one.compares_with}
    asks = {word for one in data for word in one.asks}
    frequent = {word for one in languages_of(language) for word in one.detection.frequent_words}
    for match in _TOKEN.finditer(question):
        text = match[0].lower()
        is_word = text[0].isalnum() or text[0] == "_"
        is_content = is_word and text not in asks and not is_stop_word(fold(text), language)
        is_frequent = not is_content or fold(text) in frequent
        yield _Token(
            text, match.start(), match.end(), is_content, is_frequent, text in joins, text in compares, text in asks
        )


def _asking_clauses(tokens: Sequence[_Token]) -> list[Sequence[_Token]]:
    """The clauses that begin with a question word. What stands before the first of them asks too, if it goes on."""
    starts = [place for place in range(len(tokens)) if _begins_clause(tokens, place)]
    if not starts:
        return []
    before = tokens[: starts[0]]
    if any(token.is_content for token in before) and not any(token.text in _ENDS for token in before):
        starts.insert(0, 0)
        if len(starts) == 2 and tokens[starts[1] - 1].text == ",":
            starts.pop(0)  # "Once the date has passed, who pays?"
    ends = [*starts[1:], len(tokens)]
    clauses = [tokens[start:end] for start, end in zip(starts, ends, strict=True)]
    return [_up_to_end(clause) for clause in clauses]


def _begins_clause(tokens: Sequence[_Token], place: int) -> bool:
    """Whether a clause that asks begins here: after a mark or a conjunction, with a question word."""
    before = tokens[place - 1] if place else None
    if tokens[place].is_mark or tokens[place].joins or not (before is None or before.is_mark or before.joins):
        return False
    for token in tokens[place : place + _INTRODUCTION + 1]:
        if token.asks:
            return True
        if token.is_mark or not token.is_frequent:
            return False
    return False


def _up_to_end(clause: Sequence[_Token]) -> Sequence[_Token]:
    """A clause without the sentences after it, and the conjunction before the next one."""
    end = next((place for place, token in enumerate(clause) if place and token.text in _ENDS), len(clause))
    while end and (clause[end - 1].is_mark or clause[end - 1].joins):
        end -= 1
    return clause[:end]


def _coordinated(question: str, tokens: Sequence[_Token]) -> list[str]:
    """The parts of a coordination: the first one of the question that has a word on either side."""
    for place, token in enumerate(tokens):
        if not token.joins:
            continue
        ends = [at for at, one in enumerate(tokens) if one.text in _ENDS - {":"}]
        begin = max((at + 1 for at in ends if at < place), default=0)
        end = min((at for at in ends if at > place), default=len(tokens))
        left, right = tokens[begin:place], tokens[place + 1 : end]
        if any(one.is_content for one in left) and any(one.is_content for one in right):
            return _share(question, left, right)
    return []


def _share(question: str, left: Sequence[_Token], right: Sequence[_Token]) -> list[str]:
    first = _first_conjunct(left, right)
    head, conjunct = left[:first], left[first:]
    pieces = [conjunct]
    for mark in [at for at, token in enumerate(conjunct) if token.text == ","]:
        pieces = [*pieces[:-1], *_cut(pieces[-1], conjunct[mark])]
    run = _first_run(right)
    is_bare = all(token.is_content for token in conjunct[1:])
    tail = right[run:] if is_bare else ()
    parts = [_join(question, head, piece, tail) for piece in pieces if any(token.is_content for token in piece)]
    return [*parts, _join(question, head, right)]


def _first_conjunct(left: Sequence[_Token], right: Sequence[_Token]) -> int:
    """Where the first part begins: behind a colon, where the second one's first word stands, best behind a comma, or
    after the last function word."""
    colons = [place + 1 for place, token in enumerate(left[:-1]) if token.text == ":"]
    like = [place for place, token in enumerate(left) if token.text == right[0].text and not token.is_content]
    behind = [place for place in like if place and left[place - 1].text == ","]
    for places in (colons, behind, like):
        if places:
            return places[-1]
    stops = [place for place, token in enumerate(left) if not token.is_content and not token.is_mark]
    return stops[-1] + 1 if stops and stops[-1] + 1 < len(left) else 0


def _first_run(right: Sequence[_Token]) -> int:
    """Where the first run of content words ends, with the function words before it."""
    begun = False
    for place, token in enumerate(right):
        if begun and not token.is_content:
            return place
        begun = begun or token.is_content
    return len(right)


def _cut(piece: Sequence[_Token], mark: _Token) -> tuple[Sequence[_Token], Sequence[_Token]]:
    place = piece.index(mark)
    return piece[:place], piece[place + 1 :]


def _join(question: str, *pieces: Sequence[_Token]) -> str:
    return " ".join(filter(None, (_text(question, piece) for piece in pieces)))


def _text(question: str, tokens: Sequence[_Token]) -> str:
    return question[tokens[0].start : tokens[-1].end] if tokens else ""


def asks_chain(vector: Sequence[float]) -> bool:
    """Whether a question needs several steps, by its vector of the packaged model."""
    weights, intercept, least = _weights()
    given = np.asarray(vector, dtype=np.float64)
    given = given / (np.linalg.norm(given) or 1.0)
    return float(given @ weights + intercept) >= least


@cache
def _weights() -> tuple[npt.NDArray[np.float64], float, float]:
    read = json.loads(_WEIGHTS.read_text(encoding="utf-8"))
    return np.array(read["weights"]), float(read["intercept"]), float(read["least"])


def next_search(question: str, plan: QueryPlan, best: Hit) -> str | None:
    """What to search for after the best passage: what it leaves open of the question, and the names new in it.

    None if it holds all words of the question, or names nothing new.
    """
    text = f"{best.chunk.document.title}\n{best.chunk.text}"
    held = word_forms(text)
    groups = {term.group for term in plan.terms if term.term in held}
    open_terms = {term.term for term in plan.terms if term.group not in groups}
    left = [word for word in words(question) if index_term(word, plan.language) in open_terms]
    names = list(dict.fromkeys(name for line in text.splitlines() for name in _names(line, question)))[:_MAX_NAMES]
    return " ".join(dict.fromkeys([*left, *names])) if left and names else None


def _names(line: str, question: str) -> list[str]:
    asked = set(words(question))
    found = find_names(f"- {line}")
    return [name.text for name in found if not asked.issuperset(words(fold(name.text)))]

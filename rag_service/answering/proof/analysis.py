"""What a sentence says, as code can compare it: words by their stems, numbers, names, negations, opposites."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

from rag_service.answering.proof.lexicon import Pole, fold_word, load_lexicon
from rag_service.language.normalise import RAISED_DIGITS
from rag_service.language.words import index_term

WORD = re.compile(r"[^\W_]+(?:'t\b)?")
_DATE = r"(?<![\w/])\d{1,4}(?P<sep>[/.-])\d{1,2}(?P=sep)\d{2,4}(?![\d/])"
_CODE = (  # first a number with what is raised behind it: "10⁶" is neither 10 nor 6
    rf"(?<![^\W_])(?:\d+(?:[.,]\d+)*[⁺⁻]?[{RAISED_DIGITS}]+[^\W_]*|"
    r"[^\W\d_]{1,4}-\d{1,4}(?![\w-])|[^\W\d_]+\d[^\W_]*"
    r"|(?!\d+(?:km|kg|min|mins|cm|mm|ml|mg|kw|gb|tb|mb|h|m|g|l|k|d|s|w)\b)\d+[^\W\d_]+[^\W_]*)"
)
_PLAIN = r"\d{1,3}(?: \d{3})+(?:[.,]\d+)?(?!\d)|\d+(?:[.,]\d+)*"
_TOKEN = re.compile(
    rf"(?P<code>{_CODE})|(?P<word>[^\W\d_]++(?:'t\b)?)|(?P<date>{_DATE})"
    rf"|(?:(?<![\w)])(?P<sign>[-+]))?(?P<plain>{_PLAIN})|(?P<edge>[:|!?]|\.(?!\d))"
)
_CLOCK = re.compile(r"(?<=\d)h(?=\d\d\b)")
_GROUPS = re.compile(r"[1-9]\d{0,2}(?:([., ])\d{3})(?:\1\d{3})*")
_ORDINARY_STEM = 6  # letters that forms of one word share, where the language is not known


class Kind(NamedTuple):
    """What a word is, wherever it stands."""

    folded: str
    stem: str
    content: bool  # says something of its own
    negation: bool
    poles: tuple[Pole, ...]
    number: str  # digits of a number word, or ""
    calendar: bool  # month or weekday


class Token(NamedTuple):
    """A word or number. Two say the same when their stems are equal."""

    stem: str  # of a number: its value
    kind: Kind | None  # None: a number or a code
    name: bool = False  # capitalised inside its sentence, an acronym, or a code

    @property
    def content(self) -> bool:
        return self.kind is None or self.kind.content

    @property
    def is_number(self) -> bool:
        return self.kind is None and not self.name


@dataclass(frozen=True)
class Analysis:
    """A text taken apart, in its order."""

    tokens: tuple[Token, ...]
    language: str | None

    @cached_property
    def content(self) -> tuple[Token, ...]:
        return tuple(token for token in self.tokens if token.content)

    @cached_property
    def stems(self) -> frozenset[str]:
        return frozenset(token.stem for token in self.tokens if token.content)

    @cached_property
    def numbers(self) -> tuple[Token, ...]:
        return tuple(token for token in self.tokens if token.is_number)

    @property
    def negates(self) -> bool:
        """Return whether one of its words is a negation."""
        return any(token.kind is not None and token.kind.negation for token in self.tokens)

    @property
    def is_claim(self) -> bool:
        """Return whether there is enough to check: two content words, numbers counted as such."""
        return len(self.stems) >= 2


def analyse(text: str, language: str | None = None) -> Analysis:
    """Take a normalised text apart; its letter case tells the names. `language` is ISO 639-1; None: not known."""
    lower = text.lower() if len(text.lower()) == len(text) else text
    restriction = load_lexicon(language).restriction
    lower = restriction.sub(lambda found: "_" * len(found[0][:2]) + found[0][2:], fold_word(lower))
    lower = _CLOCK.sub(":", lower)
    tokens: list[Token] = []
    begins = True
    shouted = sum(map(str.isupper, text)) > 0.6 * sum(map(str.isalpha, text))
    for match in _TOKEN.finditer(lower):
        start, end = match.span()
        if match["edge"]:
            begins = True
            continue
        kind = classify(match[0], language) if match["word"] else None
        if kind is None or kind.number:
            tokens.append(Token(_value(match, kind), None, name=match["code"] is not None))
        else:
            capital = text[start].isupper() and not shouted
            acronym = capital and end - start > 1 and text[start:end].isupper()
            name = capital and kind.content and not kind.calendar and (acronym or not begins)
            tokens.append(Token(kind.stem, kind, name=name))
        begins = False
    return Analysis(tuple(tokens), language)


@lru_cache(maxsize=32768)
def classify(word: str, language: str | None) -> Kind:
    """Return what a folded word is."""
    lexicon = load_lexicon(language)
    negation = word in lexicon.negations or word.endswith("n't")
    content = len(word) > 1 and word not in lexicon.stopped and not negation
    stem = index_term(word, language) if language else None
    if stem is None:
        stem = word if language else _singular(word)[:_ORDINARY_STEM]
    return Kind(
        word,
        stem,
        content,
        negation,
        lexicon.poles.get(word, ()),
        lexicon.number_words.get(word, ""),
        word in lexicon.months or word in lexicon.weekdays,
    )


def is_negation(word: str, text: str, end: int, language: str | None) -> bool:
    """Return whether the folded word that ends at `end` of `text` negates; "No. 5" and "no solo" do not."""
    if word.endswith("n't"):
        return True
    if word not in load_lexicon(language).negations:
        return False
    return not re.match(r"\. ?\d|\.[ºo°]|\.? (?:solo|solamente|only|seulement)\b", text[end : end + 14])


def _value(match: re.Match[str], kind: Kind | None) -> str:
    if kind is not None:
        return kind.number
    if match["date"]:
        return "/".join(part.lstrip("0") for part in match["date"].split(match["sep"]))
    if match["code"]:
        return match["code"]
    return ("-" if match["sign"] == "-" else "") + canonical(match["plain"])


def canonical(written: str) -> str:
    """A number without sign or unit in one form; groups of three digits are thousands.

    >>> canonical("1.234,56"), canonical("12,50"), canonical("1.234.567"), canonical("1.234"), canonical("007")
    ('1234.56', '12.5', '1234567', '1234', '007')
    """
    marks = {".", ",", " "} & set(written)
    if not marks:
        # "03" of a date is 3; "007" is a code.
        return written.lstrip("0") or "0" if len(written) <= 2 or written[0] != "0" else written
    last = max(marks, key=written.rfind)
    if last == " " or written.count(last) > 1 or (len(marks) == 1 and _GROUPS.fullmatch(written)):
        return re.sub(r"[., ]", "", written)
    whole, _, fraction = written.rpartition(last)
    whole, fraction = re.sub(r"[., ]", "", whole).lstrip("0") or "0", fraction.rstrip("0")
    return f"{whole}.{fraction}" if fraction else whole


def _singular(word: str) -> str:
    """A word without a plural ending: "mes" and "meses", "fee" and "fees" become equal."""
    stem = word[:-1] if len(word) >= 4 and word.endswith("s") and not word.endswith("ss") else word
    return stem[:-1] if len(stem) >= 3 and stem.endswith("e") else stem

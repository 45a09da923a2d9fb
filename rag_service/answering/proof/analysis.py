"""What a sentence states, as far as code can compare it: words, numbers, names, negations, opposites, limits."""

from __future__ import annotations

import re
from bisect import bisect
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

from rag_service.answering.proof.lexicon import PERCENT, Lexicon, Pole, fold_word, load_lexicon
from rag_service.language.superscripts import RAISED_DIGITS
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
    rf"|(?:(?<![\w)])(?P<sign>[-+]))?(?P<before>[$€£] ?)?(?P<plain>{_PLAIN})(?P<after> ?[%€$£])?"
    r"|(?P<edge>[,;:()|!?]|\.(?!\d))"
)
_CLOCK = re.compile(r"(?<=\d)h(?=\d\d\b)")
_GROUPS = re.compile(r"[1-9]\d{0,2}(?:([., ])\d{3})(?:\1\d{3})*")
_YEAR = re.compile(r"(?:19|20)\d\d")
_UNIT_DISTANCE = 3  # words between a number and its unit: "15 primeros días", "20 full working days"
_MAGNITUDES = frozenset({"thousand", "million", "billion"})
SENTENCE = 100  # clauses by which a full stop or the edge of a cell counts on
_LONGEST_NUMBER = 9  # digits of a number that words go on
_ORDINARY_STEM = 6  # letters that forms of one word share, where the language is not known


class Kind(NamedTuple):
    """What a word is, wherever it stands."""

    folded: str
    stem: str
    content: bool  # says something of its own
    negation: bool
    poles: tuple[Pole, ...]
    unit: str  # the canonical unit that it names, or ""
    number: str  # digits of a number word, or ""
    calendar: bool  # month or weekday


class Token(NamedTuple):
    """A word or number. Two say the same when their stems are equal."""

    stem: str  # of a number: its value
    kind: Kind | None  # None: a number or a code
    clause: int  # grows by one with each comma or bracket, by a hundred with each full stop or edge of a cell
    start: int
    end: int
    unit: str = ""  # of a number
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

    text: str  # lower case, without accents
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

    @cached_property
    def is_negative(self) -> bool:
        """Whether its negations do not cancel each other out."""
        return len(self.negated) % 2 == 1

    @cached_property
    def negated(self) -> frozenset[int]:
        """Positions in `content` of the words that a negation stands before, one in each clause.

        A second negation only strengthens the first: "no cuesta nada", "ne ferme jamais".
        """
        found: set[int] = set()
        negated_clauses: set[int] = set()
        position, open_clause = 0, -1
        for token in self.tokens:
            if token.kind is not None and token.kind.negation and token.clause not in negated_clauses:
                open_clause = token.clause
                negated_clauses.add(open_clause)
            elif token.content:
                if open_clause == token.clause and token.kind is not None:
                    found.add(position)
                open_clause = -1
            position += token.content
        return frozenset(found)

    @cached_property
    def parts(self) -> tuple[int, ...]:
        """For each of `content` the clause that it stands in, where "and" begins another one, too."""
        joints = load_lexicon(self.language).joints
        edges = [token.start for token in self.tokens if token.kind is not None and token.kind.folded in joints]
        return tuple(token.clause + bisect(edges, token.start) for token in self.content)

    def bound(self, number: Token) -> str:
        """The limit that the phrase before a number makes of it: minimum, maximum, before, after, or ""."""
        found = load_lexicon(self.language).bounds.search(self.text, max(0, number.start - 30), number.start)
        return (found.lastgroup or "") if found else ""

    @property
    def is_claim(self) -> bool:
        """Whether there is enough to check: two content words, numbers counted as such."""
        return len(self.stems) >= 2


def analyse(text: str, language: str | None = None) -> Analysis:
    """Take a normalised text apart; its letter case tells the names. `language` is ISO 639-1; None: not known."""
    lexicon = load_lexicon(language)
    lower = text.lower() if len(text.lower()) == len(text) else text
    lower = lexicon.restriction.sub(lambda found: "_" * len(found[0][:2]) + found[0][2:], fold_word(lower))
    lower = lexicon.percent.sub(lambda found: PERCENT.ljust(len(found[0])), _CLOCK.sub(":", lower))
    tokens: list[Token] = []
    clause, last_number, distance, begins = 0, -1, 0, True
    shouted = sum(map(str.isupper, text)) > 0.6 * sum(map(str.isalpha, text))
    for match in _TOKEN.finditer(lower):
        start, end = match.span()
        if match["edge"]:
            clause += SENTENCE if match[0] in ".;!?|" else 1
            last_number, begins = -1, match[0] in ".:!?|"
            continue
        kind = classify(match[0], language) if match["word"] else None
        if kind is not None and kind.folded in lexicon.one and _follows_joint(tokens, lexicon):
            kind = kind._replace(number="1" if _begin_number(tokens, "1", lower, lexicon) is not None else "")
        if kind is not None and not kind.number:
            distance += 1
            elided = lower[end : end + 1] == "'"  # "en 2023 l'usine": no litres
            if kind.unit and not elided and last_number >= 0 and distance <= _UNIT_DISTANCE:
                number, magnitude = tokens[last_number], kind.unit in _MAGNITUDES
                if magnitude or not number.unit or number.unit in _MAGNITUDES:
                    unit = kind.unit if number.unit in ("", kind.unit) else " ".join(sorted((number.unit, kind.unit)))
                    tokens[last_number] = number._replace(unit=unit, end=end)
                    last_number, distance = (last_number if magnitude else -1), _UNIT_DISTANCE - 2
                    begins = False
                    continue
            capital = text[start].isupper() and not shouted
            acronym = capital and end - start > 1 and text[start:end].isupper()
            name = capital and kind.content and not kind.unit and not kind.calendar and (acronym or not begins)
            tokens.append(Token(kind.stem, kind, clause, start, end, name=name))
        else:
            value, name = _value(match, kind), match["code"] is not None
            first = None if kind is None or last_number < 0 else _begin_number(tokens, value, lower, lexicon)
            if first is not None:
                value = _join_number(tokens[first].stem, value, joint=first < len(tokens) - 1)
                start = tokens[first].start
                del tokens[first:]
            if len(value) <= 2 and value.isdecimal() and int(value) < 12 and lexicon.afternoon.match(lower, end):
                value = str(int(value) + 12)
            sign = (match["before"] or match["after"] or "").strip() if kind is None and not name else ""
            tokens.append(Token(value, None, clause, start, end, lexicon.units.get(sign, sign), name))
            last_number = -1 if name else len(tokens) - 1
            distance = 0 if not sign else _UNIT_DISTANCE - 1
        begins = False
    for at in range(len(tokens) - 3, -1, -1):  # "50 to 500 €": both are euros
        one, two = tokens[at], tokens[at + 2]
        joined = one.is_number and two.is_number and one.clause == two.clause and not tokens[at + 1].content
        digits = lower[one.start].isdigit() and not _YEAR.fullmatch(one.stem)
        if joined and not one.unit and (digits or two.unit.isalpha()):
            tokens[at] = one._replace(unit=two.unit)
    return Analysis(lower, tuple(tokens), language)


def _follows_joint(tokens: Sequence[Token], lexicon: Lexicon) -> bool:
    return bool(tokens) and tokens[-1].kind is not None and tokens[-1].kind.folded in lexicon.joints


def _begin_number(tokens: Sequence[Token], value: str, text: str, lexicon: Lexicon) -> int | None:
    """The token with which a number of several words begins that `value` goes on: "two hundred and fifty"."""
    joint = _follows_joint(tokens, lexicon)
    at = len(tokens) - 1 - joint
    if at < 0 or not tokens[at].is_number or (text[tokens[at].start].isdigit() and value != "1000"):
        return None
    return at if _join_number(tokens[at].stem, value, joint=joint) else None


def _join_number(one: str, two: str, *, joint: bool = False) -> str:
    """The number of two number words that follow each other; "": they are two numbers.

    >>> _join_number("40", "5"), _join_number("2", "100"), _join_number("12", "1000"), _join_number("5", "40")
    ('45', '200', '12000', '')
    """
    if not (one.isdecimal() and two.isdecimal() and len(one) <= _LONGEST_NUMBER):
        return ""
    great, small = int(one), int(two)
    last = great % 100
    if small == 100 and 1 < last < 20 and not joint:
        return str(great - last + last * 100)
    if small == 1000 and 1 < great < 1000 and not joint:
        return str(great * 1000)
    free = next((step for step in (1000, 100) if great % step == 0), 10 if last >= 20 and last % 10 == 0 else 0)
    return str(great + small) if great and 0 < small < free else ""


@lru_cache(maxsize=32768)
def classify(word: str, language: str | None) -> Kind:
    """What a folded word is."""
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
        lexicon.units.get(word, ""),
        lexicon.number_words.get(word, ""),
        word in lexicon.months or word in lexicon.weekdays,
    )


def is_negation(word: str, text: str, end: int, language: str | None) -> bool:
    """Whether the folded word that ends at `end` of `text` negates; "No. 5" and "no solo" do not."""
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

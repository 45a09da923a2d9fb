"""From sentences to claims: which mark answers for which words of the answer.

- A mark answers for the sentence it ends. Where marks stand inside a sentence ("A is 3 [C1], while B is
  5 [C2]"), each answers for the words since the mark before it, provided they state something by
  themselves; if not, they join the words after them, and the marks of both answer for the whole.
- Sentences of the same paragraph without a mark are covered by the next marked sentence of the
  paragraph: each is checked by itself against that sentence's marks and needs one of them only.
  A paragraph ends at a blank line, a rule, a heading or code; the items of a list without blank lines
  are one paragraph.
- Sentences that no mark covers are reported as unmarked.
- No claim, so neither covered nor unmarked: headings, bold titles, the header row of a table, code,
  sentences with fewer than two content words and numbers, and short lead-ins ("You need:").
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cached_property

from rag_service.query.verification.lexicon import LEAD_IN
from rag_service.query.verification.marks import Mark, find_marks
from rag_service.query.verification.quotations import Quotations
from rag_service.query.verification.statement import Statement, take_apart
from rag_service.text.normalise import normalise
from rag_service.text.sentences import Sentence

_BULLET = re.compile(r"[\s>#|*•‣▪·–—+-]*(?:\(?\d{1,3}[.)]\s+|\(?[a-z]\)\s+)?[*_\s]*", re.IGNORECASE)
_OUTER = " \t.,;:!?…|\"'()[]-"
_BREAK = re.compile(r"\n[ \t\r]*+\n|(?:(?<!-)-{3,}+|(?<!\*)\*{3,}+|(?<!_)_{3,}+)[ \t\r]*+\n")
_HEADER_RULE = re.compile(r"(?<![ :|-])(?>[ :|-]*?---)[ :|-]*\|")
_TITLE = re.compile(r"#{1,6}\s|\*\*[^*\n]{1,120}\*\*:?\s*\Z|__[^_\n]{1,120}__:?\s*\Z")
_LEAD_IN_WORDS = 3  # a sentence that ends in ":" with no more content words than this only leads in
_JOINT = re.compile(r"[\s,;.]*")


@dataclass(frozen=True, kw_only=True)
class Claim:
    """Words of the answer and the marks that answer for them. Costly readings are made once, on demand."""

    text: str  # as written, marks included
    marks: tuple[int, ...]
    sentence: tuple[int, int]  # offsets of the whole sentence in the answer
    covered: bool = False  # the marks stand in a later sentence, and one of them is enough
    quotations: tuple[str, ...] = ()  # explicit quotations of more than three words, normalised
    language: str | None = None

    @cached_property
    def plain(self) -> str:
        """The words without marks, markup and list numbers, normalised; letter case kept."""
        text = _BULLET.sub("", self.text, count=1)
        return normalise(text, markup=True).text.strip(" ")

    @cached_property
    def statement(self) -> Statement:
        return take_apart(self.plain, language=self.language)

    @cached_property
    def wordings(self) -> tuple[str, ...]:
        """What to look for letter by letter, in lower case: all of it, and without a leading connective."""
        whole = self.plain.lower().strip(_OUTER)
        folded = normalise(whole, fold_accents=True).text
        lead_in = LEAD_IN.match(folded)
        return (whole, whole[lead_in.end() :].strip(_OUTER)) if lead_in and len(folded) == len(whole) else (whole,)

    @cached_property
    def quoted_share(self) -> float:
        """Share of the content words that stand in the explicit quotations, 0..1."""
        words = self.statement.words
        quoted = frozenset(take_apart(" ".join(self.quotations), language=self.language).words)
        return sum(word in quoted for word in words) / len(words) if words else 1.0

    @property
    def makes_statement(self) -> bool:
        """False for headings, titles, lead-ins and sentences with too little to check."""
        if _TITLE.match(self.text):
            return False
        statement = self.statement
        leads_in = self.plain.endswith(":") and len(statement.words) <= _LEAD_IN_WORDS
        return statement.is_claim and not (leads_in and not statement.numbers and not statement.is_negative)


@dataclass
class ClaimReader:
    """Reads sentences in order and gives each claim as soon as its marks are known."""

    language: str | None = None
    unmarked: list[tuple[int, int]] = field(default_factory=list)
    _pending: list[tuple[Sentence, Claim]] = field(default_factory=list)
    _quotations: Quotations = field(default_factory=Quotations)

    def read(self, sentence: Sentence) -> list[Claim]:
        """The claims that this sentence makes, or completes by its marks."""
        if _HEADER_RULE.search(sentence.before) and self._pending and self._pending[-1][0].text.startswith("|"):
            self._pending.pop()
        if sentence.code or _BREAK.search(sentence.before) or _TITLE.match(sentence.text):
            self.end_paragraph()
        if sentence.code:
            return []
        marks = find_marks(sentence.text)
        claims = self._split(sentence, marks)
        if not marks:
            if claims[0].makes_statement:
                self._pending.append((sentence, claims[0]))
            return []
        numbers = tuple(dict.fromkeys(number for mark in marks for number in mark.numbers))
        covered = [
            Claim(
                text=claim.text,
                marks=numbers,
                sentence=claim.sentence,
                covered=True,
                quotations=claim.quotations,
                language=self.language,
            )
            for _, claim in self._pending
        ]
        self._pending.clear()
        return covered + claims

    def end_paragraph(self) -> None:
        """What is still without a mark stays so. Call it after the last sentence, too."""
        self.unmarked.extend(claim.sentence for _, claim in self._pending)
        self._pending.clear()
        self._quotations = Quotations()

    def _split(self, sentence: Sentence, marks: list[Mark]) -> list[Claim]:
        """One claim for each group of marks whose words state something; one in all without marks."""
        claims: list[Claim] = []
        start, numbers = 0, dict[int, None]()
        groups = _group(sentence.text, marks)
        for end, mark_numbers, cuts in groups:
            numbers |= dict.fromkeys(mark_numbers)
            if not cuts:
                continue
            claim = self._claim(sentence, start, end, tuple(numbers))
            if len(groups) == 1 or claim.statement.is_claim:
                claims.append(claim)
                start, numbers = end, {}
        rest = sentence.text[start:]
        if not claims or numbers or _has_words(rest):
            # What follows the last claim belongs to it.
            last = claims.pop() if claims else None
            begin = len(sentence.text) - len(rest) - (len(last.text) if last else 0)
            marks_of_both = (*(last.marks if last else ()), *numbers)
            claims.append(self._claim(sentence, begin, len(sentence.text), tuple(dict.fromkeys(marks_of_both))))
        return self._with_quotations(claims)

    def _claim(self, sentence: Sentence, start: int, end: int, marks: tuple[int, ...]) -> Claim:
        offsets = (sentence.start, sentence.end)
        return Claim(text=sentence.text[start:end], marks=marks, sentence=offsets, language=self.language)

    def _with_quotations(self, claims: list[Claim]) -> list[Claim]:
        found = [self._quotations.read(claim.text) for claim in claims]
        return [
            Claim(
                text=claim.text,
                marks=claim.marks,
                sentence=claim.sentence,
                quotations=quotations,
                language=self.language,
            )
            if quotations
            else claim
            for claim, quotations in zip(claims, found, strict=True)
        ]


def _group(text: str, marks: list[Mark]) -> list[tuple[int, tuple[int, ...], bool]]:
    """Runs of marks with nothing between: their end, their numbers, and whether words may be cut there."""
    groups: list[tuple[int, tuple[int, ...], bool]] = []
    for mark in marks:
        inside_word = text[mark.start - 1 : mark.start].isalnum() and text[mark.end : mark.end + 1].isalnum()
        if groups and _JOINT.fullmatch(text, groups[-1][0], mark.start):
            _, numbers, _ = groups.pop()
            groups.append((mark.end, numbers + mark.numbers, not inside_word))
        else:
            groups.append((mark.end, mark.numbers, not inside_word))
    return groups


def _has_words(text: str) -> bool:
    return any(character.isalnum() for character in text)

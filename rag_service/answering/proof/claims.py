"""From sentences to claims: the sentences that state something, with the marks that answer for them.

- A sentence is the unit: all its marks answer for all of it.
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
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

from rag_service.answering.proof.analysis import Analysis, analyse
from rag_service.answering.proof.lexicon import load_lexicon
from rag_service.answering.proof.passage import Passage
from rag_service.answering.proof.quotations import QUOTE_SIGN, Quotations, split_elisions
from rag_service.language.normalise import MARK, OPENING, normalise
from rag_service.language.sentences import Sentence

_INLINE = re.compile(rf"`[^`\n]*`|(?P<mark>{MARK})")
_S = r"[ \t\u00a0\u202f]"
_FENCED = r"^[ \t]*(?P<fence>```|~~~).*?(?:^[ \t]*(?P=fence)|\Z)"
_REMOVABLE = re.compile(rf"{_FENCED}|`[^`\n]*`|(?P<mark>(?<!{_S}){_S}*+{MARK})", re.MULTILINE | re.DOTALL)
_NUMBERS = re.compile(r"(?P<dash>[–-]?)[ \t\u00a0\u202fCc]*(?P<number>[0-9]+)")
_LONGEST_RANGE = 20  # [C1-3] means three chunks; a longer range is taken as its two ends
_WORD = re.compile(r"\w+")
_FEWEST_WORDS = 4  # a claim of fewer words must state something to be looked for letter by letter


class Mark(NamedTuple):
    """Characters [start, end) of the text it was found in, and the chunk numbers that it names."""

    start: int
    end: int
    numbers: tuple[int, ...]  # as written, each once; not checked against the chunks shown


def _read_numbers(mark: str) -> tuple[int, ...]:
    """Return the chunk numbers that a mark names, each once."""
    numbers: dict[int, None] = {}
    previous = 0
    for match in _NUMBERS.finditer(mark):
        number = int(match["number"])
        if match["dash"] and previous < number <= previous + _LONGEST_RANGE:
            numbers |= dict.fromkeys(range(previous, number))
        numbers[number] = None
        previous = number
    return tuple(numbers)


def find_marks(sentence: str) -> list[Mark]:
    """Return the marks of one sentence (not of a fenced code block), in order."""
    return [
        Mark(match.start(), match.end(), _read_numbers(match["mark"]))
        for match in _INLINE.finditer(sentence)
        if match["mark"]
    ]


def strip_marks(text: str) -> str:
    """Return the text without its marks and the space before each; code is left as it is.

    A mark inside a word leaves the word whole.
    """
    return _REMOVABLE.sub(lambda match: "" if match["mark"] else match[0], text)


_QUOTE_MARKS = "\"“”„«»'‘’"
_OPEN = rf"[{re.escape(OPENING)}]"
_OPENING = re.compile(_OPEN)
_CLOSE = r"[\]］】]"
_EVIDENCE = re.compile(rf"{_OPEN}{_S}?[Cc]{_S}?(?P<number>[0-9]{{1,9}}){_S}?[:,;(–-]?{_S}?[\"“„«'‘]")
# What may still become such a beginning, or a mark.
_PARTIAL_EVIDENCE = re.compile(rf"{_OPEN}(?:{_S}?(?:[Cc](?:{_S}?[0-9,;Cc –-]{{0,40}}{_S}?[:,;(–-]?{_S}?)?)?)?\Z")
_EVIDENCE_END = re.compile(rf"[{_QUOTE_MARKS}]{_S}?[.,;]?\)?{_S}?(?:(?P<close>{_CLOSE})|[,;]{_S}?(?=[Cc]{_S}?[0-9]))")
_FIRST_QUOTE = re.compile(rf"[\"”»“’](?!\w)(?:{_S}?{_CLOSE})?")
_LONGEST_EVIDENCE = 6_000  # characters of evidence that are hidden; nobody closes a longer one


@dataclass
class NamedEvidence:
    """The words of evidence that a model copies into its marks: `… twelve months [C1 "at most 12 months"]`.

    Takes the model's text in pieces and gives it back without those words: readers see `[C1]`, and one mark where the
    model writes several of the same passage in a row. A model that leaves the words out, forgets to close them or puts
    marks inside loses nothing but that help.
    """

    _held: str = ""  # may become a mark with evidence, or is the evidence so far
    _number: int | None = None  # of the mark whose evidence arrives
    _last: int | None = None  # the mark that was shown last, with nothing after it
    _seen: Counter[int] = field(default_factory=Counter)  # marks so far, by number
    _texts: dict[tuple[int, int], list[str]] = field(default_factory=dict)  # (number, its marks before) → evidence
    _taken: Counter[int] = field(default_factory=Counter)

    def feed(self, text: str) -> str:
        """Take the next piece; return what readers may see of it."""
        if not self._held and self._number is None and not _OPENING.search(text):
            self._last = None if text.strip() else self._last
            return text
        return self._scan(self._held + text, final=False)

    def finish(self) -> str:
        """Return the rest. Evidence that was never closed ends at its first quotation mark."""
        return self._scan(self._held, final=True)

    def take(self, number: int) -> tuple[str, ...]:
        """Return the evidence of the next mark of that number, in the order of the text; empty if it has none."""
        self._taken[number] += 1
        return tuple(self._texts.get((number, self._taken[number] - 1), ()))

    def _scan(self, text: str, *, final: bool) -> str:
        shown: list[str] = []
        while text:
            if self._number is not None:
                rest = self._hide(text, final=final)
                if rest is None:
                    break
                text = rest
                continue
            opening = _OPENING.search(text)
            at = opening.start() if opening else len(text)
            shown.append(text[:at])
            if text[:at].strip():
                self._last = None
            text = text[at:]
            if begin := _EVIDENCE.match(text):
                self._number = int(begin["number"])
                if self._number == self._last:
                    self._seen[self._number] -= 1  # its words join those of the mark before
                else:
                    shown.append(f"[C{self._number}]")
                text = text[begin.end() :]
            elif mark := re.match(MARK, text):
                numbers = _read_numbers(mark[0])
                if numbers != (self._last,):
                    self._seen.update(numbers)
                    shown.append(mark[0])
                    self._last = numbers[0] if len(numbers) == 1 else None
                text = text[mark.end() :]
            elif text and not final and _PARTIAL_EVIDENCE.match(text):
                break
            else:
                shown.append(text[:1])
                text = text[1:]
        self._held = text
        return "".join(shown)

    def _hide(self, text: str, *, final: bool) -> str | None:
        """Return what follows the evidence that `text` begins with; None while it goes on."""
        head = text[:_LONGEST_EVIDENCE]
        paragraph = head.find("\n\n")
        cut = paragraph if paragraph >= 0 else len(head)
        end = _EVIDENCE_END.search(head, 0, cut)
        forgotten = _FIRST_QUOTE.search(head, 0, cut)
        following = _EVIDENCE.search(head, forgotten.end(), cut) if forgotten else None
        if end is not None and (following is None or following.start() > end.start()):
            self._keep(text[: end.start()])
            return text[end.end() :] if end["close"] else f"[{text[end.end() :]}"
        if end is None and not final and paragraph < 0 and len(text) <= _LONGEST_EVIDENCE:
            return None
        if forgotten is not None:
            self._keep(text[: forgotten.start()])
            return text[forgotten.end() :]
        self._keep("")
        return text[cut:]

    def _keep(self, evidence: str) -> None:
        number = self._number or 0
        if evidence.strip():
            self._texts.setdefault((number, self._seen[number]), []).append(evidence)
        self._seen[number] += 1
        self._last, self._number = number, None


_BULLET = re.compile(r"[\s>#|*•‣▪·–—+-]*(?:\(?\d{1,3}[.)]\s+|\(?[a-z]\)\s+)?[*_\s]*", re.IGNORECASE)
_OUTER = " \t.,;:!?…|\"'()[]-"
_BREAK = re.compile(r"\n[ \t\r]*+\n|(?:(?<!-)-{3,}+|(?<!\*)\*{3,}+|(?<!_)_{3,}+)[ \t\r]*+\n")
_HEADER_RULE = re.compile(r"(?<![ :|-])(?>[ :|-]*?---)[ :|-]*\|")
_TITLE = re.compile(r"#{1,6}\s|\*\*[^*\n]{1,120}\*\*:?\s*\Z|__[^_\n]{1,120}__:?\s*\Z")
_LEAD_IN_WORDS = 3  # a sentence that ends in ":" with no more content words than this only leads in


@dataclass(frozen=True, kw_only=True)
class Claim:
    """Words of the answer and the marks that answer for them. Costly readings are made once, on demand."""

    text: str  # as written, marks included
    marks: tuple[int, ...]  # of the sentence, each once
    sentence: tuple[int, int]  # offsets of the whole sentence in the answer
    covered: bool = False  # the marks stand in a later sentence, and one of them is enough
    quotations: tuple[str, ...] = ()  # explicit quotations of more than three words, normalised
    language: str | None = None
    lead_in: str = ""  # the sentence before it that ends in a colon, in lower case
    named: Mapping[int, tuple[str, ...]] = field(default_factory=dict)  # mark → words that the model copied into it

    @cached_property
    def plain(self) -> str:
        """The words without marks, markup and list numbers, normalised; letter case kept."""
        text = _BULLET.sub("", self.text, count=1)
        return normalise(text, markup=True).text.strip(" ")

    @cached_property
    def analysis(self) -> Analysis:
        return analyse(self.plain, self.language)

    @cached_property
    def wordings(self) -> tuple[str, ...]:
        """Return what to look for letter by letter, in lower case: all of it, and without a leading connective."""
        whole = self.plain.lower().strip(_OUTER)
        if len(_WORD.findall(whole)) < _FEWEST_WORDS and not self.analysis.is_claim:
            return ()
        folded = normalise(whole, fold_accents=True).text
        lead_in = load_lexicon(self.language).lead_in.match(folded)
        return (whole, whole[lead_in.end() :].strip(_OUTER)) if lead_in and len(folded) == len(whole) else (whole,)

    def find_quote(self, passage: Passage) -> tuple[int, int] | None:
        """Where the claim, or the quotation that is all of it, stands in a passage in a way that proves it."""
        asks = "?" in self.plain[len(self.plain.rstrip(_OUTER)) :]
        for wording in self.wordings:
            if (place := passage.find_quote(wording, asks=asks, lead_in=self.lead_in)) and place[2]:
                return place[:2]
        if not self.quotations or not self.only_quotes:
            return None
        places = [
            passage.find_quote(quotation) or self._find_parts(passage, quotation) for quotation in self.quotations
        ]
        found = [place for place in places if place and place[2]]
        return max(found, key=lambda place: place[1] - place[0])[:2] if found and len(found) == len(places) else None

    def _find_parts(self, passage: Passage, quotation: str) -> tuple[int, int, bool] | None:
        parts = split_elisions(quotation)
        place = passage.find_parts(parts) if len(parts) > 1 else None
        return None if place is None else (*place, True)

    def quotes_wrongly(self, passage: Passage) -> bool:
        """Return whether one of the quotations does not stand in the passage."""
        return any(
            passage.find_whole(quotation) is None and self._find_parts(passage, quotation) is None
            for quotation in self.quotations
        )

    @cached_property
    def only_quotes(self) -> bool:
        """Return whether nothing but words such as "the guide says" stands around the quotations."""
        lexicon = load_lexicon(self.language)
        rest = self.plain.lower()
        for quotation in self.quotations:
            rest = rest.replace(quotation, " ")
        said = [token for token in analyse(rest, None).tokens if token.content or (token.kind and token.kind.negation)]
        return all(token.kind is not None and token.kind.folded in lexicon.reporting for token in said)

    @property
    def makes_statement(self) -> bool:
        """False for headings, titles, lead-ins and sentences with too little to check."""
        if _TITLE.match(self.text):
            return False
        analysis = self.analysis
        leads_in = self.plain.endswith(":") and len(analysis.stems) <= _LEAD_IN_WORDS
        return analysis.is_claim and not (leads_in and not analysis.numbers and not analysis.negates)


@dataclass
class ClaimReader:
    """Reads sentences in order and gives each claim as soon as its marks are known."""

    language: str | None = None
    named: NamedEvidence | None = None
    unmarked: list[tuple[int, int]] = field(default_factory=list)
    _pending: list[tuple[Sentence, Claim]] = field(default_factory=list)
    _lead_in: str = ""
    _quotations: Quotations = field(default_factory=Quotations)

    def read(self, sentence: Sentence) -> list[Claim]:
        """Return the claims that this sentence makes, or completes by its marks."""
        if _HEADER_RULE.search(sentence.before) and self._pending and self._pending[-1][0].text.startswith("|"):
            self._pending.pop()
        if sentence.code or _BREAK.search(sentence.before) or _TITLE.match(sentence.text):
            self.end_paragraph()
        if sentence.code:
            return []
        marks = find_marks(sentence.text)
        numbers = tuple(dict.fromkeys(number for mark in marks for number in mark.numbers))
        claim = Claim(
            text=sentence.text,
            marks=numbers,
            sentence=(sentence.start, sentence.end),
            language=self.language,
            lead_in=self._lead_in,
        )
        if self._quotations.closer or QUOTE_SIGN.search(sentence.text):
            claim = replace(claim, quotations=self._quotations.read(claim.text))
        if ":" in sentence.text and strip_marks(sentence.text).rstrip(" *").endswith(":"):
            self._lead_in = claim.plain.lower()
        if not marks:
            if claim.makes_statement:
                self._pending.append((sentence, claim))
            return []
        named: Mapping[int, tuple[str, ...]] = {} if self.named is None else _take_evidence(self.named, marks)
        covered = [replace(one, marks=numbers, covered=True, named=named) for _, one in self._pending]
        self._pending.clear()
        return [*covered, replace(claim, named=named)]

    def end_paragraph(self) -> None:
        """End the paragraph: what is still without a mark stays so. Call it after the last sentence, too."""
        if self._pending:
            self.unmarked.extend(claim.sentence for _, claim in self._pending)
            self._pending.clear()
        self._quotations = Quotations()


def _take_evidence(named: NamedEvidence, marks: Sequence[Mark]) -> dict[int, tuple[str, ...]]:
    """Return the words that the model copied into the marks of a sentence, by mark."""
    found: dict[int, tuple[str, ...]] = {}
    for mark in marks:
        for number in mark.numbers:
            if texts := named.take(number):
                found[number] = (*found.get(number, ()), *texts)
    return found

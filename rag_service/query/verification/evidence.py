"""Finding the words of a chunk that carry a claim.

Three ways, the first that succeeds counts:

1. The claim itself stands in the chunk, up to the declared normalisation and letter case. It must not
   cut a word or a number, and no negation of the same clause may be left outside ("are accepted" is not
   found in "are not accepted").
2. The claim quotes explicitly: the quotations must stand in the chunk, and every number of the claim in
   them or in the sentences around them. A quotation that does not stand settles the matter. One that does
   settles it if it makes up half of the claim; else the claim has to be supported like any other.
3. Support: one sentence of the chunk, or two neighbours, hold enough of the claim's content words (see
   SUPPORT_THRESHOLD), and nothing speaks against it: see `rag_service.query.verification.agreement`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from rag_service.domain import Chunk
from rag_service.query.verification.agreement import agrees, numbers_hold
from rag_service.query.verification.claims import Claim
from rag_service.query.verification.lexicon import fold_word
from rag_service.query.verification.prepared_text import PreparedText, negates_around, prepare, stands_whole
from rag_service.query.verification.quotations import split_elisions
from rag_service.query.verification.statement import (
    WORD,
    Statement,
    any_matches,
    bucket,
    is_content,
    matches,
)
from rag_service.text.normalise import Normalised, normalise

# Share of the claim's content words that the quote (with title and headings) must hold; two neighbouring
# sentences collect more words by chance than one, so they need more. Set on XQuAD: of 2,343 sentences (es, en)
# taken out of their paragraph the rest still "supported" 0.4 % / 0.8 %, some of them rightly, while 98 % of the
# same sentences with words dropped and replaced were still found. At 0.6 / 0.8: 1.5 % / 1.9 % and 99 %.
SUPPORT_THRESHOLD = 0.7
PAIR_SUPPORT_THRESHOLD = 0.9
# … of which the quote itself, without title and headings, must hold at least this share.
_OWN_SHARE = 0.5
_QUOTED_SHARE = 0.5  # share of the claim's content words that its quotations hold, to speak for all of it
_CANDIDATES = 8  # best windows examined in full
_FEWEST_WORDS = 4  # a wording this long is looked for letter by letter even if all its words are common
_LONGEST_ELISION = 600  # characters between two parts of a quotation with [...]


@dataclass(frozen=True)
class Evidence:
    """How well a chunk carries a claim, and by which of its characters [start, end) (local offsets).

    Without a place the claim is not carried; `support` then says how near the best candidate came.
    """

    support: float  # 0..1
    start: int = -1
    end: int = -1
    is_copy: bool = False  # the claim stands there letter by letter

    @property
    def found(self) -> bool:
        return self.start >= 0


class Passage:
    """A chunk in which many claims are looked for."""

    def __init__(self, chunk: Chunk, *, language: str | None = None) -> None:
        self.chunk = chunk
        self._language = language

    def find(self, claim: Claim) -> Evidence:
        """The best evidence for `claim` in this chunk."""
        for wording in claim.wordings:
            if place := self._find_wording(wording, claim):
                return Evidence(1.0, *place, is_copy=True)
        if claim.quotations:
            quoted = self._find_quotations(claim)
            if quoted is None or claim.quoted_share >= _QUOTED_SHARE:
                return Evidence(1.0, *quoted) if quoted else Evidence(0.0)
        return self._find_support(claim.statement) if claim.statement.is_claim else Evidence(0.0)

    # 1. letter by letter

    def _find_wording(self, wording: str, claim: Claim) -> tuple[int, int] | None:
        text = self._text.text
        at = text.find(wording) if wording else -1
        if at < 0 or not (claim.statement.is_claim or len(WORD.findall(wording)) >= _FEWEST_WORDS):
            return None
        while at >= 0:
            end = at + len(wording)
            if stands_whole(text, at, end) and not self._loses_negation(at, end):
                return self._text.original(at, end)
            at = text.find(wording, at + 1)
        return None

    def _loses_negation(self, start: int, end: int) -> bool:
        """Whether the clause that holds the match negates outside it, within the same sentence."""
        text = self._text.text
        if not negates_around(text, start, end, 0, len(text)):
            return False  # as nearly always, and without reading sentences
        first, last = (bisect_right(self._starts, at) - 1 for at in (start, end - 1))
        begin = self._bounds[first][0] if first >= 0 else 0
        finish = self._bounds[last][1] if last >= 0 else end
        return negates_around(text, start, end, begin, max(end, finish))

    # 2. explicit quotations

    def _find_quotations(self, claim: Claim) -> tuple[int, int] | None:
        places = [self._find_quotation(quotation) for quotation in claim.quotations]
        if None in places:
            return None
        start, end = max((place for place in places if place), key=lambda place: place[1] - place[0])
        numbers = claim.statement.numbers
        if not numbers or numbers_hold(claim.statement, self._state(start, end)):
            return self._text.original(start, end)
        around = [i for i, (first, last) in enumerate(self._bounds) if first < end and last > start]
        if around:
            wider = self._bounds[around[0]][0], self._bounds[around[-1]][1]
            if numbers_hold(claim.statement, self._state(*wider)):
                return self._text.original(*wider)
        return None

    def _find_quotation(self, quotation: str) -> tuple[int, int] | None:
        """Normalised offsets of a quotation; its parts in order where it leaves something out."""
        if place := self._find_whole(quotation, 0):
            return place
        parts = split_elisions(quotation)
        if len(parts) < 2:
            return None
        places: list[tuple[int, int]] = []
        for part in parts:
            place = self._find_whole(part, places[-1][1] if places else 0)
            if place is None or (places and place[0] - places[-1][1] > _LONGEST_ELISION):
                return None
            places.append(place)
        return places[0][0], places[-1][1]

    def _find_whole(self, wording: str, position: int) -> tuple[int, int] | None:
        text = self._text.text
        at = text.find(wording, position)
        while at >= 0:
            if stands_whole(text, at, at + len(wording)):
                return at, at + len(wording)
            at = text.find(wording, at + 1)
        return None

    # 3. support

    def _find_support(self, claim: Statement) -> Evidence:
        """The best window that agrees, unless a sentence nearer to the claim disagrees with it."""
        nearest = contradicted = 0.0
        for share, first, last in self._candidates(claim):
            start, end = self._bounds[first][0], self._bounds[last][1]
            alone = first == last
            if not agrees(claim, self._state(start, end), self._context):
                contradicted = max(contradicted, share if alone else 0.0)
            elif contradicted > (share if alone else SUPPORT_THRESHOLD):
                break
            elif share >= (SUPPORT_THRESHOLD if alone else PAIR_SUPPORT_THRESHOLD):
                return Evidence(share, *self._text.original(start, end))
            else:
                nearest = max(nearest, share)
        return Evidence(min(nearest, SUPPORT_THRESHOLD - 0.01))

    def _candidates(self, claim: Statement) -> Iterator[tuple[float, int, int]]:
        """Windows with the share of the claim's words they hold: single sentences, then neighbours, best first."""
        if not claim.words:  # numbers only: any sentence may hold them
            yield from ((1.0, i, i) for i in range(len(self._bounds)))
            return
        held: dict[int, set[str]] = {}  # sentence → the claim's words in it
        for word, places in self._find_words(claim).items():
            for at in places:
                held.setdefault(bisect_right(self._starts, at) - 1, set()).add(word)
        held.pop(-1, None)
        given = {word for word in claim.words if held and any_matches(word, self._context)}
        pairs = {i: words | held[i + 1] for i, words in held.items() if i + 1 in held}
        total = len(claim.words)
        for width, windows in ((0, held), (1, pairs)):
            ranked = [
                (len(words | given) / total, -first)
                for first, words in windows.items()
                if len(words) >= _OWN_SHARE * total
            ]
            for share, first in sorted(ranked, reverse=True)[:_CANDIDATES]:
                yield share, -first, width - first

    def _find_words(self, claim: Statement) -> dict[str, list[int]]:
        """Where the chunk has forms of each of the claim's words; nothing if it has too few of them.

        Most chunks that a claim does not come from lack its longest words, so those are looked for first.
        """
        places: dict[str, list[int]] = {}
        allowed = (1 - _OWN_SHARE) * len(claim.words)
        for word in sorted(claim.words, key=len, reverse=True):
            places[word] = self._find_forms(word)
            allowed -= not places[word]
            if allowed < 0:
                return {}
        return places

    def _find_forms(self, word: str) -> list[int]:
        """Where the chunk has forms of `word`; no index, since a claim has few words and a chunk many."""
        text, beginning = self._prepared.folded, bucket(word)
        found: list[int] = []
        at = text.find(beginning)
        while at >= 0:
            if not text[at - 1 : at].isalnum():
                whole = WORD.match(text, at)
                if whole and matches(word, whole[0]):
                    found.append(at)
            at = text.find(beginning, at + len(beginning))
        return found

    # preparation

    @cached_property
    def _prepared(self) -> PreparedText:
        # The end of a sentence whose beginning, and perhaps its negation, is not in this chunk proves nothing.
        return prepare(self.chunk.text, self._language, self.chunk.start > 0)

    @property
    def _text(self) -> Normalised:
        return self._prepared.text

    @property
    def _bounds(self) -> list[tuple[int, int]]:
        return self._prepared.bounds

    @property
    def _starts(self) -> list[int]:
        return self._prepared.starts

    @cached_property
    def _context(self) -> frozenset[str]:
        """Content words of the document's title and of the chunk's headings and sheet names."""
        places = {(*span.location.headings, span.location.sheet or "") for span in self.chunk.spans}
        text = " ".join((self.chunk.document.title, *(part for place in places for part in place)))
        words = WORD.findall(normalise(text, fold_case=True, markup=True).text)
        return frozenset(folded for word in words if is_content(folded := fold_word(word)))

    def _state(self, start: int, end: int) -> Statement:
        return self._prepared.state(start, end)

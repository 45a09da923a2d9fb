"""Citation verification: what code can tell of a sentence and its marks, without understanding either.

A mark alone proves nothing. Every mark of every claim gets a citation (`proof.claims` says which sentences are claims):

- `verified`: the sentence stands letter by letter in the passage that the mark names, or in the result of an operation
  over a table;
- `misattributed`: the words that are cited, or the sentence, stand in another passage than the mark names;
- `not_found`: the mark names no passage that was shown, the words that are cited stand nowhere, or the passage has no
  word of the sentence;
- `unchecked`: the cited words stand there, or the passage has words near to the sentence. Whether they say what the
  sentence says is for a judge (`answering.drafts.judged`).

A sentence that no mark of its own ends, but that the next marked sentence of its paragraph covers, gets one
citation: the best that those marks give. Sentences under one mark that quote a run of the passage share one citation.
The order is that of the sentences, then of the marks.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from rag_service.answering.proof.analysis import analyse
from rag_service.answering.proof.claims import Claim, ClaimReader, NamedEvidence
from rag_service.answering.proof.figures import find_strange_figure
from rag_service.answering.proof.passage import Evidence, Passage, locate, passage_of
from rag_service.domain import Chunk, Citation, CitationStatus, CitedWords, Hit, ProofMethod
from rag_service.language.sentences import Sentence, SentenceStream
from rag_service.tables.sentences import CitedCells

SentenceOffsets = tuple[int, int]
_BETWEEN_SENTENCES = re.compile(r"[\W_]*(?:\d{1,2}[.)]\W*)?")  # white space, list marks, bars of a table
_ORDER = tuple(CitationStatus)  # best first
# Share of a sentence's words that a passage which the mark does not name must hold to be its source.
_ELSEWHERE_SHARE = 0.8
_LONGEST_SHOWN = 200  # characters of cited words that a reason repeats
# What speaks against an answer, even beside a citation that verifies the same sentence.
REFUTED = (CitationStatus.CONTRADICTED, CitationStatus.MISATTRIBUTED, CitationStatus.NOT_FOUND)


class CitedClaim(NamedTuple):
    """A sentence of the answer with the citations that answer for it."""

    sentence: SentenceOffsets
    text: str  # without marks and markup
    citations: tuple[int, ...]  # positions among the answer's citations
    named: Mapping[int, tuple[str, ...]] = {}  # mark → words that the writer copied into it
    strange: str | None = None  # a figure that stands in nothing that is cited


@dataclass(frozen=True, kw_only=True)
class Verification:
    """Every mark of an answer, checked. Offsets count characters of the answer."""

    citations: tuple[Citation, ...]
    claims: tuple[CitedClaim, ...]
    unmarked: tuple[SentenceOffsets, ...]  # sentences that state something and that no mark covers

    @property
    def flagged(self) -> tuple[SentenceOffsets, ...]:
        """Marked or covered sentences that are not wholly verified."""
        return flag_sentences(self.claims, self.citations)

    @property
    def counts(self) -> Mapping[CitationStatus, int]:
        """Citations by status; every status is present."""
        return {status: sum(c.status is status for c in self.citations) for status in CitationStatus}


def flag_sentences(claims: Iterable[CitedClaim], citations: Sequence[Citation]) -> tuple[SentenceOffsets, ...]:
    """Return the sentences that no verified citation proves."""
    flagged: dict[SentenceOffsets, None] = {}
    for claim in claims:
        for position in claim.citations:
            if citations[position].status is CitationStatus.VERIFIED:
                break
        else:
            flagged[claim.sentence] = None
    return tuple(flagged)


def verify_answer(
    answer: str, shown: Sequence[Hit], *, others: Sequence[Hit] = (), language: str | None = None
) -> Verification:
    """Check every citation of a complete answer.

    Args:
        shown: the chunks as the model saw them: `[C1]` names the first.
        others: further retrieved chunks, in which a misattributed quote may stand.
        language: ISO 639-1 of the answer; narrows abbreviations and number words.
    """
    return CitationStream(shown, others=others, language=language).finish(answer)


class CitationStream:
    """Checks citations while the answer arrives.

    A sentence's citations come as soon as nothing can extend it: that is with the first visible character
    after its stop and its marks. What comes out does not depend on how the text was cut.
    """

    def __init__(
        self,
        shown: Sequence[Hit],
        *,
        others: Sequence[Hit] = (),
        question: str = "",
        language: str | None = None,
        named: NamedEvidence | None = None,
        clean: Callable[[Hit], Hit] | None = None,
        skip: Callable[[str], bool] | None = None,
        computed: Mapping[str, CitedCells] | None = None,
    ) -> None:
        """
        Args:
            shown, others, language: as for `verify_answer`.
            question: its figures may be repeated.
            named: the words of evidence that the model copied into its marks.
            clean: blanks out, character for character, what in a passage proves nothing.
            skip: tells sentences of the service's own, which make no claim.
            computed: id of a shown passage → the cells behind it, for results of operations over tables.
        """
        self._language = language
        self._question = question
        self._hits = [*shown, *others]
        self._shown = len(shown)
        self._clean = clean
        self._skip = skip
        self._computed = computed or {}
        self._passages: dict[int, Passage] = {}
        self._cited_words: list[str] = []  # of the sentences so far
        self._sentences = SentenceStream(language=language)
        self._reader = ClaimReader(language=language, named=named)
        self._citations: list[Citation] = []
        self._claims: list[CitedClaim] = []

    def feed(self, delta: str) -> list[Citation]:
        """Take the next piece of the answer; return the citations that it completed."""
        return self._check(self._sentences.feed(delta))

    def finish(self, delta: str = "") -> Verification:
        """Take the last piece; return the verification of the whole answer, earlier citations included."""
        self._check(self._sentences.flush(delta))
        self._reader.end_paragraph()
        return self.so_far()

    def so_far(self) -> Verification:
        """Return what is known of the answer; later pieces only add to it."""
        return Verification(
            citations=tuple(self._citations), claims=tuple(self._claims), unmarked=tuple(self._reader.unmarked)
        )

    def _check(self, sentences: Iterable[Sentence]) -> list[Citation]:
        before = len(self._citations)
        for sentence in sentences:
            if self._skip is not None and self._skip(sentence.text):
                continue
            begin = len(self._citations)  # earlier ones have been given out
            for claim in self._reader.read(sentence):
                self._add(claim, begin)
        return self._citations[before:]

    def _add(self, claim: Claim, begin: int) -> None:
        """Cite a claim; `begin`: citations before this one have been given out."""
        first = len(self._citations)
        cited = [self._cite(claim, mark) for mark in claim.marks]
        strange = None
        if not any(citation.status is CitationStatus.VERIFIED for citation in cited):
            strange = self._find_strange(claim)
            cited = cited if strange is None else [self._with_strange(citation, strange) for citation in cited]
        self._cited_words += (words for copied in claim.named.values() for words in copied)
        if claim.covered and len(cited) > 1:
            cited = [min(cited, key=_rank)]  # one of the marks is enough
        if first > begin and (whole := self._join(cited)):
            self._citations[-1] = whole
            first -= 1
        else:
            self._citations += cited
        positions = tuple(range(first, len(self._citations)))
        self._claims.append(CitedClaim(claim.sentence, claim.plain, positions, claim.named, strange))

    def _find_strange(self, claim: Claim) -> str | None:
        """Return a figure of the claim that stands in nothing that it may come from; None: there is none."""
        cited = [self._hits[mark - 1].chunk for mark in claim.marks if 1 <= mark <= self._shown]
        copied = [words for named in claim.named.values() for words in named]
        around = {part for chunk in cited for part in _names(chunk)}
        rests_on = copied or [chunk.text for chunk in cited]
        return find_strange_figure(
            claim.plain,
            [*rests_on, self._question, *self._cited_words],
            others=around,
            count=len(rests_on),
            language=self._language,
        )

    @staticmethod
    def _with_strange(citation: Citation, figure: str) -> Citation:
        return doubt_figure(citation, figure) if citation.status is CitationStatus.UNCHECKED else citation

    def _join(self, cited: Sequence[Citation]) -> Citation | None:
        """The last citation and this one as one, if they quote sentences that follow each other under one mark."""
        last, (new, *others) = self._citations[-1], cited
        quoted = last.method is new.method is ProofMethod.QUOTE
        if others or not quoted or (last.mark, last.status) != (new.mark, new.status) or last.chunk_id != new.chunk_id:
            return None
        if last.start is None or last.end is None or new.start is None or new.end is None:
            return None
        chunk = self._hits[new.mark - 1].chunk
        if not _BETWEEN_SENTENCES.fullmatch(chunk.text, last.end - chunk.start, new.start - chunk.start):
            return None
        text = chunk.text[last.start - chunk.start : new.end - chunk.start]
        place = locate(chunk, last.start, new.end, analyse(text, self._language), is_copy=True)
        return replace(last, quote=text, end=new.end, sentence_end=new.sentence_end, location=place)

    def _passage(self, position: int) -> Passage:
        if position not in self._passages:
            hit = self._hits[position]
            self._passages[position] = passage_of((self._clean(hit) if self._clean else hit).chunk, self._language)
        return self._passages[position]

    def _cite(self, claim: Claim, mark: int) -> Citation:
        citation = Citation(
            mark=mark,
            status=CitationStatus.NOT_FOUND,
            sentence_start=claim.sentence[0],
            sentence_end=claim.sentence[1],
            support=0.0,
        )
        if not 1 <= mark <= self._shown:
            return replace(citation, reason=f"No passage [C{mark}] was shown.")
        own = mark - 1
        if quoted := self._quoted(citation, claim, own):
            return quoted
        for other in range(len(self._hits)):
            if other != own and (quoted := self._quoted(citation, claim, other)):
                return replace(quoted, status=CitationStatus.MISATTRIBUTED, method=None)
        if claim.quotations and claim.quotes_wrongly(self._passage(own)):
            return replace(citation, reason="The words in quotation marks do not stand in the passage.")
        if copied := claim.named.get(mark, ()):
            return self._find_copied(citation, claim, copied)
        nearest = self._passage(own).find_nearest(claim.analysis)
        if nearest is not None:
            return self._unchecked(citation, claim, own, [(nearest.start, nearest.end)], nearest)
        return self._find_elsewhere(citation, claim, own) or citation

    def _quoted(self, citation: Citation, claim: Claim, position: int) -> Citation | None:
        """A verified citation if the claim stands letter by letter in the passage."""
        place = claim.find_quote(self._passage(position))
        if place is None:
            return None
        proved = replace(citation, status=CitationStatus.VERIFIED, method=ProofMethod.QUOTE, support=1.0)
        return self._placed(proved, claim, position, place, is_copy=True)

    def _find_copied(self, citation: Citation, claim: Claim, copied: Sequence[str]) -> Citation:
        """Where the words stand that the writer copied into a mark: there, in another passage, or nowhere."""
        own = citation.mark - 1
        passage = self._passage(own)
        places = [passage.find_named(words, claim.analysis) for words in copied]
        near = [
            passage.find_paraphrased(words) if place is None else place
            for words, place in zip(copied, places, strict=True)
        ]
        if all(near):
            return self._unchecked(citation, claim, own, [place for place in near if place], None)
        missing = next(words for words, place in zip(copied, near, strict=True) if place is None)
        citation = replace(citation, missing=_cut(missing))
        for other in range(len(self._hits)):
            if other != own and (place := self._passage(other).find_named(missing, claim.analysis)):
                found = self._placed(citation, claim, other, place)
                reason = f"“{citation.missing}” stands in another passage."
                return replace(found, status=CitationStatus.MISATTRIBUTED, reason=reason)
        return replace(citation, reason=f"“{citation.missing}” does not stand in the passage.")

    def _unchecked(
        self,
        citation: Citation,
        claim: Claim,
        position: int,
        places: Sequence[tuple[int, int]],
        nearest: Evidence | None,
    ) -> Citation:
        """Return the citation of words that may say what the claim says, for a judge; the first place is the quote."""
        support = 0.99 if nearest is None else round(min(nearest.share, 0.99), 3)
        found = [self._placed(citation, claim, position, place) for place in dict.fromkeys(places)]
        more = tuple(
            CitedWords(quote=one.quote or "", start=one.start or 0, end=one.end or 0, location=one.location)
            for one in found[1:]
        )
        return replace(found[0], status=CitationStatus.UNCHECKED, support=support, evidence=more)

    def _find_elsewhere(self, citation: Citation, claim: Claim, own: int) -> Citation | None:
        """Where no word of a claim stands in the passage that its mark names: another one that has nearly all."""
        for position in range(len(self._hits)):
            evidence = self._passage(position).find_nearest(claim.analysis) if position != own else None
            if evidence is not None and evidence.share >= _ELSEWHERE_SHARE:
                found = self._placed(citation, claim, position, (evidence.start, evidence.end))
                return replace(found, status=CitationStatus.MISATTRIBUTED, support=round(evidence.share, 3))
        return None

    def _placed(
        self, citation: Citation, claim: Claim, position: int, place: tuple[int, int], *, is_copy: bool = False
    ) -> Citation:
        """Return the citation with its quote and place; `place` counts normalised characters of the passage."""
        chunk = self._hits[position].chunk
        cells = self._computed.get(chunk.id)
        return place_words(citation, chunk, self._passage(position), place, claim.plain, cells=cells, is_copy=is_copy)


def doubt_figure(citation: Citation, figure: str) -> Citation:
    """Return the citation with the reason that this figure of its sentence stands in nothing that it cites."""
    return replace(citation, reason=f"“{figure}” does not stand in the words cited.", missing=figure)


def place_words(
    citation: Citation,
    chunk: Chunk,
    passage: Passage,
    place: tuple[int, int],
    sentence: str,
    *,
    cells: CitedCells | None = None,
    is_copy: bool = False,
) -> Citation:
    """Return the citation with its quote and place.

    Args:
        place: normalised characters of the chunk's passage.
        cells: behind the chunk, if it is the result of an operation over a table: they are what is cited.
    """
    if cells is not None:
        return _at_cells(citation, chunk, cells)
    first, last = passage.normalised.original(*place)
    if chunk.text[last : last + 1] in (")", "]") and _is_open(chunk.text[first:last], chunk.text[last]):
        last += 1  # the bracket that closes one inside the quote: outer punctuation was not looked for
    quote = chunk.text[first:last]
    start = chunk.start + first + len(quote) - len(quote.lstrip())
    quote = quote.strip()
    end = start + len(quote)
    return replace(
        citation,
        chunk_id=chunk.id,
        document_id=chunk.document.id,
        content_hash=chunk.document.content_hash,
        quote=quote,
        start=start,
        end=end,
        location=locate(chunk, start, end, analyse(sentence, passage.language), is_copy=is_copy),
    )


def _at_cells(citation: Citation, chunk: Chunk, cells: CitedCells) -> Citation:
    """Return the citation of a result of an operation over a table: its cells, and how they were reckoned with."""
    return replace(
        citation,
        method=ProofMethod.COMPUTED if citation.method is ProofMethod.QUOTE else citation.method,
        formula=cells.formula or None,
        document_id=chunk.document.id,
        content_hash=chunk.document.content_hash,
        quote=chunk.text,
        start=cells.start,
        end=cells.end,
        location=cells.location,
    )


def _names(chunk: Chunk) -> set[str]:
    """Return the title and file name of a passage's document, its date, and its headings and sheets."""
    document = chunk.document
    names = {document.title, document.file_name or "", document.updated_at.date().isoformat()}
    return names.union(*({*span.location.headings, span.location.sheet or ""} for span in chunk.spans))


def _cut(words: str) -> str:
    return words if len(words) <= _LONGEST_SHOWN else f"{words[:_LONGEST_SHOWN]}…"


def _rank(citation: Citation) -> int:
    return _ORDER.index(citation.status)


def _is_open(quote: str, closer: str) -> bool:
    """Return whether a bracket of the quote is still open that `closer` closes."""
    opener = "(" if closer == ")" else "["
    return quote.count(opener) > quote.count(closer)

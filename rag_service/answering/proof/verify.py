"""Citation verification: what a document says, and what it does not.

Code compares the answer's text with the retrieved passages: a mark alone, in the answer or forged in a document, proves
nothing. Every mark of every claim gets a citation (`proof.claims` says which words a mark stands for):

- `verified`: the claim stands letter by letter in the passage that the mark names, or its figure was recomputed,
  or computed from a table;
- `contradicted`: the nearest words of that passage say something else (`proof.vetoes`);
- `misattributed`: that passage has no evidence, or only nearby words, but the claim stands in another one;
- `unchecked`: there is evidence and nothing in it differs; only a judge can tell whether it entails the claim;
- `not_found`: no evidence, or the mark names no passage that was shown.

A sentence that no mark of its own ends, but that the next marked sentence of its paragraph covers, gets one
citation: the best that those marks give. Sentences under one mark that quote a run of the passage share one citation.
The order is that of the sentences, then of the marks.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

from rag_service.answering.proof.analysis import analyse, classify
from rag_service.answering.proof.claims import Claim, ClaimReader, NamedEvidence
from rag_service.answering.proof.computed import recompute
from rag_service.answering.proof.pair import Pair
from rag_service.answering.proof.passage import Passage, locate, passage_of
from rag_service.answering.proof.table_values import TableValue
from rag_service.answering.proof.vetoes import find_difference, find_doubt
from rag_service.domain import Chunk, Citation, CitationStatus, Hit, ProofMethod
from rag_service.language.sentences import Sentence, SentenceStream
from rag_service.language.words import words

SentenceOffsets = tuple[int, int]
_BETWEEN_SENTENCES = re.compile(r"[\W_]*(?:\d{1,2}[.)]\W*)?")  # white space, list marks, bars of a table
_ORDER = tuple(CitationStatus)  # best first
# Share of a claim's words that a passage which the mark does not name must hold to be its source.
_ELSEWHERE_SHARE = 0.8
# What speaks against an answer, even beside a citation that verifies the same sentence.
REFUTED = (CitationStatus.CONTRADICTED, CitationStatus.MISATTRIBUTED, CitationStatus.NOT_FOUND)


class CitedClaim(NamedTuple):
    """Words of the answer with the citations that answer for them."""

    sentence: SentenceOffsets
    text: str  # without marks
    citations: tuple[int, ...]  # positions among the answer's citations


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
    """The sentences with a claim that no verified citation proves."""
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
    """Checks every citation of a complete answer.

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
        language: str | None = None,
        named: NamedEvidence | None = None,
        clean: Callable[[Hit], Hit] | None = None,
        skip: Callable[[str], bool] | None = None,
        values: Sequence[TableValue] = (),
    ) -> None:
        """
        Args:
            shown, others, language: as for `verify_answer`.
            named: the words of evidence that the model gave with its marks.
            clean: blanks out, character for character, what in a passage proves nothing.
            skip: tells sentences of the service's own, which make no claim.
            values: that operations over tables gave for this answer.
        """
        self._language = language
        self._hits = [*shown, *others]
        self._shown = len(shown)
        self._clean = clean
        self._skip = skip
        self._values = values
        self._passages: dict[int, Passage] = {}
        self._sentences = SentenceStream(language=language)
        self._reader = ClaimReader(language=language, named=named)
        self._citations: list[Citation] = []
        self._claims: list[CitedClaim] = []

    def feed(self, delta: str) -> list[Citation]:
        """Takes the next piece of the answer; returns the citations that it completed."""
        return self._check(self._sentences.feed(delta))

    def finish(self, delta: str = "") -> Verification:
        """Takes the last piece; returns the verification of the whole answer, earlier citations included."""
        self._check(self._sentences.flush(delta))
        self._reader.end_paragraph()
        return self.so_far()

    def so_far(self) -> Verification:
        """What is known of the answer; later pieces only add to it."""
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
                first = len(self._citations)
                cited = list(map(partial(self._cite, claim), claim.marks))
                if len(cited) > 1:
                    cited = _outvote(cited)
                if claim.covered and len(cited) > 1:
                    cited = [min(cited, key=_rank)]  # one of the marks is enough
                if first > begin and (whole := self._join(cited)):
                    self._citations[-1] = whole
                    first -= 1
                else:
                    self._citations += cited
                positions = tuple(range(first, len(self._citations)))
                self._claims.append(CitedClaim(claim.sentence, claim.plain, positions))
        return self._citations[before:]

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
            return citation
        own = mark - 1
        if quoted := self._quoted(citation, claim, own):
            return quoted
        if computed := self._computed(citation, claim, own):
            return computed
        for other in range(len(self._hits)):
            if other != own and (quoted := self._quoted(citation, claim, other)):
                return replace(quoted, status=CitationStatus.MISATTRIBUTED, method=None)
        if claim.quotations and claim.quotes_wrongly(self._passage(own)):
            return replace(citation, reason="quote: not in the passage")
        return self._compare(citation, claim, own) or self._find_elsewhere(citation, claim, own) or citation

    def _quoted(self, citation: Citation, claim: Claim, position: int) -> Citation | None:
        """A verified citation if the claim stands letter by letter in the passage."""
        place = claim.find_quote(self._passage(position))
        if place is None:
            return None
        proved = replace(citation, status=CitationStatus.VERIFIED, method=ProofMethod.QUOTE, support=1.0)
        return self._placed(proved, claim, position, place, is_copy=True)

    def _computed(self, citation: Citation, claim: Claim, position: int) -> Citation | None:
        """A verified citation of the cells if the claim tells what was computed from the document's tables."""
        document = self._hits[position].chunk.document
        for value in self._values:
            cells = value.cells
            is_of_document = cells.document_id == document.id
            if is_of_document and value.proves(claim.analysis, self._passage(position), self._context(position)):
                return replace(
                    citation,
                    status=CitationStatus.VERIFIED,
                    method=ProofMethod.COMPUTED,
                    formula=cells.formula,
                    support=1.0,
                    document_id=document.id,
                    content_hash=document.content_hash,
                    quote=value.quote or None,
                    start=cells.start,
                    end=cells.end,
                    location=cells.location,
                )
        return None

    def _compare(self, citation: Citation, claim: Claim, position: int) -> Citation | None:
        """What the evidence of the passage makes of a claim that is no quote; None without evidence."""
        passage = self._passage(position)
        evidence = passage.find_evidence(claim.analysis, claim.named.get(citation.mark, ""))
        if evidence is None:
            return None
        found = self._placed(citation, claim, position, (evidence.start, evidence.end))
        found = replace(found, status=CitationStatus.UNCHECKED, support=round(min(evidence.share, 0.99), 3))
        pair = Pair(claim.analysis, passage.read(evidence), passage, evidence, self._context(position))
        difference = find_difference(pair)
        reckoned = difference is None or difference.veto == "number"
        computation = recompute(claim.analysis, pair.evidence, passage, pair.context) if reckoned else None
        if computation is not None and computation.right:
            return replace(
                found, status=CitationStatus.VERIFIED, method=ProofMethod.COMPUTED, formula=computation.formula
            )
        if computation is not None:
            reason = f"computed: {computation.said} / {computation.value}"
            return replace(found, status=CitationStatus.CONTRADICTED, reason=reason, formula=computation.formula)
        if difference is not None:
            return replace(found, status=CitationStatus.CONTRADICTED, reason=str(difference))
        doubt = find_doubt(pair)
        return found if doubt is None else replace(found, reason=str(doubt))

    def _find_elsewhere(self, citation: Citation, claim: Claim, own: int) -> Citation | None:
        """Where no word of a claim stands in the passage that its mark names: another one that has nearly all."""
        for position in range(len(self._hits)):
            evidence = self._passage(position).find_evidence(claim.analysis) if position != own else None
            if evidence is not None and evidence.share >= _ELSEWHERE_SHARE:
                found = self._placed(citation, claim, position, (evidence.start, evidence.end))
                return replace(found, status=CitationStatus.MISATTRIBUTED, support=round(evidence.share, 3))
        return None

    def _placed(
        self, citation: Citation, claim: Claim, position: int, place: tuple[int, int], *, is_copy: bool = False
    ) -> Citation:
        """The citation with its quote and place; `place` counts normalised characters of the passage."""
        chunk: Chunk = self._hits[position].chunk
        first, last = self._passage(position).normalised.original(*place)
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
            location=locate(chunk, start, end, claim.analysis, is_copy=is_copy),
        )

    def _context(self, position: int) -> frozenset[str]:
        """Stems of the document's title and of the passage's headings and sheet names."""
        chunk = self._hits[position].chunk
        places = {(*span.location.headings, span.location.sheet or "") for span in chunk.spans}
        text = " ".join((chunk.document.title, *(part for place in places for part in place)))
        return frozenset(classify(word, self._language).stem for word in words(text))


def _outvote(citations: list[Citation]) -> list[Citation]:
    """Of several marks, one passage may hold what the other does not; the nearest evidence decides."""
    best = max((c.support for c in citations if c.status is not CitationStatus.CONTRADICTED), default=0.0)
    return [
        replace(citation, status=CitationStatus.UNCHECKED, reason=None, formula=None)
        if citation.status is CitationStatus.CONTRADICTED and citation.support < best
        else citation
        for citation in citations
    ]


def _rank(citation: Citation) -> int:
    return _ORDER.index(citation.status)


def _is_open(quote: str, closer: str) -> bool:
    """Whether a bracket of the quote is still open that `closer` closes."""
    opener = "(" if closer == ")" else "["
    return quote.count(opener) > quote.count(closer)

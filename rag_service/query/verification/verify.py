"""Citation verification (requirement D5): what is shown as verified stands in the document.

Pure code over the answer's text and the retrieved chunks, by comparison of texts alone: a mark by itself,
in the answer or forged in a document, proves nothing.

A citation is reported for every mark of every claim, see `rag_service.query.verification.claims` for which mark answers
for which words:

- `verified`: the chunk that the mark names carries the claim, see `rag_service.query.verification.evidence`;
- `misattributed`: it does not, but another retrieved chunk does; quote and place are that chunk's;
- `not_found`: none does, or the mark names no chunk that was shown.

A sentence that no mark of its own ends, but that the next marked sentence of its paragraph covers, gets one
citation: the best that those marks give. A sentence is flagged when one of its claims has no verified
citation. The order is that of the sentences, then of the marks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from rag_service.domain import Citation, CitationStatus, Hit
from rag_service.query.verification.claims import Claim, ClaimReader
from rag_service.query.verification.evidence import Evidence, Passage
from rag_service.query.verification.lexicon import number_words
from rag_service.query.verification.marks import strip_marks
from rag_service.query.verification.places import locate
from rag_service.text.sentences import Sentence, SentenceStream

__all__ = ["CitationStream", "Verification", "strip_marks", "verify_answer"]

SentenceOffsets = tuple[int, int]
_BRACKETS = ("()", "[]")
_ORDER = (CitationStatus.VERIFIED, CitationStatus.MISATTRIBUTED, CitationStatus.NOT_FOUND)


@dataclass(frozen=True, kw_only=True)
class Verification:
    """Every mark of an answer, checked. Offsets count characters of the answer."""

    citations: tuple[Citation, ...]
    unmarked: tuple[SentenceOffsets, ...]  # sentences that state something and that no mark covers
    flagged: tuple[SentenceOffsets, ...]  # marked or covered sentences that are not wholly verified
    counts: Mapping[CitationStatus, int]  # citations by status; every status is present


def verify_answer(
    answer: str, shown: Sequence[Hit], *, others: Sequence[Hit] = (), language: str | None = None
) -> Verification:
    """Checks every citation of a complete answer.

    Args:
        shown: the chunks as the model saw them: `[C1]` names the first.
        others: further retrieved chunks, in which a misattributed quote may stand.
        language: ISO 639-1 of the answer; narrows abbreviations and number words.
    """
    stream = CitationStream(shown, others=others, language=language)
    return stream.finish(answer)


class CitationStream:
    """Checks citations while the answer arrives.

    A sentence's citations come as soon as nothing can extend it: that is with the first visible character
    after its stop and its marks. What comes out does not depend on how the text was cut.
    """

    def __init__(self, shown: Sequence[Hit], *, others: Sequence[Hit] = (), language: str | None = None) -> None:
        self._checker = _Checker(shown, others, language)
        self._sentences = SentenceStream(language=language)
        self._reader = ClaimReader(language=language)
        self._citations: list[Citation] = []
        self._flagged: dict[SentenceOffsets, None] = {}

    def feed(self, delta: str) -> list[Citation]:
        """Takes the next piece of the answer; returns the citations that it completed."""
        return self._check(self._sentences.feed(delta))

    def finish(self, delta: str = "") -> Verification:
        """Takes the last piece; returns the verification of the whole answer, earlier citations included."""
        self._check(self._sentences.flush(delta))
        self._reader.end_paragraph()
        return Verification(
            citations=tuple(self._citations),
            unmarked=tuple(self._reader.unmarked),
            flagged=tuple(self._flagged),
            counts={status: sum(c.status is status for c in self._citations) for status in CitationStatus},
        )

    def _check(self, sentences: Iterable[Sentence]) -> list[Citation]:
        new: list[Citation] = []
        for sentence in sentences:
            for claim in self._reader.read(sentence):
                citations = self._checker.check(claim)
                if not any(citation.status is CitationStatus.VERIFIED for citation in citations):
                    self._flagged[claim.sentence] = None
                new.extend(citations)
        self._citations.extend(new)
        return new


class _Checker:
    """The retrieved chunks, each prepared once, when a claim first looks into it."""

    def __init__(self, shown: Sequence[Hit], others: Sequence[Hit], language: str | None) -> None:
        self._shown = [Passage(hit.chunk, language=language) for hit in shown]
        ids = {hit.chunk.id for hit in shown}
        more = [Passage(hit.chunk, language=language) for hit in others if hit.chunk.id not in ids]
        self._all = self._shown + more
        self._number_words = number_words(language)

    def check(self, claim: Claim) -> list[Citation]:
        """One citation for each mark of the claim; only the best one where the marks merely cover it."""
        evidence: dict[int, Evidence] = {}  # by position in _all; a claim with several marks looks once
        if not claim.covered:
            return [self._cite(claim, mark, evidence) for mark in claim.marks]
        best: Citation | None = None
        for mark in claim.marks:
            citation = self._cite(claim, mark, evidence)
            if best is None or _ORDER.index(citation.status) < _ORDER.index(best.status):
                best = citation
            if best.status is CitationStatus.VERIFIED:
                break
        return [best] if best else []

    def _cite(self, claim: Claim, mark: int, evidence: dict[int, Evidence]) -> Citation:
        if not 1 <= mark <= len(self._shown):
            return _not_found(claim, mark, 0.0)
        nearest = 0.0
        for position in self._search_order(mark - 1):
            if position not in evidence:
                evidence[position] = self._all[position].find(claim)
            found = evidence[position]
            if found.found:
                status = CitationStatus.VERIFIED if position == mark - 1 else CitationStatus.MISATTRIBUTED
                return self._found(claim, mark, status, self._all[position], found)
            nearest = max(nearest, found.support)
        return _not_found(claim, mark, nearest)

    def _search_order(self, named: int) -> Iterator[int]:
        yield named
        yield from (i for i in range(len(self._all)) if i != named)

    def _found(self, claim: Claim, mark: int, status: CitationStatus, passage: Passage, found: Evidence) -> Citation:
        chunk = passage.chunk
        quote = chunk.text[found.start : _close_bracket(chunk.text, found.start, found.end)]
        start = chunk.start + found.start + len(quote) - len(quote.lstrip())
        quote = quote.strip()
        end = start + len(quote)
        return Citation(
            mark=mark,
            status=status,
            sentence_start=claim.sentence[0],
            sentence_end=claim.sentence[1],
            support=round(found.support, 3),
            chunk_id=chunk.id,
            document_id=chunk.document.id,
            content_hash=chunk.document.content_hash,
            quote=quote,
            start=start,
            end=end,
            location=locate(chunk, start, end, claim.statement, self._number_words, is_copy=found.is_copy),
        )


def _close_bracket(text: str, start: int, end: int) -> int:
    """The end of a quote, with the bracket that closes one inside it: outer punctuation was not looked for."""
    quote = text[start:end]
    following = text[end : end + 1]
    is_open = any(following == pair[1] and quote.count(pair[0]) > quote.count(pair[1]) for pair in _BRACKETS)
    return end + is_open


def _not_found(claim: Claim, mark: int, support: float) -> Citation:
    return Citation(
        mark=mark,
        status=CitationStatus.NOT_FOUND,
        sentence_start=claim.sentence[0],
        sentence_end=claim.sentence[1],
        support=round(support, 3),
    )

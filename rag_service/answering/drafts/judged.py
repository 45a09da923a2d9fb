"""Asks a judge about a written answer: all its sentences in order, beside all passages that its writer was shown.

A verdict counts only with words that stand in one of these passages and are about something. A judge that was right in
99 of 100 is believed; with a lesser one a figure that stands in nothing that is cited leaves its sentence unchecked.
Marks that point to nothing stay what they are, whatever the judge says of their sentence.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from rag_service.answering.drafts.checked_answer import CheckedAnswer
from rag_service.answering.guards.injection import without_injections
from rag_service.answering.proof.claims import strip_marks
from rag_service.answering.proof.passage import Passage, find_telling, passage_of
from rag_service.answering.proof.verify import CitedClaim, doubt_figure, place_words
from rag_service.domain import AnswersQuestion, Citation, CitationStatus, CitedWords, Hit, ProofMethod, WordsAgainst
from rag_service.models.judge.judge import JudgedAnswer, JudgedClaim, Verdict, WriterPrompt
from rag_service.models.judge.judges import WatchedJudge
from rag_service.tables.sentences import CitedCells

NOT_SUPPORTED = "The judge does not find it in the passages."
_NO_WORDS = "The judge named no words of a passage that show it."
_CONTEXT = 2_000  # characters that are shown before a sentence, unless the judge is asked about the whole text


async def judge_answer(
    judge: WatchedJudge,
    checked: CheckedAnswer,
    shown: Sequence[Hit],
    *,
    question: str,
    prompt: WriterPrompt | None = None,
    computed: Mapping[str, CitedCells] | None = None,
    language: str | None,
) -> tuple[CheckedAnswer, AnswersQuestion | None]:
    """Return the answer with the verdicts on its sentences, and whether it answers the question.

    Args:
        shown: all passages that the writer saw, [C1] first.
        question: standalone; empty: the sentences are judged only.
        prompt: what the writer was sent; None: the text was written elsewhere.
        computed: as for `CitationStream`.
    """
    claims = _claims_to_judge(checked, sees_all=judge.sees_answers)
    if not judge.tells_answers:
        question = ""
    if not claims:
        return checked, None
    passages = [passage_of(without_injections(hit).chunk, language) for hit in shown]
    judgement = await judge.judge_answer(
        JudgedAnswer(
            question=question,
            claims=_describe(claims, checked, shown, passages, language, context=None if question else _CONTEXT),
            passages=shown,
            prompt=prompt,
            language=language,
        )
    )
    verdicts = zip(claims, judgement.verdicts, strict=True)
    decided = _Decision(checked, shown, passages, judge, computed or {})
    for claim, verdict in verdicts:
        if verdict is not None:
            decided.take(claim, verdict)
    return decided.outcome(), judgement.answers


def _claims_to_judge(checked: CheckedAnswer, *, sees_all: bool) -> list[CitedClaim]:
    """Return the sentences in order: those with marks, and those that state something without one.

    A judge that sees one sentence at a time is asked only about what code has left open.
    """
    bare = [CitedClaim(place, checked.text[slice(*place)], ()) for place in {*checked.unmarked, *checked.foreign}]
    claims = sorted((*checked.claims, *bare), key=lambda claim: claim.sentence)
    if sees_all:
        return claims
    return [
        claim
        for claim in claims
        if claim.citations and all(_is_open(checked.citations[number]) for number in claim.citations)
    ]


def _is_open(citation: Citation) -> bool:
    return citation.status is CitationStatus.UNCHECKED


def _describe(
    claims: Sequence[CitedClaim],
    checked: CheckedAnswer,
    shown: Sequence[Hit],
    passages: Sequence[Passage],
    language: str | None,
    *,
    context: int | None,
) -> list[JudgedClaim]:
    """Return the sentences as the judge is shown them, each after at most `context` characters before it."""
    found, end = [], 0
    for claim in claims:
        citations = [checked.citations[number] for number in claim.citations]
        marks = dict.fromkeys(citation.mark for citation in citations)
        cited = [mark - 1 for mark in marks if 1 <= mark <= len(shown)]
        start, stop = claim.sentence
        found.append(
            JudgedClaim(
                sentence=strip_marks(checked.text[start:stop]),
                evidence=next((citation.quote for citation in citations if citation.quote), ""),
                passage="\n\n".join(
                    f"{shown[number].chunk.document.title}\n{passages[number].original}" for number in cited
                ),
                language=language,
                marks=[(mark, claim.named.get(mark, ())) for mark in marks],
                before=strip_marks(checked.text[end:start][-context if context else 0 :]).strip(),
            )
        )
        end = max(end, stop)
    return found


class _Decision:
    """What becomes of the citations of an answer as the verdicts come in."""

    def __init__(
        self,
        checked: CheckedAnswer,
        shown: Sequence[Hit],
        passages: Sequence[Passage],
        judge: WatchedJudge,
        computed: Mapping[str, CitedCells],
    ) -> None:
        self._checked = checked
        self._shown = shown
        self._passages = passages
        self._judge = judge
        self._computed = computed
        self._citations = list(checked.citations)
        self._claims = list(checked.claims)
        self._proved: set[tuple[int, int]] = set()  # sentences without a mark of their own

    def take(self, claim: CitedClaim, verdict: Verdict) -> None:
        """Apply a verdict to the citations of its sentence."""
        cited = [self._citations[number].mark - 1 for number in claim.citations]
        holder, place = self._find(verdict.quote or "", cited)
        has_words = verdict.quote is None or place is not None
        if not verdict.entailed:
            self._refuse(claim, (verdict.quote or "") if place is not None else "", holder)
        elif not has_words:
            self._reject(claim, _NO_WORDS)
        elif claim.strange and not self._judge.is_believed:
            self._reject(claim, NOT_SUPPORTED, figure=claim.strange)
        else:
            self._accept(claim, holder, place)

    def outcome(self) -> CheckedAnswer:
        """Return the answer with all verdicts applied."""
        return replace(
            self._checked,
            unmarked=tuple(one for one in self._checked.unmarked if one not in self._proved),
            foreign=tuple(one for one in self._checked.foreign if one not in self._proved),
            claims=tuple(self._claims),
        ).with_citations(self._citations)

    def _find(self, quote: str, cited: Sequence[int]) -> tuple[int, tuple[int, int] | None]:
        """Return the passage that holds the judge's words, and where: one that the sentence cites before others."""
        for number in dict.fromkeys((*cited, *range(len(self._passages)))):
            if 0 <= number < len(self._passages) and (place := find_telling(quote, self._passages[number])):
                return number, place
        return -1, None

    def _accept(self, claim: CitedClaim, holder: int, place: tuple[int, int] | None) -> None:
        cited = [self._citations[number] for number in claim.citations]
        stands_elsewhere = place is not None and all(citation.mark != holder + 1 for citation in cited)
        if not cited or (stands_elsewhere and any(map(_is_open, cited))):
            self._cite(claim, holder, place)
        for number in claim.citations:
            citation = self._citations[number]
            if citation.status is CitationStatus.NOT_FOUND and citation.reason is None and citation.mark - 1 == holder:
                citation = self._place(citation, holder, place, claim)
            elif citation.status is CitationStatus.NOT_FOUND and citation.reason is None:
                self._citations[number] = replace(citation, status=CitationStatus.UNCHECKED)
                continue
            elif stands_elsewhere or not _is_open(citation):
                continue
            elif place is not None and citation.mark - 1 != holder and not claim.named.get(citation.mark):
                continue  # a bare mark of another passage: nothing shows that its words stand there
            self._citations[number] = replace(
                self._with_words(citation, holder, place, claim),
                status=CitationStatus.VERIFIED,
                method=ProofMethod.JUDGE,
                judge=self._judge.name,
                reason=None,
                missing=None,
            )

    def _with_words(
        self, citation: Citation, holder: int, place: tuple[int, int] | None, claim: CitedClaim
    ) -> Citation:
        """Return the citation with the judge's words as evidence, unless its own hold them or stand elsewhere."""
        if place is None or citation.mark - 1 != holder:
            return citation
        words = self._place(citation, holder, place, claim)
        if words.start is None or words.end is None:
            return citation
        known = [(citation.start, citation.end), *((one.start, one.end) for one in citation.evidence)]
        for start, end in known:
            if start is not None and end is not None and start <= words.start and words.end <= end:
                return citation
        found = CitedWords(quote=words.quote or "", start=words.start, end=words.end, location=words.location)
        return replace(citation, evidence=(*citation.evidence, found))

    def _cite(self, claim: CitedClaim, holder: int, place: tuple[int, int] | None) -> None:
        """Cite the words that the judge found for a sentence whose writer gave it no mark of their passage."""
        self._proved.add(claim.sentence)
        if place is None:
            return
        citation = Citation(
            mark=holder + 1,
            status=CitationStatus.VERIFIED,
            method=ProofMethod.JUDGE,
            judge=self._judge.name,
            sentence_start=claim.sentence[0],
            sentence_end=claim.sentence[1],
            support=0.99,
        )
        self._citations.append(self._place(citation, holder, place, claim))
        cited = claim._replace(citations=(*claim.citations, len(self._citations) - 1))
        if claim.citations:
            self._claims[self._claims.index(claim)] = cited
        else:
            self._claims.append(cited)

    def _refuse(self, claim: CitedClaim, against: str, holder: int) -> None:
        """Take back what is verified of a sentence; `against`: words of a passage that say otherwise, or none."""
        if not against:
            self._reject(claim, NOT_SUPPORTED, figure=claim.strange)
            return
        title = self._shown[holder].chunk.document.title
        for number in claim.citations:
            citation = self._citations[number]
            if _is_open(citation) or citation.status is CitationStatus.VERIFIED:
                self._citations[number] = replace(
                    citation,
                    status=CitationStatus.CONTRADICTED,
                    method=None,
                    reason=f"{title} says: “{against}”",
                    missing=None,
                    against=WordsAgainst(title=title, quote=against),
                )

    def _reject(self, claim: CitedClaim, reason: str, *, figure: str | None = None) -> None:
        """Take back what is verified of a sentence. A `figure` that stands in nothing it cites is the better reason."""
        for number in claim.citations:
            citation = self._citations[number]
            if _is_open(citation) or citation.status is CitationStatus.VERIFIED:
                citation = replace(citation, status=CitationStatus.UNCHECKED, method=None, reason=reason, missing=None)
                self._citations[number] = citation if figure is None else doubt_figure(citation, figure)

    def _place(self, citation: Citation, holder: int, place: tuple[int, int] | None, claim: CitedClaim) -> Citation:
        if place is None:
            return citation
        chunk = self._shown[holder].chunk
        cells = self._computed.get(chunk.id)
        return place_words(citation, chunk, self._passages[holder], place, claim.text, cells=cells)

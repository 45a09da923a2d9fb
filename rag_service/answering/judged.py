"""Asks a judge about the sentences that code found evidence for but cannot decide, and about the whole answer.

A verdict counts only where code agrees: the words that the judge gives stand in the passage, and no veto and no figure
in doubt speaks against the sentence. So a judge that says yes to everything cannot verify a wrong figure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rag_service.answering.checked_answer import CheckedAnswer
from rag_service.answering.guards.injection import without_injections
from rag_service.answering.proof.claims import strip_marks
from rag_service.answering.proof.passage import Passage, passage_of
from rag_service.domain import AnswersQuestion, Citation, CitationStatus, Hit, ProofMethod
from rag_service.models.judge.judge import JudgedAnswer, JudgedClaim, Verdict
from rag_service.models.judge.judges import WatchedJudge

NOT_SUPPORTED = "judge: not supported"


def is_undecided(citation: Citation) -> bool:
    """Whether a judge may verify the citation."""
    return citation.status is CitationStatus.UNCHECKED and citation.reason is None


async def judge_answer(
    judge: WatchedJudge, checked: CheckedAnswer, shown: Sequence[Hit], *, question: str, language: str | None
) -> tuple[CheckedAnswer, AnswersQuestion | None]:
    """The answer with the verdicts on its undecided citations, and whether it answers the question: one call at most.

    An answer without undecided citations is asked about only if nothing else speaks against it.
    """
    asked = [i for i, citation in enumerate(checked.citations) if is_undecided(citation)]
    if not judge.tells_answers:
        question = ""
    if not asked and (not question or not checked.citations or checked.flagged or checked.refuted):
        return checked, None
    passages = {hit.chunk.id: passage_of(without_injections(hit).chunk, language) for hit in shown}
    said = {number: claim.text for claim in checked.claims for number in claim.citations}
    judgement = await judge.judge_answer(
        JudgedAnswer(
            question=question,
            text=strip_marks(checked.text),
            claims=[_ask(said[i], checked.citations[i], passages, language) for i in asked],
            language=language,
        )
    )
    citations = list(checked.citations)
    for i, verdict in zip(asked, judgement.verdicts, strict=True):
        if verdict is not None:
            citations[i] = _decide(citations[i], verdict, passages[citations[i].chunk_id or ""], judge.name)
    return checked.with_citations(citations), judgement.answers


def _ask(sentence: str, citation: Citation, passages: dict[str, Passage], language: str | None) -> JudgedClaim:
    passage = passages[citation.chunk_id or ""]
    return JudgedClaim(sentence=sentence, evidence=citation.quote or "", passage=passage.original, language=language)


def _decide(citation: Citation, verdict: Verdict, passage: Passage, name: str) -> Citation:
    shown = verdict.quote is None or passage.find_named(verdict.quote) is not None
    if verdict.entailed and shown:
        return replace(citation, status=CitationStatus.VERIFIED, method=ProofMethod.JUDGE, judge=name)
    return replace(citation, reason=NOT_SUPPORTED)

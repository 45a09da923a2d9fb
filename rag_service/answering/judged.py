"""Asks a judge about the sentences that code found evidence for but cannot decide.

A verdict counts only where code agrees: the words that the judge gives stand in the passage, and no veto and no figure
in doubt speaks against the sentence. So a judge that says yes to everything cannot verify a wrong figure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rag_service.answering.checked_answer import CheckedAnswer
from rag_service.answering.guards.injection import without_injections
from rag_service.answering.proof.passage import Passage, passage_of
from rag_service.domain import Citation, CitationStatus, Hit, ProofMethod
from rag_service.models.judge.judge import Judge, JudgedClaim, Verdict

NOT_SUPPORTED = "judge: not supported"


def is_undecided(citation: Citation) -> bool:
    """Whether a judge may verify the citation."""
    return citation.status is CitationStatus.UNCHECKED and citation.reason is None


async def judge_citations(
    judge: Judge, checked: CheckedAnswer, shown: Sequence[Hit], *, language: str | None
) -> CheckedAnswer:
    """The answer with the verdicts on its undecided citations; all are asked about at once."""
    passages = {hit.chunk.id: passage_of(without_injections(hit).chunk, language) for hit in shown}
    said = {number: claim.text for claim in checked.claims for number in claim.citations}
    asked = [i for i, citation in enumerate(checked.citations) if is_undecided(citation)]
    claims = [_ask(said[i], checked.citations[i], passages, language) for i in asked]
    verdicts = await judge.judge(claims) if claims else []
    citations = list(checked.citations)
    for i, verdict in zip(asked, verdicts, strict=False):
        if verdict is not None:
            citations[i] = _decide(citations[i], verdict, passages[citations[i].chunk_id or ""], judge.name)
    return checked.with_citations(citations)


def _ask(sentence: str, citation: Citation, passages: dict[str, Passage], language: str | None) -> JudgedClaim:
    passage = passages[citation.chunk_id or ""]
    return JudgedClaim(sentence=sentence, evidence=citation.quote or "", passage=passage.original, language=language)


def _decide(citation: Citation, verdict: Verdict, passage: Passage, name: str) -> Citation:
    shown = verdict.quote is None or passage.find_named(verdict.quote) is not None
    if verdict.entailed and shown:
        return replace(citation, status=CitationStatus.VERIFIED, method=ProofMethod.JUDGE, judge=name)
    return replace(citation, reason=NOT_SUPPORTED)

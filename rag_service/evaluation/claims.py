"""What code alone makes of hand-written claims: status by label and language.

A claims file has one JSON object a line: `id`, `lang`, `passage`, `claim` and `label`. Labels: `verbatim`, `light` and
`free` (the passage says it, more or less in its own words), `inference` (it follows), `unsupported`, `false`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal
from uuid import UUID

import msgspec
from rich.console import Console
from rich.table import Table

from rag_service.answering.proof.verify import REFUTED, verify_answer
from rag_service.domain import Chunk, Citation, CitationStatus, DocumentRef, Hit, Scores
from rag_service.errors import EvalSetError
from rag_service.models.judge.calibration import Threshold, calibration_file, write_thresholds
from rag_service.models.judge.cross_encoder import CrossEncoderJudge
from rag_service.models.judge.judge import JudgedClaim
from rag_service.models.plugins import parse_options, require_extra
from rag_service.settings import Settings

UNTRUE = ("false", "unsupported")  # labels that nothing may verify
PRECISION = 0.95  # of the claims that a judge accepts
_WORST_FIRST = (*REFUTED, CitationStatus.UNCHECKED, CitationStatus.VERIFIED)


class LabelledClaim(msgspec.Struct, kw_only=True, frozen=True):
    """A line of a claims file."""

    id: str
    lang: str
    passage: str
    claim: str
    label: Literal["verbatim", "light", "free", "inference", "unsupported", "false"]
    document: str = ""


@dataclass(frozen=True, kw_only=True)
class JudgedClaims:
    """The worst citation of each claim."""

    claims: Sequence[LabelledClaim]
    citations: Sequence[Citation]

    def statuses(self) -> Counter[tuple[str, str, str]]:
        """(label, language, status) → claims."""
        pairs = zip(self.claims, self.citations, strict=True)
        return Counter((claim.label, claim.lang, citation.status.value) for claim, citation in pairs)

    def doubted(self) -> Counter[tuple[str, str]]:
        """(label, language) → unchecked claims with a reason, such as a figure that the passage lacks."""
        pairs = zip(self.claims, self.citations, strict=True)
        return Counter(
            (claim.label, claim.lang)
            for claim, citation in pairs
            if citation.status is CitationStatus.UNCHECKED and citation.reason
        )


def read_claims(path: Path) -> list[LabelledClaim]:
    """The claims of a file. Raises EvalSetError with the line that cannot be read."""
    claims = []
    for number, line in enumerate(path.read_text("utf-8").splitlines(), start=1):
        try:
            claims.append(msgspec.json.decode(line, type=LabelledClaim))
        except msgspec.MsgspecError as error:
            raise EvalSetError(f"{path}, line {number}: {error}") from error
    return claims


def check_claims(claims: Iterable[LabelledClaim]) -> JudgedClaims:
    """Check each claim against its passage, as a sentence of an answer with one mark."""
    found = [(claim, citation) for claim in claims if (citation := _check(claim)) is not None]
    return JudgedClaims(claims=[claim for claim, _ in found], citations=[citation for _, citation in found])


def choose_thresholds(
    claims: Sequence[LabelledClaim], probabilities: Sequence[float], *, run: str
) -> dict[str, Threshold]:
    """By language, the lowest probability from which on `PRECISION` of the claims are true; above 1 without one."""
    chosen = {}
    for language in dict.fromkeys(claim.lang for claim in claims):
        rated = [
            (probability, claim.label not in UNTRUE)
            for claim, probability in zip(claims, probabilities, strict=True)
            if claim.lang == language
        ]
        threshold = Threshold(threshold=1.01, run=run, claims=len(rated), recall=0.0)
        for limit in sorted({probability for probability, _ in rated}):
            accepted = [true for probability, true in rated if probability >= limit]
            share = sum(accepted) / len(accepted)
            if share >= PRECISION:
                recall = sum(accepted) / max(1, sum(true for _, true in rated))
                threshold = replace(threshold, threshold=limit, precision=share, recall=recall)
                break
        chosen[language] = threshold
    return chosen


async def calibrate_judge(settings: Settings, claims: Sequence[LabelledClaim], *, run: str) -> dict[str, Threshold]:
    """Thresholds of the cross-encoder that RAG_JUDGE_MODEL names, stored where the service reads them.

    Raises ConfigurationError if the extra is missing or the model cannot be loaded.
    """
    require_extra("sentence_transformers", extra="sbert", setting="RAG_JUDGE", value="cross_encoder")
    options = parse_options(settings.judge.options, setting="RAG_JUDGE_OPTIONS")
    judge = CrossEncoderJudge(settings.judge.model, options=options)
    try:
        probabilities = await judge.rate(
            [
                JudgedClaim(sentence=claim.claim, evidence=claim.passage, passage=claim.passage, language=claim.lang)
                for claim in claims
            ]
        )
    finally:
        await judge.aclose()
    thresholds = choose_thresholds(claims, probabilities, run=run)
    write_thresholds(calibration_file(settings), settings.judge.model, thresholds)
    return thresholds


def print_claims(console: Console, checked: JudgedClaims) -> None:
    """Print the claims by label, language and status."""
    counts = checked.statuses()
    doubted = checked.doubted()
    table = Table("label", "language", *(status.value for status in CitationStatus), "doubted")
    for label, language in dict.fromkeys((claim.label, claim.lang) for claim in checked.claims):
        row = [counts[label, language, status.value] for status in CitationStatus]
        table.add_row(label, language, *map(str, row), str(doubted[label, language]))
    console.print(table)


def _check(claim: LabelledClaim) -> Citation | None:
    hit = _hit(claim)
    citations = verify_answer(f"{claim.claim.rstrip(' .')} [C1].", [hit], language=claim.lang).citations
    return min(citations, key=lambda citation: _WORST_FIRST.index(citation.status), default=None)


def _hit(claim: LabelledClaim) -> Hit:
    document = DocumentRef(
        id=UUID(int=0), corpus_id=UUID(int=0), title=claim.document, file_name=claim.document or None, source=None,
        tags=(), content_hash="", updated_at=datetime.now(UTC),
    )  # fmt: skip
    chunk = Chunk(id=claim.id, document=document, index=0, text=claim.passage, start=0, end=len(claim.passage))
    return Hit(chunk=chunk, scores=Scores(relevance=1.0))

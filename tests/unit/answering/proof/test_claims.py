"""Hand-written claims over passages of ours, most by people who saw no code: what may never be proved or refuted."""

from __future__ import annotations

import pytest

from rag_service.domain import CitationStatus
from rag_service.evaluation.claims import UNTRUE, check_claims, read_claims
from tests.documents import ROOT


@pytest.mark.slow
def test_no_untrue_claim_is_verified_and_hardly_a_faithful_one_is_contradicted() -> None:
    checked = check_claims(read_claims(ROOT / "evals" / "claims.jsonl"))
    pairs = list(zip(checked.claims, checked.citations, strict=True))
    untrue = [citation.status for claim, citation in pairs if claim.label in UNTRUE]
    faithful = [citation.status for claim, citation in pairs if claim.label not in UNTRUE]
    assert CitationStatus.VERIFIED not in untrue
    assert faithful.count(CitationStatus.CONTRADICTED) <= 0.01 * len(faithful)
    assert untrue.count(CitationStatus.CONTRADICTED) >= 40  # of 295
    for veto, (fired, rightly) in checked.vetoes().items():
        assert rightly >= 0.9 * fired, veto

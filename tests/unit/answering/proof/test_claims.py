"""Hand-written claims over passages of ours, most by people who saw no code: what may never be proved or refuted."""

from __future__ import annotations

import pytest

from rag_service.domain import CitationStatus
from rag_service.evaluation.claims import UNTRUE, check_claims, read_claims
from tests.documents import ROOT


@pytest.mark.slow
def test_code_verifies_no_untrue_claim_and_contradicts_none() -> None:
    checked = check_claims(read_claims(ROOT / "evals" / "claims.jsonl"))
    pairs = list(zip(checked.claims, checked.citations, strict=True))
    untrue = [citation.status for claim, citation in pairs if claim.label in UNTRUE]
    assert len(untrue) > 200
    assert CitationStatus.VERIFIED not in untrue
    assert CitationStatus.CONTRADICTED not in [citation.status for _, citation in pairs]

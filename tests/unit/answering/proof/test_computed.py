"""Figures that an answer reckons from those of the passage."""

from __future__ import annotations

import pytest

from rag_service.answering.proof.verify import verify_answer
from rag_service.domain import CitationStatus
from tests.unit.answering.proof.answers import make_hit

V, X = CitationStatus.VERIFIED, CitationStatus.CONTRADICTED
HIT = make_hit(
    "The first card costs 24 euros a year. The second card costs 60 euros a year. Sales were $650.0 million in 2022 "
    "and $762.7 million in 2023. The notice was sent on 3 May 2024. You have 30 days to reply. The contract lasts 12 "
    "months."
)


@pytest.mark.parametrize(
    ("claim", "status", "formula"),
    [
        ("The first card and the second card cost 24 euros and 60 euros, 84 euros in total", V, "24 + 60 = 84 €"),
        ("The first card and the second card cost 24 euros and 60 euros, 90 euros in total", X, "24 + 60 = 84 €"),
        ("The first card costs 24 euros and the second card 60 euros, a difference of 36 euros", V, "60 − 24 = 36 €"),
        ("The first card costs 24 euros and the second card 60 euros, a difference of 40 euros", X, "60 − 24 = 36 €"),
        ("Sales rose from $650.0 million to $762.7 million, an increase of 17.3%", V, "(762.7 − 650) ÷ 650 = 17.34 %"),
        ("Sales fell from $650.0 million to $762.7 million, a decrease of 17.3%", None, None),
        ("The contract lasts 1 year", V, "12 month = 1 year"),
        ("The contract lasts at least 1 year", None, None),
        ("The notice was sent on 3 May 2024: with 30 days you have until 2 June 2024", V,
         "2024-05-03 + 30 day = 2024-06-02"),
        ("The notice was sent on 3 May 2024: with 30 days you have until 5 June 2024", X,
         "2024-05-03 + 30 day = 2024-06-02"),
        ("The two cards cost 84 euros", None, None),  # names no operands
        ("Zebras and cards cost 24 euros and 60 euros, 84 euros in total for lions", None, None),
    ],
)  # fmt: skip
def test_figures_are_recomputed(claim: str, status: CitationStatus | None, formula: str | None) -> None:
    (citation,) = verify_answer(f"{claim} [C1].", [HIT], language="en").citations
    if status is None:
        assert citation.status is not V
        return
    assert (citation.status, citation.formula) == (status, formula)
    assert citation.method == ("computed" if status is V else None)

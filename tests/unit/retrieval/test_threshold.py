"""Which of the ranked passages an answer may be made of."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from rag_service.domain import LOCAL_ADMIN, Filters, Location, Span
from rag_service.indices import IndexDefinition
from rag_service.retrieval.found import Found
from rag_service.retrieval.planner import QueryPlan
from rag_service.retrieval.postprocessors import ChoosePassages
from rag_service.retrieval.question import Question
from rag_service.store.search.scope import SearchScope
from tests.unit.models.reranking.hits import make_hit

CHOOSE = ChoosePassages(default=0.6, out_of_scope=0.2)


@pytest.mark.parametrize(
    ("relevances", "kept", "doubtful"),
    [
        ([0.1, 0.3, 0.05], [0.1, 0.3], True),  # the ranking knows better than the relevance, which one is best
        ([0.9, 0.1, 0.05], [0.9], False),
        ([0.1, 0.15], [], True),
        ([], [], True),
    ],
)
async def test_the_ranking_ends_with_the_last_relevant_passage(
    relevances: list[float], kept: list[float], doubtful: bool
) -> None:
    chosen = await CHOOSE.process(*_found(relevances))
    assert [hit.scores.relevance for hit in chosen.passages] == kept
    assert chosen.is_doubtful is doubtful


async def test_the_threshold_of_a_request_holds_for_each_passage() -> None:
    chosen = await CHOOSE.process(*_found([0.1, 0.3, 0.05], threshold=0.2))
    assert [hit.scores.relevance for hit in chosen.passages] == [0.3]


@pytest.mark.parametrize(
    ("heading", "is_kept"), [("Further Reading", True), ("Reading", False), ("Further Listening", False)]
)
async def test_a_passage_with_a_section_that_the_question_names_is_kept_but_doubtful(
    heading: str, is_kept: bool
) -> None:
    asked = "Which books are recommended for further reading?"
    chosen = await CHOOSE.process(*_found([0.1], question=asked, heading=heading))
    assert bool(chosen.passages) is is_kept
    assert chosen.is_doubtful


def _found(
    relevances: list[float], *, threshold: float | None = None, question: str = "Who may enter?", heading: str = ""
) -> tuple[Question, Found]:
    asked = Question(question, identity=LOCAL_ADMIN, threshold=threshold)
    hits = tuple(make_hit(f"Passage {rank}.", relevance=one) for rank, one in enumerate(relevances))
    if heading:
        span = Span(start=0, end=9, location=Location(headings=(heading,)))
        hits = tuple(replace(hit, chunk=replace(hit.chunk, spans=(span,))) for hit in hits)
    scope = SearchScope(
        corpus_ids=(), index_names=(), chunk_count=0, mean_length=0.0, reachable=0, document_ids=None, expired=(),
        filters=Filters(),
    )  # fmt: skip
    plan = QueryPlan(language="en", terms=(), filters=Filters())
    index = IndexDefinition(name="test", description="", folder=Path())
    return asked, Found(plan=plan, index=index, scope=scope, hits=hits).with_passages(hits)

"""Metrics: what is counted, under names that dashboards can rely on."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from rag_service.domain import Answer, CitationStatus, Decision
from rag_service.observability.metrics import DOCUMENTED, Metrics
from tests.unit.api.samples import ANSWER, HIT, UNSUPPORTED


def values(metrics: Metrics) -> dict[str, float]:
    """Every sample as `name{label=value}`; those of the process are left out."""
    return samples(metrics.render().decode())


def samples(text: str) -> dict[str, float]:
    """The same of what /metrics answers."""
    found: dict[str, float] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            labels = ",".join(f"{key}={value}" for key, value in sorted(sample.labels.items()))
            if sample.name.startswith("rag_"):
                found[f"{sample.name}{{{labels}}}" if labels else sample.name] = sample.value
    return found


def exposed_names(metrics: Metrics) -> set[str]:
    lines = metrics.render().decode().splitlines()
    return {
        line.split()[2] for line in lines if line.startswith("# TYPE rag_") and not line.split()[2].endswith("_created")
    }


def test_every_figure_is_documented_and_no_other() -> None:
    assert exposed_names(Metrics()) == set(DOCUMENTED)


def test_two_applications_count_apart() -> None:
    one, other = Metrics(), Metrics()
    one.error("llm_busy")
    assert values(one)["rag_errors_total{code=llm_busy}"] == 1
    assert "rag_errors_total{code=llm_busy}" not in values(other)


def test_an_answer_counts_its_parts() -> None:
    metrics = Metrics()
    metrics.answer(dataclasses.replace(ANSWER, unmarked_sentences=2, context_tokens=420))
    found = values(metrics)
    assert found["rag_answers_total{decision=can_proceed,rag_used=true}"] == 1
    assert found["rag_tokens_total{kind=prompt}"] == 210
    assert found["rag_tokens_total{kind=completion}"] == 12
    assert found["rag_citations_total{status=verified}"] == 1
    assert found["rag_citations_total{status=not_found}"] == 1
    assert found["rag_unmarked_sentences_total"] == 2
    assert found["rag_context_tokens_bucket{le=500.0}"] == 1
    assert found["rag_context_tokens_bucket{le=250.0}"] == 0
    assert found["rag_answer_seconds_sum"] == pytest.approx(0.01234)


def test_an_answer_without_context_used_no_retrieval() -> None:
    metrics = Metrics()
    empty: dict[str, Any] = {"sources": (), "shown": (), "citations": (), "decision": Decision.OUT_OF_SCOPE}
    nothing: Answer = dataclasses.replace(ANSWER, **empty)
    metrics.answer(nothing)
    found = values(metrics)
    assert found["rag_answers_total{decision=out_of_scope,rag_used=false}"] == 1
    assert found["rag_context_tokens_count"] == 0


def test_the_share_of_questions_without_a_relevant_passage_can_be_told() -> None:
    metrics = Metrics()
    metrics.retrieval("answer", (HIT, HIT), {"scope": 1.0, "dense": 4.0})
    metrics.retrieval("answer", (), {"scope": 1.0})
    metrics.retrieval("search", (), {"scope": 1.0})
    found = values(metrics)
    assert found["rag_questions_total{channel=answer,relevant=true}"] == 1
    assert found["rag_questions_total{channel=answer,relevant=false}"] == 1
    assert found["rag_questions_total{channel=search,relevant=false}"] == 1
    assert found["rag_chunk_relevance_count"] == 2
    assert found["rag_search_seconds_count{step=scope}"] == 3
    assert found["rag_search_seconds_sum{step=dense}"] == pytest.approx(0.004)
    assert found["rag_retrieval_seconds_sum"] == pytest.approx(0.007)


def test_embedding_and_its_caches() -> None:
    metrics = Metrics()
    metrics.embedding("passage", 32, 0.2)
    metrics.cache("passage", 30, 2)
    metrics.cache("query", 0, 1)
    found = values(metrics)
    assert found["rag_embedded_texts_total{role=passage}"] == 32
    assert found["rag_embedding_cache_total{outcome=hit,role=passage}"] == 30
    assert found["rag_embedding_cache_total{outcome=miss,role=query}"] == 1


def test_states_are_read_when_the_figures_are_fetched() -> None:
    metrics = Metrics()
    state = {"open": False, "waiting": 0}
    metrics.watch_circuit("chat model", lambda: state["open"] is True)
    metrics.watch_waiting(lambda: int(state["waiting"]))
    assert values(metrics)["rag_circuit_open{provider=chat model}"] == 0
    state.update(open=True, waiting=7)
    found = values(metrics)
    assert found["rag_circuit_open{provider=chat model}"] == 1
    assert found["rag_model_waiting"] == 7


def test_promised_speeds_are_bucket_borders() -> None:
    text = Metrics()
    text.first_token(0.1)
    text.retrieval("search", (), {"dense": 1.0})
    text.answer(ANSWER)
    found = values(text)
    for promised in ("rag_retrieval_seconds_bucket{le=0.05}", "rag_first_token_seconds_bucket{le=1.5}",
                     "rag_answer_seconds_bucket{le=4.0}"):  # fmt: skip
        assert promised in found


def test_labels_come_from_closed_sets() -> None:
    assert {status.value for status in CitationStatus} == {
        *("verified", "unchecked", "contradicted", "misattributed", "not_found")
    }
    metrics = Metrics()
    metrics.answer(dataclasses.replace(ANSWER, citations=(UNSUPPORTED,)))
    assert not re.search(r"Lyon|unidades", metrics.render().decode())

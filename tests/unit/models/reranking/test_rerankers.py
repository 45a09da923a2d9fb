"""Rerankers: they order, they rate from 0 to 1, they never drop, and they never cost the answer."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from itertools import pairwise
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from structlog.testing import capture_logs

from rag_service.domain import Hit
from rag_service.errors import ConfigurationError, ModelError, ModelOutputError, RerankError
from rag_service.models.llm.model import ChatModel, build_chat
from rag_service.models.reranking import postprocessor
from rag_service.models.reranking.llm import LLMReranker, parse_ratings
from rag_service.models.reranking.postprocessor import PostprocessorReranker, to_unit_range
from rag_service.models.reranking.reranker import HeuristicReranker, NoReranker, by_score, rerank_or_keep
from rag_service.models.reranking.rerankers import build_reranker
from rag_service.settings import Settings
from tests.unit.models.reranking.hits import make_hit


def texts(hits: Sequence[Hit]) -> list[str]:
    return [hit.chunk.text for hit in hits]


def build(strategy: str, chat: ChatModel | None = None, **overrides: Any) -> Any:
    settings = Settings(rerank_strategy=strategy, **overrides)  # type: ignore[arg-type]
    chat = chat or build_chat(settings)
    return build_reranker(settings, chat=chat)


class FakeChat:
    """Stands in for ChatModel where only `complete_json` is used."""

    model_name, context_window, structured_output = "fake", 4096, True

    def __init__(self, reply: str | Exception):
        self.reply = reply
        self.prompts: list[str] = []

    async def complete_json(self, messages: Sequence[Any], schema: object, **_: object) -> str:
        self.prompts.append(messages[-1].content)
        if isinstance(self.reply, Exception):
            raise self.reply
        return self.reply


# -- none, and the safety net


async def test_none_leaves_order_and_scores_as_they_are() -> None:
    hits = [make_hit("b", relevance=0.2), make_hit("a", relevance=0.9)]
    assert await NoReranker().rerank("a", hits, language="en") == hits


async def test_a_reranker_that_fails_costs_the_order_and_not_the_answer() -> None:
    hits = [make_hit("b"), make_hit("a")]
    reranker = LLMReranker(FakeChat(ModelError("The language model cannot be reached.")))  # type: ignore[arg-type]
    with pytest.raises(RerankError):
        await reranker.rerank("a", hits, language="en")
    with capture_logs() as logs:
        assert await rerank_or_keep(reranker, "a", hits, language="en") == hits
    assert [(entry["event"], entry["log_level"]) for entry in logs] == [("rerank_failed", "error")]


# -- heuristic


async def test_the_passage_that_holds_most_of_the_question_comes_first() -> None:
    hits = [make_hit("the contract ends"), make_hit("the contract has a penalty"), make_hit("the contract")]
    ranked = await HeuristicReranker().rerank("contract penalty", hits, language="en")
    assert texts(ranked)[0] == "the contract has a penalty"


async def test_a_heading_that_names_the_subject_lifts_its_passage() -> None:
    hits = [make_hit("within ten days", id="plain"), make_hit("within ten days", headings=("Delivery time",))]
    ranked = await HeuristicReranker().rerank("delivery time", hits, language="en")
    assert ranked[0].chunk.spans[0].location.headings == ("Delivery time",)


async def test_words_alone_do_not_beat_a_clearly_more_relevant_passage() -> None:
    hits = [make_hit("it ends in may", relevance=0.95), make_hit("contract end contract end", relevance=0.3)]
    ranked = await HeuristicReranker().rerank("contract end", hits, language="en")
    assert texts(ranked)[0] == "it ends in may"


async def test_the_fused_score_decides_the_order_and_not_the_relevance() -> None:
    hits = [make_hit("one", fused=0.9, relevance=0.6), make_hit("two", fused=0.5, relevance=0.95)]
    ranked = await HeuristicReranker().rerank("prices?", hits, language="en")
    assert texts(ranked) == ["one", "two"]
    assert ranked[0].scores.rerank == pytest.approx(0.95), "the first has the best relevance found"
    assert (ranked[1].scores.rerank or 1) < 0.05


async def test_words_that_stand_together_count_for_more_than_the_same_words_apart() -> None:
    apart = make_hit("the term of the contract; the notice must be written. A long period", fused=0.5)
    together = make_hit("the notice period of the contract. It must be written; a long term", fused=0.5)
    ranked = await HeuristicReranker().rerank("notice period", [apart, together], language="en")
    assert ranked[0].chunk.id == together.chunk.id


async def test_a_passage_gains_from_the_company_of_a_better_one_of_its_document() -> None:
    hits = [
        make_hit("best", fused=0.9, document=1),
        make_hit("stray", fused=0.52, document=2),
        make_hit("neighbour", fused=0.5, document=1),
    ]
    ranked = await HeuristicReranker().rerank("other", hits, language="en")
    assert texts(ranked) == ["best", "neighbour", "stray"]


async def test_passages_are_read_in_the_language_of_the_question() -> None:
    """The stems of the question are Spanish; English stems of the passages would not meet them."""
    question = "¿Qué documentación necesitan los solicitantes de la pensión?"
    right = make_hit("Los solicitantes de pensiones entregan documentaciones completas", fused=0.5)
    wrong = make_hit("Cada oficina tiene un horario propio de la ciudad", fused=0.51)
    ranked = await HeuristicReranker().rerank(question, [wrong, right], language="es")
    assert ranked[0].chunk.id == right.chunk.id


RELEVANCE = st.floats(0, 1, allow_nan=False)


@given(st.lists(st.tuples(st.text(max_size=20), RELEVANCE), max_size=8), st.lists(st.text(max_size=5), max_size=4))
async def test_every_hit_comes_back_once_rated_in_order_with_its_other_scores(
    passages: list[tuple[str, float]], asked: list[str]
) -> None:
    hits = [make_hit(text, relevance=relevance, id=str(i)) for i, (text, relevance) in enumerate(passages)]
    ranked = await HeuristicReranker().rerank(" ".join(asked), hits, language="en")
    assert sorted(hit.chunk.id for hit in ranked) == sorted(hit.chunk.id for hit in hits)
    scores = [hit.scores.rerank for hit in ranked]
    assert all(score is not None and 0 <= score <= 1 for score in scores)
    assert scores == sorted(scores, key=lambda score: -(score or 0))
    assert {(hit.chunk.id, hit.scores.relevance, hit.scores.bm25) for hit in ranked} == {
        (hit.chunk.id, hit.scores.relevance, hit.scores.bm25) for hit in hits
    }


# -- llm


def ratings(*pairs: tuple[object, object]) -> str:
    return json.dumps({"ratings": [{"id": identifier, "rating": rating} for identifier, rating in pairs]})


async def test_ratings_of_the_model_order_the_hits() -> None:
    chat = FakeChat(ratings((2, 10), (1, 3), (3, 0)))
    hits = [make_hit("one"), make_hit("two"), make_hit("three")]
    ranked = await LLMReranker(chat).rerank("which?", hits, language="en")  # type: ignore[arg-type]
    assert [(hit.chunk.text, hit.scores.rerank) for hit in ranked] == [("two", 1.0), ("one", 0.3), ("three", 0.0)]
    assert len(chat.prompts) == 1


@pytest.mark.parametrize(
    "reply",
    [
        "not JSON",
        "[" * 100_000,
        "[]",
        "{}",
        '{"ratings": null}',
        '{"ratings": [1, 2]}',
        ratings((1, 5)),
        ratings((1, 5), (1, 5)),
        ratings((1, 5), (3, 5)),
        ratings((1, 5), (2, 11)),
        ratings((1, 5), (2, -1)),
        ratings((1, 5), (2, "high")),
        ratings((1, 5), (2, True)),
        ratings((1, 5), (2, float("nan"))),
        ratings((1, 5), ([2], 5)),
        ratings((1, 5), (2, 5), (2, 6)),
    ],
)
async def test_ratings_that_make_no_sense_keep_the_order_and_are_logged(reply: str) -> None:
    with pytest.raises(ModelOutputError):
        parse_ratings(reply, 2)
    hits = [make_hit("one"), make_hit("two")]
    with capture_logs() as logs:
        assert await LLMReranker(FakeChat(reply)).rerank("which?", hits, language="en") == hits  # type: ignore[arg-type]
    assert [entry["event"] for entry in logs] == ["rerank_ratings_invalid"]


async def test_long_passages_are_shortened_to_fit_the_window() -> None:
    chat = FakeChat(ratings(*((i, 5) for i in range(1, 11))))
    hits = [make_hit("word " * 10_000, id=str(i)) for i in range(10)]
    await LLMReranker(chat).rerank("which?", hits, language="en")  # type: ignore[arg-type]
    assert len(chat.prompts[0]) < 4096 * 3


# -- LlamaIndex postprocessors


class Postprocessor(BaseNodePostprocessor):
    """Behaves as the packages do: keeps two nodes by default and scores on a scale of its own."""

    top_n: int = 2
    model: str = ""
    scores: dict[str, float] = {"a": 0.1, "b": 0.9}  # noqa: RUF012 - pydantic copies it

    def _postprocess_nodes(self, nodes: list[Any], query_bundle: Any = None) -> list[Any]:
        for node in nodes:
            node.score = self.scores[node.node.text]
        return sorted(nodes, key=lambda node: -node.score)[: self.top_n]


async def test_a_postprocessor_rates_all_hits_and_logits_become_shares() -> None:
    reranker = PostprocessorReranker("test", lambda: Postprocessor(scores={"a": -3.0, "b": 0.5, "c": 4.0}))
    ranked = await reranker.rerank("?", [make_hit("a"), make_hit("b"), make_hit("c")], language="en")
    assert texts(ranked) == ["c", "b", "a"]
    assert all(0 < (hit.scores.rerank or 0) < 1 for hit in ranked)
    await reranker.aclose()


@pytest.mark.parametrize("score", [float("nan"), float("inf")])
async def test_a_score_that_is_no_number_is_a_rerank_error(score: float) -> None:
    reranker = PostprocessorReranker("test", lambda: Postprocessor(scores={"a": score}))
    with pytest.raises(RerankError):
        await reranker.rerank("?", [make_hit("a")], language="en")
    await reranker.aclose()


async def test_a_model_that_cannot_be_loaded_is_a_rerank_error() -> None:
    def fail() -> Any:
        raise OSError("no such model")

    reranker = PostprocessorReranker("test", fail)
    with pytest.raises(RerankError):
        await reranker.warm_up()
    with pytest.raises(RerankError):
        await reranker.rerank("?", [make_hit("a")], language="en")
    await reranker.aclose()


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1))
def test_any_scale_becomes_zero_to_one_and_keeps_its_order(scores: list[float]) -> None:
    mapped = to_unit_range(scores)
    assert all(0 <= score <= 1 for score in mapped)
    order = sorted(range(len(scores)), key=scores.__getitem__)
    assert all(mapped[left] <= mapped[right] for left, right in pairwise(order))


# -- choice by settings


@pytest.mark.parametrize("strategy", ["none", "heuristic", "sbert"])
def test_the_setting_chooses_the_strategy(strategy: str) -> None:
    assert build(strategy).name == strategy


def test_rating_by_a_model_without_structured_output_is_refused_at_start() -> None:
    with pytest.raises(ConfigurationError) as caught:
        build("llm")
    assert caught.value.field == "RAG_RERANK_STRATEGY"


def test_cohere_without_its_extra_names_the_extra() -> None:
    with pytest.raises(ConfigurationError, match=r"rag-service\[cohere\]"):
        build("cohere")


async def test_cohere_with_its_extra_rates_through_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("llama_index.postprocessor.cohere_rerank")
    module.__spec__ = SimpleNamespace(name=module.__name__)  # type: ignore[assignment]
    module.CohereRerank = Postprocessor  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)
    reranker = build("cohere", rerank_model="rerank-v3.5")
    ranked = await reranker.rerank("?", [make_hit("a"), make_hit("b")], language="en")
    assert texts(ranked) == ["b", "a"]
    await reranker.aclose()


async def test_a_postprocessor_is_found_by_its_class_path_and_options() -> None:
    reranker = build(f"{__name__}:Postprocessor", rerank_options='{"scores": {"a": 3, "b": -3}}')
    ranked = await reranker.rerank("?", [make_hit("b"), make_hit("a")], language="en")
    assert texts(ranked) == ["a", "b"]
    assert reranker.name == "Postprocessor"
    await reranker.aclose()


def test_a_class_of_another_kind_is_refused_at_start() -> None:
    with pytest.raises(ConfigurationError, match=r"RAG_RERANK_STRATEGY: .*MockLLM is not a subclass of .*BaseNodePost"):
        build("llama_index.core.llms:MockLLM")


async def test_a_reranker_that_hangs_costs_the_order_and_not_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    class Slow(Postprocessor):
        def _postprocess_nodes(self, nodes: list[Any], query_bundle: Any = None) -> list[Any]:
            time.sleep(0.5)
            return nodes

    monkeypatch.setattr(postprocessor, "SECONDS", 0.05)
    reranker = PostprocessorReranker("slow", Slow)
    hits = [make_hit("a"), make_hit("b")]
    with capture_logs() as logs:
        assert await rerank_or_keep(reranker, "?", hits, language="en") == hits
    assert [entry["event"] for entry in logs] == ["rerank_failed"]
    await reranker.aclose()


def test_scores_of_numpy_become_numbers_that_json_can_hold() -> None:
    hit = make_hit("a")
    [rated] = by_score([hit], np.asarray([0.25], dtype=np.float32))  # type: ignore[arg-type]
    assert type(rated.scores.rerank) is float

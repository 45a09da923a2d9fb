"""The sbert strategy through its real package, on a tiny cross-encoder made here with random weights."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from rag_service.models.reranking.postprocessor import PostprocessorReranker, cross_encoder
from rag_service.models.reranking.reranker import Reranker
from tests.doubles.tiny_models import SIZES, save_cross_encoder, save_tokenizer
from tests.unit.models.reranking.hits import make_hit

pytestmark = pytest.mark.slow

WORDS = ["the", "contract", "ends", "in", "may", "supplier", "delivers", "parts", "when", "does", "?", "."]


@pytest.fixture(scope="module")
def model_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cross-encoder")
    save_cross_encoder(folder, WORDS, {"num_labels": 1, "initializer_range": 2.0})
    return folder


@pytest.fixture
async def reranker(model_folder: Path) -> AsyncIterator[PostprocessorReranker]:
    built = cross_encoder(str(model_folder), {})
    yield built
    await built.aclose()


@pytest.fixture(scope="module")
def multilingual_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An XLM-RoBERTa with a unigram tokenizer, as the multilingual rerankers are."""
    import torch
    from transformers import XLMRobertaConfig, XLMRobertaForSequenceClassification

    folder = tmp_path_factory.mktemp("multilingual")
    size = save_tokenizer(folder, "unigram")
    torch.manual_seed(7)
    config = XLMRobertaConfig(
        vocab_size=size, max_position_embeddings=66, pad_token_id=1, num_labels=1, initializer_range=2.0, **SIZES
    )
    XLMRobertaForSequenceClassification(config).save_pretrained(folder)
    return folder


async def test_a_multilingual_cross_encoder_rates_the_same_texts_alike(multilingual_folder: Path) -> None:
    reranker = cross_encoder(str(multilingual_folder), {})
    hits = [make_hit(text) for text in ("o prazo termina em maio", "Le plafond est de 500 euros.")]
    first, second = [await reranker.rerank("¿Cuándo vence?", hits, language="es") for _ in range(2)]
    await reranker.aclose()
    assert [hit.scores.rerank for hit in first] == [hit.scores.rerank for hit in second]
    assert len({hit.scores.rerank for hit in first}) == 2


async def test_all_hits_come_back_rated_and_sorted_and_a_second_call_agrees(
    reranker: PostprocessorReranker,
) -> None:
    strategy: Reranker = reranker
    await strategy.warm_up()
    hits = [make_hit(text) for text in ("the contract ends in may.", "the supplier delivers parts.", "may", "?")]
    first = await strategy.rerank("when does the contract end?", hits, language="en")
    second = await strategy.rerank("when does the contract end?", hits, language="en")
    scores = [hit.scores.rerank for hit in first]
    assert len(first) == len(hits)
    assert len(set(scores)) > 1
    assert all(score is not None and 0 <= score <= 1 for score in scores)
    assert scores == sorted(scores, key=lambda score: -(score or 0))
    assert [hit.chunk.id for hit in first] == [hit.chunk.id for hit in second]
    assert all(hit.chunk.metadata == {} for hit in first)


async def test_no_hits_load_no_model(reranker: PostprocessorReranker) -> None:
    assert await reranker.rerank("?", [], language="en") == []
    assert reranker._postprocessor is None

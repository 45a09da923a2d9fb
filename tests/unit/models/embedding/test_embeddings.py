"""Which embedding the settings give, and what is wrong with settings that give none."""

from __future__ import annotations

import math
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from llama_index.core.embeddings import MockEmbedding
from structlog.testing import capture_logs

from rag_service.cli import checks
from rag_service.errors import ConfigurationError, EmbeddingError
from rag_service.models.embedding import encoder, packaged
from rag_service.models.embedding.embeddings import build_embedding, build_sentence_reader
from rag_service.models.embedding.guarded import guard_embedding, local_model
from rag_service.models.embedding.local import LocalEmbedding, cut_windows
from rag_service.settings import Settings
from rag_service.settings.models import PACKAGED_MODEL


def test_the_default_is_the_packaged_model() -> None:
    embedding = build_embedding(Settings())
    assert isinstance(embedding.inner, LocalEmbedding)
    assert (embedding.model_name, embedding.dimension, embedding.embed_batch_size) == (
        "multilingual-e5-small",
        384,
        32,
    )


@pytest.mark.parametrize(
    ("overrides", "field"),
    [
        ({"embedding_dimension": 768}, "RAG_EMBEDDING_DIMENSION"),
        ({"embedding_model": "bge-m3"}, "RAG_EMBEDDING_MODEL"),
    ],
)
def test_settings_that_do_not_fit_the_local_model_are_named(overrides: dict[str, Any], field: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        build_embedding(Settings(**overrides))
    assert caught.value.field == field
    assert field in caught.value.message


async def test_a_model_that_fails_is_an_embedding_error_with_its_cause(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise MemoryError("out of memory")

    monkeypatch.setattr(encoder.Encoder, "__init__", fail)
    embedding = build_embedding(Settings())
    with pytest.raises(EmbeddingError) as caught:
        await embedding.aget_query_embedding("a question")
    assert str(caught.value.__cause__) == "MemoryError: out of memory"
    await embedding.aclose()


async def test_vectors_are_made_without_a_damaged_head_and_the_check_tells(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    damaged = tmp_path / "head.onnx"
    damaged.write_bytes(b"damaged")
    for module in (packaged, checks):
        monkeypatch.setattr(module, "HEAD_FILE", damaged)
    embedding = build_embedding(Settings())
    with capture_logs() as logs:
        assert len(await embedding.aget_query_embedding("a question")) == 384
    assert "question_answering_head_not_loaded" in [line["event"] for line in logs]
    await embedding.aclose()
    with pytest.raises(ConfigurationError, match="cannot be loaded"):
        await checks.check_chat(Settings(), server=None)


WINDOW = 128


def split_at_spaces(text: str) -> list[tuple[int, int]]:
    """Stands in for the tokenizer: one token a word."""
    offsets, start = [], 0
    for word in text.split(" "):
        offsets.append((start, start + len(word)))
        start += len(word) + 1
    return offsets


@pytest.mark.parametrize("count", [1, WINDOW, WINDOW + 1, 200, 800, 5001])
def test_windows_cover_the_text_in_nearly_equal_parts_that_overlap(count: int) -> None:
    words = [f"w{i}" for i in range(count)]
    windows = [window.split(" ") for window in cut_windows(split_at_spaces, " ".join(words), WINDOW)]
    assert windows[0][0] == words[0]
    assert windows[-1][-1] == words[-1]
    assert len({len(window) for window in windows}) == 1
    assert all(len(window) <= WINDOW for window in windows)
    for left, right in pairwise(windows):
        assert len(set(left) & set(right)) >= WINDOW // 8 - 1


@pytest.mark.parametrize(
    ("provider", "is_here", "name"),
    [
        ("ollama", True, PACKAGED_MODEL),
        ("ollama", False, None),  # nobody downloads it for that
        ("local", True, None),  # an embedding of the caller's own, as a plug-in
    ],
)
def test_the_packaged_model_reads_sentences_beside_that_of_a_server(
    monkeypatch: pytest.MonkeyPatch, provider: str, is_here: bool, name: str | None
) -> None:
    monkeypatch.setattr(packaged, "is_here", lambda: is_here)
    settings = Settings(embedding_provider=provider)
    reader = build_sentence_reader(settings, MockEmbedding(embed_dim=4))
    assert (None if reader is None else reader.model_name) == name


def test_the_packaged_model_reads_sentences_itself() -> None:
    embedding = build_embedding(Settings())
    assert build_sentence_reader(Settings(), embedding) is local_model(embedding)


class OneVector(MockEmbedding):
    """Returns the same vector for every text."""

    vector: list[Any]

    def _get_vector(self) -> list[float]:
        return self.vector


@pytest.mark.parametrize(
    "vector", [[math.nan, 1.0], [math.inf, 1.0], [1e300, 1.0], [65505.0, 1.0], [0.0, 0.0], [True, True]], ids=str
)
async def test_a_vector_that_cannot_be_stored_or_compared_is_refused(vector: list[float]) -> None:
    embedding = guard_embedding(OneVector(embed_dim=2, vector=vector), Settings(embedding_dimension=2))
    with pytest.raises(EmbeddingError):
        await embedding.aget_query_embedding("a question")
    with pytest.raises(EmbeddingError):
        await embedding.aget_text_embedding_batch(["a passage"])

"""The directions that tell the language of a text, and vectors without them."""

from __future__ import annotations

import numpy as np
import pytest

from evals.lab.language_directions import find_directions, write_directions
from rag_service.models.embedding import packaged
from rag_service.models.embedding.embeddings import build_embedding
from rag_service.settings import Settings


def test_the_directions_between_means_are_found() -> None:
    common = np.array([3.0, 0.0, 0.0, 0.0])
    means = [common + np.array([0.0, x, y, 0.0]) for x, y in ((1.0, 0.0), (-1.0, 0.5), (0.0, -0.5))]
    found = find_directions(means)
    assert found.shape == (2, 4)
    assert found @ found.T == pytest.approx(np.eye(2))
    assert np.abs(found[:, [0, 3]]).max() < 1e-9, "what the languages share stays"


def test_the_shipped_directions_are_read_as_they_were_written(
    tmp_path: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    shipped = packaged.language_directions()
    assert shipped.shape == (3, 384)
    assert shipped @ shipped.T == pytest.approx(np.eye(3), abs=1e-3)
    file = tmp_path / "directions.json"  # type: ignore[operator]
    write_directions(file, shipped)
    monkeypatch.setattr(packaged, "_DIRECTIONS_FILE", file)
    assert packaged.language_directions() == pytest.approx(shipped, abs=1e-5)


async def test_a_translation_is_as_near_as_a_sentence_in_the_same_language() -> None:
    embedding = build_embedding(Settings())
    question = np.array(await embedding.aget_query_embedding("How many days can I work from home?"))
    texts = [
        "Se puede trabajar desde casa dos días por semana.",
        "O teletrabalho é permitido dois dias por semana.",
        "The goods lift carries at most 800 kg.",
        "The office closes at half past six in the evening.",
    ]
    vectors = np.array(await embedding.aget_text_embedding_batch(texts))
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1.0)
    assert np.abs(vectors @ packaged.language_directions().T).max() < 1e-4
    cosines = vectors @ question
    assert min(cosines[:2]) > max(cosines[2:])

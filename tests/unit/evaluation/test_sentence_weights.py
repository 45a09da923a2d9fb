"""Which sentences answer best is learnt from examples."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from rag_service.evaluation.sentence_weights import Example, cross_validate, learn, write_weights
from rag_service.models.extractive.weights import VECTOR_FEATURES, WORD_FEATURES


def examples(count: int = 40) -> list[Example]:
    """Questions whose right candidate has the greatest share and similarity; all other features are noise."""
    chance = np.random.default_rng(7)
    made = []
    for number in range(count):
        features, cosines = chance.random((6, len(WORD_FEATURES))), chance.random(6)
        right = np.arange(6) == number % 6
        features[right, WORD_FEATURES.index("share")] = 1.5
        cosines[right] = 1.5
        made.append(
            Example(set_name="made", language="en", part=number, features=features, similarities=cosines, right=right)
        )
    return made


def test_the_features_that_tell_right_from_wrong_get_the_greatest_weights() -> None:
    words, vectors = learn(examples())
    assert int(np.argmax(np.abs(words))) == WORD_FEATURES.index("share")
    named = dict(zip((*WORD_FEATURES, *VECTOR_FEATURES), vectors, strict=True))
    assert min(named["share"], named["similarity"]) > 2 * max(
        abs(named[name]) for name in ("number", "length", "price")
    )


def test_each_half_is_measured_with_the_weights_of_the_other() -> None:
    (figures,) = cross_validate(examples())
    assert figures.questions == 40
    assert figures.first > 0.95
    # Where nothing tells right from wrong, learning finds nothing.
    chance = np.random.default_rng(1)
    blind = [
        Example(
            set_name="blind",
            language="en",
            part=number,
            features=chance.random((6, len(WORD_FEATURES))),
            similarities=chance.random(6),
            right=np.arange(6) == chance.integers(6),
        )
        for number in range(200)
    ]
    (figures,) = cross_validate(blind)
    assert figures.first < 0.35


def test_the_file_names_every_feature_and_the_run(tmp_path: Path) -> None:
    file = tmp_path / "weights.json"
    write_weights(file, examples(), run="a run")
    stored = json.loads(file.read_text())
    assert stored["run"] == "a run"
    assert stored["languages"].keys() == {"*", "en"}
    assert list(stored["languages"]["en"]["vectors"]) == [*WORD_FEATURES, *VECTOR_FEATURES]

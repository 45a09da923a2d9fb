"""Which sentences answer best is learnt from examples."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from evals.lab.sentence_weights import Example, cross_validate, write_weights
from rag_service.answering.quoting.rating import SIMILARITY, TOKEN_FEATURES, WORD_FEATURES


def make_example(chance: np.random.Generator, number: int, right: np.ndarray) -> Example:
    return Example(
        set_name="made",
        language="en",
        model="a model",
        part=number,
        words=chance.random((6, len(WORD_FEATURES))),
        tokens=chance.random((6, len(TOKEN_FEATURES))),
        similarities=chance.random(6),
        right=right,
    )


def examples(count: int = 40) -> list[Example]:
    """Questions whose right candidate has the greatest share, match and similarity; all other features are noise."""
    chance = np.random.default_rng(7)
    made = []
    for number in range(count):
        right = np.arange(6) == number % 6
        example = make_example(chance, number, right)
        example.words[right, WORD_FEATURES.index("share")] = 1.5
        example.tokens[right, TOKEN_FEATURES.index("matched_least")] = 1.5
        example.similarities[right] = 1.5
        made.append(example)
    return made


def test_each_half_is_measured_with_the_weights_of_the_other() -> None:
    (figures,) = cross_validate(examples())
    assert figures.questions == 40
    assert figures.first > 0.95
    # Where nothing tells right from wrong, learning finds nothing.
    chance = np.random.default_rng(1)
    blind = [make_example(chance, number, np.arange(6) == chance.integers(6)) for number in range(200)]
    (figures,) = cross_validate(blind)
    assert figures.first < 0.35


def test_the_file_names_run_model_and_every_feature(tmp_path: Path) -> None:
    file = tmp_path / "weights.json"
    write_weights(file, examples(), run="a run")
    stored = json.loads(file.read_text())
    assert (stored["run"], stored["model"]) == ("a run", "a model")
    assert stored["languages"].keys() == {"*", "en"}
    learnt = stored["languages"]["en"]
    assert list(learnt["vectors"]) == [*WORD_FEATURES, SIMILARITY]
    assert list(learnt["tokens"]) == [*WORD_FEATURES, *TOKEN_FEATURES, SIMILARITY]
    # The features that tell right from wrong get the greatest weights.
    for weights, telling in (
        (learnt["vectors"], ["share", SIMILARITY]),
        (learnt["tokens"], ["share", "matched_least"]),
    ):
        noise = max(abs(weights[name]) for name in ("number", "standing", "figures"))
        assert min(weights[name] for name in telling) > 2 * noise

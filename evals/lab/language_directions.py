"""`python -m evals.lab languages`: the directions in which the packaged model's vectors tell the language of a text."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt

from rag_service.fitting.question_sets import load_shipped
from rag_service.models.embedding.encoder import Encoder
from rag_service.models.embedding.local import LocalEmbedding
from rag_service.models.embedding.model_folder import read_model_folder
from rag_service.models.embedding.packaged import required_folder
from rag_service.settings.models import PACKAGED_MODEL

_DIGITS = 5


def measure_directions() -> npt.NDArray[np.float64]:
    """(languages - 1, dimension), orthonormal, of the shipped question sets, which are translations of each other.

    Takes about a minute. Raises ConfigurationError if the packaged model has not been fetched.
    """
    model = read_model_folder(required_folder(), name=PACKAGED_MODEL)
    embedding = LocalEmbedding(model, partial(Encoder, model, precision="float32"))
    means = []
    for some in load_shipped():
        of_passages = embedding.get_text_embedding_batch(list(some.passages))
        of_questions = [embedding.get_query_embedding(question.text) for question in some.questions]
        means.append((np.mean(of_passages, axis=0) + np.mean(of_questions, axis=0)) / 2)
    return find_directions(means)


def find_directions(means: Sequence[npt.NDArray[np.float64]]) -> npt.NDArray[np.float64]:
    """The space of the differences between the mean vectors of languages: (languages - 1, dimension), orthonormal."""
    differences = np.array(means) - np.mean(means, axis=0)
    return np.asarray(np.linalg.svd(differences, full_matrices=False)[2][:-1])


def write_directions(output: Path, directions: npt.NDArray[np.float64]) -> None:
    """Write the file that `packaged.language_directions` reads."""
    output.write_text(json.dumps(directions.round(_DIGITS).tolist()) + "\n", encoding="utf-8")

"""`python -m evals.hops`: learns to tell questions of one step from questions of several, by their vectors.

Logistic regression over the packaged model's vector of the question. The weights that are shipped were learnt from
hops.json, from the developed halves of `evals/sets` (of one step, most about tables) and from public sets, which are
not part of this repository: MuSiQue, 2WikiMultihopQA and HotpotQA's bridge questions (1,134 of several steps); XQuAD
(en, es), FaQuAD, PIAF and the cooperative sets of evals/ (5,882 of one).
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path

import click
import numpy as np
import numpy.typing as npt

from evals.sets.questions import read_set, set_names
from rag_service.fitting.logistic import fit_logistic
from rag_service.models.embedding.embeddings import build_embedding
from rag_service.models.embedding.guarded import close_embedding
from rag_service.settings import Settings

_Floats = npt.NDArray[np.float64]

OURS = Path(__file__).parent / "hops.json"
WEIGHTS = Path(__file__).parents[1] / "rag_service" / "retrieval" / "hops.json"
# Chosen on the held-out folds: 1 for our questions and 0.1 for the public ones, which are ten times as many. A third of
# this ridge or three times as much, and 0.3 for the public ones of one step, told as many apart within two per cent.
_PUBLIC, _RIDGE = 0.1, 384.0
_FOLDS = 4
_SHARE = 0.02  # of the public questions of one step that are taken for one of several


@click.command()
@click.option(
    "--several", type=click.Path(exists=True, path_type=Path), help="JSON list of questions of several steps."
)
@click.option("--single", type=click.Path(exists=True, path_type=Path), help="JSON list of more questions of one.")
@click.option("--save", is_flag=True, help="Write the weights.")
def main(several: Path | None, single: Path | None, save: bool) -> None:
    """Learn the weights, tell what they do on folds that were held out, and write them."""
    ours = json.loads(OURS.read_text(encoding="utf-8"))["questions"]
    texts = [one["text"] for one in ours]
    labels = [float(one["hops"] > 1) for one in ours]
    of_sets = [one.text for name in set_names() for one in read_set(name).questions if one.half == "developed"]
    texts += of_sets
    labels += [0.0] * len(of_sets)
    importance = [1.0] * len(texts)
    for file, label in ((several, 1.0), (single, 0.0)):
        read = [] if file is None else json.loads(file.read_text(encoding="utf-8"))
        texts += read
        labels += [label] * len(read)
        importance += [_PUBLIC] * len(read)
    vectors = asyncio.run(_embed(texts))
    known, weighed = np.array(labels), np.array(importance)
    order = np.random.default_rng(1).permutation(len(texts)) % _FOLDS
    rated = np.zeros(len(texts))
    for fold in range(_FOLDS):
        chosen = order != fold
        intercept, *weights = _fit(vectors[chosen], known[chosen], weighed[chosen])
        rated[~chosen] = vectors[~chosen] @ np.array(weights) + intercept
    place = np.arange(len(texts))
    is_ours, is_public = place < len(ours), place >= len(ours) + len(of_sets)
    others = rated[(known == 0) & is_public] if single else rated[(known == 0) & is_ours]
    least = float(np.quantile(others, 1 - _SHARE))
    for name, group in (("ours", is_ours), ("sets", ~is_ours & ~is_public), ("public", is_public)):
        for several_steps, those in ((True, group & (known == 1)), (False, group & (known == 0))):
            if those.any():
                kind = "of several" if several_steps else "of one"
                click.echo(f"{name}: {(rated[those] >= least).mean():.3f} of those {kind} are taken for several")
    if save:
        intercept, *weights = _fit(vectors, known, weighed)
        written = {
            "about": "Learnt by `python -m evals.hops`.",
            "weights": [round(value, 4) for value in weights],
            "intercept": round(intercept, 4),
            "least": round(least, 4),
        }
        WEIGHTS.write_text(json.dumps(written) + "\n", encoding="utf-8")


def _fit(vectors: _Floats, labels: _Floats, importance: _Floats) -> list[float]:
    """Intercept and weights."""
    return fit_logistic(vectors, labels, importance, np.zeros(len(labels)), ridge=_RIDGE)


async def _embed(texts: Sequence[str]) -> _Floats:
    """Vectors of length 1, (n, d)."""
    embedding = build_embedding(Settings().replace({"embedding_provider": "local"}))
    found = np.array([await embedding.aget_query_embedding(text) for text in texts])
    await close_embedding(embedding)
    result: _Floats = found / np.linalg.norm(found, axis=1, keepdims=True)
    return result


if __name__ == "__main__":
    main()

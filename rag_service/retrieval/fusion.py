"""Fusion: one ranking and one relevance from the scores of both searches.

A weighted sum; `alpha` is the weight of the vector search. So that a weak search does not drown a strong one, as with
rank fusion and min-max scaling, cosines have one scale for all questions, and BM25 is divided by the geometric mean of
the best score found and the maximum that the question's words could give: a poor keyword match stays small
(docs/decisions/006-fusion.md).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rag_service.domain import Scores
from rag_service.indices import RelevanceFit
from rag_service.models.embedding.relevance import BY_WORDS, SAYS_NOTHING, UNSCALED, relevance
from rag_service.store.relevance_fits import CosineScale

# Log odds that the question is answered, beside cosine and coverage, where it names something that no passage holds:
# fitted with them on one half of XQuAD's articles or the other it is −1.1 and −1.9 (en), −0.8 and −3.3 (es); on our
# freely asked sets −0.7 to −1.9. Four in ten unanswerable questions of XQuAD and one in a hundred others name such.
ABSENT_NAME = -1.5


@dataclass(frozen=True, kw_only=True)
class Candidates:
    """The scores of the same chunks in both searches: parallel arrays, each chunk once."""

    ids: npt.NDArray[np.int64]
    cosines: npt.NDArray[np.float64] | None  # NaN: a chunk without a vector; None: no vector search
    bm25: npt.NDArray[np.float64]  # 0: no word of the question
    coverage: npt.NDArray[np.float64]  # share of the question that the chunk contains, 0..1


def fuse(
    found: Candidates,
    *,
    alpha: float,
    ceiling: float,
    calibration: RelevanceFit | None,
    scale: CosineScale = UNSCALED,
    limit: int | None = None,
    absent: bool = False,
) -> list[tuple[int, Scores]]:
    """Rank what keyword and vector search found: (chunk id, scores), best first.

    Args:
        found: every chunk of either search.
        alpha: weight of the vector search, 0..1.
        ceiling: maximum BM25 that the question's words could give; 0 without a keyword search.
        calibration: logistic from cosine and coverage to relevance; None: a rough default. Without a vector, `BY_WORDS`
            takes its place.
        scale: of the cosines.
        limit: number of chunks returned; None: all.
        absent: whether the question names something that no chunk in scope contains.
    """
    best_bm25 = float(np.max(found.bm25, initial=0.0))
    blind = np.full(len(found.ids), fill_value=True) if found.cosines is None else np.isnan(found.cosines)
    cosines = np.where(blind, 0.0, np.zeros(len(found.ids)) if found.cosines is None else found.cosines)
    if found.cosines is None:
        alpha = 0.0
    elif best_bm25 <= 0:
        alpha = 1.0
    similarities = scale.similarity(cosines)
    silent = blind | (similarities < SAYS_NOTHING)
    largest = math.sqrt(best_bm25 * ceiling) if ceiling > 0 else 0.0
    lexical = found.bm25 / largest if largest else np.zeros(len(found.ids))
    # Words alone rank a chunk without a vector, as if its similarity were what they say.
    both = alpha * np.where(silent, 0.0, similarities) + (1 - alpha) * lexical
    fused = np.where(blind, lexical, both)
    ranked = np.lexsort((found.ids, -fused))[:limit]
    coverage = found.coverage if ceiling > 0 else np.zeros(len(found.ids))
    log_odds = ABSENT_NAME if absent else 0.0
    relevances = relevance(cosines, coverage, calibration, log_odds=log_odds)
    if silent.any():
        relevances = np.where(silent, relevance(cosines, coverage, BY_WORDS, log_odds=log_odds), relevances)
    columns = zip(
        found.ids[ranked].tolist(),
        relevances[ranked].tolist(),
        cosines[ranked].tolist(),
        blind[ranked].tolist(),
        found.bm25[ranked].tolist(),
        coverage[ranked].tolist(),
        fused[ranked].tolist(),
        strict=True,
    )
    results = []
    for chunk_id, certain, cosine, is_blind, bm25, share, score in columns:
        scores = Scores(
            relevance=certain,
            dense=None if is_blind else cosine,
            bm25=bm25 or None,
            coverage=share if ceiling > 0 else None,
            fused=score,
        )
        results.append((chunk_id, scores))
    return results

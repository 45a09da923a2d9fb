"""One ranking from two legs, and one score that means something.

Fusion is a weighted sum, `alpha` being the share of the dense leg. Two things keep a weak leg from
drowning a strong one, which rank fusion and min-max scaling were seen to allow (CONTRIBUTING.md,
"Retrieval decisions"):

- the cosine keeps its own scale, and BM25 is divided by the geometric mean of the best score found
  and the most that the question's words could give, so that a poor lexical match stays small;
- the dense leg is trusted as far as the lexical leg supports one of its three best passages. Where
  the lexical leg has little to say itself (its best passage scores less than a quarter of what
  the question could give), the dense leg keeps its full weight.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rag_service.definitions import RelevanceFit

SUPPORTING = 3  # best dense passages that may vouch for the dense leg
TELLING_SHARE = 0.25  # 5th percentile of the best BM25 over the ceiling, answerable XQuAD questions, en and es alike

UNCALIBRATED = RelevanceFit(intercept=-6.0, cosine=6.0, coverage=10.0, run="none: a guess between languages")

# Where no dense leg ran: coverage alone, whatever the embedding model would have been. Fitted on XQuAD's odd
# articles, both languages, for 70 % answerable; on the even ones it refuses 0.90 (en) and 0.88 (es) of the
# unanswerable questions and 0.04 and 0.03 of the others.
BY_WORDS = RelevanceFit(intercept=-5.27, cosine=0.0, coverage=24.57, run="xquad-odd-articles, coverage alone")


# Log odds of an answer where the question names something that no passage in scope holds, beside cosine and coverage:
# fitted with them on one half of XQuAD's articles or the other it is −1.1 and −1.9 (en), −0.8 and −3.3 (es); on our
# freely asked sets −0.7 to −1.9. Four in ten unanswerable questions of XQuAD and one in a hundred others name such.
ABSENT_NAME = -1.5


def log_odds_of(absent: Collection[str]) -> float:
    """What names that nobody mentions take off the log odds of every passage."""
    return ABSENT_NAME if absent else 0.0


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A chunk before its text is read."""

    id: int
    dense: float | None  # cosine
    bm25: float | None
    coverage: float | None  # 0..1
    fused: float
    relevance: float  # 0..1


@dataclass(frozen=True, kw_only=True)
class Candidates:
    """What both legs say of the same chunks; parallel arrays, each chunk once."""

    ids: npt.NDArray[np.int64]
    cosines: npt.NDArray[np.float64] | None  # None where the dense leg did not run
    bm25: npt.NDArray[np.float64]  # 0 where a chunk holds no word of the question
    coverage: npt.NDArray[np.float64]  # share of the question that a chunk holds, 0..1


def fuse(
    found: Candidates,
    *,
    alpha: float,
    ceiling: float,
    calibration: RelevanceFit | None,
    limit: int | None = None,
    log_odds: float = 0.0,
) -> list[Candidate]:
    """Rank what both legs found, best first.

    Args:
        found: every chunk that either leg found.
        alpha: share of the dense leg, 0..1.
        ceiling: the most BM25 that the question's words could give; 0 when the leg did not run.
        calibration: logistic from cosine and coverage to relevance; None takes a rough default. Where the
            dense leg did not run, `BY_WORDS` takes its place.
        limit: most candidates returned; None returns all.
        log_odds: what else is known of the question, such as `ABSENT_NAME`, added to the calibration's.
    """
    cosines = found.cosines
    best_bm25 = float(found.bm25.max(initial=0.0))
    if cosines is None:
        alpha, calibration, cosines = 0.0, BY_WORDS, np.zeros(len(found.ids))
    elif best_bm25 <= 0:
        alpha = 1.0
    dense_share = alpha * _trust_in_dense(cosines, found.bm25, best_bm25, ceiling)
    scale = math.sqrt(best_bm25 * ceiling) if ceiling > 0 else 0.0
    lexical_share = (1 - alpha) / scale if scale else 0.0
    fused = dense_share * cosines + lexical_share * found.bm25
    ranked = np.lexsort((found.ids, -fused))[:limit]
    return [
        Candidate(
            id=chunk_id,
            dense=None if found.cosines is None else cosine,
            bm25=bm25 or None,
            coverage=share if ceiling > 0 else None,
            fused=score,
            relevance=relevance(cosine, share if ceiling > 0 else 0.0, calibration, log_odds=log_odds),
        )
        for chunk_id, cosine, bm25, share, score in zip(
            *(column[ranked].tolist() for column in (found.ids, cosines, found.bm25, found.coverage, fused)),
            strict=True,
        )
    ]


def _trust_in_dense(
    cosines: npt.NDArray[np.float64], bm25: npt.NDArray[np.float64], best_bm25: float, ceiling: float
) -> float:
    if best_bm25 <= 0 or ceiling <= 0:
        return 1.0
    nearest = np.argsort(-cosines, kind="stable")[:SUPPORTING]
    support = float(bm25[nearest].max(initial=0.0)) / best_bm25
    telling = min(1.0, best_bm25 / ceiling / TELLING_SHARE)
    return 1 - telling * (1 - support)


def relevance(cosine: float, coverage: float, calibration: RelevanceFit | None, *, log_odds: float = 0.0) -> float:
    """Calibrated probability that a passage answers the question, 0..1."""
    fitted = calibration or UNCALIBRATED
    exponent = log_odds + fitted.intercept + fitted.cosine * cosine + fitted.coverage * coverage
    return 1 / (1 + math.exp(-max(-60.0, min(60.0, exponent))))

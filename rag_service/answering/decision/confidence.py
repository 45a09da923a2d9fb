"""How sure an answer is.

Answers, agents and the OpenAI-compatible endpoint give a probability: of answers with 0.9, nine in ten are right. It is
a logistic of a few signals, fitted to questions with known answers by `rag-service eval calibrate --answers`; the
numbers, and the evaluation that set them, are in `confidence.json` (decision 041). The advisor keeps a formula of its
own, whose sum it shows to the user: `rate_confidence`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from heapq import nlargest
from pathlib import Path
from statistics import fmean

from rag_service.answering.quoting.quotes import Quotes
from rag_service.domain import Confidence, Hit
from rag_service.errors import ConfigurationError
from rag_service.indices import QueryDefinition

PACKAGED_FIT = Path(__file__).with_name("confidence.json")
WRITTEN_FIT = Path(__file__).with_name("written_confidence.json")
_UNPROVED = 0.5  # at most, where no sentence is verified
# Share of certain computed answers that are right; 1.0 on the questions of evals/sets, of which there are too few to
# claim more.
COMPUTED_CONFIDENCE = 0.95
SIGNALS = ("relevance", "lead", "unmatched")
WRITTEN_SIGNALS = ("proved", "answers")  # of answers that a judge has seen: `written_signals`

NO_CONFIDENCE = Confidence(value=0.0, mean_relevance=0.0, mean_rerank=None, critical_boost=False)
_CERTAIN = 0.01  # probabilities are kept this far from 0 and 1, where log-odds end
_TOP = 3
_CRITICAL_BOOST = 1.1
_CRITICAL_CHUNKS = 2
MIN_CONFIDENCE = 0.70  # of the advisor; answers have the limit of their fit


@dataclass(frozen=True, kw_only=True)
class ConfidenceFit:
    """Log-odds that an answer is right: intercept + weights · signals."""

    run: str  # the evaluation that made it
    intercept: float
    weights: Mapping[str, float]  # by the name of the signal
    typical: Mapping[str, float] = field(default_factory=dict)  # of right answers, for signals that one does not have
    least: float  # below it an answer made of quotes is uncertain, 0..1

    def probability(self, signals: Mapping[str, float]) -> float:
        """Probability that an answer is right, 0..1."""
        known = {**self.typical, **signals}
        log_odds = self.intercept + sum(weight * known[name] for name, weight in self.weights.items())
        return 1 / (1 + math.exp(-max(-60.0, min(60.0, log_odds))))


@lru_cache(maxsize=4)
def read_fit(file: Path | None = None, *, signals: tuple[str, ...] = SIGNALS) -> ConfidenceFit:
    """Return the fit in a file; None: the packaged one. Raises ConfigurationError if the file holds none."""
    try:
        fit = ConfidenceFit(**json.loads((file or PACKAGED_FIT).read_text(encoding="utf-8")))
        fit.probability(dict.fromkeys(signals, 0.0))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ConfigurationError(
            f"RAG_CONFIDENCE_FIT: {file} is no file that `rag-service eval calibrate --answers` of this version wrote. "
            "Make it anew.",
            field="RAG_CONFIDENCE_FIT",
        ) from error
    return fit


def read_signals(sources: Sequence[Hit], quotes: Quotes | None) -> dict[str, float]:
    """Return what the fit looks at, by the names in `SIGNALS`.

    `relevance`: log-odds of the best passage's relevance; `lead`: log-odds that the first quote holds the best of all
    sentences; `unmatched`: what its surroundings leave open of the question (`answering/quoting/rating.py`). Answers
    of a chat model have the first only.

    Args:
        sources: the passages down to the last one above the threshold, best first; at least one.
        quotes: what the answer quotes; None: nothing.
    """
    signals = {"relevance": _log_odds(max(hit.scores.relevance for hit in sources))}
    if quotes is not None and quotes.lead is not None:
        signals["lead"] = _log_odds(quotes.lead)
    if quotes is not None and quotes.unmatched is not None:
        signals["unmatched"] = quotes.unmatched
    return signals


def _log_odds(probability: float) -> float:
    kept = min(1 - _CERTAIN, max(_CERTAIN, probability))
    return math.log(kept / (1 - kept))


def estimate_confidence(
    fit: ConfidenceFit, signals: Mapping[str, float], sources: Sequence[Hit], *, refuted: float, has_proof: bool
) -> Confidence:
    """Probability that an answer is right; 0 without sources.

    The fit knows answers that quote. A sentence that its source contradicts, or that no passage shows, is wrong however
    good the passages are: the probability is lowered by the share of such citations, `refuted`, and without a verified
    sentence it is never above one half. `signals` are those of `read_signals`.
    """
    if not sources:
        return NO_CONFIDENCE
    probability = fit.probability(signals) * (1 - refuted)
    if not has_proof:
        probability = min(probability, _UNPROVED)
    mean_relevance, mean_rerank = _means(sources)
    return Confidence(
        value=round(probability, 2), mean_relevance=mean_relevance, mean_rerank=mean_rerank, critical_boost=False
    )


def written_signals(*, proved: float, answers: bool) -> dict[str, float]:
    """Return what the fit of written answers looks at; arguments as for `rate_written`."""
    return {"proved": proved, "answers": float(answers)}


def rate_written(sources: Sequence[Hit], *, proved: float, answers: bool) -> Confidence:
    """Return the probability that an answer which a judge has seen is right; 0 without sources.

    Args:
        proved: share of its sentences that are verified, 0..1.
        answers: whether the judge says that it answers the question.
    """
    if not sources:
        return NO_CONFIDENCE
    signals = written_signals(proved=proved, answers=answers)
    value = read_fit(WRITTEN_FIT, signals=WRITTEN_SIGNALS).probability(signals)
    mean_relevance, mean_rerank = _means(sources)
    return Confidence(
        value=round(value if proved else min(value, _UNPROVED), 2),
        mean_relevance=mean_relevance,
        mean_rerank=mean_rerank,
        critical_boost=False,
    )


def rate_confidence(hits: Sequence[Hit], query: QueryDefinition) -> Confidence:
    """Return the advisor's confidence 0..1: the mean of the top three relevances, averaged with that of the
    top three rerank scores if there are any, times 1.1 with two or more CRITICAL chunks; 0 without hits."""
    if not hits:
        return NO_CONFIDENCE
    mean_relevance, mean_rerank = _means(hits)
    value = mean_relevance if mean_rerank is None else (mean_relevance + mean_rerank) / 2
    critical = set(query.tiers.get("critical", ()))
    boost = sum(1 for hit in hits if hit.chunk.type in critical) >= _CRITICAL_CHUNKS
    if boost:
        value = min(1.0, value * _CRITICAL_BOOST)
    return Confidence(
        value=round(value, 2), mean_relevance=mean_relevance, mean_rerank=mean_rerank, critical_boost=boost
    )


def _means(hits: Sequence[Hit]) -> tuple[float, float | None]:
    """Means of the top three relevances and of the top three rerank scores."""
    relevances = nlargest(_TOP, (hit.scores.relevance for hit in hits))
    reranked = [hit.scores.rerank for hit in hits if hit.scores.rerank is not None]
    return round(fmean(relevances), 4), round(fmean(nlargest(_TOP, reranked)), 4) if reranked else None

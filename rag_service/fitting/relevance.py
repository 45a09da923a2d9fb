"""Scale, relevance and weight of an embedding model's cosines, from its vectors of the shipped question sets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from rag_service.fitting.logistic import PRIOR, Fit, Sample, as_relevance_fit, fit_samples, to_prior
from rag_service.fitting.question_sets import Matched, QuestionSet
from rag_service.indices import IndexDefinition, RelevanceFit
from rag_service.models.embedding.relevance import ANY_LANGUAGE, UNSCALED
from rag_service.retrieval.fusion import ABSENT_NAME, Candidates, fuse
from rag_service.retrieval.question import RERANKED
from rag_service.store.relevance_fits import CosineScale

Vectors = npt.NDArray[np.float64]

# Mean and standard deviation of the packaged model's cosines between questions and passages of other articles, by
# `measure_pairs`; those of any language are the mean of these.
PACKAGED_PAIRS = {"en": (0.7855, 0.0236), "es": (0.7983, 0.0202), "fr": (0.8026, 0.0193), "pt": (0.8079, 0.0188)}

# The packaged model's relevance is fitted to the shipped sets and to XQuAD, whose questions copy words of the passages
# and which may not be shipped (docs/decisions/007-calibrated-relevance.md). What XQuAD adds to (intercept, cosine,
# coverage) of a fit to the shipped sets alone is carried over to other models, on the packaged model's scale.
COPIED_WORDS = {
    "en": (-4.53, 4.58, 3.89),
    "es": (-8.14, 8.71, 3.73),
    "fr": (0.0, 0.0, 0.0),
    "pt": (0.0, 0.0, 0.0),
    ANY_LANGUAGE: (-2.18, 2.09, 2.26),
}

ALPHAS = tuple(round(0.05 * step, 2) for step in range(4, 20))
AS_GOOD = 0.01  # a smaller difference of MRR between two alphas is chance


@dataclass(frozen=True, kw_only=True)
class EmbeddedSet:
    """A question set with a model's vectors."""

    questions: QuestionSet
    of_passages: Vectors  # (passages, dimension)
    of_questions: Vectors  # (questions, dimension); the first ones, while not all are there

    @property
    def cosines(self) -> Vectors:
        """(questions, passages)."""
        # Not `@`: OpenBLAS's own threads hang where two threads multiply large matrices while the process forks.
        cosines: Vectors = np.einsum("qd,pd->qp", _unit(self.of_questions), _unit(self.of_passages), optimize=False)
        return cosines


def measure_pairs(embedded: EmbeddedSet) -> tuple[float, float]:
    """Mean and standard deviation of the cosines between questions and passages of other articles."""
    articles = np.array(embedded.questions.articles)
    asked = np.array([question.article for question in embedded.questions.questions[: len(embedded.of_questions)]])
    unrelated = embedded.cosines[asked[:, np.newaxis] != articles]
    return float(unrelated.mean()), float(unrelated.std())


def fit_scales(sets: Sequence[EmbeddedSet]) -> dict[str, CosineScale]:
    """Language → the scale on which unrelated texts have the mean and the spread of the packaged model's.

    Some questions of each set are enough.
    """
    pairs = {embedded.questions.language: measure_pairs(embedded) for embedded in sets}
    scales = {language: _scale(pairs[language], PACKAGED_PAIRS[language]) for language in pairs}
    return scales | {ANY_LANGUAGE: _scale(_mean(pairs), _mean(PACKAGED_PAIRS))}


def _mean(pairs: Mapping[str, tuple[float, float]]) -> tuple[float, float]:
    means, deviations = zip(*pairs.values(), strict=True)
    return float(np.mean(means)), float(np.mean(deviations))


def _scale(ours: tuple[float, float], packaged: tuple[float, float]) -> CosineScale:
    if ours[1] < 1e-6:  # a model that says the same of every text
        return UNSCALED
    factor = packaged[1] / ours[1]
    return CosineScale(offset=packaged[0] - factor * ours[0], factor=factor)


def fit_relevance(
    sets: Sequence[EmbeddedSet], scales: Mapping[str, CosineScale], index: IndexDefinition, *, run: str
) -> dict[str, RelevanceFit]:
    """Language → relevance of the model's own cosines, with the alpha of that language.

    Args:
        sets: with the vectors of all questions.
        scales: by `fit_scales`.
        index: its BM25 parameters and synonyms; its alpha is kept where another is not better.
        run: named by each fit.
    """
    fits: dict[str, RelevanceFit] = {}
    samples: list[Sample] = []
    for embedded in sets:
        language = embedded.questions.language
        cosines = scales[language](embedded.cosines)
        alpha = _choose_alpha(embedded, cosines, index)
        found = _collect(embedded, cosines, index, alpha=alpha)
        samples += found
        fits[language] = _restate(_fit(found, language), scales[language], f"{run}-{language}", alpha=alpha)
    # Pairs have the same mean and spread in every language, so that samples of all languages can be fitted together.
    fits[ANY_LANGUAGE] = _restate(_fit(samples, ANY_LANGUAGE), scales[ANY_LANGUAGE], run, alpha=None)
    return fits


def _choose_alpha(embedded: EmbeddedSet, cosines: Vectors, index: IndexDefinition) -> float:
    """The weight of the vectors that is nearest to the index's among those that rank as well as the best."""
    asked = list(embedded.questions.searched.match(index))
    ranks = {
        alpha: float(
            np.mean(
                [
                    _reciprocal_rank(matched, cosines[number], alpha)
                    for number, matched in enumerate(asked)
                    if matched.answerable
                ]
            )
        )
        for alpha in ALPHAS
    }
    good = [alpha for alpha, mean in ranks.items() if mean >= max(ranks.values()) - AS_GOOD]
    return min(good, key=lambda alpha: abs(alpha - index.query.alpha))


def _reciprocal_rank(matched: Matched, cosines: Vectors, alpha: float) -> float:
    ranked = [number for number, _ in _fuse(matched, cosines, alpha)]
    return 1 / (1 + ranked.index(matched.question.target)) if matched.question.target in ranked else 0.0


def _fuse(matched: Matched, cosines: Vectors, alpha: float) -> list[tuple[int, tuple[float, float]]]:
    """(number of the passage, its cosine and coverage), best fused first."""
    found = Candidates(ids=matched.ids, cosines=cosines[matched.ids], bm25=matched.bm25, coverage=matched.coverage)
    fused = fuse(found, alpha=alpha, ceiling=matched.ceiling, calibration=None, limit=RERANKED)
    return [(number, (scores.dense or 0.0, scores.coverage or 0.0)) for number, scores in fused]


def _collect(embedded: EmbeddedSet, cosines: Vectors, index: IndexDefinition, *, alpha: float) -> list[Sample]:
    """Every question twice: once without the even articles, once without the odd ones."""
    return [
        Sample(
            set=embedded.questions.language,
            group=matched.question.article,
            answerable=matched.answerable,
            passages=np.array([signals for _, signals in _fuse(matched, cosines[number], alpha)]),
            log_odds=ABSENT_NAME if matched.absent else 0.0,
        )
        for without in (0, 1)
        for number, matched in enumerate(embedded.questions.searched.match(index, without=without))
    ]


def _fit(samples: Sequence[Sample], language: str) -> Fit:
    fit = fit_samples(samples)
    if fit.cosine < 0:  # a model that knows nothing of this language: words alone
        blind = [replace(sample, passages=sample.passages * np.array([0.0, 1.0])) for sample in samples]
        fit = replace(fit_samples(blind), cosine=0.0)
    fit = to_prior(fit, samples, prior=PRIOR)
    intercept, cosine, coverage = COPIED_WORDS[language]
    return Fit(intercept=fit.intercept + intercept, cosine=fit.cosine + cosine, coverage=fit.coverage + coverage)


def _restate(fit: Fit, scale: CosineScale, run: str, *, alpha: float | None) -> RelevanceFit:
    return scale.to_raw(as_relevance_fit(fit, run)).model_copy(update={"alpha": alpha})


def _unit(vectors: Vectors) -> Vectors:
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit: Vectors = vectors / np.where(norms > 0, norms, 1.0)
    return unit

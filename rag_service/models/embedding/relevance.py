"""What is known of an embedding model's cosines: their scale, and the relevance that they stand for.

Models differ in what a cosine means: unrelated texts have 0.1 with one model and 0.7 with another. A `CosineScale` maps
the cosines of any model onto those of the packaged one, to which fusion, the choice of sentences and the relevance of
the shipped indexes are fitted. `rag_service.fitting` measures both in the background.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeVar

import numpy as np
import numpy.typing as npt

from rag_service.indices import QueryDefinition, RelevanceFit
from rag_service.settings.models import PACKAGED_MODEL
from rag_service.store.relevance_fits import CosineScale, ModelFit

ANY_LANGUAGE = "*"  # of languages that nothing was measured for

State = Literal["packaged", "off", "unknown", "scaled", "fitted"]
_Value = TypeVar("_Value")
_Floats = npt.NDArray[np.float64]

# A similarity below it says nothing: it is far below that of unrelated texts, so the scale is not yet the model's.
SAYS_NOTHING = -2.0

UNSCALED = CosineScale()
DEFAULT_SCALE = CosineScale(offset=0.78, factor=0.2)  # until a model's is known: as if unrelated texts had about 0.1


class ModelRelevance:
    """What is known of the embedding model at present. One object for a process: whoever compares cosines asks it."""

    def __init__(self, model: str, *, watched: bool = True):
        """`watched`: whether anything is measured; else the scale of another model than the packaged one is a guess."""
        self.model = model
        self.watched = watched and model.casefold() != PACKAGED_MODEL
        self.known: ModelFit | None = None  # replaced as a whole, so that readers need no lock

    @property
    def state(self) -> State:
        if not self.watched:
            return "packaged" if self.model.casefold() == PACKAGED_MODEL else "off"
        if self.known is None or not self.known.scales:
            return "unknown"
        return "fitted" if self.known.fits else "scaled"

    def scale(self, language: str) -> CosineScale:
        """How the model's cosines compare with the packaged model's, for questions in a language (ISO 639-1)."""
        if self.model.casefold() == PACKAGED_MODEL:
            return UNSCALED
        return DEFAULT_SCALE if self.known is None else _of(self.known.scales, language) or DEFAULT_SCALE

    def fit_for(self, rules: QueryDefinition, language: str, *, between: bool = False) -> RelevanceFit | None:
        """The relevance of the model's own cosines, for questions in a language; None: nobody measured it.

        An index's calibration for this very model comes first, then what was measured in the background. Until that is
        there the index's calibration for another model is read on the scale of random pairs. `between`: for passages in
        another language than the question.
        """
        calibration = rules.calibration
        if between:
            fit = calibration and calibration.between_languages
        else:
            fit = calibration and calibration.languages.get(language, calibration)
        calibrated_for = calibration and calibration.model
        if fit is not None and calibrated_for in (None, self.model):
            return fit
        measured = None if between or self.known is None else _of(self.known.fits, language)
        return measured or (fit and self.scale(language).to_raw(fit))


UNCALIBRATED = RelevanceFit(intercept=-6.0, cosine=6.0, coverage=10.0, run="none: a guess between languages")

# Where no vector search ran or a chunk has no vector: coverage alone, whatever the embedding model would have been.
# Fitted on XQuAD's odd articles, both languages, for 70 % answerable; on the even ones it refuses 0.90 (en) and 0.88
# (es) of the unanswerable questions and 0.04 and 0.03 of the others.
BY_WORDS = RelevanceFit(intercept=-5.27, cosine=0.0, coverage=24.57, run="xquad-odd-articles, coverage alone")


def relevance(
    cosine: _Floats,
    coverage: _Floats,
    calibration: RelevanceFit | None,
    *,
    log_odds: float = 0.0,
) -> _Floats:
    """Calibrated probability that each passage answers the question, 0..1; arrays of the same length, or numbers."""
    fitted = calibration or UNCALIBRATED
    exponent = log_odds + fitted.intercept + fitted.cosine * cosine + fitted.coverage * coverage
    return np.asarray(1 / (1 + np.exp(-np.clip(exponent, -60.0, 60.0))))


def _of(values: Mapping[str, _Value], language: str) -> _Value | None:
    return values.get(language, values.get(ANY_LANGUAGE))

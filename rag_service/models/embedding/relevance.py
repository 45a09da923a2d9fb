"""What is known of an embedding model's cosines: their scale, and the relevance that they stand for.

Models differ in what a cosine means: unrelated texts have 0.1 with one model and 0.7 with another. A `CosineScale` maps
the cosines of any model onto those of the packaged one, to which fusion, the choice of sentences and the relevance of
the shipped indexes are fitted. `rag_service.fitting` measures both in the background; what it measured is stored, and
leased to the process that measures.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeVar

import msgspec
import numpy as np
import numpy.typing as npt

from rag_service.indices import QueryDefinition, RelevanceFit
from rag_service.settings.models import PACKAGED_MODEL
from rag_service.store.database import Connection

LEASE_SECONDS = 120  # a process that died is replaced after so long
SAME_MODEL = 0.999  # cosine from which on two vectors of one text are one model's


# The packaged model's cosines of unrelated texts are about 0.8 ± 0.02, and those of a question and its answer 0.85 to
# 0.95. MRR on the shipped sets is the same from 0.75 and 0.25 to 0.8 and 0.15, at an alpha of its own.
_UNRELATED, _SPAN = 0.8, 0.15
ANY_LANGUAGE = "*"  # of languages that nothing was measured for

State = Literal["packaged", "off", "unknown", "scaled", "fitted"]
_Value = TypeVar("_Value")
_Floats = npt.NDArray[np.float64]

# A similarity below it says nothing: it is far below that of unrelated texts, so the scale is not yet the model's.
SAYS_NOTHING = -2.0


@dataclass(frozen=True, kw_only=True)
class CosineScale:
    """offset + factor · cosine is on the scale of the packaged model."""

    offset: float = 0.0
    factor: float = 1.0

    def __call__(self, cosines: _Floats) -> _Floats:
        return self.offset + self.factor * cosines

    def similarity(self, cosines: _Floats) -> _Floats:
        """Cosines as numbers that compare with shares: about 0 for unrelated texts, 1 for nearly the same ones."""
        return (self.offset - _UNRELATED + self.factor * cosines) / _SPAN

    def to_raw(self, fit: RelevanceFit) -> RelevanceFit:
        """A fit for cosines on the packaged model's scale, restated for the model's own cosines."""
        return fit.model_copy(
            update={"intercept": fit.intercept + fit.cosine * self.offset, "cosine": fit.cosine * self.factor}
        )


UNSCALED = CosineScale()
DEFAULT_SCALE = CosineScale(offset=0.78, factor=0.2)  # until a model's is known: as if unrelated texts had about 0.1


@dataclass(frozen=True, kw_only=True)
class ModelFit:
    """What was measured of one embedding model, by language of the question."""

    model: str
    revision: bytes  # float32: what it makes of one text; another model of the same name makes something else
    scales: Mapping[str, CosineScale] = field(default_factory=dict)
    fits: Mapping[str, RelevanceFit] = field(default_factory=dict)  # for the model's own cosines

    def is_of(self, revision: bytes) -> bool:
        """Whether it was measured of the model that makes these vectors."""
        ours, theirs = np.frombuffer(self.revision, dtype="<f4"), np.frombuffer(revision, dtype="<f4")
        if len(ours) != len(theirs):
            return False
        norms = float(np.linalg.norm(ours) * np.linalg.norm(theirs))
        return norms > 0 and float(ours @ theirs) >= SAME_MODEL * norms


async def read_model_fit(connection: Connection, model: str) -> ModelFit | None:
    """What was measured of a model; None: nothing."""
    cursor = await connection.execute("SELECT revision, scales, fits FROM relevance_fits WHERE model = %s", [model])
    row = await cursor.fetchone()
    if row is None:
        return None
    revision, scales, fits = row
    return ModelFit(
        model=model,
        revision=bytes(revision),
        scales={language: CosineScale(**scale) for language, scale in scales.items()},
        fits={language: RelevanceFit(**fit) for language, fit in fits.items()},
    )


async def lease_model(connection: Connection, model: str, revision: bytes) -> bool:
    """Take the right to measure a model for `LEASE_SECONDS`; False: another process has it.

    What was measured of an earlier revision is deleted. For administrators.
    """
    cursor = await connection.execute(
        """INSERT INTO relevance_fits AS f (model, revision, leased_until)
           VALUES (%(model)s, %(revision)s, now() + make_interval(secs => %(seconds)s))
           ON CONFLICT (model) DO UPDATE
           SET revision = excluded.revision, leased_until = excluded.leased_until,
               scales = CASE WHEN f.revision = excluded.revision THEN f.scales ELSE '{}' END,
               fits = CASE WHEN f.revision = excluded.revision THEN f.fits ELSE '{}' END
           WHERE f.leased_until NOT BETWEEN now() AND now() + make_interval(secs => 2 * %(seconds)s) RETURNING 1""",
        {"model": model, "revision": revision, "seconds": LEASE_SECONDS},
    )
    return await cursor.fetchone() is not None


async def renew_lease(connection: Connection, model: str, *, seconds: float = LEASE_SECONDS) -> None:
    """Keep the right to measure a model; 0 seconds give it back."""
    await connection.execute(
        "UPDATE relevance_fits SET leased_until = now() + make_interval(secs => %s) WHERE model = %s", [seconds, model]
    )


async def store_model_fit(connection: Connection, fit: ModelFit) -> None:
    """Store what was measured by now. For administrators."""
    fits = {language: numbers.model_dump(mode="json") for language, numbers in fit.fits.items()}
    await connection.execute(
        "UPDATE relevance_fits SET scales = %s::jsonb, fits = %s::jsonb WHERE model = %s AND revision = %s",
        [msgspec.json.encode(fit.scales).decode(), msgspec.json.encode(fits).decode(), fit.model, fit.revision],
    )


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

"""What was measured of embedding models: stored, and leased to the process that measures.

`models/embedding/relevance.py` says what it means.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec
import numpy as np
import numpy.typing as npt

from rag_service.indices import RelevanceFit
from rag_service.store.database import Connection

LEASE_SECONDS = 120  # a process that died is replaced after so long
SAME_MODEL = 0.999  # cosine from which on two vectors of one text are one model's

_Floats = npt.NDArray[np.float64]


# The packaged model's cosines of unrelated texts are about 0.8 ± 0.02, and those of a question and its answer 0.85 to
# 0.95. MRR on the shipped sets is the same from 0.75 and 0.25 to 0.8 and 0.15, at an alpha of its own.
_UNRELATED, _SPAN = 0.8, 0.15


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

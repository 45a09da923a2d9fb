"""Vectors as statements carry them: half precision, binary."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import psycopg
from psycopg.adapt import AdaptersMap, Dumper
from psycopg.pq import Format


class HalfVector:
    """A vector as a bound parameter, to be cast in its statement: `%(vector)s::halfvec`.

    As text a vector of 384 numbers costs a quarter of a millisecond, half of it on the server.
    """

    def __init__(self, values: Sequence[float]):
        """
        Args:
            values: the numbers, within half precision (±65,504).
        """
        # What pgvector's halfvec_recv() reads: the dimension, 16 bits of nothing, the numbers; all big-endian.
        self.packed = (
            np.array([len(values), 0], ">i2").tobytes() + np.asarray(values, np.float32).astype(">f2").tobytes()
        )


class _HalfVectorDumper(Dumper):
    format = Format.BINARY
    oid = 0  # the extension's types have other numbers in every database; the cast names it

    def dump(self, obj: HalfVector) -> bytes:
        return obj.packed


def vector_adapters() -> AdaptersMap:
    """psycopg's adapters and that of `HalfVector`, for connections that search."""
    adapters = AdaptersMap(psycopg.adapters)
    adapters.register_dumper(HalfVector, _HalfVectorDumper)
    return adapters

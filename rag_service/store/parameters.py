"""How values travel to and from PostgreSQL where psycopg's own way takes a good part of a search's time."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import msgspec
import numpy as np
import numpy.typing as npt
import psycopg
from psycopg.adapt import AdaptersMap, Dumper
from psycopg.pq import Format
from psycopg.types.json import set_json_loads

_BIGINT, _BIGINT_ARRAY = 20, 1016  # PostgreSQL's numbers for these types, the same in every database
_ELEMENT = np.dtype([("size", ">i4"), ("value", ">i8")])


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


class BigIntegers:
    """Ids as a bound parameter, a bigint[].

    psycopg looks at each number of a list and calls it a smallint[] or an integer[] where they are small, and
    PostgreSQL then plans the same statement again for each of these types.
    """

    def __init__(self, values: Collection[int] | npt.NDArray[np.int64]):
        """
        Args:
            values: the numbers, within 64 bits.
        """
        elements = np.empty(len(values), _ELEMENT)
        elements["size"] = 8
        elements["value"] = np.fromiter(values, np.int64, len(values))
        # What array_recv() reads: one dimension (none when empty), no NULLs, the type, how many, counted from 1.
        head = [1, 0, _BIGINT, len(values), 1] if len(values) else [0, 0, _BIGINT]
        self.packed = np.array(head, ">i4").tobytes() + elements.tobytes()


class _HalfVectorDumper(Dumper):
    format = Format.BINARY
    oid = 0  # the extension's types have other numbers in every database; the cast names it

    def dump(self, obj: HalfVector) -> bytes:
        return obj.packed


class _BigIntegersDumper(Dumper):
    format = Format.BINARY
    oid = _BIGINT_ARRAY

    def dump(self, obj: BigIntegers) -> bytes:
        return obj.packed


def our_adapters() -> AdaptersMap:
    """psycopg's adapters with those above, and JSON read in a fifth of the time."""
    adapters = AdaptersMap(psycopg.adapters)
    adapters.register_dumper(HalfVector, _HalfVectorDumper)
    adapters.register_dumper(BigIntegers, _BigIntegersDumper)
    set_json_loads(msgspec.json.decode, context=adapters)
    return adapters

"""What a model made of texts just now: the next question over the same passages need not wait for it again."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from typing import Generic, TypeVar

_Value = TypeVar("_Value")


class Recent(Generic[_Value]):
    """The values of the texts that were used last. It keeps digests of the texts, not the texts."""

    def __init__(self, limit: int):
        """`limit`: number of values."""
        self._limit = limit
        self._values: OrderedDict[bytes, _Value] = OrderedDict()

    def get(self, text: str) -> _Value | None:
        """The value of a text, if it is kept."""
        key = _digest(text)
        value = self._values.get(key)
        if value is not None:
            self._values.move_to_end(key)
        return value

    def keep(self, text: str, value: _Value) -> None:
        """Keep a value in place of the one that was used least recently."""
        key = _digest(text)
        self._values[key] = value
        self._values.move_to_end(key)
        while len(self._values) > self._limit:
            self._values.popitem(last=False)


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()

"""How long one request waits for databases that do not respond: all its transactions together no longer than one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

# Seconds that the current request has waited for each database that failed it; None outside of requests.
waited: ContextVar[dict[object, float] | None] = ContextVar("waited", default=None)


@contextmanager
def one_patience() -> Iterator[None]:
    """Let all transactions of the block together wait no longer than one may."""
    token = waited.set({})
    try:
        yield
    finally:
        waited.reset(token)

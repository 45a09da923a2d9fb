"""Whether somebody waits for what an embedding model is asked.

LlamaIndex's calls have no room for a priority, so it travels with the task that makes them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_waiting: ContextVar[bool] = ContextVar("somebody_waits", default=False)


@contextmanager
def somebody_waits() -> Iterator[None]:
    """What is asked in here is asked for a person, and overtakes documents that are being ingested."""
    token = _waiting.set(True)
    try:
        yield
    finally:
        _waiting.reset(token)


def is_awaited() -> bool:
    """Whether a person waits for what the current task asks."""
    return _waiting.get()

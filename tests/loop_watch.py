"""Notes the callbacks of event loops that take long in processor time, for nobody else is served meanwhile.

Time of the thread, not of the clock: a busy machine changes little. Threads that share a core slow each other down, and
machines differ, so what is slow is compared with fixed work right after it. What modules take that are loaded in a
callback is left out, and so is what tests themselves do in the loop in place of another process (`apart`). Collections
of garbage are left out, too: how much there is depends on the tests before.
"""

from __future__ import annotations

import asyncio
import gc
import importlib._bootstrap
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

LIMIT = 0.1  # seconds of processor time
_REFERENCE = 0.005  # seconds that the fixed work takes on a core of its own, on the machine that the limit was set on


def slowness() -> float:
    """Return how many times as long as there this thread takes now; at least 1."""
    began = time.thread_time()
    for _ in range(4):
        sum(number * number for number in range(100_000))
    return max(1.0, (time.thread_time() - began) / 4 / _REFERENCE)


@dataclass(eq=False)
class LoopWatch:
    """The callbacks that took longer than `LIMIT`, with their seconds."""

    slow: list[tuple[float, str]] = field(default_factory=list)

    def worst(self) -> tuple[float, str]:
        return max(self.slow, default=(0.0, ""))


_local = threading.local()
_watches: list[LoopWatch] = []


@contextmanager
def apart() -> Iterator[None]:
    """Leave out what is done in here, which is done elsewhere in service."""
    if getattr(_local, "depth", 0):  # inside of another one, which counts it
        yield
        return
    _local.depth, began = 1, time.thread_time()
    try:
        yield
    finally:
        _local.depth = 0
        _local.apart = getattr(_local, "apart", 0.0) + time.thread_time() - began


def _note_collection(phase: str, _: object) -> None:
    if phase == "start":
        _local.collecting = apart()
        _local.collecting.__enter__()
    else:
        _local.collecting.__exit__(None, None, None)


@contextmanager
def watching() -> Iterator[LoopWatch]:
    """Watch the event loops of all threads that are asyncio's own."""
    watch = LoopWatch()
    _watches.append(watch)
    try:
        yield watch
    finally:
        _watches.remove(watch)


def install() -> None:
    """Measure from now on; with nobody watching it costs a microsecond a callback."""
    bootstrap: Any = importlib._bootstrap  # type: ignore[attr-defined]
    load, run = bootstrap._find_and_load, asyncio.Handle._run  # type: ignore[attr-defined]

    def load_apart(name: str, import_: Any) -> Any:
        with apart():
            return load(name, import_)

    def run_measured(self: asyncio.Handle) -> None:
        if not _watches:
            run(self)
            return
        _local.apart, began = 0.0, time.thread_time()
        try:
            run(self)
        finally:
            seconds = time.thread_time() - began - _local.apart
            if seconds > LIMIT and (seconds := seconds / slowness()) > LIMIT:
                whose = getattr(self._callback, "__self__", self)  # a task, for its steps
                for watch in _watches:
                    watch.slow.append((round(seconds, 3), repr(whose)[:500]))

    bootstrap._find_and_load = load_apart
    asyncio.Handle._run = run_measured  # type: ignore[attr-defined,method-assign]
    gc.callbacks.append(_note_collection)

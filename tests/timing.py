"""What work costs, measured so that a busy machine and other tests do not count."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager


def seconds_of(work: Callable[[], object]) -> float:
    """Of this thread's processor: neither what other tests left running counts nor a collection of their garbage."""
    gc.disable()
    try:
        began = time.thread_time()
        work()
        return time.thread_time() - began
    finally:
        gc.enable()


def takes_linear_time(whole: Callable[[], object], half: Callable[[], object], *, bound: float) -> bool:
    """Whether `whole` takes less than `bound` seconds, or less than three times as long as half of its input.

    What is linear takes twice as long, what is quadratic four times. Two measurements on a busy machine can lie apart
    by half, so each has three tries.
    """
    return any((spent := seconds_of(whole)) < bound or spent < 3 * seconds_of(half) for _ in range(3))


@asynccontextmanager
async def watched_turns() -> AsyncIterator[list[float]]:
    """Meanwhile, seconds of processor time that the loop's thread spends between one turn of this watch and the next.

    Not of the clock: on a busy machine other processes take longer than anything in a loop.
    """
    turns: list[float] = []

    async def watch() -> None:
        while True:
            began = time.thread_time()
            await asyncio.sleep(0.005)
            turns.append(time.thread_time() - began)

    watching = asyncio.create_task(watch())
    try:
        yield turns
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)

"""What work costs, measured so that a busy machine and other tests do not count."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from tests.loop_watch import slowness


def seconds_of(work: Callable[[], object]) -> float:
    """Return what work takes of this thread's processor, on the machine that limits were set on.

    Neither what other tests left running counts nor a collection of their garbage. Machines differ, and threads that
    share a core slow each other down: the time is compared with fixed work right after it.
    """
    gc.disable()
    try:
        began = time.thread_time()
        work()
        spent = time.thread_time() - began
        return spent / slowness()
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

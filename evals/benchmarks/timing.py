"""Medians, percentiles and rates."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

import numpy as np

Row = dict[str, str | int | float | None]  # column → value of one line of a result


@dataclass(frozen=True, kw_only=True)
class Times:
    """Milliseconds."""

    p50: float
    p95: float
    count: int


def summarise(milliseconds: Sequence[float]) -> Times:
    """Median and 95th percentile."""
    p50, p95 = np.percentile(milliseconds, [50, 95])
    return Times(p50=round(float(p50), 2), p95=round(float(p95), 2), count=len(milliseconds))


async def time_each(work: Callable[[str], Awaitable[object]], items: Sequence[str]) -> Times:
    """Times of `work`, one item after the other."""
    return summarise([await milliseconds_of(work(item)) for item in items])


async def milliseconds_of(work: Awaitable[object]) -> float:
    """How long it takes."""
    started = time.perf_counter()
    await work
    return (time.perf_counter() - started) * 1000


def machine() -> dict[str, str | int]:
    """What the figures depend on."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return {"cores": cores, "load": f"{os.getloadavg()[0]:.1f}", "python": platform.python_version()}

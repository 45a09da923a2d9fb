"""What the machine or container has that the service runs in."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

_MEMORY_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")  # of a container


def memory_bytes() -> int:
    """Bytes of memory that this machine or container has; 0 if unknown."""
    if not hasattr(os, "sysconf"):
        return 0
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for limit in _MEMORY_LIMITS:
        with suppress(OSError, ValueError):  # no such file, or "max"
            memory = min(memory, int(Path(limit).read_text()))
    return memory


def cores() -> int:
    """Cores that this process may use: in a container often fewer than the machine has, beside others fewer still."""
    if (limit := os.environ.get("OMP_NUM_THREADS", "")).isdecimal() and int(limit) > 0:
        return int(limit)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1

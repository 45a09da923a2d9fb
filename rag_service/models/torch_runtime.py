"""torch, set up for a machine that it shares with a database and an event loop."""

from __future__ import annotations

import os
from typing import Any


def import_torch() -> Any:
    """Import torch and give it a thread per core. Blocks for seconds at the first call.

    Call it in the thread that will do the work: the number of threads belongs to the thread.

    OpenMP threads spin while they wait for each other. Where other processes want the cores, that
    costs most of the speed: on two busy cores MiniLM embedded 7 passages a second and a question in
    490 ms; with waiting threads that sleep, 25 passages and 15 ms. The policy is read when torch is
    loaded; one that is set already is left alone.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    import torch

    torch.set_num_threads(_cores())
    return torch


def _cores() -> int:
    """Cores that this process may use: in a container often fewer than the machine has, beside others fewer still."""
    if (told := os.environ.get("OMP_NUM_THREADS", "")).isdecimal() and int(told) > 0:
        return int(told)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1

"""The thread in front of a local model."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from rag_service.models.local_runtime import ModelThreads


@pytest.fixture
def thread() -> Iterator[ModelThreads]:
    worker = ModelThreads("test")
    yield worker
    worker.stop()


async def test_urgent_jobs_overtake_and_others_keep_their_order(thread: ModelThreads) -> None:
    gate = threading.Event()
    order: list[str] = []
    jobs: list[Any] = [thread.submit(gate.wait)]
    jobs += [thread.submit(partial(order.append, name)) for name in ("a", "b", "c")]
    jobs += [thread.submit(partial(order.append, "urgent"), urgent=True)]
    gate.set()
    await asyncio.gather(*map(asyncio.wrap_future, jobs))
    assert order == ["urgent", "a", "b", "c"]


async def test_a_cancelled_job_is_left_out(thread: ModelThreads) -> None:
    gate, done = threading.Event(), []
    first = thread.submit(gate.wait)
    left = asyncio.create_task(thread.run(lambda: done.append("left")))
    await asyncio.sleep(0)
    left.cancel()
    await asyncio.sleep(0)
    gate.set()
    await asyncio.wrap_future(first)
    await thread.run(lambda: done.append("stayed"))
    assert done == ["stayed"]


async def test_a_failing_job_tells_its_caller_and_the_next_one_works(thread: ModelThreads) -> None:
    def fail() -> None:
        raise ValueError("failed")

    with pytest.raises(ValueError, match="failed"):
        await thread.run(fail)
    assert await thread.run(lambda: 1) == 1


async def test_all_jobs_run_in_one_thread_that_starts_again_after_a_stop(thread: ModelThreads) -> None:
    idents = {await thread.run(threading.get_ident) for _ in range(5)}
    assert len(idents) == 1
    assert threading.get_ident() not in idents
    thread.stop()
    assert await thread.run(lambda: "again") == "again"


async def test_as_many_jobs_run_at_once_as_there_are_threads() -> None:
    worker = ModelThreads("test", count=3)
    together = threading.Barrier(3)
    try:
        places = await asyncio.gather(*(worker.run(partial(together.wait, timeout=60)) for _ in range(6)))
    finally:
        worker.stop()
    assert sorted(places) == [0, 0, 1, 1, 2, 2]


def test_the_end_of_the_process_waits_for_the_running_job_and_not_for_the_queue() -> None:
    code = """
        import threading, time
        from rag_service.models.local_runtime import ModelThreads
        thread, begun = ModelThreads("test"), threading.Event()
        thread.submit(lambda: (begun.set(), time.sleep(0.3), print("running job done", flush=True)))
        for _ in range(100):
            thread.submit(lambda: time.sleep(1000))
        begun.wait()
    """
    ended = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], check=True, capture_output=True, text=True, timeout=300
    )
    assert ended.stdout == "running job done\n"


def test_a_process_that_ends_waits_for_the_running_job_of_a_stopped_thread() -> None:
    """torch aborts a process whose end kills it at work: the service stopped while a document was embedded."""
    program = """
import threading, time
from rag_service.models.local_runtime import ModelThreads
thread, begun = ModelThreads("test"), threading.Event()
thread.submit(lambda: (begun.set(), time.sleep(0.5), print("done", flush=True)))
thread.submit(lambda: print("left in the queue"))
begun.wait()
thread.stop()
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ended.stdout == "done\n"

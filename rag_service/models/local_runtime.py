"""Models that run in this process: threads with a queue that has a fast lane, and torch, set up for shared cores."""

from __future__ import annotations

import asyncio
import atexit
import contextvars
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any, TypeVar

from rag_service.machine import cores
from rag_service.turns import FairQueue, run_job, whose


def import_torch() -> Any:
    """Import torch and let it use a thread per core. Blocks for seconds at the first call.

    Call it in the thread that will do the work: the number belongs to the thread.

    OpenMP threads spin while they wait for each other. Where other processes want the cores, that
    costs most of the speed: on two busy cores MiniLM embedded 7 passages a second and a question in
    490 ms; with waiting threads that sleep, 25 passages and 15 ms. The policy is read when torch is
    loaded; one that is set already is left alone.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    import torch

    torch.set_num_threads(cores())
    return torch


T = TypeVar("T")

# Whether a person waits for what the task asks. LlamaIndex's calls take no priority, so it travels with the task.
user_waits: ContextVar[bool] = ContextVar("user_waits", default=False)


@contextmanager
def somebody_waits() -> Iterator[None]:
    """What is asked in here is asked for a person, and overtakes documents that are being ingested."""
    token = user_waits.set(True)
    try:
        yield
    finally:
        user_waits.reset(token)


_URGENT, _NORMAL = range(2)  # lanes

_MEMORY = 3.0  # seconds for which it counts what a user has had of the threads

# Seconds that the end of the process waits for each job that is running.
_LAST_JOB = 10


class ModelThreads:
    """Runs jobs, urgent ones first, otherwise those of whoever has had least lately. The first job starts the threads.

    An executor would serve a question after a whole folder of documents: its queue is first come, first served.
    """

    def __init__(self, name: str, *, count: int = 1):
        """`name` appears in stack traces; `count` threads run that many jobs at once."""
        self._name = name
        self.count = count  # jobs that run at once
        self.kind, self.refused = name.partition("-")[0], 0
        self._jobs = FairQueue[tuple[Future[Any], Callable[[], Any]]](
            limit=count, share=(count + 1) // 2, memory=_MEMORY
        )
        self._threads: list[threading.Thread] = []
        self._changed = threading.Condition()
        self._stopping: set[threading.Thread] = set()  # they end when nothing waits

    @property
    def running(self) -> int:
        return self._jobs.running

    @property
    def waiting(self) -> int:
        return self._jobs.waiting

    def submit(self, job: Callable[[], T], *, urgent: bool = False) -> Future[T]:
        """Queue a job, which runs in the caller's context. Cancelling the future takes it out unless it has begun."""
        future: Future[T] = Future()
        with self._changed:
            in_context = partial(contextvars.copy_context().run, job)
            self._jobs.push((future, in_context), whose.get(), lane=_URGENT if urgent else _NORMAL)
            self._changed.notify()
            if not self._threads:
                # Daemons, so that a process that ends does not wait for a folder to be embedded.
                self._threads = [
                    threading.Thread(target=self._work, name=f"{self._name}-{number}", daemon=True)
                    for number in range(self.count)
                ]
                atexit.register(self._finish, self._threads)
                for thread in self._threads:
                    thread.start()
        return future

    async def run(self, job: Callable[[], T], *, urgent: bool = False) -> T:
        """Queue a job and wait for its result; raises what the job raises."""
        return await asyncio.wrap_future(self.submit(job, urgent=urgent))

    def stop(self) -> None:
        """End the threads after the jobs that are queued now. The next job starts new ones."""
        with self._changed:
            self._stopping.update(self._threads)
            self._threads = []
            self._changed.notify_all()

    def _finish(self, threads: Sequence[threading.Thread]) -> None:
        """At the end of the process: leave the queue, wait for the running jobs, stopped or not.

        torch aborts the process when its thread is killed at work.
        """
        with self._changed:
            for _ in self._jobs.drain():
                pass
            self._stopping.update(threads)
            self._changed.notify_all()
        for thread in threads:
            thread.join(_LAST_JOB)

    def _work(self) -> None:
        this = threading.current_thread()
        while True:
            with self._changed:
                while (place := self._jobs.pop()) is None:
                    if this in self._stopping:
                        self._stopping.discard(this)
                        return
                    self._changed.wait()
            began = time.monotonic()
            run_job(*place.item)
            with self._changed:
                self._jobs.end(place.owner, seconds=time.monotonic() - began)
                self._changed.notify()
            del place  # its result may be large

"""Models that run in this process: threads with a queue that has a fast lane, and torch, set up for shared cores."""

from __future__ import annotations

import asyncio
import atexit
import contextvars
import itertools
import os
import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any, TypeVar


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


def cores() -> int:
    """Cores that this process may use: in a container often fewer than the machine has, beside others fewer still."""
    if (limit := os.environ.get("OMP_NUM_THREADS", "")).isdecimal() and int(limit) > 0:
        return int(limit)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


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


_STOP_NOW, _URGENT, _NORMAL, _STOP = range(4)

# Seconds that the end of the process waits for each job that is running.
_LAST_JOB = 10


class ModelThreads:
    """Runs jobs, urgent ones first, otherwise in order; each thread one at a time. They start with the first job.

    An executor would serve a question after a whole folder of documents: its queue is first come, first served.
    """

    def __init__(self, name: str, *, count: int = 1):
        """`name` appears in stack traces; `count` threads run that many jobs at once."""
        self._name = name
        self.count = count  # jobs that run at once
        self._jobs: queue.PriorityQueue[tuple[int, int, Future[Any], Callable[[], Any]]] = queue.PriorityQueue()
        self._order = itertools.count()  # keeps equal priorities in order and tuples comparable
        self._threads: list[threading.Thread] = []
        self._starting = threading.Lock()

    def submit(self, job: Callable[[], T], *, urgent: bool = False) -> Future[T]:
        """Queue a job, which runs in the caller's context. Cancelling the future takes it out unless it has begun."""
        future: Future[T] = Future()
        with self._starting:
            in_context = partial(contextvars.copy_context().run, job)
            self._jobs.put((_URGENT if urgent else _NORMAL, next(self._order), future, in_context))
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
        with self._starting:
            for _ in self._threads:
                self._jobs.put((_STOP, next(self._order), Future(), _nothing))
            self._threads = []

    def _finish(self, threads: Sequence[threading.Thread]) -> None:
        """At the end of the process: leave the queue, wait for the running jobs, stopped or not.

        torch aborts the process when its thread is killed at work.
        """
        for _ in threads:
            self._jobs.put((_STOP_NOW, next(self._order), Future(), _nothing))
        for thread in threads:
            thread.join(_LAST_JOB)

    def _work(self) -> None:
        while True:
            priority, _, future, job = self._jobs.get()
            if priority in (_STOP, _STOP_NOW):
                return
            if not future.set_running_or_notify_cancel():
                continue
            try:
                future.set_result(job())
            except BaseException as error:  # noqa: BLE001  # handed to the waiting caller
                future.set_exception(error)


def _nothing() -> None:
    """The job of a message that ends a thread."""

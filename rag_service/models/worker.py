"""Threads that own a local model, and a queue in front of them with a fast lane.

Threads of its own keep the event loop free. An executor would not do: its queue is first come, first
served, and a person's question would wait behind a whole folder of documents.
"""

from __future__ import annotations

import asyncio
import atexit
import itertools
import queue
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")

_STOP_NOW, _URGENT, _NORMAL, _STOP = range(4)

# Seconds that the end of the process waits for each job that is running.
_LAST_JOB = 10


class ModelThreads:
    """Runs jobs, urgent ones first, otherwise in order; each thread one at a time. They start with the first job."""

    def __init__(self, name: str, *, count: int = 1):
        """
        Args:
            name: of the model, for stack traces.
            count: threads. One makes locks unnecessary; more run that many jobs at once.
        """
        self._name = name
        self._count = count
        self._jobs: queue.PriorityQueue[tuple[int, int, Future[Any], Callable[[], Any]]] = queue.PriorityQueue()
        self._order = itertools.count()  # keeps equal priorities in order and tuples comparable
        self._threads: list[threading.Thread] = []
        self._starting = threading.Lock()

    @property
    def count(self) -> int:
        """Jobs that run at once."""
        return self._count

    def submit(self, job: Callable[[], T], *, urgent: bool = False) -> Future[T]:
        """Queue a job. Cancelling the future takes it out unless it has begun."""
        future: Future[T] = Future()
        self._put(_URGENT if urgent else _NORMAL, future, job)
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

    def _put(self, priority: int, future: Future[T], job: Callable[[], T]) -> None:
        with self._starting:
            self._jobs.put((priority, next(self._order), future, job))
            if not self._threads:
                # Daemons, so that a process told to end does not wait for a folder to be embedded.
                self._threads = [
                    threading.Thread(target=self._work, name=f"{self._name}-{number}", daemon=True)
                    for number in range(self._count)
                ]
                atexit.register(self._finish, self._threads)
                for thread in self._threads:
                    thread.start()

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

"""One thread that owns a local model, and a queue in front of it with a fast lane.

A thread of its own keeps the event loop free and makes locks unnecessary. An executor would not do:
its queue is first come, first served, and a person's question would wait behind a whole folder of
documents.
"""

from __future__ import annotations

import asyncio
import atexit
import itertools
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")

_STOP_NOW, _URGENT, _NORMAL, _STOP = range(4)

# Seconds that the end of the process waits for the job that is running.
_LAST_JOB = 10


class ModelThread:
    """Runs jobs one at a time, urgent ones first, otherwise in order. Starts with its first job."""

    def __init__(self, name: str):
        self._name = name
        self._jobs: queue.PriorityQueue[tuple[int, int, Future[Any], Callable[[], Any]]] = queue.PriorityQueue()
        self._order = itertools.count()  # keeps equal priorities in order and tuples comparable
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()

    def submit(self, job: Callable[[], T], *, urgent: bool = False) -> Future[T]:
        """Queue a job. Cancelling the future takes it out unless it has begun."""
        future: Future[T] = Future()
        self._put(_URGENT if urgent else _NORMAL, future, job)
        return future

    async def run(self, job: Callable[[], T], *, urgent: bool = False) -> T:
        """Queue a job and wait for its result; raises what the job raises."""
        return await asyncio.wrap_future(self.submit(job, urgent=urgent))

    def stop(self) -> None:
        """End the thread after the jobs that are queued now. The next job starts a new one."""
        with self._starting:
            if self._thread is not None:
                self._jobs.put((_STOP, next(self._order), Future(), lambda: None))
                self._thread = None

    def _finish(self, thread: threading.Thread) -> None:
        """At the end of the process: leave the queue, wait for the running job, stopped or not.

        torch aborts the process when its thread is killed at work.
        """
        self._jobs.put((_STOP_NOW, next(self._order), Future(), lambda: None))
        thread.join(_LAST_JOB)

    def _put(self, priority: int, future: Future[T], job: Callable[[], T]) -> None:
        with self._starting:
            self._jobs.put((priority, next(self._order), future, job))
            if self._thread is None:
                # A daemon, so that a process told to end does not wait for a folder to be embedded.
                self._thread = threading.Thread(target=self._work, name=self._name, daemon=True)
                atexit.register(self._finish, self._thread)
                self._thread.start()

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

"""The event loop of an open service, on a thread of its own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

from rag_service.tasks import end_tasks

T = TypeVar("T")


class BackgroundLoop:
    """An event loop in its own thread: plain calls work in any thread, and inside a notebook's running loop."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="rag-service", daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run to the end and return the result; an interrupt cancels it. RuntimeError if the loop is closed."""
        future = self._submit(work)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    async def arun(self, work: Coroutine[Any, Any, T]) -> T:
        """The same for async callers, whose own loop is not blocked."""
        return await asyncio.wrap_future(self._submit(work))

    def _submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        if self._loop.is_closed():
            work.close()
            raise RuntimeError("The service is closed; call open_service() again.")
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    @property
    def is_closed(self) -> bool:
        return self._loop.is_closed()

    def close(self) -> None:
        """Stop the loop and its thread. May be called again."""
        if self._loop.is_closed():
            return
        self.run(self._end_tasks())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _end_tasks(self) -> None:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        await end_tasks(*others)
        await self._loop.shutdown_asyncgens()
        await self._loop.shutdown_default_executor()

"""Searches take turns at the database, so that a rush makes them late and not wrong.

The pool gives a waiting request up after RAG_DATABASE_TIMEOUT, as it must when the database is gone. With
hundreds of questions at once that would end most of them in an error, though all it takes is time. So they
queue here, in front of the pool, and leave half of its connections to everything else.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from rag_service.errors import StoreError


class Turns:
    """At most `limit` at a time, first come, first served; how many wait is decided by who lets them in."""

    def __init__(self, *, limit: int, patience: float):
        """
        Args:
            limit: searches at a time, 1 or more.
            patience: seconds after which nobody waits on for a database that has answered nobody in that time.
        """
        self._semaphore = asyncio.Semaphore(limit)
        self._patience = patience
        self._answered = float("-inf")  # when a turn last ended well

    @asynccontextmanager
    async def take(self) -> AsyncIterator[None]:
        """Have a turn for the length of the block.

        Raises:
            StoreError: the database answers nobody.
        """
        await self._wait()
        try:
            yield
            self._answered = time.monotonic()
        finally:
            self._semaphore.release()

    async def _wait(self) -> None:
        if not self._semaphore.locked():  # nobody waits: no task needs to be made
            await self._semaphore.acquire()
            return
        place = asyncio.ensure_future(self._semaphore.acquire())
        try:
            while not (await asyncio.wait({place}, timeout=self._patience))[0]:
                if time.monotonic() - self._answered >= self._patience:
                    raise StoreError("The database cannot be reached.", retry_after=5)
        except BaseException:
            if not place.cancel():  # it was its turn at this very moment
                self._semaphore.release()
            raise

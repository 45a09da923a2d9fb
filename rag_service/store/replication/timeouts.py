"""Waits for a database server that may hang: psycopg itself waits for a frozen server even when cancelled."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from rag_service.errors import StoreError
from rag_service.tasks import end_tasks

T = TypeVar("T")

# psycopg answers the first cancellation by asking the server to cancel, and waits for that for ever when the
# server stands still; the second one gets through (https://github.com/psycopg/psycopg/issues/1371).
CANCEL_AGAIN = 1.0  # seconds

_abandoned: set[asyncio.Task[None]] = set()


async def await_server(work: Coroutine[Any, Any, T], *, limit: float, waited: Callable[[], float] | None = None) -> T:
    """The result of work on a server.

    `work` is ended if it is given up or the caller is cancelled. `limit` is in seconds; `waited` gives the seconds
    waited so far, None counts from the start. Raises StoreError if the wait exceeds the limit.
    """
    started = time.monotonic()
    task = asyncio.ensure_future(work)
    try:
        while not (await asyncio.wait({task}, timeout=limit / 4))[0]:
            if (time.monotonic() - started if waited is None else waited()) > limit:
                raise StoreError("The database does not respond.", retry_after=5)
        return task.result()
    finally:
        if not task.done():
            ending = asyncio.create_task(end_tasks(task, patience=CANCEL_AGAIN))
            _abandoned.add(ending)
            ending.add_done_callback(_abandoned.discard)

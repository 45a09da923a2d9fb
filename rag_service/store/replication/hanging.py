"""Awaiting a server that may stand still, without standing still oneself.

A server that refuses or drops a connection says so; one that is frozen, or behind a network that swallows
packets, says nothing, and psycopg waits with it even when cancelled.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, TypeVar

from rag_service.errors import StoreError

T = TypeVar("T")

_abandoned: set[asyncio.Task[None]] = set()


async def await_server(work: Coroutine[Any, Any, T], *, limit: float, waited: Callable[[], float] | None = None) -> T:
    """The result of work on a server.

    Args:
        work: is ended when it is given up, or the caller is cancelled.
        limit: seconds.
        waited: seconds that the server lets the work wait by now; None: counted from the start.

    Raises:
        StoreError: the wait exceeds the limit.
    """
    started = time.monotonic()
    task = asyncio.ensure_future(work)
    try:
        while not (await asyncio.wait({task}, timeout=limit / 4))[0]:
            if (time.monotonic() - started if waited is None else waited()) > limit:
                raise StoreError("The database does not answer.", retry_after=5)
        return task.result()
    finally:
        if not task.done():
            ending = asyncio.create_task(put_down(task))
            _abandoned.add(ending)
            ending.add_done_callback(_abandoned.discard)


async def put_down(task: asyncio.Future[Any]) -> None:
    """Cancel a task until it is done."""
    # psycopg answers the first cancellation by asking the server to cancel, and waits for that for ever when the
    # server stands still; the second one gets through (https://github.com/psycopg/psycopg/issues/1371).
    while not task.done():
        task.cancel()
        await asyncio.wait({task}, timeout=1.0)
    with suppress(asyncio.CancelledError):
        task.exception()  # nobody else will look

"""Ends tasks that run beside others, also those that lose a cancellation.

In Python 3.11 `asyncio.wait_for`, by which psycopg waits for a connection, loses a cancellation that comes at the same
moment as what it waits for. A task that runs for ever then never ends, and neither does an `asyncio.TaskGroup` with
such a task in it: it cancels once, however often it is cancelled itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

PATIENCE = 10.0  # seconds for a task that was cancelled: its clean-up must not be interrupted without need


async def end_tasks(*tasks: asyncio.Future[Any], patience: float = PATIENCE) -> None:
    """Cancel tasks, again after `patience` seconds, until they have ended; what they raise is of no interest any more.

    A cancellation of the caller takes effect when they have.
    """
    left, cancelled = {task for task in tasks if not task.done()}, None
    loop = asyncio.get_running_loop()
    while left:
        for task in left:
            task.cancel()
        until = loop.time() + patience
        while left and (seconds := until - loop.time()) > 0:
            try:
                _, left = await asyncio.wait(left, timeout=seconds)
            except asyncio.CancelledError as error:
                cancelled = error
    for task in tasks:
        if not task.cancelled():
            task.exception()  # has been seen
    if cancelled is not None:
        raise cancelled


async def run_together(*work: Coroutine[Any, Any, None]) -> None:
    """Run until all have ended, or one fails, or the caller is cancelled, which ends the others.

    Raises what the first that failed raises.
    """
    tasks = [asyncio.create_task(one) for one in work]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
    finally:
        await end_tasks(*tasks)
    for task in done:
        task.result()

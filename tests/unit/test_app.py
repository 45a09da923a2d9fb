"""The end of what runs beside the application."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from rag_service.app import end_tasks


async def test_a_task_that_loses_a_cancellation_ends_all_the_same() -> None:
    async def run() -> None:
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(60)
        await asyncio.sleep(60)

    async def fail() -> None:
        raise RuntimeError

    tasks = [asyncio.create_task(run()), asyncio.create_task(fail())]
    await asyncio.sleep(0)
    async with asyncio.timeout(5):
        await end_tasks(tasks, patience=0.01)
    assert all(task.done() for task in tasks)

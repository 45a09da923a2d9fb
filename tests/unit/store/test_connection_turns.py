"""Turns at connections: late is not wrong, and a database that is gone keeps nobody for long."""

from __future__ import annotations

import asyncio
import time

import pytest

from rag_service.errors import SearchTimeoutError, StoreError
from rag_service.store.database import ConnectionTurns


async def test_so_many_at_a_time_and_all_get_there() -> None:
    turns = ConnectionTurns(limit=3, patience=2.0)  # waiting for longer is no error while the database answers
    inside = most = done = 0

    async def search() -> None:
        nonlocal inside, most, done
        async with turns.take():
            turns.answered = time.monotonic()  # as a transaction that begins
            inside += 1
            most = max(most, inside)
            await asyncio.sleep(0.25)
            inside -= 1
            done += 1

    await asyncio.gather(*(search() for _ in range(30)))
    assert (most, done) == (3, 30)


async def test_when_the_database_is_gone_nobody_waits_for_the_failures_of_all_others() -> None:
    turns = ConnectionTurns(limit=2, patience=0.1)

    async def fail() -> float:
        began = time.monotonic()
        with pytest.raises(StoreError):
            async with turns.take():
                await asyncio.sleep(0.1)  # as the pool does
                raise StoreError("gone")
        return time.monotonic() - began

    waited = await asyncio.gather(*(fail() for _ in range(400)))
    assert max(waited) < 10  # one after the other it would be twenty seconds


async def test_searches_that_the_database_stops_make_nobody_else_fail() -> None:
    turns = ConnectionTurns(limit=1, patience=1.6)
    ended: list[str] = []

    async def search(number: int) -> None:
        try:
            async with turns.take():
                turns.answered = time.monotonic()
                await asyncio.sleep(0.6)
                raise SearchTimeoutError("stopped")
        except (SearchTimeoutError, StoreError) as error:
            ended.append(error.code)

    await asyncio.gather(*(search(number) for number in range(4)))
    assert ended == ["search_timeout"] * 4


async def test_when_the_database_stands_still_nobody_waits_for_ever() -> None:
    turns = ConnectionTurns(limit=1, patience=0.1)
    async with turns.take():
        with pytest.raises(StoreError):
            async with asyncio.timeout(60), turns.take():
                pass


async def test_it_is_tried_again_and_works_again() -> None:
    turns = ConnectionTurns(limit=1, patience=10)
    with pytest.raises(StoreError):
        async with turns.take():
            raise StoreError("gone")
    async with turns.take():
        pass


async def test_who_gives_up_waiting_leaves_its_place() -> None:
    turns = ConnectionTurns(limit=1, patience=10)
    async with turns.take():
        waiting = asyncio.create_task(turns.take().__aenter__())
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        assert waiting.cancelled()
    async with asyncio.timeout(60), turns.take():
        pass

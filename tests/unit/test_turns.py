"""Turns between users: nobody waits for more than what runs, whatever others send."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from typing import Any
from uuid import uuid4

import pytest

from rag_service.errors import RateLimitedError
from rag_service.turns import FairQueue, FairThreads, Turns, use_fair_threads, whose

ANA, BRUNO, CARLA = "ana", "bruno", "carla"


async def settled() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


class Line:
    """Work that notes its order and goes on when it is told to."""

    def __init__(self, turns: Turns):
        self.turns = turns
        self.order: list[str] = []
        self.go = asyncio.Semaphore(0)
        self.tasks: list[asyncio.Task[None]] = []

    async def add(self, owner: str, count: int = 1) -> None:
        self.tasks += [asyncio.create_task(self._work(owner)) for _ in range(count)]
        await settled()

    async def end(self) -> None:
        for _ in self.tasks:
            self.go.release()
        await asyncio.gather(*self.tasks, return_exceptions=True)

    async def _work(self, owner: str) -> None:
        async with self.turns.take(owner):
            self.order.append(owner)
            await self.go.acquire()


async def test_whoever_has_the_fewest_running_goes_first() -> None:
    line = Line(Turns("test", limit=1, queue=100))
    await line.add(ANA, 10)
    await line.add(BRUNO, 2)
    await line.end()
    assert line.order[:5] == [ANA, BRUNO, ANA, BRUNO, ANA]


async def test_one_user_runs_half_and_the_next_one_finds_a_place() -> None:
    line = Line(Turns("test", limit=4, queue=100))
    await line.add(ANA, 10)
    assert line.order == [ANA, ANA]
    await line.add(BRUNO)
    assert line.order == [ANA, ANA, BRUNO]
    await line.end()


async def test_without_several_users_one_has_all() -> None:
    line = Line(Turns("test", limit=4, queue=100, shared=False))
    await line.add(ANA, 10)
    assert line.order == [ANA] * 4
    await line.end()


async def test_newcomers_do_not_starve_a_user_who_waits() -> None:
    line = Line(Turns("test", limit=1, queue=100))
    await line.add(ANA, 2)
    for number in range(20):
        await line.add(f"newcomer {number}")
        line.go.release()
        await settled()
    assert line.order.index(ANA, 1) <= 2
    await line.end()


async def test_who_has_too_many_is_refused_and_others_are_not() -> None:
    turns = Turns("test", limit=2, queue=8)
    line = Line(turns)
    await line.add(ANA, 20)
    refused = [task.exception() for task in line.tasks if task.done()]
    assert len(refused) == 15
    assert all(isinstance(error, RateLimitedError) and error.retry_after for error in refused)
    await line.add(BRUNO, 3)
    assert not any(task.done() for task in line.tasks[20:])
    assert (turns.running, turns.waiting, turns.refused) == (2, 6, 15)
    await line.end()


async def test_who_has_too_many_is_refused_before_the_body_is_read() -> None:
    turns = Turns("test", limit=2, queue=6)
    line = Line(turns)
    await line.add(ANA, 4)
    turns.require_room(BRUNO)
    with pytest.raises(RateLimitedError):
        turns.require_room(ANA)
    assert turns.refused == 1
    await line.end()
    turns.require_room(ANA)


async def test_a_full_queue_drops_the_newest_of_the_longest_line() -> None:
    line = Line(Turns("test", limit=2, queue=6))
    await line.add(ANA, 4)
    await line.add(BRUNO, 4)
    assert not any(task.done() for task in line.tasks)
    await line.add(CARLA)
    dropped = [number for number, task in enumerate(line.tasks) if task.done()]
    assert len(dropped) == 1
    assert dropped[0] < 8
    assert isinstance(line.tasks[dropped[0]].exception(), RateLimitedError)
    await line.end()
    assert CARLA in line.order


async def test_a_thousand_users_with_a_request_each_are_served_in_their_order() -> None:
    line = Line(Turns("test", limit=4, queue=1_000))
    began = time.process_time()
    await line.add("user 0")
    for number in range(1, 1_000):
        line.tasks.append(asyncio.create_task(line._work(f"user {number}")))
    await settled()
    await line.end()
    assert line.order == [f"user {number}" for number in range(1_000)]
    assert time.process_time() - began < 5


async def test_a_user_with_a_thousand_keys_is_one_user() -> None:
    """Queues know users, not keys: the identity of each key names its user."""
    user, line = uuid4(), Line(Turns("test", limit=2, queue=10))
    for _ in range(1_000):
        line.tasks.append(asyncio.create_task(line._work(str(user))))
    await settled()
    assert sum(task.done() for task in line.tasks) == 1_000 - 6
    await line.add(BRUNO)
    assert line.order == [str(user), BRUNO]
    await line.end()


async def test_a_client_that_leaves_while_it_waits_leaves_its_place() -> None:
    turns = Turns("test", limit=1, queue=10)
    line = Line(turns)
    await line.add(ANA)
    await line.add(BRUNO)
    await line.add(CARLA)
    line.tasks[1].cancel()
    await settled()
    assert turns.waiting == 1
    await line.end()
    assert line.order == [ANA, CARLA]
    assert turns.is_idle


async def test_a_client_that_leaves_at_the_moment_of_its_turn_gives_it_back() -> None:
    turns = Turns("test", limit=1, queue=10)
    line = Line(turns)
    await line.add(ANA)
    await line.add(BRUNO)
    line.go.release()
    await asyncio.sleep(0)
    line.tasks[1].cancel()
    await settled()
    await line.add(CARLA)
    await line.end()
    assert CARLA in line.order
    assert turns.is_idle


async def test_when_the_service_stops_nothing_is_left() -> None:
    turns = Turns("test", limit=2, queue=100)
    line = Line(turns)
    await line.add(ANA, 5)
    await line.add(BRUNO, 5)
    for task in line.tasks:
        task.cancel()
    await asyncio.gather(*line.tasks, return_exceptions=True)
    assert turns.is_idle


async def test_a_clock_that_is_set_back_changes_no_order(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(1_000_000, 0, -1_000))
    monkeypatch.setattr(time, "time", lambda: next(clock))
    line = Line(Turns("test", limit=1, queue=10))
    for owner in (ANA, BRUNO, CARLA):
        await line.add(owner)
    await line.end()
    assert line.order == [ANA, BRUNO, CARLA]


async def test_long_work_gives_way_to_whoever_has_fewer_running() -> None:
    turns = Turns("test", limit=1, share=1)
    order: list[str] = []

    async def long() -> None:
        async with turns.take(ANA):
            for piece in range(3):
                order.append(f"piece {piece}")
                await asyncio.sleep(0)
                await turns.give_way(ANA)

    async def short() -> None:
        async with turns.take(BRUNO):
            order.append("short")

    await asyncio.gather(long(), short())
    assert order == ["piece 0", "short", "piece 1", "piece 2"]
    assert turns.is_idle


async def test_long_work_that_is_cancelled_while_it_gives_way_leaves_nothing() -> None:
    turns = Turns("test", limit=1)
    line = Line(turns)

    async def long() -> None:
        async with turns.take(ANA):
            await settled()
            await turns.give_way(ANA)

    task = asyncio.create_task(long())
    await asyncio.sleep(0)
    await line.add(BRUNO)
    await settled()
    assert line.order == [BRUNO]
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    await line.end()
    assert turns.is_idle


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time that `time.monotonic` tells, to be changed."""
    time_told = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: time_told[0])
    return time_told


def test_who_is_alone_has_every_place_until_somebody_comes_who_has_had_less(now: list[float]) -> None:
    queue = FairQueue[int](limit=4, share=2, memory=3.0)
    assert [queue.start(ANA) for _ in range(5)] == [True] * 4 + [False]
    for _ in range(4):
        queue.end(ANA, seconds=1.0)
    assert [queue.start(BRUNO) for _ in range(5)] == [True] * 4 + [False], "he has had less"
    for _ in range(4):
        queue.end(BRUNO, seconds=0.1)
    assert [queue.start(ANA) for _ in range(3)] == [True, True, False], "she has had more"
    now[0] += 4
    assert [queue.start(ANA) for _ in range(3)] == [True, True, False], "she has two, and he is forgotten"


def test_of_those_who_wait_the_one_who_has_had_least_lately_goes_first(now: list[float]) -> None:
    queue = FairQueue[str](limit=2, share=1, memory=3.0)
    for owner, seconds in ((ANA, 1.0), (BRUNO, 0.1)):
        assert queue.start(owner)
        queue.end(owner, seconds=seconds)
    for number in range(3):
        queue.push(f"a{number}", ANA)
    for number in range(3):
        queue.push(f"b{number}", BRUNO)
    assert [next_item(queue), next_item(queue)] == ["b0", "b1"]
    queue.end(BRUNO, seconds=2.0)
    assert next_item(queue) == "a0", "he has had more now"
    now[0] += 30
    queue.end(ANA)
    queue.end(BRUNO, seconds=0.5)
    assert next_item(queue) == "a1", "what she had is half forgotten every three seconds"


def next_item(queue: FairQueue[str]) -> str | None:
    place = queue.pop()
    return None if place is None else place.item


def test_the_service_itself_may_have_every_place() -> None:
    queue = FairQueue[int](limit=4, share=2)
    assert [queue.start(None) for _ in range(5)] == [True] * 4 + [False]


# -- threads


@pytest.fixture
def threads() -> Iterator[FairThreads]:
    made = FairThreads(limit=2, name="test")
    yield made
    made.shutdown()


async def test_threads_serve_a_user_whose_work_is_short_while_another_fills_the_line(threads: FairThreads) -> None:
    gate, order = threading.Event(), list[str]()
    whose.set(ANA)
    long = [threads.submit(gate.wait, 20) for _ in range(10)]
    whose.set(BRUNO)
    short = threads.submit(order.append, BRUNO)
    await asyncio.wrap_future(short)
    await _until_threads(threads, running=1, waiting=9)
    assert order == [BRUNO]
    gate.set()
    await asyncio.gather(*map(asyncio.wrap_future, long))
    await _until_threads(threads, running=0, waiting=0)


async def _until_threads(threads: FairThreads, *, running: int, waiting: int) -> None:
    """Wait until a thread that has set its result is given back, too."""
    async with asyncio.timeout(60):
        while (threads.running, threads.waiting) != (running, waiting):  # noqa: ASYNC110
            await asyncio.sleep(0.005)


async def test_work_that_is_cancelled_or_fails_gives_its_thread_back(threads: FairThreads) -> None:
    gate = threading.Event()

    def fail() -> None:
        raise ValueError("failed")

    held = threads.submit(gate.wait, 20)
    left = threads.submit(gate.wait, 20)
    assert left.cancel() or left.running()
    failed: Any = threads.submit(fail)
    gate.set()
    with pytest.raises(ValueError, match="failed"):
        await asyncio.wrap_future(failed)
    assert held.result(20)


async def test_threads_of_the_event_loop_are_fair() -> None:
    seen = Counter[str]()
    threads = use_fair_threads(limit=2)
    whose.set(ANA)
    await asyncio.gather(*(asyncio.to_thread(seen.update, [ANA]) for _ in range(20)))
    assert seen[ANA] == 20
    threads.shutdown()
    with pytest.raises(RuntimeError):
        await asyncio.to_thread(seen.update, [ANA])

"""Turns between users: of those who wait, the user with the fewest running goes first.

    turns = Turns("check", limit=2, queue=30)
    async with turns.take(identity.user_id):
        ...

Work that takes a processor, a connection or a model passes one of these queues, or the threads of `FairThreads`, so
that the requests of one user make nobody else wait for more than what already runs. Between users who have as many
running, the one who has waited longest since the last turn goes first, as in stochastic fair queueing (McKenney,
INFOCOM 1990); a full queue drops the newest request of the longest line, not the one that comes last.

Order is by numbers that only rise; a queue with a memory goes by the time that each has had, by a clock that only
rises.
"""

from __future__ import annotations

import asyncio
import itertools
import math
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Hashable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar, copy_context
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, ParamSpec, TypeVar

from rag_service.errors import RagError, RateLimitedError

T = TypeVar("T")
P = ParamSpec("P")

Owner = Hashable  # a user's id, or a network where nobody has signed in; None: the service itself

# For whom the task works. It travels with the task into threads, because `asyncio.to_thread` takes no such argument.
# Set where an identity is known, and never reset: each request and job is a task of its own.
whose: ContextVar[Owner] = ContextVar("whose", default=None)

# Gives back the place that the task's request holds among those of its owner, see `Turns.enter`.
_leave_request: ContextVar[Callable[[], None]] = ContextVar("leave_request", default=lambda: None)


@dataclass(eq=False)
class _Place(Generic[T]):
    """A place in the queue."""

    item: T
    owner: Owner
    lane: int  # lower ones go first
    number: int  # in the order of arrival


@dataclass(eq=False, kw_only=True)
class _Had:
    """What an owner has had lately."""

    at: float  # when it was so much, by `time.monotonic`
    came: float = 0.0  # when the owner last did
    seconds: float = 0.0


class FairQueue(Generic[T]):
    """Keep what waits for one of `limit` places, and for whom. Not safe for threads."""

    def __init__(self, *, limit: int, share: int, memory: float | None = None):
        """
        Args:
            share: of the places, how many one owner has at most; the service itself (None) may have all.
            memory: seconds for which an owner who comes no more is remembered, and in which half of what was had is
                forgotten. Of the owners remembered, the one who has had the least goes first and may have all places.
                None: nothing is.
        """
        self.limit, self.share = limit, share
        self._memory = memory
        self._lately: dict[Owner, _Had] = {}  # the one who came last is the last one
        self.running = self.waiting = 0
        self._numbers = itertools.count()
        self._running = Counter[Owner]()
        self._lines: dict[tuple[int, Owner], deque[_Place[T]]] = {}  # of those who wait
        self._served: dict[Owner, int] = {}  # when the last turn ended, of owners who wait or run

    def __bool__(self) -> bool:
        return bool(self._lines)

    def push(self, item: T, owner: Owner, *, lane: int = 0) -> _Place[T]:
        """Let an item wait."""
        self._note(owner)
        place = _Place(item, owner, lane, next(self._numbers))
        self._lines.setdefault((lane, owner), deque()).append(place)
        self.waiting += 1
        return place

    def pop(self) -> _Place[T] | None:
        """Take out what is next: it runs until `end`. None: nothing may run now."""
        if self.running >= self.limit or not self._lines:
            return None
        allowed = [line for line in self._lines if self._may_run(line[1])]
        if not allowed:
            return None
        place = self._lines[min(allowed, key=self._rank)][0]
        self.discard(place)
        self.begin(place.owner)
        return place

    def start(self, owner: Owner) -> bool:
        """Begin at once, if the owner may have a place that is free; `end` follows.

        Nobody is overtaken: whoever waits then has too many running.
        """
        self._note(owner)
        if self.running >= self.limit or not self._may_run(owner):
            return False
        self.begin(owner)
        return True

    def end(self, owner: Owner, *, seconds: float = 0.0) -> None:
        """Give a place back, that was held for `seconds`."""
        if (had := self._lately.get(owner)) is not None:
            had.seconds = self._had(owner) + seconds
            had.at = time.monotonic()
        self.running -= 1
        self._running[owner] -= 1
        self._served[owner] = next(self._numbers)
        self._forget(owner)

    def discard(self, place: _Place[T]) -> None:
        """Take out somebody who no longer waits."""
        line = self._lines.get((place.lane, place.owner))
        if line is None or place not in line:
            return
        line.remove(place)
        self.waiting -= 1
        if not line:
            del self._lines[place.lane, place.owner]
        self._forget(place.owner)

    def drain(self) -> Iterator[T]:
        """Take out everything that waits."""
        for line in list(self._lines.values()):
            for place in list(line):
                self.discard(place)
                yield place.item

    def waiting_of(self, owner: Owner) -> int:
        """Return how many of an owner's items wait."""
        return sum(len(line) for (_, one), line in self._lines.items() if one == owner)

    def running_of(self, owner: Owner) -> int:
        return self._running[owner]

    def newest_of_longest(self) -> _Place[T] | None:
        """Return the newest place of the owner who has the most waiting."""
        longest = max(self._lines.values(), key=len, default=None)
        return None if longest is None else longest[-1]

    def should_yield(self, owner: Owner) -> bool:
        """Return whether somebody waits who would go before this owner, if one of the owner's ended now."""
        own = (self._had(owner), self._running[owner] - 1, next(self._numbers))
        return any(one != owner and self._rank((lane, one))[1:] < own for lane, one in self._lines)

    def _may_run(self, owner: Owner) -> bool:
        if owner is None or self._running[owner] < self.share:
            return True
        if self._memory is None:
            return False
        mine = self._had(owner)
        return all(one in (owner, None) or mine < self._had(one) for one in self._lately)

    def _had(self, owner: Owner) -> float:
        """Return how many seconds an owner has had lately."""
        had = self._lately.get(owner)
        if had is None or self._memory is None:
            return 0.0
        return had.seconds * math.pow(0.5, (time.monotonic() - had.at) / self._memory)

    def _note(self, owner: Owner) -> None:
        if self._memory is None:
            return
        now = time.monotonic()
        had = self._lately.pop(owner, None) or _Had(at=now)
        had.came = now
        self._lately[owner] = had
        for one in list(self._lately):
            if self._lately[one].came >= now - self._memory:
                break
            if not self._running[one] and not self.waiting_of(one):
                del self._lately[one]

    def _rank(self, line: tuple[int, Owner]) -> tuple[int, float, int, int]:
        lane, owner = line
        longest = max(self._lines[line][0].number, self._served.get(owner, -1))
        return lane, self._had(owner), self._running[owner], longest

    def begin(self, owner: Owner) -> None:
        """Count one more as running, whether or not there is a place."""
        self.running += 1
        self._running[owner] += 1

    def _forget(self, owner: Owner) -> None:
        if not self._running[owner]:
            del self._running[owner]
            if all(one != owner for _, one in self._lines):
                self._served.pop(owner, None)


class Turns:
    """Let at most `limit` run at a time, with `queue` waiting, by owner. For one event loop.

    Waiting, running and refused are counted: `Metrics.watch_turns` shows them.
    """

    def __init__(
        self,
        kind: str,
        *,
        limit: int,
        queue: int | None = None,
        patience: float | None = None,
        shared: bool = True,
        share: int | None = None,
        per_owner: int | None = None,
        long: bool = True,
    ):
        """
        Args:
            kind: what it is for, as metrics name it.
            limit: how many run at a time.
            queue: how many wait at most; None: the caller bounds them.
            patience: seconds that somebody waits at most; None: for ever.
            shared: whether one owner has at most half of the places that run, and of all of them.
            share: how many of an owner's run at a time; None: half if it is shared, else all.
            per_owner: how many of an owner's run and wait; None: likewise.
            long: whether a request that comes here gives its place among those of its owner back.
        """
        self.kind, self.limit, self.refused = kind, limit, 0
        everything = sys.maxsize if queue is None else limit + queue
        half = (limit + 1) // 2 if shared else limit
        self._queue = FairQueue[asyncio.Future[None]](limit=limit, share=half if share is None else share)
        self._most_waiting = queue
        self._per_owner = per_owner or ((everything + 1) // 2 if shared else everything)
        self._places = everything
        self._long = long
        self._admitted = Counter[Owner]()
        self._patience = patience
        self._mean_hold = 1.0  # seconds, moving mean

    @property
    def running(self) -> int:
        return self._queue.running

    @property
    def waiting(self) -> int:
        return self._queue.waiting

    @property
    def is_idle(self) -> bool:
        """Return whether nobody is admitted, runs or waits."""
        return not (self._admitted.total() or self.running or self.waiting)

    @contextmanager
    def admit(self, owner: Owner) -> Iterator[None]:
        """Count as one of those who will want a turn, for the length of the block; needs none yet.

        A request that would only be refused later is refused here, before it costs a search. Raises as `take`.
        """
        if self._admitted.total() >= self._places:
            self._refuse()
        if self._admitted[owner] >= self._per_owner:
            self._refuse_owner()
        self._admitted[owner] += 1
        whose.set(owner)
        self._leave_request()
        try:
            yield
        finally:
            self._admitted[owner] -= 1
            if not self._admitted[owner]:
                del self._admitted[owner]

    @asynccontextmanager
    async def take(self, owner: Owner = ...) -> AsyncIterator[None]:
        """Hold a turn for the length of the block; without an owner, as for whom the task works.

        Raises RateLimitedError if the owner has too many here, and what `busy` makes if the queue is full or patience
        runs out; `retry_after` is estimated from the last turns.
        """
        if owner is ...:
            owner = whose.get()
        elif owner is not None:
            whose.set(owner)
        self._leave_request()
        await self._begin(owner)
        began = time.monotonic()
        try:
            yield
        finally:
            self._mean_hold += 0.2 * (time.monotonic() - began - self._mean_hold)
            self._end(owner)

    async def enter(self, owner: Owner, *, seconds: float) -> Callable[[], None]:
        """Take a turn for a request of an owner. Returns what gives it back, once or more. Raises as `take`.

        It is given back before that where the request takes a turn at something long, and after `seconds`: whoever has
        not ended by then waits for something, such as a body that drips or a database that is gone.
        """
        whose.set(owner)
        await self._begin(owner)
        left = False

        def leave() -> None:
            nonlocal left
            if not left:
                left = True
                timer.cancel()
                self._end(owner)

        timer = asyncio.get_running_loop().call_later(seconds, leave)
        _leave_request.set(leave)
        return leave

    def hold(self, owner: Owner, *, seconds: float) -> None:
        """Count one more of an owner's as running for some seconds, whether or not there is a place."""
        self._queue.begin(owner)
        asyncio.get_running_loop().call_later(seconds, self._end, owner)

    async def give_way(self, owner: Owner) -> None:
        """Between two pieces of long work under a turn: let those go first who have fewer running."""
        if not self._queue.should_yield(owner):
            return
        self._end(owner)
        place = self._push(owner)  # who holds a turn is not refused one
        try:
            await place.item
        except BaseException:
            if place.item.cancelled():  # `take` gives back what it still has to hold
                self._queue.discard(place)
                self._queue.begin(owner)
            raise

    def busy(self, retry_after: int) -> RagError:
        """Return the error of a full queue."""
        return RateLimitedError("The service is busy with other requests.", retry_after=retry_after)

    def require_room(self, owner: Owner) -> None:
        """Refuse a request whose turn would be refused, before its body is read. Raises as `take`."""
        mine = self._queue.waiting_of(owner) + self._queue.running_of(owner)
        if owner is not None and mine >= self._per_owner < self._places:
            self._refuse_owner()

    def _leave_request(self) -> None:
        if self._long:
            _leave_request.get()()

    async def _begin(self, owner: Owner) -> None:
        if not self._queue.start(owner):
            self._check_room(owner)
            await self._wait(owner)

    def _check_room(self, owner: Owner) -> None:
        self.require_room(owner)
        if self._most_waiting is not None and self.waiting >= self._most_waiting:
            place = self._queue.newest_of_longest()
            if place is None or self._queue.waiting_of(place.owner) <= self._queue.waiting_of(owner) + 1:
                self._refuse()
            else:
                self._queue.discard(place)
                self.refused += 1
                place.item.set_exception(self.busy(self._estimate()))

    def _push(self, owner: Owner) -> _Place[asyncio.Future[None]]:
        place = self._queue.push(asyncio.get_running_loop().create_future(), owner)
        self._advance()
        return place

    async def _wait(self, owner: Owner) -> None:
        place = self._push(owner)
        granted = place.item
        try:
            while not (await asyncio.wait({granted}, timeout=self._patience))[0]:
                if not self.waits_on():
                    self._refuse()
            granted.result()  # raises if others took the place
        except BaseException:
            if granted.done() and granted.exception() is None:
                self._end(owner)  # it was its turn at this very moment
            else:
                self._queue.discard(place)
                granted.cancel()
            raise

    def waits_on(self) -> bool:
        """Return whether somebody whose patience has run out goes on waiting."""
        return False

    def _end(self, owner: Owner) -> None:
        self._queue.end(owner)
        self._advance()

    def _advance(self) -> None:
        while (place := self._queue.pop()) is not None:
            if place.item.done():  # the one who waited has left, and has not been taken out yet
                self._queue.end(place.owner)
            else:
                place.item.set_result(None)

    def _refuse(self) -> None:
        self.refused += 1
        raise self.busy(self._estimate())

    def _refuse_owner(self) -> None:
        self.refused += 1
        message = f"{self._per_owner} of your requests are under way, which is the maximum."
        raise RateLimitedError(message, retry_after=self._estimate())

    def _estimate(self) -> int:
        waiting = max(self.waiting, self._admitted.total() - self.running)
        return min(60, max(1, round(self._mean_hold * (waiting + 1) / self.limit)))


class FairThreads(ThreadPoolExecutor):
    """Run the work of users by turns in threads, for `asyncio.to_thread`: see `use_fair_threads`."""

    def __init__(self, *, limit: int, name: str):
        """`limit`: threads, of which one user has half."""
        super().__init__(limit, thread_name_prefix=name)
        self.kind, self.refused = name, 0
        self._fair = FairQueue[tuple[Future[Any], Callable[[], Any]]](limit=limit, share=(limit + 1) // 2)
        self._changing = threading.Lock()

    @property
    def running(self) -> int:
        return self._fair.running

    @property
    def waiting(self) -> int:
        return self._fair.waiting

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        future: Future[T] = Future()
        with self._changing:
            self._fair.push((future, partial(fn, *args, **kwargs)), whose.get())
        self._start_more()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """As of any executor; what waits is cancelled."""
        with self._changing:
            left = [future for future, _ in self._fair.drain()]
        for future in left:
            future.cancel()
        super().shutdown(wait, cancel_futures=cancel_futures)

    def _start_more(self) -> None:
        while True:
            with self._changing:
                place = self._fair.pop()
            if place is None:
                return
            try:
                super().submit(self._run, place)
            except RuntimeError as error:  # the executor has been shut down
                with self._changing:
                    self._fair.end(place.owner)
                place.item[0].set_exception(error)

    def _run(self, place: _Place[tuple[Future[Any], Callable[[], Any]]]) -> None:
        future, work = place.item
        try:
            run_job(future, work)
        finally:
            with self._changing:
                self._fair.end(place.owner)
            self._start_more()


def run_job(future: Future[T], work: Callable[[], T]) -> None:
    """Run work for a future, unless it was cancelled."""
    if not future.set_running_or_notify_cancel():
        return
    try:
        result = work()
    except BaseException as error:  # noqa: BLE001 - handed to the waiting caller
        future.set_exception(error)
    else:
        future.set_result(result)


def use_fair_threads(*, limit: int) -> FairThreads:
    """Make `asyncio.to_thread` of this event loop fair between users."""
    threads = FairThreads(limit=limit, name="threads")
    asyncio.get_running_loop().set_default_executor(threads)
    return threads


async def run_apart(executor: ThreadPoolExecutor, work: Callable[[], T]) -> T:
    """Run short work in an executor of its own, which nothing long ever enters."""
    return await asyncio.get_running_loop().run_in_executor(executor, partial(copy_context().run, work))

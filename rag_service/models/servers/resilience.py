"""What every call to a model server shares: slots, retries, and what an error means.

Three tries with exponential backoff and jitter; a short `Retry-After` is honoured. Nothing here knows a provider:
errors are read by what they carry (a `status_code`, an httpx cause), so that any client package fits.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from concurrent.futures import Future
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, TypeVar

import httpx
import stamina

from rag_service.errors import ModelBusyError

T = TypeVar("T")

BUSY_STATUSES = frozenset({429, 503})
SERVER_STATUSES = frozenset({429, 500, 502, 503, 504})

# Longest Retry-After that is waited for; above it the call fails.
MAX_WAIT = 10.0

_background: set[asyncio.Task[Any]] = set()


@dataclass(frozen=True, kw_only=True)
class RetryPolicy:
    """How often and how far apart a call is tried."""

    attempts: int = 3  # tries in all, the first included
    first_wait: float = 0.5  # seconds before the second try; doubles from try to try
    longest_wait: float = 5.0  # seconds, the cap of the doubling
    jitter: float = 0.5  # seconds, upper end of the random part added to each wait

    def tries(self, statuses: frozenset[int]) -> AsyncIterator[stamina.Attempt]:
        """Attempts to iterate over with `async for`, each used as a context manager.

        An error with one of these HTTP statuses or a failed connection is tried again; the last
        error of the last attempt is raised as it is.
        """
        return stamina.retry_context(
            on=lambda error: _wait_before_retry(error, statuses),
            attempts=self.attempts,
            timeout=None,  # the callers' own deadlines cut the tries short
            wait_initial=self.first_wait,
            wait_max=self.longest_wait,
            wait_jitter=self.jitter,
        )


def _wait_before_retry(error: Exception, statuses: frozenset[int]) -> bool | float:
    if is_connection_error(error):
        return True
    if status_of(error) not in statuses:
        return False
    wait = retry_after_of(error)
    if wait is None:
        return True
    return wait if wait <= MAX_WAIT else False


def _chain(error: BaseException) -> list[BaseException]:
    """The error and what it was raised from.

    The ollama client raises `from None`, which hides the httpx error with its headers but keeps it.
    Any other context is left out: it may belong to an older failure that the caller is handling.
    """
    chain: list[BaseException] = []
    current: BaseException | None = error
    while current is not None and current not in chain:
        chain.append(current)
        hidden = current.__context__ if current.__suppress_context__ else None
        current = current.__cause__ or hidden
    return chain


def status_of(error: BaseException) -> int | None:
    """HTTP status that a client package's error carries; None for errors of another kind."""
    for link in _chain(error):
        status = getattr(link, "status_code", None)
        if isinstance(status, int) and status > 0:  # ollama: -1 is an error line under status 200
            return status
        if isinstance(link, httpx.HTTPStatusError):
            return link.response.status_code
    return None


def is_connection_error(error: BaseException) -> bool:
    """Whether the server could not be reached or dropped the connection.

    A read timeout is not one: the server has the request and may still be working on it.
    """
    if status_of(error) is not None:
        return False
    lost = (ConnectionError, httpx.NetworkError, httpx.RemoteProtocolError, httpx.ConnectTimeout)
    return any(isinstance(link, lost) for link in _chain(error))


def is_timeout(error: BaseException) -> bool:
    """Whether the server was reached and then stayed silent too long."""
    return any(isinstance(link, TimeoutError | httpx.TimeoutException) for link in _chain(error))


def retry_after_of(error: BaseException) -> float | None:
    """Seconds of the `Retry-After` header (RFC 9110 10.2.3: seconds or a date), if there is one."""
    for link in _chain(error):
        response = getattr(link, "response", None)
        value = response.headers.get("retry-after") if isinstance(response, httpx.Response) else None
        if value is not None:
            return _parse_retry_after(value)
    return None


def _parse_retry_after(value: str) -> float | None:
    if value.strip().isdigit():
        return float(value)
    try:
        at = parsedate_to_datetime(value)
    except ValueError:
        return None
    if at.tzinfo is None:
        at = at.replace(tzinfo=UTC)
    return max(0.0, (at - datetime.now(UTC)).total_seconds())


class Slots:
    """At most `limit` calls at a time, at most `queue` waiting, none for longer than `patience`.

    Waiting is first come, first served. A cancelled waiter or holder gives its place back.
    """

    def __init__(self, *, limit: int, queue: int, patience: float):
        self._limit = limit
        self._queue = queue
        self._patience = patience  # seconds
        self._semaphore = asyncio.Semaphore(limit)
        self._waiting = 0
        self._admitted = 0
        self._mean_hold = 1.0  # seconds, moving mean of how long a slot is held

    @property
    def waiting(self) -> int:
        """Calls in the queue now."""
        return self._waiting

    @contextmanager
    def admit(self) -> Iterator[None]:
        """Count as one of those who will want a slot, for the length of the block; needs no slot yet.

        Whoever would only be turned away later is turned away here, before it costs a search: under load the searches
        of hundreds would keep each other waiting for the database until they fail. Raises ModelBusyError if as many are
        admitted as there are slots and places in the queue.
        """
        if self._admitted >= self._limit + self._queue:
            raise self._busy()
        self._admitted += 1
        try:
            yield
        finally:
            self._admitted -= 1

    @asynccontextmanager
    async def take(self) -> AsyncIterator[None]:
        """Hold a slot for the length of the block.

        Raises ModelBusyError if the queue is full or patience runs out; `retry_after` is estimated from recent calls.
        """
        if self._semaphore.locked() and self._waiting >= self._queue:
            raise self._busy()
        self._waiting += 1
        try:
            async with asyncio.timeout(self._patience):
                await self._semaphore.acquire()
        except TimeoutError:
            raise self._busy() from None
        finally:
            self._waiting -= 1
        began = time.monotonic()
        try:
            yield
        finally:
            self._mean_hold += 0.2 * (time.monotonic() - began - self._mean_hold)
            self._semaphore.release()

    def _busy(self) -> ModelBusyError:
        wait = self._mean_hold * (self._waiting + 1) / self._limit
        return ModelBusyError(
            "The language model is busy with other requests.", retry_after=min(60, max(1, round(wait)))
        )


async def shielded(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a clean-up to its end even if the caller is cancelled, once or at every await.

    The caller sees its cancellation at once; the work goes on in a task of its own.
    """
    task = asyncio.create_task(work())
    _background.add(task)
    task.add_done_callback(_background.discard)
    return await asyncio.shield(task)


async def isolated(work: Coroutine[Any, Any, T]) -> T:
    """Run work in a task of its own, which is cancelled once when the caller is.

    For HTTP calls: a second cancellation, which a web framework sends at every await, would stop
    httpx in the middle of closing the connection and leave it open.
    """
    task = asyncio.create_task(work)
    _background.add(task)
    task.add_done_callback(_background.discard)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        task.cancel()
        raise


async def in_own_thread(work: Callable[[], T]) -> T:
    """Run blocking code that is not ours in a thread of its own.

    A caller who gives up does not wait for it. In the event loop's executor a few calls that hang would take the
    threads of everybody; this one is a daemon, which does not even keep the process from ending.
    """
    future: Future[T] = Future()
    future.set_running_or_notify_cancel()  # from here on the caller cannot cancel it

    def run() -> None:
        try:
            result = work()
        except StopIteration:  # cannot be raised in a coroutine
            future.set_exception(RuntimeError("A blocking call raised StopIteration."))
        except BaseException as error:  # noqa: BLE001 - raised to the caller
            future.set_exception(error)
        else:
            future.set_result(result)

    context = contextvars.copy_context()  # the spans of LlamaIndex's instrumentation
    threading.Thread(target=context.run, args=(run,), name="blocking-plugin", daemon=True).start()
    return await asyncio.wrap_future(future)


MIN_ECHO = 12  # characters; shorter runs in common are words of any error message
MAX_TEXT = 500  # characters of a server's message that are kept
_HIDDEN = "[…]"


class ProviderError(Exception):
    """A client package's error as it goes to the log: its kind, its status, its text without echoes."""

    def __init__(self, error: BaseException, sent: Sequence[str]):
        super().__init__(f"{type(error).__name__}: {hide_echoes(str(error)[:MAX_TEXT], sent)}")
        self.status_code = status_of(error)
        self.__traceback__ = error.__traceback__


def hide_echoes(text: str, sent: Sequence[str]) -> str:
    """The text with every run of `MIN_ECHO` or more characters that stands in what was sent replaced."""
    whole = "\0".join(sent)
    kept: list[str] = []
    start = 0
    while start < len(text):
        end = start + MIN_ECHO
        if end > len(text) or text[start:end] not in whole:
            kept.append(text[start])
            start += 1
            continue
        while end < len(text) and text[start : end + 1] in whole:
            end += 1
        kept.append(_HIDDEN)
        start = end
    return "".join(kept)

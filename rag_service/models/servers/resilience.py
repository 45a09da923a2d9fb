"""What every call to a model server shares: slots, retries, a circuit breaker, and work that ends for certain."""

from __future__ import annotations

import asyncio
import contextvars
import math
import threading
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Literal, TypeVar

import stamina
import structlog
from stamina.instrumentation import RetryDetails, set_on_retry_hooks

from rag_service.errors import ModelBusyError, ModelError
from rag_service.models.servers.failures import is_connection_error, is_provider_failure, retry_after_of, status_of
from rag_service.turns import Turns

log = structlog.get_logger(__name__)

T = TypeVar("T")

# Longest Retry-After that is waited for; above it the call fails.
MAX_WAIT = 10.0

_background: set[asyncio.Task[Any]] = set()


def _log_retry(details: RetryDetails) -> None:
    """Without the text of the error: a server may quote the prompt in it."""
    log.info(
        "model_call_retried",
        attempt=details.retry_num,
        wait_seconds=round(details.wait_for, 2),
        error=type(details.caused_by).__name__,
    )


set_on_retry_hooks([_log_retry])  # in place of stamina's own, which logs the text


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


class Slots(Turns):
    """The turns at a chat model, none waited for longer than `patience`."""

    def __init__(self, *, limit: int, queue: int, patience: float, shared: bool = False, kind: str = "model"):
        """`shared`: among users, each of whom may have half of all places, so that the others find one."""
        super().__init__(kind, limit=limit, queue=queue, patience=patience, shared=shared)

    def busy(self, retry_after: int) -> ModelBusyError:
        return ModelBusyError("The language model is busy with other requests.", retry_after=retry_after)


State = Literal["closed", "open", "half_open"]


@dataclass(eq=False)
class CircuitBreaker:
    """After some failures in a row a model server is left alone for a while; one for each provider and process.

        closed ── `failures` in a row ──▶ open ── `seconds` later ──▶ half-open: one call is let through
          ▲                                ▲                             │
          └──────── it succeeds ───────────┼─────────────────────────────┤
                                           └───────── it fails ──────────┘

    While it is open, calls fail at once instead of waiting for a timeout each, and the server is spared. After Nygard,
    "Release It!" (2007), chapter 5.
    """

    name: str
    _: KW_ONLY
    failures: int  # in a row, after which it opens; 0: never
    seconds: float  # for which it stays open
    error: type[ModelError] = ModelError  # raised by `check`
    clock: Callable[[], float] = time.monotonic
    _failed: int = field(default=0, init=False)  # calls in a row
    _opened_at: float | None = field(default=None, init=False)
    _trying: bool = field(default=False, init=False)  # half-open, and the one call is under way

    @property
    def state(self) -> State:
        if self._opened_at is None:
            return "closed"
        return "half_open" if self.clock() >= self._opened_at + self.seconds else "open"

    def check(self) -> None:
        """Raise the given error while the circuit is open or its one trial call is running."""
        state = self.state
        if state == "closed" or (state == "half_open" and not self._trying):
            return
        left = 1.0 if self._opened_at is None else self._opened_at + self.seconds - self.clock()
        raise self.error(
            f"The {self.name} failed several times in a row and is not called for a while.",
            retry_after=max(1, math.ceil(left)),
        )

    @contextmanager
    def guard(self) -> Iterator[None]:
        """Around one call. What says nothing about the server (a caller who left, a refusal) does not count.

        Raises like `check`.
        """
        self.check()
        trial = self.state == "half_open"
        self._trying = self._trying or trial
        try:
            yield
        except BaseException as error:
            if is_provider_failure(error):
                self._note_failure()
            raise
        else:
            if self._opened_at is not None:
                log.info("circuit_closed", provider=self.name)
            self._failed, self._opened_at = 0, None
        finally:
            if trial:
                self._trying = False

    def _note_failure(self) -> None:
        self._failed += 1
        if self._opened_at is not None and self.state == "open":
            return  # calls that began before it opened
        if self._opened_at is not None or 0 < self.failures <= self._failed:
            self._opened_at = self.clock()
            log.error("circuit_opened", provider=self.name, failures=self._failed, seconds=self.seconds)


class CircuitOpenError(ModelError):
    """For /health/ready: the server may be back, but is left alone for a while yet."""

    code = "circuit_open"


async def shielded(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a clean-up to its end even if the caller is cancelled, once or at every await.

    The caller sees its cancellation at once; the work goes on in a task of its own.
    """
    return await asyncio.shield(_start(work()))


async def isolated(work: Coroutine[Any, Any, T]) -> T:
    """Run work in a task of its own, which is cancelled once when the caller is.

    For HTTP calls: a second cancellation, which a web framework sends at every await, would stop
    httpx in the middle of closing the connection and leave it open.
    """
    task = _start(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        task.cancel()
        raise


def _start(work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
    task = asyncio.create_task(work)
    _background.add(task)  # the event loop keeps weak references only
    task.add_done_callback(_background.discard)
    return task


def raisable(error: BaseException) -> Exception:
    """What foreign code raised, as an error for a coroutine.

    StopIteration cannot be raised there, and a SystemExit, as of a command-line tool, would end the event loop.
    """
    if isinstance(error, Exception) and not isinstance(error, StopIteration):
        return error
    converted = RuntimeError(f"A blocking call raised {type(error).__name__}.")
    converted.__cause__ = error
    return converted


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
        except BaseException as error:  # noqa: BLE001 - raised to the caller
            future.set_exception(raisable(error))
        else:
            future.set_result(result)

    context = contextvars.copy_context()  # the spans of LlamaIndex's instrumentation
    threading.Thread(target=context.run, args=(run,), name="blocking-plugin", daemon=True).start()
    return await asyncio.wrap_future(future)

"""A circuit breaker: after some failures in a row a model server is left alone for a while.

    closed ── `failures` in a row ──▶ open ── `seconds` later ──▶ half-open: one call is let through
      ▲                                ▲                             │
      └──────── it succeeds ───────────┼─────────────────────────────┤
                                       └───────── it fails ──────────┘

While it is open, calls fail at once instead of waiting for a timeout each, and the server is
spared. After Nygard, "Release It!" (2007), chapter 5.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Literal

import structlog

from rag_service.errors import ModelBusyError, ModelError, ModelOutputError
from rag_service.models.servers.resilience import BUSY_STATUSES, status_of

log = structlog.get_logger(__name__)

State = Literal["closed", "open", "half_open"]


class CircuitBreaker:
    """One for each provider and process."""

    def __init__(
        self,
        name: str,
        *,
        failures: int,
        seconds: float,
        error: type[ModelError] = ModelError,
        clock: Callable[[], float] = time.monotonic,
    ):
        """Opens for `seconds` after `failures` in a row (0: never); `check` then raises an `error`."""
        self.name = name
        self._limit = failures
        self._seconds = seconds
        self._error = error
        self._clock = clock
        self._failures = 0
        self._opened_at: float | None = None
        self._trying = False  # half-open, and the one call is under way

    @property
    def state(self) -> State:
        if self._opened_at is None:
            return "closed"
        return "half_open" if self._clock() >= self._opened_at + self._seconds else "open"

    def check(self) -> None:
        """Raise the given error while the circuit is open or its one trial call is running."""
        state = self.state
        if state == "closed" or (state == "half_open" and not self._trying):
            return
        left = 1.0 if self._opened_at is None else self._opened_at + self._seconds - self._clock()
        raise self._error(
            f"The {self.name} failed several times in a row and is left alone for a while.",
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
            self._failures, self._opened_at = 0, None
        finally:
            if trial:
                self._trying = False

    def _note_failure(self) -> None:
        self._failures += 1
        if self._opened_at is not None and self.state == "open":
            return  # calls that began before it opened
        if self._opened_at is not None or 0 < self._limit <= self._failures:
            self._opened_at = self._clock()
            log.error("circuit_opened", provider=self.name, failures=self._failures, seconds=self._seconds)


def is_provider_failure(error: BaseException) -> bool:
    """Whether an error of ours means that the server is down, hung or broken.

    A server that is busy or refuses a request is alive, and says by itself when to come again.
    """
    if not isinstance(error, ModelError) or isinstance(error, ModelBusyError | ModelOutputError):
        return False
    status = status_of(error)
    return status is None or (status >= 500 and status not in BUSY_STATUSES)


class CircuitOpenError(ModelError):
    """For /health/ready: the server may be back, but is left alone for a while yet."""

    code = "circuit_open"

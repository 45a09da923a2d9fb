"""The circuit breaker: opens after failures in a row, lets one call try, closes when it succeeds."""

from __future__ import annotations

import asyncio

import httpx
import pytest

from rag_service.errors import ConfigurationError, EmbeddingError, ModelBusyError, ModelError, ModelOutputError
from rag_service.models.servers.failures import is_provider_failure
from rag_service.models.servers.resilience import CircuitBreaker


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def breaker(clock: Clock) -> CircuitBreaker:
    return CircuitBreaker("chat model", failures=3, seconds=10, error=EmbeddingError, clock=clock)


def run(breaker: CircuitBreaker, error: BaseException | None = None) -> None:
    try:
        with breaker.guard():
            if error is not None:
                raise error
    except BaseException as raised:
        if raised is not error:
            raise


def refusal(status: int) -> ModelError:
    error = ModelError("refused")
    error.__cause__ = httpx.HTTPStatusError(
        "", request=httpx.Request("GET", "http://x"), response=httpx.Response(status)
    )
    return error


def test_it_opens_after_failures_in_a_row_and_says_when_to_come_again(breaker: CircuitBreaker, clock: Clock) -> None:
    for _ in range(3):
        assert breaker.state == "closed"
        run(breaker, ModelError("down"))
    assert breaker.state == "open"
    clock.now += 3.5
    with pytest.raises(EmbeddingError, match="chat model failed several times") as caught:
        run(breaker)
    assert caught.value.retry_after == 7


def test_a_success_in_between_starts_the_count_again(breaker: CircuitBreaker) -> None:
    for error in (ModelError(""), ModelError(""), None, ModelError(""), ModelError("")):
        run(breaker, error)
    assert breaker.state == "closed"


def test_after_the_pause_one_call_tries_and_decides(breaker: CircuitBreaker, clock: Clock) -> None:
    for _ in range(3):
        run(breaker, ModelError(""))
    clock.now += 10
    assert breaker.state == "half_open"
    with breaker.guard(), pytest.raises(EmbeddingError):
        breaker.check()  # the others wait for the outcome
    assert breaker.state == "closed"


def test_a_failed_trial_opens_it_again_at_once(breaker: CircuitBreaker, clock: Clock) -> None:
    for _ in range(3):
        run(breaker, ModelError(""))
    clock.now += 10
    run(breaker, ModelError(""))
    assert breaker.state == "open"
    clock.now += 9
    with pytest.raises(EmbeddingError):
        breaker.check()


def test_a_trial_whose_caller_left_leaves_the_next_one_its_turn(breaker: CircuitBreaker, clock: Clock) -> None:
    for _ in range(3):
        run(breaker, ModelError(""))
    clock.now += 10
    run(breaker, asyncio.CancelledError())
    assert breaker.state == "half_open"
    run(breaker)
    assert breaker.state == "closed"


def test_calls_that_began_before_it_opened_do_not_prolong_the_pause(breaker: CircuitBreaker, clock: Clock) -> None:
    late = breaker.guard()
    late.__enter__()
    for _ in range(3):
        run(breaker, ModelError(""))
    clock.now += 6
    error = ModelError("")
    assert not late.__exit__(ModelError, error, None)
    clock.now += 4
    assert breaker.state == "half_open"


def test_zero_failures_never_open_it() -> None:
    breaker = CircuitBreaker("x", failures=0, seconds=1)
    for _ in range(50):
        run(breaker, ModelError(""))
    assert breaker.state == "closed"


@pytest.mark.parametrize(
    ("error", "counts"),
    [
        (ModelError("cannot be reached"), True),
        (EmbeddingError("did not answer in time"), True),
        (refusal(500), True),
        (refusal(502), True),
        (refusal(503), False),
        (refusal(429), False),
        (refusal(404), False),
        (refusal(400), False),
        (ModelBusyError("our own queue is full"), False),
        (ModelOutputError("no JSON"), False),
        (ConfigurationError("wrong dimension"), False),
        (asyncio.CancelledError(), False),
        (GeneratorExit(), False),
    ],
    ids=repr,
)
def test_what_counts_as_the_servers_failure(error: BaseException, counts: bool) -> None:
    assert is_provider_failure(error) is counts

"""Slots, retries and the reading of errors."""

from __future__ import annotations

import asyncio
import threading
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from uuid import uuid4

import httpx
import pytest
from ollama import ResponseError
from structlog.testing import capture_logs

from rag_service.errors import ModelBusyError, RateLimitedError
from rag_service.models.servers.failures import (
    BUSY_STATUSES,
    is_connection_error,
    is_timeout,
    retry_after_of,
    status_of,
)
from rag_service.models.servers.resilience import RetryPolicy, Slots, in_own_thread, isolated, shielded


def http_error(status: int, **headers: str) -> httpx.HTTPStatusError:
    request = httpx.Request("POST", "http://model/api/chat")
    return httpx.HTTPStatusError("", request=request, response=httpx.Response(status, headers=headers))


def ollama_error(cause: httpx.HTTPStatusError) -> ResponseError:
    """As the ollama client raises it: `from None`, which hides the response and keeps it."""
    try:
        try:
            raise cause
        except httpx.HTTPStatusError:
            raise ResponseError("failed", cause.response.status_code) from None
    except ResponseError as error:
        return error


def test_status_and_retry_after_are_read_through_the_client_package() -> None:
    error = ollama_error(http_error(429, **{"retry-after": "7"}))
    assert (status_of(error), retry_after_of(error)) == (429, 7.0)


def test_retry_after_may_be_a_date() -> None:
    at = format_datetime(datetime.now(UTC) + timedelta(seconds=30), usegmt=True)
    wait = retry_after_of(http_error(503, **{"retry-after": at}))
    assert wait is not None
    assert 25 < wait <= 30


@pytest.mark.parametrize("value", ["soon", "", "-3"])
def test_a_retry_after_that_makes_no_sense_is_none(value: str) -> None:
    assert retry_after_of(http_error(503, **{"retry-after": value})) is None


def test_an_error_line_under_status_200_has_no_status() -> None:
    assert status_of(ResponseError("out of memory")) is None


@pytest.mark.parametrize(
    ("error", "connection", "timeout"),
    [
        (ConnectionError(), True, False),
        (httpx.ConnectError(""), True, False),
        (httpx.ConnectTimeout(""), True, True),
        (httpx.RemoteProtocolError(""), True, False),
        (httpx.ReadTimeout(""), False, True),
        (TimeoutError(), False, True),
        (ValueError(), False, False),
        (http_error(503), False, False),
    ],
)
def test_errors_are_told_apart(error: Exception, connection: bool, timeout: bool) -> None:
    assert (is_connection_error(error), is_timeout(error)) == (connection, timeout)


def test_an_older_failure_that_is_being_handled_is_not_taken_for_the_cause() -> None:
    with pytest.raises(ValueError, match="a mistake of ours") as caught:
        try:
            raise httpx.ConnectError("an earlier call")
        except httpx.ConnectError:
            raise ValueError("a mistake of ours")  # noqa: B904  # the case under test
    assert not is_connection_error(caught.value)


async def attempts(policy: RetryPolicy, error: BaseException) -> int:
    made = 0
    with pytest.raises(type(error)):
        async for attempt in policy.tries(BUSY_STATUSES):
            with attempt:
                made += 1
                raise error
    return made


QUICK = RetryPolicy(first_wait=0.001, jitter=0.001)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (http_error(429), 3),
        (ConnectionError(), 3),
        (http_error(500), 1),
        (ValueError(), 1),
        (asyncio.CancelledError(), 1),
        (http_error(429, **{"retry-after": "0"}), 3),
        (http_error(429, **{"retry-after": "11"}), 1),
    ],
)
async def test_only_what_a_retry_can_mend_is_tried_again(error: BaseException, expected: int) -> None:
    assert await attempts(QUICK, error) == expected


# -- slots


async def test_slots_are_bounded_and_the_queue_too() -> None:
    slots = Slots(limit=1, queue=1, patience=5)
    async with slots.take():
        waiting = asyncio.create_task(hold(slots))
        await asyncio.sleep(0)
        assert slots.waiting == 1
        with pytest.raises(ModelBusyError) as caught:
            await hold(slots)
        assert caught.value.retry_after is not None
    await waiting


async def test_a_cancelled_waiter_leaves_its_place() -> None:
    slots = Slots(limit=1, queue=1, patience=5)
    async with slots.take():
        waiting = asyncio.create_task(hold(slots))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert slots.waiting == 0
    await hold(slots)


async def test_a_failed_holder_gives_its_slot_back() -> None:
    slots = Slots(limit=1, queue=0, patience=5)
    with pytest.raises(ValueError, match="failed"):
        async with slots.take():
            raise ValueError("failed")
    await hold(slots)


async def test_no_user_takes_the_places_of_the_others() -> None:
    slots, ana, bruno = Slots(limit=1, queue=3, patience=5, shared=True), uuid4(), uuid4()
    with slots.admit(ana), slots.admit(ana):
        with pytest.raises(RateLimitedError) as caught, slots.admit(ana):
            pass
        assert caught.value.retry_after is not None
        with slots.admit(bruno), slots.admit(bruno), pytest.raises(ModelBusyError), slots.admit(uuid4()):
            pass
    with slots.admit(ana):  # what has ended counts no more
        pass


async def hold(slots: Slots) -> None:
    async with slots.take():
        await asyncio.sleep(0)


# -- work that outlives a cancellation


async def test_a_clean_up_ends_although_its_caller_is_cancelled_at_every_await() -> None:
    done = asyncio.Event()

    async def clean_up() -> None:
        await asyncio.sleep(0.01)
        done.set()

    task = asyncio.create_task(shielded(clean_up))
    for _ in range(3):
        await asyncio.sleep(0)
        task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.wait_for(done.wait(), 60)


async def test_isolated_work_is_cancelled_once_however_often_its_caller_is() -> None:
    cancelled: list[int] = []

    async def work() -> None:
        try:
            await asyncio.sleep(10)
        except asyncio.CancelledError:
            cancelled.append(1)
            await asyncio.sleep(0.01)  # a second cancellation would end this
            cancelled.append(2)
            raise

    task = asyncio.create_task(isolated(work()))
    for _ in range(4):
        await asyncio.sleep(0)
        task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.sleep(0.05)
    assert cancelled == [1, 2]


async def test_blocking_calls_that_hang_take_no_thread_from_others() -> None:
    release = threading.Event()
    hanging = [asyncio.create_task(in_own_thread(release.wait)) for _ in range(40)]
    await asyncio.sleep(0)
    for task in hanging:
        task.cancel()
    assert await asyncio.wait_for(asyncio.to_thread(lambda: "served"), 60) == "served"
    outcomes = await asyncio.gather(*hanging, return_exceptions=True)
    assert all(isinstance(outcome, asyncio.CancelledError) for outcome in outcomes)
    release.set()


async def test_what_a_blocking_call_raises_is_raised() -> None:
    with pytest.raises(ZeroDivisionError):
        await in_own_thread(lambda: 1 // 0)
    with pytest.raises(RuntimeError):
        await in_own_thread(lambda: next(iter(())))


async def test_a_retry_is_logged_without_the_text_of_the_error() -> None:
    policy = RetryPolicy(attempts=2, first_wait=0.001, jitter=0.0)
    with capture_logs() as logged, pytest.raises(ConnectionError):
        async for attempt in policy.tries(frozenset()):
            with attempt:
                raise ConnectionError("the prompt said: canary")
    (line,) = logged
    assert (line["event"], line["attempt"], line["error"]) == ("model_call_retried", 1, "ConnectionError")
    assert "canary" not in str(line)

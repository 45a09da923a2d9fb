"""Watches the event loop in every test here: the parts of the service run as they do in service."""

from __future__ import annotations

from collections.abc import Generator

import pytest

from tests.loop_watch import LIMIT, watching

_OF_TESTS = "coro=<test_", "/playwright/", "/rag_service/cli/"  # commands serve nobody else
_LIMIT = 2 * LIMIT  # first calls pay for what is loaded once; the hostile sets hold the limit itself


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None]:
    """Fail a test in which a callback of an event loop took longer than the limit.

    What a test does in its own task, and what drives its browser, is left out: it makes files, applications and clients
    there. The hostile sets, in test_event_loop.py, count it as well.
    """
    with watching() as watch:
        yield
    slow = [
        (seconds, what)
        for seconds, what in watch.slow
        if seconds > _LIMIT and not any(own in what for own in _OF_TESTS)
    ]
    assert not slow, f"slower than {_LIMIT} s: {slow}"

"""Watches the event loop in every test here: the parts of the service run as they do in service."""

from __future__ import annotations

import os
from collections.abc import Generator
from pathlib import Path

import pytest

from tests.loop_watch import LIMIT, watching


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None]:
    """Fail a test in which a callback of an event loop took longer than the limit; fixtures only start what serves."""
    with watching() as watch:
        yield
    if report := os.environ.get("SLOW_CALLBACKS"):
        if watch.slow:
            with Path(report).open("a") as f:
                f.write(f"{item.nodeid} {watch.slow}\n")
        return
    assert not watch.slow, f"slower than {LIMIT} s: {watch.worst()}"

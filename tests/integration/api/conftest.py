"""The API on a real socket: uvicorn in a thread of its own, scripted services behind it."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
import structlog

from rag_service.observability.logs import configure_logging
from rag_service.settings import Settings
from tests.serving import serving
from tests.unit.api.samples import Script, application_over

Serve = Callable[..., httpx.Client]


@contextmanager
def running(script: Script, settings: Settings) -> Iterator[httpx.Client]:
    application = application_over(script.services(settings))
    with serving(application, grace_seconds=2) as client:
        yield client


@pytest.fixture
def serve() -> Iterator[Serve]:
    with ExitStack() as stack:

        def start(script: Script | None = None, **settings: Any) -> httpx.Client:
            return stack.enter_context(running(script or Script(), Settings(**settings)))

        yield start


@dataclass(frozen=True)
class Shared:
    """A server for tests that leave no trace."""

    client: httpx.Client
    script: Script


@pytest.fixture(scope="module")
def shared() -> Iterator[Shared]:
    script = Script()
    with running(script, Settings()) as client:
        yield Shared(client, script)


@pytest.fixture(autouse=True)
def log_lines() -> Iterator[Callable[[], list[dict[str, Any]]]]:
    """Everything logged, at DEBUG and in JSON, as the service logs it."""
    root = logging.getLogger()
    before, level = root.handlers, root.level
    configure_logging(Settings(log_level="DEBUG"))
    captured = io.StringIO()
    handler = root.handlers[0]
    assert isinstance(handler, logging.StreamHandler)
    handler.setStream(captured)

    def read() -> list[dict[str, Any]]:
        return [json.loads(line) for line in captured.getvalue().splitlines()]

    yield read
    root.handlers = before
    root.setLevel(level)
    logging.getLogger("rag_service").setLevel(logging.NOTSET)
    structlog.reset_defaults()


def read_sse(lines: Iterator[str]) -> Iterator[tuple[str, Any]]:
    """(event, data) of a stream of server-sent events; comments as ("comment", text)."""
    name, data = "message", []
    for line in lines:
        if line.startswith(":"):
            yield "comment", line[1:].strip()
        elif line.startswith("event:"):
            name = line.removeprefix("event:").strip()
        elif line.startswith("data:"):
            data.append(line.removeprefix("data:").strip())
        elif not line and data:
            yield name, json.loads("\n".join(data))
            name, data = "message", []


def read_ndjson(lines: Iterator[str]) -> Iterator[tuple[str, Any]]:
    for line in lines:
        event = json.loads(line)
        yield event["event"], event.get("data")

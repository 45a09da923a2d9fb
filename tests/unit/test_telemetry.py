"""Log lines: what they hold, and what they never hold."""

from __future__ import annotations

import asyncio
import io
import json
import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import structlog

from rag_service.errors import ModelError
from rag_service.observability.logs import configure_logging, correlation, current_correlation_id
from rag_service.settings import Settings

Capture = Callable[..., io.StringIO]


@pytest.fixture
def capture() -> Iterator[Capture]:
    root = logging.getLogger()
    before, level = root.handlers, root.level

    def start(**settings: Any) -> io.StringIO:
        configure_logging(Settings(**settings))
        stream = io.StringIO()
        handler = root.handlers[0]
        assert isinstance(handler, logging.StreamHandler) and len(root.handlers) == 1
        handler.setStream(stream)
        return stream

    yield start
    root.handlers = before
    root.setLevel(level)
    logging.getLogger("rag_service").setLevel(logging.NOTSET)
    structlog.reset_defaults()


def lines(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_console_shows_the_services_own_errors_without_traceback(capture: Capture) -> None:
    for level, shown in (("INFO", False), ("DEBUG", True)):
        stream = capture(log_format="console", log_level=level)
        try:
            raise ModelError("The language model cannot be reached.")
        except ModelError as error:
            structlog.get_logger("rag_service.query").warning("answer_degraded", exc_info=error)
        assert "The language model cannot be reached." in stream.getvalue()
        assert ("Traceback" in stream.getvalue()) is shown


def test_line_has_its_action_fields_and_correlation_id(capture: Capture) -> None:
    stream = capture()
    with correlation("abc"):
        structlog.get_logger("rag_service.query").info("query_done", top_k=5, latency_ms=1.5)
    (line,) = lines(stream)
    assert line.pop("timestamp").endswith("Z")
    assert line == {
        "action": "query_done",
        "level": "info",
        "logger": "rag_service.query",
        "correlation_id": "abc",
        "top_k": 5,
        "latency_ms": 1.5,
    }


def test_level_applies_to_us_and_libraries_are_heard_from_warning_on(capture: Capture) -> None:
    stream = capture(log_level="DEBUG")
    structlog.get_logger("rag_service.x").debug("ours")
    for name in ("httpx", "some.library", "uvicorn.error"):
        logging.getLogger(name).info("theirs")
        logging.getLogger(name).warning("theirs: %s", name)
    logging.getLogger("uvicorn.access").error("never")
    assert [(line["action"], line.get("message")) for line in lines(stream)] == [
        ("ours", None),
        ("library", "theirs: httpx"),
        ("library", "theirs: some.library"),
        ("library", "theirs: uvicorn.error"),
    ]


def test_debug_is_off_by_default(capture: Capture) -> None:
    stream = capture()
    structlog.get_logger("rag_service.x").debug("prompt", text="secret question")
    assert stream.getvalue() == ""


def test_higher_level_silences_warnings_of_all(capture: Capture) -> None:
    stream = capture(log_level="ERROR")
    structlog.get_logger("rag_service.x").warning("ours")
    logging.getLogger("library").warning("theirs")
    assert stream.getvalue() == ""


@pytest.mark.parametrize("log_format", ["json", "console"])
def test_secrets_are_hidden_in_fields_texts_and_tracebacks(capture: Capture, log_format: str) -> None:
    stream = capture(log_format=log_format)
    log = structlog.get_logger("rag_service.x")
    log.info("a", password="hunter2", api_key="hunter2", authorization="hunter2", access_token="hunter2")
    log.info("b", url="postgresql://rag:hunter2@db/rag", header="Bearer hunter2hunter2", query="x?api_key=hunter2&y=1")
    logging.getLogger("library").warning("cannot reach postgresql://rag:hunter2@db/rag")
    log.info("d", url="postgresql://rag:p@hunter2@db/rag", other="postgresql://rag@tenant:h@x/hunter2@db/rag")
    try:
        key_in_a_local = "hunter2"
        raise OSError("postgresql://rag:hunter2@db is down" + key_in_a_local[:0])
    except OSError:
        log.exception("c")
    text = stream.getvalue()
    assert "hunter2" not in text
    assert "is down" in text and "Traceback" in text and "postgresql://rag:" in text


def test_token_counts_are_no_secrets(capture: Capture) -> None:
    stream = capture()
    structlog.get_logger("rag_service.x").info("a", prompt_tokens=7, completion_tokens=3)
    assert (lines(stream)[0]["prompt_tokens"], lines(stream)[0]["completion_tokens"]) == (7, 3)


def test_console_shows_the_action(capture: Capture) -> None:
    stream = capture(log_format="console")
    structlog.get_logger("rag_service.x").info("query_done", top_k=5)
    assert "query_done" in stream.getvalue() and "top_k" in stream.getvalue()


def test_configuring_twice_writes_once(capture: Capture) -> None:
    capture()
    stream = capture()
    structlog.get_logger("rag_service.x").info("a")
    assert len(lines(stream)) == 1


async def test_correlation_reaches_tasks_and_ends_with_its_block() -> None:
    async def read() -> str | None:
        return current_correlation_id()

    with correlation("outer"):
        with correlation("inner"):
            task = asyncio.create_task(read())
        assert current_correlation_id() == "outer"
    assert await task == "inner"
    assert current_correlation_id() is None

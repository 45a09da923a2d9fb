"""Logs: one line an event, with a stable `action` and named fields.

Our own modules log through structlog: `structlog.get_logger(__name__).info("http_request", status=200)` gives the
action `http_request`. Libraries log through the standard library; both end in one handler on standard error. The
correlation id of the request is bound to the context and stands in every line written on its behalf.

Serve with `log_config=None, access_log=False`, so that uvicorn leaves this as it is: the API writes
a line for each request itself.
"""

from __future__ import annotations

import json
import logging
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import msgspec
import structlog
from structlog.contextvars import bound_contextvars, get_contextvars
from structlog.typing import EventDict, Processor, WrappedLogger

from rag_service.errors import ModelBusyError, RagError, RateLimitedError
from rag_service.settings import Settings

_CORRELATION_ID = "correlation_id"
_HIDDEN = "[hidden]"
_SECRET_NAME = re.compile(r"(?i)passw|secret|authorization|cookie|credential|api_?key|token$")
_SECRET_IN_TEXT = (
    # The password in a URL. It, and the user's name, may hold an @ itself: the last one ends it.
    (re.compile(r"\b(\w++://[^\s:/]{0,200}):[^\s\"'<>]{1,500}@"), rf"\1:{_HIDDEN}@"),
    (re.compile(r"(?i)\b(bearer|basic)\s+[\w.~+/=-]{6,}"), rf"\1 {_HIDDEN}"),
    (re.compile(r"(?i)\b(password|api[_-]?key|secret)=[^\s&;,]+"), rf"\1={_HIDDEN}"),
)
_SUSPECT = re.compile(r"[\s=]|://")  # stands in every text with a secret, and in few names and ids
# Chatty at INFO about every call they make.
_QUIET = ("httpx", "httpcore", "llama_index", "sentence_transformers", "procrastinate", "psycopg.pool")


def configure_logging(settings: Settings) -> None:
    """Send all logs of this process to standard error, as settings say. May be called again.

    Our own lines appear from `RAG_LOG_LEVEL` on, those of libraries from WARNING on.
    """
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.StackInfoRenderer(),
    ]
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *shared,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[*_renderers(settings)],
        )
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(
        logging.WARNING if settings.observability.log_level in {"DEBUG", "INFO"} else settings.observability.log_level
    )
    logging.getLogger("rag_service").setLevel(settings.observability.log_level)
    for name in _QUIET:
        logging.getLogger(name).setLevel(logging.WARNING)
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access"):
        logger = logging.getLogger(name)
        logger.handlers = []
        logger.propagate = name != "uvicorn.access"


def _renderers(settings: Settings) -> Iterator[Processor]:
    yield _expected_in_one_line
    if settings.observability.log_format == "json":
        yield _name_action
    elif settings.observability.log_level != "DEBUG":
        yield _without_traceback
    yield structlog.stdlib.ProcessorFormatter.remove_processors_meta
    yield structlog.processors.format_exc_info  # plain: tracebacks with locals would show documents and keys
    yield hide_secrets
    if settings.observability.log_format == "json":
        yield structlog.processors.JSONRenderer(_write_json, ensure_ascii=False, default=str)
    else:
        yield structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)


def _expected_in_one_line(logger: WrappedLogger, method: str, event: EventDict) -> EventDict:
    """Refusals that are part of normal work under load in one line, with what a server gave as its reason."""
    error = event.get("exc_info")
    if isinstance(error, (ModelBusyError, RateLimitedError)):
        del event["exc_info"]
        event["reason"] = f"{error.message} ({error.__cause__})" if error.__cause__ else error.message
    return event


def _without_traceback(logger: WrappedLogger, method: str, event: EventDict) -> EventDict:
    """Errors of our own tree in one line: a console is read by people, and the message says what is wrong."""
    error = event.get("exc_info")
    if isinstance(error, RagError):
        del event["exc_info"]
        event["reason"] = error.message
    return event


def _name_action(logger: WrappedLogger, method: str, event: EventDict) -> EventDict:
    """Our events are actions; what libraries write is a message under the action `library`."""
    text = event.pop("event")
    if event.get("_from_structlog"):
        event["action"] = text
    else:
        event["action"] = "library"
        event["message"] = text
    return event


def hide_secrets(logger: WrappedLogger, method: str, event: EventDict) -> EventDict:
    """A structlog processor: hide fields named like secrets, and secrets inside texts."""
    for name, value in event.items():
        if value is not None and _names_secret(name):
            event[name] = _HIDDEN
        elif isinstance(value, str) and _SUSPECT.search(value):
            for pattern, replacement in _SECRET_IN_TEXT:
                value = pattern.sub(replacement, value)
            event[name] = value
    return event


@lru_cache(maxsize=1024)
def _names_secret(field: str) -> bool:
    return _SECRET_NAME.search(field) is not None


def _write_json(event: Any, **options: Any) -> str:
    """As `json.dumps`, in a third of the time where msgspec can; a log line must not fail."""
    try:
        return msgspec.json.encode(event, enc_hook=str).decode()
    except (TypeError, ValueError, OverflowError):  # half a surrogate pair in a file's name, for one
        return json.dumps(event, **options)


@contextmanager
def correlation(correlation_id: str) -> Iterator[None]:
    """Write the id of a request or job into every log line of the block and of tasks started in it."""
    with bound_contextvars(**{_CORRELATION_ID: correlation_id}):
        yield


def current_correlation_id() -> str | None:
    """The id of the request or job that runs, if one does."""
    value = get_contextvars().get(_CORRELATION_ID)
    return None if value is None else str(value)

"""What the error of a model server's client package means, and what of it goes to the log.

Nothing here knows a provider: errors are read by what they carry (a `status_code`, an httpx cause), so that any
client package fits.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import httpx

from rag_service.errors import ModelBusyError, ModelError, ModelOutputError

BUSY_STATUSES = frozenset({429, 503})
SERVER_STATUSES = frozenset({429, 500, 502, 503, 504})
REFUSED_STATUSES = frozenset({401, 402, 403, 407, 502, 504})  # of credentials and gateways, whatever was sent


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
    lost = (ConnectionError, httpx.NetworkError, httpx.ProxyError, httpx.RemoteProtocolError, httpx.ConnectTimeout)
    return any(isinstance(link, lost) for link in _chain(error))


def proxy_in_words(error: BaseException) -> str:
    """Words for the message of a failure: the proxy through which the server was called, if there was one."""
    for link in _chain(error):
        with suppress(RuntimeError):  # httpx's for an error without a request
            request = getattr(link, "request", None)
            if isinstance(request, httpx.Request) and (variable := request.extensions.get("rag_proxy")):
                return f" (called through the proxy that {variable} names; NO_PROXY excepts hosts from it)"
    return ""


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


def seconds_to_wait(error: BaseException) -> int:
    """Whole seconds after which a caller may ask a busy server again."""
    wait = retry_after_of(error)
    return 5 if wait is None else max(1, math.ceil(wait))


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


def is_provider_failure(error: BaseException) -> bool:
    """Whether an error of ours means that the server is down, hung or broken.

    A server that is busy or refuses a request is alive, and says by itself when to come again.
    """
    if not isinstance(error, ModelError) or isinstance(error, ModelBusyError | ModelOutputError):
        return False
    status = status_of(error)
    return status is None or (status >= 500 and status not in BUSY_STATUSES)


MIN_ECHO = 12  # characters; shorter runs in common are words of any error message
MAX_TEXT = 500  # characters of a server's message that are kept
_HIDDEN = "[…]"


class ProviderError(Exception):
    """A client package's error as it goes to the log: its kind, its status, its text without echoes."""

    def __init__(self, error: BaseException, sent: Sequence[str]):
        self.said = hide_echoes(str(error)[:MAX_TEXT], sent)
        super().__init__(f"{type(error).__name__}: {self.said}")
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

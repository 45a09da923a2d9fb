"""Serves the application with uvicorn."""

from __future__ import annotations

import asyncio
import gc
import socket
from collections.abc import Callable

import structlog
import uvicorn
from litestar import Litestar

from rag_service.app import create_app
from rag_service.errors import ConfigurationError
from rag_service.settings import Settings
from rag_service.text.tokens import count_tokens
from rag_service.tracing import configure_tracing

log = structlog.get_logger(__name__)

_SETTLED_SECONDS = 2.0  # after the start, when nobody waits for it any more


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, on_started: Callable[[], None]):
        super().__init__(config)
        self._on_started = on_started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        self._on_started()
        gc.enable()
        asyncio.get_running_loop().call_later(_SETTLED_SECONDS, _keep_what_is_loaded)


def _keep_what_is_loaded() -> None:
    """Load the tokenizer, and leave all that has been loaded by now out of garbage collection.

    The tokenizer takes a quarter of a second, for which the first question need not wait. What is loaded stays
    for good; looking through its half a million objects again and again would hold all streams for a tenth of a
    second each time.
    """
    count_tokens("")
    gc.collect()
    gc.freeze()


async def serve_app(settings: Settings) -> None:
    """Serve until a signal ends it: no new requests then, and RAG_SHUTDOWN_SECONDS for those that run."""
    end_tracing = configure_tracing()
    try:
        await serve_application(create_app(settings), settings, announce=_log_address)
    finally:
        # What is left is sent, which takes the time it takes. Not in a thread: nothing else runs by now, and
        # the signal that ended the server, raised again by uvicorn, cancels the next thing that is awaited.
        end_tracing()


def _log_address(address: str) -> None:
    """Where the page and the API are: those who started the service have no other way to know."""
    log.info("serving", address=address)


async def serve_application(
    app: Litestar, settings: Settings, *, announce: Callable[[str], None] | None = None
) -> None:
    """Serve a given application; `announce` is told the address once requests are answered there.

    Raises:
        ConfigurationError: the address cannot be bound.
    """
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    # Named as TCP: asyncio turns Nagle's algorithm off for such sockets only, and with it a reply in two
    # packets (head, body) waits 40 ms for the client's delayed acknowledgement.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((settings.host, settings.port))
    except OSError as error:
        listener.close()
        raise ConfigurationError(
            f"Cannot listen on {settings.host}:{settings.port}: {error.strerror}. Set RAG_PORT to a free port.",
            field="RAG_PORT",
        ) from error
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=settings.shutdown_seconds,
        lifespan="on",
    )
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    address = f"http://{host}:{listener.getsockname()[1]}"

    def on_started() -> None:
        if announce is not None:
            announce(address)

    try:
        await _Server(config, on_started).serve(sockets=[listener])
    finally:
        listener.close()  # which uvicorn does only where nothing cancels it

"""Serves the application with uvicorn."""

from __future__ import annotations

import asyncio
import gc
import socket
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import structlog
import uvicorn
from litestar import Litestar

from rag_service.api.application import metrics_of
from rag_service.api.http.bodies import SILENCE_SECONDS
from rag_service.api.http.connections import Connections
from rag_service.app import create_app
from rag_service.cli.asking import forget_server, note_server
from rag_service.cli.running import CLOSING_SECONDS, end_within
from rag_service.errors import ConfigurationError, RagError
from rag_service.language.words import count_tokens
from rag_service.observability.tracing import configure_tracing
from rag_service.settings import Settings

log = structlog.get_logger(__name__)

_SETTLED_SECONDS = 2.0  # after the start
_TICKS = 10  # of uvicorn's, a second
# After which a thread that computes lets the event loop go on. With Python's 0.005, each step of the loop beside two
# such threads waited 4 to 11 ms, with this one 1.6 to 2.7; three took no more processor time (four rounds).
_SWITCH_SECONDS = 0.001
# New objects after which garbage is collected. Python's 700 cost searches and answers 2 to 7 % of their processor time
# (four runs with the questions of `evals.benchmarks answer`); 50,000 gain no more.
_NEW_OBJECTS = 10_000


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, on_started: Callable[[], None], connections: Connections):
        super().__init__(config)
        self._on_started = on_started
        self._connections = connections

    async def on_tick(self, counter: int) -> bool:
        if counter % _TICKS == 0:
            self._connections.tick()
        return await super().on_tick(counter)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if not self.should_exit:
            end_within((self.config.timeout_graceful_shutdown or 0) + CLOSING_SECONDS)
        super().handle_exit(sig, frame)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        sys.setswitchinterval(_SWITCH_SECONDS)
        self._on_started()
        gc.enable()
        asyncio.get_running_loop().call_later(_SETTLED_SECONDS, _keep_what_is_loaded)


def _keep_what_is_loaded() -> None:
    """Load the tokenizer (0.25 s, before the first question) and exclude everything loaded from garbage collection.

    Collecting its half a million objects would stop all streams for 0.1 s each time.
    """
    count_tokens("")
    gc.collect()
    gc.freeze()
    gc.set_threshold(_NEW_OBJECTS, *gc.get_threshold()[1:])


async def serve_app(settings: Settings) -> None:
    """Serve until a signal arrives; running requests then have RAG_SHUTDOWN_SECONDS to finish."""
    end_tracing = configure_tracing()
    try:
        await serve_application(
            create_app(settings), settings, announce=lambda address: log.info("serving", address=address)
        )
    finally:
        # Sends the remaining spans. Not in a thread: the signal, raised again by uvicorn, cancels the next await.
        end_tracing()


async def serve_application(
    app: Litestar, settings: Settings, *, announce: Callable[[str], None] = lambda address: None
) -> None:
    """Serve an application; `announce` receives the address once requests are answered there.

    Raises:
        ConfigurationError: the address cannot be bound.
        RagError: the application does not start.
    """
    family = socket.AF_INET6 if ":" in settings.http.host else socket.AF_INET
    # asyncio disables Nagle's algorithm only for sockets with an explicit TCP protocol; otherwise a reply in two
    # packets (head, body) waits 40 ms for the client's delayed acknowledgement.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if hasattr(socket, "TCP_USER_TIMEOUT"):  # Linux; connections inherit it
        # The kernel ends a connection whose client takes nothing. Nobody else does once a reply lies in its buffer.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(SILENCE_SECONDS * 1000))
    try:
        listener.bind((settings.http.host, settings.http.port))
    except OSError as error:
        listener.close()
        raise ConfigurationError(
            f"Cannot listen on {settings.http.host}:{settings.http.port}: {error.strerror}. Set RAG_PORT.",
            field="RAG_PORT",
        ) from error
    refused: list[RagError] = []
    connections = Connections(settings)
    if (metrics := metrics_of(app)) is not None:
        metrics.watch_connections(connections)
    config = uvicorn.Config(
        _noting_refusal(app, refused),
        http=connections.protocol,  # type: ignore[arg-type]  # uvicorn calls it, and asks for a class
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,  # RAG_TRUSTED_PROXIES says whose are believed
        timeout_graceful_shutdown=settings.http.shutdown_seconds,
        lifespan="on",
    )
    host = f"[{settings.http.host}]" if ":" in settings.http.host else settings.http.host
    address = f"http://{host}:{listener.getsockname()[1]}"

    def on_started() -> None:
        note_server(settings, address)
        announce(address)

    try:
        await _Server(config, on_started, connections).serve(sockets=[listener])
    except SystemExit:
        if refused:
            raise refused[0] from None
        raise
    finally:
        forget_server(settings, address)
        listener.close()  # uvicorn does not if it is cancelled


def _noting_refusal(app: Any, refused: list[RagError]) -> Any:
    """The ASGI application; an error of ours that keeps it from starting goes to `refused`, and not to the log."""

    async def noting(scope: Any, receive: Any, send: Any) -> None:
        async def send_on(message: Any) -> None:
            if message["type"] == "lifespan.startup.failed":
                error = sys.exc_info()[1]
                while isinstance(error, BaseExceptionGroup):
                    error = error.exceptions[0]
                if isinstance(error, RagError):
                    refused.append(error)
                    message = {"type": "lifespan.startup.failed", "message": ""}
            await send(message)

        await app(scope, receive, send_on if scope["type"] == "lifespan" else send)

    return noting

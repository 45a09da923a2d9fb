"""Serves the application with uvicorn."""

from __future__ import annotations

import socket
from collections.abc import Callable

import uvicorn
from litestar import Litestar

from rag_service.app import create_app
from rag_service.errors import ConfigurationError
from rag_service.settings import Settings

SHUTDOWN_SECONDS = 20  # running streams may finish within


async def serve_app(settings: Settings) -> None:
    """Serve until a signal ends it."""
    await serve_application(create_app(settings), settings)


async def serve_application(
    app: Litestar, settings: Settings, *, announce: Callable[[str], None] | None = None
) -> None:
    """Serve a given application; `announce` is told the address once the socket is bound.

    Raises:
        ConfigurationError: the address cannot be bound.
    """
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
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
        timeout_graceful_shutdown=SHUTDOWN_SECONDS,
        lifespan="on",
    )
    if announce is not None:
        host = f"[{settings.host}]" if ":" in settings.host else settings.host
        announce(f"http://{host}:{listener.getsockname()[1]}")
    await uvicorn.Server(config).serve(sockets=[listener])

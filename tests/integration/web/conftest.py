"""The page and the API on a real socket, scripted answers behind them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import httpx
import pytest
import uvicorn

from rag_service.api.application import create_litestar
from rag_service.settings import Settings
from rag_service.web.pages import web_routes
from rag_service.web.texts import WebServices
from tests.integration.api.conftest import wait_until
from tests.integration.web.scenes import Scene

ServePage = Callable[..., httpx.Client]


@contextmanager
def running_page(scene: Scene, settings: Settings, *, with_texts: bool = True) -> Iterator[httpx.Client]:
    services = WebServices(read_text=scene.read_text) if with_texts else None
    application = create_litestar(scene.services(settings), more_routes=web_routes(services, settings=settings))
    config = uvicorn.Config(
        application, host="127.0.0.1", port=0, log_config=None, access_log=False, timeout_graceful_shutdown=1
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        wait_until(lambda: server.started)
        port = server.servers[0].sockets[0].getsockname()[1]
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=10, trust_env=False) as client:
            yield client
    finally:
        server.should_exit = True
        thread.join(10)


@pytest.fixture
def serve_page() -> Iterator[ServePage]:
    with ExitStack() as stack:

        def start(scene: Scene | None = None, *, with_texts: bool = True, **settings: Any) -> httpx.Client:
            page = running_page(scene or Scene(), Settings(**settings), with_texts=with_texts)
            return stack.enter_context(page)

        yield start

"""The page and the API on a real socket, scripted answers behind them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import httpx
import pytest

from rag_service.api.application import create_litestar
from rag_service.settings import Settings
from rag_service.web.pages import web_routes
from rag_service.web.texts import WebServices
from tests.integration.web.scenes import Scene
from tests.serving import serving

ServePage = Callable[..., httpx.Client]


@contextmanager
def running_page(scene: Scene, settings: Settings, *, with_texts: bool = True) -> Iterator[httpx.Client]:
    services = WebServices(read_text=scene.read_text) if with_texts else None
    application = create_litestar(scene.services(settings), more_routes=web_routes(services, settings=settings))
    with serving(application, grace_seconds=1) as client:
        yield client


@pytest.fixture
def serve_page() -> Iterator[ServePage]:
    with ExitStack() as stack:

        def start(scene: Scene | None = None, *, with_texts: bool = True, **settings: Any) -> httpx.Client:
            page = running_page(scene or Scene(), Settings(**settings), with_texts=with_texts)
            return stack.enter_context(page)

        yield start

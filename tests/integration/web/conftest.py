"""The page and the API on a real socket, scripted answers behind them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, ExitStack, contextmanager
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from rag_service.api.corpora.document_text import read_document_text
from rag_service.domain import Identity
from rag_service.errors import StoreError
from rag_service.settings import Settings
from rag_service.web.pages import web_routes
from tests.integration.web.scenes import Scene
from tests.serving import serving
from tests.unit.api.samples import application_over

ServePage = Callable[..., httpx.Client]


def _down(identity: Identity, *, limited: bool = False) -> AbstractAsyncContextManager[Any]:
    """A database that is away: answers are given, and not kept."""
    raise StoreError("The database cannot be reached.")


@contextmanager
def running_page(scene: Scene, settings: Settings) -> Iterator[httpx.Client]:
    application = application_over(
        scene.services(settings),
        more_routes=[*web_routes(settings), read_document_text],
        texts=scene.read_text,
        tenancy=SimpleNamespace(transaction=_down),
    )
    with serving(application, grace_seconds=1) as client:
        yield client


@pytest.fixture
def serve_page() -> Iterator[ServePage]:
    with ExitStack() as stack:

        def start(scene: Scene | None = None, **settings: Any) -> httpx.Client:
            return stack.enter_context(running_page(scene or Scene(), Settings(**settings)))

        yield start

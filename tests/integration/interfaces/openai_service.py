"""A service with the OpenAI-compatible API on a real socket, and the official client to it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import Any
from uuid import UUID

import pytest
from openai import OpenAI

from rag_service.api.openai.routes import openai_routes
from rag_service.domain import Identity, Role
from rag_service.settings import Settings
from tests.serving import served
from tests.unit.api.samples import CITATION, DOCUMENT, QUESTION, Script, application_over

ASKED: list[Any] = [{"role": "user", "content": QUESTION}]
PLACE = "production.xlsx, sheet Stocks, cell C12"
SOURCES = f"\n\n[C1] {PLACE}"  # below the answer
OTHER = Identity(user_id=UUID(int=7), role=Role.USER)


class Served:
    """A service and clients to it."""

    def __init__(self, script: Script, url: str):
        self.script = script
        self.url = url
        self.client = OpenAI(base_url=f"{url}/v1", api_key="key", max_retries=0, timeout=60)

    def ask(self, **fields: Any) -> Any:
        return self.client.chat.completions.create(**{"model": "rag-service", "messages": ASKED, **fields})


async def _no_agents(_request: Any, _identity: Identity) -> Sequence[Any]:
    return []


class Serve:
    """Starts services that end with the test."""

    def __init__(self, stack: ExitStack):
        self._stack = stack

    def __call__(
        self, script: Script | None = None, list_models: Any = None, embed: Any = None, **settings: Any
    ) -> Served:
        script = script or Script()
        services = script.services(Settings(**settings))
        state = {"list_models": list_models or _no_agents, "embed": embed}
        application = application_over(services, more_routes=openai_routes(), **state)
        opened = Served(script, self._stack.enter_context(served(application)))
        self._stack.callback(opened.client.close)
        return opened


@pytest.fixture
def serve() -> Iterator[Serve]:
    with ExitStack() as stack:
        yield Serve(stack)


@pytest.fixture(scope="module")
def shared() -> Iterator[Served]:
    """A service for tests that leave no trace."""
    with ExitStack() as stack:
        yield Serve(stack)()


def check_citations(citations: Any) -> None:
    """The extension's documented fields, both for a verified and for an unsupported mark."""
    first, second = citations
    assert (first["mark"], first["status"], first["place"]) == (1, "verified", PLACE)
    assert (first["quote"], first["start"], first["end"]) == (CITATION.quote, 106, 117)
    assert first["documentId"] == str(DOCUMENT.id)
    assert (second["mark"], second["status"], second["quote"]) == (7, "not_found", None)

"""What the routes for corpora, documents, agents and people stand on, and who may use them."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from uuid import UUID

from litestar import Request
from litestar.di import NamedDependency
from litestar.handlers import BaseRouteHandler
from litestar.params import SkipValidation

from rag_service.api.services import ServicesDependency
from rag_service.domain import CorpusKind, Identity, Role
from rag_service.errors import PermissionDeniedError
from rag_service.identity import scopes_of
from rag_service.settings import Settings
from rag_service.store.corpora import Corpus
from rag_service.store.documents.originals import OriginalStore
from rag_service.store.people.agents import Agent
from rag_service.store.people.keys import Scope
from rag_service.store.session import Connection

if TYPE_CHECKING:  # these load LlamaIndex, which the routes do not need
    from rag_service.ingest.jobs import Uploads
    from rag_service.query.agents.chat import ChatOutcome, ChatQuery
    from rag_service.query.events import AnswerEvent

REQUIRED_SCOPE = "scope"  # key of a route's `opt`: the scope it needs; without: read for GET, else write
_REMEMBERED_AGENTS = 1000
_REMEMBERED_SECONDS = 600.0
ADMINISTRATORS = {REQUIRED_SCOPE: Scope.ADMIN}  # `opt` of routes that only administrators may use


class AgentMemory:
    """Agents as callers last saw them, for chats while the database is down (requirement C10)."""

    def __init__(self) -> None:
        self._seen: dict[tuple[UUID, UUID], tuple[Agent, float]] = {}

    def keep(self, identity: Identity, agent: Agent) -> None:
        if len(self._seen) >= _REMEMBERED_AGENTS:
            self._seen.clear()
        self._seen[identity.user_id, agent.id] = (agent, time.monotonic())

    def recall(self, identity: Identity, agent_id: UUID) -> Agent | None:
        """The agent, when this very caller could see it in the last ten minutes."""
        agent, at = self._seen.get((identity.user_id, agent_id), (None, 0.0))
        return agent if time.monotonic() - at < _REMEMBERED_SECONDS else None


@dataclass(frozen=True, kw_only=True)
class TenancyServices:
    """Everything that these routes can ask for."""

    settings: Settings
    transaction: Callable[[Identity], AbstractAsyncContextManager[Connection]]  # as an identity
    uploads: Uploads  # takes documents in
    originals: OriginalStore  # gives their bytes back
    fingerprints: Mapping[str, str]  # definitions that corpora may name → what documents ingested now carry
    chat: Callable[[ChatQuery, Identity], tuple[ChatOutcome, AsyncGenerator[AnswerEvent]]]  # `AgentChat.stream`
    agents: AgentMemory = field(default_factory=AgentMemory)
    count_feedback: Callable[[str], None] = lambda thumbs: None  # told "up" or "down" for each feedback that is kept


TenancyDependency = NamedDependency[SkipValidation[TenancyServices]]


async def identify(request: Request[Any, Any, Any], services: ServicesDependency) -> Identity:
    """Who asks, when his credential may do what the route does.

    Raises:
        InputError, AuthenticationError: as the authentication does.
        PermissionDeniedError: role or scope do not suffice.
    """
    identity = await services.authenticate(request.headers)
    check_permission(identity, request.route_handler, request.method)
    return identity


def check_permission(identity: Identity, handler: BaseRouteHandler, method: str) -> None:
    """Refuse what the route's scope does not allow: by its `opt`, else read for GET and write for the rest.

    Raises:
        PermissionDeniedError: says what is missing.
    """
    by_method = Scope.READ if method in {"GET", "HEAD"} else Scope.WRITE
    require_scope(identity, Scope(handler.opt.get(REQUIRED_SCOPE, by_method)))


def require_scope(identity: Identity, scope: Scope) -> None:
    """Refuse a credential without a scope, and for `admin` everybody but administrators.

    Raises:
        PermissionDeniedError: says what is missing.
    """
    if scope is Scope.ADMIN and identity.role is not Role.ADMIN:
        raise PermissionDeniedError("Only administrators may do this.")
    if scope not in scopes_of(identity):
        raise PermissionDeniedError(f"The key or token lacks the scope {scope.value!r}.")


def check_corpus_scope(identity: Identity, corpus: Corpus) -> None:
    """Refuse changes to a global corpus by a credential that is not an administrator's in full.

    Raises:
        PermissionDeniedError: likewise.
    """
    if corpus.kind is CorpusKind.GLOBAL:
        require_scope(identity, Scope.ADMIN)

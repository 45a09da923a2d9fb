"""Services and permissions for the routes of users' own objects."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar
from uuid import UUID

from litestar import Request
from litestar.di import NamedDependency
from litestar.params import SkipValidation

from rag_service.answering.drafts.events import AnswerEvent
from rag_service.api.http.ids_only import ONLY_IDS
from rag_service.api.http.services import IDENTITY, IdentityDependency, ServicesDependency
from rag_service.auth.authenticator import Principal, scopes_of
from rag_service.domain import CorpusKind, Identity, Role
from rag_service.errors import PermissionDeniedError
from rag_service.recent import OwnedValues
from rag_service.settings import Settings
from rag_service.store.accounts.agents import Agent
from rag_service.store.accounts.keys import Scope
from rag_service.store.corpora import read_corpus
from rag_service.store.database import Connection
from rag_service.store.documents.originals import Originals

if TYPE_CHECKING:  # these load LlamaIndex, which the routes do not need
    from rag_service.agents.chat import ChatOutcome, ChatQuery
    from rag_service.answering.examples import Example
    from rag_service.answering.record import Difference
    from rag_service.ingest.postponed import PostponedUploads
    from rag_service.ingest.transfer.transfers import Transfers
    from rag_service.ingest.uploads import Uploads

_P = ParamSpec("_P")
_Result = TypeVar("_Result")

READING_METHODS = frozenset({"GET", "HEAD"})
REQUIRED_SCOPE = "scope"  # key of a route's `opt`
_REMEMBERED_AGENTS = 1000
_REMEMBERED_SECONDS = 600.0
_LAST = datetime(9999, 1, 1, tzinfo=UTC)  # later times have no text in some time zones
ADMINISTRATORS = {REQUIRED_SCOPE: Scope.ADMIN}  # `opt` of routes that only administrators may use


class AgentMemory:
    """Agents as callers last saw them, for chats while the database is down."""

    def __init__(self) -> None:
        self._seen: OwnedValues[tuple[UUID, UUID], tuple[Agent, float]] = OwnedValues(_REMEMBERED_AGENTS)

    def keep(self, identity: Identity, agent: Agent) -> None:
        self._seen.keep((identity.user_id, agent.id), (agent, time.monotonic()), owner=identity.user_id)

    def recall(self, identity: Identity, agent_id: UUID) -> Agent | None:
        """The agent, if this caller has seen it in the last ten minutes."""
        agent, at = self._seen.get((identity.user_id, agent_id)) or (None, 0.0)
        return agent if time.monotonic() - at < _REMEMBERED_SECONDS else None


@dataclass(frozen=True, kw_only=True)
class TenancyServices:
    """What the routes over the database use; `app._tenancy_services` makes it."""

    settings: Settings
    transaction: Callable[..., AbstractAsyncContextManager[Connection]]  # `Database.transaction`
    uploads: Uploads
    postponed: PostponedUploads
    originals: Originals
    transfers: Transfers
    fingerprints: Mapping[str, str]  # index name → fingerprint of its current settings
    chat: Callable[[ChatQuery, Identity], tuple[ChatOutcome, AsyncGenerator[AnswerEvent]]]  # `AgentChat.stream`
    replay: Callable[[UUID, Identity], Awaitable[Sequence[Difference]]]  # of an answer's record
    examples: Callable[[Identity, str | None], Awaitable[Sequence[Example]]]  # `Examples.find`
    shipped: frozenset[str] = frozenset()  # names of the documents that come with the service
    agents: AgentMemory = field(default_factory=AgentMemory)
    count_feedback: Callable[[str], None] = lambda thumbs: None  # called with "up" or "down"


@dataclass(frozen=True, kw_only=True)
class Caller:
    """Who asks, and what the routes do for them."""

    tenancy: TenancyServices
    identity: Identity
    only_reads: bool = False  # whether the request is a list or the like, whose statements have a time limit

    @property
    def key(self) -> bytes:
        """Hash of the API key that was sent, if one was."""
        return self.identity.credential if isinstance(self.identity, Principal) else b""

    @property
    def key_id(self) -> UUID | None:
        """Id of the API key that was sent, if one was."""
        return self.identity.key_id if isinstance(self.identity, Principal) else None

    def bound(self, ends_at: datetime | None) -> datetime | None:
        """The end of a key that the caller makes: a key made with a bearer token ends with the token at the latest."""
        token_ends = self.identity.token_ends if isinstance(self.identity, Principal) else None
        if token_ends is None or token_ends >= _LAST.timestamp():
            return ends_at
        return min(ends_at or _LAST, datetime.fromtimestamp(token_ends, UTC))

    @property
    def own(self) -> UUID | None:
        """The caller's id as a filter of lists that administrators see all of; None with the right to see all."""
        return None if acts_as_administrator(self.identity) else self.identity.user_id

    @property
    def role(self) -> Role:
        """As which the caller may act: a key without the scope `admin` makes no administrator."""
        return self.identity.role if self.own is None else Role.USER

    def transaction(self) -> AbstractAsyncContextManager[Connection]:
        return self.tenancy.transaction(self.identity, limited=self.only_reads)

    async def run(
        self, work: Callable[Concatenate[Connection, _P], Awaitable[_Result]], *args: _P.args, **kwargs: _P.kwargs
    ) -> _Result:
        """The result of `work(connection, …)` in a transaction of its own."""
        async with self.transaction() as connection:
            return await work(connection, *args, **kwargs)

    async def check_writable(self, connection: Connection, corpus_id: UUID) -> None:
        """Raise NotFoundError, or PermissionDeniedError if only administrators may change the corpus."""
        if (await read_corpus(connection, corpus_id)).kind is CorpusKind.GLOBAL:
            require_scope(self.identity, Scope.ADMIN)


CallerDependency = NamedDependency[SkipValidation[Caller]]


def make_caller(request: Request[Any, Any, Any], identity: IdentityDependency) -> Caller:
    return Caller(tenancy=request.app.state.tenancy, identity=identity, only_reads=request.method in READING_METHODS)


async def identify(request: Request[Any, Any, Any], services: ServicesDependency) -> Identity:
    """The caller, if their credential allows what the route does."""
    identity = request.scope["state"].get(IDENTITY) or await services.authenticate(request.headers)
    # The scope in the route's `opt`, otherwise read for GET and write for the rest.
    by_method = Scope.READ if request.method in READING_METHODS else Scope.WRITE
    scope = Scope(request.route_handler.opt.get(REQUIRED_SCOPE, by_method))
    require_scope(identity, scope)
    if scope is not Scope.READ and Scope.READ not in scopes_of(identity):
        request.scope["state"][ONLY_IDS] = True
    return identity


def acts_as_administrator(identity: Identity) -> bool:
    """Return whether the user is an administrator, and the credential may be used for that."""
    return identity.role is Role.ADMIN and Scope.ADMIN in scopes_of(identity)


def require_scope(identity: Identity, scope: Scope) -> None:
    """Raise PermissionDeniedError without this scope, or for `admin` unless the user is an administrator."""
    if scope is Scope.ADMIN and identity.role is not Role.ADMIN:
        raise PermissionDeniedError("Only administrators can do this.")
    if scope not in scopes_of(identity):
        raise PermissionDeniedError(f"The key or token lacks the scope {scope.value!r}.")

"""What the routes need. `app._services` makes it, the lifespan there puts it into the application's state."""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from litestar import Request
from litestar.di import NamedDependency, Provide
from litestar.params import SkipValidation

from rag_service.answering.drafts.events import AnswerEvent
from rag_service.domain import Identity
from rag_service.machine import cores
from rag_service.observability.metrics import Channel
from rag_service.settings import Settings
from rag_service.turns import Turns

if TYPE_CHECKING:  # these load LlamaIndex, which the routes do not need
    from rag_service.answering.checking import CheckedSentences, GivenPassage
    from rag_service.answering.tools.toolbox import Tools
    from rag_service.fitting.background import RelevanceReport
    from rag_service.fitting.examination import JudgeReport
    from rag_service.ingest.documents import Ingested
    from rag_service.retrieval.found import Found
    from rag_service.retrieval.question import Question
    from rag_service.store.documents.documents import DocumentInput


_REQUESTS_AT_ONCE = 4  # of one owner


@dataclass(frozen=True, kw_only=True)
class Probe:
    """How one dependency is asked for its state."""

    check: Callable[[], Awaitable[str | None]]  # raises when it is down; a text says how it lags
    required: bool  # without it the service is of no use
    without: str  # what still works, or stops working, while it is down; for people
    missed: bool = True  # whether something does not work, or not as well, while it is down


@dataclass(frozen=True, kw_only=True)
class ApiTurns:
    """Turns between users at what one request can make long, and of the requests of one user between themselves."""

    requests: Turns
    searches: Turns
    ingests: Turns  # of documents that the request waits for
    checks: Turns
    embeddings: Turns
    originals: Turns


def make_turns(*, connections: int | None = None, shared: bool = True) -> ApiTurns:
    """The turns of a process, sized by its processors.

    `connections`: how many may be open; those of one owner take at most half, also where all come from one proxy. None:
    as many as come.
    `shared`: whether there is more than one user.
    """
    return ApiTurns(
        requests=Turns(
            "requests",
            limit=sys.maxsize,  # whoever has sent none waits for nobody
            share=_REQUESTS_AT_ONCE if shared else None,
            per_owner=connections // 2 if shared and connections else None,  # to wait costs less than to be refused
            long=False,
        ),
        searches=Turns("search", limit=4 * cores(), queue=100, shared=shared),
        ingests=Turns("ingest", limit=max(2, cores() // 2), queue=30, shared=shared),
        checks=Turns("check", limit=max(2, cores() // 2), queue=30, shared=shared),
        embeddings=Turns("embeddings", limit=max(2, cores() // 2), queue=30, shared=shared),
        originals=Turns("original", limit=4, queue=60, shared=shared),
    )


class CheckText(Protocol):
    """Checks a text against passages: some sentences at a time, then the whole, such as `TextChecker.check`."""

    def __call__(
        self,
        text: str,
        passages: Sequence[GivenPassage | str],
        identity: Identity,
        *,
        question: str = "",
        language: str | None = None,
    ) -> AsyncGenerator[CheckedSentences]: ...


@dataclass(frozen=True, kw_only=True)
class Services:
    """Everything that a request can ask for."""

    settings: Settings
    answer: Callable[[Question, Channel], AsyncGenerator[AnswerEvent]]  # events of the engine, limited and counted
    search: Callable[[Question], Coroutine[Any, Any, Found]]
    ingest: Callable[[DocumentInput, Identity], Awaitable[Ingested]]  # into the default corpus
    probes: Mapping[str, Probe]  # name of a dependency → how to ask it
    authenticate: Callable[[Mapping[str, str]], Awaitable[Identity]]  # request headers → who it is
    check: CheckText | None = None  # a text that was written elsewhere; None: not here
    tools: Tools | None = None  # over the documents; None: there is no database
    relevance: Callable[[], RelevanceReport] | None = None  # what is known of the embedding model; None: there is none
    judge: Callable[[], JudgeReport | None] = lambda: None  # what is known of the judge; None: there is none
    turns: ApiTurns = field(default_factory=make_turns)


IDENTITY = "identity"  # in the state of a request, of whoever sent it, where that is known
READING = {"scope": "read"}  # `opt` of routes that change nothing although they are posted to


def from_state(name: str) -> Provide:
    """A dependency that is in the application's state."""

    def provide(request: Request[Any, Any, Any]) -> Any:
        return request.app.state[name]

    return Provide(provide, sync_to_thread=False)


ServicesDependency = NamedDependency[SkipValidation[Services]]
IdentityDependency = NamedDependency[SkipValidation[Identity]]

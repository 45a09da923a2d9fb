"""What the routes stand on. `app.py` builds it; tests build it from scripted functions."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from litestar.di import NamedDependency
from litestar.params import SkipValidation

from rag_service.domain import AnswerQuery, Hit, Identity
from rag_service.query.events import AnswerEvent
from rag_service.settings import Settings

if TYPE_CHECKING:  # these load LlamaIndex, which the routes do not need
    from rag_service.ingest.pipeline import DocumentInput, Ingested
    from rag_service.query.retrieval.retriever import Retrieval


@dataclass(frozen=True, kw_only=True)
class Probe:
    """How one dependency is asked for its state."""

    check: Callable[[], Awaitable[str | None]]  # raises when it is down; a text says how it lags
    required: bool  # without it the service is of no use
    without: str  # what still works, or stops working, while it is down; for people
    missed: bool = True  # whether something does not work, or not as well, while it is down


@dataclass(frozen=True, kw_only=True)
class Services:
    """Everything that a request can ask for."""

    settings: Settings
    answer: Callable[[AnswerQuery, Identity], AsyncIterator[AnswerEvent]]  # an async generator function
    search: Callable[[AnswerQuery, Identity], Awaitable[tuple[Retrieval, tuple[Hit, ...]]]]  # hits cut by the query
    ingest: Callable[[DocumentInput, Identity], Awaitable[Ingested]]  # into the default corpus
    probes: Mapping[str, Probe]  # name of a dependency → how to ask it
    authenticate: Callable[[Mapping[str, str]], Awaitable[Identity]]  # request headers → who it is


READING = {"scope": "read"}  # `opt` of routes that change nothing although they are posted to

ServicesDependency = NamedDependency[SkipValidation[Services]]
IdentityDependency = NamedDependency[SkipValidation[Identity]]

"""An answer with everything in it, the events it is made of, and services that play them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any
from uuid import UUID

from litestar import Litestar

from rag_service.answering.drafts.events import AnswerComplete, AnswerDelta, AnswerEvent, CitationChecked, SourcesFound
from rag_service.api.application import create_litestar
from rag_service.api.http.services import Probe, Services
from rag_service.domain import (
    Answer,
    Chunk,
    Citation,
    CitationStatus,
    Confidence,
    Decision,
    DocumentRef,
    Hit,
    Identity,
    Location,
    ModelCall,
    Purpose,
    Role,
    Scores,
    Span,
    TokenCount,
)
from rag_service.observability.metrics import Metrics
from rag_service.retrieval.question import Question
from rag_service.settings import Settings

QUESTION = "¿Cuántas unidades hay en Lyon?"
ADMIN = Identity(user_id=UUID(int=1), role=Role.ADMIN)
DOCUMENT = DocumentRef(
    id=UUID(int=10),
    corpus_id=UUID(int=11),
    title="Production",
    file_name="production.xlsx",
    source="ERP",
    tags=("stock", "lyon"),
    content_hash="ab" * 32,
    updated_at=datetime(2025, 1, 1, tzinfo=UTC),
)
PLACE = Location(sheet="Stocks", cell="C12", row=12)
PLACE_BODY: dict[str, Any] = {  # the same as the API shows it
    "page": None,
    "lastPage": None,
    "headings": [],
    "sheet": "Stocks",
    "cell": "C12",
    "row": 12,
    "paragraph": None,
    "slide": None,
    "part": None,
    "path": None,
    "time": None,
    "boxes": [],
}
HIT = Hit(
    chunk=Chunk(
        id="chunk-1",
        document=DOCUMENT,
        index=3,
        text="Lyon: 4200 unités",
        start=100,
        end=117,
        spans=(Span(start=100, end=117, location=PLACE),),
        metadata={"plant": "Lyon"},
    ),
    scores=Scores(relevance=0.91, dense=0.7, bm25=8.5, coverage=0.6, fused=0.8, rerank=0.95),
)
CITATION = Citation(
    mark=1,
    status=CitationStatus.VERIFIED,
    sentence_start=0,
    sentence_end=27,
    support=0.9,
    chunk_id="chunk-1",
    document_id=DOCUMENT.id,
    content_hash=DOCUMENT.content_hash,
    quote="4200 unités",
    start=106,
    end=117,
    location=PLACE,
)
UNSUPPORTED = Citation(mark=7, status=CitationStatus.NOT_FOUND, sentence_start=0, sentence_end=27, support=0.0)
TEXT = "Hay 4200 unidades [C1] [C7]."
ANSWER = Answer(
    id=UUID(int=99),
    question=QUESTION,
    language="es",
    text=TEXT,
    sources=(HIT,),
    shown=(HIT,),
    citations=(CITATION, UNSUPPORTED),
    decision=Decision.CAN_PROCEED,
    confidence=Confidence(value=0.93, mean_relevance=0.91, mean_rerank=0.95, critical_boost=False),
    tokens=TokenCount(prompt=210, completion=12, estimated=True),
    latency_ms=12.34,
    retrieval_ms=3.0,
    calls=(ModelCall(purpose=Purpose.ANSWER, first_token_ms=4.5, total_ms=8.0),),
    model="extractive",
    unmarked_sentences=0,
)
EVENTS: tuple[AnswerEvent, ...] = (
    SourcesFound(sources=(HIT,), shown=(HIT,), timings_ms={"scope": 1.0}),
    AnswerDelta(text="Hay 4200 unidades "),
    AnswerDelta(text="[C1] [C7].\n"),
    CitationChecked(citation=CITATION),
    CitationChecked(citation=UNSUPPORTED),
    AnswerComplete(answer=ANSWER),
)


@dataclass(frozen=True)
class Pause:
    """Silence of the engine, in seconds."""

    seconds: float


@dataclass
class Script:
    """What the services do, and what they have seen."""

    events: Sequence[AnswerEvent | Pause | Exception] = EVENTS
    endless: bool = False  # repeat the last delta until closed
    search_pause: float = 0
    error: Exception | None = None  # raised by search, ingest and authenticate, as `failing` says
    failing: str = ""
    hits: tuple[Hit, ...] = (HIT,)
    probes: Mapping[str, Probe] = field(default_factory=dict)
    queries: list[Question] = field(default_factory=list)
    identities: list[Identity] = field(default_factory=list)
    documents: list[Any] = field(default_factory=list)
    closed: int = 0  # generators that have run their cleanup to its end
    search_cancelled: bool = False
    cleanup_pause: float = 0.05  # the cleanup awaits: a second cancellation would cut it short

    def services(self, settings: Settings) -> Services:
        return Services(
            settings=settings,
            answer=self.answer,
            search=self.search,
            ingest=self.ingest,
            probes=self.probes,
            authenticate=self.authenticate,
        )

    async def answer(self, query: Question, door: str = "answer") -> AsyncIterator[AnswerEvent]:
        self._saw(query)
        try:
            for step in self.events:
                if isinstance(step, Pause):
                    await asyncio.sleep(step.seconds)
                elif isinstance(step, Exception):
                    raise step
                else:
                    yield step
            while self.endless:
                await asyncio.sleep(0.01)
                yield AnswerDelta(text="more ")
        finally:
            await asyncio.sleep(self.cleanup_pause)
            self.closed += 1

    async def search(self, query: Question) -> Any:
        self._saw(query)
        self._fail("search")
        try:
            await asyncio.sleep(self.search_pause)
        except asyncio.CancelledError:
            self.search_cancelled = True
            raise
        return SimpleNamespace(passages=self.hits, plan=SimpleNamespace(language="es"), timings_ms={})

    async def ingest(self, source: Any, identity: Identity) -> Any:
        from rag_service.ingest.documents import Ingested, Outcome

        self._fail("ingest")
        self.documents.append(source)
        return Ingested(document_id=DOCUMENT.id, outcome=Outcome.ADDED, chunk_count=2)

    async def authenticate(self, headers: Mapping[str, str]) -> Identity:
        self._fail("authenticate")
        return ADMIN

    def _saw(self, query: Question) -> None:
        self.queries.append(query)
        self.identities.append(query.identity)

    def _fail(self, name: str) -> None:
        if self.error is not None and self.failing == name:
            raise self.error


def application_over(
    services: Services, *, more_routes: Sequence[Any] = (), metrics: Metrics | None = None, **state: Any
) -> Litestar:
    """The application with scripted services in its state, and whatever else its routes need there."""
    application = create_litestar(services.settings, more_routes=more_routes, metrics=metrics)
    application.state.update({"services": services, **state})
    return application


def probe(*, required: bool, error: Exception | None = None, check: Callable[[], Any] | None = None) -> Probe:
    async def ask() -> None:
        if error is not None:
            raise error

    return Probe(check=check or ask, required=required, without="Something else still works.")

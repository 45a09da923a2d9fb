"""Documents, and answers to given questions, as the engine would send them: citations come from the real verifier."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from uuid import UUID

from rag_service.domain import (
    Answer,
    AnswerQuery,
    Chunk,
    Confidence,
    Decision,
    DocumentRef,
    Hit,
    Identity,
    Location,
    Scores,
    Span,
    TokenCount,
)
from rag_service.query.events import AnswerComplete, AnswerDelta, AnswerEvent, CitationChecked, SourcesFound
from rag_service.query.verification.verify import verify_answer
from tests.unit.api.samples import Script

CORPUS = UUID(int=11)


def document(number: int, file_name: str, pieces: Sequence[tuple[str, Location | None]], *, relevance: float) -> Hit:
    """A document of one chunk, made of pieces of text with their places."""
    text, spans = "", []
    for piece, place in pieces:
        if place is not None:
            spans.append(Span(start=len(text), end=len(text) + len(piece), location=place))
        text += piece
    reference = DocumentRef(
        id=UUID(int=number),
        corpus_id=CORPUS,
        title=file_name.split(".")[0].replace("-", " ").capitalize(),
        file_name=file_name,
        source=None,
        tags=(),
        content_hash=f"{number:064x}",
        updated_at=datetime(2025, 1, 1, tzinfo=UTC),
    )
    chunk = Chunk(
        id=f"chunk-{number}", document=reference, index=0, text=text, start=0, end=len(text), spans=tuple(spans)
    )
    return Hit(chunk=chunk, scores=Scores(relevance=relevance, dense=0.71, bm25=9.4, coverage=0.6, fused=0.8))


def _sheet() -> list[tuple[str, Location | None]]:
    pieces: list[tuple[str, Location | None]] = [("Stock per plant, end of March\n", None)]
    rows = [("Lyon", "4200", "3800"), ("Lille", "2950", "3100"), ("Nantes", "1780", "1500"), ("Metz", "640", "900")]
    for number, (plant, stock, safety) in enumerate(rows, start=11):
        for column, label, value in zip("ABC", ("Plant", "Stock", "Safety stock"), (plant, stock, safety), strict=True):
            place = Location(sheet="Stocks", cell=f"{column}{number}", row=number)
            pieces += [(("" if column == "A" else " | ") + f"{label}: ", None), (value, place)]
        pieces.append(("\n", None))
    return pieces


SHEET = document(101, "production.xlsx", _sheet(), relevance=0.94)
REPORT = document(
    102,
    "rapport.pdf",
    [
        ("Rapport trimestriel\n\n" + "Les entrepôts ont tenu le rythme prévu. " * 40, Location(page=2)),
        (
            "\n\nLe taux de service du trimestre est de 97,4 %. Il était de 96,1 % un an plus tôt 📈.\n\n",
            Location(page=3),
        ),
        ("Les délais de réception restent stables. " * 60, Location(page=4)),
    ],
    relevance=0.88,
)
GUIDE = document(
    103,
    "guide.md",
    [
        ("# Moving stock\n\nHow to ask for a transfer between plants.\n\n", Location(headings=("Moving stock",))),
        (
            "## Requirements\n\n- A transfer needs the **signature of both plant managers**.\n"
            "- Transfers above 500 units need a booked truck.\n\n| Zone | Price |\n|---|---|\n| 1 | 60 euros |\n",
            Location(headings=("Moving stock", "Requirements")),
        ),
    ],
    relevance=0.79,
)
HOSTILE = document(
    104,
    "<img src=x onerror=alert(1)>.md",
    [("<script>alert('document')</script> The plant in Metz holds 640 units. ![x](http://evil.example/p.png)\n", None)],
    relevance=0.9,
)
DOCUMENTS = {hit.chunk.document.id: hit.chunk.text for hit in (SHEET, REPORT, GUIDE, HOSTILE)}


def events_for(
    text: str, hits: Sequence[Hit], *, language: str = "en", step: int = 12, related: Sequence[Hit] = ()
) -> list[AnswerEvent]:
    """An answer with checked citations, as the engine streams it."""
    checked = verify_answer(text, hits, language=language)
    answer = Answer(
        id=UUID(int=99),
        question="",
        language=language,
        text=text,
        sources=tuple(hits),
        shown=tuple(hits),
        citations=checked.citations,
        decision=Decision.CAN_PROCEED if hits else Decision.OUT_OF_SCOPE,
        confidence=Confidence(
            value=0.87 if hits else 0.0, mean_relevance=0.87 if hits else 0.0, mean_rerank=None, critical_boost=False
        ),
        tokens=TokenCount(prompt=1240, completion=96, estimated=True),
        latency_ms=1834.0,
        model="extractive",
        unmarked_sentences=len(checked.unmarked) if hits else 0,
        flagged=tuple(sorted({*checked.flagged, *checked.unmarked})) if hits else (),
        related=tuple(related),
    )
    deltas = [AnswerDelta(text=text[at : at + step]) for at in range(0, len(text), step)]
    return [
        SourcesFound(sources=tuple(hits), shown=tuple(hits), timings_ms={}),
        *deltas,
        *(CitationChecked(citation=citation) for citation in checked.citations),
        AnswerComplete(answer=answer),
    ]


STOCK_ANSWER = (
    "The plant in Lyon holds a stock of **4200** [C1]. Le taux de service du trimestre est de 97,4 % [C2].\n\n"
    "To move stock between plants:\n\n"
    "- A transfer needs the signature of both plant managers [C3].\n"
    "- Transfers above 500 units need a booked truck [C1].\n"
    "- Every transfer is free of charge for 30 days [C3].\n\n"
    "The board reviews all of this twice a year in Geneva.\n"
)
HOSTILE_ANSWER = (
    "<script>window.hacked = 1</script> The plant in Metz holds 640 units [C1].\n\n"
    "![pixel](http://evil.example/pixel.png) [click me](javascript:window.hacked=1) "
    "<img src=x onerror='window.hacked=1'> <a href='javascript:window.hacked=1'>x</a>\n\n"
    "| <b onmouseover='window.hacked=1'>a</b> | b |\n|---|---|\n| `<svg onload=window.hacked=1>` | **<iframe>** |\n"
)
ANSWERS = {
    "stock": events_for(STOCK_ANSWER, [SHEET, REPORT, GUIDE]),
    "hostile": events_for(HOSTILE_ANSWER, [HOSTILE]),
    "nothing": events_for("Nothing in the documents is relevant to this question.", [], related=[REPORT, HOSTILE]),
    "long": events_for(
        "\n\n".join(
            f"{n}. The plant in Lyon holds a stock of 4200 [C1]. " + "Nothing else is known. " * 12 for n in range(400)
        ),
        [SHEET],
        step=400,
    ),
}  # fmt: skip


@dataclass
class Scene(Script):
    """Answers chosen by a word of the question; "slow" streams slowly, and an exception ends an answer midway."""

    ending: Exception | None = None  # raised after the first deltas
    pause: float = 0  # seconds between events
    reads: list[UUID] = field(default_factory=list)  # documents whose text was asked for

    async def answer(self, query: AnswerQuery, identity: Identity) -> AsyncIterator[AnswerEvent]:
        self._saw(query, identity)
        self._fail("answer")
        name = next((name for name in ANSWERS if name in query.question), "stock")
        pause = max(self.pause, 0.05 if "slow" in query.question else 0)
        for at, event in enumerate(ANSWERS[name]):
            if pause:
                await asyncio.sleep(pause)
            if self.ending is not None and at == 8:
                raise self.ending
            yield _named(event, query.question)

    async def read_text(self, document_id: UUID, identity: Identity) -> str | None:
        self.reads.append(document_id)
        self._fail("read_text")
        return DOCUMENTS.get(document_id)


def _named(event: AnswerEvent, question: str) -> AnswerEvent:
    if isinstance(event, AnswerComplete):
        return AnswerComplete(answer=replace(event.answer, question=question))
    return event

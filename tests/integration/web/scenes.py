"""Documents, and answers to given questions, as the engine would send them: citations come from the real verifier."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from rag_service.answering.decision.conclusion import make_reasons
from rag_service.answering.drafts.doubts import Doubt
from rag_service.answering.drafts.events import (
    AnswerComplete,
    AnswerDelta,
    AnswerEvent,
    CitationChecked,
    SourcesFound,
    StepTaken,
)
from rag_service.answering.prompt.templates import load_prompts
from rag_service.answering.proof.verify import verify_answer
from rag_service.domain import (
    Answer,
    Chunk,
    Citation,
    CitationStatus,
    CitedWords,
    Confidence,
    Decision,
    DocumentRef,
    Hit,
    Identity,
    Location,
    ProofMethod,
    Scores,
    Span,
    Step,
    TokenCount,
    WordsAgainst,
)
from rag_service.retrieval.question import Question
from tests.unit.api.samples import Script

CORPUS = UUID(int=11)


def document(
    number: int,
    file_name: str,
    pieces: Sequence[tuple[str, Location | None]],
    *,
    relevance: float,
    language: str | None = None,
) -> Hit:
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
        language=language,
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
    language="fr",
)
GUIDE = document(
    103,
    "guide.md",
    [
        ("# Moving stock\n\nHow to ask for a transfer between plants.\n\n", Location(headings=("Moving stock",))),
        (
            "## Requirements\n\n- A transfer needs the **signature of both plant managers**.\n"
            "- Transfers above 500 units need a booked truck.\n\n| Zone | Price |\n|---|---|\n| 1 | 60 euros |\n\n"
            "### Who books the truck for a transfer?\n\nThe plant that sends.\n",
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


def events_with_steps() -> list[AnswerEvent]:
    """An answer that a model writes after two calls of tools, the second of which adds a passage."""
    steps = [
        Step(number=1, tool="search", asked="stock in Lyon", found=0, failed=False, milliseconds=4.0),
        Step(number=2, tool="read", asked="guide.md", found=1, failed=False, milliseconds=2.0),
    ]
    first, *between, last = events_for("The plant in Lyon holds a stock of **4200** [C1].", [SHEET, GUIDE])
    assert isinstance(first, SourcesFound) and isinstance(last, AnswerComplete)
    taken = [StepTaken(step=step, shown=(GUIDE,) * step.found, first_mark=2) for step in steps]
    complete = AnswerComplete(answer=replace(last.answer, steps=tuple(steps)))
    return [replace(first, shown=(SHEET,)), *taken, *between, complete]


STOCK_ANSWER = (
    "The plant in Lyon holds a stock of **4200** [C1]. Le taux de service du trimestre est de 97,4 % [C2].\n\n"
    "To move stock between plants:\n\n"
    "- A transfer needs the signature of both plant managers [C3].\n"
    "- Transfers above 500 units need a booked truck [C1].\n"
    "- Parking in the yard costs nothing [C3].\n\n"
    "The board reviews all of this twice a year in Geneva.\n"
)
KINDS_ANSWER = (
    "Lyon holds 4200 units [C1]. Service improved over the year [C2]. Lyon and Lille hold 7150 units [C1].\n\n"
    "Both plant managers have to sign [C3]. Transfers above 600 units need a truck [C3]. Metz is small [C2].\n\n"
    "Transfers are free [C3].\n"
)


def events_of_all_kinds() -> list[AnswerEvent]:
    """An answer with one citation of each kind, as the engine streams it with a judge."""
    quoted = {
        "Lyon holds": (1, SHEET, "4200"),
        "Service improved": (2, REPORT, "Le taux de service du trimestre est de 97,4 %."),
        "Lyon and Lille": (1, SHEET, "4200"),
        "Both plant": (3, GUIDE, "signature of both plant managers"),
        "Transfers above": (3, GUIDE, "Transfers above 500 units need a booked truck"),
        "Metz is": (2, SHEET, "640"),
        "Transfers are": (3, None, ""),
    }
    verified, unchecked = CitationStatus.VERIFIED, CitationStatus.UNCHECKED
    proofs: list[dict[str, Any]] = [
        {"status": verified, "method": ProofMethod.QUOTE},
        {"status": verified, "method": ProofMethod.JUDGE, "judge": "llama3.2"},
        {"status": verified, "method": ProofMethod.COMPUTED, "formula": "4200 + 2950 = 7150"},
        {"status": unchecked},
        {"status": CitationStatus.CONTRADICTED, "against": WordsAgainst(title="Guide", quote="500 units")},
        {"status": CitationStatus.MISATTRIBUTED},
        {"status": CitationStatus.NOT_FOUND},
    ]
    citations = []
    for (words, (mark, hit, quote)), proof in zip(quoted.items(), proofs, strict=True):
        begin = KINDS_ANSWER.index(words)
        sentence = {"sentence_start": begin, "sentence_end": KINDS_ANSWER.index("]", begin) + 1}
        place: dict[str, Any] = {}
        if hit is not None:
            start = hit.chunk.text.index(quote)
            span = next((s for s in hit.chunk.spans if s.start <= start < s.end), None)
            place = {
                "chunk_id": hit.chunk.id,
                "document_id": hit.chunk.document.id,
                "content_hash": hit.chunk.document.content_hash,
                "quote": quote,
                "start": start,
                "end": start + len(quote),
                "location": span and span.location,
            }
        citations.append(Citation(mark=mark, support=0.9, **sentence, **place, **proof))
    by_words = dict(zip(quoted, citations, strict=True))
    truck = by_words["Transfers above"]
    both = CitedWords(quote=truck.quote or "", start=truck.start or 0, end=truck.end or 0, location=truck.location)
    by_words["Both plant"] = replace(by_words["Both plant"], evidence=(both,))
    citations = list(by_words.values())
    complete = events_for(KINDS_ANSWER, [SHEET, REPORT, GUIDE])
    before = [event for event in complete if not isinstance(event, CitationChecked | AnswerComplete)]
    judged = [replace(citation, status=unchecked, method=None, judge=None) for citation in citations if citation.judge]
    last = complete[-1]
    assert isinstance(last, AnswerComplete)
    flagged = tuple((c.sentence_start, c.sentence_end) for c in citations if c.status is not verified)
    reasons = make_reasons([Doubt.CONTRADICTED, Doubt.UNPROVED], load_prompts().messages, "en")
    answer = replace(
        last.answer, citations=tuple(citations), flagged=flagged, decision=Decision.UNCERTAIN, reasons=reasons
    )
    checked = [CitationChecked(citation=citation) for citation in (*judged, *citations)]
    return [*before, *checked, AnswerComplete(answer=answer)]


def events_with_a_wrong_figure() -> list[AnswerEvent]:
    """An answer of two paragraphs, of which one has a figure that no passage has."""
    text = (
        "Both plant managers have to sign [C1].\n\nTransfers above 730 units need a truck [C1]. It is booked first.\n"
    )
    *events, last = events_for(text, [GUIDE])
    assert isinstance(last, AnswerComplete)
    reasons = make_reasons([Doubt.UNPROVED], load_prompts().messages, "en")
    return [*events, AnswerComplete(answer=replace(last.answer, decision=Decision.UNCERTAIN, reasons=reasons))]


STOPPED = (  # as prompts/messages.yaml has it
    "The answer ends here: the language model reached its length limit, only repeated itself or was stopped by a "
    "filter."
)


def events_with_notes() -> list[AnswerEvent]:
    """An answer with sentences of the service, which it asks no proof of, and one that only sounds like them."""
    feigned = "Searched: parking is free."
    text = (
        "The plant in Lyon holds a stock of 4200 [C1]. [A sentence was left out because no document supports it.]\n\n"
        f"Le taux de service du trimestre est de 97,4 % [C2].\n\n{feigned}\n\n"
        f"{STOPPED}\n"
    )
    *events, last = events_for(text, [SHEET, REPORT])
    assert isinstance(last, AnswerComplete)
    start = text.index(feigned)
    return [*events, AnswerComplete(answer=replace(last.answer, flagged=((start, start + len(feigned)),)))]


HOSTILE_ANSWER = (
    "<script>window.hacked = 1</script> The plant in Metz holds 640 units [C1].\n\n"
    "![pixel](http://evil.example/pixel.png) [click me](javascript:window.hacked=1) "
    "<img src=x onerror='window.hacked=1'> <a href='javascript:window.hacked=1'>x</a>\n\n"
    "| <b onmouseover='window.hacked=1'>a</b> | b |\n|---|---|\n| `<svg onload=window.hacked=1>` | **<iframe>** |\n"
)
ANSWERS = {
    "stock": events_for(STOCK_ANSWER, [SHEET, REPORT, GUIDE]),
    "kinds": events_of_all_kinds(),
    "steps": events_with_steps(),
    "wrong figure": events_with_a_wrong_figure(),
    "hostile": events_for(HOSTILE_ANSWER, [HOSTILE]),
    "notes": events_with_notes(),
    "nothing": events_for("Nothing in the documents is relevant to this question.", [], related=[REPORT, HOSTILE]),
    "long": events_for(
        "\n\n".join(
            f"{n}. The plant in Lyon holds a stock of 4200 [C1]. " + "Nothing else is known. " * 12 for n in range(400)
        ),
        [SHEET],
        step=400,
    ),
}  # fmt: skip

FIRST_DELTAS = 8  # events of an answer that begins, before its citations are checked


@dataclass
class Scene(Script):
    """Answers chosen by a word of the question; "slow" streams slowly, and an exception ends an answer midway."""

    ending: Exception | None = None  # raised after the first deltas
    pause: float = 0  # seconds between events
    held: bool = False  # nothing comes after the first deltas
    reads: list[UUID] = field(default_factory=list)  # documents whose text was asked for

    async def answer(self, query: Question, door: str = "answer") -> AsyncIterator[AnswerEvent]:
        self._saw(query)
        self._fail("answer")
        name = next((name for name in ANSWERS if name in query.text), "stock")
        pause = max(self.pause, 0.05 if "slow" in query.text else 0)
        for at, event in enumerate(ANSWERS[name]):
            if pause:
                await asyncio.sleep(pause)
            if at == FIRST_DELTAS and self.held:
                await asyncio.Event().wait()
            if at == FIRST_DELTAS and self.ending is not None:
                raise self.ending
            yield _named(event, query.text)

    async def read_text(self, document_id: UUID, start: int, end: int, identity: Identity) -> tuple[str, int] | None:
        self.reads.append(document_id)
        self._fail("read_text")
        text = DOCUMENTS.get(document_id)
        return None if text is None else (text[start:end], len(text))


def _named(event: AnswerEvent, question: str) -> AnswerEvent:
    if isinstance(event, AnswerComplete):
        return AnswerComplete(answer=replace(event.answer, question=question))
    return event

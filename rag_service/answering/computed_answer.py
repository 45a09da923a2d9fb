"""An answer computed from tables as a checked answer: its marks, and a citation for the cells behind each.

Nothing has to be checked against passages: the value was computed from the stored cells, and the citation says how.
"""

from __future__ import annotations

from collections.abc import Sequence

from rag_service.answering.checked_answer import CheckedAnswer
from rag_service.answering.guards.output_guard import OutputGuard, guard_text
from rag_service.domain import Citation, CitationStatus, Hit, ProofMethod
from rag_service.tables.asking.answers import ComputedAnswer
from rag_service.tables.sentences import CitedCells
from rag_service.word_boxes import with_boxes

# Share of certain computed answers that are right; 1.0 on the questions of evals/sets, of which there are too few to
# claim more.
COMPUTED_CONFIDENCE = 0.95


def choose_passages(
    computed: ComputedAnswer, sources: Sequence[Hit], found: Sequence[Hit], *, limit: int
) -> tuple[Hit, ...]:
    """The passages of the answer, best first: of the documents whose cells are cited; others if nothing is cited."""
    wanted = {cells.document_id for cells in computed.quotes}
    chosen = {hit.chunk.id: hit for hit in (*sources, *found) if hit.chunk.document.id in wanted}
    return tuple(chosen.values())[:limit] or tuple(sources or found)[:limit]


def check_computed(computed: ComputedAnswer, shown: Sequence[Hit], *, language: str) -> CheckedAnswer:
    """Return the text of a computed answer with its citations; `shown` are the passages, [C1] first.

    Cells, headings, sentences and names come from documents: they pass the guard that a model's text passes.
    """
    pieces: list[str] = []
    citations: list[Citation] = []
    length = 0
    for sentence in computed.wording.sentences:
        start = length + bool(pieces)
        text, cited = _write(sentence, shown)
        text = guard_text(OutputGuard(shown, language=language), text)
        pieces.append(text)
        length = start + len(text)
        citations += [_cite(cells, computed.quotes[cells], shown, (start, length)) for cells in cited]
    return CheckedAnswer(
        text="\n".join(pieces),
        citations=tuple(citations),
        unmarked=(),
        flagged=(),
        claims=(),
        withheld=0,
    )


def _write(sentence: Sequence[str | CitedCells], shown: Sequence[Hit]) -> tuple[str, list[CitedCells]]:
    cited = [part for part in sentence if isinstance(part, CitedCells)]
    text = "".join(part if isinstance(part, str) else f" [C{_mark(part, shown)[0]}]" for part in sentence)
    return text + ".", cited


def _mark(cells: CitedCells, shown: Sequence[Hit]) -> tuple[int, Hit | None]:
    """Return the number of the passage that holds the cells, or else of one of their document."""
    same = [(mark, hit) for mark, hit in enumerate(shown, start=1) if hit.chunk.document.id == cells.document_id]
    for mark, hit in same:
        if _holds(hit, cells):
            return mark, hit
    return same[0] if same else (1, None)


def _holds(hit: Hit, cells: CitedCells) -> bool:
    return cells.start is not None and hit.chunk.start <= cells.start < hit.chunk.end


def _cite(cells: CitedCells, quote: str, shown: Sequence[Hit], sentence: tuple[int, int]) -> Citation:
    number, hit = _mark(cells, shown)
    is_here = hit is not None and _holds(hit, cells)
    location = cells.location
    if hit is not None and is_here and cells.start is not None and cells.end is not None:
        location = with_boxes(location, hit.chunk.spans, cells.start, cells.end)
    return Citation(
        mark=number,
        status=CitationStatus.VERIFIED,
        method=ProofMethod.COMPUTED if cells.formula else ProofMethod.QUOTE,
        formula=cells.formula or None,
        sentence_start=sentence[0],
        sentence_end=sentence[1],
        support=1.0,
        chunk_id=hit.chunk.id if hit is not None and is_here else None,
        document_id=cells.document_id,
        content_hash=None if hit is None else hit.chunk.document.content_hash,
        quote=quote or None,
        start=cells.start,
        end=cells.end,
        location=location,
    )

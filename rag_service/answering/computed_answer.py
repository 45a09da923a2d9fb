"""An answer computed from tables as a checked answer: its marks, and a citation for the cells behind each.

Nothing has to be checked against passages: the value was computed from the stored cells, and the citation says how.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import structlog
from llama_index.core.base.llms.types import ChatMessage, MessageRole

from rag_service.answering.checked_answer import CheckedAnswer
from rag_service.domain import Citation, CitationStatus, Hit, ProofMethod
from rag_service.errors import ModelError
from rag_service.models.llm.model import ChatModel
from rag_service.tables.asking.answers import ComputedAnswer
from rag_service.tables.asking.proposals import NO_OPERATION, Ask
from rag_service.tables.sentences import CitedCells

log = structlog.get_logger(__name__)

_OPERATION_TOKENS = 400  # of a proposed operation

# Share of certain computed answers that are right; 1.0 on the questions of evals/sets, of which there are too few to
# claim more.
COMPUTED_CONFIDENCE = 0.95


def ask_for_operations(chat: ChatModel) -> Ask:
    """Asks a model that can follow a schema for its proposals. A model that fails proposes nothing."""

    async def ask(messages: Sequence[tuple[str, str]], schema: Mapping[str, Any]) -> str:
        try:
            return await chat.complete_json(
                [ChatMessage(role=MessageRole(role), content=content) for role, content in messages],
                schema,
                max_tokens=_OPERATION_TOKENS,
            )
        except ModelError as error:
            log.warning("no_operation_proposed", model=chat.model_name, reason=error.message)
            return json.dumps(NO_OPERATION)

    return ask


def choose_passages(
    computed: ComputedAnswer, sources: Sequence[Hit], found: Sequence[Hit], *, limit: int
) -> tuple[Hit, ...]:
    """The passages of the answer, best first: of the documents whose cells are cited; others if nothing is cited."""
    wanted = {cells.document_id for cells in computed.quotes}
    chosen = {hit.chunk.id: hit for hit in (*sources, *found) if hit.chunk.document.id in wanted}
    return tuple(chosen.values())[:limit] or tuple(sources or found)[:limit]


def check_computed(computed: ComputedAnswer, shown: Sequence[Hit]) -> CheckedAnswer:
    """The text of a computed answer with its citations; `shown` are the passages, [C1] first."""
    pieces: list[str] = []
    citations: list[Citation] = []
    length = 0
    for sentence in computed.computed.sentences:
        start = length + bool(pieces)
        text, cited = _write(sentence, shown)
        pieces.append(text)
        length = start + len(text)
        citations += [_cite(cells, computed.quotes[cells], shown, (start, length)) for cells in cited]
    return CheckedAnswer(
        text="\n".join(pieces),
        citations=tuple(citations),
        unmarked=(),
        flagged=(),
        claims=(),
        unprovable=(),
        withheld=0,
    )


def _write(sentence: Sequence[str | CitedCells], shown: Sequence[Hit]) -> tuple[str, list[CitedCells]]:
    cited = [part for part in sentence if isinstance(part, CitedCells)]
    text = "".join(part if isinstance(part, str) else f" [C{_mark(part, shown)[0]}]" for part in sentence)
    return text + ".", cited


def _mark(cells: CitedCells, shown: Sequence[Hit]) -> tuple[int, Hit | None]:
    """The number of the passage that holds the cells, or else of one of their document."""
    same = [(mark, hit) for mark, hit in enumerate(shown, start=1) if hit.chunk.document.id == cells.document_id]
    for mark, hit in same:
        if _holds(hit, cells):
            return mark, hit
    return same[0] if same else (1, None)


def _holds(hit: Hit, cells: CitedCells) -> bool:
    return cells.start is not None and hit.chunk.start <= cells.start < hit.chunk.end


def _cite(cells: CitedCells, quote: str, shown: Sequence[Hit], sentence: tuple[int, int]) -> Citation:
    mark, hit = _mark(cells, shown)
    return Citation(
        mark=mark,
        status=CitationStatus.VERIFIED,
        method=ProofMethod.COMPUTED if cells.formula else ProofMethod.QUOTE,
        formula=cells.formula or None,
        sentence_start=sentence[0],
        sentence_end=sentence[1],
        support=1.0,
        chunk_id=hit.chunk.id if hit is not None and _holds(hit, cells) else None,
        document_id=cells.document_id,
        content_hash=None if hit is None else hit.chunk.document.content_hash,
        quote=quote or None,
        start=cells.start,
        end=cells.end,
        location=cells.location,
    )

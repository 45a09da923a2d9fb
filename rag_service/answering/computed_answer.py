"""An answer computed from tables as a checked answer: its marks, and a citation for the cells behind each.

Nothing has to be checked against passages: the value was computed from the stored cells, and the citation says how.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

import structlog
from llama_index.core.base.llms.types import ChatMessage, MessageRole

from rag_service.answering.checked_answer import CheckedAnswer
from rag_service.domain import Citation, CitationStatus, Hit, ProofMethod
from rag_service.errors import ModelError
from rag_service.language.languages import language_codes, load_language
from rag_service.language.words import words
from rag_service.models.llm.model import ChatModel
from rag_service.tables.asking.answers import ComputedAnswer
from rag_service.tables.asking.proposing import NO_OPERATION, Ask
from rag_service.tables.asking.question import read_question
from rag_service.tables.sentences import CitedCells
from rag_service.tables.vocabulary import column_word, read_words

log = structlog.get_logger(__name__)

_OPERATION_TOKENS = 400  # of a proposed operation

_COLUMNS = re.compile(r"\S \| \S|\S {2,}\S")  # as readers write the cells of a row

# Share of certain computed answers that are right; 1.0 on the questions of tests/integration/tables, of which there are
# too few to claim more.
COMPUTED_CONFIDENCE = 0.95


def ask_for_operations(chat: ChatModel) -> Ask | None:
    """The model's proposals; None if it cannot follow a schema. A model that fails proposes nothing."""

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

    return ask if chat.structured_output else None


def choose_passages(
    computed: ComputedAnswer, sources: Sequence[Hit], found: Sequence[Hit], *, limit: int
) -> tuple[Hit, ...]:
    """The passages of the answer, best first: of the documents whose cells are cited; others if nothing is cited."""
    wanted = cited_documents(computed)
    chosen = {hit.chunk.id: hit for hit in (*sources, *found) if hit.chunk.document.id in wanted}
    return tuple(chosen.values())[:limit] or tuple(sources or found)[:limit]


def cited_documents(computed: ComputedAnswer) -> set[UUID]:
    return {cells.document_id for cells in computed.quotes}


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
        if hit.chunk.start <= cells.start < hit.chunk.end:
            return mark, hit
    return same[0] if same else (1, None)


def _cite(cells: CitedCells, quote: str, shown: Sequence[Hit], sentence: tuple[int, int]) -> Citation:
    mark, hit = _mark(cells, shown)
    holds = hit is not None and hit.chunk.start <= cells.start < hit.chunk.end
    return Citation(
        mark=mark,
        status=CitationStatus.VERIFIED,
        method=ProofMethod.COMPUTED if cells.formula else ProofMethod.QUOTE,
        formula=cells.formula or None,
        sentence_start=sentence[0],
        sentence_end=sentence[1],
        support=1.0,
        chunk_id=hit.chunk.id if hit is not None and holds else None,
        document_id=cells.document_id,
        content_hash=None if hit is None else hit.chunk.document.content_hash,
        quote=quote,
        start=cells.start,
        end=cells.end,
        location=cells.location,
    )


_CALCULATED = ("sum", "mean", "median", "maximum", "minimum")


def lacks_proof(question: str, citations: Sequence[Citation], language: str) -> bool:
    """Whether an answer only quotes rows of tables, and rows cannot prove it.

    A row proves no calculation, nothing about an attribute that it does not have (no salary without such a column), and
    not that others lack something. A single one proves "how much is …" if the question has all words of its name; the
    first one proves a maximum or a total if that is its name.
    """
    if not citations or not all(map(_is_row, citations)):
        return False
    asked = read_question(question, language)
    if language not in language_codes():
        return asked is not None
    data = load_language(language).tables
    found = read_words(words(question), language)
    name = [column_word(word) for word in words((citations[0].quote or "").split(" | ")[0].partition(": ")[2])]
    is_asked_for = all(any(word.forms & one.forms for one in found) for word in name if word.is_content)
    cues = {word for key in _CALCULATED for phrase in data.phrases[key] for word in words(phrase)}
    is_called_so = is_asked_for and not cues.isdisjoint(word.text for word in name)
    is_amount = asked is not None and asked.asks_amount and len(citations) == 1
    if asked is not None and (asked.negations or (asked.asks and not (is_amount or is_called_so))):
        return True
    if is_called_so:
        return False
    held = [column_word(word) for citation in citations for word in words(citation.quote or "")]
    missing = [
        word
        for word in found
        if word.is_content
        and word.text not in data.filler
        and not any(word.forms & other.forms or word.concepts & other.concepts for other in held)
    ]
    if is_amount:
        return bool(missing) or not is_asked_for
    begins = " ".join(word.text for word in found).startswith(data.phrases["attribute"])
    return any(word.concepts for word in missing) or bool(missing and begins)


def _is_row(citation: Citation) -> bool:
    """Whether a citation quotes cells: of a sheet, or a line of columns on a page."""
    place = citation.location
    if place is None or citation.method is ProofMethod.COMPUTED:
        return False
    return bool(place.cell or place.row or _COLUMNS.search(citation.quote or ""))

"""Answers an operation over tables, computed from the stored cells, with a citation for the cells behind each value.

Nothing has to be checked against passages: the citations say how a value was computed, and from which cells.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from rag_service.answering.drafts.checked_answer import CheckedAnswer
from rag_service.answering.drafts.doubts import Doubt
from rag_service.answering.drafts.draft import Draft
from rag_service.answering.drafts.events import AnswerDelta, CitationChecked, SourcesFound
from rag_service.answering.guards.output_guard import OutputGuard, guard_text
from rag_service.answering.prompt.notices import make_notices, mentioned_sources
from rag_service.answering.prompt.packing import pack_sources
from rag_service.answering.prompt.templates import Prompts, new_boundary
from rag_service.domain import Citation, CitationStatus, Hit, ProofMethod, TokenCount
from rag_service.retrieval.query import AnswerRun
from rag_service.settings.answers import AnswerSettings
from rag_service.tables.asking.answers import ComputedAnswer, TableAnswers
from rag_service.tables.sentences import CitedCells
from rag_service.word_boxes import with_boxes

_NUMBER = re.compile(r"\d+k?", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class ComputedAnswers:
    """Computes answers from the tables of what was found."""

    tables: TableAnswers | None  # None: tables are only quoted
    prompts: Prompts
    settings: AnswerSettings
    takes_doubtful: bool = False  # readings, beside a chat model, which can ask for the operation that it means

    async def answer(self, run: AnswerRun) -> Draft | None:
        """As `Answerer.answer`."""
        if run.found.files is not None and run.found.files.outlines:
            return None
        computed = await self._compute(run)
        if computed is None or (computed.wording.warning and not (run.model.only_quotes or self.takes_doubtful)):
            return None
        return await write_computed(
            run, computed, doubt=Doubt.TABLE_READING, prompts=self.prompts, settings=self.settings
        )

    async def _compute(self, run: AnswerRun) -> ComputedAnswer | None:
        """Compute with all that was found, below the default threshold, too.

        Numbers that nothing mentions may be what values are compared with: "opened after 2020". What a postprocessor of
        an owner dropped is not computed with.
        """
        question, found = run.question, run.found
        if self.tables is None or not all(_NUMBER.fullmatch(name) for name in found.absent):
            return None
        hits = mentioned_sources(found)
        if not found.is_filtered and question.threshold is None:
            hits = (*hits, *found.hits)
        text = question.text
        if found.versions is not None:
            hits = tuple(hit for hit in hits if hit.chunk.document.id not in found.other_versions)
            text = found.versions.question
        return await self.tables.compute(text, hits, language=run.language, identity=question.identity)


async def write_computed(
    run: AnswerRun, computed: ComputedAnswer, *, doubt: Doubt, prompts: Prompts, settings: AnswerSettings
) -> Draft:
    """Return an answer that states values and quotes with their places, and emit its events.

    Args:
        doubt: that its warning is about.
    """
    found = run.found
    chosen = choose_passages(computed, mentioned_sources(found), found.hits, limit=run.question.top_k)
    notices = make_notices(found, chosen, prompts)
    context = pack_sources(run, chosen, settings=settings, boundary=new_boundary())
    checked = check_computed(computed, context.hits, language=run.language)
    await run.emit(SourcesFound(sources=chosen, shown=context.hits, timings_ms=found.timings_ms))
    await run.emit(AnswerDelta(text=checked.text))
    for citation in checked.citations:
        await run.emit(CitationChecked(citation=citation))
    return Draft(
        checked=checked,
        sources=chosen,
        shown=context.hits,
        context_tokens=context.tokens,
        tokens=TokenCount(prompt=0, completion=0, estimated=False),
        model=run.model,
        refusal=notices.refusal,
        preface=notices.introduction if run.model.only_quotes else "",
        doubts={doubt: bool(computed.wording.warning)},
        is_computed=True,
    )


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

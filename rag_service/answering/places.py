"""What a reply without a chat model shows if no answer is certain: the places where one may stand, best first.

Nothing is claimed of a place but that its words stand there, so it carries no citation.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import zip_longest

from rag_service.answering.answerers.quoted import QuotedAnswers
from rag_service.answering.cache import MakeAnswer
from rag_service.answering.decision.conclusion import Concluded
from rag_service.answering.drafts.draft import Draft
from rag_service.answering.drafts.events import AnswerDelta, AnswerEvent, SourcesFound
from rag_service.answering.guards.output_guard import OutputGuard, guard_text
from rag_service.answering.prompt.templates import Prompts
from rag_service.answering.proof.analysis import analyse
from rag_service.answering.proof.claims import strip_marks
from rag_service.answering.proof.passage import locate
from rag_service.answering.quoting.quotes import (
    MAX_PLACES,
    SHOWN_PLACES,
    Evidence,
    Excerpt,
    Quotes,
    asked_forms,
    find_marked,
)
from rag_service.domain import Answer, Decision, FoundPlace, Hit, describe_place
from rag_service.language.languages import quote_text
from rag_service.language.normalise import normalise
from rag_service.retrieval.query import AnswerRun, ignore


class CertainOrPlaces:
    """Answers without a chat model: with an answer if it is certain, else with the places nearest to the question."""

    def __init__(self, make: MakeAnswer, quoted: QuotedAnswers, prompts: Prompts) -> None:
        """`make` makes an answer, whatever its decision; `quoted` chooses windows where it has not quoted."""
        self._make = make
        self._quoted = quoted
        self._prompts = prompts

    async def answer(self, run: AnswerRun) -> Concluded:
        """Return the answer, and emit its events at the end: until then it may give way to places."""
        events = list[AnswerEvent]()

        async def hold(event: AnswerEvent) -> None:
            events.append(event)

        concluded = await self._make(replace(run, emit=hold))
        draft, answer = concluded.draft, concluded.answer
        if draft is not None and answer.decision is Decision.UNCERTAIN:
            concluded, found = await self._find(run, concluded, draft)
            if found:
                warning = read_warning(answer) if draft.quotes is None else draft.quotes.evidence.preface
                doubtful = self._prompts.message("doubtful", answer.language)
                answer = write_places(answer, found, introduction=warning or doubtful)
                concluded = replace(concluded, answer=answer)
                events = [event for event in events if isinstance(event, SourcesFound)]
                events.append(AnswerDelta(text=answer.text))
        for event in events:
            await run.emit(event)
        return concluded

    async def _find(
        self, run: AnswerRun, concluded: Concluded, draft: Draft
    ) -> tuple[Concluded, tuple[FoundPlace, ...]]:
        """Return the places of a question and of each of its parts, by turns; none for an outline of files."""
        if run.found.files is not None and run.found.files.outlines:
            return concluded, ()
        lists = [await self._find_for(run, concluded.answer, draft)]
        for part in run.found.parts:
            part_run = replace(run, question=part.question, retrieved=part.found, emit=ignore)
            own = await self._make(part_run)
            if own.draft is not None and own.answer.decision is not Decision.OUT_OF_SCOPE:
                lists.append(await self._find_for(part_run, own.answer, own.draft, part=part.text))
            concluded = replace(concluded, is_degraded=concluded.is_degraded or own.is_degraded)
        return concluded, take_turns(lists)

    async def _find_for(
        self, run: AnswerRun, answer: Answer, draft: Draft, *, part: str | None = None
    ) -> Iterator[FoundPlace]:
        """Return the places of one question: what was computed for it, then the windows of its passages."""
        quotes = draft.quotes or await self._quoted.choose(run)
        return find_places(answer if draft.is_computed else None, quotes, part=part)


def find_places(computed: Answer | None, quotes: Quotes, *, part: str | None = None) -> Iterator[FoundPlace]:
    """Yield the places of a question, best first: what was computed for it, then the windows of its passages.

    Args:
        computed: the answer to the question, if it was computed.
        quotes: of the question, with its windows.
        part: the question, if it is a part of another one.
    """
    evidence = quotes.evidence
    asked = asked_forms(evidence.question, evidence.language)
    computed_places = () if computed is None else _read_computed(computed)
    for place in (*computed_places, *(_read_excerpt(one, evidence) for one in quotes.places)):
        yield replace(place, marked=tuple(find_marked(place.text, asked)), part=part)


def take_turns(lists: Iterable[Iterable[FoundPlace]]) -> tuple[FoundPlace, ...]:
    """Return the best places of several lists by turns, at most `MAX_PLACES`, each text once."""
    found: dict[str, FoundPlace] = {}
    for turn in zip_longest(*lists):
        for place in turn:
            if place is not None:
                found.setdefault(place.text, place)
    return tuple(found.values())[:MAX_PLACES]


def write_places(answer: Answer, places: Sequence[FoundPlace], *, introduction: str) -> Answer:
    """Return an answer that shows places instead; its text has the first ones, for clients that read only that."""
    lines = [introduction, ""]
    for number, place in enumerate(places[:SHOWN_PLACES], start=1):
        part = "" if place.part is None else f" ({quote_text(place.part, answer.language)})"
        where = describe_place(place.document, place.location)
        lines.append(f"{number}. {where}{part}: {quote_text(place.text, answer.language)}")
    return replace(
        answer,
        text="\n".join(lines),
        places=tuple(places),
        citations=(),
        flagged=(),
        unmarked_sentences=0,
        withheld_sentences=0,
    )


def read_warning(computed: Answer) -> str:
    """Return what a computed answer says of its reading: the lines that cite nothing."""
    lines, start = list[str](), 0
    for line in computed.text.split("\n"):
        if all(one.sentence_end <= start or one.sentence_start >= start + len(line) for one in computed.citations):
            lines.append(line)
        start += len(line) + 1
    return " ".join(lines)


def _read_computed(answer: Answer) -> Iterator[FoundPlace]:
    """Yield each sentence of an answer that was computed, at the place of the first cells that it is computed from."""
    documents = {hit.chunk.document.id: hit.chunk.document for hit in answer.shown}
    told: set[tuple[int, int]] = set()
    for citation in answer.citations:
        sentence = citation.sentence_start, citation.sentence_end
        document = documents.get(citation.document_id) if citation.document_id else None
        if document is not None and sentence not in told:
            told.add(sentence)
            yield FoundPlace(
                document=document,
                chunk_id=citation.chunk_id,
                text=" ".join(strip_marks(answer.text[slice(*sentence)]).split()),
                marked=(),
                start=citation.start,
                end=citation.end,
                location=citation.location,
                formula=citation.formula,
            )


def _read_excerpt(excerpt: Excerpt, evidence: Evidence) -> FoundPlace:
    hit: Hit = evidence.hits[excerpt.mark - 1]
    start, end = hit.chunk.start + excerpt.start, hit.chunk.start + excerpt.end
    claim = analyse(normalise(excerpt.text, markup=True).text, evidence.language)
    return FoundPlace(
        document=hit.chunk.document,
        chunk_id=hit.chunk.id,
        text=guard_text(OutputGuard(evidence.hits, language=evidence.language), excerpt.text),
        marked=(),
        start=start,
        end=end,
        location=locate(hit.chunk, start, end, claim, is_copy=True),
    )

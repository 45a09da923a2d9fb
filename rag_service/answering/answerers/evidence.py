"""What quotes are chosen from: of the passages that are shown, what may be quoted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import msgspec

from rag_service.answering.guards.injection import without_injections
from rag_service.answering.prompt.cutting import weight_held
from rag_service.answering.prompt.notices import Notices
from rag_service.answering.quoting.quotes import Evidence
from rag_service.domain import Hit
from rag_service.language.words import word_forms
from rag_service.retrieval.named_files import Place
from rag_service.retrieval.planner import QueryPlan
from rag_service.retrieval.query import AnswerRun


def gather_evidence(run: AnswerRun, shown: Sequence[Hit], notices: Notices) -> Evidence:
    """Return what quotes are chosen from: the passages shown, the question that they answer, and its words."""
    question, found = run.question, run.found
    asked = question.text if found.versions is None else found.versions.question
    if question.is_joined:  # the questions before have their answers
        asked = question.asked
    place = None if found.files is None else found.files.place
    return Evidence(
        question=asked,
        language=found.plan.language,
        hits=tuple(_quotable(hit, found.weights, place) if hit.from_turn is None else _blank(hit) for hit in shown),
        weights=found.weights,
        equivalents=_equivalents(found.plan, asked),
        refusal=notices.refusal,
        preface=notices.introduction,
        by_document=found.of_several,
    )


def _equivalents(plan: QueryPlan, question: str) -> dict[str, int]:
    """Index term → the word of the question that it stands for, if the question has one of these words."""
    forms = word_forms(question)
    asked = {term.group for term in plan.terms if term.term in forms}
    return {term.term: term.group for term in plan.terms if term.group >= 0 and term.group in asked}


def _quotable(hit: Hit, weights: Mapping[str, float], place: Place | None) -> Hit:
    """Return what may be quoted: no injections, and nothing of a passage found mainly for their words.

    Of a question about a page or a cell only what stands there.
    """
    hit = hit if place is None else _only_at(place, hit)
    cleared = without_injections(hit)
    before, after = hit.chunk.text, cleared.chunk.text
    if before == after or 2 * weight_held(after, weights) >= weight_held(before, weights):
        return cleared
    return replace(cleared, chunk=replace(cleared.chunk, text="\n" * len(before)))


def _blank(hit: Hit) -> Hit:
    """A passage that an earlier answer cited and that is not found now: it would answer the earlier question."""
    return replace(hit, chunk=replace(hit.chunk, text=""))


def _only_at(place: Place, hit: Hit) -> Hit:
    """Return the hit with all else blanked out of its text; offsets stay valid. A cell is shown with its row."""
    chunk = hit.chunk
    spans = [span for span in chunk.spans if place.holds(span.location)]
    if place.kind in ("cell", "row"):  # the names of the columns stand between the cells
        rows = {(span.location.sheet, span.location.row) for span in spans}
        whole = [span for span in chunk.spans if (span.location.sheet, span.location.row) in rows]
        if len(rows) == 1:
            whole = [msgspec.structs.replace(whole[0], end=max(span.end for span in whole))]
        spans = whole
    kept = ["\n"] * len(chunk.text)
    for span in spans:
        start, end = max(0, span.start - chunk.start), max(0, span.end - chunk.start)
        kept[start:end] = chunk.text[start:end]
    return replace(hit, chunk=replace(chunk, text="".join(kept)))

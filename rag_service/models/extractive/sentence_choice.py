"""Which sentences of the shown passages answer best.

A sentence scores by the share of the question's idf mass that it holds, by its cosine to the
question, by the relevance of its passage, and by whether it holds the kind of thing asked for: a
number for "how many", a date for "when", a name for "who". Beside the best one stands only what says
more about what was asked: a sentence with a word of the question in it or next to the best one, and of
the rows of its table only those that answer as much of the question, or another part of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import structlog
from llama_index.core.base.embeddings.base import BaseEmbedding

from rag_service.domain import Hit
from rag_service.errors import EmbeddingError
from rag_service.models.embedding.urgency import somebody_waits
from rag_service.models.extractive.asked_kinds import Kind, kind_asked
from rag_service.models.extractive.grounded_message import Evidence
from rag_service.models.extractive.quotable import LIST_LENGTH, Unit, read_units
from rag_service.text.words import LANGUAGES, fold, terms, words

log = structlog.get_logger(__name__)

MAX_SENTENCES = 3
_EMBEDDED = 16  # sentences compared by cosine: the lexically best
_LEAST_SHARE = 0.55  # a further sentence must reach this share of the best one's score
_LEAD_BONUS = 0.5  # for the first sentences under a heading, or a question of the document, that is what is asked
_LEAD_SENTENCES = 2
_ASKED_FOR = 0.5  # of the question's idf mass: then a heading is what the question asks for
_SAME_QUESTION = 0.75  # likewise in a question of the document: below, procedures_es lost an answer to a related one
_HEADING_SHARE = 0.6  # of a term's weight, when a heading above the sentence, or the question it answers, holds it
_PASSAGE_SHARE = 0.8
_EQUIVALENT_SHARE = 0.7  # of a word's weight, for its synonyms
_COSINE_SHARE = 0.5
_NEXT_BONUS = 0.2  # for the sentence after the best one; XQuAD gold found: en 0.945 → 0.949, es 0.918 → 0.926
_BEFORE_BONUS = 0.1


@dataclass(frozen=True, kw_only=True)
class Sentence:
    """A candidate sentence of the answer."""

    mark: int  # number of its passage
    unit: Unit
    score: float  # the higher the better; about 1.5 for a full match
    held: frozenset[int] = frozenset()  # which words of the question it holds itself, headings aside
    is_headed: bool = False  # whether a heading of its own, below the title, or the question above it holds one

    @property
    def text(self) -> str:
        return self.unit.text

    @property
    def compared(self) -> str:
        """What is compared with the question by cosine: an answer shares its meaning with its own question."""
        return f"{self.unit.question} {self.unit.text}".lstrip()

    @property
    def table(self) -> tuple[int, str] | None:
        """The table that it is a row of."""
        return None if self.unit.table is None else (self.mark, self.unit.table)


@dataclass(frozen=True, kw_only=True)
class _Asked:
    """A word of the question in every form that a passage may hold it in."""

    weight: float  # idf
    terms: Mapping[str, float]  # index term → how well it stands for the word, 0..1

    def held_by(self, held: set[str]) -> float:
        return self.weight * max((exactness for term, exactness in self.terms.items() if term in held), default=0.0)


async def select_sentences(evidence: Evidence, embedding: BaseEmbedding | None) -> list[Sentence]:
    """The best sentences of the shown passages, best first; empty when none fits."""
    kind = kind_asked(fold(evidence.question))
    everything = _candidates(evidence, _weigh(evidence), kind)
    if not everything:
        return []
    shared = _shared_by_rows(everything)
    candidates = sorted(everything, key=lambda candidate: -candidate.score)
    if embedding is not None:
        try:
            candidates = await _add_cosine(evidence.question, candidates[:_EMBEDDED], embedding)
        except EmbeddingError as error:  # words alone choose well enough
            log.warning("answer_degraded", without="cosine", exc_info=error)
    if rows := _whole_table(candidates[0], everything, shared):
        return rows
    chosen: list[Sentence] = []
    for candidate in _lift_neighbours(candidates):
        if len(chosen) == MAX_SENTENCES or candidate.score < _LEAST_SHARE * candidates[0].score:
            break
        is_new = all(fold(candidate.text) not in fold(other.text) for other in chosen)
        if is_new and (not chosen or _says_more(candidate, chosen[0], shared)):
            chosen.append(candidate)
    if kind is not None and not kind.may_be_told_by(sentence.unit.told for sentence in chosen):
        return []
    tables = [sentence.table for sentence in chosen]
    return sorted(
        chosen, key=lambda sentence: tables.index(sentence.table) if sentence.table else chosen.index(sentence)
    )


def _shared_by_rows(candidates: Sequence[Sentence]) -> dict[tuple[int, str], frozenset[int]]:
    """Words of the question that every row of a table holds, such as names of columns: they tell no row apart."""
    shared: dict[tuple[int, str], frozenset[int]] = {}
    for candidate in candidates:
        if candidate.table is not None:
            shared[candidate.table] = shared.get(candidate.table, candidate.held) & candidate.held
    return shared


def _whole_table(
    best: Sentence, candidates: Sequence[Sentence], shared: Mapping[tuple[int, str], frozenset[int]]
) -> list[Sentence]:
    """All rows of the best one's table, where the question names none ("which is the cheapest?") and they are few."""
    if best.table is None or best.held != shared[best.table]:
        return []
    rows = [candidate for candidate in candidates if candidate.table == best.table]
    is_quotable = len(rows) > 1 and sum(len(row.text) for row in rows) <= LIST_LENGTH
    return sorted(rows, key=lambda row: row.unit.position) if is_quotable else []


def _says_more(candidate: Sentence, best: Sentence, shared: Mapping[tuple[int, str], frozenset[int]]) -> bool:
    """Whether it belongs beside the best one."""
    if candidate.table is not None and candidate.table == best.table:
        told, told_by_best = (row.held - shared[candidate.table] for row in (candidate, best))
        return not told < told_by_best
    return bool(candidate.held) or candidate.is_headed or abs(_distance(candidate, best)) == 1


def _distance(sentence: Sentence, best: Sentence) -> int:
    """1 for what goes on where the best one ends, -1 for what leads to it; rows of tables do neither."""
    if sentence.mark != best.mark or sentence.table or best.table:
        return 0
    return sentence.unit.position - best.unit.position


def _lift_neighbours(candidates: Sequence[Sentence]) -> list[Sentence]:
    """The best first, and what stands beside it lifted: "It does so in …" shares no word with the question."""
    best, *rest = candidates

    def lifted(candidate: Sentence) -> float:
        distance = _distance(candidate, best)
        return candidate.score + (_NEXT_BONUS if distance == 1 else _BEFORE_BONUS if distance == -1 else 0.0)

    rest = [replace(candidate, score=min(best.score, lifted(candidate))) for candidate in rest]
    return [best, *sorted(rest, key=lambda candidate: -candidate.score)]


def _weigh(evidence: Evidence) -> list[_Asked]:
    """What the question asks for; a word that no chunk holds in any form cannot tell sentences apart."""
    own = _forms(evidence.question)
    grouped: dict[int | str, dict[str, float]] = {}
    for term in own | evidence.equivalents.keys():
        if term in evidence.weights:
            exactness = 1.0 if term in own else _EQUIVALENT_SHARE
            grouped.setdefault(evidence.equivalents.get(term, term), {})[term] = exactness
    return [
        _Asked(weight=max(evidence.weights[term] for term in exactness), terms=exactness)
        for exactness in grouped.values()
    ]


def _candidates(evidence: Evidence, asked: Sequence[_Asked], kind: Kind | None) -> list[Sentence]:
    total = sum(word.weight for word in asked)
    found = []
    for mark, hit in enumerate(evidence.hits, start=1):
        headings = _headings(hit)
        headed = _forms(" ".join(headings))
        match = _section_match(hit, asked)
        lead = _LEAD_BONUS * match
        units = read_units(hit.chunk.text, evidence.language, headings=headings, whole_list=match >= _ASKED_FOR)
        for number, unit in enumerate(units):
            held, answered = _forms(unit.text), _forms(unit.question)
            repeated = _match(answered, asked)
            share = _share(asked, held, headed | answered) / total if total else 0.0
            score = (
                share
                + _PASSAGE_SHARE * _standing(hit, evidence.hits)
                + (kind.bonus if kind and kind.stands_in(unit.told) else 0.0)
                + max(
                    lead if number < _LEAD_SENTENCES else 0.0,
                    _LEAD_BONUS * repeated if unit.follows < _LEAD_SENTENCES and repeated >= _SAME_QUESTION else 0.0,
                )
            )
            own = frozenset(place for place, word in enumerate(asked) if word.held_by(held))
            own_headings = answered | _forms(" ".join(_headings_at(hit, unit.start)))
            is_headed = any(word.held_by(own_headings) for word in asked)
            found.append(Sentence(mark=mark, unit=unit, score=score, held=own, is_headed=is_headed))
    return found


def _forms(text: str) -> set[str]:
    """Its words as they are written and their stems in every language: documents are in others than the question."""
    return {*words(text), *(term for language in LANGUAGES for term in terms(text, language))}


def _share(asked: Sequence[_Asked], held: set[str], headed: set[str]) -> float:
    """Idf mass of the question that a sentence holds, what its headings say counting for less."""
    return sum(max(word.held_by(held), _HEADING_SHARE * word.held_by(headed)) for word in asked)


def _section_match(hit: Hit, asked: Sequence[_Asked]) -> float:
    """Share of the question's idf mass in the heading right above a passage, the document's title aside."""
    path = hit.chunk.spans[0].location.headings if hit.chunk.spans else ()
    return _match(_forms(path[-1]), asked) if len(path) >= 2 else 0.0


def _match(held: set[str], asked: Sequence[_Asked]) -> float:
    """Share of the question's idf mass that is held, 0..1."""
    total = sum(word.weight for word in asked)
    return sum(word.held_by(held) for word in asked) / total if total else 0.0


def _headings(hit: Hit) -> list[str]:
    """The document's title and all headings, and sheets, that the passage stands under."""
    places = [span.location for span in hit.chunk.spans]
    sheets = dict.fromkeys(f"Sheet: {place.sheet}" for place in places if place.sheet)  # as their line reads
    paths = dict.fromkeys(heading for place in places for heading in place.headings)
    return [hit.chunk.document.title, *sheets, *paths]


def _headings_at(hit: Hit, start: int) -> tuple[str, ...]:
    """The headings above a character of a passage, the document's title aside."""
    at = hit.chunk.start + start
    span = next((span for span in hit.chunk.spans if span.start <= at < span.end), None)
    return span.location.headings[1:] if span else ()


def _standing(hit: Hit, hits: Sequence[Hit]) -> float:
    """How a passage compares with the best one shown, 0..1."""
    best = max(_rating(other) for other in hits)
    return _rating(hit) / best if best > 0 else 0.0


def _rating(hit: Hit) -> float:
    fused = hit.scores.fused
    return max(0.0, hit.scores.relevance if fused is None else fused)


async def _add_cosine(question: str, candidates: Sequence[Sentence], embedding: BaseEmbedding) -> list[Sentence]:
    query = np.asarray(await embedding.aget_query_embedding(question))
    with somebody_waits():
        compared = await embedding.aget_text_embedding_batch([candidate.compared for candidate in candidates])
    vectors = np.asarray(compared)
    norms = np.linalg.norm(vectors, axis=1) * np.linalg.norm(query)
    cosines = (vectors @ query) / np.where(norms > 0, norms, 1.0)
    rated = [
        replace(candidate, score=candidate.score + _COSINE_SHARE * float(cosine))
        for candidate, cosine in zip(candidates, cosines, strict=True)
    ]
    return sorted(rated, key=lambda candidate: -candidate.score)

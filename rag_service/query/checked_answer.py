"""An answer on its way out: guarded, verified, and where that is set cleared of what is not proved.

    deltas → output guard → citations checked against the passages → text and citations as they become final

A sentence is flagged when it makes a claim that no verified citation proves: its citation fails, it has
none, or something foreign was taken out of it. With `withhold` every flagged sentence is replaced by a
notice; text is then held back up to the next marked sentence, whose marks decide about those before it.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from rag_service.domain import Citation, CitationStatus, Hit
from rag_service.query.events import AnswerDelta, CitationChecked
from rag_service.query.guards.orders import (
    has_orders_above,
    speaks_of_saying,
    stands_in_order,
    without_orders,
    without_reported,
)
from rag_service.query.guards.output_guard import OutputGuard
from rag_service.query.verification.marks import find_marks, strip_marks
from rag_service.query.verification.statement import is_content
from rag_service.query.verification.verify import CitationStream, Verification, verify_answer
from rag_service.text.sentences import Sentence, SentenceStream, read_sentences
from rag_service.text.words import words

SentenceOffsets = tuple[int, int]
_NOTHING = {"status": CitationStatus.NOT_FOUND, "support": 0.0} | dict.fromkeys(
    ("chunk_id", "document_id", "content_hash", "quote", "start", "end", "location")
)
_SCAFFOLD = re.compile(r"\s*(?:#{1,6}\s|\*\*[^*\n]+\*\*:?\s*\Z|\||.*:\s*\Z)", re.DOTALL)
_FOREIGN_WORDS = 2  # of a heading, a lead-in or code; "Summary:" needs no proof


@dataclass(frozen=True, kw_only=True)
class CheckedAnswer:
    """What is shown, and what became of each sentence. Offsets count characters of `text`."""

    text: str
    citations: tuple[Citation, ...]
    unmarked: tuple[SentenceOffsets, ...]  # claims that no mark covers
    flagged: tuple[SentenceOffsets, ...]  # all sentences that are not proved, in order
    withheld: int  # sentences left out


class AnswerChecker:
    """Takes the pieces of an answer; gives the events that they make."""

    def __init__(
        self,
        shown: Sequence[Hit],
        *,
        others: Sequence[Hit] = (),
        question: str = "",
        harmless: Sequence[str] = (),
        notice: str,
        language: str | None = None,
        secrets: Sequence[str] = (),
        withhold: bool = False,
    ) -> None:
        """
        Args:
            shown: the passages as the model saw them, [C1] first.
            others: further passages found, in which a misattributed quote may stand.
            question: its words may be repeated without proof.
            harmless: sentences of the service's own, such as the refusal; they need no proof.
            notice: put in the place of a sentence that is left out.
            language: ISO 639-1 of the answer.
            secrets: texts of the prompt that must not be repeated, without the refusal.
            withhold: leave out every flagged sentence.
        """
        self._shown = tuple(shown)
        self._others = tuple(others)
        self._hits = {hit.chunk.id: hit for hit in (*shown, *others)}
        self._question = question
        self._harmless = {text for text in map(str.strip, (*harmless, notice)) if text}
        self._notice = notice
        self._language = language
        self._guard = OutputGuard(self._shown, secrets=secrets, notice=notice, language=language or "en")
        self._withholding = _Withholding(self._clear) if withhold else None
        self._citations = CitationStream(self._shown, others=self._others, language=language)
        self._pieces: list[str] = []
        self._sources: dict[tuple[Citation, str], Citation] = {}  # checked as they came, and all again at the end
        self._emitted = 0
        self._withheld = 0

    def feed(self, delta: str) -> list[AnswerDelta | CitationChecked]:
        """Takes the next piece of the model's text."""
        text = self._guard.feed(delta)
        return self._show(self._withholding.feed(text) if self._withholding else text)

    def finish(self) -> tuple[list[AnswerDelta | CitationChecked], CheckedAnswer]:
        """The last events, and the whole answer."""
        text = self._guard.flush()
        events = self._show(self._withholding.finish(text) if self._withholding else text)
        whole = "".join(self._pieces)
        checked = self._conclude(whole, self._distrust(self._citations.finish(), whole))
        events += [CitationChecked(citation=citation) for citation in checked.citations[self._emitted :]]
        return events, checked

    def _show(self, text: str) -> list[AnswerDelta | CitationChecked]:
        if not text:
            return []
        self._pieces.append(text)
        new = self._citations.feed(text)
        if new:
            self._pieces = ["".join(self._pieces)]
            new = self._trusted(new, self._pieces[0])
        self._emitted += len(new)
        return [AnswerDelta(text=text), *(CitationChecked(citation=citation) for citation in new)]

    def _clear(self, start: int, text: str) -> str:
        """A part of the answer, from `start` on, with its flagged sentences replaced by the notice."""
        verification = self._distrust(
            verify_answer(text, self._shown, others=self._others, language=self._language), text
        )
        flagged = self._flagged(text, verification, [change - start for change in self._guard.changes])
        for first, last in reversed(flagged):
            text = text[:first] + self._notice + text[last:]
        self._withheld += len(flagged)
        return text

    def _conclude(self, text: str, verification: Verification) -> CheckedAnswer:
        changes = [] if self._withholding else self._guard.changes
        unmarked = tuple(place for place in verification.unmarked if not self._is_harmless(text[slice(*place)]))
        return CheckedAnswer(
            text=text,
            citations=verification.citations,
            unmarked=unmarked,
            flagged=tuple(self._flagged(text, verification, changes)),
            withheld=self._withheld + self._guard.leaks,
        )

    def _flagged(self, text: str, verification: Verification, changes: Sequence[int]) -> list[SentenceOffsets]:
        found = {*verification.flagged, *verification.unmarked}
        cited = {(citation.sentence_start, citation.sentence_end) for citation in verification.citations}
        ordered = sorted(changes)
        for sentence in read_sentences(text, language=self._language):
            place = (sentence.start, sentence.end)
            changed = bisect_left(ordered, sentence.start) < bisect_left(ordered, sentence.end)
            if changed or (place not in cited and self._is_foreign(sentence)):
                found.add(place)
        return sorted(place for place in found if not self._is_harmless(text[slice(*place)]))

    def _is_foreign(self, sentence: Sentence) -> bool:
        """Whether a sentence that is no claim (too short, a heading, code) uses words of its own."""
        said = {word for word in words(strip_marks(sentence.text)) if is_content(word)}
        allowed = _FOREIGN_WORDS if sentence.code or _SCAFFOLD.match(sentence.text) else 1
        return len(said - self._known) >= allowed

    def _is_harmless(self, sentence: str) -> bool:
        for text in self._harmless:
            sentence = sentence.replace(text, "")
        return not any(map(str.isalnum, sentence))

    def _distrust(self, verification: Verification, text: str) -> Verification:
        """The verification without citations that only repeat what a document tells its reader to say."""
        citations = tuple(self._trusted(verification.citations, text))
        proved = {_place(citation) for citation in citations if citation.status is CitationStatus.VERIFIED}
        refuted = {
            _place(citation)
            for citation in verification.citations
            if citation.status is CitationStatus.VERIFIED and _place(citation) not in proved
        }
        return replace(verification, citations=citations, flagged=tuple(sorted({*verification.flagged, *refuted})))

    def _trusted(self, citations: Iterable[Citation], text: str) -> list[Citation]:
        """The citations, checked once more; a notice that stands before a mark is no claim."""
        sentences = ((citation, text[slice(*_place(citation))]) for citation in citations)
        return [
            self._check_source(citation, sentence)
            for citation, sentence in sentences
            if not self._is_harmless(sentence)
        ]

    def _check_source(self, citation: Citation, sentence: str) -> Citation:
        checked = self._sources.get((citation, sentence))
        if checked is None:
            checked = self._sources[citation, sentence] = self._look_at_source(citation, sentence)
        return checked

    def _look_at_source(self, citation: Citation, sentence: str) -> Citation:
        """The citation, unless its quote stands in an order to the model: then what else proves the sentence."""
        if citation.chunk_id is None or citation.start is None or citation.end is None:
            return citation
        hit = self._hits[citation.chunk_id]
        start, end = citation.start - hit.chunk.start, citation.end - hit.chunk.start
        if not has_orders_above(hit) and not stands_in_order(hit.chunk.text, start, end):
            return citation
        again = self._verify_again(citation, sentence)
        if again is None or again.chunk_id is None or again.start is None or again.end is None:
            return replace(citation, **_NOTHING)  # type: ignore[arg-type]  # the place fields of a citation
        chunk = self._hits[again.chunk_id].chunk
        return replace(
            again,
            sentence_start=citation.sentence_start,
            sentence_end=citation.sentence_end,
            # An order blanked out between two quoted sentences stands in the stored text all the same.
            quote=chunk.text[again.start - chunk.start : again.end - chunk.start],
        )

    def _verify_again(self, citation: Citation, sentence: str) -> Citation | None:
        """The citation that the mark gets from what documents state, orders left out."""
        told = speaks_of_saying(sentence)  # such a sentence may quote what a document tells its reader to say

        def stated(hits: Sequence[Hit]) -> list[Hit]:
            clear = [without_orders(hit) for hit in hits]
            return clear if told else [without_reported(hit) for hit in clear]

        marked = sentence if find_marks(sentence) else f"{sentence} [C{citation.mark}]"
        verification = verify_answer(marked, stated(self._shown), others=stated(self._others), language=self._language)
        return next((again for again in verification.citations if again.mark == citation.mark), None)

    @cached_property
    def _known(self) -> frozenset[str]:
        """Words that a sentence may use without being foreign."""
        shown = (word for hit in self._shown for word in words(without_orders(hit).chunk.text))
        return frozenset((*shown, *words(self._question)))


def _place(citation: Citation) -> SentenceOffsets:
    return citation.sentence_start, citation.sentence_end


class _Withholding:
    """Holds text back until its sentences are decided: by the next marked one, or at the end."""

    def __init__(self, clear: Callable[[int, str], str]) -> None:
        self._clear = clear
        self._sentences = SentenceStream()
        self._held = ""
        self._given = 0  # characters taken out of `_held` so far

    def feed(self, text: str) -> str:
        self._held += text
        marked = [sentence.end for sentence in self._sentences.feed(text) if find_marks(sentence.text)]
        return self._take(marked[-1] - self._given) if marked else ""

    def finish(self, text: str) -> str:
        self._held += text
        return self._take(len(self._held)) if self._held else ""

    def _take(self, length: int) -> str:
        part, self._held = self._held[:length], self._held[length:]
        start, self._given = self._given, self._given + length
        return self._clear(start, part)

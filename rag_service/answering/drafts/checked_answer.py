"""Guards and verifies an answer while its text arrives, and leaves out what is not proved where that is asked for.

    pieces of text → output guard → citations checked against the passages → text and citations as they become final

A sentence is flagged when no verified citation proves its claim, or when the guard removed something from it.
`CheckedAnswer.withhold` puts a notice in the place of flagged sentences, once a judge has spoken if there is one.
`Output` emits what becomes final.
"""

from __future__ import annotations

import re
import time
from bisect import bisect_left
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import structlog

from rag_service.answering.drafts.events import AnswerDelta, CitationChecked
from rag_service.answering.guards.injection import without_injections
from rag_service.answering.guards.output_guard import OutputGuard
from rag_service.answering.proof.analysis import classify
from rag_service.answering.proof.claims import NamedEvidence, strip_marks
from rag_service.answering.proof.verify import REFUTED, CitationStream, CitedClaim, Verification, flag_sentences
from rag_service.domain import Citation, CitationStatus, Hit
from rag_service.language.sentences import Sentence, read_sentences
from rag_service.language.words import words
from rag_service.observability.tracing import record_span
from rag_service.retrieval.query import AnswerRun, ignore
from rag_service.tables.sentences import CitedCells

log = structlog.get_logger(__name__)

SentenceOffsets = tuple[int, int]
_SCAFFOLD = re.compile(r"\s*(?:#{1,6}\s|\*\*[^*\n]+\*\*:?\s*\Z|\||.*:\s*\Z)", re.DOTALL)
_FOREIGN_WORDS = 2  # a heading, a lead-in or code may have one unknown word: "Summary:" needs no proof
Emit = Callable[[Any], Awaitable[None]]


@dataclass(frozen=True, kw_only=True)
class CheckedAnswer:
    """The text to show and the state of its sentences. Offsets count characters of `text`."""

    text: str
    citations: tuple[Citation, ...]
    unmarked: tuple[SentenceOffsets, ...]  # claims without a citation
    flagged: tuple[SentenceOffsets, ...]  # all unproved sentences, in order
    claims: tuple[CitedClaim, ...]
    foreign: tuple[
        SentenceOffsets, ...
    ] = ()  # headings and short ones with words that neither passages nor question have
    changed: tuple[SentenceOffsets, ...] = ()  # from which the guard removed something: no citation can prove them
    withheld: int  # sentences replaced by the notice

    def with_citations(self, citations: Sequence[Citation]) -> CheckedAnswer:
        """Return the answer with citations that a judge has seen, as many and in the same order."""
        flagged = {*flag_sentences(self.claims, citations), *self.unmarked, *self.foreign, *self.changed}
        return replace(self, citations=tuple(citations), flagged=tuple(sorted(flagged)))

    def withhold(self, notice: str) -> CheckedAnswer:
        """Return the answer with the notice in the place of each flagged sentence, and without its citations."""
        text, kept = self.text, [claim for claim in self.claims if claim.sentence not in self.flagged]
        for first, last in reversed(self.flagged):
            text = text[:first] + notice + text[last:]

        def move(place: int) -> int:
            return place + sum(len(notice) - (last - first) for first, last in self.flagged if last <= place)

        numbers = sorted({number for claim in kept for number in claim.citations})
        citations = [self.citations[number] for number in numbers]
        return replace(
            self,
            text=text,
            citations=tuple(
                replace(one, sentence_start=move(one.sentence_start), sentence_end=move(one.sentence_end))
                for one in citations
            ),
            claims=tuple(
                claim._replace(
                    sentence=(move(claim.sentence[0]), move(claim.sentence[1])),
                    citations=tuple(map(numbers.index, claim.citations)),
                )
                for claim in kept
            ),
            unmarked=(),
            foreign=(),
            changed=(),
            flagged=(),
            withheld=self.withheld + len(self.flagged),
        )

    @property
    def has_proof(self) -> bool:
        """Return whether one of its citations is verified."""
        return any(citation.status is CitationStatus.VERIFIED for citation in self.citations)

    @property
    def proved(self) -> float:
        """Share of the sentences that state something which is verified, 0..1; those that are withheld count, too."""
        stated = {claim.sentence for claim in self.claims}.union(self.unmarked, self.foreign, self.changed)
        proved = len(stated.difference(self.flagged))
        return proved / max(1, len(stated) + self.withheld)

    @property
    def refuted(self) -> float:
        """Share of the citations that speak against the answer, 0..1."""
        refuted = sum(citation.status in REFUTED for citation in self.citations)
        return refuted / max(1, len(self.citations))


class AnswerChecker:
    """Turns pieces of a model's text into the events of a checked answer."""

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
        computed: Mapping[str, CitedCells] | None = None,
    ) -> None:
        """
        Args:
            shown: the passages as the model saw them, [C1] first.
            others: further retrieved passages, searched for misattributed quotes.
            question: its words may be repeated without proof.
            harmless: the service's own sentences, such as the refusal; they need no proof.
            notice: replaces what the guard removes.
            language: ISO 639-1 of the answer.
            secrets: parts of the prompt that must not be repeated.
            computed: as for `CitationStream`.
        """
        self._shown = tuple(shown)
        self._question = question
        self._harmless = set(filter(None, map(str.strip, (*harmless, notice))))
        self._notice = notice
        self._language = language
        self._secrets = tuple(secrets)
        self._check = partial(
            CitationStream,
            self._shown,
            others=others,
            language=language,
            clean=without_injections,
            skip=self._is_harmless,
            question=question,
            computed=computed,
        )
        self._begin()

    def _begin(self) -> None:
        self._guard = OutputGuard(
            self._shown, secrets=self._secrets, notice=self._notice, language=self._language or "en"
        )
        self._named = NamedEvidence()
        self._citations = self._check(named=self._named)
        self._pieces: list[str] = []
        self._emitted = 0

    def feed(self, delta: str, *, restart: bool = False) -> list[AnswerDelta | CitationChecked]:
        """Take the next piece of the model's text; with `restart` the text begins here."""
        if restart:
            self._begin()
        text = self._guard.feed(self._named.feed(delta))
        events = self._show(text)
        return [AnswerDelta(text="", restart=True), *events] if restart else events

    def finish(self) -> tuple[list[AnswerDelta | CitationChecked], CheckedAnswer]:
        """Return the last events, and the whole answer."""
        events = self._show(self._guard.feed(self._named.finish()) + self._guard.flush())
        whole = "".join(self._pieces)
        verification = self._citations.finish()
        for citation in verification.citations[self._emitted :]:
            events.append(CitationChecked(citation=citation))
        self._emitted = len(verification.citations)
        foreign, changed = self._find_unprovable(whole, verification, self._guard.changes)
        checked = CheckedAnswer(
            text=whole,
            citations=verification.citations,
            unmarked=verification.unmarked,
            flagged=(),
            claims=verification.claims,
            foreign=foreign,
            changed=changed,
            withheld=len(self._guard.leaks),
        )
        return events, checked.with_citations(checked.citations)

    def _show(self, text: str) -> list[AnswerDelta | CitationChecked]:
        if not text:
            return []
        self._pieces.append(text)
        events: list[AnswerDelta | CitationChecked] = [AnswerDelta(text=text)]
        for citation in self._citations.feed(text):
            events.append(CitationChecked(citation=citation))
            self._emitted += 1
        return events

    def _find_unprovable(
        self, text: str, verification: Verification, changes: Sequence[int]
    ) -> tuple[tuple[SentenceOffsets, ...], tuple[SentenceOffsets, ...]]:
        """Return the sentences that make no claim and use unknown words, and those that the guard has changed."""
        foreign, altered = [], []
        cited = {claim.sentence for claim in verification.claims}
        ordered = sorted(changes)
        for sentence in read_sentences(text, language=self._language):
            place = sentence.start, sentence.end
            if self._is_harmless(sentence.text):
                continue
            if bisect_left(ordered, sentence.start) < bisect_left(ordered, sentence.end):
                altered.append(place)
            elif place not in cited and place not in verification.unmarked and self._is_foreign(sentence):
                foreign.append(place)
        return tuple(foreign), tuple(altered)

    def _is_foreign(self, sentence: Sentence) -> bool:
        """Return whether a sentence that makes no claim (too short, a heading, code) uses unknown words."""
        said = {word for word in words(strip_marks(sentence.text)) if classify(word, None).content}
        allowed = _FOREIGN_WORDS if sentence.code or _SCAFFOLD.match(sentence.text) else 1
        return len(said - self._known) >= allowed

    def _is_harmless(self, sentence: str) -> bool:
        for text in self._harmless:
            sentence = sentence.replace(text, "")
        return not any(map(str.isalnum, sentence))

    @cached_property
    def _known(self) -> frozenset[str]:
        """Words of the passages and the question."""
        shown = (word for hit in self._shown for word in words(without_injections(hit).chunk.text))
        return frozenset((*shown, *words(self._question)))


class Output:
    """Checks pieces of a text, and emits what is final of it."""

    def __init__(self, checker: AnswerChecker, emit: Emit) -> None:
        self.checker = checker  # replaced where the text begins again
        self._emit = emit
        self._verifying = 0.0  # seconds

    async def add(self, text: str, *, restart: bool = False) -> None:
        """Take the next piece; with `restart` the text begins here."""
        began = time.perf_counter()
        events = self.checker.feed(text, restart=restart)
        self._verifying += time.perf_counter() - began
        for event in events:
            await self._emit(event)

    async def begin_again(self, checker: AnswerChecker) -> None:
        """Take back the text."""
        self.checker = checker
        await self._emit(AnswerDelta(text="", restart=True))

    async def finish(self) -> CheckedAnswer:
        """Emit the last events; the whole answer."""
        began = time.perf_counter()
        events, checked = self.checker.finish()
        record_span("verify", self._verifying + time.perf_counter() - began)
        for event in events:
            await self._emit(event)
        return checked


def emit_while_checked(run: AnswerRun, *, withholds: bool, is_judged: bool) -> Emit:
    """Return what may be emitted while a text arrives: without the citations that a judge has yet to decide about, and
    nothing where unproved sentences are withheld."""

    async def emit_text(event: AnswerDelta | CitationChecked) -> None:
        if not isinstance(event, CitationChecked):
            await run.emit(event)

    if withholds:
        return ignore
    return emit_text if is_judged else run.emit


async def emit_rest(
    run: AnswerRun, checked: CheckedAnswer, *, notice: str, withholds: bool, is_judged: bool
) -> CheckedAnswer:
    """Emit what `emit_while_checked` has held back; the answer, with the notice for sentences that are withheld."""
    if withholds:
        checked = checked.withhold(notice)
        await run.emit(AnswerDelta(text=checked.text))
    if withholds or is_judged:
        for citation in checked.citations:
            await run.emit(CitationChecked(citation=citation))
    return checked

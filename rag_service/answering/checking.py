"""Checks a text that was written elsewhere against passages, as our own answers are checked.

A sentence with marks is compared with the passages that they name. One without is compared with those that share most
words with it, and gets the best that one of them gives. A judge sees all sentences beside all passages, some at a time,
and the last ones with the whole text before them.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import groupby, islice
from operator import attrgetter
from uuid import UUID

from rag_service.answering.decision.conclusion import decide, find_doubts, make_reasons
from rag_service.answering.drafts.checked_answer import CheckedAnswer
from rag_service.answering.drafts.doubts import Doubt
from rag_service.answering.drafts.judged import judge_answer
from rag_service.answering.guards.injection import without_injections
from rag_service.answering.prompt.templates import Prompts
from rag_service.answering.proof.claims import strip_marks
from rag_service.answering.proof.verify import CitationStream, CitedClaim, SentenceOffsets, Verification
from rag_service.domain import (
    AnswersQuestion,
    Chunk,
    Citation,
    CitationStatus,
    Decision,
    DocumentRef,
    Hit,
    Identity,
    Reason,
    Scores,
)
from rag_service.errors import NotFoundError
from rag_service.language.detection import detect_language
from rag_service.language.words import words
from rag_service.models.judge.judges import WatchedJudge
from rag_service.recent import keep_for
from rag_service.store.database import Database
from rag_service.store.search.passages import read_passages

AT_ONCE = 20  # sentences: so many does a judge see in one call, and come together in a stream
_PIECE = 500  # characters of a text that are read at a time
_COMPARED = 10  # passages that a sentence without a mark is compared with
_NOWHERE = UUID(int=0)  # document and corpus of a passage that the caller gives


@dataclass(frozen=True, kw_only=True)
class GivenPassage:
    """A passage of the caller's."""

    text: str
    title: str = ""


@dataclass(frozen=True, kw_only=True)
class CheckedSentences:
    """What the check makes of some sentences of a text."""

    checked: CheckedAnswer  # in their order; marks of citations count the passages from 1
    passages: tuple[Hit, ...]


@dataclass(frozen=True, kw_only=True)
class CheckedText(CheckedSentences):
    """What the check makes of a whole text."""

    language: str
    decision: Decision
    reasons: tuple[Reason, ...]


@dataclass(frozen=True, kw_only=True)
class _Found:
    """A sentence with what was found for it."""

    sentence: SentenceOffsets
    claims: Sequence[tuple[CitedClaim, Sequence[Citation]]]  # each with its citations; empty: nothing was found


class TextChecker:
    """Checks texts, with the judge if there is one, and with stored passages if there is a database."""

    def __init__(self, prompts: Prompts, judge: WatchedJudge | None, database: Database | None):
        self._prompts = prompts
        self._judge = judge
        self._database = database

    async def check(
        self,
        text: str,
        passages: Sequence[GivenPassage | str],
        identity: Identity,
        *,
        question: str = "",
        language: str | None = None,
    ) -> AsyncGenerator[CheckedSentences]:
        """Check a text: some sentences at a time, as they are known, and last the whole, a `CheckedText`.

        Args:
            text: with or without marks; `[C1]` names the first passage.
            passages: texts, and ids of stored ones.
            identity: whose stored passages these are.
            question: that the text answers; a judge that can tell says whether it does.
            language: ISO 639-1 of the text; None: it is detected.

        Raises NotFoundError before the first sentence if the identity may not read a passage, or there is none, and
        ModelBusyError or RateLimitedError if the chat model judges and has no place.
        """
        judge = self._judge if self._judge is not None and self._judge.is_used else None
        slots = None if judge is None else judge.slots
        with nullcontext() if slots is None else slots.admit(identity.user_id):
            hits = await self._find(passages, identity)
            language = language or detect_language(text) or "en"
            sentences = _check_sentences(text, hits, language)
            found: list[_Found] = []
            answers: AnswersQuestion | None = None
            batch = await _take(sentences, identity)
            while batch:
                following = await _take(sentences, identity)
                part = _gather(text, batch)
                if judge is not None:
                    asked = "" if following else question  # of the whole text, once all of it is shown
                    part, answers = await judge_answer(judge, part, hits, question=asked, language=language)
                    batch = list(_sentences_of(part))
                found += batch
                yield CheckedSentences(checked=part, passages=tuple(hits))
                batch = following
            yield self._conclude(_gather(text, found), hits, language, answers)

    def _conclude(
        self, checked: CheckedAnswer, hits: Sequence[Hit], language: str, answers: AnswersQuestion | None
    ) -> CheckedText:
        """Return the whole text with its decision."""
        doubts = find_doubts(
            {
                Doubt.NOT_ANSWERED: not checked.claims and not checked.unmarked,
                Doubt.CONTRADICTED: checked.refuted > 0,
                Doubt.UNPROVED: bool(checked.flagged),
                Doubt.JUDGED_PARTIAL: answers is AnswersQuestion.PARTLY,
                Doubt.JUDGED_OTHER: answers is AnswersQuestion.OTHER,
            }
        )
        return CheckedText(
            checked=checked,
            language=language,
            decision=decide(doubts),
            reasons=make_reasons(doubts, self._prompts.messages, language),
            passages=tuple(hits),
        )

    async def _find(self, passages: Sequence[GivenPassage | str], identity: Identity) -> list[Hit]:
        asked = [passage for passage in passages if isinstance(passage, str)]
        stored = await self._read(asked, identity) if asked else {}
        if unknown := [chunk_id for chunk_id in asked if chunk_id not in stored]:
            raise NotFoundError(f"There is no passage {unknown[0]!r} that can be read.", field="passages")
        chunks = [
            stored[passage] if isinstance(passage, str) else _make_chunk(number, passage)
            for number, passage in enumerate(passages, start=1)
        ]
        return [Hit(chunk=chunk, scores=Scores(relevance=1.0)) for chunk in chunks]

    async def _read(self, ids: Sequence[str], identity: Identity) -> dict[str, Chunk]:
        if self._database is None:
            return {}
        async with self._database.transaction(identity) as connection:
            return await read_passages(connection, ids)


def check_text(text: str, passages: Sequence[Hit], language: str | None) -> CheckedAnswer:
    """A text, checked without a judge: its marked sentences as those of an answer, the others as described above."""
    with keep_for(None):
        return _gather(text, list(_check_sentences(text, passages, language)))


async def _take(sentences: Iterator[_Found], identity: Identity) -> list[_Found]:
    """Return the next sentences; what is made of the passages for them is kept for the identity."""
    with keep_for(identity.user_id):
        return await asyncio.to_thread(list, islice(sentences, AT_ONCE))


def _check_sentences(text: str, passages: Sequence[Hit], language: str | None) -> Iterator[_Found]:
    """Each sentence that states something, once it is checked: marked ones first, paragraph by paragraph."""
    stream = CitationStream(passages, language=language, clean=without_injections)
    vocabularies = [frozenset(words(hit.chunk.text)) for hit in passages]
    claims = unmarked = 0
    for start in range(0, len(text) + 1, _PIECE):
        piece = text[start : start + _PIECE]
        if start + _PIECE <= len(text):
            stream.feed(piece)
            known = stream.so_far()
        else:
            known = stream.finish(piece)
        yield from _group(known.claims[claims:], known.citations)
        for begin, end in known.unmarked[unmarked:]:
            best = _find_source(text[begin:end], passages, vocabularies, language)
            cited = []
            if best is not None:
                claim = best[0]._replace(text=text[begin:end].strip())
                cited.append((claim, [replace(best[1], sentence_start=begin, sentence_end=end)]))
            yield _Found(sentence=(begin, end), claims=cited)
        claims, unmarked = len(known.claims), len(known.unmarked)


def _gather(text: str, found: Sequence[_Found]) -> CheckedAnswer:
    """Sentences as a checked text, in their order."""
    claims: list[CitedClaim] = []
    citations: list[Citation] = []
    for one in sorted(found, key=lambda one: one.sentence):
        for claim, cited in one.claims:
            positions = tuple(range(len(citations), len(citations) + len(cited)))
            claims.append(claim._replace(sentence=one.sentence, citations=positions))
            citations += cited
    unmarked = tuple(sorted(one.sentence for one in found if not one.claims))
    return CheckedAnswer(
        text=text,
        citations=tuple(citations),
        unmarked=unmarked,
        flagged=(),
        claims=tuple(claims),
        withheld=0,
    ).with_citations(citations)


def _sentences_of(part: CheckedAnswer) -> Iterator[_Found]:
    """Return the reverse of `_gather`."""
    yield from _group(part.claims, part.citations)
    for sentence in part.unmarked:
        yield _Found(sentence=sentence, claims=())


def _group(claims: Sequence[CitedClaim], citations: Sequence[Citation]) -> Iterator[_Found]:
    """Claims by their sentence."""
    for sentence, said in groupby(claims, key=attrgetter("sentence")):
        cited = [(claim, [citations[number] for number in claim.citations]) for claim in said]
        yield _Found(sentence=sentence, claims=cited)


def _verify(text: str, passages: Sequence[Hit], language: str | None) -> Verification:
    return CitationStream(passages, language=language, clean=without_injections).finish(text)


def _find_source(
    sentence: str, passages: Sequence[Hit], vocabularies: Sequence[frozenset[str]], language: str | None
) -> tuple[CitedClaim, Citation] | None:
    """Return the best that one of the passages gives for a sentence; None: none has anything of it.

    A passage that proves it is best, then the one whose words are nearest, whether they agree or differ.
    """
    said = set(words(sentence))
    shared = [len(said & vocabulary) for vocabulary in vocabularies]
    nearest = sorted(range(len(passages)), key=lambda number: -shared[number])[:_COMPARED]
    plain = strip_marks(sentence).strip().rstrip(" .")
    best: tuple[CitedClaim, Citation] | None = None
    for number in nearest:
        if not shared[number]:
            break
        known = _verify(f"{plain} [C1].", [passages[number]], language)
        for claim in known.claims:
            for citation in (known.citations[position] for position in claim.citations):
                is_found = citation.status is not CitationStatus.NOT_FOUND
                if is_found and (best is None or _rank(citation) > _rank(best[1])):
                    best = claim, replace(citation, mark=number + 1)
    return best


def _rank(citation: Citation) -> tuple[bool, float]:
    return citation.status is CitationStatus.VERIFIED, citation.support


def _make_chunk(number: int, passage: GivenPassage) -> Chunk:
    document = DocumentRef(
        id=_NOWHERE, corpus_id=_NOWHERE, title=passage.title, file_name=None, source=None, tags=(), content_hash="",
        updated_at=datetime.now(UTC),
    )  # fmt: skip
    return Chunk(id=f"passage {number}", document=document, index=0, text=passage.text, start=0, end=len(passage.text))

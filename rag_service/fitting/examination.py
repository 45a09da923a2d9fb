"""Examines a judge before its yes counts: on shipped answers in four languages, half of their sentences near misses.

A judge that says yes to lies would put a tick on them. It is shown these answers as it is shown others: whole, beside
the passages that their writer saw. It is asked in the background, through its own interface, about
one short answer after the other, while no question is being answered. A process that examines holds a lease in the
database, so that the others wait and read the outcome. Until it is known, reworded sentences stay `unchecked`.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from typing import Any
from uuid import UUID

import psycopg
import structlog

from rag_service.answering.proof.passage import find_telling, passage_of
from rag_service.domain import LOCAL_ADMIN, AnswersQuestion, Chunk, DocumentRef, Hit, Location, Scores, Span
from rag_service.errors import ConfigurationError, ModelError, StoreError
from rag_service.indices import shipped_folder
from rag_service.models.judge.judge import JudgedAnswer, JudgedClaim, Judgement
from rag_service.models.judge.judges import WatchedJudge
from rag_service.store.database import Database
from rag_service.store.judge_examinations import (
    Examination,
    State,
    lease_judge,
    read_examination,
    renew_judge_lease,
    store_examination,
)

log = structlog.get_logger(__name__)

LOOK_SECONDS = 10.0  # between looks at what another process stored, and before the first new attempt
STEADY_SECONDS = 600.0  # between looks at the model's weights once it is examined
MAX_PAUSE = 300.0  # between attempts
QUIET_LOOKS = 150  # half a minute: so long a call waits for a moment in which no question is answered
_BETWEEN_LOOKS = 0.2
WAITING = "Not examined yet, reworded sentences stay unchecked until the background examination has ended."


@dataclass(frozen=True, kw_only=True)
class ShippedAnswer:
    """An answer of the examination, and what is right to say of it."""

    answer: JudgedAnswer
    supported: Sequence[bool]  # of its claims
    answers: AnswersQuestion


@dataclass(frozen=True, kw_only=True)
class JudgeReport:
    """What is known of the judge, for operators."""

    name: str
    state: State
    detail: str


@cache
def load_examination() -> tuple[ShippedAnswer, ...]:
    """Return the shipped answers, each with the passages that its writer was shown."""
    return tuple(
        ShippedAnswer(
            answer=JudgedAnswer(
                question=answer["question"],
                claims=[_claim(claim, shown, part["language"]) for claim in answer["claims"]],
                passages=shown,
                language=part["language"],
            ),
            supported=["wrong" not in claim for claim in answer["claims"]],
            answers=AnswersQuestion(answer["answers"]),
        )
        for number, part in enumerate(json.loads(_read_shipped()))
        for shown in [_passages(number, part)]
        for answer in part["answers"]
    )


def _claim(claim: Mapping[str, Any], shown: Sequence[Hit], language: str) -> JudgedClaim:
    """A sentence of the examination as one of an answer: with its marks, each with the words copied into it."""
    marks = [(evidence["passage"], [evidence["words"]]) for evidence in claim.get("evidence", [])] or [(1, [])]
    cited = [shown[number - 1].chunk for number, _ in marks]
    return JudgedClaim(
        sentence=claim["sentence"],
        evidence=next((words for _, copied in marks for words in copied), cited[0].text),
        passage="\n\n".join(f"{chunk.document.title}\n{chunk.text}" for chunk in cited),
        language=language,
        marks=marks,
    )


def _passages(number: int, part: Mapping[str, Any]) -> list[Hit]:
    """Return the passages of a part: its own and `others`, which its writer was shown as well."""
    hits = []
    for place, given in enumerate(({**part, "text": part["passage"]}, *part.get("others", [])), start=1):
        document = DocumentRef(
            id=UUID(int=place), corpus_id=UUID(int=0), title=given.get("title", ""), file_name=given.get("file"),
            source=None, tags=(), content_hash="", updated_at=datetime(2026, 1, 1, tzinfo=UTC),
        )  # fmt: skip
        text, section = given["text"], given.get("section")
        spans = (Span(start=0, end=len(text), location=Location(headings=(section,))),) if section else ()
        chunk = Chunk(
            id=f"examination {number} {place}",
            document=document,
            index=0,
            text=text,
            start=0,
            end=len(text),
            spans=spans,
        )
        hits.append(Hit(chunk=chunk, scores=Scores(relevance=1.0)))
    return hits


def revision_of(judge: WatchedJudge) -> str:
    """By what an outcome is known, beside the judge's name: its class, prompt and thresholds, and the claims."""
    return hashlib.sha256(f"{judge.revision}\0{_read_shipped()}".encode()).hexdigest()


def mark(
    asked: Iterable[tuple[ShippedAnswer, Judgement]], *, judge: str, revision: str, weights: str = ""
) -> Examination:
    """Return the outcome. A yes counts as it does in an answer: with words of a passage that say something, or none."""
    claims = true = yes = right = answers = answering = kept = beside = 0
    for shipped, judgement in asked:
        for claim, supported, verdict in zip(shipped.answer.claims, shipped.supported, judgement.verdicts, strict=True):
            accepted = verdict is not None and verdict.entailed
            if accepted and verdict is not None and verdict.quote is not None:
                passages = [passage_of(hit.chunk, claim.language) for hit in shipped.answer.passages]
                accepted = any(find_telling(verdict.quote, passage) is not None for passage in passages)
            claims, true = claims + 1, true + supported
            yes, right = yes + accepted, right + (accepted and supported)
        if judgement.answers is not None:
            answers += 1
            said_yes = judgement.answers is AnswersQuestion.YES
            if shipped.answers is AnswersQuestion.YES:
                answering, kept = answering + 1, kept + said_yes
            else:
                beside += not said_yes
    return Examination(
        judge=judge, revision=revision, weights=weights, claims=claims, true=true, yes=yes, right=right,
        answers=answers, answering=answering, kept=kept, beside=beside,
    )  # fmt: skip


@dataclass(eq=False)
class JudgeExaminer:
    """Examines a judge, or reads what another process found, and tells the judge whether it is used."""

    judge: WatchedJudge | None  # None: nobody judges
    database: Database | None  # None: the outcome is kept in memory
    is_idle: Callable[[], bool] = lambda: True  # whether no question is being answered
    _weights: str = field(default="", init=False)
    _asked: list[Judgement] = field(default_factory=list, init=False)  # after a failure, the rest is asked
    _trouble: str = field(default="", init=False)  # why it is not examined yet

    def report(self) -> JudgeReport | None:
        """Return the present state in words; None: nobody judges."""
        if self.judge is None:
            return None
        known = self.judge.examination
        if known is not None:
            return JudgeReport(name=self.judge.name, state=known.state, detail=known.describe())
        detail = WAITING
        if self._asked:
            detail += f" This process has asked about {len(self._asked)} of {len(load_examination())} answers."
        return JudgeReport(name=self.judge.name, state="waiting", detail=f"{detail} {self._trouble}".strip())

    async def load(self) -> None:
        """Use the stored outcome; a database that is down is asked again later."""
        if self.judge is None or self.database is None:
            return
        try:
            async with self.database.transaction(LOCAL_ADMIN) as connection:
                self.judge.examination = await read_examination(connection, self.judge.name, revision_of(self.judge))
        except (StoreError, psycopg.Error) as error:
            log.warning("judge_examination_unreadable", exc_info=error)

    async def run(self) -> None:
        """Examine the judge unless that is done, and again when its model changes, until cancelled."""
        pause = LOOK_SECONDS
        while self.judge is not None:
            try:
                pause = STEADY_SECONDS if await self.examine() else LOOK_SECONDS
                self._trouble = ""
            except ConfigurationError as error:
                log.error("judge_unusable", judge=self.judge.name, reason=error.message)
                pause, self._trouble = MAX_PAUSE, f"{error.message} {error.help}"
            except Exception as error:  # whatever a plug-in raises
                log.warning("judge_examination_delayed", judge=self.judge.name, exc_info=error)
                pause = min(2 * pause, MAX_PAUSE)
                self._trouble = "It failed or gave no verdict in time, and is asked again."
            await asyncio.sleep(pause)

    async def complete(self) -> None:
        """Examine now, or wait until another process has. Raises what the judge or the database raises."""
        while self.judge is not None:
            if await self.examine():
                return
            await asyncio.sleep(LOOK_SECONDS)

    async def examine(self) -> bool:
        """Examine the judge unless that is done, or another process does it; returns whether it is done.

        Raises what the judge or the database raises, or ModelError if the judge is too slow; what it has said by then
        is kept.
        """
        if self.judge is None:
            return True
        await self.judge.warm_up()
        await self._look_at_weights(self.judge)
        if self.judge.examination is None:
            await self.load()
            await self._look_at_weights(self.judge)
        if self.judge.examination is not None:
            return True
        async with self._leased(self.judge) as has_lease:
            if not has_lease:
                return False
            outcome = await self._ask_all(self.judge)
            if self.database is not None:
                async with self.database.transaction(LOCAL_ADMIN) as connection:
                    await store_examination(connection, outcome)
        self.judge.examination = outcome
        self._asked = []
        tell = log.info if outcome.state == "passed" else log.warning
        tell("judge_examined", judge=self.judge.name, state=outcome.state, outcome=outcome.describe())
        return True

    async def _look_at_weights(self, judge: WatchedJudge) -> None:
        """Forget what is known of a model with other weights."""
        weights = await judge.read_weights()
        if weights != self._weights:
            self._weights, self._asked = weights, []
        if judge.examination is not None and weights and judge.examination.weights != weights:
            log.warning("judge_with_other_weights", judge=judge.name)
            judge.examination = None

    async def _ask_all(self, judge: WatchedJudge) -> Examination:
        shipped = load_examination()
        log.info("judge_examination", judge=judge.name, answers=len(shipped), done=len(self._asked))
        for one in shipped[len(self._asked) :]:
            for _ in range(QUIET_LOOKS):
                if self.is_idle():
                    break
                await asyncio.sleep(_BETWEEN_LOOKS)
            try:
                judgement = await judge.ask(one.answer)
            except TimeoutError as error:
                raise ModelError("The judge gave no verdict in time.") from error
            self._asked.append(judgement)
            if self.database is not None:
                async with self.database.transaction(LOCAL_ADMIN) as connection:
                    await renew_judge_lease(connection, judge.name, revision_of(judge))
        pairs = zip(shipped, self._asked, strict=True)
        return mark(pairs, judge=judge.name, revision=revision_of(judge), weights=self._weights)

    @asynccontextmanager
    async def _leased(self, judge: WatchedJudge) -> AsyncIterator[bool]:
        """Hold the right to examine, if no other process has it."""
        if self.database is None:
            yield True
            return
        async with self.database.transaction(LOCAL_ADMIN) as connection:
            leased = await lease_judge(connection, judge.name, revision_of(judge), self._weights)
        try:
            yield leased
        finally:
            if leased:
                await asyncio.shield(self._give_back(judge, self.database))

    async def _give_back(self, judge: WatchedJudge, database: Database) -> None:
        try:
            async with database.transaction(LOCAL_ADMIN) as connection:
                await renew_judge_lease(connection, judge.name, revision_of(judge), seconds=0)
        except (StoreError, psycopg.Error):  # the lease ends by itself
            log.warning("judge_lease_kept")


@cache
def _read_shipped() -> str:
    return (shipped_folder("evals") / "judge_examination.json").read_text(encoding="utf-8")

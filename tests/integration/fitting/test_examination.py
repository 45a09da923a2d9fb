"""A judge earns its tick: what it says of the shipped claims decides whether its yes counts."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from rag_service.domain import LOCAL_ADMIN, AnswersQuestion
from rag_service.errors import ModelError
from rag_service.fitting import examination
from rag_service.fitting.examination import JudgeExaminer, load_examination
from rag_service.models.judge.judge import JudgedAnswer, Judgement, Verdict
from rag_service.models.judge.judges import WatchedJudge
from rag_service.store.database import Database
from rag_service.store.judge_examinations import lease_judge
from rag_service.store.relevance_fits import lease_model
from tests.judges import right

ANSWERS = len(load_examination())
CLAIMS = sum(len(shipped.supported) for shipped in load_examination())
TRUE = sum(sum(shipped.supported) for shipped in load_examination())


def _key(answer: JudgedAnswer) -> tuple[str, ...]:
    return (answer.question, *(claim.sentence for claim in answer.claims))


_RIGHT = {_key(shipped.answer): right(shipped) for shipped in load_examination()}


def knows(answer: JudgedAnswer) -> Judgement:
    return _RIGHT[_key(answer)]


def errs(every: int) -> Callable[[JudgedAnswer], Judgement]:
    """A judge that is wrong about each claim whose number is divisible by `every`, both ways."""
    numbers = {sentence: number for number, sentence in enumerate(key for one in _RIGHT for key in one[1:])}

    def judge(answer: JudgedAnswer) -> Judgement:
        known = knows(answer)
        verdicts = [
            Verdict(entailed=bool(verdict and verdict.entailed) ^ (numbers[claim.sentence] % every == 0))
            for claim, verdict in zip(answer.claims, known.verdicts, strict=True)
        ]
        return Judgement(verdicts=verdicts, answers=known.answers)

    return judge


def says(*, yes: bool, quote: str | None = None, answers: AnswersQuestion = AnswersQuestion.YES) -> Any:
    """A judge that says the same of every claim and every answer."""
    return lambda answer: Judgement(
        verdicts=[Verdict(entailed=yes, quote=quote) for _ in answer.claims], answers=answers
    )


@dataclass
class JudgeDouble:
    """Says what `judgement` makes of an answer."""

    judgement: Callable[[JudgedAnswer], Judgement]
    revision: str = "1"
    name: str = "double"
    asked: list[JudgedAnswer] = field(default_factory=list)
    hangs_at: int | None = None

    async def judge_answer(self, answer: JudgedAnswer) -> Judgement:
        if self.hangs_at == len(self.asked):
            await asyncio.Event().wait()
        self.asked.append(answer)
        await asyncio.sleep(0)
        return self.judgement(answer)

    async def judge(self, claims: Any) -> Any:
        raise AssertionError("it is asked about answers")


def watch(double: JudgeDouble, *, seconds: float = 20, **options: Any) -> WatchedJudge:
    return WatchedJudge(double, seconds=seconds, **options)


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(examination, "LOOK_SECONDS", 0.02)


def test_about_half_of_the_claims_are_false_in_every_language_and_none_is_a_quote() -> None:
    counted: Counter[tuple[str | None, bool]] = Counter()
    for shipped in load_examination():
        counted.update((shipped.answer.language, supported) for supported in shipped.supported)
        for claim in shipped.answer.claims:
            assert not any(claim.sentence.rstrip(".") in hit.chunk.text for hit in shipped.answer.passages)
    for language in ("en", "es", "fr", "pt"):
        assert min(counted[language, True], counted[language, False]) >= 10
    assert 0.4 <= TRUE / CLAIMS <= 0.6
    words = Counter(shipped.answers for shipped in load_examination())
    assert min(words[AnswersQuestion.YES], len(load_examination()) - words[AnswersQuestion.YES]) >= 10


@pytest.mark.parametrize(
    ("judgement", "state", "is_believed", "told"),
    [
        (knows, "passed", True, f"In use: of {CLAIMS} sentences it let 0 of {CLAIMS - TRUE} wrong ones through"),
        (errs(20), "passed", False, "a doubtful figure counts beside its word"),
        (errs(4), "failed", False, "it has to be right in nine of ten"),
        (says(yes=True), "failed", False, f"it let {CLAIMS - TRUE} of {CLAIMS - TRUE} wrong ones through"),
        (says(yes=True, quote="words that no passage holds"), "silent", False, "it says yes too seldom"),
        (says(yes=True, quote="the"), "silent", False, "it says yes too seldom"),
        (says(yes=False), "silent", False, f"refused {TRUE} of {TRUE} right ones"),
    ],
    ids=["knows", "errs", "errs often", "yes to all", "invents quotes", "quotes nothing", "never yes"],
)
async def test_what_a_judge_is_worth_follows_from_what_it_lets_through_and_refuses(
    database: Database, judgement: Any, state: str, is_believed: bool, told: str
) -> None:
    judge = watch(JudgeDouble(judgement))
    examiner = JudgeExaminer(judge, database)
    waiting = examiner.report()
    assert waiting is not None
    assert (waiting.state, judge.is_used) == ("waiting", False)
    assert await examiner.examine()
    report = examiner.report()
    assert report is not None
    assert (report.state, judge.is_used, judge.is_believed) == (state, state == "passed", is_believed)
    assert told in report.detail
    assert report.detail.startswith("In use" if state == "passed" else "Not used, sentences in the model's own words")


@pytest.mark.parametrize("always", [AnswersQuestion.YES, AnswersQuestion.OTHER])
async def test_a_word_on_answers_that_is_always_the_same_is_not_used(always: AnswersQuestion) -> None:
    double = JudgeDouble(lambda answer: Judgement(verdicts=knows(answer).verdicts, answers=always))
    judge = watch(double)
    await JudgeExaminer(judge, None).examine()
    assert (judge.is_used, judge.tells_answers) == (True, False)


async def test_a_judge_that_hangs_is_left_and_asked_the_rest_later(database: Database) -> None:
    double = JudgeDouble(knows, hangs_at=3)
    judge = watch(double, seconds=2)
    examiner = JudgeExaminer(judge, database)
    running = asyncio.create_task(examiner.run())
    async with asyncio.timeout(60):
        while (told := examiner.report()) and "is asked again" not in told.detail:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    assert not judge.is_used
    running.cancel()
    with pytest.raises(ModelError, match="no verdict in time"):
        await examiner.examine()
    double.hangs_at = None
    assert await examiner.examine()
    assert (judge.is_used, len(double.asked)) == (True, ANSWERS)


async def test_two_processes_examine_once_and_both_use_the_outcome(database: Database) -> None:
    double = JudgeDouble(knows)
    judges = [watch(double), watch(double)]
    async with asyncio.timeout(120):
        await asyncio.gather(*(JudgeExaminer(judge, database).complete() for judge in judges))
    assert [judge.is_used for judge in judges] == [True, True]
    assert len(double.asked) == ANSWERS
    late = watch(double)
    await JudgeExaminer(late, database).load()
    assert late.examination == judges[0].examination


async def test_a_transaction_that_began_earlier_takes_no_lease_that_was_given_meanwhile(database: Database) -> None:
    async with database.transaction(LOCAL_ADMIN) as earlier:
        await earlier.execute("SELECT now()")
        async with database.transaction(LOCAL_ADMIN) as later:
            assert await lease_judge(later, "double", "1", "")
            assert await lease_model(later, "a-model", b"")
        assert not await lease_judge(earlier, "double", "1", "")
        assert not await lease_model(earlier, "a-model", b"")


async def test_another_model_prompt_or_other_weights_are_examined_again(database: Database) -> None:
    digest = "sha256:1"

    async def read_weights() -> str:
        return digest

    examined = JudgeExaminer(watch(JudgeDouble(knows), read_weights=read_weights), database)
    assert await examined.examine()
    for other in (JudgeDouble(says(yes=True), revision="2"), JudgeDouble(says(yes=True), name="other")):
        judge = watch(other, read_weights=read_weights)
        await JudgeExaminer(judge, database).load()
        assert judge.examination is None
    digest = "sha256:2"  # pulled again under the same name
    pulled = JudgeDouble(says(yes=True))
    judge = watch(pulled, read_weights=read_weights)
    assert await JudgeExaminer(judge, database).examine()
    assert (judge.is_used, len(pulled.asked)) == (False, ANSWERS)


async def test_a_judge_waits_for_a_moment_without_questions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(examination, "_BETWEEN_LOOKS", 0.001)
    double, busy = JudgeDouble(knows), True
    examining = asyncio.create_task(JudgeExaminer(watch(double), None, lambda: not busy).examine())
    await asyncio.sleep(0.03)
    assert double.asked == []
    busy = False
    assert await examining
    assert len(double.asked) == ANSWERS

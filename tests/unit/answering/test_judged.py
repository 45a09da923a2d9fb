"""What becomes of a judge's verdicts: code has the last word."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest

from rag_service.answering.checked_answer import AnswerChecker, CheckedAnswer
from rag_service.answering.judged import NOT_SUPPORTED, judge_answer
from rag_service.domain import AnswersQuestion, CitationStatus, Hit, ProofMethod
from rag_service.models.judge.judge import JudgedAnswer, JudgedClaim, Judgement, Verdict
from rag_service.models.judge.judges import WatchedJudge
from tests.judges import passed
from tests.unit.answering.proof.answers import make_hit

U, V = CitationStatus.UNCHECKED, CitationStatus.VERIFIED
PASS = make_hit("The travel pass costs 40 euros a month. Refunds take 14 days from the request. Children ride free.", 1)
QUESTION = "How long does a refund take?"
REWORDED = "Getting the money back takes 14 days [C1]."


@dataclass
class JudgeDouble:
    """Says what it is told, and remembers what it was asked."""

    verdicts: Sequence[Verdict | None]
    answers: AnswersQuestion | None = AnswersQuestion.YES
    name: str = "double"
    asked: list[JudgedAnswer] = field(default_factory=list)
    alone: list[JudgedClaim] = field(default_factory=list)  # asked without the answer

    async def judge(self, claims: Sequence[JudgedClaim]) -> Sequence[Verdict | None]:
        self.alone += claims
        return self.verdicts

    async def judge_answer(self, answer: JudgedAnswer) -> Judgement:
        self.asked.append(answer)
        return Judgement(verdicts=self.verdicts, answers=self.answers)


async def judge(
    answer: str, *verdicts: Verdict | None, shown: Sequence[Hit] = (PASS,), tells_answers: bool = True
) -> tuple[CheckedAnswer, JudgeDouble]:
    checker = AnswerChecker(shown, notice="-", language="en")
    checker.feed(answer)
    double = JudgeDouble(verdicts)
    watched = WatchedJudge(double, seconds=5)
    outcome = passed(watched)
    watched.examination = outcome if tells_answers else replace(outcome, beside=0)
    checked, _ = await judge_answer(watched, checker.finish()[1], shown, question=QUESTION, language="en")
    return checked, double


YES = Verdict(entailed=True, quote="Refunds take 14 days")


async def test_an_entailed_sentence_is_verified_by_the_judge() -> None:
    checked, double = await judge(REWORDED, YES)
    (citation,) = checked.citations
    assert (citation.status, citation.method, citation.judge) == (V, ProofMethod.JUDGE, "double")
    assert (checked.flagged, checked.refuted) == ((), 0.0)
    (asked,) = double.asked
    assert (asked.question, asked.text) == (QUESTION, "Getting the money back takes 14 days.")
    (claim,) = asked.claims
    assert claim.sentence == "Getting the money back takes 14 days."
    assert claim.evidence == "Refunds take 14 days from the request."
    assert claim.passage == PASS.chunk.text


@pytest.mark.parametrize(
    ("verdict", "reason"),
    [
        (Verdict(entailed=False), NOT_SUPPORTED),
        (Verdict(entailed=True, quote="Refunds are immediate"), NOT_SUPPORTED),  # words that the passage lacks
        (None, None),
    ],
)
async def test_without_a_supported_verdict_it_stays_unchecked(verdict: Verdict | None, reason: str | None) -> None:
    checked, _ = await judge(REWORDED, verdict)
    assert [(c.status, c.reason) for c in checked.citations] == [(U, reason)]
    assert checked.flagged or checked.refuted


@pytest.mark.parametrize("verdicts", [(), (YES, YES, YES)])
async def test_too_few_or_too_many_verdicts_lose_nothing(verdicts: Sequence[Verdict]) -> None:
    checked, _ = await judge(REWORDED, *verdicts)
    assert len(checked.citations) == 1


@pytest.mark.parametrize(
    "answer",
    [
        "Getting the money back takes 41 days [C1].",  # contradicted
        "The pass gives a discount of 12 percent to families [C1].",  # a figure of nowhere
        "Refunds for trains are made every December [C1].",
        "Refunds take 40 days from the request and the travel pass costs 14 euros [C1].",
        "Refunds are made one day after the request [C1].",
    ],
)
async def test_a_wrong_figure_is_not_verified_whatever_the_judge_says(answer: str) -> None:
    checked, double = await judge(answer, YES)
    assert double.asked == []
    assert [c.status for c in checked.citations if c.status is V] == []


async def test_a_judge_that_can_tell_is_asked_about_quotes_too() -> None:
    checked, double = await judge("Children ride free [C1].")
    assert ([(one.text, one.claims) for one in double.asked], checked.flagged) == ([("Children ride free.", [])], ())
    _, silent = await judge("Children ride free [C1].", tells_answers=False)
    assert silent.asked == []


async def test_one_that_cannot_tell_is_shown_no_question() -> None:
    checked, double = await judge(REWORDED, YES, tells_answers=False)
    assert (double.asked, len(double.alone), checked.citations[0].status) == ([], 1, V)

"""What becomes of a judge's verdicts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest

from rag_service.answering.drafts.checked_answer import AnswerChecker, CheckedAnswer
from rag_service.answering.drafts.judged import NOT_SUPPORTED, judge_answer
from rag_service.domain import AnswersQuestion, CitationStatus, Hit, Location, ProofMethod, WordsAgainst
from rag_service.models.judge.judge import JudgedAnswer, JudgedClaim, Judgement, Verdict
from rag_service.models.judge.judges import WatchedJudge
from rag_service.tables.sentences import CitedCells
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

    async def judge(self, claims: Sequence[JudgedClaim]) -> Sequence[Verdict | None]:
        raise AssertionError("asked about the whole answer")

    async def judge_answer(self, answer: JudgedAnswer) -> Judgement:
        self.asked.append(answer)
        return Judgement(verdicts=self.verdicts, answers=self.answers)


OTHER = make_hit("Refunds for season tickets take 30 days.", 2, title="Season tickets 2027")


async def judge(
    answer: str,
    *verdicts: Verdict | None,
    shown: Sequence[Hit] = (PASS, OTHER),
    tells_answers: bool = True,
    is_believed: bool = True,
) -> tuple[CheckedAnswer, JudgeDouble]:
    checker = AnswerChecker(shown, notice="-", question=QUESTION, language="en")
    checker.feed(answer)
    double = JudgeDouble(verdicts)
    watched = WatchedJudge(double, seconds=5)
    outcome = passed(watched)
    if not is_believed:  # it lets a few wrong sentences through
        outcome = replace(outcome, yes=outcome.yes + 3)
    watched.examination = outcome if tells_answers else replace(outcome, beside=0)
    checked, _ = await judge_answer(watched, checker.finish()[1], shown, question=QUESTION, language="en")
    return checked, double


def statuses(checked: CheckedAnswer) -> list[CitationStatus]:
    return [citation.status for citation in checked.citations]


YES = Verdict(entailed=True, quote="Refunds take 14 days")
NO = Verdict(entailed=False, quote="")


async def test_an_entailed_sentence_is_verified_by_the_judge() -> None:
    checked, double = await judge(REWORDED, YES)
    (citation,) = checked.citations
    assert (citation.status, citation.method, citation.judge) == (V, ProofMethod.JUDGE, "double")
    assert (checked.flagged, checked.refuted, checked.proved) == ((), 0.0, 1.0)
    (asked,) = double.asked
    assert (asked.question, list(asked.passages)) == (QUESTION, [PASS, OTHER])
    (claim,) = asked.claims
    assert claim.sentence == "Getting the money back takes 14 days."
    assert claim.evidence == "Refunds take 14 days from the request."
    assert claim.passage == f"{PASS.chunk.document.title}\n{PASS.chunk.text}"


async def test_the_judge_sees_the_sentence_as_written_and_the_words_copied_into_its_marks() -> None:
    _, double = await judge('## Refunds\n\nE-tickets: money back in 14 days [C1 "14 days from the request"][C2].', YES)
    (claim,) = double.asked[0].claims
    assert (claim.sentence, claim.before) == ("E-tickets: money back in 14 days.", "## Refunds")
    assert list(claim.marks) == [(1, ("14 days from the request",)), (2, ())]


async def test_all_sentences_are_judged_in_order_quotes_and_unmarked_ones_too() -> None:
    checked, double = await judge(
        "It takes two weeks.\n\nChildren ride free [C1]. Getting the money back takes 14 days [C1].", YES, YES, YES
    )
    assert [claim.sentence for claim in double.asked[0].claims] == [
        "It takes two weeks.",
        "Children ride free.",
        "Getting the money back takes 14 days.",
    ]
    assert statuses(checked) == [V, V, V]
    bare = checked.citations[-1]  # the judge's words stand for the mark that its writer left out
    assert (bare.mark, bare.quote, checked.unmarked, checked.flagged) == (1, "Refunds take 14 days", (), ())


@pytest.mark.parametrize(
    ("verdict", "status"),
    [
        (NO, U),
        (Verdict(entailed=True, quote="Refunds are immediate"), U),  # words that no passage has
        (Verdict(entailed=True, quote="the"), U),  # words that say nothing
        (Verdict(entailed=True, quote="from the"), U),
        (Verdict(entailed=True, quote="refunds"), U),
        (Verdict(entailed=True, quote=""), U),
        (None, U),
        (Verdict(entailed=False, quote="Refunds for season tickets take 30 days"), CitationStatus.CONTRADICTED),
    ],
)
async def test_without_words_that_show_it_a_sentence_is_not_verified(
    verdict: Verdict | None, status: CitationStatus
) -> None:
    checked, _ = await judge(REWORDED, verdict)
    assert statuses(checked) == [status]
    assert checked.flagged


async def test_words_against_a_sentence_are_named_with_their_document() -> None:
    checked, _ = await judge(REWORDED, Verdict(entailed=False, quote="season tickets take 30 days"))
    (citation,) = checked.citations
    assert citation.reason == "Season tickets 2027 says: “season tickets take 30 days”"
    assert citation.against == WordsAgainst(title="Season tickets 2027", quote="season tickets take 30 days")


async def test_a_judge_may_refuse_a_literal_quote_that_another_passage_corrects() -> None:
    checked, _ = await judge("Refunds take 14 days from the request [C1].", NO)
    assert [(c.status, c.reason) for c in checked.citations] == [(U, NOT_SUPPORTED)]


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        ("Getting the money back takes 14 days [C7].", CitationStatus.NOT_FOUND),
        ('Getting the money back takes 14 days [C1 "a wholly invented rule about cats"].', CitationStatus.NOT_FOUND),
        ('Getting the money back takes 14 days [C1 "season tickets take 30 days"].', CitationStatus.MISATTRIBUTED),
    ],
)
async def test_a_mark_that_points_to_nothing_stays_so_whatever_the_judge_says(
    answer: str, status: CitationStatus
) -> None:
    checked, _ = await judge(answer, YES)
    assert statuses(checked) == [status]
    assert checked.refuted == 1.0


async def test_words_of_a_passage_that_the_sentence_does_not_cite_are_cited_beside_its_mark() -> None:
    checked, _ = await judge("Getting the money back takes 14 days [C2].", YES)
    assert [(c.mark, c.status, c.quote) for c in checked.citations] == [
        (2, U, "Refunds for season tickets take 30 days."),
        (1, V, "Refunds take 14 days"),
    ]
    assert ([claim.citations for claim in checked.claims], checked.flagged) == ([(0, 1)], ())


async def test_each_mark_says_whether_its_own_words_stand_where_it_points() -> None:
    checked, _ = await judge("Getting the money back takes 14 days [C1][C2].", YES)
    assert [(c.mark, c.status) for c in checked.citations] == [(1, V), (2, U)]  # nothing shows what the second is for
    checked, _ = await judge('The money is back in 14 days [C1][C2 "Refunds for season tickets"].', YES)
    assert [(c.mark, c.status) for c in checked.citations] == [(1, V), (2, V)]
    assert checked.flagged == ()


@pytest.mark.parametrize(
    ("quote", "further"), [("Refunds take 14 days", []), ("Children ride free", ["Children ride free"])]
)
async def test_the_words_that_the_judge_names_are_evidence_unless_the_quote_has_them(
    quote: str, further: list[str]
) -> None:
    checked, _ = await judge(REWORDED, Verdict(entailed=True, quote=quote))
    (citation,) = checked.citations
    assert (citation.status, citation.quote) == (V, "Refunds take 14 days from the request.")
    assert [words.quote for words in citation.evidence] == further
    assert [PASS.chunk.text[words.start : words.end] for words in citation.evidence] == further


async def test_a_judge_that_refuses_a_figure_of_nowhere_is_explained_by_the_figure() -> None:
    checked, _ = await judge('It takes 41 days [C1 "Refunds take 14 days"].', NO)
    (citation,) = checked.citations
    assert (citation.status, citation.missing) == (U, "41")
    assert citation.reason == "“41” does not stand in the words cited."


async def test_what_contradicts_a_sentence_says_more_than_a_figure_of_nowhere() -> None:
    against = Verdict(entailed=False, quote="season tickets take 30 days")
    checked, _ = await judge('It takes 41 days [C1 "Refunds take 14 days"].', against)
    (citation,) = checked.citations
    assert citation.against is not None and citation.missing is None


async def test_words_of_a_computed_result_are_cited_by_the_cells_behind_it() -> None:
    result = make_hit("The sum of the fares is 120 euros. Formula: SUM(B2:B4)", 1)
    place = Location(sheet="Fares", cell="B2:B4")
    cells = CitedCells(
        document_id=result.chunk.document.id, start=40, end=60, location=place, formula="SUM(B2:B4)", text=""
    )
    checker = AnswerChecker([result], notice="-", question=QUESTION, language="en", computed={result.chunk.id: cells})
    checker.feed("Altogether one pays 120 euros for the fares.")
    watched = WatchedJudge(JudgeDouble([Verdict(entailed=True, quote="sum of the fares is 120 euros")]), seconds=5)
    watched.examination = passed(watched)
    checked, _ = await judge_answer(
        watched,
        checker.finish()[1],
        [result],
        question=QUESTION,
        computed={result.chunk.id: cells},
        language="en",
    )
    (citation,) = checked.citations
    assert (citation.status, citation.method, citation.formula) == (V, ProofMethod.JUDGE, "SUM(B2:B4)")
    # The result is no stored passage that could be opened.
    assert (citation.chunk_id, citation.start, citation.location) == (None, 40, place)


@pytest.mark.parametrize("verdicts", [(), (YES, YES, YES)])
async def test_too_few_or_too_many_verdicts_lose_nothing(verdicts: Sequence[Verdict]) -> None:
    checked, _ = await judge(REWORDED, *verdicts)
    assert statuses(checked) == [U]


@pytest.mark.parametrize(("is_believed", "status"), [(True, V), (False, U)])
async def test_a_figure_of_nowhere_counts_beside_a_judge_that_errs(is_believed: bool, status: CitationStatus) -> None:
    checked, _ = await judge('It takes 41 days [C1 "Refunds take 14 days"].', YES, is_believed=is_believed)
    assert statuses(checked) == [status]
    assert [c.missing for c in checked.citations] == [None if is_believed else "41"]


async def test_one_that_cannot_tell_is_shown_no_question() -> None:
    checked, double = await judge(REWORDED, YES, tells_answers=False)
    assert ([asked.question for asked in double.asked], statuses(checked)) == ([""], [V])


class SentenceJudge:
    """A judge that sees one sentence at a time."""

    name = "sentences"

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def judge(self, claims: Sequence[JudgedClaim]) -> Sequence[Verdict | None]:
        self.asked += [claim.sentence for claim in claims]
        return [Verdict(entailed=True, probability=0.9) for _ in claims]


async def test_a_judge_of_sentences_is_asked_only_about_what_code_leaves_open() -> None:
    checker = AnswerChecker([PASS], notice="-", language="en")
    checker.feed("Children ride free [C1]. Getting the money back takes 14 days [C1]. So it is.")
    watched = WatchedJudge(double := SentenceJudge(), seconds=5)
    watched.examination = passed(watched)
    checked, answers = await judge_answer(watched, checker.finish()[1], [PASS], question=QUESTION, language="en")
    assert (double.asked, answers) == (["Getting the money back takes 14 days."], None)
    assert statuses(checked) == [V, V]

"""What the checks of code say of written answers, and what they are worth beside a judge.

A check is known by the reason that it gives a citation. One that speaks about near misses as often as about right
answers tells nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from evals.written.answers import fold
from evals.written.measure import Reply
from rag_service.answering.proof.claims import strip_marks

# What a check says of a citation, whatever words it names.
CHECKS: Mapping[str, re.Pattern[str]] = {
    "mark of no passage": re.compile(r"No passage \[C\d+\] was shown\."),
    "quotation marks": re.compile(r"The words in quotation marks do not stand"),
    "copied words nowhere": re.compile(r".* does not stand in the passage\."),
    "copied words elsewhere": re.compile(r".* stands in another passage\."),
    "figures": re.compile(r".* does not stand in the words cited\."),
    "telling words of the judge": re.compile(r"The judge named no words"),
}


@dataclass(frozen=True, kw_only=True)
class Worth:
    """What a check said of the answers that the model wrote."""

    check: str
    right: int  # right answers with a citation that it doubts
    decides_right: int  # of them those that are not green and that nothing else of code doubts
    wrong: int  # near misses likewise
    decides_wrong: int
    right_sentences: int  # sentences that are right, of right answers and near misses, which it doubts
    wrong_sentences: int


def find_checks(reply: Reply) -> frozenset[str]:
    """Return the checks of code that doubt a citation of a reply."""
    reasons = [citation.reason.replace("\n", " ") for citation in reply.body.citations if citation.reason]
    return frozenset(name for name, said in CHECKS.items() if any(map(said.match, reasons)))


def weigh_checks(replies: Sequence[Reply]) -> Iterator[Worth]:
    """Give for each check the right answers and near misses that it doubts, of those that the model wrote."""
    written = [(reply, find_checks(reply)) for reply in replies if reply.outcome == "answer"]
    for name, said in CHECKS.items():
        doubted = [(reply, checks) for reply, checks in written if name in checks]
        alone = [reply for reply, checks in doubted if len(checks) == 1 and not reply.is_green]
        right = sum(reply.answer.right for reply, _ in doubted)
        yield Worth(
            check=name,
            right=right,
            decides_right=sum(reply.answer.right for reply in alone),
            wrong=len(doubted) - right,
            decides_wrong=sum(not reply.answer.right for reply in alone),
            right_sentences=_count_doubted(replies, said, right=True),
            wrong_sentences=_count_doubted(replies, said, right=False),
        )


def count_sentences(replies: Sequence[Reply], *, right: bool) -> int:
    """Return how many sentences the model wrote that are right, or wrong."""
    return sum(one.right == right for reply in replies if reply.outcome == "answer" for one in reply.answer.sentences)


def _count_doubted(replies: Sequence[Reply], said: re.Pattern[str], *, right: bool) -> int:
    return sum(
        any(fold(one.text) in text or text in fold(one.text) for text in doubted)
        for reply in replies
        if reply.outcome == "answer"
        for doubted in [list(_doubted_texts(reply, said))]
        for one in reply.answer.sentences
        if one.right == right
    )


def _doubted_texts(reply: Reply, said: re.Pattern[str]) -> Iterator[str]:
    """Return the sentences with a citation that a check doubts, folded and without marks."""
    for citation in reply.body.citations:
        if citation.reason and said.match(citation.reason.replace("\n", " ")):
            text = reply.body.answer[citation.sentence_start : citation.sentence_end]
            yield fold(strip_marks(text))

"""No text, however it is made, may take long: neither a question, nor an answer, nor a document.

Each of these texts once took more than the bound, most of them many seconds, because something was tried again from
every place of it. Now they take a tenth of the bound, or a third at most.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import replace

import pytest

from rag_service.answering.drafts.checked_answer import AnswerChecker
from rag_service.answering.guards.guardrails import check_rules, read_rules
from rag_service.answering.guards.injection import find_injections, neutralise
from rag_service.answering.guards.output_guard import LeakFilter, LinkFilter, find_urls
from rag_service.answering.proof.analysis import analyse
from rag_service.answering.proof.claims import strip_marks
from rag_service.answering.proof.quotations import split_elisions
from rag_service.answering.proof.verify import verify_answer
from rag_service.answering.quoting.choice import choose_quotes
from rag_service.answering.quoting.quotes import Evidence
from rag_service.evaluation.metrics import holds_answer
from rag_service.language.detection import detect_language
from rag_service.language.normalise import normalise
from rag_service.language.sentences import SentenceStream, split_sentences
from rag_service.language.words import terms
from tests.timing import takes_linear_time
from tests.unit.answering.proof.answers import make_hit

LENGTH = 50_000  # characters
BOUND = 1.0  # seconds of processor time
PROMPT = "You answer questions from the passages below and from nothing else. Do not add knowledge of your own."
FACT = make_hit("The travel pass costs 40 euros a month. Refunds take 14 days from the request.")


def long(bit: str, *, before: str = "", after: str = "") -> str:
    return before + (bit * (LENGTH // len(bit) + 1))[:LENGTH] + after


def filter_links(text: str) -> None:
    links = LinkFilter(lambda _: False)
    links.feed(text)
    links.flush()


def filter_leaks(text: str) -> None:
    leaks = LeakFilter(PROMPT, notice="")
    leaks.feed(PROMPT[:34])  # one letter more, and it is a leak
    for start in range(0, len(text), 1000):
        leaks.feed(text[start : start + 1000])
    leaks.flush()


def stream_sentences(text: str) -> None:
    stream = SentenceStream()
    for start in range(0, len(text), 100):
        stream.feed(text[start : start + 100])
    stream.flush()


def check_answer(text: str) -> None:
    checker = AnswerChecker([FACT], notice="(left out)", secrets=[PROMPT])
    for start in range(0, len(text), 1000):
        checker.feed(text[start : start + 1000])
    checker.finish()


def check_guardrails(text: str) -> None:
    rule = make_hit('- Never say "take any amount you like".')
    rules = read_rules([replace(rule, chunk=replace(rule.chunk, type="guardrails"))])
    assert len(rules) == 1
    check_rules(rules, [("answer", text)], language="en")


def answer_by_quotation(question: str) -> None:
    document = make_hit("The pass costs 40 euros a month. " * 100)
    evidence = Evidence(question=question, language="en", hits=(document,), weights={"pass": 1.0})

    async def compute_here(work: Callable[..., object], *arguments: object) -> object:
        return work(*arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(asyncio, "to_thread", compute_here)  # the time of this thread is measured
        asyncio.run(choose_quotes(evidence, None))


def find_gold(text: str) -> None:
    holds_answer(text, ["40 euros"])


def check_claims(text: str) -> None:
    verify_answer(f"{text} [C1].", [FACT])


def read_words(text: str) -> None:
    terms(text, "es")
    detect_language(text)


def cases() -> Iterable[object]:
    dots = [long(bit) for bit in ("1.1.1.", "a.b.", "ab.", "1.", ".pdf")]
    yield from ((find_urls, text) for text in (*dots, long("a-"), long("a+")))
    yield from ((filter_links, text) for text in (*dots, long("!")))
    yield from ((filter_leaks, text) for text in (long(" "), long("\n"), long("- ")))
    roles = (long(" ", before="system"), long("\t", before="user"))
    yield from ((neutralise, text) for text in (long("~"), long("～"), *roles))
    yield from ((find_injections, text) for text in (long("\n", after="prompt"), long("~", after="prompt")))
    yield from ((split_elisions, text) for text in (long(" "), long("\n")))
    yield from ((strip_marks, text) for text in (long(" "), long("\t"), long("\u00a0")))
    yield from ((find_gold, text) for text in (long(" "), long("\n")))
    yield from ((split_sentences, text) for text in (long(" ", before="End.", after="[x"), long("\n[")))
    yield from ((stream_sentences, text) for text in (long(" ", before="End.", after="[x"), long("\n[")))
    yield from ((analyse, text) for text in (long("1 "), long("S1 "), long("1 000 "), long("$1 "), long("1/1/1 ")))
    yield from ((check_guardrails, text) for text in (long("Fee. "), long("take "), long("1 ")))
    yield from ((check_answer, text) for text in (long("**", after=".\n\nA word."), long("<a. B ")))
    yield from ((check_claims, text) for text in (long("1 a "),))
    marks = long("\u0316\u0300", before="a")
    yield from ((function, marks) for function in (normalise, read_words))
    yield from ((answer_by_quotation, text) for text in (long("what "), long("how much is "), long("quel ")))


def name(case: object) -> str:
    return case.__name__ if callable(case) else repr(case[:12]) if isinstance(case, str) else ""


@pytest.mark.parametrize(("function", "text"), list(cases()), ids=name)
def test_no_text_takes_long(function: Callable[[str], object], text: str) -> None:
    half = text[: len(text) // 2]
    assert takes_linear_time(lambda: function(text), lambda: function(half), bound=BOUND)

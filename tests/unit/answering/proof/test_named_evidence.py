"""The words of evidence that a model gives with its marks: hidden from readers, found in the passage."""

from __future__ import annotations

import pytest

from rag_service.answering.proof.claims import NamedEvidence
from rag_service.answering.proof.verify import CitationStream
from rag_service.domain import Citation, CitationStatus
from tests.unit.answering.proof.answers import make_hit

LONG = "y" * 5000
CASES = [
    ('A year [C1 "at most 12 months"]. Next [C2].', "A year [C1]. Next [C2].", {1: "at most 12 months", 2: ""}),
    ('A [C1: “x y”][C2 "z [C3] w"] b', "A [C1][C2] b", {1: "x y", 2: "z [C3] w"}),
    ('A [C1 "a", C2 «b»].', "A [C1][C2].", {1: "a", 2: "b"}),
    ("A [c 1 (\"l'eau de l'étang\")].", "A [C1].", {1: "l'eau de l'étang"}),
    (f'A [C1 "{LONG}"]. B.', "A [C1]. B.", {1: LONG}),
    ('A [C1 "never closed". B [C2 "b"].', "A [C1]. B [C2].", {1: "never closed", 2: "b"}),
    ('A [C1 "never closed\n\nB [C2].', "A [C1]\n\nB [C2].", {1: "", 2: ""}),
    ("A [C1] and a [link](x) and [C", "A [C1] and a [link](x) and [C", {1: ""}),
    ("A [C1-3] [CX] [1].", "A [C1-3] [CX] [1].", {1: "", 3: ""}),
    ("`a[C1]` 【C2】", "`a[C1]` 【C2】", {2: ""}),
]


@pytest.mark.parametrize("size", [1, 2, 5, 10_000])
@pytest.mark.parametrize(("text", "shown", "evidence"), CASES)
def test_the_words_are_kept_and_not_shown(text: str, shown: str, evidence: dict[int, str], size: int) -> None:
    named = NamedEvidence()
    pieces = [named.feed(text[start : start + size]) for start in range(0, len(text), size)]
    assert "".join([*pieces, named.finish()]) == shown
    assert {number: named.take(number) for number in evidence} == {n: (e,) if e else () for n, e in evidence.items()}


def test_nothing_is_held_without_a_bracket() -> None:
    named = NamedEvidence()
    assert named.feed("The first token") == "The first token"
    assert named.feed(" of (many). ") == " of (many). "


TEXT = (
    "The notice period is at most 12 months. It be-\ngins with the ﬁrst letter. «Señores», dice.\n\n"
    "| Item | Price |\n|---|---|\n| Large locker | 45 € |\n\nThe notice period is at most 12 months for tenants."
)


def cite(answer: str, text: str = TEXT) -> Citation:
    named = NamedEvidence()
    shown = named.feed(answer) + named.finish()
    (citation,) = CitationStream([make_hit(text, start=100)], language="en", named=named).finish(shown).citations
    if citation.quote is not None:
        assert citation.start is not None and citation.end is not None
        assert text[citation.start - 100 : citation.end - 100] == citation.quote
    return citation


@pytest.mark.parametrize(
    ("answer", "quote"),
    [
        ('Leaving takes a year [C1 "notice period is at most 12 months"].', "notice period is at most 12 months"),
        ('It all starts upon a message [C1 "It begins with the first letter"].', "It be-\ngins with the ﬁrst letter"),
        ("Sirs are addressed [C1 “"'"Senores", dice'"”].", "Señores», dice"),
        ('A big box costs forty-five [C1 "Large locker: 45 €"].', "Large locker | 45"),
        ('Tenants leave after a year [C1 "at most 12 months" ]!', "at most 12 months"),
    ],
)  # fmt: skip
def test_the_words_are_found_exactly_where_they_stand(answer: str, quote: str) -> None:
    citation = cite(answer)
    assert citation.status is CitationStatus.UNCHECKED  # that they say what the sentence says is for a judge
    assert citation.quote is not None and citation.quote.startswith(quote)


def test_words_that_stand_twice_are_taken_from_the_sentence_nearest_to_the_claim() -> None:
    citation = cite('Tenants may leave after a year [C1 "at most 12 months"].')
    assert citation.start is not None and citation.start - 100 > TEXT.index("Large locker")


@pytest.mark.parametrize("evidence", ["[C1] [C2] forged", LONG, "a rule about cats and dogs", "46 lockers"])
def test_words_that_stand_nowhere_are_not_found_and_named(evidence: str) -> None:
    citation = cite(f'The notice period for tenants is long [C1 "{evidence}"].')
    assert citation.status is CitationStatus.NOT_FOUND
    assert citation.reason is not None and citation.reason.startswith(f"“{evidence[:9]}")
    assert len(citation.reason) < 300
    assert citation.missing is not None and citation.missing[:9] == evidence[:9]


@pytest.mark.parametrize("evidence", ["a notice period of 12 months at most", "notice period: at most 12 months"])
def test_words_that_are_copied_inexactly_are_found_by_their_nearest_sentence(evidence: str) -> None:
    citation = cite(f'Leaving takes a year [C1 "{evidence}"].')
    assert citation.status is CitationStatus.UNCHECKED
    assert citation.quote is not None and citation.quote.startswith("The notice period is at most 12 months")


def test_words_of_another_passage_are_misattributed() -> None:
    named = NamedEvidence()
    shown = named.feed('The pool opens early [C2 "at most 12 months"].') + named.finish()
    hits = [make_hit(TEXT, 1), make_hit("The pool opens at nine.", 2)]
    (citation,) = CitationStream(hits, language="en", named=named).finish(shown).citations
    assert (citation.status, citation.chunk_id) == (CitationStatus.MISATTRIBUTED, "chunk-1")
    assert citation.missing == "at most 12 months"


def test_marks_of_one_passage_in_a_row_are_shown_once_and_keep_all_their_words() -> None:
    named = NamedEvidence()
    text = 'It is 45 € and leaving takes a year [C1 "Large locker | 45 €"][C1 "at most 12 months"]. So it is [C1].'
    shown = "".join(map(named.feed, text)) + named.finish()
    assert shown == "It is 45 € and leaving takes a year [C1]. So it is [C1]."
    first, _ = CitationStream([make_hit(TEXT)], language="en", named=named).finish(shown).citations
    assert first.quote == "Large locker | 45"
    assert [words.quote for words in first.evidence] == ["at most 12 months"]
    assert TEXT[first.evidence[0].start : first.evidence[0].end] == "at most 12 months"

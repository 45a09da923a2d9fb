"""Decision and confidence, by the sum that the advisor shows."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rag_service.answering.decision import (
    lacks_figure,
    lacks_proof,
    names_another_month,
    names_another_number,
    rate_confidence,
)
from rag_service.domain import (
    MAIL_HEADER,
    Citation,
    CitationStatus,
    Hit,
    Location,
    ProofMethod,
    Scores,
)
from rag_service.indices import QueryDefinition
from tests.unit.answering.proof.answers import make_hit

TIERED = QueryDefinition(tiers={"critical": ("business_rules",)})


def hits(*scores: tuple[float, float | None], type: str | None = None) -> list[Hit]:
    hit = make_hit("text")
    chunk = replace(hit.chunk, type=type)
    return [Hit(chunk=chunk, scores=Scores(relevance=relevance, rerank=rerank)) for relevance, rerank in scores]


def test_the_mean_of_the_top_three_relevances() -> None:
    confidence = rate_confidence(hits((0.9, None), (0.8, None), (0.7, None), (0.1, None)), QueryDefinition())
    assert (confidence.value, confidence.mean_rerank) == (0.8, None)


def test_rerank_scores_are_averaged_in() -> None:
    confidence = rate_confidence(hits((0.9, 0.5), (0.9, 0.5), (0.9, 0.5)), QueryDefinition())
    assert confidence.value == 0.7


def test_two_critical_chunks_raise_it_by_a_tenth_and_never_above_one() -> None:
    one = hits((0.8, None), type="business_rules") + hits((0.8, None), (0.8, None))
    two = hits((0.8, None), (0.8, None), type="business_rules") + hits((0.8, None))
    assert rate_confidence(one, TIERED).value == 0.8
    assert rate_confidence(two, TIERED).value == 0.88
    assert rate_confidence(hits((1.0, None), (1.0, None), type="business_rules"), TIERED).value == 1.0


def test_nothing_found_is_zero() -> None:
    assert rate_confidence([], TIERED).value == 0.0


LAMP = "Product: Lamp | Supplier: Acme | Stock: 12"


@pytest.mark.parametrize(
    ("question", "quote", "places", "lacks"),
    [
        ("What is the total stock in Lyon?", LAMP, [Location(sheet="Stocks", cell="A2:C2")], True),
        ("Quel est le total des stocks ?", LAMP, [Location(row=3), Location(row=4)], True),
        ("Who supplies the lamp?", LAMP, [Location(sheet="Stocks", cell="A2:C2")], False),
        ("What is the stock of the lamp?", LAMP, [Location(cell="A2")], False),
        ("What is the salary of Marta?", "Name: Marta | City: Lugo", [Location(cell="A2")], True),
        ("How much does Marta earn?", "Name: Marta | City: Lugo", [Location(page=3)], True),
        ("What is the voltage of the lamp?", LAMP, [Location(cell="A2")], True),
        ("What is the total rent?", "Flat 3: 700 | Flat 4: 650", [Location(page=3)], True),
        ("What is the total rent?", "Flat 3      700", [Location(page=3)], True),
        ("What is the total rent?", "The total rent is 1,350.", [Location(page=3)], False),
        ("What is the total rent?", "The total rent is 1,350.", [Location(cell="A2"), Location(page=3)], False),
        ("What is the total rent?", LAMP, [], False),
        (
            "What is the maximum amount of a plan loan?",
            "Limit: Maximum loan | Amount: 50%",
            [Location(cell="A2")],
            False,
        ),
        ("What is the maximum amount of a plan loan?", "Limit: Maximum fee | Amount: 50%", [Location(cell="A2")], True),
    ],
)
def test_rows_alone_prove_no_calculation_and_no_other_attribute(
    question: str, quote: str, places: list[Location], lacks: bool
) -> None:
    citations = [
        Citation(
            mark=1, status=CitationStatus.VERIFIED, method=ProofMethod.QUOTE, sentence_start=0, sentence_end=9,
            support=1.0, location=place, quote=quote,
        )
        for place in places
    ]  # fmt: skip
    language = "fr" if question.startswith("Quel") else "en"
    assert lacks_proof(question, citations, language) is lacks
    computed = [replace(one, method=ProofMethod.COMPUTED) for one in citations]
    assert not lacks_proof(question, computed, language)


@pytest.mark.parametrize(
    ("question", "prose", "lacks"),
    [
        ("What is the difference in stock between lamps and rugs?", "Stocks of lamps grew again.", True),
        ("Quel est le total des stocks ?", "Les stocks ont augmenté.", True),
        ("Quel est le total des stocks ?", "Le total est de 40.", False),
        ("Who supplies the lamp?", "Acme supplies lamps.", False),
    ],
)
def test_a_row_proves_no_calculation_that_the_sentence_behind_it_does_not_name(
    question: str, prose: str, lacks: bool
) -> None:
    citations = [
        Citation(
            mark=1, status=CitationStatus.VERIFIED, method=ProofMethod.QUOTE, sentence_start=0, sentence_end=9,
            support=1.0, location=place, quote=quote,
        )
        for place, quote in ((Location(cell="A2"), LAMP), (Location(page=3), prose))
    ]  # fmt: skip
    assert lacks_proof(question, citations, "fr" if question.startswith("Quel") else "en") is lacks


@pytest.mark.parametrize(("part", "lacks"), [(MAIL_HEADER, True), (f"ask.eml > {MAIL_HEADER}", True), (None, False)])
def test_the_header_of_a_mail_does_not_prove_what_the_mail_says(part: str | None, lacks: bool) -> None:
    citation = Citation(
        mark=1, status=CitationStatus.VERIFIED, method=ProofMethod.QUOTE, sentence_start=0, sentence_end=9,
        support=1.0, location=Location(part=part), quote="To: volunteers@example.org",
    )  # fmt: skip
    assert lacks_proof("Where do the volunteers meet?", [citation], "en") is lacks


@pytest.mark.parametrize(
    ("question", "quote", "another"),
    [
        ("Quanto custou a nuvem em agosto?", "A fatura de julho foi de 23 870 euros.", True),
        ("Quanto custou a nuvem em agosto?", "A fatura de julho foi de 23 870 euros, menos 9 % do que em junho.", True),
        ("Quanto custou a nuvem em julho?", "A fatura de julho foi de 23 870 euros.", False),
        ("Quanto custou a nuvem?", "A fatura de julho foi de 23 870 euros.", False),
        ("Está aberta em julho?", "Está aberta de junho a setembro.", False),
        ("Está aberta em julho?", "Está aberta todo o ano.", False),
    ],
)
def test_a_quote_of_another_month_proves_nothing(question: str, quote: str, another: bool) -> None:
    assert names_another_month(question, quote, "pt") is another


def test_a_month_that_is_also_another_word_is_not_seen() -> None:
    assert not names_another_month("May I park in the yard?", "Visitors park in the yard since June.", "en")


@pytest.mark.parametrize(
    ("question", "quoted", "another"),
    [
        ("What is the color code of gate 9?", "Gate 11 has the color code blue.", True),
        ("What is the color code of gate 9?", "Gates 9 to 11: see gate 9. Gate 11 is blue.", False),
        ("What is the color code of gate 9?", "The color code is blue.", False),
        ("¿Qué dice el artículo 14?", "El artículo 15 regula las multas.", True),
        ("Combien coûte le quai 3 pour 2 nuits ?", "Le quai 3 coûte 40 € pour 1 nuit.", False),
    ],
)
def test_a_quote_about_another_number_proves_nothing(question: str, quoted: str, another: bool) -> None:
    assert names_another_number(question, quoted) is another


@pytest.mark.parametrize(
    ("question", "quoted", "lacking"),
    [
        ("Combien de places de parking y a-t-il ?", "On fume sous l'abri du parking nord.", True),
        ("Combien de places de parking y a-t-il ?", "Le parking a quarante places.", False),
        ("How many days may I stay?", "At most 3 days.", False),
        ("How much does the permit cost?", "The permit is renewed every year.", True),
        ("How much does the machine cost?", "Switch it off for 20 minutes.", True),
        ("How much does the machine cost?", "Machine: Aroma | Price: 300", False),
        ("How much does sick leave pay?", "It pays 80 % of the salary.", False),
        ("Who renews the permit?", "The harbour office.", False),
    ],
)
def test_an_answer_without_a_figure_does_not_say_how_many(question: str, quoted: str, lacking: bool) -> None:
    assert lacks_figure(question, quoted) is lacking

"""The gate of quotes: what they must be about, and what proves no answer whatever it says."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rag_service.answering.decision.gate import differ_in_figures, is_about_another, is_unmeasured
from rag_service.domain import MAIL_HEADER, Citation, CitationStatus, Location, ProofMethod, Span
from tests.unit.answering.proof.answers import make_hit


def cite(quote: str, location: Location | None = None, method: ProofMethod = ProofMethod.QUOTE) -> Citation:
    return Citation(
        mark=1, status=CitationStatus.VERIFIED, method=method, sentence_start=0, sentence_end=9, support=1.0,
        location=location, quote=quote,
    )  # fmt: skip


def is_beside(question: str, passage: str, language: str, *, quote: str | None = None) -> bool:
    return is_about_another(question, [cite(quote or passage)], [make_hit(passage).chunk], language)


@pytest.mark.parametrize(
    ("language", "question", "passage"),
    [
        ("pt", "Quanto custou a nuvem em agosto?", "A fatura de julho foi de 23 870 euros, menos 9 % do que em junho."),
        ("en", "How many scales came back in March?", "14 scales came back in Feb (Jan: 9)."),
        ("en", "What is the colour code of gate 9?", "Gate 11 has the colour code blue."),
        ("es", "¿Qué dice el artículo 14?", "El artículo 15 regula las multas."),
        ("fr", "Combien de contacts en 2023 ?", "Nous avons fait 83 contacts ; en 2024 c'était 61."),
        ("en", "How long does it take to swap the cell of the FL-300?", "It takes about 35 minutes."),
        ("en", "How much is the licence in Leeds?", "The licence costs 212 pounds in York."),
        ("fr", "Combien de places de parking y a-t-il ?", "On fume sous l'abri du parking nord."),
        ("en", "How much does the permit cost?", "The permit is renewed every year."),
        ("en", "Who closed the bridge?", "The bridge over the Ems was closed on Monday."),
        ("es", "¿Quién cerró el puente?", "El puente se cerró el lunes."),
        ("fr", "Qui a fermé le pont ?", "Le pont a été fermé lundi."),
        ("pt", "Quem fechou a ponte?", "A ponte foi fechada na segunda-feira."),
        ("en", "Why was the bridge closed?", "The bridge was closed on Monday."),
        ("es", "¿Por qué se cerró el puente?", "El puente se cerró el lunes."),
        ("en", "How much did the solar roof cost?", "The solar roof has 640 kWp."),
        ("en", "What is not covered?", "Theft is covered by the policy."),
        ("en", "What is the minimum deposit?", "The maximum deposit is 900 euros."),
        ("en", "What is the contract number of the pump?", "The contract number of the pump is named in the annex."),
        ("en", "How much will the hall cost?", "Cost of the hall: still open. The chargers were 96,000 pounds."),
        ("en", "How do I cancel my membership?", "Confidential - Draft 4"),
        ("fr", "Quand la piscine ouvre-t-elle ?", "Tél. 0555 12 34"),
        ("en", "How much did we spend on lamps in 2024?", "In 2025 we spent 620 pounds on lamps."),
        ("en", "What time does the course start?", "The course is held on 9 and 10 May; it costs 35 pounds."),
        ("es", "¿A qué hora abre la piscina?", "La piscina está en la calle Mayor 4."),
        ("fr", "À quelle heure ouvre la piscine ?", "La nuit, adressez-vous à la piscine, 4 rue Pasteur."),
        ("pt", "A que horas começa o curso?", "O curso é nos dias 9 e 10 de maio; custa 35 euros."),
    ],
)
def test_a_quote_about_something_else_answers_nothing(language: str, question: str, passage: str) -> None:
    assert is_beside(question, passage, language)


@pytest.mark.parametrize(
    ("language", "question", "passage"),
    [
        ("pt", "Quanto custou a nuvem em julho?", "A fatura de julho foi de 23 870 euros."),
        ("pt", "Está aberta em julho?", "Está aberta de junho a setembro; em julho fecha às 20h."),
        ("en", "What was sold in March 2025?", "On 14/03/2025 we sold 12 lamps."),
        ("en", "Who came in February?", "Feb: Ann and Tom."),
        ("en", "May I park in the yard?", "Visitors park in the yard since June."),
        ("fr", "Combien de places de parking y a-t-il ?", "Le parking a quarante places."),
        ("en", "How much does sick leave pay?", "It pays 80 % of the salary."),
        ("en", "How many rooms may six people book?", "A group of 6 may book 2 rooms."),
        ("en", "Who closed the bridge?", "The caretaker closed the bridge."),
        ("en", "Who closed the bridge?", "The bridge was closed by the police."),
        ("en", "Who is the treasurer?", "The treasurer is Ann Lee."),
        ("es", "¿Por qué se cerró el puente?", "El puente se cerró debido a la crecida."),
        ("en", "What is not covered?", "Theft is not covered."),
        ("en", "How much does the hall cost?", "The hall is new. It costs 96,000 pounds."),
        ("en", "What is the contract number of the pump?", "Pump: contract RC-117"),
        ("en", "How much did we spend on lamps in 2024?", "620 pounds in 2025, in 2024 we spent 50 pounds on lamps."),
        ("en", "What time does the course start?", "The course starts at 9 in the hall."),
        ("es", "¿A qué hora abre la piscina?", "La piscina abre a las 10."),
        ("fr", "À quelle heure ouvre la piscine ?", "La piscine ouvre à 10h."),
        ("pt", "A que horas começa o curso?", "O curso começa às 10."),
    ],
)
def test_a_quote_that_has_what_the_question_names_may_answer(language: str, question: str, passage: str) -> None:
    assert not is_beside(question, passage, language)


FAQ = """**Is an older dog cheaper?**
Yes. If the dog is over eight you pay 60 pounds.

**How much is a dog?**
The fee is 160 pounds.
"""


@pytest.mark.parametrize(
    ("quote", "beside"), [("If the dog is over eight you pay 60 pounds.", True), ("The fee is 160 pounds.", False)]
)
def test_the_answer_below_another_question_is_none(quote: str, beside: bool) -> None:
    citation = replace(cite(quote), start=FAQ.index(quote), end=FAQ.index(quote) + len(quote))
    assert is_about_another("how much is a dog here", [citation], [make_hit(FAQ).chunk], "en") is beside


def test_a_reason_is_told_in_the_language_of_the_quote() -> None:
    question = "Why was the old barn pulled down?"
    passage = "The old barn was pulled down; the new one is by the car park."
    chunk = make_hit(passage).chunk
    chunk = replace(chunk, document=replace(chunk.document, language="en"))
    assert is_about_another(question, [cite(passage)], [chunk], "en")


@pytest.mark.parametrize(
    ("other", "differ"),
    [
        ("Dogs of the yard go out twice a day for 25 minutes.", True),
        ("Dogs of the yard go out twice\na day for 1.5 minutes. Cats stay.", True),
        ("Dogs of the yard go out twice a day for 35 minutes. Cats stay for 5.", False),
        ("Cats of the yard go out twice a day for 25 minutes.", False),
    ],
)
def test_a_copy_with_another_figure_is_told(other: str, differ: bool) -> None:
    quote = "Dogs of the yard go out twice a day for 35 minutes."
    assert differ_in_figures([cite(quote)], [make_hit(quote), make_hit(other, 2)]) is differ


@pytest.mark.parametrize(
    ("quote", "rules_out"),
    [
        ("In hall B up to 85 % humidity is allowed for painting.", True),
        ("Painting takes 3 days.", False),
    ],
)
def test_another_figure_in_the_same_unit_beside_the_quote_takes_the_certainty(quote: str, rules_out: bool) -> None:
    text = f"No painting above 80 % humidity. {quote} Pay day is the 5th."
    start = text.index(quote)
    citation = replace(cite(quote), start=start, end=start + len(quote))
    assert is_about_another("which humidity for painting", [citation], [make_hit(text).chunk], "en") is rules_out


def test_what_says_which_one_stands_in_the_quote_or_above_it() -> None:
    text = "They offered a plate for £4,350. We want a second quote first."
    assert is_beside(
        "how much was the second quote for the plate", text, "en", quote="They offered a plate for £4,350."
    )
    heading = Location(headings=("Second quote",))
    above = cite("They offered a plate for £4,350.", heading)
    assert not is_about_another("how much was the second quote for the plate", [above], [make_hit(text).chunk], "en")


OTHERS = {
    "en": "Gate A opens at 6:30, gates B to C at 8. A permit for zone D costs 5 pounds.",
    "es": "El grupo A entra a las 8 y el grupo B a las 9. Se baña en la planta 2; las plantas 4, 5 y 6 son aulas.",
    "fr": "Le lot 3 a deux places, les lots 8 et 9 n'en ont pas. On paie 5 euros avant le 7.",
    "pt": "A sala 2 leva 30 pessoas, a sala 3 leva 12. No dia 2, até 9 de julho, fecha. O segundo e o terceiro filho.",
}


@pytest.mark.parametrize(
    ("language", "question"),
    [
        ("en", "When does gate D open?"),
        ("en", "when does gate f open"),
        ("en", "opening time of gate d"),
        ("es", "¿A qué hora entra el grupo C?"),
        ("es", "¿Qué hay en la planta 8?"),
        ("fr", "Combien de places a le lot 5 ?"),
        ("pt", "Quantas pessoas cabem na sala 4?"),
        ("pt", "Quem paga o quarto filho?"),
    ],
)
def test_a_passage_that_tells_of_others_only_answers_nothing(language: str, question: str) -> None:
    assert is_beside(question, OTHERS[language], language)


@pytest.mark.parametrize(
    ("language", "question"),
    [
        ("en", "When may I enter by gate A?"),
        ("en", "When does gate C open?"),
        ("en", "What did Ann B. Smith pay for 5 permits?"),
        ("es", "¿Qué hay en la planta 5?"),
        ("fr", "Combien de places a le lot 9 ?"),
        ("pt", "Quantas pessoas cabem na sala 3?"),
        ("pt", "Paga o segundo filho na quinta-feira?"),
        ("pt", "Quantas pessoas leva a sala no dia 9 de julho?"),
    ],
)
def test_a_passage_that_tells_of_the_one_asked_about_may_answer(language: str, question: str) -> None:
    assert not is_beside(question, f"{OTHERS[language]} Ann Smith", language)


LIMITS = "A loan\n\nHow much you can borrow\n\nLimit: Maximum loan | Amount: 50% of the balance, or $50,000\n\n"
REST = "The $50,000 ceiling is reduced by what you owed: the most you can borrow may be $32,000."
DOGS = "A dog that weighs more than 20 kg costs $32 a night."


@pytest.mark.parametrize(
    ("question", "quote", "skips"),
    [
        ("How much can I borrow from my plan?", REST, True),
        ("How much can I borrow if I still owed something?", REST, False),  # the quote says more of the question
        ("How much does a dog cost?", DOGS, False),  # a section about something else
        ("What may I borrow?", REST, False),  # no amount is asked for
    ],
)
def test_a_quote_behind_the_amount_of_its_section_is_not_the_answer(question: str, quote: str, skips: bool) -> None:
    text = LIMITS + quote
    headings = ("A loan", "How much you can borrow")
    places = [text.index("Limit"), text.index(quote)]
    spans = tuple(
        Span(start=start, end=end, location=Location(headings=headings))
        for start, end in ((places[0], places[1] - 2), (places[1], len(text)))
    )
    chunk = replace(make_hit(text).chunk, start=0, end=len(text), spans=spans)
    citation = replace(cite(quote, spans[1].location), start=places[1], end=len(text))
    assert is_about_another(question, [citation], [chunk], "en") is skips


def test_what_the_passage_around_a_quote_names_counts() -> None:
    passage = "# Scale KB-60\n\nSwitch it off. The cell takes 35 minutes."
    assert not is_beside(
        "How long for the cell of the KB-60?", passage, "en", quote="Changing the cell takes 35 minutes."
    )


@pytest.mark.parametrize(
    "location",
    [
        Location(sheet="Stocks", cell="A2:C2"),
        Location(row=3),
        Location(part=MAIL_HEADER),
        Location(part=f"a > {MAIL_HEADER}"),
    ],
)
def test_rows_and_headers_of_mails_alone_prove_no_answer(location: Location) -> None:
    hit = make_hit("Product: Lamp | Supplier: Acme | Stock: 12")
    assert is_about_another("Who supplies the lamp?", [cite(hit.chunk.text, location)], [hit.chunk], "en")
    computed = cite(hit.chunk.text, location, ProofMethod.COMPUTED)
    assert not is_about_another("Who supplies the lamp?", [computed], [hit.chunk], "en")


def test_scripts_and_languages_that_nothing_was_fitted_on_are_not_measured() -> None:
    assert is_unmeasured("员工每年享有十五天带薪年假。", ["en", None])
    assert is_unmeasured("Der Urlaub dauert 30 Tage.", ["de"])
    assert not is_unmeasured("Le congé dure 30 jours.", ["fr", "en", None])

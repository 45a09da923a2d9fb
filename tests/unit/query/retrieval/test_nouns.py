"""Nouns of a question that nothing holds."""

from __future__ import annotations

import pytest

from rag_service.query.retrieval.nouns import find_absent_nouns
from rag_service.query.retrieval.plan import expand
from rag_service.text.words import terms

PRICES = "El aceite de oliva cuesta 6,90 euros. Marta lleva la oficina."
LEASE = "Le loyer du local est payé par le preneur. Les travaux restent à la charge du bailleur."
MANUAL = "Only trained staff may open the cabinet of the compressor. A monitor shows the pressure."


@pytest.mark.parametrize(
    ("language", "text", "question", "absent"),
    [
        ("es", PRICES, "¿Cuánto cuesta una impresora?", ("impresora",)),
        ("es", PRICES, "¿Cuánto cuesta el aceite de coco?", ("coco",)),
        ("es", PRICES, "¿Cuál es el salario de Marta?", ("salario",)),
        ("es", PRICES, "cuantas impresoras hay en la oficina", ("impresoras",)),
        ("es", PRICES, "¿Quién tiene que pagar el aceite?", ()),  # documents say with other verbs what people ask
        ("es", PRICES, "¿Está permitido dejar de comprar aceite?", ()),  # neither "está" nor "de" makes a noun here
        ("es", PRICES, "¿Cuánto cuesta la lata de 5 litros?", ("lata",)),  # a unit, which documents shorten
        ("es", PRICES, "¿Cuál es el importe del aceite?", ()),  # what is asked for need not be called so
        ("es", PRICES, "¿Cuánto cuesta el mejor aceite de la Oficina?", ()),
        ("fr", LEASE, "Qui paie la toiture du local ?", ("toiture",)),
        ("fr", LEASE, "Qui s'occupe de payer le loyer ?", ()),
        ("fr", LEASE, "À combien s'élève l'assurance ?", ("assurance",)),
        ("en", MANUAL, "Who may open the gearbox?", ("gearbox",)),
        ("en", MANUAL, "Is there a spare monitor?", ()),  # the noun is the last of its words
        ("en", MANUAL, "How many gearboxes does the compressor have, and where are the gearboxes?", ("gearboxes",)),
        ("en", MANUAL, "What happens to the compressor?", ()),
        ("en", MANUAL, "the", ()),
        ("en", MANUAL, "", ()),
    ],
)
def test_a_noun_that_nothing_holds_is_told(language: str, text: str, question: str, absent: tuple[str, ...]) -> None:
    assert find_absent_nouns(question, language, expand(question, language=language), terms(text, language)) == absent


def test_what_stands_for_a_noun_is_as_good_as_the_noun() -> None:
    question = "Where is the elevator?"
    asked = expand(question, language="en", synonyms=[("elevator", "lift")])
    assert find_absent_nouns(question, "en", asked, {"lift"}) == ()
    assert find_absent_nouns(question, "en", asked, {"stair"}) == ("elevator",)

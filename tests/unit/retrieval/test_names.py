"""Names, years and codes of a question, and which of them nothing holds."""

from __future__ import annotations

import pytest

from rag_service.retrieval.planner import expand, find_absent, find_names


@pytest.mark.parametrize(
    ("question", "names"),
    [
        ("What is the delivery charge to Norway?", ["Norway"]),
        ("¿Cuánto cobra Amparo Lahoz en Vigo?", ["Amparo Lahoz", "Vigo"]),
        ("Quel était le budget formation en 2023 ?", ["2023"]),
        ("Who is responsible for action A3 of REF-4002?", ["A3", "REF-4002"]),
        ("combien paie Airbus, et Safran ?", ["Airbus", "Safran"]),
        ("Norway: what does delivery cost?", []),  # a sentence begins with a capital letter
        ("¿Puedo viajar? ¿Quién paga?", []),
        ("WHO PAYS THE DEPOSIT IN LEEDS", []),
        ("What Does The Travel Policy Say About Meals", []),  # set like a headline
        ("delivery charge to norway", []),
        ("Where do I send my IBAN and the VAT form?", []),  # acronyms, which documents may spell out
        ("Is the desk open on Sunday in March?", []),
        ("What does the warranty of a 2000 euro wardrobe cost, or of 1999 €?", []),
        ("May I take 12 days off?", []),  # which documents may write in words
        ("", []),
    ],
)
def test_what_a_question_names(question: str, names: list[str]) -> None:
    assert [name.text for name in find_names(question)] == names


def test_what_stands_for_a_name_is_as_good_as_the_name() -> None:
    question = "How do I get to Bruselas?"
    asked = expand(question, language="en", synonyms=[("bruselas", "brussels")])
    assert find_absent(find_names(question), asked, {"brussel", "brussels"}) == ()
    assert find_absent(find_names(question), asked, {"antwerp"}) == ("Bruselas",)

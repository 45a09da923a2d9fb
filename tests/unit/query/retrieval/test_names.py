"""Names, years and codes of a question, and which of them nothing holds."""

from __future__ import annotations

import pytest

from rag_service.query.retrieval.names import find_absent, find_absent_codes, find_names
from rag_service.query.retrieval.plan import expand
from rag_service.text.words import terms


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


@pytest.mark.parametrize(
    ("question", "text", "absent"),
    [
        ("What is the charge to Norway?", "The charge to Sweden is 4 euros.", ("Norway",)),
        ("What is the charge to Norway?", "The charge to norway is 4 euros.", ()),
        ("¿Cuánto cobra Amparo Lahoz?", "La jefa de taller, doña Amparo Lához.", ()),
        ("Who invited Percy Shelly?", "Percy Shelley was invited.", ()),  # part of the name is there
        ("Is F26-2040 paid?", "Invoices F26-1001 and F26-1002 are paid.", ("F26-2040",)),
        ("Is F26-1002 paid?", "Invoices F26-1001 and F26-1002 are paid.", ()),
        ("What is TOR-M12-20-Z?", "TOR-M10-20-Z is a screw.", ("TOR-M12-20-Z",)),
        ("¿Qué abre en Córdoba en 2031?", "En Cordoba abre la biblioteca.", ("2031",)),
    ],
)
def test_a_name_is_absent_where_no_word_of_it_is_held(question: str, text: str, absent: tuple[str, ...]) -> None:
    held = {term for language in ("en", "es") for term in terms(text, language)}
    language = "es" if "¿" in question else "en"
    assert find_absent(find_names(question), expand(question, language=language), held) == absent


@pytest.mark.parametrize(
    ("question", "text", "absent"),
    [
        ("¿Qué precio tiene la BC-300-F?", "BC-120-F cuesta 300 euros.", ("BC-300-F",)),
        ("¿Qué precio tiene la BC-300-F?", "La bomba bc 300 f cuesta 9 euros.", ()),
        ("What is BC180I4?", "BC-180-I4 is a pump.", ()),
        ("What is M6x2?", "M6x25 is a screw.", ("M6x2",)),
        ("What is the charge to Norway in 2024?", "", ()),  # no codes
    ],
)
def test_a_code_is_absent_where_no_passage_holds_all_of_it(question: str, text: str, absent: tuple[str, ...]) -> None:
    assert find_absent_codes(find_names(question), [text]) == absent


def test_what_stands_for_a_name_is_as_good_as_the_name() -> None:
    question = "How do I get to Bruselas?"
    asked = expand(question, language="en", synonyms=[("bruselas", "brussels")])
    assert find_absent(find_names(question), asked, {"brussel", "brussels"}) == ()
    assert find_absent(find_names(question), asked, {"antwerp"}) == ("Bruselas",)

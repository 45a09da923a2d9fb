"""The language of one or two words by their letters, and that tables keep none."""

from __future__ import annotations

import pytest

from rag_service.language.detection import detect_language, guess_language
from tests.timing import seconds_of


@pytest.mark.parametrize(
    ("question", "language"),
    [
        ("responsable de la accion A3", "es"),
        ("responsable de l'action A3", "fr"),
        ("que parte de la basura se recicla", "es"),
        ("sueldo", "es"),
        ("que dias tengo libres", "es"),
        ("que dias tenho livres", "pt"),
        ("prazo de pagamento", "pt"),
        ("plazo de pago", "es"),
        ("férias", "pt"),
        ("vacaciones Juan García", "es"),
        ("barandillas", "es"),
        ("loyer ?", "fr"),
        ("congés payés", "fr"),
        ("conges payes", "fr"),
        ("remboursement couronne dent", "fr"),
        ("moissonneuse", "fr"),
        ("backups", "en"),
        ("BACKUPS", "en"),
        ("parking fees", "en"),
        ("wheelbarrow", "en"),
    ],
)
def test_the_letters_of_a_few_words_tell_their_language(question: str, language: str) -> None:
    assert guess_language(question) == language


@pytest.mark.parametrize(
    "question", ["", "A3", "TRX-1022 DN-120", "12345 ---", "dividendos", "hotel", "plan", "Lopez", "??"]
)
def test_what_several_languages_write_alike_stays_open(question: str) -> None:
    assert guess_language(question) is None


@pytest.mark.parametrize(
    "table", ["sueldo;120", "Sheet: Stock\nProduct: Hex bolt M8 | Stock: 120", "Marie Dupont 45 Lyon"]
)
def test_the_letters_of_a_table_give_no_language(table: str) -> None:
    """Documents are told by their function words alone: names and figures are not stemmed."""
    assert detect_language(table) is None


def test_function_words_speak_before_letters() -> None:
    assert guess_language("where is the oficina de extranjeros") == "en"
    assert guess_language("¿dónde está el backup password?") == "es"


def test_a_long_question_is_guessed_at_once() -> None:
    question = "sueldo " * 1000
    assert seconds_of(lambda: guess_language(question)) < 1
    assert guess_language(question) == "es"

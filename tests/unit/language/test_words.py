"""Index terms: one word, one term, however it was typed."""

from __future__ import annotations

import pytest

from rag_service.language.detection import detect_language
from rag_service.language.words import fold, is_stop_word, terms, words


@pytest.mark.parametrize(
    ("first", "second", "language"),
    [
        ("documentación", "documentacion", "es"),
        ("documentaciones", "documentación", "es"),
        ("Pensión", "pensiones", "es"),
        ("año", "AÑOS", "es"),
        ("demandes", "demande", "fr"),
        ("société", "sociétés", "fr"),
        ("employée", "employee", "fr"),
        ("première", "premier", "fr"),
        ("payé", "paiement", "fr"),
        ("employés", "employer", "fr"),
        ("vélos", "velo", "fr"),
        ("lieux", "lieu", "fr"),
        ("livraison", "livrer", "fr"),
        ("travaux", "travailler", "fr"),
        ("obtient", "obtenir", "fr"),
        ("prévenu", "prévenir", "fr"),
        ("main-d'œuvre", "main d’oeuvre", "fr"),
        ("1\u202f200\u00a0€", "1200 €", "fr"),
        ("12 345,50 euros", "12345,50 euros", "fr"),
        ("loyer de 84 000 € hors taxes", "loyer : 84000 € hors taxes", "fr"),
        ("applications", "application", "en"),
        ("Requirements", "requirement", "en"),
        ("is paid", "pays", "en"),
        ("written", "writing", "en"),
        ("children", "child", "en"),
        ("cierra", "cerrar", "es"),
        ("renueva", "renovación", "es"),
        ("pague", "pagar", "es"),
        ("saqué", "sacar", "es"),
        ("empiece", "empezar", "es"),
        ("conozcan", "conocer", "es"),
        ("luz", "luces", "es"),
    ],
)
def test_spellings_of_one_word_give_one_term(first: str, second: str, language: str) -> None:
    assert terms(first, language) == terms(second, language) != []


@pytest.mark.parametrize(("first", "second"), [("pays", "paie"), ("maison", "main"), ("raison", "rayon"), ("os", "o")])
def test_different_french_words_stay_apart(first: str, second: str) -> None:
    assert terms(first, "fr") != terms(second, "fr")


@pytest.mark.parametrize(
    ("first", "second"), [("agua", "aguja"), ("queso", "caso"), ("hielo", "hilo"), ("puerto", "parte")]
)
def test_different_spanish_words_stay_apart(first: str, second: str) -> None:
    assert terms(first, "es") != terms(second, "es")


@pytest.mark.parametrize("question", ["Jusqu'à qui ?", "Puis-je, si quelqu’un le veut ?", "Lorsqu’il faut, dois-je ?"])
def test_elided_and_auxiliary_words_of_french_say_nothing(question: str) -> None:
    assert terms(question, "fr") == []


@pytest.mark.parametrize("question", ["whats that, dont you", "I'm there", "somebody wants this"])
def test_english_contractions_say_nothing_with_and_without_their_apostrophe(question: str) -> None:
    assert terms(question, "en") == []


def test_an_ordinal_is_its_number() -> None:
    assert terms("le 1er mars", "fr") == ["1", *terms("mars", "fr")]


def test_stop_words_leave_no_term() -> None:
    assert terms("¿Qué es el de la?", "es") == []
    assert is_stop_word("the", "en")
    assert not is_stop_word("before", "en")


def test_numbers_keep_their_separators() -> None:
    assert words("1.234,56 euros y 3%") == ["1.234,56", "euros", "y", "3"]


@pytest.mark.parametrize("text", ["en 2024 120 340 pièces", "tél. 03 28 55 01 90", "120 340 x"])
def test_numbers_side_by_side_are_not_joined(text: str) -> None:
    assert [word for word in words(text) if word.isdigit()] == [part for part in text.split() if part.isdigit()]


def test_a_run_without_end_becomes_one_short_term() -> None:
    assert [len(term) for term in terms("x" * 10_000, "en")] == [64]


def test_fold_drops_accents_and_case() -> None:
    assert fold("ÁÉÍÓÚ Ñ Ç Œ æ") == "aeiou n c oe ae"


@pytest.mark.parametrize(
    ("question", "language"),
    [
        ("¿Qué documentos necesito para la pensión?", "es"),
        ("plazo para pedir el paro", "es"),
        ("Quel est le délai de livraison ?", "fr"),
        ("combien de palettes à Lyon", "fr"),
        ("Que deviennent les congés non pris fin mai ?", "fr"),
        ("tester la semaine de 4 jours", "fr"),
        ("cada semana", "es"),
        ("limite de la tarjeta de la empresa", "es"),
        ("O que significa o erro E11?", "pt"),
        ("A que horas abre a piscina ao domingo?", "pt"),
        ("y si no me contestan a la solicitud?", "es"),
        ("plafond de la carte de la societe", "fr"),
        ("What is the safety stock of class A?", "en"),
        ("how long does a loan take", "en"),
    ],
)
def test_questions_are_told_apart_by_language(question: str, language: str) -> None:
    assert detect_language(question) == language


def test_a_text_without_words_has_no_language() -> None:
    assert detect_language("12345 ---") is None

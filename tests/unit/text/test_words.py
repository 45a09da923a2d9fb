"""Index terms: one word, one term, however it was typed."""

from __future__ import annotations

import pytest

from rag_service.text.words import detect_language, fold, is_stop_word, terms, words


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
        ("applications", "application", "en"),
        ("Requirements", "requirement", "en"),
    ],
)
def test_spellings_of_one_word_give_one_term(first: str, second: str, language: str) -> None:
    assert terms(first, language) == terms(second, language) != []


def test_stop_words_leave_no_term() -> None:
    assert terms("¿Qué es el de la?", "es") == []
    assert is_stop_word("the", "en")
    assert not is_stop_word("before", "en")


def test_numbers_keep_their_separators() -> None:
    assert words("1.234,56 euros y 3%") == ["1.234,56", "euros", "y", "3"]


def test_a_run_without_end_becomes_one_short_term() -> None:
    assert [len(term) for term in terms("x" * 10_000, "en")] == [64]


def test_fold_drops_accents_and_case() -> None:
    assert fold("ÁÉÍÓÚ Ñ Ç Œ") == "aeiou n c œ"


@pytest.mark.parametrize(
    ("question", "language"),
    [
        ("¿Qué documentos necesito para la pensión?", "es"),
        ("plazo para pedir el paro", "es"),
        ("Quel est le délai de livraison ?", "fr"),
        ("combien de palettes à Lyon", "fr"),
        ("What is the safety stock of class A?", "en"),
        ("how long does a loan take", "en"),
    ],
)
def test_questions_are_told_apart_by_language(question: str, language: str) -> None:
    assert detect_language(question) == language


def test_a_text_without_words_has_no_language() -> None:
    assert detect_language("12345 ---") is None
    assert detect_language("", default="fr") == "fr"

"""The language of a question, among all languages and by a few words, and that tables keep none."""

from __future__ import annotations

import pytest

from rag_service.language.detection import choose_language, detect_language, guess_language
from rag_service.language.languages import language_name
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
        ("por qué ya no vendéis laurel", "es"),
        ("quien cuida del estanque", "es"),
        ("How much?", "en"),  # the model alone is sure that it is Spanish
    ],
)
def test_the_letters_of_a_few_words_tell_their_language(question: str, language: str) -> None:
    assert guess_language(question) == language


@pytest.mark.parametrize(
    ("question", "language"),
    [
        ("Wie lange darf Treber höchstens liegen?", "de"),
        ("Wer bekommt die Kaution zurück, und wann?", "de"),
        ("Chi è il responsabile della sicurezza?", "it"),
        ("Quanto costa il parcheggio per i visitatori?", "it"),
        ("Hoeveel vakantiedagen krijg ik per jaar?", "nl"),
        ("Kto jest odpowiedzialny za bezpieczeństwo?", "pl"),
        ("Vem ansvarar för säkerheten i byggnaden?", "sv"),
        ("Кто отвечает за безопасность?", "ru"),
        ("Güvenlikten kim sorumlu?", "tr"),
        ("من المسؤول عن السلامة؟", "ar"),
        ("谁负责 Energiprojekt AB 的安全?", "zh"),
        ("バックアップはどこにありますか", "ja"),
        ("안전은 누가 책임집니까?", "ko"),
    ],
)
def test_a_language_without_texts_of_ours_is_not_taken_for_another(question: str, language: str) -> None:
    assert guess_language(question) == language


PASTED = "ERROR 2026-11-29 connexion refusée par le serveur de la base de données, nouvelle tentative bientôt. " * 150


@pytest.mark.parametrize(
    "message",
    [
        f"{PASTED}\nWhat does this log say about the server?",
        f"What does this log say about the server?\n{PASTED}",
        f"{PASTED}\nPlease explain what went wrong with the server",
    ],
)
def test_a_pasted_text_does_not_decide_the_language(message: str) -> None:
    assert guess_language(message) == "en"


@pytest.mark.parametrize(
    ("question", "language"),
    [
        ('¿qué dice "the terms and conditions of the lease"?', "es"),
        ("que dit « the terms and conditions of the lease » ?", "fr"),
        ("谁签署了《Terms of the Los Angeles Lease》？", "zh"),
        ('"the terms and conditions of the lease"', "en"),  # there is nothing else
        ('who wrote 5" in the lease', "en"),
    ],
)
def test_what_is_quoted_does_not_decide_the_language(question: str, language: str) -> None:
    assert guess_language(question) == language


def test_the_conversation_helps_where_a_question_is_short() -> None:
    assert guess_language("Urlaubstage") is None
    assert guess_language("Urlaubstage", ["de"]) == "de"
    assert choose_language("hotel", ["fr", "en"]) == "fr"
    assert choose_language("hotel") == "en"
    assert choose_language("Where is the hotel?", ["fr"]) == "en"


def test_every_recognised_language_has_a_name() -> None:
    assert [language_name(code) for code in ("de", "pl", "zh")] == ["German", "Polish", "Chinese"]


def test_documents_in_any_language_are_recognised() -> None:
    assert detect_language("Die Kaution beträgt zwei Monatsmieten und wird nach dem Auszug zurückgezahlt.") == "de"


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


def test_a_few_chinese_characters_make_no_chinese_document() -> None:
    text = "发票 Invoice no. 4711\n\nDear team,\n\nthe invoice is due on 15 April and amounts to 1,250 euros."
    assert detect_language(text) == "en"
    assert detect_language("员工每年享有十五天带薪年假。 Energiprojekt AB") == "zh"

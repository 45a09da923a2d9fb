"""What a question asks of the search."""

from __future__ import annotations

from pathlib import Path

import pytest

from rag_service.domain import Filters
from rag_service.indices import IndexDefinition, IngestDefinition, QueryDefinition, Territory
from rag_service.language.words import terms
from rag_service.retrieval.planner import expand, find_file_names, find_names, find_territory, make_plan
from tests.timing import seconds_of

TERRITORIES = (
    Territory(name="Comunidad de Madrid", aliases=("Madrid",), cities=("Alcalá de Henares", "Getafe")),
    Territory(name="Cataluña", aliases=("Catalunya",), cities=("Barcelona", "L'Hospitalet de Llobregat")),
    Territory(name="Castilla y León", cities=("León", "Valladolid")),
)
INDEX = IndexDefinition(
    name="test",
    description="",
    folder=Path(),
    ingest=IngestDefinition(language="es"),
    query=QueryDefinition(),
    synonyms=(("IMV", "ingreso mínimo vital"), ("paro", "prestación por desempleo")),
    territories=TERRITORIES,
)


def test_each_word_is_a_group_and_stop_words_are_none() -> None:
    expanded = expand("¿Cuál es el plazo de la solicitud?", language="es")
    assert [term.term for term in expanded if term.weight == 1.0] == ["plac", "solicitud"]


@pytest.mark.parametrize(
    ("question", "language", "left"),
    [
        ("Combien de temps dure l'essai ?", "fr", ["dur", "essai"]),
        ("¿Cuánto tiempo tarda?", "es", ["tard"]),
        ("How long does a loan take?", "en", ["loan", "take"]),
        ("le temps partiel", "fr", ["temp", "partiel"]),
    ],
)
def test_how_long_asks_and_says_nothing(question: str, language: str, left: list[str]) -> None:
    assert [term.term for term in expand(question, language=language) if term.weight == 1.0] == left


def test_an_acronym_brings_its_long_form_at_less_weight_into_its_group() -> None:
    expanded = {term.term: term for term in expand("requisitos IMV", language="es", synonyms=INDEX.synonyms)}
    assert expanded["vital"].weight < expanded["imv"].weight
    assert expanded["vital"].group == expanded["imv"].group


def test_a_long_form_brings_its_acronym() -> None:
    expanded = {term.term for term in expand("pedir el ingreso minimo vital", language="es", synonyms=INDEX.synonyms)}
    assert "imv" in expanded


def test_a_word_inside_another_is_no_synonym() -> None:
    expanded = {term.term for term in expand("el aparonado", language="es", synonyms=INDEX.synonyms)}
    assert "desemple" not in expanded


@pytest.mark.parametrize(
    ("question", "territory"),
    [
        ("ayudas en Barcelona para vivir como en Madrid", "Cataluña"),
        ("oficinas de alcala de henares", "Comunidad de Madrid"),
        ("vivo en la Comunidad de Madrid", "Comunidad de Madrid"),
        ("trámites en Castilla y León", "Castilla y León"),
        ("tramites Valladolid", "Castilla y León"),
        ("¿qué es el IMV?", None),
    ],
)
def test_places_are_found_with_en_first(question: str, territory: str | None) -> None:
    assert find_territory(question, TERRITORIES) == territory


def test_a_place_becomes_a_filter_unless_the_request_has_one() -> None:
    assert make_plan("plazos en Barcelona", filters=Filters(), index=INDEX).filters.territory == "Cataluña"
    asked = Filters(territory="Comunidad de Madrid")
    assert make_plan("plazos en Barcelona", filters=asked, index=INDEX).filters.territory == "Comunidad de Madrid"


@pytest.mark.parametrize(
    ("question", "name"),
    [
        ("What is the total in production.xlsx?", "production.xlsx"),
        ("que dice Informe de Ventas 2024.pdf sobre Lyon", "informe de ventas 2024.pdf"),
        ("quel total dans rapport_T3 ?", "rapport_t3"),
        ("stock of plan-transport-2025?", "plan-transport-2025"),
        ("What is in beneficiary-change.en.md?", "beneficiary-change.en.md"),
        ("What is in beneficiary-change.en?", "beneficiary-change.en"),
        ("¿Qué hay en contrato médico.docx?", "contrato médico.docx"),
        ("¿Qué hay en contrato me\u0301dico.docx?", "contrato médico.docx"),  # decomposed, as macOS writes it
        ("¿Qué dice Informe anual 2023 sobre Lyon?", "informe anual 2023"),
        ("De quoi parle le fichier contrat de bail ?", "contrat de bail"),
        ("What is in the handbook file?", "handbook"),
        ("Compare a.xlsx, b.csv and plan b.pdf.", "b.csv"),
        ("Compare a.xlsx, b.csv and plan b.pdf.", "plan b.pdf"),
    ],
)
def test_file_names_are_found(question: str, name: str) -> None:
    assert name in find_file_names(question)


def test_a_question_without_file_names_names_none() -> None:
    assert find_file_names("How many pallets are stored in Lyon?") == []


@pytest.mark.parametrize("part", ["palabra ", "a", "a_1", "a-", "x.pdf", ".pdf", "1.1 "])
def test_a_long_question_is_looked_through_once(part: str) -> None:
    question = part * (50_000 // len(part))
    assert seconds_of(lambda: find_file_names(question)) < 1  # it took 30 s when every beginning was tried


def test_words_are_searched_as_written_too_since_tables_of_no_language_are_not_stemmed() -> None:
    table = set(terms("Product: Pressure gauge | Warehouse: Sevilla", ""))
    found = {term.term: term for term in expand("Which warehouse has a pressure gauge?", language="en")}
    assert {"pressure", "gauge", "warehouse"} <= table & found.keys()
    assert found["gauge"].group == found["gaug"].group  # the same word of the question, counted once


@pytest.mark.parametrize(
    ("declared", "question", "language"),
    [
        ("auto", "responsable de la accion A3", "es"),
        ("auto", "loyer ?", "fr"),
        ("auto", "A3", "en"),
        ("auto", "de la A3", "es"),
        ("es", "backups", "es"),
        ("es", "A3", "es"),
        ("es", "where is the office", "en"),
    ],
)
def test_a_question_has_the_language_of_its_words_or_of_its_index(declared: str, question: str, language: str) -> None:
    index = INDEX.model_copy(update={"ingest": IngestDefinition(language=declared)})
    plan = make_plan(question, filters=Filters(), index=index)
    assert plan.language == language
    assert not {"de", "la"} & {term.term for term in plan.terms if term.weight == 1.0}


@pytest.mark.parametrize(
    ("question", "file_language", "language"),
    [
        ("Résume", "fr", "fr"),
        ("Résume", "en", "fr"),
        ("Resuma", "pt", "pt"),
        ("Resuma", "es", "es"),
        ("Summarize", "es", "en"),
        ("Compare", "fr", "en"),
        ("", "fr", "fr"),
        ("", "de", "en"),
    ],
)
def test_a_request_of_one_word_is_in_its_own_language_else_in_that_of_the_file(
    question: str, file_language: str, language: str
) -> None:
    index = INDEX.model_copy(update={"ingest": IngestDefinition(language="auto")})
    assert make_plan(question, filters=Filters(), index=index, file_language=file_language).language == language


def test_a_name_of_a_language_and_a_german_noun_are_no_names() -> None:
    assert find_names("What does the notice say? Answer in English, please") == ()
    index = INDEX.model_copy(update={"ingest": IngestDefinition(language="auto")})
    plan = make_plan("Wie hoch ist die Kaution für den Keller 2031?", filters=Filters(), index=index)
    assert [name.text for name in plan.names] == ["2031"]

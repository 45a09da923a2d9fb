"""Figures as values: what a sentence may say by its sources, in any writing and language, and what it may not."""

from __future__ import annotations

import pytest

from rag_service.answering.proof.figures import find_strange_figure


@pytest.mark.parametrize(
    ("sentence", "source", "language"),
    [
        ("The notice is four months.", "Le préavis est de quatre mois.", "en"),
        ("Er hat vier Monate Zeit.", "You have 4 months.", "de"),
        ("It cost 2.3 million euros.", "Costó 2,3 millones de euros.", "en"),
        ("It cost 2,300,000 euros.", "Kosten: 2,3 Mio. Euro", "en"),
        ("The deadline is 30/04/2025.", "El plazo acaba el 30 de abril de 2025.", "en"),
        ("Decide a finales de junio.", "décision fin juin", "es"),  # a month of four letters may be another word
        ("The total is 1,234.50.", "Total : 1 234,50 €", "en"),
        ("It is 31 pounds more.", "First £44, then £75.", "en"),
        ("Five of them cost 1,080 euros.", "240 € a month. From 5 on: 10 % off.", "en"),
        ("It opens at 21:00.", "It opens at 9 pm.", "en"),
        ("Her licence is good until March 2028.", "Name: Ana | Forklift until: 03/2028", "en"),
        ("247,50 €: três dias e a taxa do pedido.", "Grua: 75,00 € por dia, 3 dias; pedido: 22,50 €", "pt"),
        ("The deposit is £90.", "Weekend: £360. The deposit is a quarter of the hire.", "en"),
    ],
)
def test_a_figure_may_be_written_otherwise_and_reckoned(sentence: str, source: str, language: str) -> None:
    assert find_strange_figure(sentence, [source], language=language) is None


@pytest.mark.parametrize(
    ("sentence", "source", "strange"),
    [
        ("The notice is five months.", "Le préavis est de quatre mois.", "5"),
        ("It cost 2.4 million euros.", "Costó 2,3 millones de euros.", "2.4"),
        ("The deadline is 1 May 2025.", "El plazo acaba el 30 de abril de 2025.", "1 May 2025"),
        ("She decides in September.", "décision fin juin", "September"),
        ("The fee is 47 euros.", "The fee is 44 euros.", "47"),
    ],
)
def test_a_figure_of_nowhere_is_named_as_it_is_written(sentence: str, source: str, strange: str) -> None:
    assert find_strange_figure(sentence, [source], language="en") == strange


def test_the_column_of_several_rows_may_be_added_up() -> None:
    rows = ["Job: brakes | Minutes: 95 | Fee: 88,00", "Job: tyre | Minutes: 20 | Fee: 9,00", "Job: spokes | Fee: 47,00"]
    assert find_strange_figure("144 euros, for the three of them.", rows, count=3, language="en") is None
    assert find_strange_figure("150 euros, for the three of them.", rows, count=3, language="en") == "150"


def test_figures_of_titles_are_repeated_and_not_reckoned_with() -> None:
    sentence, source = "In 2024 it was 40.", "It was 40."
    assert find_strange_figure(sentence, [source], others=["Budget 2024"], language="en") is None
    assert find_strange_figure("It was 2064.", [source], others=["Budget 2024"], language="en") == "2064"


def test_the_day_of_a_document_is_no_number_of_what_it_says() -> None:
    source, dated = "Employees receive 25 days.", ["2026-11-30"]
    assert find_strange_figure("Employees receive 30 days.", [source], others=dated, language="en") == "30"
    assert find_strange_figure("In 2026, employees receive 25 days.", [source], others=dated, language="en") is None


def test_a_sentence_may_count_what_it_cites() -> None:
    sources = ["equipo: A2 | planta: Muíña", "equipo: A3 | planta: Muíña"]
    assert find_strange_figure("Son dos, en Muíña.", sources, language="es") == "2"
    assert find_strange_figure("Son dos, en Muíña.", sources, count=2, language="es") is None

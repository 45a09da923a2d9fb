"""Versions of a document: their names, their dates, and what questions ask for."""

from __future__ import annotations

from datetime import date

import pytest

from rag_service.language.versions import Asked, asked_version, find_date, read_edition, without_version

TODAY = date(2026, 6, 1)


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("Travel policy\n\nIn force from 1 February 2025. It replaces that of January 2024.", date(2025, 2, 1)),
        ("Normas\nEntra en vigor el 15 de enero de 2024 y deja sin efecto la v2.", date(2024, 1, 15)),
        ("Normas\nEn vigor desde el 1/09/2022.", date(2022, 9, 1)),
        ("Charte\nApplicable à compter du 1er mars 2026.", date(2026, 3, 1)),
        ("Regulamento\nEm vigor a partir de 1 de março de 2025.", date(2025, 3, 1)),
        ("Rules\nEffective: May 3, 2024", date(2024, 5, 3)),
        ("Rules\nEdited 2023-04-05 by Ana, 2024-01-09 by Rui", date(2024, 1, 9)),  # the last of the first lines
        ("Rules\n" + "A rule. " * 100 + "\nValencia, 9 de mayo de 2023", date(2023, 5, 9)),  # beside a signature
        ("Rules\nThe next review is on 1 January 2031.", None),  # not yet
        ("Rules\n" + "A rule. " * 100 + "Since 3 May 2021 nobody does. " + "A rule. " * 100, None),
        ("Rules in force from Monday", None),
        ("", None),
    ],
)
def test_a_document_tells_since_when_it_holds(text: str, day: date | None) -> None:

    assert find_date(text, until=TODAY) == day


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("expenses_policy_2024.docx", "Expenses policy 2025 FINAL v2.md", True),
        ("travel_expenses_2023.docx", "Travel expenses policy 2025.md", True),  # words of one are among the other's
        ("charte_teletravail_2026_vf.docx", "teletravail_charte_2024.md", True),
        ("rates_freelancers_v2.xlsx", "freelance instructor rates v3.xlsx", True),
        ("procedure OLD.txt", "procedure.html", True),
        ("policy.md", "travel policy.md", False),  # one word is too little
        ("informe_marzo_2025.md", "informe_abril_2025.txt", False),
        ("travel policy 2024.md", "data policy 2025.md", False),
    ],
)
def test_names_tell_the_versions_of_a_document(one: str, other: str, same: bool) -> None:
    assert read_edition(one, "").is_of(read_edition(other, "")) is same


def test_a_name_with_a_day_is_one_of_a_series() -> None:
    minutes = read_edition("minutes 2024-03-14.txt", "")
    assert not minutes.is_of(read_edition("minutes 2024-04-11.txt", ""))
    assert read_edition("policy 2024 v3 (1).docx", "").digits == ()


def test_the_same_number_before_the_names_of_two_years_tells_no_series() -> None:
    assert read_edition("51_fees_2023.md", "").is_of(read_edition("51_fees_2025.md", ""))


@pytest.mark.parametrize(
    ("question", "asked"),
    [
        ("How much is dinner?", Asked.IN_FORCE),
        ("How much was dinner under the old rules?", Asked.EARLIER),
        ("¿Cuánto era la cena con las normas anteriores?", Asked.EARLIER),
        ("Combien pour le dîner dans l'ancienne charte ?", Asked.EARLIER),
        ("Quanto era antes?", Asked.EARLIER),
        ("What changed for dinners?", Asked.SEVERAL),
        ("¿De cuánto a cuánto pasó la cena?", Asked.SEVERAL),
        ("How much was dinner in 2023 and in 2025?", Asked.SEVERAL),
    ],
)
def test_a_question_tells_which_version_it_asks_for(question: str, asked: Asked) -> None:
    assert asked_version(question) is asked


def test_only_years_of_versions_leave_a_question() -> None:
    assert without_version("The fee under v2 of 2023 for 2020 cars", {2023}).split() == [
        "The", "fee", "under", "of", "for", "2020", "cars",
    ]  # fmt: skip

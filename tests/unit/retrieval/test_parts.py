"""The parts of a question: where each of a coordination begins."""

from __future__ import annotations

import pytest

from rag_service.retrieval.parts import split_question


@pytest.mark.parametrize(
    ("language", "question", "parts"),
    [
        (
            "fr",
            "Combien coûtent une lessive au port et l'aller-retour vers l'île ?",
            ["Combien coûtent une lessive au port", "Combien coûtent l'aller-retour vers l'île"],
        ),
        (
            "pt",
            "Em quanto fica a análise da gripe e do coronavírus?",
            ["Em quanto fica a análise da gripe", "Em quanto fica a análise do coronavírus"],
        ),
        (
            "fr",
            "Quel film est le plus long, La Digue ou Les Salins ?",
            ["Quel film est le plus long, La Digue", "Quel film est le plus long, Les Salins"],
        ),
        (
            "es",
            "¿Cuánto cuestan la tarjeta del club y una clase?",
            ["Cuánto cuestan la tarjeta del club", "Cuánto cuestan una clase"],
        ),
        ("en", "It weighs 3 tonnes and is 6 metres long?", ["It weighs 3 tonnes", "It is 6 metres long"]),
    ],
)
def test_the_first_part_begins_like_the_second(language: str, question: str, parts: list[str]) -> None:
    assert list(split_question(question, language).questions) == parts

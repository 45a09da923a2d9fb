"""Questions that some rows of a table do not answer."""

from __future__ import annotations

import pytest

from rag_service.query.prompting.whole_tables import needs_whole_table

PARTS = "Part number: SP-1 | Price: 5.00 | Rack: A1\nPart number: SP-2 | Price: 6.00 | Rack: A1"
STAFF = "Departamento: Ventas | Empleado: Ana Soler | Días: 4\nDepartamento: Ventas | Empleado: Luis Mas | Días: 5"
SALES = "Région: Bretagne | T4: 48 200 €\nRégion: Occitanie | T4: 92 300 €"
PROSE = "The fee is 5 euros. Parts are kept in racks."


@pytest.mark.parametrize(
    ("language", "question", "passages"),
    [
        ("en", "What is the most expensive part?", [PARTS]),
        ("en", "What is the cheapest part?", [PROSE, PARTS]),
        ("en", "What do all parts cost in total?", [PARTS]),
        ("en", "How many parts are in rack A1?", [PARTS]),
        ("es", "¿Cuál es el empleado más antiguo?", [STAFF]),
        ("es", "¿Quién tiene más días?", [STAFF]),
        ("es", "¿Cuántos empleados trabajan en Ventas?", [STAFF]),
        ("es", "¿Cuál es la media de días?", [STAFF]),
        ("fr", "Quelle région a fait le plus gros chiffre au T4 ?", [SALES]),
        ("fr", "Combien de régions y a-t-il ?", [SALES]),
        ("fr", "Quel est le chiffre d'affaires au total ?", [SALES]),
    ],
)
def test_some_rows_do_not_answer_it(language: str, question: str, passages: list[str]) -> None:
    assert needs_whole_table(question, language, passages)


@pytest.mark.parametrize(
    ("language", "question", "passages"),
    [
        ("en", "What does part SP-1 cost?", [PARTS]),
        ("en", "Is SP-1 or SP-2 the cheapest?", [PARTS]),  # of the two that it names
        ("en", "What is the most expensive part?", [PROSE]),
        ("en", "What is the most expensive part?", [PROSE, PROSE, PARTS]),  # rows far down answer nothing
        ("en", "What is the highest price?", [PARTS, "The highest price is 6.00."]),
        ("en", "What do all parts cost in total?", [f"{PARTS}\nTotal: 11.00 | Parts: 2"]),
        ("en", "How many days do I have?", [PARTS]),
        ("es", "¿Cuántos días le quedan a Ana Soler?", [STAFF]),  # a figure of the row
        ("fr", "Combien de jours ai-je ?", [SALES]),
        ("de", "Wer ist am höchsten?", [SALES]),
    ],
)
def test_the_passages_may_answer_it(language: str, question: str, passages: list[str]) -> None:
    assert not needs_whole_table(question, language, passages)

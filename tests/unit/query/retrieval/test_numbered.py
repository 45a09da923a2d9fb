"""Numbered things that a question asks about and the passages do not hold."""

from __future__ import annotations

import pytest

from rag_service.query.retrieval.numbered import find_absent_numbered

PASSAGES = (
    "La línea 3 estuvo parada 17 horas. Véase el artículo 4. En la planta n.º 2 hay dos salas.",
    "Orders above 900 pounds ship free after 5 days. Gate 2 is closed.",
)


@pytest.mark.parametrize(
    ("question", "absent"),
    [
        ("¿Cuántas horas estuvo parada la línea 5 en septiembre?", ("línea 5",)),
        ("¿Cuántas horas estuvo parada la línea 3 en septiembre?", ()),
        ("¿Cuántas horas estuvo parada la LÍNEA 03?", ()),
        ("¿Qué dice el artículo 9?", ("artículo 9",)),
        ("¿Qué hay en la planta 2?", ()),
        ("¿Qué hay en la planta nº 7 y en la línea 3?", ("planta nº 7",)),
        ("When does gate 4 open?", ("gate 4",)),
        ("Do orders above 1000 pounds ship free?", ()),  # a quantity
        ("What happens after 7 days?", ()),
        ("¿Qué se hizo en los años 80?", ()),
        ("What is in warehouse 7?", ()),  # the passages number no warehouses
        ("¿Cuál es la línea 17 %?", ()),
        ("Which line is it?", ()),
    ],
)
def test_a_number_is_absent_where_the_passages_hold_others_of_its_kind(question: str, absent: tuple[str, ...]) -> None:
    assert find_absent_numbered(question, PASSAGES) == absent


def test_without_passages_nothing_is_known_to_be_absent() -> None:
    assert find_absent_numbered("What is on line 5?", ()) == ()

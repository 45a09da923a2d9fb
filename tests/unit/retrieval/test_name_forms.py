"""Names that passages hold in another language are not said to be missing."""

from __future__ import annotations

import numpy as np
import pytest

from rag_service.retrieval.name_forms import drop_other_forms
from tests.unit.answering.proof.answers import make_hit


class Vectors:
    """Gives "Köln" and "Cologne" nearly the same direction, and every other text one of its own."""

    async def aget_text_embedding_batch(self, texts: list[str]) -> list[list[float]]:
        same = {"Oslo": [-1.0, 0.0], "Köln": [1.0, 0.0], "Cologne": [0.95, np.sqrt(1 - 0.95**2)]}
        return [same.get(text, [0.0, 1.0]) for text in texts]


@pytest.mark.parametrize(("asked", "held"), [("Lisbonne", "Lisboa"), ("Múnich", "München")])
async def test_a_name_that_is_spelt_alike_is_not_missing(asked: str, held: str) -> None:
    hits = [make_hit(f"The office in {held} opens at nine.")]
    assert await drop_other_forms([asked, "Hamburg"], hits, None) == ("Hamburg",)


async def test_a_name_with_a_vector_alike_is_not_missing() -> None:
    hits = [make_hit("The branch in Cologne has 14 employees.")]
    assert await drop_other_forms(["Köln", "Oslo"], hits, Vectors()) == ("Oslo",)
    assert await drop_other_forms(["Köln"], hits, None) == ("Köln",)


async def test_years_and_codes_are_compared_as_they_are_written() -> None:
    hits = [make_hit("Invoice F26-1001 of 2025 went to Miller.")]
    assert await drop_other_forms(["F26-1099", "2026"], hits, Vectors()) == ("F26-1099", "2026")


async def test_only_what_a_reply_shows_first_holds_a_name() -> None:
    hits = [make_hit("Nothing here.", number) for number in range(4)]
    assert await drop_other_forms(["Lisbonne"], [*hits, make_hit("Lisboa", 9)], None) == ("Lisbonne",)

"""Units of columns as questions write them: "metres" for m, "mg/l", "euros"."""

from __future__ import annotations

from rag_service.language.languages import load_language
from rag_service.language.words import words
from rag_service.tables.model import Column, currency_of


def has_unit(column: Column, word: str, language: str) -> bool:
    """Whether a folded word of a question is the unit of a column, or a part of it."""
    if column.unit is None:
        return False
    if (sign := currency_of(word)) is not None:
        return column.unit == sign
    units = load_language(language).proof.units
    canonical = next((unit for unit, names in units.items() if word in names), word)
    return column.unit.lower() == canonical or word in words(column.unit)

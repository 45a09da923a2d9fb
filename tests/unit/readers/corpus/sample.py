"""A file with marked facts and their places, and a table that several formats hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Sample:
    """A file, the facts that must be found with the fields of their place, and what must not stand in the text."""

    format: str
    name: str
    data: bytes
    facts: Mapping[str, Mapping[str, Any]]
    wrong: Sequence[str] = field(default=())


GRADES = {
    "Hotel Madrid: 160 EUR": {"row": 3}, "Hotel Paris: 190 EUR": {"row": 3}, "Grade: B": {"row": 3},
    "Hotel Madrid / Hotel Paris: 100 EUR": {"row": 4},
}  # fmt: skip
WRONG = ("| 190 EUR", "| 160 EUR", "Grade: 160", "Meals: 160", "Grade: 190")


TABLE = """<table><tr><th rowspan=2>Grade</th><th colspan=2>Hotel</th></tr><tr><th>Madrid</th><th>Paris</th></tr>
<tr><td>B</td><td>160 EUR</td><td>190 EUR</td></tr><tr><td>C</td><td colspan="2">100 EUR</td></tr></table>"""

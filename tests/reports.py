"""Annual reports of firms that do not exist: pages of eval sets, and PDF files made of such pages."""

from __future__ import annotations

from collections.abc import Sequence

from evals.sets.files import Line, make_pdf, read_description
from evals.sets.questions import FOLDER

__all__ = ["BALANCE", "CUENTAS", "INCOME", "QUARTERS", "STAFF", "Line", "report"]


def _pages(set_name: str, file: str) -> list[list[Line]]:
    pages: list[list[Line]] = read_description(FOLDER / set_name / "files" / f"{file}.yaml")["pages"]
    return pages


INCOME, BALANCE = _pages("statements", "northwind-ferries-2024.pdf")
(QUARTERS,) = _pages("statements", "seaview-2023-q2.pdf")
CUENTAS, _ = _pages("spanish_statements", "cuentas anuales 2024.pdf")
_, STAFF = _pages("page_tables", "people.pdf")


def report(*pages: Sequence[Line], font: str = "Helvetica") -> bytes:
    """A PDF with one text line below the other; figures of a line stand in columns."""
    return make_pdf(pages, font=font)

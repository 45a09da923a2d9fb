"""Workbooks."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence

from openpyxl import Workbook

from tests.unit.readers import office_samples as office
from tests.unit.readers.corpus.office import ODF_GRADES
from tests.unit.readers.corpus.sample import WRONG, Sample


def _sheets() -> Iterator[Sample]:
    many = '<table:table-cell table:number-columns-repeated="16384"/>'
    stock = office.odf_table(
        [office.odf_cell("Item"), office.odf_cell("Price"), many],
        [office.odf_cell("Bolt"), office.odf_cell("3,50 €")],
        [many],
        name="Precios",
    )
    empty = '<table:table-row table:number-rows-repeated="1048576"><table:table-cell/></table:table-row>'
    hours = f'<table:table table:name="Horas">{empty}</table:table>'
    yield Sample(
        "ods",
        "precios.ods",
        office.odf("spreadsheet", stock + hours + ODF_GRADES),
        {
            "Bolt": {"sheet": "Precios", "cell": "A2", "row": 2},
            "3,50 €": {"sheet": "Precios", "cell": "B2"},
            "190 EUR": {"sheet": "T", "cell": "C3"},
            "Hotel Paris: 190 EUR": {"sheet": "T", "cell": "C3", "row": 3},
        },
        WRONG,
    )


def _excel() -> Iterator[Sample]:
    book = Workbook()
    sheet = book.active
    sheet.title = "Rates"
    for row in (
        ("Grade", "Hotel", None),
        (None, "Madrid", "Paris"),
        ("B", "160 EUR", "190 EUR"),
        ("C", "100 EUR", None),
    ):
        sheet.append(row)
    for area in ("B1:C1", "A1:A2", "B4:C4"):
        sheet.merge_cells(area)
    buffer = io.BytesIO()
    book.save(buffer)
    facts = {
        "160 EUR": {"sheet": "Rates", "cell": "B3"}, "190 EUR": {"sheet": "Rates", "cell": "C3", "row": 3},
        "100 EUR": {"cell": "B4:C4", "row": 4},
    }  # fmt: skip
    yield Sample("xlsx", "rates.xlsx", buffer.getvalue(), facts, WRONG)


MAKERS: Sequence[Callable[[], Iterator[Sample]]] = (
    _sheets,
    _excel,
)

"""Each operation over tables gives its value, its formula and its cells."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from rag_service.domain import Decision, Location, ProofMethod
from rag_service.store.embedded import EmbeddedServer
from tests.integration.tables.conftest import Library, files_of, open_library

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.xdist_group("table_operations")]

OPERATIONS = {  # file, question, answer without marks, formula, cells
    "look-up": ("tents.xlsx", "What is the price of the Camper XL?", "“Price” of Camper XL: 399 €.", "D5", "D5"),
    "count": (
        "employees.xlsx",
        "How many employees were hired in 2023?",
        "The number of rows where Hire date = 2023 is 2.",
        "COUNTA(A4,A6) = 2",
        "A4:A6",
    ),
    "distinct": (
        "employees.xlsx",
        "How many different cities are there?",
        "There are 5 different values of “City”: Berlin, Dublin, Lisbon, Lyon, Madrid.",
        "COUNTUNIQUE(C2:C9) = 5",
        "C2:C9",
    ),
    "sum": (
        "tents.xlsx",
        "What is the total stock of tents?",
        "The total of “Stock” is 107 over 7 rows.",  # without the row of the total
        "SUM(E2:E8) = 107",
        "E2:E8",
    ),
    "mean": (
        "tents.xlsx",
        "What is the average price of the trekking tents?",
        "The average of “Price” where Type = trekking is 274 € over 2 rows.",
        "AVERAGE(D2:D3) = 274",
        "D2:D3",
    ),
    "median": (
        "employees.xlsx",
        "What is the median age?",
        "The median of “Age” is 36 over 8 rows.",
        "MEDIAN(F2:F9) = 36",
        "F2:F9",
    ),
    "maximum": (
        "tents.xlsx",
        "Which tent is the most expensive?",
        "The highest “Price” is 899 €: Everest Pro.",
        "MAX(D2:D8) = 899",
        "D7",
    ),
    "minimum": (
        "employees.xlsx",
        "Who was hired first?",
        "The lowest “Hire date” is 2018-06-01: Diego Ruiz.",
        "MIN(D2:D9) = 2018-06-01",
        "D5",
    ),
    "top n": (
        "tents.xlsx",
        "What are the three cheapest tents?",
        "The 3 lowest “Price”: Duna 2 (59 €); Alpina 2 (249 €); Alpina 3 (299 €).",
        "D6",
        "D6",
    ),
    "filter": (
        "tents.xlsx",
        "Which tents cost between 200 and 350 euros?",
        "Rows where Price between 200 € and 350 €: Alpina 2; Alpina 3; Family Dome 6.",
        "A2",
        "A2",
    ),
    "absence": (
        "loans.csv",
        "Which loans have not been returned?",
        "Rows where “Returned” is empty: B-2, Rotary Club; D-4, Helen Strand.",
        "A3",
        "A3",
    ),
    "group": (
        "tents.xlsx",
        "What is the total stock per warehouse?",
        "Total of “Stock” by “Warehouse”: Sevilla: 62; Lyon: 34; Lille: 11.",
        "Sevilla: SUM(E5:E6); Lyon: SUM(E2,E4,E8); Lille: SUM(E3,E7)",
        "E2:E8",
    ),
    "best group": (
        "tents.xlsx",
        "Which warehouse has the most stock?",
        "“Warehouse” with the highest total of “Stock”: Sevilla: 62.",
        "Sevilla: SUM(E5:E6)",
        "E2:E8",
    ),
    "difference": (
        "ventas.csv",
        "¿Qué diferencia de ventas hay entre Norte y Sur?",
        "La diferencia de «Ventas» entre Norte (40.771,25) y Sur (28.925,65) es 11.845,6.",
        "SUM(C2,C4,C6) − SUM(C3,C5,C7) = 11.845,6",
        "C2:C7",
    ),
    "ratio": (
        "tents.xlsx",
        "What is the ratio of the price of Camper XL to Duna 2?",
        "The ratio of “Price” between Camper XL (399 €) and Duna 2 (59 €) is 6.76.",
        "D5 ÷ D6 = 6.76",
        "D5:D6",
    ),
    "share": (
        "tents.xlsx",
        "What share of the stock is in Lille?",
        "The share of “Stock” where Warehouse = Lille is 10.28 %.",
        "11 ÷ 107 = 10.28 %",
        "E3:E7",
    ),
    "months with their year": (
        "sales.csv",
        "What were the total sales between February and April 2024?",
        "The total of “Sales” where Month between 2024-02-01 and 2024-04-30 is 36,100 € over 3 rows.",
        "SUM(B3:B5) = 36,100",
        "B3:B5",
    ),
    "weekdays between two": (
        "turnos.csv",
        "¿Cuántas horas en total de martes a jueves?",
        "El total de «Horas» donde Día = martes / miércoles / jueves es 15 en 3 filas.",
        "SUM(C3:C5) = 15",
        "C3:C5",
    ),
    "columns added up": (
        "loans.xlsx",
        "How many garden loans were there in total from February to April?",
        "The total of “Feb – Apr” where Category = Garden is 277.",
        "SUM(C2:E2) = 277",
        "C2:E2",
    ),
    "best column": (
        "loans.xlsx",
        "In which month were garden loans the highest?",
        "The highest “Garden” is 190: May.",
        "MAX(B2:G2) = 190",
        "B2:G2",
    ),
    "difference of two columns": (
        "fees.xlsx",
        "What is the difference between the 2023 and 2024 fee for Standard?",
        "The difference in “Standard” between Fee 2024 (£34) and Fee 2023 (£30) is £4.",
        "C2 − B2 = 4",
        "B2:C2",
    ),
    "widest difference of two columns": (
        "transporte.csv",
        "¿Qué destino tiene la mayor diferencia entre 2024 y 2025?",
        "El valor más alto de «Coste 2025 − Coste 2024» es 22 €: Lisboa.",
        "22 (B3:C3)",
        "B3:C3",
    ),
    "one column below another": (
        "stock.xlsx",
        "Which tools are below the minimum stock?",
        "Rows where In stock < Minimum: Grinder (3 / 4); Level (0 / 1).",
        "In stock < Minimum: B2:C2",
        "B2:C2",
    ),
}


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def library(postgres: EmbeddedServer) -> AsyncIterator[Library]:
    files = {
        **files_of("team_sheets", "tents.xlsx", "employees.xlsx", "ventas.csv"),
        **files_of("several_columns", "loans.xlsx", "fees.xlsx", "stock.xlsx", "transporte.csv"),
        **files_of("small_sheets", "loans.csv"),
        **files_of("months", "sales.csv"),
        **files_of("stretches", "turnos.csv"),
        **files_of("page_tables"),
        **files_of("kept_sheets", "inventario.pdf"),
    }
    async with open_library(postgres, files) as opened:
        yield opened


@pytest.mark.parametrize(("file", "question", "said", "formula", "cells"), OPERATIONS.values(), ids=OPERATIONS)
async def test_an_operation(library: Library, file: str, question: str, said: str, formula: str, cells: str) -> None:
    answer = await library.ask(question, file)
    assert answer.text.replace(" [C1]", "") == said
    assert answer.decision is Decision.CAN_PROCEED
    citation = answer.citations[0]
    assert (citation.method, citation.formula) == (ProofMethod.COMPUTED, formula)
    assert citation.location is not None
    assert citation.location.cell == cells


async def test_a_table_of_a_pdf_is_computed_with_its_page(library: Library) -> None:
    answer = await library.ask("What is the total number of employees?", "people.pdf")
    assert "is 585 over 2 rows" in answer.text
    assert answer.citations[0].location.page == 2
    assert answer.decision is Decision.CAN_PROCEED


async def test_a_ruled_table_of_a_pdf_is_computed_with_its_page(library: Library) -> None:
    answer = await library.ask("¿Qué artículo es el más caro?", "inventario.pdf")
    assert "615,00 EUR/ud.: PT-01, Puerta blindada" in answer.text
    assert answer.citations[0].location.page == 1
    assert answer.decision is Decision.CAN_PROCEED


async def test_a_table_of_word_is_computed(library: Library) -> None:
    answer = await library.ask("Which berth is the longest?", "berths.docx")
    assert answer.text.startswith("The highest “Length” is 15 m: C")
    assert answer.citations[0].location == Location(cell="B4", row=4)


async def test_a_table_of_markdown_is_computed(library: Library) -> None:
    answer = await library.ask("What is the total number of seats?", "rooms.md")
    assert answer.citations[0].formula == "SUM(B2:B4) = 40"
    assert answer.citations[0].location == Location(headings=(), cell="B2:B4", row=2)
    assert answer.decision is Decision.CAN_PROCEED

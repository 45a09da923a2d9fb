"""Figures of reports are found by row, year and unit; what is not there, or not sure, is told so."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from rag_service.domain import LOCAL_ADMIN, Answer, Decision, Identity, Role
from rag_service.indices import load_index
from rag_service.retrieval.question import Question
from rag_service.store.accounts.users import create_user
from rag_service.store.documents.documents import DocumentInput
from rag_service.store.embedded import EmbeddedServer
from rag_service.tables.asking.answers import TableAnswers
from tests.integration.answers.conftest import OpenService, open_service
from tests.integration.tables.conftest import Library, files_of, is_computed, open_library
from tests.reports import CUENTAS, INCOME, report

__all__ = ["open_service"]  # fixture

in_module_loop = pytest.mark.asyncio(loop_scope="module")
pytestmark = pytest.mark.xdist_group("table_reports")

SAMPLES = load_index("reports").documents_path
NORTHWIND, SEAVIEW = REPORTS = "northwind-ferries-2024.pdf", "seaview-2023-q2.pdf"
LOSS = "Did Northwind Ferries lose money in 2024?"
KINDS = {
    "a figure": ("What was the turnover of Northwind in 2023?", "“Total revenues”, Years ended December 31, 2023: 599"),
    "a loss": (LOSS, "Yes: “Net (loss)/income”, Years ended December 31, 2024: $ (83)"),
    "no profit": ("Did Northwind make a profit in 2024?", "No: "),
    "a rise": (
        "Did Northwind's operating expenses rise in 2024?",
        "Yes: “Operating expenses” went from (560)",
    ),
    "a change": ("By how much did Northwind's revenue grow from 2022 to 2024?", "a change of 53 (9.7 %)"),
    "a percentage": ("What was Northwind's effective tax rate in 2022?", "25.1 %"),
    "a quarter": ("What was Seaview's net income in the quarter ended July 29, 2023?", "$ 6,020"),
    "another language": ("¿Perdió dinero Northwind en 2024?", "Sí: «Net (loss)/income»"),
}


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def library(postgres: EmbeddedServer) -> AsyncIterator[Library]:
    files = {
        **files_of("statements"),
        **files_of("spanish_statements"),
        "northwind-ferries-2024-reprint.pdf": report([*INCOME, "Printed again in spring."]),
        "northwind-pier.pdf": report([*INCOME, "A new pier in Port Halden opens next year."]),
        "subvenciones.pdf": report([*CUENTAS, ("Subvenciones", "28", "720", "")]),
        "nota.pdf": report([*CUENTAS, ("Subvenciones", "28", "", "")]),
        **{file.name: file.read_bytes() for file in sorted(SAMPLES.iterdir())},
    }
    async with open_library(postgres, files) as opened:
        yield opened


@in_module_loop
@pytest.mark.parametrize(("question", "says"), KINDS.values(), ids=KINDS)
async def test_a_figure_carries_row_and_year(library: Library, question: str, says: str) -> None:
    answer = await library.ask(question, *REPORTS)
    assert says in answer.text
    assert is_computed(answer)
    assert answer.decision is Decision.CAN_PROCEED, answer.text


@in_module_loop
async def test_the_citation_is_the_row_with_its_page(library: Library) -> None:
    answer = await library.ask("What was Northwind's total revenue in 2023?", *REPORTS)
    assert answer.text == (
        "“Total revenues”, Years ended December 31, 2023: 599 (northwind-ferries-2024.pdf, "
        "Consolidated Statements of Income, Revenues, Euros in millions, except per share data) [C1]."
    )
    (citation,) = answer.citations
    assert citation.location.page == 1
    assert citation.quote is not None
    assert citation.quote.startswith("Total revenues")
    assert citation.formula == "Total revenues (Years ended December 31, 2023: 599)"


@in_module_loop
async def test_numbers_of_notes_are_no_figures(library: Library) -> None:
    answer = await library.ask("¿Cuánto gastó Aceites Sierra Honda en personal en 2023?", "cuentas anuales 2024.pdf")
    assert "«Gastos de personal», 2023: (29.440)" in answer.text
    assert is_computed(answer)
    question = "¿Cuánto fueron las subvenciones de Aceites Sierra Honda en {}?"
    given = await library.ask(question.format(2024), "subvenciones.pdf")  # its place on the page tells the year
    assert "720" in given.text
    assert "28" not in given.text
    missing = await library.ask(question.format(2023), "subvenciones.pdf")
    assert "720" not in missing.text or not is_computed(missing), missing.text
    alone = await library.ask(question.format(2024), "nota.pdf")  # a note and no figure
    assert not is_computed(alone), alone.text


@in_module_loop
@pytest.mark.parametrize(
    "question",
    [
        "What were Northwind's total assets in 2022?",
        "What were Seaview's net sales in 2023?",
        "What was Northwind's loss per share?",
    ],
    ids=["the year is not there", "a quarter or half a year", "a row that says more"],
)
async def test_what_is_not_sure_is_not_certain(library: Library, question: str) -> None:
    answer = await library.ask(question, *REPORTS)
    assert is_computed(answer)
    assert answer.decision is Decision.UNCERTAIN


@in_module_loop
async def test_a_year_that_is_not_there_is_told(library: Library) -> None:
    answer = await library.ask("What were Northwind's total assets in 2022?", *REPORTS)
    assert "“Total assets” is not given for 2022, only for: December 31, 2024; December 31, 2023" in answer.text


@in_module_loop
@pytest.mark.parametrize(
    "question",
    [
        "What was the average revenue of Northwind?",
        "Why did Northwind lose money in 2024?",
        "What were Northwind's advertising expenses in 2024?",
        "What was the revenue of Acme Shipping in 2024?",
    ],
    ids=["a calculation over years", "a reason", "no such row", "no such firm"],
)
async def test_what_no_row_says_is_not_computed(library: Library, question: str) -> None:
    assert not is_computed(await library.ask(question, *REPORTS))


@in_module_loop
async def test_the_figure_of_a_report_is_not_that_of_a_name_on_its_first_page(library: Library) -> None:
    answer = await library.ask("What was the turnover of Port Halden in 2023?", "northwind-pier.pdf")
    assert answer.decision is not Decision.CAN_PROCEED, answer.text
    answer = await library.ask("What was the turnover of Northwind Ferries in 2023?", "northwind-pier.pdf")
    assert answer.decision is Decision.CAN_PROCEED, answer.text


@in_module_loop
async def test_a_figure_that_two_reports_state_is_one(library: Library) -> None:
    answer = await library.ask(LOSS, NORTHWIND, "northwind-ferries-2024-reprint.pdf")
    assert answer.text.startswith("Yes: ")
    assert answer.decision is Decision.CAN_PROCEED


@in_module_loop
@pytest.mark.parametrize(
    ("file", "question", "says"),
    [
        ("northwind-ferries-2024.en.pdf", LOSS, "Yes"),
        ("molinos-del-sur-2024.es.pdf", "¿Cuál fue el beneficio neto de Molinos del Sur en 2024?", "3.580"),
        ("molinos-del-sur-2024.es.pdf", "¿Aumentaron las ventas de Molinos del Sur en 2024?", "2810"),
        ("verrerie-du-vallon-2024.fr.pdf", "La Verrerie du Vallon a-t-elle perdu de l'argent en 2024 ?", "Oui"),
        ("verrerie-du-vallon-2024.fr.pdf", "Quelle était la marge brute de la Verrerie du Vallon en 2023 ?", "7.958,8"),
    ],
)
async def test_the_sample_reports_answer(library: Library, file: str, question: str, says: str) -> None:
    answer = await library.ask(question, file)
    assert says in answer.text
    assert is_computed(answer)


async def test_reports_of_others_are_never_used(open_service: OpenService) -> None:
    async with open_service() as service:
        async with service.database.transaction(LOCAL_ADMIN) as connection:
            users = [await create_user(connection, name=name, role=Role.USER) for name in ("ana", "ben")]
        ana, ben = [Identity(user_id=user.id) for user in users]
        await service.ingest(DocumentInput(data=report(list(INCOME)), file_name="northwind.pdf"), ana)

        async def ask(identity: Identity) -> Answer:
            return await service.engine.answer(Question(LOSS, identity=identity))

        own, other = await ask(ana), await ask(ben)
        assert [is_computed(own), is_computed(other)] == [True, False]
        assert "83" not in other.text
        # Even a passage of another's report in hand gives nothing.
        tables = TableAnswers(service.database, synonyms=load_index("reports").synonyms)
        computed = [
            await tables.compute(LOSS, own.sources, language="en", identity=identity) for identity in (ana, ben)
        ]
        assert [one is not None for one in computed] == [True, False]

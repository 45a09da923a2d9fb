"""Figures of reports are found by row, year and unit; what is not there, or not sure, is told so."""

from __future__ import annotations

import pytest

from rag_service.components import Components
from rag_service.domain import LOCAL_ADMIN, Answer, Decision, Identity, Location, ProofMethod, Role
from rag_service.indices import load_index
from rag_service.retrieval.query import RagQuery
from rag_service.store.accounts.users import create_user
from rag_service.store.documents.documents import DocumentInput
from rag_service.tables.asking.answers import TableAnswers
from tests.integration.answers.conftest import Ingest, ingest, open_service, service
from tests.reports import BALANCE, CUENTAS, INCOME, QUARTERS, SITUACION, report

__all__ = ["ingest", "open_service", "service"]  # fixtures

SAMPLES = load_index("reports").documents_path


async def ask(service: Components, question: str, identity: Identity = LOCAL_ADMIN) -> Answer:
    return await service.engine.answer(RagQuery(question, identity=identity))


def is_computed(answer: Answer) -> bool:
    return any(citation.method is ProofMethod.COMPUTED for citation in answer.citations)


@pytest.fixture
async def reports(service: Components, ingest: Ingest) -> Components:
    await ingest(report(list(INCOME), list(BALANCE)), "northwind-ferries-2024.pdf")
    await ingest(report(list(QUARTERS)), "seaview-2023-q2.pdf")
    return service


@pytest.mark.parametrize(
    ("question", "says"),
    [
        (
            "Did Northwind Ferries lose money in 2024?",
            "Yes: “Net (loss)/income”, Years ended December 31, 2024: $ (83)",
        ),
        ("Was Northwind profitable in 2023?", "Yes: “Net (loss)/income”, Years ended December 31, 2023: $ 22"),
        ("Did Northwind make a profit in 2024?", "No: "),
        ("What was the turnover of Northwind in 2023?", "“Total revenues”, Years ended December 31, 2023: 599"),
        ("How much freight revenue did Northwind have in 2022?", "176"),
        ("How much cash did Northwind have at the end of 2024?", "$ 74"),
        ("By how much did Northwind's revenue grow from 2022 to 2024?", "a change of 53 (9.7 %)"),
        ("Did Northwind's operating expenses rise in 2024?", "Yes: “Operating expenses” went from (560)"),
        ("Did Northwind's total assets increase in 2024?", "No: “Total assets” went from $ 857"),
        ("What was Northwind's effective tax rate in 2022?", "25.1 %"),
        ("What were Seaview's net sales in the 26 weeks ended July 30, 2022?", "$ 149,002"),
        ("What was Seaview's net income in the quarter ended July 29, 2023?", "$ 6,020"),
        ("What is the difference in Northwind's freight revenue between 2022 and 2024?", "a change of 12"),
        ("Quel est l'écart de chiffre d'affaires de Northwind entre 2023 et 2024 ?", "de 599 "),
        ("¿Perdió dinero Northwind en 2024?", "Sí: «Net (loss)/income»"),
        ("Quel était le chiffre d'affaires de Northwind en 2024 ?", "600"),
    ],
)
async def test_a_figure_carries_row_year_title_and_unit(reports: Components, question: str, says: str) -> None:
    answer = await ask(reports, question)
    assert says in answer.text
    assert is_computed(answer)
    assert answer.decision is Decision.CAN_PROCEED, answer.text
    (citation,) = answer.citations
    assert citation.location is not None
    assert citation.location.page in (1, 2)


@pytest.mark.parametrize(
    ("question", "says"),
    [
        ("¿Cuál fue la cifra de negocios de Aceites Sierra Honda en 2024?", "2024: 184.350"),
        ("¿Cuánto gastó Aceites Sierra Honda en personal en 2023?", "«Gastos de personal», 2023: (29.440)"),
        ("¿Tuvo pérdidas Aceites Sierra Honda en 2024?", "No: «Resultado del ejercicio», 2024: 12.211"),
        ("¿Cuánto beneficio obtuvo la empresa en 2024?", "«Resultado del ejercicio», 2024: 12.211"),
        ("¿Cuánto efectivo tenía a finales de 2024?", "31.12.2024: 12.905"),
        ("¿Cuánto crecieron las ventas de 2023 a 2024?", "una variación de 12.438"),
        ("¿Cuáles eran las existencias al cierre de 2023?", "«Existencias», 31.12.2023: 38.290"),
        ("What was Sierra Honda's revenue in 2024?", "“Importe neto de la cifra de negocios”, 2024: 184.350"),
        ("¿Cuál fue el total del activo en 2024?", "«Total activo», 31.12.2024: 172.114"),
        ("¿Subieron los gastos financieros en 2024?", "Sí: «Gastos financieros» pasó de (2.745)"),
        ("¿Cuánto fue la amortización del inmovilizado en 2023?", "(9.310)"),  # of the notes 6 and 7
    ],
)
async def test_numbers_of_notes_are_no_figures(service: Components, ingest: Ingest, question: str, says: str) -> None:
    await ingest(report(list(CUENTAS), list(SITUACION)), "cuentas anuales 2024.pdf")
    answer = await ask(service, question)
    assert says in answer.text
    assert is_computed(answer)


async def test_a_note_in_the_place_of_a_missing_figure_is_not_taken_for_it(service: Components, ingest: Ingest) -> None:
    rows = [*CUENTAS, ("Subvenciones", "28", "720", "")]
    await ingest(report(rows), "cuentas anuales 2024.pdf")
    answer = await ask(service, "¿Cuánto fueron las subvenciones de Aceites Sierra Honda en 2024?")
    assert not is_computed(answer), answer.text


async def test_the_citation_is_the_row_with_its_page(reports: Components) -> None:
    answer = await ask(reports, "What was Northwind's total revenue in 2023?")
    assert answer.text == (
        "“Total revenues”, Years ended December 31, 2023: 599 (northwind-ferries-2024.pdf, "
        "Consolidated Statements of Income, Revenues, Dollars in millions, except per share data) [C1]."
    ).replace("Dollars", "Euros")
    (citation,) = answer.citations
    assert citation.location == Location(page=1)
    assert citation.quote is not None
    assert citation.quote.startswith("Total revenues")
    assert citation.formula == "Total revenues (Years ended December 31, 2023: 599)"


@pytest.mark.parametrize(
    "question",
    [
        "What were Northwind's total assets in 2022?",  # the year is not there
        "What were Seaview's net sales in 2023?",  # a quarter or half a year
        "What was Northwind's loss per share?",  # a row that says more
    ],
)
async def test_what_is_not_sure_is_not_certain(reports: Components, question: str) -> None:
    answer = await ask(reports, question)
    assert is_computed(answer)
    assert answer.decision is Decision.UNCERTAIN


@pytest.mark.parametrize(
    "question",
    [
        "What was the average revenue of Northwind?",
        "In which year did Northwind have the most revenue?",
        "Why did Northwind lose money in 2024?",
        "What were Northwind's advertising expenses in 2024?",
        "What was Northwind's dividend per share in 2024?",
        "What was the revenue of Acme Shipping in 2024?",
        "How many vessels did Northwind's total assets buy in 2024?",
    ],
)
async def test_what_no_row_says_is_not_computed(reports: Components, question: str) -> None:
    assert not is_computed(await ask(reports, question))


async def test_the_figure_of_a_report_is_not_that_of_a_name_on_its_first_page(
    service: Components, ingest: Ingest
) -> None:
    await ingest(report([*INCOME, "A new pier in Port Halden opens next year."]), "northwind-ferries-2024.pdf")
    answer = await ask(service, "What was the turnover of Port Halden in 2023?")
    assert answer.decision is not Decision.CAN_PROCEED, answer.text
    answer = await ask(service, "What was the turnover of Northwind Ferries in 2023?")
    assert answer.decision is Decision.CAN_PROCEED, answer.text


async def test_a_year_that_is_not_there_is_told(reports: Components) -> None:
    answer = await ask(reports, "What were Northwind's total assets in 2022?")
    assert "“Total assets” is not told for 2022, only for: December 31, 2024; December 31, 2023" in answer.text


async def test_a_figure_that_two_reports_state_is_one(reports: Components, ingest: Ingest) -> None:
    await ingest(report([*INCOME, "Printed again in spring."]), "northwind-ferries-2024-reprint.pdf")
    answer = await ask(reports, "Did Northwind Ferries lose money in 2024?")
    assert answer.text.startswith("Yes: ")
    assert answer.decision is Decision.CAN_PROCEED


async def test_reports_of_others_are_never_used(service: Components) -> None:
    async with service.database.transaction(LOCAL_ADMIN) as connection:
        ana, ben = [await create_user(connection, name=name, role=Role.USER) for name in ("ana", "ben")]
    data = report(list(INCOME))
    await service.ingest(DocumentInput(data=data, file_name="northwind.pdf"), Identity(user_id=ana.id))
    question = "Did Northwind Ferries lose money in 2024?"
    own = await ask(service, question, Identity(user_id=ana.id))
    assert is_computed(own)
    other = await ask(service, question, Identity(user_id=ben.id))
    assert not is_computed(other)
    assert "83" not in other.text
    # Even a passage of another's report in hand gives nothing.
    tables = TableAnswers(service.database, synonyms=load_index("reports").synonyms)
    computed = [
        await tables.compute(question, own.sources, language="en", identity=Identity(user_id=user.id))
        for user in (ana, ben)
    ]
    assert [one is not None for one in computed] == [True, False]


@pytest.mark.parametrize(
    ("file", "question", "says"),
    [
        ("northwind-ferries-2024.en.pdf", "Did Northwind Ferries lose money in 2024?", "Yes"),
        ("molinos-del-sur-2024.es.pdf", "¿Cuál fue el beneficio neto de Molinos del Sur en 2024?", "3.580"),
        ("molinos-del-sur-2024.es.pdf", "¿Aumentaron las ventas de Molinos del Sur en 2024?", "2810"),
        ("verrerie-du-vallon-2024.fr.pdf", "La Verrerie du Vallon a-t-elle perdu de l'argent en 2024 ?", "Oui"),
        ("verrerie-du-vallon-2024.fr.pdf", "Quelle était la marge brute de la Verrerie du Vallon en 2023 ?", "7.958,8"),
    ],
)
async def test_the_sample_reports_answer(
    service: Components, ingest: Ingest, file: str, question: str, says: str
) -> None:
    await ingest((SAMPLES / file).read_bytes(), file)
    answer = await ask(service, question)
    assert says in answer.text
    assert is_computed(answer)

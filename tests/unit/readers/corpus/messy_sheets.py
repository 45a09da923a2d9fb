# ruff: noqa: E501 - lines of files
"""Workbooks and delimited files as Excel, LibreOffice and accounting programs write them."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from datetime import date, datetime, time

from openpyxl import Workbook
from openpyxl.cell.rich_text import CellRichText, TextBlock
from openpyxl.cell.text import InlineFont
from openpyxl.comments import Comment
from openpyxl.styles import Font

from tests.unit.readers import office_samples as office
from tests.unit.readers.corpus.sample import Sample


def _saved(book: Workbook) -> bytes:
    buffer = io.BytesIO()
    book.save(buffer)
    return buffer.getvalue()


def _budget() -> Iterator[Sample]:
    book = Workbook()
    sheet = book.active
    sheet.title = "Presupuesto 2024"
    sheet["A1"] = "Presupuesto de obras 2024 (en miles de euros)"
    sheet.merge_cells("A1:E1")
    for line in (
        ("Obra", "Primer semestre", None, "Segundo semestre", None),
        (None, "Previsto", "Real", "Previsto", "Real"),
        ("Puente", 120, 131.5, 90, 88),
        ("Túnel", 75, 70.25, 0, None),
        ("Muelle\nnorte", "n/d", "#DIV/0!", 15, 17),
    ):
        sheet.append(line)
    for area in ("A2:A3", "B2:C2", "D2:E2"):
        sheet.merge_cells(area)
    sheet.row_dimensions[5].hidden = True
    sheet["A4"].comment = Comment("Pendiente de licencia municipal", "Rosa")
    sheet["A7"] = "Total"
    sheet["B7"] = "=SUM(B4:B6)"
    sheet["A9"] = "Inicio"
    sheet["B9"] = date(2024, 3, 5)
    sheet["B9"].number_format = "dd/mm/yyyy"
    sheet["A10"] = "Hora"
    sheet["B10"] = time(14, 30)
    sheet["A11"] = "Avance"
    sheet["B11"] = 0.375
    sheet["B11"].number_format = "0.0%"
    sheet["A12"] = "Coste"
    sheet["B12"] = 1234567.5
    sheet["B12"].number_format = '#,##0.00 "€"'
    hidden = book.create_sheet("Reserva")
    hidden.append(["Partida", "Importe"])
    hidden.append(["Imprevistos", 4400])
    hidden.sheet_state = "veryHidden"
    rich = book.create_sheet("Notas")
    rich["A1"] = CellRichText("El plazo es de ", TextBlock(InlineFont(b=True), "45 días"), " hábiles")
    rich["A2"] = True
    rich["A3"] = "'0034 912"
    name = "Presupuesto 2024"
    yield Sample(
        "xlsx",
        "presupuesto.xlsx",
        _saved(book),
        {
            "Presupuesto de obras 2024 (en miles de euros)": {"sheet": name, "row": 1},
            "Obra: Puente": {"cell": "A4", "row": 4},
            "Primer semestre Previsto: 120": {"cell": "B4"},
            "Primer semestre Real: 131.5": {"cell": "C4"},
            "Segundo semestre Previsto: 90": {"cell": "D4"},
            "Segundo semestre Real: 88": {"cell": "E4"},
            "Obra: Túnel": {"cell": "A5"},
            "Primer semestre Real: 70.25": {"cell": "C5", "row": 5},
            "Obra: Muelle norte": {"cell": "A6"},
            "Segundo semestre Real: 17": {"cell": "E6"},
            "=SUM(B4:B6)": {"cell": "B7"},
            "2024-03-05": {"cell": "B9"},
            "14:30": {"cell": "B10"},
            "37.5%": {"cell": "B11"},
            "1234567.5": {"cell": "B12"},
            "Pendiente de licencia municipal": {"sheet": name},
            "Imprevistos": {"sheet": "Reserva", "cell": "A2"},
            "Importe: 4400": {"sheet": "Reserva", "cell": "B2"},
            "El plazo es de 45 días hábiles": {"sheet": "Notas", "cell": "A1"},
        },
        ("Primer semestre Real: 88", "Segundo semestre Previsto: 120", "45356"),
    )


def _side_by_side() -> Iterator[Sample]:
    book = Workbook()
    sheet = book.active
    sheet.title = "Ventes"
    rows = [
        ("Ventes 2023", None, None, None, "Clients", None),
        ("Mois", "Montant", None, None, "Nom", "Ville"),
        ("Mai", 410, None, None, "Durand", "Lyon"),
        ("Juin", 365, None, None, "Petit", "Nantes"),
        (None, None, None, None, "Moreau", "Lille"),
        (),
        ("Produit", "Stock", "Prix"),
        ("Vis", 1200, 0.15),
        ("Écrou", 800, 0.12),
    ]
    for line in rows:
        sheet.append(line)
    for cells in (sheet[2], sheet[7]):
        for cell in cells:
            cell.font = Font(bold=True)
    yield Sample(
        "xlsx",
        "ventes.xlsx",
        _saved(book),
        {
            "Mois: Mai": {"cell": "A3", "sheet": "Ventes"},
            "Montant: 410": {"cell": "B3", "row": 3},
            "Montant: 365": {"cell": "B4"},
            "Nom: Durand": {"cell": "E3"},
            "Ville: Lyon": {"cell": "F3"},
            "Ville: Nantes": {"cell": "F4"},
            "Nom: Moreau": {"cell": "E5"},
            "Ville: Lille": {"cell": "F5"},
            "Produit: Vis": {"cell": "A8"},
            "Stock: 1200": {"cell": "B8"},
            "Prix: 0.12": {"cell": "C9", "row": 9},
        },
        ("Mois: Vis", "Montant: 1200", "Ville: 410"),
    )


def _dates() -> Iterator[Sample]:
    book = Workbook()
    sheet = book.active
    sheet.title = "Log"
    sheet.append(["Event", "When", "Length", "Cost", "Code"])
    for line in (
        ("Start", datetime(2023, 12, 31, 23, 59), 0.25, -1200, "007"),
        ("Audit", datetime(2024, 2, 29), 1.5, 1e21, "1-2"),
        ("Error", "=1/0", "=NA()", "#N/A", None),
    ):
        sheet.append(line)
    sheet["B2"].number_format = "[$-409]d\\-mmm\\-yy h:mm AM/PM;@"
    sheet["B3"].number_format = "mmmm yyyy"
    sheet["C2"].number_format = "[h]:mm"
    sheet["D2"].number_format = "#,##0;[Red](#,##0)"
    yield Sample(
        "xlsx",
        "log.xlsx",
        _saved(book),
        {
            "Event: Start": {"cell": "A2"},
            "When: 2023-12-31 23:59": {"cell": "B2"},
            "2024-02-29": {"cell": "B3"},
            "Cost: -1200": {"cell": "D2"},
            "Code: 007": {"cell": "E2"},
            "Code: 1-2": {"cell": "E3"},
            "Event: Error": {"cell": "A4"},
        },
        ("45291", "45351"),
    )


def _exports() -> Iterator[Sample]:
    excel = 'sep=;\r\nFatura;Cliente;"Valor (€)"\r\n"F-01";"Silva; Filhos";1.250,00\r\n"F-02";"Loja ""Azul""";"89,90"\r\n"F-03";"Rua A\nPorto";12\r\n'
    yield Sample(
        "csv",
        "faturas.csv",
        excel.encode("cp1252"),
        {
            "Fatura: F-01": {"cell": "A2"},
            "Cliente: Silva; Filhos": {"cell": "B2"},
            "Valor (€): 1.250,00": {"cell": "C2"},
            'Cliente: Loja "Azul"': {"cell": "B3"},
            "Valor (€): 89,90": {"cell": "C3"},
            "Cliente: Rua A Porto": {"cell": "B4"},
            "Valor (€): 12": {"cell": "C4", "row": 4},
        },
        ("sep=",),
    )
    wide = "Région\tPopulation\tÉlu\nBretagne\t3 394 567\tOui\nCorse\t349 465\t\nTotal\t3 744 032\tNon\n"
    yield Sample(
        "csv",
        "regions.tsv",
        wide.encode("utf-16"),
        {
            "Région: Bretagne": {"cell": "A2"},
            "Population: 3 394 567": {"cell": "B2"},
            "Région: Corse": {"cell": "A3"},
            "Population: 349 465": {"cell": "B3"},
            "Élu: Non": {"cell": "C4"},
        },
    )
    bank = '\ufeffBank statement\nAccount,ES12 0000\n\nDate,Text,Amount\n2024-05-01,Rent,-900.00\n2024-05-03,"Salary, May",2100.50\n,,\n'
    yield Sample(
        "csv",
        "bank.csv",
        bank.encode(),
        {
            "Bank statement": {"row": 1},
            "ES12 0000": {"row": 2},
            "Text: Rent": {"row": 5},
            "Amount: -900.00": {"cell": "C5"},
            "Text: Salary, May": {"cell": "B6"},
            "Amount: 2100.50": {"cell": "C6"},
        },
    )


def _ods() -> Iterator[Sample]:
    def typed(text: str, kind: str, value: str = "", more: str = "") -> str:
        return f'<table:table-cell office:value-type="{kind}" {value} {more}><text:p>{text}</text:p></table:table-cell>'

    remark = "<table:table-cell><office:annotation><text:p>Confirmar com Inês</text:p></office:annotation><text:p>Abril</text:p></table:table-cell>"
    rows = (
        [office.odf_cell("Mês"), office.odf_cell("Despesa"), office.odf_cell("Data"), office.odf_cell("Pago")],
        [remark, typed("1.250,40 €", "currency", 'office:value="1250.4"'), typed("05/04/24", "date", 'office:date-value="2024-04-05"'), typed("VERDADEIRO", "boolean", 'office:boolean-value="true"')],
        [office.odf_cell("Maio"), typed("12,5 %", "percentage", 'office:value="0.125"'), "<table:table-cell/>", typed("Err:502", "string")],
    )  # fmt: skip
    sheet = office.odf_table(*rows, name="Contas")
    collapsed = (
        '<table:table table:name="Oculta" table:display="false"><table:table-row table:visibility="collapse">'
        + office.odf_cell("Saldo secreto 31")
        + "</table:table-row></table:table>"
    )
    yield Sample(
        "ods",
        "contas.ods",
        office.odf("spreadsheet", sheet + collapsed),
        {
            "Mês: Abril": {"sheet": "Contas", "cell": "A2"},
            "Despesa: 1.250,40 €": {"cell": "B2"},
            "05/04/24": {"cell": "C2"},
            "Mês: Maio": {"cell": "A3"},
            "Despesa: 12,5 %": {"cell": "B3"},
            "Confirmar com Inês": {"sheet": "Contas"},
            "Saldo secreto 31": {"sheet": "Oculta"},
        },
    )


MAKERS: Sequence[Callable[[], Iterator[Sample]]] = (_budget, _side_by_side, _dates, _exports, _ods)

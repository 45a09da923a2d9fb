"""Annual reports of firms that do not exist, as PDF files made by code."""

from __future__ import annotations

from collections.abc import Sequence

from fpdf import FPDF

Line = str | Sequence[str]  # a text across the page, or a label and its figures
_LEFT, _FIRST, _STEP = 20, 110, 26  # millimetres: labels, the first column of figures, between columns

INCOME: Sequence[Line] = (
    "Northwind Ferries plc",
    "Consolidated Statements of Income",
    "(Euros in millions, except per share data)",
    ("Years ended December 31,", "2024", "2023", "2022"),
    "Revenues:",
    ("Passenger fares", "€ 412", "€ 398", "€ 371"),
    ("Freight", "188", "201", "176"),
    ("Total revenues", "600", "599", "547"),
    ("Operating expenses", "(641)", "(560)", "(520)"),
    ("Operating (loss)/income", "(41)", "39", "27"),
    ("Interest expense", "(12)", "(9)", "(8)"),
    ("Impairment of vessels (1)", "(30)", "\u2014", "\u2014"),
    ("Net (loss)/income", "€ (83)", "€ 22", "€ 14"),
    "",
    ("Basic (loss)/earnings per share", "€ (1.66)", "€ 0.44", "€ 0.28"),
    ("Effective tax rate", "12.5 %", "24.0 %", "25.1 %"),
    "(1) Two vessels were laid up in the autumn of the year and have been offered for sale since then.",
)
BALANCE: Sequence[Line] = (
    "Northwind Ferries plc",
    "Consolidated Balance Sheets",
    "(Euros in millions)",
    ("December 31,", "2024", "2023"),
    "Assets",
    "Current assets:",
    ("Cash and cash equivalents", "€ 74", "€ 96"),
    ("Inventories", "18", "17"),
    ("Total current assets", "92", "113"),
    ("Vessels and equipment, net of accumulated", "", ""),
    ("depreciation", "702", "744"),
    ("Total assets", "€ 794", "€ 857"),
)
STAFF: Sequence[Line] = (
    "Northwind Ferries plc",
    "Our people",
    "",
    ("Port", "Employees", "Vessels"),
    ("Aberdeen", "310", "4"),
    ("Bergen", "275", "3"),
    ("Total", "585", "7"),
)
QUARTERS: Sequence[Line] = (
    "Seaview Cosmetics Inc.",
    "Condensed Consolidated Statements of Income (in thousands)",
    ("", "13 Weeks Ended", "", "26 Weeks Ended", ""),
    ("", "July 29,", "July 30,", "July 29,", "July 30,"),
    ("", "2023", "2022", "2023", "2022"),
    ("Net sales", "$ 81,204", "$ 77,310", "$ 160,118", "$ 149,002"),
    ("Net income", "$ 6,020", "$ 5,911", "$ 11,300", "$ 10,870"),
)

# European: numbers of notes before the figures, brackets for negatives, dates in figures as columns.
CUENTAS: Sequence[Line] = (
    "Aceites Sierra Honda, S.A.",
    "Cuenta de pérdidas y ganancias consolidada",
    "Ejercicios terminados el 31 de diciembre de 2024 y 2023",
    "(Expresado en miles de euros)",
    ("", "Notas", "2024", "2023"),
    ("Importe neto de la cifra de negocios", "22", "184.350", "171.912"),
    ("Aprovisionamientos", "23", "(98.614)", "(93.207)"),
    ("Otros ingresos de explotación", "", "2.480", "1.955"),
    ("Gastos de personal", "24", "(31.027)", "(29.440)"),
    ("Otros gastos de explotación", "25", "(27.118)", "(25.603)"),
    ("Amortización del inmovilizado", "6, 7", "(9.845)", "(9.310)"),
    ("Resultado de explotación", "", "20.226", "16.307"),
    ("Gastos financieros", "26", "(3.912)", "(2.745)"),
    ("Resultado antes de impuestos", "", "16.314", "13.562"),
    ("Impuesto sobre beneficios", "27", "(4.103)", "(3.398)"),
    ("Resultado del ejercicio", "", "12.211", "10.164"),
)
SITUACION: Sequence[Line] = (
    "Aceites Sierra Honda, S.A.",
    "Balance consolidado al 31 de diciembre de 2024",
    "(Expresado en miles de euros)",
    ("Activo", "Notas", "31.12.2024", "31.12.2023"),
    ("Inmovilizado material", "6", "88.402", "84.115"),
    ("Existencias", "11", "41.776", "38.290"),
    ("Deudores comerciales", "12", "29.031", "27.604"),
    ("Efectivo y otros activos líquidos equivalentes", "14", "12.905", "15.480"),
    ("Total activo", "", "172.114", "165.489"),
)


def report(*pages: Sequence[Line], font: str = "Helvetica") -> bytes:
    """A PDF with one text line below the other; figures of a line stand in columns."""
    file = FPDF()
    file.set_font(font, size=10)
    for lines in pages:
        file.add_page()
        height = 20.0
        for line in lines:
            height += 6
            cells = [line] if isinstance(line, str) else line
            for number, text in enumerate(cells):
                text = text.replace("\u2014", "-").replace("€", "$")  # the built-in fonts know neither
                file.text(_LEFT if number == 0 else _FIRST + _STEP * (number - 1), height, text)
    return bytes(file.output())

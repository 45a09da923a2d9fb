"""Teams' sheets, made by code: what the questions of this folder are asked about."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from datetime import date
from typing import Any

from openpyxl import Workbook

Rows = Sequence[Sequence[Any]]

TENTS: Rows = [
    ("Model", "Type", "Weight (kg)", "Price", "Stock", "Warehouse"),
    ("Alpina 2", "trekking", 1.9, 249.0, 14, "Lyon"),
    ("Alpina 3", "trekking", 2.6, 299.0, 9, "Lille"),
    ("Borealis 4", "expedition", 5.4, 649.0, 3, "Lyon"),
    ("Camper XL", "family", 11.8, 399.0, 22, "Sevilla"),
    ("Duna 2", "beach", 1.2, 59.0, 40, "Sevilla"),
    ("Everest Pro", "expedition", 4.8, 899.0, 2, "Lille"),
    ("Family Dome 6", "family", 9.3, 329.0, 17, "Lyon"),
    ("Total", None, None, None, 107, None),
]
EXISTENCIAS: Rows = [
    ("Producto", "Almacén", "Existencias", "Precio unitario", "Proveedor"),
    ("Saco de dormir Norte", "Madrid", 120, 45.5, "Textiles Ruiz"),
    ("Saco de dormir Sur", "Madrid", 80, 39.9, "Textiles Ruiz"),
    ("Hornillo Llama", "Sevilla", 35, 27.0, "Metales Vega"),
    ("Linterna Faro", "Bilbao", 210, 12.5, "Luz y Cía"),
    ("Linterna Frontal", "Madrid", 160, 18.75, "Luz y Cía"),
    ("Mochila Cumbre 60", "Sevilla", 55, 119.0, "Textiles Ruiz"),
    ("Cantimplora Río", "Bilbao", 300, 8.2, "Metales Vega"),
]
STOCKS = """Produit;Entrepôt;Stock;Prix unitaire;Fournisseur
Boulon M8;Lyon;1 250;0,35 €;Visserie Martin
Boulon M10;Lyon;980;0,42 €;Visserie Martin
Vanne DN25;Lille;36;18,90 €;Fonderie Dupuis
Joint plat;Nantes;450;1,20 €;Caoutchouc Roy
Pompe P200;Lille;7;1 499,00 €;Fonderie Dupuis
Filtre à huile;Nantes;64;9,80 €;Caoutchouc Roy
"""
ARMAZEM = """Produto;Categoria;Quantidade;Preço;Validade
Café Serra;bebidas;150;7,50 €;2026-09-30
Chá Verde;bebidas;90;4,20 €;2027-01-15
Azeite Douro;mercearia;75;11,90 €;2026-12-01
Arroz Tejo;mercearia;400;1,80 €;2027-06-20
Bolacha Maria;doces;220;2,10 €;2026-08-05
Mel do Campo;doces;60;8,40 €;2028-03-31
"""
EMPLOYEES: Rows = [
    ("Name", "Department", "City", "Hire date", "Annual salary (€)", "Age"),
    ("Ana Torres", "Sales", "Madrid", date(2019, 3, 4), 41000, 38),
    ("Ben Walsh", "Support", "Dublin", date(2021, 9, 13), 36500, 29),
    ("Chloé Martin", "Sales", "Lyon", date(2023, 1, 9), 39000, 31),
    ("Diego Ruiz", "Engineering", "Madrid", date(2018, 6, 1), 58000, 45),
    ("Emma Klein", "Engineering", "Berlin", date(2023, 11, 20), 61000, 34),
    ("Farid Haddad", "Support", "Lyon", date(2020, 2, 17), 35000, 27),
    ("Grace Obi", "Engineering", "Dublin", date(2022, 5, 2), 55500, 41),
    ("Hugo Silva", "Sales", "Lisbon", date(2021, 4, 26), 37500, 52),
]
VENTAS = """Mes;Región;Ventas;Devoluciones
enero;Norte;12.450,50;320,00
enero;Sur;9.875,25;150,75
febrero;Norte;13.020,00;410,10
febrero;Sur;8.940,00;95,00
marzo;Norte;15.300,75;(120,00)
marzo;Sur;10.110,40;—
"""
ORDERS: Rows = [
    ("order", "customer", "product", "quantity", "due date"),
    ("PO-1001", "Talleres Ruiz", "Hex bolt M8", "2000", "2026-03-14"),
    ("PO-1002", "Fonderie Martin", "Ball valve DN25", "12", "2026-03-20"),
    ("PO-1003", "Harbor Pumps", "Pressure gauge", "8", "2026-04-02"),
    ("PO-1004", "Talleres Ruiz", "Gasket kit", "60", "2026-04-11"),
    ("PO-1005", "Harbor Pumps", "Conveyor belt", "3", "2026-05-07"),
]
BUDGET: Rows = [
    ("Service", "Budget 2024", "Budget 2025", "Responsable"),
    ("Marketing", 120000, 135000, "Julie Petit"),
    ("Recherche", 340000, 310000, "Marc Noël"),
    ("Formation", 45000, 52500, "Sofia Lambert"),
    ("Informatique", 210000, 260000, "Paul Girard"),
]
PRICES: Rows = [
    ("Licence", "Vendor", "Fee"),
    ("Editor", "Acme", "120 €"),
    ("Compiler", "Borland", "$300"),
    ("Tracker", "Acme", "80 €"),
    ("Mailer", "Globex", "$45"),
]

INVOICES: Rows = [
    ("Facturas del primer trimestre",),
    (),
    ("Número", "Cliente", "Fecha", "Base imponible", "IVA", "Pagada"),
    ("F-001", "Hotel Miramar", date(2025, 1, 14), 1200.0, 252.0, "sí"),
    ("F-002", "Bar Central", date(2025, 1, 29), 340.5, 71.51, "no"),
    ("F-003", "Hotel Miramar", date(2025, 2, 11), 980.0, 205.8, "no"),
    ("F-004", "Clínica Sol", date(2025, 2, 20), 2150.0, 451.5, "sí"),
    ("F-005", "Bar Central", date(2025, 3, 5), 415.25, 87.2, "sí"),
    ("F-006", "Escuela Norte", date(2025, 3, 27), 760.0, 159.6, "no"),
    ("Total", None, None, 5845.75, 1227.61, None),
]
FLEET = """Vehicle,Plate,Driver,Mileage,Fuel cost,Next inspection
Van Blue,AB-123,Lena Fox,"84,200","£1,240.50",2026-02-10
Van Red,CD-456,Omar Said,"120,950","£1,910.00",2025-12-01
Truck One,EF-789,Lena Fox,"210,300","£4,305.75",2026-06-15
Truck Two,GH-012,Pia Lund,"98,700","£3,020.20",2026-01-20
Car Pool,IJ-345,,"45,100",£610.00,2027-03-08
"""
COURSES: Rows = [
    ("Formation", "Ville", "Durée (h)", "Inscrits", "Taux de réussite", None, "Formateur", "Heures"),
    ("Excel", "Paris", 14, 25, 0.92, None, "Roche", 120),
    ("Python", "Lyon", 35, 12, 0.75, None, "Blanc", 95),
    ("Soudure", "Nantes", 70, 8, 0.875, None, "Faure", 140),
    ("Anglais", "Paris", 20, 31, 0.8, None, "Morel", 60),
    ("Sécurité", "Lyon", 7, 40, 0.98, None, "Henry", 75),
]


def workbook(sheets: dict[str, Rows], *, formats: dict[str, str] | None = None) -> bytes:
    """An XLSX file; `formats` are number formats by column letter of the first sheet."""
    book = Workbook()
    book.remove(book.active)  # type: ignore[arg-type]  # a new workbook has a sheet
    for title, rows in sheets.items():
        sheet = book.create_sheet(title)
        for row in rows:
            sheet.append(row)
    for letter, number_format in (formats or {}).items():
        for cell in book.worksheets[0][letter][1:]:
            cell.number_format = number_format
    written = io.BytesIO()
    book.save(written)
    return written.getvalue()


def delimited(rows: Rows) -> bytes:
    written = io.StringIO()
    csv.writer(written, delimiter=";").writerows(rows)
    return written.getvalue().encode()


def files() -> dict[str, bytes]:
    """File name → bytes of all sheets."""
    return {
        "tents.xlsx": workbook({"Tents": TENTS}, formats={"D": '#,##0.00 "€"'}),
        "existencias.xlsx": workbook({"Material": EXISTENCIAS}, formats={"D": "#,##0.00 [$€-C0A]"}),
        "stocks.csv": STOCKS.encode(),
        "armazem.csv": ARMAZEM.encode(),
        "employees.xlsx": workbook({"Employees": EMPLOYEES}),
        "ventas.csv": VENTAS.encode(),
        "orders.csv": delimited(ORDERS),
        "budget.xlsx": workbook({"Budgets": BUDGET}),
        "licences.xlsx": workbook({"Licences": PRICES}),
        "facturas.xlsx": workbook({"Facturas": INVOICES}, formats={"D": '#,##0.00 "€"', "E": '#,##0.00 "€"'}),
        "fleet.csv": FLEET.encode(),
        "formations.xlsx": workbook({"Formations": COURSES}, formats={"E": "0.0%"}),
    }

"""Eight files of shapes that teams keep; written with their questions before any was asked."""

from __future__ import annotations

import io
from datetime import date

import docx
from fpdf import FPDF

from tests.integration.tables.sheets import Rows, workbook
from tests.reports import report
from tests.unit.readers.samples import add_word_table

PRICES: Rows = [
    ("Harbour Hardware Ltd - trade price list", None, None, None, None, None, None, None),
    ("valid from 1 March 2025", None, None, None, None, None, None, None),
    (None, None, None, None, None, None, None, None),
    ("SKU", "Item", "Range", "Pack size", "List price (£)", "Trade price (£)", "Lead time (days)", "Supplier"),
    ("HH-1001", "Brass hinge 75 mm", "Ironmongery", 10, 18.5, 14.8, 3, "Colby & Sons"),
    ("HH-1002", "Stainless hinge 100 mm", "Ironmongery", 10, 27.9, 22.3, 3, "Colby & Sons"),
    ("HH-2001", "Exterior varnish 2.5 l", "Paint", 1, 34, 27.2, 7, "Marlow Coatings"),
    ("HH-2002", "Wood primer 5 l", "Paint", 1, 41.25, 33, 7, "Marlow Coatings"),
    ("HH-2003", "Masonry paint 10 l", "Paint", 1, 62.4, 49.9, 14, "Tern Paints"),
    ("HH-3001", "Cordless drill 18 V", "Power tools", 1, 129, 103.2, 5, "Voltra"),
    ("HH-3002", "Jigsaw 650 W", "Power tools", 1, 74.95, 59.95, 5, "Voltra"),
    ("HH-3003", "Belt sander", "Power tools", 1, 98.5, 78.8, 21, "Voltra"),
    ("HH-4001", "Wood screws 4 x 40", "Fixings", 200, 6.2, 4.95, 2, "Colby & Sons"),
]
GASTOS = """Gastos de la oficina de Zaragoza;;;;;;;
Importes en euros;;;;;;;
Concepto;Enero;Febrero;Marzo;Abril;Mayo;Junio;Total
Alquiler;1.850,00;1.850,00;1.850,00;1.850,00;1.900,00;1.900,00;11.200,00
Luz;412,35;398,10;301,75;244,90;210,40;263,20;1.830,70
Agua;58,00;;61,20;;57,45;;176,65
Teléfono e internet;119,90;119,90;119,90;124,90;124,90;124,90;734,40
Material de oficina;86,15;142,60;35,00;0,00;220,75;64,30;548,80
Limpieza;540,00;540,00;540,00;540,00;540,00;540,00;3.240,00
Viajes;0,00;1.215,40;330,25;876,00;95,60;1.402,10;3.919,35
Total;3.066,40;4.266,00;3.238,10;3.635,80;3.149,10;4.294,50;21.649,90
"""
NOTES: Rows = [
    ("Élève", "Classe", "Maths", "Français", "Histoire", "Anglais", "Absences"),
    ("Amina Berthier", "4e A", "15,5", "12", "14", "17", "1"),
    ("Bastien Caron", "4e A", "9", "11,5", "8,5", "10", "6"),
    ("Clara Dufresne", "4e B", "18", "16", "17,5", "15", "0"),
    ("Driss Ouali", "4e B", "12", "9,5", "13", "abs", "3"),
    ("Éloïse Marchand", "4e A", "7,5", "14", "12", "13,5", "2"),
    ("Félix Nguyen", "4e B", "16", "13", "10", "11", "0"),
    ("Gaëlle Roche", "4e A", "11", "17", "15,5", "18", "4"),
]
RESULTADOS = (
    "Cerâmica do Vouga, S.A.",
    "Demonstração dos resultados do exercício findo em 31 de dezembro de 2024",
    "(valores em milhares de euros)",
    ("Rubricas", "Notas", "2024", "2023"),
    ("Vendas e serviços prestados", "5", "48.210", "45.905"),
    ("Custo das mercadorias vendidas", "6", "(21.640)", "(20.112)"),
    ("Fornecimentos e serviços externos", "7", "(8.915)", "(8.340)"),
    ("Gastos com o pessoal", "8", "(11.302)", "(10.774)"),
    ("Outros rendimentos", "", "1.120", "864"),
    ("Resultado operacional", "", "7.473", "7.543"),
    ("Juros e gastos similares suportados", "9", "(1.815)", "(1.390)"),
    ("Resultado antes de impostos", "", "5.658", "6.153"),
    ("Imposto sobre o rendimento", "10", "(1.302)", "(1.415)"),
    ("Resultado líquido do período", "", "4.356", "4.738"),
)
EQUIPA: Rows = [
    (
        *("Nº", "Nome", "Função", "Departamento", "Data de admissão", "Vencimento mensal (€)"),
        *("Turno", "Férias por gozar (dias)", "Telemóvel"),
    ),
    (1, "Beatriz Fontes", "Rececionista", "Atendimento", date(2019, 5, 6), 1120, "manhã", 8, "912 000 101"),
    (2, "Caio Sardinha", "Cozinheiro", "Cozinha", date(2016, 9, 12), 1540, "tarde", 12, "912 000 102"),
    (3, "Dália Moreira", "Governanta", "Andares", date(2012, 2, 1), 1680, "manhã", 3, "912 000 103"),
    (4, "Edgar Pinho", "Ajudante de cozinha", "Cozinha", date(2023, 6, 19), 980, "noite", 17, "912 000 104"),
    (5, "Filipa Rato", "Rececionista", "Atendimento", date(2021, 11, 2), 1085, "noite", 10, "912 000 105"),
    (6, "Gil Taveira", "Técnico de manutenção", "Manutenção", date(2018, 3, 26), 1390, "manhã", 0, None),
    (7, "Helena Bastos", "Empregada de andares", "Andares", date(2023, 1, 9), 940, "manhã", 14, "912 000 107"),
    (8, "Ivo Cabral", "Empregado de mesa", "Restaurante", date(2020, 7, 15), 1010, "tarde", 6, "912 000 108"),
]
PROJECTS: Rows = [
    ("Project", "Lead", "Client", "Status", "Kick-off", "Deadline", "Budget", "Spent so far", "Risk"),
    (
        *("Website relaunch", "Nadia Holt", "Brightwell Dental", "In progress"),
        *("03 Feb 2025", "30 Jun 2025", "$24,000", "$17,350", "medium"),
    ),
    (
        *("Mobile booking app", "Owen Tran", "City Ferries", "Delayed"),
        *("11 Nov 2024", "15 May 2025", "$88,500", "$91,200", "high"),
    ),
    (
        *("Warehouse dashboard", "Nadia Holt", "Larch Logistics", "Done"),
        *("02 Sep 2024", "20 Dec 2024", "$31,000", "$28,640", "low"),
    ),
    (
        *("Payroll migration", "Sam Iqbal", "Brightwell Dental", "Not started"),
        *("01 Jul 2025", "31 Oct 2025", "$45,000", "$0", "medium"),
    ),
    (
        *("Loyalty scheme", "Owen Tran", "Corner Grocers", "In progress"),
        *("14 Apr 2025", "12 Sep 2025", "$19,750", "$4,100", "low"),
    ),
    (
        *("Data cleanup", "Sam Iqbal", "Larch Logistics", "Done"),
        *("06 Jan 2025", "28 Mar 2025", "$8,200", "$7,975", "low"),
    ),
]
EXISTENCIAS = (
    ("Referencia", "Artículo", "Almacén", "Existencias (uds.)", "Peso (kg)", "Precio (€/ud.)", "Stock mínimo"),
    ("VN-01", "Ventana abatible", "Getafe", "42", "23,5", "189,00", "20"),
    ("VN-02", "Ventana corredera", "Getafe", "15", "31,0", "242,50", "20"),
    ("PT-01", "Puerta blindada", "Illescas", "8", "78,0", "615,00", "5"),
    ("PT-02", "Puerta de paso", "Illescas", "63", "19,2", "94,90", "30"),
    ("PS-01", "Persiana enrollable", "Getafe", "120", "6,4", "58,75", "50"),
    ("MQ-01", "Mosquitera", "Valdemoro", "0", "2,1", "27,30", "25"),
    ("BR-01", "Barandilla de aluminio", "Valdemoro", "27", "11,8", "133,00", "10"),
)
ENQUETE = """Service,Réponses,Très satisfaits (%),Satisfaits (%),Peu satisfaits (%),Mécontents (%),Note moyenne sur 5
Accueil,412,48,39,9,4,"4,3"
Restauration,388,22,41,24,13,"3,4"
Ménage,405,35,44,15,6,"4,0"
Navette,176,18,37,29,16,"3,1"
Piscine,254,51,36,8,5,"4,4"
Wi-Fi,397,12,30,33,25,"2,7"
"""


def _word_file(title: str, rows: Rows) -> bytes:
    document = docx.Document()
    document.add_heading(title, level=1)
    table = add_word_table(document, rows)
    table.style = "Table Grid"
    written = io.BytesIO()
    document.save(written)
    return written.getvalue()


def _ruled(title: str, rows: tuple[tuple[str, ...], ...]) -> bytes:
    file = FPDF(orientation="landscape")
    file.add_page()
    file.set_font("Helvetica", size=14)
    file.cell(text=title, new_x="LMARGIN", new_y="NEXT")
    file.set_font("Helvetica", size=9)
    with file.table() as table:
        for texts in rows:
            row = table.row()
            for text in texts:
                row.cell(text.replace("€", "EUR"))
    return bytes(file.output())


def kept_files() -> dict[str, bytes]:
    """File name → content; those of the first four belong to half A, the others to half B."""
    return {
        "trade prices.xlsx": workbook({"Price list": PRICES}),
        "gastos_oficina.csv": GASTOS.encode(),
        "bulletin_4e.docx": _word_file("Notes du deuxième trimestre", NOTES),
        "resultados_2024.pdf": report(list(RESULTADOS)),
        "equipa.xlsx": workbook({"Pessoal": EQUIPA}),
        "project tracker.docx": _word_file("Project tracker, spring", PROJECTS),
        "inventario.pdf": _ruled("Inventario de carpintería", EXISTENCIAS),
        "enquete_clients.csv": ENQUETE.encode(),
    }

"""Fourteen untidy files of our own, as teams keep them; written with their questions before any was asked."""

from __future__ import annotations

import io
from datetime import date

import docx

from tests.integration.tables.sheets import Rows, workbook
from tests.reports import report
from tests.unit.readers.samples import add_word_table

COLMENAS = """Asociación de apicultores Valdelobos;;;;;;
;;;;;;
Colmena;Paraje;Apicultor;Miel 2024 (kg);Miel 2025 (kg);Última visita;Varroa
C-01;La Umbría;Fermín;18,5;22,0;03/09/2025;no
C-02;La Umbría;Fermín;21,0;17,25;03/09/2025;sí
C-03;Las Eras;Rosalía;—;9,5;28/08/2025;no
C-04;Las Eras;Rosalía;30,75;28,0;28/08/2025;sí
C-05;Fuente Vieja;Fermín;12,0;0;15/07/2025;sí
C-06;Fuente Vieja;Damián;25,5;31,25;10/09/2025;no
TOTAL;;;107,75;108,00;;
"""
LIVRES: Rows = [
    ("Titre", "Auteur", "Rayon", "Exemplaires", "Emprunts en 2025", "Prix d'achat"),
    ("L'Île aux brumes", "M. Kervella", "Romans", "4", "61", "14,90 €"),
    ("Cuisiner les restes", "D. Aubry", "Pratique", "2", "38", "22,00 €"),
    ("Le Renard et la pluie", "S. Vasseur", "Jeunesse", "6", "112", "9,50 €"),
    ("Atlas des marées", "P. Le Goff", "Documentaires", "1", "7", "48,00 €"),
    ("La Nuit des lampes", "M. Kervella", "Romans", "3", "55", "16,20 €"),
    ("Mon potager facile", "D. Aubry", "Pratique", "3", "0", "19,90 €"),
]
METERS: Rows = [
    ("Energy use of our buildings", None, None, None, None, None, None),
    ("Building", "Floor area (m²)", "Electricity", None, "Gas", None, "Manager"),
    (None, None, "kWh", "Cost (£)", "kWh", "Cost (£)", None),
    ("Town Hall", 2400, 184300, 51604.0, 96200, 7215.0, "R. Okafor"),
    ("Library", 1150, 73250, 20510.0, 58900, 4417.5, "J. Pym"),
    ("Swimming pool", 1800, 402100, 112588.0, 731400, 54855.0, "R. Okafor"),
    ("Depot", 3100, 55600, 15568.0, None, None, "A. Lund"),
    ("Museum", 900, 48900, 13692.0, 40100, 3007.5, "J. Pym"),
    ("Total", 9350, 764150, 213962.0, 926600, 69495.0, None),
]
MUESTRAS: Rows = [
    ("Laboratorio de aguas - campaña de otoño",),
    ("Nº muestra", "Punto de toma", "Municipio", "Fecha toma", "pH", "Nitratos (mg/l)", "Cloro libre (mg/l)", "Apta"),
    ("M-301", "Fuente de la Plaza", "Olmedilla", date(2025, 10, 2), 7.4, 18, 0.6, "sí"),
    ("M-302", "Depósito Alto", "Olmedilla", date(2025, 10, 2), 7.9, 23.5, 0.9, "sí"),
    ("M-303", "Pozo del Molino", "Riosalce", date(2025, 10, 6), 6.8, 61, 0.1, "no"),
    ("M-304", "Escuela", "Riosalce", date(2025, 10, 6), 7.2, 44, 0.4, "sí"),
    ("M-305", "Camping", "Torreja", date(2025, 10, 14), 8.1, 12, "<0,1", "no"),
    ("M-306", "Ayuntamiento", "Torreja", date(2025, 10, 15), 7.6, 52.5, 0.5, "no"),
]
DEVIS = (
    "Devis du chantier Belleroche",
    "",
    ("Lot", "Montant HT", "Acompte", "Semaines"),
    ("Gros oeuvre", "48 250,00", "14 475,00", "9"),
    ("Charpente", "21 900,00", "6 570,00", "4"),
    ("Couverture", "17 340,50", "0,00", "3"),
    ("Plomberie", "9 875,00", "2 962,50", "5"),
    ("Remise commerciale", "(1 500,00)", "0,00", "0"),
    ("Total", "95 865,50", "24 007,50", "21"),
)
CAFES = """Cafe,Opened,Seats,Takings 2024,Takings 2025,Profit / (loss) 2025
Quayside,2016-05-01,42,"£310,500","£298,200","£21,300"
Station Kiosk,2021-11-15,0,"£96,400","£121,750","£14,050"
Mill Lane,2019-03-20,28,"£187,000","£176,300","(£8,900)"
Arboretum,2023-06-30,60,"£54,000","£205,900","(£17,450)"
Castle Green,2018-09-10,35,"£226,100","£231,000","£9,600"
"""
ARBOLADO: Rows = [
    ("Especie", "Nombre común", "Calle", "Altura (m)", "Perímetro tronco (cm)", "Plantado en", "Estado"),
    ("Platanus hispanica", "Plátano", "Avda. Libertad", 22, 240, 1962, "bueno"),
    ("Tilia cordata", "Tilo", "Avda. Libertad", 14.5, 130, 1988, "regular"),
    ("Olea europaea", "Olivo", "Plaza Mayor", 5, 310, 1900, "bueno"),
    ("Morus alba", "Morera", "C/ Huertas", 8, 95, 2004, "malo"),
    ("Celtis australis", "Almez", "C/ Huertas", 11, 110, 1996, "bueno"),
    ("Tilia cordata", "Tilo", "Plaza Mayor", 12, 118, 1990, "malo"),
]

INSURED = """Inv. no.;Object;Maker;Room;Insured for;Lent out;Last cleaned
G-11;Brass astrolabe;Unknown;3;$182,000.00;no;2024-02-19
G-12;Longcase clock;T. Hallam;1;$24,500.00;no;2025-05-06
G-13;Silver ewer;B. Quist;3;$61,750.00;yes;2023-11-30
G-14;Harbour at dusk (oil);L. Marr;2;$310,000.00;yes;2022-08-14
G-15;Portrait of a pilot (oil);L. Marr;2;$145,500.00;no;2025-01-27
G-16;Carved figurehead;Unknown;1;$38,000.00;no;2021-10-03
"""
VIGNOBLE = """Parcelle;Cépage;Surface (ha);Rendement (hl/ha);Vendange;Degré;Bio
Les Grandes Terres;Syrah;3,20;42,5;18/09/2025;13,1;oui
Clos du Puits;Grenache;1,75;38,0;25/09/2025;14,2;oui
La Combe;Syrah;2,40;45,0;16/09/2025;12,8;non
Le Plateau;Viognier;0,90;30,5;02/09/2025;13,5;non
Sous-Bois;Grenache;2,10;35,5;27/09/2025;14,6;oui
Total;;10,35;;;;
"""
CLASES: Rows = [
    ("Actividad", "Profesor", "Día y hora", "Plazas", "Apuntados", "Cuota mensual"),
    ("Aquagym", "Lourdes", "lunes 10:00", "20", "18", "32,00 €"),
    ("Yoga suave", "Imanol", "martes 9:30", "15", "15", "28,50 €"),
    ("Pádel iniciación", "Lourdes", "miércoles 18:00", "8", "5", "45,00 €"),
    ("Spinning", "Nerea", "jueves 19:30", "25", "21", "36,00 €"),
    ("Pilates", "Imanol", "viernes 9:30", "15", "11", "30,00 €"),
]
COMPTES: Rows = [
    ("Fête du village — comptes provisoires", None, None, None, None, None),
    ("Poste", "2024", None, "2025", None, "Tenu par"),
    (None, "Recettes", "Dépenses", "Recettes", "Dépenses", None),
    ("Buvette", 3410.0, 1275.5, 3980.0, 1402.0, "Odile"),
    ("Tombola", 1200.0, 430.0, 1515.0, 512.5, "Gaspard"),
    ("Concert", 2650.0, 3900.0, 2100.0, 4150.0, "Odile"),
    ("Repas", 5840.0, 4120.75, 6230.0, 4388.25, "Mireille"),
    ("Assurance", None, 380.0, None, 395.0, "Gaspard"),
    ("Total", 13100.0, 10106.25, 13825.0, 10847.75, None),
]
CROSSINGS = (
    "Toll bridge crossings, spring quarter",
    "",
    ("Bridge", "Cars", "Lorries", "Revenue"),
    ("Aldmoor", "41,200", "3,150", "88,400.00"),
    ("Penny Ferry", "12,780", "410", "21,960.50"),
    ("Sallow Reach", "67,905", "8,220", "171,335.25"),
    ("Refunds", "0", "0", "(2,140.75)"),
    ("Total", "121,885", "11,780", "279,555.00"),
)
OBRAS: Rows = [
    (
        *("Obra", "Barrio", "Contrata", "Presupuesto (€)", "Gastado hasta hoy (€)"),
        *("Inicio", "Fin prevista", "% ejecutado"),
    ),
    ("Carril bici Ronda", "Norte", "Viales Tormo", 480000, 212500.4, date(2025, 2, 10), date(2025, 12, 20), 0.45),
    ("Reforma mercado", "Centro", "Obras Luján", 1250000, 1310200, date(2024, 3, 4), date(2025, 7, 31), 1),
    ("Parque infantil", "Sur", "Viales Tormo", 96500, 15000, date(2025, 9, 1), date(2026, 1, 15), 0.15),
    ("Biblioteca", "Centro", "Estructuras Gredos", 2300000, 860750.75, date(2025, 1, 13), date(2026, 10, 30), 0.35),
    ("Alcantarillado", "Sur", "Obras Luján", 640000, 0, date(2026, 1, 12), date(2026, 9, 30), 0),
    ("TOTAL", None, None, 4766500, 2398451.15, None, None, None),
]
VET = """Pet name,Species,Breed,Owner,Weight kg,Last jab,Balance due
Biscuit,dog,Beagle,H. Amari,14.2,2025-03-11,£0.00
Moss,dog,Lurcher,P. Stone,27.8,2024-06-02,£142.60
Pickle,cat,,H. Amari,4.1,2025-01-19,£35.00
Duchess,cat,Persian,Ms Vale,5.6,2023-12-08,£0.00
Rook,dog,Collie,T. Nye,19.5,2025-08-27,(£12.50)
Thumper,rabbit,,T. Nye,2.3,2024-11-15,£58.25
"""


def _word_file(title: str, rows: Rows) -> bytes:
    document = docx.Document()
    document.add_paragraph(title)
    add_word_table(document, rows)
    written = io.BytesIO()
    document.save(written)
    return written.getvalue()


def unseen_files() -> dict[str, bytes]:
    """File name → content; those of the first seven belong to half A, the others to half B."""
    return {
        "colmenas.csv": COLMENAS.encode(),
        "livres.docx": _word_file("Fonds de la bibliothèque municipale", LIVRES),
        "meters.xlsx": workbook({"2025": METERS}),
        "muestras.xlsx": workbook({"Otoño": MUESTRAS}),
        "devis.pdf": report(list(DEVIS)),
        "cafes.csv": CAFES.encode(),
        "arbolado.xlsx": workbook({"Árboles": ARBOLADO}),
        "insured.csv": INSURED.encode(),
        "vignoble.csv": VIGNOBLE.encode(),
        "clases.docx": _word_file("Horario del polideportivo, curso de invierno", CLASES),
        "comptes.xlsx": workbook({"Comptes": COMPTES}),
        "crossings.pdf": report(list(CROSSINGS)),
        "obras.xlsx": workbook({"Obras": OBRAS}, formats={"H": "0%"}),
        "vet.csv": VET.encode(),
    }

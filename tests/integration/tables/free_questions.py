"""Four untidy files of our own, and questions as people put them; written before anybody looked at the answers."""

from __future__ import annotations

from datetime import date
from typing import Any

from tests.integration.tables.questions import Asked
from tests.integration.tables.sheets import Rows, workbook

CAJA = """Caja chica del taller;;;;;
Mes de mayo, la lleva Nuria;;;;;
;;;;;
Fecha;Concepto;Quién;Tienda;Pagado;Con factura
02/05/2025;Tornillos inoxidables;Nuria;Ferretería Sol;46,80 €;sí
05/05/2025;Café y agua;Íñigo;Súper Alameda;31,25 €;no
05/05/2025;Pintura blanca 15 l;Nuria;Ferretería Sol;89,90 €;sí
13/05/2025;Taxi al puerto;Vera;;24,00 €;no
19/05/2025;Guantes de nitrilo;Íñigo;Ferretería Sol;17,45 €;sí
;;;;;
22/05/2025;Cinta de embalar;Vera;Papelería Duero;12,60 €;sí
28/05/2025;Sellos;Vera;Papelería Duero;1.005,00 €;no
;;;TOTAL;1.227,00 €;
"""
VEHICULES: Rows = [
    ("Parc automobile — état au 1er mars", None, None, None, None, None),
    (None, None, None, None, None, None),
    ("Immatriculation", "Véhicule", "Conducteur", "Kilométrage", "Prochaine révision", "Loyer mensuel (€)"),
    ("Site de Grenoble", None, None, None, None, None),
    ("GA-118-KT", "Kangoo", "Solène Maury", 84200, date(2025, 4, 10), 310),
    ("GB-204-LS", "Trafic", "Bastien Roux", 131500, date(2025, 3, 18), 465.5),
    ("GC-377-MM", "Clio", "Yasmine Adda", 22750, date(2025, 9, 2), 248),
    ("Site de Dijon", None, None, None, None, None),
    ("HD-051-NP", "Kangoo", "Loïc Ferrand", 57900, date(2025, 6, 24), 310),
    ("HE-662-QR", "Zoé", None, 9800, date(2025, 12, 1), 289),
    ("HF-733-ST", "Trafic", "Maud Perrier", 166300, date(2025, 3, 5), "à revoir"),
    ("Total", None, None, 472450, None, 1622.5),
]
VOLUNTEERS = """Volunteer,Team,Joined,Jan hours,Feb hours,Mar hours,Owed to them
Priya N.,Kitchen,2022-10-03,14,9.5,12,£18.40
Tomasz,Kitchen,2024-01-20,6,,8,£0.00
Old Bill,Garden,2015-06-11,20,22,25.5,£7.15
Jo-Anne,Drivers,2023-03-30,11,n/a,10,€32.00
Kwame,Drivers,2024-02-14,,7,13.5,£55.60
Lettie,Garden,2021-08-08,4,4,6,-
"""
COTTAGES: Rows = [
    ("Cottage", "Village", "Sleeps", "Nightly rate", "Nights let", "Dogs", "Cleaner"),
    ("Larkspur", "Hemscott", 4, "£95.00", 143, "yes", "Della"),
    ("The Old Forge", "Hemscott", 6, "£140.00", 121, "no", "Della"),
    ("Plover", "Saltby", 2, "£72.50", 188, "yes", "Mags"),
    ("Curlew", "Saltby", 2, "£72.50", 164, "yes", "Mags"),
    ("Gannet House", "Saltby", 10, "£265.00", 77, "no", None),
    ("Subtotal Saltby", None, None, None, 429, None, None),
    ("Thimble", "Orrin", 3, "£80.00", 95, "yes", "Della"),
    ("Total", None, None, None, 788, None, None),
]

FREE = [
    # caja_mayo.csv
    Asked("¿Cuánto hemos gastado en la Ferretería Sol?", "154,15"),
    Asked("¿Quién gastó más en mayo?", "Vera"),
    Asked("¿Cuánto costó la pintura blanca?", "89,90"),
    Asked("¿Cuánto suma lo que pagó Vera?", "1.041,60|1041,60"),
    Asked("¿Cuántas compras van sin factura?", "3"),
    Asked("¿Cuál fue el gasto más grande?", "Sellos"),
    Asked("¿Qué día se compraron los guantes?", "2025"),
    Asked("¿Cuánto dinero queda en la caja?", None),
    Asked("¿Cuál es el teléfono de Nuria?", None),
    # vehicules.xlsx
    Asked("Combien de véhicules avons-nous ?", "6"),
    Asked("Qui conduit la Clio ?", "Yasmine Adda"),
    Asked("Quel véhicule a le plus roulé ?", "HF-733-ST|Trafic"),
    Asked("Quel est le kilométrage total du parc ?", "472 450|472\u202f450|472\u00a0450"),
    Asked("Quelle est la prochaine révision du Kangoo de Loïc Ferrand ?", "2025"),
    Asked("Combien de Trafic y a-t-il ?", "2"),
    Asked("Combien payons-nous de loyer chaque mois ?", "1 622,50|1622,50|1\u202f622,50|1622,5"),
    Asked("Quelle est la puissance de la Zoé ?", None),
    Asked("Combien d'accidents le Trafic a-t-il eus ?", None),
    # volunteers.csv
    Asked("How many hours did Old Bill do in February?", "22"),
    Asked("What's the total of hours in March?", "75"),
    Asked("Who has been with us the longest?", "Old Bill"),
    Asked("How many volunteers are in the Garden team?", "2"),
    Asked("How much do we owe to everyone altogether?", None),
    Asked("What is the average of January hours for drivers?", "11"),
    Asked("What is Tomasz's email address?", None),
    # cottages.xlsx
    Asked("Which cottage is the cheapest per night?", None),  # two of the same rate may be told
    Asked("How many nights were let in Saltby?", "429"),
    Asked("Which cottages take dogs?", "Larkspur"),
    Asked("What is the biggest cottage?", "Gannet House"),
    Asked("How many people can the Old Forge sleep?", "6"),
]


def free_files() -> dict[str, bytes]:
    """File name → content."""
    return {
        "caja_mayo.csv": CAJA.encode(),
        "vehicules.xlsx": workbook({"Parc": VEHICULES}),
        "volunteers.csv": VOLUNTEERS.encode(),
        "cottages.xlsx": workbook({"Lettings": COTTAGES}),
    }


Operation = dict[str, Any]

# What a model that understands proposes where the grammar does not read the question: the file and the operation.
OPERATIONS: dict[str, tuple[str, Operation]] = {
    "¿Cuánto hemos gastado en la Ferretería Sol?": (
        "caja_mayo.csv",
        {"operation": "sum", "column": "Pagado", "filters": [("Tienda", "=", ["Ferretería Sol"])]},
    ),
    "¿Quién gastó más en mayo?": (
        "caja_mayo.csv",
        {"operation": "sum", "column": "Pagado", "group": "Quién", "best": "maximum"},
    ),
    "¿Cuánto costó la pintura blanca?": (
        "caja_mayo.csv",
        {"operation": "lookup", "column": "Pagado", "filters": [("Concepto", "contains", ["pintura blanca"])]},
    ),
    "¿Cuánto suma lo que pagó Vera?": (
        "caja_mayo.csv",
        {"operation": "sum", "column": "Pagado", "filters": [("Quién", "=", ["Vera"])]},
    ),
    "¿Cuántas compras van sin factura?": (
        "caja_mayo.csv",
        {"operation": "count", "filters": [("Con factura", "=", ["no"])]},
    ),
    "¿Cuál fue el gasto más grande?": ("caja_mayo.csv", {"operation": "maximum", "column": "Pagado"}),
    "¿Qué día se compraron los guantes?": (
        "caja_mayo.csv",
        {"operation": "lookup", "column": "Fecha", "filters": [("Concepto", "contains", ["guantes"])]},
    ),
    "Combien de véhicules avons-nous ?": ("vehicules.xlsx", {"operation": "count"}),
    "Qui conduit la Clio ?": (
        "vehicules.xlsx",
        {"operation": "lookup", "column": "Conducteur", "filters": [("Véhicule", "=", ["Clio"])]},
    ),
    "Quel véhicule a le plus roulé ?": ("vehicules.xlsx", {"operation": "maximum", "column": "Kilométrage"}),
    "Quelle est la prochaine révision du Kangoo de Loïc Ferrand ?": (
        "vehicules.xlsx",
        {
            "operation": "lookup",
            "column": "Prochaine révision",
            "filters": [("Véhicule", "=", ["Kangoo"]), ("Conducteur", "=", ["Loïc Ferrand"])],
        },
    ),
    "Combien payons-nous de loyer chaque mois ?": ("vehicules.xlsx", {"operation": "sum", "column": "Loyer mensuel"}),
    "How many hours did Old Bill do in February?": (
        "volunteers.csv",
        {"operation": "lookup", "column": "Feb hours", "filters": [("Volunteer", "=", ["Old Bill"])]},
    ),
    "What's the total of hours in March?": ("volunteers.csv", {"operation": "sum", "column": "Mar hours"}),
    "Who has been with us the longest?": ("volunteers.csv", {"operation": "minimum", "column": "Joined"}),
    "What is the average of January hours for drivers?": (
        "volunteers.csv",
        {"operation": "mean", "column": "Jan hours", "filters": [("Team", "=", ["Drivers"])]},
    ),
    "Which cottages take dogs?": ("cottages.xlsx", {"operation": "lookup", "filters": [("Dogs", "=", ["yes"])]}),
    "What is the biggest cottage?": ("cottages.xlsx", {"operation": "maximum", "column": "Sleeps"}),
    "How many people can the Old Forge sleep?": (
        "cottages.xlsx",
        {"operation": "lookup", "column": "Sleeps", "filters": [("Cottage", "=", ["The Old Forge"])]},
    ),
}

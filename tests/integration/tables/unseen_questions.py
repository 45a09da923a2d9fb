"""Questions as people put them over `unseen_sheets.py`, with the values worked out by hand before any was asked.

Half A was looked at while the rules were made; half B, over other files, was asked once at the end.
"""

from __future__ import annotations

import re

from tests.integration.tables.questions import Asked

HALF_A = [
    # colmenas.csv
    Asked("¿Cuánta miel sacamos en 2025?", "108"),
    Asked("¿Qué colmena dio más miel en 2024?", "C-04"),
    Asked("¿Cuántas colmenas lleva Fermín?", "3"),
    Asked("¿Cuántas colmenas tienen varroa?", "3"),
    Asked("¿Cuándo se visitó por última vez la C-05?", "15/07/2025|2025-07-15"),
    Asked("¿De media cuánta miel dio cada colmena en 2025?", "18"),
    Asked("¿Qué apicultor recogió más en 2025?", "Fermín"),
    Asked("¿Cuánto pesa la reina de la C-02?", None),
    Asked("¿A qué precio se vendió la miel?", None),
    # livres.docx
    Asked("Quel livre est le plus emprunté ?", "Le Renard et la pluie"),
    Asked("Combien d'exemplaires avons-nous en tout ?", "19"),
    Asked("Combien a coûté l'Atlas des marées ?", "48,00"),
    Asked("Qui a écrit Cuisiner les restes ?", "Aubry"),
    Asked("Combien de livres de Kervella ?", "2"),
    Asked("Quels livres n'ont jamais été empruntés ?", "Mon potager facile"),
    Asked("Combien de fois a-t-on prêté La Nuit des lampes ?", "55"),
    Asked("Quel rayon compte le plus d'emprunts ?", "Romans"),
    Asked("Quelle est la moyenne des prix d'achat des romans ?", "15,55"),
    Asked("Quels livres coûtent moins de 10 euros ?", "Le Renard et la pluie"),
    Asked("Combien de pages a L'Île aux brumes ?", None),
    # meters.xlsx
    Asked("How much did we pay for electricity altogether?", "213,962"),
    Asked("Which building burns the most gas?", "Swimming pool"),
    Asked("What was the gas bill of the library?", "4,417.50|4417.5|4,417.5"),
    Asked("How many buildings does Okafor look after?", "2"),
    Asked("How big is the depot?", "3,100|3100"),
    Asked("Which building has no gas?", "Depot"),
    Asked("How many sites use more than 60000 kWh of electricity?", "3"),
    Asked("What's the average electricity cost?", "42,792.40|42,792.4"),
    Asked("How much water did the pool use?", None),
    Asked("Total energy cost for the museum?", None),  # of two columns
    # muestras.xlsx
    Asked("¿Qué muestra tiene los nitratos más altos?", "M-303"),
    Asked("¿Cuántas muestras no son aptas?", "3"),
    Asked("¿Qué pH salió en el camping?", "8,1"),
    Asked("¿Cuántas muestras pasan de 50 mg/l de nitratos?", "2"),
    Asked("¿Cuál es el pH medio en Riosalce?", "7"),
    Asked("¿Dónde se tomó la M-304?", "Escuela"),
    Asked("¿Cuándo se recogió la muestra del Depósito Alto?", "2025-10-02"),
    Asked("¿Cuántas se tomaron en Torreja?", "2"),
    Asked("¿Es potable el agua de la escuela?", "sí"),
    Asked("¿Cuánto plomo tenía el Pozo del Molino?", None),
    # devis.pdf
    Asked("Combien coûte la charpente ?", "21 900|21 900,00"),
    Asked("Quel lot dure le plus longtemps ?", "Gros oeuvre"),
    Asked("À combien se monte le devis en tout ?", "95 865,50|95 865,5"),
    Asked("Quel acompte faut-il verser pour la plomberie ?", "2 962,50"),
    Asked("Quel est le total des acomptes ?", "24 007,50|24 007,5"),
    Asked("Combien de lots dépassent 15000 euros ?", "3"),
    Asked("Qui est le plombier ?", None),
    # cafes.csv
    Asked("Which café made the biggest loss?", "Arboretum"),
    Asked("How many cafés lost money in 2025?", "2"),
    Asked("What were the total takings in 2025?", "1,033,150"),
    Asked("How much did Mill Lane take in 2024?", "187,000"),
    Asked("Which was the first to open?", "Quayside"),
    Asked("How many seats do we have?", "165"),
    Asked("Which cafés opened after 2020?", "Station Kiosk & Arboretum"),
    Asked("What is the difference in takings between Quayside and Castle Green in 2025?", "67,200"),
    Asked("What profit did we make overall in 2025?", "18,600"),
    Asked("How many people work at Quayside?", None),
    Asked("What is the rent of Mill Lane?", None),
    # arbolado.xlsx
    Asked("¿Cuál es el árbol más alto?", "Platanus|Plátano"),
    Asked("¿Cuántos tilos hay?", "2"),
    Asked("¿Cuántos árboles están en mal estado?", "2"),
    Asked("¿Qué árbol tiene el tronco más gordo?", "Olea|Olivo"),
    Asked("¿En qué año se plantó la morera?", "2004"),
    Asked("¿Qué altura media tienen los árboles de la Plaza Mayor?", "8,5|8,50"),
    Asked("¿Qué árboles se plantaron antes de 1970?", "Platanus & Olea|Plátano & Olivo"),
    Asked("¿Quién riega el olivo?", None),
    Asked("¿Cuántos kilos de aceitunas da el olivo?", None),
]
HALF_B = [
    # insured.csv
    Asked("Which piece is worth the most?", "Harbour at dusk"),
    Asked("What is the whole collection insured for?", "761,750"),
    Asked("How many objects are on loan?", "2"),
    Asked("Who made the longcase clock?", "Hallam"),
    Asked("Which room is the silver ewer in?", "3"),
    Asked("When was the figurehead last cleaned?", "2021-10-03"),
    Asked("How many works by Marr do we have?", "2"),
    Asked("What's the average insured value in room 2?", "227,750"),
    Asked("Which objects were cleaned before 2023?", "G-14 & G-16|Harbour at dusk & Carved figurehead"),
    Asked("How old is the astrolabe?", None),
    Asked("What did we pay for the ewer?", None),
    # vignoble.csv
    Asked("Quelle est la surface totale du vignoble ?", "10,35"),
    Asked("Quelle parcelle a été vendangée en premier ?", "Le Plateau"),
    Asked("Combien d'hectares de Syrah ?", "5,6|5,60"),
    Asked("Quel cépage pousse à La Combe ?", "Syrah"),
    Asked("Combien de parcelles sont en bio ?", "3"),
    Asked("Quel est le degré du Clos du Puits ?", "14,2"),
    Asked("Quelle parcelle rend le mieux ?", "La Combe"),
    Asked("Quelles parcelles dépassent 14 degrés ?", "Clos du Puits & Sous-Bois"),
    Asked("Quel est le degré moyen des Grenache ?", "14,4|14,40"),
    Asked("Combien de bouteilles avons-nous faites ?", None),
    # clases.docx
    Asked("¿Cuántos alumnos hay apuntados en total?", "70"),
    Asked("¿Cuánto cuesta al mes el spinning?", "36|36,00"),
    Asked("¿Quién da yoga?", "Imanol"),
    Asked("¿Qué clase es la más barata?", "Yoga suave"),
    Asked("¿Cuántas clases imparte Lourdes?", "2"),
    Asked("¿A qué hora es pilates?", "9:30"),
    Asked("¿Qué actividad tiene más gente?", "Spinning"),
    Asked("¿Qué clases cuestan más de 35 euros?", "Pádel iniciación & Spinning"),
    Asked("¿Cuántas plazas tiene el aquagym?", "20"),
    Asked("¿Qué edad mínima hace falta para el pádel?", None),
    Asked("¿Cuántos socios tiene el gimnasio?", None),
    # comptes.xlsx
    Asked("Combien a rapporté la buvette en 2025 ?", "3 980|3980"),
    Asked("Quelles ont été les dépenses totales en 2024 ?", "10 106,25"),
    Asked("Quel poste a coûté le plus cher en 2025 ?", "Repas"),
    Asked("Qui s'occupe de la tombola ?", "Gaspard"),
    Asked("Combien avons-nous encaissé en 2025 ?", "13 825"),
    Asked("Combien de postes gère Odile ?", "2"),
    Asked("Combien a-t-on dépensé pour le concert en 2024 ?", "3 900|3900"),
    Asked("Quel a été le bénéfice de la buvette en 2025 ?", None),  # a difference of two columns
    Asked("Combien de visiteurs sont venus ?", None),
    # crossings.pdf
    Asked("How many lorries crossed at Aldmoor?", "3,150"),
    Asked("Which bridge is the busiest for cars?", "Sallow Reach"),
    Asked("How much money came in altogether?", "279,555"),
    Asked("What revenue did Penny Ferry bring?", "21,960.50"),
    Asked("How many cars used the bridges in total?", "121,885"),
    Asked("How many bicycles crossed Aldmoor?", None),
    # obras.xlsx
    Asked("¿Cuál es la obra más cara?", "Biblioteca"),
    Asked("¿Cuánto llevamos gastado en total?", "2.398.451,15"),
    Asked("¿Cuántas obras hay en el Centro?", "2"),
    Asked("¿Cuándo acaba el carril bici?", "2025-12-20"),
    Asked("¿Qué empresa hace el parque infantil?", "Viales Tormo"),
    Asked("¿Qué obras no han empezado?", None),  # no column says it
    Asked("¿Qué obras terminan después de marzo de 2026?", "Biblioteca & Alcantarillado"),
    Asked("¿Cuál es el presupuesto total de las obras de Luján?", "1.890.000"),
    Asked("¿Qué porcentaje lleva la biblioteca?", "35"),
    Asked("¿Cuántas obras tienen un presupuesto de más de un millón?", "2"),
    Asked("¿Cuántos obreros trabajan en el mercado?", None),
    Asked("¿Quién es el arquitecto de la biblioteca?", None),
    # vet.csv
    Asked("How heavy is Moss?", "27.8"),
    Asked("How many cats are on the books?", "2"),
    Asked("Who is the owner of Duchess?", "Ms Vale"),
    Asked("How much is owed in total?", "223.35"),
    Asked("Which animals belong to Amari?", "Biscuit & Pickle"),
    Asked("What do dogs weigh on average?", "20.5|20.50"),
    Asked("When did Thumper have his last jab?", "2024-11-15"),
    Asked("Who owes us the most?", "Stone|Moss"),
    Asked("Which pets weigh less than 5 kilos?", "Pickle & Thumper"),
    Asked("How old is Rook?", None),
    Asked("What is Ms Vale's phone number?", None),
]

_MARK = re.compile(r" ?\[C\d+\]")
_SPACE = re.compile(r"\s")
_THOUSANDS = re.compile(r"(?<=\d) (?=\d{3}\b)")


def says(text: str, value: str) -> bool:
    """Whether an answer holds one of the values, separated by `|`, with all its parts, separated by ` & `, as words."""
    plain, wanted = (_THOUSANDS.sub("", _SPACE.sub(" ", _MARK.sub("", one))) for one in (text, value))
    return any(all(_holds(plain, part) for part in one.split(" & ")) for one in wanted.split("|"))


def _holds(text: str, part: str) -> bool:
    return re.search(rf"(?<![\w.,-]){re.escape(part)}(?![\w-]|[.,]\d)", text) is not None

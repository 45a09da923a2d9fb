"""Tables asked in ordinary words: first names, "sold", "earned", "popular", "still", "last"."""

from __future__ import annotations

from datetime import date

import pytest

from rag_service.components import Components
from rag_service.domain import LOCAL_ADMIN, Decision, ProofMethod
from rag_service.retrieval.query import RagQuery
from tests.integration.answers.conftest import Ingest, ingest, open_service, service
from tests.integration.tables.sheets import Rows, workbook
from tests.integration.tables.unseen_questions import says

__all__ = ["ingest", "open_service", "service"]  # fixtures

STAFF: Rows = [
    ("Employee", "Department", "Start date", "Salary (EUR)", "Holiday days left"),
    ("Anna Berg", "Sales", date(2018, 4, 1), 52000, 12),
    ("Tom Hill", "IT", date(2021, 9, 15), 61000, 7),
    ("Ben Otto", "IT", date(2016, 6, 1), 68500, 3),
    ("Maya Singh", "Finance", date(2023, 3, 20), 55000, 22),
]
VENTAS = """Mes;Tienda;Producto;Unidades;Importe
enero;Sevilla;Bicicleta;14;5.600,00
enero;Bilbao;Patinete;30;4.200,00
febrero;Sevilla;Patinete;22;3.080,00
marzo;Bilbao;Bicicleta;17;6.800,00
marzo;Cádiz;Patinete;11;1.540,00
"""
FORMULES: Rows = [
    ("Formule", "Prix par mois", "Puissance (kW)", "Clients"),
    ("Éco", 14.99, 3, 820),
    ("Confort", 24.99, 6, 2310),
    ("Pro", 44.99, 12, 640),
]
LIVROS = """Título;Autor;Ano;Exemplares
O Mar Alto;Rita Lopes;2011;5
Cidade Breve;João Neves;1998;3
A Última Carta;Rita Lopes;2020;8
"""
MEMBERS = """Member no,Name,Plan,Joined,Visits,Paid
5001,Greta Lund,Gold,2021-05-03,14,yes
5002,Hassan Ali,Basic,2023-10-18,3,no
5003,Ines Faro,Gold,2022-10-09,9,yes
"""
CHAMBRES = """Chambre;Client;Nuits;Prix par nuit
101;Mme Garnier;3;86,00 €
204;Famille Roche;7;145,00 €
"""
DONATIVOS = """Fecha;Donante;Importe
15/01/2025;Farmacia Luz;300,00
22/02/2025;Talleres Mena;900,00
"""
ENERGIA = """Mês;Energia (kWh);Fatura (€)
Janeiro;410;198,40
Fevereiro;305;151,20
"""
LOJAS = """Loja;Vendas 2024 (€);Vendas 2025 (€)
Baixa;412000;455300
Ribeira;287500;301200
"""
ESTADAS = """Município;Estada média (noites);Partida do autocarro
Vila Clara;2,4;17
Monte Alto;1,8;9
"""
VIAJES = """Empleado;Destino;Hotel;Transporte;Dietas;Total
Marta Gil;Lisboa;320,00;185,50;96,00;601,50
Jorge Paz;París;540,00;260,00;144,00;944,00
Marta Gil;Berlín;410,00;230,40;120,00;760,40
"""
VINHA = """Parcela;Casta;Hectares;Produção (kg)
Vale Fundo;Touriga;2,5;11250
Encosta;Alvarinho;1,8;9900
"""
STAGES: Rows = [("Nom", "École", "Indemnité (€/mois)"), ("Zoé Lambert", "INSA", 620), ("Karim Haddad", "Centrale", 700)]

COMMANDES = """N° commande;Client;Date;Montant HT
2041;Boulangerie Martin;14/03/2025;1 240,00
2042;Café des Arts;11/03/2025;385,50
2043;Café des Arts;02/04/2025;412,00
"""
ROOMS: Rows = [("Room", "Floor", "Monthly rent"), ("Studio", 3, 410), ("Annexe", 1, 350), ("Loft", 3, 620)]
EVENTOS = """Data;Evento;Responsável
8 de março;Feira da troca;Baltasar Nóbrega
20 de setembro;Aniversário;Ondina Carreira
"""
INVENTARIO = """Artículo;Existencias;Precio unitario
Tóner;12;64,90
Papel;40;22,50
"""


@pytest.mark.parametrize(
    ("question", "said", "certain"),
    [
        ("How much more does Ben earn than Tom?", "7,500", True),
        ("What's the difference in salary between Ben and Tom?", "7,500", True),
        ("How much do Ben and Maya earn?", "68,500 & 55,000", True),
        ("Who started last?", "Maya Singh", True),
        ("How many days off does Maya still have?", "22", False),
        ("¿Cuánto vendió Cádiz?", "11 & 1540", False),  # pieces or money
        ("¿Qué tienda facturó más?", "Bilbao", False),
        ("¿Cuál es el producto más popular?", "Patinete: 63", True),
        ("Quelle est la formule la plus populaire ?", "Confort", True),
        ("Quelle est la formule la plus puissante ?", "Pro", True),
        ("Qual é o livro mais recente?", "A Última Carta", True),
        ("¿Cuál fue el viaje más caro?", "944,00: París", False),
        ("Quel stagiaire gagne le plus ?", "Karim Haddad", True),
        ("Quanto produziu a Encosta?", "9900", True),
        ("Who earns more, Ben or Tom?", "68,500 & Ben Otto", True),
        ("Does Anna earn less than Maya?", "52,000 & Anna Berg", True),
        ("How many people started in March?", "1", False),  # of which year is not said
        ("Combien de commandes en mars ?", "2", False),
        ("Quel est le montant total des commandes du Café des Arts ?", "797,5", True),  # their numbers are no figures
        ("Which rooms are on the third floor?", "Studio & Loft", True),
        ("How much is the Loft per month?", "620", True),
        ("Who hasn't paid yet?", "Hassan Ali", True),
        ("Who still has to pay?", "Hassan Ali", True),
        ("Who joined in October?", "Hassan Ali & Ines Faro", False),
        ("Which members joined in October?", "Hassan Ali & Ines Faro", False),
        ("Which is more expensive, Tóner or Papel?", "Tóner", True),
        ("Quanto vendeu a mais a Baixa do que a Ribeira em 2024?", "124.500", True),
        ("Qual é o município com menor estada média?", "Monte Alto", True),  # "média" is of the column's name
        ("A que horas parte o autocarro de Vila Clara?", "17", False),
        ("Who has the Basic plan?", "Hassan Ali", True),  # "Name" alone is a person's
        ("How many members since January 2022?", "2", False),  # of the only date, which nobody named
        ("Quelle est la dernière commande ?", "2043", False),
        ("Quelle est la plus grosse commande ?", "2041", False),  # by the only amount
        ("Quelle est la chambre la plus chère ?", "145,00 & Famille Roche", True),  # numbers of rooms are no measure
        ("Quel est le prix moyen par nuit ?", "115,50", True),  # "par" is of the column's name
        ("Which employees have a salary over 60k?", "Tom Hill & Ben Otto", True),
        ("Quem organiza a Feira da troca?", "Baltasar Nóbrega", True),
        ("¿Cuál es el artículo más caro del inventario?", "64,90: Tóner", True),  # the file, not a column of stock
        ("¿Cuál es el material más caro del inventario?", "64,90: Tóner", False),
    ],
)
async def test_ordinary_words_are_understood(
    service: Components, ingest: Ingest, question: str, said: str, certain: bool
) -> None:
    await ingest(workbook({"Staff": STAFF}), "staff.xlsx")
    await ingest(VENTAS, "ventas.csv")
    await ingest(workbook({"Abonnements": FORMULES}), "abonnements.xlsx")
    await ingest(LIVROS, "livros.csv")
    await ingest(EVENTOS, "agenda.csv")
    await ingest(VIAJES, "gastos_viaje.csv")
    await ingest(VINHA, "vinha.csv")
    await ingest(workbook({"Stagiaires": STAGES}), "stagiaires.xlsx")
    await ingest(MEMBERS, "members.csv")
    await ingest(CHAMBRES, "reservations.csv")
    await ingest(LOJAS, "lojas.csv")
    await ingest(ESTADAS, "estadas.csv")
    await ingest(COMMANDES, "commandes.csv")
    await ingest(workbook({"Rooms": ROOMS}), "rooms.xlsx")
    await ingest(INVENTARIO, "inventario.csv")
    answer = await service.engine.answer(RagQuery(question, identity=LOCAL_ADMIN, threshold=0.0, recorded=False))
    assert says(answer.text.replace("\xa0", " "), said), answer.text
    assert {citation.method for citation in answer.citations} == {ProofMethod.COMPUTED}
    assert (answer.decision is Decision.CAN_PROCEED) is certain


@pytest.mark.parametrize(
    "question",
    [
        "¿Qué margen tenemos con Cádiz?",
        "Which parking space has Maya?",
        "De que género é O Mar Alto?",
        "How much does Notely cost per user?",
    ],
)
async def test_a_row_proves_nothing_about_what_it_does_not_have(
    service: Components, ingest: Ingest, question: str
) -> None:
    await ingest(workbook({"Staff": STAFF}), "staff.xlsx")
    await ingest(VENTAS, "ventas.csv")
    await ingest(LIVROS, "livros.csv")
    await ingest("Tool,Users,Cost per year\nNotely,24,2880\nDrawdesk,8,1150\n", "tools.csv")
    answer = await service.engine.answer(RagQuery(question, identity=LOCAL_ADMIN, threshold=0.0, recorded=False))
    assert answer.citations
    assert answer.decision is Decision.UNCERTAIN


@pytest.mark.parametrize(
    ("sheet", "question", "said"),
    [
        (ENERGIA, "Quanta energia gastámos no total?", "715"),
        (DONATIVOS, "¿Cuánto se ha recaudado en total?", "1200"),
        (DONATIVOS, "¿Cuánto se ha donado de media?", "600"),
    ],
)
async def test_how_much_of_what_is_named_or_of_the_only_amount(
    service: Components, ingest: Ingest, sheet: str, question: str, said: str
) -> None:
    await ingest(sheet, "hoja.csv")
    answer = await service.engine.answer(RagQuery(question, identity=LOCAL_ADMIN))
    assert says(answer.text, said), answer.text
    assert answer.decision is Decision.UNCERTAIN


@pytest.mark.parametrize(
    ("question", "said", "certain"),
    [
        ("Quelle est la randonnée la plus courte ?", "8,5 km : Lac Bleu", True),  # the file is called so
    ],
)
async def test_a_noun_beside_a_superlative_names_the_rows(
    service: Components, ingest: Ingest, question: str, said: str, certain: bool
) -> None:
    await ingest("Sortie;Distance (km);Animateur\nLac Bleu;8,5;Odile\nCol du Vent;14,2;Bruno\n", "randonnees.csv")
    await ingest(INVENTARIO, "inventario.csv")
    answer = await service.engine.answer(RagQuery(question, identity=LOCAL_ADMIN, threshold=0.0, recorded=False))
    assert says(answer.text.replace("\xa0", " "), said), answer.text
    assert {citation.method for citation in answer.citations} == {ProofMethod.COMPUTED}
    assert (answer.decision is Decision.CAN_PROCEED) is certain

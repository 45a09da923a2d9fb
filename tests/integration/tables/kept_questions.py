"""Questions as customers put them over `kept_sheets.py`, with the values worked out by hand before any was asked.

Half A was looked at while the rules were made; half B, over other files, was asked once at the end.
"""

from __future__ import annotations

from tests.integration.tables.questions import Asked

HALF_A = [
    # trade prices.xlsx
    Asked("What do we charge the trade for the cordless drill?", "103.2|103.20"),
    Asked("How long does it take to get a belt sander?", "21"),
    Asked("Who supplies the masonry paint?", "Tern Paints"),
    Asked("Which power tool is the cheapest at list price?", "Jigsaw 650 W"),
    Asked("How many items do we buy from Voltra?", "3"),
    Asked("Which items take more than a week to arrive?", "Masonry paint 10 l & Belt sander"),
    Asked("What's the average list price of paint?", "45.88|45.8833"),
    Asked("How many screws come in a pack?", "200"),
    Asked("What is the warranty on the jigsaw?", None),
    Asked("How many belt sanders are in stock?", None),
    # gastos_oficina.csv
    Asked("¿Cuánto pagamos de luz en marzo?", "301,75"),
    Asked("¿En qué se nos fue más dinero en febrero?", "Alquiler"),
    Asked("¿Cuánto llevamos gastado en viajes este semestre?", "3.919,35|3919,35"),
    Asked("¿Cuál fue el gasto total de junio?", "4.294,50|4294,5"),
    Asked("¿Subió el alquiler entre abril y mayo?", "50|1.850,00 & 1.900,00|1850,00 & 1900,00"),
    Asked("¿Qué gastos pasaron de 500 euros en enero?", "Alquiler & Limpieza"),
    Asked("¿Cuánto costó la luz en agosto?", None),
    Asked("¿Cuánto pagamos de seguros?", None),
    # bulletin_4e.docx
    Asked("Combien Clara a-t-elle eu en maths ?", "18"),
    Asked("Qui a la meilleure note en anglais ?", "Gaëlle Roche"),
    Asked("Quelle est la moyenne de la classe 4e B en français ?", "12,83|12,8333"),
    Asked("Quels élèves ont moins de 10 en maths ?", "Bastien Caron & Éloïse Marchand"),
    Asked("Combien d'élèves n'ont aucune absence ?", "2"),
    Asked("Qui a manqué le plus souvent ?", "Bastien Caron"),
    Asked("Quelle note Félix a-t-il eue en physique ?", None),
    # resultados_2024.pdf
    Asked("Qual foi o resultado líquido em 2024?", "4.356"),
    Asked("Quanto gastou a empresa com o pessoal em 2023?", "10.774"),
    Asked("As vendas cresceram em 2024?", "2.305|48.210 & 45.905"),
    Asked("Quanto pagámos de imposto sobre o rendimento no ano passado, em 2024?", "1.302"),
    Asked("Qual foi o valor dos dividendos pagos em 2024?", None),
]
HALF_B = [
    # equipa.xlsx
    Asked("Quanto ganha o Caio?", "1540|1.540|1 540"),
    Asked("Quem trabalha há mais tempo no hotel?", "Dália Moreira"),
    Asked("Quantos dias de férias ainda tem a Helena Bastos?", "14"),
    Asked("Quantas pessoas trabalham na cozinha?", "2"),
    Asked("Qual é o vencimento médio dos rececionistas?", "1102,5|1.102,5|1.102,50|1102,50"),
    Asked("Quem entrou em 2023?", "Edgar Pinho & Helena Bastos"),
    Asked("Quais são os funcionários do turno da noite?", "Edgar Pinho & Filipa Rato"),
    Asked("Quem já não tem férias?", "Gil Taveira"),
    Asked("Qual é a morada da Filipa Rato?", None),
    # project tracker.docx
    Asked("When is the loyalty scheme due?", "12 Sep 2025|2025-09-12"),
    Asked("Who is running the payroll migration?", "Sam Iqbal"),
    Asked("Which project has gone over budget?", "Mobile booking app"),
    Asked("How many projects are finished?", "2"),
    Asked("What's the total budget of Nadia's projects?", "55,000|55000"),
    Asked("Which projects start in 2025 and are low risk?", "Loyalty scheme & Data cleanup"),
    Asked("Which client has the most projects?", "Brightwell Dental & Larch Logistics"),
    Asked("How much is left of the budget for the website relaunch?", "6,650|6650|24,000 & 17,350"),
    Asked("What hourly rate do we bill City Ferries?", None),
    # inventario.pdf
    Asked("¿Cuántas puertas blindadas nos quedan?", "8"),
    Asked("¿Cuánto pesa la ventana corredera?", "31,0|31"),
    Asked("¿Qué artículo es el más caro?", "Puerta blindada"),
    Asked("¿Qué está agotado?", "Mosquitera"),
    Asked("¿Cuántas unidades hay en total en Getafe?", "177"),
    Asked("¿De qué color es la persiana enrollable?", None),
    # enquete_clients.csv
    Asked("Quel service a la plus mauvaise note ?", "Wi-Fi"),
    Asked("Combien de clients ont répondu sur la piscine ?", "254"),
    Asked("Quel pourcentage de mécontents pour la navette ?", "16"),
    Asked("Quels services ont une note supérieure à 4 ?", "Accueil & Piscine"),
    Asked("Quelle note a obtenu le ménage ?", "4,0|4"),
    Asked("Quel est le prix de la navette ?", None),
]

"""What contradicts a claim, kind by kind, and what does not."""

from __future__ import annotations

import pytest

from rag_service.answering.proof.verify import verify_answer
from rag_service.domain import Citation, CitationStatus
from tests.unit.answering.proof.answers import make_hit

V, U, X = CitationStatus.VERIFIED, CitationStatus.UNCHECKED, CitationStatus.CONTRADICTED


def check(passage: str, claim: str, language: str) -> Citation:
    (citation,) = verify_answer(f"{claim} [C1].", [make_hit(passage)], language=language).citations
    return citation


CONTRADICTED = [
    ("number", "en", "The deposit is refunded within 15 days of the return.", "The deposit is refunded in 25 days"),
    ("number", "fr", "Le forfait comprend 40 trajets par mois.", "Le forfait comprend 60 trajets par mois"),
    ("number", "en", "Places are held until 9 April.", "Places are held until 10 April"),
    ("number", "es", "El alquiler dura un año.", "El alquiler dura dos años"),
    ("number", "fr", "Le délai est de 45 jours.", "Le délai est de cinquante-cinq jours"),
    ("unit", "pt", "Tome 5 ml do xarope.", "Tome 5 litros do xarope"),
    ("unit", "es", "La reserva se conserva durante 3 semanas.", "La reserva se conserva 3 meses"),
    ("unit", "es", "La cuota es de 8 euros al mes.", "La cuota es de 8 euros al año"),
    ("date", "en", "The pool reopens on 4 June after cleaning.", "The pool reopens on 4 September after cleaning"),
    ("label", "en", "Adults pay 9 euros and children pay 4 euros.", "Adults pay 4 euros and children pay 9 euros"),
    ("label", "es", "Sala: Norte | Aforo: 80 | Precio: 45", "Sala Norte: el aforo es 45"),
    ("limit", "en", "Groups need at least 6 people to book.", "Groups of at most 6 people can book"),
    ("limit", "fr", "Le dossier se dépose avant le 12 mars.", "Le dossier se dépose après le 12 mars"),
    ("name", "en", "Parcels for Lyon leave from Geneva at noon.", "Parcels for Lyon leave from Milan at noon"),
    ("subject", "es", "Ana dirige el taller de pintura.\nLuis lleva el archivo.", "Luis dirige el taller de pintura"),
    ("direction", "en", "Sales of tickets increased in spring.", "Sales of tickets decreased in spring"),
    ("direction", "es", "El aviso se envía antes del cierre.", "El aviso se envía después del cierre"),
    ("modality", "en", "Visitors must wear a badge.", "Visitors may wear a badge"),
    ("modality", "fr", "Les élèves peuvent apporter un ordinateur.", "Les élèves doivent apporter un ordinateur"),
    ("quantifier", "en", "Some lockers have a camera.", "All lockers have a camera"),
    ("quantifier", "es", "Algunas aulas tienen proyector.", "Todas las aulas tienen proyector"),
    ("antonym", "en", "Tickets are valid on public holidays.", "Tickets are invalid on public holidays"),
    ("antonym", "es", "La entrada al museo es gratuita.", "La entrada al museo es pagada"),
    ("swap", "en", "The landlord informs the tenant in writing.", "The tenant informs the landlord in writing"),
    ("swap", "fr", "Le vendeur rembourse l'acheteur.", "L'acheteur rembourse le vendeur"),
]  # fmt: skip


@pytest.mark.parametrize(("veto", "language", "passage", "claim"), CONTRADICTED)
def test_a_difference_is_told_with_both_values(veto: str, language: str, passage: str, claim: str) -> None:
    citation = check(passage, claim, language)
    assert (citation.status, (citation.reason or "").partition(":")[0]) == (X, veto)
    assert citation.reason is not None and " / " in citation.reason
    assert citation.quote is not None  # the evidence is shown


# What no judge may verify: code cannot tell whether it says the same.
DOUBTED = [
    ("negation", "en", "The gym is not open to visitors.", "The gym is open to visitors"),
    ("negation", "es", "El carné se renueva por internet.", "El carné no se renueva por internet"),
    ("negation", "en", "Bags are not allowed without a ticket.", "Bags are allowed"),
    ("negation", "pt", "O cão não pode entrar na praia.", "O cão pode entrar na praia"),
    ("negation", "fr", "La salle n'est louée qu'aux adhérents.", "La salle n'est pas louée aux adhérents"),
    ("figure", "es", "Sala: Norte | Aforo: 80 | Precio: 45", "El aforo de la sala Norte es de 45 personas"),
    ("figure", "en", "Articles above 250 euros are ordered on demand.", "An article of 300 euros is ordered on demand"),
]  # fmt: skip


@pytest.mark.parametrize(("doubt", "language", "passage", "claim"), DOUBTED)
def test_a_doubt_is_told_and_contradicts_nothing(doubt: str, language: str, passage: str, claim: str) -> None:
    citation = check(passage, claim, language)
    assert (citation.status, (citation.reason or "").partition(":")[0]) == (U, doubt)


AGREEING = [
    ("en", "Groups need at least 6 people to book.", "A group can book from 6 people on"),
    ("en", "The gym is closed to visitors.", "The gym is not open to visitors"),
    ("en", "Adults pay 9 euros and children pay 4 euros.", "Children pay 4 euros and adults pay 9 euros"),
    ("en", "The landlord informs the tenant in writing.", "The tenant is informed by the landlord in writing"),
    ("en", "The office is closed on Sundays and opens at 9 on Mondays.", "On Mondays the office opens at 9"),
    ("es", "La tasa no se fracciona.", "No es posible pagar la tasa a plazos"),
    ("es", "El plazo es de 12 meses.", "El plazo es de un año"),
    ("es", "De 10 a 50 euros decide el jefe de sala.", "Un gasto de 30 euros lo decide el jefe de sala"),
    ("fr", "La salle n'est louée qu'aux adhérents.", "Seuls les adhérents louent la salle"),
    ("fr", "Les enfants de moins de 6 ans entrent gratuitement.", "Les enfants ne paient rien avant 6 ans"),
    # number words, clock times, units
    ("en", "The bond is 45 euros.", "The bond is forty-five euros"),
    ("en", "The rent is 2,500 euros.", "The rent is two thousand five hundred euros"),
    ("es", "El plazo es de 400 días.", "El plazo es de cuatrocientos días"),
    ("fr", "Le délai est de 21 jours.", "Le délai est de vingt et un jours"),
    ("fr", "Le délai est de 92 jours.", "Le délai est de quatre-vingt-douze jours"),
    ("pt", "A caução é de 1.180 euros.", "A caução é de mil cento e oitenta euros"),
    ("es", "El precio sube un 15 %.", "El precio sube un quince por ciento"),
    ("en", "The shop closes at 19:30.", "The shop closes at 7:30 pm"),
    ("fr", "Le spectacle commence à 18h30.", "Le spectacle commence à 18:30"),
    ("en", "The box weighs 2 kg when it is full.", "The full box weighs 2000 g"),
    # an exception, and what it excepts
    ("en", "Bags are not allowed without a ticket.", "With a ticket, bags are allowed"),
    ("es", "El bar cierra pronto, salvo los sábados.", "Los sábados el bar no cierra pronto"),
    ("fr", "Elles ne sont payées que si le chef les demande.", "Sans demande du chef, elles ne sont pas payées"),
    ("pt", "Faça exercício, a menos que o médico o proíba.", "Se o médico não o proibir, faça exercício"),
    # words that negate without a negation, and limits that negate
    ("es", "Se rechaza contratar un guarda nuevo.", "Se decidió no contratar un guarda nuevo"),
    ("pt", "A maioria dos sócios não tem cartão.", "Poucos sócios têm cartão"),
    ("en", "Gift cards are never refunded.", "Refunds are not available for gift cards"),
    ("en", "No parcel of the order was lost.", "Not one thing is missing: the parcel of the order was kept"),
    ("en", "The key must be returned within 3 days, or we charge 9 euros.",
     "If the key is not returned within 3 days, you pay 9 euros"),
    ("pt", "O curso não deve durar mais de sete dias.", "O curso dura no máximo 7 dias"),
    ("fr", "Le lecteur emprunte au plus 10 livres.", "Le lecteur n'emprunte pas plus de dix livres"),
    ("fr", "Attendez au moins une heure avant de partir.", "Attendez une heure ou plus avant de partir"),
    # places, subjects, opposites
    ("en", "The office is open from Monday to Friday.", "On Friday the office closes early"),
    ("pt", "A loja de Faro vende mais do que a de Beja.", "A loja de Beja vende menos do que a de Faro"),
    ("en", "Ann is away from 3 to 14 June.", "Ann is away between 3 and 14 June"),
    ("pt", "| Peça | Abril | Maio |\n|---|---|---|\n| Porca | 140 | 95 |", "Em maio havia 95 unidades de porca"),
    ("fr", "Le conseil se réunit lundi.\nLa décision est reportée à janvier.", "Le conseil tranchera en janvier"),
    ("fr", "L'abonnement coûte 21 € par an.", "L'abonnement coûte 21 € chaque année"),
]  # fmt: skip


@pytest.mark.parametrize(("language", "passage", "claim"), AGREEING)
def test_other_words_for_the_same_are_not_contradicted(language: str, passage: str, claim: str) -> None:
    assert check(passage, claim, language).status is U


PARTIAL = [
    ("en", "Staff may park here unless an event takes place.", "Staff may park here"),
    ("en", "If you are over 65, the entry fee is waived.", "The entry fee is waived"),
    ("en", "Employees may work from home on Fridays with approval.", "Employees may work from home"),
    ("en", "Members of partner clubs pay no entry fee.", "Partner clubs pay no entry fee"),
    ("en", "Some people believe that the fee is returned.", "The fee is returned"),
    ("en", "Is the fee returned to new members?", "The fee is returned to new members"),
    ("en", "For example, the fee for a family is 30 euros.", "The fee for a family is 30 euros"),
    ("en", "The plan does not cover:\n- dental care for adults\n- glasses", "Dental care for adults"),
    ("en", "The plan is «free for all members» of the board.", "Guests are «free for all members»"),
    ("es", "Salvo festivos, la piscina abre a las nueve.", "La piscina abre a las nueve"),
    ("es", "No es cierto que la matrícula sea gratuita.", "La matrícula sea gratuita"),
    ("fr", "L'accès est libre sauf le dimanche.", "L'accès est libre"),
    ("fr", "Le remboursement est versé si le dossier est complet.", "Le remboursement est versé"),
    ("pt", "A inscrição é gratuita, exceto para grupos.", "A inscrição é gratuita"),
]


@pytest.mark.parametrize(("language", "passage", "claim"), PARTIAL)
def test_half_a_sentence_that_drops_what_binds_it_is_no_proof(language: str, passage: str, claim: str) -> None:
    assert check(passage, claim, language).status is not V


WHOLE = [
    ("en", "Opening hours: the desk is open from 9 to 5.", "The desk is open from 9 to 5"),
    ("en", "The desk closes at 5, and the café closes at 6.", "The café closes at 6"),
    ("en", "The plan covers:\n- dental care for adults\n- glasses", "Dental care for adults"),
    ("es", "Segunda tarjeta: 60 euros al año.", "Segunda tarjeta: 60 euros al año"),
    ("fr", "Un écart de plus de 500 euros déclenche une enquête : contrôle et visite.",
     "Un écart de plus de 500 euros déclenche une enquête"),
]  # fmt: skip


@pytest.mark.parametrize(("language", "passage", "claim"), WHOLE)
def test_whole_clauses_are_quotes(language: str, passage: str, claim: str) -> None:
    citation = check(passage, claim, language)
    assert (citation.status, citation.method) == (V, "quote")

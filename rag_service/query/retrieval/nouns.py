"""What a question asks about in small letters, and what of that no document holds.

"How much is the printer?" is not answered by the prices of other things. Names are told by their capital
(`names.py`); of the other words only nouns count, since documents say with other verbs what people ask, and nouns are
told by the article or the number word before them. Synonyms that the index knows count as held. That tells an
unanswerable question two to eight times as often as an answerable one, whose noun has another word in the document:
enough to say so beside the answer, not to refuse it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from itertools import pairwise

from rag_service.store.search.term_weights import QueryTerm
from rag_service.text.words import fold, index_term

_WORD = re.compile(r"[^\W_]+")
_LEAST_LETTERS = 4
# As they are written, accents included: "está" is a verb. Words that stand before verbs as well ("qué", "what") are not
# here.
_BEFORE_NOUNS: dict[str, frozenset[str]] = {
    "en": frozenset(
        "a an the my our your his her its their this these those which many of".split()  # noqa: SIM905
    ),
    "es": frozenset(
        """
        el la los las un una unos unas del al de mi tu su mis tus sus nuestro nuestra nuestros nuestras cuántos cuántas
        cuantos cuantas cuánta
        """.split()  # noqa: SIM905
    ),
    "fr": frozenset(
        """
        le la les l un une des du de d au aux ce cette ces cet mon ma mes ton ta tes son sa ses notre nos votre vos leur
        leurs quel quelle quels quelles
        """.split()  # noqa: SIM905
    ),
}
_BEFORE_INFINITIVES = frozenset({"de", "d", "al"})
_INFINITIVE = re.compile(r"(?:[aei]r(?:se|me|te|lo|la|los|las)?|re)$")
# What is asked for ("the amount") need not be called so, dates and units are often written in figures and letters, and
# adjectives that stand before their noun are not it.
_SAYS_LITTLE = frozenset(
    """
    amount number name names date day days time hour hours price cost costs fee kind kinds type types sort way ways
    maximum minimum limit percentage percent rate value address reason reasons purpose difference length duration size
    colour color year years month months week weeks place person people thing things part parts word words total sum
    quantity average process procedure method rule rules condition conditions example examples effect result results
    role main first last next other same new old best most entity unit units piece pieces january february march april
    june july august september october november december monday tuesday wednesday thursday friday saturday sunday

    cantidad numero nombre nombres fecha dia dias hora horas precio coste costo importe tipo tipos clase manera forma
    maximo minimo limite porcentaje tasa valor direccion razon motivo motivos diferencia duracion tamano ano anos mes
    meses semana semanas lugar persona personas cosa cosas parte partes palabra suma media proceso procedimiento metodo
    norma normas regla reglas condicion condiciones ejemplo ejemplos efecto resultado resultados papel principal primer
    primera ultimo ultima proximo proxima mejor mayor menor nuevo nueva propio propia otro otra unidad unidades pieza
    piezas enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre lunes martes
    miercoles jueves viernes sabado domingo

    montant nombre noms jour jours heure heures prix cout tarif genre facon pourcentage taux valeur adresse raison
    raisons motif motifs duree longueur taille couleur annee annees mois semaine semaines lieu endroit personne
    personnes chose choses partie parties somme moyenne processus procedure methode regle regles exemple exemples effet
    resultat resultats premier premiere dernier derniere prochain prochaine meilleur meilleure nouveau nouvelle propre
    autre autres gros grosse grand grande petit petite vieux vieille meme unite unites piece pieces janvier fevrier
    mars avril juin juillet aout septembre octobre novembre decembre lundi mardi mercredi jeudi vendredi samedi dimanche
    """.split()  # noqa: SIM905
)


def find_absent_nouns(
    question: str, language: str, asked: Sequence[QueryTerm], held: Collection[str]
) -> tuple[str, ...]:
    """Nouns of a question that nothing in scope holds, nor anything that stands for them, as the question writes them.

    Args:
        question: as it was asked.
        language: its language, ISO 639-1.
        asked: its index terms.
        held: those of them that some chunk in scope holds.
    """
    group_of = {term.term: term.group for term in asked if term.weight == 1.0}
    groups_held = {term.group for term in asked if term.term in held}

    def is_held(word: str) -> bool | None:
        """None for a word that is no index term."""
        term = index_term(fold(word), language)
        return None if term is None or term not in group_of else group_of[term] in groups_held

    absent = []
    tokens = _WORD.findall(question)
    for place, (before, word) in enumerate(pairwise(tokens), start=1):
        if not _may_be_noun(before.lower(), word, language) or is_held(word) is not False:
            continue
        # An English noun is the last of its words: "an extra monitor".
        if language == "en" and place + 1 < len(tokens) and is_held(tokens[place + 1]):
            continue
        absent.append(word)
    return tuple(dict.fromkeys(absent))


def _may_be_noun(before: str, word: str, language: str) -> bool:
    return (
        before in _BEFORE_NOUNS.get(language, ())
        and word[0].islower()
        and word.isalpha()
        and len(word) >= _LEAST_LETTERS
        and fold(word) not in _SAYS_LITTLE
        and not (language != "en" and before in _BEFORE_INFINITIVES and _INFINITIVE.search(fold(word)))
    )

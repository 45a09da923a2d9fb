"""The kinds of things that questions ask for, and how sentences that hold one look: prices, numbers, dates, names."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from rag_service.text.words import fold

_NUMBER = re.compile(
    r"\d|\b(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twenty|thirty|forty|fifty|sixty|"
    r"seventy|eighty|ninety|hundred|thousand|million|billion|half|"
    r"dos|tres|cuatro|cinco|seis|siete|ocho|nueve|diez|once|doce|quince|veint\w*|treinta|cuarenta|cincuenta|sesenta|"
    r"setenta|ochenta|noventa|cien|ciento|mil|millones|mitad|"
    r"deux|trois|quatre|cinq|sept|huit|neuf|dix|onze|douze|quinze|vingt|trente|quarante|cinquante|"
    r"soixante|cents?|mille|millions?|milliards?|moitie|tiers)\b"
)
_DATE = re.compile(
    r"\b(?:1[0-9]|20)\d\d\b|\b\d{1,2}[./-]\d{1,2}\b|\b(?:enero|febrero|marzo|abril|mayo|junio|julio|agosto|septiembre|"
    r"octubre|noviembre|diciembre|janvier|fevrier|mars|avril|mai|juin|juillet|aout|septembre|octobre|novembre|decembre|"
    r"january|february|march|april|may|june|july|august|september|october|november|december|"
    r"lunes|martes|miercoles|jueves|viernes|sabado|domingo|lundi|mardi|mercredi|jeudi|vendredi|samedi|dimanche|"
    r"(?:mon|tues|wednes|thurs|fri|satur|sun)days?|veille|matin|midi|soir|\d{1,2} ?h\b(?: ?\d\d\b)?|horas?|heures?|"
    r"dias?|meses|mes|semanas?|anos?|jours?|mois|semaines?|ans?|annees?|days?|months?|weeks?|years?|century|siglo|siecle)\b"
)
_NAME = re.compile(r"(?<=[a-zà-ÿ,;] )[A-ZÀ-Ý][\w’'-]+")
_MONEY = re.compile(r"[€$£]|\b(?:EUR|USD|GBP|euros?|dollars?|pounds?|d[oó]lares)\b", re.IGNORECASE)
_FREE = re.compile(
    r"\b(?:free|gratis|gratuit\w*|no (?:charge|cost|fee)s?|(?:sin|ningun) (?:coste|costo|cargo)|sans frais)\b"
)
# "What … cost" is looked for from the first "what" of a line alone: from each, a long question would take seconds.
_ASKS_MONEY = re.compile(
    r"\b(?:cuanto (?:cuesta|vale|se paga|cobr|hay que pagar)|que (?:coste|precio|tasa|importe|cuantia)|"
    r"combien (?:coute|coutent|vaut|paie|paye|gagne|touche))|"
    r"^(?>.*?\bhow much (?:does|do|is|are|will|can|may) ).*(?:cost|pay|fee|price|borrow|charge|get|receive)|"
    r"^(?>.*?\bwhat ).*\b(?:cost|fee|price)s?\b|"
    r"^(?>.*?\bquel(?:le)? ).*\b(?:couts?|prix|tarifs?|montants?)\b",
    re.MULTILINE,
)
_ASKS_NUMBER = re.compile(
    r"\b(?:how (?:many|much|long|old|far|often|large|big|high)|cuant[oa]s?|combien|what (?:percentage|amount|number)|"
    r"que (?:porcentaje|cantidad|importe|numero)|quel(?:le)? (?:montant|pourcentage|nombre|quantite|est le taux))\b"
)
_ASKS_DATE = re.compile(
    r"\b(?:when|(?:what|which) (?:year|date|day|month|time)|cuando|que (?:ano|fecha|dia|mes)|que hora|quand|"
    r"quel(?:le)?s? (?:annee|date|jour|mois|heure)s?|"
    r"deadline|plazo|delai)\b"
)
_ASKS_NAME = re.compile(r"\b(?:who|whom|whose|where|which|quien(?:es)?|donde|qui|ou|quel(?:le)?s?)\b")


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A kind of thing that questions ask for."""

    asked_by: re.Pattern[str]  # in a folded question
    pattern: re.Pattern[str]  # of such a thing
    folded: bool  # whether the pattern is one of folded text
    bonus: float  # for a sentence that holds one
    is_told_by: re.Pattern[str] | None = None  # in folded text; no answer does without one of these. None: some do

    def may_be_told_by(self, sentences: Iterable[str]) -> bool:
        """Whether the sentences could be an answer: one that names no sum does not say what something costs."""
        told = self.is_told_by
        return told is None or any(self.stands_in(sentence) or told.search(fold(sentence)) for sentence in sentences)

    def stands_in(self, sentence: str) -> bool:
        return self.pattern.search(fold(sentence) if self.folded else sentence) is not None


_KINDS = (
    Kind(
        asked_by=_ASKS_MONEY,
        pattern=_MONEY,
        folded=False,
        bonus=0.3,
        is_told_by=re.compile(f"{_NUMBER.pattern}|{_FREE.pattern}"),
    ),
    Kind(asked_by=_ASKS_NUMBER, pattern=_NUMBER, folded=True, bonus=0.15),
    Kind(asked_by=_ASKS_DATE, pattern=_DATE, folded=True, bonus=0.15),
    Kind(asked_by=_ASKS_NAME, pattern=_NAME, folded=False, bonus=0.1),
)


def kind_asked(question: str) -> Kind | None:
    """What a folded question asks for; None where it does not say."""
    return next((kind for kind in _KINDS if kind.asked_by.search(question)), None)

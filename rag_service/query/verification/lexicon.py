"""The words that decide whether two sentences say the same: numbers, units, negation, opposites.

Spanish, French and English, in lower case without accents. Written for this project.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache, lru_cache

from rag_service.query.verification.function_words import FUNCTION_WORDS
from rag_service.text.normalise import strip_accents


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _numbered(text: str, first: int = 2) -> dict[str, str]:
    """Words in counting order from `first`; variants of one number are joined by a bar."""
    return {word: str(n) for n, group in enumerate(text.split(), first) for word in group.split("|")}


@lru_cache(maxsize=32768)
def fold_word(word: str) -> str:
    """One normalised lower-case word without its accents."""
    return word if word.isascii() else strip_accents(word)


# "un", "one" and the like are left out: they are articles and pronouns far more often than numbers.
NUMBER_WORDS: dict[str, dict[str, str]] = {
    "es": _numbered(
        "dos tres cuatro cinco seis siete ocho nueve diez once doce trece catorce quince dieciseis diecisiete"
        " dieciocho diecinueve veinte veintiuno|veintiun|veintiuna veintidos veintitres veinticuatro veinticinco"
        " veintiseis veintisiete veintiocho veintinueve treinta"
    )
    | {"cuarenta": "40", "cincuenta": "50", "sesenta": "60", "setenta": "70", "ochenta": "80"}
    | {"noventa": "90", "cien": "100", "ciento": "100", "doscientos": "200", "quinientos": "500"},
    "fr": _numbered(
        "deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze seize dixsept dixhuit"
        " dixneuf vingt"
    )
    | {"trente": "30", "quarante": "40", "cinquante": "50", "soixante": "60", "cent": "100"},
    "en": _numbered(
        "two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen"
        " eighteen nineteen twenty"
    )
    | {"thirty": "30", "forty": "40", "fifty": "50", "sixty": "60", "seventy": "70", "eighty": "80"}
    | {"ninety": "90", "hundred": "100"},
}
# Other readings in another of the languages: without a known language they must be met literally.
_AMBIGUOUS_NUMBERS = _words("once ten cent six dix sept dos")

# Words beside a number that say what it counts; one canonical name for each.
UNITS: dict[str, str] = {
    form: forms[0]
    for forms in (
        group.split()
        for group in (
            "day days dia dias jour jours",
            "week weeks semana semanas semaine semaines",
            "month months mes meses mois",
            "year years ano anos an ans annee annees",
            "hour hours hora horas heure heures",
            "minute minutes minuto minutos",
            "quarter quarters trimestre trimestres",
            "%",
            "€ euro euros eur",
            "$ dollar dollars dolar dolares usd",
            "£ pound pounds gbp",
            "km kilometros kilometres kilometers",
            "kg kilos kilogramos kilogrammes kilograms",
            "m metros metres meters",
            "million millions millon millones",
            "billion billions milliard milliards",
            "thousand thousands mil mille milliers miles",
        )
    )
    for form in forms
}
# Words that must stand in the quote as they are, like numbers: parts of dates, and order.
REQUIRED = _words(
    "enero febrero marzo abril mayo junio julio agosto septiembre setiembre octubre noviembre diciembre"
    " janvier fevrier mars avril mai juin juillet aout septembre octobre novembre decembre"
    " january february march april june july august september october november december"
    " lunes martes miercoles jueves viernes sabado domingo lundi mardi mercredi jeudi vendredi samedi dimanche"
    " monday tuesday wednesday thursday friday saturday sunday"
    " primer primero primera segundo segunda tercer tercero tercera cuarto cuarta quinto quinta ultimo ultima"
    " premier premiere deuxieme troisieme quatrieme cinquieme dernier derniere"
    " first second third fourth fifth last doble mitad tercio double moitie tiers half twice"
)
# Compound number words ("twenty-five" is one word once its hyphen is dropped) are required as they are.
COMPOUND_NUMBER = re.compile(
    r"(?:twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety|vingt|trente|quarante|cinquante|soixante"
    r"|quatrevingt|treinta|veinti|doscient|trescient|cuatrocient|quinient|seiscient|setecient|ochocient"
    r"|novecient)[a-z]+"
)

NEGATIONS = _words(
    "no ni nunca jamas sin tampoco nadie ningun ninguno ninguna ningunos ningunas nada excepto salvo"
    " ne n pas jamais aucun aucune aucuns aucunes sans rien personne nul nulle sauf"
    " not never without nor none nobody nothing neither cannot except unless"
)

# Poles that a change of one word swaps. A quote that holds only the other pole says something else.
_OPPOSITES = (
    ("maximo maxima maximos maximas maximum maximal", "minimo minima minimos minimas minimum minimal"),
    ("antes anterior avant before prior earlier", "despues posterior tras apres after later"),
    ("mas mayor superior superiores above more greater over plus", "menos menor inferior below less fewer moins"),
    (
        "debe deben debera deberan obligatorio obligatoria must shall required mandatory doit doivent obligatoire",
        "puede pueden podra podran voluntario voluntaria opcional may can optional peut peuvent facultatif",
    ),
    ("aumenta aumentan sube suben increase increases rises augmente", "disminuye baja bajan decrease falls diminue"),
    ("gratuito gratuita gratis gratuit gratuite free", "pago pagado payant payante paid"),
    ("permitido permite permiten allowed permitted autorise permis", "prohibido prohibe forbidden prohibited interdit"),
    ("dentro dans inside within", "fuera hors outside beyond"),
    ("nuevo nueva new nouveau nouvelle", "viejo antiguo old ancien ancienne"),
    ("abierto abierta open ouvert ouverte", "cerrado cerrada closed ferme fermee"),
    ("valido valida valid valable", "invalido invalida nulo invalid invalide"),
    ("todo todos todas all every tous toutes", "algunos algunas some certains certaines"),
)
POLES: dict[str, int] = {}  # word → its pair, positive for the first pole and negative for the second
for _pair, (_first, _second) in enumerate(_OPPOSITES, 1):
    POLES |= dict.fromkeys(_first.split(), _pair) | dict.fromkeys(_second.split(), -_pair)

# Words that are no content words. Opposites are: "before" has to be met by "before".
STOPPED = (frozenset().union(*FUNCTION_WORDS.values()) | NEGATIONS) - REQUIRED - frozenset(POLES)


@cache
def number_words(language: str | None) -> Mapping[str, str]:
    """Number words of the language; of all three, less the ambiguous ones, when it is unknown."""
    if language in NUMBER_WORDS:
        return NUMBER_WORDS[language]
    every = {word: number for table in NUMBER_WORDS.values() for word, number in table.items()}
    return every | {word: word for word in _AMBIGUOUS_NUMBERS}


# What may stand before a claim without being part of it. It names no number and nobody.
_SOURCE = r"(?:document|text|guid|informaci|information|fuente|source|fragment|pagina|page)[a-z]*"
LEAD_IN = re.compile(
    r"(?:(?:y|e|o|pero|ademas|asimismo|tambien|por (?:lo )?tanto|por ello|sin embargo|en resumen|en concreto"
    r"|es decir|por otra parte|por ultimo|finalmente|mientras que"
    r"|et|ou|mais|de plus|en outre|par ailleurs|ainsi|donc|cependant|toutefois|enfin|tandis que"
    r"|and|or|but|also|moreover|furthermore|in addition|however|therefore|thus|finally|while|in short"
    rf"|(?:segun|selon|according to|en|dans|in) (?:el|la|los|las|le|les|the) {_SOURCE})(?:,\s*|\s+))+"
)

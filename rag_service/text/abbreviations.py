"""Abbreviations whose full stop does not end a sentence, by language, in lower case without the stop."""

from __future__ import annotations

from collections.abc import Mapping

Table = Mapping[str, frozenset[str]]


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Something always follows: a name, a number, an example.
ALWAYS: Table = {
    "es": _words(
        "sr sra srta sres sras d dª dña dr dra dres prof profa lic ing arq art arts núm núms num nº n.º pág"
        " págs pag apdo aptdo apart párr cap caps vol vols ed eds fig figs av avda avd c/ pza pl ctra ej p.ej"
        " vid cfr cf aprox máx mín dpto depto admón excmo excma ilmo ilma sto sta fdo tel tfno teléf ref"
        " ee art.º disp"
    ),
    "fr": _words(
        "m mm mme mmes mlle mlles me mgr dr pr art al chap fig éd vol cf p.ex ex env bd av st ste tél réf"
        " resp not adj min max"
    ),
    "en": _words(
        "mr mrs ms dr prof rev hon gen col capt lt sgt st mt fig figs vs e.g i.e eg ie cf viz approx art arts"
        " sec secs para paras ch dept ed eds vol vols tel ref min max"
    ),
}
# An abbreviation before a number only; else a word ("No. The law …") or a letter.
BEFORE_NUMBER: Table = {
    "es": _words("p pp no nos ap reg exp sec pto ptos"),
    "fr": _words("p pp no nos al n sec par tab niv janv févr avr juill sept oct nov déc"),
    "en": _words("p pp no nos ex par reg app cl"),
}
# May end a sentence: it does when the next word is one that commonly begins a sentence.
SOMETIMES: Table = {
    "es": _words("uu cía hnos jr s.a s.l s.l.u a.m p.m"),
    "fr": _words("cie sté s.a s.a.r.l éts"),
    "en": _words("inc corp ltd co llc bros jr sr u.s u.k a.m p.m plc jan feb aug sept oct nov dec"),
}
# What goes by a letter, in all three languages: "gate C. Fire wardens ..." ends there, "by C. Smith" does not.
NAMED_BY_LETTER = _words(
    "annex appendix article assembly block building bloc category class dock exit floor gate grade group hall level"
    " letter line option part plan platform point room row section shift site step table tier type vitamin wing zone"
    " anexo apartado apéndice ala aula bloque categoría clase edificio escalera fase grupo letra línea lote muelle nave"
    " nivel opción parte planta portal puerta puesto punto sala salida sección tabla tipo turno vitamina zona"
    " annexe bâtiment catégorie classe entrepôt escalier étage étape groupe lettre ligne lot niveau partie phase porte"
    " poste quai salle sortie tableau vitamine équipe equipo team"
)
SENTENCE_STARTERS = _words(
    "El La Los Las Lo Un Una Unos Unas En Se Si Sí No Ni Para Por Con Sin Este Esta Estos Estas Esto Ese Esa"
    " Su Sus Es Son Al Del De Además También Cuando Como Según Tras Desde Hasta Sobre Entre Hay Ha Han Puede"
    " Debe Le Les L Une Il Elle Ils Elles On Ce Cette Ces Cet Dans Pour Sur Par Avec Sans Selon Lorsque Quand"
    " Aussi Mais Nous Vous Leur Leurs The A An In On At It Its He She They We You I This That These Those"
    " There If When While For But And Or However After Before From To By As Also Each Every All Any Some"
    " Your Our Their His Her What Who How Why Where"
)


def for_language(table: Table, language: str | None) -> frozenset[str]:
    """The language's own entries; all of them when it is None or not one of the three."""
    if language is not None and language in table:
        return table[language]
    return frozenset().union(*table.values())

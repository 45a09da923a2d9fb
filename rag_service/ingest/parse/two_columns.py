"""Whether the first row of a table of two columns names them, or is a label with its value like the rows below.

    Country | Limit          Place | Town hall
    France  | 120 €          Secretary | Karim Benali

To take the right one for the left one pairs what does not belong together ("Place: Secretary"), and a citation then
proves it. So a first row names the columns only where something says so; where nothing does, rows stay plain.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from enum import Enum
from typing import TYPE_CHECKING

from rag_service.text.words import fold

if TYPE_CHECKING:
    from rag_service.ingest.parse.tables import Cell, Row

_MOSTLY = 0.8  # of a column; a missing figure or a remark among them is common
_LONGEST_NAME = 4  # words of a column's name or a label
_LONGEST_PARTICLE = 3  # letters: "of", "des", "del"

# What forms, minutes and small tables call things, without accents: "Date limite", "Nombre y apellidos".
_WORDS = """
address adresse age amount annee apellido apellidos article articulo asunto auteur author autor cadre cantidad cargo
categoria category city ciudad client cliente code codigo commune company concepto contact contacto correo country
courriel cuantia customer date day deadline delai departamento department descripcion descriptif description dia
direccion directeur director directrice document documento domaine duracion duration duree edad effectif email
empleado empresa entidad entreprise estado etape etat fecha fee fonction fournisseur funcion function heure hora hour id
idioma importe intitule item job jour language langue level lieu limit limite location lugar maximo maximum member
mes miembro minimo minimum mission mois montant month motif motivo municipio name niveau nivel nom nombre nota note
number numero objet objeto office oficina ordre organisme organo owner pais parameter participant participants pays
period periodo person persona personne phone place plafond plazo poblacion position poste precio prenom president
presidenta presidente price prix product producto produit project projet proveedor provincia proyecto puesto purpose
quantite quantity rate redacteur reference referencia region remark responsable responsible role room rule sala
salle seance secretaire secretaria secretario secretary sede service servicio site stage state status statut
step stock subject sujet supplier surname tarea tarif tasa task taux team telefono telephone term time tipo title
titre titular titulo topic total town type unidad unit user valor value ville year
answer question pregunta reponse respuesta
"""
_NAMES = frozenset(word.removesuffix("s") for word in _WORDS.split())
_DATE = re.compile(r"\d{1,4}[./-]\d{1,2}[./-]\d{1,4}|\d{1,2}\.? (?:de )?[^\W\d]{3,10}\.? (?:de )?\d{4}")
_FIGURE = re.compile(r"[^\w\s]{0,2} ?\d[\d\s.,']*")


class Reading(Enum):
    """What the rows of two columns are."""

    NAMED = "the first row names the columns of those below"
    LABELS = "each row is a label and its value"
    UNDECIDED = "nothing says which"


def read_two_columns(rows: Sequence[Row]) -> Reading:
    """Say what rows of two columns are; the first has two cells, and those below at most two.

    What the file marks decides: a header row, or names in bold. Then the first column: who labels ends with a
    colon or says "Place", "Secretary". Then the second: under a name stand values of one kind, while
    a form mixes names, dates and sums.
    """
    head, below = rows[0].values, [row.values for row in rows[1:] if len(row.values) == 2]
    firsts, seconds = [row[0] for row in below], [row[1] for row in below]
    if not below or rows[0].is_header:
        return Reading.NAMED
    is_first_strong = all(cell.is_strong for cell in (head[0], *firsts))
    if all(cell.is_strong for cell in head) and not is_first_strong and not all(cell.is_strong for cell in seconds):
        return Reading.NAMED
    if _are_labels([head[0], *firsts], head[1], seconds):
        return Reading.LABELS
    if are_names(rows[0]):
        return Reading.NAMED
    if all(cell.is_text for cell in head) and (
        _mostly(not cell.is_text for cell in firsts)  # numbers, dates and codes label nothing
        or _are_repeated(head[0], firsts)  # nor does what is repeated
        or (_are_of_one_kind(seconds) and not _is_proper_name(head[1]))
    ):
        return Reading.NAMED
    return Reading.UNDECIDED


def is_label(cell: Cell) -> bool:
    """Whether a cell by itself looks like the label of a value."""
    return cell.text.endswith(":") or _is_name(cell)


def are_names(row: Row) -> bool:
    """Whether a row holds names of columns and no value: "Role | Person"."""
    return all(_is_name_throughout(cell) for cell in row.values)


def _are_labels(firsts: Sequence[Cell], value: Cell, values: Sequence[Cell]) -> bool:
    """Whether a first column labels the second, whose first cell is `value`."""
    if all(cell.is_strong for cell in firsts) and not any(cell.is_strong for cell in (value, *values)):
        return True
    if sum(cell.text.endswith(":") for cell in firsts) * 2 >= len(firsts):
        return True
    return sum(_is_name(cell) for cell in firsts[1:]) * 2 >= len(firsts[1:])


def _is_name(cell: Cell) -> bool:
    """Whether a text begins with such a word: "Fecha de alta"."""
    words = _words(cell)
    return bool(words) and len(words) <= _LONGEST_NAME and words[0] in _NAMES


def _is_name_throughout(cell: Cell) -> bool:
    """Whether a text has no other words: "Salle Garonne" is a value."""
    return _is_name(cell) and all(word in _NAMES or len(word) <= _LONGEST_PARTICLE for word in _words(cell))


def _is_proper_name(cell: Cell) -> bool:
    words = cell.text.split()
    return len(words) > 1 and all(word[0].isupper() for word in words) and not set(_words(cell)) & _NAMES


def _words(cell: Cell) -> list[str]:
    return [word.removesuffix("s") for word in fold(cell.text).rstrip(": ").split()]


def _are_repeated(head: Cell, below: Sequence[Cell]) -> bool:
    texts = [fold(cell.text) for cell in below]
    return len(set(texts)) < len(texts) and fold(head.text) not in texts


def _are_of_one_kind(values: Sequence[Cell]) -> bool:
    kinds = Counter(_kind(cell.text) for cell in values)
    kind, count = kinds.most_common(1)[0]
    return kind != "" and count >= len(values) * _MOSTLY


def _kind(text: str) -> str:
    """`date`, the unit of a figure ("# %", "# euros"), or nothing for words."""
    if _DATE.match(text):
        return "date"
    figure = _FIGURE.match(text)
    if figure is None:
        return ""
    unit = fold(text[figure.end() :]).split()
    return f"# {unit[0]}" if unit else "#"


def _mostly(of_each: Iterable[bool]) -> bool:
    found = list(of_each)
    return sum(found) >= len(found) * _MOSTLY

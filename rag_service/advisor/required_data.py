"""The data that a procedure needs, from the table in its article.

The "Required data" section holds a table with the columns Field, Group, Description, Why needed, Type and Required,
named in any of the languages, in any order. Every reader writes a row as "Field: … | Group: … | …".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, cast

from rag_service.advisor.schema import DataType, RequiredField
from rag_service.domain import Hit
from rag_service.language.languages import languages_of
from rag_service.language.words import fold, terms, words

REQUIRED_DATA_TYPE = "required_data"

_WORDS = [language.knowledge_base for language in languages_of(None)]
_COLUMNS = {head: column for words in _WORDS for column, heads in words.columns.items() for head in heads}
_TYPES = {name: kind for words in _WORDS for kind, names in words.types.items() for name in names}
_YES = frozenset({"x", "✓", "✔"}).union(*(words.yes for words in _WORDS))
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def read_required_fields(hits: Iterable[Hit]) -> tuple[RequiredField, ...]:
    """The rows of the tables in the `required_data` chunks, in the order of the document, each field once."""
    chunks = [hit.chunk for hit in hits if hit.chunk.type == REQUIRED_DATA_TYPE]
    found: dict[tuple[str, str], RequiredField] = {}
    for chunk in sorted(chunks, key=lambda chunk: (str(chunk.document.id), chunk.index)):
        for line in chunk.text.splitlines():
            cells = (cell.partition(": ") for cell in line.split(" | "))
            if field := _read_row({_column(name): value.strip() for name, _, value in cells}):
                found.setdefault((field.group, fold(field.field)), field)
    return tuple(found.values())


def _column(name: str) -> str | None:
    return _COLUMNS.get(" ".join(fold(name).replace("*", "").strip(" ?¿").split()))


def _read_row(row: Mapping[str | None, str]) -> RequiredField | None:
    name = row.get("field", "").strip("*_` ")
    if not name or len(row) < 2:
        return None
    group: Literal["participant", "plan"] = "plan" if fold(row.get("group", "")).startswith("plan") else "participant"
    return RequiredField(
        field=name,
        group=group,
        description=row.get("description", ""),
        why_needed=row.get("why", ""),
        data_type=cast("DataType", _TYPES.get(fold(row.get("type", "")).strip(), "text")),
        required=fold(row.get("required", "yes")).strip() in _YES,
    )


def find_missing(fields: Sequence[RequiredField], collected: Mapping[str, Any]) -> tuple[RequiredField, ...]:
    """The required fields without a value in the collected data.

    Names are compared by their words, so that "Vested balance", "vestedBalance" and "vested_balance" are
    one; groups such as `participantData` may nest. Null and blank values count as missing; false and 0 do not.
    """
    given = {_key(name) for name in _named_values(collected)}
    return tuple(field for field in fields if field.required and _key(field.field) not in given)


def _named_values(collected: Mapping[str, Any]) -> Iterator[str]:
    for name, value in collected.items():
        if isinstance(value, Mapping):
            yield from _named_values(value)
        if value is not None and not (isinstance(value, str | list | dict) and not value) and str(value).strip():
            yield name


def _key(name: str) -> tuple[str, ...]:
    plain = _CAMEL.sub(" ", name).replace("_", " ").replace("-", " ")
    return tuple((terms(word, "en") or [word])[0] for word in words(plain))

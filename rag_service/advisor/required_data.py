"""The data that a procedure needs, from the table in its article.

The "Required data" section holds a Markdown table with the columns Field, Group, Description, Why needed,
Type and Required, named in any of the languages, in any order.
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
_CELL = re.compile(r"(?<!\\)\|")
_RULE = re.compile(r"^[\s|:-]+$")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def read_required_fields(hits: Iterable[Hit]) -> tuple[RequiredField, ...]:
    """The rows of the tables in the `required_data` chunks, in the order of the document, each field once."""
    chunks = [hit.chunk for hit in hits if hit.chunk.type == REQUIRED_DATA_TYPE]
    found: dict[tuple[str, str], RequiredField] = {}
    columns: Sequence[str | None] = ()
    for chunk in sorted(chunks, key=lambda chunk: (str(chunk.document.id), chunk.index)):
        for cells in _rows(chunk.text):
            header = [_column(cell) for cell in cells]
            if "field" in header and len(cells) > 1 and sum(name is not None for name in header) > 1:
                columns = header
            elif columns and (field := _read_row(dict(zip(columns, cells, strict=False)))):
                found.setdefault((field.group, fold(field.field)), field)
    return tuple(found.values())


def _rows(text: str) -> Iterator[list[str]]:
    for line in text.splitlines():
        if line.lstrip().startswith("|") and not _RULE.match(line):
            yield [cell.strip().replace("\\|", "|") for cell in _CELL.split(line.strip().strip("|"))]


def _column(cell: str) -> str | None:
    return _COLUMNS.get(" ".join(fold(cell).replace("*", "").strip(" ?¿").split()))


def _read_row(row: Mapping[str | None, str]) -> RequiredField | None:
    name = row.get("field", "").strip("*_` ")
    if not name:
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

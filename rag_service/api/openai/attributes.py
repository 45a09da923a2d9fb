"""Attributes of files, and the filters that ask for them.

They are the filter fields of documents, which are texts; the metadata keep the type that they were given with.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated, Any

from msgspec import Meta

from rag_service.api.http.problems import FieldError, InvalidRequestError
from rag_service.api.http.queries import find_unstorable
from rag_service.domain import Condition, ConditionGroup, FilterTree, Operator
from rag_service.errors import InputError
from rag_service.store.search.conditions import MAX_DEPTH, check_tree

MAX_RESULTS = 50  # of a search of files
_Key = Annotated[str, Meta(min_length=1, max_length=64)]
_Text = Annotated[str, Meta(max_length=512)]
Attributes = Annotated[
    dict[_Key, _Text | bool | int | float], Meta(max_length=16, description="At most 16; searches filter by them.")
]
Labels = Annotated[dict[_Key, _Text], Meta(max_length=16, description="At most 16 texts; they have no effect.")]
_OPERATORS = {
    "eq": Operator.EQUAL, "ne": Operator.NOT_EQUAL, "gt": Operator.GREATER, "gte": Operator.GREATER_OR_EQUAL,
    "lt": Operator.LESS, "lte": Operator.LESS_OR_EQUAL, "in": Operator.IN, "nin": Operator.NOT_IN,
}  # fmt: skip


def check_storable(name: str, given: Mapping[str, Any]) -> None:
    """Raise InvalidRequestError for keys and texts that the database cannot hold."""
    if errors := list(find_unstorable({name: [*given, *(one for one in given.values() if isinstance(one, str))]})):
        raise InvalidRequestError(errors)


def as_fields(attributes: Mapping[str, Any]) -> dict[str, str]:
    """Attributes as filter fields of a document, as PostgreSQL writes the values."""
    return {key: _as_text(value) for key, value in attributes.items()}


def attributes_of(fields: Mapping[str, str], metadata: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes of a document: its filter fields, with the types that they were given with."""
    return {key: metadata[key] if _as_text(metadata.get(key)) == value else value for key, value in fields.items()}


def _as_text(value: Any) -> str:
    if isinstance(value, float):
        return format(Decimal(str(value)), "f")
    return str(value).lower() if isinstance(value, bool) else str(value)


def read_filters(raw: Any, path: str = "filters") -> FilterTree:
    """A filter by attributes. Raises InvalidRequestError, which names the place that is wrong."""
    try:
        tree = _read_tree(raw, path, depth=1)
        check_tree(tree, path)
    except InputError as error:
        place = error.field or path
        message = error.message.removeprefix(f"{place}: ").rstrip(".")
        raise InvalidRequestError([FieldError(place, message)]) from error
    return tree


def _read_tree(raw: Any, path: str, *, depth: int) -> FilterTree:
    if depth > MAX_DEPTH + 1:
        raise InputError(f"must be nested at most {MAX_DEPTH} levels deep.", field=path)
    kind = raw.get("type") if isinstance(raw, Mapping) else None
    if kind in ("and", "or"):
        parts = raw.get("filters")
        if not isinstance(parts, list):
            raise InputError("must be a list of filters.", field=f"{path}.filters")
        read = (_read_tree(part, f"{path}.filters[{at}]", depth=depth + 1) for at, part in enumerate(parts))
        return ConditionGroup(combine=kind, parts=tuple(read))
    if not isinstance(kind, str) or kind not in _OPERATORS:
        raise InputError(f"must be an object whose type is one of and, or, {', '.join(_OPERATORS)}.", field=path)
    key, value = raw.get("key"), raw.get("value")
    if not isinstance(key, str):
        raise InputError("must be the name of an attribute.", field=f"{path}.key")
    items = value if isinstance(value, list) else [value]
    if any(not isinstance(item, str | int | float) for item in items):
        raise InputError("must be a text, a number, true or false, or a list of these.", field=f"{path}.value")
    return Condition(field=key, operator=_OPERATORS[kind], value=tuple(items) if isinstance(value, list) else value)

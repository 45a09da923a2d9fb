"""The `filter` of a request as a filter tree."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rag_service.api.http.problems import FieldError
from rag_service.domain import Condition, ConditionGroup, FilterTree, Operator
from rag_service.errors import InputError
from rag_service.store.search.conditions import MAX_DEPTH, check_tree

_KEYS = {"field", "operator", "value"}


def read_filter(raw: Mapping[str, Any] | None) -> tuple[FilterTree | None, list[FieldError]]:
    """(filter tree, errors); errors name the place, e.g. `filter.and[1].value`."""
    if raw is None:
        return None, []
    try:
        tree = _read(raw, "filter", depth=1)
        check_tree(tree)
    except InputError as error:
        place = error.field or "filter"
        return None, [FieldError(place, error.message.removeprefix(f"{place}: ").rstrip("."))]
    return tree, []


def _read(raw: Any, path: str, *, depth: int) -> FilterTree:
    if depth > MAX_DEPTH + 1:
        raise InputError(f"may be nested at most {MAX_DEPTH} deep.", field=path)
    if not isinstance(raw, dict):
        raise InputError("must be an object with a condition or with one of and, or, not.", field=path)
    if len(raw) == 1 and (combine := next(iter(raw))) in ("and", "or", "not"):
        if not isinstance(raw[combine], list):
            raise InputError("must be a list of conditions.", field=f"{path}.{combine}")
        parts = [
            _read(part, f"{path}.{combine}[{number}]", depth=depth + 1) for number, part in enumerate(raw[combine])
        ]
        return ConditionGroup(combine=combine, parts=tuple(parts))
    return _read_condition(raw, path)


def _read_condition(raw: Mapping[str, Any], path: str) -> Condition:
    if unknown := sorted(raw.keys() - _KEYS):
        raise InputError(
            "is not part of a condition; those are field, operator and value.", field=f"{path}.{unknown[0]}"
        )
    if not isinstance(raw.get("field"), str):
        raise InputError("must be the name of a field.", field=f"{path}.field")
    operator = raw.get("operator", "==")
    if operator not in list(Operator):
        raise InputError(f"must be one of {', '.join(Operator)}.", field=f"{path}.operator")
    value: Any = raw.get("value")
    items: list[Any] = value if isinstance(value, list) else [value]
    if any(not isinstance(item, str | int | float | None) for item in items):
        raise InputError("must be a text, a number, a truth value or a list of these.", field=f"{path}.value")
    return Condition(
        field=raw["field"], operator=Operator(operator), value=tuple(items) if isinstance(value, list) else value
    )

"""Filter trees: checked, translated to SQL with every value bound, and evaluated in Python.

Whatever a document's metadata hold, the SQL never fails on a cast: a text that is no number or date is not
compared as one.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from rag_service.domain import Condition, FilterTree, Operator
from rag_service.errors import InputError

MAX_DEPTH = 5  # groups within groups
MAX_CONDITIONS = 50
MAX_VALUES = 1_000  # of all conditions together
MAX_CHARACTERS = 1_000  # of a text

# Metadata that every document has, under the names of LlamaIndex and of the API.
BUILT_IN = {
    "title": "title", "name": "name", "file_name": "file_name", "fileName": "file_name", "source": "source",
    "tags": "tags", "language": "language", "media_type": "media_type", "mediaType": "media_type",
    "territory": "territory", "size_bytes": "size_bytes", "sizeBytes": "size_bytes", "created_at": "created_at",
    "createdAt": "created_at", "updated_at": "updated_at", "updatedAt": "updated_at", "expires_at": "expires_at",
    "expiresAt": "expires_at",
}  # fmt: skip

_RANGES = (Operator.GREATER, Operator.GREATER_OR_EQUAL, Operator.LESS, Operator.LESS_OR_EQUAL)
_LISTS = (Operator.IN, Operator.NOT_IN, Operator.ANY, Operator.ALL)
_MATCHES = (Operator.TEXT_MATCH, Operator.TEXT_MATCH_INSENSITIVE)
# Bounded, so that no text is a number beyond what `numeric` holds. PostgreSQL writes all digits of 1e-300.
_NUMBER = r"^[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]{1,3})?$"
_MAX_LENGTH = 1000  # characters of a number
_DATE = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}([T ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?(Z|[+-][0-9]{2}:?[0-9]{2})?)?$"
_ZONE = r"[T ].*(Z|[+-][0-9]{2}:?[0-9]{2})$"
_AS_NUMBER = f"CASE WHEN length(v) <= {_MAX_LENGTH} AND v ~ '{_NUMBER}' THEN v::numeric END"
_AS_DATE = (
    f"CASE WHEN v ~ '{_DATE}' AND pg_input_is_valid(v, 'timestamptz') THEN"
    f" CASE WHEN v ~ '{_ZONE}' THEN v::timestamptz ELSE v::timestamp AT TIME ZONE 'UTC' END END"
)

ValuesOf = Callable[[str], Sequence[Any]]  # field → its values in a document


def check_tree(tree: FilterTree, path: str = "filter", *, depth: int = 1) -> None:
    """Refuse trees that are too large or compare what cannot be compared.

    Raises InputError; its `field` is the place in the tree, such as `filter.and[1].value`.
    """
    if depth == 1:
        sizes = [len(item.value) if isinstance(item.value, tuple) else 1 for item in conditions_of(tree)]
        if len(sizes) > MAX_CONDITIONS:
            raise InputError(f"A filter may have at most {MAX_CONDITIONS} conditions.", field=path)
        if sum(sizes) > MAX_VALUES:
            raise InputError(f"The conditions of a filter may have at most {MAX_VALUES:,} values together.", field=path)
    if isinstance(tree, Condition):
        _check_condition(tree, path)
        return
    if depth > MAX_DEPTH:
        raise InputError(f"A filter must be nested at most {MAX_DEPTH} levels deep.", field=path)
    if not tree.parts:
        raise InputError("A group needs at least one condition.", field=f"{path}.{tree.combine}")
    for number, part in enumerate(tree.parts):
        check_tree(part, f"{path}.{tree.combine}[{number}]", depth=depth + 1)


def conditions_of(tree: FilterTree) -> Iterator[Condition]:
    """All conditions of a tree, however deep."""
    waiting = [tree]
    while waiting:
        part = waiting.pop()
        if isinstance(part, Condition):
            yield part
        else:
            waiting.extend(part.parts)


def _check_condition(condition: Condition, path: str) -> None:
    operator, value = condition.operator, condition.value
    values = value if isinstance(value, tuple) else (value,)
    problem = None
    if not condition.field or not _is_storable(condition.field):
        path, problem = f"{path}.field", "is not the name of a field"
    elif operator is Operator.IS_EMPTY:
        problem = None if value is None else "must be left out"
    elif isinstance(value, tuple) is not (operator in _LISTS):
        problem = f"must be {'a list' if operator in _LISTS else 'a single value'} for the operator {operator}"
    elif any(item is None or (isinstance(item, float) and not math.isfinite(item)) for item in values):
        problem = "must be a text, a finite number or a truth value"
    elif not all(_is_storable(item) for item in values if isinstance(item, str)):
        problem = f"must have at most {MAX_CHARACTERS} characters, and none that cannot be stored"
    elif operator in _MATCHES and not isinstance(value, str):
        problem = f"must be a text for the operator {operator}"
    elif operator in _RANGES and (isinstance(value, bool) or (isinstance(value, str) and _read_date(value) is None)):
        problem = f"must be a number or an ISO date, such as 2024-05-31, for the operator {operator}"
    if problem is not None:
        at = path if path.endswith(".field") else f"{path}.value"
        raise InputError(f"{at}: {problem}.", field=at)


def _is_storable(text: str) -> bool:
    return len(text) <= MAX_CHARACTERS and "\0" not in text and not re.search("[\ud800-\udfff]", text)


# -- as SQL


def tree_sql(tree: FilterTree, parameters: dict[str, Any], *, nodes: str | None = None) -> str:
    """A condition on `documents d`, its values added to `parameters`: its text does not grow with their number.

    Fields are declared filter fields and built-in metadata; with `nodes`, the alias of a joined `data_chunks`, all
    metadata of document and node, as in LlamaIndex.
    """
    if isinstance(tree, Condition):
        return _condition_sql(tree, parameters, nodes)
    parts = [tree_sql(part, parameters, nodes=nodes) for part in tree.parts]
    joined = f"({(' AND ' if tree.combine == 'and' else ' OR ').join(parts)})"
    return f"NOT {joined}" if tree.combine == "not" else joined


def _condition_sql(condition: Condition, parameters: dict[str, Any], nodes: str | None) -> str:
    def bind(value: Any) -> str:
        name = f"filter{len(parameters)}"
        parameters[name] = value
        return f"%({name})s"

    operator, value = condition.operator, condition.value
    values = _values_sql(condition.field, bind, nodes)
    if operator is Operator.IS_EMPTY:
        return f"NOT EXISTS (SELECT FROM {values} AS v WHERE v <> '')"
    if operator in _MATCHES or operator in _RANGES:
        return f"EXISTS (SELECT FROM {values} AS v WHERE {_test_sql(operator, value, bind)})"
    wanted = _by_kind(value if isinstance(value, tuple) else (value,))
    if operator is Operator.ALL:
        tests = [f"{bind(items)}::{kind}[] <@ ARRAY(SELECT {one} FROM {values} AS v)" for one, kind, items in wanted]  # noqa: S608 - fixed text
        return f"({' AND '.join(tests) or 'true'})"
    tests = [f"{one} = ANY({bind(items)}::{kind}[])" for one, kind, items in wanted]
    negated = operator in (Operator.NOT_EQUAL, Operator.NOT_IN)
    return f"{'NOT ' * negated}EXISTS (SELECT FROM {values} AS v WHERE {' OR '.join(tests) or 'false'})"


def _by_kind(wanted: Sequence[Any]) -> list[tuple[str, str, list[Any]]]:
    """(what of a value `v` is compared, its type, the texts, truth values or numbers) for each kind that is wanted."""
    truths = [str(item).lower() for item in wanted if isinstance(item, bool)]
    numbers = [Decimal(str(item)) for item in wanted if isinstance(item, int | float) and not isinstance(item, bool)]
    texts = [item for item in wanted if isinstance(item, str)]
    kinds: list[tuple[str, str, list[Any]]] = [
        ("v", "text", texts),
        ("lower(v)", "text", truths),
        (_AS_NUMBER, "numeric", numbers),
    ]
    return [kind for kind in kinds if kind[-1]]


def _values_sql(field: str, bind: Callable[[Any], str], nodes: str | None) -> str:
    """The values of a field as rows of text; none where it is missing or null."""
    key = f"{bind(field)}::text"
    sources = [f"d.fields -> {key}"]
    if nodes is not None:
        sources += [f"d.metadata -> {key}", f"{nodes}.metadata_ -> {key}"]
    if field in BUILT_IN:
        sources.append(f"to_jsonb(d.{BUILT_IN[field]})")
    found = f"coalesce({', '.join(sources)}, 'null')"
    return (
        f"jsonb_array_elements_text(CASE jsonb_typeof({found}) WHEN 'array' THEN {found}"
        f" WHEN 'null' THEN '[]' ELSE jsonb_build_array({found}) END)"
    )


def _test_sql(operator: Operator, value: Any, bind: Callable[[Any], str]) -> str:
    """A comparison of one value `v`, a text, for the operators that take no list."""
    if operator is Operator.TEXT_MATCH:
        return f"strpos(v, {bind(value)}::text) > 0"
    if operator is Operator.TEXT_MATCH_INSENSITIVE:
        return f"strpos(lower(v), lower({bind(value)}::text)) > 0"
    if isinstance(value, str):
        return f"{_AS_DATE} {operator} {bind(_read_date(value))}::timestamptz"
    return f"{_AS_NUMBER} {operator} {bind(Decimal(str(value)))}::numeric"


# -- in Python, for the retriever without a database


def matches(tree: FilterTree, values_of: ValuesOf) -> bool:
    """Whether a document with these values satisfies a checked tree."""
    if isinstance(tree, Condition):
        return _holds(tree, [_as_text(value) for value in values_of(tree.field) if value is not None])
    found = (matches(part, values_of) for part in tree.parts)
    return all(found) if tree.combine == "and" else any(found) is (tree.combine == "or")


def _holds(condition: Condition, values: Sequence[str]) -> bool:
    operator = condition.operator
    if operator is Operator.IS_EMPTY:
        return not any(values)
    wanted = condition.value if isinstance(condition.value, tuple) else (condition.value,)
    found = [any(_passes(value, operator, item) for value in values) for item in wanted]
    if operator is Operator.ALL:
        return all(found)
    return any(found) is not (operator in (Operator.NOT_EQUAL, Operator.NOT_IN))


def _passes(value: str, operator: Operator, wanted: Any) -> bool:
    if operator is Operator.TEXT_MATCH:
        return wanted in value
    if operator is Operator.TEXT_MATCH_INSENSITIVE:
        return wanted.lower() in value.lower()
    if isinstance(wanted, bool):
        return value.lower() == str(wanted).lower()
    if isinstance(wanted, str) and operator not in _RANGES:
        return value == wanted
    held: Any = _read_date(value) if isinstance(wanted, str) else _read_number(value)
    against: Any = _read_date(wanted) if isinstance(wanted, str) else Decimal(str(wanted))
    if held is None:
        return False
    passes: bool = {
        Operator.GREATER: held > against,
        Operator.GREATER_OR_EQUAL: held >= against,
        Operator.LESS: held < against,
        Operator.LESS_OR_EQUAL: held <= against,
    }.get(operator, held == against)
    return passes


def _as_text(value: Any) -> str:
    """As PostgreSQL writes it."""
    if isinstance(value, float):
        return format(Decimal(str(value + 0.0)), "f")  # all digits, and no minus before zero
    return str(value).lower() if isinstance(value, bool) else str(value)


def _read_number(text: str) -> Decimal | None:
    return Decimal(text) if len(text) <= _MAX_LENGTH and re.match(_NUMBER[:-1] + r"\Z", text) else None


def _read_date(text: str) -> datetime | None:
    """A date or a moment in ISO 8601; without a time zone it is UTC."""
    if not re.match(_DATE[:-1] + r"\Z", text):
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)

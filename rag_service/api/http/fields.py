"""Query parameters and text fields of the account and corpus routes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import MAXYEAR, UTC, datetime
from typing import Any, TypeVar

from rag_service.api.http.bodies import AnyRequest
from rag_service.api.http.problems import FieldError, InvalidRequestError
from rag_service.api.http.queries import find_unstorable, is_blank
from rag_service.store.rows import LIMIT_DEFAULT, LIMIT_MAX, Slice

# Of a list, for its description.
SLICE: Mapping[str, Mapping[str, Any]] = {
    "offset": {"type": "integer", "minimum": 0, "default": 0, "description": "Items left out at the beginning."},
    "limit": {"type": "integer", "minimum": 1, "maximum": LIMIT_MAX, "default": LIMIT_DEFAULT, "description": "Items."},
}
_Item = TypeVar("_Item")
_MAX_OFFSET = 2**31


def read_slice(request: AnyRequest, *others: str) -> Slice:
    """`offset` and `limit` of a list; any parameter besides these and `others` is an error."""
    known = {"offset", "limit", *others}
    errors = [
        FieldError(name[:80], f"is not a parameter of this list; the parameters are {', '.join(sorted(known))}")
        for name in request.query_params
        if name not in known
    ]
    offset = _read_number(request, "offset", 0, 0, _MAX_OFFSET, errors)
    limit = _read_number(request, "limit", LIMIT_DEFAULT, 1, LIMIT_MAX, errors)
    if errors:
        raise InvalidRequestError(errors)
    return Slice(offset=offset, limit=limit)


def _read_number(
    request: AnyRequest, name: str, default: int, minimum: int, maximum: int, errors: list[FieldError]
) -> int:
    text = request.query_params.get(name)
    if text is None:
        return default
    number = int(text) if text.isascii() and text.isdigit() and len(text) < 12 else -1
    if not minimum <= number <= maximum:
        errors.append(FieldError(name, f"must be a whole number from {minimum} to {maximum}"))
    return number


def read_choice(request: AnyRequest, name: str, choices: Callable[[str], _Item], known: str) -> _Item | None:
    """An optional query parameter: `choices` converts it or raises ValueError; `known` describes valid values."""
    text = request.query_params.get(name)
    try:
        return None if text is None else choices(text)
    except ValueError as error:
        raise InvalidRequestError([FieldError(name, f"must be {known}")]) from error


def check_texts(*, required: Mapping[str, str], optional: Mapping[str, str | None] | None = None) -> None:
    """Refuse required texts that are blank, and any that the database cannot store."""
    errors = [FieldError(name, "must not be empty") for name, text in required.items() if is_blank(text)]
    texts = {name: [text or ""] for name, text in {**required, **(optional or {})}.items()}
    errors += find_unstorable(texts)
    if errors:
        raise InvalidRequestError(errors)


def check_future(name: str, at: datetime | None) -> datetime | None:
    """Refuse a time without a time zone, in the past, or that is after the year 9999 in some time zone."""
    if at is None:
        return None
    if at.tzinfo is None:
        raise InvalidRequestError([FieldError(name, "must have a time zone, e.g. 2030-01-01T00:00:00Z")])
    if at <= datetime.now(UTC):
        raise InvalidRequestError([FieldError(name, "must be in the future")])
    if at.year == MAXYEAR:
        raise InvalidRequestError([FieldError(name, f"must be before the year {MAXYEAR}")])
    return at

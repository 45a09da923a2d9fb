"""Fields that the tenancy routes read alike, and rows as bodies."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from datetime import UTC, datetime
from typing import Any, TypeVar

from msgspec import Struct, structs

from rag_service.api.wire.bodies import AnyRequest
from rag_service.api.wire.presenters import find_nul, is_blank
from rag_service.api.wire.problems import FieldError, InvalidRequestError
from rag_service.store.paging import LIMIT_DEFAULT, LIMIT_MAX, Page, Slice

_Body = TypeVar("_Body", bound=Struct)
_Item = TypeVar("_Item")
_MAX_OFFSET = 2**31


def read_slice(request: AnyRequest, *others: str) -> Slice:
    """`offset` and `limit` of a list.

    Args:
        request: whose query string is read.
        others: names of the route's other parameters, read elsewhere.

    Raises:
        InvalidRequestError: one is no number, or out of bounds; or there is a parameter that the route does not
            have, such as a mistyped filter, which would otherwise list everything.
    """
    known = {"offset", "limit", *others}
    errors = [
        FieldError(name[:80], f"is not a parameter of this list; it has {', '.join(sorted(known))}")
        for name in request.query_params
        if name not in known
    ]
    offset = _read_number(request, "offset", 0, 0, _MAX_OFFSET, errors)
    limit = _read_number(request, "limit", LIMIT_DEFAULT, 1, LIMIT_MAX, errors)
    if errors:
        raise InvalidRequestError(errors)
    return Slice(offset=offset, limit=limit)


def _read_number(request: AnyRequest, name: str, default: int, least: int, most: int, errors: list[FieldError]) -> int:
    text = request.query_params.get(name)
    if text is None:
        return default
    number = int(text) if text.isascii() and text.isdigit() and len(text) < 12 else -1
    if not least <= number <= most:
        errors.append(FieldError(name, f"must be a whole number from {least} to {most}"))
    return number


def read_choice(request: AnyRequest, name: str, choices: Callable[[str], _Item], known: str) -> _Item | None:
    """An optional query parameter.

    Args:
        request: whose.
        name: of the parameter.
        choices: makes the value of its text, or raises ValueError.
        known: what would be right, for the error.

    Raises:
        InvalidRequestError: it is none of the choices.
    """
    text = request.query_params.get(name)
    try:
        return None if text is None else choices(text)
    except ValueError as error:
        raise InvalidRequestError([FieldError(name, f"must be {known}")]) from error


def check_texts(*, required: Mapping[str, str], optional: Mapping[str, str | None] | None = None) -> None:
    """Refuse required texts that show nothing, and any that the database cannot hold.

    Raises:
        InvalidRequestError: names the fields.
    """
    errors = [FieldError(name, "must not be empty") for name, text in required.items() if is_blank(text)]
    texts = {name: [text or ""] for name, text in {**required, **(optional or {})}.items()}
    errors += find_nul(texts)
    if errors:
        raise InvalidRequestError(errors)


def check_future(name: str, at: datetime | None) -> datetime | None:
    """A moment with its time zone, in the future.

    Raises:
        InvalidRequestError: it has none, or is past.
    """
    if at is None:
        return None
    if at.tzinfo is None:
        raise InvalidRequestError([FieldError(name, "must have a time zone, e.g. 2030-01-01T00:00:00Z")])
    if at <= datetime.now(UTC):
        raise InvalidRequestError([FieldError(name, "must be in the future")])
    return at


def present(kind: type[_Body], item: Any, /, **given: Any) -> _Body:
    """A dataclass as a body: fields of the same name, and those given."""
    there = {field.name for field in fields(item)}
    values = {field.name: getattr(item, field.name) for field in structs.fields(kind) if field.name in there}
    return kind(**(values | given))


def present_page(page: Page[_Item], build: Callable[[_Item], _Body]) -> dict[str, Any]:
    """`items` and `total` of a list body."""
    return {"items": [build(item) for item in page.items], "total": page.total}

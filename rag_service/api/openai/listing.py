"""What the objects of that API have in common: ids, pages, bodies that say what was ignored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypedDict, TypeVar
from uuid import UUID

from msgspec import Struct

from rag_service.api.http.bodies import AnyRequest, convert, read_json
from rag_service.api.http.fields import read_choice
from rag_service.api.http.problems import FieldError, InvalidRequestError
from rag_service.api.openai.fields import find_ignored
from rag_service.errors import NotFoundError
from rag_service.settings import Settings


class _HasId(Protocol):
    @property
    def id(self) -> UUID: ...


_Item = TypeVar("_Item", bound=_HasId)
_Body = TypeVar("_Body", bound=Struct)


class Deleted(Struct, kw_only=True, frozen=True):
    id: str
    object: str
    deleted: bool = True


class ListBody(Struct, kw_only=True, frozen=True):
    """A page of a list, without its items."""

    has_more: bool
    first_id: str | None
    last_id: str | None
    object: str = "list"


class _Page(TypedDict):
    has_more: bool
    first_id: str | None
    last_id: str | None


def describe_page(*, limit: int, most: int) -> dict[str, Mapping[str, Any]]:
    """The query parameters of `read_page`, for the description of a list."""
    return {
        "after": {"format": "uuid", "description": "The id of the last item of the page before."},
        "limit": {"type": "integer", "minimum": 1, "maximum": most, "default": limit, "description": "Items."},
        "order": {"enum": ["desc", "asc"], "default": "desc", "description": "By the time of creation."},
    }


@dataclass(frozen=True, kw_only=True)
class PageAsked:
    """The part of a list that is asked for."""

    limit: int
    after: UUID | None
    oldest_first: bool


def read_id(given: str, what: str) -> UUID:
    """The id in an address or a body. Raises NotFoundError: what is no UUID names nothing here."""
    try:
        return UUID(given)
    except ValueError as error:
        raise NotFoundError(f"There is no {what} {given[:80]!r}.") from error


def read_page(request: AnyRequest, *others: str, limit: int, most: int) -> PageAsked:
    """`after`, `limit` and `order` of a list. Raises InvalidRequestError, also for parameters besides `others`."""
    known = ("after", "limit", "order", *others)
    if unknown := sorted(request.query_params.keys() - set(known)):
        raise InvalidRequestError(
            [FieldError(unknown[0][:80], f"is not a parameter here; those are {', '.join(known)}")]
        )
    numbers = range(1, most + 1)
    return PageAsked(
        limit=read_choice(request, "limit", lambda text: numbers[numbers.index(int(text))], f"from 1 to {most}")
        or limit,
        after=read_choice(request, "after", UUID, "the id of the last item of the page before"),
        oldest_first=read_choice(request, "order", ("desc", "asc").index, "asc or desc") == 1,
    )


def cut_page(items: Sequence[_Item], asked: PageAsked) -> tuple[Sequence[_Item], _Page]:
    """The items of a page, of which one more than its limit was read, and what its body says of them."""
    shown = items[: asked.limit]
    first, last = (str(shown[0].id), str(shown[-1].id)) if shown else (None, None)
    return shown, {"has_more": len(items) > asked.limit, "first_id": first, "last_id": last}


async def read_body(request: AnyRequest, kind: type[_Body], settings: Settings) -> tuple[_Body, list[str]]:
    """A JSON body, and its fields without effect, which RAG_OPENAI_STRICT refuses. Raises InvalidRequestError."""
    fields = await read_json(request, dict)
    ignored = find_ignored(fields, kind)
    if ignored and settings.http.openai_strict:
        raise InvalidRequestError([FieldError(name, "is not supported; leave it out") for name in ignored])
    return convert(fields, kind), list(ignored)

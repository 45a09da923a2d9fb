"""The tools over documents for MCP clients, `search` and `fetch` as ChatGPT's connectors expect them.

Shapes: https://developers.openai.com/api/docs/mcp. An id names a document and the part from which to read it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from msgspec import Meta, Struct

from rag_service.answering.tools.definitions import COMPUTE, READ, SEARCH
from rag_service.api.http.bodies import decode
from rag_service.api.http.services import Services
from rag_service.api.mcp.specs import Reply, ToolSpec
from rag_service.domain import Hit, Identity, describe_place
from rag_service.errors import InputError
from rag_service.models.servers.resilience import isolated

if TYPE_CHECKING:  # loads LlamaIndex
    from rag_service.answering.tools.toolbox import ToolResult

_FETCH_TOKENS = 8_000  # of one reply; `metadata.next` goes on
_PART = "#part="  # between the id of a document and the number of a part


class FetchArguments(Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """Arguments of fetch."""

    id: Annotated[str, Meta(max_length=300, description="Of a result of search, or of a document.")]


class FoundItem(Struct, kw_only=True, frozen=True):
    """A passage that can be fetched."""

    id: str
    title: Annotated[str, Meta(description='Readable place, e.g. "rapport.pdf, page 3".')]
    url: Annotated[str, Meta(description="Of the document.")]


class FoundItems(Struct, kw_only=True, frozen=True):
    """Results of search, best first."""

    results: list[FoundItem]


class FetchedItem(Struct, kw_only=True, frozen=True):
    """The text of a document from a part on."""

    id: str
    title: str
    text: str
    url: str
    metadata: Annotated[
        dict[str, str], Meta(description="`place`: where the text begins; `next`: the id to read on with.")
    ]


class ReadPassage(Struct, kw_only=True, frozen=True, rename="camel"):
    """A passage of a document."""

    document_id: str
    place: str
    text: str
    start: Annotated[int, Meta(description="First character in the document's stored text.")]
    end: int


class ToolReply(Struct, kw_only=True, frozen=True):
    """What a tool found."""

    passages: list[ReadPassage]
    text: Annotated[str, Meta(description="The computed value, or where to read on.")]


async def _search(services: Services, arguments: Mapping[str, Any], identity: Identity, address: str) -> Reply:
    found = await _call(services, SEARCH.name, arguments, identity)
    results = [
        FoundItem(id=_id_of(hit), title=_place_of(hit), url=_url_of(address, str(hit.chunk.document.id)))
        for hit in found.hits
    ]
    return _as_json(FoundItems(results=results))


async def _fetch(services: Services, arguments: Mapping[str, Any], identity: Identity, address: str) -> Reply:
    given = decode(msgspec.json.encode(arguments), FetchArguments, name="arguments")
    document, _, part = given.id.partition(_PART)
    wanted = {"document": document} | ({"place": f"part {part}"} if part else {})
    found = await _call(services, READ.name, wanted, identity, max_tokens=_FETCH_TOKENS)
    first = found.hits[0]
    document_id = str(first.chunk.document.id)
    metadata = {"place": _place_of(first)}
    if found.next_part is not None:
        metadata["next"] = f"{document_id}{_PART}{found.next_part}"
    return _as_json(
        FetchedItem(
            id=given.id,
            title=first.chunk.document.title,
            text="\n\n".join(hit.chunk.text for hit in found.hits),
            url=_url_of(address, document_id),
            metadata=metadata,
        )
    )


async def _read(services: Services, arguments: Mapping[str, Any], identity: Identity, _: str) -> Reply:
    return _describe(await _call(services, READ.name, arguments, identity))


async def _compute(services: Services, arguments: Mapping[str, Any], identity: Identity, _: str) -> Reply:
    return _describe(await _call(services, COMPUTE.name, arguments, identity))


async def _call(
    services: Services, name: str, arguments: Mapping[str, Any], identity: Identity, **options: int
) -> ToolResult:
    if services.tools is None:
        raise InputError("This service has no documents to read.")
    async with services.turns.searches.take(identity.user_id):
        return await isolated(services.tools.of(identity).call(name, arguments, **options))


def _describe(found: ToolResult) -> Reply:
    passages = [
        ReadPassage(
            document_id=str(hit.chunk.document.id),
            place=_place_of(hit),
            text=hit.chunk.text,
            start=hit.chunk.start,
            end=hit.chunk.end,
        )
        for hit in found.hits
    ]
    return describe_result(found), ToolReply(passages=passages, text=found.text)


def describe_result(found: ToolResult) -> str:
    """What a tool found, as a model reads it."""
    passages = [
        f"[{number}] {_place_of(hit)} (document {hit.chunk.document.id})\n{hit.chunk.text}"
        for number, hit in enumerate(found.hits, start=1)
    ]
    return "\n\n".join(filter(None, [*passages, found.text]))


def _as_json(body: Struct) -> Reply:
    return msgspec.json.encode(body).decode(), body


def _id_of(hit: Hit) -> str:
    return f"{hit.chunk.document.id}{_PART}{hit.chunk.index + 1}"


def _place_of(hit: Hit) -> str:
    return describe_place(hit.chunk.document, hit.chunk.location)


def _url_of(address: str, document_id: str) -> str:
    return f"{address}/api/v1/documents/{document_id}/original"


DOCUMENT_TOOLS = (
    ToolSpec(
        name=SEARCH.name,
        title=SEARCH.title,
        description="Search the organisation's documents. Returns places that fetch gives the text of.",
        arguments=SEARCH.arguments,
        result=FoundItems,
        call=_search,
    ),
    ToolSpec(
        name="fetch",
        title="Fetch a result",
        description="The text of a result of search and of what follows it.",
        arguments=FetchArguments,
        result=FetchedItem,
        call=_fetch,
    ),
    ToolSpec(
        name=READ.name,
        title=READ.title,
        description=READ.description,
        arguments=READ.arguments,
        result=ToolReply,
        call=_read,
    ),
    ToolSpec(
        name=COMPUTE.name,
        title=COMPUTE.title,
        description=COMPUTE.description,
        arguments=COMPUTE.arguments,
        result=ToolReply,
        call=_compute,
    ),
)

"""OpenAPI: request bodies, which Litestar cannot see because we read them ourselves, and the reference page."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
from jinja2 import ChainableUndefined, Environment, FileSystemLoader
from litestar import Request, Response, Router, get
from litestar.enums import MediaType
from litestar.exceptions import NotFoundException
from litestar.openapi import OpenAPIConfig, ResponseSpec
from litestar.openapi.plugins import JsonRenderPlugin, OpenAPIRenderPlugin
from litestar.openapi.spec import (
    OpenAPIMediaType,
    OpenAPIResponse,
    OpenAPIType,
    Operation,
    Parameter,
    RequestBody,
    Schema,
)

from rag_service import __version__
from rag_service.api.http.problems import MEDIA_TYPE, Problem
from rag_service.api.http.proxies import own_address

_FOLDER = Path(__file__).parent
_STREAMS = ("text/event-stream", "application/x-ndjson")
_MEANING = {
    400: "The request is invalid; `errors` names the fields.",
    401: "No valid key or token.",
    403: "Not permitted.",
    404: "The object does not exist or belongs to another user.",
    408: "The request was not completed in time.",
    409: "The request conflicts with the current state.",
    413: "Too large.",
    415: "Wrong content type, or an unsupported file type.",
    500: "A model or the database failed; `code` says which.",
    503: "Busy; `Retry-After` says when to try again.",
    507: "A disk of the service is full.",
}


def problems(*statuses: int) -> dict[int, ResponseSpec]:
    """The error replies of a route."""
    return {
        status: ResponseSpec(Problem, generate_examples=False, description=_MEANING[status], media_type=MEDIA_TYPE)
        for status in statuses
    }


def accepts(
    kind: type[msgspec.Struct], *, form: dict[str, Any] | None = None, streams: bool = False
) -> type[Operation]:
    """An operation that takes `kind` as JSON, or a form with the given JSON schema.

    Args:
        streams: the reply is a stream of events.
    """
    components = msgspec.json.schema_components([kind], ref_template="{name}")[1]
    # Plain dicts, because Litestar passes them on as they are. It does not know the types of our bodies, so the types
    # that a body refers to are written out in their place.
    schemas: dict[str, Any] = {"application/json": _without_references(components[kind.__name__], components)}
    if form is not None:
        schemas["multipart/form-data"] = form
    return _documented(schemas, streams=streams)


def accepts_form(form: dict[str, Any]) -> type[Operation]:
    """An operation that takes a form with the given JSON schema."""
    return _documented({"multipart/form-data": form})


def takes_query(**schemas: Mapping[str, Any]) -> type[Operation]:
    """An operation with these optional query parameters: their JSON schemas, with a description, by name."""
    parameters = [
        Parameter(name, "query", schema={"type": "string", **schema}, description=schema["description"])  # type: ignore[arg-type]  # as above
        for name, schema in schemas.items()
    ]

    @dataclass
    class DocumentedOperation(Operation):
        def __post_init__(self) -> None:
            self.parameters = [*(self.parameters or []), *parameters]

    return DocumentedOperation


def _documented(schemas: Mapping[str, Any], *, streams: bool = False) -> type[Operation]:
    content = {kind: OpenAPIMediaType(schema=schema) for kind, schema in schemas.items()}

    @dataclass
    class DocumentedOperation(Operation):
        def __post_init__(self) -> None:
            self.request_body = RequestBody(content=content, required=True)
            reply = (self.responses or {}).get("200") if streams else None
            if isinstance(reply, OpenAPIResponse):
                reply.content = {kind: OpenAPIMediaType(schema=Schema(type=OpenAPIType.STRING)) for kind in _STREAMS}

    return DocumentedOperation


def _without_references(schema: Any, components: Mapping[str, Any]) -> Any:
    if isinstance(schema, list):
        return [_without_references(item, components) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return _without_references(components[schema["$ref"]], components)
    written = {name: _without_references(value, components) for name, value in schema.items()}
    if written.get("type") == "object" and not written.keys() & {"properties", "additionalProperties"}:
        written["additionalProperties"] = True  # else generated types are those of an empty object
    return written


def openapi_config() -> OpenAPIConfig:
    """The description at /schema/openapi.json and its page at /schema."""
    return OpenAPIConfig(
        title="rag_service",
        version=__version__,
        description="Answers questions from a team's own documents and proves every answer. Answers and sign-in can "
        "return 429 `rate_limited` with `Retry-After`. If rate limits are set, any route can, and replies have the "
        "headers `RateLimit` and `RateLimit-Policy`.",
        use_handler_docstrings=True,
        render_plugins=[DocumentationPage(path="/"), _Description()],
        openapi_router=Router(
            "/schema", route_handlers=[_style], include_in_schema=False, after_request=_without_html_errors
        ),
    )


# Where readers and generators of clients look → where it is.
ELSEWHERE = {"/openapi.json": "/schema/openapi.json", "/docs": "/schema"}


@get(list(ELSEWHERE), include_in_schema=False, sync_to_thread=False)
def redirect_to_schema(request: Request[Any, Any, Any]) -> Response[None]:
    """Redirect from the addresses that other services have for their description to ours."""
    there = own_address(request.scope, ELSEWHERE[request.scope["path"].rstrip("/")])
    return Response(None, status_code=307, headers={"Location": there, "Cache-Control": "no-store"})


async def _without_html_errors(response: Response[Any]) -> Response[Any]:
    """Replace Litestar's HTML page for an unknown address below /schema by a problem."""
    if response.status_code == 404:
        raise NotFoundException
    return response


@get("/style.css", media_type=MediaType.CSS, sync_to_thread=False)
def _style() -> str:
    return (_FOLDER / "reference.css").read_text()


class _Description(JsonRenderPlugin):
    """openapi.json, which names the address below which all paths are."""

    def render(self, request: Request[Any, Any, Any], openapi_schema: dict[str, Any]) -> bytes:
        servers = [{"url": own_address(request.scope, "/")}]
        return super().render(request, openapi_schema | {"servers": servers})


class DocumentationPage(OpenAPIRenderPlugin):
    """All operations and types on one page, without scripts or external resources."""

    def render(self, request: Request[Any, Any, Any], openapi_schema: dict[str, Any]) -> bytes:
        environment = Environment(loader=FileSystemLoader(_FOLDER), autoescape=True, undefined=ChainableUndefined)
        environment.filters["pretty"] = partial(json.dumps, indent=2, ensure_ascii=False, default=msgspec.to_builtins)
        page = environment.get_template("reference.html")
        return page.render(openapi_schema, root=own_address(request.scope, "")).encode()

"""OpenAPI: what Litestar cannot see, because we read bodies ourselves, and the page that shows it all."""

from __future__ import annotations

import json
from dataclasses import dataclass
from html import escape
from typing import Any

import msgspec
from litestar import Request, Response, Router, get
from litestar.enums import MediaType
from litestar.exceptions import NotFoundException
from litestar.openapi import OpenAPIConfig, ResponseSpec
from litestar.openapi.plugins import JsonRenderPlugin, OpenAPIRenderPlugin
from litestar.openapi.spec import OpenAPIMediaType, Operation, RequestBody

from rag_service import __version__
from rag_service.api.wire.problems import MEDIA_TYPE, Problem

_MEANING = {
    400: "The request is wrong; `errors` names the fields.",
    401: "No valid key or token.",
    403: "Not permitted.",
    404: "There is no such object, or it is another user's.",
    408: "The rest of the request did not come.",
    409: "It contradicts what is there.",
    413: "Too large.",
    415: "Wrong content type, or a kind of file that cannot be read.",
    500: "A model or the database failed; `code` tells which.",
    503: "Busy; `Retry-After` tells when to try again.",
}


def problems(*statuses: int) -> dict[int, ResponseSpec]:
    """The error replies of a route."""
    return {
        status: ResponseSpec(Problem, generate_examples=False, description=_MEANING[status], media_type=MEDIA_TYPE)
        for status in statuses
    }


def accepts(kind: type[msgspec.Struct], *, form: dict[str, Any] | None = None) -> type[Operation]:
    """An operation whose body is `kind` as JSON, or a form of the given JSON schema."""
    schema = msgspec.json.schema_components([kind], ref_template="#/components/schemas/{name}")[1][kind.__name__]
    schemas: dict[str, Any] = {"application/json": schema}  # plain dicts: Litestar passes them on as they are
    if form is not None:
        schemas["multipart/form-data"] = form
    content = {kind: OpenAPIMediaType(schema=schema) for kind, schema in schemas.items()}

    @dataclass
    class DocumentedOperation(Operation):
        def __post_init__(self) -> None:
            self.request_body = RequestBody(content=content, required=True)

    return DocumentedOperation


def openapi_config() -> OpenAPIConfig:
    """The description at /schema/openapi.json and its page at /schema."""
    return OpenAPIConfig(
        title="rag_service",
        version=__version__,
        description="Answers questions from a team's own documents and proves every answer. Where rate limits are "
        "set, replies carry `RateLimit` and `RateLimit-Policy`, and any route may answer 429 `rate_limited` with "
        "`Retry-After`.",
        use_handler_docstrings=True,
        render_plugins=[DocumentationPage(path="/"), JsonRenderPlugin()],
        openapi_router=Router(
            "/schema", route_handlers=[_style], include_in_schema=False, after_request=_without_html_errors
        ),
    )


async def _without_html_errors(response: Response[Any]) -> Response[Any]:
    """Litestar's answer to an unknown address below /schema is a page; ours is a problem."""
    if response.status_code == 404:
        raise NotFoundException
    return response


@get("/style.css", media_type=MediaType.CSS, sync_to_thread=False)
def _style() -> str:
    return _CSS


class DocumentationPage(OpenAPIRenderPlugin):
    """All operations and shapes on one page: no script, nothing from elsewhere."""

    def render(self, request: Request[Any, Any, Any], openapi_schema: dict[str, Any]) -> bytes:
        operations = "".join(
            _operation(method, path, operation)
            for path, methods in sorted(openapi_schema["paths"].items())
            for method, operation in methods.items()
        )
        shapes = "".join(
            f"<details id='{escape(name)}'><summary><code>{escape(name)}</code></summary>{_json(schema)}</details>"
            for name, schema in sorted(openapi_schema.get("components", {}).get("schemas", {}).items())
        )
        info = openapi_schema["info"]
        return _PAGE.format(
            title=escape(info["title"]),
            version=escape(info["version"]),
            description=escape(info["description"]),
            operations=operations,
            shapes=shapes,
        ).encode()


def _operation(method: str, path: str, operation: dict[str, Any]) -> str:
    contents = operation.get("requestBody", {}).get("content", {})
    bodies = "".join(
        f"<h4>Body: <code>{escape(kind)}</code></h4>{_json(body['schema'])}" for kind, body in contents.items()
    )
    replies = "".join(
        f"<dt>{escape(status)}</dt><dd>{escape(reply.get('description', ''))} {_shape_links(reply)}</dd>"
        for status, reply in operation.get("responses", {}).items()
    )
    return (
        f"<details><summary><b>{escape(method.upper())}</b> <code>{escape(path)}</code> "
        f"{escape(operation.get('summary', ''))}</summary><p>{escape(operation.get('description') or '')}</p>"
        f"{bodies}<h4>Replies</h4><dl>{replies}</dl></details>"
    )


def _shape_links(reply: dict[str, Any]) -> str:
    references = [body.get("schema", {}).get("$ref", "") for body in reply.get("content", {}).values()]
    names = [reference.rpartition("/")[2] for reference in references if reference]
    return " ".join(f"<a href='#{escape(name)}'>{escape(name)}</a>" for name in names)


def _json(value: Any) -> str:
    return f"<pre>{escape(json.dumps(value, indent=2, ensure_ascii=False))}</pre>"


_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title} {version}</title><link rel="stylesheet" href="/schema/style.css">
</head>
<body>
<header><h1>{title} {version}</h1><p>{description}</p>
<p><a href="/schema/openapi.json">openapi.json</a></p></header>
<main><h2>Operations</h2>{operations}<h2>Shapes</h2>{shapes}</main>
</body>
</html>
"""

_CSS = """:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
body { max-width: 60rem; margin: 0 auto; padding: 1rem; }
details { border: 1px solid color-mix(in srgb, currentColor 25%, transparent); border-radius: .4rem;
  margin: .4rem 0; padding: .4rem .8rem; }
summary { cursor: pointer; }
pre { overflow-x: auto; padding: .6rem; background: color-mix(in srgb, currentColor 8%, transparent); }
dt { font-weight: bold; }
"""

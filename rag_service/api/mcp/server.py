"""The MCP server (https://modelcontextprotocol.io).

Two transports, one set of tools: streamable HTTP at /mcp, and stdio for clients that start a program. Every call
is authenticated and made as the caller. The SDK is an extra; nothing of it is imported before a server is made.
"""

from __future__ import annotations

import asyncio
import importlib.util
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

import msgspec
from litestar import asgi
from litestar.datastructures import Headers
from litestar.types import ControllerRouterHandler, Receive, Scope, Send

from rag_service import __version__
from rag_service.api.http.access import require_scope
from rag_service.api.http.bodies import BODY_LIMIT
from rag_service.api.http.problems import report, send_problem
from rag_service.api.http.services import Services
from rag_service.api.mcp.metadata import base_url, challenge, metadata_route
from rag_service.api.mcp.specs import json_schema
from rag_service.api.mcp.tools import INSTRUCTIONS, TOOLS, describe_failure
from rag_service.domain import Identity
from rag_service.errors import AuthenticationError, ConfigurationError, RagError
from rag_service.settings import Settings
from rag_service.store.accounts.keys import Scope as KeyScope

if TYPE_CHECKING:
    from mcp.server import Server
    from mcp.server.context import ServerRequestContext
    from mcp.types import CallToolRequestParams, CallToolResult, ListToolsResult, PaginatedRequestParams

PATH = "/mcp"

Identify = Callable[[], Awaitable[Identity]]


def mcp_installed() -> bool:
    """Whether the extra is there."""
    return importlib.util.find_spec("mcp") is not None


def mcp_routes(settings: Settings) -> list[ControllerRouterHandler]:
    """MCP over streamable HTTP at /mcp, without sessions, so that any replica can serve any request.

    Where callers must sign in, also the metadata that say how. Raises ConfigurationError if the extra `mcp` is not
    installed.
    """
    check_installed()
    route = asgi(PATH, is_mount=True, copy_scope=False)(_serve_http)
    return [route] if settings.auth.mode == "none" else [route, metadata_route(PATH)]


async def _serve_http(scope: Scope, receive: Receive, send: Send) -> None:
    services: Services = scope["litestar_app"].state.services
    try:
        identity = await services.authenticate(Headers.from_scope(scope))
        require_scope(identity, KeyScope.READ)
    except RagError as error:
        headers = challenge(scope, services.settings) if isinstance(error, AuthenticationError) else {}
        await send_problem(error, scope, receive, send, headers=headers)
        return

    async def identify() -> Identity:
        return identity

    # The first import takes half a second; streams go on meanwhile.
    sdk = await asyncio.to_thread(importlib.import_module, "mcp.server.streamable_http_manager")
    # Host and Origin have been checked by what surrounds every request (`RequestContext`).
    manager = sdk.StreamableHTTPSessionManager(
        make_server(services, identify, base_url(scope, services.settings)),
        stateless=True,
        max_request_body_size=BODY_LIMIT,
    )
    async with manager.run():
        await manager.handle_request(scope, receive, send)


async def serve_stdio(services: Services, headers: Mapping[str, str]) -> None:
    """Serve one client on standard input and output until it closes them; nothing else may write there.

    The credential in `headers` is authenticated at every call, so that a revoked key stops working here as well. Raises
    ConfigurationError if the extra `mcp` is not installed.
    """
    check_installed()
    from mcp.server.stdio import stdio_server

    http = services.settings.http
    address = services.settings.sign_in.public_url or f"http://{http.host}:{http.port}"
    server = make_server(services, lambda: services.authenticate(headers), address)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


def make_server(services: Services, identify: Identify, address: str) -> Server[Any]:
    """The server with its tools; `identify` finds the caller, and its errors become the reply.

    Args:
        address: of the service as the caller knows it, for links.
    """
    from mcp import MCPError
    from mcp.server import Server
    from mcp.types import INVALID_PARAMS, CallToolResult, ListToolsResult, TextContent, Tool, ToolAnnotations

    async def list_tools(_: ServerRequestContext[Any], __: PaginatedRequestParams | None) -> ListToolsResult:
        hints = ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False)
        tools = [
            Tool(
                name=tool.name,
                title=tool.title,
                description=tool.description,
                input_schema=json_schema(tool.arguments),
                output_schema=json_schema(tool.result),
                annotations=hints,
            )
            for tool in TOOLS.values()
        ]
        return ListToolsResult(tools=tools)

    async def call(_: ServerRequestContext[Any], params: CallToolRequestParams) -> CallToolResult:
        tool = TOOLS.get(params.name)
        if tool is None:
            raise MCPError(INVALID_PARAMS, f"There is no tool {params.name[:100]!r}; there are {', '.join(TOOLS)}.")
        try:
            text, body = await tool.call(services, params.arguments or {}, await identify(), address)
        except Exception as error:  # noqa: BLE001 - logged by `report`, and told to the client as far as it may know
            text, body = describe_failure(report(error)), None
        return CallToolResult(
            content=[TextContent(type="text", text=text)],
            structured_content=None if body is None else msgspec.to_builtins(body, enc_hook=str),
            is_error=body is None,
        )

    return Server(
        "rag-service",
        title="rag_service",
        version=__version__,
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call,
    )


def check_installed() -> None:
    """Raise ConfigurationError unless the extra `mcp` is installed."""
    if not mcp_installed():
        raise ConfigurationError("MCP needs an extra that is not installed: pip install 'rag-service[mcp]'.")

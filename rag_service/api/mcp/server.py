"""The MCP server (https://modelcontextprotocol.io): requirement F5.

Two transports, one set of tools: streamable HTTP at /mcp inside the service's own process, and stdio
for clients that start a program. Every call is made as who asks: over HTTP the headers of each
request are authenticated, and nothing is remembered between two requests; over stdio the credential
is the process's own, checked again at each call.

The SDK is an extra. Nothing of it is imported before a server is made.
"""

from __future__ import annotations

import asyncio
import importlib.util
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from litestar import Litestar, Request, asgi
from litestar.datastructures import Headers
from litestar.handlers import ASGIRouteHandler
from litestar.types import Receive, Scope, Send

from rag_service import __version__
from rag_service.api.mcp.tools import INSTRUCTIONS, TOOLS, ToolReply, ToolSpec, call_tool, describe_failure, json_schema
from rag_service.api.services import Services
from rag_service.api.wire.bodies import BODY_LIMIT
from rag_service.api.wire.problems import problem_response, report
from rag_service.domain import Identity
from rag_service.errors import ConfigurationError, RagError

if TYPE_CHECKING:
    from mcp.server import Server
    from mcp.server.context import ServerRequestContext
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
    from mcp.types import CallToolRequestParams, CallToolResult, ListToolsResult, PaginatedRequestParams, Tool

PATH = "/mcp"
_IDENTITY = "rag_service.identity"  # where the ASGI scope carries who asks

Permit = Callable[[Identity], None]
Identify = Callable[["ServerRequestContext[Any]"], Awaitable[Identity]]


@dataclass(frozen=True, kw_only=True)
class McpMount:
    """What the web application needs for MCP over HTTP."""

    route: ASGIRouteHandler  # for `more_routes`
    lifespan: Callable[[Litestar], AbstractAsyncContextManager[None]]  # for `lifespan`


def mcp_installed() -> bool:
    """Whether the extra is there."""
    return importlib.util.find_spec("mcp") is not None


def mcp_mount(services: Services, *, permit: Permit | None = None) -> McpMount:
    """MCP over streamable HTTP at /mcp, without sessions, so that any replica can serve any request.

    Args:
        services: what the tools stand on.
        permit: raises for identities whose credential may not search, such as a key without the scope `read`.

    Raises:
        ConfigurationError: the extra `mcp` is not installed.
    """
    check_installed()
    sessions = _Sessions(services)

    @asynccontextmanager
    async def lifespan(_: Litestar) -> AsyncGenerator[None]:
        async with sessions.open():
            yield

    @asgi(PATH, is_mount=True, copy_scope=False)
    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        try:
            identity = await services.authenticate(Headers.from_scope(scope))
            if permit is not None:
                permit(identity)
        except RagError as error:
            request: Request[Any, Any, Any] = Request(scope, receive, send)
            await problem_response(report(error)).to_asgi_response(None, request)(scope, receive, send)
            return
        cast("dict[str, Any]", scope)[_IDENTITY] = identity
        manager = await sessions.manager()
        await manager.handle_request(cast("Any", scope), cast("Any", receive), cast("Any", send))

    return McpMount(route=serve, lifespan=lifespan)


class _Sessions:
    """The SDK's session manager, made for the first request.

    To import the SDK takes half a second, a fifth of the service's start, and most services are never asked.
    """

    def __init__(self, services: Services):
        self._services = services

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[None]:
        """Requests may come within."""
        self._wanted = asyncio.Event()
        self._made: asyncio.Future[StreamableHTTPSessionManager] = asyncio.get_running_loop().create_future()
        # In a task of its own, because the manager has to be left by the task that has entered it.
        running = asyncio.create_task(self._run(), name="mcp-sessions")
        try:
            yield
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
            self._made.cancel()

    async def manager(self) -> StreamableHTTPSessionManager:
        """The running manager; the first caller waits for the import."""
        self._wanted.set()
        return await asyncio.shield(self._made)

    async def _run(self) -> None:
        await self._wanted.wait()
        try:
            manager = await asyncio.to_thread(self._make)  # streams go on meanwhile
            async with manager.run():
                self._made.set_result(manager)
                await asyncio.Event().wait()  # until cancelled
        except Exception as error:
            if self._made.done():
                raise
            self._made.set_exception(error)

    def _make(self) -> StreamableHTTPSessionManager:
        from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

        server = make_server(self._services, _identity_of_request)
        # Host and Origin have been checked by what surrounds every request (`RequestContext`).
        return StreamableHTTPSessionManager(server, stateless=True, max_request_body_size=BODY_LIMIT)


async def serve_stdio(services: Services, headers: Mapping[str, str]) -> None:
    """Serve one client on standard input and output until it closes them.

    Standard output belongs to the protocol: nothing else may write there.

    Args:
        services: what the tools stand on.
        headers: the credential, as a request would carry it; authenticated at every call, so that a revoked
            key stops working here as well.

    Raises:
        ConfigurationError: the extra `mcp` is not installed.
    """
    check_installed()
    from mcp.server.stdio import stdio_server

    async def identify(_: ServerRequestContext[Any]) -> Identity:
        return await services.authenticate(headers)

    server = make_server(services, identify)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


def make_server(services: Services, identify: Identify) -> Server[Any]:
    """The server with its tools.

    Args:
        services: what the tools stand on.
        identify: who makes a call; its errors are the call's reply.
    """
    from mcp import MCPError
    from mcp.server import Server
    from mcp.types import INVALID_PARAMS, ListToolsResult

    async def list_tools(_: ServerRequestContext[Any], __: PaginatedRequestParams | None) -> ListToolsResult:
        return ListToolsResult(tools=[_present_tool(tool) for tool in TOOLS.values()])

    async def call(context: ServerRequestContext[Any], params: CallToolRequestParams) -> CallToolResult:
        tool = TOOLS.get(params.name)
        if tool is None:
            raise MCPError(INVALID_PARAMS, f"There is no tool {params.name[:100]!r}; there are {', '.join(TOOLS)}.")
        try:
            identity = await identify(context)
        except RagError as error:
            return _present_reply(describe_failure(report(error)))
        return _present_reply(await call_tool(services, tool, params.arguments or {}, identity))

    return Server(
        "rag-service",
        title="rag_service",
        version=__version__,
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call,
    )


def check_installed() -> None:
    """Make sure that the SDK is there.

    Raises:
        ConfigurationError: it is not; says how to install it.
    """
    if not mcp_installed():
        raise ConfigurationError("MCP needs an extra that is not installed: pip install 'rag-service[mcp]'.")


async def _identity_of_request(context: ServerRequestContext[Any]) -> Identity:
    identity = None if context.request is None else context.request.scope.get(_IDENTITY)
    if not isinstance(identity, Identity):
        raise RagError("A call arrived without an identity.")
    return identity


def _present_tool(tool: ToolSpec) -> Tool:
    from mcp.types import Tool, ToolAnnotations

    return Tool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=json_schema(tool.arguments),
        output_schema=json_schema(tool.result),
        annotations=ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False),
    )


def _present_reply(reply: ToolReply) -> CallToolResult:
    from mcp.types import CallToolResult, TextContent

    return CallToolResult(
        content=[TextContent(type="text", text=reply.text)],
        structured_content=None if reply.data is None else dict(reply.data),
        is_error=reply.failed,
    )

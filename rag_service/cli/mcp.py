"""`rag-service mcp`: the MCP server on standard input and output."""

from __future__ import annotations

import os
from collections.abc import Mapping

import click

from rag_service.cli.running import read_settings, run_command
from rag_service.domain import Identity
from rag_service.errors import ConfigurationError
from rag_service.settings import Settings

KEY_VARIABLE = "MCP_API_KEY"  # not RAG_…: those are settings, and an unknown one is an error


@click.command("mcp")
def mcp_command() -> None:
    """Serve the documents to an MCP client over standard input and output.

    With RAG_AUTH=required the client's own key is read from the environment variable MCP_API_KEY, and
    decides what can be found. Over HTTP, `rag-service serve` offers the same at /mcp.
    """
    settings = read_settings()  # logs go to standard error: standard output is the protocol's
    run_command(serve(settings, os.environ.get(KEY_VARIABLE)))


async def serve(settings: Settings, key: str | None) -> None:
    """Open the service and serve one client.

    Args:
        settings: of the service.
        key: API key or bearer token of the client; needed with RAG_AUTH=required.

    Raises:
        ConfigurationError: a setting is wrong, the extra is not installed, or the key is missing.
        AuthenticationError: the key is not valid.
    """
    from rag_service.api.mcp.server import check_installed, serve_stdio
    from rag_service.api.services import Services
    from rag_service.components import LOCAL_ADMIN, open_components
    from rag_service.identity import Authenticator

    check_installed()
    if settings.auth == "required" and not key:
        raise ConfigurationError(f"Set {KEY_VARIABLE} to your API key: RAG_AUTH is 'required'.", field=KEY_VARIABLE)
    headers = {"authorization": f"Bearer {key}"} if key else {}
    async with open_components(settings) as components:
        authenticator = Authenticator(components.database, settings)

        async def authenticate(headers: Mapping[str, str]) -> Identity:
            return LOCAL_ADMIN if settings.auth == "none" else await authenticator.authenticate(headers)

        services = Services(
            settings=settings,
            answer=components.engine.stream,
            search=components.engine.search,
            ingest=components.ingest,
            probes={},
            authenticate=authenticate,
        )
        await authenticate(headers)  # a wrong key is told at once, where its owner sees it
        await serve_stdio(services, headers)


if __name__ == "__main__":
    mcp_command()

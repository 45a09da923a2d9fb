"""`rag-service mcp`: the MCP server on standard input and output."""

from __future__ import annotations

import asyncio
import os

import click

from rag_service.cli.running import read_settings, run_command
from rag_service.errors import ConfigurationError
from rag_service.settings import Settings
from rag_service.tasks import end_tasks

KEY_VARIABLE = "MCP_API_KEY"  # not RAG_…: an unknown setting is an error


@click.command("mcp")
def mcp_command() -> None:
    """Serve the documents to an MCP client over standard input and output.

    With RAG_AUTH=required, set MCP_API_KEY to the client's API key, whose permissions apply. `rag-service serve` offers
    the same over HTTP at /mcp.
    """
    run_command(_serve(read_settings(), os.environ.get(KEY_VARIABLE)))  # logs go to stderr, the protocol to stdout


async def _serve(settings: Settings, key: str | None) -> None:
    """Serve one client, whose API key or bearer token is needed with RAG_AUTH=required."""
    from rag_service.api.http.services import Services
    from rag_service.api.mcp.server import check_installed, serve_stdio
    from rag_service.auth.authenticator import choose_authentication
    from rag_service.components import open_components

    check_installed()
    if settings.auth.mode == "required" and not key:
        raise ConfigurationError(f"Set {KEY_VARIABLE} to your API key: RAG_AUTH is 'required'.", field=KEY_VARIABLE)
    headers = {"authorization": f"Bearer {key}"} if key else {}
    async with open_components(settings) as components:
        authenticate = choose_authentication(settings, components.database)
        services = Services(
            settings=settings,
            answer=lambda query, _: components.engine.stream(query),
            search=components.engine.search,
            ingest=components.ingest,
            check=components.checker.check,
            probes={},
            tools=components.tools,
            authenticate=authenticate,
        )
        await authenticate(headers)  # a wrong key fails at once, where its owner sees it
        examining = asyncio.create_task(components.examiner.run())
        try:
            await serve_stdio(services, headers)
        finally:
            await end_tasks(examining)


if __name__ == "__main__":
    mcp_command()

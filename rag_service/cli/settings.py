"""`rag-service settings`: what is set, what the defaults are, and the README's table."""

from __future__ import annotations

from collections.abc import Iterator

import click
from pydantic import SecretStr

from rag_service.cli.running import read_settings
from rag_service.settings import Settings, setting_name


@click.command(name="settings")
@click.option("--markdown", is_flag=True, help="All settings with their defaults as a Markdown table.")
def settings_command(markdown: bool) -> None:
    """Show every setting that differs from its default; secrets are not shown."""
    if markdown:
        click.echo("\n".join(table_lines()))
        return
    settings = read_settings()
    changed = [
        (setting_name(name), getattr(settings, name))
        for name, field in Settings.model_fields.items()
        if getattr(settings, name) != field.default
    ]
    for name, value in changed:
        click.echo(f"{name}={'(set)' if isinstance(value, SecretStr) else _shown(value)}")
    if not changed:
        click.echo("Every setting has its default.")


def table_lines() -> Iterator[str]:
    """The lines of the table in the README."""
    yield "| setting | default | what |"
    yield "|---|---|---|"
    for name, field in Settings.model_fields.items():
        default = _shown(field.default)
        yield f"| `{setting_name(name)}` | {f'`{default}`' if default else ''} | {field.description} |"


def _shown(value: object) -> str:
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)

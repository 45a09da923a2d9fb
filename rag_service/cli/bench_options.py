"""Options that several bench commands take."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])


def document_options(command: Command) -> Command:
    """`--documents` and `--limit`: what is ingested instead of the samples."""
    limit = click.option("--limit", type=click.IntRange(1), help="Most documents, in the order of their names.")
    documents = click.option(
        "--documents", type=click.Path(exists=True, path_type=Path), help="File or folder instead of the samples."
    )
    return documents(limit(command))

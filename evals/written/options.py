"""Options that the commands over written answers and conversations share."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from pathlib import Path
from typing import TypeVar

import click

from evals.sets.questions import HALVES
from evals.written.judge import JUDGES, STUBBORN
from evals.written.measure import WITHOUT

_Command = TypeVar("_Command", bound=Callable[..., None])

PATH = click.Path(exists=True, path_type=Path)
NEW_PATH = click.Path(path_type=Path)
_SHARED = (
    click.argument("files", nargs=-1, type=PATH),
    click.option("--half", type=click.Choice(HALVES), help="Only this half; else both."),
    click.option(
        "--judge", "judges", multiple=True, type=click.Choice([*JUDGES, *STUBBORN, WITHOUT]), default=("right",),
        help="May be given several times.",
    ),
    click.option("--replies", is_flag=True, help="Print each right one that is not green, and each near miss that is."),
    click.option("--dump", type=NEW_PATH, help="Write what the judge is shown of each answer into this folder."),
    click.option("--check", is_flag=True, help="Only check the files: fields, and whether the evidence is shown."),
    click.option("--folder", type=NEW_PATH, help="Keep the database here, so that another run need not ingest."),
)  # fmt: skip


def shared_options(command: _Command) -> _Command:
    """Give a command the argument `files` and the options `half`, `judges`, `replies`, `dump`, `check`, `folder`."""
    return reduce(lambda made, option: option(made), reversed(_SHARED), command)

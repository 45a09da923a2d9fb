"""What the commands have in common: settings, the event loop, and errors as words on the terminal."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import click

from rag_service.errors import RagError
from rag_service.settings import Settings, load_settings

if TYPE_CHECKING:
    from rag_service.evaluation.report import ProgressSteps

T = TypeVar("T")


class Failure(click.ClickException):
    """An error of ours on the terminal: what is wrong, then what to do."""

    def __init__(self, error: RagError):
        super().__init__(f"{error.message}\n{error.help}")


def run_command(work: Coroutine[Any, Any, T]) -> T:
    """Run a command's work to its end.

    Raises:
        Failure: in place of an error of ours.
        click.Abort: it was interrupted.
    """
    try:
        with asyncio.Runner(loop_factory=_new_event_loop) as runner:
            return runner.run(work)
    except RagError as error:
        raise Failure(error) from error
    except KeyboardInterrupt:
        raise click.Abort() from None


def _new_event_loop() -> asyncio.AbstractEventLoop:
    """libuv's where it is to be had, else asyncio's: a streamed answer wakes the loop a hundred times."""
    try:
        import uvloop
    except ImportError:  # not made for every platform
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


def read_settings(**overrides: object) -> Settings:
    """The settings, keywords that are not None winning, and logs as they say.

    Raises:
        Failure: a setting is wrong.
    """
    from rag_service.telemetry import configure_logging

    try:
        settings = load_settings(**{key: value for key, value in overrides.items() if value is not None})
    except RagError as error:
        raise Failure(error) from error
    configure_logging(settings)
    return settings


def read_quiet_settings() -> Settings:
    """For commands whose output is for people: logs as lines, and warnings only."""
    return read_settings(log_level="WARNING", log_format="console")


@contextmanager
def progress() -> Iterator[ProgressSteps]:
    """A bar on the terminal beside the output."""
    from rich.console import Console

    from rag_service.evaluation.report import ProgressSteps, progress_bar

    with progress_bar(Console(stderr=True)) as bar:
        yield ProgressSteps(bar)

"""What the commands have in common: settings, the event loop, and errors as words on the terminal."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import click

from rag_service.errors import RagError
from rag_service.settings import Settings, load_settings
from rag_service.store.embedded import leave_embedded_servers

if TYPE_CHECKING:
    from rag_service.evaluation.report import ProgressSteps

T = TypeVar("T")

_TERMINATED = 128 + signal.SIGTERM  # 143, which shells and container engines show for an end by that signal
_FAREWELL_SECONDS = 5.0  # for what a cancelled command still has to do, and for threads that nobody can cancel


class Failure(click.ClickException):
    """An error of ours on the terminal: what is wrong, then what to do."""

    def __init__(self, error: RagError):
        super().__init__(f"{error.message}\n{error.help}")


def run_command(work: Coroutine[Any, Any, T]) -> T:
    """Run a command's work to its end.

    SIGTERM cancels the work, as Ctrl-C does, then ends the process. So does a terminal that is closed.

    Raises:
        Failure: in place of an error of ours.
        click.Abort: it was interrupted.
    """
    told: list[int] = []  # SIGTERM, when it came
    try:
        with asyncio.Runner(loop_factory=_new_event_loop) as runner:
            result = runner.run(_cancelled_by_sigterm(work, told))
    except RagError as error:
        raise Failure(error) from error
    except KeyboardInterrupt:
        raise click.Abort() from None
    except asyncio.CancelledError:
        if not told:
            raise
    finally:
        _set_handlers(_die)  # a loop whose handler it was (`worker`) has put Python's default back
    if told:
        _die()
    return result


async def _cancelled_by_sigterm(work: Coroutine[Any, Any, T], told: list[int]) -> T:
    """Do the work; SIGTERM is noted in `told` and cancels it, as `asyncio.Runner` does it for SIGINT.

    Not by `loop.add_signal_handler`: that would go on listening when uvicorn has set its own handler, and cut off
    the streams that uvicorn lets end. uvicorn raises the signal again when it has shut down; it arrives here.
    """
    loop, task = asyncio.get_running_loop(), asyncio.current_task()

    def cancel(number: int, _frame: FrameType | None) -> None:
        told.append(number)
        _set_handlers(_die)  # whoever cannot wait sends another one
        if hasattr(signal, "setitimer"):
            signal.signal(signal.SIGALRM, _die)
            signal.setitimer(signal.ITIMER_REAL, _FAREWELL_SECONDS)
        if task is not None:
            task.cancel()
        loop.call_soon_threadsafe(lambda: None)  # wakes it up

    _set_handlers(cancel)
    return await work


def _set_handlers(handler: Callable[[int, FrameType | None], None]) -> None:
    """Take SIGTERM over, but from whom it was not Python's or ours, or who ignores it; no other thread may do so."""
    if threading.current_thread() is not threading.main_thread():
        return
    current = signal.getsignal(signal.SIGTERM)
    if current is signal.SIG_DFL or getattr(current, "__module__", None) == __name__:
        signal.signal(signal.SIGTERM, handler)
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is signal.SIG_DFL:  # else: nohup
        signal.signal(signal.SIGHUP, lambda *_: signal.raise_signal(signal.SIGTERM))


def _die(_number: int = signal.SIGTERM, _frame: FrameType | None = None) -> NoReturn:
    """End by SIGTERM, as those expect who sent it, but not without leaving the embedded server.

    By Python's default nothing would, and it would run for ever; `sys.exit` would first wait for threads, and for
    a model that is being loaded, for many seconds.
    """
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # nothing may break off what follows
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, 0)
    try:
        leave_embedded_servers()
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.raise_signal(signal.SIGTERM)
        os._exit(_TERMINATED)  # the first process of a container, which the kernel spares


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

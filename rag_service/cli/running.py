"""Shared by the commands: settings, event loop, signals, error messages."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from types import FrameType
from typing import TYPE_CHECKING, Any, Concatenate, NoReturn, ParamSpec, Protocol, TypeVar
from uuid import UUID

import click

from rag_service.domain import LOCAL_ADMIN
from rag_service.errors import InputError, NoSpaceError, RagError
from rag_service.settings import Settings, load_settings
from rag_service.tasks import PATIENCE

if TYPE_CHECKING:
    from rag_service.evaluation.run import Steps
    from rag_service.store.database import Connection


class Named(Protocol):
    """A corpus, as stored or as the API sends it."""

    @property
    def id(self) -> UUID: ...

    @property
    def name(self) -> str: ...


P = ParamSpec("P")
T = TypeVar("T")
N = TypeVar("N", bound=Named)

_TERMINATED = 128 + signal.SIGTERM  # 143, which shells and container engines show for an end by that signal
_FAREWELL_SECONDS = 5.0  # for clean-up after cancellation, and for threads that cannot be cancelled
# From the end of the last request or job; one task may lose its cancellation.
CLOSING_SECONDS = PATIENCE + _FAREWELL_SECONDS
_DATABASE_SECONDS = 10.0  # for the embedded database to stop


class Failure(click.ClickException):
    """Prints an error of the service: what is wrong, then how to fix it."""

    def __init__(self, error: RagError):
        hint = "" if type(error).help == InputError.help else f"\n{error.help}"  # that one is for senders of requests
        super().__init__(error.message + hint)


@contextmanager
def failures() -> Iterator[None]:
    """Turns a RagError into a Failure, and a full disk."""
    try:
        yield
    except RagError as error:
        raise Failure(error) from error
    except OSError as error:
        if full := NoSpaceError.of(error):
            raise Failure(full) from error
        raise


def begin_start(settings: Settings) -> None:
    """Start the embedded database while the packages of a command are loaded.

    The collector of garbage pauses: loading them makes hundreds of thousands of objects that stay, and to look through
    these again and again takes an eighth of the time.
    """
    gc.disable()
    if settings.database.url is None and settings.retrieval.enabled:
        from rag_service.store.embedded import begin_embedded_server

        begin_embedded_server(settings.database.data_dir)


def run_command(work: Coroutine[Any, Any, T]) -> T:
    """Run a command. SIGTERM and a closed terminal cancel it, as Ctrl-C does, then end the process.

    Raises:
        Failure: instead of a RagError, or where a disk is full.
        click.Abort: it was interrupted.
    """
    received: list[int] = []  # SIGTERM, once it arrives
    try:
        with failures(), asyncio.Runner(loop_factory=_new_event_loop) as runner:
            result = runner.run(_cancelled_by_sigterm(work, received))
    except KeyboardInterrupt:
        raise click.Abort() from None
    except asyncio.CancelledError:
        if not received:
            raise
    finally:
        _set_handlers(_die)  # `worker` uses the loop's handlers, which restore Python's default
    if received:
        _die()
    return result


async def _cancelled_by_sigterm(work: Coroutine[Any, Any, T], received: list[int]) -> T:
    """Await the work; SIGTERM is noted in `received` and cancels it, as `asyncio.Runner` does for SIGINT.

    `loop.add_signal_handler` would stay active beside uvicorn's own handler and cut off streams that uvicorn lets
    finish. uvicorn raises the signal again after its shutdown, and it arrives here.
    """
    loop, task = asyncio.get_running_loop(), asyncio.current_task()

    def cancel(number: int, _frame: FrameType | None) -> None:
        received.append(number)
        _set_handlers(_die)  # a second signal ends at once
        end_within(_FAREWELL_SECONDS)
        if task is not None:
            task.cancel()
        loop.call_soon_threadsafe(lambda: None)  # wakes it up

    _set_handlers(cancel)
    return await work


def _set_handlers(handler: Callable[[int, FrameType | None], None]) -> None:
    """Handle SIGTERM, unless another handler is set or it is ignored. Works in the main thread only."""
    if threading.current_thread() is not threading.main_thread():
        return
    current = signal.getsignal(signal.SIGTERM)
    if current is signal.SIG_DFL or getattr(current, "__module__", None) == __name__:
        signal.signal(signal.SIGTERM, handler)
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is signal.SIG_DFL:  # else: nohup
        signal.signal(signal.SIGHUP, lambda *_: signal.raise_signal(signal.SIGTERM))


def end_within(seconds: float) -> None:
    """End the process if it still runs then, whatever it waits for. Counts anew with each call."""
    if hasattr(signal, "setitimer"):
        signal.signal(signal.SIGALRM, _cut_off)
        signal.setitimer(signal.ITIMER_REAL, seconds)


def _cut_off(_number: int, _frame: FrameType | None) -> NoReturn:
    import structlog  # loads rich, which commands do without

    with suppress(RuntimeError):  # the event loop has ended, so it is threads that go on
        waiting = sorted(map(_waits_in, asyncio.all_tasks()))
        structlog.get_logger(__name__).warning("end_cut_off", waiting=waiting)
    _die()


def _waits_in(task: asyncio.Task[Any]) -> str:
    """The coroutines from that of the task to the one that waits."""
    names: list[str] = []
    waiting: Any = task.get_coro()
    while (name := getattr(waiting, "__qualname__", None)) is not None:
        names.append(name)
        waiting = getattr(waiting, "cr_await", None)
    return " > ".join(names)


def _die(_number: int = signal.SIGTERM, _frame: FrameType | None = None) -> NoReturn:
    """End by SIGTERM, after leaving the embedded server, which would otherwise run for ever.

    `sys.exit` would first wait for threads, such as one that loads a model for many seconds.
    """
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # the rest must not be interrupted
    last = threading.Timer(_DATABASE_SECONDS, os._exit, [_TERMINATED])  # it has been told to stop by then
    last.daemon = True
    last.start()
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, 0)
    try:
        if embedded := sys.modules.get("rag_service.store.embedded"):
            embedded.leave_embedded_servers()
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.raise_signal(signal.SIGTERM)
        os._exit(_TERMINATED)  # the kernel does not kill the first process of a container


def _new_event_loop() -> asyncio.AbstractEventLoop:
    """uvloop's where available: a streamed answer wakes the loop a hundred times."""
    try:
        import uvloop
    except ImportError:  # not available on every platform
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


def read_settings(**overrides: object) -> Settings:
    """Load the settings and configure logging. Keywords that are not None override the environment."""
    from rag_service.observability.logs import configure_logging

    with failures():
        settings = load_settings(**{key: value for key, value in overrides.items() if value is not None})
    configure_logging(settings)
    return settings


def read_quiet_settings() -> Settings:
    """For commands that print results: log warnings only, as plain lines."""
    from rag_service.observability.logs import configure_logging

    with failures():
        # The environment's own log level is read, too: a wrong one would stop `serve`.
        settings = load_settings().replace({"log_level": "WARNING", "log_format": "console"})
    configure_logging(settings)
    return settings


async def owner_and_service(settings: Settings) -> tuple[str, str]:
    """Connection strings of the role that owns the database, and of the service's.

    Raises click.UsageError if the owner of an external database is not set.
    """
    from rag_service.store.embedded import start_embedded_server

    if settings.database.url is None:
        server = await start_embedded_server(settings.database.data_dir)
        return server.owner_conninfo, server.service_conninfo
    if settings.database.owner_url is None:
        raise click.UsageError("Set RAG_DATABASE_OWNER_URL to the URL of the role that owns the database.")
    return settings.database.owner_url.get_secret_value(), settings.database.url.get_secret_value()


@asynccontextmanager
async def as_administrator(settings: Settings) -> AsyncIterator[Connection]:
    """A transaction of the local administrator."""
    from rag_service.store.opening import open_database

    async with open_database(settings, pool_size=1) as database, database.transaction(LOCAL_ADMIN) as connection:
        yield connection


def run_as_administrator(
    work: Callable[Concatenate[Connection, P], Awaitable[T]], *args: P.args, **kwargs: P.kwargs
) -> T:
    """Run `work(connection, …)` as the local administrator, in a transaction."""
    settings = read_quiet_settings()

    async def transact() -> T:
        async with as_administrator(settings) as connection:
            return await work(connection, *args, **kwargs)

    return run_command(transact())


def print_table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    from rag_service.client.results import table

    click.echo(repr(table(head, rows)))


@contextmanager
def progress() -> Iterator[Steps]:
    """A progress bar on stderr."""
    from rich.console import Console

    from rag_service.evaluation.report import progress_bar
    from rag_service.evaluation.run import Steps

    with progress_bar(Console(stderr=True)) as bar:
        yield Steps(bar)


def choose_corpora(there: Sequence[N], name: str) -> list[N]:
    """Return the corpora of a name or id. Raises InputError if there is none."""
    if found := [one for one in there if name in (one.name, str(one.id))]:
        return found
    known = ", ".join(sorted({one.name for one in there})) or "none"
    raise InputError(f"There is no corpus {name!r}. There are: {known}.", field="corpus")

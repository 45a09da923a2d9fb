"""The embedded PostgreSQL stops with the last process that holds it, however the others ended."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from rag_service.errors import ConfigurationError
from rag_service.store import embedded
from tests.doubles.ollama import OllamaDouble
from tests.serving import wait_until
from tests.soak.rig import running_server

pytestmark = pytest.mark.slow

HOLD = """
import asyncio, sys
from pathlib import Path
from rag_service.store.embedded import start_embedded_server
asyncio.run(start_embedded_server(Path(sys.argv[1])))
print("joined", flush=True)
sys.stdin.read()
"""
LONG = """
import asyncio, signal, sys, time
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # the tests may run under nohup, whose children ignore it
from pathlib import Path
from rag_service.cli import running
from rag_service.store.embedded import start_embedded_server
async def work():
    await start_embedded_server(Path(sys.argv[1]))
    print("joined", flush=True)
    await {waits}
running._FAREWELL_SECONDS = 0.3
running.run_command(work())
"""


@pytest.fixture
def folder() -> Iterator[Path]:
    made = Path(tempfile.mkdtemp())  # not pytest's, which is closed to the user that the server runs as
    made.chmod(0o755)
    yield made
    postmaster = made / "postgres" / "postmaster.pid"
    if postmaster.exists():
        os.kill(int(postmaster.read_text().split()[0]), signal.SIGQUIT)
    shutil.rmtree(made, ignore_errors=True)


def holder(folder: Path, program: str = HOLD) -> subprocess.Popen[str]:
    """A process that has joined the folder's server."""
    process = subprocess.Popen(
        [sys.executable, "-c", program, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "joined\n"
    return process


def leave(process: subprocess.Popen[str]) -> None:
    process.communicate("", timeout=60)
    assert process.returncode == 0


def runs(folder: Path) -> bool:
    return (folder / "postgres" / "postmaster.pid").exists()


async def test_a_service_told_to_stop_stops_its_database(folder: Path, ollama: OllamaDouble) -> None:
    settings = {
        "data_dir": folder,
        "chat_provider": "ollama",
        "embedding_provider": "ollama",
        "embedding_model": "nomic-embed-text",
        "ollama_url": ollama.url,
        "fit_relevance": False,
    }
    async with running_server(folder / "server.log", **settings) as rig:
        assert runs(folder)
        rig.server.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(rig.server.wait(), 120) == -signal.SIGTERM
        assert not runs(folder), rig.log.read_text()


@pytest.mark.parametrize("waits", ["asyncio.sleep(600)", "asyncio.to_thread(time.sleep, 600)"])
@pytest.mark.parametrize("name", [signal.SIGTERM, signal.SIGHUP])
def test_any_command_told_to_stop_stops_the_database_and_waits_for_no_thread(
    folder: Path, waits: str, name: signal.Signals
) -> None:
    with holder(folder, LONG.format(waits=waits)) as process:
        process.send_signal(name)
        assert process.wait(120) == -signal.SIGTERM  # the thread would take ten minutes
    assert not runs(folder)


def test_a_killed_process_holds_the_database_no_longer(folder: Path) -> None:
    with holder(folder) as killed, holder(folder) as other:
        killed.kill()
        killed.wait()
        assert runs(folder)
        leave(other)  # which joined while the killed one was alive
    assert not runs(folder)


def test_the_next_one_that_joins_clears_up_after_a_killed_process(folder: Path) -> None:
    with holder(folder) as killed:
        killed.kill()
    assert runs(folder)
    with holder(folder) as first, holder(folder) as second:
        leave(first)
        assert runs(folder)  # the second one still holds it
        leave(second)
    assert not runs(folder)


def test_a_process_ends_quietly_after_its_database_was_killed(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with holder(folder) as process:
        postmaster = int((folder / "postgres" / "postmaster.pid").read_text().split()[0])
        os.kill(postmaster, signal.SIGKILL)
        wait_until(lambda: not embedded._is_running(postmaster, None))
        leave(process)
    (folder / "postgres" / "postmaster.pid").unlink(missing_ok=True)  # which a killed one leaves behind
    assert "Traceback" not in capfd.readouterr().err


def test_a_server_that_crashes_is_started_again(folder: Path) -> None:
    program = HOLD.replace("print(", "kept = embedded.kept_running()\nkept.__enter__()\nprint(")
    with holder(folder, f"from rag_service.store import embedded\n{program}") as process:
        file = folder / "postgres" / "postmaster.pid"
        crashed = file.read_text().split()[0]
        os.kill(int(crashed), signal.SIGKILL)

        def is_new() -> bool:
            try:
                text = file.read_text()
            except FileNotFoundError:  # between one server and the next
                return False
            return text.split()[:1] != [crashed] and "ready" in text

        wait_until(is_new)
        leave(process)
    assert not runs(folder)


def test_an_id_that_another_process_got_after_a_restart_holds_nothing(folder: Path) -> None:
    with holder(folder) as process:
        leave(process)
    listed = folder / "postgres" / ".handle_pids.json"
    listed.write_text(f"[{os.getppid()}, {os.getpid()}]")
    long_ago = time.time() - 10 * 365 * 86400
    os.utime(listed, (long_ago, long_ago))  # before the processes of today
    with holder(folder) as process:
        assert listed.read_text() == f"[{process.pid}]"
        leave(process)
    assert not runs(folder)


def test_a_process_that_lives_stays_on_the_list() -> None:
    assert embedded._is_running(os.getpid(), None)
    assert embedded._is_running(os.getpid(), time.time())
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        wait_until(lambda: Path(f"/proc/{ended.pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z")
        assert not embedded._is_running(ended.pid, None)  # ended, though its parent has not asked how


def test_a_folder_is_used_in_one_container_at_a_time(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second server would start on the same files, because it does not see the process of the first."""
    process = holder(folder)
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(embedded, "_joined", [])  # those of other tests are not left with it
        elsewhere.setattr(embedded, "_world", lambda: "another container")
        with pytest.raises(ConfigurationError, match="another container or on another machine"):
            asyncio.run(embedded.start_embedded_server(folder))
        leave(process)
        asyncio.run(embedded.start_embedded_server(folder))
        embedded.leave_embedded_servers()
    leave(holder(folder))
    assert not runs(folder)

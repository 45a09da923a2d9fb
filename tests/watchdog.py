"""Ends what a killed test run leaves behind: servers, browsers, and the folder of the database.

`python -m tests.watchdog RUN PROCESS` waits until the process that started the run has ended, for whatever reason, and
then until its children have had time to end by themselves. All processes of a run carry its id in their environment.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil

VARIABLE = "TEST_RUN_OF_RAG_SERVICE"  # inherited by every process that a test starts
GRACE_SECONDS = 10.0  # for workers that end by themselves


def folder_of(run: str) -> Path:
    """Where the run's database is. Not in pytest's folder: as root, the database's server runs as another user."""
    return Path(tempfile.gettempdir()) / f"rag-tests-{run}"


def start_watchdog(run: str) -> None:
    """Watch this process; the watchdog outlives it."""
    subprocess.run(
        [sys.executable, "-m", "tests.watchdog", run, str(os.getpid())],
        cwd=Path(__file__).parents[1],
        env={name: value for name, value in os.environ.items() if name != VARIABLE},
        start_new_session=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=True,
    )


def processes_of(run: str) -> Iterator[psutil.Process]:
    """The processes that carry the run's id or serve a database in its folder."""
    folder = str(folder_of(run))
    for process in psutil.process_iter():
        try:
            if process.environ().get(VARIABLE) == run or any(folder in word for word in process.cmdline()):
                yield process
        except (psutil.Error, OSError):  # it has ended, or belongs to somebody else
            continue


def clean_up(run: str, *, grace_seconds: float = GRACE_SECONDS) -> None:
    """End the run's processes, gently at first, and remove its folder."""
    patience = time.monotonic() + grace_seconds
    while any(processes_of(run)) and time.monotonic() < patience:
        time.sleep(0.5)
    left = [process for process in processes_of(run) if process.pid != os.getpid()]
    for process in left:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(left, timeout=grace_seconds)  # until then they may write
    shutil.rmtree(folder_of(run), ignore_errors=True)
    folder_of(run).with_suffix(".lock").unlink(missing_ok=True)


def main() -> None:
    run, process = sys.argv[1], int(sys.argv[2])
    if os.fork():  # whoever starts it need not wait
        os._exit(0)
    while psutil.pid_exists(process):
        time.sleep(1)
    clean_up(run)


if __name__ == "__main__":
    main()

"""A test run that is killed leaves no process and no folder behind."""

from __future__ import annotations

import os
import subprocess
import sys
import uuid
from pathlib import Path

import pytest

from tests.serving import wait_until
from tests.watchdog import GRACE_SECONDS, VARIABLE, folder_of, processes_of

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("workers", ["0", "2"])
def test_a_killed_run_leaves_nothing(tmp_path: Path, checkout: Path, workers: str) -> None:
    run = uuid.uuid4().hex
    sleeping = tmp_path / "test_sleeping.py"
    sleeping.write_text(
        "import time\ndef test_it(postgres): time.sleep(600)\ndef test_too(postgres): time.sleep(600)\n"
    )
    started = subprocess.Popen(
        [sys.executable, "-m", "pytest", "-p", "tests.conftest", "-n", workers, "--rootdir", str(tmp_path), sleeping],
        cwd=checkout,
        env={**os.environ, VARIABLE: run},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_until(lambda: (folder_of(run) / "postgres" / "postmaster.pid").exists(), 300)
    finally:
        started.kill()
        started.wait()
    wait_until(lambda: not any(processes_of(run)) and not folder_of(run).exists(), GRACE_SECONDS + 180)
    assert not any(processes_of(run))
    assert not folder_of(run).exists()

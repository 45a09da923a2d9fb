"""What a reader's process and its children cannot do, however they were started."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

# A new process in its own session or group would outlive the run, which ends by killing the group.
TRIED = """
import ctypes, os, socket
from rag_service.readers.seccomp import confine
ctypes.CDLL(None).prctl(38, 1, 0, 0, 0)  # PR_SET_NO_NEW_PRIVS, without which the kernel takes no filter
confine()
if child := os.fork():
    os.waitpid(child, 0)
else:
    for attempt in (os.setsid, lambda: os.setpgid(0, 0), lambda: socket.socket(socket.AF_UNIX), socket.socket):
        try:
            print(attempt() is not None)
        except PermissionError:
            print("refused")
"""


@pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() not in ("x86_64", "aarch64"), reason="filters of Linux"
)
def test_no_process_of_a_reader_leaves_its_group_or_opens_a_unix_socket() -> None:
    done = subprocess.run([sys.executable, "-c", TRIED], capture_output=True, text=True, check=True, timeout=30)
    assert done.stdout.split() == ["refused", "refused", "refused", "True"]

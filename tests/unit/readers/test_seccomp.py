"""What a reader's process and its children cannot do, however they were started."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

# A new process in its own session or group would outlive the run, which ends by killing the group.
TRIED = """
import ctypes, os, resource, socket, sys, tempfile
from rag_service.readers.seccomp import confine
file = tempfile.NamedTemporaryFile()
ctypes.CDLL(None).prctl(38, 1, 0, 0, 0)  # PR_SET_NO_NEW_PRIVS, without which the kernel takes no filter
confine(network="reader" in sys.argv, changes_attributes="reader" in sys.argv)
if child := os.fork():
    os.waitpid(child, 0)
else:
    attempts = {
        "setsid": os.setsid,
        "setpgid": lambda: os.setpgid(0, 0),
        "unix": lambda: socket.socket(socket.AF_UNIX),
        "TCP": socket.socket,
        "UDP": lambda: socket.socket(type=socket.SOCK_DGRAM),
        "socket pair": socket.socketpair,
        "own limits": lambda: resource.prlimit(0, resource.RLIMIT_CORE, (0, 0)),
        "limits of the parent": lambda: resource.prlimit(os.getppid(), resource.RLIMIT_CORE, (0, 0)),
        "mode": lambda: os.chmod(file.name, 0o777),
        "mode of an open file": lambda: os.fchmod(file.fileno(), 0o777),
        "owner": lambda: os.chown(file.name, -1, os.getgid()),
        "times": lambda: os.utime(file.name, (0, 0)),
        "attribute": lambda: os.setxattr(file.name, "user.a", b"1"),
    }
    for name, attempt in attempts.items():
        try:
            attempt()
        except PermissionError:
            print(name, flush=True)
        except OSError:  # not every file system has attributes
            pass
"""


NEVER = ["setsid", "setpgid", "unix", "limits of the parent"]
DOCUMENTS = ["setsid", "setpgid", "unix", "TCP", "UDP", "limits of the parent"]
ATTRIBUTES = ["mode", "mode of an open file", "owner", "times", "attribute"]


@pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() not in ("x86_64", "aarch64"), reason="filters of Linux"
)
@pytest.mark.parametrize(("argument", "refused"), [("", [*DOCUMENTS, *ATTRIBUTES]), ("reader", NEVER)])
def test_no_process_leaves_its_group_reaches_others_or_changes_files(argument: str, refused: list[str]) -> None:
    command = [sys.executable, "-c", TRIED, argument]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=30)
    assert done.stdout.splitlines() == refused

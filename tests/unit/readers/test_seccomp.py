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
IOPRIO_SET, SCHED_SETATTR, KEYCTL, SHMCTL, SEMCTL, MSGCTL, MQ_OPEN = {
    "x86_64": (251, 314, 250, 31, 66, 71, 240),
    "aarch64": (30, 274, 219, 195, 191, 187, 180),
}[os.uname().machine]
libc = ctypes.CDLL(None, use_errno=True)
def call(*arguments):
    if libc.syscall(*arguments) < 0:
        raise OSError(ctypes.get_errno(), "refused")
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
        # None of these reaches further than the parent, or changes much, if the filter fails to stop it.
        "own priority": lambda: os.nice(1),
        "priority of the parent": lambda: os.setpriority(os.PRIO_PROCESS, os.getppid(), 19),
        "processors of the parent": lambda: os.sched_setaffinity(os.getppid(), os.sched_getaffinity(0)),
        "scheduler of the parent": lambda: os.sched_setscheduler(os.getppid(), os.SCHED_IDLE, os.sched_param(0)),
        "parameters of the parent": lambda: os.sched_setparam(os.getppid(), os.sched_param(0)),
        "reading and writing of the parent": lambda: call(IOPRIO_SET, 1, os.getppid(), 3 << 13),
        "attributes of the parent's scheduling": lambda: call(SCHED_SETATTR, os.getppid(), bytes(48), 0),
        "keyrings": lambda: call(KEYCTL, 0, -3, 0),  # the id of the session's
        "shared memory": lambda: call(SHMCTL, 0, 3, bytes(512)),  # IPC_INFO, likewise the next two
        "semaphores": lambda: call(SEMCTL, 0, 0, 3, bytes(512)),
        "queues": lambda: call(MSGCTL, 0, 3, bytes(512)),
        "queues with a name": lambda: call(MQ_OPEN, b"of-nobody", 0, 0, None),
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


SCHEDULING = [
    "own priority",
    "priority of the parent",
    "processors of the parent",
    "scheduler of the parent",
    "parameters of the parent",
    "reading and writing of the parent",
    "attributes of the parent's scheduling",
]
SHARING = ["keyrings", "shared memory", "semaphores", "queues", "queues with a name"]
NEVER = ["setsid", "setpgid", "unix", "limits of the parent", *SCHEDULING, *SHARING]
DOCUMENTS = ["setsid", "setpgid", "unix", "TCP", "UDP", "limits of the parent", *SCHEDULING, *SHARING]
ATTRIBUTES = ["mode", "mode of an open file", "owner", "times", "attribute"]


@pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() not in ("x86_64", "aarch64"), reason="filters of Linux"
)
@pytest.mark.parametrize(("argument", "refused"), [("", [*DOCUMENTS, *ATTRIBUTES]), ("reader", NEVER)])
def test_no_process_leaves_its_group_reaches_others_or_changes_files(argument: str, refused: list[str]) -> None:
    command = [sys.executable, "-c", TRIED, argument]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout.splitlines() == refused

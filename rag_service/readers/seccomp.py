"""Takes system calls away from this process that Landlock leaves to it.

Unix sockets with a path lead to databases. A process in a session or group of its own would outlive the run: it is
ended by killing its group.

A filter of system calls that needs no privilege once new ones are ruled out. Socket pairs stay: event loops need them.
https://docs.kernel.org/userspace-api/seccomp_filter.html
"""

from __future__ import annotations

import ctypes
import errno
import platform
import socket
import struct
import sys

_PR_SET_SECCOMP, _MODE_FILTER = 22, 2
_ALLOW, _FAIL = 0x7FFF0000, 0x00050000 | errno.EACCES
# By machine: its number in the kernel's audit, and those of the system calls `socket`, `setsid` and `setpgid`.
_MACHINES = {"x86_64": (0xC000003E, 41, 112, 109), "aarch64": (0xC00000B7, 198, 157, 154)}
_LOAD, _JUMP_IF_EQUAL, _JUMP_IF_AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_CALL, _MACHINE, _FIRST_ARGUMENT = 0, 4, 16  # offsets in what the filter sees
_X32 = 0x40000000  # from here on, the calls of another table, which has all of them again


def confine() -> None:
    """Make `socket(AF_UNIX, …)`, `setsid` and `setpgid` fail in this process and its children, for good, where the
    kernel can (Linux)."""
    if sys.platform != "linux" or platform.machine() not in _MACHINES:
        return
    machine, socket_call, setsid, setpgid = _MACHINES[platform.machine()]
    steps = (
        (_LOAD, 0, 0, _MACHINE),
        (_JUMP_IF_EQUAL, 0, 8, machine),
        (_LOAD, 0, 0, _CALL),
        (_JUMP_IF_AT_LEAST, 6, 0, _X32),
        (_JUMP_IF_EQUAL, 5, 0, setsid),
        (_JUMP_IF_EQUAL, 4, 0, setpgid),
        (_JUMP_IF_EQUAL, 0, 2, socket_call),
        (_LOAD, 0, 0, _FIRST_ARGUMENT),
        (_JUMP_IF_EQUAL, 1, 0, socket.AF_UNIX),
        (_RETURN, 0, 0, _ALLOW),
        (_RETURN, 0, 0, _FAIL),
    )
    code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *step) for step in steps))
    program = struct.pack("@HP", len(steps), ctypes.addressof(code))
    ctypes.CDLL(None).prctl(_PR_SET_SECCOMP, _MODE_FILTER, program, 0, 0)

"""Takes system calls away from this process that Landlock leaves to it.

Unix sockets with a path lead to databases. A process in a session or group of its own would outlive the run: it is
ended by killing its group. A ring of io_uring makes calls, `socket` among them, that no filter sees.

A filter of system calls that needs no privilege once new ones are ruled out. Socket pairs stay: event loops need them.
https://docs.kernel.org/userspace-api/seccomp_filter.html
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
import sys
from functools import cache

_PR_SET_SECCOMP, _MODE_FILTER = 22, 2
_ALLOW, _FAIL = 0x7FFF0000, 0x00050000 | errno.EACCES
_AF_UNIX, _IO_URING_SETUP = 1, 425  # the same on every architecture
# By machine: its number in the kernel's audit, and those of the system calls `socket`, `setsid` and `setpgid`.
_MACHINES = {"x86_64": (0xC000003E, 41, 112, 109), "aarch64": (0xC00000B7, 198, 157, 154)}
_LOAD, _JUMP_IF_EQUAL, _JUMP_IF_AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_CALL, _MACHINE, _FIRST_ARGUMENT = 0, 4, 16  # offsets in what the filter sees
_X32 = 0x40000000  # from here on, the calls of another table, which has all of them again


@cache
def can_filter_calls() -> bool:
    """Whether the kernel filters system calls, and this module knows those of the machine."""
    if sys.platform != "linux" or os.uname().machine not in _MACHINES:
        return False
    # A kernel that can tries to read the filter, and there is none at this address.
    return _set_filter(None) == errno.EFAULT


def confine() -> None:
    """Make `socket(AF_UNIX, …)`, `setsid`, `setpgid` and `io_uring_setup` fail in this process and its children, for
    good, where the kernel can.

    Raises OSError if the kernel refuses.
    """
    if not can_filter_calls():
        return
    machine, socket_call, *denied = *_MACHINES[os.uname().machine], _IO_URING_SETUP
    fail = len(denied) + 8  # number of the last step
    steps = (
        (_LOAD, 0, 0, _MACHINE),
        (_JUMP_IF_EQUAL, 0, fail - 2, machine),
        (_LOAD, 0, 0, _CALL),
        (_JUMP_IF_AT_LEAST, fail - 4, 0, _X32),
        *((_JUMP_IF_EQUAL, fail - number - 1, 0, call) for number, call in enumerate(denied, start=4)),
        (_JUMP_IF_EQUAL, 0, 2, socket_call),
        (_LOAD, 0, 0, _FIRST_ARGUMENT),
        (_JUMP_IF_EQUAL, 1, 0, _AF_UNIX),
        (_RETURN, 0, 0, _ALLOW),
        (_RETURN, 0, 0, _FAIL),
    )
    code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *step) for step in steps))
    if refused := _set_filter(struct.pack("@HP", len(steps), ctypes.addressof(code))):
        raise OSError(refused, os.strerror(refused))


def _set_filter(program: bytes | None) -> int:
    """The number of the error; 0 if there is none."""
    libc = ctypes.CDLL(None, use_errno=True)
    return ctypes.get_errno() if libc.prctl(_PR_SET_SECCOMP, _MODE_FILTER, program, 0, 0) else 0

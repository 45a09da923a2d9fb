"""Takes system calls away from this process that Landlock leaves to it.

Unix sockets with a path lead to databases, and those of UDP and VSOCK out of the machine. A process in a session or
group of its own would outlive the run: it is ended by killing its group. A ring of io_uring makes calls, `socket` among
them, that no filter sees. A process of the same user may set the limits of another: with none of its processor time
left, the service would be killed. It may also set the priority and the processors of another, and slow it down for
good: only root may raise a priority again. Keyrings, and the shared memory, semaphores and queues of System V, have no
path: what they hold of the same user could become the text of a document. `chmod` and its kin need no right to the file
itself, and would let other users of the machine read a secret.

A filter of system calls that needs no privilege once new ones are ruled out. Pairs of stream sockets stay: event loops
need them. One of a pair for datagrams would send to any path, such as /dev/log.
https://docs.kernel.org/userspace-api/seccomp_filter.html
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
import sys
from dataclasses import dataclass
from functools import cache

from rag_service.readers.landlock import libc

_PR_SET_SECCOMP, _MODE_FILTER = 22, 2
_ALLOW, _FAIL = 0x7FFF0000, 0x00050000 | errno.EACCES
_AF_UNIX, _OWN_PROCESS, _SOCK_STREAM = 1, 0, 1


@dataclass(frozen=True, kw_only=True)
class _Machine:
    """Numbers of an architecture."""

    audit: int  # its own
    socket: int
    socketpair: int
    prlimit: int
    leaving: tuple[int, ...]  # setsid, setpgid
    # setpriority, sched_setparam, sched_setscheduler, sched_setaffinity, ioprio_set, sched_setattr
    scheduling: tuple[int, ...]
    # add_key, request_key, keyctl; shmget, shmctl, shmat; semget, semop, semctl, semtimedop; msgget, msgsnd, msgrcv,
    # msgctl; mq_open, mq_unlink
    sharing: tuple[int, ...]
    # fchmod, fchmodat, fchownat, fchown, utimensat, setxattr and removexattr in three forms each; then, where there
    # are, the older chmod, chown, lchown, utime, utimes, futimesat
    attributes: tuple[int, ...]


_MACHINES = {
    "x86_64": _Machine(
        audit=0xC000003E,
        socket=41,
        socketpair=53,
        prlimit=302,
        leaving=(112, 109),
        scheduling=(141, 142, 144, 203, 251, 314),
        sharing=(248, 249, 250, 29, 31, 30, 64, 65, 66, 220, 68, 69, 70, 71, 240, 241),
        attributes=(91, 268, 260, 93, 280, 188, 189, 190, 197, 198, 199, 90, 92, 94, 132, 235, 261),
    ),
    "aarch64": _Machine(
        audit=0xC00000B7,
        socket=198,
        socketpair=199,
        prlimit=261,
        leaving=(157, 154),
        scheduling=(140, 118, 119, 122, 30, 274),
        sharing=(217, 218, 219, 194, 195, 196, 190, 193, 191, 192, 186, 189, 188, 187, 180, 181),
        attributes=(52, 53, 54, 55, 88, 5, 6, 7, 14, 15, 16),
    ),
}
# The same on every architecture.
_IO_URING_SETUP = 425
_NEW_ATTRIBUTES = (452, 463, 466, 469)  # fchmodat2, setxattrat, removexattrat, file_setattr
_LOAD, _JUMP_IF_EQUAL, _JUMP_IF_AT_LEAST, _RETURN, _AND = 0x20, 0x15, 0x35, 0x06, 0x54
_CALL, _MACHINE, _FIRST_ARGUMENT, _SECOND_ARGUMENT = 0, 4, 16, 24  # offsets in what the filter sees
_TYPE = 0xF  # of a socket, without flags
_STEP = "=HBBI"
_X32 = 0x40000000  # from here on, the calls of another table, which has all of them again


@cache
def can_filter_calls() -> bool:
    """Whether the kernel filters system calls, and this module knows those of the machine."""
    if sys.platform != "linux" or os.uname().machine not in _MACHINES:
        return False
    # A kernel that can tries to read the filter, and there is none at this address.
    return _set_filter(None) == errno.EFAULT


def confine(*, network: bool = False, changes_attributes: bool = False) -> None:
    """Make calls fail in this process and its children, for good, where the kernel can.

    These are `socket`, `socketpair` of anything but streams, `setsid`, `setpgid`, `io_uring_setup`, `prlimit` of other
    processes, changes of the priority and the processors of any process, keyrings, shared memory, semaphores and queues
    without a path, and changes of a file's mode, owner, times and extended attributes.

    With `network`, only Unix sockets fail; with `changes_attributes`, files can be changed.

    Raises OSError if the kernel refuses.
    """
    if not can_filter_calls():
        return
    code = compile_filter(network=network, changes_attributes=changes_attributes)
    steps = len(code) // struct.calcsize(_STEP)
    if refused := _set_filter(struct.pack("@HP", steps, ctypes.addressof(code))):
        raise OSError(refused, os.strerror(refused))


@cache
def compile_filter(*, network: bool = False, changes_attributes: bool = False) -> ctypes.Array[ctypes.c_char]:
    """Return the filter of `confine` as the kernel reads it. A process that forks makes it once for all children."""
    machine = _MACHINES[os.uname().machine]
    denied = (*machine.leaving, *machine.scheduling, *machine.sharing, _IO_URING_SETUP)
    if not network:
        denied += (machine.socket,)
    if not changes_attributes:
        denied += (*machine.attributes, *_NEW_ATTRIBUTES)
    fail = len(denied) + 15  # number of the last step
    steps = (
        (_LOAD, 0, 0, _MACHINE),
        (_JUMP_IF_EQUAL, 0, fail - 2, machine.audit),
        (_LOAD, 0, 0, _CALL),
        (_JUMP_IF_AT_LEAST, fail - 4, 0, _X32),
        *((_JUMP_IF_EQUAL, fail - number - 1, 0, call) for number, call in enumerate(denied, start=4)),
        (_JUMP_IF_EQUAL, 7, 0, machine.prlimit),
        (_JUMP_IF_EQUAL, 1, 0, machine.socket),
        (_JUMP_IF_EQUAL, 2, 7, machine.socketpair),
        (_LOAD, 0, 0, _FIRST_ARGUMENT),
        (_JUMP_IF_EQUAL, 6, 5, _AF_UNIX),
        (_LOAD, 0, 0, _SECOND_ARGUMENT),
        (_AND, 0, 0, _TYPE),
        (_JUMP_IF_EQUAL, 2, 3, _SOCK_STREAM),
        (_LOAD, 0, 0, _FIRST_ARGUMENT),
        (_JUMP_IF_EQUAL, 0, 1, _OWN_PROCESS),
        (_RETURN, 0, 0, _ALLOW),
        (_RETURN, 0, 0, _FAIL),
    )
    code = b"".join(struct.pack(_STEP, *step) for step in steps)
    return ctypes.create_string_buffer(code, len(code))


def _set_filter(program: bytes | None) -> int:
    """The number of the error; 0 if there is none."""
    return ctypes.get_errno() if libc().prctl(_PR_SET_SECCOMP, _MODE_FILTER, program, 0, 0) else 0

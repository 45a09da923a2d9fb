"""Takes the file system, TCP, and signals to other processes away from this process: Landlock of Linux 5.13 and later.

No privilege is needed, and root is bound as well. What an older kernel does not know is left out. Landlock knows
neither Unix sockets with a path nor `chmod`; `seccomp` does. https://docs.kernel.org/userspace-api/landlock.html
"""

from __future__ import annotations

import ctypes
import os
import stat
import struct
import sys
from collections.abc import Iterable
from functools import cache

# The same numbers on every architecture.
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION_FLAG, _PATH_BENEATH = 1, 1
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR, _MAKE_SOCKET = 1, 1 << 1, 1 << 2, 1 << 3, 1 << 9
_CONNECT_TCP = 1 << 1
# By version: all rights to files that it knows, to TCP, and what may be kept inside (abstract sockets, signals).
_FILE_RIGHTS = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 5: (1 << 16) - 1}
_TCP_RIGHTS, _SCOPES = {0: 0, 4: 0b11}, {0: 0, 6: 0b11}


@cache
def landlock_version() -> int:
    """The version that the kernel offers; 0 if there is none."""
    if sys.platform != "linux":
        return 0
    return max(0, int(libc().syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), _VERSION_FLAG)))


def restrict_to(
    readable: Iterable[str],
    *,
    writable: Iterable[str] = (),
    sockets: Iterable[str] = (),
    runs_programs: bool = False,
    network: bool = False,
) -> None:
    """Allow nothing but reading these files and folders, for good, where the kernel has Landlock.

    Nothing can be written, made or deleted but in `writable`, and in `sockets` only sockets can be made. Nothing is
    executed unless it `runs_programs`, and then only what is in `readable`. With `network`, TCP connections can be
    opened, but not accepted. Raises OSError if the kernel refuses.
    """
    if not landlock_version():
        return
    enforce(build_ruleset(readable, writable=writable, sockets=sockets, runs_programs=runs_programs, network=network))


def build_ruleset(
    readable: Iterable[str],
    *,
    writable: Iterable[str] = (),
    sockets: Iterable[str] = (),
    runs_programs: bool = False,
    network: bool = False,
) -> int:
    """Return a descriptor of the rules of `restrict_to`, for `enforce`; the kernel must have Landlock."""
    version = landlock_version()
    newest = [rights[max(n for n in rights if n <= version)] for rights in (_FILE_RIGHTS, _TCP_RIGHTS, _SCOPES)]
    if network:
        newest[1] &= ~_CONNECT_TCP
    attributes = struct.pack("=QQQ", *newest)[: 8 if version < 4 else 16 if version < 6 else 24]
    ruleset = _checked(libc().syscall(_CREATE_RULESET, attributes, ctypes.c_size_t(len(attributes)), 0))
    reading = _READ_FILE | _READ_DIR | (_EXECUTE if runs_programs else 0)
    rules = [(path, reading) for path in readable] + [(path, newest[0] & ~_EXECUTE) for path in writable]
    for path, rights in (*rules, *((path, _MAKE_SOCKET) for path in sockets)):
        try:
            beneath = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except OSError:  # not on this system
            continue
        if not stat.S_ISDIR(os.fstat(beneath).st_mode):
            rights &= _EXECUTE | _WRITE_FILE | _READ_FILE
        _checked(libc().syscall(_ADD_RULE, ruleset, _PATH_BENEATH, struct.pack("=Qi", rights, beneath), 0))
        os.close(beneath)
    return ruleset


def enforce(ruleset: int) -> None:
    """Restrict this process by rules, for good, and close them."""
    _checked(libc().syscall(_RESTRICT_SELF, ruleset, 0))
    os.close(ruleset)


@cache
def libc() -> ctypes.CDLL:
    """The C library of this process."""
    loaded = ctypes.CDLL(None, use_errno=True)
    loaded.syscall.restype = ctypes.c_long
    return loaded


def _checked(result: int) -> int:
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result

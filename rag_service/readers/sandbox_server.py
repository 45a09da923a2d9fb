"""Forks the children of the sandbox: starting an interpreter and loading the readers takes many times as long.

Started by `fork_server` in a bare interpreter, as a child is. It is told limits and given the sockets of each file,
which it passes on, so it never holds a byte of any document. It has no environment, no capability, no network and one
thread. Each child reads one file and ends.
"""

from __future__ import annotations

import gc
import importlib
import os
import resource
import selectors
import signal
import socket
import sys
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import NoReturn

from rag_service.readers.landlock import build_ruleset, landlock_version
from rag_service.readers.parse import parse, reader_modules
from rag_service.readers.sandbox_child import (
    OWN_PROCESS,
    SYSTEM_FILES,
    answer_request,
    drop_privileges,
    forbid_needless_modules,
    importable,
)
from rag_service.readers.seccomp import can_filter_calls, compile_filter

_MEMORY = 1024**3  # bytes of address space at which this process ends, and is replaced; 150 MB are usual
_IDLE_SECONDS = 60.0  # without a file; then this process ends, and the next file starts another
_PAYS_AFTER = 3  # files: loading all readers takes as long as what it saves so many children
_RULESET = 3  # descriptor of Landlock's rules in each child
_SAMPLE = b"# Title\n\nSome words, and more.\n\n- a list\n"  # parsed once: then the commonest formats are prepared
_MESSAGE = 100  # bytes, more than a request for a child has


def main() -> None:
    """Entry point. Stdin is the socket of requests."""
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY if hard == resource.RLIM_INFINITY else min(_MEMORY, hard), hard))
    drop_privileges(network=False)
    forbid_needless_modules()
    ForkServer(socket.socket(fileno=0)).run()


@dataclass
class ForkServer:
    """Forks until nobody listens any longer and no child is left."""

    requests: socket.socket
    ruleset: int | None = None  # of Landlock, for the children
    forked: int = 0  # children, so far
    selector: selectors.BaseSelector = field(default_factory=selectors.DefaultSelector)

    def run(self) -> None:
        """Serve; after the first few files load the readers, whenever there is nothing else to do."""
        if landlock_version():
            self.ruleset = build_ruleset([*(one for one in SYSTEM_FILES if one != OWN_PROCESS), *importable(None)])
        if can_filter_calls():
            compile_filter()
        self.selector.register(self.requests, selectors.EVENT_READ, self.fork)
        to_load: list[Callable[[], object]] = [partial(importlib.import_module, name) for name in reader_modules()]
        to_load += [partial(parse, _SAMPLE, file_name=f"a.{ending}") for ending in ("txt", "md", "csv", "html")]
        while self.selector.get_map():
            pays = bool(to_load) and self.forked >= _PAYS_AFTER
            ready = self.selector.select(0 if pays else _IDLE_SECONDS)
            for key, _ in ready:
                if self.selector.get_map().get(key.fd) is key:  # not ended by an earlier one of these
                    key.data()
            if ready:
                continue
            if pays:
                to_load.pop(0)()
                gc.freeze()  # a collection in a child would copy all that it looks at
            elif len(self.selector.get_map()) == 1:
                return

    def fork(self) -> None:
        """Fork one child, as the next message asks: its memory, CPU seconds and open files."""
        message, descriptors, _, _ = socket.recv_fds(self.requests, _MESSAGE, 4)
        if not message:
            self.selector.unregister(self.requests)
            return
        server, pid = os.getpid(), None
        # Where descriptors, processes or memory are short, the service sees that no child ended.
        with suppress(OSError):
            if len(descriptors) == 4:
                pid = os.fork()
                self.forked += 1
        if pid == 0:
            become_child(message, descriptors, server, self.ruleset)
        control = descriptors.pop() if pid else None
        for descriptor in descriptors:
            os.close(descriptor)
        if pid and control:
            ended = os.pidfd_open(pid)
            self.selector.register(control, selectors.EVENT_READ, partial(self.stop, pid, control))
            self.selector.register(ended, selectors.EVENT_READ, partial(self.report, pid, ended, control))

    def stop(self, pid: int, control: int) -> None:
        """End a child for which nobody waits any longer."""
        self.selector.unregister(control)
        kill(pid)

    def report(self, pid: int, ended: int, control: int) -> None:
        """Tell how a child ended, and end whatever it left behind."""
        kill(pid)  # while it is not reaped, no other process can have its number
        _, status = os.waitpid(pid, 0)
        with suppress(OSError):  # nobody waits any longer
            os.write(control, str(os.waitstatus_to_exitcode(status)).encode())
        for descriptor in (ended, control):
            if descriptor in self.selector.get_map():
                self.selector.unregister(descriptor)
            os.close(descriptor)


def kill(pid: int) -> None:
    """Kill a child and its group, which it makes first of all."""
    for end in (os.killpg, os.kill):
        with suppress(ProcessLookupError):
            end(pid, signal.SIGKILL)


def become_child(message: bytes, descriptors: Sequence[int], server: int, ruleset: int | None) -> NoReturn:
    """Leave everything that is the server's, and answer."""
    try:
        os.setsid()
        for number, descriptor in enumerate(descriptors[:3]):
            os.dup2(descriptor, number)
        if ruleset is not None:
            os.dup2(ruleset, _RULESET)
        os.closerange(_RULESET if ruleset is None else _RULESET + 1, os.sysconf("SC_OPEN_MAX"))
        memory, cpu_seconds, open_files = map(int, message.split())
        answer_request(
            memory,
            cpu_seconds,
            open_files,
            server,
            ruleset=None if ruleset is None else _RULESET,
            network=can_filter_calls(),
        )
    except SystemExit:
        pass
    except BaseException:  # noqa: BLE001 - as an interpreter does
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(1)

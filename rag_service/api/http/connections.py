"""Open connections: how many there may be of a network, and how long one may stay open without a request.

uvicorn ends a connection that is idle after a reply. It waits for ever for a first request, for the rest of a head, and
for the rest of a body that nobody reads. Between the head of a request and the end of its reply nothing here applies:
a stream may be silent for hours, and whoever reads a body or waits in a queue has limits of its own.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any

import structlog
from uvicorn.protocols.http.auto import AutoHTTPProtocol
from uvicorn.protocols.utils import get_remote_addr

from rag_service.api.http.bodies import MIN_RATE
from rag_service.api.http.proxies import is_among
from rag_service.auth.sign_in import network_of
from rag_service.settings import Settings

try:
    import resource
except ImportError:  # Windows, which has no such limit
    resource = None  # type: ignore[assignment]

log = structlog.get_logger(__name__)

_OTHER_FILES = 500  # that the process opens besides: of its database, models, readers and originals
_QUIET_SECONDS = 1.0  # for which a connection has had no request before it gives its place to a new one
_LOG_SECONDS = 60.0  # between two lines about refused connections
_TIMEOUT = b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
_FULL = (
    b"HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nRetry-After: 1\r\n"
    b"Content-Type: text/plain; charset=utf-8\r\nContent-Length: 48\r\n\r\n"
    b"Too many connections are open. Try again shortly"
)


class Connections:
    """The open connections of a server. `rag_service.cli.server` calls `tick` every second."""

    def __init__(self, settings: Settings):
        self._most = _make_room(settings.http.connections)
        self._trusted = settings.http.proxies
        self._patience = settings.http.head_seconds
        self._open: dict[str, set[_Connection]] = {}  # by network
        self._logged_at = 0.0
        self._ended = Counter[str]()

    @property
    def ended(self) -> Mapping[str, int]:
        """How many were closed or not taken, by reason: late, idle, refused."""
        return self._ended

    @property
    def count(self) -> int:
        """How many are open."""
        return sum(map(len, self._open.values()))

    def protocol(self, **given: Any) -> asyncio.Protocol:
        """What uvicorn speaks with a client, as `http` of its configuration."""
        return _Connection(self, **given)

    def tick(self) -> None:
        """End the connections that have had no request for too long."""
        now = time.monotonic()
        for connection in [one for network in self._open.values() for one in network]:
            if connection.look(now) and now > connection.deadline(self._patience):
                self._ended["late"] += 1
                connection.end(_TIMEOUT if connection.received else b"")

    def admit(self, connection: _Connection, peer: str) -> bool:
        """Whether a new connection may stay.

        In a full house the one that has had no request for the longest time goes, of the same network if it has too
        many. A trusted proxy has the connections of all its clients.
        """
        network, now = network_of(peer), time.monotonic()
        mine = self._open.get(network, set())
        is_full = not is_among(peer, self._trusted) and len(mine) >= (self._most + 1) // 2
        if is_full or self.count >= self._most:
            among = mine if is_full else [one for others in self._open.values() for one in others]
            if (oldest := _longest_quiet(among, now)) is None:
                self._refuse(network, now)
                return False
            self._ended["idle"] += 1
            oldest.end()
        connection.network = network
        self._open.setdefault(network, set()).add(connection)
        return True

    def forget(self, connection: _Connection) -> None:
        """Count a connection no more."""
        mine = self._open.get(connection.network, set())
        mine.discard(connection)
        if not mine:
            self._open.pop(connection.network, None)

    def _refuse(self, network: str, now: float) -> None:
        self._ended["refused"] += 1
        if now > self._logged_at + _LOG_SECONDS:
            self._logged_at = now
            log.warning("connection_refused", network=network, open=self.count, setting="RAG_CONNECTIONS")


class _Connection(AutoHTTPProtocol):  # type: ignore[misc, valid-type]  # h11's, or httptools' where that is installed
    def __init__(self, connections: Connections, **given: Any):
        super().__init__(**given)
        self.network = ""
        self.received = 0  # bytes since the last reply
        self._connections = connections
        self._is_refused = False
        self._last: Any = None  # the request that was answered last
        self._since: float | None = time.monotonic()  # for how long there has been no request; None: there is one
        self._owed = 0  # bytes of the reply that the client had not taken then

    def connection_made(self, transport: asyncio.Transport) -> None:
        address = get_remote_addr(transport)
        if self._connections.admit(self, address[0] if address else ""):
            super().connection_made(transport)
            return
        self._is_refused = True
        transport.write(_FULL)
        transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self._connections.forget(self)
        if not self._is_refused:
            super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if not self._is_refused:
            self.received += len(data)
            super().data_received(data)

    def look(self, now: float) -> bool:
        """Note whether there is a request now. Returns whether there has been none since the last look."""
        if self._has_request:
            self._since = None
        elif self._since is None or self.cycle is not self._last:
            self._since, self._last, self.received = now, self.cycle, 0
            self._owed = self.transport.get_write_buffer_size()
        else:
            return True
        return False

    def deadline(self, patience: float) -> float:
        """Until when a request must have come: later for who still sends a body, or takes a reply, at `MIN_RATE`."""
        return (self._since or 0.0) + patience + (self.received + self._owed) / MIN_RATE

    def quiet_since(self) -> float | None:
        """Since when there has been no request; None where there is one, or was at the last look."""
        return None if self._has_request or self.cycle is not self._last else self._since

    def end(self, reply: bytes = b"") -> None:
        """Close the connection; at once, where the client takes nothing any more."""
        self._connections.forget(self)
        if self.transport.get_write_buffer_size():
            self.transport.abort()
        else:
            self.transport.write(reply)
            self.transport.close()

    @property
    def _has_request(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete


def _longest_quiet(connections: Collection[_Connection], now: float) -> _Connection | None:
    quiet = [(since, number, one) for number, one in enumerate(connections) if (since := one.quiet_since()) is not None]
    since, _, oldest = min(quiet, default=(now, 0, None))
    return oldest if since <= now - _QUIET_SECONDS else None


def _make_room(connections: int) -> int:
    """Let the process open as many files as it needs for so many connections. Returns for how many it may."""
    if resource is None:
        return connections
    allowed, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = connections + _OTHER_FILES
    if 0 <= allowed < wanted:
        allowed = wanted if most < 0 else min(wanted, most)
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, most))
    if 0 <= allowed < wanted:
        log.warning("few_open_files", allowed=allowed, wanted=wanted)
        return max(2, allowed // 2, allowed - _OTHER_FILES)
    return connections

"""Which address a request was sent to, and by whom: what a trusted proxy says of it, and the path below which we are.

Routing, limits and logs see paths without that path; what we send to clients contains it (`own_address`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

import structlog
from litestar.types import Scope

from rag_service.settings import Settings
from rag_service.settings.access import ROOT_PATH

log = structlog.get_logger(__name__)

HOST = re.compile(r"[\w.:\[\]-]+", re.ASCII)
_MAX_PREFIX = 200  # characters
_HEADERS = ("for", "proto", "host", "prefix")
# Litestar's `root_path` would cut a path at the first place where the root path stands, be it in the middle.
_ROOT = "app_root_path"


def own_address(scope: Scope, path: str) -> str:
    """A path of this service as clients have to ask for it."""
    return f"{scope.get(_ROOT, '')}{path}"


def is_among(peer: str, networks: Sequence[IPv4Network | IPv6Network]) -> bool:
    """Whether a text is an address in one of the networks."""
    address = _address(peer)
    return address is not None and any(address in network for network in networks)


class Front:
    """What is in front of the service, as RAG_TRUSTED_PROXIES and RAG_ROOT_PATH say.

    Of repeated values the last one counts, which the nearest proxy wrote: earlier ones may be the client's own.
    """

    def __init__(self, settings: Settings):
        self._trusted = settings.http.proxies
        self._root = settings.root_path
        # Checks of passwords are shared out by address: behind a proxy, all users would be one.
        self._warns = settings.sign_in.way == "password"

    def enter(self, scope: Scope) -> str | None:
        """Make the scope what the client asked for. Returns where to redirect a request for the bare root path, whose
        relative links would lead elsewhere."""
        said = self._read_headers(scope)
        prefix = said.get("prefix", "").rstrip("/")  # one that the proxy has stripped
        is_prefix = len(prefix) <= _MAX_PREFIX and ROOT_PATH.fullmatch(prefix)
        scope[_ROOT] = self._root or (prefix if is_prefix else "")  # type: ignore[literal-required]
        if said.get("proto", "").lower() in ("http", "https"):
            scope["scheme"] = said["proto"].lower()
        if HOST.fullmatch(said.get("host", "")):
            others = [item for item in scope["headers"] if item[0] != b"host"]
            scope["headers"] = [*others, (b"host", said["host"].encode())]
        if self._root and f"{scope['path']}/".startswith(f"{self._root}/"):
            scope["path"] = scope["path"].removeprefix(self._root)
            scope["raw_path"] = scope.get("raw_path", b"").removeprefix(self._root.encode())  # optional in ASGI
            return None if scope["path"] else own_address(scope, "/")
        return None

    def _read_headers(self, scope: Scope) -> Mapping[str, str]:
        """The last value of each X-Forwarded header; nothing if the request comes from elsewhere than a trusted proxy.
        The client becomes the last address of the way here that is no trusted proxy's."""
        peer = scope["client"][0] if scope["client"] else ""
        if not is_among(peer, self._trusted):
            if self._warns and any(name == b"x-forwarded-for" for name, _ in scope["headers"]):
                self._warns = False
                log.warning("proxy_not_trusted", address=peer, setting="RAG_TRUSTED_PROXIES")
            return {}
        given: dict[str, str] = {}
        for name, value in scope["headers"]:
            key = name.decode("latin-1").removeprefix("x-forwarded-")
            if name.startswith(b"x-forwarded-") and key in _HEADERS:
                given[key] = f"{given[key]},{value.decode('latin-1')}" if key in given else value.decode("latin-1")
        for hop in reversed(given.get("for", "").split(",")):
            address = _address(hop)
            if address is None:
                break
            scope["client"] = (str(address), 0)
            if not is_among(str(address), self._trusted):
                break
        return {key: value.rpartition(",")[2].strip() for key, value in given.items()}


def _address(text: str) -> IPv4Address | IPv6Address | None:
    """The address in a text such as `10.0.0.1`, `10.0.0.1:4711` or `[::1]:4711`; None where there is none."""
    text = text.strip()
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        address = ip_address(text)
    except ValueError:
        return None
    return (address.ipv4_mapped if isinstance(address, IPv6Address) else None) or address

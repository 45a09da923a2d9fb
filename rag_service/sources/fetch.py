"""Fetches addresses that users name, and only from where an administrator lets it.

Each name is resolved once, every address of it is checked, and the connection goes to the checked address, so that a
name cannot point elsewhere a moment later. Redirects are followed here, each checked in the same way.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType

import httpx

from rag_service.sources.source import UnreadableFileError

USER_AGENT = "rag_service"
_REDIRECTS = 5
_TIMEOUT = httpx.Timeout(15.0)  # for a connection and for each part of a body
_PAGE_SECONDS = 60.0  # for a whole page with its redirects
_GONE = (404, 410)

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

# Public by its number, but the inside of a cloud: Azure's metadata and DNS.
_METADATA = (ipaddress.ip_address("168.63.129.16"),)
_GLOBAL_UNICAST = ipaddress.ip_network("2000::/3")
_NAT64 = ipaddress.ip_network("64:ff9b::/96")


class PageError(UnreadableFileError):
    """A page cannot be fetched."""

    def __init__(self, reason: str, *, gone: bool = False, passing: bool = False, status: int | None = None):
        """`gone`: the page does not exist any more; `passing`: it may work later; `status`: of the site's reply."""
        super().__init__(reason)
        self.gone = gone
        self.passing = passing
        self.status = status


@dataclass(frozen=True, kw_only=True)
class Page:
    url: str  # after redirects
    body: bytes | None  # None: unchanged since the ETag
    media_type: str  # lower case, without parameters; "" if the site names none
    etag: str  # its ETag, or `modified ` and the date of its last change; "" if the site names neither


def is_allowed(address: Address, networks: Sequence[Network]) -> bool:
    """Whether an address is one of the public internet, or of the networks that an administrator allows."""
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour or (address.teredo and address.teredo[1])
        if address in _NAT64:
            inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        if inner:
            return is_allowed(inner, networks)
        # `is_global` knows only the exceptions of its Python release.
        usual = address in _GLOBAL_UNICAST
    else:
        usual = True
    if any(address in network for network in networks if network.version == address.version):
        return True
    return usual and address.is_global and not address.is_multicast and address not in _METADATA


_NOT_PUBLIC = "{host} is not on the public internet; RAG_SYNC_NETWORKS can allow its network"


class _GuardedTransport(httpx.AsyncBaseTransport):
    """Connects to checked addresses alone. The name stays in the Host header and in the check of the certificate."""

    def __init__(self, networks: Sequence[Network]):
        self._networks = networks
        # A kept connection would be used again for another name at the same address.
        limits = httpx.Limits(max_connections=4, max_keepalive_connections=0)
        self._inner = httpx.AsyncHTTPTransport(limits=limits, trust_env=False)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        host = request.url.host
        address = await self._resolve(host)
        request.url = request.url.copy_with(host=str(address))
        request.extensions = {**request.extensions, "sni_hostname": host}
        return await self._inner.handle_async_request(request)

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def _resolve(self, host: str) -> Address:
        try:
            addresses = [ipaddress.ip_address(host)]
        except ValueError:
            try:
                found = await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM)
            except (OSError, UnicodeError) as error:
                # In the words of an address that is refused: nobody can ask which internal names exist.
                raise PageError(_NOT_PUBLIC.format(host=host), passing=True) from error
            addresses = [ipaddress.ip_address(str(entry[4][0]).partition("%")[0]) for entry in found]
        if not all(is_allowed(address, self._networks) for address in addresses):
            raise PageError(_NOT_PUBLIC.format(host=host))
        return addresses[0]


class Fetcher:
    """Fetches pages; use it in an `async with` block."""

    def __init__(self, networks: Sequence[Network] = (), *, max_bytes: int):
        """`networks`: private ones that are allowed. `max_bytes`: of one body."""
        self._max_bytes = max_bytes
        self._client = httpx.AsyncClient(
            transport=_GuardedTransport(networks),
            headers={"User-Agent": USER_AGENT, "Accept-Encoding": "identity"},  # no compressed bombs
            timeout=_TIMEOUT,
            trust_env=False,  # a proxy would look the name up on its own
        )

    async def __aenter__(self) -> Fetcher:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._client.aclose()

    async def fetch(self, url: str, *, host: str | None = None, etag: str = "") -> Page:
        """A page, its redirects followed. Raises PageError if it is refused, missing, too large or too slow.

        `host`: the only host and port that redirects may lead to; None: any. `etag`: of the version that is known.
        """
        try:
            async with asyncio.timeout(_PAGE_SECONDS):
                for _ in range(_REDIRECTS + 1):
                    found = await self._get(url, etag)
                    if isinstance(found, Page):
                        return found
                    url = str(found)
                    if host is not None and found.netloc.decode() != host:
                        raise PageError(f"leads to another host: {found.host}")
        except (httpx.TimeoutException, TimeoutError) as error:
            raise PageError("took too long", passing=True) from error
        except httpx.HTTPError as error:
            raise PageError("cannot be reached", passing=True) from error
        except (httpx.InvalidURL, UnicodeError) as error:  # the second from names such as xn--
            raise PageError("is not a valid address") from error
        raise PageError(f"redirects more than {_REDIRECTS} times")

    async def _get(self, url: str, etag: str) -> Page | httpx.URL:
        """The page, or where it is redirected to."""
        address = httpx.URL(url)
        if address.scheme not in ("http", "https") or not address.host:
            raise PageError("is not a web address")
        if address.userinfo:
            raise PageError("has a password in its address")
        conditions = {}
        if etag.startswith("modified "):
            conditions["If-Modified-Since"] = etag.removeprefix("modified ")
        elif etag:
            conditions["If-None-Match"] = etag
        async with self._client.stream("GET", address, headers=conditions) as response:
            # `response.url` has the number of the address in place of its name.
            if response.status_code == 304 and etag:
                return Page(url=url, body=None, media_type="", etag=etag)
            if response.has_redirect_location:
                return address.join(response.headers["location"])
            if response.status_code != 200:
                passing = response.status_code == 429 or response.status_code >= 500
                gone = response.status_code in _GONE
                status = response.status_code
                raise PageError(f"the site returned status {status}", gone=gone, passing=passing, status=status)
            body = await self._read(response)
            modified = response.headers.get("last-modified", "")
            return Page(
                url=url,
                body=body,
                media_type=response.headers.get("content-type", "").partition(";")[0].strip().lower(),
                etag=response.headers.get("etag", "") or (f"modified {modified}" if modified else ""),
            )

    async def _read(self, response: httpx.Response) -> bytes:
        if response.headers.get("content-encoding", "identity").lower() != "identity":
            raise PageError("is compressed, which is not supported")
        body = bytearray()
        async for part in response.aiter_raw():
            body += part
            if len(body) > self._max_bytes:
                raise PageError(f"is larger than {self._max_bytes // 1024**2} MB (RAG_UPLOAD_MAX_MB)")
        return bytes(body)

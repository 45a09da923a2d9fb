"""A client of Ollama that gives replies as the server sends them: vectors, and streams by the line.

ollama's own client stands on httpx, which takes 1.3 ms of processor time for a request with its reply where
aiohttp (it comes with llama-index-core) takes 0.3 ms, and as much less for each piece of a stream.
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
import httpx
import msgspec
from ollama import AsyncClient, ResponseError

_JSON = {"content-type": "application/json"}
_KEPT_SECONDS = 5.0  # that an idle connection is kept: servers close theirs, and the next request meets it
_LONGEST_READ = 2**16  # bytes that arrive together


class LineClient(AsyncClient):
    """ollama's client, and plain posts beside it."""

    def __init__(self, host: str, *, connect_timeout: float, read_timeout: float, tls: ssl.SSLContext, **options: Any):
        """
        Args:
            host: URL of the server.
            connect_timeout: seconds.
            read_timeout: most seconds between two pieces of a response.
            tls: for a server at https.
            options: of the httpx client that the package's own calls go through.
        """
        timeout = httpx.Timeout(read_timeout, connect=connect_timeout, pool=connect_timeout)
        super().__init__(host=host, timeout=timeout, verify=tls, **options)
        self._limits = aiohttp.ClientTimeout(total=None, sock_connect=connect_timeout, sock_read=read_timeout)
        self._tls = tls
        self._session: aiohttp.ClientSession | None = None

    async def stream_lines(self, path: str, body: Mapping[str, Any]) -> AsyncGenerator[list[bytes]]:
        """Post, and read the lines of the reply, those that arrived together at once.

        Raises:
            ResponseError: another status than 200; an httpx error that holds the headers is chained.
            ConnectionError: the server cannot be reached, or breaks off.
            TimeoutError: it is silent for too long.
        """
        async with self._post(path, body) as response:
            rest = b""
            async for piece in response.content.iter_any():
                *lines, rest = (rest + piece).split(b"\n")
                if lines:
                    yield lines
            yield [rest]

    async def post(self, path: str, body: Mapping[str, Any]) -> bytes:
        """The whole reply.

        Raises:
            ResponseError, ConnectionError, TimeoutError: as `stream_lines`.
        """
        async with self._post(path, body) as response:
            return await response.read()

    @asynccontextmanager
    async def _post(self, path: str, body: Mapping[str, Any]) -> AsyncGenerator[aiohttp.ClientResponse]:
        url = str(self._client.base_url).rstrip("/") + path
        try:
            async with self._open().post(url, data=msgspec.json.encode(body), headers=_JSON) as response:
                if response.status >= 400:
                    raise await _refusal(url, response)
                yield response
        except aiohttp.SocketTimeoutError:
            raise  # a TimeoutError: the server has the request and may still be working on it
        except aiohttp.ClientError as error:
            raise ConnectionError(f"{type(error).__name__}: {error}") from error

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:  # made where the event loop runs
            known = self._client.headers
            told = {name: known[name] for name in ("authorization", "user-agent") if name in known}
            connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=_KEPT_SECONDS, ssl=self._tls)
            self._session = aiohttp.ClientSession(
                connector=connector,
                timeout=self._limits,
                headers=told,
                proxy=_proxy_for(str(self._client.base_url)),
                read_bufsize=_LONGEST_READ,
            )
        return self._session

    async def close(self) -> None:
        """End all connections."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()
        await super().close()  # type: ignore[no-untyped-call]  # ollama leaves it untyped


async def _refusal(url: str, response: aiohttp.ClientResponse) -> ResponseError:
    """What the package raises, with the headers where `retry_after_of` finds them."""
    text = await response.text(errors="replace")
    kept = httpx.Response(response.status, headers=dict(response.headers), text=text)
    error = ResponseError(text, response.status)
    error.__cause__ = httpx.HTTPStatusError(text, request=httpx.Request("POST", url), response=kept)
    return error


def _proxy_for(url: str) -> str | None:
    """The proxy that the environment names for an address, as for all other calls."""
    parts = urlsplit(url)
    if proxy_bypass(parts.hostname or ""):
        return None
    proxies = getproxies()
    return proxies.get(parts.scheme) or proxies.get("all")

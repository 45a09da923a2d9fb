"""Bearer tokens: own ones signed with a shared secret, or an issuer's, checked against the keys it publishes."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import jwt
import structlog

from rag_service.errors import AuthenticationError, IssuerUnreachableError
from rag_service.settings import Settings

log = structlog.get_logger(__name__)

JwksFetcher = Callable[[str], Awaitable[Mapping[str, Any]]]  # URL → the issuer's key set (RFC 7517)

# Signatures with public keys only: an issuer's token never proves itself with a shared secret (RFC 8725, 3.1).
_PUBLIC_ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
_OWN_ALGORITHMS = ("HS256",)
_LEEWAY_SECONDS = 10  # for clocks that differ
_FETCH_SECONDS = 5.0
_FETCH_BYTES = 512 * 1024
_JWKS_SECONDS = 300.0  # a key set is fetched again after
_JWKS_PAUSE_SECONDS = 5.0  # at least, between two fetches: unknown key ids must not make us flood the issuer


class TokenChecker:
    """Checks signature, issuer, audience and times of a bearer token."""

    def __init__(self, settings: Settings, fetch: JwksFetcher | None = None):
        """`fetch` gets an issuer's key set; None: over HTTP."""
        auth = self._auth = settings.auth
        self._secret = None if auth.jwt_secret is None else auth.jwt_secret.get_secret_value()
        self._keys = None if auth.jwt_jwks_url is None else KeySet(auth.jwt_jwks_url, fetch or fetch_json)

    @property
    def own(self) -> bool:
        """Whether tokens are signed with our own secret."""
        return self._secret is not None

    async def check(self, token: str) -> Mapping[str, Any]:
        """The token's claims.

        Raises:
            AuthenticationError: says what is wrong with it.
            IssuerUnreachableError: the issuer's keys cannot be fetched.
        """
        issuer, audience = self._auth.jwt_issuer, self._auth.jwt_audience
        if self._keys is not None:
            return await self._keys.check(token, issuer=issuer, audience=audience)
        return _check(token, self._secret, _OWN_ALGORITHMS, issuer=issuer, audience=audience)

    def end_of(self, claims: Mapping[str, Any]) -> float:
        """When the token stops being good, in seconds since 1970."""
        return float(claims["exp"]) + _LEEWAY_SECONDS


def _check(
    token: str, key: Any, algorithms: Sequence[str], *, issuer: str | None, audience: str | None
) -> Mapping[str, Any]:
    required = ["exp", "sub", *(["iss"] if issuer else []), *(["aud"] if audience else [])]
    options: Any = {"require": required, "verify_aud": audience is not None}
    try:
        claims: Mapping[str, Any] = jwt.decode(
            token,
            key,
            algorithms=list(algorithms),
            issuer=issuer,
            audience=audience,
            leeway=_LEEWAY_SECONDS,
            options=options,
        )
        float(claims["exp"])  # PyJWT lets ends pass that no clock shows,
        claims["sub"].encode()  # and subjects that are not Unicode
    except jwt.ExpiredSignatureError as error:
        raise AuthenticationError("The token has expired.") from error
    except (jwt.PyJWTError, OverflowError, ValueError, TypeError) as error:
        raise AuthenticationError("The token is not valid for this service.") from error
    return claims


class KeySet:
    """An issuer's public keys; fetched at first use, after five minutes, and when a key id is unknown."""

    def __init__(self, url: str, fetch: JwksFetcher):
        self._url = url
        self._fetch = fetch
        self._keys: dict[str | None, Any] = {}
        self._fetched = float("-inf")
        self._tried = float("-inf")
        self._lock = asyncio.Lock()

    async def check(self, token: str, *, issuer: str | None, audience: str | None) -> Mapping[str, Any]:
        """The claims of a token that the issuer has signed. Raises like `TokenChecker.check`."""
        try:
            header = jwt.get_unverified_header(token)
        except jwt.PyJWTError as error:
            raise AuthenticationError("The token is not valid for this service.") from error
        if header.get("alg") not in _PUBLIC_ALGORITHMS:
            raise AuthenticationError("The token is not valid for this service.")
        return _check(token, await self._find(header.get("kid")), _PUBLIC_ALGORITHMS, issuer=issuer, audience=audience)

    async def _find(self, key_id: str | None) -> Any:
        now = time.monotonic()
        if key_id not in self._keys or now - self._fetched > _JWKS_SECONDS:
            await self._refresh(key_id)
        if not self._keys:
            raise IssuerUnreachableError("The token cannot be checked at the moment.", retry_after=5)
        if key_id is None and len(self._keys) == 1:  # need not be named (OpenID Connect Core, 10.1)
            return next(iter(self._keys.values()))
        if key_id not in self._keys:
            raise AuthenticationError("The token is signed with a key that its issuer does not publish.")
        return self._keys[key_id]

    async def _refresh(self, key_id: str | None) -> None:
        async with self._lock:
            now = time.monotonic()
            fresh = now - self._fetched <= _JWKS_SECONDS
            if (key_id in self._keys and fresh) or now - self._tried < _JWKS_PAUSE_SECONDS:
                return
            self._tried = now
            try:
                parsed = jwt.PyJWKSet.from_dict(dict(await self._fetch(self._url)))
            except Exception as error:
                # Keys that are known stay in use: an issuer that is down must not lock everybody out.
                log.warning("jwks_not_refreshed", exc_info=error)
                return
            self._keys = {key.key_id: key.key for key in parsed.keys}
            self._fetched = now


async def fetch_json(url: str, *, method: str = "GET", **options: Any) -> Mapping[str, Any]:
    """An object that an issuer sends; `options` as for httpx.

    Raises:
        httpx.HTTPError: it cannot be reached or refuses (HTTPStatusError).
        TimeoutError, ValueError: it is too slow, or sends too much or something else.
    """
    import httpx

    body = bytearray()
    async with (
        asyncio.timeout(_FETCH_SECONDS),
        httpx.AsyncClient(timeout=_FETCH_SECONDS) as client,
        client.stream(method, url, **options) as response,
    ):
        async for piece in response.aiter_bytes():
            body += piece
            if len(body) > _FETCH_BYTES:
                raise ValueError("the issuer sends too much")
        response.raise_for_status()
    found = json.loads(body)
    if not isinstance(found, dict):
        raise ValueError("the issuer sends no JSON object")
    return found

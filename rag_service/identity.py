"""Who is asking: API keys and bearer tokens to an identity with scopes.

A checked credential is remembered for a few seconds, so that a chat does not look it up for every
request and a revoked key stops working within seconds all the same. What the identity may see is
decided by the database in each transaction; deactivating a user works at once, cache or not.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import jwt
import structlog

from rag_service.domain import Identity, Role
from rag_service.errors import AuthenticationError, InputError, StoreError
from rag_service.settings import Settings
from rag_service.store.keys import ALL_SCOPES, Scope, identify_key, is_key
from rag_service.store.session import Database

log = structlog.get_logger(__name__)

JwksFetcher = Callable[[str], Awaitable[Mapping[str, Any]]]  # URL → the issuer's key set (RFC 7517)

# Signatures with public keys only: an issuer's token never proves itself with a shared secret (RFC 8725, 3.1).
_PUBLIC_ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
_OWN_ALGORITHMS = ("HS256",)
_LEEWAY_SECONDS = 10  # for clocks that differ
_JWKS_SECONDS = 300.0  # a key set is fetched again after
_JWKS_PAUSE_SECONDS = 5.0  # least time between two fetches: unknown key ids must not make us flood the issuer
_REMEMBERED = 10_000  # credentials
_MAX_CREDENTIAL = 16_384  # characters
_SCOPE_PREFIX = "rag:"  # of our scopes in a token's `scope`


@dataclass(frozen=True, kw_only=True)
class Principal(Identity):
    """An identity that came with a credential, which may allow less than the user's role."""

    scopes: frozenset[Scope] = ALL_SCOPES
    credential: bytes = field(default=b"", repr=False)  # SHA-256 of an API key, which has quotas of its own


def scopes_of(identity: Identity) -> frozenset[Scope]:
    """What the identity's credential may be used for; one without credential is not restricted."""
    return identity.scopes if isinstance(identity, Principal) else ALL_SCOPES


class IssuerUnreachableError(StoreError):
    """The keys of the token's issuer cannot be fetched."""

    code = "issuer_unavailable"
    help = "Try again shortly; RAG_JWT_JWKS_URL must be reachable from the service."


class Authenticator:
    """Turns request headers into an identity; holds nothing but a short memory."""

    def __init__(self, database: Database, settings: Settings, *, fetch_jwks: JwksFetcher | None = None):
        """
        Args:
            database: where keys and users are.
            settings: `auth_cache_seconds` and `jwt_*`.
            fetch_jwks: gets an issuer's key set; None: over HTTP.
        """
        self._database = database
        self._seconds = settings.auth_cache_seconds
        self._memory = _Memory(self._seconds)
        self._tokens = _TokenChecker(settings, fetch_jwks or fetch_jwks_over_http)

    async def authenticate(self, headers: Mapping[str, str]) -> Principal:
        """The identity that the headers prove.

        Exactly one credential is taken: `Authorization: Bearer <key or token>` or `X-API-Key: <key>`.

        Raises:
            InputError: more than one credential; which of them counts must not be guessed.
            AuthenticationError: none, or it is unknown, revoked, expired or not for us.
            StoreError: the database cannot be asked.
        """
        credential = _find_credential(headers)
        known = self._memory.recall(credential)
        if known is not None:
            return known
        if is_key(credential):
            principal, until = await self._from_key(credential)
        else:
            principal, until = await self._from_token(credential)
        self._memory.keep(credential, principal, until=until)
        return principal

    async def _from_key(self, key: str) -> tuple[Principal, float | None]:
        async with self._database.transaction(None) as connection:
            holder = await identify_key(connection, key)
        if holder is None:
            raise AuthenticationError("The API key is unknown, revoked or expired.")
        until = None if holder.expires_at is None else holder.expires_at.timestamp()
        principal = Principal(user_id=holder.user_id, role=holder.role, scopes=holder.scopes, credential=_digest(key))
        return principal, until

    async def _from_token(self, token: str) -> tuple[Principal, float | None]:
        claims = await self._tokens.check(token)
        subject = str(claims["sub"]).replace("\0", "\ufffd")  # PostgreSQL's text holds no NUL
        async with self._database.transaction(None) as connection:
            cursor = await connection.execute("SELECT user_id, role FROM rag.identify_subject(%s)", [subject])
            row = await cursor.fetchone()
            # Only our own tokens may name a user by id: an issuer's subject that looks like one proves nothing.
            if row is None and self._tokens.own and (user_id := _as_uuid(subject)) is not None:
                cursor = await connection.execute("SELECT user_id, role FROM rag.identify_user(%s)", [user_id])
                row = await cursor.fetchone()
        if row is None:
            raise AuthenticationError("The token is valid, but there is no active user with its subject.")
        principal = Principal(user_id=row[0], role=Role(row[1]), scopes=_token_scopes(claims))
        return principal, float(claims["exp"]) + _LEEWAY_SECONDS


def _find_credential(headers: Mapping[str, str]) -> str:
    authorizations, keys = _values(headers, "authorization"), _values(headers, "x-api-key")
    if len(authorizations) + len(keys) > 1:
        raise InputError("Send one credential, once: Authorization or X-API-Key.", field="Authorization")
    if not authorizations and not keys:
        raise AuthenticationError("This address needs an API key or a bearer token.")
    credential = keys[0].strip() if keys else ""
    if authorizations:
        scheme, _, credential = authorizations[0].strip().partition(" ")
        if scheme.casefold() != "bearer":
            raise AuthenticationError("The Authorization header must be: Bearer <key or token>.")
    credential = credential.strip()
    if "," in credential:  # a proxy joins repeated headers so
        raise InputError("Send one credential, once: Authorization or X-API-Key.", field="Authorization")
    if not credential or len(credential) > _MAX_CREDENTIAL or (keys and not is_key(credential)):
        raise AuthenticationError("The API key or token is malformed.")
    return credential


def _values(headers: Mapping[str, str], name: str) -> Sequence[str]:
    """All values of a header; a plain mapping can hold one."""
    getall = getattr(headers, "getall", None)
    if getall is not None:
        found: Sequence[str] = getall(name, [])
        return found
    value = headers.get(name)
    return [] if value is None else [value]


def _as_uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None


def _token_scopes(claims: Mapping[str, Any]) -> frozenset[Scope]:
    """Scopes of ours (`rag:read` …) in the token; one that names none is as good as its user's role."""
    claim = claims.get("scope", "")
    names = claim.split() if isinstance(claim, str) else [str(name) for name in claim]
    ours = {name.removeprefix(_SCOPE_PREFIX) for name in names if name.startswith(_SCOPE_PREFIX)}
    if not ours:
        return ALL_SCOPES
    return frozenset(Scope(name) for name in ours if name in set(Scope))


class _Memory:
    """Checked credentials by their hash, for a few seconds."""

    def __init__(self, seconds: float):
        self._seconds = seconds
        self._known: dict[bytes, tuple[Principal, float]] = {}

    def recall(self, credential: str) -> Principal | None:
        found = self._known.get(_digest(credential))
        return found[0] if found is not None and found[1] > time.monotonic() else None

    def keep(self, credential: str, principal: Principal, *, until: float | None) -> None:
        """Remember, never beyond the credential's own end (`until`, seconds since 1970)."""
        seconds = self._seconds if until is None else min(self._seconds, until - time.time())
        if seconds <= 0:
            return
        if len(self._known) >= _REMEMBERED:
            self._known.clear()
        self._known[_digest(credential)] = (principal, time.monotonic() + seconds)


def _digest(credential: str) -> bytes:
    return hashlib.sha256(credential.encode(errors="surrogatepass")).digest()


class _TokenChecker:
    """Checks signature, issuer, audience and times of a token."""

    def __init__(self, settings: Settings, fetch: JwksFetcher):
        self._settings = settings
        self._secret = None if settings.jwt_secret is None else settings.jwt_secret.get_secret_value()
        self._keys = None if settings.jwt_jwks_url is None else _KeySet(settings.jwt_jwks_url, fetch)

    @property
    def own(self) -> bool:
        """Whether tokens are signed with our own secret."""
        return self._secret is not None

    async def check(self, token: str) -> Mapping[str, Any]:
        """The token's claims.

        Raises:
            AuthenticationError: says what is wrong with it.
            IssuerUnreachableError: the issuer's keys cannot be had.
        """
        if self._secret is None and self._keys is None:
            raise AuthenticationError("Bearer tokens are not set up here; use an API key.")
        try:
            if self._secret is not None:
                return self._decode(token, self._secret, _OWN_ALGORITHMS)
            key = await self._key_of(token)
            return self._decode(token, key, _PUBLIC_ALGORITHMS)
        except jwt.ExpiredSignatureError as error:
            raise AuthenticationError("The token has expired.") from error
        except (jwt.PyJWTError, ValueError, TypeError) as error:
            raise AuthenticationError("The token is not valid here.") from error

    def _decode(self, token: str, key: Any, algorithms: Sequence[str]) -> Mapping[str, Any]:
        required = ["exp", "sub"]
        required += ["iss"] if self._settings.jwt_issuer else []
        required += ["aud"] if self._settings.jwt_audience else []
        claims: Mapping[str, Any] = jwt.decode(
            token,
            key,
            algorithms=list(algorithms),
            issuer=self._settings.jwt_issuer,
            audience=self._settings.jwt_audience,
            leeway=_LEEWAY_SECONDS,
            options={"require": required, "verify_aud": self._settings.jwt_audience is not None},
        )
        return claims

    async def _key_of(self, token: str) -> Any:
        header = jwt.get_unverified_header(token)
        if header.get("alg") not in _PUBLIC_ALGORITHMS or self._keys is None:
            raise jwt.InvalidAlgorithmError("not an allowed algorithm")
        return await self._keys.find(header.get("kid"))


class _KeySet:
    """An issuer's public keys; fetched at first use, after five minutes, and when a key id is unknown."""

    def __init__(self, url: str, fetch: JwksFetcher):
        self._url = url
        self._fetch = fetch
        self._keys: dict[str | None, Any] = {}
        self._fetched = float("-inf")
        self._tried = float("-inf")
        self._lock = asyncio.Lock()

    async def find(self, key_id: str | None) -> Any:
        """The key of an id.

        Raises:
            AuthenticationError: the issuer has no such key.
            IssuerUnreachableError: the key set cannot be fetched, and none is known.
        """
        now = time.monotonic()
        if key_id not in self._keys or now - self._fetched > _JWKS_SECONDS:
            await self._refresh(key_id)
        if not self._keys:
            raise IssuerUnreachableError("The token cannot be checked now.", retry_after=5)
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


async def fetch_jwks_over_http(url: str) -> Mapping[str, Any]:
    """An issuer's key set.

    Raises:
        httpx.HTTPError: it cannot be had.
    """
    import httpx

    async with httpx.AsyncClient(timeout=5.0, follow_redirects=False) as client:
        response = await client.get(url, headers={"Accept": "application/json"})
        response.raise_for_status()
        found: Mapping[str, Any] = response.json()
        return found

"""Turns API keys, bearer tokens and sessions into an identity with scopes.

A checked credential is remembered for a few seconds; a revoked key stops working after that. The database decides in
each transaction what the identity may see, so deactivating a user works at once. While the database is down, a
credential that was checked in the last ten minutes is taken: it reads nothing, but agents chat on without documents.
"""

from __future__ import annotations

import math
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID

from rag_service.auth.sessions import cookie_names, find_session
from rag_service.domain import LOCAL_ADMIN, Identity, Role
from rag_service.errors import AuthenticationError, InputError, StoreError
from rag_service.recent import OwnedValues
from rag_service.settings import Settings
from rag_service.store.accounts.keys import ALL_SCOPES, Scope, hash_secret, identify_key, is_key
from rag_service.store.accounts.sessions import identify_session
from rag_service.store.database import Database

if TYPE_CHECKING:
    from rag_service.auth.tokens import JwksFetcher, TokenChecker

Authenticate = Callable[[Mapping[str, str]], Awaitable[Identity]]

_REMEMBERED = 10_000  # credentials
_OUTAGE_SECONDS = 600.0  # that a checked credential is taken while the database is down
_MAX_CREDENTIAL = 16_384  # characters
_SCOPE_PREFIX = "rag:"  # of our scopes in a token's `scope`


@dataclass(frozen=True, kw_only=True)
class Principal(Identity):
    """An identity that came with a credential, which may allow less than the user's role."""

    scopes: frozenset[Scope] = ALL_SCOPES
    credential: bytes = field(default=b"", repr=False)  # SHA-256 of an API key, which has quotas of its own
    key_id: UUID | None = None  # of the API key
    token_ends: float | None = None  # Unix time at which the bearer token does


@dataclass(frozen=True, kw_only=True)
class _Checked:
    """A credential that was checked. Times are those of `time.monotonic`."""

    principal: Principal
    fresh_until: float  # taken without asking the database
    ends: float  # taken while the database is down


def scopes_of(identity: Identity) -> frozenset[Scope]:
    """What the identity's credential may be used for; one without credential is not restricted."""
    return identity.scopes if isinstance(identity, Principal) else ALL_SCOPES


async def local_administrator(_: Mapping[str, str]) -> Identity:
    """Who asks where RAG_AUTH is `none`."""
    return LOCAL_ADMIN


def choose_authentication(settings: Settings, database: Database) -> Authenticate:
    """Turns request headers into an identity, as RAG_AUTH says."""
    return local_administrator if settings.auth.mode == "none" else Authenticator(database, settings).authenticate


class Authenticator:
    """Turns request headers into an identity."""

    def __init__(self, database: Database, settings: Settings, *, fetch_jwks: JwksFetcher | None = None):
        """`fetch_jwks` gets an issuer's key set; None: over HTTP."""
        self._database = database
        self._seconds = settings.auth.cache_seconds
        self._known: OwnedValues[bytes, _Checked] = OwnedValues(_REMEMBERED)  # by the hash of the credential
        self._idle = timedelta(minutes=settings.sign_in.idle_minutes)
        self._cookies = cookie_names(settings)
        self._tokens: TokenChecker | None = None
        if settings.auth.jwt_secret is not None or settings.auth.jwt_jwks_url is not None:
            from rag_service.auth.tokens import TokenChecker  # loads libraries of cryptography

            self._tokens = TokenChecker(settings, fetch_jwks)

    async def authenticate(self, headers: Mapping[str, str]) -> Principal:
        """The identity that the headers prove.

        Exactly one credential is taken: `Authorization: Bearer <key or token>`, or `X-API-Key: <key>`, also called
        `api-key`; without one the session of a browser.

        Raises:
            InputError: more than one credential; which of them counts must not be guessed.
            AuthenticationError: none, or it is unknown, revoked, expired or not for us.
            StoreError: the database cannot be asked, and the credential was not checked lately.
        """
        credential = _find_credential(headers)
        session = find_session(headers, self._cookies) if credential is None else None
        if credential is None and session is None:
            raise AuthenticationError("This address requires an API key, a bearer token or a sign-in.")
        digest = hash_secret(credential or f"session\0{session}")  # no header holds NUL: never the digest of a key
        known = self._known.get(digest)
        if known is not None and known.fresh_until > time.monotonic():
            return known.principal
        try:
            if session is not None:
                principal, until = await self._from_session(session)
            elif is_key(credential or ""):
                principal, until = await self._from_key(credential or "")
            else:
                principal, until = await self._from_token(credential or "")
        except StoreError as error:
            # An issuer that is down is another matter: then the database gives what it has.
            if known is None or known.ends < time.monotonic() or error.code != StoreError.code:
                raise
            return known.principal
        except AuthenticationError:
            self._known.forget(digest)
            raise
        self._remember(digest, principal, until)
        return principal

    def _remember(self, digest: bytes, principal: Principal, until: float | None) -> None:
        """Keep who this is, never beyond the credential's own end, `until` (Unix time)."""
        left, now = math.inf if until is None else until - time.time(), time.monotonic()
        checked = _Checked(
            principal=principal, fresh_until=now + min(self._seconds, left), ends=now + min(_OUTAGE_SECONDS, left)
        )
        self._known.keep(digest, checked, owner=principal.user_id)

    async def _from_session(self, session: str) -> tuple[Principal, float | None]:
        async with self._database.transaction(None) as connection:
            holder = await identify_session(connection, session, idle=self._idle)
        if holder is None:
            raise AuthenticationError("The session has ended.")
        return Principal(user_id=holder.user_id, role=holder.role), holder.ends_at.timestamp()

    async def _from_key(self, key: str) -> tuple[Principal, float | None]:
        async with self._database.transaction(None) as connection:
            holder = await identify_key(connection, key)
        if holder is None:
            raise AuthenticationError("The API key is unknown, revoked or expired.")
        until = None if holder.expires_at is None else holder.expires_at.timestamp()
        principal = Principal(
            user_id=holder.user_id,
            role=holder.role,
            scopes=holder.scopes,
            credential=hash_secret(key),
            key_id=holder.id,
        )
        return principal, until

    async def _from_token(self, token: str) -> tuple[Principal, float | None]:
        if self._tokens is None:
            raise AuthenticationError("Bearer tokens are not enabled; use an API key.")
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
        ends = self._tokens.end_of(claims)
        principal = Principal(user_id=row[0], role=Role(row[1]), scopes=_token_scopes(claims), token_ends=ends)
        return principal, ends


def _find_credential(headers: Mapping[str, str]) -> str | None:
    authorizations = _values(headers, "authorization")
    keys = [*_values(headers, "x-api-key"), *_values(headers, "api-key")]  # the second as Azure's clients send it
    if len(authorizations) + len(keys) > 1:
        raise InputError("Send exactly one credential: Authorization or X-API-Key.", field="Authorization")
    if not authorizations and not keys:
        return None
    credential = keys[0].strip() if keys else ""
    if authorizations:
        scheme, _, credential = authorizations[0].strip().partition(" ")
        if scheme.casefold() != "bearer":
            raise AuthenticationError("The Authorization header must be: Bearer <key or token>.")
    credential = credential.strip()
    if "," in credential:  # a proxy joins repeated headers so
        raise InputError("Send exactly one credential: Authorization or X-API-Key.", field="Authorization")
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
    """Scopes of ours (`rag:read` …) in the token; one that names none is as good as its user's role.

    Raises AuthenticationError if the claim is neither a text nor a list of texts.
    """
    claim = claims.get("scope", "")
    names = claim.split() if isinstance(claim, str) else claim
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise AuthenticationError("The token's scope is neither a text nor a list of texts.")
    ours = {name.removeprefix(_SCOPE_PREFIX) for name in names if name.startswith(_SCOPE_PREFIX)}
    if not ours:
        return ALL_SCOPES
    return frozenset(Scope(name) for name in ours if name in set(Scope))

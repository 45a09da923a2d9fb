"""Sign-in with an OpenID provider: the authorization code flow with PKCE (OpenID Connect Core 1.0, RFC 7636, RFC 9700).

Nothing is kept between the way to the provider and the way back. State, nonce and code verifier are derived from a
secret in a cookie of the browser, so that only the browser that set out can return, to any process of the service.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
import time
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

import httpx
import structlog

from rag_service.auth.sessions import derive
from rag_service.auth.tokens import KeySet, fetch_json
from rag_service.domain import Role
from rag_service.errors import AuthenticationError, IssuerUnreachableError
from rag_service.settings import Settings

log = structlog.get_logger(__name__)

_METADATA_SECONDS = 3600.0
_MAX_SUBJECT = 255  # ASCII characters (OpenID Connect Core, 2)
_MAX_NAME = 180  # characters; a user's name has 200, and may get a number
_MAX_GROUPS = 500
_NAME_CLAIMS = ("preferred_username", "name", "email")


@dataclass(frozen=True, kw_only=True)
class Person:
    """Whom the provider vouches for."""

    subject: str
    name: str  # to show; chosen by the person, so that nothing follows from it
    groups: tuple[str, ...]
    role: Role | None  # None: as it is
    is_allowed: bool = True  # to sign in, by the groups


class Provider:
    """The provider that RAG_OIDC_ISSUER names."""

    def __init__(self, settings: Settings):
        self._settings = settings.sign_in
        self._metadata: Mapping[str, Any] = {}
        self._read_at = float("-inf")
        self._keys = KeySet("", fetch_json)

    async def check(self) -> str:
        """The issuer, if it can be asked. Raises IssuerUnreachableError."""
        return str((await self._discover())["issuer"])

    async def address(self, secret: str) -> str:
        """Where a browser goes to sign in. Raises IssuerUnreachableError."""
        metadata = await self._discover()
        state = _make_state(secret, secrets.token_urlsafe(16))
        challenge = hashlib.sha256(derive(secret, state, "verifier").encode()).digest()
        parameters = {
            "response_type": "code",
            "client_id": self._settings.client_id or "",
            "redirect_uri": self._settings.redirect_uri,
            "scope": self._settings.scopes,
            "state": state,
            "nonce": derive(secret, state, "nonce"),
            "code_challenge": base64.urlsafe_b64encode(challenge).decode().rstrip("="),
            "code_challenge_method": "S256",
        }
        address = str(metadata["authorization_endpoint"])
        return f"{address}{'&' if '?' in address else '?'}{urlencode(parameters)}"

    async def finish(self, secret: str, reply: Mapping[str, str]) -> Person:
        """Who came back, from the parameters of the way back.

        Raises:
            AuthenticationError: the reply is not the provider's answer to this browser, or a token is not good.
            IssuerUnreachableError: the provider cannot be asked.
        """
        state = reply.get("state", "")
        # Without the secret everything below could be computed by whoever sends the browser here.
        if not secret or not hmac.compare_digest(state.encode(), _make_state(secret, state.partition(".")[0]).encode()):
            raise AuthenticationError("The sign-in was started in another browser or too long ago.")
        if reply.get("iss", self._settings.issuer) != self._settings.issuer or "code" not in reply:
            raise AuthenticationError("The provider did not sign in a user.")
        metadata = await self._discover()
        tokens = await self._exchange(metadata, reply["code"], derive(secret, state, "verifier"))
        claims = await self._keys.check(
            str(tokens.get("id_token")), issuer=self._settings.issuer, audience=self._settings.client_id
        )
        if not hmac.compare_digest(str(claims.get("nonce")).encode(), derive(secret, state, "nonce").encode()):
            raise AuthenticationError("The ID token belongs to another sign-in.")
        if claims.get("azp", self._settings.client_id) != self._settings.client_id:
            raise AuthenticationError("The ID token is for another client.")
        return self._read_person(await self._complete(metadata, claims, tokens))

    async def _discover(self) -> Mapping[str, Any]:
        """What the provider publishes of itself; what is known stays in use while it is down."""
        if time.monotonic() - self._read_at < _METADATA_SECONDS:
            return self._metadata
        issuer = self._settings.issuer or ""
        found = await _ask(f"{issuer.rstrip('/')}/.well-known/openid-configuration", known=self._metadata)
        names = ("authorization_endpoint", "token_endpoint", "jwks_uri")
        if found.get("issuer") != issuer or not all(_is_safe(found.get(name), issuer) for name in names):
            log.error("oidc_metadata_refused", issuer=issuer, named=str(found.get("issuer"))[:200])
            raise IssuerUnreachableError("The provider's issuer does not match RAG_OIDC_ISSUER.")
        if found.get("jwks_uri") != self._metadata.get("jwks_uri"):
            self._keys = KeySet(str(found["jwks_uri"]), fetch_json)
        self._metadata, self._read_at = found, time.monotonic()
        return found

    async def _exchange(self, metadata: Mapping[str, Any], code: str, verifier: str) -> Mapping[str, Any]:
        """The provider's tokens for a code. A code is good once; the provider refuses it a second time."""
        client = self._settings.client_id or ""
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self._settings.redirect_uri,
            "code_verifier": verifier,
            "client_id": client,
        }
        options: dict[str, Any] = {}
        if self._settings.client_secret is not None:
            secret = self._settings.client_secret.get_secret_value()
            if "client_secret_basic" in metadata.get("token_endpoint_auth_methods_supported", ["client_secret_basic"]):
                options["auth"] = (quote(client, safe=""), quote(secret, safe=""))  # RFC 6749, 2.3.1
            else:
                form["client_secret"] = secret
        return await _ask(str(metadata["token_endpoint"]), method="POST", data=form, **options)

    async def _complete(
        self, metadata: Mapping[str, Any], claims: Mapping[str, Any], tokens: Mapping[str, Any]
    ) -> Mapping[str, Any]:
        """The claims with those of the user-info endpoint, where some providers have name and groups alone."""
        address = metadata.get("userinfo_endpoint")
        is_complete = self._settings.groups_claim in claims and any(name in claims for name in _NAME_CLAIMS)
        if is_complete or not _is_safe(address, self._settings.issuer or ""):
            return claims
        more = await _ask(str(address), headers={"Authorization": f"Bearer {tokens.get('access_token')}"})
        if more.get("sub") != claims["sub"]:
            raise AuthenticationError("The provider's user information belongs to another user.")
        return {**more, **claims}

    def _read_person(self, claims: Mapping[str, Any]) -> Person:
        subject = str(claims["sub"])
        if not subject or len(subject) > _MAX_SUBJECT or not subject.isprintable():
            raise AuthenticationError("The ID token does not identify a user.")
        found = claims.get(self._settings.groups_claim, ())
        given = [found] if isinstance(found, str) else found if isinstance(found, list) else []
        # One that only looks like another is no group: it is left out, not cleaned.
        groups = tuple(one for one in given if isinstance(one, str) and one and one == _clean(one))[:_MAX_GROUPS]
        allowed, admins = _split(self._settings.allowed_groups), _split(self._settings.admin_groups)
        is_allowed = not allowed or bool(allowed & set(groups))
        role = (Role.ADMIN if is_allowed and admins & set(groups) else Role.USER) if admins else None
        names = (_clean(claims.get(name)) for name in _NAME_CLAIMS)
        name = next(filter(None, names), _clean(subject))
        return Person(subject=subject, name=name, groups=groups, role=role, is_allowed=is_allowed)


def _make_state(secret: str, salt: str) -> str:
    return f"{salt}.{derive(secret, salt, 'state')}"


async def _ask(url: str, *, known: Mapping[str, Any] | None = None, **options: Any) -> Mapping[str, Any]:
    """The provider's reply; `known` in its place while it is down.

    Raises AuthenticationError where it refuses, IssuerUnreachableError where it cannot be asked.
    """
    try:
        return await fetch_json(url, **options)
    except (httpx.HTTPError, httpx.InvalidURL, ValueError, TimeoutError) as error:
        status = error.response.status_code if isinstance(error, httpx.HTTPStatusError) else None
        # Never the error itself: its text and locals may hold a code or a token.
        log.warning("oidc_request_failed", address=url, status=status, kind=type(error).__name__)
        if known:
            return known
        if "data" in options and status in (400, 401, 403):
            raise AuthenticationError("The provider refused the sign-in.") from None
        raise IssuerUnreachableError("The provider cannot be reached at the moment.", retry_after=5) from None


def _is_safe(address: object, issuer: str) -> bool:
    """Whether an address is as well protected as the issuer's own."""
    return isinstance(address, str) and (address.startswith("https://") or issuer.startswith("http://"))


def _clean(text: object) -> str:
    """One line without characters that cannot be seen or that turn the direction of what follows."""
    if not isinstance(text, str):
        return ""
    spaced = (" " if one.isspace() else one for one in text)
    return " ".join("".join(one for one in spaced if unicodedata.category(one)[0] != "C").split())[:_MAX_NAME]


def _split(names: str) -> frozenset[str]:
    return frozenset(filter(None, (name.strip() for name in names.split(","))))

"""Keys and tokens: what proves an identity, what does not, and how soon a revocation works."""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from litestar.datastructures import Headers

from rag_service.auth.authenticator import Authenticator
from rag_service.domain import Identity, Role
from rag_service.errors import AuthenticationError, ConfigurationError, InputError, IssuerUnreachableError
from rag_service.settings import Settings, load_settings
from rag_service.store.accounts.keys import ALL_SCOPES, Scope, create_key, revoke_key
from rag_service.store.accounts.users import create_user, update_user
from tests.integration.tenancy.conftest import ADMIN, House
from tests.loop_watch import apart

SECRET = "a secret of thirty-two bytes, at the least"
ISSUER = {"jwt_issuer": "https://id.example", "jwt_audience": "rag", "jwt_jwks_url": "https://id.example/jwks"}


def bearer(credential: str) -> Mapping[str, str]:
    return Headers({"Authorization": f"Bearer {credential}"})


def own(**settings: Any) -> Settings:
    return Settings(**{"auth": "required", "jwt_secret": SECRET, "auth_cache_seconds": 0, **settings})


def token(subject: str, secret: Any = SECRET, algorithm: str = "HS256", *, seconds: int = 60, **claims: Any) -> str:
    return jwt.encode({"sub": subject, "exp": int(time.time()) + seconds, **claims}, secret, algorithm=algorithm)


async def _key(house: House, identity: Identity, **options: Any) -> tuple[Any, str]:
    async with house.database.transaction(identity) as connection:
        return await create_key(
            connection, user_id=identity.user_id, name="k", scopes=options.pop("scopes", ALL_SCOPES), **options
        )


async def test_a_key_proves_its_user_with_its_scopes(house: House) -> None:
    ana = await house.user("ana")
    _, secret = await _key(house, ana, scopes={Scope.READ})
    authenticator = Authenticator(house.database, own())
    for headers in (bearer(secret), Headers({"X-API-Key": secret}), {"x-api-key": secret}, {"api-key": secret}):
        principal = await authenticator.authenticate(headers)
        assert (principal.user_id, principal.role, principal.scopes) == (ana.user_id, Role.USER, {Scope.READ})
    with house.owner() as owner:
        assert owner.execute("SELECT last_used_at IS NOT NULL FROM rag.api_keys").fetchone() == (True,)


async def test_a_revoked_or_expired_key_and_a_deactivated_user_are_refused(house: House) -> None:
    ana = await house.user("ana")
    authenticator = Authenticator(house.database, own())
    revoked, revoked_secret = await _key(house, ana)
    _, expired_secret = await _key(house, ana, expires_at=datetime.now(UTC) - timedelta(seconds=1))
    _, good_secret = await _key(house, ana)
    async with house.database.transaction(ana) as connection:
        await revoke_key(connection, revoked.id)
    for secret in (revoked_secret, expired_secret, "rag_" + "x" * 43, "rag_short", "nonsense"):
        with pytest.raises(AuthenticationError):
            await authenticator.authenticate(bearer(secret))
    assert await authenticator.authenticate(bearer(good_secret))
    async with house.database.transaction(ADMIN) as connection:
        await update_user(connection, ADMIN, ana.user_id, active=False)
    with pytest.raises(AuthenticationError):
        await authenticator.authenticate(bearer(good_secret))


async def test_a_revocation_works_within_the_cache_time(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    ana = await house.user("ana")
    authenticator = Authenticator(house.database, own(auth_cache_seconds=30))
    key, secret = await _key(house, ana)
    assert await authenticator.authenticate(bearer(secret))
    async with house.database.transaction(ana) as connection:
        await revoke_key(connection, key.id)
    assert await authenticator.authenticate(bearer(secret))  # remembered
    later = SimpleNamespace(monotonic=lambda: time.monotonic() + 31, time=time.time)
    monkeypatch.setattr("rag_service.auth.authenticator.time", later)
    with pytest.raises(AuthenticationError):
        await authenticator.authenticate(bearer(secret))


async def test_more_than_one_credential_is_refused_instead_of_guessed(house: House) -> None:
    ana = await house.user("ana")
    _, secret = await _key(house, ana)
    authenticator = Authenticator(house.database, own())
    pairs = [
        [(b"authorization", f"Bearer {secret}".encode()), (b"x-api-key", secret.encode())],
        [(b"authorization", f"Bearer {secret}".encode())] * 2,
        [(b"x-api-key", secret.encode())] * 2,
        [(b"authorization", f"Bearer {secret}, Bearer {secret}".encode())],
        [(b"authorization", f"Bearer {token(str(ana.user_id))}".encode()), (b"x-api-key", secret.encode())],
    ]
    for pair in pairs:
        with pytest.raises(InputError):
            await authenticator.authenticate(Headers(pair))


@pytest.mark.parametrize("value", ["", "Bearer", "Bearer ", "Basic YTpi", "bearer  ", "Token abc", "Bearer \0"])
async def test_what_is_no_credential_is_refused(house: House, value: str) -> None:
    authenticator = Authenticator(house.database, own())
    with pytest.raises(AuthenticationError):
        await authenticator.authenticate({"authorization": value})
    with pytest.raises(AuthenticationError):
        await authenticator.authenticate({})


async def test_own_tokens_name_a_user_by_id_or_subject(house: House) -> None:
    ana = await house.user("ana")
    async with house.database.transaction(ADMIN) as connection:
        ben = await create_user(connection, name="ben", role=Role.ADMIN, subject="ben@example")
    authenticator = Authenticator(house.database, own())
    assert (await authenticator.authenticate(bearer(token(str(ana.user_id))))).user_id == ana.user_id
    principal = await authenticator.authenticate(bearer(token("ben@example", scope="openid rag:read rag:sing")))
    assert (principal.user_id, principal.role, principal.scopes) == (ben.id, Role.ADMIN, {Scope.READ})
    for bad in (
        token("nobody"),
        token("nul\0"),
        token(str(ana.user_id), seconds=-60),
        token(str(ana.user_id), "another secret of more than thirty-two bytes"),
        jwt.encode({"sub": str(ana.user_id)}, SECRET),  # without an end
        jwt.encode({"sub": str(ana.user_id), "exp": time.time() + 60}, "", algorithm="none"),
        token(str(ana.user_id), seconds=10**400),
        token("ana\ud800"),
        *(token(str(ana.user_id), scope=wrong) for wrong in (None, 5, {"rag:read": 1}, [["rag:read"]])),
    ):
        with pytest.raises(AuthenticationError):
            await authenticator.authenticate(bearer(bad))


class Issuer:
    """An OIDC issuer's key set with keys that come and go."""

    def __init__(self) -> None:
        self.keys: dict[str, rsa.RSAPrivateKey] = {}
        self.fetched = 0
        self.down = False

    def add(self, key_id: str) -> None:
        with apart():
            self.keys[key_id] = rsa.generate_private_key(public_exponent=65537, key_size=2048)

    async def fetch(self, url: str) -> Mapping[str, Any]:
        assert url == ISSUER["jwt_jwks_url"]
        self.fetched += 1
        if self.down:
            raise OSError("unreachable")
        to_jwk = jwt.algorithms.RSAAlgorithm.to_jwk
        return {
            "keys": [
                {**to_jwk(key.public_key(), as_dict=True), "kid": key_id, "use": "sig"}
                for key_id, key in self.keys.items()
            ]
        }

    def token(self, subject: str, key_id: str, **claims: Any) -> str:
        body = {"sub": subject, "iss": ISSUER["jwt_issuer"], "aud": "rag", "exp": int(time.time()) + 60, **claims}
        return jwt.encode(body, self.keys[key_id], algorithm="RS256", headers={"kid": key_id})


async def test_an_issuers_tokens_are_checked_against_its_keys(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rag_service.auth.tokens._JWKS_PAUSE_SECONDS", 0.0)
    issuer = Issuer()
    issuer.add("one")
    async with house.database.transaction(ADMIN) as connection:
        ana = await create_user(connection, name="ana", role=Role.USER, subject="ana|1")
    settings = Settings(auth="required", auth_cache_seconds=0, **ISSUER)
    authenticator = Authenticator(house.database, settings, fetch_jwks=issuer.fetch)
    for _ in range(3):
        assert (await authenticator.authenticate(bearer(issuer.token("ana|1", "one")))).user_id == ana.id
    assert issuer.fetched == 1
    issuer.add("two")  # the issuer turns its keys over
    assert await authenticator.authenticate(bearer(issuer.token("ana|1", "two")))
    assert issuer.fetched == 2
    foreign = Issuer()
    foreign.add("one")
    public = issuer.keys["one"].public_key()
    for bad in (
        issuer.token("ana|1", "one", aud="another"),
        issuer.token("ana|1", "one", iss="https://evil.example"),
        issuer.token("ana|1", "one", exp=int(time.time()) - 60),
        issuer.token(str(ana.id), "one"),  # an id is no subject of the issuer's
        foreign.token("ana|1", "one"),
        token("ana|1", str(public)[:40], iss=ISSUER["jwt_issuer"], aud="rag"),  # HS256 with public knowledge
    ):
        with pytest.raises(AuthenticationError):
            await authenticator.authenticate(bearer(bad))
    issuer.down = True
    assert await authenticator.authenticate(bearer(issuer.token("ana|1", "one")))  # known keys stay in use


async def test_unknown_key_ids_do_not_flood_the_issuer(house: House) -> None:
    issuer, foreign = Issuer(), Issuer()
    issuer.add("one")
    foreign.add("none")
    settings = Settings(auth="required", **ISSUER)
    authenticator = Authenticator(house.database, settings, fetch_jwks=issuer.fetch)
    for _ in range(5):
        with pytest.raises(AuthenticationError):
            await authenticator.authenticate(bearer(foreign.token("x", "none")))
    assert issuer.fetched == 1
    issuer.down = True
    unlucky = Authenticator(house.database, settings, fetch_jwks=issuer.fetch)
    with pytest.raises(IssuerUnreachableError):
        await unlucky.authenticate(bearer(issuer.token("x", "one")))


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"jwt_secret": "short"}, "RAG_JWT_SECRET"),
        ({"jwt_jwks_url": "https://id.example/jwks"}, "RAG_JWT_ISSUER"),
        ({"jwt_secret": SECRET, **ISSUER}, "cannot be combined"),
        ({"jwt_issuer": "https://id.example"}, "RAG_JWT_JWKS_URL"),
    ],
)
def test_settings_that_would_weaken_tokens_are_refused(fields: dict[str, Any], named: str) -> None:
    with pytest.raises(ConfigurationError, match=named):
        load_settings(**fields)

"""Begins and ends the sessions of browsers: with the OpenID provider where one is set, else with name and password."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import timedelta
from functools import partial
from ipaddress import IPv6Address, ip_address, ip_network
from typing import TYPE_CHECKING
from urllib.parse import quote
from uuid import UUID

import structlog

from rag_service.auth.passwords import hash_password, is_password
from rag_service.errors import (
    AuthenticationError,
    NoPasswordsError,
    PermissionDeniedError,
    RateLimitedError,
    StoreError,
)
from rag_service.settings import Settings
from rag_service.store.accounts.sessions import (
    accept_invitation,
    admit_subject,
    close_session,
    invite_user,
    is_invited,
    open_session,
    read_account,
    refuse_subject,
)
from rag_service.store.accounts.users import read_user
from rag_service.store.database import Connection, Database
from rag_service.turns import Turns, run_apart

if TYPE_CHECKING:
    from rag_service.auth.provider import Provider

log = structlog.get_logger(__name__)

_INVITATION_LIFETIME = timedelta(days=7)
_ATTEMPTS = 10  # for a name in a minute, whether there is such a user or not
_PASSWORDS_AT_A_TIME = 2  # each takes 32 MB and a processor
_PASSWORDS_WAITING = 16  # some two seconds; more are turned away
_HOST_BITS = 64  # of an IPv6 address: one customer has as many

_NOT_INVITED = "This invitation is unknown, used or expired. Ask for a new one."


async def make_invitation(connection: Connection, settings: Settings, user_id: UUID) -> str:
    """A link with which a user chooses a password; for administrators.

    Token and name stand behind `#`, which browsers do not send: they reach no log of a server. Raises NoPasswordsError
    where users do not sign in with passwords.
    """
    if settings.sign_in.way != "password":
        raise NoPasswordsError("Sign-in with passwords is not enabled.")
    token = await invite_user(connection, user_id, lifetime=_INVITATION_LIFETIME)
    name = quote((await read_user(connection, user_id)).name, safe="")
    return f"{settings.sign_in.public_url}/#invitation={token}&name={name}"


class SignIn:
    """Every way to sign in gives a session's token, or raises the same error whatever is wrong with the account."""

    def __init__(self, database: Database, settings: Settings):
        self._database = database
        self._lifetime = timedelta(hours=settings.sign_in.hours)
        # By network, as nobody has signed in yet; in threads that nothing long ever enters.
        self.turns = Turns("sign_in", limit=_PASSWORDS_AT_A_TIME, queue=_PASSWORDS_WAITING, long=False)
        self._threads = ThreadPoolExecutor(_PASSWORDS_AT_A_TIME, thread_name_prefix="sign-in")
        self._provider: Provider | None = None
        if settings.sign_in.issuer is not None:
            from rag_service.auth.provider import Provider  # loads libraries of cryptography

            self._provider = Provider(settings)

    @property
    def provider(self) -> Provider:
        if self._provider is None:
            raise RuntimeError("RAG_OIDC_ISSUER is not set")
        return self._provider

    async def warm_up(self) -> None:
        """Ask the provider for its addresses; the log says early what is wrong with it."""
        if self._provider is not None:
            with suppress(StoreError):
                await self._provider.check()

    async def with_provider(self, secret: str, reply: Mapping[str, str]) -> str:
        """For whom the provider has signed in, see `Provider.finish`.

        Raises PermissionDeniedError for a deactivated user, and for one whose groups may not sign in: the user then
        also loses open sessions, and the rights of the groups that are gone.
        """
        person = await self.provider.finish(secret, reply)
        if not person.is_allowed:
            async with self._database.transaction(None) as connection:
                await refuse_subject(connection, person.subject, role=person.role, groups=person.groups)
            raise PermissionDeniedError("None of the user's groups is allowed to sign in.")
        async with self._database.transaction(None) as connection:
            user_id = await admit_subject(
                connection, person.subject, name=person.name, role=person.role, groups=person.groups
            )
        if user_id is None:
            raise PermissionDeniedError("The user is deactivated.")
        return await self._open(user_id)

    async def with_password(self, name: str, password: str, *, client: str) -> str:
        """`client`: the address that the request is from. Raises AuthenticationError; RateLimitedError when there were
        too many attempts with this name, or too many people sign in at the same time."""
        async with self.turns.take(network_of(client)):
            async with self._database.transaction(None) as connection:
                account = await read_account(connection, name, attempts=_ATTEMPTS)
            if account is None:
                raise RateLimitedError("Too many attempts with this name.", retry_after=60 // _ATTEMPTS)
            matches = await run_apart(self._threads, partial(is_password, password, account.hash))
        if not matches or account.user_id is None:
            raise AuthenticationError("There is no active user with this name and password.")
        return await self._open(account.user_id)

    async def with_invitation(self, invitation: str, password: str, *, client: str) -> str:
        """Choose a password. Raises AuthenticationError where the link is unknown, used or too old, RateLimitedError
        like `with_password`."""
        async with self.turns.take(network_of(client)):
            async with self._database.transaction(None) as connection:
                if not await is_invited(connection, invitation):
                    raise AuthenticationError(_NOT_INVITED)
            made = await run_apart(self._threads, partial(hash_password, password))
        async with self._database.transaction(None) as connection:
            user_id = await accept_invitation(connection, invitation, made)
        if user_id is None:
            raise AuthenticationError(_NOT_INVITED)
        return await self._open(user_id)

    async def end(self, session: str) -> None:
        async with self._database.transaction(None) as connection:
            await close_session(connection, session)

    async def _open(self, user_id: UUID) -> str:
        async with self._database.transaction(None) as connection:
            session = await open_session(connection, user_id, lifetime=self._lifetime)
        log.info("signed_in", user_id=str(user_id))
        return session


def network_of(client: str) -> str:
    """The IPv4 address, or the network of the IPv6 address, that an attempt is from."""
    with suppress(ValueError):
        address = ip_address(client)
        if isinstance(address, IPv6Address):  # or IPv4, as a socket for both sees it
            return str(address.ipv4_mapped or ip_network((address, 128 - _HOST_BITS), strict=False))
    return client

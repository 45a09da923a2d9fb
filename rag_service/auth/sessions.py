"""Sessions of browsers: a cookie that scripts cannot read, and a token that only our own page can send along.

The token is derived from the session and stands in a second cookie, which the page reads and repeats in a header (the
signed double-submit cookie of OWASP's CSRF cheat sheet). A session counts with its token alone, also for reading: a
page that was opened under another session is refused instead of showing somebody else's data.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass

from rag_service.errors import AuthenticationError
from rag_service.settings import Settings

TOKEN_HEADER = "X-CSRF-Token"  # noqa: S105 - a name


@dataclass(frozen=True, kw_only=True)
class CookieNames:
    """Browsers take a cookie with these prefixes only over https; with `__Host-` for this host alone and from nobody
    else, but only for all of its paths."""

    session: str
    token: str  # readable for the page
    sign_in: str  # binds what the provider sends to the browser that asked for it


def cookie_names(settings: Settings) -> CookieNames:
    prefix = ("__Secure-" if settings.sign_in.path else "__Host-") if settings.sign_in.is_secure else ""
    return CookieNames(session=f"{prefix}rag_session", token=f"{prefix}rag_csrf", sign_in=f"{prefix}rag_sign_in")


def derive(secret: str, *purpose: str) -> str:
    """A value for one purpose that shows nothing of the secret."""
    return hmac.new(secret.encode(), "\0".join(purpose).encode(), hashlib.sha256).hexdigest()


def find_session(headers: Mapping[str, str], names: CookieNames) -> str | None:
    """The session that the request's cookie names; None without one.

    Raises AuthenticationError if the token of the session does not come with it.
    """
    session = _read_cookies(headers.get("cookie", "")).get(names.session)
    if not session:
        return None
    given = headers.get(TOKEN_HEADER.lower(), "")
    if not hmac.compare_digest(given.encode(), derive(session, "csrf").encode()):
        raise AuthenticationError(f"A session also needs its token in the header {TOKEN_HEADER}.")
    return session


def _read_cookies(header: str) -> dict[str, str]:
    parts = (part.strip().partition("=") for part in header.split(";"))
    return {name: value for name, _, value in parts}

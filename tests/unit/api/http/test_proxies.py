"""What is believed of a proxy, and how paths below a root path are read."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError
from structlog.testing import capture_logs

from rag_service.api.application import create_litestar
from rag_service.api.http.proxies import Front, own_address
from rag_service.errors import ConfigurationError
from rag_service.settings import Settings

TRUSTED = {"trusted_proxies": "10.0.0.0/8, ::1"}
SAID = {"For": "203.0.113.7", "Proto": "https", "Host": "docs.example.org", "Prefix": "/team"}


def enter(
    settings: dict[str, Any], *, path: str = "/health", peer: str = "10.0.0.1", said: dict[str, str] | None = None
) -> tuple[Any, str | None]:
    """The scope of a request as routes see it, and where it is redirected to."""
    headers = [(b"host", b"internal:8000")]
    headers += [(f"x-forwarded-{name.lower()}".encode(), value.encode()) for name, value in (said or {}).items()]
    scope: Any = {"type": "http", "path": path, "raw_path": path.encode(), "scheme": "http", "headers": headers}
    scope["client"] = (peer, 4711)
    return scope, Front(Settings(**settings)).enter(scope)


def seen(scope: Any) -> tuple[str, str, bytes, str]:
    hosts = [value for name, value in scope["headers"] if name == b"host"]
    assert len(hosts) == 1
    return scope["client"][0], scope["scheme"], hosts[0], own_address(scope, "")


@pytest.mark.parametrize(("peer", "settings"), [("10.0.0.1", {}), ("192.0.2.1", TRUSTED), ("unix", TRUSTED)])
def test_nobody_but_a_trusted_proxy_is_believed(peer: str, settings: dict[str, Any]) -> None:
    scope, _ = enter(settings, peer=peer, said=SAID)
    assert seen(scope) == (peer, "http", b"internal:8000", "")


@pytest.mark.parametrize("peer", ["10.0.0.1", "::1", "::ffff:10.9.9.9"])
def test_a_trusted_proxy_is_believed(peer: str) -> None:
    scope, _ = enter(TRUSTED, peer=peer, said=SAID)
    assert seen(scope) == ("203.0.113.7", "https", b"docs.example.org", "/team")


@pytest.mark.parametrize(
    ("way", "warned"),
    [({}, []), ({"auth": "required", "public_url": "https://example.org"}, [("proxy_not_trusted", "192.0.2.1")])],
    ids=["keys alone", "passwords"],
)
def test_a_proxy_that_is_not_trusted_is_told_once_where_users_sign_in_with_passwords(
    way: dict[str, Any], warned: list[tuple[str, str]]
) -> None:
    front = Front(Settings(**TRUSTED, **way))
    forwarded: list[tuple[bytes, bytes]] = [(b"x-forwarded-for", b"203.0.113.7")]
    with capture_logs() as logged:
        for peer, headers in [("10.0.0.1", forwarded), ("192.0.2.1", []), *[("192.0.2.1", forwarded)] * 2]:
            scope: Any = {"type": "http", "path": "/", "client": (peer, 4711), "headers": headers}
            front.enter(scope)
    assert [(line["event"], line["address"]) for line in logged] == warned


def test_the_root_path_that_is_set_wins_over_a_header() -> None:
    scope, _ = enter({"root_path": "/rag", **TRUSTED}, said=SAID)
    assert own_address(scope, "/health") == "/rag/health"


@pytest.mark.parametrize(
    ("said", "client"),
    [
        ("198.51.100.1, 203.0.113.7, 10.2.2.2", "203.0.113.7"),  # the first is what the client claimed
        ("10.3.3.3", "10.3.3.3"),
        ("[2001:db8::1]:4711, 10.2.2.2:80", "2001:db8::1"),
        ("203.0.113.7, unknown", "10.0.0.1"),
    ],
)
def test_the_client_is_the_last_address_that_is_no_proxys(said: str, client: str) -> None:
    scope, _ = enter(TRUSTED, said={"For": said})
    assert scope["client"][0] == client


def test_what_a_client_sent_before_the_proxys_own_value_is_not_believed() -> None:
    scope, _ = enter(TRUSTED, said={name: f"evil, {value}" for name, value in SAID.items()})
    assert seen(scope) == ("203.0.113.7", "https", b"docs.example.org", "/team")


@pytest.mark.parametrize(
    "said",
    [{"Proto": "javascript"}, {"Host": "a b"}, {"Host": "a/b"}, {"Prefix": "//evil.example"}, {"Prefix": "/a/.."}],
)
def test_what_is_malformed_has_no_effect(said: dict[str, str]) -> None:
    scope, _ = enter(TRUSTED, said=said)
    assert seen(scope) == ("10.0.0.1", "http", b"internal:8000", "")


@pytest.mark.parametrize(
    ("path", "inner", "target"),
    [
        ("/health", "/health", None),  # the proxy has stripped it
        ("/rag/health", "/health", None),
        ("/rag/", "/", None),
        ("/rag", "", "/rag/"),
        ("/ragged", "/ragged", None),
        ("/api/v1/rag/x", "/api/v1/rag/x", None),
        ("/rag//evil.example", "//evil.example", None),
    ],
)
def test_the_root_path_is_taken_off_where_it_is_there(path: str, inner: str, target: str | None) -> None:
    scope, to = enter({"root_path": "/rag/"}, path=path)
    assert (scope["path"], scope["raw_path"], to) == (inner, inner.encode(), target)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"root_path": "rag"}, "is no path such as /rag"),
        ({"root_path": "/a/../b"}, "is no path such as /rag"),
        ({"root_path": "//evil"}, "is no path such as /rag"),
        ({"trusted_proxies": "proxy.example.org"}, "does not appear to be an IPv4 or IPv6 network"),
        ({"trusted_proxies": "10.0.0.1/8"}, "has host bits set"),
        (
            {"root_path": "/rag", "auth": "required", "public_url": "https://example.org"},
            "RAG_PUBLIC_URL must end with RAG_ROOT_PATH",
        ),
    ],
)
def test_wrong_settings_are_refused(changes: dict[str, Any], told: str) -> None:
    with pytest.raises(ValidationError, match=told):
        Settings(**changes)


@pytest.mark.parametrize("root", ["/api", "/health", "/api/v1"])
def test_a_root_path_that_is_an_address_of_our_own_is_refused(root: str) -> None:
    with pytest.raises(ConfigurationError, match="choose another one"):
        create_litestar(Settings(root_path=root))  # type: ignore[call-arg]

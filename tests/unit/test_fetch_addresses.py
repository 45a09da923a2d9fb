"""Which addresses a fetcher may connect to."""

from __future__ import annotations

import ipaddress

import pytest

from rag_service.sources.fetch import is_allowed


@pytest.mark.parametrize("address", ["93.184.215.14", "2606:2800:21f:cb07:6820:80da:af6b:8b2c", "::ffff:93.184.215.14"])
def test_public_addresses_are_allowed(address: str) -> None:
    assert is_allowed(ipaddress.ip_address(address), [])


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1", "127.9.9.9", "0.0.0.0",  # noqa: S104
        "10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1",
        "100.100.100.200", "168.63.129.16", "224.0.0.1", "255.255.255.255", "198.18.0.1", "::1", "::", "fe80::1",
        "fc00::1", "fd00:ec2::254", "ff02::1", "::ffff:127.0.0.1", "::ffff:169.254.169.254", "64:ff9b::7f00:1",
        "64:ff9b::a9fe:a9fe", "2002:7f00:1::", "2001:0:7f00:1::", "2001:db8::1", "64:ff9b:1::1",
    ],
)  # fmt: skip
def test_others_are_refused_unless_their_network_is_allowed(address: str) -> None:
    found = ipaddress.ip_address(address)
    assert not is_allowed(found, [])
    assert not is_allowed(found, [ipaddress.ip_network("203.0.113.0/24")])


def test_an_allowed_network_allows_its_own_addresses_alone() -> None:
    networks = [ipaddress.ip_network("10.1.0.0/16")]
    assert is_allowed(ipaddress.ip_address("10.1.2.3"), networks)
    assert is_allowed(ipaddress.ip_address("::ffff:10.1.2.3"), networks)
    assert not is_allowed(ipaddress.ip_address("10.2.0.1"), networks)

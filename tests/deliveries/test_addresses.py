"""To which addresses a delivery may go."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from roster_service.deliveries.addresses import find_address, is_public, require_public
from roster_service.errors import CommandError
from roster_service.settings import Settings

PUBLIC = ("8.8.8.8", "93.184.216.34", "2606:2800:220:1:248:1893:25c8:1946")
PRIVATE = {
    "this machine": "127.0.0.1",
    "this machine in IPv6": "::1",
    "a private network": "10.1.2.3",
    "a link": "169.254.169.254",
    "a link in IPv6": "fe80::1%eth0",
    "a local network in IPv6": "fd00::1",
    "a site in IPv6": "fec0::1",
    "shared by customers of a provider": "100.64.0.1",
    "mapped": "::ffff:8.8.8.8",
    "compatible": "::8.8.8.8",
    "NAT64": "64:ff9b::a01:203",
    "NAT64 of a network": "64:ff9b:1::a01:203",
    "6to4": "2002:a01:203::1",
    "Teredo": "2001:0:a01:203::1",
    "multicast": "224.0.0.1",
    "multicast to all": "239.255.255.250",
    "multicast in IPv6": "ff0e::1",
    "documentation": "2001:db8::1",
    "nobody": "0.0.0.0",
    "everybody": "255.255.255.255",
}


@pytest.mark.parametrize("address", PUBLIC)
def test_a_public_address_is_public(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize("address", PRIVATE.values(), ids=PRIVATE)
def test_an_address_that_may_lead_into_the_own_network_is_private(address: str) -> None:
    assert not is_public(address)


def test_one_private_address_of_a_name_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever owns the name decides which of them is used."""

    def look_up(host: str, port: int, **_: Any) -> list[Any]:
        if host == "unknown.example":
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return [(None, None, None, "", (address, port)) for address in (PUBLIC[0], PRIVATE["NAT64"])]

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    with pytest.raises(CommandError, match=r"sftp\.example has a private address"):
        require_public("sftp.example", 22, Settings())
    assert find_address("sftp.example", 22, Settings(delivery_private_hosts="other, sftp.example")) == PUBLIC[0]
    assert require_public("unknown.example", 22, Settings()) == []
    with pytest.raises(CommandError, match=r"the name unknown\.example has no address"):
        find_address("unknown.example", 22, Settings())

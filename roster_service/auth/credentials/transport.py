"""The rule that no credentials and no records travel in clear text: RFC 6749, section 3.2, requires TLS."""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

from authlib.common.security import is_secure_transport


def is_secure(address: str, client: str | None) -> bool:
    """Returns whether a request that a client sends to this address stays secret on its way.

    `address`: the address that clients use: on the public URL if it is set, else the address of the request as trusted
    proxies report it. `client`: the network address that the request comes from.

    An https address is secure. An http address is secure only if its host is `localhost` or a loopback address, and the
    request comes from this machine. Both are required: any client can send `localhost` as Host, and a proxy on this
    machine that no setting declares passes on requests from other machines. A public URL with http does not make a
    request secure.
    """
    return bool(is_secure_transport(address)) and (urlsplit(address).scheme == "https" or is_loopback(client or ""))


def is_local_host(host: str) -> bool:
    """Returns whether the host of an address means the machine itself: `localhost`, or a loopback address."""
    return host == "localhost" or is_loopback(host)


def is_loopback(client: str) -> bool:
    """Returns whether a network address is a loopback address. False for a text that is no address."""
    try:
        address = ipaddress.ip_address(client)
    except ValueError:
        return False
    # An IPv6 socket shows an IPv4 address in its mapped form.
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return (mapped or address).is_loopback

"""Whether a request for a token can be read on its way to the service: RFC 6749, section 3.2, requires TLS."""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

from authlib.common.security import is_secure_transport


def is_secure(address: str, client: str | None) -> bool:
    """Whether what a client sends to this address stays secret.

    `address`: the one that clients use: of the public URL where that is set, else of the request, as far as a trusted
    proxy says it. `client`: the network address that the request comes from.

    Over https it does. Over http it does on the machine itself, which both have to say: anyone can send `localhost` as
    Host, and a proxy on this machine that no setting declares passes on requests from outside. A public URL over http
    opens nothing: it says where the service is, not that secrets may be read.
    """
    return bool(is_secure_transport(address)) and (urlsplit(address).scheme == "https" or is_loopback(client or ""))


def is_loopback(client: str) -> bool:
    """Whether a network address is of the machine itself."""
    try:
        address = ipaddress.ip_address(client)
    except ValueError:
        return False
    # The form of an address of version 4 on a socket of version 6.
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return (mapped or address).is_loopback

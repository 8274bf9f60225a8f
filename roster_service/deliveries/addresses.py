"""The addresses of receivers: a delivery must not reach into the own network."""

from __future__ import annotations

import ipaddress
import socket

from roster_service.errors import CommandError
from roster_service.settings import Settings

# All public addresses of single machines lie here. Outside are those that have an IPv4 address inside, which a gateway
# may take into the own network (NAT64, `::a.b.c.d`), and multicast; 6to4 has one inside, too.
_UNICAST = ipaddress.ip_network("2000::/3")
_6TO4 = ipaddress.ip_network("2002::/16")


def is_public(address: str) -> bool:
    """Returns whether an IP address is that of one machine, and of no private one, whatever a gateway makes of it."""
    found = ipaddress.ip_address(address)
    if found.version == 4:
        return found.is_global and not found.is_multicast
    return found.is_global and found in _UNICAST and found not in _6TO4


def find_address(host: str, port: int, settings: Settings) -> str:
    """Returns the address of a server. Raises CommandError if it has none, or as `require_public`."""
    found = require_public(host, port, settings)
    if not found:
        raise CommandError(f"the name {host} has no address")
    return found[0]


def require_public(host: str, port: int, settings: Settings) -> list[str]:
    """Returns the addresses of a server, none if its name has none now. Raises CommandError for a private one that no
    setting allows, and for what can be no name."""
    try:
        addresses = [str(place[4][0]) for place in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]
    except OSError:
        return []
    except UnicodeError:
        raise CommandError(f"{host} is no name of a server") from None
    allowed = host in (settings.delivery_private_hosts or "").replace(",", " ").split()
    if not (allowed or all(map(is_public, addresses))):
        raise CommandError(f"{host} has a private address; ROSTER_DELIVERY_PRIVATE_HOSTS may name it")
    return addresses

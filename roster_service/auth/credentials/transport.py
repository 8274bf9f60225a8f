"""The rule that nothing shows a secret, or takes a password, key or signature, in clear text: RFC 6749, section 3.2,
requires TLS. A rostering request with a token is not refused: who sent it over plain http has shown the token already.
"""

from __future__ import annotations

import enum
import ipaddress
from urllib.parse import urlsplit

from authlib.common.security import is_secure_transport


class Guarded(enum.Enum):
    """All that shows or takes a secret. The values: what the service does there, as a refusal says it, and whether the
    public URL is the address that clients use. The console has an address of its own beside it."""

    TOKEN = ("issues tokens", True)
    SIGNATURE = ("takes signed requests", True)
    SECRET_LINK = ("shows a secret", True)
    API_KEY = ("takes API keys and passwords", True)
    CONSOLE = ("takes passwords and shows secrets", False)

    def __init__(self, does: str, has_public_url: bool) -> None:
        self.does = does
        self.has_public_url = has_public_url

    def explain_insecure(self, address: str, client: str | None) -> str | None:
        """Returns why the service refuses a request, and what the operator can set; None if it stays secret on its
        way. The arguments are those of `is_secure`."""
        if is_secure(address, client):
            return None
        settings = "ROSTER_PUBLIC_URL or ROSTER_TRUSTED_PROXIES" if self.has_public_url else "ROSTER_TRUSTED_PROXIES"
        return (
            f"the service {self.does} over https only, and this request came over http; behind a proxy that terminates "
            f"TLS, the operator sets {settings}"
        )


def is_secure(address: str, client: str | None) -> bool:
    """Returns whether a request that a client sends to this address stays secret on its way.

    `address`: that which clients use. `client`: the network address that the request comes from.

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

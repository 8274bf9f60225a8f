"""The link with which an operator sets a password: signed, and valid for 48 hours.

Its token names the operator, and the random part that the database has for the present link. It has no role. The
database tells whether the link was used: `roster_service/accounts/operators.py` asks.
"""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from itsdangerous import BadData, SignatureExpired, URLSafeTimedSerializer

from roster_service.errors import CommandError

LINK_SECONDS = 48 * 3600
# The path at which the console takes the link.
LINK_PATH = "/console/password"
_SALT = "operator link"


@dataclass(frozen=True)
class OperatorLink:
    """What a token of a link says: the operator's number, and the random part of the link."""

    operator_id: int
    link: UUID


def sign_link(link: OperatorLink, secret_key: str) -> str:
    """Returns the token of a link, in characters that need no escape in an address."""
    return str(_make_serializer(secret_key).dumps([link.operator_id, link.link.hex]))


def read_link(token: str, secret_key: str) -> OperatorLink:
    """Returns what a token says. Raises CommandError for a token that is forged, damaged, or older than 48 hours."""
    try:
        operator_id, link = _make_serializer(secret_key).loads(token, max_age=LINK_SECONDS)
        return OperatorLink(operator_id, UUID(link))
    except SignatureExpired:
        raise CommandError("the link has ended; an owner can make a new one") from None
    except (BadData, ValueError, TypeError):
        raise CommandError("this is no link of this service") from None


def _make_serializer(secret_key: str) -> URLSafeTimedSerializer:
    return URLSafeTimedSerializer(secret_key, salt=_SALT)

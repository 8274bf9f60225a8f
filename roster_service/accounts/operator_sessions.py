"""How an operator logs in to the console: links to set a password, one-time codes, sessions.

The token of a link names the operator, and the random part that the database has for the present link. It has no role.
The database tells whether the link was used: `roster_service/accounts/operators.py` asks. The key of one-time codes,
which app and service share, is sealed with the secret key of the service; a code counts once.

A browser has the token of its session, the database only its hash. A session ends with the account of its operator,
with a new password, after some time without a request, and some hours after its login in any case.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import time
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

import pyotp
import sqlalchemy as sa
from cryptography.fernet import InvalidToken
from itsdangerous import BadData, SignatureExpired, URLSafeTimedSerializer

from roster_service.auth.credentials.signing_keys import make_seal
from roster_service.change_log.actors import OperatorRole
from roster_service.db.instants import format_instant
from roster_service.db.tables import operator_sessions, operators
from roster_service.errors import CommandError

LINK_SECONDS = 48 * 3600
# The path at which the console takes the link.
LINK_PATH = "/console/password"
_SALT = "operator link"
_KEY = re.compile("[A-Z2-7]{32}", re.ASCII)
ISSUER = "Roster Service"
# Clocks may differ by a step of 30 seconds in either direction.
TOLERATED_STEPS = 1


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


def make_code_key() -> str:
    """Returns a new key, as people type it into an app."""
    return pyotp.random_base32()


def is_code_key(text: str) -> bool:
    """Returns whether a text is a key of `make_code_key`."""
    return _KEY.fullmatch(text) is not None


def make_address(key: str, email: str) -> str:
    """Returns the address of a key that apps read from a QR code."""
    return str(pyotp.TOTP(key).provisioning_uri(name=email, issuer_name=ISSUER))


def find_step(key: str, code: str) -> int | None:
    """Returns the time step that a code is of, if it is one of now; else None, also for a text that is no key."""
    if not is_code_key(key):
        return None
    generator = pyotp.TOTP(key)
    now = int(time.time()) // generator.interval
    given = "".join(code.split())
    steps = range(now - TOLERATED_STEPS, now + TOLERATED_STEPS + 1)
    return next((step for step in steps if pyotp.utils.strings_equal(given, generator.generate_otp(step))), None)


def store_code_key(connection: sa.Connection, email: str, key: str | None, step: int | None, secret_key: str) -> None:
    """Stores the key of an operator, and the step of the code that was used last; None ends the codes."""
    sealed = None if key is None else make_seal(secret_key).encrypt(key.encode())
    own = sa.update(operators).where(operators.c.email == email)
    connection.execute(own.values(code_key_sealed=sealed, code_step=step))


def use_code(connection: sa.Connection, email: str, code: str, secret_key: str) -> bool:
    """Returns whether an operator may log in with this code: it is one of now, and was not used; or the operator has
    none. The operator's row stays locked until the end of the transaction, so two logins cannot use one code."""
    own = sa.select(operators.c.code_key_sealed, operators.c.code_step).where(operators.c.email == email)
    stored = connection.execute(own.with_for_update()).one()
    if stored.code_key_sealed is None:
        return True
    try:
        key = make_seal(secret_key).decrypt(bytes(stored.code_key_sealed)).decode()
    except InvalidToken:
        # Sealed with another secret key: an owner can reset the operator.
        return False
    step = find_step(key, code)
    if step is None or (stored.code_step is not None and step <= stored.code_step):
        return False
    connection.execute(sa.update(operators).where(operators.c.email == email).values(code_step=step))
    return True


@dataclass(frozen=True)
class Lifetime:
    """How long a session lasts: `idle` without a request, and `most` in all."""

    idle: timedelta
    most: timedelta

    @property
    def step(self) -> timedelta:
        """How much older the stored instant of the last request may be: not every request writes it."""
        return min(self.idle / 60, timedelta(minutes=1))

    def is_live(self) -> sa.ColumnElement[bool]:
        """The condition that a session has not ended."""
        own = operator_sessions.c
        return sa.and_(own.used_at > sa.func.now() - self.idle, own.created_at > sa.func.now() - self.most)


@dataclass(frozen=True)
class OpenSession:
    """A session that has not ended. `began`, `used`: ISO 8601, UTC; `used`: at most a minute before the last request;
    `address`, `browser`: that the login came from."""

    id: int
    operator: str
    began: str
    used: str
    address: str | None
    browser: str | None


@dataclass(frozen=True)
class SignedIn:
    """The session of a request, and its operator, with the present role."""

    session_id: int
    email: str
    name: str
    role: OperatorRole


def begin_session(
    connection: sa.Connection, email: str, address: str | None, browser: str | None, lifetime: Lifetime
) -> str:
    """Begins a session of an operator who has just proved who they are, and returns its token. Deletes the sessions
    that have ended, of all operators."""
    connection.execute(sa.delete(operator_sessions).where(~lifetime.is_live()))
    token = secrets.token_urlsafe(32)
    own = sa.select(operators.c.id).where(operators.c.email == email).scalar_subquery()
    row = {"operator_id": own, "token_hash": _hash(token), "address": address, "browser": browser and browser[:300]}
    connection.execute(sa.insert(operator_sessions).values(row))
    return token


def find_session(connection: sa.Connection, token: str, lifetime: Lifetime) -> SignedIn | None:
    """Returns the session with this token; None if there is none, if it has ended, or if its operator is disabled. The
    connection may write: the session was just used."""
    found = connection.execute(
        sa.select(
            operator_sessions.c.id,
            operators.c.email,
            operators.c.name,
            operators.c.role,
            (operator_sessions.c.used_at < sa.func.now() - lifetime.step).label("is_older"),
        )
        .join(operators, operators.c.id == operator_sessions.c.operator_id)
        .where(operator_sessions.c.token_hash == _hash(token), operators.c.enabled, lifetime.is_live())
    ).one_or_none()
    if found is None:
        return None
    if found.is_older:
        used = sa.update(operator_sessions).where(operator_sessions.c.id == found.id)
        connection.execute(used.values(used_at=sa.func.now()))
    return SignedIn(found.id, found.email, found.name, OperatorRole(found.role))


def list_sessions(connection: sa.Connection, lifetime: Lifetime, email: str | None) -> list[OpenSession]:
    """Lists the sessions that have not ended, the latest use first. `email`: only those of this operator."""
    rows = (
        sa.select(operator_sessions, operators.c.email)
        .join(operators, operators.c.id == operator_sessions.c.operator_id)
        .where(lifetime.is_live(), *([] if email is None else [operators.c.email == email]))
        .order_by(operator_sessions.c.used_at.desc(), operator_sessions.c.id)
    )
    return [
        OpenSession(
            row.id, row.email, format_instant(row.created_at), format_instant(row.used_at), row.address, row.browser
        )
        for row in connection.execute(rows)
    ]


def end_session(connection: sa.Connection, session_id: int, email: str | None) -> bool:
    """Ends a session. `email`: only if it is of this operator. Returns whether there was such a session."""
    own = [operator_sessions.c.id == session_id, *_of(email)]
    return connection.execute(sa.delete(operator_sessions).where(*own)).rowcount > 0


def end_sessions(connection: sa.Connection, email: str) -> int:
    """Ends all sessions of an operator. Returns how many there were."""
    return connection.execute(sa.delete(operator_sessions).where(*_of(email))).rowcount


def _of(email: str | None) -> list[sa.ColumnElement[bool]]:
    if email is None:
        return []
    own = sa.select(operators.c.id).where(operators.c.email == email)
    return [operator_sessions.c.operator_id.in_(own)]


def _hash(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()

"""The sessions of operators in the console. The database has them, so each can be listed, and ended on every worker.

A browser has the token of its session, the database only its hash. A session ends with its operator's account, with a
new password, after some time without a request, and some hours after its login in any case.
"""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass
from datetime import timedelta

import sqlalchemy as sa

from roster_service.change_log.actors import OperatorRole
from roster_service.db.instants import format_instant
from roster_service.db.tables import operator_sessions, operators

# How much older the stored instant of the last request may be: not every request writes it.
_USE_STEP = timedelta(minutes=1)


@dataclass(frozen=True)
class Lifetime:
    """How long a session lasts: `idle` without a request, and `most` in all."""

    idle: timedelta
    most: timedelta

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
            (operator_sessions.c.used_at < sa.func.now() - _USE_STEP).label("is_older"),
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

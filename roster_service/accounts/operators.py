"""The accounts of operators, the people who run the service: as owners add, list and change them.

The functions work on a connection that the caller commits. Each change needs an actor, and is one row of the change
log. Every change waits for others of operators, so there is always an owner left, whatever two owners do at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import sqlalchemy as sa

from roster_service.accounts.operator_sessions import (
    OperatorLink,
    end_sessions,
    find_step,
    read_link,
    sign_link,
    store_code_key,
    use_code,
)
from roster_service.auth.credentials.secrets import hash_password, matches_password
from roster_service.change_log.actors import Actor, ActorKind, OperatorRole, normalize_email, read_email, read_name
from roster_service.change_log.changes import State, Subject, Verb, recorded
from roster_service.db.tables import operators
from roster_service.errors import CommandError, WrongCodeError


@dataclass(frozen=True)
class OperatorAccount:
    """An operator's account. `has_password`: whether the operator has used a link; `has_link`: whether one was made
    that nobody has used, which may be older than 48 hours; `has_codes`: whether a login with the password needs a
    one-time code too."""

    email: str
    name: str
    role: OperatorRole
    enabled: bool
    has_password: bool
    has_link: bool
    has_codes: bool


def list_operators(connection: sa.Connection, *conditions: sa.ColumnElement[bool]) -> list[OperatorAccount]:
    """Lists the operators for which all conditions hold, ordered by e-mail."""
    return [
        OperatorAccount(
            email=row.email,
            name=row.name,
            role=OperatorRole(row.role),
            enabled=row.enabled,
            has_password=row.password_hash is not None,
            has_link=row.link is not None,
            has_codes=row.code_key_sealed is not None,
        )
        for row in connection.execute(sa.select(operators).where(*conditions).order_by(operators.c.email))
    ]


def find_operator(connection: sa.Connection, email: str) -> OperatorAccount:
    """Returns the operator with this e-mail. Raises CommandError if there is none."""
    found = _find(connection, email)
    if found is None:
        raise CommandError(f"there is no operator {email}; `roster operator list` shows all")
    return found


def _find(connection: sa.Connection, email: str) -> OperatorAccount | None:
    return next(iter(list_operators(connection, operators.c.email == normalize_email(email))), None)


def add_operator(
    connection: sa.Connection, actor: Actor, email: str, name: str, role: OperatorRole, secret_key: str
) -> str:
    """Adds an operator, who sets a password with a link. Returns the token of the link. Raises CommandError if the
    e-mail is not an address, or is taken, and for a name that is blank or too long."""
    address = read_email(email)
    with _recorded(connection, actor, Verb.OPERATOR_ADD, address):
        if _find(connection, address) is not None:
            raise CommandError(f"there is an operator {address} already")
        connection.execute(sa.insert(operators).values(email=address, name=read_name(name), role=role))
        return _make_link(connection, address, secret_key)


def set_role(connection: sa.Connection, actor: Actor, email: str, role: OperatorRole) -> OperatorAccount:
    """Gives an operator another role. Raises CommandError for an unknown operator and for the last owner."""
    return _change(connection, actor, Verb.OPERATOR_SET_ROLE, email, {"role": role})


def set_operator_enabled(connection: sa.Connection, actor: Actor, email: str, enabled: bool) -> OperatorAccount:
    """Enables an operator, or disables one, and ends an open link and all sessions. A link that was made since counts
    from then on. Raises CommandError for an unknown operator and for the last owner."""
    if enabled:
        return _change(connection, actor, Verb.OPERATOR_ENABLE, email, {"enabled": True})
    end_sessions(connection, normalize_email(email))
    return _change(connection, actor, Verb.OPERATOR_DISABLE, email, {"enabled": False, "link": None})


def reset_password(connection: sa.Connection, actor: Actor, email: str, secret_key: str) -> str:
    """Ends the password of an operator, its one-time codes, its open link and its sessions, and returns the token of a
    new link. Raises CommandError for an unknown operator."""
    with _recorded(connection, actor, Verb.OPERATOR_RESET, email):
        found = find_operator(connection, email)
        end_sessions(connection, found.email)
        ended = {"password_hash": None, "code_key_sealed": None, "code_step": None, "directory_subject": None}
        connection.execute(sa.update(operators).where(operators.c.email == found.email).values(ended))
        return _make_link(connection, found.email, secret_key)


def remove_operator(connection: sa.Connection, actor: Actor, email: str) -> None:
    """Deletes an operator; the change log keeps what the operator did. Raises CommandError for an unknown operator and
    for the last owner."""
    with _recorded(connection, actor, Verb.OPERATOR_REMOVE, email), _keeping_an_owner(connection):
        found = find_operator(connection, email)
        connection.execute(sa.delete(operators).where(operators.c.email == found.email))


def find_linked(connection: sa.Connection, token: str, secret_key: str) -> OperatorAccount:
    """Returns the operator whose link this is. Raises CommandError as `use_link`."""
    return _find_linked(connection, read_link(token, secret_key))


def _find_linked(connection: sa.Connection, said: OperatorLink) -> OperatorAccount:
    own = operators.c.id == said.operator_id, operators.c.link == said.link, operators.c.enabled
    email = connection.scalar(sa.select(operators.c.email).where(*own))
    if email is None:
        raise CommandError(
            "the link was used already, a newer one was made, or you are disabled; log in, or ask an owner"
        )
    return find_operator(connection, email)


def use_link(connection: sa.Connection, token: str, password: str, secret_key: str) -> OperatorAccount:
    """Sets the password of the operator whose link this is, and ends the link and all sessions. The operator is the
    actor.

    Raises CommandError for a token that is forged, damaged or older than 48 hours, for a link that was used or
    replaced, for a disabled or removed operator, and for a password that is too short or too long.
    """
    said = read_link(token, secret_key)
    hashed = hash_password(password)
    _lock(connection)
    email = _find_linked(connection, said).email
    with _recorded(connection, Actor(ActorKind.OPERATOR, email, None), Verb.OPERATOR_SET_PASSWORD, email):
        own = operators.c.email == email
        connection.execute(sa.update(operators).where(own).values(password_hash=hashed, link=None))
        end_sessions(connection, email)
    return find_operator(connection, email)


def verify_password(connection: sa.Connection, email: str, password: str) -> OperatorAccount | None:
    """Returns the enabled operator with this e-mail and this password; None if there is none. A login needs a one-time
    code too, if the operator has such codes. An unknown e-mail takes the same time as a wrong password."""
    address = normalize_email(email)
    stored = sa.select(operators.c.password_hash).where(operators.c.email == address, operators.c.enabled)
    return _find(connection, address) if matches_password(connection.scalar(stored), password) else None


def set_codes(connection: sa.Connection, actor: Actor, key: str | None, code: str, secret_key: str) -> None:
    """Gives the actor, an operator, one-time codes with this key, which the first code proves; `key`: None ends them,
    with a code of the present key. Raises WrongCodeError for a code that is wrong or was used, and CommandError for a
    key in place of a present one."""
    with _recorded(connection, actor, Verb.OPERATOR_SET_CODES, actor.name):
        if key is not None and find_operator(connection, actor.name).has_codes:
            raise CommandError("a login needs codes already; turn them off first, with one of them")
        step = None if key is None else find_step(key, code)
        is_proved = use_code(connection, actor.name, code, secret_key) if key is None else step is not None
        if not is_proved:
            raise WrongCodeError("the code is wrong, or was used already; wait for the next one")
        store_code_key(connection, actor.name, key, step, secret_key)


def find_directory_operator(connection: sa.Connection, subject: str, email: str) -> OperatorAccount | None:
    """Returns the enabled operator whose account in the directory this is: the one that has logged in with it, or, for
    its first login, the one with its e-mail, who has it from now on. None if there is none, and for an e-mail whose
    operator has another account."""
    own = sa.select(operators.c.email).where(operators.c.enabled)
    found = connection.scalar(own.where(operators.c.directory_subject == subject))
    if found is None:
        first = (operators.c.email == normalize_email(email), operators.c.directory_subject.is_(None))
        claimed = sa.update(operators).where(*first, operators.c.enabled).values(directory_subject=subject)
        found = connection.scalar(claimed.returning(operators.c.email))
    return None if found is None else _find(connection, found)


def _make_link(connection: sa.Connection, email: str, secret_key: str) -> str:
    """Gives an operator a new link, which ends the one before it. Returns its token."""
    link = uuid4()
    own = sa.update(operators).where(operators.c.email == email).values(link=link)
    return sign_link(OperatorLink(connection.execute(own.returning(operators.c.id)).scalar_one(), link), secret_key)


def _change(connection: sa.Connection, actor: Actor, verb: Verb, email: str, values: dict[str, Any]) -> OperatorAccount:
    with _recorded(connection, actor, verb, email), _keeping_an_owner(connection):
        found = find_operator(connection, email)
        connection.execute(sa.update(operators).where(operators.c.email == found.email).values(values))
    return find_operator(connection, email)


@contextmanager
def _recorded(connection: sa.Connection, actor: Actor, verb: Verb, email: str) -> Iterator[None]:
    """Records the change of an operator that the block makes."""
    address = normalize_email(email)

    def read_state() -> State:
        found = _find(connection, address)
        return None if found is None else {name: value for name, value in vars(found).items() if name != "email"}

    _lock(connection)
    with recorded(connection, actor, verb, Subject.of_operator(address), read_state):
        yield


def _lock(connection: sa.Connection) -> None:
    """Waits for other changes of operators. It precedes the check of the actor's role, which may just be changing."""
    connection.execute(sa.text("LOCK TABLE operators IN SHARE ROW EXCLUSIVE MODE"))


@contextmanager
def _keeping_an_owner(connection: sa.Connection) -> Iterator[None]:
    """Raises CommandError if the block leaves no enabled owner where there was one."""
    owners = sa.select(sa.exists().where(operators.c.role == OperatorRole.OWNER, operators.c.enabled))
    had_owner = connection.scalar(owners)
    yield
    if had_owner and not connection.scalar(owners):
        raise CommandError("this is the last owner; make another operator an owner first")

"""Who makes a change: an operator, the command line, or the sync."""

from __future__ import annotations

import json
import os
import pwd
import socket
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path

import sqlalchemy as sa

from roster_service.db.tables import operators
from roster_service.errors import CommandError

# In characters.
LONGEST_NAME = 200


def normalize_email(email: str) -> str:
    """Returns an e-mail address in the spelling in which it is stored."""
    return email.strip().lower()


def read_email(email: str) -> str:
    """Returns the address of a new account in the spelling in which it is stored. Raises CommandError if it is none."""
    address = normalize_email(email)
    if address.count("@") != 1 or any(part == "" for part in address.split("@")):
        raise CommandError(f"{email!r} is no e-mail address")
    return address


def read_name(name: str) -> str:
    """Returns the name of a new account without blanks around it. Raises CommandError for none, and for one that no
    screen has room for."""
    stripped = name.strip()
    if not stripped or len(stripped) > LONGEST_NAME:
        raise CommandError(f"a name has 1 to {LONGEST_NAME} characters")
    return stripped


# The user who logged in to the machine: sudo and su leave this number as it is, and only the kernel can set it.
LOGIN_USER = Path("/proc/self/loginuid")


class OperatorRole(StrEnum):
    """The role of an operator, in ascending order: each may do what the ones before it may."""

    # Sees runs and counts, and no person: only the screens that name this role. Changes nothing but the own password.
    OBSERVER = "observer"
    # Sees people too.
    VIEWER = "viewer"
    EDITOR = "editor"
    # Changes operators too.
    OWNER = "owner"

    def includes(self, least: OperatorRole) -> bool:
        """Returns whether this role may do what needs the role `least`."""
        roles = list(OperatorRole)
        return roles.index(self) >= roles.index(least)


class ActorKind(StrEnum):
    """The kind of an actor."""

    OPERATOR = "operator"
    SYSTEM_USER = "system user"
    # A vendor, with a link that an operator made for it.
    VENDOR = "vendor"


@dataclass(frozen=True)
class Actor:
    """Who makes a change, and why. `name`: the operator's e-mail, or `user@host`; `reason`: None if none was given;
    `form`: the random text of a form that must count once.

    An actor holds no role: the database has the operator's role, and is asked at each change.
    """

    kind: ActorKind
    name: str
    reason: str | None
    form: str | None = None

    def to_text(self) -> str:
        """Returns the actor as a text that `read` takes: a command hands its actor to a script of the sync."""
        return json.dumps(asdict(self))

    @staticmethod
    def read(text: str) -> Actor:
        """Returns the actor of a text of `to_text`."""
        values = json.loads(text)
        return Actor(ActorKind(values["kind"]), values["name"], values["reason"])


def find_system_user(reason: str | None) -> Actor:
    """Returns the system user of this process. A user who logged in under another name is named too."""
    user, login = _name_user(os.geteuid()), _read_login_user()
    name = user if login in (None, user) else f"{login} as {user}"
    return Actor(ActorKind.SYSTEM_USER, f"{name}@{socket.gethostname()}", reason)


def _read_login_user() -> str | None:
    try:
        number = int(LOGIN_USER.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None
    # The greatest number says that there was no login, as in a service.
    return None if number == 2**32 - 1 else _name_user(number)


def _name_user(number: int) -> str:
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return str(number)


def require_role(connection: sa.Connection, actor: Actor, least: OperatorRole, verb: str) -> None:
    """Raises CommandError unless the actor is an enabled operator with the role `least` or more, or a system user, who
    counts as an owner: the command line has the owner's rights in the database.

    The operator's row is locked until the end of the transaction, so a role that is taken away meanwhile counts.
    """
    if actor.kind is ActorKind.SYSTEM_USER:
        return
    own = sa.select(operators.c.role).where(operators.c.email == actor.name, operators.c.enabled)
    role = connection.scalar(own.with_for_update(read=True))
    if role is None or not OperatorRole(role).includes(least):
        known = "no enabled operator" if role is None else f"{'an' if role[0] in 'eo' else 'a'} {role}"
        raise CommandError(f"{actor.name} is {known}; `{verb}` needs the role {least}")

"""The first operator of the console, whom `roster run` adds with the embedded database."""

from __future__ import annotations

import sys
from dataclasses import dataclass

import click
import sqlalchemy as sa

from roster_service.accounts import operators
from roster_service.accounts.operator_link import LINK_PATH
from roster_service.change_log.actors import OperatorRole, find_system_user, read_email
from roster_service.errors import CommandError
from roster_service.settings import Settings


@dataclass(frozen=True)
class FirstOperator:
    """The owner who is added first. `name`: for people."""

    email: str
    name: str


@dataclass(frozen=True)
class FirstInvitation:
    """The e-mail of the first operator, and the address at which this operator sets a password."""

    email: str
    link: str


def read_first(email: str | None, name: str | None, *, may_ask: bool) -> FirstOperator | None:
    """Returns the first operator by the options of the command, else as a person at a terminal types it; None if there
    is neither. Raises CommandError if the e-mail is not an address."""
    if email is not None:
        address = read_email(email)
        return FirstOperator(address, name or address)
    if not (may_ask and sys.stdin.isatty()):
        return None
    typed = click.prompt("E-mail address of the first operator of the console", value_proc=_read_typed)
    return FirstOperator(typed, name or click.prompt("Name", default=typed))


def _read_typed(typed: str) -> str:
    try:
        return read_email(typed)
    except CommandError as error:
        raise click.UsageError(str(error)) from None


def invite_first(
    engine: sa.Engine, settings: Settings, email: str | None, name: str | None, *, may_ask: bool
) -> FirstInvitation | None:
    """Adds an owner if there are no operators. `email`, `name`, `may_ask`: as for `read_first`. Returns the invitation
    of the first operator; None if nobody is named, once an operator has a password, or if other operators are there."""
    with engine.connect() as connection:
        found = operators.list_operators(connection)
    # No transaction waits for the person who types.
    first = None if found else read_first(email, name, may_ask=may_ask)
    actor, key = find_system_user("the first operator"), settings.read_secret_key()
    with engine.begin() as connection:
        if first is not None:
            token = operators.add_operator(connection, actor, first.email, first.name, OperatorRole.OWNER, key)
            invited = first.email
        elif [(operator.role, operator.has_password) for operator in found] == [(OperatorRole.OWNER, False)]:
            invited = found[0].email
            token = operators.reset_password(connection, actor, invited, key)
        else:
            return None
    return FirstInvitation(invited, f"{settings.console_url}{LINK_PATH}?link={token}")

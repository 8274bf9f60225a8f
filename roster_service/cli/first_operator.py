"""The first operator of the console, whom `roster run` adds beside the demo."""

from __future__ import annotations

from sqlalchemy import Connection

from roster_service.access import operators
from roster_service.access.credentials.operator_link import LINK_PATH
from roster_service.db.actors import OperatorRole, find_system_user
from roster_service.settings import Settings

EMAIL = "owner@example.org"


def invite_first(connection: Connection, settings: Settings) -> str | None:
    """Adds an owner if there are no operators. Returns the address with which the owner sets a password; None once an
    operator has one, or if other operators are there."""
    actor = find_system_user("the first operator")
    found = operators.list_operators(connection)
    key = settings.read_secret_key()
    if not found:
        token = operators.add_operator(connection, actor, EMAIL, "First owner", OperatorRole.OWNER, key)
    elif [(it.email, it.has_password) for it in found] == [(EMAIL, False)]:
        token = operators.reset_password(connection, actor, EMAIL, key)
    else:
        return None
    return f"{settings.console_url}{LINK_PATH}?link={token}"

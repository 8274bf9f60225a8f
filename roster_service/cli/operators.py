"""`roster operator`: the accounts of the people who run the service."""

from __future__ import annotations

import dataclasses
from urllib.parse import urlsplit

import click

from roster_service.accounts import operators
from roster_service.accounts.operator_sessions import LINK_PATH, LINK_SECONDS
from roster_service.accounts.operators import OperatorAccount
from roster_service.auth.credentials.transport import is_local_host
from roster_service.change_log.actors import OperatorRole
from roster_service.cli import terminal
from roster_service.settings import Settings

# The addresses to listen on that are those of no machine.
ANY_HOST = ("0.0.0.0", "::")  # noqa: S104  (nothing listens here)
OWN_ADDRESS = (
    "{} is the machine of the service itself. If people reach the console at another address, set ROSTER_PUBLIC_URL to "
    "it; `roster operator reset {}` then prints a link with it."
)
ROLES = click.Choice([role.value for role in OperatorRole])


@dataclasses.dataclass(frozen=True)
class PasswordLink:
    """The link with which an operator sets a password, once, within `hours`, while the operator is enabled."""

    email: str
    link: str
    hours: int
    enabled: bool


@click.group()
def operator() -> None:
    """The people who run the service, and what each may change."""


@operator.command("add")
@click.argument("email")
@click.option("--name", required=True, help="The operator's name, for people.")
@click.option("--role", type=ROLES, required=True, help="What the operator may change; an owner also operators.")
@terminal.change_options
def operator_add(email: str, name: str, role: str, as_json: bool) -> None:
    """Add the operator EMAIL, and print the link that sets a password."""
    settings = terminal.read_settings()
    with terminal.open_change() as (connection, actor):
        token = operators.add_operator(
            connection, actor, email, name, OperatorRole(role), terminal.require_key(connection)
        )
        added = operators.find_operator(connection, email)
    terminal.show(_invite(settings, added, token), as_json, _describe_invitation)


def _invite(settings: Settings, added: OperatorAccount, token: str) -> PasswordLink:
    link = f"{settings.find_console_url()}{LINK_PATH}?link={token}"
    return PasswordLink(added.email, link, LINK_SECONDS // 3600, added.enabled)


def _describe_invitation(made: PasswordLink) -> str:
    settings = terminal.read_settings()
    host = urlsplit(made.link).hostname or ""
    lines = [made.link, f"With this link {made.email} sets a password, once, within {made.hours} hours."]
    if not made.enabled:
        lines.append(f"{made.email} is disabled now: the link counts after `roster operator enable {made.email}`.")
    if host in ANY_HOST or is_local_host(host):
        lines.append(OWN_ADDRESS.format(host, made.email))
    if settings.console_address is None and settings.database_url is not None and not settings.served_path.exists():
        lines.append("These settings have no console for this link: set ROSTER_CONSOLE, and start `roster console`.")
    return "\n".join(lines)


@operator.command("list")
@terminal.as_json
def operator_list(as_json: bool) -> None:
    """List the operators and their roles."""
    with terminal.open_connection() as connection:
        found = operators.list_operators(connection)
    terminal.show_table(found, as_json, map(_to_row, found), "there are no operators")


def _to_row(item: OperatorAccount) -> dict[str, str]:
    return {
        "e-mail": item.email,
        "name": item.name,
        "role": item.role,
        "enabled": "yes" if item.enabled else "no",
        "password": "yes" if item.has_password else "no",
        "unused link": "yes" if item.has_link else "no",
        "codes": "yes" if item.has_codes else "no",
    }


@operator.command("set-role")
@click.argument("email")
@click.argument("role", type=ROLES)
@terminal.change_options
def operator_set_role(email: str, role: str, as_json: bool) -> None:
    """Give the operator EMAIL the role ROLE.

    The last owner stays one.
    """
    with terminal.open_change() as (connection, actor):
        changed = operators.set_role(connection, actor, email, OperatorRole(role))
    terminal.show(changed, as_json, lambda it: f"the role of {it.email} is {it.role}")


@operator.command("disable")
@click.argument("email")
@terminal.change_options
def operator_disable(email: str, as_json: bool) -> None:
    """Disable the operator EMAIL, and end an open link.

    The last owner cannot be disabled.
    """
    with terminal.open_change() as (connection, actor):
        changed = operators.set_operator_enabled(connection, actor, email, enabled=False)
    terminal.show(changed, as_json, lambda it: f"{it.email} is disabled")


@operator.command("enable")
@click.argument("email")
@terminal.change_options
def operator_enable(email: str, as_json: bool) -> None:
    """Enable the disabled operator EMAIL again."""
    with terminal.open_change() as (connection, actor):
        changed = operators.set_operator_enabled(connection, actor, email, enabled=True)
    terminal.show(changed, as_json, lambda it: f"{it.email} is enabled")


@operator.command("remove")
@click.argument("email")
@terminal.confirmed_change_options
def operator_remove(email: str, yes: bool, dry_run: bool, as_json: bool) -> None:
    """Remove the operator EMAIL.

    `roster changes` keeps what the operator did. The last owner cannot be removed.
    """
    terminal.confirm(f"the sessions of {email} end, and its password.", email, is_confirmed=yes or dry_run)
    with terminal.open_change(dry_run=dry_run) as (connection, actor):
        operators.remove_operator(connection, actor, email)
    words = f"{'would remove' if dry_run else 'removed'} the operator {email}"
    terminal.show({"email": email, "dry_run": dry_run}, as_json, lambda _: words)


@operator.command("reset")
@click.argument("email")
@terminal.change_options
def operator_reset(email: str, as_json: bool) -> None:
    """End the password of the operator EMAIL, and print a new link.

    The new link ends the one before it.
    """
    settings = terminal.read_settings()
    with terminal.open_change() as (connection, actor):
        token = operators.reset_password(connection, actor, email, terminal.require_key(connection))
        found = operators.find_operator(connection, email)
    terminal.show(_invite(settings, found, token), as_json, _describe_invitation)

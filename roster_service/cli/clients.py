"""`roster client`: the OAuth clients of vendors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Any

import click
import sqlalchemy as sa

from roster_service.accounts import clients
from roster_service.accounts.clients import Client, Credentials
from roster_service.accounts.credentials import list_credentials
from roster_service.accounts.secret_links import describe_ended_links
from roster_service.auth.scopes import EXPLANATIONS, PRESET_VERSIONS, PRESETS, Scope, ScopeName, read_scope
from roster_service.cli import terminal
from roster_service.cli.credentials import describe_dates, read_dates
from roster_service.cli.vendor_access import expires_option
from roster_service.db.tables import oauth_clients
from roster_service.deliveries.accounts import Delivery, describe_ended_files, end_files
from roster_service.schemas.versions import VERSIONS

scope_option = click.option(
    "--scope",
    "scopes",
    multiple=True,
    help="A scope that it may ask for, `v1p1/roster.readonly`; without a version: both. Repeatable.",
)


@click.group()
def client() -> None:
    """OAuth clients of the rostering interface."""


preset_option = click.option(
    "--preset",
    type=click.Choice(list(PRESETS)),
    help="In place of scopes, what it reads: "
    + "; ".join(f"{name}: {preset.words}" for name, preset in PRESETS.items())
    + ".",
)
version_option = click.option(
    "--version",
    "versions",
    type=click.Choice(list(PRESET_VERSIONS)),
    default=next(iter(PRESET_VERSIONS)),
    show_default=True,
    help="The version of the scopes of a preset, or both.",
)


stop_option = click.option(
    "--stop-deliveries", "stops", is_flag=True, help="Stop its deliveries too, which need no secret."
)


def _show_ended(
    shown: Mapping[str, Any], words: str, files: Sequence[Delivery], described: str, *, as_json: bool
) -> None:
    """Prints a change of a client with what becomes of its files, and how each delivery is stopped."""
    listed = [{"name": one.name, "host": one.host, "stopped": one.stopped} for one in files]
    how = [f"`roster delivery stop {one.name}` stops it" for one in files if not one.stopped]
    lines = [words, *filter(None, [described]), *how]
    terminal.show({**shown, "deliveries": listed}, as_json, lambda _: "\n".join(lines))


def read_scope_options(texts: tuple[str, ...], preset: str | None, versions: str) -> tuple[Scope, ...]:
    """Returns the scopes that the options name. A name without a version stands for the scope of both versions. Raises
    UsageError if they name none, and BadParameter for an unknown scope."""
    scopes: list[Scope] = [] if preset is None else list(PRESETS[preset].list_scopes(versions))
    if not (texts or scopes):
        raise click.UsageError("give a --scope or a --preset")
    for text in texts:
        scope = read_scope(text)
        if scope is not None:
            scopes.append(scope)
        elif text in ScopeName.__members__.values():
            scopes += [Scope(version.prefix, ScopeName(text)) for version in VERSIONS]
        else:
            known = ", ".join(EXPLANATIONS)
            raise click.BadParameter(f"{text!r} is no scope; known, alone or behind v1p1/ or v1p2/: {known}")
    # Grouped by version, the version of the first option first: a token request without scopes gets that version.
    first = [scope.version for scope in scopes][:1]
    return tuple(sorted(scopes, key=lambda scope: [scope.version] != first))


@client.command("add")
@click.option("--vendor", "email", required=True, help="The e-mail of the vendor that it belongs to.")
@click.option("--name", required=True, help="The client's name, for people.")
@scope_option
@preset_option
@version_option
@click.option(
    "--oauth1",
    is_flag=True,
    help="It may sign requests of OneRoster 1.1 with OAuth 1.0a, if ROSTER_OAUTH1 is true.",
)
@expires_option
@terminal.change_options
def client_add(
    email: str,
    name: str,
    scopes: tuple[str, ...],
    preset: str | None,
    versions: str,
    oauth1: bool,
    expires_at: datetime | None,
    as_json: bool,
) -> None:
    """Add an OAuth client. Its secret is shown this once."""
    registered = read_scope_options(scopes, preset, versions)
    with terminal.open_change() as (connection, actor):
        secret_key = terminal.require_key(connection) if oauth1 else None
        made = clients.add_client(
            connection, actor, email, name, registered, secret_key=secret_key, expires_at=expires_at
        )
    if oauth1 and not terminal.read_settings().oauth1:
        click.echo("signed requests are refused until ROSTER_OAUTH1 is true for the service", err=True)
    terminal.show(made, as_json, _describe_credentials)


def _describe_credentials(made: Credentials) -> str:
    lines = [
        f"client_id      {made.client_id}",
        f"client_secret  {made.client_secret}",
        f"scopes         {' '.join(made.scopes)}",
    ]
    return "\n".join([*lines, "The secret is not stored; keep it now."])


@client.command("list")
@terminal.as_json
def client_list(as_json: bool) -> None:
    """List the clients, their scopes, and the last use of each."""
    with terminal.open_connection() as connection:
        found = clients.list_clients(connection)
        secrets = {item.name: item for item in list_credentials(connection)}
    old = {name: item.earlier_ends_at for name, item in secrets.items()}
    shown = [
        asdict(item) | read_dates(secrets[item.client_id]) | {"earlier_ends_at": old[item.client_id]} for item in found
    ]
    rows = [
        _client_row(item)
        | describe_dates(secrets[item.client_id])
        | {"old secret until": terminal.show_instant(old[item.client_id])}
        for item in found
    ]
    terminal.show_table(shown, as_json, rows, "there are no clients")


def _client_row(item: Client) -> dict[str, str]:
    return {
        "client_id": item.client_id,
        "vendor": item.vendor,
        "name": item.name,
        "enabled": "yes" if item.enabled else "no",
        "oauth1": "yes" if item.oauth1 else "no",
        "scopes": " ".join(item.scopes),
    }


@client.command("rotate-secret")
@click.argument("client_id")
@click.option(
    "--grace-hours",
    type=click.IntRange(0, 8760),
    # A working day, and the night of a job that reads once in 24 hours.
    default=24,
    help="How long the old secret stays valid, 24 by default; 0: it ends at once, with its tokens.",
)
@expires_option
@stop_option
@terminal.change_options
def client_rotate_secret(
    client_id: str, grace_hours: int, expires_at: datetime | None, stops: bool, as_json: bool
) -> None:
    """Replace the secret of CLIENT_ID. The old one stays valid for a grace period.

    If that is 0, a link that nobody has used ends too. Names the deliveries that go on.
    """
    with terminal.open_change() as (connection, actor):
        secret_key = terminal.require_key(connection) if clients.may_sign(connection, client_id) else None
        grace = timedelta(hours=grace_hours)
        made = clients.rotate_secret(connection, actor, client_id, grace, secret_key=secret_key, expires_at=expires_at)
        files = end_files(connection, actor, client_id, stops=stops)
        described = describe_ended_files(connection, files)
    old = (
        f"The old secret stays valid for {grace_hours} hours."
        if grace_hours
        else "The old secret and its tokens have ended."
    )
    _show_ended(asdict(made), f"{_describe_credentials(made)}\n{old}", files, described, as_json=as_json)


@client.command("end-old-secret")
@click.argument("client_id")
@terminal.change_options
def client_end_old_secret(client_id: str, as_json: bool) -> None:
    """End the secret of CLIENT_ID that a newer one has replaced, before its grace is over.

    All its tokens end too.
    """
    with terminal.open_change() as (connection, actor):
        clients.end_old_secret(connection, actor, client_id)
    terminal.show(
        {"client_id": client_id}, as_json, lambda _: f"the old secret of {client_id} and all its tokens have ended"
    )


@client.command("disable")
@click.argument("client_id")
@stop_option
@terminal.change_options
def client_disable(client_id: str, stops: bool, as_json: bool) -> None:
    """Disable CLIENT_ID at once, with its tokens, files and unused link.

    Names its deliveries, which fail from now on.
    """
    with terminal.open_change() as (connection, actor):
        clients.disable_client(connection, actor, client_id)
        files = end_files(connection, actor, client_id, stops=stops)
        described = describe_ended_files(connection, files)
        words = _with_links(connection, f"{client_id} is disabled", client_id)
    shown = {"client_id": client_id, "enabled": False}
    _show_ended(shown, words, files, described, as_json=as_json)


@client.command("enable")
@click.argument("client_id")
@terminal.confirmed_change_options
def client_enable(client_id: str, yes: bool, dry_run: bool, as_json: bool) -> None:
    """Enable the disabled CLIENT_ID again."""
    terminal.confirm(f"This lets {client_id} read again.", client_id, is_confirmed=yes or dry_run)
    with terminal.open_change(dry_run=dry_run) as (connection, actor):
        clients.enable_client(connection, actor, client_id)
        changed = clients.find_listed_client(connection, client_id)
        words = _with_links(connection, "would be enabled" if dry_run else "is enabled", client_id)
    _show_client(changed, words, dry_run=dry_run, as_json=as_json)


@client.command("set-scopes")
@click.argument("client_id")
@scope_option
@preset_option
@version_option
@terminal.confirmed_change_options
def client_set_scopes(
    client_id: str, scopes: tuple[str, ...], preset: str | None, versions: str, yes: bool, dry_run: bool, as_json: bool
) -> None:
    """Replace the scopes of CLIENT_ID, and end its tokens."""
    registered = read_scope_options(scopes, preset, versions)
    terminal.confirm(f"This replaces the scopes of {client_id}.", client_id, is_confirmed=yes or dry_run)
    with terminal.open_change(dry_run=dry_run) as (connection, actor):
        clients.change_scopes(connection, actor, client_id, registered)
        changed = clients.find_listed_client(connection, client_id)
    words = f"{'would have' if dry_run else 'has'} the scopes {' '.join(changed.scopes)}"
    _show_client(changed, words, dry_run=dry_run, as_json=as_json)


@client.command("remove")
@click.argument("client_id")
@stop_option
@terminal.confirmed_change_options
def client_remove(client_id: str, stops: bool, yes: bool, dry_run: bool, as_json: bool) -> None:
    """Remove CLIENT_ID at once, with its tokens and files.

    Names its deliveries, which fail from now on. The access log keeps its rows.
    """
    terminal.confirm(f"This removes {client_id}.", client_id, is_confirmed=yes or dry_run)
    with terminal.open_change(dry_run=dry_run) as (connection, actor):
        removed = clients.find_listed_client(connection, client_id)
        clients.remove_client(connection, actor, client_id)
        files = end_files(connection, actor, client_id, stops=stops)
        described = describe_ended_files(connection, files)
    words = f"{removed.client_id} {'would be' if dry_run else 'is'} removed"
    _show_ended({**asdict(removed), "dry_run": dry_run}, words, files, described, as_json=as_json)


def _with_links(connection: sa.Connection, words: str, client_id: str) -> str:
    """Adds a line of the link of a client, if it has ended and nobody has used it."""
    return "\n".join(filter(None, [words, describe_ended_links(connection, oauth_clients.c.client_id == client_id)]))


def _show_client(item: Client, words: str, *, dry_run: bool, as_json: bool) -> None:
    terminal.show({**asdict(item), "dry_run": dry_run}, as_json, lambda _: f"{item.client_id} {words}")

"""`roster credential` and `roster keys`: the API keys and secrets of all vendors, and the keys that sign tokens."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime, timedelta

import click

from roster_service.accounts.credentials import ListedCredential, list_credentials
from roster_service.accounts.secret_links import list_links
from roster_service.auth.credentials.signing_keys import (
    ListedKey,
    find_given_key,
    list_signing_keys,
    rotate_signing_key,
)
from roster_service.auth.credentials.tokens import LEEWAY_SECONDS, PERMISSION_TOKEN_SECONDS
from roster_service.cli import terminal
from roster_service.db.tables import vendors
from roster_service.settings import Settings

# The members of a credential that lists of vendors and clients show, too, and their headings.
DATES = {"created_at": "created", "expires_at": "expires", "used_at": "last used", "used_from": "from"}


def read_dates(item: ListedCredential) -> dict[str, str | None]:
    """Returns when a credential was made, ends and was used, as JSON shows it."""
    return {name: getattr(item, name) for name in DATES}


def describe_dates(item: ListedCredential) -> dict[str, str]:
    """Returns the same as cells of a table."""
    shown = terminal.to_texts(read_dates(item), "created_at", "expires_at", "used_at")
    return {DATES[name]: text for name, text in shown.items()}


@click.group()
def credential() -> None:
    """API keys and client secrets: their ends, and their last uses."""


@credential.command("list")
@click.option("--vendor", "email", help="Only those of the vendor with this e-mail.")
@click.option("--unused", "unused_days", type=click.IntRange(1, 36_500), metavar="DAYS", help="Not used for so long.")
@click.option("--ending", "ending_days", type=click.IntRange(0, 36_500), metavar="DAYS", help="That end so soon.")
@terminal.as_json
def credential_list(email: str | None, unused_days: int | None, ending_days: int | None, as_json: bool) -> None:
    """List the credentials that have not ended.

    Several options: those for which all hold.
    """
    now = datetime.now(UTC)
    with terminal.open_connection() as connection:
        found = [
            item
            for item in list_credentials(connection)
            if not item.has_ended(now)
            and email in (None, item.vendor)
            and (unused_days is None or item.is_unused(unused_days, now))
            and (ending_days is None or item.ends_within(ending_days, now))
        ]
        of_vendor = () if email is None else (vendors.c.email == email,)
        waiting = [
            f"{link.client} of {link.vendor}, until {link.ends_at}"
            for link in list_links(connection, *of_vendor)
            if not (link.has_ended or link.used_at)
        ]
    rows = [
        {
            "kind": item.kind.value,
            "name": item.name,
            "vendor": item.vendor,
            "enabled": "yes" if item.enabled else "no",
            **describe_dates(item),
        }
        for item in found
    ]
    terminal.show_table(found, as_json, rows, "there are no such credentials")
    if waiting and not as_json:
        click.echo(f"links that nobody has used, each of which makes a secret: {'; '.join(waiting)}")


@click.group()
def keys() -> None:
    """The keys that sign tokens."""


@keys.command("list")
@terminal.as_json
def keys_list(as_json: bool) -> None:
    """List the signing keys, with their states.

    One signs, others still verify, and others are retired.
    """
    with terminal.open_connection() as connection:
        found = list_signing_keys(connection)
    terminal.show_table(found, as_json, map(_key_row, found), "there are no keys yet")


def _key_row(item: ListedKey) -> dict[str, str]:
    shown = terminal.to_texts(asdict(item), "created_at", "retired_at")
    return {name.replace("_", " "): text for name, text in shown.items()}


@keys.command("rotate")
@click.option("--at-once", is_flag=True, help="End all tokens now; for a key that leaked.")
@click.option("--lost", is_flag=True, help="The former ROSTER_SECRET_KEY is lost; the present one seals the new key.")
@terminal.change_options
def keys_rotate(at_once: bool, lost: bool, as_json: bool) -> None:
    """Make a new key, which signs from now on.

    The one before it verifies until the last of its tokens has ended.
    """
    settings = terminal.read_settings()
    lasting = timedelta(0) if at_once else find_longest_token_life(settings)
    with terminal.open_change() as (connection, actor):
        made = rotate_signing_key(connection, actor, find_given_key(connection, settings), lasting, is_lost=lost)
        [shown] = [item for item in list_signing_keys(connection) if item.key_id == made]
    ended = "all older tokens have ended" if at_once else f"older tokens are valid for {lasting} at most"
    terminal.show(shown, as_json, lambda _: f"the key {made} signs from now on; {ended}")


def find_longest_token_life(settings: Settings) -> timedelta:
    """Returns the longest validity of a token of either interface, with the leeway for clocks."""
    return timedelta(seconds=max(settings.token_seconds, PERMISSION_TOKEN_SECONDS) + LEEWAY_SECONDS)

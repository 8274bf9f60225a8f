"""`roster keys`: the keys that sign the tokens of both interfaces."""

from __future__ import annotations

from dataclasses import asdict
from datetime import timedelta

import click

from roster_service.auth.credentials.access_token import LEEWAY_SECONDS
from roster_service.auth.credentials.permission_token import PERMISSION_TOKEN_SECONDS
from roster_service.auth.credentials.signing_keys import ListedKey, list_signing_keys, rotate_signing_key
from roster_service.cli.terminal import (
    as_json,
    make_table,
    open_change,
    open_connection,
    read_settings,
    reason_option,
    show,
)
from roster_service.settings import Settings


@click.group()
def keys() -> None:
    """The keys that sign tokens."""


@keys.command("list")
@as_json
def keys_list(as_json: bool) -> None:
    """List the keys: the one that signs, those that still verify, and those that are retired."""
    with open_connection() as connection:
        found = list_signing_keys(connection)
    show(found, as_json, lambda _: make_table([_key_row(item) for item in found], "there are no keys yet"))


def _key_row(item: ListedKey) -> dict[str, str]:
    return {name.replace("_", " "): value or "-" for name, value in asdict(item).items()}


@keys.command("rotate")
@click.option("--at-once", is_flag=True, help="End all tokens now; for a key that leaked.")
@click.option("--lost", is_flag=True, help="The former ROSTER_SECRET_KEY is lost; the present one seals the new key.")
@reason_option
@as_json
def keys_rotate(at_once: bool, lost: bool, as_json: bool) -> None:
    """Make a new key, which signs from now on. The one before it verifies until the last of its tokens has ended."""
    settings = read_settings()
    lasting = timedelta(0) if at_once else find_longest_token_life(settings)
    with open_change() as (connection, actor):
        made = rotate_signing_key(connection, actor, settings.read_secret_key(), lasting, is_lost=lost)
        [shown] = [item for item in list_signing_keys(connection) if item.key_id == made]
    ended = "all older tokens have ended" if at_once else f"older tokens are valid for {lasting} at most"
    show(shown, as_json, lambda _: f"the key {made} signs from now on; {ended}")


def find_longest_token_life(settings: Settings) -> timedelta:
    """Returns the longest validity of a token of either interface, with the leeway for clocks."""
    return timedelta(seconds=max(settings.token_seconds, PERMISSION_TOKEN_SECONDS) + LEEWAY_SECONDS)

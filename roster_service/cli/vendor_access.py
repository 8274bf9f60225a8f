"""The commands of `roster vendor` for the vendor interface: API keys, passwords and rate limits."""

from __future__ import annotations

import re
import sys
from dataclasses import asdict
from datetime import UTC, datetime, timedelta

import click

from roster_service.accounts import vendors
from roster_service.accounts.credentials import CredentialKind, list_credentials
from roster_service.accounts.parts import PARTS, Received, explain_nothing, list_received
from roster_service.accounts.vendors import Grant, Vendor, VendorLogin
from roster_service.auth.credentials.api_keys import Allowance, IssuedKey
from roster_service.auth.throttling import limits
from roster_service.auth.throttling.limits import RosteringAllowance
from roster_service.cli.credentials import describe_dates, read_dates
from roster_service.cli.terminal import Command, as_json, change_options, make_table, open_change, open_connection, show

_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
_DURATION = re.compile(r"(?P<count>\d{1,4})(?P<unit>[smhd])", re.ASCII)


password_option = click.option(
    "--password-stdin", is_flag=True, help="Read the password from standard input; without it, one is made and shown."
)


def read_duration(text: str) -> timedelta:
    """Reads a duration: a whole number and `s`, `m`, `h` or `d`. Raises BadParameter for any other text."""
    matched = _DURATION.fullmatch(text)
    if matched is None:
        raise click.BadParameter(f"{text!r} is no duration, such as 24h, 30m or 7d")
    return timedelta(**{_UNITS[matched["unit"]]: int(matched["count"])})


def read_end(_context: click.Context, _parameter: click.Parameter, day: datetime | None) -> datetime | None:
    """Returns the end of a day in UTC; None for no day. Raises BadParameter for a day that is over."""
    if day is None:
        return None
    end = day.replace(tzinfo=UTC) + timedelta(days=1)
    if end <= datetime.now(UTC):
        raise click.BadParameter(f"{day.date()} is over")
    return end


expires_option = click.option(
    "--expires",
    "expires_at",
    type=click.DateTime(["%Y-%m-%d"]),
    callback=read_end,
    metavar="DATE",
    help="The last day on which the new key or secret is valid, in UTC; none: it has no end.",
)


def read_password(from_stdin: bool) -> str | None:
    """Returns the first line of standard input; None without `from_stdin`, so that a password is made."""
    return sys.stdin.readline().rstrip("\r\n") if from_stdin else None


def describe_login(login: VendorLogin) -> str:
    """Returns the lines that show the new key and password."""
    lines = [f"api key   {login.api_key}"]
    if login.password is not None:
        lines.append(f"password  {login.password}")
    return "\n".join([*lines, "They are not stored in clear; keep them now."])


@click.command("set-password")
@click.argument("email")
@password_option
@change_options
def vendor_set_password(email: str, password_stdin: bool, as_json: bool) -> None:
    """Replace the password of the vendor EMAIL, and end its tokens."""
    given = read_password(password_stdin)
    with open_change() as (connection, actor):
        made = vendors.change_password(connection, actor, email, given)
        found = vendors.find_vendor(connection, email)
    message = (
        f"password  {made}\nIt is not stored in clear; keep it now." if made else f"{found.email} has a new password"
    )
    show({"email": found.email, "password": made}, as_json, lambda _: message)


@click.command("rotate-key")
@click.argument("email")
@click.option(
    "--grace", type=read_duration, default="0s", help="How long the old key keeps working, such as 24h; 0 by default."
)
@expires_option
@change_options
def vendor_rotate_key(email: str, grace: timedelta, expires_at: datetime | None, as_json: bool) -> None:
    """Give the vendor EMAIL a new API key, shown this once.

    The old one stops working, at once or after the grace.
    """
    with open_change() as (connection, actor):
        made = vendors.replace_key(connection, actor, email, grace, expires_at=expires_at)
    show(made, as_json, lambda _: _describe_key(made, grace))


def _describe_key(made: IssuedKey, grace: timedelta) -> str:
    old = f"in {grace}" if grace else "now"
    return f"api key  {made.api_key}\nIt is not stored in clear; keep it. The old key ends {old}."


@click.command("show")
@click.argument("email")
@as_json
def vendor_show(email: str, as_json: bool) -> None:
    """Show the vendor EMAIL: grants, flags, withheld fields, limits, API keys with last use."""
    with open_connection() as connection:
        found = vendors.find_vendor(connection, email)
        received = list_received(connection)[found.email]
        keys = [
            item
            for item in list_credentials(connection)
            if item.vendor == found.email
            and item.kind is CredentialKind.API_KEY
            and not item.has_ended(datetime.now(UTC))
        ]
    shown = {
        **asdict(found),
        "received": received,
        "keys": [{"prefix": item.name, **read_dates(item)} for item in keys],
    }
    table = make_table([{"api key": item.name, **describe_dates(item)} for item in keys], "no valid API key")
    show(shown, as_json, lambda _: f"{describe_vendor(found)}\n{_describe_received(found, received)}\n\n{table}")


def _describe_received(item: Vendor, received: Received) -> str:
    parts = [f"{PARTS[name].words} (by {', '.join(by)})" for name, by in received.items()]
    return f"{'gets':<9} {'; '.join(parts) or f'nothing: {explain_nothing(item)}'}"


def describe_vendor(item: Vendor) -> str:
    """Returns a line for each property of a vendor."""
    grants = [describe_grant(grant) for grant in item.grants]
    lines = {
        "e-mail": item.email,
        "name": item.name,
        "enabled": "yes" if item.enabled else "no",
        "grants": ", ".join(grants) or "none",
        "flags": ", ".join(item.flags) or "none",
        "withheld": describe_withheld(item),
        "limits": describe_limits(item.allowance),
        "rostering": describe_rostering(item.rostering),
    }
    return "\n".join(f"{name:<9} {text}" for name, text in lines.items())


def describe_withheld(item: Vendor) -> str:
    """Returns the fields that are withheld from a vendor, and which list says so."""
    listed = "the default" if item.own_withheld is None else "a list of its own"
    return f"{', '.join(item.withheld) or 'nothing'} ({listed})"


def describe_grant(grant: Grant) -> str:
    """Returns the district and the school of a grant, as names with ids, and its rules in words."""
    district = _name_org(grant.district_id, grant.district_name)
    place = "(whole)" if grant.school_id is None else _name_org(grant.school_id, grant.school_name)
    return f"{district}: {place}" if grant.rules is None else f"{district}: {place}, only {grant.rules.describe()}"


def _name_org(identifier: str, name: str | None) -> str:
    return identifier if name is None else f"{name} ({identifier})"


def describe_limits(allowance: Allowance) -> str:
    """Returns the rate limits of an allowance, with the defaults, as a phrase."""
    rate, burst, day = limits.fill_allowance(allowance)
    return f"{rate} requests a second, {burst} at once, {day:,} a day"


def describe_rostering(allowance: RosteringAllowance) -> str:
    """Returns the limits of an allowance on the rostering interface, with the defaults, as a phrase."""
    rate, burst = limits.fill_rostering_rate(allowance)
    shared = "all workers but one beside other vendors"
    at_once = shared if allowance.at_once is None else f"{allowance.at_once:,} at the same time"
    return f"{rate:,} requests a second, {burst:,} in a burst, {at_once}"


def _limit_options(command: Command) -> Command:
    """Gives a command an option for each limit."""
    for limit in reversed(limits.LIMITS):
        option = f"--{limit.name.replace('_', '-')}"
        command = click.option(option, type=click.IntRange(1, limit.most), help=f"{limit.words}.")(command)
    return command


@click.command("limits")
@click.argument("email")
@_limit_options
@change_options
def vendor_limits(email: str, as_json: bool, **given: int | None) -> None:
    """Set the limits of the vendor EMAIL. A limit without an option becomes the default again."""
    with open_change() as (connection, actor):
        changed = vendors.change_allowance(connection, actor, email, *limits.make_allowances(given))
    show(changed, as_json, _describe_all_limits)


def _describe_all_limits(item: Vendor) -> str:
    return f"{item.email}: {describe_limits(item.allowance)}\nrostering: {describe_rostering(item.rostering)}"


COMMANDS = (vendor_set_password, vendor_rotate_key, vendor_show, vendor_limits)

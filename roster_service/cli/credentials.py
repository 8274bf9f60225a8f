"""`roster credential`: the API keys and client secrets of all vendors, with their ends and their last uses."""

from __future__ import annotations

from datetime import UTC, datetime

import click

from roster_service.accounts.credentials import ListedCredential, list_credentials
from roster_service.cli.terminal import as_json, make_table, open_connection, show, to_texts

# The members of a credential that lists of vendors and clients show, too, and their headings.
DATES = {"created_at": "created", "expires_at": "expires", "used_at": "last used", "used_from": "from"}


def read_dates(item: ListedCredential) -> dict[str, str | None]:
    """Returns when a credential was made, ends and was used, as JSON shows it."""
    return {name: getattr(item, name) for name in DATES}


def describe_dates(item: ListedCredential) -> dict[str, str]:
    """Returns the same as cells of a table."""
    return to_texts({DATES[name]: text for name, text in read_dates(item).items()})


@click.group()
def credential() -> None:
    """API keys and client secrets: their ends, and their last uses."""


@credential.command("list")
@click.option("--vendor", "email", help="Only those of the vendor with this e-mail.")
@click.option("--unused", "unused_days", type=click.IntRange(1, 36_500), metavar="DAYS", help="Not used for so long.")
@click.option("--ending", "ending_days", type=click.IntRange(0, 36_500), metavar="DAYS", help="That end so soon.")
@as_json
def credential_list(email: str | None, unused_days: int | None, ending_days: int | None, as_json: bool) -> None:
    """List the credentials that have not ended. Several options: those for which all hold."""
    now = datetime.now(UTC)
    with open_connection() as connection:
        found = [
            item
            for item in list_credentials(connection)
            if not item.has_ended(now)
            and email in (None, item.vendor)
            and (unused_days is None or item.is_unused(unused_days, now))
            and (ending_days is None or item.ends_within(ending_days, now))
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
    show(found, as_json, lambda _: make_table(rows, "there are no such credentials"))

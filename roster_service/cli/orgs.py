"""`roster district` and `roster school`: the orgs that can be granted, and the end of a district."""

from __future__ import annotations

from dataclasses import asdict

import click

from roster_service.accounts import districts
from roster_service.accounts.districts import EndedDistrict, ListedOrg
from roster_service.cli import terminal
from roster_service.feeds.feeds import remove_feed


@click.group()
def district() -> None:
    """The districts of the roster."""


@click.group()
def school() -> None:
    """The schools of the roster."""


@district.command("list")
@terminal.as_json
def district_list(as_json: bool) -> None:
    """List the districts, with the number of their active records.

    Commands take a name, an identifier or an id of them.
    """
    with terminal.open_connection() as connection:
        found = districts.list_districts(connection)
    rows = [_to_row(item, "schools", "classes", "users", "enrollments") for item in found]
    terminal.show_table(found, as_json, rows, "there are no districts")


@district.command("remove")
@click.argument("name", metavar="DISTRICT")
@terminal.confirmed_change_options
def district_remove(name: str, yes: bool, dry_run: bool, as_json: bool) -> None:
    """Remove DISTRICT, whose contract ended, with all its grants and feeds.

    All grants of it end at once, then its feeds are removed with all their records, rejected rows, changes and held
    exports. A feed that brings other districts too is refused.
    """
    terminal.confirm(f"This deletes all records of {name} for good.", name, is_confirmed=yes or dry_run)
    with terminal.open_change(dry_run=dry_run) as (connection, actor):
        ended = districts.end_district(connection, actor, name)
    # The removal of a feed publishes a roster, for which it waits for the grants of the transaction above.
    with terminal.open_connection() as connection:
        reports = [
            remove_feed(connection, terminal.find_actor(), feed, now=True, dry_run=dry_run) for feed in ended.feeds
        ]
    records = sum(count["purged"] for report in reports for count in report["counts"].values())
    shown = {**asdict(ended), "records": records, "dry_run": dry_run}
    terminal.show(shown, as_json, lambda _: _describe_end(ended, records, dry_run=dry_run))


def _describe_end(ended: EndedDistrict, records: int, *, dry_run: bool) -> str:
    would = "would be " if dry_run else ""
    feeds = ", ".join(ended.feeds)
    vendors = ", ".join(ended.vendors) or "no vendor"
    deleted = f"{records:,} records {would}deleted, feeds {would}removed: {feeds}"
    return f"{ended.name}: {deleted}; grants {would}ended: {vendors}"


@school.command("list")
@click.option("--district", "name", help="Only its schools: a district's sourcedId, identifier or unique name.")
@terminal.as_json
def school_list(name: str | None, as_json: bool) -> None:
    """List the schools, with the number of their active records.

    Commands take a name, an identifier or an id of them.
    """
    with terminal.open_connection() as connection:
        district_id = None if name is None else districts.find_org(connection, name, districts.DISTRICT, None)
        found = districts.list_schools(connection, district_id)
    rows = [_to_row(item, "district", "classes", "users", "enrollments") for item in found]
    terminal.show_table(found, as_json, rows, "there are no schools")


def _to_row(item: ListedOrg, *others: str) -> dict[str, str]:
    values = {name: getattr(item, name) for name in ("name", "identifier", "sourcedId", "feed", *others)}
    return terminal.to_texts(
        {name: f"{value:,}" if isinstance(value, int) else value for name, value in values.items()}
    )

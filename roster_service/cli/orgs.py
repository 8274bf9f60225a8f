"""`roster district` and `roster school`: the orgs that can be granted."""

from __future__ import annotations

import click

from roster_service.access.org_list import DISTRICT, ListedOrg, find_org, list_districts, list_schools
from roster_service.cli.console import as_json, make_table, open_connection, show, to_texts


@click.group()
def district() -> None:
    """The districts of the roster."""


@click.group()
def school() -> None:
    """The schools of the roster."""


@district.command("list")
@as_json
def district_list(as_json: bool) -> None:
    """List the districts: names, identifiers, ids, and the number of their active records."""
    with open_connection() as connection:
        found = list_districts(connection)
    rows = [_to_row(item, "schools", "classes", "users", "enrollments") for item in found]
    show(found, as_json, lambda _: make_table(rows, "there are no districts"))


@school.command("list")
@click.option("--district", "name", help="Only its schools: a district's sourcedId, identifier or unique name.")
@as_json
def school_list(name: str | None, as_json: bool) -> None:
    """List the schools: names, identifiers, ids, and the number of their active records."""
    with open_connection() as connection:
        district_id = None if name is None else find_org(connection, name, DISTRICT, None)
        found = list_schools(connection, district_id)
    rows = [_to_row(item, "district", "classes", "users", "enrollments") for item in found]
    show(found, as_json, lambda _: make_table(rows, "there are no schools"))


def _to_row(item: ListedOrg, *others: str) -> dict[str, str]:
    values = {name: getattr(item, name) for name in ("name", "identifier", "sourcedId", "feed", *others)}
    return to_texts({name: f"{it:,}" if isinstance(it, int) else it for name, it in values.items()})

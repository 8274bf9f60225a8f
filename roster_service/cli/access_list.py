"""`roster access`: which vendors see which schools and people, and why."""

from __future__ import annotations

import dataclasses
from typing import Any, TextIO

import click

from roster_service.accounts.org_list import SCHOOL, find_org
from roster_service.accounts.parts import PARTS
from roster_service.cli.terminal import as_json, csv_option, make_table, open_connection, read_settings, show
from roster_service.explore.known_people import choose_person
from roster_service.explore.who_sees import Access, explain_unseen, list_access
from roster_service.feeds.private_files import write_private_csv

COLUMNS = tuple(field.name for field in dataclasses.fields(Access))


@click.command()
@click.option("--school", metavar="ID", help="Only this school: its sourcedId, identifier or unique name.")
@click.option("--person", metavar="SOURCEDID|NAME", help="The roles by which vendors see this person.")
@click.option("--vendor", metavar="EMAIL", help="Only this vendor.")
@click.option("--part", type=click.Choice(list(PARTS)), help="Only vendors that get this part of people, and by what.")
@csv_option
@as_json
def access(
    school: str | None,
    person: str | None,
    vendor: str | None,
    part: str | None,
    csv_file: TextIO | None,
    as_json: bool,
) -> None:
    """Show who sees what: for each vendor its schools, the grant that opens each, and which parts of people it gets and
    does not get. JSON and CSV have its scopes, keys and flags too."""
    known = None
    with open_connection() as connection:
        if person is not None:
            known = choose_person(connection, person, read_settings().read_secret_key())
            person = known.sourcedId
        found = list_access(connection, vendor=vendor, school=school, person=person, part=part)
        others = None
        if not found and vendor is not None and (school or person) and csv_file is None and not as_json:
            others = list_access(connection, vendor=None, school=school, person=person, part=part)
            sought = person or find_org(connection, school or "", SCHOOL, None)
            why = explain_unseen(connection, vendor, sought, part)
    if csv_file is not None:
        write_private_csv(csv_file, COLUMNS, (list(_to_cells(item).values()) for item in found))
        return
    if others is not None:
        click.echo(f"{vendor} does not see it: {why}; of the other vendors:")
        found = others
    show(found, as_json, lambda _: make_table([_to_row(item) for item in found], f"no vendor sees {known or 'it'}"))
    if known is not None and found and not as_json:
        click.echo(f"these vendors see {known}")


def _to_cells(item: Access) -> dict[str, Any]:
    return {
        name: " ".join(value) if isinstance(value, tuple) else value for name, value in dataclasses.asdict(item).items()
    }


def _to_row(item: Access) -> dict[str, str]:
    cells = _to_cells(item)
    return {
        "vendor": item.vendor if item.enabled else f"{item.vendor} (disabled)",
        "district": item.district or "-",
        "school": f"{item.school} ({item.sourcedId})",
        **({} if item.role is None else {"role": item.role}),
        "grant": item.grant,
        "gets": cells["parts"] or "nothing",
        "does not get": cells["withheld"] or "-",
        **({"by": ", ".join(item.by)} if item.by else {}),
    }

"""`roster access`, `roster show` and `roster export`: what a vendor sees, and why."""

from __future__ import annotations

import dataclasses
import io
import json
from pathlib import Path
from typing import Any, TextIO

import click

from roster_service.accounts.districts import SCHOOL, find_org
from roster_service.accounts.parts import PARTS
from roster_service.app import make_serving_engine
from roster_service.cli import terminal
from roster_service.cli.deliveries import client_option
from roster_service.db.roles import DatabaseRole, make_role_urls
from roster_service.deliveries.previews import export_collection
from roster_service.explore.access import Access, list_access
from roster_service.explore.known_people import choose_person
from roster_service.explore.vendor_view import VENDOR_INTERFACE, VendorView, show_as
from roster_service.explore.who_sees import explain_unseen
from roster_service.feeds.private_files import open_private, write_private_csv
from roster_service.roster.revisions import open_roster_engine
from roster_service.schemas.versions import V1P2, VERSIONS

COLUMNS = tuple(field.name for field in dataclasses.fields(Access))


@click.command()
@click.option("--school", metavar="ID", help="Only this school: its sourcedId, identifier or unique name.")
@click.option("--person", metavar="SOURCEDID|NAME", help="The roles by which vendors see this person.")
@click.option("--vendor", metavar="EMAIL", help="Only this vendor.")
@click.option(
    "--part",
    type=click.Choice([str(part) for part in PARTS]),
    help="Only vendors that get this part of people, and by what.",
)
@terminal.csv_option
@terminal.as_json
def access(
    school: str | None,
    person: str | None,
    vendor: str | None,
    part: str | None,
    csv_file: TextIO | None,
    as_json: bool,
) -> None:
    """Show who sees what: for each vendor its schools, the grants, and which parts of people.

    It has the grant that opens each school, and the parts that the vendor gets and does not get. JSON and CSV have its
    scopes, keys and flags too.
    """
    known = None
    with terminal.open_connection() as connection:
        if person is not None:
            known = choose_person(connection, person, terminal.require_key(connection))
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
    terminal.show_table(found, as_json, map(_to_row, found), _say_nothing(vendor, part, str(known or "it")))
    if known is not None and found and not as_json:
        seeing = ", ".join(dict.fromkeys(item.vendor for item in found if item.parts))
        click.echo(f"these vendors see {known}: {seeing}" if seeing else f"no vendor sees {known}")


def _say_nothing(vendor: str | None, part: str | None, sought: str) -> str:
    """The words where nobody, or the one vendor that was asked for, sees what was asked for."""
    if vendor is not None:
        return f"{vendor} {'sees nothing' if part is None else f'does not get {PARTS[part].lack}'}"
    return f"no vendor sees {sought}" if part is None else f"no vendor gets {PARTS[part].lack}"


def _to_cells(item: Access) -> dict[str, Any]:
    return {
        name: " ".join(value) if isinstance(value, tuple) else value for name, value in dataclasses.asdict(item).items()
    }


def _name_lack(name: str, item: Access) -> str:
    """The name of a part that a vendor does not get of people; of one person, the answer has no exception."""
    return name if item.role is not None else f"{name}{PARTS[name].lack.removeprefix(PARTS[name].words)}"


def _to_row(item: Access) -> dict[str, str]:
    cells = _to_cells(item)
    return {
        "vendor": item.vendor if item.enabled else f"{item.vendor} (disabled)",
        "district": item.district or "-",
        "school": f"{item.school} ({item.sourcedId})",
        **({} if item.role is None else {"role": item.role}),
        "grant": item.grant if item.only is None else f"{item.grant}, only {item.only}",
        "gets": cells["parts"] or "nothing",
        "does not get": ", ".join(_name_lack(name, item) for name in item.withheld) or "-",
        **({"by": ", ".join(item.by)} if item.by else {}),
    }


@click.command("show")
@click.argument("sourced_id", metavar="SOURCEDID")
@click.option("--as", "email", required=True, metavar="VENDOR", help="The e-mail of the vendor.")
@click.option(
    "--version",
    type=click.Choice([*(version.prefix for version in VERSIONS), VENDOR_INTERFACE]),
    help="Only in this version; `v1`: only on the vendor interface.",
)
@terminal.change_options
def record_show(sourced_id: str, email: str, version: str | None, as_json: bool) -> None:
    """Show the record SOURCEDID as a vendor gets it, or why it does not.

    A student also as /v1/students has it, with all parts that the flags of the vendor allow. The change log records it.
    """
    settings = terminal.read_settings()
    with terminal.open_change() as (connection, actor):
        terminal.require_key(connection)
        urls = make_role_urls(connection, settings.role_password)
        serving = make_serving_engine(urls[DatabaseRole.SERVING], settings)
        try:
            found = show_as(connection, serving, actor, sourced_id, email, version, settings)
        finally:
            serving.dispose()
    terminal.show(
        found, as_json, lambda _: "\n\n".join(map(_describe, found)) or "no client has a scope of this version"
    )


def _describe(view: VendorView) -> str:
    body = f"not shown: {view.refusal}" if view.refusal else json.dumps(view.body, ensure_ascii=False, indent=2)
    return f"{view.client} ({view.client_id}), {view.method} {view.path}\n{body}"


@click.command("export")
@click.argument("collection")
@click.option("--as", "email", required=True, metavar="VENDOR", help="The e-mail of the vendor.")
@click.option(
    "--version",
    type=click.Choice([version.prefix for version in VERSIONS]),
    default=V1P2.prefix,
    show_default=True,
    help="The version of OneRoster.",
)
@client_option
@click.option("--out", required=True, type=click.Path(dir_okay=False, path_type=Path), help="The file to write.")
@terminal.change_options
def export(email: str, version: str, collection: str, client_id: str | None, out: Path, as_json: bool) -> None:
    """Write the active records of COLLECTION, such as `users`, as a vendor gets them.

    Only its owner can read the file. It has one line a record, the JSON of the interface. The change log records it.
    """
    settings = terminal.read_settings()
    with open_roster_engine(settings) as engine, open_private(out) as written:
        lines = io.TextIOWrapper(written, encoding="utf-8", newline="")
        number = export_collection(
            engine, terminal.find_actor(), email, version, collection, client_id, lines, settings
        )
        lines.flush()
    terminal.show({"file": str(out), "records": number}, as_json, lambda _: f"{out}: {number:,} records")

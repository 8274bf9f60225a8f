"""`roster export`: a collection as lines of JSON."""

from __future__ import annotations

import io
from pathlib import Path

import click

from roster_service.cli.deliveries import client_option
from roster_service.cli.terminal import as_json, find_actor, read_settings, reason_option, show
from roster_service.deliveries.previews import export_collection
from roster_service.feeds.private_files import open_private
from roster_service.roster.upgrades import open_roster_engine
from roster_service.schemas.versions import V1P2, VERSIONS


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
@reason_option
@as_json
def export(email: str, version: str, collection: str, client_id: str | None, out: Path, as_json: bool) -> None:
    """Write the active records of COLLECTION, such as `users`, as a vendor gets them into a file that only its owner
    can read: one line a record, the JSON of the interface. The change log has the look."""
    settings = read_settings()
    with open_roster_engine(settings) as engine, open_private(out) as written:
        lines = io.TextIOWrapper(written, encoding="utf-8", newline="")
        number = export_collection(engine, find_actor(), email, version, collection, client_id, lines, settings)
        lines.flush()
    show({"file": str(out), "records": number}, as_json, lambda _: f"{out}: {number:,} records")

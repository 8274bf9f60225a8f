"""`roster show`: a record as a vendor gets it."""

from __future__ import annotations

import json

import click

from roster_service.app import make_serving_engine
from roster_service.cli.terminal import as_json, open_change, read_settings, reason_option, show
from roster_service.db.roles import Role, make_role_urls
from roster_service.explore.vendor_view import VENDOR_INTERFACE, VendorView, show_as
from roster_service.schemas.versions import VERSIONS


@click.command("show")
@click.argument("sourced_id", metavar="SOURCEDID")
@click.option("--as", "email", required=True, metavar="VENDOR", help="The e-mail of the vendor.")
@click.option(
    "--version",
    type=click.Choice([*(version.prefix for version in VERSIONS), VENDOR_INTERFACE]),
    help="Only in this version; `v1`: only on the vendor interface.",
)
@reason_option
@as_json
def record_show(sourced_id: str, email: str, version: str | None, as_json: bool) -> None:
    """Show the record SOURCEDID as the clients of a vendor get it, or why they do not; a student also as /v1/students
    has it, with all parts that the flags of the vendor allow. The change log has the look."""
    settings = read_settings()
    with open_change() as (connection, actor):
        serving = make_serving_engine(make_role_urls(connection, settings.role_password)[Role.SERVING], settings)
        try:
            found = show_as(connection, serving, actor, sourced_id, email, version, settings)
        finally:
            serving.dispose()
    show(found, as_json, lambda _: "\n\n".join(map(_describe, found)) or "no client has a scope of this version")


def _describe(view: VendorView) -> str:
    body = f"not shown: {view.refusal}" if view.refusal else json.dumps(view.body, ensure_ascii=False, indent=2)
    return f"{view.client} ({view.client_id}), {view.method} {view.path}\n{body}"

"""`roster vendor` and `roster client`: who may ask, and for what."""

from __future__ import annotations

import click

from roster_service.access import vendors
from roster_service.access.scopes import EXPLANATIONS, Scope, ScopeName, read_scope
from roster_service.access.vendors import Client, Credentials, Grant, Vendor
from roster_service.cli.console import as_json, make_table, open_accounts, show
from roster_service.schemas.versions import VERSIONS


@click.group()
def vendor() -> None:
    """Vendors, and the districts and schools that they may see."""


@vendor.command("add")
@click.argument("email")
@click.option("--name", required=True, help="The vendor's name, for people.")
@as_json
def vendor_add(email: str, name: str, as_json: bool) -> None:
    """Add the vendor EMAIL, who sees nothing until districts are granted."""
    with open_accounts() as connection:
        added = vendors.add_vendor(connection, email, name)
    show(added, as_json, lambda _: f"added the vendor {added.email}; grant it a district with `roster vendor grant`")


@vendor.command("list")
@as_json
def vendor_list(as_json: bool) -> None:
    """List the vendors and their grants."""
    with open_accounts() as connection:
        found = vendors.list_vendors(connection)
    show(found, as_json, lambda _: make_table([_vendor_row(item) for item in found], "there are no vendors"))


def _vendor_row(item: Vendor) -> dict[str, str]:
    return {
        "e-mail": item.email,
        "name": item.name,
        "enabled": "yes" if item.enabled else "no",
        "grants": ", ".join(_show_grant(grant) for grant in item.grants) or "none",
    }


def _show_grant(grant: Grant) -> str:
    return f"{grant.district_id} (whole)" if grant.school_id is None else f"{grant.district_id}: {grant.school_id}"


@vendor.command("grant")
@click.argument("email")
@click.option("--district", required=True, help="The district's sourcedId or identifier.")
@click.option("--school", "schools", multiple=True, help="Only this school of it; repeatable.")
@as_json
def vendor_grant(email: str, district: str, schools: tuple[str, ...], as_json: bool) -> None:
    """Let the vendor EMAIL see a district, or only some of its schools. Its older tokens stop working."""
    with open_accounts() as connection:
        changed = vendors.grant(connection, email, district, schools)
    show(changed, as_json, _describe_grants)


@vendor.command("revoke")
@click.argument("email")
@click.option("--district", required=True, help="The district's sourcedId or identifier.")
@as_json
def vendor_revoke(email: str, district: str, as_json: bool) -> None:
    """Take a district and its schools back from the vendor EMAIL. Its older tokens stop working."""
    with open_accounts() as connection:
        changed = vendors.revoke(connection, email, district)
    show(changed, as_json, _describe_grants)


def _describe_grants(item: Vendor) -> str:
    return f"{item.email} may now see: {', '.join(_show_grant(grant) for grant in item.grants) or 'nothing'}"


@vendor.command("disable")
@click.argument("email")
@as_json
def vendor_disable(email: str, as_json: bool) -> None:
    """Shut out the vendor EMAIL at once, with all its clients and tokens."""
    with open_accounts() as connection:
        changed = vendors.enable_vendor(connection, email, enabled=False)
    show(changed, as_json, lambda _: f"{changed.email} is disabled")


@vendor.command("enable")
@click.argument("email")
@as_json
def vendor_enable(email: str, as_json: bool) -> None:
    """Let the disabled vendor EMAIL in again."""
    with open_accounts() as connection:
        changed = vendors.enable_vendor(connection, email, enabled=True)
    show(changed, as_json, lambda _: f"{changed.email} is enabled")


@click.group()
def client() -> None:
    """OAuth clients of the rostering interface."""


def read_scope_options(texts: tuple[str, ...]) -> tuple[Scope, ...]:
    """The scopes that the options name; one without a version is meant for both."""
    scopes: list[Scope] = []
    for text in texts:
        scope = read_scope(text)
        if scope is not None:
            scopes.append(scope)
        elif text in ScopeName.__members__.values():
            scopes += [Scope(version.prefix, ScopeName(text)) for version in VERSIONS]
        else:
            known = ", ".join(EXPLANATIONS)
            raise click.BadParameter(f"{text!r} is no scope; known, alone or behind v1p1/ or v1p2/: {known}")
    # All of one version before the other, so that the first one named decides what a request without scopes gets.
    first = [scope.version for scope in scopes][:1]
    return tuple(sorted(scopes, key=lambda scope: [scope.version] != first))


@client.command("add")
@click.option("--vendor", "email", required=True, help="The e-mail of the vendor that it belongs to.")
@click.option("--name", required=True, help="The client's name, for people.")
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    required=True,
    help="A scope that it may ask for, `v1p1/roster.readonly`; without a version: both. Repeatable.",
)
@as_json
def client_add(email: str, name: str, scopes: tuple[str, ...], as_json: bool) -> None:
    """Add an OAuth client. Its secret is shown this once."""
    wanted = read_scope_options(scopes)
    with open_accounts() as connection:
        made = vendors.add_client(connection, email, name, wanted)
    show(made, as_json, _describe_credentials)


def _describe_credentials(made: Credentials) -> str:
    lines = [
        f"client_id      {made.client_id}",
        f"client_secret  {made.client_secret}",
        f"scopes         {' '.join(made.scopes)}",
    ]
    return "\n".join([*lines, "The secret is not stored; keep it now."])


@client.command("list")
@as_json
def client_list(as_json: bool) -> None:
    """List the clients and their scopes."""
    with open_accounts() as connection:
        found = vendors.list_clients(connection)
    show(found, as_json, lambda _: make_table([_client_row(item) for item in found], "there are no clients"))


def _client_row(item: Client) -> dict[str, str]:
    return {
        "client_id": item.client_id,
        "vendor": item.vendor,
        "name": item.name,
        "enabled": "yes" if item.enabled else "no",
        "scopes": " ".join(item.scopes),
    }


@client.command("rotate-secret")
@click.argument("client_id")
@as_json
def client_rotate_secret(client_id: str, as_json: bool) -> None:
    """Replace the secret of CLIENT_ID. The old one, and the tokens made with it, stop working at once."""
    with open_accounts() as connection:
        made = vendors.rotate_secret(connection, client_id)
    show(made, as_json, _describe_credentials)


@client.command("disable")
@click.argument("client_id")
@as_json
def client_disable(client_id: str, as_json: bool) -> None:
    """Shut out CLIENT_ID at once, with its tokens."""
    with open_accounts() as connection:
        vendors.disable_client(connection, client_id)
    show({"client_id": client_id, "enabled": False}, as_json, lambda _: f"{client_id} is disabled")

"""The commands of `roster vendor` for withheld fields."""

from __future__ import annotations

from dataclasses import asdict

import click

from roster_service.accounts import vendors, withheld
from roster_service.cli.terminal import as_json, confirm, dry_run_option, open_change, reason_option, show, yes_option
from roster_service.cli.vendor_access import describe_withheld
from roster_service.roster.withheld import WithheldField

field_argument = click.argument(
    "fields", metavar="[FIELD]...", nargs=-1, type=click.Choice([field.value for field in WithheldField])
)
none_option = click.option(
    "--none", "is_none", is_flag=True, help="Withhold nothing but what a missing flag withholds."
)


@click.command("set-withheld")
@click.argument("email")
@field_argument
@none_option
@click.option("--default", "is_default", is_flag=True, help="Withhold what `roster vendor set-withheld-default` lists.")
@yes_option
@dry_run_option
@reason_option
@as_json
def vendor_set_withheld(
    email: str, fields: tuple[str, ...], is_none: bool, is_default: bool, yes: bool, dry_run: bool, as_json: bool
) -> None:
    """Replace the list of fields that are withheld from the vendor EMAIL, and end its tokens.

    Without the flag `contacts`, `phone` and `sms` are withheld too.
    """
    if [bool(fields), is_none, is_default].count(True) != 1:
        raise click.UsageError("name the FIELDs, or --none, or --default")
    confirm(f"This replaces the fields that are withheld from {email}.", email, is_confirmed=yes or dry_run)
    listed = None if is_default else list(map(WithheldField, fields))
    with open_change(dry_run=dry_run) as (connection, actor):
        changed = withheld.change_withheld(connection, actor, email, listed)
    words = f"from {changed.email} {'would be' if dry_run else 'are'} withheld: {describe_withheld(changed)}"
    show({**asdict(changed), "dry_run": dry_run}, as_json, lambda _: words)


@click.command("set-withheld-default")
@field_argument
@none_option
@yes_option
@dry_run_option
@reason_option
@as_json
def vendor_set_withheld_default(
    fields: tuple[str, ...], is_none: bool, yes: bool, dry_run: bool, as_json: bool
) -> None:
    """Replace the list of fields that are withheld from the vendors without a list of their own, and end their
    tokens."""
    if bool(fields) == is_none:
        raise click.UsageError("name the FIELDs, or --none")
    confirm("This replaces what is withheld from every vendor without a list.", "default", is_confirmed=yes or dry_run)
    with open_change(dry_run=dry_run) as (connection, actor):
        withheld.change_default(connection, actor, list(map(WithheldField, fields)))
        listed = withheld.read_default(connection)
        following = [item.email for item in vendors.list_vendors(connection) if item.own_withheld is None]
    shown = {"withheld": listed, "vendors": following, "dry_run": dry_run}
    words = f"{'would withhold' if dry_run else 'withholds'} by default: {', '.join(listed) or 'nothing'}"
    show(shown, as_json, lambda _: f"{words}; vendors: {', '.join(following) or 'none'}")


COMMANDS = (vendor_set_withheld, vendor_set_withheld_default)

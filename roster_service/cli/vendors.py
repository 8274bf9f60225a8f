"""`roster vendor`: the accounts of vendors, their grants and their withheld fields."""

from __future__ import annotations

from dataclasses import asdict, replace
from datetime import date, datetime

import click

from roster_service.accounts import clients, vendor_rights, vendors
from roster_service.accounts.account_copy import copy_vendor
from roster_service.accounts.credentials import CredentialKind, list_credentials
from roster_service.accounts.deletion_requests import list_requests
from roster_service.accounts.parts import reads_guardians
from roster_service.accounts.vendors import Grant, Vendor
from roster_service.accounts.ways import list_ways
from roster_service.cli import terminal, vendor_access
from roster_service.db.tables import deletion_requests, oauth_clients
from roster_service.deliveries.accounts import describe_switched_ways, list_deliveries
from roster_service.deliveries.recipients import FILES, find_recipient
from roster_service.feeds.sharing_previews import SharingPreview
from roster_service.people import keep_same_people
from roster_service.roster.withheld import WithheldField
from roster_service.schemas.flags import PermissionFlag
from roster_service.schemas.sharing_rules import Rules, Staff

district_option = click.option("--district", help="The district's sourcedId, identifier or unique name.")
flag_option = click.option(
    "--flag",
    "flags",
    multiple=True,
    type=click.Choice([flag.value for flag in PermissionFlag]),
    help="What `include` may name at /v1/students; `contacts`: phone and sms on OneRoster paths too. Repeatable.",
)


@click.group()
def vendor() -> None:
    """Vendors, and the districts and schools that they may see."""


@vendor.command("add")
@click.argument("email")
@click.option("--name", required=True, help="The vendor's name, for people.")
@vendor_access.password_option
@vendor_access.expires_option
@terminal.change_options
def vendor_add(email: str, name: str, password_stdin: bool, expires_at: datetime | None, as_json: bool) -> None:
    """Add the vendor EMAIL, who sees nothing until districts are granted. Shows its API key once."""
    password = vendor_access.read_password(password_stdin)
    with terminal.open_change() as (connection, actor):
        login = vendors.add_vendor(connection, actor, email, name, password, expires_at=expires_at)
        added = vendors.find_vendor(connection, email)
    message = f"added the vendor {added.email}; grant it a district with `roster vendor grant`"
    shown = {**asdict(added), "api_key": login.api_key, "password": login.password}
    terminal.show(shown, as_json, lambda _: f"{message}\n{vendor_access.describe_login(login)}")


@vendor.command("copy")
@click.argument("email")
@click.argument("new_email")
@click.option("--name", help="The name of the new account; by default that of the other one.")
@terminal.change_options
def vendor_copy(email: str, new_email: str, name: str | None, as_json: bool) -> None:
    """Add the vendor NEW_EMAIL with what the account EMAIL is set to, for another district's paper with the company.

    It has its flags, withheld fields, limits and clients, whoever is kept from it, and no secret, key, grant or
    agreement: make secrets with `roster client rotate-secret`.
    """
    with terminal.open_change() as (connection, actor):
        copied = copy_vendor(connection, actor, email, new_email, name, terminal.require_key(connection))
        keep_same_people(connection, actor, email, copied.email, terminal.read_settings())
        own = [item.client_id for item in clients.list_clients(connection, oauth_clients.c.vendor_id == copied.id)]
    words = (
        f"added the vendor {copied.email}, which sees nothing; its clients without a secret: {', '.join(own) or 'none'}"
    )
    terminal.show({**asdict(copied), "clients": own}, as_json, lambda _: words)


@vendor.command("list")
@terminal.as_json
def vendor_list(as_json: bool) -> None:
    """List the vendors and their grants."""
    with terminal.open_connection() as connection:
        found = vendors.list_vendors(connection)
    terminal.show_table(found, as_json, map(_vendor_row, found), "there are no vendors")


def _vendor_row(item: Vendor) -> dict[str, str]:
    return {
        "e-mail": item.email,
        "name": item.name,
        "enabled": "yes" if item.enabled else "no",
        "grants": ", ".join(vendor_access.describe_grant(grant) for grant in item.grants) or "none",
        "flags": ", ".join(item.flags) or "none",
    }


@vendor.command("grant")
@click.argument("email")
@district_option
@click.option("--school", "schools", multiple=True, help="Only this school of it; repeatable.")
@flag_option
@click.option("--students", metavar="FILTER", help="Only students that match, such as \"grades~'06,07,08'\".")
@click.option("--classes", metavar="FILTER", help="Only classes that match, with the students in them.")
@click.option(
    "--staff", type=click.Choice([word.value for word in Staff]), help="With --students or --classes: which staff."
)
@click.option("--no-guardians", is_flag=True, help="Not even the guardians of shared students.")
@click.option(
    "--yes", is_flag=True, help="Do not ask before grants are replaced; also rules that open no class or nobody now."
)
@terminal.dry_run_option
@terminal.change_options
def vendor_grant(
    email: str,
    district: str | None,
    schools: tuple[str, ...],
    flags: tuple[str, ...],
    students: str | None,
    classes: str | None,
    staff: str | None,
    no_guardians: bool,
    yes: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Grant the vendor EMAIL a district, or only some schools of it, or permission flags.

    With rules, it sees only what they open, and no one else learns of them. A grant of the same place is replaced, with
    its rules, once you have seen the difference and confirmed it; a refusal leaves it. Its older tokens stop working.
    With rules or --dry-run, says what the grant opens beside those of now.
    """
    _require_something(district, flags)
    rules = None
    if staff is not None:
        rules = Rules(students, classes, Staff(staff), guardians=not no_guardians)
    elif students is not None or classes is not None or no_guardians:
        raise click.UsageError("rules need --staff: all, classes (the teachers of shared classes) or none")
    if rules is not None and district is None:
        raise click.UsageError("rules need the --district that they are for")
    if schools and district is None:
        raise click.UsageError("--school needs the --district that it lies in")
    preview, replaced = None, list[Grant]()
    if district is not None:
        with terminal.open_change(dry_run=True) as (connection, _):
            made = vendor_rights.make_grants(connection, district, schools, rules)
            vendor_now = vendors.find_vendor(connection, email)
            replaced = [*vendor_rights.list_replaced(vendor_now, made)]
            now = vendor_now.list_grants(made[0].district_id)
            if dry_run or replaced or rules is not None:
                then = [*(item for item in now if item not in replaced), *made]
                asked = replace(vendor_now, flags=(*vendor_now.flags, *flags))
                reads = reads_guardians(asked, list_ways(connection).get(vendor_now.email, ()))
                preview = vendor_rights.preview_grants(connection, vendor_now, now, then, guardians=reads)
    if replaced and preview is not None and not (yes or dry_run):
        click.echo(_describe_preview(preview), err=True)
        named = "; ".join(map(vendor_access.describe_grant, replaced))
        terminal.confirm(f"This replaces {named}.", email, is_confirmed=False)
    with terminal.open_change(dry_run=dry_run) as (connection, actor):
        listed = [PermissionFlag(flag) for flag in flags]
        changed = vendor_rights.grant(
            connection, actor, email, district, schools, listed, rules, even_nothing=yes or dry_run
        )
        # A preview has them.
        is_noted = district is not None and preview is None
        notes = [*vendor_rights.list_notes(connection, changed.list_grants(made[0].district_id))] if is_noted else []
    shown = {**asdict(changed), "preview": terminal.to_plain(preview), "dry_run": dry_run}
    words = _describe_grants(changed, "would then" if dry_run else "may now")
    if preview is None:
        words = "\n".join([words, *notes])
    terminal.show(shown, as_json, lambda _: words if preview is None else f"{_describe_preview(preview)}\n{words}")


def _describe_preview(preview: SharingPreview) -> str:
    """Returns the counts of a preview, of all and by school, and the examples."""
    rows = [("all", counted) for counted in preview.counts]
    rows += [(school.name, counted) for school in preview.schools for counted in school.counts]
    table = [
        {
            "of": name,
            "kind": counted.kind,
            "now": f"{counted.now:,}",
            "then": f"{counted.then:,}",
            "comes": f"{counted.come:,}",
            "goes": f"{counted.go:,}",
        }
        for name, counted in rows
    ]
    examples = {"sees": preview.seen, "comes": preview.coming, "goes": preview.going}
    named = [f"{word}, such as: {', '.join(names)}" for word, names in examples.items() if names]
    return "\n".join([terminal.make_table(table, ""), *named, *preview.notes])


def _require_something(district: str | None, flags: tuple[str, ...]) -> None:
    if district is None and not flags:
        raise click.UsageError("name a --district, or a --flag")


@vendor.command("revoke")
@click.argument("email")
@district_option
@flag_option
@terminal.change_options
def vendor_revoke(email: str, district: str | None, flags: tuple[str, ...], as_json: bool) -> None:
    """Revoke a district with its schools, or flags, of the vendor EMAIL.

    Its older tokens stop working. Says to whom to write if files were sent: they cannot be called back.
    """
    _require_something(district, flags)
    with terminal.open_change() as (connection, actor):
        changed = vendor_rights.revoke(connection, actor, email, district, [PermissionFlag(flag) for flag in flags])
        recipient = find_recipient(connection, changed.id)
    sent = [] if recipient is None else [recipient.describe(FILES)]
    terminal.show(
        {**asdict(changed), "recipient": terminal.to_plain(recipient)},
        as_json,
        lambda _: "\n".join([_describe_grants(changed), *sent]),
    )


def _describe_grants(item: Vendor, may: str = "may now") -> str:
    districts = ", ".join(vendor_access.describe_grant(grant) for grant in item.grants) or "nothing"
    flags = f"; of students also: {', '.join(item.flags)}" if item.flags else ""
    within = ", as far as its agreement allows" if item.grants and item.agreed_flags is not None else ""
    closed = f"; but nothing now: {item.closed}" if item.grants and item.closed is not None else ""
    return f"{item.email} {may} see: {districts}{flags}{within}{closed}"


@vendor.command("disable")
@click.argument("email")
@terminal.change_options
def vendor_disable(email: str, as_json: bool) -> None:
    """Disable the vendor EMAIL at once, with its clients, tokens, files and unused links."""
    with terminal.open_change() as (connection, actor):
        changed = vendors.set_vendor_enabled(connection, actor, email, enabled=False)
        ways = describe_switched_ways(connection, changed)
    terminal.show(changed, as_json, lambda _: "\n".join([f"{changed.email} is disabled", *ways]))


@vendor.command("enable")
@click.argument("email")
@terminal.confirmed_change_options
def vendor_enable(email: str, yes: bool, dry_run: bool, as_json: bool) -> None:
    """Enable the disabled vendor EMAIL again."""
    terminal.confirm(f"This lets {email} read again, by all that it has.", email, is_confirmed=yes or dry_run)
    with terminal.open_change(dry_run=dry_run) as (connection, actor):
        changed = vendors.set_vendor_enabled(connection, actor, email, enabled=True)
        ways = describe_switched_ways(connection, changed)
    words = f"{changed.email} {'would be' if dry_run else 'is'} enabled"
    terminal.show({**asdict(changed), "dry_run": dry_run}, as_json, lambda _: "\n".join([words, *ways]))


@vendor.command("remove")
@click.argument("email")
@terminal.confirmed_change_options
def vendor_remove(email: str, yes: bool, dry_run: bool, as_json: bool) -> None:
    """Remove the vendor EMAIL at once, with all that it has.

    Its grants, clients, keys, tokens and deliveries end. The access log and the usage counters keep its rows.
    """
    terminal.confirm(
        f"This removes the vendor {email}, its clients, its keys and its deliveries.",
        email,
        is_confirmed=yes or dry_run,
    )
    with terminal.open_change(dry_run=dry_run) as (connection, actor):
        found = vendors.find_vendor(connection, email)
        owned = [item.client_id for item in clients.list_clients(connection, oauth_clients.c.vendor_id == found.id)]
        keys = [
            item.name
            for item in list_credentials(connection)
            if item.vendor == found.email and item.kind is CredentialKind.API_KEY
        ]
        files = [item.name for item in list_deliveries(connection, vendor=found.email)]
        of_vendor = (deletion_requests.c.vendor_id == found.id, deletion_requests.c.answered.is_(None))
        asked = [one.number for one in list_requests(connection, date.max, *of_vendor)]
        vendors.remove_vendor(connection, actor, email)
    shown = {
        "email": found.email,
        "grants": len(found.grants),
        "clients": owned,
        "keys": keys,
        "deliveries": files,
        "deletion_requests": asked,
        "dry_run": dry_run,
    }
    counts = {"grants": found.grants, "clients": owned, "API keys": keys, "deliveries": files}
    counts |= {"open deletion requests": asked} if asked else {}
    words = (
        f"the vendor {found.email} with its {', '.join(f'{kind} ({len(of_kind)})' for kind, of_kind in counts.items())}"
    )
    terminal.show(shown, as_json, lambda _: f"would remove {words}" if dry_run else f"removed {words}")


field_argument = click.argument(
    "fields", metavar="[FIELD]...", nargs=-1, type=click.Choice([field.value for field in WithheldField])
)
none_option = click.option(
    "--none", "is_none", is_flag=True, help="Withhold nothing but what a missing flag withholds."
)


@vendor.command("set-withheld")
@click.argument("email")
@field_argument
@none_option
@click.option("--default", "is_default", is_flag=True, help="Withhold what `roster vendor set-withheld-default` lists.")
@terminal.confirmed_change_options
def vendor_set_withheld(
    email: str, fields: tuple[str, ...], is_none: bool, is_default: bool, yes: bool, dry_run: bool, as_json: bool
) -> None:
    """Replace the list of fields that are withheld from the vendor EMAIL; another list ends its tokens.

    Without the flag `contacts`, `phone` and `sms` are withheld too.
    """
    if [bool(fields), is_none, is_default].count(True) != 1:
        raise click.UsageError("name the FIELDs, or --none, or --default")
    terminal.confirm(f"This replaces the fields that are withheld from {email}.", email, is_confirmed=yes or dry_run)
    listed = None if is_default else list(map(WithheldField, fields))
    with terminal.open_change(dry_run=dry_run) as (connection, actor):
        changed = vendor_rights.change_withheld(connection, actor, email, listed)
    words = (
        f"from {changed.email} {'would be' if dry_run else 'are'} withheld: {vendor_access.describe_withheld(changed)}"
    )
    terminal.show({**asdict(changed), "dry_run": dry_run}, as_json, lambda _: words)


@vendor.command("set-withheld-default")
@field_argument
@none_option
@terminal.confirmed_change_options
def vendor_set_withheld_default(
    fields: tuple[str, ...], is_none: bool, yes: bool, dry_run: bool, as_json: bool
) -> None:
    """Replace the list of fields that are withheld from vendors without a list of their own.

    It ends their tokens.
    """
    if bool(fields) == is_none:
        raise click.UsageError("name the FIELDs, or --none")
    terminal.confirm(
        "This replaces what is withheld from every vendor without a list.", "default", is_confirmed=yes or dry_run
    )
    with terminal.open_change(dry_run=dry_run) as (connection, actor):
        vendor_rights.change_withheld_default(connection, actor, list(map(WithheldField, fields)))
        listed = vendor_rights.read_withheld_default(connection)
        following = [item.email for item in vendors.list_vendors(connection) if item.own_withheld is None]
    shown = {"withheld": listed, "vendors": following, "dry_run": dry_run}
    words = f"{'would withhold' if dry_run else 'withholds'} by default: {', '.join(listed) or 'nothing'}"
    terminal.show(shown, as_json, lambda _: f"{words}; vendors: {', '.join(following) or 'none'}")


for command in vendor_access.COMMANDS:
    vendor.add_command(command)

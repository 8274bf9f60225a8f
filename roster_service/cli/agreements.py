"""`roster agreement`: what the papers with vendors allow them at most, and until when."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

import click

from roster_service.accounts import agreements
from roster_service.accounts.districts import DISTRICT, SCHOOL, find_org
from roster_service.accounts.known_agreements import Agreement, KnownAgreement, find_agreement, list_agreements
from roster_service.accounts.parts import PARTS
from roster_service.accounts.transparency import set_published
from roster_service.accounts.vendors import Vendor, find_vendor, list_vendors
from roster_service.cli import terminal
from roster_service.db.instants import name_zone


@click.group()
def agreement() -> None:
    """What the papers with vendors allow them at most, and until when."""


_DAY = click.DateTime(["%Y-%m-%d"])


@agreement.command("set")
@click.argument("email")
@click.option("--title", required=True, help="The title of the paper.")
@click.option("--purpose", required=True, help="What the vendor does with the data, in a sentence.")
@click.option(
    "--element",
    "elements",
    multiple=True,
    type=click.Choice(list(map(str, PARTS))),
    help="A part of people; repeatable.",
)
@click.option("--metadata-key", "metadata_keys", multiple=True, help="A key of `metadata` that it names; repeatable.")
@click.option("--district", "districts", multiple=True, help="A whole district; repeatable.")
@click.option("--school", "schools", multiple=True, help="A single school; repeatable.")
@click.option("--first-day", type=_DAY, required=True, metavar="DATE", help="The first day of the agreement.")
@click.option("--last-day", type=_DAY, required=True, metavar="DATE", help="Its last day.")
@click.option("--zone", help="Where the days begin and end, as America/Chicago; else ROSTER_TIME_ZONE, or UTC.")
@click.option("--contact", required=True, help="Whom the district asks at the vendor.")
@click.option("--deletion", required=True, help="What the vendor promises about deleting the data.")
@click.option("--address", default="", help="The vendor's business address.")
@click.option("--subcontractors", default="", help="To whom the vendor gives data.")
@click.option("--link", default="", help="The address of the paper, https.")
@terminal.confirmed_change_options
def agreement_set(
    email: str,
    title: str,
    purpose: str,
    elements: tuple[str, ...],
    metadata_keys: tuple[str, ...],
    districts: tuple[str, ...],
    schools: tuple[str, ...],
    first_day: datetime,
    last_day: datetime,
    zone: str | None,
    contact: str,
    deletion: str,
    address: str,
    subcontractors: str,
    link: str,
    yes: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Save the agreement with the vendor EMAIL, in place of its present one.

    From then on the vendor gets what is granted *and* agreed, from the first day to the end of the last one. Says what
    that ends before it asks; the agreement itself grants nothing.
    """
    with terminal.open_change(dry_run=True) as (connection, actor):
        saved = Agreement(
            title=title,
            purpose=purpose,
            elements=elements,
            metadata_keys=metadata_keys,
            districts=tuple(find_org(connection, name, DISTRICT, None) for name in districts),
            schools=tuple(find_org(connection, name, SCHOOL, None) for name in schools),
            zone=zone or name_zone(terminal.read_settings().time_zone or UTC),
            first_day=first_day.date(),
            last_day=last_day.date(),
            contact=contact,
            deletion=deletion,
            address=address,
            subcontractors=subcontractors,
            link=link,
        )
        made = agreements.save_agreement(connection, actor, email, saved)
    if not (yes or dry_run):
        click.echo(_describe(made.known, made.ends), err=True)
        terminal.confirm("This replaces what the vendor may get at most.", email, is_confirmed=False)
    if not dry_run:
        with terminal.open_change() as (connection, actor):
            made = agreements.save_agreement(connection, actor, email, saved)
    shown = {**_to_plain(made.known), "ends": made.ends, "dry_run": dry_run}
    terminal.show(shown, as_json, lambda _: _describe(made.known, made.ends))


@agreement.command("show")
@click.argument("email")
@terminal.as_json
def agreement_show(email: str, as_json: bool) -> None:
    """Show the agreement with the vendor EMAIL, and what is granted beyond it."""
    with terminal.open_connection() as connection:
        known = find_agreement(connection, find_vendor(connection, email))
    shown = None if known is None else _to_plain(known)
    terminal.show(shown, as_json, lambda _: "no agreement" if known is None else _describe(known))


@agreement.command("list")
@terminal.as_json
def agreement_list(as_json: bool) -> None:
    """List the vendors with their agreements."""
    with terminal.open_connection() as connection:
        found = {known.vendor: known for known in list_agreements(connection)}
        listed = list_vendors(connection)
    rows = [_make_row(item, found.get(item.email)) for item in listed]
    shown = [_to_plain(found[item.email]) if item.email in found else {"vendor": item.email} for item in listed]
    terminal.show_table(shown, as_json, rows, "there are no vendors")


@agreement.command("remove")
@click.argument("email")
@terminal.confirmed_change_options
def agreement_remove(email: str, yes: bool, dry_run: bool, as_json: bool) -> None:
    """Remove the agreement with the vendor EMAIL: it gets all that is granted, or nothing if one is required."""
    terminal.confirm(
        f"{email} then gets all that is granted to it, without an end, or nothing if agreements are required.",
        email,
        is_confirmed=yes or dry_run,
    )
    with terminal.open_change(dry_run=dry_run) as (connection, actor):
        vendor = agreements.remove_agreement(connection, actor, email)
    words = f"{vendor.email} {'would have' if dry_run else 'has'} no agreement"
    terminal.show({"vendor": vendor.email, "dry_run": dry_run}, as_json, lambda _: words)


@agreement.command("require")
@click.argument("answer", type=click.Choice(["yes", "no"]))
@terminal.confirmed_change_options
def agreement_require(answer: str, yes: bool, dry_run: bool, as_json: bool) -> None:
    """Require an agreement of each vendor, or require none: with `yes`, a vendor without one gets nothing."""
    required = answer == "yes"
    with terminal.open_change(dry_run=True) as (connection, actor):
        without = [item.email for item in agreements.require_agreements(connection, actor, required)]
    effect = "get nothing" if required else "get what is granted to them"
    words = f"vendors without an agreement {effect}: {', '.join(without) or 'there is none'}"
    terminal.confirm(f"{words}.", answer, is_confirmed=yes or dry_run)
    with terminal.open_change(dry_run=dry_run) as (connection, actor):
        agreements.require_agreements(connection, actor, required)
    terminal.show({"required": required, "without": without, "dry_run": dry_run}, as_json, lambda _: words)


@agreement.command("publish")
@click.argument("answer", type=click.Choice(["yes", "no"]))
@terminal.confirmed_change_options
def agreement_publish(answer: str, yes: bool, dry_run: bool, as_json: bool) -> None:
    """Show everybody, at /transparency, which vendors get what; or nobody."""
    published = answer == "yes"
    words = f"{'everybody' if published else 'nobody'} can see at /transparency which vendors get what"
    terminal.confirm(f"{words}.", answer, is_confirmed=yes or dry_run)
    with terminal.open_change(dry_run=dry_run) as (connection, actor):
        set_published(connection, actor, published)
    terminal.show({"published": published, "dry_run": dry_run}, as_json, lambda _: words)


def _to_plain(known: KnownAgreement) -> dict[str, Any]:
    return {**asdict(known), "agreement": known.agreement.list_values()}


def _describe(known: KnownAgreement, ends: Sequence[str] | None = None) -> str:
    """`ends`: what ends by it, None for one that is not saved now."""
    lines = {"vendor": f"{known.name} ({known.vendor})", **known.list_facts()}
    if ends is not None:
        lines["ends"] = "; ".join(ends) or "nothing that the vendor gets now"
    return "\n".join(f"{name:<14} {text}" for name, text in lines.items())


def _make_row(item: Vendor, known: KnownAgreement | None) -> dict[str, str]:
    if known is None:
        effect = "gets nothing" if item.not_agreed else "gets what is granted to it"
        return {"vendor": item.email, "title": "none", "last day": "-", "state": effect, "beyond": "-"}
    said = known.agreement
    return {
        "vendor": item.email,
        "title": said.title,
        "last day": str(said.last_day),
        "state": known.state,
        "beyond": "; ".join(known.beyond) or "-",
    }

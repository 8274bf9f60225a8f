"""`roster person`: people whom the roster must not have."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import click

from roster_service.cli.terminal import (
    as_json,
    confirm,
    confirmed_change_options,
    make_table,
    open_change,
    open_connection,
    read_settings,
    show,
    to_texts,
)
from roster_service.db.instants import format_instant
from roster_service.deliveries.recipients import WITH_PERSON, list_recipients
from roster_service.explore.known_people import require_person
from roster_service.feeds.exclusions import Exclusion, ExclusionKind, list_exclusions
from roster_service.people import describe_removal, end_exclusion, exclude_person, finish
from roster_service.roster.upgrades import open_roster_engine

# Seconds beyond the longest request for which the command waits for requests that began before it.
MARGIN_SECONDS = 5


@click.group()
def person() -> None:
    """People whom the roster must not have."""


@person.command("erase")
@click.argument("sourced_id", metavar="SOURCEDID")
@confirmed_change_options
def person_erase(sourced_id: str, yes: bool, dry_run: bool, as_json: bool) -> None:
    """Erase the person SOURCEDID for good, as a court orders: from the roster, the texts and orderings made of it, the
    history of runs, and held exports, which are discarded. Later exports do not bring the person back. The files of the
    SIS, and backups, stay as they are."""
    _ask("this erases the person for good.", sourced_id, is_confirmed=yes or dry_run)
    _exclude(ExclusionKind.ERASED, sourced_id, dry_run=dry_run, as_json=as_json)


@person.command("hide")
@click.argument("sourced_id", metavar="SOURCEDID")
@confirmed_change_options
def person_hide(sourced_id: str, yes: bool, dry_run: bool, as_json: bool) -> None:
    """Take the person SOURCEDID out of the roster until `roster person show`, for a family that opts out of directory
    data."""
    _ask("this takes the person out of the roster.", sourced_id, is_confirmed=yes or dry_run)
    _exclude(ExclusionKind.HIDDEN, sourced_id, dry_run=dry_run, as_json=as_json)


def _ask(effect: str, sourced_id: str, *, is_confirmed: bool) -> None:
    """Names the person, for whom a mistyped id may stand, and asks to go on."""
    if is_confirmed:
        return
    with open_connection() as connection:
        known = require_person(connection, sourced_id, read_settings().read_secret_key())
    confirm(f"{known}: {effect}", sourced_id, is_confirmed=False)


def _say(words: str) -> None:
    click.echo(words, err=True)


def _exclude(kind: ExclusionKind, sourced_id: str, *, dry_run: bool, as_json: bool) -> None:
    settings = read_settings()
    with open_change(dry_run=dry_run) as (connection, actor):
        removal = exclude_person(connection, actor, kind, sourced_id, settings, _say)
        recipients = list_recipients(connection, sourced_id, settings.read_secret_key())
    has_ended = True
    if not dry_run:
        with open_roster_engine(settings) as engine:
            has_ended = finish(engine, settings.home, removal, settings.request_seconds + MARGIN_SECONDS, _say)
    shown = {
        "reference": removal.reference,
        "kind": kind,
        "records": dict(removal.records),
        "held_runs": len(removal.held_exports),
        "requests_ended": has_ended,
        "recipients": [asdict(recipient) for recipient in recipients],
        "dry_run": dry_run,
    }
    words = [
        describe_removal(removal, has_ended=has_ended, dry_run=dry_run),
        *(recipient.describe(WITH_PERSON) for recipient in recipients),
    ]
    show(shown, as_json, lambda _: "\n".join(words))


@person.command("lift")
@click.argument("named", metavar="SOURCEDID|REFERENCE")
@confirmed_change_options
def person_lift(named: str, yes: bool, dry_run: bool, as_json: bool) -> None:
    """Lift an erasure: the next sync brings the person back, if the export still has the person."""
    confirm("This lets the next sync bring the person back.", named, is_confirmed=yes or dry_run)
    _end(ExclusionKind.ERASED, named, dry_run=dry_run, as_json=as_json)


@person.command("show")
@click.argument("named", metavar="SOURCEDID|REFERENCE")
@confirmed_change_options
def person_show(named: str, yes: bool, dry_run: bool, as_json: bool) -> None:
    """Show a hidden person again: the next sync brings the person back."""
    confirm("This lets the next sync bring the person back.", named, is_confirmed=yes or dry_run)
    _end(ExclusionKind.HIDDEN, named, dry_run=dry_run, as_json=as_json)


def _end(kind: ExclusionKind, named: str, *, dry_run: bool, as_json: bool) -> None:
    with open_change(dry_run=dry_run) as (connection, actor):
        ended = end_exclusion(connection, actor, kind, named, read_settings())
    words = (
        f"{ended.reference} {'would be' if dry_run else 'is'} no longer {kind}; the next sync brings the person back"
    )
    show(_to_json(ended) | {"dry_run": dry_run}, as_json, lambda _: words)


@person.command("list")
@as_json
def person_list(as_json: bool) -> None:
    """List the erased and the hidden people: erased ones by a keyed hash alone."""
    with open_connection() as connection:
        found = [_to_json(item) for item in list_exclusions(connection)]
    rows = [to_texts(item, "at") for item in found]
    show(found, as_json, lambda _: make_table(rows, "nobody is erased or hidden"))


def _to_json(item: Exclusion) -> dict[str, Any]:
    return asdict(item) | {"at": format_instant(item.at)}

"""`roster usage` and `roster audit`: the usage counters and the access log."""

from __future__ import annotations

import csv
import dataclasses
import io
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

import click
import sqlalchemy as sa

from roster_service.accounts.parts import list_shown_parts
from roster_service.accounts.vendors import find_vendor
from roster_service.auth.access_log.people import PersonHasher
from roster_service.auth.access_log.reports import (
    AccessLogFilter,
    Unsearchable,
    count_unsearchable,
    read_access_log,
    read_refused,
    read_usage,
)
from roster_service.auth.access_log.writer import move_rows_of_ended_workers
from roster_service.cli.terminal import as_json, make_table, open_connection, read_settings, show, to_texts
from roster_service.explore.known_people import choose_person

vendor_option = click.option("--vendor", "email", help="Only the vendor with this e-mail.")
since_option = click.option("--since", type=click.DateTime(["%Y-%m-%d"]), help="Only from this day on, in UTC.")
csv_option = click.option("--csv", "as_csv", is_flag=True, help="Print CSV.")


@click.command()
@vendor_option
@since_option
@click.option("--refused", is_flag=True, help="Show the refused requests instead, by caller, status and cause.")
@csv_option
@as_json
def usage(email: str | None, since: datetime | None, refused: bool, as_csv: bool, as_json: bool) -> None:
    """Show requests, records and bytes by vendor, day, endpoint and class of status; or the refused requests, and why
    they were refused."""
    with open_connection() as connection:
        read: Callable[..., Sequence[Any]] = read_refused if refused else read_usage
        found = read(connection, _find_vendor_id(connection, email), None if since is None else since.date())
    nothing = "no request was refused" if refused else "there were no requests"
    _show([dataclasses.asdict(row) for row in found], as_csv, as_json, nothing)


@click.command()
@vendor_option
@since_option
@click.option("--client", "caller", help="Only this OAuth client, or API key by its prefix.")
@click.option("--address", help="Only requests from this network address.")
@click.option("--scope", help="Only this scope, as `v1p2/roster.readonly`, or this permission flag.")
@click.option("--district", help="Only what was disclosed while the vendor's grants opened this district.")
@click.option(
    "--person", metavar="SOURCEDID|NAME", help="Only what had records of this person, who may be gone by now."
)
@csv_option
@as_json
def audit(
    email: str | None,
    since: datetime | None,
    caller: str | None,
    address: str | None,
    scope: str | None,
    district: str | None,
    person: str | None,
    as_csv: bool,
    as_json: bool,
) -> None:
    """Show the access log: each response with records, its time, vendor, path, scope, districts, number of records, and
    the parts of people that its scopes or flags open. Fields that were withheld from the vendor then were in no
    response, even if a part names them: `roster changes` has the lists, and `roster vendor show` those of now.

    A row is here about a second after its response. Rows of before yesterday are of a day (`by`): so many responses
    (`answers`) have the rest of the row in common, and at least one had the person. Their individual instants and
    request ids are gone.
    """
    known, settings = None, read_settings()
    with open_connection() as connection:
        missing = move_rows_of_ended_workers(connection.engine, settings.access_log_folder)
        if missing is not None:
            click.echo(missing, err=True)
        if person is not None:
            secret_key = settings.read_secret_key()
            hasher = PersonHasher(secret_key)
            _warn(count_unsearchable(connection, AccessLogFilter(), hasher.check))
            known = choose_person(connection, person, secret_key)
        wanted = AccessLogFilter(
            vendor_id=_find_vendor_id(connection, email),
            since=None if since is None else since.replace(tzinfo=UTC),
            caller=caller,
            address=address,
            scope=scope,
            district=district,
            person=None if known is None else hasher.hash_id(known.sourcedId),
        )
        found = read_access_log(connection, wanted)
    rows = [{**dataclasses.asdict(row), "parts": list(list_shown_parts(row.path, row.scope))} for row in found]
    _show(rows, as_csv, as_json, f"no records{'' if known is None else f' of {known}'} were disclosed")
    if known is not None and found and not (as_csv or as_json):
        days = sum(row.by == "day" for row in found)
        are = "row is" if days == 1 else "rows are"
        of_days = f"; {days:,} {are} of a day, of which at least one answer had them" if days else ""
        click.echo(f"these answers had records of {known}{of_days}")


def _find_vendor_id(connection: sa.Connection, email: str | None) -> int | None:
    return None if email is None else find_vendor(connection, email).id


def _warn(left_out: Unsearchable) -> None:
    """Says on the standard error which rows a search for a person leaves out."""
    reasons = {
        "are of before the access log knew people": left_out.older,
        "were made with another ROSTER_SECRET_KEY; search them with that one": left_out.other_key,
    }
    for reason, count in reasons.items():
        if count:
            click.echo(f"rows that do not tell whether they have the person: {count:,} {reason}", err=True)


def _show(found: Sequence[dict[str, Any]], as_csv: bool, as_json: bool, nothing: str) -> None:
    if as_csv and as_json:
        raise click.UsageError("choose one of --csv and --json")
    rows = [{name: " ".join(cell) if isinstance(cell, list) else cell for name, cell in row.items()} for row in found]
    show(found, as_json, lambda _: _write_csv(rows) if as_csv else make_table([to_texts(row) for row in rows], nothing))


def _write_csv(rows: list[dict[str, Any]]) -> str:
    if not rows:
        return ""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().rstrip("\n")

"""`roster usage`, `roster audit` and `roster changes`: the usage counters, the access log and the change log."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any, TextIO

import click
import sqlalchemy as sa

from roster_service.access_log import reports
from roster_service.access_log.entries import PersonHasher
from roster_service.access_log.reports import AccessLogFilter
from roster_service.access_log.writer import move_rows_of_ended_workers
from roster_service.accounts.districts import find_org
from roster_service.accounts.vendors import find_vendor
from roster_service.change_log.changes import Change, list_changes
from roster_service.cli import terminal
from roster_service.db.instants import begin_day
from roster_service.explore.known_people import choose_person
from roster_service.explore.refusals import explain_refused
from roster_service.feeds.private_files import guard_row, write_private_csv

vendor_option = click.option("--vendor", "email", help="Only the vendor with this e-mail.")
DAY = click.DateTime(["%Y-%m-%d"])


def read_since(_context: click.Context, _parameter: click.Parameter, day: datetime | None) -> datetime | None:
    """Returns the beginning of a day in the time zone of the settings; None for no day."""
    return None if day is None else begin_day(day.date(), terminal.read_settings().time_zone)


since_option = click.option(
    "--since", type=DAY, callback=read_since, help="Only from this day on, in ROSTER_TIME_ZONE."
)
print_csv_option = click.option("--csv", "as_csv", is_flag=True, help="Print CSV.")


@click.command()
@vendor_option
@click.option("--since", type=DAY, help="Only from this day on, in UTC.")
@click.option("--refused", is_flag=True, help="Show the refused requests instead, by caller, cause and path.")
@print_csv_option
@terminal.as_json
def usage(email: str | None, since: datetime | None, refused: bool, as_csv: bool, as_json: bool) -> None:
    """Show requests, records and bytes by vendor and day; or the refused requests, with what to do.

    Requests are counted by endpoint and class of status. The refused ones have the filters that found nothing beside
    them.
    """
    with terminal.open_connection() as connection:
        chosen = _find_vendor_id(connection, email), None if since is None else since.date()
        found: Sequence[Any]
        if refused:
            found = explain_refused(connection, reports.read_refused(connection, *chosen))
        else:
            found = reports.read_usage(connection, *chosen)
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
@print_csv_option
@terminal.as_json
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
    """Show the access log, by response, and before yesterday by day.

    Each response with records has its time, vendor, path, scope, districts, number of records, and the parts of people
    that were in it. A row is here about a second after its response. Rows of a day (`by`): so many responses
    (`answers`) have the rest of the row in common, and at least one had the person. Their individual instants and
    request ids are gone.
    """
    known, settings = None, terminal.read_settings()
    with terminal.open_connection() as connection:
        missing = move_rows_of_ended_workers(connection.engine, settings.access_log_folder)
        if missing is not None:
            click.echo(missing, err=True)
        if person is not None:
            secret_key = terminal.require_key(connection)
            hasher = PersonHasher(secret_key)
            _warn(reports.count_unsearchable(connection, AccessLogFilter(), hasher.check))
            known = choose_person(connection, person, secret_key)
        wanted = AccessLogFilter(
            vendor_id=_find_vendor_id(connection, email),
            since=since,
            caller=caller,
            address=address,
            scope=scope,
            district=_find_district(connection, district),
            person=None if known is None else hasher.hash_id(known.sourcedId),
        )
        found = reports.read_access_log(connection, wanted)
    rows = [dataclasses.asdict(row) for row in found]
    _show(rows, as_csv, as_json, f"no records{'' if known is None else f' of {known}'} were disclosed")
    if known is not None and found and not (as_csv or as_json):
        days = sum(row.by == "day" for row in found)
        are = "row is" if days == 1 else "rows are"
        of_days = f"; {days:,} {are} of a day, of which at least one answer had them" if days else ""
        click.echo(f"these answers had records of {known}{of_days}")


def _find_vendor_id(connection: sa.Connection, email: str | None) -> int | None:
    return None if email is None else find_vendor(connection, email).id


def _find_district(connection: sa.Connection, name: str | None) -> str | None:
    """The sourcedId of a district of the roster, or of one that the log alone has."""
    if name is None or reports.names_district(connection, name):
        return name
    return find_org(connection, name, "district", None)


def _warn(left_out: int) -> None:
    """Says on the standard error how many rows a search for a person leaves out."""
    if left_out:
        click.echo(
            f"rows that do not tell whether they have the person: {left_out:,} were made with another "
            "ROSTER_SECRET_KEY; search them with that one",
            err=True,
        )


def _show(found: Sequence[dict[str, Any]], as_csv: bool, as_json: bool, nothing: str) -> None:
    if as_csv and as_json:
        raise click.UsageError("choose one of --csv and --json")
    rows = [{name: _join(cell) for name, cell in row.items()} for row in found]

    def write(_: object) -> str:
        times = ("at", "first_at", "last_at")
        return (
            _write_csv(rows)
            if as_csv
            else terminal.make_table([terminal.to_texts(row, *times) for row in rows], nothing)
        )

    terminal.show(found, as_json, write)


def _join(cell: object) -> object:
    if isinstance(cell, dict):
        return ", ".join(f"{name}: {value}" for name, value in cell.items())
    return " ".join(cell) if isinstance(cell, list) else cell


def _write_csv(rows: list[dict[str, Any]]) -> str:
    if not rows:
        return ""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(rows[0])
    writer.writerows(guard_row(row.values()) for row in rows)
    return text.getvalue().rstrip("\n")


COLUMNS = tuple(field.name for field in dataclasses.fields(Change))


@click.command()
@click.option("--vendor", metavar="EMAIL", help="Only changes of this vendor, its grants, clients and keys.")
@click.option("--feed", metavar="NAME", help="Only changes of this feed and its runs.")
@click.option("--operator", metavar="NAME", help="Only changes by this operator, or by this user@host.")
@since_option
@terminal.csv_option
@terminal.as_json
def changes(
    vendor: str | None,
    feed: str | None,
    operator: str | None,
    since: datetime | None,
    csv_file: TextIO | None,
    as_json: bool,
) -> None:
    """Show the change log: when, who, what, on what, before and after, and why."""
    with terminal.open_connection() as connection:
        found = list_changes(connection, vendor=vendor, feed=feed, operator=operator, since=since)
    if csv_file is not None:
        lines = ([_to_cell(value) for value in dataclasses.asdict(change).values()] for change in found)
        write_private_csv(csv_file, COLUMNS, lines)
        return
    terminal.show_table(found, as_json, map(_to_row, found), "there were no changes")


def _to_cell(value: Any) -> Any:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict) else value


def _to_row(item: Change) -> dict[str, str]:
    return {
        "at": terminal.show_instant(item.at),
        "by": item.actor,
        "change": item.verb,
        "of": item.subject,
        "before": _describe(item.before),
        "after": _describe(item.after),
        "reason": item.reason or "-",
    }


def _describe(state: dict[str, Any] | None) -> str:
    if state is None:
        return "(none)"
    return ", ".join(f"{name} {json.dumps(value, ensure_ascii=False)}" for name, value in state.items()) or "-"

"""`roster delivery`: files of OneRoster CSV for vendors, and their way to the receivers."""

from __future__ import annotations

import shutil
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from roster_service.cli.terminal import (
    as_json,
    change_options,
    confirm,
    find_actor,
    make_table,
    open_change,
    open_connection,
    read_settings,
    show,
    to_texts,
    yes_option,
)
from roster_service.db.instants import format_instant
from roster_service.deliveries import accounts
from roster_service.deliveries.accounts import FAILED, SENT, Delivery, Wanted
from roster_service.deliveries.package import Package
from roster_service.deliveries.presets import PRESETS
from roster_service.deliveries.previews import preview_package
from roster_service.deliveries.sender import Sender
from roster_service.errors import CommandError
from roster_service.feeds.private_files import open_private
from roster_service.roster.upgrades import open_roster_engine

SHOWN_RUNS = 20
# The columns that are instants.
INSTANTS = ("at", "sent_at", "started_at")


@click.group()
def delivery() -> None:
    """The roster as files for vendors."""


preset_option = click.option(
    "--preset",
    required=True,
    type=click.Choice(list(PRESETS)),
    help="What the receiver takes: " + "; ".join(f"{name}: {preset.words}" for name, preset in PRESETS.items()) + ".",
)
client_option = click.option(
    "--client", "client_id", help="The client whose scopes count, if the vendor has several with this version."
)


@delivery.command("preview")
@click.argument("email")
@preset_option
@client_option
@click.option("--out", required=True, type=click.Path(dir_okay=False, path_type=Path), help="The file to write.")
@change_options
def delivery_preview(email: str, preset: str, client_id: str | None, out: Path, as_json: bool) -> None:
    """Write the zip that the vendor EMAIL would get now into a file that only its owner can read. The change log has
    the look."""
    settings = read_settings()
    with open_roster_engine(settings) as engine:
        package, made = preview_package(engine, find_actor(), email, preset, client_id, settings)
    with made, open_private(out) as written:
        shutil.copyfileobj(made, written)
    show(describe_package(package), as_json, lambda _: f"{list_rows(package)}\n{out}: {package.bytes:,} bytes")


@delivery.command("add")
@click.argument("name")
@click.argument("email")
@preset_option
@client_option
@click.option("--host", required=True, help="The server of the receiver.")
@click.option("--port", default=22, show_default=True, type=click.IntRange(1, 65535))
@click.option("--user", "username", required=True, help="The user name at the server.")
@click.option("--folder", default="", help="The folder at the server.  [default: that of the login]")
@click.option(
    "--host-key", required=True, help="The type and base64 of the server's key, as `ssh-keyscan` prints them."
)
@click.option(
    "--key-file", type=click.File("r"), help="A private key without a passphrase; without it, a password is asked for."
)
@click.option(
    "--hour",
    type=click.IntRange(0, 23),
    help="The hour to send it at, in ROSTER_TIME_ZONE.  [default: after the nightly sync]",
)
@click.option("--in-place", is_flag=True, help="Write under the final name, for a server that allows no rename.")
@click.option("--contact", help="To whom to write at the receiver.  [default: EMAIL]")
@change_options
def delivery_add(name: str, email: str, key_file: Any, as_json: bool, **given: Any) -> None:
    """Add the delivery NAME of files to the vendor EMAIL, by SFTP. It makes the first file, which waits for `roster
    delivery approve`."""
    secret = key_file.read() if key_file else click.prompt("Password", hide_input=True, err=True)
    settings = read_settings()
    wanted = Wanted(name=name, email=email, secret=secret, has_private_key=key_file is not None, **given)
    with open_roster_engine(settings) as engine:
        with engine.begin() as connection:
            accounts.add_delivery(connection, find_actor(), wanted, settings)
        ended = Sender(engine, settings).deliver(name)
    show(_to_json(ended), as_json, lambda _: f"{name} is added\n{_describe_end(ended)}")


@delivery.command("list")
@as_json
def delivery_list(as_json: bool) -> None:
    """List the deliveries, with the state of the latest file of each."""
    with open_connection() as connection:
        found = [_to_json(delivery) for delivery in accounts.list_deliveries(connection)]
    shown = ("name", "vendor", "preset", "host", "hour", "state", "at", "sent_at", "message")
    rows = [to_texts({column: row[column] for column in shown}, *INSTANTS) for row in found]
    show(found, as_json, lambda _: make_table(rows, "there are no deliveries"))


@delivery.command("show")
@click.argument("name")
@as_json
def delivery_show(name: str, as_json: bool) -> None:
    """Show the delivery NAME, and its latest files."""
    with open_connection() as connection:
        found = accounts.find_delivery(connection, name)
        runs = [_format(dict(run)) for run in accounts.list_runs(connection, name, SHOWN_RUNS)]
    head = "\n".join(f"{key}: {value}" for key, value in to_texts(_to_json(found), *INSTANTS).items())
    shown = ("started_at", "state", "file_name", "bytes", "digest", "message")
    rows = [to_texts({column: run[column] for column in shown}, *INSTANTS) for run in runs]
    value = {**_to_json(found), "runs": runs}
    show(value, as_json, lambda _: f"{head}\n\n{make_table(rows, 'no file was made yet')}")


@delivery.command("approve")
@click.argument("name")
@click.argument("digest")
@change_options
def delivery_approve(name: str, digest: str, as_json: bool) -> None:
    """Send the file of the delivery NAME that waits, whatever the receiver loses by it. DIGEST is its SHA-256, as
    `roster delivery show` has it; if the roster has changed since, there is another file, which waits again."""
    with open_change() as (connection, actor):
        accounts.approve_file(connection, actor, name, digest)
    _send(name, as_json)


@delivery.command("send")
@click.argument("name")
@as_json
def delivery_send(name: str, as_json: bool) -> None:
    """Make the file of the delivery NAME now and send it, unless it must wait for `roster delivery approve`."""
    _send(name, as_json)


@delivery.command("remove")
@click.argument("name")
@yes_option
@change_options
def delivery_remove(name: str, yes: bool, as_json: bool) -> None:
    """Remove the delivery NAME. What was sent cannot be called back; the access log stays."""
    confirm("No more files are sent.", name, is_confirmed=yes)
    with open_change() as (connection, actor):
        accounts.remove_delivery(connection, actor, name)
    show({"name": name}, as_json, lambda _: f"{name} is removed")


def _send(name: str, as_json: bool) -> None:
    settings = read_settings()
    with open_roster_engine(settings) as engine:
        ended = Sender(engine, settings).deliver(name)
    if ended.state == FAILED:
        raise CommandError(f"{name} was not sent: {ended.message}")
    show(_to_json(ended), as_json, lambda _: _describe_end(ended))


def _describe_end(ended: Delivery) -> str:
    if ended.state == SENT:
        return f"{ended.file_name} is sent, {ended.digest}"
    how = f"\n`roster delivery approve {ended.name} {ended.digest}` sends it" if ended.digest else ""
    return f"{ended.state}: {ended.message}{how}"


def _to_json(item: Delivery) -> dict[str, Any]:
    return _format(asdict(item))


def _format(row: dict[str, Any]) -> dict[str, Any]:
    return {name: format_instant(value) if hasattr(value, "tzinfo") else value for name, value in row.items()}


def describe_package(package: Package) -> dict[str, Any]:
    """Returns a package for JSON, without its people."""
    return {
        "revision": package.revision,
        "digest": package.digest,
        "bytes": package.bytes,
        "rows": dict(package.rows),
        "absent": list(package.absent),
        "left_out": {name: dict(counts) for name, counts in package.left_out.items()},
    }


def list_rows(package: Package) -> str:
    """Returns the rows of each file in words, and what was left out of it."""
    lines = []
    for name, number in package.rows.items():
        left = package.left_out.get(name, {})
        words = "; ".join(f"{count:,} left out for their {header}" for header, count in left.items())
        lines.append(f"{name}.csv: {number:,} rows" + (f" ({words})" if words else ""))
    lines += [f"{name}.csv: absent" for name in package.absent]
    return "\n".join(lines)

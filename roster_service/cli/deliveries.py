"""`roster delivery`: files of OneRoster CSV for vendors, and their way to the receivers."""

from __future__ import annotations

import functools
import shutil
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

import click

from roster_service.cli import terminal
from roster_service.deliveries import accounts
from roster_service.deliveries.accounts import FAILED, WAITING, Delivery
from roster_service.deliveries.package import Package
from roster_service.deliveries.previews import preview_package
from roster_service.deliveries.sender import Sender
from roster_service.errors import CommandError
from roster_service.feeds.private_files import open_private
from roster_service.roster.revisions import open_roster_engine
from roster_service.schemas.file_presets import PRESETS

SHOWN_RUNS = 20
# The columns of runs that are instants.
INSTANTS = ("tried",)
# In place of an hour.
SYNC = "sync"
_HOUR = "The hour in ROSTER_TIME_ZONE from which it is sent, or `sync`: after the nightly sync."
Command = TypeVar("Command", bound=Callable[..., Any])


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
@terminal.change_options
def delivery_preview(email: str, preset: str, client_id: str | None, out: Path, as_json: bool) -> None:
    """Write the zip that the vendor EMAIL would get now into a file.

    Only its owner can read the file. The change log records it.
    """
    settings = terminal.read_settings()
    # The file first: what cannot be written is not recorded.
    with open_private(out) as written:
        with open_roster_engine(settings) as engine:
            package, made = preview_package(engine, terminal.find_actor(), email, preset, client_id, settings)
        with made:
            shutil.copyfileobj(made, written)
    # Without the people.
    shown = {name: getattr(package, name) for name in ("revision", "digest", "bytes", "rows", "absent", "left_out")}
    terminal.show(shown, as_json, lambda _: f"{list_rows(package)}\n{out}: {package.bytes:,} bytes")


def place_options(*, adds: bool) -> Callable[[Command], Command]:
    """Adds the options of what a delivery sends, and where to. `adds`: for a new one, which needs a place."""
    options = (
        preset_option if adds else click.option("--preset", type=click.Choice(list(PRESETS))),
        client_option,
        click.option("--host", required=adds, help="The server of the receiver."),
        click.option("--port", type=click.IntRange(1, 65535), default=22 if adds else None, show_default=adds),
        click.option("--user", "username", required=adds, help="The user name at the server."),
        click.option("--folder", default="" if adds else None, help="The folder at the server; '': that of the login."),
        click.option("--host-key", required=adds, help="The type and base64 of its key, as `ssh-keyscan` prints them."),
        click.option("--key-file", type=click.File("r"), help="A private key without a passphrase, not a password."),
        click.option("--hour", type=click.Choice([*map(str, range(24)), SYNC]), metavar="HOUR", help=_HOUR),
        click.option("--in-place/--rename", default=False if adds else None, help="Write it under its final name."),
        click.option("--contact", help="To whom to write at the receiver; '': to the vendor."),
        terminal.change_options,
    )
    return lambda command: functools.reduce(lambda made, option: option(made), reversed(options), command)


def read_given(given: Mapping[str, Any], *, asks: bool) -> dict[str, Any]:
    """Returns what the options of `place_options` give, as columns. `asks`: for a password, if there is no key. Raises
    CommandError for a key that is no text."""
    found = {name: value for name, value in given.items() if value is not None}
    key_file = found.pop("key_file", None)
    if key_file or asks:
        try:
            secret = key_file.read() if key_file else click.prompt("Password", hide_input=True, err=True)
        except UnicodeDecodeError:
            raise CommandError(f"{key_file.name} is no private key of OpenSSH") from None
        found |= {"secret": secret, "has_private_key": key_file is not None}
    if "hour" in found:
        found["hour"] = None if found["hour"] == SYNC else int(found["hour"])
    return found


@delivery.command("add")
@click.argument("name")
@click.argument("email")
@place_options(adds=True)
def delivery_add(name: str, email: str, as_json: bool, **given: Any) -> None:
    """Add the delivery NAME of files to the vendor EMAIL, by SFTP.

    It makes the first file, which waits for `roster delivery approve`.
    """
    row = {"client_id": None, **read_given(given, asks=True)}
    with terminal.open_change() as (connection, actor):
        terminal.require_key(connection)
        accounts.add_delivery(connection, actor, name, email, row, terminal.read_settings())
    # Also if its first file fails.
    _show_end(_deliver(name), as_json)


@delivery.command("set")
@click.argument("name")
@click.option("--password", is_flag=True, help="Ask for another password.")
@place_options(adds=False)
def delivery_set(name: str, password: bool, as_json: bool, **given: Any) -> None:
    """Change the delivery NAME.

    With another preset, client, server, user or folder, its next file waits as the first one does.
    """
    row = read_given(given, asks=password)
    with terminal.open_change() as (connection, actor):
        terminal.require_key(connection)
        changed = accounts.change_delivery(connection, actor, name, row, terminal.read_settings())
    terminal.show(_to_json(changed), as_json, lambda _: f"{name} is changed")


@delivery.command("stop")
@click.argument("name")
@terminal.change_options
def delivery_stop(name: str, as_json: bool) -> None:
    """Stop the delivery NAME until `roster delivery start`."""
    _stop(name, as_json, stopped=True)


@delivery.command("start")
@click.argument("name")
@terminal.change_options
def delivery_start(name: str, as_json: bool) -> None:
    """Let the stopped delivery NAME go on.

    Its next file is sent when it is due.
    """
    _stop(name, as_json, stopped=False)


def _stop(name: str, as_json: bool, *, stopped: bool) -> None:
    with terminal.open_change() as (connection, actor):
        changed = accounts.stop_delivery(connection, actor, name, stopped=stopped)
    terminal.show(_to_json(changed), as_json, lambda _: f"{name}: {changed.word}")


@delivery.command("list")
@terminal.as_json
def delivery_list(as_json: bool) -> None:
    """List the deliveries, with the state of the latest file of each."""
    with terminal.open_connection() as connection:
        found = [_to_json(delivery) for delivery in accounts.list_deliveries(connection)]
        rows = [
            {
                "name": one.name,
                "vendor": one.vendor,
                "preset": one.preset,
                "server": one.host,
                "when": _say_when(one),
                "state": one.word,
                "last sent": terminal.show_instant(one.sent_at),
                "what it is": one.sentence,
            }
            for one in accounts.list_deliveries(connection)
        ]
    terminal.show_table(found, as_json, rows, "there are no deliveries")


@delivery.command("show")
@click.argument("name")
@terminal.as_json
def delivery_show(name: str, as_json: bool) -> None:
    """Show the delivery NAME, and its latest files."""
    with terminal.open_connection() as connection:
        found = accounts.find_delivery(connection, name)
        runs = list(accounts.list_runs(connection, name, SHOWN_RUNS))
    head = "\n".join(f"{key:<10} {value}" for key, value in _describe(found).items())
    shown = {"started_at": "tried", "state": "state", "file_name": "file", "bytes": "bytes"}
    shown |= {"digest": "digest", "message": "why"}
    rows = [terminal.to_texts({word: run[column] for column, word in shown.items()}, *INSTANTS) for run in runs]
    value = {**_to_json(found), "runs": runs}
    terminal.show(value, as_json, lambda _: f"{head}\n\n{terminal.make_table(rows, 'no file was made yet')}")


@delivery.command("approve")
@click.argument("name")
@click.argument("digest")
@terminal.change_options
def delivery_approve(name: str, digest: str, as_json: bool) -> None:
    """Send the file of the delivery NAME that waits, whatever the receiver loses by it.

    DIGEST is its SHA-256, as `roster delivery show` has it. If the roster has changed since, there is another file,
    which waits again.
    """
    with terminal.open_change() as (connection, actor):
        accounts.approve_file(connection, actor, name, digest)
    _send(name, as_json)


@delivery.command("send")
@click.argument("name")
@terminal.as_json
def delivery_send(name: str, as_json: bool) -> None:
    """Make the file of the delivery NAME now and send it, unless it must wait.

    It waits for `roster delivery approve`.
    """
    _send(name, as_json)


@delivery.command("remove")
@click.argument("name")
@terminal.yes_option
@terminal.change_options
def delivery_remove(name: str, yes: bool, as_json: bool) -> None:
    """Remove the delivery NAME.

    What was sent cannot be called back; the access log stays.
    """
    terminal.confirm("No more files are sent.", name, is_confirmed=yes)
    with terminal.open_change() as (connection, actor):
        accounts.remove_delivery(connection, actor, name)
    terminal.show({"name": name}, as_json, lambda _: f"{name} is removed")


def _send(name: str, as_json: bool) -> None:
    ended = _deliver(name)
    if ended.state == FAILED:
        raise CommandError(f"{name}: {ended.sentence}")
    _show_end(ended, as_json)


def _deliver(name: str) -> Delivery:
    settings = terminal.read_settings()
    with open_roster_engine(settings) as engine:
        return Sender(engine, settings).deliver(name)


def _show_end(ended: Delivery, as_json: bool) -> None:
    how = f"\n`roster delivery approve {ended.name} {ended.digest}` sends it" if ended.state == WAITING else ""
    terminal.show(_to_json(ended), as_json, lambda _: f"{ended.name}: {ended.sentence}{how}")


def _say_when(item: Delivery) -> str:
    return "after the nightly sync" if item.hour is None else f"from {item.hour}:00 on"


def _describe(item: Delivery) -> dict[str, str]:
    """Returns a line for each property of a delivery."""
    folder = f", folder {item.folder}" if item.folder else ""
    secret = "with a private key" if item.has_private_key else "with a password"
    return {
        "name": item.name,
        "vendor": f"{item.vendor_name} ({item.vendor})",
        "content": f"{PRESETS[item.preset].words if item.preset in PRESETS else item.preset}, as {item.client_id}",
        "server": f"{item.username}@{item.host}, port {item.port}{folder}, {secret}",
        "host key": item.host_key,
        "sent": f"{_say_when(item)}, {'in place' if item.in_place else 'renamed once it is whole'}",
        "contact": item.contact,
        "state": f"{item.word}: {item.sentence}",
        "digest": item.digest or "-",
        "last sent": terminal.show_instant(item.sent_at, "never"),
    }


def _to_json(item: Delivery) -> dict[str, Any]:
    return asdict(item) | {"state": item.word, "sentence": item.sentence}


def list_rows(package: Package) -> str:
    """Returns the rows of each file in words, and what was left out of it."""
    lines = []
    for name, number in package.rows.items():
        left = package.left_out.get(name, {})
        words = "; ".join(f"{count:,} left out for their {header}" for header, count in left.items())
        lines.append(f"{name}.csv: {number:,} rows" + (f" ({words})" if words else ""))
    lines += [f"{name}.csv: absent" for name in package.absent]
    return "\n".join(lines)

"""The helpers of the commands: settings, the database connection, and output as text or JSON."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click
import sqlalchemy as sa
from rich.console import Console
from rich.table import Table
from rich.text import Text

from roster_service.auth.credentials.signing_keys import require_secret_key
from roster_service.change_log.actors import Actor, find_system_user
from roster_service.db.instants import describe_instant
from roster_service.errors import CommandError
from roster_service.roster.revisions import open_roster_engine
from roster_service.settings import Settings

as_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON value.")
# The file is opened first, so a file that cannot be written changes nothing.
csv_option = click.option(
    "--csv",
    "csv_file",
    type=click.File("w", encoding="utf-8", lazy=False),
    is_flag=False,
    flag_value="-",
    metavar="[FILE]",
    help="Write all as CSV into FILE, which only its owner can read, or print it.",
)

Command = TypeVar("Command", bound=Callable[..., Any])
_REASON = "roster.reason"
# Characters of a line of a table.
WIDEST = 10_000


def remember_reason(context: click.Context, _parameter: click.Parameter, reason: str | None) -> str | None:
    """Keeps the value of an option as the reason of the changes of this command."""
    context.meta[_REASON] = reason
    return reason


# The option of every command that changes something; the change log shows the reason.
reason_option = click.option(
    "--reason", callback=remember_reason, expose_value=False, help="Why; `roster changes` shows it."
)

yes_option = click.option("--yes", is_flag=True, help="Do not ask for a confirmation, for scripts.")
dry_run_option = click.option("--dry-run", is_flag=True, help="Show what would change, and change nothing.")


def change_options(command: Command) -> Command:
    """Adds the options of a command that changes something."""
    return reason_option(as_json(command))


def confirmed_change_options(command: Command) -> Command:
    """Adds those of a command that changes something once a person has confirmed it."""
    return yes_option(dry_run_option(change_options(command)))


def confirm(question: str, name: str, *, is_confirmed: bool) -> None:
    """Asks a person to type `name`, unless `is_confirmed`. `question`: the effect, as a sentence. Raises CommandError
    for any other text."""
    if is_confirmed:
        return
    if click.prompt(f"{question} Type {name} to go on", err=True) != name:
        raise CommandError(f"this is not {name}; nothing was changed")


def read_settings() -> Settings:
    """Reads the settings of this process. Raises SettingError."""
    return Settings.read(os.environ)


def require_key(connection: sa.Connection) -> str:
    """Returns the secret key of the service. Raises SettingError if the command has none, or another one."""
    return require_secret_key(connection, read_settings())


def announce_cluster(cluster: Path) -> None:
    """Prints the folder in which a new database is made; for the commands that may make one."""
    click.echo(f"Making a database in {cluster} ...", err=True)


@contextlib.contextmanager
def open_connection() -> Iterator[sa.Connection]:
    """Yields a connection to the migrated database, as the owner of the tables, that can change nothing. Raises
    DatabaseUnavailableError if the database does not answer or is not migrated."""
    with _begin() as connection:
        connection.execute(sa.text("SET TRANSACTION READ ONLY"))
        yield connection


@contextlib.contextmanager
def open_change(*, dry_run: bool = False) -> Iterator[tuple[sa.Connection, Actor]]:
    """Yields a connection like that of `open_connection` that may change the database, and the actor of the change: the
    system user, with the reason of `reason_option`. It commits if the block ends without an error, and never with
    `dry_run`."""
    with _begin() as connection:
        yield connection, find_actor()
        if dry_run:
            connection.rollback()
        else:
            # It imports the schemas, which a command that only reads spares.
            from roster_service.accounts.transparency import publish

            publish(connection)


def find_actor() -> Actor:
    """Returns the actor of this command: the system user, with the reason of `reason_option`."""
    return find_system_user(click.get_current_context().meta.get(_REASON))


@contextlib.contextmanager
def _begin() -> Iterator[sa.Connection]:
    with open_roster_engine(read_settings()) as engine, engine.begin() as connection:
        yield connection


def show(value: Any, as_json: bool, plain: Callable[[Any], str]) -> None:
    """Prints `value` (a dataclass, a list, a plain value) as JSON, or as the text that `plain` makes of it."""
    click.echo(json.dumps(to_plain(value), ensure_ascii=False) if as_json else plain(value))


def show_table(value: Any, as_json: bool, rows: Iterable[Mapping[str, str]], nothing: str) -> None:
    """Prints `value` as JSON, or the `rows` that stand for it as a table. `nothing`: as for `make_table`."""
    show(value, as_json, lambda _: make_table(list(rows), nothing))


def to_plain(value: Any) -> Any:
    """Returns `value` with dictionaries in place of dataclasses, at every depth."""
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [to_plain(item) for item in value]
    return dataclasses.asdict(value) if dataclasses.is_dataclass(value) and not isinstance(value, type) else value


def show_instant(text: str | None, absent: str = "-") -> str:
    """Returns an instant of ISO 8601 as people read it, in the time zone of the settings. `absent`: stands for none."""
    return absent if text is None else describe_instant(text, read_settings().time_zone)


def to_texts(row: Mapping[str, object], *instants: str) -> dict[str, str]:
    """Returns the cells of a row for `make_table`; None becomes `-`. `instants`: the names of those that `show_instant`
    shows."""
    cells = {name: None if cell is None else str(cell) for name, cell in row.items()}
    return {
        name: "-" if cell is None else show_instant(cell) if name in instants else cell for name, cell in cells.items()
    }


def make_table(rows: Sequence[Mapping[str, str]], nothing: str) -> str:
    """Returns rows as aligned columns, with their keys as headings. `nothing`: the text for an empty list."""
    if not rows:
        return nothing
    table = Table(*rows[0], box=None, pad_edge=False)
    for row in rows:
        table.add_row(*(Text(escape(cell)) for cell in row.values()))
    # A program reads whole cells from a pipe.
    console = Console(width=None if sys.stdout.isatty() else WIDEST, highlight=False)
    with console.capture() as capture:
        console.print(table)
    return "\n".join(line.rstrip() for line in capture.get().splitlines())


def escape(cell: str) -> str:
    """Returns a text without control characters: it may quote an export, and must not command the terminal."""
    return "".join(letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in cell)

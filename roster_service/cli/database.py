"""`roster db` and `roster settings`: tables, labels, restores, accounts for another database; settings."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click
import sqlalchemy as sa

from roster_service.accounts.account_export import export_accounts
from roster_service.cli import terminal
from roster_service.db.embedded_server import open_database
from roster_service.db.engine import make_engine, require_reachable
from roster_service.db.instants import format_instant
from roster_service.errors import CommandError
from roster_service.explore.listed_settings import ListedSetting, list_settings
from roster_service.feeds.group_check import find_wrong_groups
from roster_service.feeds.private_files import open_private
from roster_service.feeds.roster_state import advance_restored_state
from roster_service.roster.label_check import find_wrong_labels
from roster_service.roster.upgrades import upgrade


@click.group()
def db() -> None:
    """The database."""


@db.command("upgrade")
@terminal.as_json
def db_upgrade(as_json: bool) -> None:
    """Upgrade the database to the tables of this version.

    Makes the embedded database if it does not exist yet.
    """
    with open_database(terminal.read_settings(), terminal.announce_cluster) as url:
        engine = make_engine(url)
        require_reachable(engine)
        before, after = upgrade(engine, terminal.read_settings().role_password)
        engine.dispose()
    state = "already at" if before == after else "now at"
    terminal.show({"before": before, "after": after}, as_json, lambda _: f"the database is {state} revision {after}")


AFTER_RESTORE = """the roster is at revision {revision}; earlier tokens, tags, revisions and deltas no longer count
Do again what was done after the backup was made:
- grants, flags, withheld fields, clients, API keys and passwords, above all those that were revoked or rotated
  (`roster vendor list`), and deliveries that were stopped (`roster delivery list`)
- operators: a backup from before lets those in again who were disabled, removed or reset (`roster operator list`)
- `roster person erase` and `roster person hide`, which a backup from before undoes
- `roster agreement set`, and `roster agreement require`: a backup from before ends nothing on a last day
- `roster keys rotate`, if a signing key was replaced because others knew it
- `roster sync run`, which loads the exports"""


@db.command("restored")
@terminal.change_options
def db_restored(as_json: bool) -> None:
    """Register that the database was restored from a backup, so that clients read the roster anew."""
    with terminal.open_change() as (connection, actor):
        state = advance_restored_state(connection, actor)
    restored = {"revision": state.revision, "as_of": format_instant(state.as_of)}
    terminal.show(restored, as_json, lambda _: AFTER_RESTORE.format(revision=state.revision))


@contextmanager
def _open_snapshot() -> Iterator[sa.Connection]:
    """Yields a connection whose statements read one state of the database: a load may commit between them."""
    with terminal.open_connection() as connection:
        connection.execute(sa.text("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ"))
        yield connection


@db.command("check")
@terminal.as_json
def db_check(as_json: bool) -> None:
    """Make visibility labels and what rules open anew, and compare.

    A wrong one ends with exit code 1.
    """
    with _open_snapshot() as connection:
        wrong, groups = find_wrong_labels(connection), find_wrong_groups(connection)
    if wrong:
        listed = "; ".join(f"{len(ids):,} of {table}, such as {ids[0]}" for table, ids in wrong.items())
        raise CommandError(f"the visibility labels of these records are wrong: {listed}")
    if groups:
        listed = "; ".join(f"{len(ids):,} by the grant {grant}, such as {ids[0][1]}" for grant, ids in groups.items())
        raise CommandError(f"rules open, or hide, these records by mistake: {listed}")
    terminal.show({"wrong": wrong, "groups": groups}, as_json, lambda _: "the visibility of every record is right")


@db.command("export-accounts")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@terminal.as_json
def db_export_accounts(file: Path, as_json: bool) -> None:
    """Write accounts, feeds and logs to FILE, as SQL.

    Vendors, clients, keys, operators, feeds, the access log and the change log. FILE has mode 0600, because it holds
    hashes of secrets.
    """
    with _open_snapshot() as connection, open_private(file, replaces=False) as out:
        out.writelines(line.encode() for line in export_accounts(connection))
    terminal.show({"file": str(file)}, as_json, lambda _: AFTER_EXPORT.format(file=file))


AFTER_EXPORT = """the accounts are in {file}; load them into the new database, which `roster db upgrade` has made:
  psql --set=ON_ERROR_STOP=1 --quiet --file={file} "$ROSTER_DATABASE_URL"
then load the exports (`roster sync run`); keep ROSTER_SECRET_KEY, or the file `secret_key` of the data folder"""


@click.command("settings")
@terminal.as_json
def settings_list(as_json: bool) -> None:
    """List every setting, its value and where it comes from. Secrets are not shown."""
    listed = list_settings(terminal.read_settings())
    terminal.show_table(listed, as_json, map(_make_row, listed), "")


def _make_row(item: ListedSetting) -> dict[str, str]:
    return {"variable": item.variable, "value": "-" if item.value is None else item.value, "source": item.source}

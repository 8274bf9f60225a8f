"""The demo district and the first operator, which `roster run` makes on an empty database; `roster demo remove`."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import click
import sqlalchemy as sa

from roster_service.accounts import clients, operators, vendor_rights, vendors
from roster_service.accounts.operator_sessions import LINK_PATH
from roster_service.auth.scopes import Scope, ScopeName
from roster_service.change_log.actors import Actor, OperatorRole, find_system_user, read_email
from roster_service.cli.terminal import change_options, open_change, read_settings, show
from roster_service.db import tables
from roster_service.db.tables import feeds, orgs, sync_runs
from roster_service.errors import CommandError
from roster_service.feeds.feed_states import REMOVAL
from roster_service.feeds.feeds import remove_feed
from roster_service.feeds.private_files import open_private
from roster_service.schemas.flags import PermissionFlag
from roster_service.schemas.versions import VERSIONS
from roster_service.settings import Settings, override

STUDENTS = 1000
FEED = "demo"
EMAIL = "demo@example.org"
CREDENTIALS_FILE = "demo.json"
# A made-up district; `make demo-district` writes it.
EXPORT = Path(__file__).with_name("roster-demo.zip")


@dataclasses.dataclass(frozen=True)
class DemoAccount:
    """The credentials of the demo vendor for both interfaces, and `districtlea`, the identifier of its district."""

    client_id: str
    client_secret: str
    scopes: tuple[str, ...]
    email: str
    password: str | None
    api_key: str
    districtlea: str


def prepare_demo(engine: sa.Engine, url: str, settings: Settings) -> DemoAccount | None:
    """Loads the demo district, and adds a vendor that sees it, and a client, if the database has no feeds.

    Returns the credentials, which it stores in the data folder so that a later start can show them again; None if the
    data folder has none that can be read. Raises CommandError if the loader fails.
    """
    with engine.connect() as connection:
        is_empty = not connection.execute(sa.select(sa.exists(sa.select(feeds.c.id)))).scalar_one()
    path = settings.home / CREDENTIALS_FILE
    if is_empty:
        click.echo(f"Loading a made-up district of {STUDENTS:,} students ...", err=True)
        load_demo(url)
        with engine.begin() as connection:
            account = add_demo_account(connection, find_system_user("the demo"))
        settings.home.mkdir(parents=True, exist_ok=True)
        with open_private(path) as out:
            out.write(json.dumps(dataclasses.asdict(account)).encode())
    try:
        return DemoAccount(**json.loads(path.read_text())) if path.exists() else None
    except (TypeError, ValueError):
        return None


@click.group()
def demo() -> None:
    """The made-up district of the first `roster run`."""


@demo.command("remove")
@change_options
def demo_remove(as_json: bool) -> None:
    """Delete the demo at once: its feed with all records, and its vendor.

    The vendor's client and API key end with it.
    """
    path = read_settings().home / CREDENTIALS_FILE
    if not path.exists():
        raise CommandError(f"there is no demo: {path} does not exist")
    with open_change() as (connection, actor):
        _require_made_up(connection)
        # An operator may have removed one of them.
        has_feed = connection.scalar(sa.select(sa.exists().where(feeds.c.name == FEED)))
        counts = remove_feed(connection, actor, FEED, now=True)["counts"] if has_feed else {}
        if connection.scalar(sa.select(sa.exists().where(tables.vendors.c.email == EMAIL))):
            vendors.remove_vendor(connection, actor, EMAIL)
    path.unlink()
    removed = {"feed": FEED, "vendor": EMAIL, "records": sum(count["purged"] for count in counts.values())}
    show(removed, as_json, lambda it: f"removed the demo: {it['records']:,} records, and the vendor {EMAIL}")


def _require_made_up(connection: sa.Connection) -> None:
    """Raises CommandError if the feed of the demo was also loaded from another export."""
    others = sa.and_(
        ~sync_runs.c.source.endswith(EXPORT.name), sync_runs.c.source != REMOVAL, sync_runs.c.stamp.is_not(None)
    )
    if connection.scalar(sa.select(sa.exists().where(feeds.c.name == FEED, sync_runs.c.feed_id == feeds.c.id, others))):
        raise CommandError(f"the feed {FEED} has records of another export; `roster feed remove {FEED}` removes it")


def load_demo(url: str) -> None:
    """Loads the district with the script that an operator uses. Raises CommandError if it fails."""
    done = subprocess.run(  # noqa: S603  (our own script)
        [sys.executable, "-m", "sync_scripts.load_oneroster", "--now", "--feed", FEED, str(EXPORT)],
        env=override(os.environ, {"ROSTER_DATABASE_URL": url}),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise CommandError(f"the demo district could not be loaded:\n{done.stderr or done.stdout}")


def add_demo_account(connection: sa.Connection, actor: Actor) -> DemoAccount:
    """Adds a vendor with grants of all districts, all permission flags, and a client with all scopes."""
    login = vendors.add_vendor(connection, actor, EMAIL, "Demo vendor")
    districts = connection.execute(sa.select(orgs).where(orgs.c.type == "district").order_by(orgs.c.sourced_id)).all()
    for district in districts:
        vendor_rights.grant(connection, actor, EMAIL, district.sourced_id, (), tuple(PermissionFlag))
    scopes = [Scope(version.prefix, name) for version in VERSIONS for name in ScopeName]
    made = clients.add_client(connection, actor, EMAIL, "demo", scopes)
    return DemoAccount(
        **dataclasses.asdict(made),
        email=EMAIL,
        password=login.password,
        api_key=login.api_key,
        districtlea=districts[0].identifier,
    )


@dataclass(frozen=True)
class FirstOperator:
    """The owner who is added first. `name`: for people."""

    email: str
    name: str


@dataclass(frozen=True)
class FirstInvitation:
    """The e-mail of the first operator, and the address at which this operator sets a password."""

    email: str
    link: str


def read_first(email: str | None, name: str | None, *, may_ask: bool) -> FirstOperator | None:
    """Returns the first operator by the options of the command, else as a person at a terminal types it; None if there
    is neither. Raises CommandError if the e-mail is not an address."""
    if email is not None:
        address = read_email(email)
        return FirstOperator(address, name or address)
    if not (may_ask and sys.stdin.isatty()):
        return None
    typed = click.prompt("E-mail address of the first operator of the console", value_proc=_read_typed)
    return FirstOperator(typed, name or click.prompt("Name", default=typed))


def _read_typed(typed: str) -> str:
    try:
        return read_email(typed)
    except CommandError as error:
        raise click.UsageError(str(error)) from None


def invite_first(
    engine: sa.Engine, settings: Settings, email: str | None, name: str | None, *, may_ask: bool
) -> FirstInvitation | None:
    """Adds an owner if there are no operators. `email`, `name`, `may_ask`: as for `read_first`. Returns the invitation
    of the first operator; None if nobody is named, once an operator has a password, or if other operators are there."""
    with engine.connect() as connection:
        found = operators.list_operators(connection)
    # No transaction waits for the person who types.
    first = None if found else read_first(email, name, may_ask=may_ask)
    actor, key = find_system_user("the first operator"), settings.read_secret_key()
    with engine.begin() as connection:
        if first is not None:
            token = operators.add_operator(connection, actor, first.email, first.name, OperatorRole.OWNER, key)
            invited = first.email
        elif [(operator.role, operator.has_password) for operator in found] == [(OperatorRole.OWNER, False)]:
            invited = found[0].email
            token = operators.reset_password(connection, actor, invited, key)
        else:
            return None
    return FirstInvitation(invited, f"{settings.console_url}{LINK_PATH}?link={token}")

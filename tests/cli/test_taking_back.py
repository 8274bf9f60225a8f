"""Commands that take access or data back: what they ask, show and leave."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from click.testing import CliRunner, Result

from roster_service.cli import main
from roster_service.db.tables import ROSTER_TABLES, orgs, vendor_grants, visible_orgs
from sync_scripts.engine.load import load
from tests.cli.conftest import Roster, make_environment
from tests.postgres.loaded import load_first
from tests.sync.conftest import EXPORTS, SHELBYVILLE, SPRINGFIELD

Answer = Callable[..., Any]
Typing = Callable[..., Result]
VENDOR = "reading@vendor.example"
OPERATOR = "bob@district.example"


@pytest.fixture(autouse=True)
def scripts(scripts_in_process: None) -> None:
    """Without processes of their own; `test_feed_removal` has them."""


@pytest.fixture
def typing(database_url: str, tmp_path: Path) -> Typing:
    """Runs `roster ARGUMENTS` while a person types `typed`."""
    environment = make_environment(database_url=database_url, home=str(tmp_path))

    def run(*arguments: str, typed: str) -> Result:
        return CliRunner().invoke(main, arguments, env=environment, input=typed)

    return run


@pytest.fixture
def client(answer: Answer, engine: sa.Engine) -> str:
    """The client of a vendor with a grant of a district; its id."""
    load_first(engine, "springfield", EXPORTS / SPRINGFIELD)
    answer("vendor", "add", VENDOR, "--name", "Reading")
    answer("vendor", "grant", VENDOR, "--district", "17-0042")
    made = answer("client", "add", "--vendor", VENDOR, "--name", "app", "--scope", "v1p2/roster.readonly")
    return str(made["client_id"])


COMMANDS = [
    pytest.param(("vendor", "remove"), VENDOR, id="vendor remove"),
    pytest.param(("client", "remove"), "", id="client remove"),
    pytest.param(("client", "enable"), "", id="client enable"),
    pytest.param(("client", "set-scopes", "--scope", "roster-core.readonly"), "", id="client set-scopes"),
    pytest.param(("vendor", "set-withheld", "--none"), VENDOR, id="vendor set-withheld"),
    pytest.param(("district", "remove"), "17-0042", id="district remove"),
    pytest.param(("operator", "remove"), OPERATOR, id="operator remove"),
]


@pytest.mark.shows("Operators", "Nothing is taken back without the typed name or in a dry run.")
@pytest.mark.parametrize(("command", "name"), COMMANDS)
def test_nothing_is_taken_back_without_the_typed_name_or_in_a_dry_run(
    answer: Answer, typing: Typing, client: str, command: tuple[str, ...], name: str
) -> None:
    name = name or client
    answer("client", "disable", client)
    for email in ("ann@district.example", OPERATOR):
        answer("operator", "add", email, "--name", "x", "--role", "owner")

    def look() -> list[Any]:
        lists = [answer(kind, "list") for kind in ("vendor", "client", "district", "operator")]
        return [*lists, answer("changes")]

    before = look()
    for typed in ("", "y\n", "another name\n"):
        assert typing(*command, name, typed=typed).exit_code == 1
    shown = answer(*command, name, "--dry-run")
    assert shown["dry_run"] is True
    assert "would" in typing(*command, name, "--dry-run", typed="").stdout
    assert look() == before
    assert typing(*command, name, typed=f"{name}\n").exit_code == 0
    assert look() != before


def test_a_removed_vendor_is_gone_with_what_it_owned(answer: Answer, roster: Roster, client: str) -> None:
    removed = answer("vendor", "remove", VENDOR, "--yes")
    [key] = removed.pop("keys")
    assert key.startswith("key-")
    nothing = {"deliveries": [], "deletion_requests": [], "dry_run": False}
    assert removed == {"email": VENDOR, "grants": 1, "clients": [client], **nothing}
    assert (answer("vendor", "list"), answer("client", "list")) == ([], [])
    assert "there is no vendor" in roster("vendor", "remove", VENDOR, "--yes").stderr


def test_a_client_is_enabled_gets_other_scopes_and_is_removed(answer: Answer, roster: Roster, client: str) -> None:
    answer("client", "disable", client)
    assert answer("client", "enable", client, "--yes")["enabled"] is True
    changed = answer("client", "set-scopes", client, "--scope", "v1p1/roster-core.readonly", "--yes")
    assert changed["scopes"] == ["v1p1/roster-core.readonly"]
    [listed] = answer("client", "list")
    assert changed == {name: listed[name] for name in changed if name != "dry_run"} | {"dry_run": False}
    answer("client", "remove", client, "--yes")
    assert answer("client", "list") == []
    for command in (("enable",), ("remove",), ("set-scopes", "--scope", "roster.readonly")):
        assert "there is no client" in roster("client", *command, client, "--yes").stderr


def count_records(engine: sa.Engine) -> dict[str, int]:
    """The number of records of each table that has some."""
    with engine.connect() as connection:
        counts = {it.name: connection.scalar(sa.select(sa.func.count()).select_from(it)) or 0 for it in ROSTER_TABLES}
    return {name: count for name, count in counts.items() if count}


@pytest.mark.parametrize("name", ["17-0042", "spr-district"], ids=["identifier", "sourcedId"])
def test_a_removed_district_is_gone_with_its_feed_and_its_grants(
    answer: Answer, engine: sa.Engine, client: str, name: str
) -> None:
    before = count_records(engine)
    load(engine, "shelbyville", EXPORTS / SHELBYVILLE)
    both = count_records(engine)
    answer("vendor", "grant", VENDOR, "--district", "shv-district")
    ended = answer("district", "remove", name, "--yes")
    assert (ended["feeds"], ended["vendors"], ended["records"]) == (["springfield"], [VENDOR], sum(before.values()))
    assert count_records(engine) == {table: both[table] - before.get(table, 0) for table in both}
    # A removed feed without records is history.
    assert [(it["name"], it["state"]) for it in answer("feed", "list")] == [("shelbyville", "added")]
    with engine.connect() as connection:
        assert list(connection.scalars(sa.select(vendor_grants.c.district_id))) == ["shv-district"]
        seen = sa.select(visible_orgs.c.org_id).where(visible_orgs.c.org_id.startswith("spr-"))
        assert connection.scalars(seen).all() == []


def test_a_district_that_two_feeds_bring_is_removed_with_both(answer: Answer, engine: sa.Engine, client: str) -> None:
    load(engine, "shelbyville", EXPORTS / SHELBYVILLE)
    with engine.begin() as connection:
        same = sa.update(orgs).where(orgs.c.sourced_id == "shv-district").values(identifier="17-0042")
        connection.execute(same)
    ended = answer("district", "remove", "spr-district", "--yes")
    assert (ended["ids"], ended["feeds"]) == (["shv-district", "spr-district"], ["shelbyville", "springfield"])
    assert count_records(engine) == {}


def test_a_district_of_a_feed_with_another_one_is_refused(
    roster: Roster, answer: Answer, engine: sa.Engine, client: str
) -> None:
    """Its next export would bring the district back."""
    with engine.begin() as connection:
        own = sa.select(orgs.c.feed_id).where(orgs.c.sourced_id == "spr-district").scalar_subquery()
        other = {"sourced_id": "other", "name": "Other District", "type": "district", "district_id": "other"}
        base = {"feed_id": own, "status": "active", "date_last_modified": "2026-01-01"}
        connection.execute(orgs.insert().values(base | other))
    before = (count_records(engine), answer("vendor", "list"), answer("changes"))
    refused = roster("district", "remove", "17-0042", "--yes")
    assert (refused.exit_code, "also brings Other District" in refused.stderr) == (1, True)
    assert (count_records(engine), answer("vendor", "list"), answer("changes")) == before


@pytest.mark.parametrize("name", ["nowhere", "spr-high"])
def test_an_unknown_district_is_refused(roster: Roster, client: str, name: str) -> None:
    assert "there is no district" in roster("district", "remove", name, "--yes").stderr

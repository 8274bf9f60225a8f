"""`roster agreement`: what it saves, shows, asks and refuses, and what the change log has."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from roster_service.accounts import clients, vendor_rights, vendors
from roster_service.accounts.kept_people import list_kept
from roster_service.auth.scopes import Scope, ScopeName
from tests.actors import TESTER
from tests.cli.conftest import Roster
from tests.postgres.loaded import load_first
from tests.sync.conftest import EXPORTS, SPRINGFIELD

Answer = Callable[..., Any]
EMAIL = "app@vendor.example"
TODAY = datetime.now(UTC).date()
FIRST, LAST = str(TODAY - timedelta(days=10)), str(TODAY + timedelta(days=100))
TEXTS = ("--title", "Paper", "--purpose", "Reading", "--contact", "a@vendor.example", "--deletion", "in 60 days")
PLACES = ("--school", "spr-high")
ELEMENTS = ("--element", "names", "--element", "classes")
DAYS = ("--first-day", FIRST, "--last-day", LAST, "--zone", "America/Chicago")
SAVE = ("agreement", "set", EMAIL, *TEXTS, *PLACES, *ELEMENTS, *DAYS)


@pytest.fixture(autouse=True)
def vendor(engine: sa.Engine) -> None:
    """A district, and a vendor that may see it."""
    load_first(engine, "springfield", EXPORTS / SPRINGFIELD)
    with engine.begin() as connection:
        vendors.add_vendor(connection, TESTER, EMAIL, "App")
        vendor_rights.grant(connection, TESTER, EMAIL, "spr-district", ())
        clients.add_client(connection, TESTER, EMAIL, "app", [Scope("v1p2", ScopeName.GUARDIANS)])


def test_an_agreement_is_saved_shown_listed_and_taken_away(answer: Answer, roster: Roster) -> None:
    assert answer("agreement", "show", EMAIL) is None
    assert answer("agreement", "list") == [{"vendor": EMAIL}]
    answer("client", "add", "--vendor", EMAIL, "--name", "core", "--scope", "v1p2/roster.readonly")
    tried = answer(*SAVE, "--dry-run")
    assert (tried["dry_run"], tried["ends"][-1]) == (True, "pronouns, by core")
    assert answer("agreement", "show", EMAIL) is None
    saved = answer(*SAVE, "--yes", "--reason", "signed")
    assert saved["agreement"]["last_day"] == LAST
    assert saved["beyond"] == [
        "the grant of Springfield Unified School District (spr-district) opens only the schools that are agreed",
        "the client app does not get v1p2/guardians.readonly",
    ]
    shown = answer("agreement", "show", EMAIL)
    assert {**shown, "ends": tried["ends"], "dry_run": False} == saved
    text = roster("agreement", "show", EMAIL).stdout
    assert f"{FIRST} to {LAST}, as days of America/Chicago" in text
    assert "names, usernames and grades, classes" in text
    assert "Springfield High School (spr-high)" in text
    assert "Paper" in roster("agreement", "list").stdout
    assert answer("agreement", "list") == [shown]
    log = answer("changes")[-1]
    assert (log["verb"], log["kind"], log["before"], log["reason"]) == ("agreement set", "agreement", None, "signed")
    assert log["after"]["schools"] == ["spr-high"]
    granted = roster("vendor", "grant", EMAIL, "--district", "spr-district").stdout
    assert "(whole), as far as its agreement allows" in granted
    assert "nothing now" not in granted
    answer("vendor", "disable", EMAIL)
    closed = roster("vendor", "grant", EMAIL, "--district", "spr-district").stdout
    assert "allows; but nothing now: the vendor is disabled" in closed
    answer("vendor", "enable", EMAIL, "--yes")
    answer("agreement", "remove", EMAIL, "--yes")
    assert answer("agreement", "show", EMAIL) is None


def test_a_required_agreement_says_whom_it_stops(answer: Answer, roster: Roster) -> None:
    assert answer("agreement", "require", "yes", "--dry-run") == {"required": True, "without": [EMAIL], "dry_run": True}
    assert "gets what is granted to it" in roster("agreement", "list").stdout
    answer("agreement", "require", "yes", "--yes")
    assert "gets nothing" in roster("agreement", "list").stdout
    assert answer("vendor", "show", EMAIL)["received"] == {}
    assert answer("vendor", "show", EMAIL)["not_agreed"] == "is required, and there is none"


@pytest.mark.parametrize(
    ("has_one", "why"), [(False, "is required, and there is none"), (True, "ended on ")], ids=["none", "ended"]
)
def test_a_student_is_not_shown_as_a_vendor_whose_agreement_does_not_hold(
    answer: Answer, engine: sa.Engine, has_one: bool, why: str
) -> None:
    """The interfaces refuse the vendor, so the view of an operator shows nothing by any way, and says why."""
    with engine.begin() as connection:
        vendors.replace_key(connection, TESTER, EMAIL, timedelta(0))
    assert answer("show", "spr-student-1", "--as", EMAIL)[-1]["body"]["sourcedId"] == "spr-student-1"
    if has_one:
        answer(*SAVE, "--yes")
        with engine.begin() as connection:
            connection.execute(sa.text("UPDATE agreements SET starts_at = 'epoch', ends_at = now() - interval '1 day'"))
    answer("agreement", "require", "yes", "--yes")
    views = answer("show", "spr-student-1", "--as", EMAIL)
    assert views[-1]["version"] == "v1"
    assert [view["body"] for view in views] == [None] * len(views)
    assert [view["refusal"].startswith(f"the agreement of the vendor {why}") for view in views] == [True] * len(views)


def test_an_export_that_the_end_of_an_agreement_stops_notes_the_end(
    answer: Answer, roster: Roster, engine: sa.Engine, tmp_path: Path
) -> None:
    """As a request does: the clock may go back."""
    with engine.begin() as connection:
        core = clients.add_client(connection, TESTER, EMAIL, "core", [Scope("v1p2", ScopeName.CORE)])
    answer(*SAVE, "--yes")
    with engine.begin() as connection:
        connection.execute(sa.text("UPDATE agreements SET starts_at = 'epoch', ends_at = now() - interval '1 day'"))
    out = ("--client", core.client_id, "--out", str(tmp_path / "users"))
    refused = roster("export", "users", "--as", EMAIL, *out)
    assert (refused.exit_code, "ended on " in refused.stderr) == (1, True)
    with engine.connect() as connection:
        assert connection.scalar(sa.text("SELECT ended_at FROM agreements")) is not None


def test_another_account_of_a_company_is_copied_without_its_rights_and_secrets(
    answer: Answer, engine: sa.Engine
) -> None:
    answer(*SAVE, "--yes")
    answer("vendor", "set-withheld", EMAIL, "email", "--yes")
    answer("vendor", "grant", EMAIL, "--flag", "contacts")
    answer("client", "add", "--vendor", EMAIL, "--name", "off", "--scope", "roster.readonly")
    answer("client", "disable", answer("client", "list")[-1]["client_id"])
    answer("person", "hide", "spr-student-1", "--from", EMAIL, "--yes")
    copied = answer("vendor", "copy", EMAIL, "second@vendor.example")
    # A person who is kept from the company is kept from its other account, too.
    with engine.connect() as connection:
        assert [it.vendor for it in list_kept(connection)] == [EMAIL, "second@vendor.example"]
    noted = answer("changes", "--vendor", "second@vendor.example")
    assert [it["verb"] for it in noted].count("person hide") == 1
    assert (copied["name"], copied["flags"], copied["own_withheld"]) == ("App", ["contacts"], ["email"])
    assert (copied["grants"], copied["agreed_flags"]) == ([], None)
    assert answer("agreement", "show", "second@vendor.example") is None
    own = [it for it in answer("client", "list") if it["vendor"] == "second@vendor.example"]
    assert [(it["client_id"], it["scopes"]) for it in own] == [(copied["clients"][0], ["v1p2/guardians.readonly"])]
    with engine.connect() as connection:
        ended = sa.text("SELECT bool_and(secret_expires_at <= now()) FROM oauth_clients WHERE client_id = :id")
        assert connection.scalar(ended, {"id": copied["clients"][0]}) is True
        keys = "SELECT count(*) FROM api_keys JOIN vendors ON vendors.id = vendor_id WHERE email LIKE 'second@%'"
        assert connection.scalar(sa.text(keys)) == 0


def test_without_a_confirmation_nothing_is_saved(roster: Roster, answer: Answer) -> None:
    for command in (SAVE, ("agreement", "require", "yes")):
        assert roster(*command).exit_code == 1
    assert answer("agreement", "list") == [{"vendor": EMAIL}]
    assert answer("vendor", "show", EMAIL)["not_agreed"] is None
    refused = roster("agreement", "remove", EMAIL, "--yes")
    assert (refused.exit_code, "has no agreement" in refused.stderr) == (1, True)

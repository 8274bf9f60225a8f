"""`roster vendor` and `roster client`: what they print, what they refuse, and with which exit code."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from click.testing import CliRunner

from roster_service.auth.scopes import ScopeName
from roster_service.cli import main
from roster_service.db.instants import describe_instant
from roster_service.db.tables import orgs
from tests.cli.conftest import Roster, make_environment

Answer = Callable[..., Any]

EMAIL = "reading@example.com"


@pytest.fixture(autouse=True)
def districts(engine: sa.Engine) -> None:
    """Two districts, with one school each."""
    base = {"feed_id": 1, "status": "active", "date_last_modified": "2026-01-01"}
    rows = [
        {"sourced_id": "d1", "type": "district", "identifier": "17-1", "district_id": "d1"},
        {"sourced_id": "s1", "type": "school", "identifier": "17-1-1", "district_id": "d1"},
        {"sourced_id": "d2", "type": "district", "identifier": "17-2", "district_id": "d2"},
        {"sourced_id": "s2", "type": "school", "identifier": "17-2-1", "district_id": "d2"},
    ]
    with engine.begin() as connection:
        connection.execute(sa.insert(orgs), [base | {"name": row["sourced_id"]} | row for row in rows])


def test_a_new_vendor_sees_nothing(answer: Answer) -> None:
    added = answer("vendor", "add", " Reading@Example.com", "--name", "Reading App")
    assert (added["email"], added["enabled"], added["grants"]) == (EMAIL, True, [])
    secrets = {name: added.pop(name) for name in ("api_key", "password")}
    assert all(secrets.values())
    assert answer("vendor", "list") == [added]


@pytest.mark.parametrize(
    ("arguments", "grants"),
    [
        pytest.param(["--district", "d1"], [("d1", None)], id="a district by sourcedId"),
        pytest.param(["--district", "17-1"], [("d1", None)], id="a district by identifier"),
        pytest.param(["--district", "d1", "--school", "s1"], [("d1", "s1")], id="one school of it"),
    ],
)
def test_a_grant_names_a_district_or_schools_of_it(
    answer: Answer, arguments: list[str], grants: list[tuple[str, str | None]]
) -> None:
    before = answer("vendor", "add", EMAIL, "--name", "Reading App")
    after = answer("vendor", "grant", EMAIL, *arguments)
    assert [(grant["district_id"], grant["school_id"]) for grant in after["grants"]] == grants
    assert after["grant_version"] > before["grant_version"]


def test_a_revoked_district_is_gone_with_its_schools(answer: Answer) -> None:
    answer("vendor", "add", EMAIL, "--name", "Reading App")
    answer("vendor", "grant", EMAIL, "--district", "d1", "--school", "s1")
    answer("vendor", "grant", EMAIL, "--district", "d2")
    after = answer("vendor", "revoke", EMAIL, "--district", "17-1")
    assert [grant["district_id"] for grant in after["grants"]] == ["d2"]


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        pytest.param(["vendor", "add", "reading", "--name", "x"], "no e-mail address", id="an address that is none"),
        pytest.param(["vendor", "add", "@example.com", "--name", "x"], "no e-mail address", id="half an address"),
        pytest.param(["vendor", "add", EMAIL, "--name", "x"], "already", id="an address that is taken"),
        pytest.param(["vendor", "grant", "no@example.com", "--district", "d1"], "no vendor", id="an unknown vendor"),
        pytest.param(["vendor", "grant", EMAIL, "--district", "nowhere"], "no district", id="an unknown district"),
        pytest.param(["vendor", "grant", EMAIL, "--district", "s1"], "no district", id="a school as a district"),
        pytest.param(
            ["vendor", "grant", EMAIL, "--district", "d1", "--school", "s2"],
            "no school with the sourcedId, identifier or name 's2' in district d1",
            id="a school of another district",
        ),
        pytest.param(["vendor", "revoke", EMAIL, "--district", "d1"], "no grant", id="a grant that is not there"),
        pytest.param(["client", "disable", "client-0"], "no client client-0", id="an unknown client"),
        pytest.param(["client", "rotate-secret", "client-0"], "no client client-0", id="a secret of nobody"),
        pytest.param(
            ["client", "add", "--vendor", "no@example.com", "--name", "x", "--scope", "roster.readonly"],
            "no vendor",
            id="a client of nobody",
        ),
    ],
)
def test_a_refusal_is_one_sentence_and_exit_code_1(
    answer: Answer, roster: Roster, arguments: list[str], reason: str
) -> None:
    answer("vendor", "add", EMAIL, "--name", "Reading App")
    done = roster(*arguments)
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr.startswith("roster: ")
    assert reason in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_client_has_the_scopes_it_was_given_in_the_first_ones_version_first(answer: Answer) -> None:
    answer("vendor", "add", EMAIL, "--name", "Reading App")
    scopes = ["v1p2/roster.readonly", "v1p1/roster-core.readonly", "guardians.readonly"]
    made = answer(
        "client", "add", "--vendor", EMAIL, "--name", "x", *(word for scope in scopes for word in ("--scope", scope))
    )
    assert set(made) == {"client_id", "client_secret", "scopes"}
    assert made["scopes"] == [
        "v1p2/roster.readonly",
        "v1p2/guardians.readonly",
        "v1p1/roster-core.readonly",
        "v1p1/guardians.readonly",
    ]
    [listed] = answer("client", "list")
    assert listed["client_id"] == made["client_id"]
    assert made["client_secret"] not in str(listed)


def test_a_client_may_sign_requests_where_it_was_added_for_it(answer: Answer, roster: Roster) -> None:
    answer("vendor", "add", EMAIL, "--name", "Reading App")
    adding = ("client", "add", "--vendor", EMAIL, "--name", "x", "--scope", "v1p1/roster.readonly")
    answer(*adding)
    assert "ROSTER_OAUTH1" in roster(*adding, "--oauth1").stderr
    assert [client["oauth1"] for client in answer("client", "list")].count(True) == 1
    [client] = [client for client in answer("client", "list") if client["oauth1"]]
    first, second = (answer("client", "rotate-secret", client["client_id"]) for _ in range(2))
    assert first["client_secret"] != second["client_secret"]
    assert [client["oauth1"] for client in answer("client", "list")].count(True) == 1


def test_a_preset_stands_for_the_scopes_of_a_purpose(answer: Answer, roster: Roster) -> None:
    answer("vendor", "add", EMAIL, "--name", "x")
    adding = ("client", "add", "--vendor", EMAIL, "--name", "x")
    assert answer(*adding, "--preset", "students-teachers")["scopes"] == ["v1p2/roster.readonly"]
    made = answer(*adding, "--preset", "demographics", "--version", "v1p1")
    assert made["scopes"] == ["v1p1/roster.readonly", "v1p1/roster-demographics.readonly"]
    both = answer(*adding, "--preset", "everything", "--version", "both")["scopes"]
    # The first scope says which version a token request without scopes gets.
    assert both == [f"{version}/{name}" for version in ("v1p2", "v1p1") for name in ScopeName]
    refused = roster(*adding)
    assert (refused.exit_code, "give a --scope or a --preset" in refused.stderr) == (2, True)


def test_an_unknown_scope_is_wrong_usage(answer: Answer, roster: Roster) -> None:
    answer("vendor", "add", EMAIL, "--name", "Reading App")
    done = roster("client", "add", "--vendor", EMAIL, "--name", "x", "--scope", "v1p1/gradebook.readonly")
    assert done.exit_code == 2
    assert "roster-core.readonly" in done.stderr


def test_a_rotated_secret_is_another_one_of_the_same_client(answer: Answer) -> None:
    answer("vendor", "add", EMAIL, "--name", "Reading App")
    made = answer("client", "add", "--vendor", EMAIL, "--name", "x", "--scope", "roster.readonly")
    rotated = answer("client", "rotate-secret", made["client_id"])
    assert rotated["client_id"] == made["client_id"]
    assert rotated["client_secret"] != made["client_secret"]


@pytest.mark.parametrize(
    ("options", "reported"),
    [
        pytest.param((), "The old secret stays valid for 24 hours.", id="default"),
        pytest.param(("--grace-hours", "3"), "The old secret stays valid for 3 hours.", id="option"),
        pytest.param(("--grace-hours", "0"), "The old secret and its tokens have ended.", id="none"),
    ],
)
def test_a_replaced_secret_has_a_grace(
    answer: Answer,
    database_url: str,
    tmp_path: Path,
    options: tuple[str, ...],
    reported: str,
) -> None:
    answer("vendor", "add", EMAIL, "--name", "Reading App")
    made = answer("client", "add", "--vendor", EMAIL, "--name", "x", "--scope", "roster.readonly")
    environment = make_environment(database_url=database_url, home=str(tmp_path))
    done = CliRunner().invoke(main, ["client", "rotate-secret", made["client_id"], *options], env=environment)
    assert done.stdout.splitlines()[-1] == reported


def test_the_old_secret_is_listed_until_it_is_ended(answer: Answer, roster: Roster) -> None:
    answer("vendor", "add", EMAIL, "--name", "Reading App")
    client_id = answer("client", "add", "--vendor", EMAIL, "--name", "x", "--scope", "roster.readonly")["client_id"]
    refused = roster("client", "end-old-secret", client_id)
    assert (refused.exit_code, "no secret beside its present one" in refused.stderr) == (1, True)
    answer("client", "rotate-secret", client_id, "--grace-hours", "2")
    [listed] = answer("client", "list")
    left = datetime.fromisoformat(listed["earlier_ends_at"]) - datetime.now(UTC)
    assert timedelta(hours=1) < left <= timedelta(hours=2)
    assert describe_instant(listed["earlier_ends_at"], None) in roster("client", "list").stdout
    assert answer("client", "end-old-secret", client_id) == {"client_id": client_id}
    assert [client["earlier_ends_at"] for client in answer("client", "list")] == [None]


def test_disabling_shows_in_the_lists(answer: Answer) -> None:
    answer("vendor", "add", EMAIL, "--name", "Reading App")
    made = answer("client", "add", "--vendor", EMAIL, "--name", "x", "--scope", "roster.readonly")
    answer("client", "disable", made["client_id"])
    assert answer("vendor", "disable", EMAIL)["enabled"] is False
    assert [item["enabled"] for item in answer("client", "list")] == [False]
    shown = answer("vendor", "enable", EMAIL, "--dry-run")
    assert (shown["enabled"], shown["dry_run"], answer("vendor", "list")[0]["enabled"]) == (True, True, False)
    assert answer("vendor", "enable", EMAIL, "--yes")["enabled"] is True


@pytest.mark.parametrize("group", ["vendor", "client", "feed"])
def test_lists_are_tables_for_people(roster: Roster, group: str) -> None:
    done = roster(group, "list")
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout.startswith("there are no ")

"""`roster district list` and `roster school list`, and the names that commands take."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import sqlalchemy as sa

from roster_service.db.tables import orgs
from tests.cli.conftest import Roster
from tests.postgres.loaded import load_districts

Answer = Callable[..., Any]
EMAIL, NAME = "a@vendor.example", "Springfield Unified School District"


@pytest.fixture
def district(engine: sa.Engine, roster: Roster) -> sa.Engine:
    """Two loaded districts, and a vendor."""
    load_districts(engine)
    roster("vendor", "add", EMAIL, "--name", "A")
    return engine


def test_districts_are_listed_with_the_number_of_their_records(
    answer: Answer, roster: Roster, district: sa.Engine
) -> None:
    assert next(it for it in answer("district", "list") if it["sourcedId"] == "spr-district") == {
        "sourcedId": "spr-district",
        "name": NAME,
        "identifier": "17-0042",
        "district": NAME,
        "feed": "springfield",
        "schools": 2,
        "classes": 5,
        "users": 15,
        "enrollments": 17,
    }
    assert "17-0042" in roster("district", "list").stdout


def test_the_schools_of_a_district_are_listed(answer: Answer, roster: Roster, district: sa.Engine) -> None:
    found = answer("school", "list", "--district", NAME)
    assert [(it["sourcedId"], it["classes"], it["enrollments"]) for it in found] == [
        ("spr-elementary", 2, 8),
        ("spr-high", 3, 9),
    ]
    assert len(answer("school", "list")) > len(found)
    assert "spr-high" in roster("school", "list").stdout


def test_an_org_that_is_marked_as_deleted_is_not_listed(answer: Answer, district: sa.Engine) -> None:
    with district.begin() as connection:
        connection.execute(sa.update(orgs).where(orgs.c.sourced_id == "spr-high").values(status="tobedeleted"))
    assert [it["sourcedId"] for it in answer("school", "list", "--district", "17-0042")] == ["spr-elementary"]


def test_an_empty_roster_says_so(roster: Roster) -> None:
    assert roster("district", "list").stdout == "there are no districts\n"
    assert roster("school", "list").stdout == "there are no schools\n"


def test_a_district_and_a_school_are_granted_and_revoked_by_name(
    answer: Answer, roster: Roster, district: sa.Engine
) -> None:
    granted = answer("vendor", "grant", EMAIL, "--district", NAME, "--school", "Springfield High School")
    assert granted["grants"] == [
        {
            "district_id": "spr-district",
            "school_id": "spr-high",
            "district_name": NAME,
            "school_name": "Springfield High School",
            "rules": None,
        }
    ]
    assert f"{NAME} (spr-district): Springfield High School (spr-high)" in roster("vendor", "list").stdout
    assert answer("vendor", "revoke", EMAIL, "--district", NAME)["grants"] == []


@pytest.mark.parametrize(
    ("name", "status", "code"),
    [
        pytest.param(NAME, "active", 1, id="the name of two districts"),
        pytest.param(NAME, "tobedeleted", 0, id="the name of one active district"),
        pytest.param("17-0042", "active", 0, id="an identifier that is the name of another district"),
    ],
)
def test_a_name_counts_if_one_active_district_has_it(
    roster: Roster, district: sa.Engine, name: str, status: str, code: int
) -> None:
    row = {"sourced_id": "x", "feed_id": 1, "status": status, "date_last_modified": "2026-01-01T00:00:00Z"}
    with district.begin() as connection:
        connection.execute(sa.insert(orgs).values(row | {"name": name, "type": "district", "district_id": "x"}))
    done = roster("vendor", "grant", EMAIL, "--district", name)
    assert done.exit_code == code
    assert ("more than one district" in done.stderr) == bool(code)

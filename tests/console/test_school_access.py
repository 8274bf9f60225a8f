"""Schools by vendors: the table and its CSV against SQL written apart, over random rights."""

from __future__ import annotations

import csv
import io
import random

import pytest
import sqlalchemy as sa

from roster_service.accounts.clients import add_client
from roster_service.accounts.vendor_rights import grant, set_flags
from roster_service.accounts.vendors import add_vendor, set_vendor_enabled
from roster_service.auth.scopes import Scope, ScopeName
from roster_service.schemas.flags import PermissionFlag
from tests.actors import TESTER
from tests.console.conftest import Browser, Console
from tests.console.test_statements import read

SCHOOLS = {"spr-district": ("spr-elementary", "spr-high"), "shv-district": ("shv-north", "shv-south")}
SEES = """
    SELECT v.email, s.sourced_id FROM vendors v JOIN vendor_grants g ON g.vendor_id = v.id
    JOIN orgs s ON s.type = 'school' AND s.status = 'active' AND s.district_id = g.district_id
        AND (g.school_id IS NULL OR g.school_id = s.sourced_id)
    WHERE v.enabled AND (EXISTS (SELECT FROM api_keys k WHERE k.vendor_id = v.id)
        OR EXISTS (SELECT FROM oauth_clients c WHERE c.vendor_id = v.id AND c.enabled))
"""
BIRTHDAYS = """ AND (
    EXISTS (SELECT FROM oauth_clients c
        WHERE c.vendor_id = v.id AND 'v1p2/roster-demographics.readonly' = ANY (c.scopes))
    OR ('demographics' = ANY (v.flags) AND EXISTS (SELECT FROM api_keys k WHERE k.vendor_id = v.id)))
"""


@pytest.fixture(scope="module", autouse=True)
def rights(console: Console) -> None:
    """Twelve vendors with random rights, beside those of every test."""
    chance = random.Random(37)
    with console.engine.begin() as connection:
        for number in range(12):
            email = f"random-{number}@schools.example"
            add_vendor(connection, TESTER, email, f"Random {number}")
            for district, schools in SCHOOLS.items():
                some = chance.sample(schools, chance.randrange(3))
                if some or chance.random() < 0.3:
                    grant(connection, TESTER, email, district, some)
            if chance.random() < 0.6:
                scopes = chance.choice([[ScopeName.CORE], [ScopeName.CORE, ScopeName.DEMOGRAPHICS]])
                add_client(connection, TESTER, email, "app", [Scope("v1p2", scope) for scope in scopes])
            if chance.random() < 0.4:
                set_flags(connection, TESTER, email, [PermissionFlag.DEMOGRAPHICS])
            set_vendor_enabled(connection, TESTER, email, enabled=chance.random() < 0.8)


def read_plain(console: Console, sql: str) -> set[tuple[str, str]]:
    """The pairs (vendor, school) of a statement."""
    with console.engine.connect() as connection:
        return {(row[0], row[1]) for row in connection.execute(sa.text(sql))}


@pytest.mark.parametrize(("query", "sql"), [("", SEES), ("?part=birthDate", SEES + BIRTHDAYS)], ids=["all", "part"])
def test_the_table_and_the_notice_are_what_plain_sql_says(
    console: Console, browser: Browser, query: str, sql: str
) -> None:
    # Scopes of the vendors of every test have other spellings; the random ones have this one alone.
    expected = {pair for pair in read_plain(console, sql) if pair[0].startswith("random-")}
    answer = browser.get(f"/access.json{query}").json
    emails = {vendor["id"]: vendor["email"] for vendor in answer["vendors"]}
    shown = {(emails[int(key)], row["sourcedId"]) for row in answer["rows"]["rows"] for key in row["seen"]}
    assert {pair for pair in shown if pair[0].startswith("random-")} == expected
    rows = csv.DictReader(io.StringIO(browser.get(f"/access.csv{query}").text))
    listed = {(row["email"], row["sourcedId"]) for row in rows}
    assert {pair for pair in listed if pair[0].startswith("random-")} == expected
    assert 5 < len(expected) < 48
    page = read(browser.get(f"/access{query}").text)
    assert f"{len({school for _, school in shown})} of 4 schools are seen by a vendor" in page


@pytest.mark.parametrize(("level", "found"), [("elementary", {"spr-elementary"}), ("high", {"spr-high"})])
def test_a_level_is_that_of_the_grades_of_the_classes(
    console: Console, browser: Browser, level: str, found: set[str]
) -> None:
    first, last = {"elementary": ("PK", "05"), "high": ("09", "13")}[level]
    with console.engine.connect() as connection:
        grades = sa.text(
            "SELECT DISTINCT school_id FROM classes, unnest(grades) grade WHERE status = 'active'"
            " AND (grade BETWEEN :first AND :last OR (:last = '05' AND grade BETWEEN '00' AND '05')"
            " OR (:last = '05' AND grade IN ('KG', 'TK', 'PR', 'IT')))"
        )
        expected = set(connection.scalars(grades, {"first": first, "last": last}))
    rows = browser.get(f"/access.json?level={level}").json["rows"]["rows"]
    assert {row["sourcedId"] for row in rows} == expected
    assert found <= expected


def test_an_unknown_part_says_so(browser: Browser) -> None:
    assert "There is no part nothing" in read(browser.get("/access?part=nothing").text)

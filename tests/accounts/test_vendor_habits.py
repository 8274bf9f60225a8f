"""What is new about the requests of a vendor is said beside its last days, and not after a change of ours."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from roster_service.access_log.entries import PersonHasher
from roster_service.accounts import vendors
from roster_service.db.tables import audit
from roster_service.explore.vendor_habits import list_habits
from sync_scripts.access_log_days import fold_days
from tests.actors import TESTER

VENDOR, NOW = "app@vendor.example", datetime.now(UTC)
FULL, GUARDIANS = "v1p2/roster.readonly", "v1p2/roster.readonly v1p2/guardians.readonly"
# (hours ago, address, scopes) of each answer -> what is said.
CASES: dict[str, tuple[list[tuple[int, str | None, str]], list[str]]] = {
    "nothing before": ([(1, "198.51.100.7", FULL)], []),
    "as before": ([(1, "198.51.100.7", FULL), (50, "198.51.100.9", FULL)], []),
    "another network": ([(1, "203.0.113.7", FULL), (50, "198.51.100.9", FULL)], ["network: 203.0.113.0/24"]),
    "another of IPv6": ([(1, "2001:db8:1::7", FULL), (50, "2001:db8:2::7", FULL)], ["network: 2001:db8:1::/48"]),
    "no address": ([(1, None, FULL), (50, "x", FULL)], []),
    "another scope": (
        [(1, "198.51.100.7", GUARDIANS), (50, "198.51.100.7", FULL)], ["scope or flag: v1p2/guardians.readonly"]
    ),
    "long ago": ([(1, "203.0.113.7", FULL), (31 * 24, "198.51.100.9", FULL)], []),
}  # fmt: skip


# What all answers have in common.
LOGGED: dict[str, Any] = {"caller": "c", "method": "GET", "path": "/users", "records": 1}
LOGGED |= {"request_id": "r", "people": b"", "parts": 0, "address": "198.51.100.9", "scope": FULL}
HASHER = PersonHasher("k" * 40)


@pytest.fixture
def vendor(engine: sa.Engine) -> int:
    """A vendor that nobody has changed for weeks."""
    with engine.begin() as connection:
        vendors.add_vendor(connection, TESTER, VENDOR, "App")
        connection.execute(sa.text("UPDATE changes SET at = at - interval '15 days'"))
        return vendors.find_vendor(connection, VENDOR).id


def answer(engine: sa.Engine, vendor: int, *answers: tuple[int, str | None, str]) -> None:
    """Logs answers."""
    with engine.begin() as connection:
        for hours, address, scope in answers:
            values = LOGGED | {"vendor_id": vendor, "at": NOW - timedelta(hours=hours)}
            values |= {"address": address, "scope": scope}
            connection.execute(sa.insert(audit).values(values))


def read(engine: sa.Engine, now: datetime = NOW) -> list[str]:
    with engine.connect() as connection:
        return list_habits(connection, vendors.find_vendor(connection, VENDOR), now)


@pytest.mark.parametrize(("answers", "said"), CASES.values(), ids=CASES)
def test_what_is_new_is_said(
    engine: sa.Engine, vendor: int, answers: list[tuple[int, str | None, str]], said: list[str]
) -> None:
    answer(engine, vendor, *answers)
    assert read(engine) == [
        f"in the last day it used a {word} for the first time in 30 days: {names}"
        for word, names in (one.split(": ") for one in said)
    ]


# A change (its verb, and whether it is of the vendor, or the instant of its floor) -> whether it explains what is new.
OURS: dict[str, tuple[str, bool]] = {
    "a grant": ("INSERT INTO changes {of} VALUES ('vendor grant', 'app@vendor.example')", True),
    "one of another vendor": ("INSERT INTO changes {of} VALUES ('vendor grant', 'b@vendor.example')", False),
    "a letter to it": ("INSERT INTO changes {of} VALUES ('deletion ask', 'app@vendor.example')", False),
    "an erasure": ("INSERT INTO changes {of} VALUES ('person erase', NULL)", True),
    "a person kept from another vendor": ("INSERT INTO changes {of} VALUES ('person hide', 'b@vendor.example')", False),
    "a letter to a parent": ("INSERT INTO changes {of} VALUES ('person answer', NULL)", False),
    "a floor that has moved": ("UPDATE vendors SET floor = now() - interval '13 days'", True),
    "one of long ago": ("UPDATE vendors SET floor = now() - interval '15 days'", False),
}


@pytest.mark.parametrize(("change", "is_silent"), OURS.values(), ids=OURS)
def test_what_we_have_changed_explains_what_is_new(
    engine: sa.Engine, vendor: int, change: str, is_silent: bool
) -> None:
    answer(engine, vendor, (1, "203.0.113.7", FULL), (50, "198.51.100.9", FULL))
    assert read(engine)
    columns = "(actor_kind, actor, kind, subject, verb, vendor)"
    text = change.format(of=columns).replace("VALUES (", "VALUES ('system user', 'a@b', 'vendor', 's', ")
    with engine.begin() as connection:
        connection.execute(sa.text(text))
    assert (read(engine) == []) == is_silent


def test_people_of_today_stand_beside_the_median_of_the_days_before(engine: sa.Engine, vendor: int) -> None:
    """Who is in several answers of a day is counted once, and nobody of another vendor."""
    answer(engine, vendor, (50, "198.51.100.9", FULL))
    assert read(engine) == []
    now = datetime.now(UTC)
    # (days ago, a part of a thousand people) of each answer.
    shown = [(0, 0, 9), (0, 5, 12), (2, 0, 7), (3, 0, 3), (3, 2, 5), (4, 0, 4), (40, 0, 900)]
    with engine.begin() as connection:
        connection.execute(sa.update(audit).values(at=now - timedelta(days=2)))
        for days, first, end in shown:
            people = HASHER.hash_people(map(str, range(first, end)))
            for owner in (vendor, vendor + 1) if days == 0 else (vendor,):
                made = people if owner == vendor else HASHER.hash_people(map(str, range(500)))
                values = LOGGED | {"vendor_id": owner, "at": now - timedelta(days=days), "people": made}
                connection.execute(sa.insert(audit).values(values))
    fold_days(engine, now.date())
    assert read(engine, now) == ["it was shown 12 people today (UTC); the median of its days with people is 5"]
    with engine.begin() as connection:
        vendors.set_vendor_enabled(connection, TESTER, VENDOR, enabled=True)
    assert read(engine) == []

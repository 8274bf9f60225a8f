"""Grants with rules: what is refused, and what the vendor is said to see."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime

import pytest
import sqlalchemy as sa
from sqlalchemy.exc import OperationalError

from roster_service.accounts import vendor_rights, vendors
from roster_service.accounts.districts import end_district
from roster_service.db import tables
from roster_service.errors import CommandError
from roster_service.feeds.group_check import find_wrong_groups
from roster_service.feeds.roster_state import publish
from roster_service.feeds.sharing_groups import list_empty_rules, lock_groups, refresh_groups_of
from roster_service.feeds.sharing_members import note_candidates
from roster_service.roster.stamps import make_next_stamp
from roster_service.schemas.sharing_rules import Rules, Staff
from tests.actors import TESTER
from tests.conditions import is_blocked, wait_for
from tests.postgres.loaded import load_districts

EMAIL = "ruled@vendor.example"
RULES = Rules("status='active'", None, Staff.ALL, guardians=True)


@pytest.fixture
def give(engine: sa.Engine) -> Callable[[Rules | None], None]:
    """Grants a vendor a district with these rules."""
    load_districts(engine)
    with engine.begin() as connection:
        vendors.add_vendor(connection, TESTER, EMAIL, "ruled")

    def grant(rules: Rules | None) -> None:
        with engine.begin() as connection:
            vendor_rights.grant(connection, TESTER, EMAIL, "spr-district", (), rules=rules)

    return grant


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        (replace(RULES, students="noSuchField='x'"), "noSuchField"),
        (replace(RULES, classes="title~"), "column"),
        (replace(RULES, classes="title='no such class'"), "with --yes"),
    ],
    ids=["an unknown field", "no filter", "nothing matches"],
)
def test_rules_that_mean_or_open_nothing_are_refused(
    give: Callable[[Rules | None], None], engine: sa.Engine, rules: Rules, words: str
) -> None:
    with pytest.raises(CommandError, match=words):
        give(rules)
    with engine.connect() as connection:
        assert connection.scalar(sa.select(sa.func.count()).select_from(tables.vendor_grants)) == 0


def test_rules_of_a_school_whose_district_is_granted_without_rules_are_refused(
    give: Callable[[Rules | None], None], engine: sa.Engine
) -> None:
    give(None)
    with engine.begin() as connection, pytest.raises(CommandError, match="narrow nothing"):
        vendor_rights.grant(connection, TESTER, EMAIL, "spr-district", ["spr-high"], rules=RULES)


@pytest.mark.parametrize("before", [None, RULES], ids=["all", "rules"])
@pytest.mark.parametrize("after", [None, replace(RULES, students="grades~'03'")], ids=["all", "other rules"])
def test_a_grant_of_the_same_place_replaces_its_rules(
    give: Callable[[Rules | None], None], engine: sa.Engine, before: Rules | None, after: Rules | None
) -> None:
    """Those of another place stay, and a refusal leaves the former grant."""
    give(before)
    with engine.begin() as connection:
        vendor_rights.grant(connection, TESTER, EMAIL, "shv-district", ["shv-north"], rules=RULES)
    for wrong in (replace(RULES, students="noSuchField='x'"), replace(RULES, classes="title='no such class'")):
        with pytest.raises(CommandError):
            give(wrong)
    give(after)
    with engine.connect() as connection:
        found = {(it.district_id, it.school_id): it.rules for it in vendors.find_vendor(connection, EMAIL).grants}
        assert len(vendors.find_vendor(connection, EMAIL).grants) == 2
        assert found == {("spr-district", None): after, ("shv-district", "shv-north"): RULES}
        grants = tables.vendor_grants.c
        ruled = connection.scalars(sa.select(grants.id).where(grants.staff.is_not(None)))
        groups = connection.scalars(sa.select(tables.group_members.c.group_id).distinct())
        assert set(groups) == set(ruled)
        assert find_wrong_groups(connection) == {}


def test_the_grants_of_a_district_are_replaced_with_their_groups(
    give: Callable[[Rules | None], None], engine: sa.Engine
) -> None:
    give(RULES)
    other = replace(RULES, students="grades~'03'")
    with engine.begin() as connection:
        changed = vendor_rights.set_district_grant(connection, TESTER, EMAIL, "spr-district", ["spr-elementary"], other)
        [made] = changed.grants
        assert (made.school_id, made.rules) == ("spr-elementary", other)
        groups = sa.select(tables.group_members.c.group_id).distinct()
        assert connection.scalars(groups).all() == connection.scalars(sa.select(tables.vendor_grants.c.id)).all()
        log = sa.select(tables.changes.c.after).order_by(tables.changes.c.id.desc()).limit(1)
        assert connection.scalar(log)["grants"][0][2]["only"] == "grade 3"


def test_the_rules_of_a_school_are_said_after_it_has_moved_to_another_district(
    give: Callable[[Rules | None], None], engine: sa.Engine
) -> None:
    """The grant names the former district, and still opens the school by its rules alone."""
    give(RULES)
    with engine.begin() as connection:
        vendor_rights.set_district_grant(connection, TESTER, EMAIL, "spr-district", ["spr-elementary"], RULES)
        vendor = vendors.find_vendor(connection, EMAIL)
    assert vendor.list_rules("spr-elementary", "another") == [RULES]
    assert vendor.list_rules("spr-high", "another") == []


def test_a_revoked_grant_takes_its_group(give: Callable[[Rules | None], None], engine: sa.Engine) -> None:
    give(RULES)
    count = sa.select(sa.func.count()).select_from(tables.group_members)
    with engine.begin() as connection:
        assert connection.scalar(count)
        vendor_rights.revoke(connection, TESTER, EMAIL, "spr-district")
        assert not connection.scalar(count)


Change = Callable[[sa.Connection], object]
ENDINGS: dict[str, Change] = {
    "a revoked district": lambda connection: vendor_rights.revoke(connection, TESTER, EMAIL, "spr-district"),
    "nothing of a district": lambda connection: vendor_rights.set_district_grant(
        connection, TESTER, EMAIL, "spr-district", []
    ),
    "a removed district": lambda connection: end_district(connection, TESTER, "spr-district"),
    "a removed vendor": lambda connection: vendors.remove_vendor(connection, TESTER, EMAIL),
}


@pytest.mark.parametrize("end", ENDINGS.values(), ids=ENDINGS)
def test_a_group_ends_before_a_run_makes_it_or_after(
    give: Callable[[Rules | None], None], engine: sa.Engine, end: Change
) -> None:
    """A run that adds members to a group whose grant has ended meanwhile would fail."""
    give(RULES)
    with engine.begin() as publishing, engine.connect() as connection:
        lock_groups(publishing)
        connection.execute(sa.text("SET LOCAL lock_timeout = 100"))
        with pytest.raises(OperationalError, match="lock timeout"):
            end(connection)


def test_a_run_counts_for_a_rule_that_replaces_the_only_one_meanwhile(
    give: Callable[[Rules | None], None], engine: sa.Engine
) -> None:
    """When the run notes what it has written, the one is revoked and the other not yet there."""
    give(RULES)
    enrollments = tables.enrollments
    own = enrollments.c.sourced_id == "spr-enr-06"
    with engine.begin() as publishing, ThreadPoolExecutor(1) as beside:
        noted = note_candidates(publishing, {enrollments: sa.select(enrollments.c.sourced_id).where(own)})
        stamp = make_next_stamp(publishing)
        # The class has no enrollment of this student before.
        moved = {"user_id": "spr-student-6", "date_last_modified": stamp}
        publishing.execute(sa.update(enrollments).where(own).values(moved))
        # As a run has them: the roster has another feed.
        of_district = tables.orgs.c.sourced_id == "spr-district"
        feed_ids = publishing.scalars(sa.select(tables.orgs.c.feed_id).where(of_district)).all()
        with engine.begin() as connection:
            vendor_rights.revoke(connection, TESTER, EMAIL, "spr-district")
        rules = replace(RULES, classes="title~'Homeroom'")
        with engine.begin() as connection:
            vendor_rights.grant(connection, TESTER, EMAIL, "spr-district", (), rules=rules)
            run = beside.submit(publish, publishing, feed_ids, as_of=stamp, noted=noted)
            wait_for(lambda: run.done() or is_blocked(engine))
        run.result()
    with engine.connect() as connection:
        assert find_wrong_groups(connection) == {}


@pytest.mark.parametrize(
    "fault",
    [
        "DELETE FROM group_members WHERE type = 'classes'",
        "UPDATE group_members SET role = 'aide' WHERE role = 'student'",
        "INSERT INTO group_members SELECT group_id, 'courses', 'none', '', '', since FROM group_members LIMIT 1",
        "UPDATE users SET status = 'tobedeleted' WHERE sourced_id = 'spr-student-1'",
    ],
    ids=["it lacks classes", "another role", "one too many", "the roster is another"],
)
def test_the_check_finds_a_group_that_is_not_what_its_rules_open(
    give: Callable[[Rules | None], None], engine: sa.Engine, fault: str
) -> None:
    give(RULES)
    with engine.begin() as connection:
        assert find_wrong_groups(connection) == {}
        connection.execute(sa.text(fault))
        assert find_wrong_groups(connection)


def test_a_rule_whose_subject_has_vanished_is_listed(give: Callable[[Rules | None], None], engine: sa.Engine) -> None:
    give(replace(RULES, classes="title~'Math'"))
    with engine.begin() as connection:
        assert list_empty_rules(connection) == []
        connection.execute(sa.update(tables.classes).values(title="Art"))
        feed_ids = connection.scalars(sa.select(tables.feeds.c.id)).all()
        refresh_groups_of(connection, feed_ids, datetime.now(UTC), noted=False)
        found = {(it.vendor, it.kind, it.place, it.filter) for it in list_empty_rules(connection)}
    # Without a shared class, no student has an enrollment in one.
    assert found == {("ruled", "class", "Springfield Unified School District", "title~'Math'")}

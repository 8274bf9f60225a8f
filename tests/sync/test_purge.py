"""The purge: old tombstones go, with their parts, and never while something that stays refers to them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
import sqlalchemy as sa

from roster_service.db.tables import (
    ROSTER_TABLES,
    academic_sessions,
    classes,
    courses,
    demographics,
    enrollments,
    orgs,
    roster_state,
    sync_runs,
    user_agents,
    user_profiles,
    user_roles,
    users,
)
from roster_service.roster.references import REFERENCES, is_list, list_owners, list_references_to
from sync_scripts.applying.writes import PURGE_ORDER
from sync_scripts.engine.load import load
from sync_scripts.purge import purge
from tests.postgres.loaded import load_districts
from tests.sync.conftest import EXPORTS, SPRINGFIELD, snapshot

DAYS = 7
# Every column that names a record of a roster table, written here once more and apart from the graph of references.
REFS = (
    (orgs.c.parent_id, orgs),
    (academic_sessions.c.parent_id, academic_sessions),
    (courses.c.school_year_id, academic_sessions),
    (courses.c.org_id, orgs),
    (classes.c.course_id, courses),
    (classes.c.school_id, orgs),
    (classes.c.term_ids, academic_sessions),
    (users.c.primary_org_id, orgs),
    (user_roles.c.user_id, users),
    (user_roles.c.org_id, orgs),
    (user_profiles.c.user_id, users),
    (user_agents.c.user_id, users),
    (user_agents.c.agent_id, users),
    (enrollments.c.user_id, users),
    (enrollments.c.class_id, classes),
    (enrollments.c.school_id, orgs),
    (demographics.c.sourced_id, users),
)


@pytest.fixture
def loaded(engine: sa.Engine) -> sa.Engine:
    """A roster of two districts."""
    load_districts(engine, ("springfield", "shelbyville"))
    return engine


def mark_deleted(engine: sa.Engine, age: timedelta, *pairs: tuple[sa.Table, str]) -> None:
    """Mark records (table, pattern of their ids) as flagged `age` ago."""
    flagged = {"status": "tobedeleted", "date_last_modified": datetime.now(UTC) - age}
    with engine.begin() as connection:
        for table, pattern in pairs:
            connection.execute(sa.update(table).where(table.c.sourced_id.like(pattern)).values(flagged))


def find_dangling(engine: sa.Engine) -> list[str]:
    """Every ref that leads nowhere."""
    with engine.connect() as connection:
        named = {
            column: sa.select((sa.func.unnest(column) if is_list(column) else column).label("id")).subquery()
            for column, _ in REFS
        }
        return [
            f"{column}: {value}"
            for column, table in REFS
            for value in connection.scalars(
                sa.select(named[column].c.id).where(
                    named[column].c.id.is_not(None), named[column].c.id.not_in(sa.select(table.c.sourced_id))
                )
            )
        ]


OLD, YOUNG = timedelta(days=8), timedelta(days=6)
EVERYTHING = tuple((table, "spr-%") for table in ROSTER_TABLES)


def test_a_whole_district_goes_in_one_run_and_the_other_stays(loaded: sa.Engine) -> None:
    kept = {table.name: len(snapshot(loaded, table)) for table in ROSTER_TABLES}
    mark_deleted(loaded, OLD, *EVERYTHING)
    purged = purge(loaded, DAYS)
    left = {table.name: snapshot(loaded, table) for table in ROSTER_TABLES}
    assert all(identifier.startswith("shv-") for rows in left.values() for identifier in rows)
    assert sum(purged.values()) == sum(kept.values()) - sum(map(len, left.values())) > 0
    assert find_dangling(loaded) == []


@pytest.mark.parametrize(
    ("old", "young", "gone"),
    [
        pytest.param([(enrollments, "spr-enr-01")], [], {"enrollments": 1}, id="a leaf"),
        pytest.param([(users, "spr-student-2")], [], {}, id="a user who is still enrolled"),
        pytest.param(
            [(users, "spr-student-2"), (enrollments, "%")], [], {"enrollments": 26}, id="a user with demographics"
        ),
        pytest.param(
            [(users, "spr-student-2"), (demographics, "spr-student-2")],
            [(enrollments, "%")],
            {"demographics": 1},
            id="a user whose enrollment went later",
        ),
        pytest.param(
            [(users, "spr-guardian-1"), (enrollments, "%")],
            [],
            {"enrollments": 26},
            id="an agent of one who stays",
        ),
        pytest.param(
            [(users, "spr-%"), (demographics, "spr-%"), (enrollments, "%")],
            [],
            {"enrollments": 26, "demographics": 6, "users": 15},
            id="users who name each other",
        ),
        pytest.param(
            [(academic_sessions, "spr-%")], [], {"academicSessions": 3}, id="of the sessions, those without classes"
        ),
        pytest.param([(orgs, "spr-%")], [], {}, id="orgs that people belong to"),
        pytest.param(
            EVERYTHING,
            [(users, "spr-student-1")],
            {"enrollments": 17, "demographics": 6, "classes": 5, "courses": 4, "academicSessions": 7}
            # Beside the student: the two agents, the sibling whom one of them names, and the school of all four.
            | {"users": 11, "orgs": 2},
            id="one younger record holds others",
        ),
    ],
)
def test_what_something_that_stays_refers_to_waits(
    loaded: sa.Engine, old: list[tuple[sa.Table, str]], young: list[tuple[sa.Table, str]], gone: dict[str, int]
) -> None:
    mark_deleted(loaded, OLD, *old)
    mark_deleted(loaded, YOUNG, *young)
    purged = purge(loaded, DAYS)
    assert {name: count for name, count in purged.items() if count} == gone
    assert find_dangling(loaded) == []


def test_nothing_young_goes_and_the_revision_stays(loaded: sa.Engine) -> None:
    mark_deleted(loaded, YOUNG, *EVERYTHING)
    before = snapshot(loaded, roster_state)
    assert set(purge(loaded, DAYS).values()) == {0}
    assert snapshot(loaded, roster_state) == before


@pytest.mark.parametrize(
    ("known", "after"),
    [
        pytest.param(timedelta(days=90), timedelta(days=DAYS), id="it advances"),
        pytest.param(timedelta(days=1), timedelta(days=1), id="it never goes back"),
    ],
)
def test_a_purge_says_how_old_a_consumers_last_pull_may_be(
    loaded: sa.Engine, known: timedelta, after: timedelta
) -> None:
    # The first change of a copied database has the revision of a restored one.
    mark_deleted(loaded, OLD, (enrollments, "spr-enr-02"))
    purge(loaded, DAYS)
    now = datetime.now(UTC)
    with loaded.begin() as connection:
        connection.execute(sa.update(roster_state).values(deletions_since=now - known))
    mark_deleted(loaded, OLD, (enrollments, "spr-enr-01"))
    [before] = snapshot(loaded, roster_state).values()
    purge(loaded, DAYS)
    [state] = snapshot(loaded, roster_state).values()
    assert state["revision"] == before["revision"] + 1
    assert abs(state["deletions_since"] - (now - after)) < timedelta(minutes=5)


def read_purged(engine: sa.Engine) -> list[tuple[str, dict[str, int]]]:
    """The outcome of each run, and what was purged after it."""
    return [
        (run["outcome"], {name: count["purged"] for name, count in run["counts"].items() if count.get("purged")})
        for _, run in sorted(snapshot(engine, sync_runs).items())
    ]


def test_the_latest_run_of_each_feed_reveals_what_was_purged_of_it(loaded: sa.Engine) -> None:
    load(loaded, "springfield", EXPORTS / SPRINGFIELD)
    mark_deleted(loaded, OLD, (enrollments, "spr-enr-0%"), (demographics, "spr-student-1"), (enrollments, "shv-enr-1"))
    purge(loaded, DAYS)
    first = [("done", {}), ("done", {"enrollments": 1}), ("unchanged", {"demographics": 1, "enrollments": 9})]
    assert read_purged(loaded) == first
    mark_deleted(loaded, OLD, (enrollments, "spr-enr-10"))
    purge(loaded, DAYS)
    assert read_purged(loaded) == [*first[:2], ("unchanged", {"demographics": 1, "enrollments": 10})]


def test_a_held_run_has_purged_nothing(loaded: sa.Engine) -> None:
    with loaded.begin() as connection:
        connection.execute(sa.update(sync_runs).values(outcome="held"))
    mark_deleted(loaded, OLD, (enrollments, "spr-enr-01"))
    assert purge(loaded, DAYS)["enrollments"] == 1
    assert read_purged(loaded) == [("held", {}), ("held", {})]


def test_the_list_of_mentions_is_complete() -> None:
    listed = {(it.column, it.target) for table in PURGE_ORDER for it in list_references_to(table)}
    parts = {(owner, table) for table in PURGE_ORDER for owner in list_owners(table)}
    assert listed | parts == set(REFS)


def test_a_table_is_purged_after_all_that_refer_to_it() -> None:
    order = {table: number for number, table in enumerate(PURGE_ORDER)}
    others = [it for it in REFERENCES.values() if it.record is not it.target]
    assert [str(it.column) for it in others if order[it.record] > order[it.target]] == []

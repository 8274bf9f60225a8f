"""One export after the other: what is written, what is left alone, and the stamps."""

from __future__ import annotations

import datetime
from pathlib import Path

import pytest
import sqlalchemy as sa

from roster_service.db import tables
from roster_service.feeds.run_history import STEPS
from sync_scripts.applying.changes import Counts
from sync_scripts.engine.load import load
from sync_scripts.engine.report import Report
from sync_scripts.reading.rejections import RefusedExportError
from tests.extent import every_other
from tests.postgres.loaded import load_first
from tests.sync.conftest import PARTS, read_state, snapshot, state
from tests.sync.export_changes import (
    Bend,
    both,
    cell_of,
    column,
    shuffled,
    with_row,
    without_column,
    without_rows,
)


def written(report: Report) -> dict[str, Counts]:
    """The types that a run wrote to, without what stayed the same."""
    return {
        name: Counts(count.added, count.changed, count.revived, count.tombstoned)
        for name, count in report.counts.items()
        if count.any
    }


def stamped(engine: sa.Engine, table: sa.Table, stamp: datetime.datetime | None) -> set[str]:
    """The ids of the records that bear a stamp."""
    return {key for key, row in snapshot(engine, table).items() if row["date_last_modified"] == stamp}


def test_the_same_export_changes_nothing(engine: sa.Engine, each_export: Path) -> None:
    first = load_first(engine, "feed", each_export)
    before, roster = state(engine), read_state(engine)
    second = load(engine, "feed", each_export)
    assert (first.outcome, second.outcome) == ("done", "unchanged")
    assert (second.stamp, second.revision) == (None, None)
    assert written(second) == {}
    assert all(count.unchanged == first.counts[name].added for name, count in second.counts.items())
    assert state(engine) == before
    assert read_state(engine) == roster


def test_the_order_of_rows_says_nothing(engine: sa.Engine, each_export: Path) -> None:
    load_first(engine, "feed", each_export)
    for path in each_export.glob("*.csv"):
        if path.stem != "manifest":
            shuffled(path.stem)(each_export)
    assert load(engine, "feed", each_export).outcome == "unchanged"


# A change, and the records that are to bear the new stamp because of it.
CHANGES_1_1: dict[str, tuple[Bend, dict[sa.Table, set[str]]]] = {
    "a name": (cell_of("users", "spr-student-1", "givenName", "Zoey"), {tables.users: {"spr-student-1"}}),
    "a value is emptied": (cell_of("users", "spr-student-1", "sms", ""), {tables.users: {"spr-student-1"}}),
    "a user id": (cell_of("users", "spr-student-1", "userIds", "{LDAP:z}"), {tables.users: {"spr-student-1"}}),
    "metadata": (cell_of("users", "spr-student-2", "metadata.busRoute", "8"), {tables.users: {"spr-student-2"}}),
    "metadata is dropped": (
        without_column("demographics", "metadata.notes"),
        {tables.demographics: {"spr-student-1"}},
    ),
    "metadata that no interface shows": (
        both(
            cell_of("users", "spr-teacher-1", "metadata.busRoute", "8"),
            *(column(file, "metadata.x", "y") for file in ("academicSessions", "courses", "classes", "enrollments")),
        ),
        {},
    ),
    "a role": (cell_of("users", "spr-aide-1", "role", "teacher"), {tables.users: {"spr-aide-1"}}),
    "the order of orgs": (
        cell_of("users", "spr-teacher-1", "orgSourcedIds", "spr-high,spr-elementary"),
        {tables.users: {"spr-teacher-1"}},
    ),
    "an org less, but the enrollments stay": (
        cell_of("users", "spr-teacher-1", "orgSourcedIds", "spr-elementary"),
        {tables.users: {"spr-teacher-1"}},
    ),
    "an agent": (
        cell_of("users", "spr-student-1", "agentSourcedIds", "spr-guardian-1"),
        {tables.users: {"spr-student-1"}},
    ),
    "a term of a class": (
        cell_of("classes", "spr-class-math3-a", "termSourcedIds", "spr-2027-fall"),
        {tables.classes: {"spr-class-math3-a"}},
    ),
    "an enrollment that brings a role": (
        with_row(
            "enrollments",
            sourcedId="new",
            classSourcedId="spr-class-chem-1",
            schoolSourcedId="spr-high",
            userSourcedId="spr-student-2",
            role="student",
        ),
        # The label of the student is another one, so who names the student shows or hides that for others.
        {
            tables.enrollments: {"new"},
            tables.users: {"spr-student-2", "spr-guardian-1"},
            tables.demographics: {"spr-student-2"},
        },
    ),
    "an enrollment that brings another role": (
        cell_of("enrollments", "spr-enr-17", "role", "teacher"),
        {
            tables.enrollments: {"spr-enr-17"},
            tables.users: {"spr-student-6"},
            tables.demographics: {"spr-student-6"},
        },
    ),
    "an enrollment that brings a role beside another": (
        with_row(
            "enrollments",
            sourcedId="new",
            classSourcedId="spr-class-chem-1",
            schoolSourcedId="spr-high",
            userSourcedId="spr-student-6",
            role="proctor",
        ),
        {tables.enrollments: {"new"}, tables.users: {"spr-student-6"}},
    ),
    "an enrollment that brings a role has ended by its days": (
        cell_of("enrollments", "spr-enr-17", "endDate", "2001-01-01"),
        {tables.enrollments: {"spr-enr-17"}},
    ),
    "an enrollment gone that brought a role": (
        without_rows("enrollments", "spr-enr-17"),
        {
            tables.enrollments: {"spr-enr-17"},
            tables.users: {"spr-student-6"},
            tables.demographics: {"spr-student-6"},
        },
    ),
    "the type of an org changes an administrator": (
        both(
            cell_of("users", "spr-admin-school", "orgSourcedIds", "spr-high-science"),
            cell_of("orgs", "spr-high-science", "name", "Sciences"),
        ),
        {tables.users: {"spr-admin-school"}, tables.orgs: {"spr-high-science"}},
    ),
    "a school moves to another district": (
        both(
            with_row("orgs", sourcedId="spr-east", name="East", type="district"),
            cell_of("orgs", "spr-high", "parentSourcedId", "spr-east"),
        ),
        # The department below it moves along; the district that it leaves shows its children. A course of the former
        # district is taught outside of it now.
        {
            tables.orgs: {"spr-district", "spr-east", "spr-high", "spr-high-science"},
            tables.courses: {"spr-course-chem"},
        },
    ),
    "an org is new below another": (
        with_row("orgs", sourcedId="spr-west", name="West", type="school", parentSourcedId="spr-district"),
        {tables.orgs: {"spr-district", "spr-west"}},
    ),
    "a session goes that is below another": (
        without_rows("academicSessions", "spr-2027-q3"),
        {tables.academic_sessions: {"spr-2027-q3", "spr-2027-spring"}},
    ),
    "gone": (without_rows("demographics", "spr-student-4"), {tables.demographics: {"spr-student-4"}}),
    "flagged as gone": (
        cell_of("demographics", "spr-student-4", "status", "tobedeleted"),
        {tables.demographics: {"spr-student-4"}},
    ),
    "inactive": (
        cell_of("demographics", "spr-student-4", "status", "inactive"),
        {tables.demographics: {"spr-student-4"}},
    ),
}
CHANGES_1_2: dict[str, tuple[Bend, dict[sa.Table, set[str]]]] = {
    "a role's end": (cell_of("roles", "shv-role-09", "endDate", "2027-01-01"), {tables.users: {"shv-principal-1"}}),
    "a role less": (without_rows("roles", "shv-role-15"), {tables.users: {"shv-counselor-1"}}),
    "a role more": (
        with_row(
            "roles",
            sourcedId="new",
            userSourcedId="shv-principal-1",
            roleType="secondary",
            role="teacher",
            orgSourcedId="shv-north",
        ),
        {tables.users: {"shv-principal-1"}},
    ),
    "a role that is gone": (
        cell_of("roles", "shv-role-15", "status", "tobedeleted"),
        {tables.users: {"shv-counselor-1"}},
    ),
    "a profile": (
        cell_of("userProfiles", "shv-profile-2", "description", "Books"),
        {tables.users: {"shv-student-1"}},
    ),
    "a profile less": (without_rows("userProfiles", "shv-profile-2"), {tables.users: {"shv-student-1"}}),
    "only a password": (column("userProfiles", "password", "another"), {}),
    "the id of a role": (cell_of("roles", "shv-role-09", "sourcedId", "another"), {}),
}


def check_change(engine: sa.Engine, folder: Path, bend: Bend, wanted: dict[sa.Table, set[str]]) -> None:
    load_first(engine, "feed", folder)
    before = state(engine)
    bend(folder)
    report = load(engine, "feed", folder)
    assert report.outcome == ("done" if wanted else "unchanged")
    for table in tables.ROSTER_TABLES:
        assert stamped(engine, table, report.stamp) == wanted.get(table, set()), table.name
    # Nothing else has changed, and another run finds nothing to do.
    after = state(engine)
    for table, rows in before.items():
        owners = dict.fromkeys(PARTS, tables.users)
        changed = wanted.get(owners.get(table, table), set())
        for key, row in rows.items():
            if (key if isinstance(key, str) else key[0]) not in changed:
                assert after[table][key] == row
    assert load(engine, "feed", folder).outcome == "unchanged"


@pytest.mark.parametrize(("bend", "wanted"), every_other(CHANGES_1_1.values()), ids=CHANGES_1_1)
def test_changes_of_1_1(engine: sa.Engine, springfield: Path, bend: Bend, wanted: dict[sa.Table, set[str]]) -> None:
    check_change(engine, springfield, bend, wanted)


@pytest.mark.parametrize(("bend", "wanted"), CHANGES_1_2.values(), ids=CHANGES_1_2)
def test_changes_of_1_2(engine: sa.Engine, shelbyville: Path, bend: Bend, wanted: dict[sa.Table, set[str]]) -> None:
    check_change(engine, shelbyville, bend, wanted)


def test_gone_and_back(engine: sa.Engine, springfield: Path) -> None:
    first = load_first(engine, "feed", springfield)
    before = state(engine)
    rows = without_rows("users", "spr-student-6")
    kept = (springfield / "users.csv").read_bytes()
    both(rows, without_rows("enrollments", "spr-enr-03", "spr-enr-17"), without_rows("demographics", "spr-student-6"))(
        springfield
    )
    second = load(engine, "feed", springfield)
    assert written(second) == {
        "users": Counts(tombstoned=1),
        "enrollments": Counts(tombstoned=2),
        "demographics": Counts(tombstoned=1),
    }
    gone = snapshot(engine, tables.users)["spr-student-6"]
    assert (gone["status"], gone["date_last_modified"]) == ("tobedeleted", second.stamp)
    # All other data is kept, roles included.
    old = before[tables.users]["spr-student-6"]
    assert {**gone, "status": "active", "date_last_modified": first.stamp} == old
    assert snapshot(engine, tables.user_roles) == before[tables.user_roles]
    # A tombstone stays as it is while its record stays away.
    assert load(engine, "feed", springfield).outcome == "unchanged"
    (springfield / "users.csv").write_bytes(kept)
    third = load(engine, "feed", springfield)
    assert written(third) == {"users": Counts(revived=1)}
    back = snapshot(engine, tables.users)["spr-student-6"]
    assert (back["status"], back["date_last_modified"]) == ("active", third.stamp)
    # Back without the enrollment that made it a student of the high school.
    assert [key for key in snapshot(engine, tables.user_roles) if key[0] == "spr-student-6"] == [("spr-student-6", 1)]


def test_stamps_and_revisions(engine: sa.Engine, springfield: Path) -> None:
    first = load(engine, "feed", springfield)
    assert first.stamp is not None
    assert (first.revision, read_state(engine).as_of) == (1, first.stamp)
    assert first.stamp.microsecond % 1000 == 0
    cell_of("orgs", "spr-high", "name", "SHS")(springfield)
    second = load(engine, "feed", springfield)
    assert second.stamp is not None
    assert second.stamp > first.stamp
    assert read_state(engine)[1:3] == (2, second.stamp)


def test_stamps_go_forward_when_the_clock_goes_back(engine: sa.Engine, springfield: Path) -> None:
    load_first(engine, "feed", springfield)
    future = datetime.datetime(2999, 1, 1, tzinfo=datetime.UTC)
    with engine.begin() as connection:
        connection.execute(sa.update(tables.roster_state).values(as_of=future))
    cell_of("orgs", "spr-high", "name", "SHS")(springfield)
    assert load(engine, "feed", springfield).stamp == future + datetime.timedelta(milliseconds=1)


def test_every_run_is_a_row(engine: sa.Engine, springfield: Path) -> None:
    load(engine, "feed", springfield)
    load(engine, "feed", springfield)
    rows = list(snapshot(engine, tables.sync_runs).values())
    assert [row["outcome"] for row in rows] == ["done", "unchanged"]
    assert rows[0]["counts"]["academicSessions"] == {
        "added": 7, "changed": 0, "revived": 0, "tombstoned": 0, "unchanged": 0, "rejected": 0, "purged": 0,
    }  # fmt: skip
    assert (rows[0]["format"], rows[0]["source"]) == ("oneroster 1.1", str(springfield))
    assert rows[0]["started_at"] <= rows[0]["stamp"] <= rows[0]["finished_at"]
    assert set(rows[0]["seconds"]) == set(STEPS)
    assert rows[1]["stamp"] is None


def test_a_refused_run_changes_nothing(engine: sa.Engine, springfield: Path) -> None:
    load_first(engine, "feed", springfield)
    before, roster = state(engine), read_state(engine)
    both(cell_of("users", "spr-student-1", "givenName", "Zoey"), with_row("orgs", sourcedId="spr-high"))(springfield)
    with pytest.raises(RefusedExportError):
        load(engine, "feed", springfield)
    assert state(engine) == before
    assert read_state(engine) == roster

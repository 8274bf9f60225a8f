"""Delta files: what they name changes, what they do not name stays; alone, and beside files in bulk."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import sqlalchemy as sa

from roster_service.db import tables
from sync_scripts.applying.changes import Counts
from sync_scripts.engine.load import Options, load
from sync_scripts.formats.tolerated import SAME_DAY_FIRST, US_DAY
from tests.postgres.loaded import load_first
from tests.sync.conftest import PARTS, describe, snapshot, state
from tests.sync.export_changes import Bend, both, cell_of, declared, read_csv, rows_of, with_row, without_file

from .test_life_cycle import stamped, written


def only(file: str, *identifiers: str) -> Bend:
    """Makes a file a delta with these of its rows."""
    return both(
        declared(file, "delta"),
        rows_of(
            file, lambda rows: rows.__setitem__(slice(1, None), [row for row in rows[1:] if row[0] in identifiers])
        ),
    )


def alone(*bends: Bend) -> Bend:
    """Leaves out every file that is still declared to be in bulk."""

    def bend(folder: Path) -> None:
        both(*bends)(folder)
        for name, mode in read_csv(folder / "manifest.csv")[1:]:
            if mode == "bulk":
                both(declared(name.removeprefix("file."), "absent"), without_file(f"{name[5:]}.csv"))(folder)

    return bend


# What a delta does, and the ids of the records that bear its stamp.
CASES: dict[str, tuple[Bend, dict[sa.Table, set[str]]]] = {
    "a change": (
        alone(only("users", "spr-student-1"), cell_of("users", "spr-student-1", "givenName", "Zoey")),
        {tables.users: {"spr-student-1"}},
    ),
    "the same again": (alone(only("users", "spr-student-1", "spr-admin-school")), {}),
    "nothing at all": (alone(only("users")), {}),
    "a new record, which names stored ones": (
        alone(
            only("enrollments"),
            with_row("enrollments", sourcedId="new", status="active", classSourcedId="spr-class/stats@1",
                     schoolSourcedId="spr-high", userSourcedId="spr-student-4", role="student"),
        ),
        {tables.enrollments: {"new"}},
    ),
    "a new enrollment brings a role at its school": (
        alone(
            only("enrollments"),
            with_row("enrollments", sourcedId="new", classSourcedId="spr-class/stats@1", schoolSourcedId="spr-high",
                     userSourcedId="spr-student-1", role="student"),
        ),
        # The label of the student is another one, so the users who name the student show or hide that for others.
        {
            tables.enrollments: {"new"},
            tables.users: {"spr-student-1", "spr-guardian-1", "spr-parent-1"},
            tables.demographics: {"spr-student-1"},
        },
    ),
    "gone": (
        alone(only("demographics", "spr-student-4"), cell_of("demographics", "spr-student-4", "status", "tobedeleted")),
        {tables.demographics: {"spr-student-4"}},
    ),
    "a role goes with the enrollment that brought it": (
        alone(only("enrollments", "spr-enr-17"), cell_of("enrollments", "spr-enr-17", "status", "tobedeleted")),
        {
            tables.enrollments: {"spr-enr-17"},
            tables.users: {"spr-student-6"},
            tables.demographics: {"spr-student-6"},
        },
    ),
    "gone, and never known": (
        alone(only("demographics"), with_row("demographics", sourcedId="nobody", status="tobedeleted")),
        {},
    ),
    "an administrator at a stored school": (
        alone(only("users", "spr-admin-school"), cell_of("users", "spr-admin-school", "givenName", "Anna")),
        {tables.users: {"spr-admin-school"}},
    ),
    "a new district above a stored school": (
        alone(
            only("orgs", "spr-high"),
            with_row("orgs", sourcedId="new", name="East", type="district"),
            cell_of("orgs", "spr-high", "parentSourcedId", "new"),
        ),
        {tables.orgs: {"new", "spr-district", "spr-high", "spr-high-science"}, tables.courses: {"spr-course-chem"}},
    ),
    "an old date of its own": (
        alone(
            only("users", "spr-student-1"),
            cell_of("users", "spr-student-1", "givenName", "Zoey"),
            cell_of("users", "spr-student-1", "dateLastModified", "2001-01-01T00:00:00.000Z"),
        ),
        {tables.users: {"spr-student-1"}},
    ),
    "beside files in bulk": (
        both(
            only("users", "spr-student-1"),
            cell_of("users", "spr-student-1", "givenName", "Zoey"),
            rows_of("enrollments", lambda rows: rows.__delitem__(1)),
        ),
        {tables.users: {"spr-student-1"}, tables.enrollments: {"spr-enr-01"}},
    ),
}  # fmt: skip


@pytest.mark.parametrize(("bend", "wanted"), CASES.values(), ids=CASES)
def test_deltas(engine: sa.Engine, springfield: Path, bend: Bend, wanted: dict[sa.Table, set[str]]) -> None:
    load_first(engine, "feed", springfield)
    before = state(engine)
    bend(springfield)
    report = load(engine, "feed", springfield)
    assert (report.rejected, report.outcome) == (0, "done" if wanted else "unchanged")
    for table in tables.ROSTER_TABLES:
        assert stamped(engine, table, report.stamp) == wanted.get(table, set()), table.name
    after = state(engine)
    owners = dict.fromkeys(PARTS, tables.users)
    for table, rows in before.items():
        changed = wanted.get(owners.get(table, table), set())
        for key, row in rows.items():
            if (key if isinstance(key, str) else key[0]) not in changed:
                assert after[table][key] == row
    assert load(engine, "feed", springfield).outcome == "unchanged"


# The export in bulk of before, the days of a later delta, that of its second student, and the notice of the delta.
ORDERS: dict[str, tuple[Bend, tuple[str, ...], str, str]] = {
    "like the days with the day first of the export in bulk": (
        cell_of("demographics", "spr-student-1", "birthDate", "16/5/2011"),
        ("3/4/2011",), "2011-04-03", SAME_DAY_FIRST.taken
    ),
    "like the days with the month first of the export in bulk": (
        cell_of("demographics", "spr-student-1", "birthDate", "5/16/2011"), ("3/4/2011",), "2011-03-04", US_DAY.taken
    ),
    "after days without slashes": (both(), ("3/4/2011",), "2011-03-04", US_DAY.taken),
    "after days with the day first in another column": (
        cell_of("enrollments", "spr-enr-01", "beginDate", "16/5/2011"), ("3/4/2011",), "2011-03-04", US_DAY.taken
    ),
    "as another day of the delta shows": (
        cell_of("demographics", "spr-student-1", "birthDate", "16/5/2011"),
        ("3/4/2011", "5/16/2011"), "2011-03-04", US_DAY.taken
    ),
}  # fmt: skip


def only_days(*days: str) -> Bend:
    """A delta with the birth dates of students, the first of them of the second student."""
    students = [f"spr-student-{number}" for number, _ in enumerate(days, 2)]
    cells = (cell_of("demographics", it, "birthDate", day) for it, day in zip(students, days, strict=True))
    return alone(only("demographics", *students), *cells)


@pytest.mark.parametrize(("bulk", "days", "wanted", "words"), ORDERS.values(), ids=ORDERS)
def test_a_delta_whose_days_show_no_order_has_that_of_the_last_export(
    engine: sa.Engine, springfield: Path, bulk: Bend, days: tuple[str, ...], wanted: str, words: str
) -> None:
    bulk(springfield)
    load(engine, "feed", springfield)
    only_days(*days)(springfield)
    report = load(engine, "feed", springfield)
    assert str(snapshot(engine, tables.demographics)["spr-student-2"]["birth_date"]) == wanted
    [said] = [it for it in report.notices if "birthDate" in it]
    assert words in said


def test_an_order_of_days_is_kept_until_another_one_is_read(
    engine: sa.Engine, springfield: Path, tmp_path: Path
) -> None:
    """Each row: an export, and the birth date of the second student after it."""
    born = cell_of("demographics", "spr-student-1", "birthDate", "16/5/2011")
    exports: list[tuple[Bend, Options, str]] = [
        (born, Options(), "2011-12-31"),
        (alone(only("users", "spr-student-1")), Options(), "2011-12-31"),
        (only_days("2011-01-02"), Options(), "2011-01-02"),
        (only_days("7/8/2011", "8/16/2011"), Options(dry_run=True), "2011-01-02"),
        (only_days("3/4/2011"), Options(), "2011-04-03"),
        (only_days("3/5/2011"), Options(), "2011-05-03"),
        # The days of a file in bulk are all of the column.
        (cell_of("demographics", "spr-student-2", "birthDate", "3/5/2011"), Options(), "2011-03-05"),
        (only_days("3/6/2011"), Options(), "2011-03-06"),
    ]
    for number, (bend, options, wanted) in enumerate(exports):
        export = tmp_path / str(number)
        shutil.copytree(springfield, export)
        both(cell_of("demographics", "spr-student-2", "birthDate", "2011-12-31"), bend)(export)
        load(engine, "feed", export, options=options)
        stored = snapshot(engine, tables.demographics)["spr-student-2"]["birth_date"]
        assert (number, str(stored)) == (number, wanted)


def test_what_a_delta_says_of_the_gone(engine: sa.Engine, springfield: Path) -> None:
    """A record that a delta removed comes back in a later one; a reference to it falls meanwhile."""
    load_first(engine, "feed", springfield)
    gone = both(
        only("users", "spr-aide-1"),
        cell_of("users", "spr-aide-1", "status", "tobedeleted"),
        only("enrollments", "spr-enr-08"),
    )
    alone(gone)(springfield)
    report = load(engine, "feed", springfield)
    gone = Counts(tombstoned=1)
    assert {name: replace(count, unchanged=0, rejected=0) for name, count in report.counts.items() if count.any} == {
        "users": gone,
        "enrollments": gone,
    }
    assert report.counts["enrollments"].rejected == 1
    assert "names a row of users.csv that is marked as gone" in describe(report.findings)
    cell_of("users", "spr-aide-1", "status", "active")(springfield)
    assert written(load(engine, "feed", springfield)) == {"users": Counts(revived=1), "enrollments": Counts(revived=1)}


def test_an_org_of_another_feed_in_a_delta_is_rejected_alone(
    engine: sa.Engine, springfield: Path, shelbyville: Path
) -> None:
    load_first(engine, "springfield", springfield)
    load(engine, "shelbyville", shelbyville)
    alone(only("orgs"), with_row("orgs", sourcedId="spr-high", name="Mine", type="school"))(shelbyville)
    report = load(engine, "shelbyville", shelbyville, options=Options(dry_run=True))
    assert "column sourcedId: belongs to the feed springfield" in describe(report.findings)


def test_a_delta_into_an_empty_roster(engine: sa.Engine, springfield: Path) -> None:
    """Nothing is there for its rows to name."""
    alone(only("enrollments", "spr-enr-01"), only("orgs", "spr-district"))(springfield)
    report = load(engine, "feed", springfield, options=Options(allow_mass_delete=True))
    assert (report.counts["orgs"].added, report.counts["enrollments"].rejected) == (1, 1)
    assert set(snapshot(engine, tables.enrollments)) == set()


def test_users_of_1_2_keep_their_roles(engine: sa.Engine, shelbyville: Path) -> None:
    load_first(engine, "feed", shelbyville)
    before = snapshot(engine, tables.user_roles), snapshot(engine, tables.user_profiles)
    both(
        only("users", "shv-student-1"),
        cell_of("users", "shv-student-1", "givenName", "Zoey"),
        *(both(declared(name, "absent"), without_file(f"{name}.csv")) for name in ("roles", "userProfiles")),
    )(shelbyville)
    report = load(engine, "feed", shelbyville)
    assert written(report) == {"users": Counts(changed=1)}
    assert (snapshot(engine, tables.user_roles), snapshot(engine, tables.user_profiles)) == before


def test_a_circle_through_a_record_that_stands(engine: sa.Engine, springfield: Path) -> None:
    """A delta puts the district below its own school, which it does not name."""
    load_first(engine, "feed", springfield)
    before = state(engine)
    alone(only("orgs", "spr-district"), cell_of("orgs", "spr-district", "parentSourcedId", "spr-high"))(springfield)
    report = load(engine, "feed", springfield)
    words = "orgs.csv, line 2, column parentSourcedId: leads back to the row itself (found 'spr-high')"
    assert describe(report.findings) == words
    assert (report.outcome, state(engine)) == ("unchanged", before)


def test_a_circle_through_a_rejected_row(engine: sa.Engine, springfield: Path) -> None:
    """In bulk, the school's own row would have moved it elsewhere; as it is refused, the school stays where it is."""
    load_first(engine, "feed", springfield)
    before = state(engine)
    both(
        cell_of("orgs", "spr-district", "parentSourcedId", "spr-high"),
        cell_of("orgs", "spr-high", "parentSourcedId", ""),
        cell_of("orgs", "spr-high", "type", "x"),
    )(springfield)
    report = load(engine, "feed", springfield)
    assert report.counts["orgs"].rejected == 2
    assert (report.outcome, state(engine)) == ("unchanged", before)


def test_a_row_marked_as_gone_is_in_no_circle(engine: sa.Engine, springfield: Path) -> None:
    """Of such a row nothing but its status is read. The school above it loses a child, and a user a role there."""
    load_first(engine, "feed", springfield)
    alone(
        only("orgs", "spr-high-science"),
        cell_of("orgs", "spr-high-science", "parentSourcedId", "spr-high-science"),
        cell_of("orgs", "spr-high-science", "status", "tobedeleted"),
    )(springfield)
    counts = {"orgs": Counts(changed=1, tombstoned=1), "users": Counts(changed=1)}
    assert written(load(engine, "feed", springfield)) == counts


def test_users_of_1_2_come_back_with_their_roles(engine: sa.Engine, shelbyville: Path) -> None:
    """Of the roles, a delta without roles.csv says that they are as they were."""
    load_first(engine, "feed", shelbyville)
    before = snapshot(engine, tables.user_roles), snapshot(engine, tables.user_profiles)
    both(
        only("users", "shv-student-1"),
        cell_of("users", "shv-student-1", "status", "tobedeleted"),
        *(both(declared(name, "absent"), without_file(f"{name}.csv")) for name in ("roles", "userProfiles")),
    )(shelbyville)
    alone()(shelbyville)
    # Two others name them as an agent.
    assert written(load(engine, "feed", shelbyville))["users"] == Counts(changed=2, tombstoned=1)
    cell_of("users", "shv-student-1", "status", "active")(shelbyville)
    assert written(load(engine, "feed", shelbyville))["users"] == Counts(revived=1)
    assert (snapshot(engine, tables.user_roles), snapshot(engine, tables.user_profiles)) == before

"""Rows that are rejected one by one: what falls with them, what stands, and what is loaded beside them."""

from __future__ import annotations

from pathlib import Path

import pytest
import sqlalchemy as sa

from roster_service.db import tables
from sync_scripts.engine.load import load
from sync_scripts.purge import purge
from tests.postgres.loaded import load_first
from tests.sync.conftest import describe, empty_roster, snapshot, state
from tests.sync.export_changes import Bend, both, cell_of, declared, repeat_row, with_row, without_file, without_rows


def ids_of_class(folder: Path, identifier: str) -> set[str]:
    lines = (folder / "enrollments.csv").read_text().splitlines()
    return {line.split(",")[0] for line in lines if identifier in line.split(",")}


def test_rows_that_name_a_rejected_row_are_rejected_too(engine: sa.Engine, springfield: Path) -> None:
    """To the end: the course, its class, the enrollments in the class; and nothing else."""
    enrollments = ids_of_class(springfield, "spr-class/stats@1")
    cell_of("courses", "spr-course-stats", "title", "")(springfield)
    report = load(engine, "feed", springfield)
    assert set(snapshot(engine, tables.courses)) == {"spr-course-math3", "spr-course-chem", "spr-course-homeroom"}
    assert "spr-class/stats@1" not in snapshot(engine, tables.classes)
    assert len(enrollments) > 1
    assert not enrollments & set(snapshot(engine, tables.enrollments))
    assert report.counts["enrollments"].rejected == len(enrollments)
    assert "names a row of classes.csv that is rejected (found 'spr-class/stats@1')" in describe(report.findings)
    assert report.rejected == report.findings.total == 2 + len(enrollments)
    assert load(engine, "feed", springfield).outcome == "unchanged"


# On a loaded roster: nothing of these moves, for the record behind the rejected row stands.
RETAINED: dict[str, Bend] = {
    "a flag of a user with a class, an agent and demographics": cell_of("users", "spr-student-1", "enabledUser", "x"),
    "the name of a school": cell_of("orgs", "spr-high", "name", ""),
    "the type of the district": cell_of("orgs", "spr-district", "type", "planet"),
    "a school year": cell_of("academicSessions", "spr-2027", "startDate", "soon"),
    "a course": cell_of("courses", "spr-course-chem", "title", ""),
    "a class": cell_of("classes", "spr-class-chem-1", "termSourcedIds", "never"),
    "an enrollment": cell_of("enrollments", "spr-enr-17", "role", "x"),
    "demographics": cell_of("demographics", "spr-student-1", "birthDate", "x"),
}


@pytest.mark.parametrize("bend", RETAINED.values(), ids=RETAINED)
def test_the_record_of_a_rejected_row_is_retained(engine: sa.Engine, springfield: Path, bend: Bend) -> None:
    load_first(engine, "feed", springfield)
    before = state(engine)
    bend(springfield)
    report = load(engine, "feed", springfield)
    assert (report.outcome, report.rejected, report.findings.total) == ("unchanged", 1, 1)
    assert state(engine) == before


# The rows of which none counts: a file, an id that it has, and what the second row says.
DOUBLED: dict[str, Bend] = {
    "a course": repeat_row("courses", "spr-course-chem", title="Another"),
    "a class": repeat_row("classes", "spr-class-chem-1", title="Another"),
    "a user": repeat_row("users", "spr-student-1", givenName="Another"),
    "an enrollment": repeat_row("enrollments", "spr-enr-17", role="teacher"),
    "demographics": repeat_row("demographics", "spr-student-1", sex="male"),
    "once gone": repeat_row("users", "spr-student-1", status="tobedeleted"),
    "once bad": repeat_row("users", "spr-student-1", enabledUser="x"),
}


@pytest.mark.parametrize("bend", DOUBLED.values(), ids=DOUBLED)
def test_of_rows_with_one_id_none_counts_and_the_record_is_retained(
    engine: sa.Engine, springfield: Path, bend: Bend
) -> None:
    """What names it stands, and what else the export says is loaded."""
    load_first(engine, "feed", springfield)
    before = state(engine)
    both(bend, cell_of("orgs", "spr-high", "name", "Renamed"))(springfield)
    report = load(engine, "feed", springfield)
    found = report.findings.first
    assert [it.reason for it in found] == [
        f"stands in more than one row, also in line {it.line}" for it in reversed(found)
    ]
    assert (report.rejected, report.counts["orgs"].changed) == (2, 1)
    after = state(engine)
    assert after.pop(tables.orgs) != before.pop(tables.orgs)
    assert after == before


def test_of_a_row_that_is_marked_as_deleted_only_the_id_is_checked(engine: sa.Engine, springfield: Path) -> None:
    load_first(engine, "feed", springfield)
    both(
        cell_of("demographics", "spr-student-4", "birthDate", "x"),
        cell_of("demographics", "spr-student-4", "status", "tobedeleted"),
        with_row("demographics", sourcedId="", status="tobedeleted"),
    )(springfield)
    report = load(engine, "feed", springfield)
    assert [(it.column, it.reason) for it in report.findings.first] == [("sourcedId", "must not be empty")]
    assert snapshot(engine, tables.demographics)["spr-student-4"]["status"] == "tobedeleted"


def test_a_new_record_of_two_rows_waits_with_what_names_it(engine: sa.Engine, springfield: Path) -> None:
    whole = (springfield / "users.csv").read_bytes()
    repeat_row("users", "spr-student-4", givenName="Another")(springfield)
    report = load(engine, "feed", springfield)
    assert (report.counts["users"].rejected, report.counts["demographics"].rejected) == (2, 1)
    (springfield / "users.csv").write_bytes(whole)
    assert load(engine, "feed", springfield).counts["users"].added == 1


ROLES: dict[str, Bend] = {
    "a role": cell_of("roles", "shv-role-09", "role", "x"),
    "a profile": cell_of("userProfiles", "shv-profile-2", "vendorId", ""),
    "a user": cell_of("users", "shv-student-1", "enabledUser", "x"),
    "a role twice": repeat_row("roles", "shv-role-09", role="aide"),
    "a profile twice": repeat_row("userProfiles", "shv-profile-2", vendorId="another"),
}


@pytest.mark.parametrize("bend", ROLES.values(), ids=ROLES)
def test_a_user_keeps_the_parts_of_a_rejected_row(engine: sa.Engine, shelbyville: Path, bend: Bend) -> None:
    load_first(engine, "feed", shelbyville)
    before = state(engine)
    bend(shelbyville)
    report = load(engine, "feed", shelbyville)
    assert (report.outcome, report.counts["users"].rejected > 0) == ("unchanged", True)
    assert state(engine) == before


def test_a_row_that_names_the_record_of_a_rejected_row_is_loaded(engine: sa.Engine, springfield: Path) -> None:
    """Beside it in its file, another row names nothing at all."""
    load_first(engine, "feed", springfield)
    before = state(engine)
    both(
        cell_of("orgs", "spr-high", "name", ""),
        cell_of("classes", "spr-class-math3-a", "schoolSourcedId", "nothing"),
    )(springfield)
    report = load(engine, "feed", springfield)
    assert (report.counts["orgs"].rejected, report.counts["classes"].rejected, report.rejected) == (1, 1, 2)
    assert state(engine) == before


def test_other_rows_are_loaded(engine: sa.Engine, springfield: Path) -> None:
    """Beside a rejected row: one changed, one gone, one new; one gone that the rejected row names."""
    load_first(engine, "feed", springfield)
    both(
        cell_of("users", "spr-student-1", "enabledUser", "x"),
        cell_of("users", "spr-student-2", "givenName", "Con"),
        without_rows("demographics", "spr-student-4"),
        with_row("orgs", sourcedId="new", name="New", type="school"),
    )(springfield)
    report = load(engine, "feed", springfield)
    counts = report.counts
    assert (counts["users"].changed, counts["demographics"].tombstoned, counts["orgs"].added) == (1, 1, 1)
    assert (counts["users"].rejected, counts["users"].unchanged) == (1, 14)


def test_a_mended_row_is_loaded(engine: sa.Engine, springfield: Path) -> None:
    good = (springfield / "users.csv").read_bytes()
    cell_of("users", "spr-aide-1", "enabledUser", "x")(springfield)
    first = load(engine, "feed", springfield)
    assert (first.counts["users"].added, first.counts["enrollments"].added) == (14, 16)
    (springfield / "users.csv").write_bytes(good)
    second = load(engine, "feed", springfield)
    assert (second.counts["users"].added, second.counts["enrollments"].added, second.rejected) == (1, 1, 0)


def test_a_tombstone_is_no_good_state(engine: sa.Engine, springfield: Path) -> None:
    """What names the rejected row of a record that is gone falls too."""
    load_first(engine, "feed", springfield)
    good = {name: (springfield / name).read_bytes() for name in ("demographics.csv", "enrollments.csv", "users.csv")}
    both(
        without_rows("users", "spr-student-5"),
        without_rows("demographics", "spr-student-5"),
        without_rows("enrollments", *ids_of_class(springfield, "spr-student-5")),
    )(springfield)
    load(engine, "feed", springfield)
    for name, data in good.items():
        (springfield / name).write_bytes(data)
    cell_of("users", "spr-student-5", "enabledUser", "x")(springfield)
    report = load(engine, "feed", springfield)
    assert report.outcome == "unchanged"
    assert report.counts["demographics"].rejected == 1
    assert snapshot(engine, tables.users)["spr-student-5"]["status"] == "tobedeleted"


def list_deleted(engine: sa.Engine, table: sa.Table) -> set[str]:
    return {key for key, row in snapshot(engine, table).items() if row["status"] == "tobedeleted"}


def test_the_enrollments_of_a_leaver_end_with_the_leaver(engine: sa.Engine, springfield: Path) -> None:
    """The export still has them, and the demographics too; the purge then removes all of them."""
    load_first(engine, "feed", springfield)
    enrollments = ids_of_class(springfield, "spr-student-5")
    without_rows("users", "spr-student-5")(springfield)
    report = load(engine, "feed", springfield)
    assert report.counts["enrollments"].rejected == report.counts["enrollments"].tombstoned == len(enrollments) > 0
    assert list_deleted(engine, tables.enrollments) == enrollments
    assert list_deleted(engine, tables.users) == list_deleted(engine, tables.demographics) == {"spr-student-5"}
    assert load(engine, "feed", springfield).outcome == "unchanged"
    purged = purge(engine, retention_days=0)
    assert (purged["users"], purged["enrollments"], purged["demographics"]) == (1, len(enrollments), 1)


def test_the_demographics_of_a_leaver_end_without_their_file(engine: sa.Engine, springfield: Path) -> None:
    load_first(engine, "feed", springfield)
    both(
        without_rows("users", "spr-student-5"),
        without_rows("enrollments", *ids_of_class(springfield, "spr-student-5")),
        declared("demographics", "absent"),
        without_file("demographics.csv"),
    )(springfield)
    report = load(engine, "feed", springfield)
    assert (report.rejected, report.counts["demographics"].tombstoned) == (0, 1)
    assert list_deleted(engine, tables.demographics) == {"spr-student-5"}


def test_the_classes_of_a_closed_school_end_with_it(engine: sa.Engine, springfield: Path) -> None:
    """And with them their enrollments, although nothing but the row of the school is gone from the export."""
    load_first(engine, "feed", springfield)
    classes = {key for key, row in snapshot(engine, tables.classes).items() if row["school_id"] == "spr-high"}
    enrollments = {key for key, row in snapshot(engine, tables.enrollments).items() if row["class_id"] in classes}
    assert classes
    assert enrollments
    without_rows("orgs", "spr-high")(springfield)
    load(engine, "feed", springfield)
    assert list_deleted(engine, tables.classes) == classes
    assert list_deleted(engine, tables.enrollments) >= enrollments
    assert load(engine, "feed", springfield).outcome == "unchanged"


def test_the_enrollments_of_a_class_without_its_course_are_rejected_with_it(
    engine: sa.Engine, springfield: Path
) -> None:
    """Their lines and that of the class did not change, and the report is that of a first load of the export."""
    load_first(engine, "feed", springfield)
    enrollments = ids_of_class(springfield, "spr-class/stats@1")
    without_rows("courses", "spr-course-stats")(springfield)
    report = load(engine, "feed", springfield)
    rejected = {name: count.rejected for name, count in report.counts.items() if count.rejected}
    assert rejected == {"classes": 1, "enrollments": len(enrollments)}
    assert [(it.file, it.consequences) for it in report.findings.causes] == [("classes.csv", len(enrollments))]
    assert list_deleted(engine, tables.enrollments) == enrollments
    empty_roster(engine)
    assert load(engine, "feed", springfield).findings == report.findings


def test_a_space_before_an_id_is_no_part_of_it(engine: sa.Engine, springfield: Path) -> None:
    load_first(engine, "feed", springfield)
    before = state(engine)
    cell_of("demographics", "spr-student-1", "sourcedId", " spr-student-1")(springfield)
    report = load(engine, "feed", springfield)
    assert (report.outcome, report.rejected) == ("unchanged", 0)
    assert state(engine) == before


def test_root_causes_come_before_their_consequences(engine: sa.Engine, springfield: Path) -> None:
    """A course, its class, and the enrollments in the class; a user, and the enrollment of the user. The database has
    each reason with its cause, and the causes with the number of their consequences."""
    of_class, of_user = ids_of_class(springfield, "spr-class/stats@1"), ids_of_class(springfield, "spr-aide-1")
    assert of_class
    assert of_user - of_class
    both(cell_of("courses", "spr-course-stats", "title", ""), cell_of("users", "spr-aide-1", "enabledUser", "x"))(
        springfield
    )
    report = load(engine, "feed", springfield)
    causes = {(it.file, it.column, it.rows): it.consequences for it in report.findings.causes}
    assert causes[("courses.csv", "title", 1)] == 1 + len(of_class)
    assert causes[("users.csv", "enabledUser", 1)] == len(of_user - of_class)
    assert [it.is_consequence for it in report.findings.first] == [False] * 2 + [True] * (report.rejected - 2)
    assert {it.sourced_id for it in report.findings.first if it.file == "enrollments.csv"} == of_class | of_user
    with engine.connect() as connection:
        run = connection.execute(sa.select(tables.sync_runs)).one()
        stored = connection.execute(sa.select(tables.sync_rejections).order_by(tables.sync_rejections.c.number)).all()
    assert run.causes == [cause.to_json() for cause in report.findings.causes]
    for row, found in zip(stored, report.findings.first, strict=True):
        assert (row.file, row.line, row.sourced_id) == (found.file, found.line, found.sourced_id)
        assert (row.cause, row.is_consequence) == (found.cause, found.is_consequence)
        assert row.is_consequence == (run.causes[row.cause]["file"] not in row.file)

"""Exports without courses.csv: their classes get courses."""

from __future__ import annotations

from pathlib import Path

import pytest
import sqlalchemy as sa

from roster_service.db import tables
from sync_scripts.engine.load import Options, load
from sync_scripts.formats.tolerated import KEPT_COURSE, NO_COURSES, Tolerated
from sync_scripts.reading.rejections import RefusedExportError
from tests.postgres.loaded import load_first
from tests.sync.conftest import read_refusal, snapshot
from tests.sync.export_changes import Bend, both, cell, column, declared, repeat_row, without_file, without_rows

ABSENT = both(declared("courses", "absent"), without_file("courses.csv"))
MISSING: dict[str, Bend] = {
    "absent": ABSENT,
    "missing": without_file("courses.csv"),
    "no manifest": both(without_file("courses.csv"), without_file("manifest.csv")),
}
ALLOW = Options(allow_mass_delete=True)


def list_active(engine: sa.Engine) -> dict[str, str]:
    """The title of each active course, by its id."""
    rows = snapshot(engine, tables.courses).items()
    return {key: row["title"] for key, row in rows if row["status"] == "active"}


@pytest.mark.parametrize("bend", MISSING.values(), ids=MISSING)
def test_each_course_that_classes_name_is_made(engine: sa.Engine, each_export: Path, bend: Bend) -> None:
    bend(each_export)
    report = load(engine, "feed", each_export)
    assert report.outcome == "done"
    assert [it for it in report.notices if it.startswith(f"courses.csv: {NO_COURSES.taken}")]
    classes = snapshot(engine, tables.classes).values()
    courses = snapshot(engine, tables.courses)
    assert set(courses) == {row["course_id"] for row in classes}
    for row in courses.values():
        mine = [it for it in classes if it["course_id"] == row["sourced_id"]]
        assert row["title"] in {it["title"] for it in mine}
        assert row["org_id"] in {it["school_id"] for it in mine}


def test_a_class_that_names_no_course_gets_its_own(engine: sa.Engine, springfield: Path) -> None:
    both(column("classes", "courseSourcedId", ""), ABSENT)(springfield)
    load(engine, "feed", springfield)
    classes = snapshot(engine, tables.classes)
    wanted = {f"feed:class-course:{key}": row["title"] for key, row in classes.items()}
    assert list_active(engine) == wanted
    assert {row["course_id"] for row in classes.values()} == set(wanted)


def test_the_same_export_again_changes_nothing(engine: sa.Engine, springfield: Path) -> None:
    both(column("classes", "courseSourcedId", ""), ABSENT)(springfield)
    load(engine, "feed", springfield)
    skipped = load(engine, "feed", springfield)
    assert skipped.counts["courses"].unchanged == len(list_active(engine))
    cell("users", 2, "givenName", "Zora")(springfield)
    report = load(engine, "feed", springfield)
    assert {name for name, count in report.counts.items() if count.written or count.tombstoned} == {"users"}


def test_a_run_without_the_file_keeps_the_courses(engine: sa.Engine, springfield: Path) -> None:
    load_first(engine, "feed", springfield)
    before = list_active(engine)
    ABSENT(springfield)
    assert load(engine, "feed", springfield).outcome == "unchanged"
    assert list_active(engine) == before


# The course that a class names in an export without courses.csv -> that of the class after the run.
NAMED = {
    "no course": ("", "spr-course-math3"),
    "one that is nowhere": ("nowhere", "spr-course-math3"),
    "one of the feed": ("spr-course-chem", "spr-course-chem"),
}


@pytest.mark.parametrize(("named", "after"), NAMED.values(), ids=NAMED)
def test_a_class_keeps_the_course_that_was_exported(
    engine: sa.Engine, springfield: Path, named: str, after: str
) -> None:
    load_first(engine, "feed", springfield)
    courses = (springfield / "courses.csv").read_bytes()
    before = list_active(engine)
    cell("classes", 2, "courseSourcedId", named)(springfield)
    without_file("courses.csv")(springfield)
    said = str(Tolerated("classes.csv", KEPT_COURSE, "courseSourcedId", 1))
    for name in ("Zora", "Zita"):
        cell("users", 2, "givenName", name)(springfield)
        report = load(engine, "feed", springfield)
        assert (said in report.notices, report.rejected) == (named != after, 0)
        assert list_active(engine) == before
        assert snapshot(engine, tables.classes)["spr-class-math3-a"]["course_id"] == after
    (springfield / "courses.csv").write_bytes(courses + b"nowhere,,,,Nowhere,,,spr-high,,\n")
    assert load(engine, "feed", springfield).rejected == (not named)
    last = snapshot(engine, tables.classes)["spr-class-math3-a"]["course_id"]
    assert last == (named or after)


def test_a_class_does_not_keep_a_made_course(engine: sa.Engine, springfield: Path) -> None:
    ABSENT(springfield)
    load(engine, "feed", springfield)
    cell("classes", 2, "courseSourcedId", "new")(springfield)
    assert not any(KEPT_COURSE.taken in it for it in load(engine, "feed", springfield).notices)
    assert snapshot(engine, tables.classes)["spr-class-math3-a"]["course_id"] == "new"


def test_exported_courses_replace_made_ones(engine: sa.Engine, springfield: Path) -> None:
    good = {path.name: path.read_bytes() for path in springfield.iterdir()}
    both(column("classes", "courseSourcedId", ""), ABSENT)(springfield)
    load(engine, "feed", springfield)
    for name, data in good.items():
        (springfield / name).write_bytes(data)
    assert load(engine, "feed", springfield, options=ALLOW).rejected == 0
    assert not any(key.startswith("feed:") for key in list_active(engine))


def test_a_bad_class_is_rejected_and_gets_no_course(engine: sa.Engine, springfield: Path) -> None:
    both(
        cell("classes", 2, "schoolSourcedId", "nowhere"),
        cell("classes", 3, "title", ""),
        repeat_row("classes", "spr-class-chem-1", courseSourcedId="another"),
        ABSENT,
    )(springfield)
    report = load(engine, "feed", springfield, options=ALLOW)
    assert {it.file for it in report.findings.causes} == {"classes.csv"}
    assert {row["course_id"] for row in snapshot(engine, tables.classes).values()} == set(list_active(engine))


def test_a_file_without_rows_is_still_refused(shared_engine: sa.Engine, springfield: Path) -> None:
    without_rows("courses")(springfield)
    assert "courses.csv: has no rows" in read_refusal(shared_engine, springfield)


def test_a_strict_run_wants_the_file(shared_engine: sa.Engine, springfield: Path) -> None:
    ABSENT(springfield)
    with pytest.raises(RefusedExportError):
        load(shared_engine, "feed", springfield, options=Options(strict=True, dry_run=True))

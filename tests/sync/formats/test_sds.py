"""School Data Sync CSV: what its files say in OneRoster, and where they are refused or rejected."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import sqlalchemy as sa

from roster_service.db import tables
from sync_scripts.applying.changes import Counts
from sync_scripts.engine.load import Options, load
from sync_scripts.formats.tolerated import NO_TARGET, Tolerated
from sync_scripts.reading.registry import SDS
from tests.postgres.loaded import load_first
from tests.sync.conftest import snapshot, state
from tests.sync.export_changes import (
    Bend,
    both,
    cell,
    rows_of,
    shuffled,
    with_row,
    without_column,
    without_file,
    without_rows,
)

FEED = "northhaven"
ANYTHING = Options(allow_mass_delete=True)


@pytest.fixture
def sds(copy_export: Callable[[str], Path]) -> Path:
    """A copy of the small SDS export."""
    return copy_export("northhaven-sds")


def test_loads_and_loads_again(engine: sa.Engine, sds: Path) -> None:
    report = load_first(engine, FEED, sds, family=SDS)
    assert (report.outcome, report.format, report.findings.total) == ("done", "sds v2.1", 0)
    before = state(engine)
    for file in ("users", "roles", "enrollments", "relationships"):
        shuffled(file)(sds)
    assert load(engine, FEED, sds, family=SDS).outcome == "unchanged"
    assert state(engine) == before


def test_orgs_sessions_and_classes(engine: sa.Engine, sds: Path) -> None:
    load_first(engine, FEED, sds, family=SDS)
    orgs = {
        key: (row["type"], row["parent_id"], row["district_id"]) for key, row in snapshot(engine, tables.orgs).items()
    }
    assert orgs == {"nh": ("district", None, "nh"), "nh-1": ("school", "nh", "nh"), "nh-2": ("school", "nh", "nh")}
    sessions = {key: row["type"] for key, row in snapshot(engine, tables.academic_sessions).items()}
    assert sessions == {"year": "schoolYear", "fall": "semester", "spring": "ext:trimester"}
    courses = snapshot(engine, tables.courses)
    made = f"{FEED}:class-course:c2"
    assert {key: row["title"] for key, row in courses.items()} == {"alg": "Algebra", made: "Room 2"}
    assert (courses["alg"]["subjects"], courses["alg"]["grades"]) == (["mathematics"], ["09"])
    classes = snapshot(engine, tables.classes)
    assert {key: (row["course_id"], row["school_id"]) for key, row in classes.items()} == {
        "c1": ("alg", "nh-2"),
        "c2": (made, "nh-1"),
    }
    assert {key: row["term_ids"] for key, row in classes.items()} == {"c1": ["fall", "spring"], "c2": None}


def test_people(engine: sa.Engine, sds: Path) -> None:
    load_first(engine, FEED, sds, family=SDS)
    users = snapshot(engine, tables.users)
    assert {key: (row["given_name"], row["family_name"], row["grades"]) for key, row in users.items()} == {
        "u1": ("Amina", "Diallo", ["09"]),
        "u2": ("li", "li", ["02"]),
        "u3": ("Tess", "O'Hara", None),
        "u4": ("Hugo", "Head", None),
        "u5": ("Fatou", "Diallo", None),
    }
    roles = {
        (key[0], row["org_id"], row["role"]): row["role_type"]
        for key, row in snapshot(engine, tables.user_roles).items()
    }
    assert roles == {
        ("u1", "nh-2", "student"): "primary",
        ("u2", "nh-1", "student"): "primary",
        ("u3", "nh-1", "teacher"): "primary",
        ("u3", "nh-2", "teacher"): "primary",
        ("u4", "nh", "districtAdministrator"): "primary",
        ("u4", "nh-1", "ext:nurse"): "primary",
        ("u4", "nh-1", "siteAdministrator"): "secondary",
        ("u5", "nh-2", "parent"): "primary",
    }
    agents = {(key[0], row["agent_id"]) for key, row in snapshot(engine, tables.user_agents).items()}
    assert agents == {("u1", "u5"), ("u5", "u1")}


def test_enrollments_and_demographics(engine: sa.Engine, sds: Path) -> None:
    load_first(engine, FEED, sds, family=SDS)
    enrollments = snapshot(engine, tables.enrollments).values()
    assert sorted((row["class_id"], row["user_id"], row["role"], row["school_id"]) for row in enrollments) == [
        ("c1", "u1", "student", "nh-2"),
        ("c1", "u3", "teacher", "nh-2"),
        ("c2", "u2", "student", "nh-1"),
        ("c2", "u3", "teacher", "nh-1"),
    ]
    people = snapshot(engine, tables.demographics)
    assert (people["u1"]["black_or_african_american"], people["u1"]["white"], people["u1"]["asian"]) == (
        True,
        True,
        None,
    )
    assert (people["u1"]["city_of_birth"], str(people["u1"]["birth_date"])) == ("Dakar", "2012-05-01")
    assert people["u2"]["hispanic_or_latino_ethnicity"]


TAKEN: dict[str, Bend] = {
    "no contacts": without_file("relationships.csv"),
    "no demographics": without_file("demographics.csv"),
    "no classes": both(without_file("classes.csv"), without_file("enrollments.csv")),
    "no dates of roles": without_column("roles", "roleEndDate"),
    "columns in another order": rows_of("users", lambda rows: [row.reverse() for row in rows]),
    "flags in capitals": cell("roles", 2, "isPrimary", "TRUE"),
}


@pytest.mark.parametrize("bend", TAKEN.values(), ids=TAKEN)
def test_taken(engine: sa.Engine, sds: Path, bend: Bend) -> None:
    bend(sds)
    report = load(engine, FEED, sds, family=SDS)
    assert (report.counts["users"].added, report.findings.total) == (5, 0)


def test_without_courses_those_of_earlier_exports_stay(engine: sa.Engine, sds: Path) -> None:
    """Also one that no class names. A class without a course still gets one of its own."""
    with_row("courses", sourcedId="art", orgSourcedId="nh", title="Art")(sds)
    load(engine, FEED, sds, family=SDS)
    before = state(engine)
    without_file("courses.csv")(sds)
    report = load(engine, FEED, sds, family=SDS)
    assert (report.counts["courses"].tombstoned, report.counts["classes"].tombstoned) == (0, 0)
    assert state(engine) == before
    with_row("classes", sourcedId="c3", orgSourcedId="nh-1", title="Art")(sds)
    assert load(engine, FEED, sds, family=SDS).counts["courses"].added == 1
    without_rows("classes", "c3")(sds)
    assert load(engine, FEED, sds, family=SDS).counts["courses"] == Counts(tombstoned=1, unchanged=3)


def test_without_courses_those_of_a_school_return_with_it(engine: sa.Engine, sds: Path) -> None:
    with_row("courses", sourcedId="art", orgSourcedId="nh-1", title="Art")(sds)
    load(engine, FEED, sds, family=SDS)
    whole = {path.name: path.read_bytes() for path in sds.iterdir()}
    both(without_file("courses.csv"), without_rows("orgs", "nh-1"))(sds)
    assert load(engine, FEED, sds, family=SDS, options=ANYTHING).counts["courses"].tombstoned == 2
    (sds / "orgs.csv").write_bytes(whole["orgs.csv"])
    assert load(engine, FEED, sds, family=SDS, options=ANYTHING).counts["courses"].revived == 2


@pytest.mark.parametrize("file", ["academicSessions", "courses"])
def test_what_a_file_said_last_is_named_without_it(engine: sa.Engine, sds: Path, file: str) -> None:
    """If each class names something of it, too."""
    both(
        *(
            cell("classes", 3, header, name)
            for header, name in (("sessionSourcedIds", "fall"), ("courseSourcedId", "alg"))
        )
    )(sds)
    load(engine, FEED, sds, family=SDS)
    before = state(engine)
    both(without_file(f"{file}.csv"), cell("classes", 2, "title", "Renamed"))(sds)
    report = load(engine, FEED, sds, family=SDS)
    assert (report.counts["classes"].changed, report.findings.total) == (1, 0)
    assert not [notice for notice in report.notices if NO_TARGET.taken in notice]
    after = state(engine)
    assert after.pop(tables.classes)["c1"]["title"] == "Renamed"
    before.pop(tables.classes)
    assert after == before


# What of courses.csv is there -> the course of the class c1, which names one that is nowhere, before and now.
NOWHERE: dict[str, tuple[Bend, str, str]] = {
    "the former one stays": (lambda _: None, "alg", "alg"),
    "without courses.csv": (without_file("courses.csv"), "alg", "alg"),
    "the former one is gone": (without_rows("courses", "alg"), "alg", f"{FEED}:class-course:c1"),
    "the former one was made": (lambda _: None, "", f"{FEED}:class-course:c1"),
}


@pytest.mark.parametrize(("bend", "former", "after"), NOWHERE.values(), ids=NOWHERE)
def test_a_class_whose_course_is_nowhere_stays(
    engine: sa.Engine, sds: Path, bend: Bend, former: str, after: str
) -> None:
    """A made course does not replace an exported one because a reference led nowhere."""
    cell("classes", 2, "courseSourcedId", former)(sds)
    load(engine, FEED, sds, family=SDS)
    both(cell("classes", 2, "courseSourcedId", "nowhere"), bend)(sds)
    report = load(engine, FEED, sds, family=SDS, options=ANYTHING)
    assert report.rejected == 0
    assert [it for it in report.notices if NO_TARGET.taken in it] == [
        str(Tolerated("classes.csv", NO_TARGET, "courseSourcedId", 1, line=2))
    ]
    classes = snapshot(engine, tables.classes)
    assert (classes["c1"]["status"], classes["c1"]["course_id"]) == ("active", after)
    assert load(engine, FEED, sds, family=SDS).counts["classes"] == Counts(unchanged=2)


@pytest.mark.parametrize("courses", [lambda _: None, without_file("courses.csv")], ids=["with their file", "without"])
def test_a_class_whose_course_ends_with_its_org_gets_its_own(engine: sa.Engine, sds: Path, courses: Bend) -> None:
    """At once: it does not vanish for a night."""
    both(with_row("orgs", sourcedId="dep", name="Arts", type="department", parentSourcedId="nh"),
         cell("courses", 2, "orgSourcedId", "dep"))(sds)  # fmt: skip
    load(engine, FEED, sds, family=SDS)
    before = snapshot(engine, tables.enrollments)
    both(without_rows("orgs", "dep"), courses)(sds)
    load(engine, FEED, sds, family=SDS, options=ANYTHING)
    found = snapshot(engine, tables.classes)["c1"]
    assert (found["status"], found["course_id"]) == ("active", f"{FEED}:class-course:c1")
    assert snapshot(engine, tables.enrollments) == before


def test_both_sides_of_a_relation_stay_beside_its_rejected_row(engine: sa.Engine, sds: Path) -> None:
    """Also if the row names somebody who is nowhere now."""
    load(engine, FEED, sds, family=SDS)
    before = state(engine)
    cell("relationships", 2, "relationshipUserSourcedId", "nobody")(sds)
    report = load(engine, FEED, sds, family=SDS, options=ANYTHING)
    assert (report.rejected, report.outcome) == (1, "unchanged")
    assert state(engine) == before


def test_a_new_class_whose_course_is_nowhere_gets_its_own(engine: sa.Engine, sds: Path) -> None:
    with_row("classes", sourcedId="c3", orgSourcedId="nh-1", title="Art", courseSourcedId="art")(sds)
    report = load(engine, FEED, sds, family=SDS)
    assert (report.rejected, snapshot(engine, tables.classes)["c3"]["course_id"]) == (0, f"{FEED}:class-course:c3")


def without_rows_of(user: str, *files: str) -> Bend:
    """Removes the rows that name a user."""
    return both(
        *(
            rows_of(file, lambda rows: rows.__setitem__(slice(None), [row for row in rows if user not in row]))
            for file in files
        )
    )


# An export with relationships, and what the next one says beside leaving them out.
RELATED: dict[str, tuple[Bend, Bend]] = {
    "nothing else": (both(), both()),
    "of two children at two schools, otherwise related": (
        with_row("relationships", userSourcedId="u2", relationshipUserSourcedId="u5", relationshipRole="relative"),
        both(),
    ),
    "of a child without a role": (without_rows_of("u1", "roles", "enrollments"), both()),
    "of a guardian whose row is rejected": (both(), cell("users", 6, "username", "")),
    "of a child whose row is rejected": (both(), cell("users", 2, "username", "")),
}


@pytest.mark.parametrize(("first", "second"), RELATED.values(), ids=RELATED)
def test_without_relationships_those_of_earlier_exports_stay(
    engine: sa.Engine, sds: Path, first: Bend, second: Bend
) -> None:
    first(sds)
    load(engine, FEED, sds, family=SDS)
    before = state(engine)
    both(without_file("relationships.csv"), second)(sds)
    assert load(engine, FEED, sds, family=SDS).outcome == "unchanged"
    assert state(engine) == before


@pytest.mark.parametrize("user", ["u1", "u5"])
def test_without_relationships_the_end_of_one_is_no_deviation(engine: sa.Engine, sds: Path, user: str) -> None:
    """A strict run would refuse it."""
    load_first(engine, FEED, sds, family=SDS)
    both(without_file("relationships.csv"), without_rows_of(user, "users", "roles", "enrollments", "demographics"))(sds)
    report = load(engine, FEED, sds, family=SDS, options=ANYTHING)
    assert (report.counts["users"].tombstoned, report.findings.total) == (1, 0)
    assert not [notice for notice in report.notices if NO_TARGET.taken in notice]
    assert not snapshot(engine, tables.user_agents).keys() - {(user, 1)}


def test_without_relationships_a_guardian_comes_back_as_one(engine: sa.Engine, sds: Path) -> None:
    load_first(engine, FEED, sds, family=SDS)
    parts = [snapshot(engine, table) for table in (tables.user_roles, tables.user_agents)]
    whole = (sds / "users.csv").read_bytes()
    both(without_file("relationships.csv"), without_rows_of("u5", "users"))(sds)
    load(engine, FEED, sds, family=SDS, options=ANYTHING)
    (sds / "users.csv").write_bytes(whole)
    assert load(engine, FEED, sds, family=SDS).counts["users"].revived == 1
    assert [snapshot(engine, table) for table in (tables.user_roles, tables.user_agents)] == parts


def test_users_alone(engine: sa.Engine, sds: Path) -> None:
    """SDS needs classes and enrollments only where classes are managed; those of earlier exports stay as they are."""
    load_first(engine, FEED, sds, family=SDS)
    before = state(engine)
    both(without_file("classes.csv"), without_file("enrollments.csv"))(sds)
    report = load(engine, FEED, sds, family=SDS)
    assert (report.outcome, report.findings.total) == ("unchanged", 0)
    assert state(engine) == before

"""What the small exports become in the roster's tables."""

from __future__ import annotations

import datetime
from pathlib import Path

import pytest
import sqlalchemy as sa

from roster_service.db import tables
from sync_scripts.engine.load import load
from tests.postgres.loaded import load_first
from tests.sync.conftest import snapshot
from tests.sync.export_changes import (
    both,
    cell_of,
    with_row,
)

Role = tuple[str, str, str, str]


def roles_of(engine: sa.Engine, user: str) -> list[Role]:
    """(org, role, type, origin) in their order."""
    rows = snapshot(engine, tables.user_roles)
    found = sorted((key[1], row) for key, row in rows.items() if key[0] == user)
    assert [ordinal for ordinal, _ in found] == list(range(1, len(found) + 1))
    return [(row["org_id"], row["role"], row["role_type"], row["origin"]) for _, row in found]


def row_of(engine: sa.Engine, table: sa.Table, identifier: str) -> dict[str, object]:
    row = snapshot(engine, table)[identifier]
    own = {"sourced_id", "feed_id", "status", "date_last_modified"}
    return {name: value for name, value in row.items() if name not in own and value is not None}


def test_records_of_1_1(engine: sa.Engine, springfield: Path) -> None:
    report = load_first(engine, "springfield", springfield)
    assert {name: count.added for name, count in report.counts.items()} == {
        "orgs": 4,
        "academicSessions": 7,
        "courses": 4,
        "classes": 5,
        "users": 15,
        "enrollments": 17,
        "demographics": 6,
    }
    assert row_of(engine, tables.users, "spr-student-1") == {
        "metadata": {"busRoute": "7", "lunch.plan": "free"},
        "username": "zoe.obrien",
        "user_ids": [{"type": "LDAP", "identifier": "zoe.obrien"}, {"type": "LTI", "identifier": "5f3c-01"}],
        "enabled_user": True,
        "given_name": "Zoë",
        "family_name": "O'Brien",
        "middle_name": "Maeve",
        "primary_org_id": "spr-elementary",
        "identifier": "S-1001",
        "email": "zoe.obrien@example.org",
        "sms": "+1-217-555-0101",
        "phone": "+1-217-555-0102",
        "grades": ["03"],
    }
    assert row_of(engine, tables.users, "spr-proctor@1") == {
        "username": "proctor.one",
        "enabled_user": True,
        "given_name": "O",
        "family_name": "'",
        "primary_org_id": "spr-high-science",
    }
    assert row_of(engine, tables.classes, "spr-class/stats@1") == {
        "title": "100%_sure: Statistics, Section 1",
        "class_code": "STAT-1.1",
        "class_type": "scheduled",
        "location": "Lab 2",
        "grades": ["11", "12"],
        "course_id": "spr-course-stats",
        "school_id": "spr-high",
        "term_ids": ["spr-2027-fall"],
        "subjects": ["Probability and Statistics"],
        "subject_codes": ["02201"],
        "periods": ["3"],
    }
    assert row_of(engine, tables.courses, "spr-course-homeroom") == {"title": "Homeroom", "org_id": "spr-district"}
    assert row_of(engine, tables.academic_sessions, "spr-2027-q1") == {
        "title": "Quarter 1",
        "type": "gradingPeriod",
        "start_date": datetime.date(2026, 8, 17),
        "end_date": datetime.date(2026, 10, 24),
        "parent_id": "spr-2027-fall",
        "school_year": "2027",
    }
    assert row_of(engine, tables.enrollments, "spr-enr-01") == {
        "user_id": "spr-student-1",
        "class_id": "spr-class-math3-a",
        "school_id": "spr-elementary",
        "role": "student",
        "primary": False,
        "begin_date": datetime.date(2026, 8, 17),
        "end_date": datetime.date(2027, 6, 12),
    }
    assert row_of(engine, tables.enrollments, "spr-enr-08")["role"] == "ext:aide"
    assert row_of(engine, tables.demographics, "spr-student-1")["metadata"] == {"notes": 'says "hi", often'}
    assert row_of(engine, tables.demographics, "spr-student-5") == {"sex": "male"}
    assert row_of(engine, tables.orgs, "spr-elementary")["metadata"] == {
        "city": "Springfield",
        "principal.name": 'Łucja "Lu" Nowak',
    }
    assert "metadata" not in row_of(engine, tables.orgs, "spr-high")


def test_parts_of_1_1(engine: sa.Engine, springfield: Path) -> None:
    load_first(engine, "springfield", springfield)
    assert row_of(engine, tables.classes, "spr-class-math3-a")["term_ids"] == ["spr-2027-fall", "spr-2027-spring"]
    agents = snapshot(engine, tables.user_agents)
    assert agents["spr-student-1", 1]["agent_id"] == "spr-guardian-1"
    assert agents["spr-student-1", 2]["agent_id"] == "spr-parent-1"
    assert snapshot(engine, tables.user_profiles) == {}


def test_records_of_1_2(engine: sa.Engine, shelbyville: Path) -> None:
    load_first(engine, "shelbyville", shelbyville)
    assert row_of(engine, tables.users, "shv-student-1") == {
        "metadata": {"locker": "114"},
        "user_master_identifier": "umi-0001",
        "username": "zoe.o",
        "user_ids": [{"type": "SIS", "identifier": "N-1"}, {"type": "LDAP", "identifier": "zoe.o"}],
        "enabled_user": True,
        "given_name": "Zoë",
        "family_name": "O’Brien",
        "middle_name": "Quinn",
        "preferred_first_name": "Zo",
        "preferred_middle_name": "Q",
        "preferred_last_name": "Brien",
        "pronouns": "she/her",
        "primary_org_id": "shv-north",
        "identifier": "N-1",
        "email": "zoe@example.org",
        "sms": "+1-217-555-0151",
        "phone": "+1-217-555-0152",
        "grades": ["09"],
    }
    assert row_of(engine, tables.orgs, "shv-campus")["type"] == "ext:campus"
    profiles = snapshot(engine, tables.user_profiles)
    assert profiles["shv-student-1", "shv-profile-1"] == {
        "user_id": "shv-student-1",
        "profile_id": "shv-profile-1",
        "profile_type": "learner",
        "vendor_id": "example.org/lms",
        "application_id": "lms-1",
        "description": 'The "learning" portal',
        "credentials": [{"type": "username", "username": "zoe.o"}],
    }
    role = snapshot(engine, tables.user_roles)["shv-student-1", 1]
    assert (role["begin_date"], role["end_date"], role["profile_id"]) == (
        datetime.date(2026, 9, 1),
        datetime.date(2027, 6, 30),
        "shv-profile-1",
    )


def test_passwords_are_never_stored(engine: sa.Engine, each_export: Path) -> None:
    load_first(engine, "feed", each_export)
    with engine.connect() as connection:
        for table in tables.metadata.sorted_tables:
            found = connection.scalar(
                sa.text(f"SELECT count(*) FROM {table.name} t WHERE t::text LIKE '%never-stored%'")
            )
            assert found == 0, table.name


ROLES_1_1: dict[str, list[Role]] = {
    # Named by the export: primary at each org.
    "spr-student-1": [("spr-elementary", "student", "primary", "export")],
    "spr-teacher-1": [
        ("spr-elementary", "teacher", "primary", "export"),
        ("spr-high", "teacher", "primary", "export"),
    ],
    "spr-admin-school": [("spr-high", "siteAdministrator", "primary", "export")],
    "spr-guardian-1": [("spr-elementary", "guardian", "primary", "export")],
    "spr-aide-1": [("spr-elementary", "aide", "primary", "export")],
    # Following from enrollments elsewhere.
    "spr-admin-district": [
        ("spr-district", "districtAdministrator", "primary", "export"),
        ("spr-high", "siteAdministrator", "primary", "enrollment"),
    ],
    "spr-student-6": [
        ("spr-elementary", "student", "primary", "export"),
        ("spr-high", "student", "primary", "enrollment"),
    ],
    "spr-proctor@1": [
        ("spr-high-science", "proctor", "primary", "export"),
        ("spr-high", "proctor", "primary", "enrollment"),
    ],
}
ROLES_1_2: dict[str, list[Role]] = {
    # Primaries first, then secondaries; of both, those at the primary org first.
    "shv-teacher-1": [
        ("shv-south", "teacher", "primary", "export"),
        ("shv-north", "teacher", "primary", "export"),
        ("shv-south", "siteAdministrator", "secondary", "export"),
        ("shv-north", "parent", "secondary", "export"),
    ],
    "shv-counselor-1": [
        ("shv-north", "counselor", "primary", "export"),
        ("shv-north", "aide", "secondary", "export"),
    ],
    "shv-coach-1": [
        ("shv-campus", "ext:coach", "primary", "export"),
        ("shv-south", "proctor", "primary", "enrollment"),
    ],
    "shv-student-3": [
        ("shv-south", "student", "primary", "export"),
        ("shv-north", "student", "primary", "enrollment"),
    ],
    # A guardian's role at a school is no belonging to it; the derived one stands beside it.
    "shv-guardian-1": [
        ("shv-north", "guardian", "primary", "export"),
        ("shv-north", "ext:volunteer", "secondary", "enrollment"),
    ],
    "shv-districtadmin-1": [("shv-district", "districtAdministrator", "primary", "export")],
}


@pytest.mark.parametrize(
    ("name", "roles"), [("springfield", ROLES_1_1), ("shelbyville", ROLES_1_2)], ids=["1.1", "1.2"]
)
def test_roles(engine: sa.Engine, request: pytest.FixtureRequest, name: str, roles: dict[str, list[Role]]) -> None:
    load_first(engine, name, request.getfixturevalue(name))
    assert {user: roles_of(engine, user) for user in roles} == roles


def test_roles_follow_from_both_schools_of_an_enrollment(engine: sa.Engine, springfield: Path) -> None:
    """The class is at one school, the enrollment names another. The word is the one of the enrollment, whatever roles
    the export gives the user elsewhere; of several at one school, one is the main one."""
    both(
        cell_of("enrollments", "spr-enr-03", "schoolSourcedId", "spr-high"),
        cell_of("users", "spr-student-6", "orgSourcedIds", "spr-district"),
        with_row(
            "enrollments",
            sourcedId="spr-enr-99",
            classSourcedId="spr-class-chem-1",
            schoolSourcedId="spr-high",
            userSourcedId="spr-student-6",
            role="proctor",
        ),
    )(springfield)
    load(engine, "springfield", springfield)
    assert roles_of(engine, "spr-student-6") == [
        ("spr-district", "student", "primary", "export"),
        ("spr-elementary", "student", "primary", "enrollment"),
        ("spr-high", "proctor", "primary", "enrollment"),
        ("spr-high", "student", "secondary", "enrollment"),
    ]


def test_an_aide_in_a_class_belongs_to_the_school_as_an_aide(engine: sa.Engine, springfield: Path) -> None:
    cell_of("users", "spr-aide-1", "orgSourcedIds", "spr-high")(springfield)
    load(engine, "springfield", springfield)
    assert roles_of(engine, "spr-aide-1")[1] == ("spr-elementary", "aide", "primary", "enrollment")


def test_gone_enrollments_bring_no_role(engine: sa.Engine, springfield: Path) -> None:
    cell_of("enrollments", "spr-enr-17", "status", "tobedeleted")(springfield)
    load(engine, "springfield", springfield)
    assert roles_of(engine, "spr-student-6") == [("spr-elementary", "student", "primary", "export")]
    assert "spr-enr-17" not in snapshot(engine, tables.enrollments)


def test_lists_name_each_once(engine: sa.Engine, springfield: Path) -> None:
    both(
        cell_of("users", "spr-teacher-1", "orgSourcedIds", "spr-high, spr-elementary ,spr-high"),
        cell_of("classes", "spr-class-math3-a", "termSourcedIds", "spr-2027-fall,spr-2027-fall"),
    )(springfield)
    load(engine, "springfield", springfield)
    assert [role[0] for role in roles_of(engine, "spr-teacher-1")] == ["spr-high", "spr-elementary"]
    assert snapshot(engine, tables.users)["spr-teacher-1"]["primary_org_id"] == "spr-high"
    assert row_of(engine, tables.classes, "spr-class-math3-a")["term_ids"] == ["spr-2027-fall"]


def test_districts(engine: sa.Engine, springfield: Path, shelbyville: Path) -> None:
    both(
        with_row("orgs", sourcedId="spr-state", name="State", type="state"),
        cell_of("orgs", "spr-district", "parentSourcedId", "spr-state"),
        with_row("orgs", sourcedId="spr-east", name="East", type="district", parentSourcedId="spr-district"),
        with_row("orgs", sourcedId="spr-east-school", name="East", type="school", parentSourcedId="spr-east"),
    )(springfield)
    load(engine, "springfield", springfield)
    load(engine, "shelbyville", shelbyville)
    with engine.connect() as connection:
        rows = connection.execute(sa.select(tables.orgs.c.sourced_id, tables.orgs.c.district_id))
        assert {row[0]: row[1] for row in rows} == {
            "spr-state": None,
            "spr-district": "spr-district",
            "spr-elementary": "spr-district",
            "spr-high": "spr-district",
            "spr-high-science": "spr-district",
            "spr-east": "spr-east",
            "spr-east-school": "spr-east",
            "shv-district": "shv-district",
            "shv-north": "shv-district",
            "shv-campus": "shv-district",
            "shv-south": "shv-district",
        }

"""Roles and profiles of OneRoster 1.2 are rows with ids: in deltas, beside bulk files, and before the ids are known."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import sqlalchemy as sa

from roster_service.db import tables
from sync_scripts.applying.changes import Counts
from sync_scripts.applying.parts import NEEDS_BULK
from sync_scripts.engine.load import load
from sync_scripts.reading.rejections import RefusedExportError
from tests.extent import every_other
from tests.postgres.loaded import load_first
from tests.sync.conftest import describe, read_state, snapshot, state
from tests.sync.export_changes import Bend, both, cell_of, declared, rows_of, with_row, without_file, without_rows

from .test_deltas import alone, only
from .test_life_cycle import stamped, written

# (org, role, type, profile, origin), in order.
Role = tuple[str, str, str, str | None, str]
# A user's roles, and the ids of its profiles.
Parts = tuple[list[Role], list[str]]
GONE = "tobedeleted"
NORTH, SOUTH, CAMPUS = "shv-north", "shv-south", "shv-campus"
PRINCIPAL, COUNSELOR, TEACHER, STUDENT = "shv-principal-1", "shv-counselor-1", "shv-teacher-1", "shv-student-1"


def parts_of(engine: sa.Engine, user: str) -> Parts:
    roles = {key: row for key, row in snapshot(engine, tables.user_roles).items() if key[0] == user}
    columns = ("org_id", "role", "role_type", "profile_id", "origin")
    profiles = sorted(key[1] for key in snapshot(engine, tables.user_profiles) if key[0] == user)
    return [tuple(roles[key][column] for column in columns) for key in sorted(roles)], profiles


def exported(org: str, role: str, role_type: str = "primary", profile: str | None = None) -> Role:
    return org, role, role_type, profile, "export"


def absent(file: str) -> Bend:
    return both(declared(file, "absent"), without_file(f"{file}.csv"))


def new_role(**cells: str) -> Bend:
    common = {"sourcedId": "new", "userSourcedId": PRINCIPAL, "roleType": "secondary", "role": "teacher"}
    return with_row("roles", **{**common, "orgSourcedId": NORTH, **cells})


PRINCIPAL_ROLE, COUNSELOR_ROLE = exported(NORTH, "principal"), exported(NORTH, "counselor")
AIDE_ROLE = exported(NORTH, "aide", "secondary")
TEACHER_ROLES = [
    exported(SOUTH, "teacher"),
    exported(NORTH, "teacher", profile="shv-profile-3"),
    exported(SOUTH, "siteAdministrator", "secondary"),
    exported(NORTH, "parent", "secondary"),
]
STUDENT_PROFILES = ["shv-profile-1", "shv-profile-2"]

# What becomes of the users that change; all others bear their old stamp.
CASES: dict[str, tuple[Bend, dict[str, Parts]]] = {
    "the same role again": (alone(only("roles", "shv-role-09", "shv-role-15")), {}),
    "no role at all": (alone(only("roles")), {}),
    "a role with another content": (
        alone(only("roles", "shv-role-15"), cell_of("roles", "shv-role-15", "role", "proctor")),
        {COUNSELOR: ([COUNSELOR_ROLE, exported(NORTH, "proctor", "secondary")], [])},
    ),
    "a new role": (
        alone(only("roles"), new_role()),
        {PRINCIPAL: ([PRINCIPAL_ROLE, exported(NORTH, "teacher", "secondary")], [])},
    ),
    "a new role that comes first": (
        alone(only("roles"), new_role(userSourcedId=COUNSELOR, roleType="primary", orgSourcedId=CAMPUS)),
        {COUNSELOR: ([COUNSELOR_ROLE, exported(CAMPUS, "teacher"), AIDE_ROLE], [])},
    ),
    "a role goes": (
        alone(only("roles", "shv-role-15"), cell_of("roles", "shv-role-15", "status", GONE)),
        {COUNSELOR: ([COUNSELOR_ROLE], [])},
    ),
    "a role goes, and nothing but its id is said": (
        alone(only("roles"), with_row("roles", sourcedId="shv-role-15", status=GONE)),
        {COUNSELOR: ([COUNSELOR_ROLE], [])},
    ),
    "a role goes that nobody knows": (alone(only("roles"), with_row("roles", sourcedId="x", status=GONE)), {}),
    "the last role goes, and enrollments say where its user belongs": (
        alone(only("roles", "shv-role-01"), cell_of("roles", "shv-role-01", "status", GONE)),
        {STUDENT: ([(NORTH, "student", "primary", None, "enrollment")], STUDENT_PROFILES)},
    ),
    "a role becomes another user's": (
        alone(only("roles", "shv-role-15"), cell_of("roles", "shv-role-15", "userSourcedId", PRINCIPAL)),
        {COUNSELOR: ([COUNSELOR_ROLE], []), PRINCIPAL: ([PRINCIPAL_ROLE, AIDE_ROLE], [])},
    ),
    "which role is the primary one at a school": (
        alone(
            only("roles", "shv-role-07", "shv-role-08"),
            cell_of("roles", "shv-role-07", "roleType", "secondary"),
            cell_of("roles", "shv-role-08", "roleType", "primary"),
        ),
        {
            TEACHER: (
                [
                    exported(SOUTH, "siteAdministrator"),
                    TEACHER_ROLES[1],
                    exported(SOUTH, "teacher", "secondary"),
                    TEACHER_ROLES[3],
                ],
                ["shv-profile-3"],
            )
        },
    ),
    "another primary org of a user changes the order of stored roles": (
        alone(only("users", TEACHER), cell_of("users", TEACHER, "primaryOrgSourcedId", NORTH)),
        {TEACHER: ([TEACHER_ROLES[place] for place in (1, 0, 3, 2)], ["shv-profile-3"])},
    ),
    "a new user with a role and a profile": (
        alone(
            *map(only, ("users", "roles", "userProfiles")),
            with_row("users", sourcedId="new", username="n", enabledUser="true", givenName="N", familyName="N"),
            new_role(userSourcedId="new", roleType="primary", userProfileSourcedId="new"),
            with_row(
                "userProfiles", sourcedId="new", userSourcedId="new", profileType="p", vendorId="v",
                credentialType="username", username="n",
            ),
        ),
        {"new": ([exported(NORTH, "teacher", profile="new")], ["new"])},
    ),
    "a role at a new org": (
        alone(
            *map(only, ("orgs", "roles")),
            with_row("orgs", sourcedId="new", name="New", type="school", parentSourcedId="shv-district"),
            new_role(orgSourcedId="new"),
        ),
        {PRINCIPAL: ([PRINCIPAL_ROLE, exported("new", "teacher", "secondary")], [])},
    ),
    "a role with a stored profile": (
        alone(
            only("roles", "shv-role-01"), cell_of("roles", "shv-role-01", "userProfileSourcedId", "shv-profile-2")
        ),
        {STUDENT: ([exported(NORTH, "student", profile="shv-profile-2")], STUDENT_PROFILES)},
    ),
    "the same profile again": (alone(only("userProfiles", "shv-profile-2")), {}),
    "a profile with another content": (
        alone(only("userProfiles", "shv-profile-2"), cell_of("userProfiles", "shv-profile-2", "username", "9002")),
        {STUDENT: ([exported(NORTH, "student", profile="shv-profile-1")], STUDENT_PROFILES)},
    ),
    "a profile goes": (
        alone(only("userProfiles", "shv-profile-2"), cell_of("userProfiles", "shv-profile-2", "status", GONE)),
        {STUDENT: ([exported(NORTH, "student", profile="shv-profile-1")], ["shv-profile-1"])},
    ),
    "a profile goes, and the role that stands names it no more": (
        alone(only("userProfiles", "shv-profile-1"), cell_of("userProfiles", "shv-profile-1", "status", GONE)),
        {STUDENT: ([exported(NORTH, "student")], ["shv-profile-2"])},
    ),
    "roles in a delta, all else in bulk": (
        both(only("roles", "shv-role-15"), cell_of("roles", "shv-role-15", "status", GONE)),
        {COUNSELOR: ([COUNSELOR_ROLE], [])},
    ),
    "roles in bulk, users in a delta that names nobody": (
        both(only("users"), without_rows("roles", "shv-role-15")),
        {COUNSELOR: ([COUNSELOR_ROLE], [])},
    ),
    "roles in bulk, and no users at all": (
        both(absent("users"), only("orgs"), without_rows("roles", "shv-role-15"), new_role()),
        {COUNSELOR: ([COUNSELOR_ROLE], []), PRINCIPAL: ([PRINCIPAL_ROLE, exported(NORTH, "teacher", "secondary")], [])},
    ),
    "profiles in bulk, roles in a delta": (
        both(only("roles"), without_rows("userProfiles", "shv-profile-2")),
        {STUDENT: ([exported(NORTH, "student", profile="shv-profile-1")], ["shv-profile-1"])},
    ),
    "profiles in a delta, roles in bulk": (
        both(only("userProfiles", "shv-profile-3"), cell_of("userProfiles", "shv-profile-3", "vendorId", "v")),
        {TEACHER: (TEACHER_ROLES, ["shv-profile-3"])},
    ),
    "enrollments in a delta bring a role beside roles in bulk": (
        both(
            only("enrollments"),
            with_row(
                "enrollments", sourcedId="new", classSourcedId="shv-class-bio-s", schoolSourcedId=SOUTH,
                userSourcedId=PRINCIPAL, role="teacher",
            ),
        ),
        {PRINCIPAL: ([PRINCIPAL_ROLE, (SOUTH, "teacher", "primary", None, "enrollment")], [])},
    ),
    "a role in a delta takes the place of one that followed from an enrollment": (
        alone(
            only("roles"),
            new_role(userSourcedId="shv-student-3", roleType="primary", role="student", orgSourcedId=NORTH),
        ),
        {"shv-student-3": ([exported(SOUTH, "student"), exported(NORTH, "student")], [])},
    ),
}  # fmt: skip


@pytest.mark.parametrize(("bend", "wanted"), every_other(CASES.values()), ids=CASES)
def test_rows_of_parts(engine: sa.Engine, shelbyville: Path, bend: Bend, wanted: dict[str, Parts]) -> None:
    load_first(engine, "feed", shelbyville)
    before = state(engine)
    bend(shelbyville)
    report = load(engine, "feed", shelbyville)
    assert describe(report.findings) == ""
    assert stamped(engine, tables.users, report.stamp) == set(wanted)
    assert {user: parts_of(engine, user) for user in wanted} == wanted
    after = state(engine)
    for table in (tables.user_roles, tables.user_profiles):
        others = [{key: row for key, row in it[table].items() if key[0] not in wanted} for it in (before, after)]
        assert others[0] == others[1]
    assert load(engine, "feed", shelbyville).outcome == "unchanged"


# Rows of a delta that are rejected, and why; what is stored stays as it is.
REFUSED: dict[str, tuple[Bend, list[str]]] = {
    "a bad cell": (
        alone(only("roles", "shv-role-09"), cell_of("roles", "shv-role-09", "role", "x")),
        ["roles.csv, line 2, column role: must be one of"],
    ),
    "a second primary role beside a stored one": (
        alone(only("roles"), new_role(roleType="primary")),
        ["roles.csv, line 2, column roleType: is a second primary role of the user at this org (found 'primary')"],
    ),
    "a primary role beside one that stays so because its row is rejected": (
        alone(
            only("roles", "shv-role-07", "shv-role-08"),
            cell_of("roles", "shv-role-07", "roleType", "secondary"),
            cell_of("roles", "shv-role-07", "beginDate", "soon"),
            cell_of("roles", "shv-role-08", "roleType", "primary"),
        ),
        ["roles.csv, line 2, column beginDate", "roles.csv, line 3, column roleType: is a second primary role"],
    ),
    "a user and an org that nobody knows": (
        alone(only("roles"), new_role(userSourcedId="x", orgSourcedId="y")),
        ["column userSourcedId: names no row of users.csv", "column orgSourcedId: names no row of orgs.csv"],
    ),
    "a profile of a user that nobody knows": (
        alone(only("userProfiles", "shv-profile-2"), cell_of("userProfiles", "shv-profile-2", "userSourcedId", "x")),
        ["userProfiles.csv, line 2, column userSourcedId: names no row of users.csv (found 'x')"],
    ),
    "a bad cell in bulk, users in a delta": (
        both(only("users"), cell_of("roles", "shv-role-09", "role", "x")),
        ["roles.csv, line 10, column role: must be one of"],
    ),
}


@pytest.mark.parametrize(("bend", "words"), REFUSED.values(), ids=REFUSED)
def test_rejected_rows_leave_stored_records_as_they_are(
    engine: sa.Engine, shelbyville: Path, bend: Bend, words: list[str]
) -> None:
    load_first(engine, "feed", shelbyville)
    before = state(engine)
    bend(shelbyville)
    report = load(engine, "feed", shelbyville)
    assert (report.outcome, state(engine)) == ("unchanged", before)
    assert all(it in describe(report.findings) for it in words)


def test_other_rows_of_a_user_count_beside_a_rejected_row(engine: sa.Engine, shelbyville: Path) -> None:
    """In bulk: of three roles one is rejected, one gone, and one stays."""
    load_first(engine, "feed", shelbyville)
    both(without_rows("roles", "shv-role-05"), cell_of("roles", "shv-role-08", "role", "x"))(shelbyville)
    assert written(load(engine, "feed", shelbyville)) == {"users": Counts(changed=1)}
    assert parts_of(engine, TEACHER)[0] == TEACHER_ROLES[:3]


@pytest.mark.parametrize("stored", [None, "aide", "teacher"])
@pytest.mark.parametrize("order", [1, -1])
def test_of_two_primary_roles_at_an_org_the_stored_one_counts_else_the_least(
    engine: sa.Engine, shelbyville: Path, order: int, stored: str | None
) -> None:
    """Whatever the order of the rows."""
    roles = [
        new_role(sourcedId=word, role=word, orgSourcedId="shv-south", roleType="primary")
        for word in ("aide", "teacher")
    ]
    without_rows("roles", "shv-role-09")(shelbyville)
    if stored is not None:
        first = Path(shutil.copytree(shelbyville, shelbyville.parent / "first"))
        roles[stored == "teacher"](first)
        load(engine, "feed", first)
    both(*roles[::order])(shelbyville)
    report = load(engine, "feed", shelbyville)
    assert "is a second primary role" in describe(report.findings)
    assert parts_of(engine, PRINCIPAL)[0] == [exported(SOUTH, stored or "aide")]


# --- users that are gone -------------------------------------------------------------------------------------------

# How a feed says that a user is gone with all that it had.
WITH_ALL: dict[str, Bend] = {
    "in a delta": alone(
        only("users", PRINCIPAL),
        only("roles", "shv-role-09"),
        cell_of("users", PRINCIPAL, "status", GONE),
        cell_of("roles", "shv-role-09", "status", GONE),
    ),
    "in bulk": both(without_rows("users", PRINCIPAL), without_rows("roles", "shv-role-09")),
}


# How it says that the user is back, and the roles that it has then.
BACK: dict[str, tuple[Bend, list[Role]]] = {
    "alone": (alone(only("users", PRINCIPAL)), []),
    "with another role": (
        alone(only("users", PRINCIPAL), only("roles"), new_role(orgSourcedId=SOUTH)),
        [exported(SOUTH, "teacher", "secondary")],
    ),
    "with the same role": (alone(only("users", PRINCIPAL), only("roles", "shv-role-09")), [PRINCIPAL_ROLE]),
}


@pytest.mark.parametrize(("back", "roles"), BACK.values(), ids=BACK)
@pytest.mark.parametrize("bend", WITH_ALL.values(), ids=WITH_ALL)
def test_what_was_taken_back_does_not_come_back_with_the_user(
    engine: sa.Engine, shelbyville: Path, tmp_path: Path, bend: Bend, back: Bend, roles: list[Role]
) -> None:
    """The tombstone keeps its role, which tells who may see it; the user that returns has the roles of then."""
    later = Path(shutil.copytree(shelbyville, tmp_path / "later"))
    load_first(engine, "feed", shelbyville)
    before = parts_of(engine, PRINCIPAL)
    bend(shelbyville)
    assert written(load(engine, "feed", shelbyville)) == {"users": Counts(tombstoned=1)}
    assert parts_of(engine, PRINCIPAL) == before
    back(later)
    assert written(load(engine, "feed", later)) == {"users": Counts(revived=1)}
    assert parts_of(engine, PRINCIPAL) == (roles, [])


def test_a_role_is_taken_back_from_a_user_that_went_before(
    engine: sa.Engine, shelbyville: Path, tmp_path: Path
) -> None:
    """Three nights: the user goes, its role goes, the user returns."""
    later, last = (Path(shutil.copytree(shelbyville, tmp_path / name)) for name in ("later", "last"))
    load_first(engine, "feed", shelbyville)
    alone(only("users", COUNSELOR), cell_of("users", COUNSELOR, "status", GONE))(shelbyville)
    load(engine, "feed", shelbyville)
    alone(only("roles", "shv-role-15"), cell_of("roles", "shv-role-15", "status", GONE))(later)
    assert load(engine, "feed", later).outcome == "unchanged"
    assert parts_of(engine, COUNSELOR) == ([COUNSELOR_ROLE, AIDE_ROLE], [])
    alone(only("users", COUNSELOR))(last)
    load(engine, "feed", last)
    assert parts_of(engine, COUNSELOR) == ([COUNSELOR_ROLE], [])


def test_a_profile_is_taken_back_like_a_role(engine: sa.Engine, shelbyville: Path, tmp_path: Path) -> None:
    """Its user returns in an export in bulk, without userProfiles.csv: nothing is said of profiles there."""
    last = Path(shutil.copytree(shelbyville, tmp_path / "last"))
    load_first(engine, "feed", shelbyville)
    alone(
        only("users", TEACHER),
        only("userProfiles", "shv-profile-3"),
        cell_of("users", TEACHER, "status", GONE),
        cell_of("userProfiles", "shv-profile-3", "status", GONE),
    )(shelbyville)
    load(engine, "feed", shelbyville)
    assert parts_of(engine, TEACHER) == (TEACHER_ROLES, ["shv-profile-3"])
    both(
        absent("userProfiles"),
        *(cell_of("roles", role, "userProfileSourcedId", "") for role in ("shv-role-01", "shv-role-06")),
    )(last)
    load(engine, "feed", last)
    assert parts_of(engine, TEACHER)[1] == []
    assert parts_of(engine, STUDENT)[1] == STUDENT_PROFILES


@pytest.mark.parametrize("copy", ["shv-role-00", "shv-role-99"])
def test_of_two_rows_of_a_primary_role_the_stored_one_stays(engine: sa.Engine, shelbyville: Path, copy: str) -> None:
    load_first(engine, "feed", shelbyville)
    name = "shv-role-02"
    cell_of("roles", name, "endDate", "2027-01-01")(shelbyville)
    rows_of("roles", lambda rows: rows.append([copy, *next(row for row in rows if row[0] == name)[1:]]))(shelbyville)
    report = load(engine, "feed", shelbyville)
    assert [it.sourced_id for it in report.findings.first] == [copy]
    roles = tables.user_roles.c
    with engine.connect() as connection:
        found = connection.execute(sa.select(roles.row_id, roles.end_date).where(roles.row_id.in_([name, copy]))).all()
    assert [(row_id, str(day)) for row_id, day in found] == [(name, "2027-01-01")]


# A role that names a profile of somebody else, or one that stays so because its row is rejected.
PROFILES_OF_OTHERS: dict[str, Bend] = {
    "in bulk": cell_of("roles", "shv-role-09", "userProfileSourcedId", "shv-profile-1"),
    "in a delta": alone(
        only("roles", "shv-role-09"), cell_of("roles", "shv-role-09", "userProfileSourcedId", "shv-profile-1")
    ),
    "a rejected row": alone(
        only("roles", "shv-role-09"),
        only("userProfiles", "shv-profile-2"),
        cell_of("roles", "shv-role-09", "userProfileSourcedId", "shv-profile-2"),
        cell_of("userProfiles", "shv-profile-2", "userSourcedId", PRINCIPAL),
        cell_of("userProfiles", "shv-profile-2", "vendorId", ""),
    ),
}


@pytest.mark.parametrize("bend", PROFILES_OF_OTHERS.values(), ids=PROFILES_OF_OTHERS)
def test_a_role_stays_without_a_profile_of_somebody_else(engine: sa.Engine, shelbyville: Path, bend: Bend) -> None:
    load_first(engine, "feed", shelbyville)
    before = state(engine)
    bend(shelbyville)
    report = load(engine, "feed", shelbyville)
    assert any("roles.csv, column userProfileSourcedId: in 1 row" in it for it in report.notices)
    assert not [it for it in report.findings.first if it.file == "roles.csv"]
    assert state(engine) == before


def test_without_their_file_the_profiles_of_roles_stay(engine: sa.Engine, shelbyville: Path) -> None:
    """One of another user, or that is nowhere, is dropped."""
    load_first(engine, "feed", shelbyville)
    before = state(engine)
    absent("userProfiles")(shelbyville)
    assert load(engine, "feed", shelbyville).outcome == "unchanged"
    assert state(engine) == before
    both(
        cell_of("roles", "shv-role-09", "userProfileSourcedId", "shv-profile-1"),
        cell_of("roles", "shv-role-10", "userProfileSourcedId", "nowhere"),
    )(shelbyville)
    report = load(engine, "feed", shelbyville)
    assert (report.outcome, report.rejected, state(engine)) == ("unchanged", 0, before)
    assert any("roles.csv, column userProfileSourcedId: in 2 rows" in it for it in report.notices)


def test_a_role_loses_the_profile_that_a_delta_ends(engine: sa.Engine, shelbyville: Path) -> None:
    """Also where the delta has no roles; and who is away comes back with both."""
    load_first(engine, "feed", shelbyville)
    student, before = parts_of(engine, "shv-student-1"), parts_of(engine, TEACHER)
    again = Path(shutil.copytree(shelbyville, shelbyville.with_name("again")))
    alone(only("userProfiles", "shv-profile-3"), cell_of("userProfiles", "shv-profile-3", "status", GONE))(shelbyville)
    report = load(engine, "feed", shelbyville)
    assert written(report)["users"] == Counts(changed=1)
    roles, _ = before
    assert parts_of(engine, TEACHER) == ([(*role[:3], None, role[4]) for role in roles], [])
    assert parts_of(engine, "shv-student-1") == student
    alone(only("users", "shv-student-1"), cell_of("users", "shv-student-1", "status", GONE))(again)
    load(engine, "feed", again)
    cell_of("users", "shv-student-1", "status", "active")(again)
    load(engine, "feed", again)
    assert parts_of(engine, "shv-student-1") == student


def test_a_user_that_was_only_away_comes_back_with_its_roles(engine: sa.Engine, shelbyville: Path) -> None:
    load_first(engine, "feed", shelbyville)
    before = parts_of(engine, TEACHER)
    alone(only("users", TEACHER), cell_of("users", TEACHER, "status", GONE))(shelbyville)
    assert written(load(engine, "feed", shelbyville))["users"] == Counts(tombstoned=1)
    cell_of("users", TEACHER, "status", "active")(shelbyville)
    load(engine, "feed", shelbyville)
    assert parts_of(engine, TEACHER) == before


# --- roles without ids ---------------------------------------------------------------------------------------------


@pytest.fixture
def without_row_ids(engine: sa.Engine, shelbyville: Path) -> sa.Engine:
    """A roster whose roles were loaded without the ids of their rows, by an export that is not known any more."""
    load_first(engine, "feed", shelbyville)
    with engine.begin() as connection:
        connection.execute(sa.update(tables.user_roles).values(row_id=None, taken_back=None))
        connection.execute(sa.update(tables.user_profiles).values(taken_back=None))
        connection.execute(sa.update(tables.feeds).values(last_digest=None))
    return engine


def row_ids(engine: sa.Engine) -> set[str | None]:
    with engine.connect() as connection:
        return set(
            connection.scalars(sa.select(tables.user_roles.c.row_id).where(tables.user_roles.c.origin == "export"))
        )


def test_a_run_stores_unknown_ids_and_changes_nothing_else(without_row_ids: sa.Engine, shelbyville: Path) -> None:
    before, roster = state(without_row_ids), read_state(without_row_ids)
    assert row_ids(without_row_ids) == {None}
    report = load(without_row_ids, "feed", shelbyville)
    assert (report.outcome, report.stamp, written(report)) == ("unchanged", None, {})
    assert (state(without_row_ids), read_state(without_row_ids)) == (before, roster)
    assert row_ids(without_row_ids) == {f"shv-role-{number:02}" for number in range(1, 16)}
    alone(only("roles", "shv-role-15"), cell_of("roles", "shv-role-15", "status", GONE))(shelbyville)
    assert written(load(without_row_ids, "feed", shelbyville)) == {"users": Counts(changed=1)}
    assert parts_of(without_row_ids, COUNSELOR) == ([COUNSELOR_ROLE], [])


def test_a_delta_of_roles_whose_ids_are_unknown_is_refused(without_row_ids: sa.Engine, shelbyville: Path) -> None:
    before = state(without_row_ids)
    alone(only("roles", "shv-role-15"))(shelbyville)
    with pytest.raises(RefusedExportError) as caught:
        load(without_row_ids, "feed", shelbyville)
    assert str(caught.value) == f"roles.csv: {NEEDS_BULK}"
    assert state(without_row_ids) == before


# What a delta may say before the ids are known: nothing of roles.
HARMLESS: dict[str, tuple[Bend, set[str]]] = {
    "users": (alone(only("users", TEACHER), cell_of("users", TEACHER, "givenName", "Z")), {TEACHER}),
    "profiles": (
        alone(only("userProfiles", "shv-profile-2"), cell_of("userProfiles", "shv-profile-2", "vendorId", "v")),
        {STUDENT},
    ),
    "no row of roles": (alone(only("roles")), set()),
}


@pytest.mark.parametrize(("bend", "wanted"), HARMLESS.values(), ids=HARMLESS)
def test_other_deltas_right_after_the_upgrade(
    without_row_ids: sa.Engine, shelbyville: Path, bend: Bend, wanted: set[str]
) -> None:
    before = snapshot(without_row_ids, tables.user_roles)
    bend(shelbyville)
    report = load(without_row_ids, "feed", shelbyville)
    assert stamped(without_row_ids, tables.users, report.stamp) == wanted
    assert snapshot(without_row_ids, tables.user_roles) == before


def test_a_rejected_row_with_an_unknown_id_leaves_its_user_as_it_is(
    without_row_ids: sa.Engine, shelbyville: Path
) -> None:
    """Any of the user's roles may be that row; those that a good row says are known from then on, it alone is not."""
    before = state(without_row_ids)
    kept = (shelbyville / "roles.csv").read_bytes()
    cell_of("roles", "shv-role-15", "role", "x")(shelbyville)
    for _ in range(2):
        report = load(without_row_ids, "feed", shelbyville)
        assert (report.outcome, report.rejected, state(without_row_ids)) == ("unchanged", 1, before)
        assert row_ids(without_row_ids) == {None, *(f"shv-role-{number:02}" for number in range(1, 15))}
    (shelbyville / "roles.csv").write_bytes(kept)
    assert load(without_row_ids, "feed", shelbyville).outcome == "unchanged"
    assert None not in row_ids(without_row_ids)


def test_roles_of_1_1_have_no_ids(engine: sa.Engine, springfield: Path) -> None:
    load_first(engine, "feed", springfield)
    assert row_ids(engine) == {None}

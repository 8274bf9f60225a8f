"""What a record looks like: the cells of the exports on the wire, and how each version says what the other exported."""

from __future__ import annotations

import csv
import re
from typing import Any

import pytest

from tests.offenders import in_one_test
from tests.postgres.loaded import EXPORTS, FEEDS

from .client import ROOTS, SCOPES, VERSIONS, RosterClient
from .model import RESOURCES, required, top_level

each_version = pytest.mark.parametrize("version", VERSIONS)


def ref(version: str, path: str, sourced_id: str) -> dict[str, str]:
    """A reference as the wire shows it."""
    kinds = {"orgs": "org", "users": "user", "classes": "class", "courses": "course"}
    kinds["academicSessions"] = "academicSession"
    escaped = sourced_id.replace("/", "%2F").replace("@", "%40")
    return {
        "href": f"http://localhost{ROOTS[version]}/{path}/{escaped}",
        "sourcedId": sourced_id,
        "type": kinds[path],
    }


def read_rows(file: str) -> dict[str, dict[str, str]]:
    """The rows of a file of both exports by sourcedId."""
    rows = {}
    for folder in FEEDS.values():
        path = EXPORTS / folder / f"{file}.csv"
        if path.exists():
            with path.open(encoding="utf-8", newline="") as lines:
                rows |= {row["sourcedId"]: row for row in csv.DictReader(lines)}
    return rows


# field -> (column, how the cell is shown), for fields that show one cell as it is.
REFS = {
    "parent": ("parentSourcedId", None),
    "schoolYear": ("schoolYearSourcedId", "academicSessions"),
    "org": ("orgSourcedId", "orgs"),
    "course": ("courseSourcedId", "courses"),
    "school": ("schoolSourcedId", "orgs"),
    "class": ("classSourcedId", "classes"),
    "user": ("userSourcedId", "users"),
}
REF_LISTS = {"terms": ("termSourcedIds", "academicSessions"), "agents": ("agentSourcedIds", "users")}
TEXT_LISTS = ("grades", "subjects", "subjectCodes", "periods")
RENAMED = {"preferredFirstName": "preferredGivenName", "preferredLastName": "preferredFamilyName"}
# What is not one cell; held by tests of its own.
APART = {"sourcedId", "status", "dateLastModified", "metadata", "children", "type", "role", "roles", "orgs"}
APART |= {"primaryOrg", "userProfiles", "userIds", "classType", "sex", "resources"}


@each_version
@pytest.mark.parametrize("path", RESOURCES)
def test_every_record_shows_its_cells_and_leaves_out_empty_ones(client: RosterClient, version: str, path: str) -> None:
    rows = read_rows(path[1:])
    records = client.call(version, path).records
    assert {record["sourcedId"] for record in records} == set(rows)
    for record in records:
        row = rows[record["sourcedId"]]
        shown = {name: value for name, value in record.items() if name not in APART}
        assert shown == expect_cells(version, path, row), record["sourcedId"]


def expect_cells(version: str, path: str, row: dict[str, str]) -> dict[str, Any]:
    """The fields of a record that show one cell each."""
    fields: dict[str, Any] = {}
    for name in top_level(version, path):
        if name in REFS and (name, path) != ("schoolYear", "/academicSessions"):
            column, target = REFS[name]
            if row[column]:
                fields[name] = ref(version, target or path[1:], row[column])
        elif name in REF_LISTS:
            column, target = REF_LISTS[name]
            if row[column]:
                fields[name] = [ref(version, target, item) for item in row[column].split(",")]
        elif name not in APART:
            cell = row.get(RENAMED.get(name, name), "")
            if cell:
                fields[name] = cell.split(",") if name in TEXT_LISTS else cell
    # 1.2 has these on every record.
    if version == "v1p2" and path in ("/orgs", "/courses"):
        fields.setdefault({"/orgs": "identifier", "/courses": "courseCode"}[path], "")
    return fields


@each_version
@pytest.mark.parametrize("path", RESOURCES)
def test_every_record_has_what_is_required_and_nothing_unknown(client: RosterClient, version: str, path: str) -> None:
    for record in client.call(version, path).records:
        assert required(version, path) <= set(record) <= set(top_level(version, path))
        assert record["status"] == "active"
        assert "" not in [value for name, value in record.items() if name not in ("identifier", "courseCode")]
        assert [] not in record.values()


@each_version
def test_metadata_shows_the_extension_columns_that_have_a_value(client: RosterClient, version: str) -> None:
    for path in ("/orgs", "/users", "/demographics"):
        rows = read_rows(path[1:])
        for record in client.call(version, path).records:
            cells = rows[record["sourcedId"]].items()
            wanted = {
                name.removeprefix("metadata."): cell for name, cell in cells if name.startswith("metadata.") and cell
            }
            assert record.get("metadata", {}) == wanted


@each_version
def test_children_are_the_records_that_name_the_parent(client: RosterClient, version: str) -> None:
    for path in ("/orgs", "/academicSessions"):
        rows = read_rows(path[1:])
        for record in client.call(version, path).records:
            ids = sorted(row["sourcedId"] for row in rows.values() if row["parentSourcedId"] == record["sourcedId"])
            assert record.get("children", []) == [ref(version, path[1:], sourced_id) for sourced_id in ids]


@each_version
def test_user_ids_are_pairs(client: RosterClient, version: str) -> None:
    rows = read_rows("users")
    for record in client.call(version, "/users").records:
        pairs = re.findall("{([^:]*):([^}]*)}", rows[record["sourcedId"]]["userIds"])
        assert [(item["type"], item["identifier"]) for item in record.get("userIds", [])] == pairs


# collection, id, field -> how 1.1 says it (None: left out), how 1.2 says it.
WORDS = [
    ("/orgs", "shv-campus", "type", "local", "ext:campus"),
    ("/orgs", "spr-high-science", "type", "department", "department"),
    ("/academicSessions", "shv-2027-camp", "type", "term", "ext:camp"),
    ("/academicSessions", "spr-2027-fall", "type", "semester", "semester"),
    ("/classes", "shv-class-bio-s", "classType", None, "ext:lab"),
    ("/classes", "shv-class-art-n", "classType", "homeroom", "homeroom"),
    ("/enrollments", "spr-enr-08", "role", "proctor", "ext:aide"),
    ("/enrollments", "spr-enr-16", "role", "administrator", "administrator"),
    ("/enrollments", "shv-enr-8", "role", "proctor", "ext:volunteer"),
    ("/demographics", "shv-student-1", "sex", None, "other"),
    ("/demographics", "shv-student-2", "sex", None, "unspecified"),
    ("/demographics", "shv-student-3", "sex", None, "ext:notReported"),
    ("/demographics", "shv-student-4", "sex", "male", "male"),
    ("/demographics", "spr-student-6", "sex", None, None),
]


@in_one_test
@each_version
@pytest.mark.parametrize(
    ("path", "sourced_id", "field", "in_1_1", "in_1_2"), [pytest.param(*row, id=f"{row[1]}-{row[2]}") for row in WORDS]
)
def test_a_word_is_said_in_the_vocabulary_of_the_version(
    client: RosterClient, version: str, path: str, sourced_id: str, field: str, in_1_1: str | None, in_1_2: str | None
) -> None:
    (record,) = client.call(version, f"{path}/{sourced_id}").records
    assert record.get(field) == {"v1p1": in_1_1, "v1p2": in_1_2}[version]


# user -> the one role and the orgs of 1.1; the roles of 1.2, each `type role org`.
ROLES = [
    ("spr-student-1", "student spr-elementary", ["primary student spr-elementary"]),
    # A class at another school opens a user there, with the role that the enrollment names; 1.1 shows it if it is the
    # same as that of the export.
    (
        "spr-student-6",
        "student spr-elementary spr-high",
        ["primary student spr-elementary", "primary student spr-high"],
    ),
    (
        "spr-teacher-1",
        "teacher spr-elementary spr-high",
        ["primary teacher spr-elementary", "primary teacher spr-high"],
    ),
    ("spr-admin-school", "administrator spr-high", ["primary siteAdministrator spr-high"]),
    (
        "spr-admin-district",
        "administrator spr-district spr-high",
        ["primary districtAdministrator spr-district", "primary siteAdministrator spr-high"],
    ),
    ("spr-aide-1", "aide spr-elementary", ["primary aide spr-elementary"]),
    (
        "spr-proctor@1",
        "proctor spr-high-science spr-high",
        ["primary proctor spr-high-science", "primary proctor spr-high"],
    ),
    ("spr-guardian-1", "guardian spr-elementary", ["primary guardian spr-elementary"]),
    ("spr-parent-1", "parent spr-elementary", ["primary parent spr-elementary"]),
    ("spr-relative-1", "relative spr-high", ["primary relative spr-high"]),
    ("shv-student-3", "student shv-south shv-north", ["primary student shv-south", "primary student shv-north"]),
    # The role at the primary org is the one role of 1.1; its orgs are those where it is held.
    (
        "shv-teacher-1",
        "teacher shv-south shv-north",
        [
            "primary teacher shv-south",
            "primary teacher shv-north",
            "secondary siteAdministrator shv-south",
            "secondary parent shv-north",
        ],
    ),
    ("shv-principal-1", "administrator shv-north", ["primary principal shv-north"]),
    # Counselor is said as aide in 1.1: the org stands there once.
    ("shv-counselor-1", "aide shv-north", ["primary counselor shv-north", "secondary aide shv-north"]),
    ("shv-sysadmin-1", "administrator shv-district", ["primary systemAdministrator shv-district"]),
    ("shv-districtadmin-1", "administrator shv-district", ["primary districtAdministrator shv-district"]),
    ("shv-coach-1", "aide shv-campus", ["primary ext:coach shv-campus", "primary proctor shv-south"]),
    ("shv-guardian-1", "guardian shv-north", ["primary guardian shv-north", "secondary ext:volunteer shv-north"]),
]


@in_one_test
@pytest.mark.parametrize(("sourced_id", "in_1_1", "in_1_2"), [pytest.param(*row, id=row[0]) for row in ROLES])
def test_roles_are_said_in_both_versions(client: RosterClient, sourced_id: str, in_1_1: str, in_1_2: list[str]) -> None:
    (old,) = client.call("v1p1", f"/users/{sourced_id}").records
    role, *orgs = in_1_1.split()
    assert old["role"] == role
    assert old["orgs"] == [ref("v1p1", "orgs", org) for org in orgs]
    (new,) = client.call("v1p2", f"/users/{sourced_id}").records
    assert [(item["roleType"], item["role"], item["org"]) for item in new["roles"]] == [
        (kind, role, ref("v1p2", "orgs", org)) for kind, role, org in map(str.split, in_1_2)
    ]


def test_roles_show_their_days_and_their_profile(client: RosterClient) -> None:
    roles = {
        (record["sourcedId"], role["org"]["sourcedId"], role["role"]): role
        for record in client.call("v1p2", "/users").records
        for role in record["roles"]
    }
    student = roles["shv-student-1", "shv-north", "student"]
    address = f"http://localhost{ROOTS['v1p2']}/users/shv-student-1#shv-profile-1"
    assert (student["beginDate"], student["endDate"], student["userProfile"]) == ("2026-09-01", "2027-06-30", address)
    teacher = roles["shv-teacher-1", "shv-south", "teacher"]
    assert teacher["beginDate"] == "2026-09-01"
    assert not {"endDate", "userProfile"} & set(teacher)


def test_profiles_show_their_credentials_without_the_password(client: RosterClient) -> None:
    address = f"http://localhost{ROOTS['v1p2']}/users/shv-student-1"
    (record,) = client.call("v1p2", "/users/shv-student-1").records
    assert record["userProfiles"] == [
        {
            "profileId": f"{address}#shv-profile-1",
            "profileType": "learner",
            "vendorId": "example.org/lms",
            "applicationId": "lms-1",
            "description": 'The "learning" portal',
            "credentials": [{"type": "username", "username": "zoe.o"}],
        },
        {
            "profileId": f"{address}#shv-profile-2",
            "profileType": "library",
            "vendorId": "example.org/library",
            "credentials": [{"type": "barcode", "username": "9001"}],
        },
    ]


# The first of the orgs is the primary one where 1.1 exported them.
PRIMARY_ORGS = [
    ("shv-teacher-1", "shv-south"),
    ("shv-student-4", None),
    ("spr-teacher-1", "spr-elementary"),
    ("spr-proctor@1", "spr-high-science"),
]


@pytest.mark.parametrize(("sourced_id", "org"), [pytest.param(*row, id=row[0]) for row in PRIMARY_ORGS])
def test_the_primary_org_is_shown_in_1_2(client: RosterClient, sourced_id: str, org: str | None) -> None:
    (record,) = client.call("v1p2", f"/users/{sourced_id}").records
    assert record.get("primaryOrg") == (None if org is None else ref("v1p2", "orgs", org))


@each_version
def test_no_password_and_nothing_of_one_is_ever_shown(client: RosterClient, version: str) -> None:
    for vendor in ("both", "elementary"):
        body = client.call(version, "/users", scopes=SCOPES, vendor=vendor).body
        assert b"never-stored" not in body
        assert b"password" not in body

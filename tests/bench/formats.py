"""A made-up district in the other formats: what its OneRoster 1.1 export says, as files of Clever and School Data Sync.

Departments and metadata have no place there and are left out; an enrollment has the role of its file.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

Row = Mapping[str, str]
# What every guardian is to a student.
RELATION = "Parent"


@dataclass(frozen=True)
class Tables:
    """The rows of a OneRoster 1.1 export, by file. `birth`: of demographics; `seats`: the enrollments
    of students; `teaching`: the teachers of each class."""

    orgs: tuple[Row, ...]
    users: Mapping[str, Row]
    courses: Mapping[str, Row]
    classes: Mapping[str, Row]
    sessions: Mapping[str, Row]
    birth: Mapping[str, Row]
    seats: tuple[Row, ...]
    teaching: Mapping[str, tuple[str, ...]]

    def list_people(self, role: str) -> Iterator[tuple[Row, str]]:
        """Each person of a role, once for each of their schools."""
        schools = {row["sourcedId"] for row in self.orgs if row["type"] == "school"}
        for user in self.users.values():
            if user["role"] == role:
                yield from ((user, org) for org in user["orgSourcedIds"].split(",") if org in schools)


def read_tables(export: Path) -> Tables:
    """Reads an export that `tools.generate_district` has written."""

    def read(name: str) -> tuple[Row, ...]:
        with (export / f"{name}.csv").open(encoding="utf-8", newline="") as lines:
            return tuple(csv.DictReader(lines))

    def read_by_id(name: str) -> dict[str, Row]:
        return {row["sourcedId"]: row for row in read(name)}

    enrollments = read("enrollments")
    teaching: dict[str, tuple[str, ...]] = {}
    for row in enrollments:
        if row["role"] == "teacher":
            teaching[row["classSourcedId"]] = (*teaching.get(row["classSourcedId"], ()), row["userSourcedId"])
    return Tables(
        tuple(row for row in read("orgs") if row["type"] != "department"),
        read_by_id("users"),
        read_by_id("courses"),
        read_by_id("classes"),
        read_by_id("academicSessions"),
        read_by_id("demographics"),
        tuple(row for row in enrollments if row["role"] == "student"),
        teaching,
    )


def write(folder: Path, name: str, rows: Iterable[Row]) -> None:
    """Writes a file with the headers of its first row."""
    rows = iter(rows)
    first = next(rows)
    with (folder / f"{name}.csv").open("w", encoding="utf-8", newline="") as lines:
        writer = csv.DictWriter(lines, list(first))
        writer.writeheader()
        writer.writerow(first)
        writer.writerows(rows)


def _find_agents(tables: Tables, user: Row) -> list[Row]:
    return [tables.users[agent] for agent in user["agentSourcedIds"].split(",") if agent in tables.users]


def _list_contacts(tables: Tables, user: Row) -> Iterator[dict[str, str]]:
    for agent in _find_agents(tables, user) or ({},):
        yield {
            "Contact_relationship": RELATION if agent else "",
            "Contact_sis_id": agent.get("sourcedId", ""),
            "Contact_name": f"{agent['givenName']} {agent['familyName']}" if agent else "",
            "Contact_phone": agent.get("phone", ""),
            "Contact_email": agent.get("email", ""),
        }


def write_clever(tables: Tables, folder: Path) -> None:
    """Writes the files of Clever: a row of a student for each school and contact."""
    schools = [row for row in tables.orgs if row["type"] == "school"]
    write(
        folder,
        "schools",
        (
            {"School_id": it["sourcedId"], "School_name": it["name"], "School_number": it["identifier"]}
            for it in schools
        ),
    )
    write(
        folder,
        "students",
        (
            {
                "School_id": school,
                "Student_id": user["sourcedId"],
                "Student_number": user["identifier"],
                "First_name": user["givenName"],
                "Middle_name": user["middleName"],
                "Last_name": user["familyName"],
                "Grade": user["grades"],
                "Gender": tables.birth[user["sourcedId"]]["sex"].capitalize(),
                "DOB": tables.birth[user["sourcedId"]]["birthDate"],
                "Student_email": user["email"],
                "Username": user["username"],
                **contact,
            }
            for user, school in tables.list_people("student")
            for contact in _list_contacts(tables, user)
        ),
    )
    write(
        folder,
        "teachers",
        (
            {
                "School_id": school,
                "Teacher_id": user["sourcedId"],
                "Teacher_number": user["identifier"],
                "Teacher_email": user["email"],
                "First_name": user["givenName"],
                "Last_name": user["familyName"],
            }
            for user, school in tables.list_people("teacher")
        ),
    )
    write(
        folder,
        "sections",
        (
            {
                "School_id": it["schoolSourcedId"],
                "Section_id": it["sourcedId"],
                "Teacher_id": tables.teaching[it["sourcedId"]][0],
                "Name": it["title"],
                "Section_number": it["classCode"],
                "Course_name": tables.courses[it["courseSourcedId"]]["title"],
                "Course_number": tables.courses[it["courseSourcedId"]]["courseCode"],
                "Period": it["periods"],
                "Term_name": term["title"],
                "Term_start": term["startDate"],
                "Term_end": term["endDate"],
            }
            for it in tables.classes.values()
            for term in (tables.sessions[it["termSourcedIds"].split(",")[0]],)
        ),
    )
    write(
        folder,
        "enrollments",
        (
            {"School_id": it["schoolSourcedId"], "Section_id": it["classSourcedId"], "Student_id": it["userSourcedId"]}
            for it in tables.seats
        ),
    )


def write_sds_v1(tables: Tables, folder: Path) -> None:
    """Writes the files of School Data Sync v1: a row of a student for each school, guardians by e-mail."""
    write(
        folder,
        "School",
        (
            {"SIS ID": it["sourcedId"], "Name": it["name"], "School Number": it["identifier"]}
            for it in tables.orgs
            if it["type"] == "school"
        ),
    )
    for name, role in (("Student", "student"), ("Teacher", "teacher")):
        write(
            folder,
            name,
            (
                {
                    "SIS ID": user["sourcedId"],
                    "School SIS ID": school,
                    "First Name": user["givenName"],
                    "Last Name": user["familyName"],
                    "Username": user["username"],
                    "Secondary Email": user["email"],
                    f"{name} Number": user["identifier"],
                    **({"Grade": user["grades"]} if role == "student" else {}),
                }
                for user, school in tables.list_people(role)
            ),
        )
    write(
        folder,
        "Section",
        (
            {
                "SIS ID": it["sourcedId"],
                "School SIS ID": it["schoolSourcedId"],
                "Section Name": it["title"],
                "Section Number": it["classCode"],
                "Course SIS ID": it["courseSourcedId"],
                "Course Name": tables.courses[it["courseSourcedId"]]["title"],
                "Term SIS ID": term["sourcedId"],
                "Term Name": term["title"],
                "Term StartDate": term["startDate"],
                "Term EndDate": term["endDate"],
            }
            for it in tables.classes.values()
            for term in (tables.sessions[it["termSourcedIds"].split(",")[0]],)
        ),
    )
    write(
        folder,
        "StudentEnrollment",
        ({"Section SIS ID": it["classSourcedId"], "SIS ID": it["userSourcedId"]} for it in tables.seats),
    )
    write(
        folder,
        "TeacherRoster",
        ({"Section SIS ID": taught, "SIS ID": it} for taught, staff in tables.teaching.items() for it in staff),
    )
    guardians = {it["sourcedId"]: it for user in tables.users.values() for it in _find_agents(tables, user)}
    reached = {key: it for key, it in guardians.items() if it["email"] and it["role"] != "student"}
    write(
        folder,
        "User",
        (
            {
                "Email": it["email"],
                "First Name": it["givenName"],
                "Last Name": it["familyName"],
                "Phone": it["phone"],
                "SIS ID": "",
            }
            for it in reached.values()
        ),
    )
    write(
        folder,
        "GuardianRelationship",
        (
            {"SIS ID": user["sourcedId"], "Email": agent["email"], "Role": RELATION}
            for user in tables.users.values()
            if user["role"] == "student"
            for agent in _find_agents(tables, user)
            if agent["sourcedId"] in reached
        ),
    )


def _write_sds(tables: Tables, folder: Path, users: Callable[[Row], Row]) -> None:
    write(
        folder,
        "orgs",
        ({key: it[key] for key in ("sourcedId", "name", "type", "parentSourcedId")} for it in tables.orgs),
    )
    write(
        folder,
        "users",
        (
            {
                **{key: it[key] for key in ("sourcedId", "givenName", "familyName", "email", "phone", "sms")},
                "username": it["username"] or it["sourcedId"],
                **users(it),
            }
            for it in tables.users.values()
        ),
    )
    write(
        folder,
        "classes",
        (
            {
                "sourcedId": it["sourcedId"],
                "orgSourcedId": it["schoolSourcedId"],
                "title": it["title"],
                "sessionSourcedIds": it["termSourcedIds"],
                "code": it["classCode"],
            }
            for it in tables.classes.values()
        ),
    )
    write(
        folder,
        "academicSessions",
        (
            {key: it[key] for key in ("sourcedId", "title", "type", "schoolYear", "startDate", "endDate")}
            for it in tables.sessions.values()
        ),
    )
    write(
        folder,
        "enrollments",
        (
            {"classSourcedId": it["classSourcedId"], "userSourcedId": it["userSourcedId"], "role": it["role"]}
            for it in (
                *tables.seats,
                *(
                    {"classSourcedId": taught, "userSourcedId": it, "role": "teacher"}
                    for taught, staff in tables.teaching.items()
                    for it in staff
                ),
            )
        ),
    )
    write(
        folder,
        "relationships",
        (
            {
                "userSourcedId": user["sourcedId"],
                "relationshipUserSourcedId": agent["sourcedId"],
                "relationshipRole": RELATION.lower(),
            }
            for user in tables.users.values()
            if user["role"] == "student"
            for agent in _find_agents(tables, user)
        ),
    )


def write_sds_v2(tables: Tables, folder: Path) -> None:
    """Writes the files of School Data Sync v2: a user has its orgs, role and grade."""

    def describe(user: Row) -> Row:
        orgs = ",".join(_list_orgs(tables, user))
        return {"orgSourcedIds": orgs, "role": user["role"], "grade": user["grades"]}

    _write_sds(tables, folder, describe)


def write_sds(tables: Tables, folder: Path) -> None:
    """Writes the files of School Data Sync v2.1: roles in a file of their own."""
    _write_sds(tables, folder, lambda user: {})
    write(
        folder,
        "roles",
        (
            {
                "userSourcedId": user["sourcedId"],
                "orgSourcedId": org,
                "role": user["role"],
                "grade": user["grades"],
                "isPrimary": "",
            }
            for user in tables.users.values()
            for org in _list_orgs(tables, user)
        ),
    )


def _list_orgs(tables: Tables, user: Row) -> list[str]:
    known = {row["sourcedId"] for row in tables.orgs}
    return [org for org in user["orgSourcedIds"].split(",") if org in known]


@dataclass(frozen=True)
class OtherFormat:
    """A format beside OneRoster. `family`: its word in `feeds.format`; `write`: writes the files of a district."""

    family: str
    write: Callable[[Tables, Path], None]


OTHER_FORMATS: Mapping[str, OtherFormat] = {
    "clever": OtherFormat("clever", write_clever),
    "sds v1": OtherFormat("sds", write_sds_v1),
    "sds v2": OtherFormat("sds", write_sds_v2),
    "sds v2.1": OtherFormat("sds", write_sds),
}

"""Whoever an enrollment shows at a school has a role there: records, filters, paths, `/v1`, rules and files agree.

The roles are those of a model that reads the rows of the export, with plain loops.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import urlencode

import pytest
import sqlalchemy as sa

from roster_service.db.engine import make_engine
from roster_service.feeds.group_check import find_wrong_groups
from roster_service.roster.label_check import find_wrong_labels
from roster_service.roster.vocabulary import USER_ROLES_1_1
from roster_service.schemas.file_presets import PRESETS
from tests.access_matrix.record_json import find_single_role, say_role
from tests.access_matrix.visible_records import Eyes, Grants, Roster, Rule
from tests.contract.client import ROOTS
from tests.deliveries.conftest import make
from tests.extent import examples

from .districts import CHANGES, GUARDIANS, District
from .world import SCOPES, Vendor, World

RUNS = examples(1, 1, 20)
STEPS = examples(2, 5, 24)
TURNS = examples(6, 3, 1)
# What begins, moves and ends roles that follow from enrollments.
OFTEN = ("an enrollment changes", "an enrollment ends", "a class moves", "a second role begins", "a second role ends")
SELDOM = ("a student moves", "a teacher moves", "a role word changes", "a primary school changes", "agents change")
# What one is at a school as whom one is in a class.
AT_SCHOOL = {"administrator": "siteAdministrator", "ext:aide": "aide"}
IN_CLASSES = ("student", "teacher", "teacher", "administrator", "proctor", "ext:aide", "ext:helper")
# What the filters of the rules of the others mean: of students, and of classes.
FILTERS = {
    "some grades": (("", "grades", frozenset({"06", "07"})), None),
    "some classes": (None, ("", "subjects", frozenset({"Math"}))),
}
VENDORS = ("one school", "some classes", "two schools", "some grades", "a district", "schools of two")


def begin_enrollment(district: District) -> None:
    """Somebody, also a guardian, takes part in a class of some school, as whatever."""
    user, taught = district.pick("users"), district.pick("classes")
    assert user is not None
    assert taught is not None
    district.add(
        "enrollments",
        district.name("n"),
        classSourcedId=taught["sourcedId"],
        userSourcedId=user["sourcedId"],
        schoolSourcedId=district.dice.choice([taught["schoolSourcedId"], district.pick_school()]),
        role=district.dice.choice(IN_CLASSES),
        endDate=district.dice.choice(["", "2001-01-01"]),
    )


def change_something(district: District) -> None:
    """What happens between two exports."""
    for _ in range(district.dice.randint(1, 3)):
        begin_enrollment(district)
    for names in (OFTEN, OFTEN, SELDOM):
        CHANGES[district.dice.choice(names)](district)


# --- what the roster is ---


def read_district(district: District) -> Roster:
    """The rows of the export as the tables have them, with the roles that follow from enrollments."""
    columns = {
        "orgs": {"sourced_id": "sourcedId", "type": "type", "district_id": "parentSourcedId"},
        "classes": {"sourced_id": "sourcedId", "school_id": "schoolSourcedId", "subjects": "subjects"},
        "enrollments": {
            "sourced_id": "sourcedId",
            "user_id": "userSourcedId",
            "class_id": "classSourcedId",
            "school_id": "schoolSourcedId",
            "role": "role",
        },
        "users": {"sourced_id": "sourcedId", "primary_org_id": "primaryOrgSourcedId", "grades": "grades"},
    }
    found: dict[str, list[dict[str, Any]]] = {
        file: [
            {"status": "active", **{column: row[header] for column, header in names.items()}}
            for row in district.rows[file].values()
        ]
        for file, names in columns.items()
    }
    for row in (*found["classes"], *found["users"]):
        row.update({name: row[name].split(",") for name in ("subjects", "grades") if name in row})
    schools = {row["sourced_id"]: row["school_id"] for row in found["classes"]}
    for row in found["enrollments"]:
        row["school_id"] = schools[row["class_id"]]
    for org in found["orgs"]:
        org["district_id"] = org["district_id"] or org["sourced_id"]
    users = district.rows["users"].values()
    found["user_agents"] = [
        {"user_id": row["sourcedId"], "agent_id": agent}
        for row in users
        for agent in filter(None, row["agentSourcedIds"].split(","))
    ]
    found["user_roles"] = [role for row in users for role in list_roles(district, row["sourcedId"])]
    return found


def list_roles(district: District, user: str) -> Iterator[dict[str, Any]]:
    """The roles of a user in their order: those of the export, then those of enrollments."""
    home = district.rows["users"][user]["primaryOrgSourcedId"]
    own = [(row["orgSourcedId"], row["role"], row["roleType"]) for row in district.find("roles", userSourcedId=user)]
    own.sort(key=lambda role: (role[2], role[0] != home, role[0], role[1]))
    belongs = {org for org, word, _ in own if word not in GUARDIANS}
    found = set()
    for row in district.find("enrollments", userSourcedId=user):
        # The enrollment is at the school of its class, whatever its row says.
        org = district.rows["classes"][row["classSourcedId"]]["schoolSourcedId"]
        if org not in belongs:
            found.add((org, AT_SCHOOL.get(row["role"], row["role"])))
    present = {org for org, _, _ in own}
    following = list[tuple[str, str, str]]()
    for org, word in sorted(found):
        following.append((org, word, "secondary" if org in present else "primary"))
        present.add(org)
    for ordinal, (org, word, kind) in enumerate([*own, *following], 1):
        yield {
            "user_id": user, "ordinal": ordinal, "org_id": org, "role": word, "role_type": kind,
            "origin": "export" if ordinal <= len(own) else "enrollment",
        }  # fmt: skip


def unite(rosters: Iterable[Roster]) -> Roster:
    """The rows of several feeds."""
    found = defaultdict[str, list[dict[str, Any]]](list)
    for roster in rosters:
        for table, rows in roster.items():
            found[table] += rows
    return found


def open_eyes(name: str, vendor: Vendor, roster: Roster, *, guardians: bool) -> Eyes:
    """What a vendor sees of it."""
    districts = tuple(district for district, schools in vendor.grants.items() if schools is None)
    schools = tuple(school for of_district in vendor.grants.values() for school in of_district or ())
    rules = list[Rule]()
    for district, _, rule in vendor.rules:
        students, classes = FILTERS[name]
        rules.append(Rule(district, None, students, classes, rule.staff, guardians=rule.guardians))
    return Eyes(Grants(districts, schools, tuple(rules)), guardians=guardians, roster=roster)


# --- what the interfaces say ---


@dataclass
class Answers:
    """What a vendor gets, of active records."""

    world: World
    name: str

    def list(self, version: str, path: str, condition: str = "") -> dict[str, Any]:
        """The records of a collection, by id."""
        found = self._read(version, path, condition)
        return {record["sourcedId"]: record for record in found if record["status"] == "active"}

    def _read(self, version: str, path: str, condition: str) -> list[Any]:
        query = urlencode({"limit": 1000} | ({"filter": condition} if condition else {}))
        answer = self.world.read_rostering(self.name, version)._get(f"{ROOTS[version]}{path}?{query}")
        assert answer.status_code == 200, answer.data
        [records] = (value for key, value in answer.get_json().items() if key != "statusInfoSet")
        return list(records)

    def list_students(self) -> dict[str, set[str]]:
        """The students of the vendor interface, each with the ids of the schools."""
        reader, found = self.world.read_students(self.name), dict[str, set[str]]()
        for lea in reader:
            answer = reader.read(lea, None)
            assert answer is not None
            for student in answer[0]:
                if student["status"] == "active":
                    found[student["sourcedId"]] = {school["sourcedId"] for school in student["schools"]}
        return found

    def read_files(self, preset: str) -> dict[str, list[dict[str, str]]]:
        """The files of a preset."""
        return make(self.world.engine, self.world.find_email(self.name), PRESETS[preset]).files


Shown = dict[str, list[tuple[str, str, str]]]


def check_1_2(answers: Answers, eyes: Eyes) -> Shown:
    """Checks 1.2, and returns the roles that it shows: (type, role, org) by user."""
    wanted: Shown = {
        user: [(role["role_type"], role["role"], role["org_id"]) for role in eyes.roles(user)] for user in eyes.users
    }
    records = answers.list("v1p2", "/users")
    shown = {
        user: [(role["roleType"], role["role"], role["org"]["sourcedId"]) for role in record["roles"]]
        for user, record in records.items()
    }
    assert shown == wanted
    for word, path in (("student", "students"), ("teacher", "teachers")):
        having = {user for user, roles in shown.items() if word in {role for _, role, _ in roles}}
        assert answers.list("v1p2", f"/{path}").keys() == having
        assert answers.list("v1p2", "/users", f"roles.role='{word}'").keys() == having
    for org in list_orgs(eyes):
        there = {user: {word for _, word, at in roles if at == org} for user, roles in shown.items()}
        filtered = answers.list("v1p2", "/users", f"roles.org.sourcedId='{org}'")
        assert filtered.keys() == {user for user, words in there.items() if words}
        check_paths(answers, "v1p2", eyes, org, there)
    files = answers.read_files("oneroster-1.2")
    rows = defaultdict[str, list[tuple[str, str, str]]](list)
    for row in files["roles"]:
        rows[row["userSourcedId"]].append((row["roleType"], row["role"], row["orgSourcedId"]))
    assert {user: sorted(found) for user, found in rows.items()} == {
        user: sorted(found) for user, found in shown.items()
    }
    return shown


def check_1_1(answers: Answers, eyes: Eyes) -> None:
    """Checks 1.1: a user has one role, and the orgs at which it is."""
    roster = {row["sourced_id"]: row for row in eyes.roster["users"]}
    words = {user: say_role(find_single_role(eyes, roster[user])["role"]) for user in eyes.users}
    at = {
        user: {role["org_id"] for role in eyes.roles(user) if say_role(role["role"]) == word}
        for user, word in words.items()
    }
    records = answers.list("v1p1", "/users")
    assert {user: record["role"] for user, record in records.items()} == words
    assert {user: {org["sourcedId"] for org in record["orgs"]} for user, record in records.items()} == at
    assert all(records[user]["orgs"] for user in records)
    for word in USER_ROLES_1_1.words:
        having = {user for user in words if words[user] == word}
        assert answers.list("v1p1", "/users", f"role='{word}'").keys() == having
        if word in ("student", "teacher"):
            assert answers.list("v1p1", f"/{word}s").keys() == having
    for org in list_orgs(eyes):
        there = {user: {words[user]} if org in orgs else set[str]() for user, orgs in at.items()}
        filtered = answers.list("v1p1", "/users", f"orgs.sourcedId='{org}'")
        assert filtered.keys() == {user for user, found in there.items() if found}
        check_paths(answers, "v1p1", eyes, org, there)
    rows = {row["sourcedId"]: row for row in answers.read_files("oneroster-1.1")["users"]}
    assert {user: row["role"] for user, row in rows.items()} == words
    assert {user: set(row["orgSourcedIds"].split(",")) for user, row in rows.items()} == at


def check_paths(answers: Answers, version: str, eyes: Eyes, org: str, there: dict[str, set[str]]) -> None:
    """Checks the paths below a school. `there`: the words that each user shows there."""
    if org in {row["sourced_id"] for row in eyes.roster["orgs"] if row["type"] == "school"}:
        for word, path in (("student", "students"), ("teacher", "teachers")):
            having = {user for user, words in there.items() if word in words}
            assert answers.list(version, f"/schools/{org}/{path}").keys() == having


def list_orgs(eyes: Eyes) -> list[str]:
    """The orgs that are seen, and one that is not and has nobody."""
    hidden = [row["sourced_id"] for row in eyes.roster["orgs"] if row["sourced_id"] not in eyes.orgs]
    return [*sorted(eyes.orgs), *hidden[:1]]


def check_students(answers: Answers, eyes: Eyes) -> None:
    """Checks the vendor interface."""
    schools = {row["sourced_id"] for row in eyes.roster["orgs"] if row["type"] == "school"}
    wanted = {
        user: {role["org_id"] for role in eyes.roles(user) if role["role"] == "student"} & schools
        for user in eyes.users
    }
    assert answers.list_students() == {user: found for user, found in wanted.items() if found}


@pytest.mark.parametrize("number", range(RUNS))
def test_who_has_a_role_at_a_school_is_the_same_everywhere(
    make_database: Callable[[], str], tmp_path: Path, number: int
) -> None:
    engine, dice = make_engine(make_database()), Random(number)
    world = World(engine, tmp_path, number)
    shown, instants, following, stamped = dict[str, Shown](), dict[str, str](), 0, 0
    try:
        for step in range(STEPS):
            for feed in sorted(world.present):
                district = world.districts[feed]
                district.dice = dice
                change_something(district)
            for feed in sorted(world.present):
                world.load(feed)
            roster = unite(read_district(district) for district in world.districts.values())
            following += sum(role["origin"] == "enrollment" for role in roster["user_roles"])
            with engine.connect() as connection:
                assert connection.scalar(sa.text("SELECT count(*) FROM sync_rejections")) == 0
                assert (find_wrong_labels(connection), find_wrong_groups(connection)) == ({}, {})
            # Some vendors after this step, the others after the next ones.
            for name in VENDORS[step % TURNS :: TURNS]:
                vendor, answers = world.vendors[name], Answers(world, name)
                eyes = open_eyes(name, vendor, roster, guardians=vendor.scopes == SCOPES)
                before, shown[name] = shown.get(name, {}), check_1_2(answers, eyes)
                check_1_1(answers, eyes)
                check_students(answers, open_eyes(name, vendor, roster, guardians=True))
                moved = {user for user in before.keys() & shown[name].keys() if before[user] != shown[name][user]}
                if moved:
                    changed = answers.list("v1p2", "/users", f"dateLastModified>'{instants[name]}'").keys()
                    assert moved <= changed, f"before the step {step}, without a new stamp for {name}"
                    stamped += len(moved)
                instants[name] = read_instant(world, name)
        assert following > STEPS
        assert stamped or STEPS <= TURNS
    finally:
        world.close()
        engine.dispose()


def read_instant(world: World, name: str) -> str:
    """The instant of the roster that a vendor sees."""
    answer = world.read_rostering(name, "v1p2").read("/orgs", None)
    assert answer is not None
    return answer[1]["X-Roster-As-Of"]

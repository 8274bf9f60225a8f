"""Who may see which record, said a second time: plain loops over plain dicts, nothing of the service."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property

from roster_service.schemas.sharing_rules import Rules, Staff

from .roster import ROSTER, Row

# Table -> its rows.
Roster = Mapping[str, list[Row]]

GUARDIAN_ROLES = {"guardian", "parent", "relative"}


@dataclass(frozen=True)
class Rule:
    """A grant with rules: of a district, or of one school of it. `students`, `classes`: the filter, a column, and the
    values of which a row has one; None for all."""

    district: str
    school: str | None
    students: tuple[str, str, frozenset[str]] | None
    classes: tuple[str, str, frozenset[str]] | None
    staff: Staff
    guardians: bool

    def make_rules(self) -> Rules:
        """The same as the service takes it."""
        filters = [None if rule is None else rule[0] for rule in (self.students, self.classes)]
        return Rules(*filters, self.staff, self.guardians)

    def opens_org(self, org: Row) -> bool:
        """Whether the grant is of this org."""
        return org["sourced_id"] == self.school if self.school else org["district_id"] == self.district


def _matches(row: Row, rule: tuple[str, str, frozenset[str]] | None) -> bool:
    if rule is None:
        return True
    value = row[rule[1]]
    return bool(rule[2].intersection(value if isinstance(value, list) else [value]))


@dataclass(frozen=True)
class Grants:
    """What a vendor was granted: whole districts, and single schools; and with rules. `kept`: who is kept from it."""

    districts: tuple[str, ...] = ()
    schools: tuple[str, ...] = ()
    rules: tuple[Rule, ...] = ()
    kept: tuple[str, ...] = ()


_GRADE = ("grades~'05'", "grades", frozenset({"05"}))
_MATH = ("subjects~'math'", "subjects", frozenset({"math"}))
_HOME = ("title='Home'", "title", frozenset({"Home"}))
_BO = ("givenName='Bo'", "given_name", frozenset({"Bo"}))

# Later than every grant of the matrix, and before the departures: what people did since they are kept, it is not told.
KEPT_AT = datetime(2099, 1, 1, 5, 0, 0, 250_000, UTC)

# One district alone, two that look alike, one school, a school beside a district, two schools, a foreign district.
GRANTS = {
    "nothing": Grants(),
    "district": Grants(("a",)),
    "two-districts": Grants(("a", "b")),
    "school": Grants((), ("a-1",)),
    "school-and-district": Grants(("b",), ("a-1",)),
    "two-schools": Grants((), ("a-2", "b-2")),
    "foreign-district": Grants(("c",)),
    # A rule of students, of classes, of both; two grants, neither of which opens what only both together would.
    "some-students": Grants(rules=(Rule("a", None, _GRADE, None, Staff.NONE, guardians=True),)),
    "some-classes": Grants(rules=(Rule("a", None, None, _MATH, Staff.CLASSES, guardians=True),)),
    "some-of-both": Grants(rules=(Rule("a", "a-1", _BO, _HOME, Staff.ALL, guardians=False),)),
    "two-rules": Grants(
        (),
        ("b-1",),
        (
            Rule("a", None, _BO, None, Staff.NONE, guardians=False),
            Rule("a", "a-1", None, _MATH, Staff.CLASSES, guardians=True),
            Rule("b", None, _GRADE, _MATH, Staff.NONE, guardians=True),
        ),
    ),
    # Whatever opens them: a student, and, of one vendor alone, one who is deleted, a teacher, a guardian.
    "district-but-some": Grants(("a",), ("b-1",), kept=("a-ann", "a-gone", "t-a")),
    "some-classes-but-some": Grants(
        rules=(Rule("a", None, None, _MATH, Staff.CLASSES, guardians=True),), kept=("a-ann", "g-a", "mix-2")
    ),
}


def by_id(table: str, roster: Roster = ROSTER) -> dict[str, Row]:
    """The rows of a table of records, by sourcedId."""
    return {row["sourced_id"]: row for row in roster[table]}


class Eyes:
    """What a caller with these grants sees of a roster; `guardians`: whether guardians are shown to them."""

    def __init__(self, grants: Grants, *, guardians: bool, roster: Roster = ROSTER) -> None:
        self.grants = grants
        self.roster = roster
        self.guardians = guardians

    @cached_property
    def granted(self) -> set[str]:
        """The orgs whose people, classes and enrollments are seen."""
        return {
            org["sourced_id"]
            for org in self.roster["orgs"]
            if org["district_id"] in self.grants.districts or org["sourced_id"] in self.grants.schools
        }

    @cached_property
    def orgs(self) -> set[str]:
        """The orgs that are seen themselves: those, and the districts of granted schools."""
        orgs = by_id("orgs", self.roster)
        shared = {key for key, org in orgs.items() if any(rule.opens_org(org) for rule in self.grants.rules)}
        above = {rule.district for rule in self.grants.rules if rule.school}
        return self.listing_orgs | shared | above

    @cached_property
    def listing_orgs(self) -> set[str]:
        """The orgs whose courses are seen: rules show only the courses of shared classes."""
        orgs = by_id("orgs", self.roster)
        return self.granted | {orgs[school]["district_id"] for school in self.grants.schools}

    @cached_property
    def before(self) -> Eyes:
        """What was seen before people were kept from the caller."""
        return Eyes(replace(self.grants, kept=()), guardians=self.guardians, roster=self.roster)

    @cached_property
    def _groups(self) -> list[Group]:
        return [open_group(rule, self.roster) for rule in self.grants.rules]

    def find_main_orgs(self, user_id: str) -> set[str]:
        """The orgs that may be shown as the main one of a user."""
        return self.granted | {
            org
            for group in self._groups
            for user, org, role in group.roles
            if user == user_id and (self.guardians or role not in GUARDIAN_ROLES)
        }

    @cached_property
    def academic_sessions(self) -> set[str]:
        """The calendar of every feed that brings a seen org."""
        feeds = {org["feed_id"] for org in self.roster["orgs"] if org["sourced_id"] in self.orgs}
        return {row["sourced_id"] for row in self.roster["academic_sessions"] if row["feed_id"] in feeds}

    @cached_property
    def classes(self) -> set[str]:
        """The classes of granted schools."""
        own = {row["sourced_id"] for row in self.roster["classes"] if row["school_id"] in self.granted}
        return own.union(*(group.classes for group in self._groups))

    @cached_property
    def courses(self) -> set[str]:
        """The courses that a seen org offers, and those of seen, active classes."""
        active = (row for row in self.roster["classes"] if row["status"] == "active")
        taught = {row["course_id"] for row in active if row["sourced_id"] in self.classes}
        return {
            row["sourced_id"]
            for row in self.roster["courses"]
            if row["org_id"] in self.listing_orgs or row["sourced_id"] in taught
        }

    def roles(self, user_id: str) -> list[Row]:
        """The roles of a user that are seen, in their order."""
        return [] if user_id in self.grants.kept else list(self._iter_roles(user_id))

    def _iter_roles(self, user_id: str) -> Iterator[Row]:
        for role in sorted(self.roster["user_roles"], key=lambda row: row["ordinal"]):
            key = (user_id, role["org_id"], role["role"])
            shared = any(key in group.roles for group in self._groups)
            if role["user_id"] != user_id or not (shared or role["org_id"] in self.granted):
                continue
            if self.guardians or role["role"] not in GUARDIAN_ROLES:
                yield role

    @cached_property
    def users(self) -> set[str]:
        """The users with a role that is seen."""
        return {row["sourced_id"] for row in self.roster["users"] if self.roles(row["sourced_id"])}

    @cached_property
    def enrollments(self) -> set[str]:
        """The enrollments at granted schools whose class and user are both seen without rules, and those that a grant
        with rules opens."""
        schools = {row["sourced_id"]: row["school_id"] for row in self.roster["classes"]}
        present = {
            role["user_id"] for user in self.users for role in self.roles(user) if role["org_id"] in self.granted
        }
        own = {
            row["sourced_id"]
            for row in self.roster["enrollments"]
            if {row["school_id"], schools.get(row["class_id"])} <= self.granted and row["user_id"] in present
        }
        kept = {row["sourced_id"] for row in self.roster["enrollments"] if row["user_id"] in self.grants.kept}
        return own.union(*(group.enrollments for group in self._groups)) - kept

    @cached_property
    def demographics(self) -> set[str]:
        """The demographics of seen users."""
        return {row["sourced_id"] for row in self.roster["demographics"] if row["sourced_id"] in self.users}


@dataclass(frozen=True)
class Group:
    """What a grant with rules opens. `roles`: (user, org, role)."""

    classes: set[str]
    roles: set[tuple[str, str, str]]
    enrollments: set[str]


def open_group(rule: Rule, roster: Roster) -> Group:
    """What a rule opens of a roster."""
    orgs = {org["sourced_id"] for org in roster["orgs"] if rule.opens_org(org)}
    taught = {
        row["sourced_id"]: row["school_id"]
        for row in roster["classes"]
        if row["school_id"] in orgs and _matches(row, rule.classes)
    }
    users = by_id("users", roster)
    there = [row for row in roster["enrollments"] if row["school_id"] in orgs and row["class_id"] in taught]
    active = [row for row in there if row["status"] == "active"]
    enrolled = {row["user_id"] for row in active if row["role"] == "student"}
    teaching = {(row["user_id"], taught[row["class_id"]]) for row in active if row["role"] == "teacher"}
    held = [(row["user_id"], row["org_id"], row["role"]) for row in roster["user_roles"] if row["org_id"] in orgs]
    roles: set[tuple[str, str, str]] = set()
    for user, org, role in held:
        if role == "student":
            opened = _matches(users[user], rule.students) and (rule.classes is None or user in enrolled)
        elif role in GUARDIAN_ROLES:
            opened = False
        else:
            opened = rule.staff is Staff.ALL or (rule.staff is Staff.CLASSES and (user, org) in teaching)
        if opened:
            roles.add((user, org, role))
    belonging = {user for user, _, _ in roles}
    # Who is a student there by an enrollment alone brings no guardians.
    exported = {
        (row["user_id"], row["org_id"], row["role"]) for row in roster["user_roles"] if row["origin"] == "export"
    }
    students = {
        user
        for user, _, role in roles.intersection(exported)
        if role == "student" and users[user]["status"] == "active"
    }
    related = {row["agent_id"] for row in roster["user_agents"] if row["user_id"] in students}
    related |= {row["user_id"] for row in roster["user_agents"] if row["agent_id"] in students}
    if rule.guardians:
        roles |= {(user, org, role) for user, org, role in held if role in GUARDIAN_ROLES and user in related}
    return Group(set(taught), roles, {row["sourced_id"] for row in there if row["user_id"] in belonging})

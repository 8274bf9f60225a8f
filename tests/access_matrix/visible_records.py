"""Who may see which record, said a second time: plain loops over plain dicts, nothing of the service."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from .roster import ROSTER, Row

# Table -> its rows.
Roster = Mapping[str, list[Row]]

GUARDIAN_ROLES = {"guardian", "parent", "relative"}


@dataclass(frozen=True)
class Grants:
    """What a vendor was granted: whole districts, and single schools."""

    districts: tuple[str, ...] = ()
    schools: tuple[str, ...] = ()


# One district alone, two that look alike, one school, a school beside a district, two schools, a foreign district.
GRANTS = {
    "nothing": Grants(),
    "district": Grants(("a",)),
    "two-districts": Grants(("a", "b")),
    "school": Grants((), ("a-1",)),
    "school-and-district": Grants(("b",), ("a-1",)),
    "two-schools": Grants((), ("a-2", "b-2")),
    "foreign-district": Grants(("c",)),
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
        return self.granted | {orgs[school]["district_id"] for school in self.grants.schools}

    @cached_property
    def academic_sessions(self) -> set[str]:
        """The calendar of every feed that brings a seen org."""
        feeds = {org["feed_id"] for org in self.roster["orgs"] if org["sourced_id"] in self.orgs}
        return {row["sourced_id"] for row in self.roster["academic_sessions"] if row["feed_id"] in feeds}

    @cached_property
    def classes(self) -> set[str]:
        """The classes of granted schools."""
        return {row["sourced_id"] for row in self.roster["classes"] if row["school_id"] in self.granted}

    @cached_property
    def courses(self) -> set[str]:
        """The courses that a seen org offers, and those of seen, active classes."""
        active = (row for row in self.roster["classes"] if row["status"] == "active")
        taught = {row["course_id"] for row in active if row["sourced_id"] in self.classes}
        return {
            row["sourced_id"]
            for row in self.roster["courses"]
            if row["org_id"] in self.orgs or row["sourced_id"] in taught
        }

    def roles(self, user_id: str) -> list[Row]:
        """The roles of a user that are seen, in their order."""
        return list(self._iter_roles(user_id))

    def _iter_roles(self, user_id: str) -> Iterator[Row]:
        for role in sorted(self.roster["user_roles"], key=lambda row: row["ordinal"]):
            if role["user_id"] != user_id or role["org_id"] not in self.granted:
                continue
            if self.guardians or role["role"] not in GUARDIAN_ROLES:
                yield role

    @cached_property
    def users(self) -> set[str]:
        """The users with a role that is seen."""
        return {row["sourced_id"] for row in self.roster["users"] if self.roles(row["sourced_id"])}

    @cached_property
    def enrollments(self) -> set[str]:
        """The enrollments at granted schools whose class and user are both seen."""
        return {
            row["sourced_id"]
            for row in self.roster["enrollments"]
            if row["school_id"] in self.granted and row["class_id"] in self.classes and row["user_id"] in self.users
        }

    @cached_property
    def demographics(self) -> set[str]:
        """The demographics of seen users."""
        return {row["sourced_id"] for row in self.roster["demographics"] if row["sourced_id"] in self.users}

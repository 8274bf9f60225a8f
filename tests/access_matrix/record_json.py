"""What a caller is shown of a record that they see: every member of its JSON, in both versions, made by hand."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from datetime import date, datetime
from functools import partial
from typing import Any
from urllib.parse import quote

from .roster import Row
from .visible_records import GUARDIAN_ROLES, KEPT_AT, Eyes

ROOTS = {
    "v1p1": "http://localhost/ims/oneroster/v1p1",
    "v1p2": "http://localhost/ims/oneroster/rostering/v1p2",
}
# The words that 1.1 lacks; what is neither here nor there is said with the second.
ORG_TYPES = ({"department", "district", "local", "national", "school", "state"}, "local")
SESSION_TYPES = ({"gradingPeriod", "schoolYear", "semester", "term"}, "term")
CLASS_TYPES = ({"homeroom", "scheduled"}, None)
SEXES = ({"female", "male"}, None)
ENROLLMENT_ROLES = ({"administrator", "proctor", "student", "teacher"}, "proctor")
USER_ROLES = ({"aide", "guardian", "parent", "proctor", "relative", "student", "teacher"}, "aide")
ADMINISTRATORS = {"principal", "districtAdministrator", "systemAdministrator", "siteAdministrator"}

# The lists that a record shows even if they are empty.
REQUIRED_LISTS = {"orgs", "roles", "terms"}

# The words of withheld fields, and the members of a user that each hides; those of demographics are their own members.
HIDDEN_OF_USERS = {
    "email": {"email"},
    "phone": {"phone"},
    "sms": {"sms"},
    "identifier": {"identifier", "userMasterIdentifier"},
    "userIds": {"userIds", "userProfiles", "roles.userProfile"},
    "middleName": {"middleName"},
    "preferredNames": {"preferredFirstName", "preferredMiddleName", "preferredLastName"},
    "pronouns": {"pronouns"},
    "agents": {"agents"},
}
HIDDEN_OF_DEMOGRAPHICS = (
    "birthDate",
    "sex",
    "americanIndianOrAlaskaNative",
    "asian",
    "blackOrAfricanAmerican",
    "nativeHawaiianOrOtherPacificIslander",
    "white",
    "demographicRaceTwoOrMoreRaces",
    "hispanicOrLatinoEthnicity",
    "countryOfBirthCode",
    "stateOfBirthAbbreviation",
    "cityOfBirth",
    "publicSchoolResidenceStatus",
)

Json = dict[str, Any]


def list_hidden(table: str, withheld: Iterable[str]) -> set[str]:
    """The members of the records of a table that these words hide; `roles.userProfile` is one inside another."""
    if table == "users":
        return {name for word in withheld for name in HIDDEN_OF_USERS.get(word, ())}
    return set(withheld).intersection(HIDDEN_OF_DEMOGRAPHICS) if table == "demographics" else set()


def show_value(value: Any) -> Any:
    """A stored value as it is written."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%dT%H:%M:%S.") + f"{value.microsecond // 1000:03}Z"
    return value.isoformat() if isinstance(value, date) else value


def say(words: tuple[set[str], str | None], word: str | None, version: str) -> str | None:
    """A word of a list, in the words of a version."""
    known, other = words
    return word if version == "v1p2" or word is None or word in known else other


def say_role(role: str) -> str:
    """A user's role in the words of 1.1."""
    return "administrator" if role in ADMINISTRATORS else str(say(USER_ROLES, role, "v1p1"))


def find_single_role(eyes: Eyes, row: Row) -> Row:
    """The role of a user in 1.1, of those that are seen: one of the export, at the primary org, else primary, else the
    first."""

    return min(eyes.roles(row["sourced_id"]), key=partial(_rank, row))


def _rank(user: Row, role: Row) -> tuple[Any, ...]:
    is_elsewhere = role["org_id"] != user["primary_org_id"]
    return (role["origin"] != "export", is_elsewhere, role["role_type"], role["ordinal"])


class Shower:
    """Shows records in a version to a caller whose scopes have these names, and from whom these words withhold."""

    def __init__(self, eyes: Eyes, version: str, scopes: Iterable[str], withheld: Iterable[str] = ()) -> None:
        self.eyes = eyes
        self.version = version
        self.root = ROOTS[version]
        self.scopes = set(scopes)
        self.withheld = set(withheld)

    def show(self, table: str, row: Row) -> Json:
        """The record."""
        shown = {
            "sourcedId": row["sourced_id"],
            "status": row["status"],
            "dateLastModified": max(self._list_stamps(table, row)),
            "metadata": row["metadata"] if self.shows_metadata(table, row) else None,
            **SHOWN[table](self, row),
        }
        hidden = list_hidden(table, self.withheld)
        return {
            name: show_value(value)
            for name, value in shown.items()
            if name not in hidden and value is not None and (value != [] or name in REQUIRED_LISTS)
        }

    def _list_stamps(self, table: str, row: Row) -> Iterator[datetime]:
        """Who named a person as an agent whom the vendor saw has the stamp with which the person was kept."""
        yield row["date_last_modified"]
        before = Eyes(replace(self.eyes.grants, kept=()), guardians=True, roster=self.eyes.roster)
        kept = before.users.intersection(self.eyes.grants.kept) if table == "users" else ()
        if any(it["user_id"] == row["sourced_id"] and it["agent_id"] in kept for it in before.roster["user_agents"]):
            yield KEPT_AT

    def shows_metadata(self, table: str, row: Row) -> bool:
        """Whether a scope shows the metadata of this record."""
        if table == "users":
            roles = {role["role"] for role in self.eyes.roles(row["sourced_id"])}
            as_student = "students-metadata.readonly" in self.scopes and "student" in roles
            return as_student or ("guardians-metadata.readonly" in self.scopes and bool(roles & GUARDIAN_ROLES))
        scope = {"orgs": "orgs-metadata.readonly", "demographics": "demographic-metadata.readonly"}.get(table)
        return scope in self.scopes

    def ref(self, kind: str, path: str, sourced_id: str | None, seen: Iterable[str]) -> Json | None:
        """A reference, to what the caller could fetch."""
        if sourced_id is None or sourced_id not in seen:
            return None
        return {"href": f"{self.root}/{path}/{quote(sourced_id, safe='')}", "sourcedId": sourced_id, "type": kind}

    def refs(self, kind: str, path: str, ids: Iterable[str], seen: Iterable[str]) -> list[Json | None]:
        """References to those of `ids` that the caller could fetch."""
        return [self.ref(kind, path, sourced_id, seen) for sourced_id in ids if sourced_id in seen]

    def _list_children(self, table: str, row: Row) -> list[str]:
        """The records below another; a tombstone is below none."""
        below = (it for it in self.eyes.roster[table] if it["parent_id"] == row["sourced_id"])
        return sorted(it["sourced_id"] for it in below if it["status"] == "active")

    def org(self, row: Row) -> Json:
        """Of an org."""
        children = self._list_children("orgs", row)
        return {
            "name": row["name"],
            "type": say(ORG_TYPES, row["type"], self.version),
            "identifier": self._never_absent(row["identifier"]),
            "parent": self.ref("org", "orgs", row["parent_id"], self.eyes.orgs),
            "children": self.refs("org", "orgs", children, self.eyes.orgs),
        }

    def session(self, row: Row) -> Json:
        """Of an academic session."""
        seen = self.eyes.academic_sessions
        children = self._list_children("academic_sessions", row)
        return {
            "title": row["title"],
            "type": say(SESSION_TYPES, row["type"], self.version),
            "startDate": row["start_date"],
            "endDate": row["end_date"],
            "schoolYear": row["school_year"],
            "parent": self.ref("academicSession", "academicSessions", row["parent_id"], seen),
            "children": self.refs("academicSession", "academicSessions", children, seen),
        }

    def course(self, row: Row) -> Json:
        """Of a course."""
        seen = self.eyes.academic_sessions
        return {
            "title": row["title"],
            "schoolYear": self.ref("academicSession", "academicSessions", row["school_year_id"], seen),
            "courseCode": self._never_absent(row["course_code"]),
            "grades": row["grades"],
            "org": self.ref("org", "orgs", row["org_id"], self.eyes.orgs),
            "subjects": row["subjects"],
            "subjectCodes": row["subject_codes"],
        }

    def taught_class(self, row: Row) -> Json:
        """Of a class. A deleted one opens no course, and still names its own."""
        ids = row["term_ids"] or []
        named = self.eyes.courses if row["status"] == "active" else {row["course_id"]}
        return {
            "title": row["title"],
            "classCode": row["class_code"],
            "classType": say(CLASS_TYPES, row["class_type"], self.version),
            "location": row["location"],
            "grades": row["grades"],
            "subjects": row["subjects"],
            "course": self.ref("course", "courses", row["course_id"], named),
            "school": self.ref("org", "orgs", row["school_id"], self.eyes.orgs),
            "terms": self.refs("academicSession", "academicSessions", ids, self.eyes.academic_sessions),
            "subjectCodes": row["subject_codes"],
            "periods": row["periods"],
        }

    def user(self, row: Row) -> Json:
        """Of a user."""
        agents = [it for it in self.eyes.roster["user_agents"] if it["user_id"] == row["sourced_id"]]
        ids = [it["agent_id"] for it in sorted(agents, key=lambda it: it["ordinal"])]
        shown = {
            "username": row["username"],
            "userIds": row["user_ids"],
            "enabledUser": row["enabled_user"],
            "givenName": row["given_name"],
            "familyName": row["family_name"],
            "middleName": row["middle_name"],
            "identifier": row["identifier"],
            "email": row["email"],
            "sms": row["sms"],
            "phone": row["phone"],
            "agents": self.refs("user", "users", ids, self.eyes.users),
            "grades": row["grades"],
        }
        return shown | (self._roles_of_1_1(row) if self.version == "v1p1" else self._more_of_1_2(row))

    def _roles_of_1_1(self, row: Row) -> Json:
        """One role, and the orgs at which the user has it."""
        said = say_role(find_single_role(self.eyes, row)["role"])
        roles = sorted(self.eyes.roles(row["sourced_id"]), key=partial(_rank, row))
        orgs = dict.fromkeys(role["org_id"] for role in roles if say_role(role["role"]) == said)
        return {"role": said, "orgs": self.refs("org", "orgs", orgs, self.eyes.orgs)}

    def _more_of_1_2(self, row: Row) -> Json:
        profiles = [it for it in self.eyes.roster["user_profiles"] if it["user_id"] == row["sourced_id"]]
        return {
            "userMasterIdentifier": row["user_master_identifier"],
            "preferredFirstName": row["preferred_first_name"],
            "preferredMiddleName": row["preferred_middle_name"],
            "preferredLastName": row["preferred_last_name"],
            "pronouns": row["pronouns"],
            "roles": [self._role(role) for role in self.eyes.roles(row["sourced_id"])],
            "userProfiles": [self._profile(it) for it in sorted(profiles, key=lambda it: it["profile_id"])],
            "primaryOrg": self.ref("org", "orgs", row["primary_org_id"], self.eyes.find_main_orgs(row["sourced_id"])),
        }

    def _role(self, role: Row) -> Json:
        shown = {
            "roleType": role["role_type"],
            "role": role["role"],
            "org": self.ref("org", "orgs", role["org_id"], self.eyes.orgs),
            "userProfile": self._profile_of(role),
            "beginDate": show_value(role["begin_date"]),
            "endDate": show_value(role["end_date"]),
        }
        return _leave_out_absent(shown)

    def _profile_of(self, role: Row) -> str | None:
        if "userIds" in self.withheld or role["profile_id"] is None:
            return None
        return self._profile_address(role["user_id"], role["profile_id"])

    def _profile(self, profile: Row) -> Json:
        return _leave_out_absent(
            {
                "profileId": self._profile_address(profile["user_id"], profile["profile_id"]),
                "profileType": profile["profile_type"],
                "vendorId": profile["vendor_id"],
                "applicationId": profile["application_id"],
                "description": profile["description"],
                "credentials": profile["credentials"],
            }
        )

    def _profile_address(self, user_id: str, profile_id: str) -> str:
        return f"{self.root}/users/{quote(user_id, safe='')}#{quote(profile_id, safe='')}"

    def enrollment(self, row: Row) -> Json:
        """Of an enrollment."""
        return {
            "user": self.ref("user", "users", row["user_id"], self.eyes.users),
            "class": self.ref("class", "classes", row["class_id"], self.eyes.classes),
            "school": self.ref("org", "orgs", row["school_id"], self.eyes.orgs),
            "role": say(ENROLLMENT_ROLES, row["role"], self.version),
            "primary": row["primary"],
            "beginDate": row["begin_date"],
            "endDate": row["end_date"],
        }

    def demographic(self, row: Row) -> Json:
        """Of a demographic record. The fixed roster lacks some of its columns."""
        columns = {name: re.sub("[A-Z]", lambda found: f"_{found[0].lower()}", name) for name in HIDDEN_OF_DEMOGRAPHICS}
        shown = {name: row.get(column) for name, column in columns.items()}
        return shown | {"sex": say(SEXES, row["sex"], self.version)}

    def _never_absent(self, text: str | None) -> str | None:
        return "" if text is None and self.version == "v1p2" else text


def _leave_out_absent(members: Json) -> Json:
    return {name: value for name, value in members.items() if value is not None}


SHOWN: dict[str, Callable[[Shower, Row], Json]] = {
    "orgs": Shower.org,
    "academic_sessions": Shower.session,
    "courses": Shower.course,
    "classes": Shower.taught_class,
    "users": Shower.user,
    "enrollments": Shower.enrollment,
    "demographics": Shower.demographic,
}

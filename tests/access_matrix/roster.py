"""The roster of the matrix, in plain dicts by table: three districts that look alike, and people between them.

Districts A and B come from one feed and share its calendar, a state above them, guardians and teachers; district C
comes from another feed. Every kind of record has metadata, and most have tombstones. Names repeat across districts, so
that what a caller may not see looks like what they may see.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any

Row = dict[str, Any]

NEAR, FAR = 1, 2
FEEDS = {NEAR: "near", FAR: "far"}
START = datetime(2026, 11, 1, 6, 0, 0, 250_000, UTC)


def _base(number: int, sourced_id: str, feed: int, **more: Any) -> Row:
    """What every record has; each is a little younger than the one before, but for every third."""
    return {
        "sourced_id": sourced_id,
        "feed_id": feed,
        "status": "tobedeleted" if "gone" in sourced_id else "active",
        "date_last_modified": START + timedelta(hours=number - number % 3),
        "metadata": {"note": f"note {number % 4}", "secretOf": sourced_id} if number % 5 else None,
        **more,
    }


def _rows(names: str, *rows: tuple[Any, ...]) -> list[Row]:
    """Records of one table: sourcedId, feed, and then the columns of `names`."""
    columns = names.split()
    return [
        _base(number, sourced_id, feed, **dict(zip(columns, cells, strict=True)))
        for number, (sourced_id, feed, *cells) in enumerate(rows, 1)
    ]


ORGS = _rows(
    "name type identifier parent_id district_id",
    ("state", NEAR, "State", "state", "S", None, None),
    ("a", NEAR, "Unified District", "district", "0042", "state", "a"),
    ("a-1", NEAR, "Lincoln School", "school", "0042-1", "a", "a"),
    ("a-2", NEAR, "Lincoln Annex", "school", None, "a", "a"),
    ("a-1-dept", NEAR, "Science", "ext:faculty", None, "a-1", "a"),
    ("a-gone", NEAR, "Lincoln School", "school", "0042-9", "a", "a"),
    ("b", NEAR, "Unified District", "district", "0043", "state", "b"),
    ("b-1", NEAR, "Lincoln School", "school", "0042-1", "b", "b"),
    ("b-2", NEAR, "Lincoln Annex", "school", None, "b-campus", "b"),
    ("b-campus", NEAR, "Campus", "local", None, "b", "b"),
    ("c", FAR, "Unified District", "district", "0042", None, "c"),
    ("c-1", FAR, "Lincoln School", "school", "0042-1", "c", "c"),
)

_AUTUMN, _WINTER, _SUMMER = date(2026, 9, 1), date(2027, 1, 31), date(2027, 7, 15)
ACADEMIC_SESSIONS = _rows(
    "title start_date end_date type parent_id school_year",
    ("year", NEAR, "2026/27", _AUTUMN, _SUMMER, "schoolYear", None, "2027"),
    ("fall", NEAR, "Fall", _AUTUMN, _WINTER, "term", "year", "2027"),
    ("fall-gp", NEAR, "First", _AUTUMN, date(2026, 11, 1), "gradingPeriod", "fall", "2027"),
    ("spring", NEAR, "Spring", _WINTER, _SUMMER, "semester", "year", "2027"),
    ("spring-part", NEAR, "Spring", _WINTER, _SUMMER, "term", "spring", "2027"),
    ("camp", NEAR, "Camp", _SUMMER, _SUMMER, "ext:camp", "year", "2027"),
    ("gone-term", NEAR, "Fall", _AUTUMN, _WINTER, "term", "year", "2026"),
    ("gone-gp", NEAR, "First", _AUTUMN, _WINTER, "gradingPeriod", "fall", "2026"),
    ("c-year", FAR, "2026/27", _AUTUMN, _SUMMER, "schoolYear", None, "2027"),
    ("c-fall", FAR, "Fall", _AUTUMN, _WINTER, "term", "c-year", "2027"),
    ("c-gp", FAR, "First", _AUTUMN, _WINTER, "gradingPeriod", "c-fall", "2027"),
)

COURSES = _rows(
    "title school_year_id course_code grades org_id subjects subject_codes",
    # Offered by a district and taught at several of its schools.
    ("a-math", NEAR, "Math", "year", "M1", ["05", "06"], "a", ["math"], ["2"]),
    # Offered by one school and taught at another.
    ("a-bio", NEAR, "Biology", "year", None, None, "a-2", ["science"], None),
    # Offered by the other district and taught in both.
    ("b-math", NEAR, "Math", "year", "M1", ["05"], "b", ["math"], ["2"]),
    # Offered above every district, so visible through its classes alone.
    ("civics", NEAR, "Civics", None, "C", None, "state", None, None),
    ("a-gone-course", NEAR, "Math", "gone-term", "M0", ["04"], "a-1", None, None),
    ("b-art", NEAR, "Art", None, "M1", None, "b-1", None, None),
    ("c-math", FAR, "Math", "c-year", "M1", ["05"], "c", ["math"], ["2"]),
)

CLASSES = _rows(
    "title class_code class_type location grades course_id school_id subjects subject_codes periods",
    ("a-1-math/1", NEAR, "Math", "1", "scheduled", "R1", ["05"], "a-math", "a-1", ["math"], ["2"], ["1", "2"]),
    ("a-1-home", NEAR, "Home", None, "homeroom", None, None, "a-bio", "a-1", None, None, None),
    ("a-1-guest", NEAR, "Math", "2", "ext:guest", "R1", None, "b-math", "a-1", None, None, ["3"]),
    ("a-2-math", NEAR, "Math", "1", "scheduled", "R1", ["05"], "a-math", "a-2", ["math"], None, ["1"]),
    ("a-2-civics", NEAR, "Civics", "3", None, None, None, "civics", "a-2", None, None, None),
    ("a-1-gone", NEAR, "Math", "9", "scheduled", "R9", None, "a-gone-course", "a-1", None, None, None),
    ("b-1-math", NEAR, "Math", "1", "scheduled", "R1", ["05"], "b-math", "b-1", ["math"], ["2"], ["1", "2"]),
    ("b-1-civics", NEAR, "Civics", "3", None, None, None, "civics", "b-1", None, None, None),
    ("b-2-math", NEAR, "Math", "1", "scheduled", None, None, "a-math", "b-2", None, None, None),
    ("c-1-math", FAR, "Math", "1", "scheduled", "R1", ["05"], "c-math", "c-1", ["math"], ["2"], ["1"]),
)

# class -> its terms, in order.
CLASS_TERMS = {
    "a-1-math/1": ["fall", "spring-part"],
    "a-1-home": ["spring"],
    "a-1-guest": ["fall"],
    "a-2-math": ["fall"],
    "a-2-civics": ["camp"],
    "a-1-gone": ["gone-term"],
    "b-1-math": ["fall", "spring"],
    "b-1-civics": ["spring-part"],
    "b-2-math": ["fall"],
    "c-1-math": ["c-fall"],
}


def _user(number: int, sourced_id: str, given: str, primary_org: str | None, **more: Any) -> Row:
    feed = FAR if sourced_id.startswith("c-") else NEAR
    return _base(
        number,
        sourced_id,
        feed,
        user_master_identifier=f"m-{sourced_id}" if number % 3 else None,
        username=sourced_id,
        user_ids=[{"type": "LDAP", "identifier": f"ldap-{sourced_id}"}] if number % 2 else None,
        enabled_user=number % 4 != 0,
        given_name=given,
        family_name="Lee",
        middle_name="Q" if number % 2 else None,
        preferred_first_name=None,
        preferred_middle_name=None,
        preferred_last_name="Lee-Q" if number % 5 == 0 else None,
        pronouns=None,
        primary_org_id=primary_org,
        identifier=f"{number % 6}",
        email=f"{sourced_id}@people.example",
        sms=None,
        phone=f"+1 {number}" if number % 2 else None,
        grades=["05"] if given in ("Ann", "Bo") else None,
        **more,
    )


# sourcedId -> given name, primary org, roles (org, role, type; a fourth: its origin), agents.
PEOPLE: dict[str, tuple[str, str | None, tuple[tuple[str, ...], ...], tuple[str, ...]]] = {
    "a-ann": ("Ann", "a-1", (("a-1", "student", "primary"),), ("g-shared", "g-a", "b-ann", "mix", "nobody")),
    "b-ann": ("Ann", "b-1", (("b-1", "student", "primary"),), ("g-shared", "g-b", "a-ann")),
    "c-ann": ("Ann", "c-1", (("c-1", "student", "primary"),), ("c-g",)),
    "a-2-bo": ("Bo", "a", (("a-2", "student", "primary"),), ("mix-2",)),
    "two": ("Bo", "a-2", (("a-1", "student", "secondary"), ("a-2", "student", "primary")), ("two-g",)),
    "moved": ("Bo", "b-1", (("a-1", "student", "secondary"), ("b-1", "student", "primary")), ("g-b", "g-a")),
    "a-gone": ("Ann", None, (("a-1", "student", "primary"),), ("g-a",)),
    "t-a": ("Kim", "a-1", (("a-1", "teacher", "primary"), ("a-1", "aide", "secondary")), ()),
    "t-ab": ("Kim", "b", (("b-1", "teacher", "primary"), ("a-1", "teacher", "secondary")), ("a-ann", "b-ann")),
    "t-dept": ("Kim", "a-1-dept", (("a-1-dept", "teacher", "primary"),), ()),
    "c-t": ("Kim", "c-1", (("c-1", "teacher", "primary"),), ()),
    "head-a": ("Pat", "a", (("a", "districtAdministrator", "primary"), ("a-2", "principal", "secondary")), ()),
    "head-b": ("Pat", "b", (("b", "districtAdministrator", "primary"),), ("head-a",)),
    "head-state": ("Pat", "state", (("state", "systemAdministrator", "primary"),), ()),
    "coach": ("Pat", "b-1", (("b-1", "ext:coach", "primary"), ("a-2", "counselor", "secondary")), ()),
    "g-shared": ("Sam", None, (("a-1", "guardian", "primary"), ("b-1", "guardian", "secondary")), ("a-ann", "b-ann")),
    "g-a": ("Sam", "a-1", (("a-1", "parent", "primary"),), ("a-ann", "moved")),
    "g-b": ("Sam", "b-1", (("b-1", "relative", "primary"),), ("b-ann",)),
    "two-g": ("Sam", "a-2", (("a-2", "guardian", "primary"), ("a-2", "parent", "secondary")), ("two",)),
    "c-g": ("Sam", "c-1", (("c-1", "guardian", "primary"),), ("c-ann",)),
    # A teacher here and a parent there; a student who is also a guardian, at another school.
    "mix": ("Lou", "b-1", (("b-1", "parent", "primary"), ("a-1", "teacher", "secondary")), ("b-ann",)),
    "mix-2": ("Lou", "a-2", (("a-2", "student", "primary"), ("a-1", "guardian", "secondary")), ("a-2-bo",)),
    "mix-3": ("Lou", "a-1", (("a-1", "guardian", "primary"), ("b-1", "student", "secondary")), ()),
    "nobody": ("Ann", "a-1", (), ("a-ann",)),
    # A student of another school, whose enrollment opens the student here; an administrator and a student who teach a
    # class of another school.
    "guest": (
        "Bo",
        "b-1",
        (("b-1", "student", "primary"), ("a-1", "student", "primary", "enrollment")),
        ("guest-g",),
    ),
    "guest-g": ("Sam", "a-1", (("a-1", "guardian", "primary"),), ()),
    "head-teaches": (
        "Pat",
        "b",
        (("b", "districtAdministrator", "primary"), ("a-1", "teacher", "primary", "enrollment")),
        (),
    ),
    "teaches": ("Ann", "b-1", (("b-1", "student", "primary"), ("a-1", "teacher", "primary", "enrollment")), ("g-b",)),
}
USERS = [
    _user(number, sourced_id, given, primary)
    for number, (sourced_id, (given, primary, _, _)) in enumerate(PEOPLE.items(), 1)
]
USER_ROLES = [
    {
        "user_id": sourced_id,
        "ordinal": ordinal,
        "org_id": org,
        "role": role,
        "role_type": kind,
        "begin_date": _AUTUMN if ordinal else None,
        "end_date": _SUMMER if role == "student" else None,
        "profile_id": "p/1" if sourced_id in ("a-ann", "t-ab") else None,
        "origin": next(iter(origin), "export"),
    }
    for sourced_id, (_, _, roles, _) in PEOPLE.items()
    for ordinal, (org, role, kind, *origin) in enumerate(roles)
]
USER_AGENTS = [
    {"user_id": sourced_id, "ordinal": ordinal, "agent_id": agent}
    for sourced_id, (_, _, _, agents) in PEOPLE.items()
    for ordinal, agent in enumerate(agents)
]
USER_PROFILES = [
    {
        "user_id": sourced_id,
        "profile_id": "p/1",
        "profile_type": "app",
        "vendor_id": "v",
        "application_id": "app-1",
        "description": None,
        "credentials": [{"type": "name", "username": f"login-{sourced_id}"}],
    }
    for sourced_id in ("a-ann", "t-ab")
]

ENROLLMENTS = _rows(
    "user_id class_id school_id role primary begin_date end_date",
    ("e-01", NEAR, "a-ann", "a-1-math/1", "a-1", "student", None, _AUTUMN, _SUMMER),
    ("e-02", NEAR, "b-ann", "b-1-math", "b-1", "student", None, _AUTUMN, _SUMMER),
    ("e-03", FAR, "c-ann", "c-1-math", "c-1", "student", None, _AUTUMN, _SUMMER),
    ("e-04", NEAR, "moved", "a-1-math/1", "a-1", "student", None, None, _WINTER),
    ("e-05", NEAR, "moved", "b-1-math", "b-1", "student", None, _WINTER, None),
    ("e-06", NEAR, "two", "a-1-home", "a-1", "student", None, None, None),
    ("e-07", NEAR, "two", "a-2-math", "a-2", "student", None, None, None),
    ("e-08", NEAR, "t-a", "a-1-math/1", "a-1", "teacher", True, None, None),
    ("e-09", NEAR, "t-ab", "a-1-guest", "a-1", "teacher", True, None, None),
    ("e-10", NEAR, "t-ab", "b-1-math", "b-1", "teacher", False, None, None),
    ("e-11", FAR, "c-t", "c-1-math", "c-1", "teacher", True, None, None),
    # A guardian helps in a class: without the right to see guardians, nobody is seen to.
    ("e-12", NEAR, "g-a", "a-1-guest", "a-1", "ext:helper", None, None, None),
    ("e-13", NEAR, "mix-2", "a-2-civics", "a-2", "student", None, None, None),
    ("e-14", NEAR, "mix", "a-1-home", "a-1", "teacher", False, None, None),
    # At one school, in a class of another.
    ("e-15", NEAR, "two", "a-2-civics", "a-1", "student", None, None, None),
    ("e-16", NEAR, "a-2-bo", "b-2-math", "a-2", "student", None, None, None),
    ("e-gone", NEAR, "a-ann", "a-1-home", "a-1", "student", None, _AUTUMN, None),
    ("e-gone-2", NEAR, "a-gone", "a-1-math/1", "a-1", "student", None, _AUTUMN, None),
    ("e-17", NEAR, "a-gone", "a-1-guest", "a-1", "student", None, _AUTUMN, None),
    ("e-18", NEAR, "mix-3", "b-1-civics", "b-1", "student", None, None, None),
    ("e-19", NEAR, "coach", "b-1-civics", "b-1", "administrator", None, None, None),
    ("e-20", NEAR, "nobody", "a-1-home", "a-1", "student", None, None, None),
    ("e-21", NEAR, "guest", "a-1-home", "a-1", "student", None, None, None),
    ("e-22", NEAR, "head-teaches", "a-1-home", "a-1", "teacher", None, None, None),
    ("e-23", NEAR, "teaches", "a-1-home", "a-1", "teacher", None, None, None),
    ("e-24", NEAR, "guest", "a-1-math/1", "a-1", "student", None, None, None),
)

DEMOGRAPHICS = _rows(
    "birth_date sex asian white hispanic_or_latino_ethnicity country_of_birth_code city_of_birth",
    ("a-ann", NEAR, date(2015, 2, 3), "female", True, False, None, "US", "Springfield"),
    ("b-ann", NEAR, date(2015, 2, 3), "female", False, None, True, "US", "Springfield"),
    ("c-ann", FAR, date(2015, 2, 3), "other", None, True, None, "US", "Springfield"),
    ("moved", NEAR, date(2014, 5, 6), "male", None, None, None, None, None),
    ("two", NEAR, None, "unspecified", None, True, None, "CA", None),
    ("t-ab", NEAR, date(1980, 1, 1), "male", None, None, None, None, None),
    ("g-a", NEAR, date(1979, 1, 1), "female", None, None, None, "US", None),
    ("mix", NEAR, date(1978, 1, 1), None, None, None, None, None, None),
    ("mix-2", NEAR, date(2008, 1, 1), None, None, None, None, None, None),
    ("a-gone", NEAR, date(2015, 2, 3), "female", None, None, None, None, "Springfield"),
    ("nobody", NEAR, date(2015, 2, 3), "female", None, None, None, None, "Springfield"),
)

# Table -> its rows.
ROSTER: dict[str, list[Row]] = {
    "orgs": ORGS,
    "academic_sessions": ACADEMIC_SESSIONS,
    "courses": COURSES,
    "classes": [{**row, "term_ids": CLASS_TERMS.get(row["sourced_id"])} for row in CLASSES],
    "users": USERS,
    "user_roles": USER_ROLES,
    "user_agents": USER_AGENTS,
    "user_profiles": USER_PROFILES,
    "enrollments": ENROLLMENTS,
    "demographics": DEMOGRAPHICS,
}

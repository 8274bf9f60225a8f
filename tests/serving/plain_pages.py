"""Pages by plain SQL, written by hand beside the service's own: ORDER BY, LIMIT, OFFSET, and a count."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import sqlalchemy as sa

GRANTED = "(SELECT o.sourced_id FROM orgs o WHERE o.district_id = ANY (:districts) OR o.sourced_id = ANY (:schools))"
SHOWN = (
    "(SELECT o.sourced_id FROM orgs o WHERE o.district_id = ANY (:districts) OR o.sourced_id = ANY (:schools) "
    "OR o.sourced_id IN (SELECT s.district_id FROM orgs s WHERE s.sourced_id = ANY (:schools)))"
)
PEOPLE = f"(SELECT r.user_id FROM user_roles r WHERE r.org_id IN {GRANTED})"
STUDENTS = f"(SELECT r.user_id FROM user_roles r WHERE r.role = 'student' AND r.org_id IN {GRANTED})"
# Who left the list of students, and is still seen elsewhere.
DEPARTED = (
    "(SELECT d.sourced_id FROM departures d JOIN visibility_labels l ON l.id = d.label_id "
    f"WHERE d.type = 'users' AND l.student_orgs && ARRAY{GRANTED})"
)
CLASSES = f"(SELECT c.sourced_id FROM classes c WHERE c.school_id IN {GRANTED})"
ENROLLED = f"t.school_id IN {GRANTED} AND t.class_id IN {CLASSES} AND t.user_id IN {PEOPLE}"


@dataclass(frozen=True)
class Shape:
    """A collection: its table, who sees what of it, and what it may be filtered and sorted by, all as SQL."""

    table: str
    condition: str
    filters: Mapping[str, str]
    sorts: Mapping[str, str]


BASE_FILTERS = {
    "status='active'": "t.status = 'active'",
    "sourcedId>'8'": "t.sourced_id > '8'",
    "dateLastModified>='2026-11-02'": "t.date_last_modified >= '2026-11-02T00:00Z'",
    "dateLastModified<'2026-11-02'": "t.date_last_modified < '2026-11-02T00:00Z'",
    "status='tobedeleted' AND sourcedId<'2'": "t.status = 'tobedeleted' AND t.sourced_id < '2'",
}
BASE_SORTS = {"sourcedId": "t.sourced_id", "dateLastModified": "t.date_last_modified", "status": "t.status"}
# A key of `metadata` is the caller's own word.
CITY = """(t.metadata ->> 'city') COLLATE "C\""""
ORG_FILTERS = {
    **BASE_FILTERS,
    "metadata.city='B' OR metadata.city!='a'": f"({CITY} = 'B' OR {CITY} IS DISTINCT FROM 'a')",
}
ORG_SORTS = {**BASE_SORTS, "name": "t.name", "metadata.city": CITY, "metadata.none": "NULL::text"}
USER_FILTERS = {
    **BASE_FILTERS,
    "familyName~'a'": "lower(t.family_name) LIKE '%a%'",
    "middleName!='x' AND givenName<'M'": "t.middle_name IS DISTINCT FROM 'x' AND t.given_name < 'M'",
    "email='nobody' OR grades~'05,07'": "(t.email = 'nobody' OR coalesce(t.grades && '{05,07}', false))",
}
# Few have a phone or a middle name, and many share a family name.
USER_SORTS = {
    **BASE_SORTS,
    "familyName": "t.family_name",
    "middleName": "t.middle_name",
    "phone": "t.phone",
    "enabledUser": "t.enabled_user",
}
ENROLLMENT_FILTERS = {
    **BASE_FILTERS,
    "role='teacher'": "t.role = 'teacher'",
    "primary='true' OR beginDate>'2026-01-01'": (
        "(coalesce(t.\"primary\", false) OR coalesce(t.begin_date > '2026-01-01', false))"
    ),
}
ENROLLMENT_SORTS = {**BASE_SORTS, "role": "t.role", "primary": 't."primary"', "user.sourcedId": "t.user_id"}

SHAPES = {
    "/orgs": Shape("orgs", f"t.sourced_id IN {SHOWN}", ORG_FILTERS, ORG_SORTS),
    "/classes": Shape("classes", f"t.school_id IN {GRANTED}", BASE_FILTERS, {**BASE_SORTS, "title": "t.title"}),
    "/users": Shape("users", f"t.sourced_id IN {PEOPLE}", USER_FILTERS, USER_SORTS),
    "/students": Shape(
        "users",
        f"t.sourced_id IN {PEOPLE} AND (t.sourced_id IN {STUDENTS} OR t.sourced_id IN {DEPARTED})",
        USER_FILTERS,
        USER_SORTS,
    ),
    "/enrollments": Shape("enrollments", ENROLLED, ENROLLMENT_FILTERS, ENROLLMENT_SORTS),
    "/demographics": Shape(
        "demographics", f"t.sourced_id IN {PEOPLE}", BASE_FILTERS, {**BASE_SORTS, "birthDate": "t.birth_date"}
    ),
    "/schools/{schoolId}/enrollments": Shape(
        "enrollments", f"{ENROLLED} AND t.school_id = :school", ENROLLMENT_FILTERS, ENROLLMENT_SORTS
    ),
    "/schools/{schoolId}/classes": Shape(
        "classes", f"t.school_id IN {GRANTED} AND t.school_id = :school", BASE_FILTERS, BASE_SORTS
    ),
}


@dataclass(frozen=True, kw_only=True)
class Question:
    """What is asked of a collection, by whom. `filter` and `sort`: keys of the shape's tables, or None."""

    path: str
    districts: tuple[str, ...]
    schools: tuple[str, ...]
    school: str
    filter: str | None = None
    sort: str | None = None
    descending: bool = False

    @property
    def shape(self) -> Shape:
        """The collection."""
        return SHAPES[self.path]


def _where(question: Question) -> str:
    shape = question.shape
    wanted = "true" if question.filter is None else shape.filters[question.filter]
    return f"FROM {shape.table} t WHERE {shape.condition} AND {wanted}"


def _values(question: Question) -> dict[str, object]:
    return {"districts": list(question.districts), "schools": list(question.schools), "school": question.school}


def plain_count(connection: sa.Connection, question: Question) -> int:
    """How many records there are."""
    found: int = connection.execute(sa.text(f"SELECT count(*) {_where(question)}"), _values(question)).scalar_one()
    return found


def plain_page(connection: sa.Connection, question: Question, limit: int, offset: int) -> list[str]:
    """The ids of a page."""
    way = "DESC" if question.descending else "ASC"
    keys = [*([question.shape.sorts[question.sort]] if question.sort else []), "t.sourced_id"]
    if question.sort is None and question.filter is None and "{" not in question.path:
        # The records of a feed are together in a whole collection.
        keys.insert(0, "t.feed_id")
    order = ", ".join(f"{key} {way}" for key in keys)
    page = sa.text(f"SELECT t.sourced_id {_where(question)} ORDER BY {order} LIMIT :limit OFFSET :offset")
    return list(connection.scalars(page, {**_values(question), "limit": limit, "offset": offset}))

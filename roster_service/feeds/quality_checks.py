"""The checks of data quality: each finds the records of a feed which a school should look at.

A check finds records that the sync takes, because OneRoster allows them, and that vendors still cannot use. One SELECT
finds all its records.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from roster_service.db import tables
from roster_service.db.folding import fold_column
from roster_service.db.tables import CText
from roster_service.feeds.checked_roster import CheckedRoster
from roster_service.feeds.run_history import TYPES
from roster_service.roster.references import REFERENCES, Reference, is_list, list_items, list_references_to
from roster_service.roster.visibility import has_row
from roster_service.roster.vocabulary import GUARDIAN_ROLES

# The SELECT of (kind, id, feed_id, school_id, detail) of the records that a check finds in a roster.
Find = Callable[[CheckedRoster], sa.Select[Any]]
# A value that so many records have, each of them the same, is no accident of a small export.
LEAST_RECORDS = 10
# A day on which so many people are born, beside so many times as many as on the others, is none that they were born on.
FEW_BIRTHS, TIMES_BIRTHS = 10, 5
# The least and the most age of a student, in years: from a nursery to the classes of special education for adults.
LEAST_AGE, MOST_AGE = 2, 30
# The types of orgs that no district is above.
ABOVE_DISTRICTS = ("state", "national")
# By table: the columns in which no feed has one value for all its records.
VARIED: Mapping[sa.Table, tuple[str, ...]] = {
    tables.users: ("given_name", "family_name", "username", "identifier", "email"),
    tables.classes: ("title",),
    tables.courses: ("title",),
}
# The school to which the records or parts of a table belong.
_SCHOOLS: Mapping[sa.Table, sa.Column[str]] = {
    reference.column.table: reference.column
    for reference in list_references_to(tables.orgs)
    if reference.record is not tables.orgs
}
NAMES = ("given_name", "middle_name", "family_name", "preferred_first_name", "preferred_last_name")


@dataclass(frozen=True)
class QualityCheck:
    """A check. `title`: the findings; `advice`: why they matter, and what to do about them; `kinds`: the types of the
    records that it looks at; `is_pairs`: whether it finds records that have the same value, which belong together;
    `is_doubtful`: whether it finds what hardly anything but a faulty export has, so that Tonight and each preview say
    it."""

    name: str
    title: str
    advice: str
    find: Find
    kinds: tuple[str, ...]
    is_pairs: bool = False
    is_doubtful: bool = False


def _select(
    table: sa.Table, rows: sa.FromClause, school: sa.ColumnElement[Any], detail: sa.ColumnElement[Any]
) -> sa.Select[Any]:
    """Selects records of a table. `rows`: the records."""
    return sa.select(
        sa.literal(TYPES[table.name], CText).label("kind"),
        rows.c.sourced_id.label("id"),
        rows.c.feed_id.label("feed_id"),
        school.label("school_id"),
        detail.label("detail"),
    )


def _find_without_role(roster: CheckedRoster) -> sa.Select[Any]:
    users, role = roster.own(tables.users), roster.parts(tables.user_roles)
    found = _select(tables.users, users, users.c.primary_org_id, sa.null())
    return found.where(~has_row(role, role.c.user_id == users.c.sourced_id))


def _is_enrolled(roster: CheckedRoster, classes: sa.FromClause, role: str) -> sa.ColumnElement[bool]:
    """Whether a class has somebody with a role."""
    enrolled = roster.live(tables.enrollments)
    return has_row(enrolled, enrolled.c.class_id == classes.c.sourced_id, enrolled.c.role == role)


def _find_classes_without(role: str) -> Find:
    def find(roster: CheckedRoster) -> sa.Select[Any]:
        classes = roster.own(tables.classes)
        found = _select(tables.classes, classes, classes.c.school_id, classes.c.class_code)
        return found.where(~_is_enrolled(roster, classes, role))

    return find


def _find_rejected_classes(roster: CheckedRoster) -> sa.Select[Any]:
    classes = roster.own(tables.classes)
    found = _select(tables.classes, classes, classes.c.school_id, classes.c.class_code)
    is_named = classes.c.sourced_id.in_(roster.rejected_classes())
    return found.where(is_named, ~_is_enrolled(roster, classes, "teacher"))


def _find_students_without_class(roster: CheckedRoster) -> sa.Select[Any]:
    users, enrolled = roster.own(tables.users), roster.live(tables.enrollments)
    roles = roster.parts(tables.user_roles)
    of_students = sa.select(roles.c.user_id, sa.func.min(roles.c.org_id).label("school_id"))
    students = of_students.where(roles.c.role == "student").group_by(roles.c.user_id).subquery()
    found = _select(tables.users, users, students.c.school_id, sa.null())
    found = found.join(students, students.c.user_id == users.c.sourced_id)
    return found.where(~has_row(enrolled, enrolled.c.user_id == users.c.sourced_id))


def _find_same_email(roster: CheckedRoster) -> sa.Select[Any]:
    users = roster.own(tables.users)
    value = fold_column(users.c.email)
    return _keep_pairs(_select_people(users, value), sa.func.count().over(partition_by=value))


def _find_same_identifier(roster: CheckedRoster) -> sa.Select[Any]:
    """People with the same number. Students, guardians and staff are often numbered apart, so the same number of a
    student and a teacher is none; whoever has no role may be either."""
    users, roles = roster.own(tables.users), roster.parts(tables.user_roles)
    is_student = sa.func.bool_or(roles.c.role == "student")
    is_guardian = sa.func.bool_and(roles.c.role.in_(GUARDIAN_ROLES))
    numbering = sa.case((is_student, "student"), (is_guardian, "guardian"), else_="staff")
    numbered = sa.select(roles.c.user_id, numbering.label("numbering")).group_by(roles.c.user_id).subquery()
    value, own = users.c.identifier, numbered.c.numbering
    unknown = sa.func.count().filter(own.is_(None)).over(partition_by=value)
    same = sa.case(
        (own.is_(None), sa.func.count().over(partition_by=value)),
        else_=sa.func.count().over(partition_by=[value, own]) + unknown,
    )
    found = _select_people(users, value).outerjoin(numbered, numbered.c.user_id == users.c.sourced_id)
    return _keep_pairs(found, same)


def _select_people(users: sa.FromClause, value: sa.ColumnElement[Any]) -> sa.Select[Any]:
    """Selects the people who have a value."""
    return _select(tables.users, users, users.c.primary_org_id, value).where(value != "")


def _keep_pairs(found: sa.Select[Any], same: sa.ColumnElement[int]) -> sa.Select[Any]:
    """Keeps the people for whom `same` counts somebody beside themselves."""
    counted = found.add_columns(same.label("same")).subquery("counted")
    return sa.select(*list(counted.c)[:-1]).where(counted.c.same > 1)


def _find_email_without_at(roster: CheckedRoster) -> sa.Select[Any]:
    users = roster.own(tables.users)
    return _select_people(users, users.c.email).where(users.c.email.not_like("%@%"))


def _find_name_with_at(roster: CheckedRoster) -> sa.Select[Any]:
    users = roster.own(tables.users)
    names = sa.func.concat_ws(" ", *(users.c[name] for name in NAMES), type_=CText)
    return _select_people(users, names).where(names.like("%@%"))


def _find_shared_birth_date(roster: CheckedRoster) -> sa.Select[Any]:
    """The demographics of a day that many more people have than other days. In a large roster every day has many
    people, and in a class of one year no more than 365 days have any."""
    people, users = roster.own(tables.demographics), roster.live(tables.users)
    of_days = sa.select(people.c.birth_date, sa.func.count().label("people"))
    days = of_days.where(people.c.birth_date.is_not(None)).group_by(people.c.birth_date).cte()
    usual = sa.func.sum(days.c.people) / sa.func.greatest(sa.func.count(), 365)
    most = sa.select(FEW_BIRTHS + TIMES_BIRTHS * usual).scalar_subquery()
    found = _select(tables.demographics, people, users.c.primary_org_id, _write_day(people.c.birth_date))
    found = found.join(users, users.c.sourced_id == people.c.sourced_id)
    return found.where(people.c.birth_date.in_(sa.select(days.c.birth_date).where(days.c.people > most)))


def _find_impossible_age(roster: CheckedRoster) -> sa.Select[Any]:
    people, users = roster.own(tables.demographics), roster.live(tables.users)
    role = roster.parts(tables.user_roles)
    day, today = people.c.birth_date, sa.func.current_date()
    latest, first = (today - sa.cast(f"{years} years", sa.Interval) for years in (LEAST_AGE, MOST_AGE))
    found = _select(tables.demographics, people, users.c.primary_org_id, _write_day(day))
    found = found.join(users, users.c.sourced_id == people.c.sourced_id)
    is_student = has_row(role, role.c.user_id == people.c.sourced_id, role.c.role == "student")
    return found.where(is_student, sa.or_(day > latest, day < first))


def _write_day(day: sa.ColumnElement[Any]) -> sa.ColumnElement[str]:
    return sa.func.to_char(day, "YYYY-MM-DD", type_=CText)


def _find_one_value(roster: CheckedRoster) -> sa.Select[Any]:
    """All records of a type, for each column in which they have one value."""
    found = []
    for table, names in VARIED.items():
        rows = roster.own(table)
        is_one = (
            (sa.func.count(rows.c[name]) >= LEAST_RECORDS) & (sa.func.min(rows.c[name]) == sa.func.max(rows.c[name]))
            for name in names
        )
        every = sa.select(*(condition.label(name) for name, condition in zip(names, is_one, strict=True))).cte()
        for name in names:
            own = roster.own(table)
            detail = sa.literal(f"{name}: ", CText) + own.c[name]
            of_feed = _select(table, own, own.c[_SCHOOLS[table].name], detail).where(own.c[name] != "")
            # As a subquery, so that a column of many values costs no look at its records.
            found.append(of_feed.where(sa.select(every.c[name]).scalar_subquery()))
    return sa.select(sa.union_all(*found).subquery("found"))


def _find_outside_session(roster: CheckedRoster) -> sa.Select[Any]:
    """Enrollments of which no day is between the first day of their class's terms and the last one. (Many systems give
    each enrollment the dates of the whole year, also in a class of half a year: that is no finding.)"""
    classes, session = roster.own(tables.classes), roster.live(tables.academic_sessions)
    term = list_items(classes.c.term_ids)
    spans = (
        sa.select(
            classes.c.sourced_id.label("class_id"),
            sa.func.min(session.c.start_date).label("first"),
            sa.func.max(session.c.end_date).label("last"),
        )
        .select_from(classes.join(term, sa.true()).join(session, session.c.sourced_id == term.c.item))
        .group_by(classes.c.sourced_id)
        .subquery("spans")
    )
    enrolled = roster.own(tables.enrollments)
    days = _write_days(enrolled.c.begin_date, enrolled.c.end_date)
    found = _select(tables.enrollments, enrolled, enrolled.c.school_id, days)
    found = found.join(spans, spans.c.class_id == enrolled.c.class_id)
    return found.where(sa.or_(enrolled.c.begin_date >= spans.c.last, enrolled.c.end_date <= spans.c.first))


def _find_contradicting_days(roster: CheckedRoster) -> sa.Select[Any]:
    """Sessions and enrollments that end before they begin, and sessions that are not within the term above."""
    sessions, enrolled = roster.own(tables.academic_sessions), roster.own(tables.enrollments)
    is_wrong = sa.or_(sessions.c.end_date < sessions.c.start_date, _is_outside(roster, sessions, of_year=False))
    begin, end = enrolled.c.begin_date, enrolled.c.end_date
    of_enrollments = _select(tables.enrollments, enrolled, enrolled.c.school_id, _write_days(begin, end))
    found = (_select_sessions(sessions).where(is_wrong), of_enrollments.where(end < begin))
    return sa.select(sa.union_all(*found).subquery("contradicting"))


def _find_outside_year(roster: CheckedRoster) -> sa.Select[Any]:
    """Sessions that are not within the school year above, as many a summer term."""
    sessions = roster.own(tables.academic_sessions)
    return _select_sessions(sessions).where(_is_outside(roster, sessions, of_year=True))


def _select_sessions(sessions: sa.FromClause) -> sa.Select[Any]:
    return _select(
        tables.academic_sessions, sessions, sa.null(), _write_days(sessions.c.start_date, sessions.c.end_date)
    )


def _is_outside(roster: CheckedRoster, sessions: sa.FromClause, *, of_year: bool) -> sa.ColumnElement[bool]:
    """Whether a session has a day that is not of the session above. `of_year`: one that is a school year."""
    above = roster.live(tables.academic_sessions)
    is_year = above.c.type == "schoolYear"
    return has_row(
        above,
        above.c.sourced_id == sessions.c.parent_id,
        is_year if of_year else ~is_year,
        sa.or_(sessions.c.start_date < above.c.start_date, sessions.c.end_date > above.c.end_date),
    )


def _write_days(first: sa.ColumnElement[Any], last: sa.ColumnElement[Any]) -> sa.ColumnElement[str]:
    return sa.func.concat_ws(" – ", _write_day(first), _write_day(last), type_=CText)


def _find_below_no_district(roster: CheckedRoster) -> sa.Select[Any]:
    """Schools whose parents lead to no district, their classes, and the people who have roles there alone. What is of a
    state, above the districts, is where it should be."""
    schools, classes, users = (roster.own(table) for table in (tables.orgs, tables.classes, tables.users))
    role = roster.parts(tables.user_roles)

    def is_at(org_id: sa.ColumnElement[Any], *, lost: bool) -> sa.ColumnElement[bool]:
        org = roster.live(tables.orgs)
        is_lost = sa.and_(org.c.district_id.is_(None), org.c.type.not_in(ABOVE_DISTRICTS))
        return has_row(org, org.c.sourced_id == org_id, is_lost if lost else org.c.district_id.is_not(None))

    def has_role(*, lost: bool) -> sa.ColumnElement[bool]:
        return has_row(role, role.c.user_id == users.c.sourced_id, is_at(role.c.org_id, lost=lost))

    of_schools = _select(tables.orgs, schools, schools.c.sourced_id, sa.null())
    of_classes = _select(tables.classes, classes, classes.c.school_id, classes.c.class_code)
    of_people = _select(tables.users, users, users.c.primary_org_id, sa.null())
    found = (
        of_schools.where(schools.c.type == "school", schools.c.district_id.is_(None)),
        of_classes.where(is_at(classes.c.school_id, lost=True)),
        of_people.where(has_role(lost=True), ~has_role(lost=False)),
    )
    return sa.select(sa.union_all(*found).subquery("ungrantable"))


def _find_orphans(roster: CheckedRoster) -> sa.Select[Any]:
    """Live records that refer to a record which is not live."""

    def find(reference: Reference) -> sa.Select[Any]:
        record, table = reference.record, reference.column.table
        rows = roster.own(record)
        part = rows if table is record else roster.parts(table)
        column, other = part.c[reference.column.name], roster.live(reference.target)
        items = list_items(column) if is_list(column) else None
        if items is not None:
            column = items.c.item
        places = [rows_of.c[_SCHOOLS[of].name] for of, rows_of in ((table, part), (record, rows)) if of in _SCHOOLS]
        found = _select(record, rows, places[0] if places else sa.null(), column)
        if table is not record:
            found = found.join(part, part.c[reference.own.name] == rows.c.sourced_id)
        if items is not None:
            found = found.join(items, sa.true())
        return found.where(column.is_not(None), ~has_row(other, other.c.sourced_id == column))

    found = [find(reference) for reference in REFERENCES.values() if not reference.computed]
    return sa.select(sa.union_all(*found).subquery("orphans"))


CHECKS: Sequence[QualityCheck] = (
    QualityCheck(
        "below-no-district",
        "Schools, classes and people below no district",
        "No vendor can be granted them: a grant opens a district, or schools of one. Name the district as the parent "
        "of each school, by its sourcedId.",
        _find_below_no_district,
        ("orgs", "classes", "users"),
        is_doubtful=True,
    ),
    QualityCheck(
        "email-without-at",
        "E-mail addresses without an @",
        "Nobody is reached by them, and nobody logs in. Perhaps the export has two columns the wrong way round.",
        _find_email_without_at,
        ("users",),
        is_doubtful=True,
    ),
    QualityCheck(
        "name-with-at",
        "Names with an @",
        "No name has one. Perhaps the export has two columns the wrong way round.",
        _find_name_with_at,
        ("users",),
        is_doubtful=True,
    ),
    QualityCheck(
        "shared-birth-date",
        "Birth dates that too many people have",
        "Many more people have the date than any other. Often it fills a gap of the SIS: leave the cell empty there.",
        _find_shared_birth_date,
        ("demographics",),
        is_pairs=True,
        is_doubtful=True,
    ),
    QualityCheck(
        "impossible-age",
        "Students of an age that no student has",
        f"They are younger than {LEAST_AGE} or older than {MOST_AGE} years: correct the birth date in the SIS.",
        _find_impossible_age,
        ("demographics",),
        is_doubtful=True,
    ),
    QualityCheck(
        "one-value",
        "Columns with one value for all",
        "All records of a type have the same name, title, number or address: look for the column in the export.",
        _find_one_value,
        ("users", "classes", "courses"),
        is_pairs=True,
        is_doubtful=True,
    ),
    QualityCheck(
        "contradicting-days",
        "Days that contradict each other",
        "A session or enrollment ends before it begins, or a session is not within the term above it. Vendors get the "
        "days as they are, and show such classes to nobody or for ever: correct them in the SIS.",
        _find_contradicting_days,
        ("academicSessions", "enrollments"),
        is_doubtful=True,
    ),
    QualityCheck(
        "teacher-rejected",
        "Classes without a teacher, of which rows were rejected",
        "Perhaps the row of the teacher is among the rejected ones: correct these rows in the SIS.",
        _find_rejected_classes,
        ("classes",),
        is_doubtful=True,
    ),
    QualityCheck(
        "people-without-role",
        "People without a role",
        "No vendor sees them. The export has no role of them at any org: give them one in the SIS, or take them out.",
        _find_without_role,
        ("users",),
    ),
    QualityCheck(
        "students-without-class",
        "Students without a class",
        "They can log in nowhere that goes by classes. Enroll them in the SIS, or look whether their enrollments were "
        "rejected in the last run.",
        _find_students_without_class,
        ("users",),
    ),
    QualityCheck(
        "classes-without-teacher",
        "Classes without a teacher",
        "Nobody can teach in them: assign a teacher in the SIS.",
        _find_classes_without("teacher"),
        ("classes",),
    ),
    QualityCheck(
        "classes-without-students",
        "Classes without a student",
        "They are empty for every vendor. Often they are left over from another year: take them out in the SIS.",
        _find_classes_without("student"),
        ("classes",),
    ),
    QualityCheck(
        "same-email",
        "People with the same e-mail",
        "Vendors that log people in by e-mail mix them up. Within one feed, capitals make no difference.",
        _find_same_email,
        ("users",),
        is_pairs=True,
    ),
    QualityCheck(
        "same-identifier",
        "People with the same identifier",
        "Vendors that match people by their number mix them up. Often one person is in the SIS twice. Students, "
        "guardians and staff have numbers of their own.",
        _find_same_identifier,
        ("users",),
        is_pairs=True,
    ),
    QualityCheck(
        "enrollments-outside-session",
        "Enrollments outside their session",
        "They begin after the last term of their class, or end before the first one: correct the dates in the SIS.",
        _find_outside_session,
        ("enrollments",),
    ),
    QualityCheck(
        "sessions-outside-year",
        "Sessions outside their school year",
        "A session is not within the school year above it, as a summer term may be. Vendors get the days as they are: "
        "look whether the SIS has them right.",
        _find_outside_year,
        ("academicSessions",),
    ),
    QualityCheck(
        "orphans",
        "References to records that are not there",
        "A record names another one that the roster does not have, or that is deleted. The sync rejects such rows, so "
        "these are from a feed whose next run has not come, or parts of a record that it could not correct.",
        _find_orphans,
        tuple(TYPES.values()),
    ),
)
CHECKS_BY_NAME = {check.name: check for check in CHECKS}

"""The conversion of an SDS export to OneRoster: one SELECT per file of OneRoster, with its headers.

The conversion keeps ids. Roles and enrollments have none in SDS, and get theirs from the ids that they join. A word
that OneRoster lacks becomes an `ext:` word.

For each of these files, a function `retain_...` yields SELECTs of the ids of the stored records that rejected rows may
have described. It takes these rows by the name of their file, and the name of the feed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import distinct_on

from roster_service.db import tables
from roster_service.db.tables import CText
from roster_service.roster import vocabulary
from roster_service.roster.vocabulary import Vocabulary
from sync_scripts.formats.cells import TEXT, to_list
from sync_scripts.formats.conversion import is_of_feed, label_cells, make_id, to_literal, unite
from sync_scripts.formats.model import REJECTED, RetainedRows, Staged, StagedFile

SEXES = vocabulary.SEXES
RACES = (
    "americanIndianOrAlaskaNative",
    "asian",
    "blackOrAfricanAmerican",
    "nativeHawaiianOrOtherPacificIslander",
    "white",
    "demographicRaceTwoOrMoreRaces",
)
HISPANIC = "hispanicOrLatinoEthnicity"
# Roles of SDS for which OneRoster has another word. The word for an administrator depends on the org.
ROLES: Mapping[str, str] = {
    "faculty": "teacher",
    "instructor": "teacher",
    "lecturer": "teacher",
    "professor": "teacher",
    "substitute": "teacher",
    "teacherAssistant": "aide",
    "paraprofessional": "aide",
    "advisor": "counselor",
    "itAdmin": "systemAdministrator",
}


def _to_word(word: sa.ColumnElement[str], words: Vocabulary) -> sa.ColumnElement[str]:
    """The word of the vocabulary that matches in any letter case, else an `ext:` word; NULL stays NULL."""
    low = sa.func.lower(word)
    whens = [(low == known.lower(), to_literal(known)) for known in words.words]
    own = sa.func.regexp_replace(word, "[^a-zA-Z0-9._-]", "_", "g", type_=CText)
    return sa.case((word.is_(None), sa.null()), *whens, else_=to_literal("ext:").concat(own))


def _to_role(role: sa.ColumnElement[str], words: Vocabulary) -> sa.ColumnElement[str]:
    """The word of the vocabulary for a role of SDS, in any letter case, else an `ext:` word."""
    low = sa.func.lower(role)
    whens = [(low == sds.lower(), to_literal(word)) for sds, word in ROLES.items() if word in words.words]
    return sa.case(*whens, else_=_to_word(role, words))


def _find_column(file: StagedFile, header: str, other: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
    """The column of a file that some versions of SDS have; `other` where it is missing."""
    return file[header] if header in file.table.c else other


def select_orgs(staged: Staged, feed: str) -> sa.Select[Any]:
    """The rows of orgs.csv."""
    orgs = staged["orgs"]
    return sa.select(
        orgs["sourcedId"].label("sourcedId"),
        orgs["name"].label("name"),
        _to_word(orgs["type"], vocabulary.ORG_TYPES).label("type"),
        # Vendors know a district by this number.
        _find_column(orgs, "identifier", orgs["sourcedId"]).label("identifier"),
        orgs["parentSourcedId"].label("parentSourcedId"),
    )


def select_sessions(staged: Staged, feed: str) -> sa.Select[Any]:
    """The rows of academicSessions.csv."""
    sessions = staged["academicSessions"]
    columns = [
        sessions[header].label(header) for header in ("sourcedId", "title", "startDate", "endDate", "schoolYear")
    ]
    return sa.select(*columns, _to_word(sessions["type"], vocabulary.SESSION_TYPES).label("type"))


def _name_course(classes: StagedFile, staged: Staged, feed: str) -> sa.ColumnElement[str]:
    """The course of a class: the one that it names, else, where that is nowhere, the one that it had, else its own."""
    own, named = make_id(feed, "class-course", classes["sourcedId"]), classes["courseSourcedId"]
    stored = tables.classes.alias()
    of_class = sa.select(stored.c.course_id).where(stored.c.sourced_id == classes["sourcedId"])
    former = of_class.correlate(classes.table).scalar_subquery()
    return sa.case(
        (named.is_(None), own),
        (_is_course(named, staged, feed), named),
        (_is_course(former, staged, feed), former),
        else_=own,
    )


def _is_course(name: sa.ColumnElement[str], staged: Staged, feed: str) -> sa.ColumnElement[bool]:
    """Whether a course has this id after the run: one of the export, or a stored one that stays with its org."""
    stored = tables.courses.alias()
    return _is_there("courses", name, stored, staged, feed, _is_there(
        "orgs", stored.c.org_id, tables.orgs.alias(), staged, feed
    ))  # fmt: skip


def _is_there(
    file: str,
    name: sa.ColumnElement[str],
    stored: sa.FromClause,
    staged: Staged,
    feed: str,
    stays: sa.ColumnElement[bool] | None = None,
) -> sa.ColumnElement[bool]:
    """Whether a row of a file has this id, or a record of its table, of which the export says nothing and that `stays`
    (None: each does)."""
    rejected = staged.get(REJECTED + file)
    conditions = [stored.c.sourced_id == name, is_of_feed(stored, feed), stored.c.status == "active"]
    conditions += [] if stays is None else [stays]
    if file not in staged:
        return sa.exists().where(*conditions)
    found = sa.exists().where(staged[file].look_up()["sourcedId"] == name)
    if rejected is None:
        return found
    return sa.or_(found, sa.exists().where(*conditions, rejected.look_up()["sourcedId"] == name))


def select_courses(staged: Staged, feed: str) -> sa.Select[Any]:
    """The rows of courses.csv, and one for every class without a course, because OneRoster requires one."""
    classes = staged["classes"]
    own = make_id(feed, "class-course", classes["sourcedId"])
    selects: list[sa.Select[Any]] = [
        sa.select(
            own.label("sourcedId"),
            classes["title"].label("title"),
            classes["code"].label("courseCode"),
            classes["orgSourcedId"].label("orgSourcedId"),
            sa.null().label("schoolYearSourcedId"),
            sa.null().label("subjects"),
            sa.null().label("grades"),
        ).where(_name_course(classes, staged, feed) == own)
    ]
    if "courses" in staged:
        courses = staged["courses"]
        headers = ("sourcedId", "title", "code", "orgSourcedId", "schoolYearSourcedId", "subject", "grade")
        selects.append(sa.select(*(courses[header] for header in headers)))
    return unite(selects)


def select_classes(staged: Staged, feed: str) -> sa.Select[Any]:
    """The rows of classes.csv."""
    classes = staged["classes"]
    return sa.select(
        classes["sourcedId"].label("sourcedId"),
        classes["title"].label("title"),
        _name_course(classes, staged, feed).label("courseSourcedId"),
        classes["code"].label("classCode"),
        to_literal("scheduled").label("classType"),
        classes["orgSourcedId"].label("schoolSourcedId"),
        classes["sessionSourcedIds"].label("termSourcedIds"),
        _find_column(classes, "periods", sa.null()).label("periods"),
    )


def _list_stored_pairs(staged: Staged) -> sa.Subquery:
    """(one, other) of the stored people who are related, both ways, of those whom the export has."""
    agents = tables.user_agents.alias()
    pairs = sa.union(
        sa.select(agents.c.user_id.label("one"), agents.c.agent_id.label("other")),
        sa.select(agents.c.agent_id, agents.c.user_id),
    ).subquery()
    # A person whose row is rejected stays.
    files = [staged[name] for name in ("users", f"{REJECTED}users") if name in staged]
    people = sa.union_all(*(sa.select(file.alias()["sourcedId"]) for file in files))
    return sa.select(*pairs.c).where(pairs.c.one.in_(people), pairs.c.other.in_(people)).subquery()


def _list_pairs(staged: Staged) -> sa.Subquery:
    """(one, other) of the people who are related, both ways. Where the export leaves the relationships out, those that
    are stored stay."""
    if "relationships" not in staged:
        return _list_stored_pairs(staged)
    file = staged["relationships"]
    child, relation = file["userSourcedId"], file["relationshipUserSourcedId"]
    return sa.union(sa.select(child.label("one"), relation.label("other")), sa.select(relation, child)).subquery()


def _list_relations(staged: Staged) -> sa.Subquery:
    """(child, relation, role in lower case) of the relationships, stored ones as `_list_pairs`: a stored role of a
    guardian is that of the children at its org."""
    if "relationships" in staged:
        file = staged["relationships"]
        columns = {
            "child": file["userSourcedId"],
            "relation": file["relationshipUserSourcedId"],
            "role": sa.func.lower(file["relationshipRole"], type_=CText),
        }
        return sa.select(*label_cells(columns)).subquery()
    pairs, held, own = _list_stored_pairs(staged), tables.user_roles.alias(), tables.user_roles.alias()
    is_guardian = sa.and_(held.c.user_id == pairs.c.other, held.c.role.in_(vocabulary.GUARDIAN_ROLES))
    is_there = sa.and_(own.c.user_id == pairs.c.one, own.c.org_id == held.c.org_id)
    columns = {"child": pairs.c.one, "relation": pairs.c.other, "role": held.c.role}
    rows = pairs.join(held, is_guardian).join(own, is_there)
    return sa.select(*label_cells(columns)).select_from(rows).distinct().subquery()


def select_users(staged: Staged, feed: str) -> sa.Select[Any]:
    """The rows of users.csv. The user name replaces a missing given or family name. The grades come from the roles,
    the agents from the relationships."""
    users, roles = staged["users"], staged["roles"]
    listed = sa.func.string_agg(roles["grade"].distinct(), ",", type_=CText).label("grades")
    grades = sa.select(roles["userSourcedId"].label("user"), listed).group_by(roles["userSourcedId"]).subquery()
    both = users.table.outerjoin(grades, grades.c.user == users["sourcedId"])
    pairs = _list_pairs(staged)
    others = sa.func.string_agg(pairs.c.other.distinct(), ",", type_=CText).label("agents")
    # An id with a comma, such as two addresses in a cell of version 1, would become the ids of two others.
    related = sa.select(pairs.c.one, others).where(~pairs.c.other.contains(",")).group_by(pairs.c.one).subquery()
    both = both.outerjoin(related, related.c.one == users["sourcedId"])
    return sa.select(
        users["sourcedId"].label("sourcedId"),
        to_literal("true").label("enabledUser"),
        *(
            sa.func.coalesce(TEXT.convert(users[header]), users["username"]).label(header)
            for header in ("givenName", "familyName")
        ),
        *(users[header].label(header) for header in ("username", "email", "phone", "sms")),
        *(_find_column(users, header, sa.null()).label(header) for header in ("middleName", "identifier")),
        related.c.agents.label("agentSourcedIds"),
        grades.c.grades,
    ).select_from(both)


def select_roles(staged: Staged, feed: str) -> sa.Select[Any]:
    """The rows of roles.csv. The primary role of a user at an org is the one with `isPrimary`, else the first role in
    alphabetical order. A contact gets the role of the relationship, at the orgs of the related user."""
    roles, orgs = staged["roles"], staged["orgs"]
    # The row of the org may be rejected; the stored org then tells the type.
    stored = sa.select(tables.orgs.c.type).where(tables.orgs.c.sourced_id == roles["orgSourcedId"]).scalar_subquery()
    at_school = sa.func.coalesce(sa.func.lower(orgs["type"]), stored, type_=CText) == "school"
    administrator = sa.case((at_school, to_literal("siteAdministrator")), else_=to_literal("districtAdministrator"))
    is_administrator = sa.func.lower(roles["role"]) == "administrator"
    role = sa.case((is_administrator, administrator), else_=_to_role(roles["role"], vocabulary.USER_ROLES))
    selects: list[sa.Select[Any]] = [
        sa.select(
            roles["userSourcedId"].label("user"),
            roles["orgSourcedId"].label("org"),
            role.label("role"),
            roles["roleStartDate"].label("begin"),
            roles["roleEndDate"].label("end"),
            sa.func.coalesce(roles["isPrimary"], "false", type_=CText).label("primary"),
        ).select_from(roles.table.outerjoin(orgs.table, orgs["sourcedId"] == roles["orgSourcedId"]))
    ]
    relations = _list_relations(staged)
    guardian = relations.c.role
    known = sa.case((guardian.in_(vocabulary.GUARDIAN_ROLES), guardian), else_=to_literal("guardian"))
    at_org = relations.join(roles.table, roles["userSourcedId"] == relations.c.child)
    of_guardian = (relations.c.relation, roles["orgSourcedId"], known, sa.null(), sa.null(), to_literal("false"))
    selects.append(sa.select(*of_guardian).select_from(at_org))
    rows = sa.union_all(*selects).subquery()
    identifier = make_id(feed, "role", rows.c.user, rows.c.org, rows.c.role)
    single = (
        sa.select(identifier.label("sourcedId"), *rows.c)
        .ext(distinct_on(identifier))
        .where(identifier.is_not(None))
        .order_by(identifier, rows.c.primary.desc(), rows.c.begin, rows.c.end)
        .subquery()
    )
    turn = sa.func.row_number().over(
        partition_by=(single.c.user, single.c.org), order_by=(single.c.primary.desc(), single.c.role)
    )
    return sa.select(
        single.c.sourcedId,
        single.c.user.label("userSourcedId"),
        sa.case((turn == 1, "primary"), else_="secondary").label("roleType"),
        single.c.role,
        single.c.begin.label("beginDate"),
        single.c.end.label("endDate"),
        single.c.org.label("orgSourcedId"),
    )


def select_enrollments(staged: Staged, feed: str) -> sa.Select[Any]:
    """The rows of enrollments.csv, at the org of the class. Where the row of the class is rejected, the stored class
    tells its school."""
    seats, classes = staged["enrollments"], staged["classes"]
    stored = tables.classes
    stored_school = (
        sa.select(stored.c.school_id).where(stored.c.sourced_id == seats["classSourcedId"]).scalar_subquery()
    )
    role = _to_role(seats["role"], vocabulary.ENROLLMENT_ROLES)
    identifier = make_id(feed, "enrollment", seats["classSourcedId"], seats["userSourcedId"], role)
    return (
        sa.select(
            identifier.label("sourcedId"),
            seats["classSourcedId"].label("classSourcedId"),
            sa.func.coalesce(classes["orgSourcedId"], stored_school, type_=CText).label("schoolSourcedId"),
            seats["userSourcedId"].label("userSourcedId"),
            role.label("role"),
        )
        .select_from(seats.table.outerjoin(classes.table, classes["sourcedId"] == seats["classSourcedId"]))
        .where(identifier.is_not(None))
        .distinct()
    )


def select_demographics(staged: Staged, feed: str) -> sa.Select[Any]:
    """The rows of demographics.csv. The lists of codes name the columns that are true."""
    people = staged["demographics"]

    def has_code(header: str, code: str) -> sa.ColumnElement[Any]:
        return sa.case((to_literal(code) == sa.func.any(to_list(people[header])), "true"))

    return sa.select(
        people["userSourcedId"].label("sourcedId"),
        people["sex"].label("sex"),
        people["birthDate"].label("birthDate"),
        people["birthCity"].label("cityOfBirth"),
        people["birthState"].label("stateOfBirthAbbreviation"),
        people["birthCountry"].label("countryOfBirthCode"),
        *(has_code("raceCodes", race).label(race) for race in RACES),
        has_code("ethnicityCodes", HISPANIC).label(HISPANIC),
    )


def _list_cells(rejected: Staged, name: str, *headers: str) -> Iterator[sa.Select[Any]]:
    """The ids in the cells under these headers of the rejected rows of a file."""
    if name in rejected:
        yield from (sa.select(rejected[name][header].label("sourcedId")) for header in headers)


def retain_ids(name: str) -> RetainedRows:
    """A function that selects the ids of the rejected rows of the file `name`."""
    return lambda rejected, _feed: _list_cells(rejected, name, "sourcedId")


def retain_courses(rejected: Staged, feed: str) -> Iterator[sa.Select[Any]]:
    """The courses of rejected courses rows, and the courses of the classes that rejected classes rows describe."""
    yield from _list_cells(rejected, "courses", "sourcedId")
    stored = tables.classes
    for classes in _list_cells(rejected, "classes", "sourcedId"):
        yield sa.select(stored.c.course_id.label("sourcedId")).where(stored.c.sourced_id.in_(classes))


def leave_courses(staged: Staged, feed: str) -> Iterator[sa.Select[Any]]:
    """The stored courses of an export without their file, but for those that the sync has made for a class."""
    if "courses" not in staged:
        stored = tables.courses
        is_made = sa.func.starts_with(stored.c.sourced_id, make_id(feed, "class-course").concat(":"))
        yield sa.select(stored.c.sourced_id.label("sourcedId")).where(is_of_feed(stored, feed), ~is_made)


def retain_users(rejected: Staged, feed: str) -> Iterator[sa.Select[Any]]:
    """The users of rejected users rows; the users of rejected roles rows, which hold their grades; both users of
    rejected relationships rows, and the stored contacts of the first, of whom the row may have named one."""
    yield from _list_cells(rejected, "users", "sourcedId")
    yield from _list_cells(rejected, "roles", "userSourcedId")
    yield from _list_cells(rejected, "relationships", "userSourcedId", "relationshipUserSourcedId")
    agents = tables.user_agents
    for children in _list_cells(rejected, "relationships", "userSourcedId"):
        yield sa.select(agents.c.agent_id.label("sourcedId")).where(agents.c.user_id.in_(children))


def retain_roles(rejected: Staged, feed: str) -> Iterator[sa.Select[Any]]:
    """All roles of the users in rejected roles rows and of the contacts in rejected relationships rows, and of the
    agents of both and of the children in these, who have their roles at the same orgs."""
    stored, agents = tables.user_roles, tables.user_agents
    named = [
        *_list_cells(rejected, "roles", "userSourcedId"),
        *_list_cells(rejected, "relationships", "relationshipUserSourcedId"),
    ]
    if named:
        children = _list_cells(rejected, "relationships", "userSourcedId")
        contacts = sa.select(agents.c.agent_id).where(agents.c.user_id.in_(sa.union_all(*named, *children)))
        yield sa.select(stored.c.row_id.label("sourcedId"), stored.c.user_id.label("userSourcedId")).where(
            stored.c.user_id.in_(sa.union_all(*named, contacts))
        )


def retain_enrollments(rejected: Staged, feed: str) -> Iterator[sa.Select[Any]]:
    """All enrollments of the user of a rejected enrollments row in its class, in any role."""
    if "enrollments" in rejected:
        stored, seats = tables.enrollments, rejected["enrollments"]
        same = sa.and_(stored.c.class_id == seats["classSourcedId"], stored.c.user_id == seats["userSourcedId"])
        yield sa.select(stored.c.sourced_id.label("sourcedId")).where(sa.exists().where(same))

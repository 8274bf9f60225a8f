"""The conversion of the people of a Clever export to OneRoster: one SELECT per file of OneRoster, with its headers.

The conversion leaves out a contact without an id, because the next export could not be matched to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import distinct_on

from roster_service.db import tables
from roster_service.db.tables import CText
from sync_scripts.formats.cells import GRADES, is_blank
from sync_scripts.formats.conversion import NO_METADATA, label_cells, make_id, to_literal, unite
from sync_scripts.formats.model import METADATA, Staged, StagedFile
from sync_scripts.formats.several_rows import PeopleFile, Said, rank_rows, read_demographics

# The columns of demographics for races, and the words of Clever for each, in lower case.
RACES: Mapping[str, tuple[str, ...]] = {
    "americanIndianOrAlaskaNative": ("american indian", "american indian or alaska native", "i"),
    "asian": ("asian", "a"),
    "blackOrAfricanAmerican": ("black", "black or african american", "black/african american", "b"),
    "nativeHawaiianOrOtherPacificIslander": (
        "hawaiian or other pacific islander",
        "native hawaiian or other pacific islander",
        "hawaiian",
        "p",
    ),
    "white": ("caucasian", "white", "c", "w"),
    "demographicRaceTwoOrMoreRaces": ("two or more races", "two or more races/other", "t", "m"),
}
SEXES: Mapping[str, str] = {
    "F": "female",
    "Female": "female",
    "M": "male",
    "Male": "male",
    "X": "other",
    "Other": "other",
}
FLAGS: Mapping[str, str] = {
    "Y": "true",
    "Yes": "true",
    "true": "true",
    "1": "true",
    "N": "false",
    "No": "false",
    "false": "false",
    "0": "false",
}
# The role of a contact, and the relationships that mean it, in lower case. Any other relationship means a guardian.
CONTACT_ROLES: Mapping[str, tuple[str, ...]] = {
    "parent": ("parent", "mother", "father", "stepmother", "stepfather", "parent/guardian"),
    "relative": ("grandmother", "grandfather", "grandparent", "aunt", "uncle", "brother", "sister", "sibling"),
}


def _list_demographics(students: StagedFile) -> dict[str, sa.ColumnElement[Any]]:
    """The cells of demographics, by their headers in OneRoster. A race without a known word is left out."""
    race = sa.func.lower(students["Race"])
    sexes = [(students["Gender"] == word, to_literal(sex)) for word, sex in SEXES.items()]
    hispanic = [(students["Hispanic_Latino"] == word, to_literal(flag)) for word, flag in FLAGS.items()]
    return {
        "birthDate": students["DOB"],
        "sex": sa.case(*sexes),
        **{header: sa.case((race.in_(words), to_literal("true"))) for header, words in RACES.items()},
        "hispanicOrLatinoEthnicity": sa.case(*hispanic),
    }


def _say_of_student(students: StagedFile) -> Iterator[Said]:
    yield tables.users.c.grades, GRADES.convert(students["Grade"])
    yield from read_demographics(_list_demographics(students))


_NAMES = {"given_name": "First_name", "family_name": "Last_name", "username": "Username"}
PEOPLE = (
    PeopleFile(
        "students",
        "student",
        "School_id",
        {**_NAMES, "middle_name": "Middle_name", "email": "Student_email", "identifier": "Student_number"},
        birthday="DOB",
        others=("Gender", "Race", "Hispanic_Latino"),
        say=_say_of_student,
    ),
    PeopleFile(
        "teachers",
        "teacher",
        "School_id",
        {**_NAMES, "middle_name": "Middle_name", "email": "Teacher_email", "identifier": "Teacher_number"},
    ),
    PeopleFile("staff", "staff", "School_id", {**_NAMES, "email": "Staff_email"}),
    PeopleFile("admins", "admin", "School_id", {**_NAMES, "email": "Admin_email"}),
)
# The files of those who are neither pupils nor teachers.
STAFF = PEOPLE[2:]
ROLES: Mapping[str, str] = {
    "student": "student",
    "teacher": "teacher",
    # Staff have no class and no known title, so they get the role with the fewest rights.
    "staff": "aide",
    "admin": "siteAdministrator",
}


# The columns without which a contact is left out.
CONTACT = ("Contact_sis_id", "Contact_name")


def lacks_of_contact(header: str) -> Callable[[StagedFile], sa.ColumnElement[bool]]:
    """The condition that a row of a student names a contact without this cell."""
    filled = (*CONTACT, "Contact_phone", "Contact_email")
    return lambda students: sa.and_(
        is_blank(students[header]), sa.not_(sa.and_(*(is_blank(students[other]) for other in filled)))
    )


def names_contact(
    holds: Callable[[StagedFile], sa.ColumnElement[bool]],
) -> Callable[[StagedFile], sa.ColumnElement[bool]]:
    """The condition that a row of a student names a contact with an id and a name, and that `holds` is true of it."""
    return lambda students: sa.and_(_has_contact(students), holds(students))


def has_one_name(students: StagedFile) -> sa.ColumnElement[bool]:
    """The condition that the name of a contact is one word."""
    name = sa.func.btrim(students["Contact_name"], type_=CText)
    return sa.and_(students["Contact_sis_id"].is_not(None), name != "", ~name.contains(" "))


def has_unknown_race(students: StagedFile) -> sa.ColumnElement[bool]:
    """The condition that a race has no column in demographics."""
    known = [word for words in RACES.values() for word in words]
    return sa.and_(~is_blank(students["Race"]), sa.func.lower(students["Race"]).not_in(known))


def _has_contact(students: StagedFile) -> sa.ColumnElement[bool]:
    return sa.and_(students["Contact_sis_id"].is_not(None), ~is_blank(students["Contact_name"]))


def _list_contacts(staged: Staged, feed: str) -> sa.Subquery:
    """One row per row of a student that names a contact with an id and a name."""
    students = staged["students"]
    low = sa.func.lower(students["Contact_relationship"])
    whens = [(low.in_(words), to_literal(role)) for role, words in CONTACT_ROLES.items()]
    return (
        sa.select(
            make_id(feed, "contact", students["Contact_sis_id"]).label("contact"),
            make_id(feed, "student", students["Student_id"]).label("student"),
            make_id(feed, "school", students["School_id"]).label("school"),
            sa.case(*whens, else_=to_literal("guardian")).label("role"),
            students["Contact_name"].label("name"),
            students["Contact_phone"].label("phone"),
            students["Contact_email"].label("email"),
        )
        .where(_has_contact(students))
        .subquery()
    )


def _join_agents(contacts: sa.Subquery, owner: str, agent: str) -> sa.Subquery:
    """(owner, comma list of the ids of its agents)."""
    listed = sa.func.string_agg(contacts.c[agent].distinct(), ",", type_=CText).label("agents")
    # An id with a comma would become two items of the list.
    rows = sa.select(contacts.c[owner].label("owner"), listed).where(~contacts.c[agent].contains(","))
    return rows.group_by(contacts.c[owner]).subquery()


def select_users(staged: Staged, feed: str) -> sa.Select[Any]:
    """The rows of users.csv: students, teachers, staff, and the contacts of students."""
    contacts = _list_contacts(staged, feed)
    people = (_select_people(each, staged[each.name], contacts, feed) for each in PEOPLE if each.name in staged)
    # A part of a UNION cannot have an order of its own.
    return unite((*people, sa.select(*_select_contacts(contacts).subquery().c)))


def _select_people(people: PeopleFile, file: StagedFile, contacts: sa.Subquery, feed: str) -> sa.Select[Any]:
    agents = _join_agents(contacts, "student", "contact") if people.kind == "student" else None
    own = people.list_cells(file, feed)
    cells = {
        "sourcedId": own["sourcedId"],
        "enabledUser": to_literal("true"),
        **own,
        "phone": sa.null(),
        "agentSourcedIds": sa.null() if agents is None else agents.c.agents,
        "grades": file["Grade"] if "Grade" in file.file.headers else sa.null(),
        "primaryOrgSourcedId": make_id(feed, "school", file["School_id"]),
        METADATA: file.metadata,
    }
    return people.choose_rows(file, feed, cells, agents=agents)


def _select_contacts(contacts: sa.Subquery) -> sa.Select[Any]:
    """The contacts as users. The last word of a name is the family name; a name of one word is both names."""
    name = sa.func.btrim(contacts.c.name, type_=CText)
    given = sa.func.coalesce(sa.func.substring(name, "^(.*[^ ]) +[^ ]+$"), name)
    family = sa.func.substring(name, "([^ ]+)$")
    students, users = _join_agents(contacts, "contact", "student"), tables.users.alias()
    same = {"given_name": given, "family_name": family, "email": contacts.c.email, "phone": contacts.c.phone}
    said = ((users.c[name], cell) for name, cell in same.items())
    joined = contacts.outerjoin(students, students.c.owner == contacts.c.contact)
    columns = {
        "sourcedId": contacts.c.contact,
        "enabledUser": to_literal("true"),
        "username": sa.null(),
        "givenName": given,
        "familyName": family,
        "middleName": sa.null(),
        "identifier": sa.null(),
        "email": contacts.c.email,
        "phone": contacts.c.phone,
        "agentSourcedIds": students.c.agents,
        "grades": sa.null(),
        "primaryOrgSourcedId": contacts.c.school,
        METADATA: NO_METADATA,
    }
    return (
        sa.select(*label_cells(columns))
        .select_from(joined.outerjoin(users, users.c.sourced_id == contacts.c.contact))
        .ext(distinct_on(contacts.c.contact))
        .order_by(contacts.c.contact, *rank_rows(users, contacts.c.school, said), contacts.c.school, *same.values())
    )


def select_roles(staged: Staged, feed: str) -> sa.Select[Any]:
    """The rows of roles.csv: the role of each person at each of their schools."""
    contacts = _list_contacts(staged, feed)
    selects = [
        sa.select(contacts.c.contact.label("user"), contacts.c.school.label("org"), contacts.c.role.label("role"))
    ]
    for people in PEOPLE:
        if people.name in staged:
            file = staged[people.name]
            user, org = make_id(feed, people.kind, file["sourcedId"]), make_id(feed, "school", file["School_id"])
            selects.append(sa.select(user, org, to_literal(ROLES[people.kind])))
    rows = sa.union_all(*selects).subquery()
    identifier = rows.c.user.concat("/").concat(rows.c.org)
    # One row per person and school: a contact may be one student's parent and another's relative there.
    return (
        sa.select(
            identifier.label("sourcedId"),
            rows.c.user.label("userSourcedId"),
            to_literal("primary").label("roleType"),
            rows.c.role.label("role"),
            rows.c.org.label("orgSourcedId"),
        )
        .ext(distinct_on(identifier))
        .where(identifier.is_not(None))
        .order_by(identifier, rows.c.role)
    )


def select_demographics(staged: Staged, feed: str) -> sa.Select[Any]:
    """The rows of demographics.csv, for students with at least one filled cell."""
    students = staged["students"]
    known = [students[header].is_not(None) for header in ("DOB", "Gender", "Race", "Hispanic_Latino")]
    cells = {"sourcedId": make_id(feed, "student", students["Student_id"]), **_list_demographics(students)}
    return PEOPLE[0].choose_rows(students, feed, cells, filled=sa.or_(*known))

"""The fields that both versions of a resource share; `v1p1` and `v1p2` add the fields in which they differ.

The attribute names are those of the wire format (camelCase). Each line is the only place that connects a field with its
column.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import sqlalchemy as sa

from roster_service.db import tables
from roster_service.roster import visibility
from roster_service.roster.json_text import entries, member
from roster_service.roster.person_parts import PersonPart
from roster_service.roster.references import list_items
from roster_service.roster.visibility import ContentRights, MetadataOf
from roster_service.roster.vocabulary import GRADES, STATUS
from roster_service.roster.withheld import WithheldField
from roster_service.schemas import kinds
from roster_service.schemas.joined_rows import JoinedRows
from roster_service.schemas.kinds import StrictSchema
from roster_service.schemas.version_words import STORED, Wording

STAMP = "The instant of the sync that last changed anything which the record shows"


class Record(StrictSchema):
    """A resource: a schema over one roster table. `person`: the id of the person whose record it is, None for a record
    of no person; `wording`: the words of its version; `joined`: what a statement of its texts joins."""

    table: ClassVar[sa.Table]
    person: ClassVar[sa.ColumnElement[str] | None] = None
    wording: ClassVar[Wording] = STORED
    joined: ClassVar[tuple[JoinedRows, ...]] = ()


def make_base_fields(table: sa.Table) -> tuple[kinds.Text, kinds.Token, kinds.Instant]:
    """Returns the first fields of every resource: sourcedId, status, dateLastModified."""
    return (
        kinds.Text(table.c.sourced_id, "The id of the record, that of the SIS or made from it", required=True),
        kinds.Token(table.c.status, STATUS, "Whether the record is in the export of the SIS", required=True),
        kinds.Instant(lambda rights: visibility.make_stamp(table, table, rights), STAMP, required=True),
    )


def show_with_scope(kind: MetadataOf) -> Callable[[ContentRights], sa.ColumnElement[bool] | None]:
    """Returns the `visible` function of metadata that one scope shows on all records of a table."""
    return lambda rights: sa.true() if kind in rights.metadata else None


# --- orgs --------------------------------------------------------------------------------------------------------

_orgs = tables.orgs.c
_child_org = tables.orgs.alias("child_org")


class OrgRecord(Record):
    """A district, a school, or another organization."""

    table = tables.orgs

    sourcedId, status, dateLastModified = make_base_fields(tables.orgs)
    metadata = kinds.Metadata(
        _orgs.metadata,
        show_with_scope(MetadataOf.ORGS),
        "Further columns of the export; only with the scope `orgs-metadata.readonly`",
    )
    name = kinds.Text(_orgs.name, "The name of the org", required=True)
    parent = kinds.Ref(
        kinds.ORG,
        _orgs.parent_id,
        "The org above this one",
        visible=lambda org_id, rights: visibility.org_id_is_visible(org_id, rights.viewer),
    )
    children = kinds.RefList(
        kinds.ORG,
        _child_org.c.sourced_id,
        kinds.ChildRows(
            lambda rights: (
                (_child_org.c.parent_id == _orgs.sourced_id)
                & (_child_org.c.status == "active")
                & visibility.row_is_visible(tables.orgs, _child_org, rights)
            ),
            (_child_org.c.sourced_id,),
        ),
        "The active orgs right below this one",
    )


# --- academic sessions -------------------------------------------------------------------------------------------

_sessions = tables.academic_sessions.c
_child_session = tables.academic_sessions.alias("child_session")


class AcademicSessionRecord(Record):
    """A school year, a semester, a term or a grading period."""

    table = tables.academic_sessions

    sourcedId, status, dateLastModified = make_base_fields(tables.academic_sessions)
    title = kinds.Text(_sessions.title, "The name of the session", required=True)
    startDate = kinds.Day(_sessions.start_date, "The first day", required=True)
    endDate = kinds.Day(_sessions.end_date, "The day after the last day", required=True)
    parent = kinds.Ref(
        kinds.ACADEMIC_SESSION,
        _sessions.parent_id,
        "The session that this one is a part of",
        visible=visibility.session_id_is_visible,
    )
    children = kinds.RefList(
        kinds.ACADEMIC_SESSION,
        _child_session.c.sourced_id,
        kinds.ChildRows(
            lambda rights: (
                (_child_session.c.parent_id == _sessions.sourced_id)
                & (_child_session.c.status == "active")
                & visibility.row_is_visible(tables.academic_sessions, _child_session, rights)
            ),
            (_child_session.c.sourced_id,),
        ),
        "The active sessions that are a part of this one",
    )
    schoolYear = kinds.Text(
        _sessions.school_year, "The year in which the school year of the session ends", required=True
    )


# --- courses and classes -----------------------------------------------------------------------------------------

_courses = tables.courses.c


class CourseRecord(Record):
    """A course of study, which classes teach."""

    table = tables.courses

    sourcedId, status, dateLastModified = make_base_fields(tables.courses)
    title = kinds.Text(_courses.title, "The name of the course", required=True)
    schoolYear = kinds.Ref(
        kinds.ACADEMIC_SESSION,
        _courses.school_year_id,
        "The school year in which the course is taught",
        visible=visibility.session_id_is_visible,
    )
    grades = kinds.TextArray(_courses.grades, "The grades of the course, as codes of CEDS", vocabulary=GRADES)
    subjects = kinds.TextArray(_courses.subjects, "The names of the subjects")
    # A course can be visible through one of its classes while its org is not.
    org = kinds.Ref(
        kinds.ORG,
        _courses.org_id,
        "The org that offers the course",
        visible=lambda org_id, rights: visibility.org_id_is_visible(org_id, rights.viewer),
    )
    subjectCodes = kinds.TextArray(_courses.subject_codes, "The codes of the subjects, in the order of `subjects`")
    resources = kinds.Unserved(kinds.RESOURCE)


_classes = tables.classes.c
_term = list_items(_classes.term_ids)


class ClassRecord(Record):
    """A class: a course taught at a school in one or more terms."""

    table = tables.classes

    sourcedId, status, dateLastModified = make_base_fields(tables.classes)
    title = kinds.Text(_classes.title, "The name of the class", required=True, part=PersonPart.CLASSES)
    classCode = kinds.Text(_classes.class_code, "The code by which people know the class", part=PersonPart.CLASSES)
    location = kinds.Text(_classes.location, "The place of the lessons, such as a room", part=PersonPart.CLASSES)
    grades = kinds.TextArray(
        _classes.grades, "The grades of the class, as codes of CEDS", vocabulary=GRADES, part=PersonPart.CLASSES
    )
    subjects = kinds.TextArray(_classes.subjects, "The names of the subjects", part=PersonPart.CLASSES)
    # A class is visible through its school, and its course through the class.
    course = kinds.Ref(
        kinds.COURSE,
        _classes.course_id,
        "The course that the class teaches",
        visible=None,
        required=True,
        part=PersonPart.CLASSES,
    )
    school = kinds.Ref(kinds.ORG, _classes.school_id, "The school of the class", visible=None, required=True)
    terms = kinds.RefList(
        kinds.ACADEMIC_SESSION,
        _term.c.item,
        # Who sees a class sees its feed, and so its terms.
        kinds.ChildRows(lambda _rights: sa.true(), (_term.c.ordinality,)),
        "The sessions in which the class meets",
        required=True,
    )
    subjectCodes = kinds.TextArray(_classes.subject_codes, "The codes of the subjects, in the order of `subjects`")
    periods = kinds.TextArray(
        _classes.periods, "The periods of the day at which the class meets", part=PersonPart.CLASSES
    )
    resources = kinds.Unserved(kinds.RESOURCE)


# --- users -------------------------------------------------------------------------------------------------------

_users = tables.users.c
_agents = tables.user_agents.c
# The entries of the stored list of objects, as rows.
_user_id_entry = entries(_users.user_ids, "user_id_entry")


class UserId(StrictSchema):
    """An identifier of the user in another system."""

    type = kinds.Text(member(_user_id_entry, "type"), "The kind of identifier", required=True)
    identifier = kinds.Text(member(_user_id_entry, "identifier"), "The identifier in the other system", required=True)


class UserRecord(Record):
    """A person: student, teacher, guardian, administrator. There is no password field: the service stores none."""

    table = tables.users
    person = tables.users.c.sourced_id

    sourcedId, status, dateLastModified = make_base_fields(tables.users)
    metadata = kinds.Metadata(
        _users.metadata,
        visibility.user_metadata_is_visible,
        "Further columns of the export; only of students with the scope `students-metadata.readonly`, and of guardians "
        "with `guardians-metadata.readonly`",
        parts={
            MetadataOf.STUDENTS: PersonPart.STUDENT_METADATA,
            MetadataOf.GUARDIANS: PersonPart.GUARDIAN_METADATA,
        },
    )
    userIds = kinds.StoredList(
        UserId,
        _users.user_ids,
        kinds.ChildRows(lambda _rights: sa.true(), (_user_id_entry.c.ordinality,)),
        "The identifiers of the user in other systems",
        withheld_as=WithheldField.USER_IDS,
    )
    enabledUser = kinds.Flag(_users.enabled_user, "Whether the user may use the systems of the school", required=True)
    givenName = kinds.Text(_users.given_name, "The given name", required=True, part=PersonPart.NAMES)
    familyName = kinds.Text(_users.family_name, "The family name", required=True, part=PersonPart.NAMES)
    middleName = kinds.Text(
        _users.middle_name, "The middle names, separated by spaces", withheld_as=WithheldField.MIDDLE_NAME
    )
    identifier = kinds.Text(
        _users.identifier,
        "The number of the person at the school or district, such as a student number",
        withheld_as=WithheldField.IDENTIFIER,
    )
    email = kinds.Text(_users.email, "The e-mail address", withheld_as=WithheldField.EMAIL)
    sms = kinds.Text(_users.sms, "The phone number for text messages", withheld_as=WithheldField.SMS)
    phone = kinds.Text(_users.phone, "The phone number", withheld_as=WithheldField.PHONE)
    agents = kinds.RefList(
        kinds.USER,
        _agents.agent_id,
        kinds.ChildRows(
            lambda rights: (
                (_agents.user_id == _users.sourced_id) & visibility.user_is_visible(_agents.agent_id, rights)
            ),
            (_agents.ordinal,),
        ),
        "The users who act for this one, or for whom this one acts: of a student, the guardians, who need the scope "
        "`guardians.readonly`",
        withheld_as=WithheldField.AGENTS,
    )
    grades = kinds.TextArray(
        _users.grades, "The grades of a student, as codes of CEDS", vocabulary=GRADES, part=PersonPart.NAMES
    )


# --- enrollments and demographics --------------------------------------------------------------------------------

_enrollments = tables.enrollments.c


class EnrollmentRecord(Record):
    """The enrollment of a user in a class."""

    table = tables.enrollments
    person = tables.enrollments.c.user_id

    sourcedId, status, dateLastModified = make_base_fields(tables.enrollments)
    # An enrollment is visible only where its user, class and school are.
    user = kinds.Ref(
        kinds.USER,
        _enrollments.user_id,
        "The user who is enrolled",
        visible=None,
        required=True,
        part=PersonPart.CLASSES,
    )
    class_ = kinds.Ref(
        kinds.CLASS,
        _enrollments.class_id,
        "The class",
        visible=None,
        required=True,
        data_key="class",
        part=PersonPart.CLASSES,
    )
    school = kinds.Ref(kinds.ORG, _enrollments.school_id, "The school of the class", visible=None, required=True)
    primary = kinds.Flag(_enrollments.primary, "Whether a teacher is the first teacher of the class; only of teachers")
    beginDate = kinds.Day(_enrollments.begin_date, "The first day of the enrollment")
    endDate = kinds.Day(_enrollments.end_date, "The day after the last day of the enrollment")


_demographics = tables.demographics.c


class DemographicsRecord(Record):
    """The demographics of a user, under the user's own sourcedId."""

    table = tables.demographics
    person = tables.demographics.c.sourced_id

    sourcedId, status, dateLastModified = make_base_fields(tables.demographics)
    metadata = kinds.Metadata(
        _demographics.metadata,
        show_with_scope(MetadataOf.DEMOGRAPHICS),
        "Further columns of the export; only with the scope `demographic-metadata.readonly`",
        parts={MetadataOf.DEMOGRAPHICS: PersonPart.DEMOGRAPHIC_METADATA},
    )
    birthDate = kinds.Day(_demographics.birth_date, "The day of birth", withheld_as=WithheldField.BIRTH_DATE)
    americanIndianOrAlaskaNative = kinds.Flag(
        _demographics.american_indian_or_alaska_native,
        "Whether the person is American Indian or Alaska Native",
        withheld_as=WithheldField.AMERICAN_INDIAN_OR_ALASKA_NATIVE,
    )
    asian = kinds.Flag(_demographics.asian, "Whether the person is Asian", withheld_as=WithheldField.ASIAN)
    blackOrAfricanAmerican = kinds.Flag(
        _demographics.black_or_african_american,
        "Whether the person is Black or African American",
        withheld_as=WithheldField.BLACK_OR_AFRICAN_AMERICAN,
    )
    nativeHawaiianOrOtherPacificIslander = kinds.Flag(
        _demographics.native_hawaiian_or_other_pacific_islander,
        "Whether the person is Native Hawaiian or other Pacific Islander",
        withheld_as=WithheldField.NATIVE_HAWAIIAN_OR_OTHER_PACIFIC_ISLANDER,
    )
    white = kinds.Flag(_demographics.white, "Whether the person is White", withheld_as=WithheldField.WHITE)
    demographicRaceTwoOrMoreRaces = kinds.Flag(
        _demographics.demographic_race_two_or_more_races,
        "Whether the person is of two or more races",
        withheld_as=WithheldField.DEMOGRAPHIC_RACE_TWO_OR_MORE_RACES,
    )
    hispanicOrLatinoEthnicity = kinds.Flag(
        _demographics.hispanic_or_latino_ethnicity,
        "Whether the person is Hispanic or Latino",
        withheld_as=WithheldField.HISPANIC_OR_LATINO_ETHNICITY,
    )
    countryOfBirthCode = kinds.Text(
        _demographics.country_of_birth_code,
        "The code of the country of birth",
        withheld_as=WithheldField.COUNTRY_OF_BIRTH_CODE,
    )
    stateOfBirthAbbreviation = kinds.Text(
        _demographics.state_of_birth_abbreviation,
        "The abbreviation of the state of birth",
        withheld_as=WithheldField.STATE_OF_BIRTH_ABBREVIATION,
    )
    cityOfBirth = kinds.Text(_demographics.city_of_birth, "The city of birth", withheld_as=WithheldField.CITY_OF_BIRTH)
    publicSchoolResidenceStatus = kinds.Text(
        _demographics.public_school_residence_status,
        "The code of the place of residence, as public schools count it",
        withheld_as=WithheldField.PUBLIC_SCHOOL_RESIDENCE_STATUS,
    )

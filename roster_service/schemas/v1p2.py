"""The records of OneRoster 1.2: extensible vocabularies, several roles per user, profiles, two more required texts."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from roster_service.db import tables
from roster_service.roster import vocabulary
from roster_service.roster.json_text import entries, member
from roster_service.roster.person_parts import PersonPart
from roster_service.roster.visibility import (
    SEEN_ROLES,
    ContentRights,
    is_in_group,
    org_id_is_granted,
    role_is_visible,
    select_seen_roles,
)
from roster_service.roster.withheld import WithheldField
from roster_service.schemas import kinds, records
from roster_service.schemas.joined_rows import ITEMS, JoinedList, JoinedRows
from roster_service.schemas.kinds import StrictSchema


def replace_absent(text: sa.ColumnElement[str]) -> sa.ColumnElement[str]:
    """Returns the text, or an empty text for NULL: 1.2 requires a member that the CSV files may omit."""
    return sa.func.coalesce(text, "", type_=sa.Text)


class Org(records.OrgRecord):
    """An org of 1.2."""

    type = kinds.Token(tables.orgs.c.type, vocabulary.ORG_TYPES, "The kind of org", required=True)
    identifier = kinds.Text(
        replace_absent(tables.orgs.c.identifier), "The number of the org at the state or district", required=True
    )


class AcademicSession(records.AcademicSessionRecord):
    """An academic session of 1.2."""

    type = kinds.Token(tables.academic_sessions.c.type, vocabulary.SESSION_TYPES, "The kind of session", required=True)


class Course(records.CourseRecord):
    """A course of 1.2."""

    courseCode = kinds.Text(
        replace_absent(tables.courses.c.course_code), "The code by which people know the course", required=True
    )


class Class(records.ClassRecord):
    """A class of 1.2."""

    classType = kinds.Token(tables.classes.c.class_type, vocabulary.CLASS_TYPES, "The kind of class")


_users = tables.users.c
_role = tables.user_roles.c


class Role(StrictSchema):
    """A role that a user has at an org."""

    roleType = kinds.Token(
        _role.role_type, vocabulary.ROLE_TYPES, "Whether this is the main role at the org", required=True
    )
    role = kinds.Token(
        _role.role,
        vocabulary.USER_ROLES,
        "The role",
        required=True,
        part=PersonPart.GUARDIANS,
        part_words=vocabulary.GUARDIAN_ROLES,
    )
    # `_is_visible_role` selects only roles at orgs that the caller may see.
    org = kinds.Ref(kinds.ORG, _role.org_id, "The org at which the user has the role", visible=None, required=True)
    userProfile = kinds.Address(
        "users",
        _role.user_id,
        _role.profile_id,
        "The `profileId` of the account that the user has for this role",
        withheld_as=WithheldField.USER_IDS,
    )
    beginDate = kinds.Day(_role.begin_date, "The first day of the role")
    endDate = kinds.Day(_role.end_date, "The day after the last day of the role")


_profile = tables.user_profiles.c
_credential = entries(_profile.credentials, "credential")


class Credential(StrictSchema):
    """A user name in an application. The service never stores the password."""

    type = kinds.Text(member(_credential, "type"), "The kind of credential", required=True)
    username = kinds.Text(member(_credential, "username"), "The name with which the user logs in", required=True)


class UserProfile(StrictSchema):
    """A user's account in an application of a vendor."""

    profileId = kinds.Address("users", _profile.user_id, _profile.profile_id, "The URL of the account", required=True)
    profileType = kinds.Text(_profile.profile_type, "The kind of account", required=True)
    vendorId = kinds.Text(_profile.vendor_id, "The vendor of the application", required=True)
    applicationId = kinds.Text(_profile.application_id, "The application")
    description = kinds.Text(_profile.description, "A text about the account")
    credentials = kinds.ObjectList(
        Credential,
        kinds.ChildRows(lambda _rights: sa.true(), (_credential.c.ordinality,)),
        "The names with which the user logs in",
    )


def _is_visible_role(rights: ContentRights) -> sa.ColumnElement[bool]:
    return (_role.user_id == _users.sourced_id) & role_is_visible(tables.user_roles, rights)


def _select_roles(rights: ContentRights) -> sa.Select[Any]:
    return select_seen_roles(rights, {ITEMS: kinds.find_list(User, "roles").join_items(rights)})


class User(records.UserRecord):
    """A user of 1.2."""

    joined = (JoinedRows(SEEN_ROLES, frozenset({"metadata", "roles"}), _select_roles),)

    userMasterIdentifier = kinds.Text(
        _users.user_master_identifier,
        "The identifier of the person in all systems of the district",
        withheld_as=WithheldField.IDENTIFIER,
    )
    username = kinds.Text(_users.username, "The name with which the user logs in", part=PersonPart.NAMES)
    preferredFirstName = kinds.Text(
        _users.preferred_first_name, "The first name that the user prefers", withheld_as=WithheldField.PREFERRED_NAMES
    )
    preferredMiddleName = kinds.Text(
        _users.preferred_middle_name, "The middle name that the user prefers", withheld_as=WithheldField.PREFERRED_NAMES
    )
    preferredLastName = kinds.Text(
        _users.preferred_last_name, "The last name that the user prefers", withheld_as=WithheldField.PREFERRED_NAMES
    )
    pronouns = kinds.Text(_users.pronouns, "The pronouns of the user", withheld_as=WithheldField.PRONOUNS)
    roles = JoinedList(
        SEEN_ROLES,
        Role,
        kinds.ChildRows(_is_visible_role, (_role.ordinal,)),
        "The roles of the user at orgs",
        required=True,
    )
    userProfiles = kinds.ObjectList(
        UserProfile,
        kinds.ChildRows(lambda _rights: _profile.user_id == _users.sourced_id, (_profile.profile_id,)),
        "The accounts of the user in applications",
        withheld_as=WithheldField.USER_IDS,
    )
    primaryOrg = kinds.Ref(
        kinds.ORG,
        _users.primary_org_id,
        "The main org of the user",
        visible=lambda org_id, rights: (
            org_id_is_granted(org_id, rights.viewer)
            | is_in_group(tables.users, _users.sourced_id, rights, lambda member: member.org_id == org_id)
        ),
    )
    resources = kinds.Unserved(kinds.RESOURCE)


class Enrollment(records.EnrollmentRecord):
    """An enrollment of 1.2."""

    role = kinds.Token(
        tables.enrollments.c.role, vocabulary.ENROLLMENT_ROLES, "The role of the user in the class", required=True
    )


class Demographics(records.DemographicsRecord):
    """Demographics of 1.2."""

    sex = kinds.Token(tables.demographics.c.sex, vocabulary.SEXES, "The sex", withheld_as=WithheldField.SEX)

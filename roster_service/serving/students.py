"""The students query of the vendor interface: its parameters become those of a rostering collection. `modifiedSince` is
a filter; `districtlea` and `schools` select the list, as the path does there.

The query first checks the requested district and schools against the vendor's grants. The error is the same for an org
that does not exist and one that is not granted, so it does not reveal which orgs exist.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from oneroster_filter import F, to_text

from roster_service.auth.credentials.api_keys import KeyHolder
from roster_service.db import tables
from roster_service.db.prepared_statements import fetch_rows
from roster_service.db.round_trip import Call
from roster_service.db.tables import CTexts
from roster_service.errors import Problem, RefusedRequestError
from roster_service.roster import visibility
from roster_service.roster.visibility import ContentRights, Viewer
from roster_service.schemas.flags import PermissionFlag
from roster_service.schemas.student_stamps import make_student_record
from roster_service.schemas.students import PLAIN_FIELDS
from roster_service.schemas.version_words import Wording
from roster_service.serving.params import Params
from roster_service.serving.path_filters import ListFilter
from roster_service.serving.plan import Plan, make_plan, make_resource_view
from roster_service.serving.reader import Reader, find_not_agreed, refuse_ended
from roster_service.serving.request import AuthorizedRequest


@dataclass(frozen=True, kw_only=True)
class StudentsParams:
    """The parameters of a students query, with the names of the request body.

    `limit` and `offset` count students. `revision`: of the pull that a later page belongs to, or None. `schools`:
    sourcedIds, or None for the whole district. `modified_since`: only students with a later stamp. `include`: values
    of `PermissionFlag`."""

    districtlea: str
    limit: int
    offset: int
    schools: Sequence[str] | None = None
    modified_since: datetime | None = None
    include: Sequence[str] = ()
    revision: int | None = None


_REQUESTED_DISTRICTS = sa.cast(sa.bindparam("requested_districts"), CTexts)
_REQUESTED_SCHOOLS = sa.cast(sa.bindparam("requested_schools"), CTexts)
_WHERE_LISTED = "; the answer of the login lists your districts and schools"
_UNKNOWN_DISTRICT = (
    "the district of `districtlea` is not granted to you. A district is named by its identifier, or by its sourcedId "
    'if it has no identifier, for instance "{}"' + _WHERE_LISTED
)
_UNKNOWN_SCHOOL = (
    "item {} of `schools` is no school of this district that is granted to you. A school is named by its sourcedId, "
    "not by its identifier or name" + _WHERE_LISTED
)


def find_student(
    reader: Reader, engine: sa.Engine, holder: KeyHolder, params: StudentsParams, sourced_id: str
) -> str | None:
    """Returns the JSON text of one student, as a page of these parameters would have it; None if no page would have the
    student, whenever it changed. Raises as `authorize_students`."""
    request = authorize_students(engine, holder, params)
    plan = dataclasses.replace(request.plan, path_ids=(("sourcedId", sourced_id),))
    return reader.read_record(dataclasses.replace(request, plan=plan)).text


def authorize_students(engine: sa.Engine, holder: KeyHolder, params: StudentsParams) -> AuthorizedRequest:
    """Returns the authorized request of a students query. `engine`: of the serving role.

    Raises RefusedRequestError (PRIVILEGE) where the vendor lacks a permission flag or a grant for the request;
    (NO_GRANT) where it has no grant; (ENDED_TOKEN) where its rights have changed since the key was found.
    """
    _require_flags(holder, params)
    rights = ContentRights(
        viewer=Viewer.RULED_VENDOR if holder.has_rules else Viewer.ONE_VENDOR,
        guardians=PermissionFlag.CONTACTS in params.include,
        metadata=frozenset(),
        metadata_keys=None,
        withheld=holder.withheld,
    )
    admission = holder.admit(guardians=rights.guardians)
    path_values: dict[str, Any] = {"requested_lea": params.districtlea, "requested_schools": params.schools}
    path_values["requested_districts"] = _find_districts(
        engine, admission, {**path_values, "vendor_id": holder.vendor_id}
    )
    plan = _make_students_plan(params, rights)
    return AuthorizedRequest(plan, holder.vendor_id, holder.caller, admission, path_values)


def _find_districts(engine: sa.Engine, admission: Call, values: dict[str, Any]) -> list[str]:
    """Returns the ids of the requested districts that the vendor may see.

    Raises RefusedRequestError (PRIVILEGE) where there is none, or where a requested school is not granted; (NO_GRANT)
    where the vendor may see no district at all, (ENDED_TOKEN) where its rights have changed, and NotAgreedError where
    its agreement is why.
    """
    with engine.connect() as connection:
        fetch_rows(connection, admission.statement, admission.values)
        values["requested_districts"] = list(connection.scalars(_make_district_statement(), values))
        if not values["requested_districts"]:
            granted = connection.execute(_make_districts_statement(), values).first()
            raise _refuse(_UNKNOWN_DISTRICT.format(granted.lea)) if granted else _refuse_all(connection)
        if values["requested_schools"] is not None:
            found = set(connection.scalars(_make_schools_statement(), values))
            number = next((at for at, given in enumerate(values["requested_schools"]) if given not in found), None)
            if number is not None:
                raise _refuse(_UNKNOWN_SCHOOL.format(number))
    return list(values["requested_districts"])


def list_districts(engine: sa.Engine, vendor_id: int, admission: Call) -> list[dict[str, Any]]:
    """Lists the districts that the vendor may ask for, each with the `districtlea` that names it and with its granted
    schools. Those that left the SIS come last, until the purge deletes them: a consumer that does not ask for them
    keeps their students. Raises RefusedRequestError (NO_GRANT) where there is none, and as `_find_districts` where
    `admission` admits nobody."""
    with engine.connect() as connection:
        fetch_rows(connection, admission.statement, admission.values)
        values = {"vendor_id": vendor_id}
        districts = connection.execute(_make_districts_statement(), values).all()
        schools = connection.execute(_make_granted_schools_statement(), values).all()
        if not districts:
            raise _refuse_all(connection)
    return [
        {
            "districtlea": district.lea,
            "sourcedId": district.sourced_id,
            "name": district.name,
            "status": district.status,
            "schools": [
                {"sourcedId": school.sourced_id, "name": school.name, "status": school.status}
                for school in schools
                if school.district_id == district.sourced_id
            ],
        }
        for district in districts
    ]


def _make_students_plan(params: StudentsParams, rights: ContentRights) -> Plan:
    included = frozenset(flag for flag in PermissionFlag if flag in params.include)
    record, since = make_student_record(included), params.modified_since
    shown = make_resource_view(record, rights).fields
    asked = Params(
        limit=params.limit,
        offset=params.offset,
        filter=None if since is None else to_text(F("dateLastModified") > since),
        sort=None,
        descending=False,
        fields=tuple(name for name in shown if name in PLAIN_FIELDS or name in included),
        revision=params.revision,
    )
    return make_plan(asked, record, rights, _REQUESTED_STUDENTS, {})


def _require_flags(holder: KeyHolder, params: StudentsParams) -> None:
    missing = [word for word in dict.fromkeys(params.include) if word not in holder.flags]
    if missing:
        words = f"`include` needs the permission flag of the same name for: {', '.join(missing)}"
        raise _refuse(f"{words}; the answer of the login lists your flags")


def _refuse(description: str) -> RefusedRequestError:
    return RefusedRequestError(Problem.PRIVILEGE, description)


def _refuse_all(connection: sa.Connection) -> RefusedRequestError:
    """The refusal where the transaction shows nothing: the agreement may have ended, or the rights may have changed,
    since the key was found."""
    if not_agreed := find_not_agreed(connection.scalar(sa.select(visibility.read_refusal()))):
        return not_agreed
    if connection.scalar(sa.select(visibility.read_admission())) is None:
        return refuse_ended()
    return RefusedRequestError(Problem.NO_GRANT, "no district is granted to you")


@functools.cache
def _make_district_statement() -> sa.Select[str]:
    """Selects the visible districts with the requested identifier, or without one and with the requested sourcedId.

    Districts of two feeds may have the same identifier. A vendor with grants for both gets the students of both.
    """
    org = tables.orgs
    named = (org.c.type == "district") & (name_district(org) == sa.bindparam("requested_lea"))
    return sa.select(org.c.sourced_id).where(named, visibility.org_id_is_visible(org.c.sourced_id, Viewer.ONE_VENDOR))


def name_district(org: sa.FromClause) -> sa.ColumnElement[str]:
    """Returns the expression of the `districtlea` that names a district."""
    return sa.func.coalesce(org.c.identifier, org.c.sourced_id)


@functools.cache
def _make_districts_statement() -> sa.Select[str, str, str, str]:
    """Selects the districts that the vendor may ask for; tombstones come last."""
    org = tables.orgs
    columns = (org.c.sourced_id, org.c.name, org.c.status, name_district(org).label("lea"))
    is_visible = visibility.org_id_is_visible(org.c.sourced_id, Viewer.ONE_VENDOR)
    return sa.select(*columns).where(org.c.type == "district", is_visible).order_by(org.c.status, org.c.sourced_id)


@functools.cache
def _make_granted_schools_statement() -> sa.Select[str, str, str, str]:
    """Selects the granted schools; tombstones come last."""
    org = tables.orgs
    columns = (org.c.sourced_id, org.c.name, org.c.status, org.c.district_id)
    is_granted = visibility.org_id_is_shared(org.c.sourced_id, Viewer.ONE_VENDOR)
    return sa.select(*columns).where(org.c.type == "school", is_granted).order_by(org.c.status, org.c.sourced_id)


@functools.cache
def _make_schools_statement() -> sa.Select[str]:
    """Selects the requested schools that belong to the requested districts and are granted to the vendor."""
    org = tables.orgs
    return sa.select(org.c.sourced_id).where(
        org.c.type == "school",
        org.c.sourced_id == sa.any_(_REQUESTED_SCHOOLS),
        org.c.district_id == sa.any_(_REQUESTED_DISTRICTS),
        visibility.org_id_is_shared(org.c.sourced_id, Viewer.ONE_VENDOR),
    )


def _select_requested_orgs() -> sa.Select[str]:
    """Selects the ids of the orgs of the requested districts; where the request names schools, of these alone."""
    org = tables.orgs.alias()
    return sa.select(org.c.sourced_id).where(
        org.c.district_id == sa.any_(_REQUESTED_DISTRICTS),
        sa.or_(_REQUESTED_SCHOOLS.is_(None), org.c.sourced_id == sa.any_(_REQUESTED_SCHOOLS)),
    )


def _is_requested_student(rights: ContentRights, _wording: Wording) -> sa.ColumnElement[bool]:
    """The condition of the list: users with a visible student role at a requested org."""
    role = tables.user_roles.alias()
    return visibility.has_row(
        role,
        role.c.user_id == tables.users.c.sourced_id,
        role.c.role == "student",
        role.c.org_id.in_(_select_requested_orgs()),
        visibility.role_is_visible(role, rights),
    )


def _opens_requested_students(row: sa.FromClause, rights: ContentRights) -> sa.ColumnElement[bool]:
    """The condition that the label or a group opens students at a requested org."""
    label, requested = tables.visibility_labels.alias(), _select_requested_orgs()
    granted = requested.where(visibility.org_id_is_granted(requested.selected_columns[0], rights.viewer))
    is_open = label.c.student_orgs.overlap(sa.func.array(granted.scalar_subquery(), type_=CTexts))
    by_label = visibility.has_row(label, label.c.id == row.c.label_id, is_open)

    def is_requested(columns: Any) -> sa.ColumnElement[bool]:
        return sa.and_(columns.role == "student", columns.org_id.in_(_select_requested_orgs()))

    return visibility.join_groups(row, by_label, rights, is_requested)


_REQUESTED_STUDENTS = ListFilter(_is_requested_student, _opens_requested_students)

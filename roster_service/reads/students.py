"""The students query of the vendor interface: the same plan and statements as a collection of the rostering interface.

What is asked for is held against the vendor's grants first. A district or school that does not exist and one that
is not granted are refused with the same words.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Engine, Select, any_, bindparam, cast, distinct, func, or_, select

from roster_service.access.credentials.api_keys import KeyHolder
from roster_service.db import tables
from roster_service.db.round_trip import Call
from roster_service.db.tables import CTexts, Stamp
from roster_service.db.visibility import Sight, has_row, org_id_is_granted, org_is_shown, role_is_visible
from roster_service.errors import Problem, RefusedRequestError
from roster_service.query.plan import Outline, Plan, make_view
from roster_service.query.request import AuthorizedRequest
from roster_service.reads.reader import Reader, ReadPage
from roster_service.schemas.flags import Flag
from roster_service.schemas.students import PLAIN_FIELDS, Student


@dataclass(frozen=True, kw_only=True)
class StudentsWish:
    """What a vendor asks for, in the words of the request."""

    districtlea: str
    limit: int
    offset: int
    schools: Sequence[str] | None = None
    modified_since: datetime | None = None
    include: Sequence[str] = ()


_ASKED_DISTRICTS = cast(bindparam("asked_districts"), CTexts)
_ASKED_SCHOOLS = cast(bindparam("asked_schools"), CTexts)
_ASKED_SINCE = cast(bindparam("asked_since"), Stamp)


def find_students(reader: Reader, engine: Engine, holder: KeyHolder, wish: StudentsWish) -> ReadPage:
    """The page of students. `engine`: of the serving role. RefusedRequestError (PRIVILEGE) where the vendor may not
    have what it asks for."""
    _require_flags(holder, wish)
    sight = _make_sight(wish)
    admission = holder.admit(guardians=sight.guardians)
    asked: dict[str, Any] = {
        "asked_lea": wish.districtlea,
        "asked_schools": wish.schools,
        "asked_since": wish.modified_since,
    }
    asked["asked_districts"] = _find_districts(engine, admission, {**asked, "vendor_id": holder.vendor_id})
    return reader.read_page(AuthorizedRequest(make_students_plan(wish), holder.vendor_id, admission, asked))


def _find_districts(engine: Engine, admission: Call, values: dict[str, Any]) -> list[str]:
    """The districts that are asked for, once it is clear that the vendor sees them, and the schools that it names."""
    with engine.connect() as connection:
        connection.execute(admission.statement, admission.values)
        values["asked_districts"] = list(connection.scalars(_district_statement(), values))
        if not values["asked_districts"]:
            raise _refuse("the district of `districtlea` is not granted to you")
        if values["asked_schools"] is not None:
            found = connection.execute(_school_statement(), values).scalar_one()
            if found < len(set(values["asked_schools"])):
                raise _refuse("not every school of `schools` is granted to you in this district")
    return list(values["asked_districts"])


def _make_sight(wish: StudentsWish) -> Sight:
    return Sight(guardians=Flag.CONTACTS in wish.include, metadata=frozenset())


def make_students_plan(wish: StudentsWish) -> Plan:
    """The plan of a wish that is allowed."""
    sight = _make_sight(wish)
    fields = PLAIN_FIELDS + tuple(flag.value for flag in Flag if flag in wish.include)
    outline = Outline(make_view(Student, sight), _asked_students, None, False, fields)
    return Plan(outline, path_ids=(), filter=None, limit=wish.limit, offset=wish.offset, notices=())


def _require_flags(holder: KeyHolder, wish: StudentsWish) -> None:
    missing = [word for word in dict.fromkeys(wish.include) if word not in holder.flags]
    if missing:
        raise _refuse(f"to `include` {', '.join(missing)} you need the permission flag of that name")


def _refuse(description: str) -> RefusedRequestError:
    return RefusedRequestError(Problem.PRIVILEGE, description)


@functools.cache
def _district_statement() -> Select[str]:
    """The districts with the identifier that is asked for, as far as the vendor sees them. Two districts of two feeds
    may have one identifier; whoever was granted both asks for both."""
    org = tables.orgs
    named = (org.c.type == "district") & (org.c.identifier == bindparam("asked_lea"))
    return select(org.c.sourced_id).where(named, org_is_shown(org))


@functools.cache
def _school_statement() -> Select[int]:
    """How many of the schools that are asked for the vendor sees in these districts."""
    org = tables.orgs
    return select(func.count(distinct(org.c.sourced_id))).where(
        org.c.type == "school",
        org.c.sourced_id == any_(_ASKED_SCHOOLS),
        org.c.district_id == any_(_ASKED_DISTRICTS),
        org_id_is_granted(org.c.sourced_id),
    )


def _asked_students(sight: Sight) -> ColumnElement[bool]:
    """Who has a visible role as a student in the asked district, at an asked school where some are named."""
    role, org = tables.user_roles.alias(), tables.orgs.alias()
    asked = select(org.c.sourced_id).where(
        org.c.district_id == any_(_ASKED_DISTRICTS),
        or_(_ASKED_SCHOOLS.is_(None), org.c.sourced_id == any_(_ASKED_SCHOOLS)),
    )
    is_student = has_row(
        role,
        role.c.user_id == tables.users.c.sourced_id,
        role.c.role == "student",
        role.c.org_id.in_(asked),
        role_is_visible(role, sight),
    )
    return is_student & or_(_ASKED_SINCE.is_(None), tables.users.c.date_last_modified >= _ASKED_SINCE)

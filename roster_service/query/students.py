"""The students query of the vendor interface: the same plan and statements as a collection of the rostering interface.

What is asked for is held against the vendor's grants first. A district or school that does not exist and one that
is not granted are refused with the same words.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import ColumnElement, Connection, any_, bindparam, cast, distinct, func, or_, select

from roster_service.access.api_keys import KeyHolder
from roster_service.db import tables
from roster_service.db.tables import CTexts, Stamp
from roster_service.db.visibility import Sight, has_row, open_roster, org_id_is_granted, org_is_shown, role_is_visible
from roster_service.errors import Problem, RefusedRequestError
from roster_service.query.plan import Outline, Plan, make_view
from roster_service.query.run import Page, fetch_page
from roster_service.query.walks import Walks, make_walk
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


def find_students(connection: Connection, holder: KeyHolder, wish: StudentsWish, walks: Walks) -> Page:
    """The page of students. RefusedRequestError (PRIVILEGE) where the vendor may not have what it asks for."""
    _require_flags(holder, wish)
    opening = open_roster(connection, holder.districts, holder.schools, _make_sight(wish))
    values = {
        "caller_districts": list(holder.districts),
        "caller_schools": list(holder.schools),
        "asked_lea": wish.districtlea,
        "asked_schools": wish.schools,
        "asked_since": wish.modified_since,
    }
    values["asked_districts"] = list(connection.scalars(_DISTRICTS, values))
    if not values["asked_districts"]:
        raise _refuse("the district of `districtlea` is not granted to you")
    if wish.schools is not None:
        found = connection.execute(_SCHOOLS, values).scalar_one()
        if found < len(set(wish.schools)):
            raise _refuse("not every school of `schools` is granted to you in this district")
    walk = make_walk(make_students_plan(wish), values, holder.state, opening, everyone=False)
    return fetch_page(connection, walk, walks)


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


# Two districts of two feeds may have one identifier; whoever was granted both asks for both.
_DISTRICTS = select(tables.orgs.c.sourced_id).where(
    tables.orgs.c.type == "district",
    tables.orgs.c.identifier == bindparam("asked_lea"),
    org_is_shown(tables.orgs),
)
_SCHOOLS = select(func.count(distinct(tables.orgs.c.sourced_id))).where(
    tables.orgs.c.type == "school",
    tables.orgs.c.sourced_id == any_(_ASKED_SCHOOLS),
    tables.orgs.c.district_id == any_(_ASKED_DISTRICTS),
    org_id_is_granted(tables.orgs.c.sourced_id),
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

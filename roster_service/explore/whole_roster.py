"""The whole roster, as operators read it: by the plans, filters and JSON of the interfaces, without a vendor.

`connection`: as the owner of the tables, who is under no policy of row-level security. All orgs are visible to an
operator, who also finds the records that no vendor can see, such as a person without a role.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import sqlalchemy as sa

from roster_service.accounts.districts import ACTIVE
from roster_service.accounts.parts import OF_DEMOGRAPHICS
from roster_service.db import tables
from roster_service.db.tables import CTexts, feeds
from roster_service.explore.references import LABELS
from roster_service.explore.roster_facets import FACETS, make_facet_conditions
from roster_service.explore.roster_search import make_search_condition
from roster_service.roster.person_parts import PersonPart, list_parts
from roster_service.roster.visibility import ContentRights, MetadataOf, Viewer
from roster_service.roster.withheld import WithheldField
from roster_service.schemas.flags import PermissionFlag
from roster_service.schemas.records import Record
from roster_service.schemas.student_stamps import make_student_record
from roster_service.schemas.students import PLAIN_FIELDS
from roster_service.schemas.versions import DEMOGRAPHICS, USERS, Resource, Version
from roster_service.serving.page import put_root
from roster_service.serving.params import COLLECTION_PARAMETERS, Limits, read_params
from roster_service.serving.path_filters import everything
from roster_service.serving.plan import Notice, Plan, QueryShape, ResourceView, make_plan, make_resource_view
from roster_service.serving.shown_parts import find_values, name_parts
from roster_service.serving.statements import (
    HREF_ROOT,
    STATEMENT_CACHE_SIZE,
    join_rows,
    make_filter_condition,
    make_record_json,
    make_sort_keys,
)

RIGHTS = ContentRights(
    viewer=Viewer.ALL_ORGS, guardians=True, metadata=frozenset(MetadataOf), metadata_keys=None, withheld=frozenset()
)
# Beyond so many records nobody counts: the number is "more than".
MOST_COUNTED = 1000
MOST_OFFSET = 100_000


@dataclass(frozen=True)
class Wanted:
    """The part of a collection that an operator asks for. `search`: a typed text; `facets`: the chosen value of each;
    `filter`: in the filter language; `sort`: a field; `offset`, `limit`: count records."""

    resource: Resource
    version: Version
    search: str | None
    facets: Mapping[str, str]
    filter: str | None
    sort: str | None
    descending: bool
    limit: int
    offset: int


@dataclass(frozen=True)
class FoundRecord:
    """A record. `feed`: that has it; `body`: its JSON as a dictionary."""

    sourcedId: str  # noqa: N815  (the name in OneRoster)
    feed: str
    body: Mapping[str, Any]


@dataclass(frozen=True)
class Found:
    """A page of a collection. `more`: whether records follow; `count`: of all, at most `MOST_COUNTED`, and `is_more`
    where there are more than that; `counts`: the number of records by facet and value, where it is not more; `notices`:
    the parameters that were ignored."""

    records: Sequence[FoundRecord]
    more: bool
    count: int
    is_more: bool
    counts: Mapping[str, Mapping[str, int]]
    notices: Sequence[Notice]


def make_operator_plan(wanted: Wanted, limits: Limits) -> Plan:
    """Returns the plan of a collection. Raises RefusedRequestError for a filter that means nothing, as the interfaces
    do."""
    pairs = {"filter": wanted.filter, "sort": wanted.sort, "orderBy": "desc" if wanted.descending else None}
    params = read_params([(name, text) for name, text in pairs.items() if text], COLLECTION_PARAMETERS, limits)
    return make_plan(params, wanted.version.records[wanted.resource], RIGHTS, everything, {})


def find_records(connection: sa.Connection, wanted: Wanted, limits: Limits) -> Found:
    """Reads a page. Raises RefusedRequestError as `make_operator_plan`, and KeyError for an unknown facet."""
    plan = make_operator_plan(wanted, limits)
    shape = plan.shape
    table = shape.view.record.table
    conditions = [make_filter_condition(plan), *make_facet_conditions(table, wanted.facets)]
    if wanted.search:
        conditions.append(make_search_condition(table, wanted.search))
    keys = [key.element.label(f"key_{number}") for number, key in enumerate(make_sort_keys(shape))]
    matching: Any = sa.select(*keys).where(*conditions)
    # PostgreSQL expects the records that a search names to be anywhere, and would look at row after row for the first
    # of them; so it finds all of them by the indexes.
    matching = matching.cte("matching").prefix_with("MATERIALIZED") if wanted.search else matching.subquery("matching")
    own_id, order = _order(matching, wanted.descending)
    some = connection.scalars(sa.select(own_id).limit(MOST_COUNTED + 1)).all()
    is_more = len(some) > MOST_COUNTED
    if not is_more:
        # All of them are known, and PostgreSQL need not find them again.
        known = sa.select(*keys).where(table.c.sourced_id == sa.any_(sa.literal(list(some), CTexts))).subquery("known")
        own_id, order = _order(known, wanted.descending)
    page = sa.select(own_id).order_by(*order).limit(wanted.limit + 1).offset(min(wanted.offset, MOST_OFFSET))
    ids = connection.scalars(page).all()
    return Found(
        records=read_records(connection, shape.view, ids[: wanted.limit]),
        more=len(ids) > wanted.limit,
        count=min(len(some), MOST_COUNTED),
        is_more=is_more,
        counts={} if is_more else _count_facets(connection, table, some),
        notices=plan.notices,
    )


def find_named(
    connection: sa.Connection, resource: Resource, version: Version, typed: str, facets: Mapping[str, str], most: int
) -> tuple[Sequence[FoundRecord], bool]:
    """Returns (the active records that a typed text names, whether there are more than these), in the order of their
    names. Of more than `MOST_COUNTED` records, those of that number which PostgreSQL finds first."""
    record = version.records[resource]
    table = record.table
    conditions = [table.c.status == "active", make_search_condition(table, typed)]
    conditions += make_facet_conditions(table, facets)
    named = sa.select(table.c.sourced_id, LABELS[table].label("label")).where(*conditions)
    matching = named.cte("matching").prefix_with("MATERIALIZED")
    some = sa.select(matching).limit(MOST_COUNTED).subquery()
    ids = connection.scalars(sa.select(some.c.sourced_id).order_by(some.c.label, some.c.sourced_id).limit(most + 1))
    found = ids.all()
    return read_records(connection, make_resource_view(record, RIGHTS), found[:most]), len(found) > most


def _order(keys: Any, descending: bool) -> tuple[sa.ColumnElement[str], Sequence[sa.ColumnElement[Any]]]:
    """Returns the column of the ids, and the order of rows that have the sort keys of records."""
    columns = list(keys.c)
    return columns[-1], [key.desc() for key in columns] if descending else columns


def _count_facets(connection: sa.Connection, table: Any, ids: Sequence[str]) -> Mapping[str, Mapping[str, int]]:
    counts = {}
    for name, facet in FACETS[table].items():
        if facet.values is not None:
            pairs = facet.values.subquery()
            rows = sa.select(pairs.c.value, sa.func.count()).where(pairs.c.id == sa.any_(sa.literal(list(ids), CTexts)))
            rows = rows.where(pairs.c.value.is_not(None)).group_by(pairs.c.value).order_by(sa.func.count().desc())
            counts[name] = {row[0]: row[1] for row in connection.execute(rows)}
    return counts


def read_records(connection: sa.Connection, view: ResourceView, ids: Sequence[str]) -> list[FoundRecord]:
    """Reads records in the order of their ids, without those that the roster does not have. Hrefs have no host."""
    rows = connection.execute(_select_bodies(view), {"ids": list(ids), "base_url": HREF_ROOT})
    found = {row.sourced_id: FoundRecord(row.sourced_id, row.feed, json.loads(put_root(row.body, ""))) for row in rows}
    return [found[key] for key in ids if key in found]


def read_body(connection: sa.Connection, record: type[Record], sourced_id: str, base_url: str) -> Any:
    """Returns the JSON of a record of a version with all its fields; None if the roster does not have it."""
    view = make_resource_view(record, RIGHTS)
    values = {"ids": [sourced_id], "base_url": HREF_ROOT}
    row = connection.execute(_select_bodies(view), values).one_or_none()
    return None if row is None else json.loads(put_root(row.body, base_url))


def read_student(connection: sa.Connection, sourced_id: str) -> Any:
    """Returns the JSON of a student with all its parts, as POST /v1/students answers it; None for any other id."""
    record = make_student_record(frozenset(PermissionFlag))
    shape = QueryShape(
        make_resource_view(record, RIGHTS),
        everything,
        None,
        False,
        PLAIN_FIELDS + tuple(flag.value for flag in PermissionFlag),
    )
    role, school, district = tables.user_roles.alias(), tables.orgs.alias(), tables.orgs.alias()
    lea = (
        sa.select(district.c.identifier)
        .join(school, school.c.district_id == district.c.sourced_id)
        .join(role, role.c.org_id == school.c.sourced_id)
        .where(role.c.user_id == sourced_id, role.c.role == "student")
        .order_by(role.c.role_type, role.c.ordinal)
    )
    found = connection.execute(lea.limit(1)).one_or_none()
    if found is None:
        return None
    rows = join_rows(shape, tables.users)
    body = (
        sa.select(make_record_json(shape)).select_from(rows).where(tables.users.c.sourced_id == sa.bindparam("student"))
    )
    values = {"student": sourced_id, "requested_lea": found[0], "base_url": HREF_ROOT}
    text = connection.scalar(body, values)
    return None if text is None else json.loads(text)


def find_parts(
    connection: sa.Connection,
    sourced_id: str,
    withheld: frozenset[WithheldField],
    version: Version,
    metadata_keys: frozenset[str] | None = None,
) -> frozenset[PersonPart]:
    """Returns the parts of a person that the roster has, as the access log would name them if a version answered with
    all but these fields, and with these keys of metadata, None for all. What is marked as deleted is served, too."""
    rights = replace(RIGHTS, withheld=withheld, metadata_keys=metadata_keys)
    found = set[PersonPart]()
    for resource in (USERS, DEMOGRAPHICS):
        view = make_resource_view(version.records[resource], rights)
        number = connection.scalar(_select_parts(view), {"id": sourced_id, "base_url": HREF_ROOT})
        found.update(list_parts(number or 0))
    enrolled = sa.exists().where(tables.enrollments.c.user_id == sourced_id)
    return frozenset(found | {PersonPart.CLASSES}) if connection.scalar(sa.select(enrolled)) else frozenset(found)


def find_ended_parts(connection: sa.Connection, sourced_id: str) -> frozenset[str]:
    """Returns the parts of a person that are in records of their own, of which none is active."""

    def has_active(table: sa.Table, key: sa.Column[str]) -> bool:
        return bool(connection.scalar(sa.select(sa.exists().where(key == sourced_id, table.c.status == ACTIVE))))

    ended = frozenset[str]()
    if not has_active(tables.demographics, tables.demographics.c.sourced_id):
        ended |= OF_DEMOGRAPHICS
    if not has_active(tables.enrollments, tables.enrollments.c.user_id):
        ended |= {PersonPart.CLASSES}
    return ended


@functools.lru_cache(STATEMENT_CACHE_SIZE)
def _select_parts(view: ResourceView) -> sa.Select[int]:
    shape = QueryShape(view, everything, None, False, tuple(view.fields))
    table = view.record.table
    rows = sa.select(make_record_json(shape).label("body"), *find_values(shape)).select_from(join_rows(shape, table))
    found = rows.where(table.c.sourced_id == sa.bindparam("id")).offset(0).subquery("record")
    return sa.select(name_parts(shape, found))


@functools.lru_cache(STATEMENT_CACHE_SIZE)
def _select_bodies(view: ResourceView) -> sa.Select[Any]:
    shape = QueryShape(view, everything, None, False, tuple(view.fields))
    table = view.record.table
    rows = sa.select(table.c.sourced_id, feeds.c.name.label("feed"), make_record_json(shape).label("body"))
    rows = rows.select_from(join_rows(shape, table.join(feeds, feeds.c.id == table.c.feed_id)))
    return rows.where(table.c.sourced_id == sa.any_(sa.bindparam("ids", type_=CTexts)))

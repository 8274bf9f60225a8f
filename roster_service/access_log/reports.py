"""Reads the usage counters and the access log, for the command line."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import ARRAY, aggregate_order_by

from roster_service.access_log.causes import NOTHING_FOUND, find_cause
from roster_service.access_log.writer import KEPT_ADDRESSES
from roster_service.change_log.changes import Verb, order_rows
from roster_service.db.instants import begin_day
from roster_service.db.tables import (
    HASH_BYTES,
    NOBODY,
    UNKNOWN,
    Stamp,
    audit_people,
    changes,
    disclosures,
    refused_requests,
    usage,
    vendors,
)
from roster_service.roster.person_parts import list_parts


@dataclass(frozen=True)
class UsageRow:
    """The requests of a vendor to an endpoint on one day, with one class of status (`2xx`)."""

    day: str
    vendor: str
    endpoint: str
    status: str
    requests: int
    records: int
    bytes: int


@dataclass(frozen=True)
class UsageSum:
    """The requests of a vendor on one day, with one class of status (`2xx`), to all endpoints."""

    day: date
    vendor: str
    status: str
    requests: int
    records: int


@dataclass(frozen=True)
class RefusedRow:
    """The refused requests of a caller to an endpoint with one status, for one cause (the text of a `Problem`), or the
    answers without a record (NOTHING_FOUND, with the status 200).
    `vendor`: its e-mail, and `vendor_id`; `caller`: an OAuth client id, or the prefix of an API key; the names are
    UNKNOWN where the requests named no caller that the service knows. `endpoint`: method and documented path; `fields`:
    that filters, sorts and selections named; `addresses`: the latest network addresses, that of the last request first;
    `hours`: the latest ones with such a request, and how many each had. `words`, `remedy`: as of a `Cause`. Instants
    are ISO 8601, UTC."""

    vendor: str
    vendor_id: int
    caller: str
    status: int
    cause: str
    endpoint: str
    requests: int
    first_at: str
    first_request_id: str
    last_at: str
    last_request_id: str
    addresses: Sequence[str]
    fields: Sequence[str]
    hours: Mapping[str, int]
    words: str
    remedy: str


@dataclass(frozen=True)
class AccessLogRow:
    """A response that disclosed records, or the responses of a day in UTC that have the other texts of the row in
    common. `by`: `page` or `day`; a person of a day was in at least one of its responses. `vendor`: its e-mail; `at`,
    `last_at`: ISO 8601, of the first and the last response; `address`, `scope`, `districts`: as in `Disclosure`, None
    where the row does not have them; `records`: of all the responses; `answers`: how many they are; `parts`: the names
    of the parts of people that were in them."""

    at: str
    vendor: str
    caller: str
    address: str | None
    method: str
    path: str
    scope: str | None
    districts: Sequence[str] | None
    filter: str | None
    records: int
    request_id: str
    by: str
    answers: int
    last_at: str
    last_request_id: str
    parts: Sequence[str]


def _join_vendors(table: sa.FromClause) -> tuple[sa.FromClause, sa.Label[str]]:
    """Returns a table of the log with its vendors, and their e-mails as `vendor`: of one that was removed, that which
    the change log has, or else its number."""
    number = changes.c.before["number"].as_integer()
    removed = (
        sa.select(number.label("number"), sa.func.max(changes.c.vendor).label("email"))
        .where(changes.c.verb == Verb.VENDOR_REMOVE.value)
        .group_by(number)
        .subquery("removed")
    )
    own = table.c.vendor_id
    joined = table.outerjoin(vendors, vendors.c.id == own).outerjoin(removed, removed.c.number == own)
    former = removed.c.email + sa.literal_column("' (removed)'")
    return joined, sa.func.coalesce(vendors.c.email, former, sa.cast(own, sa.Text), type_=sa.Text).label("vendor")


def read_usage(connection: sa.Connection, vendor_id: int | None, since: date | None) -> list[UsageRow]:
    """Lists the usage counters by day. `vendor_id`: None means all vendors; `since`: None means all days."""
    joined, name = _join_vendors(usage)
    rows = sa.select(usage, name).select_from(joined)
    if vendor_id is not None:
        rows = rows.where(usage.c.vendor_id == vendor_id)
    if since is not None:
        rows = rows.where(usage.c.day >= since)
    rows = rows.order_by(usage.c.day, vendors.c.email, usage.c.endpoint, usage.c.status_class)
    return [
        UsageRow(
            day=row.day.isoformat(),
            vendor=row.vendor,
            endpoint=row.endpoint,
            status=row.status_class,
            requests=row.requests,
            records=row.records,
            bytes=row.bytes,
        )
        for row in connection.execute(rows)
    ]


def sum_usage(connection: sa.Connection, since: date) -> list[UsageSum]:
    """Sums the usage counters up over the endpoints, from the day `since` on, by day, vendor and status."""
    joined, name = _join_vendors(usage)
    key = (usage.c.day, name, usage.c.status_class)
    sums = (sa.func.sum(usage.c.requests).label("requests"), sa.func.sum(usage.c.records).label("records"))
    rows = sa.select(*key, *sums).select_from(joined)
    rows = rows.where(usage.c.day >= since).group_by(*key).order_by(*key)
    return [
        UsageSum(row.day, row.vendor, row.status_class, int(row.requests), int(row.records))
        for row in connection.execute(rows)
    ]


# The hours of a row of refused requests: more than today has.
LATEST_HOURS = 24


def count_refused(connection: sa.Connection, vendor_id: int | None, since: date) -> int:
    """Returns the number of refused requests. `vendor_id`, `since`: as for `read_refused`."""
    counters = refused_requests.c
    of_days = (counters.hour >= begin_day(since, UTC), counters.cause != NOTHING_FOUND)
    counted = sa.select(sa.func.sum(counters.requests)).where(*of_days)
    if vendor_id is not None:
        counted = counted.where(counters.vendor_id == vendor_id)
    return int(connection.scalar(counted) or 0)


def read_refused(
    connection: sa.Connection, vendor_id: int | None, since: date | None, request_id: str | None = None
) -> list[RefusedRow]:
    """Sums the counters of refused requests, and of answers without a record, up over the hours, by vendor, caller,
    status, cause and endpoint, the latest first.
    `vendor_id`, `since`: as for `read_usage`; `request_id`: only the hours whose first or last request has this id."""
    counters = refused_requests.c
    joined, name = _join_vendors(refused_requests)
    key = (
        *(counters.vendor_id, vendors.c.email, name, counters.caller, counters.status, counters.cause),
        counters.endpoint,
    )

    def list_newest(column: sa.ColumnElement[Any], type_: Any) -> sa.ColumnElement[Any]:
        return sa.func.array_agg(aggregate_order_by(column, counters.last_at.desc()), type_=ARRAY(type_))

    figures = (
        sa.func.sum(counters.requests).label("requests"),
        sa.func.min(counters.first_at).label("first_at"),
        list_newest(counters.first_request_id, sa.Text)[sa.func.count()].label("first_request_id"),
        sa.func.max(counters.last_at).label("last_at"),
        list_newest(counters.last_request_id, sa.Text)[1].label("last_request_id"),
        list_newest(counters.hour, Stamp)[1:LATEST_HOURS].label("hours"),
        list_newest(counters.requests, sa.BigInteger)[1:LATEST_HOURS].label("of_hours"),
        # The lists of the hours, as one text of all.
        *(
            sa.func.array_to_string(list_newest(sa.func.array_to_string(counters[name], " "), sa.Text), " ").label(name)
            for name in ("addresses", "fields")
        ),
    )
    rows = sa.select(*key, *figures).select_from(joined)
    if vendor_id is not None:
        rows = rows.where(counters.vendor_id == vendor_id)
    if since is not None:
        rows = rows.where(counters.hour >= begin_day(since, UTC))
    if request_id is not None:
        rows = rows.where((counters.first_request_id == request_id) | (counters.last_request_id == request_id))
    return [
        RefusedRow(
            vendor=UNKNOWN if row.vendor_id == NOBODY else row.vendor,
            vendor_id=row.vendor_id,
            caller=row.caller,
            status=row.status,
            cause=row.cause,
            **vars(find_cause(row.cause)),
            endpoint=row.endpoint,
            requests=int(row.requests),
            first_at=row.first_at.isoformat(timespec="milliseconds"),
            first_request_id=row.first_request_id,
            last_at=row.last_at.isoformat(timespec="milliseconds"),
            last_request_id=row.last_request_id,
            addresses=list(dict.fromkeys(row.addresses.split()))[:KEPT_ADDRESSES],
            fields=sorted(set(row.fields.split())),
            hours={
                hour.astimezone(UTC).isoformat(timespec="minutes"): requests
                for hour, requests in zip(row.hours, row.of_hours, strict=True)
            },
        )
        for row in connection.execute(rows.group_by(*key).order_by(sa.desc("last_at"), *key[1:]))
    ]


@dataclass(frozen=True, kw_only=True)
class AccessLogFilter:
    """The rows of the access log to list; None does not narrow them. `since`: from this instant on; `until`: before
    this one; `caller`: an OAuth client id, or the prefix of an API key; `district`: that the vendor's grants opened;
    `scope`: in the short spelling, or a permission flag; `person`: the hash of a person whose records were disclosed
    (`PersonHasher.hash_id`); `method`: of the request, or that of a file; `request`: the id of a request, of the first
    or the last of a day."""

    vendor_id: int | None = None
    since: datetime | None = None
    until: datetime | None = None
    caller: str | None = None
    address: str | None = None
    scope: str | None = None
    district: str | None = None
    person: bytes | None = None
    method: str | None = None
    request: str | None = None


def _has_person(id_hash: bytes) -> sa.ColumnElement[bool]:
    """Whether a row has a person. Of a response: whether the hash is among its people; the search for its bytes sorts
    out nearly all rows, and the bytes may also be the end of one hash and the beginning of the next. Of a day: whether
    it has the number of the hash."""
    people = disclosures.c.hashes
    start = sa.func.generate_series(1 + HASH_BYTES, sa.func.octet_length(people), HASH_BYTES).column_valued("start")
    is_hash = sa.exists(sa.select(start).where(sa.func.substring(people, start, HASH_BYTES) == id_hash))
    number = sa.select(audit_people.c.number).where(audit_people.c.hash == id_hash).scalar_subquery()
    bits = disclosures.c.people_bits
    byte = sa.func.substring(bits, number // 8 + 1, 1)
    has_bit = sa.case(
        (sa.func.octet_length(bits) > number // 8, sa.func.get_bit(byte, number % 8) == 1), else_=sa.false()
    )
    return (
        (sa.func.pg_catalog.position(people, id_hash) > 0) & is_hash
        | (number == sa.any_(disclosures.c.people))
        | has_bit
    )


def find_first_day(connection: sa.Connection) -> date | None:
    """Returns the day, in UTC, of the oldest row of the access log; None without rows."""
    first = connection.scalar(sa.select(sa.func.min(disclosures.c.at)))
    return None if first is None else first.astimezone(UTC).date()


def was_disclosed(connection: sa.Connection, id_hash: bytes) -> bool:
    """Returns whether a row of the access log had records of a person. `id_hash`: as in `AccessLogFilter`."""
    return bool(
        connection.scalar(sa.select(sa.exists(sa.select(1).select_from(disclosures).where(_has_person(id_hash)))))
    )


def names_district(connection: sa.Connection, sourced_id: str) -> bool:
    """Returns whether a row of the access log has a district, which the roster may have no more."""
    own = sa.select(1).select_from(disclosures).where(_CONDITIONS["district"](sourced_id))
    return bool(connection.scalar(sa.select(own.exists())))


_CONDITIONS: Mapping[str, Callable[[Any], sa.ColumnElement[bool]]] = {
    "vendor_id": lambda value: disclosures.c.vendor_id == value,
    # The row of a day has the responses before the instant, too.
    "since": lambda value: disclosures.c.last_at >= value,
    "until": lambda value: disclosures.c.at < value,
    "caller": lambda value: disclosures.c.caller == value,
    "address": lambda value: disclosures.c.address == value,
    "method": lambda value: disclosures.c.method == value,
    "scope": lambda value: sa.literal(value) == sa.any_(sa.func.string_to_array(disclosures.c.scope, " ")),
    "district": lambda value: sa.literal(value) == sa.any_(disclosures.c.districts),
    "person": _has_person,
    "request": lambda value: (disclosures.c.request_id == value) | (disclosures.c.last_request_id == value),
}


def _list_conditions(wanted: AccessLogFilter) -> list[sa.ColumnElement[bool]]:
    values = vars(wanted)
    return [make(values[name]) for name, make in _CONDITIONS.items() if values[name] is not None]


_PEOPLE = frozenset({"people", "people_bits", "hashes", "entries"})


def read_access_log(
    connection: sa.Connection, wanted: AccessLogFilter, latest: tuple[int, int] | None = None
) -> list[AccessLogRow]:
    """Lists the access log, in the order that `order_rows` gives for `latest`."""
    # Without the people: a row can have thousands.
    columns = [column for column in disclosures.c if column.name not in _PEOPLE]
    joined, name = _join_vendors(disclosures)
    rows = sa.select(*columns, name).select_from(joined)
    rows = rows.where(*_list_conditions(wanted))
    return [
        AccessLogRow(
            at=row.at.isoformat(timespec="milliseconds"),
            vendor=row.vendor,
            caller=row.caller,
            address=row.address,
            method=row.method,
            path=row.path,
            scope=row.scope,
            districts=row.districts,
            filter=row.filter,
            records=row.records,
            request_id=row.request_id,
            by=row.by,
            answers=row.answers,
            last_at=row.last_at.isoformat(timespec="milliseconds"),
            last_request_id=row.last_request_id,
            parts=list_parts(row.parts),
        )
        for row in connection.execute(order_rows(rows, disclosures, latest))
    ]


@dataclass(frozen=True)
class DisclosureSum:
    """The responses to a vendor on a day (in UTC, ISO 8601) that had the same `parts`, as in `AccessLogRow`;
    `has_people`: whether a response had records of people."""

    vendor: str
    day: str
    parts: Sequence[str]
    has_people: bool


def sum_disclosures(connection: sa.Connection, wanted: AccessLogFilter) -> list[DisclosureSum]:
    """Sums the access log up by vendor, day and parts. A row of a day has each of its people in at least one of its
    responses, so the days are exact for a person, and a number of responses would not be. A response that only counts
    somebody is left out."""
    log = disclosures.c
    joined, name = _join_vendors(disclosures)
    key = (
        name,
        sa.func.to_char(sa.func.timezone("UTC", log.at), "YYYY-MM-DD", type_=sa.Text).label("day"),
        log.parts,
    )
    has_people = sa.func.bool_or(log.hash_check != b"").label("has_people")
    rows = sa.select(*key, has_people).select_from(joined)
    shows = sa.or_(log.records > 0, log.hash_check != b"")
    rows = rows.where(*_list_conditions(wanted), shows).group_by(*key).order_by(*key)
    return [
        DisclosureSum(
            vendor=row.vendor,
            day=row.day,
            parts=list_parts(row.parts),
            has_people=row.has_people,
        )
        for row in connection.execute(rows)
    ]


def count_unsearchable(connection: sa.Connection, wanted: AccessLogFilter, check: bytes) -> int:
    """Counts the responses that a search for a person leaves out, whoever the person is: another secret key made the
    hashes of their rows. `check`: of the `PersonHasher` that made the hash of the person."""
    is_left_out = disclosures.c.hash_check.not_in([check, b""])
    rows = sa.select(sa.func.coalesce(sa.func.sum(disclosures.c.answers), 0)).where(
        is_left_out, *_list_conditions(dataclasses.replace(wanted, person=None))
    )
    return int(connection.execute(rows).scalar_one())

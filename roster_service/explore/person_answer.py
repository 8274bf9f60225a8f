"""The answer to a parent who asks what vendors were sent of a child and what they may get: page and command show it.

What was sent is told by the access log (`read_days` of `person.py`), what a vendor may get by the grid.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, timedelta
from operator import itemgetter

import sqlalchemy as sa

from roster_service.access_log.entries import PersonHasher
from roster_service.access_log.reports import AccessLogFilter, count_unsearchable, find_first_day
from roster_service.accounts.clients import list_clients
from roster_service.accounts.deletion_requests import DeletionRequest, list_requests
from roster_service.accounts.kept_people import list_kept
from roster_service.accounts.known_agreements import list_agreements
from roster_service.accounts.parts import PARTS
from roster_service.accounts.vendors import list_vendors
from roster_service.accounts.ways import WayKind, list_ways
from roster_service.db.instants import begin_day, describe_day, find_today
from roster_service.db.tables import deletion_requests, orgs, user_roles
from roster_service.errors import CommandError
from roster_service.explore import person_words as words
from roster_service.explore.known_people import EXCLUDED, KnownPerson
from roster_service.explore.person import read_days
from roster_service.explore.who_sees import PartVerdict, VendorVerdict, explain
from roster_service.explore.whole_roster import find_ended_parts, find_parts
from roster_service.feeds.exclusions import IdHasher
from roster_service.roster.person_parts import PersonPart
from roster_service.schemas.versions import V1P2
from roster_service.settings import Settings


@dataclass(frozen=True)
class SentParts:
    """What a company was sent on some days. `parts`: in words; `first`, `last`, `days`: the first one, the last one,
    and how many they are."""

    parts: Sequence[str]
    first: str
    last: str
    days: int


@dataclass(frozen=True)
class OpenParts:
    """What a company may get now. `parts`, `by`: in words, the ways by which it does."""

    parts: Sequence[str]
    by: Sequence[str]


@dataclass(frozen=True)
class CompanyAnswer:
    """A company that was sent something, may get something, or from whom the person is kept. `name`: None for one that
    is no vendor any more, named by `email` as in the log; `products`: of other names; `nothing`: why it may get
    nothing, blank if it may get something; `kept_since`: the day from which on the person is kept from it, else None;
    `held_back`: what it does not get although the roster has it, in words; `purpose`, `agreed_until`: of the agreement
    with it, and its last day, both None without one; `asked`: what it was asked to delete, in sentences."""

    name: str | None
    email: str
    products: Sequence[str]
    sent: Sequence[SentParts]
    may_get: Sequence[OpenParts]
    nothing: str
    kept_since: str | None
    held_back: Sequence[str]
    purpose: str | None = None
    agreed_until: str | None = None
    asked: Sequence[str] = ()


@dataclass(frozen=True)
class PersonAnswer:
    """The answer. `districts`: by name; `made`: the day in the time zone of the settings; `since`, `until`: the days of
    the period in UTC, `since` None if the log has none; `others`: the names of the vendors who were sent nothing and
    may get nothing; `log`: what the log cannot say, as sentences. Days are ISO 8601."""

    person: KnownPerson
    districts: Sequence[str]
    made: str
    since: str | None
    until: str
    companies: Sequence[CompanyAnswer]
    others: Sequence[str]
    log: Sequence[str]


def make_answer(
    connection: sa.Connection,
    person: KnownPerson,
    settings: Settings,
    hasher: PersonHasher,
    *,
    since: date | None,
    until: date | None,
    is_whole: bool,
) -> PersonAnswer:
    """Returns the answer. `since`, `until`: the first and the last day of the period in UTC, None for all that the log
    has; `is_whole`: whether the log has the rows of ended workers. Raises CommandError for a period that has not begun,
    or ends before it begins."""
    today, first = find_today(UTC), find_first_day(connection)
    last = min(until or today, today)
    if since is None and first is not None and first <= last:
        since = first
    if since is not None and since > today:
        raise CommandError(f"the period begins on {describe_day(since)}, after today ({describe_day(today)} in UTC)")
    if since is not None and since > last:
        raise CommandError(f"the period ends on {describe_day(last)}, before it begins on {describe_day(since)}")
    wanted = AccessLogFilter(
        since=None if since is None else begin_day(since, UTC),
        until=begin_day(last, UTC) + timedelta(days=1),
        person=hasher.hash_id(person.sourcedId),
    )
    sent = _sum_sent(connection, wanted)
    own = deletion_requests.c.person == IdHasher(settings.read_secret_key()).hash_id(person.sourcedId)
    asked = list_requests(connection, find_today(settings.time_zone), own)
    explained = [] if person.name is None else explain(connection, person.sourcedId)
    companies = list(_describe_vendors(connection, person, {one.vendor.email: one for one in explained}, sent, asked))
    shown = [company for company in companies if company.sent or company.may_get or company.kept_since or company.asked]
    return PersonAnswer(
        person=person,
        districts=list_districts(connection, person.sourcedId),
        made=find_today(settings.time_zone).isoformat(),
        since=None if since is None else since.isoformat(),
        until=last.isoformat(),
        companies=shown,
        others=[company.name or company.email for company in companies if company not in shown],
        log=list(_explain_log(connection, settings, hasher, wanted, first, is_whole=is_whole)),
    )


def _sum_sent(connection: sa.Connection, wanted: AccessLogFilter) -> Mapping[str, Sequence[SentParts]]:
    """What each vendor was sent, by e-mail: the parts that have their days in common."""
    days: dict[str, dict[str, list[str]]] = {}
    for (email, day), names in sorted(read_days(connection, wanted).items(), key=itemgetter(0)):
        for name in names or ("",):
            days.setdefault(email, {}).setdefault(name, []).append(day)
    found: dict[str, list[SentParts]] = {}
    for email, of_vendor in days.items():
        parts: dict[tuple[str, ...], list[str]] = {}
        for name in (*PARTS, ""):
            if name in of_vendor:
                said = words.PART_WORDS[PersonPart(name)] if name else words.NO_PART_WORDS
                parts.setdefault(tuple(of_vendor[name]), []).append(said)
        found[email] = [
            SentParts(said, of_parts[0], of_parts[-1], len(of_parts))
            for of_parts, said in sorted(parts.items(), key=lambda item: item[0][0])
        ]
    return found


def _describe_vendors(
    connection: sa.Connection,
    person: KnownPerson,
    explained: Mapping[str, VendorVerdict],
    sent: Mapping[str, Sequence[SentParts]],
    asked: Sequence[DeletionRequest],
) -> Iterator[CompanyAnswer]:
    """`explained`: by e-mail, none for a person who is not in the roster; `sent`: by e-mail; `asked`: of the person."""
    ways, clients, listed = list_ways(connection), list_clients(connection), list_vendors(connection)
    kept = {one.vendor_id: one.since.astimezone(UTC) for one in list_kept(connection, sourced_id=person.sourcedId)}
    known = find_parts(connection, person.sourcedId, frozenset(), V1P2) - find_ended_parts(connection, person.sourcedId)
    agreed = {item.vendor: item.agreement for item in list_agreements(connection)}
    for vendor in listed:
        verdict, own = explained.get(vendor.email), {way.words: way.kind for way in ways.get(vendor.email, ())}
        parts = {} if verdict is None else verdict.parts
        may_get, seen = _list_open(parts, own), [part for part, found in parts.items() if found.by]
        products = dict.fromkeys(client.name for client in clients if client.vendor == vendor.email)
        since, agreement = kept.get(vendor.id), agreed.get(vendor.email)
        yield CompanyAnswer(
            name=vendor.name,
            email=vendor.email,
            products=[name for name in products if name != vendor.name],
            sent=sent.get(vendor.email, ()),
            may_get=may_get,
            nothing="" if may_get else _explain_nothing(person, verdict),
            kept_since=None if since is None else since.date().isoformat(),
            held_back=words.list_held_back(vendor.withheld, known, seen) if may_get else (),
            purpose=None if agreement is None else agreement.purpose,
            agreed_until=None if agreement is None else agreement.last_day.isoformat(),
            asked=[_describe_asked(one) for one in asked if one.vendor == vendor.email],
        )
    for email in sorted(sent.keys() - {vendor.email for vendor in listed}):
        yield CompanyAnswer(
            name=None,
            email=email,
            products=(),
            sent=sent[email],
            may_get=(),
            nothing=words.REMOVED,
            kept_since=None,
            held_back=(),
        )


def _describe_asked(one: DeletionRequest) -> str:
    asked, until, answered = (
        day and describe_day(date.fromisoformat(day)) for day in (one.asked, one.due, one.answered)
    )
    did = f"answered on {answered}{f': {one.words}' if one.words else ''}" if answered else f"has to answer by {until}"
    return f"On {asked} the district asked it to delete what it has of this person; it {did}"


def _list_open(parts: Mapping[str, PartVerdict], kinds: Mapping[str, WayKind]) -> list[OpenParts]:
    """The parts that have their ways in common. `kinds`: of the ways, by their words."""
    found: dict[tuple[str, ...], list[str]] = {}
    for part, verdict in parts.items():
        if verdict.by:
            by = tuple(dict.fromkeys(words.WAY_WORDS[kinds[way]] for way in verdict.by))
            found.setdefault(by, []).append(words.PART_WORDS[PersonPart(part)])
    return [OpenParts(parts, by) for by, parts in found.items()]


def _explain_nothing(person: KnownPerson, verdict: VendorVerdict | None) -> str:
    if verdict is not None:
        return words.OBSTACLE_WORDS[verdict.obstacle]
    return f"this person is {person.whereabouts}" if person.whereabouts in EXCLUDED else words.UNKNOWN


def list_districts(connection: sa.Connection, sourced_id: str) -> list[str]:
    """Returns the names of the districts of a person; of one who has none, of the only district."""
    school, district = orgs.alias(), orgs.alias()
    own = sa.select(district.c.name).join_from(user_roles, school, school.c.sourced_id == user_roles.c.org_id)
    own = own.join(district, district.c.sourced_id == school.c.district_id).where(user_roles.c.user_id == sourced_id)
    every = sa.select(district.c.name).where(district.c.type == "district", district.c.status == "active")
    found = list(connection.scalars(own.distinct().order_by(district.c.name)))
    alone = [] if found else list(connection.scalars(every.limit(2)))
    return found or (alone if len(alone) == 1 else [])


def _explain_log(
    connection: sa.Connection,
    settings: Settings,
    hasher: PersonHasher,
    wanted: AccessLogFilter,
    first: date | None,
    *,
    is_whole: bool,
) -> Iterable[str]:
    """What the log cannot say of a period. `first`: its oldest day."""
    kept = f"The log keeps an entry for {settings.log_days:,} days"
    if first is None:
        yield f"{kept}, and has none now. Of what was sent before, it can say nothing."
    else:
        yield (
            f"{kept}, and its oldest is of {describe_day(first)}. What was sent before that day is not in it, and of "
            "that day it may have a part only."
        )
    left = count_unsearchable(connection, replace(wanted, person=None), hasher.check)
    if left:
        were = "1 answer was" if left == 1 else f"{left:,} answers were"
        yield (
            f"In this period, {were} logged with another secret key than that of today: nobody can tell here whether "
            "this person was in."
        )
    if not is_whole:
        yield "Some of the last answers may be missing, because their entries could not be read yet."
    if not settings.access_log_required:
        yield "The service is set to answer also while no entry can be written, so single answers may be missing."
    yield (
        "An answer is mostly about many people, and the log keeps the kinds of information that were in it, or "
        "that it was chosen by, as a whole, "
        "after two days in all such answers of a day. So one of these kinds may have been in it of others only."
    )
    yield (
        "An answer about somebody else can name this person by an id alone, as a parent or a teacher; it is not "
        "counted, nor is an answer that only says how many people fit a question. Nor does the log have what a company "
        "has passed on, or has got in another way than from this service."
    )
    yield "Days are in UTC, so an evening may count as the day after."

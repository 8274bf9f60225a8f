"""Privacy: who was shown what, as sentences and answer by answer, what is kept from whom, and how much vendors ask."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from roster_service.access_log.causes import NOTHING_FOUND
from roster_service.access_log.entries import PersonHasher
from roster_service.access_log.reports import (
    AccessLogFilter,
    RefusedRow,
    UsageRow,
    UsageSum,
    count_unsearchable,
    read_access_log,
    read_refused,
    read_usage,
    sum_usage,
)
from roster_service.access_log.writer import move_rows_of_ended_workers
from roster_service.accounts.clients import list_clients
from roster_service.accounts.districts import list_named_districts
from roster_service.accounts.kept_people import list_kept
from roster_service.accounts.parts import PARTS, list_received
from roster_service.accounts.vendor_rights import read_withheld_default
from roster_service.accounts.vendors import Vendor, list_vendors
from roster_service.change_log.actors import OperatorRole
from roster_service.change_log.changes import Verb
from roster_service.console.day_charts import DayChart, find_first, make_chart, read_range
from roster_service.console.list_pages import Paged, find_window, make_paged
from roster_service.console.screen import Form, Screen
from roster_service.console.visit import Visit
from roster_service.db.instants import find_today
from roster_service.db.tables import orgs
from roster_service.errors import UnknownPersonError
from roster_service.explore.known_people import KnownPerson, find_people
from roster_service.explore.person import ShownParts, list_shown
from roster_service.explore.references import read_labels
from roster_service.explore.refusals import explain_refused
from roster_service.feeds.exclusions import ExclusionKind, list_exclusions
from roster_service.schemas.flags import find_withheld

# The days of the overview.
PRIVACY_DAYS = 30


@dataclass(frozen=True)
class Disclosures:
    """The access log, newest row first. `seeing`: how many vendors were shown records of people in the last `days`
    days, None for a search; `vendors`: the names by e-mail, `clients`: by client id, `districts`: the words by id, to
    choose from; `words`: for the parts of people, by name; `names`: of the
    districts in the roster, by id; `person`: whose records the answers had; `found`: the people to choose one of;
    `problem`: why nobody was found; `unsearchable`: with a person, the rows that do not tell whether they have the
    person; `missing`: why rows of ended workers may be missing, None if none are."""

    seeing: int | None
    days: int
    vendors: Mapping[str, str]
    clients: Mapping[str, str]
    districts: Mapping[str, str]
    rows: Paged
    words: Mapping[str, str]
    names: Mapping[str, str]
    person: KnownPerson | None
    found: Sequence[KnownPerson]
    problem: str | None
    unsearchable: int | None
    missing: str | None


@dataclass(frozen=True)
class KeptFields:
    """What is withheld from a vendor. `fields`: the words of the fields, with those that follow from a flag that is not
    set; `by`: what withholds them, in words; `people`: how many people are kept from it; `gets_birth_dates`: whether it
    gets birth dates, and `from_clients`: by what."""

    vendor: str
    id: int
    fields: Sequence[str]
    by: str
    people: int
    gets_birth_dates: bool
    from_clients: Sequence[str]


@dataclass(frozen=True)
class Privacy:
    """The overview. `shown`: what the access log says since `days` days, by vendor and parts; `kept`: by vendor;
    `names`: of the vendors, by e-mail; `erased`, `hidden`: numbers of people, None for an operator who may not know
    them; `missing`: why rows of ended workers may be missing, None if none are."""

    days: int
    shown: Sequence[ShownParts]
    names: Mapping[str, str]
    kept: Sequence[KeptFields]
    erased: int | None
    hidden: int | None
    missing: str | None


@dataclass(frozen=True)
class VendorUsage:
    """The requests of a vendor. `bars`: of each bar of the chart, the oldest first; `records`: in the whole range;
    `statuses`: requests by class of status."""

    vendor: str
    bars: Sequence[int]
    records: int
    statuses: Mapping[str, int]


@dataclass(frozen=True)
class Usage:
    """The usage in a range of days. `vendor`: that is chosen, None for all; `chart`: its requests by class of status;
    `vendors`: all of them; `refused`: its refused requests, for None also those of unknown callers; `rows`: each
    counter, for CSV alone."""

    vendor: str | None
    chart: DayChart
    vendors: Sequence[VendorUsage]
    refused: Sequence[RefusedRow]
    rows: Sequence[UsageRow]


def read_privacy(visit: Visit) -> Privacy:
    """Reads the overview of the last `PRIVACY_DAYS` days, or of those that the access log is kept."""
    missing = move_rows_of_ended_workers(visit.tools.owner, visit.settings.access_log_folder)
    connection, days = visit.connection, _count_days(visit)
    received, listed = list_received(connection), list_vendors(connection)
    default = read_withheld_default(connection)
    counts = Counter(exclusion.kind for exclusion in list_exclusions(connection))
    people = Counter(kept.vendor_id for kept in list_kept(connection))
    may_know = visit.may(Verb.PERSON_HIDE)
    return Privacy(
        days=days,
        shown=list_shown(connection, _select_recent(days)),
        names={vendor.email: vendor.name for vendor in listed},
        kept=[
            KeptFields(
                vendor.name,
                vendor.id,
                vendor.withheld,
                _name_list(vendor, default),
                people[vendor.id],
                "birthDate" in received[vendor.email],
                received[vendor.email].get("birthDate", ()),
            )
            for vendor in listed
        ],
        erased=counts[ExclusionKind.ERASED] if may_know else None,
        hidden=counts[ExclusionKind.HIDDEN] if may_know else None,
        missing=missing,
    )


def _count_days(visit: Visit) -> int:
    """The days that a sentence on the access log may speak of."""
    return min(PRIVACY_DAYS, visit.settings.log_days)


def _select_recent(days: int) -> AccessLogFilter:
    return AccessLogFilter(since=datetime.now(UTC) - timedelta(days=days))


def _name_list(vendor: Vendor, default: Sequence[str]) -> str:
    """What says the withheld fields of a vendor: a list, and the flag whose lack withholds more."""
    own = vendor.own_withheld
    name = "default of the service" if own is None else "list of the vendor"
    listed = default if own is None else own
    following = sorted(find_withheld(listed, vendor.open_flags) - set(listed))
    agreed = sorted({*vendor.withheld} - {*listed, *following})
    said = f"{name}; {' and '.join(following)} because it may not request “contacts”" if following else name
    return f"{said}; {', '.join(agreed)} by its agreement" if agreed else said


def read_disclosures(visit: Visit) -> Disclosures:
    """Reads the page of the access log that the query string wants."""
    missing = move_rows_of_ended_workers(visit.tools.owner, visit.settings.access_log_folder)
    connection = visit.connection
    listed = list_vendors(connection)
    known = {vendor.email: vendor.id for vendor in listed}
    vendor, person = visit.get("vendor"), visit.get("person")
    secret_key = visit.settings.read_secret_key()
    hasher = PersonHasher(secret_key)
    found: Sequence[KnownPerson] = ()
    problem = None
    try:
        may_know = visit.may(Verb.PERSON_HIDE)
        found = [] if person is None else find_people(connection, person, secret_key, with_excluded=may_know)
    except UnknownPersonError as error:
        problem = str(error)
    one = found[0] if len(found) == 1 else None
    wanted = AccessLogFilter(
        # The number 0 is no vendor's: a name that is not known finds nothing.
        vendor_id=None if vendor is None else known.get(vendor, 0),
        since=visit.get_day("since"),
        caller=visit.get("caller"),
        address=visit.get("address"),
        scope=visit.get("scope"),
        district=visit.get("district"),
        request=visit.get("request"),
        person=None if one is None else hasher.hash_id(one.sourcedId),
    )
    rows = [] if person is not None and one is None else read_access_log(connection, wanted, find_window(visit))
    days = _count_days(visit)
    return Disclosures(
        seeing=None if visit.query else len({shown.vendor for shown in list_shown(connection, _select_recent(days))}),
        days=days,
        vendors={vendor.email: vendor.name for vendor in listed},
        clients={client.client_id: client.name for client in list_clients(connection)},
        districts={district.sourcedId: district.words for district in list_named_districts(connection)},
        rows=make_paged(visit, rows),
        words={part.name: part.words for part in PARTS.values()},
        names=read_labels(connection, orgs, (district for row in rows for district in row.districts or ())),
        person=one,
        found=() if one else found,
        problem=problem,
        unsearchable=None if person is None else count_unsearchable(connection, wanted, hasher.check),
        missing=missing,
    )


def read_usage_page(visit: Visit) -> Usage:
    """Reads the usage of the range that the query string wants, of all vendors or of one."""
    return make_usage(visit, find_today(UTC))


def make_usage(visit: Visit, last: date) -> Usage:
    """Returns the usage of the days that end with `last`, in UTC."""
    days, vendor = read_range(visit), visit.get("vendor")
    first = find_first(days, last)
    sums = sum_usage(visit.connection, first)
    names = sorted({day_sum.vendor for day_sum in sums})
    vendor = vendor if vendor in names else None
    chosen = [day_sum for day_sum in sums if vendor in (None, day_sum.vendor)]
    return Usage(
        vendor,
        make_chart(days, last, ((day_sum.day, day_sum.status, day_sum.requests) for day_sum in chosen), is_sum=True),
        [_sum_vendor(days, last, name, [day_sum for day_sum in sums if day_sum.vendor == name]) for name in names],
        explain_refused(
            visit.connection,
            [
                row
                for row in read_refused(visit.connection, None, first)
                if vendor in (None, row.vendor) and row.cause != NOTHING_FOUND
            ],
        ),
        read_usage(visit.connection, None, first) if visit.whole else (),
    )


def _sum_vendor(days: int, last: date, name: str, sums: Sequence[UsageSum]) -> VendorUsage:
    statuses: Counter[str] = Counter()
    for day_sum in sums:
        statuses[day_sum.status] += day_sum.requests
    chart = make_chart(days, last, ((day_sum.day, day_sum.status, day_sum.requests) for day_sum in sums), is_sum=True)
    return VendorUsage(name, [bar.total for bar in chart.bars], sum(day_sum.records for day_sum in sums), statuses)


_VIEWER = OperatorRole.VIEWER
SCREENS = (
    Screen("privacy", "/privacy", "Privacy", _VIEWER, read_privacy, lambda it: it.kept, "Privacy"),
    Screen(
        "disclosures", "/disclosures", "Disclosures", _VIEWER, read_disclosures, lambda it: it.rows.rows, "Disclosures"
    ),
    Screen("usage", "/disclosures/usage", "Usage", OperatorRole.OBSERVER, read_usage_page, lambda it: it.rows, None),
)
FORMS: Sequence[Form] = ()

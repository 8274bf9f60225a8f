"""A vendor: what it may see, its limits, and its requests. `clients.py` and `files.py` have its other pages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from roster_service.access_log.reports import RefusedRow, count_refused, read_usage
from roster_service.accounts import vendor_rights, vendors
from roster_service.accounts.clients import Client
from roster_service.accounts.deletion_requests import DeletionRequest, list_requests
from roster_service.accounts.kept_people import KeptPerson, list_kept
from roster_service.accounts.parts import PARTS, Received, explain_nothing, list_received
from roster_service.accounts.vendor_rights import change_withheld, read_withheld_default
from roster_service.auth.throttling.limits import LIMITS, Limit, list_limits_in_force, list_own_limits, make_allowances
from roster_service.change_log.actors import OperatorRole
from roster_service.change_log.changes import Verb
from roster_service.console.screen import Form, Screen
from roster_service.console.vendor_forms import find_vendor, read_shown_version
from roster_service.console.vendor_words import (
    DistrictAccess,
    VendorHead,
    list_district_access,
    list_own_clients,
    read_head,
    read_own_refused,
    read_own_requests,
)
from roster_service.console.visit import Moved, Outcome, Submission, Visit
from roster_service.db.instants import find_today
from roster_service.db.tables import REFUSED_DAYS, deletion_requests, users
from roster_service.deliveries.accounts import describe_switched_ways
from roster_service.errors import CommandError, Problem
from roster_service.explore.references import read_labels
from roster_service.explore.vendor_habits import list_habits
from roster_service.explore.vendor_summary import VendorSummary, summarize_vendor
from roster_service.roster.withheld import WithheldField
from roster_service.schemas.flags import FLAG_WORDS, PermissionFlag
from roster_service.schemas.versions import VERSIONS

# What the form of withheld fields sends for the default of the service.
DEFAULT = "default"


@dataclass(frozen=True)
class VendorPage:
    """What a vendor sees. `last`: the last request that was refused in `REFUSED_DAYS`, None if none was; `clients`:
    its clients, and `names`: of them, by id; `withholdable`: the words of all fields that can be withheld,
    `default_withheld`: those of the default; `parts`: the words for each part of people; `received`: those that it
    gets, `lacks`: the words for the others, and `nothing`: why it gets none; `flags`: what each adds to the student
    record; `habits`: what is new about its requests; `asked`: what it is asked to delete, without an answer yet;
    `kept`: the people who are kept from it, and `kept_names`: by id, of those in the roster."""

    head: VendorHead
    summary: VendorSummary
    districts: Sequence[DistrictAccess]
    limits: Sequence[Limit]
    own_limits: Mapping[str, int | None]
    limits_in_force: Mapping[str, int | None]
    clients: Sequence[Client]
    names: Mapping[str, str]
    last: RefusedRow | None
    flags: Mapping[str, str]
    withholdable: Sequence[str]
    default_withheld: Sequence[str]
    parts: Mapping[str, str]
    received: Received
    lacks: Mapping[str, str]
    nothing: str
    versions: Sequence[str]
    habits: Sequence[str]
    asked: Sequence[DeletionRequest]
    kept: Sequence[KeptPerson]
    kept_names: Mapping[str, str]


@dataclass(frozen=True)
class RequestsPage:
    """The requests of a vendor. `today`: those of today in UTC that the service recognized, by class of status;
    `refused_today`: all of today that were refused; `refused`: those of the last `refused_days`, by cause; `empty`:
    those in these days whose filter found nothing; `names`: of its clients, by id; `asks_secret`: whether a new secret
    mends the last refusal."""

    head: VendorHead
    today: Mapping[str, int]
    refused_today: int
    refused: Sequence[RefusedRow]
    empty: Sequence[RefusedRow]
    refused_days: int
    names: Mapping[str, str]
    asks_secret: bool


def read_vendor(visit: Visit) -> VendorPage:
    """Reads what a vendor sees."""
    connection, head = visit.connection, read_head(visit)
    vendor = head.vendor
    received = list_received(connection)[vendor.email]
    own = list_own_clients(visit, vendor)
    kept = list_kept(connection, vendor_id=vendor.id)
    return VendorPage(
        head=head,
        summary=summarize_vendor(connection, vendor),
        districts=list_district_access(connection, vendor),
        limits=LIMITS,
        own_limits=list_own_limits(vendor.allowance, vendor.rostering),
        limits_in_force=list_limits_in_force(vendor.allowance, vendor.rostering),
        clients=own,
        names={item.client_id: item.name for item in own},
        last=next(iter(read_own_refused(visit, vendor)), None),
        flags={flag.value: words for flag, words in FLAG_WORDS.items()},
        withholdable=[field.value for field in WithheldField],
        default_withheld=read_withheld_default(connection),
        parts={part.name: part.words for part in PARTS.values()},
        received=received,
        lacks={part.name: part.lack for part in PARTS.values() if part.name not in received},
        nothing=explain_nothing(vendor),
        versions=[version.prefix for version in VERSIONS],
        habits=list_habits(connection, vendor, datetime.now(UTC)),
        asked=list_requests(
            connection,
            find_today(visit.settings.time_zone),
            deletion_requests.c.vendor_id == vendor.id,
            deletion_requests.c.answered.is_(None),
        ),
        kept=kept,
        kept_names=read_labels(connection, users, (one.sourced_id for one in kept)),
    )


def read_requests(visit: Visit) -> RequestsPage:
    """Reads how the requests of a vendor were answered."""
    head, today = read_head(visit), find_today(UTC)
    answered: dict[str, int] = {}
    for row in read_usage(visit.connection, head.vendor.id, today):
        answered[row.status] = answered.get(row.status, 0) + row.requests
    refused, empty = read_own_requests(visit, head.vendor)
    return RequestsPage(
        head=head,
        today=answered,
        refused_today=count_refused(visit.connection, head.vendor.id, today),
        refused=refused,
        empty=empty,
        refused_days=REFUSED_DAYS,
        asks_secret=bool(refused) and refused[0].cause in (Problem.CREDENTIALS.value, Problem.DISABLED.value),
        names={item.client_id: item.name for item in list_own_clients(visit, head.vendor)},
    )


def set_flags(sent: Submission) -> Outcome:
    """Makes the permission flags of a vendor those of the form."""
    flags = [flag for flag in PermissionFlag if flag.value in sent.lists("flag")]
    with sent.change() as connection:
        vendor = vendor_rights.set_flags(
            connection, sent.actor, find_vendor(sent).email, flags, shown_version=read_shown_version(sent)
        )
    return Moved(f"/vendors/{vendor.id}", f"{vendor.name} may request: {', '.join(flags) or 'no additional part'}.")


def set_withheld(sent: Submission) -> Outcome:
    """Makes the withheld fields of a vendor those of the form, or those of the default."""
    listed = [field for field in WithheldField if field.value in sent.lists("field")]
    if sent.get("list") == DEFAULT and listed:
        raise CommandError("fields are checked, and the choice is the default; choose “the fields checked here”")
    with sent.change() as connection:
        fields = None if sent.get("list") == DEFAULT else listed
        vendor = change_withheld(
            connection, sent.actor, find_vendor(sent).email, fields, shown_version=read_shown_version(sent)
        )
    if vendor.grant_version == read_shown_version(sent):
        return Moved(f"/vendors/{vendor.id}", "These fields are withheld already; nothing has changed.")
    return Moved(f"/vendors/{vendor.id}", f"What {vendor.name} gets has changed. Its older tokens have ended.")


def set_limits(sent: Submission) -> Outcome:
    """Makes the limits of a vendor those of the form; an empty field is the default of the service."""
    vendor, wanted = find_vendor(sent), make_allowances({limit.name: _read_limit(sent, limit) for limit in LIMITS})
    if wanted == (vendor.allowance, vendor.rostering):
        return Moved(f"/vendors/{vendor.id}", f"The limits of {vendor.name} are as they were; nothing was changed.")
    with sent.change() as connection:
        vendors.change_allowance(connection, sent.actor, vendor.email, *wanted)
    return Moved(f"/vendors/{vendor.id}", f"The limits of {vendor.name} have changed.")


def _read_limit(sent: Submission, limit: Limit) -> int | None:
    given = sent.get(limit.name)
    if given is None:
        return None
    if not (given.isascii() and given.isdigit() and len(given) < 10 and 1 <= int(given) <= limit.most):
        raise CommandError(f"{limit.words}: a whole number from 1 to {limit.most:,}, or empty")
    return int(given)


def set_enabled(sent: Submission) -> Outcome:
    """Disables or enables a vendor."""
    with sent.change() as connection:
        enabled = sent.form.get("enabled") == "yes"
        vendor = vendors.set_vendor_enabled(connection, sent.actor, find_vendor(sent).email, enabled)
        ways = describe_switched_ways(connection, vendor)
    words = f"{vendor.name} is {'enabled' if enabled else 'disabled'} now."
    return Moved(f"/vendors/{vendor.id}", " ".join([words, *ways]))


def remove_vendor(sent: Submission) -> Outcome:
    """Removes a vendor."""
    with sent.change() as connection:
        vendor = find_vendor(sent)
        vendors.remove_vendor(connection, sent.actor, vendor.email)
    return Moved("/vendors", f"{vendor.name} is removed.")


SCREENS = (
    Screen("vendor", "/vendors/<int:vendor>", "What it sees", OperatorRole.VIEWER, read_vendor, None, None),
    Screen(
        "requests",
        "/vendors/<int:vendor>/requests",
        "Requests",
        OperatorRole.VIEWER,
        read_requests,
        lambda it: it.refused,
        None,
    ),
)
FORMS = (
    Form("vendor", "flags", Verb.VENDOR_GRANT, set_flags, None),
    Form("vendor", "withheld", Verb.VENDOR_SET_WITHHELD, set_withheld, None),
    Form("vendor", "limits", Verb.VENDOR_LIMITS, set_limits, None),
    Form("vendor", "enable", Verb.VENDOR_ENABLE, set_enabled, None),
    Form("vendor", "remove", Verb.VENDOR_REMOVE, remove_vendor, lambda sent: find_vendor(sent).email),
)

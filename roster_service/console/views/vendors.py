"""Vendors: what each may see, its limits, keys and clients."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from urllib.parse import quote, urlencode

from roster_service.access import clients, vendors
from roster_service.access.access_log.reports import read_usage
from roster_service.access.clients import Client
from roster_service.access.credentials.api_keys import Allowance
from roster_service.access.org_list import count_schools, count_students, list_district_names, list_school_names
from roster_service.access.scopes import EXPLANATIONS, TOKEN_PATH, Scope, ScopeName, read_scopes
from roster_service.access.throttling.limits import RosteringAllowance, fill_allowance, fill_rostering_rate
from roster_service.access.vendors import Vendor, find_vendor_by_id
from roster_service.access.withheld import change_withheld, read_default
from roster_service.console.list_pages import Paged, cut_page
from roster_service.console.screen import Form, Screen
from roster_service.console.visit import Moved, Outcome, Shown, Submission, Visit
from roster_service.db.actors import OperatorRole
from roster_service.db.changes import Verb
from roster_service.db.credentials import ListedCredential, list_credentials
from roster_service.db.withheld import WithheldField
from roster_service.errors import CommandError
from roster_service.schemas.flags import PermissionFlag
from roster_service.schemas.versions import VERSIONS

# What the checkboxes of the grants send.
WHOLE, SOME, NOTHING = "whole", "some", "nothing"
# What the form of withheld fields sends for the default of the service.
DEFAULT = "default"


@dataclass(frozen=True)
class DistrictAccess:
    """A district of which a vendor sees something. `granted`: the number of its granted schools, None for the whole
    district; `schools`: how many it has."""

    district_id: str
    name: str
    granted: int | None
    schools: int

    @property
    def words(self) -> str:
        """The access, for people."""
        if self.granted is None:
            return f"all of {self.name}"
        return f"{self.granted} of {self.schools} schools of {self.name}"


@dataclass(frozen=True)
class VendorRow:
    """A vendor in the list. `used`: its last request with any credential, None if there was none."""

    id: int
    name: str
    email: str
    enabled: bool
    districts: Sequence[DistrictAccess]
    flags: Sequence[str]
    used: str | None


@dataclass(frozen=True)
class VendorList:
    """The vendors, a page of them."""

    vendors: Paged


@dataclass(frozen=True)
class Limit:
    """A limit of a vendor: the field of the form, what it limits, the vendor's own value, and the value that counts;
    None: the service decides."""

    name: str
    words: str
    own: int | None
    counts: int | None


@dataclass(frozen=True)
class VendorPage:
    """All about a vendor. `credentials`: by the name of an API key (its prefix) or a client id; `keys`: those of API
    keys that have not ended; `today`: requests of today in UTC, by class of status; `withholdable`: the words of all
    fields that can be withheld, `default_withheld`: those of the default."""

    vendor: Vendor
    districts: Sequence[DistrictAccess]
    limits: Sequence[Limit]
    keys: Sequence[ListedCredential]
    clients: Sequence[Client]
    credentials: Mapping[str, ListedCredential]
    today: Mapping[str, int]
    flags: Sequence[str]
    withholdable: Sequence[str]
    default_withheld: Sequence[str]
    scopes: Mapping[str, str]
    versions: Sequence[str]
    origin: str


@dataclass(frozen=True)
class School:
    """A school of a district, and whether the form has it checked. `students`: active, with a role there."""

    sourced_id: str
    name: str
    students: int
    checked: bool


@dataclass(frozen=True)
class Choice:
    """The grants of one district, as the form has them. `extent`: `whole`, `some` or `nothing`; `students`: that the
    choice opens, `now`: that the present grants open."""

    vendor: Vendor
    district_id: str
    district: str
    extent: str
    schools: Sequence[School]
    students: int
    now: int


@dataclass(frozen=True)
class Districts:
    """The districts that may be granted to a vendor, with the vendor's access to each in words; a page of them."""

    vendor: Vendor
    search: str
    districts: Paged


@dataclass(frozen=True)
class DistrictChoice:
    """A district in that list. `words`: None if the vendor sees nothing of it."""

    district_id: str
    name: str
    words: str | None


@dataclass(frozen=True)
class Card:
    """Credentials, which are shown once: `client_id` and `client_secret`, or `api_key` and `password`. `origin`: the
    address of the service; `paths`: the root of the OneRoster paths that the first scope opens."""

    vendor: Vendor
    origin: str
    token_path: str
    paths: str | None = None
    client_id: str | None = None
    client_secret: str | None = None
    scopes: Sequence[str] = ()
    api_key: str | None = None
    password: str | None = None


def read_vendors(visit: Visit) -> VendorList:
    """Reads all vendors with their access in words."""
    connection = visit.connection
    numbers = count_schools(connection)
    used: dict[str, str] = {}
    for item in list_credentials(connection):
        if item.used_at is not None:
            used[item.vendor] = max(item.used_at, used.get(item.vendor, ""))
    rows = [
        VendorRow(it.id, it.name, it.email, it.enabled, _list_districts(it, numbers), it.flags, used.get(it.email))
        for it in vendors.list_vendors(connection)
    ]
    return VendorList(cut_page(visit, rows))


def read_vendor(visit: Visit) -> VendorPage:
    """Reads all about one vendor."""
    connection = visit.connection
    vendor = find_vendor_by_id(connection, visit.place["vendor"])
    credentials = [item for item in list_credentials(connection) if item.vendor == vendor.email]
    own = [item for item in clients.list_clients(connection) if item.vendor == vendor.email]
    ids = {item.client_id for item in own}
    today: dict[str, int] = {}
    for row in read_usage(connection, vendor.id, _find_today()):
        today[row.status] = today.get(row.status, 0) + row.requests
    return VendorPage(
        vendor=vendor,
        districts=_list_districts(vendor, count_schools(connection)),
        limits=_list_limits(vendor),
        keys=[item for item in credentials if item.name not in ids and not item.has_ended(datetime.now(UTC))],
        clients=own,
        credentials={item.name: item for item in credentials},
        today=today,
        flags=[flag.value for flag in PermissionFlag],
        withholdable=[field.value for field in WithheldField],
        default_withheld=read_default(connection),
        scopes={name.value: words for name, words in EXPLANATIONS.items()},
        versions=[version.prefix for version in VERSIONS],
        origin=visit.tools.service_url,
    )


def read_districts(visit: Visit) -> Districts:
    """Reads the districts that may be granted."""
    vendor = find_vendor_by_id(visit.connection, visit.place["vendor"])
    seen = {it.district_id: it for it in _list_districts(vendor, count_schools(visit.connection))}
    search = visit.get("search") or ""
    listed = dict(list_district_names(visit.connection))
    # Granted, and gone from the roster.
    listed |= {it.district_id: it.name for it in seen.values() if it.district_id not in listed}
    rows = [
        DistrictChoice(sourced_id, name, seen[sourced_id].words if sourced_id in seen else None)
        for sourced_id, name in listed.items()
        if search.casefold() in name.casefold() or search == sourced_id
    ]
    return Districts(vendor, search, cut_page(visit, sorted(rows, key=lambda row: row.words is None)))


def read_choice(visit: Visit) -> Choice:
    """Reads the grants of a district: those of the query string, if it has some, else the present ones."""
    connection, district_id = visit.connection, visit.place["district"]
    vendor = find_vendor_by_id(connection, visit.place["vendor"])
    present = [it.school_id for it in vendor.grants if it.district_id == district_id]
    is_whole = None in present
    now = count_students(connection, district_id, None if is_whole else [it for it in present if it]) if present else 0
    extent = visit.get("extent")
    if extent is None:
        extent, chosen = (WHOLE if is_whole else SOME if present else NOTHING), {it for it in present if it}
    else:
        chosen = {*visit.lists("school")}
    schools = [School(*row, checked=row[0] in chosen) for row in list_school_names(connection, district_id)]
    names = dict(list_district_names(connection))
    wanted = None if extent == WHOLE else [it.sourced_id for it in schools if it.checked]
    students = 0 if extent == NOTHING else count_students(connection, district_id, wanted)
    return Choice(vendor, district_id, names.get(district_id, district_id), extent, schools, students, now)


def _list_districts(vendor: Vendor, numbers: Mapping[str, int]) -> Sequence[DistrictAccess]:
    found: dict[str, DistrictAccess] = {}
    for item in vendor.grants:
        before = found.get(item.district_id)
        is_whole = item.school_id is None or (before is not None and before.granted is None)
        granted = None if is_whole else 1 + ((before and before.granted) or 0)
        name = item.district_name or item.district_id
        found[item.district_id] = DistrictAccess(item.district_id, name, granted, numbers.get(item.district_id, 0))
    return list(found.values())


def _list_limits(vendor: Vendor) -> Sequence[Limit]:
    own, rostering = vendor.allowance, vendor.rostering
    rate, burst, day = fill_allowance(own)
    rostering_rate, rostering_burst = fill_rostering_rate(rostering)
    return (
        Limit("per_second", "Vendor interface: requests a second", own.requests_per_second, rate),
        Limit("burst", "Vendor interface: requests at once", own.burst, burst),
        Limit("per_day", "Vendor interface: requests a day", own.requests_per_day, day),
        Limit("rostering_per_second", "OneRoster: requests a second", rostering.requests_per_second, rostering_rate),
        Limit("rostering_burst", "OneRoster: requests in a burst", rostering.burst, rostering_burst),
        Limit("rostering_at_once", "OneRoster: requests at the same time", rostering.at_once, None),
    )


def _find_today() -> date:
    return datetime.now(UTC).date()


def add_vendor(sent: Submission) -> Outcome:
    """Adds a vendor, and shows its API key and password."""
    email, name = sent.get("email"), sent.get("name")
    if email is None or name is None:
        raise CommandError("a vendor needs a name and an e-mail")
    with sent.change() as connection:
        login = vendors.add_vendor(connection, sent.actor, email, name)
        added = vendors.find_vendor(connection, email)
    return _show_key(sent, added, f"Credentials of {added.name}", login.api_key, login.password)


def set_district(sent: Submission) -> Outcome:
    """Makes the grants of a district those of the form."""
    extent, schools = sent.get("extent"), sent.lists("school")
    if extent not in (WHOLE, SOME, NOTHING):
        raise CommandError("choose what the vendor may see")
    if extent == SOME and not schools:
        raise CommandError("choose at least one school, or nothing")
    wanted = None if extent == WHOLE else schools if extent == SOME else []
    with sent.change() as connection:
        vendor = _find(sent)
        vendors.set_district_grant(connection, sent.actor, vendor.email, sent.place["district"], wanted)
    return Moved(f"/vendors/{vendor.id}", f"The access of {vendor.name} has changed. Its older tokens have ended.")


def show_effect(sent: Submission) -> Outcome:
    """Shows what the form of a district would open, and sets nothing: the way without script."""
    chosen = [("extent", sent.get("extent") or NOTHING), *(("school", it) for it in sent.lists("school"))]
    place = f"/vendors/{_find(sent).id}/grants/{quote(sent.place['district'], safe='')}"
    return Moved(f"{place}?{urlencode(chosen)}", "Nothing is set yet.")


def set_flags(sent: Submission) -> Outcome:
    """Makes the permission flags of a vendor those of the form."""
    flags = [flag for flag in PermissionFlag if flag.value in sent.lists("flag")]
    with sent.change() as connection:
        vendor = vendors.set_flags(connection, sent.actor, _find(sent).email, flags)
    return Moved(f"/vendors/{vendor.id}", f"{vendor.name} may request: {', '.join(flags) or 'no additional part'}.")


def set_withheld(sent: Submission) -> Outcome:
    """Makes the withheld fields of a vendor those of the form, or those of the default."""
    listed = [field for field in WithheldField if field.value in sent.lists("field")]
    with sent.change() as connection:
        fields = None if sent.get("list") == DEFAULT else listed
        vendor = change_withheld(connection, sent.actor, _find(sent).email, fields)
    return Moved(f"/vendors/{vendor.id}", f"What {vendor.name} gets has changed. Its older tokens have ended.")


def set_limits(sent: Submission) -> Outcome:
    """Makes the limits of a vendor those of the form; an empty field is the default of the service."""
    given = {name: _read_limit(sent, name) for name in _LIMITS}
    allowance = Allowance(given["per_second"], given["burst"], given["per_day"])
    rostering = RosteringAllowance(given["rostering_per_second"], given["rostering_burst"], given["rostering_at_once"])
    with sent.change() as connection:
        vendor = vendors.change_allowance(connection, sent.actor, _find(sent).email, allowance, rostering)
    return Moved(f"/vendors/{vendor.id}", f"The limits of {vendor.name} have changed.")


# The greatest value of each limit, as of `roster vendor limits`.
_LIMITS = {
    "per_second": 10_000,
    "burst": 100_000,
    "per_day": 1_000_000,
    "rostering_per_second": 100_000,
    "rostering_burst": 1_000_000,
    "rostering_at_once": 1000,
}


def _read_limit(sent: Submission, name: str) -> int | None:
    given = sent.get(name)
    if given is None:
        return None
    if not (given.isascii() and given.isdigit() and len(given) < 10 and 1 <= int(given) <= _LIMITS[name]):
        raise CommandError(f"a limit is a whole number from 1 to {_LIMITS[name]:,}, or empty")
    return int(given)


def set_enabled(sent: Submission) -> Outcome:
    """Disables or enables a vendor."""
    with sent.change() as connection:
        enabled = sent.form.get("enabled") == "yes"
        vendor = vendors.set_vendor_enabled(connection, sent.actor, _find(sent).email, enabled)
    return Moved(f"/vendors/{vendor.id}", f"{vendor.name} is {'enabled' if enabled else 'disabled'} now.")


def remove_vendor(sent: Submission) -> Outcome:
    """Removes a vendor."""
    with sent.change() as connection:
        vendor = _find(sent)
        vendors.remove_vendor(connection, sent.actor, vendor.email)
    return Moved("/vendors", f"{vendor.name} is removed.")


def rotate_key(sent: Submission) -> Outcome:
    """Gives a vendor a new API key, and shows it."""
    with sent.change() as connection:
        vendor = _find(sent)
        made = vendors.replace_key(connection, sent.actor, vendor.email, _read_grace(sent))
    return _show_key(sent, vendor, f"A new API key of {vendor.name}", made.api_key, None)


def add_client(sent: Submission) -> Outcome:
    """Adds a client, and shows its secret."""
    name = sent.get("name")
    if name is None:
        raise CommandError("a client needs a name")
    with sent.change() as connection:
        vendor = _find(sent)
        made = clients.add_client(connection, sent.actor, vendor.email, name, _read_scopes(sent))
    return _show_secret(sent, vendor, made)


def set_scopes(sent: Submission) -> Outcome:
    """Replaces the scopes of a client."""
    with sent.change() as connection:
        client = _find_client(sent)
        clients.change_scopes(connection, sent.actor, client.client_id, _read_scopes(sent))
    return Moved(f"/vendors/{_find(sent).id}", f"The scopes of {client.name} have changed. Its tokens have ended.")


def rotate_secret(sent: Submission) -> Outcome:
    """Gives a client a new secret, and shows it."""
    with sent.change() as connection:
        client = _find_client(sent)
        key = sent.settings.read_secret_key() if client.oauth1 else None
        made = clients.rotate_secret(connection, sent.actor, client.client_id, _read_grace(sent), secret_key=key)
    return _show_secret(sent, _find(sent), made)


def set_client_enabled(sent: Submission) -> Outcome:
    """Disables or enables a client."""
    with sent.change() as connection:
        client = _find_client(sent)
        change = clients.disable_client if client.enabled else clients.enable_client
        change(connection, sent.actor, client.client_id)
    return Moved(f"/vendors/{_find(sent).id}", f"{client.name} is {'disabled' if client.enabled else 'enabled'} now.")


def remove_client(sent: Submission) -> Outcome:
    """Removes a client."""
    with sent.change() as connection:
        client = _find_client(sent)
        clients.remove_client(connection, sent.actor, client.client_id)
    return Moved(f"/vendors/{_find(sent).id}", f"{client.name} is removed.")


def _find(sent: Submission) -> Vendor:
    """Returns the vendor of the form. Raises CommandError if it is removed."""
    with sent.tools.owner.connect() as connection:
        return find_vendor_by_id(connection, sent.place["vendor"])


def _find_client(sent: Submission) -> Client:
    """Returns the client that the form names. Raises CommandError unless it is one of the vendor."""
    vendor = _find(sent)
    with sent.tools.owner.connect() as connection:
        found = clients.find_listed_client(connection, sent.form.get("client", ""))
    if found.vendor != vendor.email:
        raise CommandError(f"the client is not one of {vendor.email}")
    return found


def _read_scopes(sent: Submission) -> Sequence[Scope]:
    """The scopes that the form has checked, those of one version together."""
    return sorted({*read_scopes(sent.lists("scope"))}, key=lambda it: (it.version, [*ScopeName].index(it.name)))


def _read_grace(sent: Submission) -> timedelta:
    given = sent.get("grace") or "0"
    if not (given.isascii() and given.isdigit() and len(given) < 5 and int(given) <= 8760):
        raise CommandError("the grace is a whole number of hours, from 0 to 8760")
    return timedelta(hours=int(given))


def _show_secret(sent: Submission, vendor: Vendor, made: clients.Credentials) -> Shown:
    version = next(it for it in VERSIONS if made.scopes[0].startswith(f"{it.prefix}/"))
    card = Card(
        vendor=vendor,
        origin=sent.tools.service_url,
        token_path=TOKEN_PATH,
        paths=version.root,
        client_id=made.client_id,
        client_secret=made.client_secret,
        scopes=made.scopes,
    )
    return Shown("card", f"Credentials of {vendor.name}", card)


def _show_key(sent: Submission, vendor: Vendor, title: str, api_key: str, password: str | None) -> Shown:
    card = Card(vendor, sent.tools.service_url, TOKEN_PATH, api_key=api_key, password=password)
    return Shown("card", title, card)


_VIEWER = OperatorRole.VIEWER
SCREENS = (
    Screen("vendors", "/vendors", "Vendors", _VIEWER, read_vendors, lambda it: it.vendors.rows, "Vendors"),
    Screen("vendor", "/vendors/<int:vendor>", "Vendor", _VIEWER, read_vendor, None, None),
    Screen("districts", "/vendors/<int:vendor>/grants", "Districts to grant", _VIEWER, read_districts, None, None),
    Screen("grants", "/vendors/<int:vendor>/grants/<id:district>", "Grants", _VIEWER, read_choice, None, None),
)
FORMS = (
    Form("vendors", "add", Verb.VENDOR_ADD, add_vendor, None),
    Form("grants", "effect", Verb.SHOW, show_effect, None),
    Form("grants", "set", Verb.VENDOR_GRANT, set_district, None),
    Form("vendor", "flags", Verb.VENDOR_GRANT, set_flags, None),
    Form("vendor", "withheld", Verb.VENDOR_SET_WITHHELD, set_withheld, None),
    Form("vendor", "limits", Verb.VENDOR_LIMITS, set_limits, None),
    Form("vendor", "enable", Verb.VENDOR_ENABLE, set_enabled, None),
    Form("vendor", "remove", Verb.VENDOR_REMOVE, remove_vendor, lambda sent: _find(sent).email),
    Form("vendor", "key", Verb.VENDOR_ROTATE_KEY, rotate_key, None),
    Form("vendor", "client", Verb.CLIENT_ADD, add_client, None),
    Form("vendor", "scopes", Verb.CLIENT_SET_SCOPES, set_scopes, None),
    Form("vendor", "secret", Verb.CLIENT_ROTATE_SECRET, rotate_secret, None),
    Form("vendor", "client-enable", Verb.CLIENT_ENABLE, set_client_enabled, None),
    Form("vendor", "client-remove", Verb.CLIENT_REMOVE, remove_client, lambda sent: _find_client(sent).name),
)

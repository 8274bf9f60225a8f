"""A new vendor in one form: who it is, what its product speaks, which schools, which fields not. It ends with what to
send to the vendor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from urllib.parse import urlencode

import sqlalchemy as sa

from roster_service.accounts import clients, vendor_rights, vendors
from roster_service.accounts.districts import (
    DistrictName,
    list_all_grades,
    list_named_districts,
    list_school_names,
    read_students,
)
from roster_service.accounts.parts import PARTS
from roster_service.accounts.secret_links import DAYS, LINK_PATH, make_link
from roster_service.accounts.vendor_rights import change_withheld, read_withheld_default
from roster_service.accounts.vendors import Grant, Vendor
from roster_service.auth.scopes import PRESET_VERSIONS, PRESETS, ScopeName
from roster_service.change_log.actors import OperatorRole
from roster_service.change_log.changes import Verb
from roster_service.console.rule_forms import RuleForm, Values, make_rule_form, read_preview, read_rules
from roster_service.console.screen import Form, Screen
from roster_service.console.vendor_forms import show_key
from roster_service.console.vendor_words import DistrictAccess, list_district_access
from roster_service.console.views.clients import end_files_of, find_client, return_to_credentials
from roster_service.console.visit import Again, Outcome, Shown, Submission, Visit
from roster_service.errors import CommandError
from roster_service.feeds.feeds import list_feeds
from roster_service.feeds.sharing_previews import SharingPreview
from roster_service.people import keep_same_people
from roster_service.roster.person_parts import PersonPart
from roster_service.roster.withheld import WithheldField
from roster_service.schemas.flags import FLAG_WORDS, PermissionFlag
from roster_service.schemas.sharing_rules import Rules, Staff
from roster_service.schemas.versions import list_roots

# What the form sends for a product that speaks the vendor interface, beside the presets of OneRoster.
STUDENTS = "students"
# The most schools that the form lists; with more, it lists the districts alone.
MOST_SCHOOLS = 300


@dataclass(frozen=True)
class DistrictSchools:
    """A district with its schools as (sourcedId, name, number of students); none where the form has too many."""

    district: DistrictName
    schools: Sequence[tuple[str, str, int]]


@dataclass(frozen=True)
class Wizard:
    """The form. `held`: (feed, run) of first loads that wait for a decision: their schools are not in the roster yet;
    `flags`: what each adds to the student record; `withholdable`: the words for the parts of people that can be
    withheld, `withheld`: those that are by default; `chosen`: by name of a box, the values that are checked; `only`:
    the words for the rules, `preview`: what the choice opens, `problem`: why there is none; None in a form that nobody
    has filled in."""

    districts: Sequence[DistrictSchools]
    held: Sequence[tuple[str, int]]
    presets: Mapping[str, str]
    versions: Mapping[str, str]
    flags: Mapping[str, str]
    withholdable: Mapping[str, str]
    withheld: Sequence[str]
    chosen: Mapping[str, Sequence[str]]
    rules: RuleForm
    only: str | None
    preview: SharingPreview | None
    problem: str | None


@dataclass(frozen=True)
class Letter:
    """What to send to a vendor. `link`: with which it makes the secret itself, within `days`; `is_public`: whether a
    setting says the address of the service; `roots`: by version of its scopes, the root of its paths; `districts`: what
    the vendor may see; `withheld`: the words for the parts of people that it does not get; `held`: as in `Wizard`, if
    nothing is granted yet; `has_ended_secrets`: whether every secret of the client has ended for it, and `files`: what
    becomes of its deliveries, blank without any."""

    vendor: Vendor
    client: str
    client_id: str
    link: str
    days: int
    origin: str
    roots: Mapping[str, str]
    is_public: bool
    districts: Sequence[DistrictAccess]
    withheld: Sequence[str]
    held: Sequence[tuple[str, int]]
    has_ended_secrets: bool
    files: str


def read_wizard(visit: Visit) -> Wizard:
    """Reads what the form offers."""
    connection = visit.connection
    named = list_named_districts(connection)
    is_short = sum(district.schools for district in named) <= MOST_SCHOOLS
    default = set(read_withheld_default(connection))
    withheld = [part.name for part in PARTS.values() if part.fields and default.issuperset(part.fields)]
    rules, preview, problem = None, None, None
    if visit.get("staff") is not None:
        try:
            rules = read_rules(visit)
            wanted = _list_wanted(_read_grants(visit), rules)
            reads = _reads_guardians(visit)
            preview = read_preview(visit.tools, None, [], wanted, guardians=reads) if wanted else None
        except CommandError as error:
            problem = str(error)
    return Wizard(
        districts=[
            DistrictSchools(district, _count_at_schools(connection, district.sourcedId) if is_short else ())
            for district in named
        ],
        held=list_held_first_loads(connection, visit.settings.time_zone),
        presets={name: preset.words for name, preset in PRESETS.items()},
        versions={name: versions.words for name, versions in PRESET_VERSIONS.items()},
        flags={flag.value: words for flag, words in FLAG_WORDS.items()},
        withholdable={part.name: part.words for part in PARTS.values() if part.fields},
        withheld=withheld,
        chosen={name: visit.lists(name) for name in ("flag", "district", "school")}
        | {"withhold": withheld if visit.get("staff") is None else visit.lists("withhold")},
        rules=make_rule_form(connection, visit, None, list_all_grades(connection), None, ()),
        only=None if rules is None else rules.describe(),
        preview=preview,
        problem=problem,
    )


def make_copy_query(vendor: Vendor, own: Sequence[clients.Client], default: Sequence[str]) -> str:
    """Returns the query string with which the form begins as the account of a vendor is, without an e-mail and schools.
    `own`: its clients; `default`: what is withheld by default. It withholds at least what the list of the vendor
    does."""
    held = set(own[0].scopes) if own else set()
    fits = [
        (("product", name), ("version", version))
        for name, preset in PRESETS.items()
        for version in PRESET_VERSIONS
        if held == {scope.short for scope in preset.list_scopes(version)}
    ]
    # With other scopes, the operator chooses.
    product = fits[0] if fits else () if own else (("product", STUDENTS),)
    listed = default if vendor.own_withheld is None else vendor.own_withheld
    parts = [("withhold", part.name) for part in PARTS.values() if not set(part.fields).isdisjoint(listed)]
    flags = [("flag", flag) for flag in vendor.flags]
    named = [("copied", vendor.email), ("name", vendor.name)]
    return urlencode([*named, *product, *flags, *parts, ("staff", Staff.ALL), ("guardians", "yes")])


def _reads_guardians(visit: Visit) -> bool:
    """Whether the product that the form has chosen reads guardians."""
    if visit.get("product") == STUDENTS:
        return PermissionFlag.CONTACTS in visit.lists("flag") and PersonPart.GUARDIANS not in visit.lists("withhold")
    preset = PRESETS.get(visit.get("product") or "")
    return preset is not None and ScopeName.GUARDIANS in preset.names


def _count_at_schools(connection: sa.Connection, district_id: str) -> list[tuple[str, str, int]]:
    numbers = read_students(connection, district_id).count_by_org()
    return [(key, name, numbers[key]) for key, name in list_school_names(connection, district_id)]


def list_held_first_loads(connection: sa.Connection, zone: tzinfo | None) -> list[tuple[str, int]]:
    """Returns (feed, run) of the feeds whose first load is held, by name."""
    return [
        (feed.name, feed.held_run)
        for feed in list_feeds(connection, zone)
        if feed.held_run is not None and feed.last_good_run is None
    ]


def add_vendor(sent: Submission) -> Outcome:
    """Adds the vendor with its grants, withheld fields and, for OneRoster, a client without a secret and its link: all
    of it, or nothing."""
    email, name, product = sent.get("email"), sent.get("name"), sent.get("product")
    if email is None or name is None:
        raise CommandError("a vendor needs a name and an e-mail")
    if product != STUDENTS and (product not in PRESETS or sent.get("version") not in PRESET_VERSIONS):
        raise CommandError("choose what the product of the vendor reads")
    with sent.change() as connection:
        login = vendors.add_vendor(connection, sent.actor, email, name)
        vendor = vendors.find_vendor(connection, email)
        if (copied := sent.get("copied")) is not None:
            keep_same_people(connection, sent.actor, copied, vendor.email, sent.settings)
        fields = _read_withheld(sent)
        if set(fields) != set(read_withheld_default(connection)):
            change_withheld(connection, sent.actor, vendor.email, fields)
        grants, even_nothing = _read_grants(sent), sent.get("even_nothing") == "yes"
        rules = read_rules(sent) if grants else None
        for district, schools in grants.items():
            vendor_rights.set_district_grant(
                connection, sent.actor, vendor.email, district, schools, rules, even_nothing=even_nothing
            )
        if product == STUDENTS:
            flags = [flag for flag in PermissionFlag if flag.value in sent.lists("flag")]
            vendor_rights.set_flags(connection, sent.actor, vendor.email, flags)
            vendor = vendors.find_vendor(connection, email)
            return show_key(sent, vendor, f"What to send to {vendor.name}", login.api_key, login.password)
        # A product of OneRoster needs no key, and nobody is shown this one.
        vendors.end_keys(connection, vendor.id)
        scopes = PRESETS[product or ""].list_scopes(sent.get("version") or "")
        # Nobody is shown this secret, and it has ended: nobody gets anything before the link is used.
        given = (connection, sent.actor, vendor.email, name, scopes)
        made = clients.add_client(*given, expires_at=datetime.now(UTC))
        return _show_letter(sent, connection, made.client_id)


def show_effect(_sent: Submission) -> Outcome:
    """Shows what the form would open, and saves nothing."""
    return Again()


def send_link(sent: Submission) -> Outcome:
    """Makes a new link for a client of the vendor, and shows what to send."""
    with sent.change() as connection:
        return _show_letter(sent, connection, find_client(sent).client_id)


def end_leaked(sent: Submission) -> Outcome:
    """Ends every secret of a client at once, and shows a link with which the vendor makes the next one. The secrets end
    also where no link can be made."""
    with sent.change() as connection:
        client = find_client(sent)
        # Nobody is shown this secret, and it has ended, with a former link.
        clients.rotate_secret(connection, sent.actor, client.client_id, timedelta(0), expires_at=datetime.now(UTC))
        files = end_files_of(sent, connection, client.client_id)
        try:
            return _show_letter(sent, connection, client.client_id, has_ended_secrets=True, files=files)
        except CommandError as error:
            refused = error
    words = f"Every secret of {client.name} has ended, with all its tokens."
    return return_to_credentials(sent, " ".join(filter(None, [words, files, f"There is no link: {refused}."])))


def _show_letter(
    sent: Submission, connection: sa.Connection, client_id: str, *, has_ended_secrets: bool = False, files: str = ""
) -> Shown:
    token = make_link(connection, sent.actor, client_id)
    client = clients.find_listed_client(connection, client_id)
    vendor = vendors.find_vendor(connection, client.vendor)
    origin = sent.tools.service_url
    letter = Letter(
        vendor=vendor,
        client=client.name,
        client_id=client_id,
        link=f"{origin}{LINK_PATH}/{token}",
        days=DAYS,
        origin=origin,
        roots=list_roots(client.scopes),
        is_public=sent.settings.public_url is not None,
        districts=list_district_access(connection, vendor),
        withheld=_name_withheld(vendor.withheld),
        held=[] if vendor.grants else list_held_first_loads(connection, sent.settings.time_zone),
        has_ended_secrets=has_ended_secrets,
        files=files,
    )
    return Shown("letter", f"What to send to {vendor.name}", letter)


def _name_withheld(withheld: Sequence[str]) -> list[str]:
    """The words for the parts that are withheld as a whole, and the names of the other fields."""
    whole = [part for part in PARTS.values() if part.fields and set(withheld).issuperset(part.fields)]
    named = {field for part in whole for field in part.fields}
    return [*(part.words for part in whole), *(str(field) for field in withheld if field not in named)]


def _read_withheld(sent: Submission) -> Sequence[WithheldField]:
    """The fields of the parts that the form has checked; phone numbers are two fields."""
    chosen = [PARTS[name].fields for name in sent.lists("withhold") if name in PARTS]
    return [field for field in WithheldField if any(field in fields for fields in chosen)]


def _list_wanted(grants: Mapping[str, Sequence[str] | None], rules: Rules | None) -> list[Grant]:
    return [
        Grant(district, school, rules=rules)
        for district, schools in grants.items()
        for school in ([None] if schools is None else schools)
    ]


def _read_grants(sent: Values) -> dict[str, list[str] | None]:
    """The grants of the form: by district, the schools, None for all of it. A school is sent behind its district
    and a tab, which no id has and every browser keeps."""
    grants: dict[str, list[str] | None] = dict.fromkeys(sent.lists("district"))
    for pair in sent.lists("school"):
        district, _, school = pair.partition("\t")
        schools = grants.setdefault(district, [])
        if schools is not None:
            schools.append(school)
    return grants


SCREENS = (Screen("wizard", "/vendors/new", "A new vendor", OperatorRole.EDITOR, read_wizard, None, None),)
FORMS = (
    Form("wizard", "effect", Verb.SHOW, show_effect, None),
    Form("wizard", "add", Verb.VENDOR_ADD, add_vendor, None),
    Form("credentials", "link", Verb.CLIENT_SEND_LINK, send_link, None),
    Form("credentials", "leaked", Verb.CLIENT_ROTATE_SECRET, end_leaked, None),
)

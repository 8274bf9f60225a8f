"""The districts and schools that a vendor may see, and what a choice of them opens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256

from roster_service.accounts import vendor_rights
from roster_service.accounts.districts import list_named_districts, list_school_names, read_students
from roster_service.accounts.parts import reads_guardians
from roster_service.accounts.vendors import Grant, Vendor, find_vendor_by_id
from roster_service.accounts.ways import list_ways
from roster_service.change_log.actors import OperatorRole
from roster_service.change_log.changes import Verb
from roster_service.console.list_pages import Paged, cut_page
from roster_service.console.rule_forms import RuleForm, make_rule_form, read_preview, read_rules
from roster_service.console.screen import Form, Screen
from roster_service.console.vendor_forms import find_vendor, read_shown_version
from roster_service.console.vendor_words import make_district_access
from roster_service.console.visit import Again, Moved, Outcome, Submission, Visit
from roster_service.errors import CommandError
from roster_service.feeds.sharing_previews import SharingPreview
from roster_service.schemas.sharing_rules import Rules

# What the checkboxes of the grants send.
WHOLE, SOME, NOTHING = "whole", "some", "nothing"
_CONTRADICTION = "schools are checked, and the choice is another one"


@dataclass(frozen=True)
class School:
    """A school of a district, and whether the form has it checked. `students`: active, with a role there."""

    sourced_id: str
    name: str
    students: int
    checked: bool


@dataclass(frozen=True)
class GrantChoice:
    """The grants of one district, as the form has them. `extent`: `whole`, `some` or `nothing`; `rules`: those that the
    form has; `students`: that the choice opens, `now`: that the present grants open; `preview`: all that it opens, if
    it or a present grant has rules, or the vendor an agreement; `present`: the rules of the present grants, in words;
    `only`: the words for the rules of the form, None without rules; `problem`: a contradiction between its parts, or
    what is wrong with a filter, None if nothing is; `shown`: what a form sends that has shown this choice."""

    vendor: Vendor
    district_id: str
    district: str
    extent: str
    schools: Sequence[School]
    rules: RuleForm
    students: int
    now: int
    preview: SharingPreview | None
    present: Sequence[str]
    only: str | None
    problem: str | None
    shown: str


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


def read_districts(visit: Visit) -> Districts:
    """Reads the districts that may be granted."""
    vendor = find_vendor_by_id(visit.connection, visit.place["vendor"])
    search = visit.get("search") or ""
    named = list_named_districts(visit.connection)
    access = make_district_access(vendor, {district.sourcedId: district for district in named})
    seen = {known.district_id: known for known in access}
    listed = {district.sourcedId: district.words for district in named}
    # Granted, and gone from the roster.
    listed |= {known.district_id: known.name for known in access if known.district_id not in listed}
    rows = [
        DistrictChoice(sourced_id, name, seen[sourced_id].words if sourced_id in seen else None)
        for sourced_id, name in listed.items()
        if search.casefold() in name.casefold() or search == sourced_id
    ]
    return Districts(vendor, search, cut_page(visit, sorted(rows, key=lambda row: row.words is None)))


def read_choice(visit: Visit) -> GrantChoice:
    """Reads the grants of a district: those of the query string, if it has some, else the present ones."""
    connection, district_id = visit.connection, visit.place["district"]
    vendor = find_vendor_by_id(connection, visit.place["vendor"])
    granted = vendor.list_grants(district_id)
    present = [item.school_id for item in granted]
    ruled = [item.rules for item in granted if item.rules is not None]
    extent = visit.get("extent")
    if extent is None:
        extent = WHOLE if None in present else SOME if present else NOTHING
        chosen = {school_id for school_id in present if school_id}
    else:
        chosen = {*visit.lists("school")}
    of_district = read_students(connection, district_id, vendor.id)
    numbers = of_district.count_by_org()
    schools = [
        School(sourced_id, name, numbers[sourced_id], checked=sourced_id in chosen)
        for sourced_id, name in list_school_names(connection, district_id)
    ]
    names = {district.sourcedId: district.words for district in list_named_districts(connection)}
    checked = [school.sourced_id for school in schools if school.checked] if extent == SOME else []
    places: list[str | None] = [None] if extent == WHOLE else [*checked]
    grades = of_district.list_grades(checked or None)
    form = make_rule_form(connection, visit, ruled[0] if ruled else None, grades, district_id, checked)
    rules, preview = ruled[0] if ruled else None, None
    is_one = {*granted} == {Grant(district_id, place, rules=rules) for place in places}
    problem = _CONTRADICTION if extent != SOME and chosen else None
    try:
        rules = rules if visit.get("staff") is None else read_rules(visit)
        if rules is not None or ruled or vendor.agreed_flags is not None:
            wanted = [Grant(district_id, place, rules=rules) for place in places]
            then = granted if visit.get("extent") is None else wanted
            reads = reads_guardians(vendor, list_ways(connection).get(vendor.email, ()))
            preview = read_preview(visit.tools, vendor, granted, then, guardians=reads)
    except CommandError as error:
        problem = str(error)
    if preview is not None:
        students, now = preview.counts[0].then, preview.counts[0].now
    else:
        before = None if None in present else [school_id for school_id in present if school_id is not None]
        after = None if extent == WHOLE else checked
        students, now = of_district.count_at(after), of_district.count_at(before)
    return GrantChoice(
        vendor=vendor,
        district_id=district_id,
        district=names.get(district_id, district_id),
        extent=extent,
        schools=schools,
        rules=form,
        students=students,
        now=now,
        preview=preview,
        present=list(dict.fromkeys(item.describe() for item in ruled)),
        only=None if rules is None else rules.describe(),
        problem=problem,
        # The form has one rule; the present grants, which the page begins with, may have several.
        shown=_digest(extent, checked, rules) if visit.get("extent") or is_one else "",
    )


def _digest(extent: str, schools: Sequence[str], rules: Rules | None) -> str:
    said = (extent, sorted(schools), None if extent == NOTHING else rules)
    return sha256(repr(said).encode()).hexdigest()


def set_district(sent: Submission) -> Outcome:
    """Makes the grants of a district those of the form."""
    extent, schools = sent.get("extent"), sent.lists("school")
    if extent not in (WHOLE, SOME, NOTHING):
        raise CommandError("choose what the vendor may see")
    if extent == SOME and not schools:
        raise CommandError("choose at least one school, or nothing")
    if extent != SOME and schools:
        raise CommandError(f"{_CONTRADICTION}; choose “only the schools checked here”, or uncheck them")
    wanted = None if extent == WHOLE else schools if extent == SOME else []
    rules = None if extent == NOTHING else read_rules(sent)
    even_nothing = sent.get("even_nothing") == "yes"
    with sent.change() as connection:
        vendor = find_vendor(sent)
        vendor_rights.set_district_grant(
            connection, sent.actor, vendor.email, sent.place["district"], wanted, rules,
            even_nothing=even_nothing, shown_version=read_shown_version(sent),
        )  # fmt: skip
        if sent.get("shown") != _digest(extent, schools, rules):
            raise CommandError("nothing was saved: first look at the effect of this choice, then set it")
    return Moved(f"/vendors/{vendor.id}", f"The access of {vendor.name} has changed. Its older tokens have ended.")


def show_effect(_sent: Submission) -> Outcome:
    """Shows what the form of a district would open, and sets nothing: the way without script."""
    return Again()


_VIEWER = OperatorRole.VIEWER
SCREENS = (
    Screen("districts", "/vendors/<int:vendor>/grants", "Districts to grant", _VIEWER, read_districts, None, None),
    Screen("grants", "/vendors/<int:vendor>/grants/<id:district>", "Grants", _VIEWER, read_choice, None, None),
)
FORMS = (
    Form("grants", "effect", Verb.SHOW, show_effect, None),
    Form("grants", "set", Verb.VENDOR_GRANT, set_district, None),
)

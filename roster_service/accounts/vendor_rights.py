"""What a vendor may see: grants, permission flags, withheld fields.

The functions work on a connection that the caller commits. Each change needs an actor, is one row of the change log,
and ends the older tokens of the vendors that it concerns, because tokens carry their rights.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict, replace

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import insert as upsert

from roster_service.accounts.districts import (
    ACTIVE,
    DISTRICT,
    SCHOOL,
    count_schools,
    find_org,
    list_all_grades,
    require_org,
)
from roster_service.accounts.vendors import (
    Grant,
    Vendor,
    end_vendor_grants,
    find_vendor,
    invalidate_tokens,
    list_vendors,
    read_rules,
    recorded_vendor,
)
from roster_service.change_log.actors import Actor
from roster_service.change_log.changes import State, Subject, Verb, recorded
from roster_service.db.tables import classes, user_roles, users, vendor_defaults, vendor_grants, vendors
from roster_service.errors import CommandError
from roster_service.feeds.roster_state import begin_change_of_rights
from roster_service.feeds.sharing_groups import count_members, make_group
from roster_service.feeds.sharing_members import Extent
from roster_service.feeds.sharing_previews import GUARDIANS, KINDS, SharingPreview, preview_extents
from roster_service.roster.withheld import WithheldField
from roster_service.schemas.flags import PermissionFlag
from roster_service.schemas.rule_words import list_grades_of
from roster_service.schemas.sharing_rules import Rules, check_rules


def grant(
    connection: sa.Connection,
    actor: Actor,
    email: str,
    district: str | None,
    schools: Sequence[str],
    flags: Sequence[PermissionFlag] = (),
    rules: Rules | None = None,
    *,
    even_nothing: bool = False,
) -> Vendor:
    """Grants a vendor a district, or only the schools `schools` of it, and permission flags. A grant of the same place
    is replaced with its rules (`list_replaced`). `district`: None to grant flags alone. `rules`: None for all records
    of these orgs; `even_nothing`: also rules that open no student and no class now. Older tokens of the vendor end.

    `district` and `schools` are sourcedIds, identifiers or unique names. Raises CommandError for an unknown vendor,
    district or school, for a school of another district, for a filter that means nothing, and for rules of a school
    whose whole district the vendor may see without rules. The caller then rolls back, which leaves the grants of now.
    """
    _begin(connection, rules)
    with recorded_vendor(connection, actor, Verb.VENDOR_GRANT, email):
        vendor = find_vendor(connection, email)
        if district is not None:
            made = make_grants(connection, district, schools, rules)
            for replaced in list_replaced(vendor, made):
                district_is_same = vendor_grants.c.district_id == replaced.district_id
                # That of a whole district has no school.
                school_is_same = vendor_grants.c.school_id.is_not_distinct_from(replaced.school_id)
                of_vendor = vendor_grants.c.vendor_id == vendor.id
                end_vendor_grants(connection, of_vendor, district_is_same, school_is_same)
            for wanted in made:
                if rules is not None:
                    _require_room_for_rules(vendor, wanted)
                _add_grant(connection, vendor, wanted, even_nothing=even_nothing)
        _set_flags(connection, vendor, {*vendor.flags, *flags})
    return find_vendor(connection, email)


def make_grants(
    connection: sa.Connection, district: str, schools: Sequence[str], rules: Rules | None
) -> Sequence[Grant]:
    """Returns the grants of a district, or of these schools of it, which nobody has yet. Raises CommandError as
    `grant`."""
    district_id = find_org(connection, district, DISTRICT, None)
    wanted = dict.fromkeys(find_org(connection, school, SCHOOL, district_id) for school in schools)
    return [Grant(district_id, school_id, rules=rules) for school_id in wanted or [None]]


def list_replaced(vendor: Vendor, made: Collection[Grant]) -> Sequence[Grant]:
    """Returns the present grants of a vendor that others of the same places with other rules would replace."""
    places = {(item.district_id, item.school_id) for item in made}
    return [item for item in vendor.grants if (item.district_id, item.school_id) in places and item not in made]


def preview_grants(
    connection: sa.Connection, vendor: Vendor | None, now: Sequence[Grant], then: Sequence[Grant], *, guardians: bool
) -> SharingPreview:
    """Counts what grants open beside the present ones, as far as the agreement of the vendor allows it; nobody who is
    kept from the vendor counts. `vendor`: None for one that is not there yet; `guardians`: whether a way of the vendor
    has guardians; they do not count otherwise. It makes temporary tables, so the transaction is not read-only. Raises
    CommandError for a filter that means nothing."""
    kinds = [kind for kind in KINDS if guardians or kind != GUARDIANS]
    before, after = (_limit_grants(connection, vendor, grants) for grants in (now, then))
    vendor_id = None if vendor is None else vendor.id
    counted = preview_extents(connection, vendor_id, map(_get_extent, before), map(_get_extent, after), kinds)
    notes = [] if guardians else ["guardians do not count: no client, delivery or key of the vendor may read them"]
    notes += ["the agreement of the vendor allows less than this choice"] if {*after} != {*then} else []
    return replace(counted, notes=[*_list_unknown_grades(connection, then), *list_notes(connection, then), *notes])


# The id of a grant that is not there is that of none.
_LIMITED = sa.text(
    "SELECT * FROM limit_grants(:vendor, ARRAY(SELECT given FROM jsonb_populate_recordset("
    "CAST(NULL AS vendor_grants), CAST(:grants AS jsonb)) given))"
)


def _limit_grants(connection: sa.Connection, vendor: Vendor | None, grants: Sequence[Grant]) -> Sequence[Grant]:
    """What the agreement of a vendor allows of these grants."""
    if vendor is None or vendor.agreed_flags is None:
        return grants
    rows = [
        {"district_id": item.district_id, "school_id": item.school_id, **(asdict(item.rules) if item.rules else {})}
        for item in grants
    ]
    found = connection.execute(_LIMITED, {"vendor": vendor.id, "grants": json.dumps(rows)})
    return [Grant(row.district_id, row.school_id, rules=read_rules(row)) for row in found]


def list_notes(connection: sa.Connection, grants: Collection[Grant]) -> Iterator[str]:
    """Yields a sentence for each grant that opens nothing beside another one, no school, or nobody."""
    yield from _list_covered(grants)
    with_schools = count_schools(connection)
    for district_id in dict.fromkeys(item.district_id for item in grants if item.school_id is None):
        if district_id not in with_schools:
            yield f"no active school lies below {district_id}; Quality lists the schools that lie below no district"
    schools = dict.fromkeys(item.school_id for item in grants if item.school_id is not None)
    held = sa.select(user_roles.c.org_id).join(users, users.c.sourced_id == user_roles.c.user_id).distinct()
    held = held.where(users.c.status == ACTIVE, user_roles.c.org_id.in_(schools))
    with_people = set(connection.scalars(held))
    yield from (f"nobody has a role at {school_id}" for school_id in schools if school_id not in with_people)


def _list_covered(grants: Collection[Grant]) -> Iterator[str]:
    """Yields a sentence for the grants of schools that open nothing, because the whole district is granted as well."""
    for whole in grants:
        if whole == Grant(whole.district_id):
            schools = [item.school_id for item in grants if item.district_id == whole.district_id and item.school_id]
            if schools:
                yield (
                    f"{whole.district_id} is granted as a whole, so the grant of {', '.join(schools)} opens nothing "
                    "more, and narrows nothing"
                )


def _list_unknown_grades(connection: sa.Connection, then: Sequence[Grant]) -> Iterator[str]:
    """Yields a sentence for the grades that rules ask for and no student, or no class, of the roster has."""
    rules = [item.rules for item in then if item.rules is not None]
    for kind, column, filters in (
        ("student", users.c.grades, [item.students for item in rules]),
        ("class", classes.c.grades, [item.classes for item in rules]),
    ):
        asked = dict.fromkeys(grade for text in filters for grade in list_grades_of(text))
        if not asked:
            continue
        known = list_all_grades(connection, column)
        folded = {grade.casefold() for grade in known}
        unknown = [grade for grade in asked if grade.casefold() not in folded]
        if unknown:
            has = f"the grades of the roster are {', '.join(known)}" if known else "the roster has no grade"
            yield f"no {kind} of the roster has the grade {' or '.join(unknown)}: {has}"


def _get_extent(item: Grant) -> Extent:
    rules = item.rules
    if rules is None:
        return Extent(item.district_id, item.school_id, None, None, None, guardians=True)
    return Extent(item.district_id, item.school_id, rules.students, rules.classes, rules.staff, rules.guardians)


def _begin(connection: sa.Connection, rules: Rules | None = None) -> None:
    """Checks rules, and begins the change. Raises CommandError for a filter that means nothing."""
    if rules is not None:
        check_rules(rules)
    begin_change_of_rights(connection)


def _find_shown(connection: sa.Connection, email: str, shown_version: int | None) -> Vendor:
    """Returns the vendor, whose rights nothing else changes now. Raises CommandError if they are others than those that
    were shown: a form that lies open would take back what another operator has done since."""
    vendor = find_vendor(connection, email)
    if shown_version not in (None, vendor.grant_version):
        raise CommandError(
            f"nothing was saved: what {vendor.name} may see has changed since this page was shown; look at it again"
        )
    return vendor


def _add_grant(connection: sa.Connection, vendor: Vendor, wanted: Grant, *, even_nothing: bool) -> None:
    """Adds a grant, unless the vendor has it, with the group of its rules."""
    row = {"vendor_id": vendor.id, "district_id": wanted.district_id, "school_id": wanted.school_id}
    rules = wanted.rules
    values = row if rules is None else row | asdict(rules)
    added = upsert(vendor_grants).values(values).on_conflict_do_nothing().returning(vendor_grants.c.id)
    grant_id = connection.scalar(added)
    if rules is None or grant_id is None:
        return
    make_group(connection, grant_id)
    found = count_members(connection, grant_id)
    if not even_nothing and not (found.get("students") and found.get("classes")):
        counts = ", ".join(f"{count:,} {kind}" for kind, count in sorted(found.items())) or "nothing"
        raise CommandError(
            f"these rules open {counts} of {wanted.school_id or wanted.district_id} now; with --yes they are kept, in "
            "the console with “even if they open nothing”"
        )


def _require_room_for_rules(vendor: Vendor, wanted: Grant) -> None:
    """Raises CommandError where a grant of the district without rules opens the same records: rules of a school would
    narrow nothing."""
    if wanted.school_id is not None and Grant(wanted.district_id) in vendor.grants:
        raise CommandError(
            f"{vendor.email} may see all of {wanted.district_id} without rules, so rules of {wanted.school_id} would "
            "narrow nothing; give the district rules, or take its grant back first"
        )


def revoke(
    connection: sa.Connection, actor: Actor, email: str, district: str | None, flags: Sequence[PermissionFlag] = ()
) -> Vendor:
    """Revokes every grant of a district and its schools, and permission flags. `district`: None to revoke flags alone.
    Older tokens of the vendor end.

    `district` is a sourcedId, an identifier or a unique name. Raises CommandError if the vendor has no grant of the
    district.
    """
    _begin(connection)
    with recorded_vendor(connection, actor, Verb.VENDOR_REVOKE, email):
        vendor = find_vendor(connection, email)
        if district is not None:
            _revoke_district(connection, vendor, district)
        _set_flags(connection, vendor, {*vendor.flags} - {*flags})
    return find_vendor(connection, email)


def set_district_grant(
    connection: sa.Connection,
    actor: Actor,
    email: str,
    district_id: str,
    schools: Sequence[str] | None,
    rules: Rules | None = None,
    *,
    even_nothing: bool = False,
    shown_version: int | None = None,
) -> Vendor:
    """Makes a vendor's grants of a district these: `schools`, the sourcedIds of single schools of it; None for the
    whole district; an empty list for nothing. They take the place of all others of it, with their rules. `rules`,
    `even_nothing`: as for `grant`; `shown_version`: as for `change_withheld`. Older tokens of the vendor end.

    Raises CommandError for an unknown vendor or district, for a school of another district, and for rules as `grant`.
    """
    verb = Verb.VENDOR_REVOKE if schools is not None and not schools else Verb.VENDOR_GRANT
    _begin(connection, rules)
    with recorded_vendor(connection, actor, verb, email):
        vendor = _find_shown(connection, email, shown_version)
        known = {item.district_id for item in vendor.grants}
        # The roster may no longer have a district whose grant is taken back.
        if schools or district_id not in known:
            require_org(connection, district_id, DISTRICT, None)
        own = (vendor_grants.c.vendor_id == vendor.id, vendor_grants.c.district_id == district_id)
        end_vendor_grants(connection, *own)
        wanted: list[str | None] = [None] if schools is None else [*dict.fromkeys(schools)]
        for school in wanted:
            school_id = None if school is None else require_org(connection, school, SCHOOL, district_id)
            _add_grant(connection, vendor, Grant(district_id, school_id, rules=rules), even_nothing=even_nothing)
        invalidate_tokens(connection, vendor.id)
    return find_vendor(connection, email)


def set_flags(
    connection: sa.Connection,
    actor: Actor,
    email: str,
    flags: Sequence[PermissionFlag],
    *,
    shown_version: int | None = None,
) -> Vendor:
    """Makes the permission flags of a vendor these. `shown_version`: as for `change_withheld`. Older tokens of the
    vendor end. Raises CommandError for an unknown vendor."""
    _begin(connection)
    with recorded_vendor(connection, actor, Verb.VENDOR_GRANT if flags else Verb.VENDOR_REVOKE, email):
        vendor = _find_shown(connection, email, shown_version)
        _set_flags(connection, vendor, {*flags})
    return find_vendor(connection, email)


def _revoke_district(connection: sa.Connection, vendor: Vendor, district: str) -> None:
    known = [item.district_id for item in vendor.grants]
    # The roster may no longer have the district.
    district_id = district if district in known else find_org(connection, district, DISTRICT, None)
    if district_id not in known:
        raise CommandError(f"{vendor.email} has no grant of district {district}")
    end_vendor_grants(connection, vendor_grants.c.vendor_id == vendor.id, vendor_grants.c.district_id == district_id)


def _set_flags(connection: sa.Connection, vendor: Vendor, flags: set[str]) -> None:
    """Sets the flags, as the last step of a change of rights."""
    connection.execute(sa.update(vendors).where(vendors.c.id == vendor.id).values(flags=sorted(flags)))
    after = find_vendor(connection, vendor.email)
    # A flag that is not agreed opens nothing.
    is_same = (after.open_flags, after.withheld) == (vendor.open_flags, vendor.withheld)
    invalidate_tokens(connection, vendor.id, content_changed=not is_same)


# A vendor that is added, or given the default, beside the change would keep tokens with the former default.
_LOCK = sa.text(f"LOCK TABLE {vendors.name} IN SHARE ROW EXCLUSIVE MODE")


def change_withheld(
    connection: sa.Connection,
    actor: Actor,
    email: str,
    fields: Collection[WithheldField] | None,
    *,
    shown_version: int | None = None,
) -> Vendor:
    """Replaces the list of withheld fields of a vendor; None: the default applies to it. `shown_version`: the grant
    version of the vendor that the operator was shown; None: the operator changes it whatever it is. Raises CommandError
    for an unknown vendor, and for one whose rights have changed since."""
    _begin(connection)
    vendor = _find_shown(connection, email, shown_version)
    wanted = None if fields is None else (*_sort(fields),)
    if vendor.own_withheld == wanted:
        return vendor
    with recorded_vendor(connection, actor, Verb.VENDOR_SET_WITHHELD, email):
        connection.execute(sa.update(vendors).where(vendors.c.id == vendor.id).values(withheld=wanted))
        after = find_vendor(connection, email)
        invalidate_tokens(connection, vendor.id, content_changed=after.withheld != vendor.withheld)
    return find_vendor(connection, email)


def change_withheld_default(connection: sa.Connection, actor: Actor, fields: Collection[WithheldField]) -> None:
    """Replaces the list that applies to the vendors without a list of their own."""

    def read_state() -> State:
        return {"withheld": list(read_withheld_default(connection))}

    _begin(connection)
    connection.execute(_LOCK)
    with recorded(connection, actor, Verb.VENDOR_SET_WITHHELD_DEFAULT, Subject("service", "withheld"), read_state):
        former = list_vendors(connection)
        connection.execute(sa.update(vendor_defaults).values(withheld=_sort(fields)))
        for before, vendor in zip(former, list_vendors(connection), strict=True):
            if vendor.own_withheld is None:
                invalidate_tokens(connection, vendor.id, content_changed=vendor.withheld != before.withheld)


def read_withheld_default(connection: sa.Connection) -> tuple[str, ...]:
    """Returns the words of the default."""
    return tuple(connection.execute(sa.select(vendor_defaults.c.withheld)).scalar_one())


def _sort(fields: Collection[WithheldField]) -> list[str]:
    return [field.value for field in WithheldField if field in fields]

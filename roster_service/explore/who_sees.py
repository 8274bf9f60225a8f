"""Who sees a record, and which parts of a person, by which way, and why not: the one place that decides it.

Console, commands and letters show its verdicts, each in its own words. They follow from what decides for requests too:
`record_facts.py` asks the query filter, `accounts/parts.py` the schemas. Tests compare them with the answers of the
interfaces. What the roster has of a person is told by `whole_roster.py`.
"""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, StrEnum

import sqlalchemy as sa

from roster_service.accounts.clients import Client, list_clients
from roster_service.accounts.parts import (
    OF_DEMOGRAPHICS,
    PARTS,
    Received,
    has_guardians,
    is_withheld,
    list_received,
)
from roster_service.accounts.vendors import Vendor, find_vendor
from roster_service.accounts.ways import VENDOR_INTERFACE, Way, WayKind, explain_closed, list_ways
from roster_service.auth.scopes import ScopeName
from roster_service.db.tables import academic_sessions, classes, courses, demographics, enrollments, orgs, users
from roster_service.explore.record_facts import RecordFacts, read_facts
from roster_service.explore.whole_roster import find_parts
from roster_service.roster.person_parts import PersonPart
from roster_service.roster.references import OF_PEOPLE
from roster_service.roster.vocabulary import GUARDIAN_ROLES
from roster_service.roster.withheld import WithheldField
from roster_service.rostering.endpoints import Scopes
from roster_service.schemas.flags import PermissionFlag
from roster_service.schemas.versions import DEMOGRAPHICS, USERS, V1P2, VERSIONS, Version

# The records that the vendor interface shows inside of students, and the permission flag that it takes.
_INSIDE_OF_STUDENTS: Mapping[sa.Table, PermissionFlag | None] = {
    orgs: None,
    demographics: PermissionFlag.DEMOGRAPHICS,
    **dict.fromkeys((enrollments, classes, courses, academic_sessions), PermissionFlag.ENROLLMENTS),
}
_KEPT = "the person is kept from this vendor"
_NOT_GRANTED = "no grant of the vendor opens it"
_REFUSED = "the rules of its grants do not open it: only {}"
# What the record of a student has of those whom it names.
_OF_GUARDIANS = frozenset({"names", "email", "phone", "guardians"})
_OF_TEACHERS = frozenset({"names", "email", "classes"})
# The parts that show other records, which the vendor sees or not.
_FOLLOWING = frozenset({"guardians", "classes"})
# Orgs that a reason names.
_NAMED = 5


@dataclass(frozen=True)
class Verdict:
    """Whether a vendor sees a record. `kind`: of the record; `by`: the words of the way, or the name of a client
    without one; `reason`: in words, why it is shown or hidden; `only`: the rules of the grants that open its orgs, in
    words, blank for none; `parts`: of a person, that it shows where the roster has them, as names of `PARTS`."""

    vendor: str
    kind: str
    by: str
    shown: bool
    reason: str
    only: str
    parts: Sequence[str]


class Seeing(StrEnum):
    """Whether a vendor sees a part of a person. The value is shown."""

    SEES = "sees"
    WITHHELD = "withheld"
    CLOSED = "not granted"
    EMPTY = "has none"


class Why(Enum):
    """Why a vendor sees parts of a person, or does not; of several parts, the first of these counts. `{}`: their title,
    or the reason of the records."""

    SHOWN = Seeing.SEES, "by {}"
    LEFT_OUT = Seeing.WITHHELD, "what the roster has of it is withheld, or not in the version that is read"
    NO_AGENTS = Seeing.WITHHELD, "which guardians the person has is withheld from the vendor (`agents`)"
    NONE_SEEN = (
        Seeing.CLOSED,
        "the vendor sees none of the {}: no grant opens one, or somebody in it is kept from the vendor",
    )
    OTHER_WAYS = Seeing.CLOSED, "the ways that have it do not show it of this person"
    NO_RIGHT = Seeing.CLOSED, "no secret, link, delivery or key that is open has the scope or the flag for it"
    WITHHELD = Seeing.WITHHELD, "by the list of the vendor, the default of the service, or its agreement"
    EMPTY = Seeing.EMPTY, "the roster has no {} of this person"
    HIDDEN = Seeing.CLOSED, "{}"


@dataclass(frozen=True)
class PartVerdict:
    """Whether a vendor sees a part of a person. `is_known`: whether the roster has it; `ways`: that show it where the
    roster has it, and `by`, that do."""

    why: Why
    is_known: bool
    ways: Sequence[str] = ()
    by: Sequence[str] = ()


class Obstacle(Enum):
    """What first keeps a person from a vendor that gets nothing of the person."""

    KEPT, DISABLED, NOT_AGREED, NOT_GRANTED, NO_WAY, LEFT_OUT, NOT_COVERED = range(7)


@dataclass(frozen=True)
class VendorVerdict:
    """What a vendor sees of a record. `records`: by each way, of the records with the id; `is_kept`: whether the person
    is kept from it; `has_way`: whether a way of it is open; `parts`: of a person, by their names in `PARTS`."""

    vendor: Vendor
    records: Sequence[Verdict]
    is_kept: bool
    has_way: bool
    parts: Mapping[str, PartVerdict]

    @property
    def only(self) -> str:
        """What the rules of its grants open where the record is, in words; blank for all."""
        return next((verdict.only for verdict in self.records if verdict.kind == USERS.singular), "")

    @property
    def obstacle(self) -> Obstacle:
        """Why it gets nothing, of a vendor that does."""
        if self.is_kept:
            return Obstacle.KEPT
        if not self.vendor.enabled:
            return Obstacle.DISABLED
        if self.vendor.not_agreed is not None:
            return Obstacle.NOT_AGREED
        if not self.vendor.grants:
            return Obstacle.NOT_GRANTED
        if not self.has_way:
            return Obstacle.NO_WAY
        return Obstacle.LEFT_OUT if self.only else Obstacle.NOT_COVERED

    @property
    def reason(self) -> str:
        """Why ways do not show the record, in words."""
        # Demographics follow their person.
        hidden = [one for one in self.records if not one.shown and one.kind != DEMOGRAPHICS.singular]
        # The vendor interface has students alone, so the reason of a client says more.
        hidden = [verdict for verdict in hidden if verdict.by != VENDOR_INTERFACE] or hidden
        return "; ".join(dict.fromkeys(verdict.reason for verdict in hidden))


def explain(connection: sa.Connection, sourced_id: str, email: str | None = None) -> list[VendorVerdict]:
    """Returns what every vendor sees of the records with this id, and why, by e-mail; with `email`, this one. Raises
    CommandError if the roster has no such record, and for an unknown vendor."""
    vendor_id = None if email is None else find_vendor(connection, email).id
    clients, by_vendor = defaultdict[str, list[Client]](list), dict[str, list[RecordFacts]]()
    for client in list_clients(connection):
        clients[client.vendor].append(client)
    for facts in read_facts(connection, sourced_id, vendor_id):
        by_vendor.setdefault(facts.vendor.email, []).append(facts)
    ways, received, found = list_ways(connection), list_received(connection), list[VendorVerdict]()

    @functools.cache
    def find(
        withheld: frozenset[WithheldField], keys: frozenset[str] | None, version: Version
    ) -> frozenset[PersonPart]:
        return find_parts(connection, sourced_id, withheld, version, keys)

    for name, of_vendor in by_vendor.items():
        own, vendor = ways.get(name, ()), of_vendor[0].vendor
        person = next((facts for facts in of_vendor if facts.table is users), None)
        followed = {} if person is None else _follow(person, own, received[name])
        gets = {**received[name]}
        for part, by in followed.items():
            gets[part] = tuple(dict.fromkeys([*gets.get(part, ()), *by]))
        # Of a person without a record of demographics, those who see the person would see it.
        apart = OF_DEMOGRAPHICS if any(facts.table is demographics for facts in of_vendor) else frozenset[str]()
        judged = (verdict for facts in of_vendor for verdict in _judge(facts, own, clients[name], gets, apart))
        records = sorted(judged, key=lambda it: (it.kind, it.by))
        parts: Mapping[str, PartVerdict] = {}
        if person is not None:
            known = frozenset[str]().union(*(find(frozenset(), None, version) for version in VERSIONS))
            withheld, keys = vendor.shown_within
            # The vendor interface has the terms of 1.2.
            left = {
                way.words: frozenset[str]().union(
                    *(find(withheld, keys, version) for version in way.list_names() or (V1P2,))
                )
                for way in own
            }
            parts = {
                part: _judge_part(part, person, records, gets, followed, left, is_known=part in known) for part in PARTS
            }
        is_kept = any(facts.seen.kept for facts in of_vendor if facts.table is users)
        found.append(VendorVerdict(vendor, records, is_kept, bool(own), parts))
    return sorted(found, key=lambda it: it.vendor.email)


def explain_unseen(connection: sa.Connection, email: str, sourced_id: str, part: str | None) -> str:
    """Returns why a vendor does not see the record with this id, or a part of it, in words. `part`: a name of `PARTS`.
    Raises CommandError as `explain`."""
    [found] = explain(connection, sourced_id, email)
    if part is not None and part not in list_received(connection)[found.vendor.email]:
        return f"it does not get {PARTS[part].words}"
    return found.reason or (f"it sees the record without {PARTS[part].words}" if part is not None else "")


def _follow(facts: RecordFacts, ways: Sequence[Way], received: Received) -> Received:
    """The ways that show one of the records behind a part of a person, of those by which a vendor gets the part of
    people; and those that name an agent without the scope of guardians, who is more than one, such as a teacher."""
    found = {part: received.get(part, ()) if part in facts.following else () for part in _FOLLOWING}
    names = received.get(PersonPart.NAMES, ())
    naming = {way.words for way in ways if way.kind is not WayKind.API_KEY and _find_agents(way) in facts.following}
    return {**found, PersonPart.GUARDIANS: (*found["guardians"], *(way for way in names if way in naming))}


def _find_agents(way: Way) -> str:
    """The word of `RecordFacts.following` for the agents whom the record of a user names, guardians or not."""
    return "agents" if way.preset is None or has_guardians(way.preset) else "in_narrow_files"


def _judge_part(
    part: str,
    person: RecordFacts,
    records: Sequence[Verdict],
    received: Received,
    followed: Received,
    left: Mapping[str, Collection[str]],
    *,
    is_known: bool,
) -> PartVerdict:
    """Whether a vendor sees a part of a person. `followed`: of `_follow`; `left`: the parts of the person that the
    roster has, without what is withheld, by way."""
    if not any(one.shown and (one.kind == USERS.singular or part in OF_DEMOGRAPHICS) for one in records):
        return PartVerdict(Why.HIDDEN, is_known)
    if part == PersonPart.GUARDIANS and WithheldField.AGENTS in person.vendor.withheld:
        return PartVerdict(Why.NO_AGENTS if is_known else Why.EMPTY, is_known)
    having = [way for way in received.get(part, ()) if any(one.by == way and part in one.parts for one in records)]
    ways = [way for way in having if way in followed.get(part, having)]
    by = [way for way in ways if part in left[way]]
    if by:
        why = Why.SHOWN
    elif any(part in left[way] for way in having):
        why = Why.NONE_SEEN
    elif having:
        why = Why.LEFT_OUT if is_known else Why.EMPTY
    elif is_withheld(PARTS[part], person.vendor):
        why = Why.WITHHELD
    elif received.get(part):
        why = Why.OTHER_WAYS if is_known else Why.EMPTY
    else:
        why = Why.NO_RIGHT
    return PartVerdict(why, is_known, ways, by)


def _judge(
    facts: RecordFacts, ways: Sequence[Way], clients: Sequence[Client], received: Received, apart: frozenset[str]
) -> list[Verdict]:
    """The verdicts on a record, by each way of a vendor, and on each client without one. `received`: what the vendor
    gets of this person, or of people; `apart`: the parts in a record of demographics, of a person who has one."""
    vendor, rules, found = facts.vendor, facts.rules, list[Verdict]()

    def add(by: str, shown: bool, reason: str, parts: Collection[str] = ()) -> None:
        kind, listed = facts.endpoint.resource.singular, [part for part in PARTS if part in parts]
        found.append(Verdict(vendor.email, kind, by, shown, reason, rules, listed))

    for way in ways:
        given = frozenset(part for part, by in received.items() if way.words in by)
        if way.kind is WayKind.API_KEY and facts.table is users:
            shown, reason, named = judge_student(facts)
            # The vendor interface has nothing inside of a student that is marked as deleted.
            add(way.words, shown, reason, given & (named - facts.ended))
        elif way.kind is WayKind.API_KEY:
            # The verdict on the person has the parts.
            add(way.words, *_judge_inside(facts))
        else:
            shown, reason = _judge_client(facts, way)
            left_out = explain_left_out(facts, way) if shown else None
            of_record = {users: given - apart, demographics: given & apart}.get(facts.table, frozenset())
            is_shown = shown and left_out is None
            add(way.words, is_shown, left_out or reason, of_record if is_shown else ())
    having = {way.client.client_id for way in ways if way.client is not None}
    for client in clients:
        if client.client_id not in having:
            add(client.name, False, explain_closed(client, vendor))
    if facts.table is users and facts.seen.keys and vendor.closed is not None:
        add(VENDOR_INTERFACE, False, vendor.closed)
    if not found:
        add("–", False, "it has no client")
    return found


def _judge_client(facts: RecordFacts, way: Way) -> tuple[bool, str]:
    """Whether the scopes of a way open a record, and why."""
    reasons = []
    for names in way.list_names().values() or [frozenset[ScopeName]()]:
        guardians, needed = ScopeName.GUARDIANS in names, facts.endpoint.access.value
        if not names.intersection(needed):
            reasons.append(f"the client lacks {' and '.join(needed)}")
        elif facts.seen.with_guardians if guardians else facts.seen.without:
            return True, _name_opened(facts, guardians=guardians)
        else:
            reasons.append(explain_hidden(facts, guardians=guardians))
    # That it lacks a scope says least.
    return False, next((reason for reason in reasons if not reason.startswith("the client lacks")), reasons[0])


def judge_student(facts: RecordFacts) -> tuple[bool, str, frozenset[str]]:
    """Returns whether the vendor interface shows a person, why, and which parts: of a student all, of those whom the
    record of a student names some."""
    vendor, seen = facts.vendor, facts.seen
    if seen.student:
        return True, _name_opened(facts, guardians=False), frozenset(PARTS)
    named = dict[str, frozenset[str]]()
    if (
        seen.as_guardian
        and PermissionFlag.CONTACTS in vendor.open_flags
        and WithheldField.AGENTS not in vendor.withheld
    ):
        named["a guardian"] = _OF_GUARDIANS
    if seen.as_teacher and PermissionFlag.ENROLLMENTS in vendor.open_flags:
        named["a teacher"] = _OF_TEACHERS
    if named:
        words = f"it is named as {' and '.join(named)} of a student whom the vendor sees"
        return True, words, frozenset[str]().union(*named.values())
    return False, _KEPT if seen.kept else _explain_no_student(facts), frozenset()


def _judge_inside(facts: RecordFacts) -> tuple[bool, str]:
    """Whether the vendor interface shows a record that is no person inside of students, and why."""
    flag, rules = _INSIDE_OF_STUDENTS[facts.table], facts.rules
    if not facts.seen.without:
        return False, _KEPT if facts.seen.kept else _REFUSED.format(rules) if rules else _NOT_GRANTED
    if flag is not None and flag not in facts.vendor.open_flags:
        return False, facts.vendor.explain_flag(flag)
    if facts.table is demographics and not facts.seen.student:
        return False, _explain_no_student(facts)
    return True, "the students whom the vendor sees are answered with it, as far as they have it"


def _explain_no_student(facts: RecordFacts) -> str:
    """Why the vendor interface shows nothing of a person who is not kept from the vendor."""
    vendor, seen = facts.vendor, facts.seen
    if not vendor.grants:
        return "the vendor has no grant"
    if seen.as_guardian and WithheldField.AGENTS in vendor.withheld:
        return "it is named as a guardian alone, and who that is (`agents`) is withheld from the vendor"
    lacking = [(seen.as_guardian, "a guardian", PermissionFlag.CONTACTS)]
    lacking += [(seen.as_teacher, "a teacher", PermissionFlag.ENROLLMENTS)]
    for is_named, role, flag in lacking:
        if is_named:
            return f"it would be named as {role} of a student, and {vendor.explain_flag(flag)}"
    return _REFUSED.format(facts.rules) if facts.rules else "no grant opens a school where it is a student"


def explain_left_out(facts: RecordFacts, way: Way) -> str | None:
    """Returns why the files of a delivery have no row of a record that its client sees; None if they may have one, and
    for another way."""
    preset, file, words = way.preset, facts.endpoint.resource.plural, facts.words
    if preset is None:
        return None
    [names] = way.list_names().values()
    if words["status"] != "active":
        return "its files have active records alone"
    if not preset.has_file(file) or not names.intersection(Scopes.CORE.value):
        return f"its files have no {file}"
    role = facts.seen.role_with_guardians if ScopeName.GUARDIANS in names else facts.seen.role_without
    for (of, header), taken in preset.only.items():
        own = role if header == "role" and of == USERS.plural else words.get(header)
        if of == file and own not in taken:
            return f"the receiver takes no such {header}: only {' and '.join(sorted(taken))}"
    return None


def explain_hidden(facts: RecordFacts, *, guardians: bool) -> str:
    """Returns why a client of a vendor does not see a record that the roster has. `guardians`: whether it sees
    guardians."""
    places, granted = facts.places, facts.granted
    if facts.seen.kept:
        return _KEPT
    # What is open with the scope is not kept by the rules.
    if facts.rules and not facts.seen.with_guardians:
        return _REFUSED.format(facts.rules)
    if facts.table not in OF_PEOPLE:
        return _NOT_GRANTED
    if not places:
        return "the person has no role at any org"
    if any(guardians or place.role not in GUARDIAN_ROLES for place in granted):
        return "the path does not have it"
    if granted:
        return "the person is a guardian, and the client lacks guardians.readonly"
    return f"the vendor has no grant where the person is: {', '.join(sorted({place.words for place in places}))}"


def _name_opened(facts: RecordFacts, *, guardians: bool) -> str:
    """The places by which the vendor sees a record, in words."""
    opened = [place for place in facts.opened if guardians or place.role not in GUARDIAN_ROLES]
    if not opened:
        return "a grant opens a record that leads to it"
    named = list(dict.fromkeys(place.words for place in opened))
    more = f", and {len(named) - _NAMED} more" if len(named) > _NAMED else ""
    return f"a grant opens {', '.join(named[:_NAMED])}{more}{f', only {facts.rules}' if facts.rules else ''}"

"""What vendors get of people: the ways that are open, and what the schemas show by the rights of each.

Whatever states what a vendor gets asks `list_received`: the console, `roster access` and `roster vendor show`. Tests
compare it with the answers of both interfaces and with files. The grants decide which schools' people these are, and
`explore/who_sees.py` what a vendor gets of one person.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import sqlalchemy as sa

from roster_service.accounts.vendors import Vendor, list_vendors
from roster_service.accounts.ways import Way, WayKind, list_ways
from roster_service.auth.scopes import KEPT_RIGHTS, ScopeName, make_content_rights
from roster_service.db.tables import vendors, visible_orgs
from roster_service.errors import CommandError
from roster_service.roster.person_parts import OF_GUARDIANS, OF_METADATA, PART_OF, PersonPart
from roster_service.roster.visibility import ContentRights
from roster_service.roster.vocabulary import GUARDIAN_ROLES
from roster_service.roster.withheld import WithheldField
from roster_service.schemas.file_presets import Preset
from roster_service.schemas.flags import PermissionFlag
from roster_service.schemas.kinds import find_shown_parts, list_roster_fields
from roster_service.schemas.records import Record
from roster_service.schemas.students import PLAIN_FIELDS, Student
from roster_service.schemas.versions import DEMOGRAPHICS, ENROLLMENTS, USERS, V1P2

# In front of the preset, where the access log has a file that was sent.
DELIVERIES_PATH = "/deliveries/"
# The records of people, with the scopes of which a client needs one for them.
_PEOPLE = frozenset({ScopeName.CORE, ScopeName.FULL})
_RECORDS = {USERS: _PEOPLE, ENROLLMENTS: _PEOPLE, DEMOGRAPHICS: frozenset({ScopeName.DEMOGRAPHICS})}


@dataclass(frozen=True)
class ShownPart:
    """A part of what the service knows of people. `words`: for people."""

    name: PersonPart
    words: str

    @property
    def fields(self) -> frozenset[WithheldField]:
        """The fields with which all of it is withheld; none for guardians, whose own records stay without `agents`."""
        return frozenset(field for field, shown in PART_OF.items() if shown is self.name and shown not in OF_GUARDIANS)

    @property
    def is_metadata(self) -> bool:
        """Whether it is free metadata, of which an agreement names the keys."""
        return self.name in OF_METADATA

    @property
    def lack(self) -> str:
        """The words for what a vendor does not get that does not get the part. Somebody who is a teacher, too, is seen
        as that, and named as an agent."""
        return f"{self.words} but those with another role" if self.name is PersonPart.GUARDIANS else self.words

    @property
    def choice(self) -> str:
        """The words for what a vendor gets that gets the part, where some of it is seen without."""
        return f"{self.words} who have no other role, too" if self.name is PersonPart.GUARDIANS else self.words


_P = PersonPart
PARTS: Mapping[str, ShownPart] = {
    part: ShownPart(part, words)
    for part, words in (
        (_P.NAMES, "names, usernames and grades"),
        (_P.EMAIL, "e-mail addresses"),
        (_P.PHONE, "phone numbers"),
        (_P.IDENTIFIER, "numbers of the school or district"),
        (_P.USER_IDS, "ids of other systems"),
        (_P.MIDDLE_NAME, "middle names"),
        (_P.PREFERRED_NAMES, "preferred names"),
        (_P.PRONOUNS, "pronouns"),
        (_P.CLASSES, "classes"),
        (_P.GUARDIANS, "guardians"),
        (_P.BIRTH_DATE, "birth dates"),
        (_P.SEX, "sex"),
        (_P.RACE, "race and ethnicity"),
        (_P.BIRTH_PLACE, "places of birth"),
        (_P.RESIDENCE, "residence status"),
        (_P.STUDENT_METADATA, "metadata of students"),
        (_P.GUARDIAN_METADATA, "metadata of guardians"),
        (_P.DEMOGRAPHIC_METADATA, "metadata of demographics"),
    )
}
# By part that a vendor gets, the words of the ways by which it does.
Received = Mapping[str, tuple[str, ...]]


@functools.lru_cache(KEPT_RIGHTS)
def _find_parts(record: type[Record], rights: ContentRights, fields: frozenset[str] | None = None) -> frozenset[str]:
    """The parts that a record of people can show. `fields`: those that it has, None for all."""
    shown = {name: field for name, field in list_roster_fields(record).items() if fields is None or name in fields}
    return find_shown_parts(shown, rights)


# The parts in the records of demographics.
OF_DEMOGRAPHICS = _find_parts(V1P2.records[DEMOGRAPHICS], make_content_rights(frozenset(ScopeName), frozenset(), None))


def list_received(connection: sa.Connection, *, ahead: bool = False) -> Mapping[str, Received]:
    """Returns what each vendor gets of the people whom its grants open, by its e-mail. A vendor that is disabled or has
    no grant gets nothing. `ahead`: of an agreement that begins later, what the vendor gets then."""
    ways = list_ways(connection, ahead=ahead)
    with_guardians = _read_opened(connection)
    return {
        vendor.email: _find_received(vendor, ways.get(vendor.email, ()), guardians=with_guardians[vendor.id])
        if vendor.id in with_guardians
        else {}
        for vendor in list_vendors(connection)
    }


def _read_opened(connection: sa.Connection) -> Mapping[int, bool]:
    """Whether the grants of a vendor open guardians, by its number. A grant of what the roster does not have opens
    nothing."""
    agreed = sa.func.agreed_grants(vendors.c.id).table_valued("school_id", "district_id", "guardians").lateral()
    place = sa.func.coalesce(agreed.c.school_id, agreed.c.district_id)
    rows = sa.select(vendors.c.id, sa.func.bool_or(agreed.c.guardians).label("guardians")).where(
        visible_orgs.c.vendor_id == vendors.c.id, visible_orgs.c.org_id == place, visible_orgs.c.shared
    )
    return {row.id: row.guardians for row in connection.execute(rows.group_by(vendors.c.id))}


# What is said of records of people without any part.
NO_PART = "no more than ids, roles and schools"


def explain_nothing(vendor: Vendor) -> str:
    """Returns why a vendor that gets nothing does, in words."""
    if vendor.closed is not None:
        return vendor.closed
    if not vendor.grants:
        return "no district or school is granted"
    return "what it is granted is not in the roster, or no API key, secret, link or delivery of it opens a part"


def require_part(name: str) -> ShownPart:
    """Returns the part with a name. Raises CommandError if there is none."""
    found = PARTS.get(name)
    if found is None:
        raise CommandError(f"there is no part {name[:40]}; the parts are {', '.join(PARTS)}")
    return found


def _find_received(vendor: Vendor, ways: Sequence[Way], *, guardians: bool) -> Received:
    found = {way.words: find_parts(way, vendor) - (frozenset() if guardians else OF_GUARDIANS) for way in ways}
    received = {part: tuple(words for words, parts in found.items() if part in parts) for part in PARTS}
    return {part: by for part, by in received.items() if by}


def reads_guardians(vendor: Vendor, ways: Sequence[Way]) -> bool:
    """Returns whether a way of a vendor has the guardians whom its grants open. `ways`: those that are open."""
    return any(PersonPart.GUARDIANS in find_parts(way, vendor) for way in ways)


def is_withheld(part: ShownPart, vendor: Vendor) -> bool:
    """Returns whether all fields of a part are withheld from a vendor."""
    return bool(part.fields) and part.fields.issubset(vendor.withheld)


def find_parts(way: Way, vendor: Vendor) -> frozenset[str]:
    """Returns the parts of people that a way of a vendor can show: those of the fields that its records have."""
    withheld, keys = vendor.shown_within
    if way.kind is WayKind.API_KEY:
        scopes = frozenset({ScopeName.GUARDIANS} if PermissionFlag.CONTACTS in vendor.open_flags else ())
        return _find_parts(
            Student, make_content_rights(scopes, withheld, keys), frozenset((*PLAIN_FIELDS, *vendor.open_flags))
        )
    found = frozenset[str]()
    # A token, and a file, have one version.
    for version, names in way.list_names().items():
        rights = make_content_rights(names, withheld, keys)
        if way.preset is not None:
            rights = replace(rights, guardians=rights.guardians and has_guardians(way.preset))
            rights = rights if way.preset.metadata else replace(rights, metadata=frozenset())
        for resource, needed in _RECORDS.items():
            # No file names people without the file of users.
            if way.preset is None or (way.preset.has_file(resource.plural) and names & _PEOPLE):
                found |= _find_parts(version.records[resource], rights) if names & needed else frozenset()
    return found


def has_guardians(preset: Preset) -> bool:
    """Returns whether the files of a preset have guardians."""
    taken = preset.only.get((USERS.plural, "role"))
    return taken is None or not taken.isdisjoint(GUARDIAN_ROLES)

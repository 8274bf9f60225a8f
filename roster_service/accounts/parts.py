"""What vendors get of people: computed from the ways that are open, their scopes, permission flags, withheld fields and
the rules of their grants together.

Whatever states what a vendor gets asks `list_received`: the console, `roster access` and `roster vendor show`. Tests
compare it with the answers of both interfaces and with files. The grants decide which schools' people these are
(`explore/who_sees.py`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from roster_service.accounts.vendors import Vendor, list_vendors
from roster_service.accounts.ways import Way, WayKind, list_ways
from roster_service.auth.scopes import ScopeName
from roster_service.db.tables import vendors, visible_orgs
from roster_service.errors import CommandError
from roster_service.roster.person_parts import PART_OF, PersonPart
from roster_service.roster.vocabulary import GUARDIAN_ROLES
from roster_service.roster.withheld import WithheldField
from roster_service.schemas.file_presets import Preset
from roster_service.schemas.flags import PermissionFlag
from roster_service.schemas.versions import DEMOGRAPHICS, V1P2, VERSIONS, Version

# In front of the preset, where the access log has a file that was sent.
DELIVERIES_PATH = "/deliveries/"
# The paths of people, and of demographics; a token needs one scope of each set.
_PEOPLE = frozenset({ScopeName.CORE, ScopeName.FULL})
_DEMOGRAPHICS = frozenset({ScopeName.DEMOGRAPHICS})
_PLAIN = "plain"


@dataclass(frozen=True)
class ShownPart:
    """A part of what the service knows of people. `words`: for people; `scopes`: sets of which a client needs one scope
    each; `flag`: with which the vendor interface shows it, `_PLAIN` for the plain student record, None for neither;
    `fields`: it is withheld if all of them are; `student_fields`: the same on the vendor interface, where they differ;
    `versions`: of OneRoster that have it; `is_metadata`: whether it is free metadata."""

    name: PersonPart
    words: str
    scopes: tuple[frozenset[ScopeName], ...]
    flag: str | None
    fields: frozenset[WithheldField] = frozenset()
    student_fields: frozenset[WithheldField] | None = None
    versions: tuple[Version, ...] = VERSIONS
    is_metadata: bool = False

    @property
    def lack(self) -> str:
        """The words for what a vendor does not get that does not get the part. Somebody who is a teacher, too, is seen
        as that, and named as an agent."""
        return f"{self.words} but those with another role" if self.name is PersonPart.GUARDIANS else self.words

    @property
    def choice(self) -> str:
        """The words for what a vendor gets that gets the part, where some of it is seen without."""
        return f"{self.words} who have no other role, too" if self.name is PersonPart.GUARDIANS else self.words

    @property
    def is_of_guardians(self) -> bool:
        """Whether it is about the guardians whom a grant opens."""
        return any(ScopeName.GUARDIANS in needed for needed in self.scopes)

    @property
    def is_of_demographics(self) -> bool:
        """Whether the rostering interface has it under the paths of demographics."""
        return self.scopes[0] is _DEMOGRAPHICS


def _find_fields(part: PersonPart) -> frozenset[WithheldField]:
    return frozenset(field for field, shown in PART_OF.items() if shown is part)


def _of_people(
    part: PersonPart, words: str, flag: str | None, *, versions: tuple[Version, ...] = VERSIONS
) -> ShownPart:
    return ShownPart(part, words, (_PEOPLE,), flag, _find_fields(part), versions=versions)


def _of_demographics(part: PersonPart, words: str) -> ShownPart:
    return ShownPart(part, words, (_DEMOGRAPHICS,), PermissionFlag.DEMOGRAPHICS, _find_fields(part))


def _metadata(part: PersonPart, words: str, *scopes: ScopeName) -> ShownPart:
    paths = _DEMOGRAPHICS if ScopeName.DEMOGRAPHIC_METADATA in scopes else _PEOPLE
    return ShownPart(part, words, (paths, *(frozenset({scope}) for scope in scopes)), None, is_metadata=True)


_P, _NEWER = PersonPart, (V1P2,)
PARTS: Mapping[str, ShownPart] = {
    part.name: part
    for part in (
        _of_people(_P.NAMES, "names, usernames and grades", _PLAIN),
        _of_people(_P.EMAIL, "e-mail addresses", _PLAIN),
        _of_people(_P.PHONE, "phone numbers", PermissionFlag.CONTACTS),
        _of_people(_P.IDENTIFIER, "numbers of the school or district", _PLAIN),
        _of_people(_P.USER_IDS, "ids of other systems", None),
        _of_people(_P.MIDDLE_NAME, "middle names", _PLAIN),
        _of_people(_P.PREFERRED_NAMES, "preferred names", _PLAIN, versions=_NEWER),
        _of_people(_P.PRONOUNS, "pronouns", None, versions=_NEWER),
        _of_people(_P.CLASSES, "classes", PermissionFlag.ENROLLMENTS),
        ShownPart(
            _P.GUARDIANS,
            "guardians",
            (_PEOPLE, frozenset({ScopeName.GUARDIANS})),
            PermissionFlag.CONTACTS,
            # On the rostering interface, a guardian is a user, whose record stays if `agents` is withheld.
            student_fields=_find_fields(_P.GUARDIANS),
        ),
        _of_demographics(_P.BIRTH_DATE, "birth dates"),
        _of_demographics(_P.SEX, "sex"),
        _of_demographics(_P.RACE, "race and ethnicity"),
        _of_demographics(_P.BIRTH_PLACE, "places of birth"),
        _of_demographics(_P.RESIDENCE, "residence status"),
        _metadata(_P.STUDENT_METADATA, "metadata of students", ScopeName.STUDENTS_METADATA),
        _metadata(_P.GUARDIAN_METADATA, "metadata of guardians", ScopeName.GUARDIANS, ScopeName.GUARDIANS_METADATA),
        _metadata(_P.DEMOGRAPHIC_METADATA, "metadata of demographics", ScopeName.DEMOGRAPHIC_METADATA),
    )
}
# By part that a vendor gets, the words of the ways by which it does.
Received = Mapping[str, tuple[str, ...]]


def list_received(connection: sa.Connection) -> Mapping[str, Received]:
    """Returns what each vendor gets of the people whom its grants open, by its e-mail. A vendor that is disabled or has
    no grant gets nothing."""
    ways = list_ways(connection)
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
    withheld = frozenset(map(WithheldField, vendor.withheld))
    found: dict[str, tuple[str, ...]] = {}
    for part in PARTS.values():
        if part.is_of_guardians and not guardians:
            continue
        by = [way.words for way in ways if _opens(way, part, vendor.open_flags, withheld)]
        if by:
            found[part.name] = tuple(by)
    return found


def reads_guardians(vendor: Vendor, ways: Sequence[Way]) -> bool:
    """Returns whether a way of a vendor has the guardians whom its grants open. `ways`: those that are open."""
    return PersonPart.GUARDIANS in _find_received(vendor, ways, guardians=True)


def is_withheld(part: ShownPart, vendor: Vendor) -> bool:
    """Returns whether all fields of a part are withheld from a vendor."""
    return not _is_shown(part.fields, frozenset(map(WithheldField, vendor.withheld)))


def _opens(way: Way, part: ShownPart, flags: Collection[str], withheld: Collection[WithheldField]) -> bool:
    if way.kind is WayKind.API_KEY:
        fields = part.fields if part.student_fields is None else part.student_fields
        return part.flag in (_PLAIN, *flags) and _is_shown(fields, withheld)
    held = [names for version, names in way.list_names().items() if version in part.versions]
    # A token, and a file, have one version.
    opened = [names for names in held if all(needed & names for needed in part.scopes)]
    if way.preset is not None:
        # No file names people without the file of users.
        opened = [names for names in opened if _PEOPLE & names] if _is_in_files(part, way.preset) else []
    return bool(opened) and _is_shown(part.fields, withheld)


def _is_in_files(part: ShownPart, preset: Preset) -> bool:
    """Whether the files of a preset have a part."""
    taken = preset.only.get(("users", "role"))
    has_guardians = taken is None or not taken.isdisjoint(GUARDIAN_ROLES)
    has_demographics = preset.files is None or DEMOGRAPHICS.plural in preset.files
    return (
        (has_guardians or not part.is_of_guardians)
        and (has_demographics or not part.is_of_demographics)
        and (preset.metadata or not part.is_metadata)
    )


def add_agents(received: Received, ways: Sequence[Way], following: Collection[str]) -> Received:
    """Returns what a vendor gets of a person, with the agents whom the record names without the scope of guardians:
    those who are more than a guardian, such as a teacher. `ways`: of the vendor; `following`: of `list_following`."""
    naming = [
        way.words for way in ways if way.words in received.get(PersonPart.NAMES, ()) and _find_agents(way) in following
    ]
    by = tuple(dict.fromkeys([*received.get(PersonPart.GUARDIANS, ()), *naming]))
    return {**received, PersonPart.GUARDIANS: by} if by else received


def _find_agents(way: Way) -> str | None:
    """The word of `list_following` for the agents whom the record of a user names, guardians or not; None if it names
    none."""
    if way.kind is WayKind.API_KEY:
        return None
    if way.preset is None or _is_in_files(PARTS[PersonPart.GUARDIANS], way.preset):
        return "agents"
    return "in_narrow_files"


def _is_shown(fields: Collection[WithheldField], withheld: Collection[WithheldField]) -> bool:
    return not fields or any(field not in withheld for field in fields)

"""What vendors get of people: computed from the scopes of their clients, their API keys, permission flags and withheld
fields together.

Whatever states what a vendor gets asks `list_received`: the console, `roster access` and `roster vendor show`. A test
compares it with the answers of both interfaces. The grants decide which schools' people these are
(`explore/who_sees.py`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

import sqlalchemy as sa

from roster_service.accounts.clients import Client, list_clients
from roster_service.accounts.credentials import CredentialKind, list_credentials
from roster_service.accounts.vendors import Vendor, list_vendors
from roster_service.auth.scopes import ScopeName, read_scopes
from roster_service.db.tables import visible_orgs
from roster_service.errors import CommandError
from roster_service.roster.withheld import WithheldField
from roster_service.schemas.flags import PermissionFlag
from roster_service.schemas.versions import V1P2, VERSIONS, Version

STUDENTS_PATH = "/v1/students"
# In front of the preset, where the access log has a file that was sent.
DELIVERIES_PATH = "/deliveries/"
VENDOR_INTERFACE = f"POST {STUDENTS_PATH}"
# The paths of people, and of demographics; a token needs one scope of each set.
_PEOPLE = frozenset({ScopeName.CORE, ScopeName.FULL})
_DEMOGRAPHICS = frozenset({ScopeName.DEMOGRAPHICS})
_PLAIN = "plain"


@dataclass(frozen=True)
class ShownPart:
    """A part of what the service knows of people. `words`: for people; `scopes`: sets of which a client needs one scope
    each; `flag`: with which the vendor interface shows it, `_PLAIN` for the plain student record, None for neither;
    `fields`: it is withheld if all of them are; `student_fields`: the same on the vendor interface, where they differ;
    `versions`: of OneRoster that have it."""

    name: str
    words: str
    scopes: tuple[frozenset[ScopeName], ...]
    flag: str | None
    fields: frozenset[WithheldField] = frozenset()
    student_fields: frozenset[WithheldField] | None = None
    versions: tuple[Version, ...] = VERSIONS


def _of_people(
    name: str, words: str, flag: str | None, *fields: WithheldField, versions: tuple[Version, ...] = VERSIONS
) -> ShownPart:
    return ShownPart(name, words, (_PEOPLE,), flag, frozenset(fields), versions=versions)


def _of_demographics(name: str, words: str, *fields: WithheldField) -> ShownPart:
    return ShownPart(name, words, (_DEMOGRAPHICS,), PermissionFlag.DEMOGRAPHICS, frozenset(fields))


def _metadata(name: str, words: str, *scopes: ScopeName) -> ShownPart:
    paths = _DEMOGRAPHICS if ScopeName.DEMOGRAPHIC_METADATA in scopes else _PEOPLE
    return ShownPart(name, words, (paths, *(frozenset({scope}) for scope in scopes)), None)


_F, _NEWER = WithheldField, (V1P2,)
PARTS: Mapping[str, ShownPart] = {
    part.name: part
    for part in (
        _of_people("names", "names, usernames and grades", _PLAIN),
        _of_people("email", "e-mail addresses", _PLAIN, _F.EMAIL),
        _of_people("phone", "phone numbers", PermissionFlag.CONTACTS, _F.PHONE, _F.SMS),
        _of_people("identifier", "numbers of the school or district", _PLAIN, _F.IDENTIFIER),
        _of_people("userIds", "ids of other systems", None, _F.USER_IDS),
        _of_people("middleName", "middle names", _PLAIN, _F.MIDDLE_NAME),
        _of_people("preferredNames", "preferred names", _PLAIN, _F.PREFERRED_NAMES, versions=_NEWER),
        _of_people("pronouns", "pronouns", None, _F.PRONOUNS, versions=_NEWER),
        _of_people("classes", "classes and teachers", PermissionFlag.ENROLLMENTS),
        ShownPart(
            "guardians",
            "guardians",
            (_PEOPLE, frozenset({ScopeName.GUARDIANS})),
            PermissionFlag.CONTACTS,
            # On the rostering interface, a guardian is a user, whose record stays if `agents` is withheld.
            student_fields=frozenset({_F.AGENTS}),
        ),
        _of_demographics("birthDate", "birth dates", _F.BIRTH_DATE),
        _of_demographics("sex", "sex", _F.SEX),
        _of_demographics(
            "race",
            "race and ethnicity",
            _F.AMERICAN_INDIAN_OR_ALASKA_NATIVE,
            _F.ASIAN,
            _F.BLACK_OR_AFRICAN_AMERICAN,
            _F.NATIVE_HAWAIIAN_OR_OTHER_PACIFIC_ISLANDER,
            _F.WHITE,
            _F.DEMOGRAPHIC_RACE_TWO_OR_MORE_RACES,
            _F.HISPANIC_OR_LATINO_ETHNICITY,
        ),
        _of_demographics(
            "birthPlace",
            "places of birth",
            _F.COUNTRY_OF_BIRTH_CODE,
            _F.STATE_OF_BIRTH_ABBREVIATION,
            _F.CITY_OF_BIRTH,
        ),
        _of_demographics("residence", "residence status", _F.PUBLIC_SCHOOL_RESIDENCE_STATUS),
        _metadata("studentMetadata", "metadata of students", ScopeName.STUDENTS_METADATA),
        _metadata("guardianMetadata", "metadata of guardians", ScopeName.GUARDIANS, ScopeName.GUARDIANS_METADATA),
        _metadata("demographicMetadata", "metadata of demographics", ScopeName.DEMOGRAPHIC_METADATA),
    )
}
# By part that a vendor gets, the names of the clients that get it, and `VENDOR_INTERFACE`.
Received = Mapping[str, tuple[str, ...]]


def list_received(connection: sa.Connection) -> Mapping[str, Received]:
    """Returns what each vendor gets of the people whom its grants open, by its e-mail. A vendor that is disabled or has
    no grant gets nothing."""
    now = datetime.now(UTC)
    valid = [
        credential
        for credential in list_credentials(connection)
        if credential.enabled and not credential.has_ended(now)
    ]
    secrets = {credential.name for credential in valid if credential.kind is CredentialKind.CLIENT_SECRET}
    with_key = {credential.vendor for credential in valid if credential.kind is CredentialKind.API_KEY}
    clients = [client for client in list_clients(connection) if client.client_id in secrets]
    # A grant of what the roster does not have opens nothing.
    seeing = set(connection.scalars(sa.select(visible_orgs.c.vendor_id).where(visible_orgs.c.shared).distinct()))
    return {
        vendor.email: _find_received(
            vendor, [client for client in clients if client.vendor == vendor.email], has_key=vendor.email in with_key
        )
        if vendor.id in seeing
        else {}
        for vendor in list_vendors(connection)
    }


def list_shown_parts(path: str, scope: str | None) -> tuple[str, ...]:
    """Returns the parts of people that the scopes of an answer opened, with the fields that were withheld then. `path`,
    `scope`: as the access log has them."""
    words = frozenset((scope or "").split())
    if path == STUDENTS_PATH:
        return tuple(part.name for part in PARTS.values() if part.flag in (_PLAIN, *words))
    names = {granted.name for granted in read_scopes(words)}
    if path.startswith(DELIVERIES_PATH):
        return tuple(part.name for part in PARTS.values() if all(names & needed for needed in part.scopes))
    collection = [step for step in path.split("/") if step and not step.startswith("{")][-1:]
    if collection in (["classes"], ["enrollments"]):
        return ("classes",)
    paths = {"demographics": _DEMOGRAPHICS, "users": _PEOPLE, "students": _PEOPLE, "teachers": _PEOPLE}
    opened = paths.get("".join(collection))
    return tuple(
        part.name
        for part in PARTS.values()
        if part.scopes[0] is opened and part.name != "classes" and all(names & needed for needed in part.scopes[1:])
    )


def explain_nothing(vendor: Vendor) -> str:
    """Returns why a vendor that gets nothing does, in words."""
    if not vendor.enabled:
        return "the vendor is disabled"
    if not vendor.grants:
        return "no district or school is granted"
    return "what it is granted is not in the roster, or no API key or client of it that is valid opens a part"


def require_part(name: str) -> ShownPart:
    """Returns the part with a name. Raises CommandError if there is none."""
    found = PARTS.get(name)
    if found is None:
        raise CommandError(f"there is no part {name[:40]}; the parts are {', '.join(PARTS)}")
    return found


def _find_received(vendor: Vendor, clients: Collection[Client], *, has_key: bool) -> Received:
    if not vendor.enabled:
        return {}
    withheld = frozenset(map(WithheldField, vendor.withheld))
    found = {}
    for part in PARTS.values():
        ways = [client.name for client in clients if _opens(client, part) and _is_shown(part.fields, withheld)]
        student_fields = part.fields if part.student_fields is None else part.student_fields
        if has_key and part.flag in (_PLAIN, *vendor.flags) and _is_shown(student_fields, withheld):
            ways.append(VENDOR_INTERFACE)
        if ways:
            found[part.name] = tuple(dict.fromkeys(ways))
    return found


def is_withheld(part: ShownPart, vendor: Vendor) -> bool:
    """Returns whether all fields of a part are withheld from a vendor."""
    return not _is_shown(part.fields, frozenset(map(WithheldField, vendor.withheld)))


def _opens(client: Client, part: ShownPart) -> bool:
    """Whether the scopes of a client open a part, those of one version together: a token has one version."""
    held = read_scopes(client.scopes)
    names = [{scope.name for scope in held if scope.version == version.prefix} for version in part.versions]
    return any(all(needed & of_version for needed in part.scopes) for of_version in names)


def _is_shown(fields: Collection[WithheldField], withheld: Collection[WithheldField]) -> bool:
    return not fields or any(field not in withheld for field in fields)

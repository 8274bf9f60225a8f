"""The parts of what the service knows of people, as the access log keeps them: a set is one number."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum

from roster_service.roster.withheld import WithheldField


class PersonPart(StrEnum):
    """A part of what the service knows of people. The value is the word of operators; the place is the bit in the
    access log, so a new one goes to the end, and none is removed."""

    NAMES = "names"
    EMAIL = "email"
    PHONE = "phone"
    IDENTIFIER = "identifier"
    USER_IDS = "userIds"
    MIDDLE_NAME = "middleName"
    PREFERRED_NAMES = "preferredNames"
    PRONOUNS = "pronouns"
    CLASSES = "classes"
    GUARDIANS = "guardians"
    BIRTH_DATE = "birthDate"
    SEX = "sex"
    RACE = "race"
    BIRTH_PLACE = "birthPlace"
    RESIDENCE = "residence"
    STUDENT_METADATA = "studentMetadata"
    GUARDIAN_METADATA = "guardianMetadata"
    DEMOGRAPHIC_METADATA = "demographicMetadata"


# The parts that are about guardians, and so need the right to see them.
OF_GUARDIANS = frozenset({PersonPart.GUARDIANS, PersonPart.GUARDIAN_METADATA})
OF_METADATA = frozenset({PersonPart.STUDENT_METADATA, PersonPart.GUARDIAN_METADATA, PersonPart.DEMOGRAPHIC_METADATA})
BITS: Mapping[PersonPart, int] = {part: 1 << place for place, part in enumerate(PersonPart)}
_F = WithheldField
# The part that a withheld field tells.
PART_OF: Mapping[WithheldField, PersonPart] = {
    _F.EMAIL: PersonPart.EMAIL,
    _F.PHONE: PersonPart.PHONE,
    _F.SMS: PersonPart.PHONE,
    _F.IDENTIFIER: PersonPart.IDENTIFIER,
    _F.USER_IDS: PersonPart.USER_IDS,
    _F.MIDDLE_NAME: PersonPart.MIDDLE_NAME,
    _F.PREFERRED_NAMES: PersonPart.PREFERRED_NAMES,
    _F.PRONOUNS: PersonPart.PRONOUNS,
    _F.AGENTS: PersonPart.GUARDIANS,
    _F.BIRTH_DATE: PersonPart.BIRTH_DATE,
    _F.SEX: PersonPart.SEX,
    _F.AMERICAN_INDIAN_OR_ALASKA_NATIVE: PersonPart.RACE,
    _F.ASIAN: PersonPart.RACE,
    _F.BLACK_OR_AFRICAN_AMERICAN: PersonPart.RACE,
    _F.NATIVE_HAWAIIAN_OR_OTHER_PACIFIC_ISLANDER: PersonPart.RACE,
    _F.WHITE: PersonPart.RACE,
    _F.DEMOGRAPHIC_RACE_TWO_OR_MORE_RACES: PersonPart.RACE,
    _F.HISPANIC_OR_LATINO_ETHNICITY: PersonPart.RACE,
    _F.COUNTRY_OF_BIRTH_CODE: PersonPart.BIRTH_PLACE,
    _F.STATE_OF_BIRTH_ABBREVIATION: PersonPart.BIRTH_PLACE,
    _F.CITY_OF_BIRTH: PersonPart.BIRTH_PLACE,
    _F.PUBLIC_SCHOOL_RESIDENCE_STATUS: PersonPart.RESIDENCE,
}


def encode_parts(parts: Iterable[PersonPart]) -> int:
    """Returns the number of a set of parts."""
    return sum(BITS[part] for part in set(parts))


def list_parts(number: int) -> list[PersonPart]:
    """Returns the parts of the set with a number, in the order of `PersonPart`."""
    return [part for part, bit in BITS.items() if number & bit]

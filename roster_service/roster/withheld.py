"""Withheld fields: the fields of people's records that operators can keep from a vendor.

A list of them belongs to a vendor, or to the service for all vendors without a list of their own. The declarations of
the schemas say which fields a word withholds (`withheld_as`).
"""

from __future__ import annotations

import hashlib
from enum import StrEnum

import sqlalchemy as sa

from roster_service.db.tables import CTexts, vendor_defaults, vendors


class WithheldField(StrEnum):
    """A field, or the fields that tell the same, which the service can withhold. The value is the word of operators."""

    EMAIL = "email"
    PHONE = "phone"
    SMS = "sms"
    IDENTIFIER = "identifier"
    USER_IDS = "userIds"
    MIDDLE_NAME = "middleName"
    PREFERRED_NAMES = "preferredNames"
    PRONOUNS = "pronouns"
    AGENTS = "agents"
    BIRTH_DATE = "birthDate"
    SEX = "sex"
    AMERICAN_INDIAN_OR_ALASKA_NATIVE = "americanIndianOrAlaskaNative"
    ASIAN = "asian"
    BLACK_OR_AFRICAN_AMERICAN = "blackOrAfricanAmerican"
    NATIVE_HAWAIIAN_OR_OTHER_PACIFIC_ISLANDER = "nativeHawaiianOrOtherPacificIslander"
    WHITE = "white"
    DEMOGRAPHIC_RACE_TWO_OR_MORE_RACES = "demographicRaceTwoOrMoreRaces"
    HISPANIC_OR_LATINO_ETHNICITY = "hispanicOrLatinoEthnicity"
    COUNTRY_OF_BIRTH_CODE = "countryOfBirthCode"
    STATE_OF_BIRTH_ABBREVIATION = "stateOfBirthAbbreviation"
    CITY_OF_BIRTH = "cityOfBirth"
    PUBLIC_SCHOOL_RESIDENCE_STATUS = "publicSchoolResidenceStatus"


# Names all of them: what a version has made that knows others lists too few, or too many.
FIELDS_DIGEST = hashlib.sha256(" ".join(sorted(WithheldField)).encode()).hexdigest()[:16]


def read_list() -> sa.ColumnElement[list[str]]:
    """Returns an expression for the list of words that applies to a row of `vendors`: its own, else the default."""
    default = sa.select(vendor_defaults.c.withheld).scalar_subquery()
    return sa.func.coalesce(vendors.c.withheld, default, type_=CTexts)

"""Permission flags: which parts beside the plain student record a vendor may read."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from enum import StrEnum

from roster_service.roster.withheld import WithheldField


class PermissionFlag(StrEnum):
    """A permission flag. Its value is also the word in `include` that requires it."""

    DEMOGRAPHICS = "demographics"
    CONTACTS = "contacts"
    ENROLLMENTS = "enrollments"


# What each flag adds to the student record, for people.
FLAG_WORDS: Mapping[PermissionFlag, str] = {
    PermissionFlag.CONTACTS: "guardians, phone and sms",
    PermissionFlag.DEMOGRAPHICS: "birth date, sex, race and ethnicity, place of birth, residence status",
    PermissionFlag.ENROLLMENTS: "classes and teachers",
}
# The fields that the service withholds, on both interfaces, from a vendor without the flag.
_FOLLOWING: Mapping[PermissionFlag, frozenset[WithheldField]] = {
    PermissionFlag.CONTACTS: frozenset({WithheldField.PHONE, WithheldField.SMS})
}


def find_withheld(listed: Collection[str], flags: Collection[str]) -> frozenset[WithheldField]:
    """Returns the fields that are withheld from a vendor. `listed`: the words of the list that applies to it; `flags`:
    its permission flags. Raises ValueError for a word that this version does not know."""
    following = (fields for flag, fields in _FOLLOWING.items() if flag not in flags)
    return frozenset(map(WithheldField, listed)).union(*following)

"""The permission flags of a vendor: what it may have beside the plain student record."""

from __future__ import annotations

from enum import StrEnum


class PermissionFlag(StrEnum):
    """A flag; its value is also the word of `include` that needs it."""

    DEMOGRAPHICS = "demographics"
    CONTACTS = "contacts"
    ENROLLMENTS = "enrollments"

"""Permission flags: which parts beside the plain student record a vendor may read."""

from __future__ import annotations

from enum import StrEnum


class PermissionFlag(StrEnum):
    """A permission flag. Its value is also the word in `include` that requires it."""

    DEMOGRAPHICS = "demographics"
    CONTACTS = "contacts"
    ENROLLMENTS = "enrollments"

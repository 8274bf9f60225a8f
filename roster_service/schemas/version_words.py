"""The words of a version where a path selects records by a word that they show."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import sqlalchemy as sa

from roster_service.roster.visibility import ContentRights


@dataclass(frozen=True)
class Wording:
    """The words of a version, so that a path and its records agree: each user in `/teachers` shows the role teacher.

    `session_type`: the type that a session with this stored type shows. `shows_role`: the condition that a user, a row
    of users with the role (a word of OneRoster) that the caller may see, shows it.
    """

    session_type: Callable[[sa.ColumnElement[str]], sa.ColumnElement[str]]
    shows_role: Callable[[str, ContentRights], sa.ColumnElement[bool]]


# 1.2 shows every stored type, and every role.
STORED = Wording(lambda stored: stored, lambda _role, _rights: sa.true())

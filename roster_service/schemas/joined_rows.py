"""Rows that several fields of a record are made of, which a statement of texts reads once for each record.

Both layers check each row each time that it is read: the roles of a user, read by each field that is made of them, took
half of the time of a page. So the statement joins each record with one row of aggregates of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from roster_service.roster import json_text
from roster_service.roster.visibility import ContentRights, read_joined
from roster_service.schemas.kinds import ObjectList

# The columns of a joined row that have the items of a list, separated by commas, and the ids of the people whom these
# name, as JSON texts, separated in the same way.
ITEMS, NAMED = "items", "named"


@dataclass(frozen=True)
class JoinedRows:
    """`name`: of the row in the statement; `fields`: whose texts are made of it; `select`: makes the SELECT of it, for
    a record of the enclosing statement; `names_people`: whether it has the column `NAMED`."""

    name: str
    fields: frozenset[str]
    select: Callable[[ContentRights], sa.Select[Any]]
    names_people: bool = False


class JoinedList(ObjectList):
    """A list of objects that a joined row has in its column `ITEMS`."""

    def __init__(self, name: str, *given: Any, **options: Any) -> None:
        """`name`: of the joined row; the other arguments are those of the list."""
        super().__init__(*given, **options)
        self.joined_as = name

    def json(self, rights: ContentRights) -> sa.ColumnElement[str]:
        return json_text.list_json(read_joined(self.joined_as, ITEMS, sa.Text))

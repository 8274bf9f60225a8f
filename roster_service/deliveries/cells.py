"""The SQL of the cells of files: the value of a field of the interface, with the rights of the client, as text.

The fields are those of the plan, so that a field that is withheld has empty cells.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa
from oneroster_filter import Through

from roster_service.roster.json_text import constant, only_if
from roster_service.roster.visibility import ContentRights
from roster_service.schemas import kinds
from roster_service.schemas.kinds import RosterField

METADATA = "metadata"
Fields = Mapping[str, RosterField]
CellText = sa.ColumnElement[Any]


def make_cell(fields: Fields, path: str, rights: ContentRights) -> CellText:
    """Returns the expression of a field of a record: a text, or a list of ids; NULL for an absent or a hidden one.
    `path`: the names of the field and of those inside it, with dots."""
    name, _, rest = path.partition(".")
    field = fields.get(name)
    if field is None or field.is_hidden(rights):
        return sa.cast(sa.null(), sa.Text)
    match field:
        case kinds.Metadata():
            return _read_source(field, rest, rights)
        case kinds.ObjectList() if rest:
            return make_cell(field.members, rest, rights)
        case kinds.ObjectList():
            parts = [make_cell(field.members, member, rights) for member in field.members]
            pair = constant("{").concat(sa.func.concat_ws(constant(":"), *parts)).concat(constant("}"))
            return sa.func.nullif(sa.func.array_to_string(_list_items(pair, field.rows, rights), constant(",")), "")
        case kinds.RefList():
            return _list_items(field.identifier, field.rows, rights)
        case kinds.TextArray():
            # An item cannot have a comma, which ends it.
            joined = sa.func.array_to_string(_read_source(field, "", rights), constant("\x01"))
            return sa.func.translate(joined, constant(",\x01"), constant(" ,"))
        case kinds.Address():
            return field.fragment
        case kinds.Ref() if name == "primaryOrg":
            # A file must not have one at which the user shows no role.
            org, role = _read_source(field, "sourcedId", rights), fields["roles"].source("org.sourcedId", rights)
            return only_if(role.wrap(role.element == org), org) if isinstance(role, Through) else org
        case kinds.Ref():
            return _read_source(field, "sourcedId", rights)
    return sa.cast(_read_source(field, "", rights), sa.Text)


def _read_source(field: RosterField, path: str, rights: ContentRights) -> CellText:
    found = field.source(path, rights)
    if isinstance(found, Through):
        raise TypeError(f"{path} has several values a record")
    return found


def _list_items(item: CellText, rows: kinds.ChildRows, rights: ContentRights) -> CellText:
    chosen = sa.select(item).where(rows.condition(rights)).order_by(*rows.order)
    return sa.func.array(chosen.scalar_subquery())


def join_part(rows: sa.Select[Any], part: RosterField, rights: ContentRights) -> sa.Select[Any]:
    """Returns a SELECT with a row for each item of a list of a record: of its innermost lists, if it has lists."""
    if not isinstance(part, kinds.ObjectList):
        raise TypeError("a part is a list of objects")
    rows = rows.where(part.rows.condition(rights)).order_by(*part.rows.order)
    for member in part.members.values():
        if isinstance(member, kinds.ObjectList):
            rows = join_part(rows, member, rights)
    return rows

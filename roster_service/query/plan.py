"""The wish, held against the schema: every name resolved, every value typed, nothing unknown left.

Made without a connection. What the caller may see is part of the plan, so a name that is hidden from the caller is
an unknown name here, and no later step can forget it.
"""

from __future__ import annotations

import difflib
import functools
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from oneroster_filter import FieldTypes, FilterError, Kind, TypedExpr, UnknownFieldError, check, field_types, parse

from roster_service.db.visibility import ContentRights
from roster_service.errors import Problem, RefusedRequestError
from roster_service.query.params import Params
from roster_service.query.path_filters import PathFilter
from roster_service.schemas.kinds import Metadata, RosterField, list_roster_fields
from roster_service.schemas.records import Record

# A `+` that a client forgot to encode arrives as a space.
_BARE_OFFSET = re.compile(r"'[^']*\d \d\d:?\d\d'")


@dataclass(frozen=True)
class Notice:
    """Something in the wish that was ignored, and said so beside the answer."""

    problem: Problem
    description: str


@dataclass(frozen=True, eq=False)
class ResourceView:
    """A record type as one caller sees it: the fields that exist for them, and what a filter may name.

    There is one view per record type and sight (`make_resource_view`), so views are told apart by identity.
    """

    record: type[Record]
    rights: ContentRights
    fields: Mapping[str, RosterField]
    filter_types: FieldTypes


@functools.cache
def make_resource_view(record: type[Record], rights: ContentRights) -> ResourceView:
    """The view of a record type for a sight. A field that the sight hides altogether is not in it."""
    fields = list_roster_fields(record)
    hidden = [name for name, field in fields.items() if isinstance(field, Metadata) and field.is_hidden(rights)]
    shown = {name: field for name, field in fields.items() if name not in hidden}
    return ResourceView(record, rights, shown, field_types(record(exclude=hidden)))


@dataclass(frozen=True)
class QueryShape:
    """The part of a plan that shapes its statements, whatever the values: statements are kept by it."""

    view: ResourceView
    path_filter: PathFilter
    sort: str | None
    descending: bool
    fields: tuple[str, ...]


@dataclass(frozen=True)
class Plan:
    """A request that can be run: everything in it is known, typed and allowed."""

    shape: QueryShape
    path_ids: tuple[tuple[str, str], ...]
    filter: TypedExpr | None
    limit: int
    offset: int
    notices: tuple[Notice, ...]


def make_plan(
    params: Params, record: type[Record], rights: ContentRights, path_filter: PathFilter, path_ids: Mapping[str, str]
) -> Plan:
    """Hold a wish against the record type as the caller sees it.

    Raises RefusedRequestError (FILTER) for a filter that cannot be parsed, names an unknown field, or compares a
    field with what it is not. An unknown `sort` or `fields` name becomes a warning, as the standard wants.
    """
    view = make_resource_view(record, rights)
    sort, sort_notices = _check_sort(params.sort, view)
    fields, field_notices = _check_fields(params.fields, view)
    return Plan(
        shape=QueryShape(view, path_filter, sort, params.descending, fields),
        path_ids=tuple(path_ids.items()),
        filter=None if params.filter is None else _check_filter(params.filter, view),
        limit=params.limit,
        offset=params.offset,
        notices=sort_notices + field_notices,
    )


def _check_filter(text: str, view: ResourceView) -> TypedExpr:
    try:
        return check(parse(text), view.filter_types)
    except FilterError as error:
        raise RefusedRequestError(Problem.FILTER, _describe(error, text)) from None


def _describe(error: FilterError, text: str) -> str:
    place = "" if error.column is None else f" at column {error.column + 1} of the filter"
    hint = f"; {error.hint}" if error.hint else ""
    if not isinstance(error, UnknownFieldError) and _BARE_OFFSET.search(text):
        hint += "; a `+` in a URL must be written %2B"
    return f"{error.message}{place}{hint}"


def _check_sort(name: str | None, view: ResourceView) -> tuple[str | None, tuple[Notice, ...]]:
    if name is None or is_sortable(name, view.filter_types):
        return name, ()
    trouble = (
        f"`sort` names {name[:80]!r}, which is no field to sort by{_hint(name, view.filter_types)}; it was ignored"
    )
    return None, (Notice(Problem.SORT_FIELD, trouble),)


def is_sortable(name: str, types: FieldTypes) -> bool:
    """Whether records can be ordered by this name: it has one value a record."""
    kind = types.find(name)
    return kind is not None and not kind.many and kind.kind is not Kind.TEXTS


def _check_fields(names: tuple[str, ...] | None, view: ResourceView) -> tuple[tuple[str, ...], tuple[Notice, ...]]:
    every = tuple(view.fields)
    if names is None:
        return every, ()
    unknown = [name for name in dict.fromkeys(names) if name not in view.fields]
    chosen = tuple(name for name in every if name in names)
    if not unknown:
        return chosen, ()
    listed = ", ".join(f"{name[:80]!r}{_hint(name, every)}" for name in unknown[:5])
    outcome = "they were ignored" if chosen else "none was known, so all fields are returned"
    notice = Notice(Problem.SELECTION_FIELD, f"`fields` names what is no field: {listed}; {outcome}")
    return chosen or every, (notice,)


def _hint(name: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, known, 1)
    return f" (did you mean {near[0]!r}?)" if near else ""

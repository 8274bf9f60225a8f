"""Plans: query parameters checked against the schema. A plan has resolved names and typed values, and nothing unknown.

Making a plan needs no connection. The plan contains the caller's content rights, so a name that is hidden from the
caller is an unknown name already here, and no later step has to check it again.
"""

from __future__ import annotations

import difflib
import functools
import re
from collections.abc import Collection, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass

from oneroster_filter import FieldTypes, FilterError, Kind, Operator, check, clauses, field_types, parse
from oneroster_filter.typing import TypedExpr

from roster_service.errors import Problem, RefusedRequestError
from roster_service.roster.person_parts import OF_GUARDIANS, PersonPart, encode_parts
from roster_service.roster.visibility import ContentRights
from roster_service.roster.vocabulary import Vocabulary
from roster_service.schemas.filter_errors import describe_filter_error
from roster_service.schemas.kinds import RosterField, list_hidden, list_roster_fields
from roster_service.schemas.records import Record
from roster_service.serving.params import Params
from roster_service.serving.path_filters import PathFilter

# The operators that compare whole words.
_WHOLE_WORDS = {Kind.TEXT: (Operator.EQUAL,), Kind.TEXTS: (Operator.EQUAL, Operator.CONTAINS)}


@dataclass(frozen=True)
class Notice:
    """A parameter value that the service ignored; the response reports it as a warning."""

    problem: Problem
    description: str


@dataclass(frozen=True, eq=False)
class ResourceView:
    """A record type as seen with certain content rights: the visible fields, and the names that a filter may use.

    `make_resource_view` makes one view for each record type and set of content rights, so views compare by identity.
    """

    record: type[Record]
    rights: ContentRights
    fields: Mapping[str, RosterField]
    filter_types: FieldTypes


@functools.cache
def make_resource_view(record: type[Record], rights: ContentRights) -> ResourceView:
    """Returns the view of a record type with these content rights, without the fields that they hide altogether."""
    fields = list_roster_fields(record)
    hidden = tuple(list_hidden(fields, rights))
    below = tuple(f"{name}." for name in hidden)
    visible = {name: field for name, field in fields.items() if name not in hidden}
    types = field_types(record())
    known = {name: types[name] for name in types if name not in hidden and not name.startswith(below)}
    return ResourceView(record, rights, visible, FieldTypes(known))


@dataclass(frozen=True)
class QueryShape:
    """The part of a plan that decides the text of its statements, without the bound values.

    It is the key under which the service caches statements.
    """

    view: ResourceView
    path_filter: PathFilter
    sort: str | None
    descending: bool
    fields: tuple[str, ...]


@dataclass(frozen=True)
class Plan:
    """A checked request. `path_ids`: (name, id) pairs from the path. `limit` and `offset` count records. `asked_sort`:
    the text of `sort`, also of one that is ignored. `revision`: of the pull that the page belongs to; None if the
    request names none."""

    shape: QueryShape
    path_ids: tuple[tuple[str, str], ...]
    filter: TypedExpr | None
    limit: int
    offset: int
    asked_sort: str | None
    revision: int | None
    notices: tuple[Notice, ...]


def make_plan(
    params: Params, record: type[Record], rights: ContentRights, path_filter: PathFilter, path_ids: Mapping[str, str]
) -> Plan:
    """Checks the parameters against the record type as these content rights show it.

    Raises RefusedRequestError (FILTER) for a filter that cannot be parsed, names an unknown field, or compares a field
    with a value of another type. An unknown name in `sort` or `fields` becomes a notice, as the standard requires; so
    does a blank one in `fields`.
    """
    view = make_resource_view(record, rights)
    expression = None if params.filter is None else _check_filter(params.filter, view)
    sort, sort_notices = _check_sort(params.sort, view)
    fields, field_notices = _check_fields(params.fields, view)
    # A count is of the present roster, whatever page it names: it belongs to no pull.
    offset = params.offset if params.limit else 0
    return Plan(
        shape=QueryShape(view, path_filter, sort, params.descending, fields),
        path_ids=tuple(path_ids.items()),
        filter=expression,
        limit=params.limit,
        offset=offset,
        asked_sort=params.sort,
        # A first page begins a pull, so it belongs to none yet.
        revision=params.revision if offset else None,
        notices=(*_check_words(expression, view), *sort_notices, *field_notices),
    )


def find_asked_parts(plan: Plan) -> int:
    """Returns the number of the parts of people (`roster/person_parts.py`) for which the filter and the sort of a plan
    ask. What they find, its count and its order tell of these parts, whatever the texts show."""
    view, found = plan.shape.view, 0
    # (a field, the value that it is compared with; None: any)
    asked: list[tuple[str, object]] = [] if plan.shape.sort is None else [(plan.shape.sort, "")]
    asked += (
        (clause.field, clause.value if clause.operator is Operator.EQUAL else None)
        for clause in (clauses(plan.filter) if plan.filter is not None else ())
    )
    for name, value in asked:
        # A vendor invents the names below `metadata`, so they must fill no cache.
        path = view.filter_types.path(name)
        always, by_word = _find_parts(view, path if name in view.filter_types else path[:1])
        found |= always
        for word in by_word if value is None else value if isinstance(value, tuple) else (value,):
            found |= by_word.get(str(word), 0)
    return found


@functools.cache
def _find_parts(view: ResourceView, path: Sequence[str]) -> tuple[int, Mapping[str, int]]:
    """(the parts of which each value of a field tells, by word those of which this one does). `path`: the names that
    lead to the field."""
    always, by_word = set[PersonPart](), dict[str, int]()
    members = view.fields
    for name in path:
        field = members.get(name)
        if field is None:
            break
        always.update(part for part, _ in field.list_values(view.rights))
        if field.part is not None and field.part_words:
            by_word = dict.fromkeys(field.part_words, encode_parts([field.part]))
        elif field.part is not None:
            always.add(field.part)
        members = field.members
    if not view.rights.guardians:
        always, by_word = always - OF_GUARDIANS, {}
    return encode_parts(always), by_word


def _check_filter(text: str, view: ResourceView) -> TypedExpr:
    try:
        return check(parse(text), view.filter_types)
    except FilterError as error:
        meant = None if error.code != "unknown-field" else _find_meant(str(error.field), view.filter_types)
        if meant is not None:
            error.hint = f"did you mean {meant}?"
        raise RefusedRequestError(Problem.FILTER, describe_filter_error(error)) from None


def _check_words(expression: TypedExpr | None, view: ResourceView) -> Iterator[Notice]:
    """Yields a notice for each comparison of a field with a text that is none of its words. The response has it only if
    no record is found: a refusal would stop clients that ask for other words too, and an export can have other ones."""
    for clause in clauses(expression) if expression is not None else ():
        words = _find_vocabulary(view.fields, clause.path)
        if words is None or clause.operator not in _WHOLE_WORDS[clause.type.kind]:
            continue
        texts = clause.value if isinstance(clause.value, tuple) else (str(clause.value),)
        unknown = next((text for text in texts if not re.fullmatch(words.pattern, text)), None)
        if unknown is not None:
            described = f"no `{clause.field}` is {unknown[:80]!r}; its words are {words.sentence}"
            yield Notice(Problem.FILTER_WORD, f"the filter finds no record: {described}")


def _find_vocabulary(members: Mapping[str, RosterField], path: Sequence[str]) -> Vocabulary | None:
    """Returns the words of the field to which these names lead; None for a field without words."""
    found = members.get(path[0])
    if found is None:
        return None
    return found.vocabulary if len(path) == 1 else _find_vocabulary(found.members, path[1:])


def _check_sort(name: str | None, view: ResourceView) -> tuple[str | None, tuple[Notice, ...]]:
    if name is None or is_sortable(name, view.filter_types):
        return name, ()
    sortable = [known for known in view.filter_types if is_sortable(known, view.filter_types)]
    description = f"`sort` names {name[:80]!r}, which is not a sortable field{_suggest(name, sortable)}; it was ignored"
    return None, (Notice(Problem.SORT_FIELD, description),)


def is_sortable(name: str, types: FieldTypes) -> bool:
    """Whether records can be sorted by the field `name`: a known field with one value per record."""
    kind = types.find(name)
    return kind is not None and not kind.many and kind.kind is not Kind.TEXTS


def _check_fields(names: tuple[str, ...] | None, view: ResourceView) -> tuple[tuple[str, ...], tuple[Notice, ...]]:
    every = tuple(view.fields)
    if names is None:
        return every, ()
    chosen = tuple(name for name in every if name in names)
    notices = []
    unknown = [name for name in dict.fromkeys(names) if name and name not in view.fields]
    if unknown:
        listed = ", ".join(f"{name[:80]!r}{_suggest(name, every)}" for name in unknown[:5])
        outcome = "they were ignored" if chosen else "no name is known, so all fields are returned"
        notices.append(Notice(Problem.SELECTION_FIELD, f"`fields` has unknown names: {listed}; {outcome}"))
    if "" in names:
        notices.append(Notice(Problem.BLANK_SELECTION, "`fields` has a blank name, which was ignored"))
    return chosen or every, tuple(notices)


# The names of a user's fields in one version, and what the other version calls the same, the nearest in meaning first.
_OTHER_NAMES: Mapping[str, tuple[str, ...]] = {
    "orgs": ("roles",),
    "orgs.sourcedId": ("roles.org.sourcedId",),
    "preferredFirstName": ("givenName",),
    "preferredLastName": ("familyName",),
    "preferredMiddleName": ("middleName",),
    "primaryOrg": ("orgs",),
    "primaryOrg.sourcedId": ("orgs.sourcedId",),
    "role": ("roles.role", "roles"),
    "roles": ("role",),
    "roles.org.sourcedId": ("orgs.sourcedId",),
    "roles.role": ("role",),
    "userMasterIdentifier": ("identifier",),
}


def _find_meant(name: str, known: Container[str]) -> str | None:
    """Returns the known name of what the other version calls `name`; None where there is none."""
    return next((other for other in _OTHER_NAMES.get(name, ()) if other in known), None)


def _suggest(name: str, known: Collection[str]) -> str:
    meant = _find_meant(name, known)
    near = [meant] if meant else difflib.get_close_matches(name, known, 1)
    return f" (did you mean {near[0]!r}?)" if near else ""

"""The rules of a grant: which students, classes and staff of its orgs it opens.

The filters of students and of classes are in the filter language, and name fields of the records of OneRoster 1.2 as
the roster has them; they are checked as every filter is.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

import sqlalchemy as sa
from oneroster_filter import FilterError, Through, check, field_types, fold_tree, parse
from oneroster_filter.sqlalchemy import sqlalchemy_where
from oneroster_filter.typing import TypedClause

from roster_service.errors import CommandError
from roster_service.roster.visibility import ContentRights, MetadataOf, Viewer
from roster_service.schemas import v1p2
from roster_service.schemas.filter_errors import describe_filter_error
from roster_service.schemas.kinds import list_roster_fields
from roster_service.schemas.records import Record
from roster_service.schemas.rule_words import name_classes, name_students

_RIGHTS = ContentRights(
    viewer=Viewer.ALL_ORGS, guardians=True, metadata=frozenset(MetadataOf), metadata_keys=None, withheld=frozenset()
)


class Staff(StrEnum):
    """Which staff a grant with rules opens: all of its schools, the teachers of shared classes, or none."""

    ALL = "all"
    CLASSES = "classes"
    NONE = "none"


_STAFF = {Staff.ALL: "all staff", Staff.CLASSES: "the teachers of these classes", Staff.NONE: "no staff"}


@dataclass(frozen=True)
class Rules:
    """The rules of a grant. `students`, `classes`: filters; None for all. `guardians`: whether the guardians of shared
    students are shared with a vendor that may see guardians."""

    students: str | None
    classes: str | None
    staff: Staff
    guardians: bool

    @property
    def words(self) -> str:
        """Which students and classes they open, for people: "grades 6 to 8, mathematics"."""
        students = [] if self.students is None else [name_students(self.students)]
        classes = [] if self.classes is None else [name_classes(self.classes)]
        return ", ".join([*students, *classes]) or "all students and classes"

    def describe(self) -> str:
        """Returns all of the rules in words, for people."""
        parts = [self.words, _STAFF[self.staff]]
        return "; ".join(parts if self.guardians else [*parts, "no guardians"])


def name_rules(rules: Iterable[Rules]) -> str:
    """Returns what several grants open together, in words; blank for no rules."""
    return ", or ".join(dict.fromkeys(item.describe() for item in rules))


def check_rules(rules: Rules) -> None:
    """Raises CommandError for a filter that means nothing, with the message that a request would get."""
    select_students(rules.students)
    select_classes(rules.classes)


def select_students(filter_: str | None) -> sa.ColumnElement[bool]:
    """Returns the condition on `users` of a filter of students. Raises CommandError as `check_rules`."""
    return _compile(v1p2.User, filter_)


def select_classes(filter_: str | None) -> sa.ColumnElement[bool]:
    """Returns the condition on `classes` of a filter of classes. Raises CommandError as `check_rules`."""
    return _compile(v1p2.Class, filter_)


def _compile(record: type[Record], filter_: str | None) -> sa.ColumnElement[bool]:
    if filter_ is None:
        return sa.true()
    fields = list_roster_fields(record)

    def find_source(path: str) -> sa.ColumnElement[object] | Through:
        name, _, rest = path.partition(".")
        return fields[name].source(rest, _RIGHTS)

    def compile_clause(clause: TypedClause) -> sa.ColumnElement[bool]:
        return sqlalchemy_where(clause, find_source, contains=sa.func.contains_folded)

    try:
        typed = check(parse(filter_), field_types(record()))
    except FilterError as error:
        raise CommandError(describe_filter_error(error)) from None
    return fold_tree(typed, compile_clause, lambda parts: sa.and_(*parts), lambda parts: sa.or_(*parts)).self_group()

"""The people whom the service knows: those of the roster, and those of whom something is left.

Console and commands ask `find_people` for the person of an id or a name before they state anything of a person, so that
a mistyped id is never answered as if it were somebody's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import sqlalchemy as sa

from roster_service.access_log.entries import PersonHasher
from roster_service.access_log.reports import AccessLogFilter, count_unsearchable, was_disclosed
from roster_service.db.tables import CText, demographics, orgs, sync_rejections, user_roles, users
from roster_service.errors import UnknownPersonError
from roster_service.explore.references import read_labels
from roster_service.explore.roster_search import LEAST_CHARACTERS, MOST_CHARACTERS, make_search_condition
from roster_service.feeds.exclusions import ExclusionKind, IdHasher, find_exclusion
from roster_service.feeds.rejected_rows import names_record
from roster_service.feeds.run_history import TYPES
from roster_service.roster.references import OF_PEOPLE

# The people of a name to choose from.
MOST_CHOICES = 25


class Whereabouts(StrEnum):
    """Where the service knows a person from. The value is said of the person."""

    ROSTER = "in the roster"
    DELETED = "marked as deleted"
    ERASED = "erased"
    HIDDEN = "hidden"
    REJECTED = "in rejected rows alone"
    DISCLOSED = "no longer in the roster"


# Whom the roster must not have.
EXCLUDED = (Whereabouts.ERASED, Whereabouts.HIDDEN)


@dataclass(frozen=True)
class KnownPerson:
    """A person. `name`: None for a person who is not in the roster; `detail`: grades, identifier, school and year of
    birth, which tell people of one name apart, blank where the roster has none."""

    sourcedId: str  # noqa: N815  (the name in OneRoster)
    name: str | None
    whereabouts: Whereabouts
    detail: str

    def __str__(self) -> str:
        named = self.sourcedId if self.name is None else f"{self.name} ({self.sourcedId})"
        return ", ".join(filter(None, (named, self.detail, self.whereabouts)))


def find_people(
    connection: sa.Connection, typed: str, secret_key: str, *, with_excluded: bool = True
) -> list[KnownPerson]:
    """Returns the person with an id; or else the people of the roster whom a text names, as the search of the roster
    finds them, at most `MOST_CHOICES`. `with_excluded`: also an erased or hidden one. Raises UnknownPersonError if
    there is nobody."""
    known = find_person(connection, typed, secret_key)
    if known is not None and (with_excluded or known.whereabouts not in EXCLUDED):
        return [known]
    found: list[KnownPerson] = []
    if LEAST_CHARACTERS <= len(typed) <= MOST_CHARACTERS and "\x00" not in typed:
        # All of them by the indexes, before they are ordered: see `find_records` of explore/whole_roster.py.
        rows = sa.select(users).where(make_search_condition(users, typed)).cte("named").prefix_with("MATERIALIZED")
        ordered = sa.select(rows).order_by(rows.c.family_name, rows.c.given_name, rows.c.sourced_id)
        found = _read_people(connection, ordered.limit(MOST_CHOICES))
    if not found:
        raise _make_refusal(connection, typed, secret_key)
    return found


def choose_person(connection: sa.Connection, typed: str, secret_key: str) -> KnownPerson:
    """Returns the one person whom an id or a name names. Raises UnknownPersonError if there is nobody, or several, and
    then its text lists them."""
    found = find_people(connection, typed, secret_key)
    if len(found) > 1:
        at_least = "at least " if len(found) == MOST_CHOICES else ""
        named = "".join(f"\n  {person}" for person in found)
        raise UnknownPersonError(f"{at_least}{len(found)} people fit {typed}; give the sourcedId of one:{named}")
    return found[0]


def require_person(connection: sa.Connection, sourced_id: str, secret_key: str) -> KnownPerson:
    """Returns the person with an id. Raises UnknownPersonError if there is nobody."""
    known = find_person(connection, sourced_id, secret_key)
    if known is None:
        raise _make_refusal(connection, sourced_id, secret_key)
    return known


def find_person(connection: sa.Connection, sourced_id: str, secret_key: str) -> KnownPerson | None:
    """Returns the person with an id, whom the roster, an exclusion, a rejected row or the access log has; else None."""
    if not sourced_id or "\x00" in sourced_id:
        return None
    if own := _read_people(connection, sa.select(users).where(users.c.sourced_id == sourced_id)):
        return own[0]
    reference = IdHasher(secret_key).name_id(sourced_id)
    excluded = find_exclusion(connection, reference)
    if excluded is not None:
        is_erased = excluded.kind is ExclusionKind.ERASED
        return KnownPerson(sourced_id, None, Whereabouts.ERASED if is_erased else Whereabouts.HIDDEN, "")
    if connection.scalar(sa.select(sa.exists().where(is_rejected(sourced_id)))):
        return KnownPerson(sourced_id, None, Whereabouts.REJECTED, "")
    if was_disclosed(connection, PersonHasher(secret_key).hash_id(sourced_id)):
        return KnownPerson(sourced_id, None, Whereabouts.DISCLOSED, "")
    return None


def list_alike(connection: sa.Connection, sourced_id: str) -> list[KnownPerson]:
    """Returns the others who may be meant in place of a person, at most `MOST_CHOICES`: those of the same name, also
    those marked as deleted, and then those who have the family name, a role at a school and, as far as it is known, the
    birth year of the person, as twins do."""
    named = sa.select(users.c.given_name, users.c.family_name).where(users.c.sourced_id == sourced_id)
    own = connection.execute(named).one_or_none()
    if own is None:
        return []
    role, own_role = user_roles.alias(), user_roles.alias()

    def find_year(person: sa.ColumnElement[str]) -> sa.ColumnElement[Any]:
        year = sa.select(sa.extract("year", demographics.c.birth_date))
        return year.where(demographics.c.sourced_id == person).scalar_subquery()

    shared = sa.and_(own_role.c.org_id == role.c.org_id, own_role.c.role == role.c.role)
    at_school = sa.exists().where(role.c.user_id == users.c.sourced_id, own_role.c.user_id == sourced_id, shared)
    years = find_year(users.c.sourced_id) != find_year(sa.literal(sourced_id, CText))
    is_namesake = users.c.given_name == own.given_name
    is_twin = sa.and_(at_school, ~sa.func.coalesce(years, sa.false()))
    others = (users.c.family_name == own.family_name, users.c.sourced_id != sourced_id, is_namesake | is_twin)
    rows = sa.select(users).where(*others).order_by(is_namesake.desc(), users.c.sourced_id)
    return _read_people(connection, rows.limit(MOST_CHOICES))


def describe_cut(alike: Sequence[KnownPerson]) -> str:
    """Returns what to say below the people of `list_alike`: that there may be others; '' if these are all."""
    return f"At most {MOST_CHOICES} are named." if len(alike) == MOST_CHOICES else ""


def _read_people(connection: sa.Connection, rows: sa.Select[Any]) -> list[KnownPerson]:
    """`rows`: of users."""
    found = connection.execute(rows).all()
    dates = sa.select(demographics.c.sourced_id, demographics.c.birth_date)
    dates = dates.where(demographics.c.sourced_id.in_([row.sourced_id for row in found]))
    born = {row.sourced_id: row.birth_date for row in connection.execute(dates)}
    schools = read_labels(connection, orgs, (row.primary_org_id for row in found if row.primary_org_id))
    return [
        KnownPerson(
            row.sourced_id,
            f"{row.given_name} {row.family_name}",
            Whereabouts.ROSTER if row.status == "active" else Whereabouts.DELETED,
            ", ".join(
                filter(
                    None,
                    (
                        f"grade {', '.join(row.grades)}" if row.grades else None,
                        row.identifier,
                        schools.get(row.primary_org_id),
                        f"born {born[row.sourced_id].year}" if born.get(row.sourced_id) else None,
                    ),
                )
            ),
        )
        for row in found
    ]


def is_rejected(sourced_id: str) -> sa.ColumnElement[bool]:
    """Returns the condition that a rejected row names a person."""
    named = (names_record(TYPES[table.name], sourced_id) for table in OF_PEOPLE)
    return sync_rejections.c.run_id.is_not(None) & sa.or_(*named)


def _make_refusal(connection: sa.Connection, typed: str, secret_key: str) -> UnknownPersonError:
    count = count_unsearchable(connection, AccessLogFilter(), PersonHasher(secret_key).check)
    unknown = f", as far as can be told: {count:,} rows of the access log do not tell whom they had" if count else ""
    return UnknownPersonError(
        f"nobody in the roster has the id or name {typed[:MOST_CHARACTERS]}; the sourcedId alone finds who was erased, "
        f"hidden or purged{unknown}"
    )

"""What a vendor may get of records: what is granted to it, as far as its agreement names it.

Whoever needs the flags, the withheld fields or the scopes of a vendor as they count reads them here. The orgs are
narrowed where the database makes the visible orgs (`agreed_grants`), and the time where it admits callers
(`find_agreement_refusal`).
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError

from roster_service.auth.scopes import Scope
from roster_service.db.tables import agreements, vendors
from roster_service.roster.withheld import WithheldField, read_list
from roster_service.schemas.flags import find_withheld

# What names the agreement in a refusal of the database (`admit_client`), before the words of `find_agreement_refusal`.
NOT_AGREED = "agreement "
# As the words of `find_agreement_refusal`, of a client.
NO_SCOPE_AGREED = "allows none of the scopes of the client"
# How the words of `find_agreement_refusal` begin for an agreement that has ended, and for one that begins later.
_ENDED, _LATER = "ended", "begins"
_AGREED = ("fields", "scopes", "flags", "metadata_keys")


@dataclass(frozen=True)
class AgreedRights:
    """The rights of a vendor as they count. `scopes`: the names that its clients may have at most, and
    `metadata_keys`: those of `metadata` that they may see at most, None for all."""

    flags: frozenset[str]
    withheld: frozenset[WithheldField]
    scopes: frozenset[str] | None
    metadata_keys: frozenset[str] | None

    def limit(self, scopes: Iterable[Scope]) -> tuple[Scope, ...]:
        """Returns the scopes of a client that count."""
        return tuple(scope for scope in scopes if self.scopes is None or scope.name in self.scopes)


def read_rights() -> tuple[sa.ColumnElement[Any], ...]:
    """Returns the columns from which `find_rights` finds the rights of a row of `vendors`."""
    own = agreements.c.vendor_id == vendors.c.id
    return (
        vendors.c.flags,
        read_list().label("listed"),
        find_refusal(vendors.c.id).label("not_agreed"),
        *(sa.select(agreements.c[name]).where(own).scalar_subquery().label(f"agreed_{name}") for name in _AGREED),
    )


def find_refusal(vendor_id: sa.ColumnElement[int]) -> sa.ColumnElement[str | None]:
    """Returns an expression for why the agreement of a vendor lets it read nothing now; NULL for nothing."""
    return sa.func.find_agreement_refusal(vendor_id, type_=sa.Text)


def has_ended(not_agreed: str | None) -> bool:
    """Returns whether the agreement has ended. `not_agreed`: a value of `find_refusal`."""
    return not_agreed is not None and not_agreed.startswith(_ENDED)


def begins_later(not_agreed: str | None) -> bool:
    """Returns whether the agreement begins later. `not_agreed`: as of `has_ended`."""
    return not_agreed is not None and not_agreed.startswith(_LATER)


def find_rights(row: Any) -> AgreedRights:
    """Returns the rights that a row says, which has the columns of `read_rights`, such as that of `admit_key_holder`.
    Raises ValueError for a word that this version does not know."""
    if row.agreed_fields is None:
        return AgreedRights(frozenset(row.flags), find_withheld(row.listed, row.flags), None, None)
    flags = frozenset(row.flags).intersection(row.agreed_flags)
    # Whatever the agreement does not name is withheld, also a field of a later version than that which saved it.
    not_agreed = frozenset(field for field in WithheldField if field.value not in row.agreed_fields)
    withheld, keys = find_withheld(row.listed, flags) | not_agreed, frozenset(row.agreed_metadata_keys)
    return AgreedRights(flags, withheld, frozenset(row.agreed_scopes), keys)


def note_ended(counting: sa.Engine) -> None:
    """Notes that the agreements which are over have ended, before somebody is told so: the clock may go back.
    `counting`: of `make_counting_engine`, or as the owner of the tables."""
    # A database that takes no writes notes it later: the next refusal asks again, and each night does.
    with suppress(SQLAlchemyError), counting.begin() as connection:
        connection.execute(sa.select(sa.func.note_ended_agreements()))

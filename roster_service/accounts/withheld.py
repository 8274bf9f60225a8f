"""The lists of withheld fields, as operators change them: that of a vendor, and the default of the service.

The functions work on a connection that the caller commits. Each change needs an actor, is one row of the change log,
and ends the older tokens of the vendors that it concerns, because tokens carry the withheld fields.
"""

from __future__ import annotations

from collections.abc import Collection

import sqlalchemy as sa

from roster_service.accounts.vendors import Vendor, find_vendor, invalidate_tokens, list_vendors, recorded_vendor
from roster_service.change_log.actors import Actor
from roster_service.change_log.changes import State, Subject, Verb, recorded
from roster_service.db.tables import vendor_defaults, vendors
from roster_service.roster.withheld import WithheldField

# A vendor that is added, or given the default, beside the change would keep tokens with the former default.
_LOCK = sa.text(f"LOCK TABLE {vendors.name} IN SHARE ROW EXCLUSIVE MODE")


def change_withheld(
    connection: sa.Connection, actor: Actor, email: str, fields: Collection[WithheldField] | None
) -> Vendor:
    """Replaces the list of withheld fields of a vendor; None: the default applies to it. Raises CommandError for an
    unknown vendor."""
    with recorded_vendor(connection, actor, Verb.VENDOR_SET_WITHHELD, email):
        vendor = find_vendor(connection, email)
        values = {"withheld": None if fields is None else _sort(fields)}
        connection.execute(sa.update(vendors).where(vendors.c.id == vendor.id).values(values))
        after = find_vendor(connection, email)
        invalidate_tokens(connection, vendor.id, content_changed=after.withheld != vendor.withheld)
    return find_vendor(connection, email)


def change_default(connection: sa.Connection, actor: Actor, fields: Collection[WithheldField]) -> None:
    """Replaces the list that applies to the vendors without a list of their own."""

    def read_state() -> State:
        return {"withheld": list(read_default(connection))}

    connection.execute(_LOCK)
    with recorded(connection, actor, Verb.VENDOR_SET_WITHHELD_DEFAULT, Subject("service", "withheld"), read_state):
        former = list_vendors(connection)
        connection.execute(sa.update(vendor_defaults).values(withheld=_sort(fields)))
        for before, vendor in zip(former, list_vendors(connection), strict=True):
            if vendor.own_withheld is None:
                invalidate_tokens(connection, vendor.id, content_changed=vendor.withheld != before.withheld)


def read_default(connection: sa.Connection) -> tuple[str, ...]:
    """Returns the words of the default."""
    return tuple(connection.execute(sa.select(vendor_defaults.c.withheld)).scalar_one())


def _sort(fields: Collection[WithheldField]) -> list[str]:
    return [field.value for field in WithheldField if field in fields]

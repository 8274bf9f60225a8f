"""The districts that the grants of a vendor open, for the access log."""

from __future__ import annotations

from collections.abc import Sequence

import sqlalchemy as sa

from roster_service.db.tables import CTexts, vendor_grants, vendors


class GrantedDistricts:
    """The districts of each vendor's grants. Every change of grants gives them another version, so the districts of a
    version are read once. Threads may share it."""

    def __init__(self, accounts: sa.Engine) -> None:
        """`accounts`: of the role that may read accounts."""
        self._accounts = accounts
        # Vendor -> the latest version of its grants that was read, and the districts.
        self._known: dict[int, tuple[int, Sequence[str]]] = {}

    def find(self, vendor_id: int, grant_version: int) -> Sequence[str] | None:
        """Returns the sourcedIds of the districts that this version of the grants opens, whole or by single schools;
        None if the grants have changed since. Raises SQLAlchemyError if the database fails."""
        known = self._known.get(vendor_id)
        if known is None or known[0] != grant_version:
            known = self._read(vendor_id)
            if known is None:
                return None
            self._known[vendor_id] = known
        return known[1] if known[0] == grant_version else None

    def _read(self, vendor_id: int) -> tuple[int, Sequence[str]] | None:
        districts = sa.select(vendor_grants.c.district_id).where(vendor_grants.c.vendor_id == vendors.c.id)
        ordered = districts.distinct().order_by(vendor_grants.c.district_id)
        with self._accounts.connect() as connection:
            granted = sa.func.array(ordered.scalar_subquery(), type_=CTexts).label("districts")
            columns = (vendors.c.grant_version, granted)
            row = connection.execute(sa.select(*columns).where(vendors.c.id == vendor_id)).one_or_none()
        return None if row is None else (row.grant_version, tuple(row.districts))

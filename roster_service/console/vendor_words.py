"""What a vendor may see, in words: shared by the screens of vendors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from roster_service.accounts.districts import DistrictName, list_named_districts
from roster_service.accounts.vendors import Vendor
from roster_service.console.filters import to_counted


@dataclass(frozen=True)
class DistrictAccess:
    """A district of which a vendor sees something. `granted`: the number of its granted schools, None for the whole
    district; `schools`: how many it has."""

    district_id: str
    name: str
    granted: int | None
    schools: int

    @property
    def words(self) -> str:
        """The access, for people."""
        if self.granted is None:
            return f"all of {self.name}"
        return f"{self.granted} of {to_counted(self.schools, 'school')} of {self.name}"


def list_district_access(connection: sa.Connection, vendor: Vendor) -> Sequence[DistrictAccess]:
    """Returns the districts of which a vendor sees something."""
    return make_district_access(vendor, {item.sourcedId: item for item in list_named_districts(connection)})


def make_district_access(vendor: Vendor, named: Mapping[str, DistrictName]) -> Sequence[DistrictAccess]:
    """As `list_district_access`. `named`: the districts of the roster."""
    found: dict[str, DistrictAccess] = {}
    for item in vendor.grants:
        before, district = found.get(item.district_id), named.get(item.district_id)
        is_whole = item.school_id is None or (before is not None and before.granted is None)
        granted = None if is_whole else 1 + ((before and before.granted) or 0)
        name = district.words if district else item.district_name or item.district_id
        schools = district.schools if district else 0
        found[item.district_id] = DistrictAccess(item.district_id, name, granted, schools)
    return list(found.values())

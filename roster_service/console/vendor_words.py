"""What a vendor may see, in words: shared by the screens of vendors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import sqlalchemy as sa

from roster_service.accounts.districts import DistrictName, list_named_districts
from roster_service.accounts.vendors import Vendor
from roster_service.console.filters import to_counted


@dataclass(frozen=True)
class DistrictAccess:
    """A district of which a vendor sees something. `granted`: the number of its granted schools, None for the whole
    district, 0 for none without rules; `schools`: how many it has; `ruled`: what grants with rules open, in words."""

    district_id: str
    name: str
    granted: int | None
    schools: int
    ruled: Sequence[str]

    @property
    def words(self) -> str:
        """The access, for people."""
        if self.granted is None:
            plain = [f"all of {self.name}"]
        elif self.granted or not self.ruled:
            plain = [f"{self.granted} of {to_counted(self.schools, 'school')} of {self.name}"]
        else:
            plain = []
        return "; ".join([*plain, *self.ruled])


def list_district_access(connection: sa.Connection, vendor: Vendor) -> Sequence[DistrictAccess]:
    """Returns the districts of which a vendor sees something."""
    return make_district_access(vendor, {item.sourcedId: item for item in list_named_districts(connection)})


def make_district_access(vendor: Vendor, named: Mapping[str, DistrictName]) -> Sequence[DistrictAccess]:
    """As `list_district_access`. `named`: the districts of the roster."""
    found: dict[str, DistrictAccess] = {}
    for item in vendor.grants:
        district = named.get(item.district_id)
        name = district.words if district else item.district_name or item.district_id
        before = found.get(item.district_id) or DistrictAccess(
            item.district_id, name, 0, district.schools if district else 0, ()
        )
        if item.rules is not None:
            ruled = f"of {item.school_name or item.school_id or name} only {item.rules.describe()}"
            found[item.district_id] = replace(before, ruled=(*before.ruled, ruled))
        else:
            is_whole = item.school_id is None or before.granted is None
            found[item.district_id] = replace(before, granted=None if is_whole else 1 + (before.granted or 0))
    return list(found.values())

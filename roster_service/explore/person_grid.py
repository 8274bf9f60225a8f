"""The grid of a person: which vendor sees which part, by which way, and why not.

Who sees the record is told by `who_sees`, what a vendor gets of people by `accounts/parts.py`, which parts the roster
has of the person by `whole_roster`; a test compares the grid with the answers of the interfaces.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import sqlalchemy as sa

from roster_service.accounts.kept_people import list_kept
from roster_service.accounts.parts import PARTS, Received, add_agents, is_withheld, list_received
from roster_service.accounts.vendors import Vendor, list_vendors
from roster_service.accounts.ways import VENDOR_INTERFACE, list_ways
from roster_service.explore.who_sees import FOLLOWING, Verdict, list_following
from roster_service.explore.whole_roster import find_parts
from roster_service.roster.person_parts import PersonPart
from roster_service.roster.withheld import WithheldField
from roster_service.schemas.versions import DEMOGRAPHICS, USERS, V1P2, VERSIONS, Version

# The columns of the grid, with the parts of each; those of demographics alone follow another record.
COLUMNS: Mapping[str, tuple[str, ...]] = {
    "Name": ("names",),
    "E-mail": ("email",),
    "Demographics": ("birthDate", "sex", "race", "birthPlace", "residence"),
    "Guardians": ("guardians",),
    "Classes": ("classes",),
}


class Seeing(StrEnum):
    """Whether a vendor sees a part of a person. The value is shown."""

    SEES = "sees"
    WITHHELD = "withheld"
    CLOSED = "not granted"
    EMPTY = "has none"


@dataclass(frozen=True)
class GridCell:
    """A cell of the grid. `reason`: why, in words; `by`: the words of the ways by which the vendor sees it."""

    state: Seeing
    reason: str
    by: Sequence[str] = ()


@dataclass(frozen=True)
class GridRow:
    """A vendor in the grid. `only`: what the rules of its grants open where the person is, in words, blank for all;
    `is_kept`: whether the person is kept from it; `sees`: whether it sees any part; `cells`: in the order of the
    columns."""

    vendor: str
    name: str
    id: int
    only: str
    is_kept: bool
    sees: bool
    cells: Sequence[GridCell]


def make_grid(
    connection: sa.Connection,
    sourced_id: str,
    verdicts: Sequence[Verdict],
    columns: Mapping[str, tuple[str, ...]] = COLUMNS,
) -> list[GridRow]:
    """Returns what each vendor sees of a person of the roster, by e-mail. `verdicts`: of `list_verdicts`; `columns`: by
    title the parts of each, which need the same paths."""
    received, following = list_received(connection), list_following(connection, sourced_id)
    open_ways = list_ways(connection)
    kept = {person.vendor_id for person in list_kept(connection, sourced_id=sourced_id)}

    @functools.cache
    def find(withheld: frozenset[WithheldField], version: Version) -> frozenset[PersonPart]:
        return find_parts(connection, sourced_id, withheld, version)

    known = frozenset[PersonPart]().union(*(find(frozenset(), version) for version in VERSIONS))
    rows = []
    for vendor in list_vendors(connection):
        own = [verdict for verdict in verdicts if verdict.vendor == vendor.email]
        withheld = frozenset(map(WithheldField, vendor.withheld))
        # The vendor interface has the terms of 1.2.
        left = {
            way.words: frozenset[str]().union(*(find(withheld, version) for version in way.list_names() or (V1P2,)))
            for way in open_ways.get(vendor.email, ())
        }
        ways = open_ways.get(vendor.email, ())
        opened = add_agents(received[vendor.email], ways, following[vendor.email])
        cells = []
        for title, parts in columns.items():
            is_known = not known.isdisjoint(parts)
            cell = _judge(vendor, parts, own, opened, left, is_known=is_known)
            if cell.state is Seeing.EMPTY and is_known:
                cell = GridCell(
                    Seeing.WITHHELD, "what the roster has of it is withheld, or not in the version that is read"
                )
            elif cell.state is Seeing.EMPTY:
                cell = GridCell(Seeing.EMPTY, f"the roster has no {title.lower()} of this person")
            elif cell.state is Seeing.SEES and not FOLLOWING.intersection(parts) <= following[vendor.email]:
                why = "no grant opens one, or somebody in it is kept from the vendor"
                words = f"the vendor sees none of the {title.lower()}: {why}"
                cell = GridCell(Seeing.CLOSED, words)
            cells.append(cell)
        only = next((verdict.only for verdict in own if verdict.kind == USERS.singular), "")
        sees = any(cell.state is Seeing.SEES for cell in cells)
        rows.append(GridRow(vendor.email, vendor.name, vendor.id, only, vendor.id in kept, sees, cells))
    return rows


def _judge(
    vendor: Vendor,
    parts: Sequence[str],
    verdicts: Sequence[Verdict],
    received: Received,
    left: Mapping[str, Collection[str]],
    *,
    is_known: bool,
) -> GridCell:
    """Whether a vendor sees parts of a person. `verdicts`: of the vendor; `left`: the parts of the person that the
    roster has, without what is withheld, by way; `is_known`: whether the roster has one of the parts."""
    people = [verdict for verdict in verdicts if verdict.kind == USERS.singular]
    ways = {verdict.by for verdict in people if verdict.shown}
    # What the record of a student names has some parts alone.
    narrow = {verdict.by: verdict for verdict in people if verdict.parts is not None}
    if all(PARTS[part].is_of_demographics for part in parts):
        # The vendor interface has them inside of the student.
        ways &= {VENDOR_INTERFACE}
        of_demographics = [verdict for verdict in verdicts if verdict.shown and verdict.kind == DEMOGRAPHICS.singular]
        ways |= {verdict.by for verdict in of_demographics if verdict.by != VENDOR_INTERFACE}
    if not ways and not any(verdict.shown for verdict in people):
        # The vendor interface has students alone, so the reason of a client says more.
        hidden = [verdict for verdict in people if verdict.by != VENDOR_INTERFACE] or people
        return GridCell(Seeing.CLOSED, "; ".join(dict.fromkeys(verdict.reason for verdict in hidden)))
    if "guardians" in parts and WithheldField.AGENTS in vendor.withheld:
        if not is_known:
            return GridCell(Seeing.EMPTY, "")
        return GridCell(Seeing.WITHHELD, "which guardians the person has is withheld from the vendor (`agents`)")
    seen = {
        part: [way for way in received.get(part, ()) if way in ways and (way not in narrow or narrow[way].shows(part))]
        for part in parts
    }
    got = {part: [way for way in found if part in left[way]] for part, found in seen.items()}
    by = tuple(dict.fromkeys(way for found in got.values() for way in found))
    if by:
        words = ", ".join(PARTS[part].words for part, found in got.items() if found)
        reason = f"{words}: by {', '.join(by)}" if len(seen) > 1 else f"by {', '.join(by)}"
        return GridCell(Seeing.SEES, reason, by)
    if any(seen.values()):
        return GridCell(Seeing.EMPTY, "")
    if all(is_withheld(PARTS[part], vendor) for part in parts):
        return GridCell(Seeing.WITHHELD, "on the list of fields that are withheld from the vendor")
    if any(received.get(part) for part in parts):
        by_others = GridCell(Seeing.CLOSED, "the ways that have it do not show it of this person")
        return by_others if is_known else GridCell(Seeing.EMPTY, "")
    return GridCell(Seeing.CLOSED, "no secret, link, delivery or key that is open has the scope or the flag for it")

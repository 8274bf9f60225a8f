"""The grid of a person: which vendor sees which part, by which way, and why not. `who_sees.py` decides it; a test
compares the grid with the answers of the interfaces."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from roster_service.accounts.parts import PARTS
from roster_service.explore.who_sees import PartVerdict, Seeing, VendorVerdict, Why

# The columns of the grid, with the parts of each; those of demographics alone follow another record.
COLUMNS: Mapping[str, tuple[str, ...]] = {
    "Name": ("names",),
    "E-mail": ("email",),
    "Demographics": ("birthDate", "sex", "race", "birthPlace", "residence"),
    "Guardians": ("guardians",),
    "Classes": ("classes",),
}


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


def make_grid(explained: Iterable[VendorVerdict], columns: Mapping[str, tuple[str, ...]] = COLUMNS) -> list[GridRow]:
    """Returns what each vendor sees of a person of the roster. `columns`: by title the parts of each, which need the
    same paths."""
    rows = []
    for verdict in explained:
        cells = [
            _make_cell(title, {part: verdict.parts[part] for part in parts}, verdict.reason)
            for title, parts in columns.items()
        ]
        vendor, sees = verdict.vendor, any(cell.state is Seeing.SEES for cell in cells)
        rows.append(GridRow(vendor.email, vendor.name, vendor.id, verdict.only, verdict.is_kept, sees, cells))
    return rows


def _make_cell(title: str, parts: Mapping[str, PartVerdict], hidden: str) -> GridCell:
    """`hidden`: why the vendor does not see the person."""
    whys = {verdict.why for verdict in parts.values()}
    why = next(why for why in Why if why in whys)
    if why is Why.WITHHELD and Why.EMPTY in whys:
        why = Why.LEFT_OUT if any(verdict.is_known for verdict in parts.values()) else Why.EMPTY
    by = tuple(dict.fromkeys(way for verdict in parts.values() for way in verdict.by))
    state, reason = why.value
    said = {Why.SHOWN: ", ".join(by), Why.HIDDEN: hidden}.get(why, title.lower())
    shown = ", ".join(PARTS[part].words for part, verdict in parts.items() if verdict.by)
    prefix = f"{shown}: " if shown and len(parts) > 1 else ""
    return GridCell(state, prefix + reason.format(said), by)

"""The matrix: every cell is answered as the model says; and with one layer taken away, nothing more than that is shown.

A run asks every STEP-th cell; `make check-long` asks all of them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from tests.conftest import Tally
from tests.extent import examples

from .cells import Cell, Outcome, choose, expect, find_eyes, make_cells, read_outcome
from .conftest import Questioner, World
from .layers import Layers, has_row_level_security
from .path_collections import COLLECTIONS
from .roster import PEOPLE
from .visible_records import GRANTS

# No divisor of how often anything repeats, so a sample has some of everything.
STEP = examples(1009, 613, 1)
# Of the kind of cell that one test needs, there are few.
SMALL_STEP = min(STEP, 61)
SHOWN = 10


def pick_cells(step: int = STEP) -> list[Cell]:
    """The cells of this run."""
    return list(make_cells())[::step]


def ask(questioner: Questioner, cell: Cell) -> Outcome:
    """What the service answers."""
    headers = {"Authorization": f"Bearer {questioner.token(cell.caller)}"}
    with questioner.http.get(cell.address, headers=headers) as response:
        return read_outcome(response.status_code, response.headers, json.loads(response.data))


def find_leaks(cell: Cell, expected: Outcome, found: Outcome) -> Iterator[str]:
    """What is shown or counted that the model forbids. That something is missing is no leak."""
    if found.status != 200:
        return
    if expected.status != 200:
        yield f"is answered at all, with {found.status}"
        return
    # Of the refs, `primaryOrg` alone is hidden though the caller could fetch what it leads to: the district above a
    # granted school. That hides no secret, and row-level security, which knows no columns, does not hide it.
    seen = find_eyes(cell.caller).orgs
    plain = choose(cell) if any("primaryOrg" in text for _, text in cell.query) else expected.records
    most = max(expected.total or 0, 0 if plain is expected.records else len(plain))
    if (found.total or 0) > most:
        yield f"counts {found.total}, and {most} may be counted"
    allowed = {record["sourcedId"]: set(_read_pages(record)) for record in plain}
    for record in found.records:
        if record["sourcedId"] not in allowed:
            yield f"shows {record['sourcedId']}"
        else:
            fetchable = {"primaryOrg"} if record.get("primaryOrg", {}).get("sourcedId") in seen else set()
            shown = {name: value for name, value in record.items() if name not in fetchable}
            for path, value in set(_read_pages(shown)) - allowed[record["sourcedId"]]:
                yield f"shows {value} as {path} of {record['sourcedId']}"


def _read_pages(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Every (path, text) in a record; the places in a list do not count."""
    if isinstance(value, Mapping):
        for name, item in value.items():
            yield from _read_pages(item, f"{path}.{name}")
    elif isinstance(value, list):
        for item in value:
            yield from _read_pages(item, path)
    else:
        yield path.removeprefix("."), str(value)


def find_differences(cell: Cell, expected: Outcome, found: Outcome) -> Iterator[str]:
    """Everything in which an answer is another than the model's."""
    if expected != found:
        yield "differs"


def describe(cell: Cell, expected: Outcome, found: Outcome, troubles: list[str]) -> str:
    """The request, and both answers in short."""
    caller = cell.caller
    return "\n  ".join(
        [
            f"GET {cell.address}",
            f"scopes {caller.scopes}, grants {caller.grants} {GRANTS[caller.grants]}, withheld {caller.withheld}, "
            f"{cell.kind}",
            *troubles[:3],
            f"expected {_shorten(expected, found)}",
            f"found    {_shorten(found, expected)}",
        ]
    )


def _shorten(outcome: Outcome, other: Outcome) -> str:
    ids = [record.get("sourcedId") for record in outcome.records]
    text = f"{outcome.status} {outcome.minor or ''} {outcome.total if outcome.total is not None else ''} {ids}"
    same = {json.dumps(record, sort_keys=True) for record in other.records}
    alone = [record for record in outcome.records if json.dumps(record, sort_keys=True) not in same]
    return f"{text} {json.dumps(alone[0])[:1200] if alone else ''}"


Judge = Callable[[Cell, Outcome, Outcome], Iterator[str]]


def judge_cells(questioner: Questioner, cells: list[Cell], judge: Judge) -> list[str]:
    """The cells that are not as they should be, described."""
    failed = []
    for cell in cells:
        expected, found = expect(cell), ask(questioner, cell)
        troubles = list(judge(cell, expected, found))
        if troubles:
            failed.append(describe(cell, expected, found, troubles))
    return failed


# What each state of the layers is held to: the same answers, or no leak.
JUDGES: Mapping[Layers, Judge] = {
    Layers.BOTH: find_differences,
    Layers.QUERY_FILTER_ALONE: find_leaks,
    Layers.POLICIES_ALONE: find_leaks,
}


@pytest.mark.shows(
    "Visibility",
    "With both layers every tested answer is that of a plain model; with either alone, none shows or counts more.",
)
@pytest.mark.parametrize("layers", JUDGES, ids=lambda layers: layers.value)
def test_every_cell_is_answered_as_the_model_says(
    world: World, make_questioner: Callable[[Layers], Questioner], tally: Tally, layers: Layers
) -> None:
    if layers is Layers.POLICIES_ALONE and not has_row_level_security(world.engine):
        pytest.skip("this database has no row-level security")
    cells = pick_cells()
    failed = judge_cells(make_questioner(layers), cells, JUDGES[layers])
    wrong = "differ" if JUDGES[layers] is find_differences else "leak"
    tally(f"access matrix, {layers.value}: {len(cells):,} cells, {len(failed):,} {wrong}")
    assert not failed, f"{len(failed)} of {len(cells)} cells {wrong}\n" + "\n".join(failed[:SHOWN])


# A sample has too few of these cells.
@pytest.mark.long
@pytest.mark.shows("Visibility", "Without both layers, more than a quarter of the matrix leaks: it finds a leak.")
def test_the_matrix_leaks_without_any_layer(make_questioner: Callable[[Layers], Questioner], tally: Tally) -> None:
    """Whoever was granted nothing, or one school, would be shown much: a matrix that misses that proves nothing."""
    cells = [cell for cell in pick_cells() if cell.caller.grants in ("nothing", "school")]
    failed = judge_cells(make_questioner(Layers.NONE), cells, find_leaks)
    tally(f"access matrix, no layer: {len(failed):,} of {len(cells):,} cells leak, as they must")
    assert len(failed) > len(cells) / 4


def test_the_model_knows_every_path() -> None:
    """Without an entry of its own a path would not be asked."""
    asked = {cell.endpoint.path.removesuffix("/{sourcedId}") for cell in make_cells()}
    assert asked == set(COLLECTIONS)
    assert len(PEOPLE) > 20

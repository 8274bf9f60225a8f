"""Exports without a district: the feed becomes one, above the orgs that have no parent."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from roster_service.db.tables import orgs, sync_runs
from sync_scripts.engine.load import Options, load
from sync_scripts.formats.tolerated import NO_DISTRICT, NO_PARENT, NO_TARGET
from sync_scripts.reading.registry import ONEROSTER, SDS, Family
from sync_scripts.reading.rejections import RefusedExportError
from tests.postgres.loaded import load_first
from tests.sync.conftest import EXPORTS, SHELBYVILLE, SPRINGFIELD, snapshot, state
from tests.sync.export_changes import Bend, both, cell, cell_of, column, raw, with_row, without_rows

from .test_deltas import alone, only

FEED = "lincoln"
DISTRICT = f"{FEED}:district"
REPORTED = f"orgs.csv: {NO_DISTRICT.taken} (the feed itself is the district {FEED}); {NO_DISTRICT.remedy}"


def retyped(identifier: str, word: str) -> Bend:
    return cell_of("orgs", identifier, "type", word)


def without_org(identifier: str, instead: str, *files: str) -> Bend:
    """Removes an org; what names it names another one, and orgs below it have no parent."""

    def replace(data: bytes) -> bytes:
        return data.replace(identifier.encode(), instead.encode())

    return both(
        without_rows_of_org(identifier),
        raw("orgs.csv", lambda data: data.replace(f",{identifier}".encode(), b",")),
        *(raw(f"{file}.csv", replace) for file in files),
    )


def without_rows_of_org(identifier: str) -> Bend:
    def bend(folder: Path) -> None:
        path = folder / "orgs.csv"
        lines = path.read_text().splitlines(keepends=True)
        path.write_text("".join(line for line in lines if not line.startswith(f"{identifier},")))

    return bend


# 1.1: schools without anything above them, as single schools and small feeds have it.
FLAT = without_org("spr-district", "spr-high", "courses", "users")


@dataclass(frozen=True)
class Case:
    """An export without a district, and the parents of its orgs after a load."""

    export: str
    bend: Bend
    parents: dict[str, str]
    family: Family = ONEROSTER


CASES: dict[str, Case] = {
    "1.1, schools alone": Case(
        SPRINGFIELD,
        FLAT,
        {"spr-elementary": DISTRICT, "spr-high": DISTRICT, "spr-high-science": "spr-high"},
    ),
    **{
        f"1.1, below an org of the type {word}": Case(
            SPRINGFIELD,
            retyped("spr-district", word),
            {
                "spr-district": DISTRICT,
                "spr-elementary": "spr-district",
                "spr-high": "spr-district",
                "spr-high-science": "spr-high",
            },
        )
        for word in ("department", "local", "state", "national", "school")
    },
    "1.2, below an org of its own type": Case(
        SHELBYVILLE,
        retyped("shv-district", "ext:region"),
        {
            "shv-district": DISTRICT,
            "shv-north": "shv-district",
            "shv-campus": "shv-district",
            "shv-south": "shv-campus",
        },
    ),
    "1.2, a school and a campus": Case(
        SHELBYVILLE,
        without_org("shv-district", "shv-north", "courses", "users", "roles"),
        {"shv-north": DISTRICT, "shv-campus": DISTRICT, "shv-south": "shv-campus"},
    ),
    "sds, schools alone": Case(
        "northhaven-sds",
        both(without_org("nh", "nh-1"), raw("courses.csv", lambda data: data.replace(b",nh,", b",nh-1,")),
             raw("roles.csv", lambda data: data.replace(b",nh,", b",nh-1,"))),
        {"nh-1": DISTRICT, "nh-2": DISTRICT},
        SDS,
    ),
}  # fmt: skip


def read_parents(engine: sa.Engine) -> dict[str, Any]:
    return {key: row["parent_id"] for key, row in snapshot(engine, orgs).items() if row["status"] == "active"}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_an_export_without_a_district_gets_one(
    engine: sa.Engine, copy_export: Callable[[str], Path], case: Case
) -> None:
    """It is told with the run and remembered, and the next night, with one change elsewhere, nothing of it moves."""
    folder = copy_export(case.export)
    case.bend(folder)
    report = load(engine, FEED, folder, family=case.family)
    assert REPORTED in report.notices
    assert report.rejected == 0
    found = snapshot(engine, orgs)
    assert read_parents(engine) == {**case.parents, DISTRICT: None}
    assert {row["district_id"] for row in found.values()} == {DISTRICT}
    assert {name: found[DISTRICT][name] for name in ("name", "type", "identifier")} == {
        "name": FEED,
        "type": "district",
        "identifier": FEED,
    }
    [run] = snapshot(engine, sync_runs).values()
    assert REPORTED in run["notices"]

    cell("users", 2, "givenName", "Another")(folder)
    again = load(engine, FEED, folder, family=case.family)
    assert (again.counts["users"].changed, again.counts["orgs"].any) == (1, False)
    assert snapshot(engine, orgs) == found
    assert REPORTED in again.notices
    assert load(engine, FEED, folder, family=case.family).outcome == "unchanged"


def test_an_export_with_a_district_gets_no_other_one(engine: sa.Engine, each_export: Path) -> None:
    report = load_first(engine, FEED, each_export)
    assert DISTRICT not in snapshot(engine, orgs)
    assert not any(NO_DISTRICT.taken in reported for reported in report.notices)


def test_it_goes_when_the_export_brings_a_district(engine: sa.Engine, springfield: Path) -> None:
    """And comes back without."""
    FLAT(springfield)
    load(engine, FEED, springfield)
    report = load(engine, FEED, EXPORTS / SPRINGFIELD)
    counts = report.counts["orgs"]
    assert (counts.added, counts.changed, counts.tombstoned) == (1, 3, 1)
    assert "orgs.csv has a district now: the one that was made of the feed is marked as gone" in report.notices
    found = snapshot(engine, orgs)
    assert found[DISTRICT]["status"] == "tobedeleted"
    assert found["spr-high"]["district_id"] == found["spr-high"]["parent_id"] == "spr-district"
    back = load(engine, FEED, springfield).counts["orgs"]
    assert (back.revived, back.changed, back.tombstoned) == (1, 3, 1)
    assert read_parents(engine)["spr-high"] == DISTRICT


def test_the_orgs_of_rejected_rows_stay_below_it(engine: sa.Engine, springfield: Path) -> None:
    FLAT(springfield)
    load(engine, FEED, springfield)
    before = state(engine)
    cell_of("orgs", "spr-high", "name", "")(springfield)
    report = load(engine, FEED, springfield)
    assert (report.outcome, report.rejected) == ("unchanged", 1)
    assert state(engine) == before


def test_no_district_is_made_where_every_org_is_refused(engine: sa.Engine, springfield: Path) -> None:
    FLAT(springfield)
    column("orgs", "type", "shool")(springfield)
    load(engine, FEED, springfield, options=Options(allow_mass_delete=True))
    assert snapshot(engine, orgs) == {}


# --- deltas ------------------------------------------------------------------------------------------------------

# What a delta says on a roster whose district is the feed -> the parents of the active orgs after it.
BELOW = {"spr-elementary": DISTRICT, "spr-high": DISTRICT, "spr-high-science": "spr-high", DISTRICT: None}
NEW_DISTRICT = with_row("orgs", sourcedId="d", status="active", name="Lincoln", type="district")
DELTAS: dict[str, tuple[Bend, dict[str, str | None]]] = {
    "nothing of orgs": (alone(only("users", "spr-student-1")), BELOW),
    "a school again": (alone(only("orgs", "spr-high")), BELOW),
    "a new school": (
        alone(only("orgs"), with_row("orgs", sourcedId="new", status="active", name="New", type="school")),
        {**BELOW, "new": DISTRICT},
    ),
    # A school without a row may be one of another district.
    "a district": (
        alone(only("orgs"), NEW_DISTRICT),
        {"spr-elementary": None, "spr-high": None, "spr-high-science": "spr-high", "d": None},
    ),
    "a district, and a school of it": (
        alone(only("orgs", "spr-high"), cell_of("orgs", "spr-high", "parentSourcedId", "d"), NEW_DISTRICT),
        {"spr-elementary": None, "spr-high": "d", "spr-high-science": "spr-high", "d": None},
    ),
}


@pytest.mark.parametrize(("bend", "parents"), DELTAS.values(), ids=DELTAS)
def test_a_delta_beside_it(engine: sa.Engine, springfield: Path, bend: Bend, parents: dict[str, str | None]) -> None:
    FLAT(springfield)
    load(engine, FEED, springfield)
    before = snapshot(engine, orgs)
    bend(springfield)
    load(engine, FEED, springfield)
    assert read_parents(engine) == parents
    after = snapshot(engine, orgs)
    assert after[DISTRICT]["status"] == ("tobedeleted" if "d" in parents else "active")
    if parents == BELOW:
        assert after == before
    assert load(engine, FEED, springfield).outcome == "unchanged"
    assert snapshot(engine, orgs) == after


def test_a_delta_makes_it_where_earlier_loads_did_not(engine: sa.Engine, springfield: Path) -> None:
    """As versions before this one have left the roster."""
    FLAT(springfield)
    load(engine, FEED, springfield)
    good = read_parents(engine)
    with engine.begin() as connection:
        connection.execute(sa.delete(orgs).where(orgs.c.sourced_id == DISTRICT))
        connection.execute(sa.update(orgs).values(district_id=None))
        connection.execute(sa.update(orgs).where(orgs.c.parent_id == DISTRICT).values(parent_id=None))
    alone(only("users"))(springfield)
    report = load(engine, FEED, springfield)
    assert REPORTED in report.notices
    assert read_parents(engine) == good
    assert {row["district_id"] for row in snapshot(engine, orgs).values()} == {DISTRICT}


# --- schools without a parent -----------------------------------------------------------------------------------


def parent_of(school: str, parent: str) -> Bend:
    return cell_of("orgs", school, "parentSourcedId", parent)


PLACED = f"orgs.csv, column parentSourcedId: in 1 row, {NO_PARENT.taken} (below spr-district); {NO_PARENT.remedy}"


def test_schools_without_a_parent_lie_below_the_only_district(engine: sa.Engine, springfield: Path) -> None:
    """Every night says so; where there are two districts later, each stays where it was; one that is new is told as a
    school that nobody can be granted."""
    parent_of("spr-high", "")(springfield)
    with pytest.raises(RefusedExportError, match="a school without a parent"):
        load(engine, FEED, springfield, options=Options(strict=True))
    report = load(engine, FEED, springfield)
    good = read_parents(engine)
    assert good["spr-high"] == "spr-district"
    assert {row["district_id"] for row in snapshot(engine, orgs).values()} == {"spr-district"}
    assert PLACED in report.notices
    cell("users", 2, "givenName", "Another")(springfield)
    again = load(engine, FEED, springfield)
    assert (again.counts["orgs"].any, PLACED in again.notices) == (False, True)
    with_row("orgs", sourcedId="d", status="active", name="Lincoln", type="district", parentSourcedId="")(springfield)
    with_row("orgs", sourcedId="new", status="active", name="New", type="school", parentSourcedId="")(springfield)
    later = load(engine, FEED, springfield)
    assert read_parents(engine) == {**good, "d": None, "new": None}
    assert PLACED in later.notices


OTHER = with_row("orgs", sourcedId="d", status="active", name="Lincoln", type="district", parentSourcedId="")
ENDED = alone(only("orgs", "d"), cell_of("orgs", "d", "status", "tobedeleted"))


@pytest.mark.parametrize(
    ("gone", "back"),
    [(without_rows("orgs", "d"), lambda _: None), (ENDED, alone(only("orgs", "d")))],
    ids=["bulk", "delta"],
)
def test_a_school_whose_district_is_gone_goes_to_no_other(
    engine: sa.Engine, springfield: Path, gone: Bend, back: Bend
) -> None:
    """Whoever is granted the other district would get its pupils because a row is missing. It returns with its own."""
    both(OTHER, parent_of("spr-high", "d"))(springfield)
    whole = {path.name: path.read_bytes() for path in springfield.iterdir()}

    def read_districts() -> set[str | None]:
        return {row["district_id"] for key, row in snapshot(engine, orgs).items() if key.startswith("spr-high")}

    load(engine, FEED, springfield)
    assert read_districts() == {"d"}
    # Another delta has nothing to do with it.
    other = alone(only("users"))
    for bend, wanted in ((gone, None), (other, None), (back, "d"), (other, "d")):
        for name, data in whole.items():
            (springfield / name).write_bytes(data)
        bend(springfield)
        report = load(engine, FEED, springfield, options=Options(allow_mass_delete=True))
        assert read_districts() == {wanted}
        assert not [it for it in report.notices if NO_PARENT.taken in it]


@pytest.mark.parametrize("in_bulk", [False, True])
def test_a_school_goes_to_no_other_district_after_a_run_without_any(
    engine: sa.Engine, springfield: Path, in_bulk: bool
) -> None:
    """The feed is its district for that night."""
    both(OTHER, parent_of("spr-high", "d"))(springfield)
    whole = {path.name: path.read_bytes() for path in springfield.iterdir()}
    load(engine, FEED, springfield)
    both_end = (cell_of("orgs", it, "status", "tobedeleted") for it in ("d", "spr-district"))
    none = (
        both(without_rows("orgs", "d", "spr-district"))
        if in_bulk
        else alone(only("orgs", "d", "spr-district"), *both_end)
    )
    for bend, wanted in ((none, DISTRICT), (alone(only("orgs", "spr-district")), None)):
        for name, data in whole.items():
            (springfield / name).write_bytes(data)
        bend(springfield)
        load(engine, FEED, springfield, options=Options(allow_mass_delete=True))
        assert snapshot(engine, orgs)["spr-high"]["district_id"] == wanted


def test_a_school_whose_parent_is_nowhere_lies_below_no_district(engine: sa.Engine, springfield: Path) -> None:
    parent_of("spr-elementary", "nowhere")(springfield)
    report = load(engine, FEED, springfield)
    found = snapshot(engine, orgs)["spr-elementary"]
    assert (found["parent_id"], found["district_id"]) == (None, None)
    assert [it for it in report.notices if NO_TARGET.taken in it]


def test_the_feed_is_the_district_where_a_delta_ends_the_only_one(engine: sa.Engine, springfield: Path) -> None:
    load(engine, FEED, springfield)
    alone(only("orgs", "spr-district"), cell_of("orgs", "spr-district", "status", "tobedeleted"))(springfield)
    report = load(engine, FEED, springfield, options=Options(allow_mass_delete=True))
    assert REPORTED in report.notices
    assert {read_parents(engine)[school] for school in ("spr-high", "spr-elementary")} == {DISTRICT}
    before = snapshot(engine, orgs)
    load(engine, FEED, EXPORTS / SPRINGFIELD)
    after = snapshot(engine, orgs)
    assert (before[DISTRICT]["status"], after[DISTRICT]["status"]) == ("active", "tobedeleted")
    assert {after[school]["parent_id"] for school in ("spr-high", "spr-elementary")} == {"spr-district"}


# --- other feeds -------------------------------------------------------------------------------------------------


def test_each_feed_has_its_own(engine: sa.Engine, springfield: Path, shelbyville: Path) -> None:
    FLAT(springfield)
    retyped("shv-district", "state")(shelbyville)
    load(engine, "one", springfield)
    load(engine, "two", shelbyville)
    districts = {key: row["district_id"] for key, row in snapshot(engine, orgs).items()}
    assert {districts[key] for key in ("spr-high", "one:district")} == {"one:district"}
    assert {districts[key] for key in ("shv-north", "two:district")} == {"two:district"}


def test_the_id_of_another_feed_is_never_overwritten(engine: sa.Engine, springfield: Path, shelbyville: Path) -> None:
    with_row("orgs", sourcedId=DISTRICT, name="Another", type="school", parentSourcedId="shv-district")(shelbyville)
    load(engine, "another", shelbyville)
    before = snapshot(engine, orgs)
    FLAT(springfield)
    report = load(engine, FEED, springfield)
    reported = f"orgs.csv: {NO_DISTRICT.taken} (none can be made, because its id belongs to the feed another)"
    assert f"{reported}; {NO_DISTRICT.remedy}" in report.notices
    after = snapshot(engine, orgs)
    assert {key: after[key] for key in before} == before
    assert read_parents(engine)["spr-high"] is None


def test_an_export_may_have_the_id_itself(engine: sa.Engine, springfield: Path) -> None:
    """Then it says what the record is."""
    raw("orgs.csv", lambda data: data.replace(b"spr-district", DISTRICT.encode()))(springfield)
    for file in ("courses.csv", "users.csv"):
        raw(file, lambda data: data.replace(b"spr-district", DISTRICT.encode()))(springfield)
    report = load(engine, FEED, springfield)
    assert not any(NO_DISTRICT.taken in reported for reported in report.notices)
    assert snapshot(engine, orgs)[DISTRICT]["name"] == "Springfield Unified School District"
    assert read_parents(engine)["spr-high"] == DISTRICT


def test_a_district_that_another_feed_has_too_is_noticed(engine: sa.Engine, springfield: Path, tmp_path: Path) -> None:
    load_first(engine, "first", springfield)
    again = Path(shutil.copytree(springfield, tmp_path / "again"))
    for file in again.glob("*.csv"):
        file.write_bytes(file.read_bytes().replace(b"spr-", b"two-"))
    words = "the feed first has a district with the same name and identifier, spr-district, beside two-district"
    assert [it for it in load(engine, "second", again).notices if it.startswith(words)] != []

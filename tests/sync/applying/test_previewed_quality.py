"""What a preview says of data quality is what the checks find once the export is loaded."""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from roster_service.db.tables import feeds
from roster_service.feeds.checked_roster import StoredRoster
from roster_service.feeds.data_quality import SAMPLES, list_doubts, store_counts
from roster_service.feeds.quality_checks import CHECKS
from roster_service.settings import Settings
from sync_scripts.engine.load import Options, load
from sync_scripts.reading.registry import CLEVER, ONEROSTER, SDS, Family
from sync_scripts.reading.rejections import RefusedExportError
from tests.extent import examples
from tests.postgres.loaded import EXPORTS
from tests.sync.conftest import empty_roster
from tests.sync.export_changes import (
    Bend,
    Rows,
    both,
    cell_of,
    column,
    header,
    read_csv,
    rows_of,
    with_row,
    without_rows,
)
from tests.sync.small_exports import FEEDS, exports, write_export

DRY = Options(dry_run=True)
# What a check finds: its number and the first of its records, with their values.
Found = Mapping[str, tuple[int, list[tuple[str, str | None]]]]


def preview(engine: sa.Engine, feed: str, path: Path, family: Family = ONEROSTER) -> Found | None:
    """What the preview of an export says that the checks find; None for the export that was loaded last."""
    report = load(engine, feed, path, family=family, options=DRY)
    if report.preview is None:
        return None
    return {
        row["check"]: (row["found"], [(sample["sourcedId"], sample["value"]) for sample in row["samples"]])
        for row in report.preview["quality"]
    }


def find_stored(engine: sa.Engine, feed: str) -> Found:
    """What the checks find in the stored roster of a feed."""
    with engine.connect() as connection:
        roster = StoredRoster(connection.scalars(sa.select(feeds.c.id).where(feeds.c.name == feed)).one())
        found: dict[str, Any] = {}
        for check in CHECKS:
            if rows := sorted((row.id, row.detail) for row in connection.execute(check.find(roster))):
                found[check.name] = (len(rows), rows[:SAMPLES])
    return found


def swapped(file: str, one: str, other: str) -> Bend:
    """The headers of two columns the wrong way round."""
    return both(both(header(file, one, "?"), header(file, other, one)), header(file, "?", other))


@pytest.mark.parametrize(
    ("family", "name"),
    [
        (ONEROSTER, "springfield-1.1"),
        (ONEROSTER, "shelbyville-1.2"),
        (CLEVER, "shelbyville-clever"),
        (SDS, "northhaven-sds"),
        (SDS, "northhaven-sds-v1"),
        (SDS, "northhaven-sds-v2"),
    ],
    ids=lambda it: it if isinstance(it, str) else "",
)
def test_good_exports_are_not_doubted(engine: sa.Engine, family: Family, name: str) -> None:
    previewed = preview(engine, "first", EXPORTS / name, family)
    assert previewed is not None
    assert not {check.name for check in CHECKS if check.is_doubtful} & previewed.keys()
    load(engine, "first", EXPORTS / name, family=family)
    assert previewed == find_stored(engine, "first")


def add_everybody(rows: Rows) -> None:
    """Gives demographics to all people."""
    people = [row[0] for row in read_csv(EXPORTS / "springfield-1.1" / "users.csv")[1:]]
    known = {row[0] for row in rows}
    rows += [[one, *[""] * (len(rows[0]) - 1)] for one in people if one not in known]


# What is wrong with a first export, and the numbers of the checks that say so.
FAULTS: dict[str, tuple[Bend, dict[str, int]]] = {
    "name and e-mail are swapped": (
        swapped("users", "givenName", "email"),
        {"name-with-at": 11, "email-without-at": 11},
    ),
    "all are of one day": (
        both(
            rows_of("demographics", add_everybody),
            column("demographics", "birthDate", "2015-01-01"),
        ),
        {"shared-birth-date": 15},
    ),
    "all have one name": (column("users", "familyName", "Simpson"), {"one-value": 15}),
    "a student is of a year to come": (
        cell_of("demographics", "spr-student-1", "birthDate", "2199-01-01"),
        {"impossible-age": 1},
    ),
    "a school has lost its parent, of two": (
        both(
            cell_of("orgs", "spr-high", "parentSourcedId", ""),
            with_row("orgs", sourcedId="d", name="Lincoln", type="district"),
        ),
        {"below-no-district": 11},
    ),
    "the row of a teacher is rejected": (
        cell_of("users", "spr-teacher-1", "enabledUser", "maybe"),
        {"teacher-rejected": 2},
    ),
}


@pytest.mark.parametrize(("bend", "doubts"), FAULTS.values(), ids=FAULTS)
def test_a_faulty_export_is_doubted_before_and_after_it_is_loaded(
    engine: sa.Engine, springfield: Path, bend: Bend, doubts: dict[str, int]
) -> None:
    bend(springfield)
    previewed = preview(engine, "springfield", springfield)
    assert previewed is not None
    doubtful = {check.name for check in CHECKS if check.is_doubtful}
    assert {name: number for name, (number, _) in previewed.items() if name in doubtful} == doubts
    load(engine, "springfield", springfield)
    assert previewed == find_stored(engine, "springfield")
    store_counts(engine, "springfield")
    with engine.connect() as connection:
        [doubt] = list_doubts(connection)
    assert (doubt.feed, doubt.found) == ("springfield", doubts)


def test_a_preview_says_what_the_checks_found_before(engine: sa.Engine, springfield: Path) -> None:
    load(engine, "springfield", springfield)
    store_counts(engine)
    without_rows("enrollments", "spr-enr-04")(springfield)
    report = load(engine, "springfield", springfield, options=DRY)
    assert report.preview is not None
    [row] = [row for row in report.preview["quality"] if row["check"] == "classes-without-teacher"]
    assert (row["before"], row["found"]) == (1, 2)
    # A log has no value of a record.
    assert row["samples"]
    assert "samples" not in str(dataclasses.replace(report, dry_run=False).to_json())


@pytest.mark.long
@settings(max_examples=examples(1, 1, 100), deadline=None, suppress_health_check=list(HealthCheck))
@given(
    loads=st.lists(
        st.sampled_from(FEEDS).flatmap(lambda feed: st.tuples(st.just(feed), exports(feed))), min_size=3, max_size=5
    )
)
def test_a_preview_finds_what_the_load_leaves(engine: sa.Engine, loads: list[tuple[str, Any]]) -> None:
    empty_roster(engine)
    with tempfile.TemporaryDirectory() as home:
        options = Options(Settings(home=Path(home)), allow_mass_delete=True)
        for number, (feed, export) in enumerate(loads):
            note(f"{feed}: {export}")
            path = write_export(export, Path(home) / str(number))
            try:
                previewed = preview(engine, feed, path)
            except RefusedExportError:
                continue
            load(engine, feed, path, options=options)
            if previewed is not None:
                assert previewed == find_stored(engine, feed)

"""The records that rejected rows name: their own, and those that they refer to."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import sqlalchemy as sa

from roster_service.feeds.rejected_rows import NamedRecord, read_rejected_rows
from sync_scripts.engine.load import load
from sync_scripts.formats.cells import ID_LENGTH
from sync_scripts.reading.registry import CLEVER, ONEROSTER, Family
from sync_scripts.reading.rejections import VALUE_LENGTH, RefusedExportError
from tests.sync.conftest import SHELBYVILLE, SPRINGFIELD
from tests.sync.export_changes import Bend, both, cell, cell_of, repeat_row, replaced, with_row, without_rows

SCRIPT = "<script>alert('x')</script>\u202e\N{HEBREW LETTER ALEF}"


def read_named(
    engine: sa.Engine, folder: Path, family: Family = ONEROSTER
) -> dict[tuple[str, str], tuple[NamedRecord, ...]]:
    """The stored records of each row that a load of an export rejects, by its file and id."""
    run = load(engine, "feed", folder, family=family).run
    assert run is not None
    with engine.connect() as connection:
        return {(row.file, str(row.sourcedId)): row.records for row in read_rejected_rows(connection, run)}


def own(type_: str, sourced_id: str, label: str | None = None) -> NamedRecord:
    return NamedRecord(type_, sourced_id, True, label)


def other(type_: str, sourced_id: str) -> NamedRecord:
    return NamedRecord(type_, sourced_id, False, None)


ROWS: dict[str, tuple[str, Bend, str, tuple[NamedRecord, ...]]] = {
    "an enrollment names its class, school and user": (
        SPRINGFIELD,
        cell_of("enrollments", "spr-enr-10", "role", "x"),
        "spr-enr-10",
        (
            own("enrollments", "spr-enr-10"),
            other("classes", "spr-class/stats@1"),
            other("orgs", "spr-high"),
            other("users", "spr-student-5"),
        ),
    ),
    "a class names its terms, and gives its own title": (
        SPRINGFIELD,
        both(
            cell_of("classes", "spr-class/stats@1", "classType", "x"),
            cell_of("classes", "spr-class/stats@1", "termSourcedIds", "spr-2027-fall, spr-2027"),
        ),
        "spr-class/stats@1",
        (
            own("classes", "spr-class/stats@1", "100%_sure: Statistics, Section 1"),
            other("courses", "spr-course-stats"),
            other("orgs", "spr-high"),
            other("academicSessions", "spr-2027-fall"),
            other("academicSessions", "spr-2027"),
        ),
    ),
    "demographics name their user": (
        SPRINGFIELD,
        cell_of("demographics", "spr-student-5", "birthDate", "x"),
        "spr-student-5",
        (own("demographics", "spr-student-5"), other("users", "spr-student-5")),
    ),
    "a role is no record of its own": (
        SHELBYVILLE,
        cell_of("roles", "shv-role-09", "role", "x"),
        "shv-role-09",
        (other("users", "shv-principal-1"), other("orgs", "shv-north")),
    ),
    "a record is named once, and a hostile name is kept cut": (
        SPRINGFIELD,
        both(
            cell_of("users", "spr-student-5", "enabledUser", "x"),
            cell_of("users", "spr-student-5", "givenName", SCRIPT),
            cell_of("users", "spr-student-5", "familyName", "y" * 300),
            cell_of("users", "spr-student-5", "orgSourcedIds", "spr-high,spr-high"),
            without_rows("demographics", "spr-student-5"),
        ),
        "spr-student-5",
        (
            own("users", "spr-student-5", f"{SCRIPT} {'y' * 300}"[: VALUE_LENGTH - 1] + "…"),
            other("orgs", "spr-high"),
        ),
    ),
    "an id that no record can have is left out": (
        SPRINGFIELD,
        with_row("enrollments", sourcedId="long", classSourcedId="c" * (ID_LENGTH + 1), schoolSourcedId="spr-high",
                 userSourcedId="spr-student-1", role="student"),
        "long",
        (own("enrollments", "long"), other("orgs", "spr-high"), other("users", "spr-student-1")),
    ),
    "a row with too many cells names itself alone": (
        SPRINGFIELD,
        replaced("enrollments.csv", "spr-student-5,student,,,", "spr-student-5,student,,,,more"),
        "spr-enr-10",
        (own("enrollments", "spr-enr-10"),),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("export", "bend", "identifier", "records"), ROWS.values(), ids=ROWS)
def test_a_rejected_row_names_its_records(
    engine: sa.Engine,
    copy_export: Callable[[str], Path],
    export: str,
    bend: Bend,
    identifier: str,
    records: tuple[NamedRecord, ...],
) -> None:
    folder = copy_export(export)
    bend(folder)
    [named] = (found for (_, key), found in read_named(engine, folder).items() if key == identifier)
    assert named == records


def test_a_row_of_another_format_names_records_by_their_ids_in_the_roster(
    engine: sa.Engine, copy_export: Callable[[str], Path]
) -> None:
    clever = copy_export("shelbyville-clever")
    cell("sections", 4, "School_id", "nowhere")(clever)
    named = read_named(engine, clever, CLEVER)
    assert named["sections.csv", "102"] == (
        own("classes", "feed:section:102"),
        other("orgs", "feed:school:nowhere"),
        other("users", "feed:teacher:2"),
    )
    [consequence] = (records for (file, _), records in named.items() if file == "enrollments.csv")
    names = {other("orgs", "feed:school:20"), other("classes", "feed:section:102"), other("users", "feed:student:4")}
    assert set(consequence) == names


def test_a_row_of_a_refused_export_names_its_records(engine: sa.Engine, springfield: Path) -> None:
    repeat_row("orgs", "spr-high", name="Another")(springfield)
    with pytest.raises(RefusedExportError) as caught:
        load(engine, "feed", springfield)
    assert [found.records[0].sourcedId for found in caught.value.findings.first] == ["spr-high", "spr-high"]

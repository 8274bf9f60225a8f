"""Lines that are the same are left alone, and a run that looks at every line would have left them alone too."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from roster_service.db import tables
from roster_service.db.engine import make_engine
from roster_service.db.tables import ROSTER_TABLES, feeds, metadata, roster_state, vendor_defaults
from sync_scripts.engine.load import Options, load
from sync_scripts.engine.run_record import KNOWN
from sync_scripts.formats.tolerated import DUPLICATE_ROW
from sync_scripts.reading.rejections import RefusedExportError
from sync_scripts.staging import line_hashes
from sync_scripts.staging import stage as staging
from sync_scripts.staging.line_hashes import LineHasher, NewLines
from tests.extent import examples
from tests.postgres.loaded import load_first
from tests.sync.conftest import EXPORTS, SHELBYVILLE, SPRINGFIELD, snapshot, state
from tests.sync.export_changes import (
    Bend,
    both,
    cell_of,
    column,
    declared,
    raw,
    read_csv,
    rows_of,
    shuffled,
    with_row,
    without_file,
    without_rows,
    write_csv,
)

NEVER_HELD = Options(allow_mass_delete=True)
SEQUENCES = examples(2, 3, 200)


def count_fingerprints(engine: sa.Engine) -> int:
    with engine.connect() as connection:
        return sum(
            connection.execute(sa.select(sa.func.count(table.c.fingerprint))).scalar_one() for table in ROSTER_TABLES
        )


def distrust(engine: sa.Engine) -> None:
    with engine.begin() as connection:
        connection.execute(sa.update(feeds).values(fingerprinted=False, last_digest=None))


def distrust_digest(engine: sa.Engine) -> None:
    with engine.begin() as connection:
        connection.execute(sa.update(feeds).values(last_digest=None))


# --- one night after another ---------------------------------------------------------------------------------------

LEFT_ALONE: dict[str, Bend] = {
    "the order of the rows": shuffled("enrollments"),
    "a column that is not read": column("users", "dateLastModified", "2026-11-21T00:00:00.000Z"),
    "a status that bulk files need not have": column("classes", "status", "active"),
    "flags in another spelling": raw("users.csv", lambda data: data.replace(b",true,", b",TRUE,")),
}


@pytest.mark.parametrize("bend", LEFT_ALONE.values(), ids=LEFT_ALONE)
def test_what_says_the_same_is_left_alone(engine: sa.Engine, springfield: Path, bend: Bend) -> None:
    load_first(engine, "feed", springfield)
    before = state(engine)
    for _ in range(2):
        bend(springfield)
        assert load(engine, "feed", springfield).outcome == "unchanged"
        assert state(engine) == before


def test_a_rejected_row_is_rejected_again(engine: sa.Engine, springfield: Path) -> None:
    """Also where its text is as it was when it was good: the student it names has gone, and is purged meanwhile."""
    load_first(engine, "feed", springfield)
    without_rows("users", "spr-student-5")(springfield)
    first = load(engine, "feed", springfield)
    again = load(engine, "feed", springfield)
    assert first.rejected == again.rejected > 0
    assert str(first.findings) == str(again.findings)


def test_a_row_falls_when_what_it_names_becomes_something_else(engine: sa.Engine, springfield: Path) -> None:
    load_first(engine, "feed", springfield)
    cell_of("orgs", "spr-high", "type", "department")(springfield)
    report = load(engine, "feed", springfield)
    assert "must name a row of orgs.csv of type school" in str(report.findings)


def test_a_repeated_row_is_found_among_rows_that_are_known(engine: sa.Engine, springfield: Path) -> None:
    load_first(engine, "feed", springfield)
    rows_of("enrollments", lambda rows: rows.append(rows[1]))(springfield)
    report = load(engine, "feed", springfield)
    assert report.outcome == "unchanged"
    assert any(f"in 1 row (line 19), {DUPLICATE_ROW.taken}" in notice for notice in report.notices)


def test_an_id_of_a_known_row_is_found_in_another(engine: sa.Engine, springfield: Path) -> None:
    load_first(engine, "feed", springfield)
    before = state(engine)
    rows_of("demographics", lambda rows: rows.append([*rows[1][:4], "male", *rows[1][5:]]))(springfield)
    for _ in range(2):
        report = load(engine, "feed", springfield)
        assert (report.rejected, "stands in more than one row" in str(report.findings)) == (2, True)
        assert state(engine) == before


def test_a_new_enrollment_gives_a_known_user_a_role(engine: sa.Engine, springfield: Path) -> None:
    load_first(engine, "feed", springfield)
    before = snapshot(engine, tables.users)["spr-student-1"]
    row = {"sourcedId": "new", "classSourcedId": "spr-class-chem-1", "userSourcedId": "spr-student-1"}
    with_row("enrollments", **row, schoolSourcedId="spr-high", role="student")(springfield)
    load(engine, "feed", springfield)
    roles = [key for key, it in snapshot(engine, tables.user_roles).items() if it["origin"] == "enrollment"]
    after = snapshot(engine, tables.users)["spr-student-1"]
    assert any(user == "spr-student-1" for user, _ in roles)
    assert after["date_last_modified"] > before["date_last_modified"]


def test_a_stored_role_that_does_not_follow_from_the_enrollment_is_replaced_and_its_user_stamped(
    engine: sa.Engine, springfield: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the next run that looks at all rows, such as the first one by other rules."""
    load_first(engine, "feed", springfield)
    stored = snapshot(engine, tables.user_roles)
    with engine.begin() as connection:
        others = sa.update(tables.user_roles).where(tables.user_roles.c.origin == "enrollment")
        connection.execute(others.where(tables.user_roles.c.user_id != "spr-proctor@1").values(role="aide"))
    changed = {user for (user, _), it in stored.items() if it["origin"] == "enrollment"} - {"spr-proctor@1"}
    monkeypatch.setattr(line_hashes, "RULES", line_hashes.RULES + 1)
    report = load(engine, "feed", springfield)
    assert snapshot(engine, tables.user_roles) == stored
    assert changed
    assert report.counts["users"].changed == len(changed)
    users = snapshot(engine, tables.users)
    assert {key for key, it in users.items() if it["date_last_modified"] == report.stamp} == changed


def test_a_run_that_does_not_say_everything_takes_the_trust_away(engine: sa.Engine, springfield: Path) -> None:
    def read_trust() -> Any:
        with engine.connect() as connection:
            return connection.scalar(sa.select(feeds.c.fingerprinted))

    def set_mode(mode: str) -> None:
        rows_of("manifest", lambda rows: [row.__setitem__(1, mode) for row in rows if row[0] == "file.users"])(
            springfield
        )

    load(engine, "feed", springfield)
    assert read_trust() is True
    set_mode("delta")
    load(engine, "feed", springfield)
    assert read_trust() is False
    set_mode("bulk")
    load(engine, "feed", springfield)
    assert read_trust() is True
    assert count_fingerprints(engine) == sum(len(snapshot(engine, table)) for table in ROSTER_TABLES)


def test_an_export_that_is_known_is_not_read_again(engine: sa.Engine, springfield: Path) -> None:
    first = load_first(engine, "feed", springfield)
    again = load(engine, "feed", springfield)
    assert KNOWN in again.notices
    assert {name: count.unchanged for name, count in again.counts.items()} == {
        name: count.added for name, count in first.counts.items()
    }


def test_of_a_file_that_a_known_export_leaves_out_nothing_is_reported(engine: sa.Engine, springfield: Path) -> None:
    load_first(engine, "feed", springfield)
    both(declared("demographics", "absent"), without_file("demographics.csv"))(springfield)
    first, again = load(engine, "feed", springfield), load(engine, "feed", springfield)
    assert KNOWN in again.notices
    assert again.counts == first.counts


UNKNOWN: dict[str, Bend] = {
    "another byte": raw("users.csv", lambda data: data.replace(b"\n", b"\r\n")),
    "another mode": rows_of("manifest", lambda rows: [it.__setitem__(1, "delta") for it in rows if "users" in it[0]]),
    "a row that is rejected": cell_of("users", "spr-student-1", "enabledUser", "x"),
}


@pytest.mark.parametrize("bend", UNKNOWN.values(), ids=UNKNOWN)
def test_an_export_that_is_not_known_is_read(engine: sa.Engine, springfield: Path, bend: Bend) -> None:
    load_first(engine, "feed", springfield)
    bend(springfield)
    assert KNOWN not in load(engine, "feed", springfield).notices


def test_an_export_with_rejected_rows_is_read_in_each_run(engine: sa.Engine, springfield: Path) -> None:
    """Though it is said that the export is the same: its rows may be rejected no more."""
    cell_of("users", "spr-student-1", "enabledUser", "x")(springfield)
    load(engine, "feed", springfield)
    again = load(engine, "feed", springfield)
    assert KNOWN in again.notices
    assert again.is_partial


# --- lines that are not staged again ---------------------------------------------------------------------------------


@pytest.fixture
def staged_lines(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[int]]:
    """How many lines of each file were staged of those whose last export is known, try by try."""
    found: dict[str, list[int]] = {}

    class CountingLines(NewLines):
        def __init__(self, lines: Any, hasher: LineHasher, known: set[int]) -> None:
            super().__init__(lines, hasher, known)
            self._staged = found.setdefault(str(hasher.seed), []) if known else []
            self._staged.append(0)

        def read(self, size: int) -> bytes:
            block = super().read(size)
            self._staged[-1] += block.count(b"\n")
            return block

    monkeypatch.setattr(staging, "NewLines", CountingLines)
    return found


USERS = len(read_csv(EXPORTS / SPRINGFIELD / "users.csv")) - 1
STAGED: dict[str, tuple[Bend, int]] = {
    "a cell": (cell_of("users", "spr-student-1", "givenName", "Somebody"), 1),
    "a cell that is not read": (column("users", "dateLastModified", "2026-11-21T00:00:00.000Z"), 0),
    "a line more": (
        with_row(
            "enrollments",
            sourcedId="new",
            classSourcedId="spr-class-math3-a",
            schoolSourcedId="spr-elementary",
            userSourcedId="spr-student-3",
            role="student",
        ),
        1,
    ),
    "a line less": (without_rows("enrollments", "spr-enr-01"), 0),
    "line ends": (raw("users.csv", lambda data: data.replace(b"\n", b"\r\n")), 0),
    "the order of the rows": (both(shuffled("enrollments"), shuffled("users")), 0),
    "a column more": (
        rows_of("users", lambda rows: [row.append("metadata.x" if row is rows[0] else "") for row in rows]),
        USERS,
    ),
}


@pytest.mark.parametrize(("bend", "lines"), STAGED.values(), ids=STAGED)
def test_only_lines_that_differ_are_staged(
    engine: sa.Engine, springfield: Path, staged_lines: dict[str, list[int]], bend: Bend, lines: int
) -> None:
    load_first(engine, "feed", springfield)
    assert not staged_lines
    bend(springfield)
    assert KNOWN not in load(engine, "feed", springfield).notices
    assert sum(sum(found) for found in staged_lines.values()) == lines
    assert all(len(found) == 1 for found in staged_lines.values())


def test_a_file_that_is_mended_is_staged_like_any_other(
    engine: sa.Engine, springfield: Path, staged_lines: dict[str, list[int]]
) -> None:
    """Its lines are known by what is left of them."""
    load_first(engine, "feed", springfield)
    before = state(engine)
    header, rows = (springfield / "users.csv").read_bytes().split(b"\n", 1)
    (springfield / "users.csv").write_bytes(header + b"\n" + rows.replace(b"\n", b",,\n"))
    report = load(engine, "feed", springfield)
    assert any("in 15 rows, empty cells beyond the last column" in notice for notice in report.notices)
    assert (report.outcome, state(engine)) == ("unchanged", before)
    assert max(staged_lines.values()) == [15, 0]


WHOLE: dict[str, tuple[Bend, Bend]] = {
    # A delta of enrollments says nothing of the others, from which roles follow too.
    "beside a delta": (
        both(),
        both(declared("enrollments", "delta"), rows_of("enrollments", lambda rows: rows.__delitem__(slice(1, None)))),
    ),
    # All of a file was refused, and it had to be mended, so that it left no records.
    "beside a file that left nothing": (
        both(
            column("enrollments", "role", "nobody"),
            raw("enrollments.csv", lambda data: data.rstrip(b"\r\n") + b",,\n"),
        ),
        both(),
    ),
}


@pytest.mark.parametrize(("before", "after"), WHOLE.values(), ids=WHOLE)
def test_roles_are_reported_of_all_users_where_a_few_do_not_do(
    engine: sa.Engine, springfield: Path, before: Bend, after: Bend
) -> None:
    before(springfield)
    load(engine, "feed", springfield, options=NEVER_HELD)
    stored = snapshot(engine, tables.user_roles)
    after(springfield)
    cell_of("users", "spr-student-1", "givenName", "Somebody")(springfield)
    assert load(engine, "feed", springfield, options=NEVER_HELD).counts["users"].changed == 1
    assert snapshot(engine, tables.user_roles) == stored


LOST: dict[str, Bend] = {
    "the user of an enrollment": without_rows("users", "spr-student-5"),
    "the class of an enrollment": without_rows("classes", "spr-class-math3-a"),
    "the course of the class of an enrollment": without_rows("courses", "spr-course-stats"),
    "the course, with another line of the class": both(
        without_rows("courses", "spr-course-stats"), cell_of("classes", "spr-class/stats@1", "title", "Stats")
    ),
    "the course, with a bad line of the class": both(
        without_rows("courses", "spr-course-stats"), cell_of("classes", "spr-class/stats@1", "classType", "x")
    ),
}


@pytest.mark.parametrize("bend", LOST.values(), ids=LOST)
def test_a_line_that_is_the_same_falls_with_what_it_names(
    engine: sa.Engine, springfield: Path, staged_lines: dict[str, list[int]], bend: Bend
) -> None:
    """It is staged after all, in a second try, and refused at its place in the file."""
    load_first(engine, "feed", springfield)
    bend(springfield)
    first = load(engine, "feed", springfield, options=NEVER_HELD)
    assert any(len(found) > 1 for found in staged_lines.values())
    distrust(engine)
    again = load(engine, "feed", springfield, options=NEVER_HELD)
    assert first.findings == again.findings
    assert first.findings.total > 0


REFUSED_OR_GONE: dict[str, Bend] = {
    "refused": cell_of("users", "spr-student-1", "enabledUser", "x"),
    "flagged as gone": cell_of("demographics", "spr-student-2", "status", "tobedeleted"),
}


@pytest.mark.parametrize("bend", REFUSED_OR_GONE.values(), ids=REFUSED_OR_GONE)
def test_a_line_that_made_no_record_is_staged_again(
    engine: sa.Engine, springfield: Path, staged_lines: dict[str, list[int]], bend: Bend
) -> None:
    load_first(engine, "feed", springfield)
    bend(springfield)
    for _ in range(2):
        load(engine, "feed", springfield)
        distrust_digest(engine)
    assert max(staged_lines.values()) == [1, 1]


def test_a_line_with_the_hash_of_another_one_is_staged(
    engine: sa.Engine, springfield: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A changed line that is taken for the line of somebody else leaves that one without a hash."""
    load_first(engine, "feed", springfield)
    cell_of("users", "spr-student-1", "givenName", "Somebody")(springfield)
    hash_lines = LineHasher.hash

    def collide(hasher: LineHasher, block: bytes) -> tuple[list[bytes], list[int]]:
        lines, hashes = hash_lines(hasher, block)
        of_id = {line.split(b",")[0]: number for line, number in zip(lines, hashes, strict=True)}
        if b"spr-student-1" in of_id and any(b"Somebody" in line for line in lines):
            hashes[list(of_id).index(b"spr-student-1")] = of_id[b"spr-student-2"]
        return lines, hashes

    monkeypatch.setattr(LineHasher, "hash", collide)
    assert load(engine, "feed", springfield).counts["users"].changed == 1
    assert snapshot(engine, tables.users)["spr-student-1"]["given_name"] == "Somebody"


# --- any sequence of nights ----------------------------------------------------------------------------------------


def mutate(folder: Path, dice: random.Random) -> None:
    """Makes one change somewhere in an export: a row goes, comes, or gets another cell; a file turns around."""
    file = dice.choice([path.stem for path in sorted(folder.glob("*.csv")) if path.stem != "manifest"])
    rows = read_csv(folder / f"{file}.csv")
    if len(rows) < 3:
        return
    line = dice.randrange(1, len(rows))
    match dice.choice(["go", "go", "cell", "cell", "cell", "bad", "come", "turn", "gone"]):
        case "go":
            del rows[line]
        case "cell":
            place = dice.randrange(1, len(rows[0]))
            rows[line][place] = dice.choice(rows[1:])[place]
        case "bad":
            rows[line][dice.randrange(1, len(rows[0]))] = dice.choice(["", "x", "no-such-id"])
        case "come":
            rows.append([f"new-{dice.randrange(5)}", *rows[line][1:]])
        case "turn":
            rows[1:] = rows[:0:-1]
        case "gone":
            rows[line][1] = "tobedeleted"
    write_csv(folder / f"{file}.csv", rows)


@pytest.fixture(scope="module")
def engines(make_database: Callable[[], str]) -> Iterator[tuple[sa.Engine, sa.Engine]]:
    """Two databases for the same nights: one that trusts its fingerprints, and one that never does."""
    made = make_engine(make_database()), make_engine(make_database())
    yield made
    for engine in made:
        engine.dispose()


def empty(engine: sa.Engine) -> None:
    names = ", ".join(table.name for table in metadata.sorted_tables if table not in (roster_state, vendor_defaults))
    with engine.begin() as connection:
        connection.execute(sa.text(f"TRUNCATE {names} RESTART IDENTITY CASCADE"))
        connection.execute(sa.update(roster_state).values(revision=0, as_of=sa.func.to_timestamp(0)))


def read_load_run(engine: sa.Engine, folder: Path) -> dict[str, Any]:
    """What a night does: what is said of it, every record without its stamp, and whose stamp is the night's."""
    try:
        report = load(engine, "feed", folder, options=NEVER_HELD)
    except RefusedExportError as error:
        return {"refused": str(error)}
    rows = {table.name: snapshot(engine, table) for table in (*ROSTER_TABLES, *tables.PART_TABLES)}
    moved = {
        (name, key) for name, it in rows.items() for key, row in it.items()
        if report.stamp is not None and row.pop("date_last_modified", None) == report.stamp
    }  # fmt: skip
    for it in rows.values():
        for row in it.values():
            row.pop("date_last_modified", None)
    return {
        "outcome": report.outcome,
        "counts": report.counts,
        "findings": report.findings,
        "rows": rows,
        "moved": moved,
    }


def _differ(one: Any, other: Any) -> Any:
    if isinstance(one, dict) and isinstance(other, dict):
        keys = [key for key in {**one, **other} if one.get(key) != other.get(key)]
        return {key: _differ(one.get(key), other.get(key)) for key in keys}
    return one, other


@settings(
    max_examples=SEQUENCES,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    deadline=None,
)
@given(
    export=st.sampled_from([SPRINGFIELD, SHELBYVILLE]),
    load_runs=st.lists(st.tuples(st.integers(0, 2**32), st.integers(1, 6)), min_size=1, max_size=4),
)
def test_every_run_ends_as_if_every_line_was_staged(
    engines: tuple[sa.Engine, sa.Engine], tmp_path: Path, export: str, load_runs: list[tuple[int, int]]
) -> None:
    trusting, distrusting = engines
    for engine in engines:
        empty(engine)
        load(engine, "feed", EXPORTS / export)
    folder = tmp_path / "night"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(EXPORTS / export, folder)
    for seed, changes in load_runs:
        dice = random.Random(seed)
        if dice.random() < 0.3:
            shutil.rmtree(folder)
            shutil.copytree(EXPORTS / export, folder)
        for _ in range(changes):
            mutate(folder, dice)
        distrust(distrusting)
        one, other = read_load_run(trusting, folder), read_load_run(distrusting, folder)
        differing = {name: _differ(one[name], other.get(name)) for name in one if one[name] != other.get(name)}
        assert not differing, differing

"""The runs of the sync as sync_runs remembers them. `rejected_rows.py` has the rows that they rejected."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, tzinfo
from typing import Any

import sqlalchemy as sa

from roster_service.db.instants import begin_day
from roster_service.db.tables import (
    ROSTER_TABLES,
    CTexts,
    feeds,
    quality_counts,
    sync_changes,
    sync_rejections,
    sync_runs,
)
from roster_service.errors import CommandError
from roster_service.feeds.feed_states import REMOVAL, REMOVAL_WORDS, find_listed_feed
from roster_service.feeds.held_runs import HELD
from roster_service.feeds.rejected_rows import names_record
from roster_service.feeds.run_outcomes import LOADED_OUTCOMES
from roster_service.feeds.sync_lock import INTERRUPTED, INTERRUPTED_WORDS, RUNNING, find_interrupted
from roster_service.roster.references import OF_PEOPLE

# The steps of a run, as progress shows them. A run without changes ends after the fifth, a run of the last export after
# the first.
STEPS = ("digest", "stage", "check", "prepare", "compare", "write", "index", "analyze", "publish")
# The types of records in reports, which are OneRoster's collections, by the names of their tables.
TYPES = {table.name: {"academic_sessions": "academicSessions"}.get(table.name, table.name) for table in ROSTER_TABLES}
# The fields of other records that have the id of a person.
REFERRING = ("agents", "userSourcedId")
# The key in the counts of a type for the records that the purge after the run removed.
PURGED = "purged"
# The mode of a file that an export did not have.
ABSENT = "absent"
# A file of fewer rows before is too small to tell whether it was cut off.
LEAST_ROWS = 10
# A file has shrunk that has so many percent of its rows before, or fewer; and one that has so few looks cut off.
SHRUNK_PERCENT, CUT_PERCENT = 80, 50
# The counts of a type in a run: records by kind of change, rejected rows, and records that a later purge removed.
COUNTS = ("added", "changed", "revived", "tombstoned", "unchanged", "rejected", PURGED)


@dataclass(frozen=True)
class Run:
    """A run of the sync. `finished`: None for a run that is running or was interrupted; `counts`: by type of record,
    records by kind of change; `rejected`: number of its rows."""

    run: int
    feed: str
    outcome: str
    started: str
    finished: str | None
    counts: dict[str, dict[str, int]]
    rejected: int
    message: str | None
    notices: list[str]


@dataclass(frozen=True)
class Cause:
    """A root cause: the rows of a file that are rejected for the same reason in the same column. `number`: from 1;
    `line`: the first of their lines; `consequences`: the number of rows rejected because they refer to these."""

    number: int
    file: str
    column: str | None
    reason: str
    rows: int
    line: int | None
    consequences: int


@dataclass(frozen=True)
class ReadFile:
    """A file of a format in an export. `mode`: `bulk`, `delta`, or `ABSENT` if the export did not have it; `rows`: that
    it had, `rejected`: those of them that were rejected; None if the run did not read it: it was as in the last run."""

    file: str
    mode: str
    rows: int | None
    rejected: int | None


@dataclass(frozen=True)
class RunDetails(Run):
    """A run with all that is stored about it, but its rejected rows. `source`: the path of the export, or what was
    given in its place; `actor`, `written`: who loaded it, and when it was written, if it is known; `stamp`: the
    dateLastModified of its changes, None if it changed nothing; `seconds`: by step, in the order of the steps; `files`:
    none for a run that was refused; `causes`: most rows first; `preview`: of a held
    run, what would vanish by school and class, and samples."""

    format: str
    source: str
    actor: str | None
    written: str | None
    stamp: str | None
    seconds: dict[str, float]
    files: list[ReadFile]
    causes: list[Cause]
    preview: dict[str, Any] | None


def list_runs(connection: sa.Connection, feed: str | None, count: int) -> list[Run]:
    """Lists all held runs, and then the latest `count` others. `feed`: only its runs. Raises CommandError for an
    unknown feed."""
    rows = _select_runs_of(connection, feed)
    interrupted = find_interrupted(connection)
    held = connection.execute(rows.where(sync_runs.c.outcome == HELD)).all()
    others = connection.execute(rows.where(sync_runs.c.outcome != HELD).limit(count)).all()
    return [Run(**_read_fields(row, interrupted)) for row in (*held, *others)]


def list_run_page(
    connection: sa.Connection, feed: str | None, outcome: str | None, count: int, offset: int
) -> list[Run]:
    """Lists `count` runs, the latest first, after the first `offset`. `feed`, `outcome`: only its runs, and those with
    it. Raises CommandError for an unknown feed."""
    rows = _select_runs_of(connection, feed).limit(count).offset(offset)
    interrupted = find_interrupted(connection)
    if outcome == INTERRUPTED:
        rows = rows.where((sync_runs.c.outcome == INTERRUPTED) | sync_runs.c.id.in_(interrupted))
    elif outcome is not None:
        rows = rows.where(sync_runs.c.outcome == outcome, sync_runs.c.id.not_in(interrupted))
    return [Run(**_read_fields(row, interrupted)) for row in connection.execute(rows)]


@dataclass(frozen=True)
class FinishedRun:
    """A finished run, for a comparison with those before it. `records`: by type, the live records of the feed after it;
    `is_good`: whether the roster is that of its export; `rows`: by file, those of its export that
    it read."""

    run: int
    outcome: str
    finished: str
    records: dict[str, int]
    rejected: int
    is_good: bool
    rows: dict[str, int]


# A removal of a feed has loaded nothing.
_IS_REMOVAL = sa.and_(sync_runs.c.outcome.in_(LOADED_OUTCOMES), sync_runs.c.source == REMOVAL)
_GOOD = (sync_runs.c.outcome.in_(LOADED_OUTCOMES), ~_IS_REMOVAL, sync_runs.c.counts != {})


def list_latest_runs(
    connection: sa.Connection, count: int, *, is_good: bool = False
) -> Mapping[str, Sequence[FinishedRun]]:
    """Returns the latest `count` finished runs of each feed, the oldest first, by the name of the feed. `is_good`: only
    those after which the roster was that of the export, and which counted it: a run of the same export counts
    nothing."""
    number = sa.func.row_number().over(partition_by=sync_runs.c.feed_id, order_by=sync_runs.c.id.desc())
    finished = sa.select(sync_runs, number.label("number")).where(sync_runs.c.finished_at.is_not(None))
    latest = (finished.where(*_GOOD) if is_good else finished).subquery()
    rows = sa.select(latest, feeds.c.name).join(feeds, feeds.c.id == latest.c.feed_id).where(latest.c.number <= count)
    found: dict[str, list[FinishedRun]] = {}
    for row in connection.execute(rows.order_by(latest.c.id)):
        found.setdefault(row.name, []).append(_make_finished(row))
    return found


def list_day_outcomes(connection: sa.Connection, first: date, zone: tzinfo | None) -> Mapping[str, Mapping[date, str]]:
    """Returns the outcome of the latest run of each day in a time zone from `first` on, by the name of the feed. A run
    before `first` is left out, and so are a day without a run, and the removal of a feed. `zone`: as for
    `describe_instant`."""
    runs = sa.select(sync_runs.c.id, sync_runs.c.outcome, sync_runs.c.started_at, feeds.c.name)
    runs = runs.join(feeds, feeds.c.id == sync_runs.c.feed_id).where(sync_runs.c.started_at >= begin_day(first, zone))
    runs = runs.where(~_IS_REMOVAL)
    interrupted = find_interrupted(connection)
    found: dict[str, dict[date, str]] = {}
    for row in connection.execute(runs.order_by(sync_runs.c.id)):
        outcome = INTERRUPTED if row.outcome == RUNNING and row.id in interrupted else row.outcome
        found.setdefault(row.name, {})[row.started_at.astimezone(zone).date()] = outcome
    return found


def list_good_runs_before(connection: sa.Connection, run: int, count: int) -> Sequence[FinishedRun]:
    """Returns the latest `count` runs of the feed of `run` before it after which the roster was that of the export,
    the latest first."""
    own = sa.select(sync_runs.c.feed_id).where(sync_runs.c.id == run).scalar_subquery()
    good = sa.select(sync_runs).where(sync_runs.c.feed_id == own, sync_runs.c.id < run, *_GOOD)
    return [_make_finished(row) for row in connection.execute(good.order_by(sync_runs.c.id.desc()).limit(count))]


def explain_shrunk(files: Sequence[ReadFile], good: Sequence[FinishedRun]) -> Iterator[str]:
    """Yields a sentence for each file of an export that has a fifth less rows than before, or that is not there any
    more. One looks cut off if it has lost half of its rows or more, and another file has lost few: where a school is
    missing, all files have lost rows. `files`: of the run; `good`: the good runs before it, the latest first; one that
    did not read a file found it as the run before it had."""
    before = {file.file: next((run for run in good if file.file in run.rows), None) for file in files}
    # In percent of the rows before. A run reads no file that is as it was.
    left = {
        file.file: 100 if file.rows is None else 100 * file.rows / run.rows[file.file]
        for file in files
        if file.mode == "bulk" and (run := before[file.file]) is not None
    }
    is_other_whole = any(percent > SHRUNK_PERCENT for percent in left.values())
    for file in files:
        run = before[file.file]
        if run is None or run.rows[file.file] < LEAST_ROWS:
            continue
        earlier = f"had {run.rows[file.file]:,}"
        if file.mode == ABSENT:
            yield f"{file.file} is not in the export, and {earlier} rows in run {run.run}"
        elif left.get(file.file, 100) <= SHRUNK_PERCENT:
            is_cut = left[file.file] <= CUT_PERCENT and is_other_whole
            looks = ": the export looks cut off" if is_cut else ""
            yield f"{file.file} has {file.rows:,} rows, and {earlier} in run {run.run}{looks}"


def find_run_under_way(connection: sa.Connection, *about: sa.ColumnElement[bool]) -> int | None:
    """Returns the number of the run that is under way and for which the conditions hold, if there is one."""
    return next(list_runs_under_way(connection, *about), None)


def list_runs_under_way(connection: sa.Connection, *about: sa.ColumnElement[bool]) -> Iterator[int]:
    """Yields the numbers of the runs that are under way and for which the conditions hold."""
    running = sa.select(sync_runs.c.id).where(sync_runs.c.outcome == RUNNING, *about)
    dead = find_interrupted(connection)
    yield from (run for run in connection.scalars(running) if run not in dead)


def _make_finished(row: sa.Row[Any]) -> FinishedRun:
    finished = row.finished_at.isoformat(timespec="seconds")
    records = count_live(row.counts)
    rows = {file["file"]: file["rows"] for file in row.files if file["rows"]}
    return FinishedRun(row.id, row.outcome, finished, records, row.rejected, row.outcome in LOADED_OUTCOMES, rows)


def count_live(counts: Mapping[str, Mapping[str, int]]) -> dict[str, int]:
    """Returns the live records after a run by type. `counts`: of the run."""
    live = ("added", "changed", "revived", "unchanged")
    return {name: sum(of_type.get(kind, 0) for kind in live) for name, of_type in counts.items()}


def find_run(connection: sa.Connection, run: int) -> RunDetails:
    """Returns a run. Raises CommandError if there is none with this number."""
    interrupted = find_interrupted(connection)
    row = connection.execute(_select_runs().where(sync_runs.c.id == run)).one_or_none()
    if row is None:
        raise CommandError(f"there is no run {run}; `roster sync list` shows the runs")
    causes = [Cause(number, **cause) for number, cause in enumerate(row.causes, 1)]
    return RunDetails(
        **_read_fields(row, interrupted),
        format=row.format,
        source=row.source,
        actor=row.actor,
        written=row.written_at and row.written_at.isoformat(timespec="seconds"),
        # Until it ends, a run has the stamp of changes that it may still take back.
        stamp=row.stamp and row.finished_at and row.stamp.isoformat(timespec="milliseconds"),
        seconds=_sort(row.seconds, STEPS),
        files=[ReadFile(**file) for file in row.files],
        causes=sorted(causes, key=lambda cause: -cause.rows - cause.consequences),
        preview=row.preview,
    )


def delete_run_values(connection: sa.Connection, feed_ids: Sequence[int]) -> None:
    """Deletes all that the runs of feeds have stored of records: rejected rows, changes, previews, and the counts of
    data quality. The counts of runs and their causes stay."""
    own = sa.select(sync_runs.c.id).where(sync_runs.c.feed_id.in_(feed_ids))
    for table in (sync_rejections, sync_changes):
        connection.execute(sa.delete(table).where(table.c.run_id.in_(own)))
    connection.execute(sa.delete(quality_counts).where(quality_counts.c.feed_id.in_(feed_ids)))
    forgotten = {"has_changes": False, "preview": None}
    connection.execute(sa.update(sync_runs).where(sync_runs.c.feed_id.in_(feed_ids)).values(forgotten))


def delete_person_values(connection: sa.Connection, ids: Sequence[str], naming: str) -> None:
    """Deletes what the runs have stored of a person: the rejected rows, the changes and the previews that name the
    person. What names others alone stays, as do the counts of runs and their causes. `ids`: of the person, and then of
    the person's enrollments; `naming`: the pattern of the texts that name the person, also inside JSON."""

    def names(*columns: sa.Column[Any]) -> sa.ColumnElement[bool]:
        texts = (sa.func.coalesce(sa.cast(column, sa.Text), "") for column in columns)
        return sa.func.concat_ws(" ", *texts, type_=sa.Text).regexp_match(naming, flags="i")

    def quotes(value: sa.ColumnElement[Any], sourced_id: str) -> sa.ColumnElement[bool]:
        return sa.func.strpos(sa.cast(value, sa.Text), json.dumps(sourced_id, ensure_ascii=False)) > 0

    rejected, changed = sync_rejections.c, sync_changes.c
    about = [names_record(TYPES[table.name], ids[0]) for table in OF_PEOPLE]
    values = names(rejected.value, rejected.sourced_id, rejected.records)
    connection.execute(sa.delete(sync_rejections).where(sa.or_(*about, values)))
    about = [quotes(sa.func.jsonb_extract_path(changed.fields, name), ids[0]) for name in REFERRING]
    about.append(changed.sourced_id == sa.any_(sa.literal(list(ids), CTexts)))
    # An enrollment that the purge has deleted is in no list of ids, and its own may be made from that of the person.
    feed, _, made = ids[0].partition(":")
    if own := made.partition(":")[2]:
        about.append(changed.sourced_id.regexp_match(f"^{re.escape(feed)}:.*:{re.escape(own)}(:|$)"))
    connection.execute(sa.delete(sync_changes).where(sa.or_(*about, names(changed.fields))))
    about = [*(quotes(sync_runs.c.preview, own) for own in ids), names(sync_runs.c.preview)]
    connection.execute(sa.update(sync_runs).where(sa.or_(*about)).values(preview=None))


def _select_runs() -> sa.Select[Any]:
    return sa.select(sync_runs, feeds.c.name).join(feeds, feeds.c.id == sync_runs.c.feed_id)


def _select_runs_of(connection: sa.Connection, feed: str | None) -> sa.Select[Any]:
    """Selects the runs of a feed, or all (None), the latest first. Raises CommandError for an unknown feed."""
    rows = _select_runs().order_by(sync_runs.c.id.desc())
    return rows if feed is None else rows.where(sync_runs.c.feed_id == find_listed_feed(connection, feed).id)


def _sort(found: dict[str, Any], order: tuple[str, ...]) -> dict[str, Any]:
    """A stored object in this order; the database does not keep the order of its keys."""
    return {key: found[key] for key in (*order, *sorted(found.keys() - set(order))) if key in found}


def _read_fields(row: sa.Row[Any], interrupted: frozenset[int]) -> dict[str, Any]:
    """The fields of `Run`. `interrupted`: the ids of the runs that are interrupted if they still seem to be running."""
    is_interrupted = row.outcome == RUNNING and row.id in interrupted
    does = f"it takes run {row.undoes} back" if row.undoes else None
    if row.source == REMOVAL and row.outcome in LOADED_OUTCOMES:
        does = REMOVAL_WORDS
    return {
        "run": row.id,
        "feed": row.name,
        "outcome": INTERRUPTED if is_interrupted else row.outcome,
        "started": row.started_at.isoformat(timespec="seconds"),
        "finished": row.finished_at and row.finished_at.isoformat(timespec="seconds"),
        "counts": {name: _sort(counts, COUNTS) for name, counts in _sort(row.counts, tuple(TYPES.values())).items()},
        "rejected": row.rejected,
        "message": INTERRUPTED_WORDS if is_interrupted else row.message or does,
        "notices": row.notices,
    }

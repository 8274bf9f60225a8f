"""Converts the cells of staged rows to values, and makes the courses that an export lacks.

The sync checks the files of the export first, because they have the lines and columns that a person can correct, and
converts only rows that pass. After the conversion, the engine handles only OneRoster.

Several rows may describe one record, and the id of a record may depend on a bad cell. So each format selects the
stored records that its rejected rows may have described. These records keep their last good state, and the conversion
makes the other records from the remaining rows.

OneRoster requires a course of each class, and a SIS without courses leaves the file out. The courses that the feed has
already stay as they are, so a run without the file changes none of them. A class that has one of an export keeps it, if
its row names none, or one that no export had: a made one would replace it in silence.
"""

from __future__ import annotations

import typing
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB

from roster_service.db.tables import CText, academic_sessions, classes, courses, orgs
from sync_scripts.formats.cells import UNREAD, is_blank
from sync_scripts.formats.conversion import make_id
from sync_scripts.formats.model import (
    HASH,
    LINE,
    METADATA,
    REJECTED,
    ConvertedFile,
    CsvFile,
    Format,
    Staged,
    StagedFile,
)
from sync_scripts.formats.tolerated import (
    KEPT_COURSE,
    MADE_IDS,
    MADE_RECORDS,
    NO_COURSES,
    NO_DISTRICT,
    NO_PLACE,
    UNREAD_FILE,
    Notice,
    Tolerated,
)
from sync_scripts.reading.rejections import Cause, Findings, Rejection
from sync_scripts.staging.retained import Retention, is_active
from sync_scripts.staging.temporary import (
    analyze_temporary,
    count_lines,
    create_temporary,
    insert_rows,
    make_quarantine,
)

# The records that sections name in formats without a file of them.
MADE_OF_SECTIONS = frozenset({courses, academic_sessions})
Found = typing.TypeVar("Found", Rejection, Cause)


@dataclass(frozen=True)
class Conversion:
    """The converted files, by name, and by the same names the ids of retained records, as rejected rows."""

    files: Staged
    rejected: Mapping[str, StagedFile]


def convert(connection: sa.Connection, form: Format, source: Retention) -> Conversion:
    """Converts the files of an export, after their checks, into the files that the format declares. `source`: the
    retention of the export's own files, without their rejected rows."""
    possible = [converted for converted in form.converted if all(name in source.staged for name in converted.files)]
    files = {converted.file.name: _convert_file(connection, converted, source) for converted in possible}
    kept = {converted.file.name: list(_list_kept(converted, source)) for converted in possible}
    if not any(kept.values()):
        return Conversion(files, {})
    rejected = {name: _quarantine_retained(connection, files[name], ids) for name, ids in kept.items()}
    retention = replace(source, staged=files, rejected=rejected)
    for file in files.values():
        _delete_retained_rows(connection, file, retention)
    return Conversion(files, rejected)


def _list_rows(source: Retention) -> Staged:
    """What `ConvertedFile.rows` takes."""
    return {**source.staged, **{REJECTED + name: rejected for name, rejected in source.rejected.items()}}


def _convert_file(connection: sa.Connection, converted: ConvertedFile, source: Retention) -> StagedFile:
    file = converted.file
    rows = converted.rows(_list_rows(source), source.feed_name).subquery()
    columns: list[sa.ColumnElement[Any]] = [
        sa.column(LINE, sa.BigInteger),
        *(sa.column(header, CText) for header in file.headers),
        *([sa.column(METADATA, JSONB)] if METADATA in rows.c else []),
    ]
    table = create_temporary(connection, f"converted_{file.name}", columns)
    read = [column.name for column in columns[1:] if column.name in rows.c]
    numbered = sa.select(sa.func.row_number().over(), *(rows.c[name] for name in read))
    connection.execute(table.insert().from_select([LINE, *read], numbered))
    analyze_temporary(connection, table)
    return StagedFile(file, table, ())


def _list_kept(converted: ConvertedFile, source: Retention) -> Iterator[sa.Select[Any]]:
    """The ids of the records that the rejected rows of the export may have described, and of those of a file that it
    lacks."""
    yield from converted.retained(source.rejected, source.feed_name)
    yield from converted.left(_list_rows(source), source.feed_name)


def _quarantine_retained(connection: sa.Connection, file: StagedFile, kept: Iterable[sa.Select[Any]]) -> StagedFile:
    """The ids of the kept records, as a quarantine of the converted file. These ids come from no line of that file, so
    their line is NULL."""
    quarantine = make_quarantine(connection, file)
    table = typing.cast(sa.Table, quarantine.table)
    for rows in kept:
        insert_rows(connection, table, rows)
    analyze_temporary(connection, table)
    return quarantine


def _delete_retained_rows(connection: sa.Connection, file: StagedFile, retention: Retention) -> None:
    """Deletes the converted rows whose record keeps its last good state."""
    retained = retention.find_retained(file.file)
    if retained is not None:
        table = typing.cast(sa.Table, file.table)
        named = sa.exists().where(retained["sourcedId"] == table.c.sourcedId)
        connection.execute(table.delete().where(named))


def list_remarks(
    connection: sa.Connection, form: Format, source: Retention, conversion: Conversion
) -> Iterator[Notice]:
    """The notices about what the `conversion` of the export's own files makes up or leaves out. `source`: as in
    `convert`."""
    if form.makes_district:
        schools = next(file.file_name for file in form.files if file.table is orgs)
        yield Tolerated(schools, NO_DISTRICT, found=f"the feed itself is the district {source.feed_name}")
    yield from _list_made(connection, form, source, conversion)
    for remark in form.remarks:
        if remark.file in source.staged:
            file = source.staged[remark.file]
            count, line = count_lines(connection, remark.rows(file).subquery())
            if count:
                yield Tolerated(file.file.file_name, remark.deviation, remark.header, count, line=line)
    yield from _list_unread(connection, form, source, conversion)
    for file in source.staged.values():
        headers = [cell.header for cell in file.file.cells if cell.kind is UNREAD]
        counts = sa.select(sa.func.count(), *(sa.func.count(file[header]) for header in headers)).select_from(
            file.table
        )
        _, *filled = connection.execute(counts).one()
        if left_out := [header for header, count in zip(headers, filled, strict=True) if count]:
            yield Tolerated(file.file.file_name, NO_PLACE, found=", ".join(left_out))


def _list_made(connection: sa.Connection, form: Format, source: Retention, conversion: Conversion) -> Iterator[Notice]:
    """The notices about records and ids that no file of the export has."""
    if made := [file.file.file_name for file in source.staged.values() if file.file.makes_ids]:
        yield Tolerated(", ".join(made), MADE_IDS, found=f"those of the roster begin with {source.feed_name}:")
    for name, file in conversion.files.items():
        is_made = file.file.table in MADE_OF_SECTIONS - {file.table for file in form.files}
        if is_made and (count := _count(connection, file.table)):
            yield Tolerated(_list_sources(form)[file.file.file_name], MADE_RECORDS, found=f"{count:,} {name}")


def _list_unread(
    connection: sa.Connection, form: Format, source: Retention, conversion: Conversion
) -> Iterator[Notice]:
    """The notices about files of which nothing is made, because the export lacks another one."""
    lacking = (converted for converted in form.converted if converted.file.name not in conversion.files)
    for converted in lacking:
        for file in (file for file in source.staged.values() if file.file.table is converted.file.table):
            if count := _count(connection, file.table):
                absent = ", ".join(f"{name}.csv" for name in converted.files if name not in source.staged)
                yield Tolerated(file.file.file_name, UNREAD_FILE, count=count, found=f"without {absent}")


def _count(connection: sa.Connection, rows: sa.FromClause) -> int:
    return connection.execute(sa.select(sa.func.count()).select_from(rows)).scalar_one()


def _list_sources(form: Format) -> dict[str, str]:
    """The names of the files of the export that a converted file is made of, by the name of the converted one."""
    return {
        converted.file.file_name: ", ".join(f"{name}.csv" for name in converted.files) for converted in form.converted
    }


def name_source_notices(notices: Iterable[Notice], form: Format) -> Iterator[Notice]:
    """The notices about converted rows, with the names of the export's files instead and without lines."""
    sources = _list_sources(form)
    for notice in notices:
        yield notice if isinstance(notice, str) else replace(notice, file=sources[notice.file], column=None, line=None)


def name_sources(findings: Findings, form: Format) -> Findings:
    """The findings about converted rows, with the names of the export's files instead and without lines: each line of
    the export has passed its own checks."""
    sources = _list_sources(form)

    def name(found: Found) -> Found:
        reason = f"a record that is made of its rows is rejected: {found.column} {found.reason}"
        return replace(found, file=sources[found.file], reason=reason, line=None, column=None)

    return replace(findings, first=tuple(map(name, findings.first)), causes=tuple(map(name, findings.causes)))


def _keep_courses(connection: sa.Connection, feed_id: int, file: StagedFile) -> int:
    """Gives each staged class that names no exported course the one that the stored class has, if that was exported.
    Returns the number of these classes."""
    named = courses.alias()
    is_there = sa.exists().where(named.c.sourced_id == file["courseSourcedId"], *_list_exported(named, feed_id))
    of_class = (classes.c.sourced_id == file["sourcedId"], is_active(classes, feed_id))
    of_course = (courses.c.sourced_id == classes.c.course_id, *_list_exported(courses, feed_id))
    kept = sa.update(typing.cast(sa.Table, file.table)).values(
        # Without its hash, the next run looks at the row again: its course may be there by then.
        {"courseSourcedId": classes.c.course_id, HASH: sa.null()}
    )
    return connection.execute(kept.where(file.live, ~is_there, *of_class, *of_course)).rowcount


def _list_exported(stored: sa.FromClause, feed_id: int) -> tuple[sa.ColumnElement[bool], ...]:
    """The conditions that a course is active and was in an export: it has a line, or more than a made one has."""
    more = ("fingerprint", "school_year_id", "course_code", "grades", "subjects", "subject_codes")
    return is_active(stored, feed_id), sa.or_(*(stored.c[name].is_not(None) for name in more))


def make_courses(
    connection: sa.Connection, feed_id: int, feed_name: str, file: CsvFile, staged: Staged
) -> tuple[StagedFile, tuple[Notice, ...]]:
    """(rows of `courses.csv`, the notices about them). `file`: the declaration of `courses.csv`; `staged`: the
    normalized files. Gives each class without a course the id of its own."""
    classes, orgs = staged["classes"], staged["orgs"].alias()
    kept = _keep_courses(connection, feed_id, classes)
    own_id = make_id(feed_name, "class-course", classes["sourcedId"])
    without = is_blank(classes["courseSourcedId"])
    connection.execute(sa.update(typing.cast(sa.Table, classes.table)).where(without).values(courseSourcedId=own_id))
    columns: list[sa.ColumnElement[Any]] = [
        sa.column(LINE, sa.BigInteger),
        *(sa.column(header, CText) for header in file.headers),
    ]
    table = create_temporary(connection, "made_courses", columns)
    named, school, twin = classes["courseSourcedId"], classes["schoolSourcedId"], classes.alias()
    is_doubled = sa.exists().where(twin["sourcedId"] == classes["sourcedId"], twin.line_hash != classes.line_hash)
    rows = (
        sa.select(sa.func.min(classes.line), named, sa.func.min(classes["title"]), sa.func.min(school))
        .where(
            classes.live,
            # The checks reject a class without a school by itself, and one of two rows.
            sa.exists().where(orgs["sourcedId"] == school, orgs.live),
            ~is_blank(classes["title"]),
            ~is_doubled,
            ~sa.exists().where(courses.c.sourced_id == named, is_active(courses, feed_id)),
        )
        .group_by(named)
    )
    count = connection.execute(table.insert().from_select([LINE, "sourcedId", "title", "orgSourcedId"], rows)).rowcount
    analyze_temporary(connection, table)
    notices = [Tolerated(file.file_name, NO_COURSES, found=f"{count:,} made")]
    if kept:
        notices.append(Tolerated(classes.file.file_name, KEPT_COURSE, "courseSourcedId", kept))
    return StagedFile(file, table, ()), tuple(notices)

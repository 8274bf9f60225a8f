"""The conversion of a Clever export to OneRoster: one SELECT per file of OneRoster, with its headers.

An export covers one district and has no row for it, so the feed itself is the district, under its name. The ids are
unique only within one file of one export; `make_id` makes them unique in the service.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import distinct_on

from roster_service.db.tables import CText
from sync_scripts.formats import conversion
from sync_scripts.formats.cells import DAY, is_blank
from sync_scripts.formats.model import LINE, Staged, StagedFile
from sync_scripts.formats.tolerated import SQLText

TEACHERS = ("Teacher_id", *(f"Teacher_{number}_id" for number in range(2, 11)))
TERM = ("Term_name", "Term_start", "Term_end")
HOMEROOM = "homeroom/advisory"


def _blank_to_null(cell: SQLText) -> SQLText:
    """The cell, or NULL where it holds only spaces."""
    return sa.case((~is_blank(cell), cell))


def _pick_first_filled(file: StagedFile, *headers: str) -> SQLText:
    return sa.func.coalesce(*(_blank_to_null(file[header]) for header in headers), type_=CText)


# --- orgs, sessions, courses, classes ---------------------------------------------------------------------------


def select_orgs(staged: Staged, feed: str) -> sa.Select[Any]:
    """The rows of orgs.csv: the district and its schools."""
    schools, district = staged["schools"], conversion.make_district(feed)
    parent = sa.null().label("parentSourcedId")
    top = sa.select(*conversion.label_cells(district), parent, conversion.NO_METADATA)
    below = sa.select(
        conversion.make_id(feed, "school", schools["School_id"]),
        schools["School_name"],
        conversion.to_literal("school"),
        schools["School_number"],
        district["sourcedId"],
        schools.metadata,
    )
    return conversion.unite((top, below))


def _list_terms(staged: Staged, feed: str) -> sa.Subquery:
    """(line of the section, id, title, first day, last day) of every section that names a complete term. Clever has no
    ids of terms, so the id is made from the content of the term. It is a digest, because it must fit into a comma
    list."""
    sections = staged["sections"]
    title = _blank_to_null(sections["Term_name"])
    begin, end = sections["Term_start"], sections["Term_end"]
    digest = sa.func.md5(title.concat("/").concat(begin).concat("/").concat(end), type_=CText)
    good = (DAY.check(begin), DAY.check(end)) if DAY.check else ()
    return (
        sa.select(
            sections.line.label(LINE),
            conversion.make_id(feed, "term", digest).label("sourcedId"),
            title.label("title"),
            begin.label("startDate"),
            end.label("endDate"),
        )
        .where(title.is_not(None), *good)
        .subquery()
    )


def select_sessions(staged: Staged, feed: str) -> sa.Select[Any]:
    """The rows of academicSessions.csv: the terms that the sections name."""
    terms = _list_terms(staged, feed)
    return sa.select(
        terms.c.sourcedId,
        terms.c.title,
        conversion.to_literal("term").label("type"),
        terms.c.startDate,
        terms.c.endDate,
        conversion.find_school_year(terms.c.endDate).label("schoolYear"),
    ).distinct()


def _make_course_id(sections: StagedFile, feed: str) -> sa.ColumnElement[str]:
    """The id of a section's course. A section without the number and the name of a course gets a course of its own."""
    named = conversion.make_course_id(
        feed, *(sections[header] for header in ("School_id", "Course_number", "Course_name"))
    )
    return sa.func.coalesce(named, conversion.make_id(feed, "course-section", sections["Section_id"]), type_=CText)


def select_courses(staged: Staged, feed: str) -> sa.Select[Any]:
    """The rows of courses.csv: the courses that the sections name, each at its school."""
    sections = staged["sections"]
    title = _pick_first_filled(sections, "Course_name", "Course_number", "Name", "Section_id")
    return conversion.choose_least(
        {
            "sourcedId": _make_course_id(sections, feed),
            "title": title,
            "courseCode": sections["Course_number"],
            "orgSourcedId": conversion.make_id(feed, "school", sections["School_id"]),
        }
    )


def select_classes(staged: Staged, feed: str) -> sa.Select[Any]:
    """The rows of classes.csv: the sections."""
    sections = staged["sections"]
    terms = _list_terms(staged, feed)
    title = _pick_first_filled(sections, "Name", "Course_name", "Section_number", "Section_id")
    kind = sa.case((sa.func.lower(sections["Subject"]) == HOMEROOM, "homeroom"), else_="scheduled")
    return sa.select(
        conversion.make_id(feed, "section", sections["Section_id"]).label("sourcedId"),
        title.label("title"),
        sections["Grade"].label("grades"),
        _make_course_id(sections, feed).label("courseSourcedId"),
        sections["Section_number"].label("classCode"),
        kind.label("classType"),
        conversion.make_id(feed, "school", sections["School_id"]).label("schoolSourcedId"),
        terms.c.sourcedId.label("termSourcedIds"),
        sections["Subject"].label("subjects"),
        sections["Period"].label("periods"),
    ).select_from(sections.table.outerjoin(terms, terms.c.line == sections.line))


def select_enrollments(staged: Staged, feed: str) -> sa.Select[Any]:
    """The rows of enrollments.csv: the students of the sections, and their teachers. The first teacher whom a section
    names is the primary one."""
    seats, sections = staged["enrollments"], staged["sections"]
    selects = [
        sa.select(
            conversion.make_id(feed, "enrollment", seats["Section_id"], seats["Student_id"]).label("sourcedId"),
            conversion.make_id(feed, "section", seats["Section_id"]).label("classSourcedId"),
            conversion.make_id(feed, "school", seats["School_id"]).label("schoolSourcedId"),
            conversion.make_id(feed, "student", seats["Student_id"]).label("userSourcedId"),
            conversion.to_literal("student").label("role"),
            sa.cast(sa.null(), CText).label("primary"),
        )
    ]
    for number, header in enumerate(TEACHERS):
        is_first = sa.and_(sa.true(), *(sections[former].is_(None) for former in TEACHERS[:number]))
        selects.append(
            sa.select(
                conversion.make_id(feed, "teaching", sections["Section_id"], sections[header]),
                conversion.make_id(feed, "section", sections["Section_id"]),
                conversion.make_id(feed, "school", sections["School_id"]),
                conversion.make_id(feed, "teacher", sections[header]),
                conversion.to_literal("teacher"),
                sa.case((is_first, conversion.to_literal("true")), else_=conversion.to_literal("false")),
            ).where(sections[header].is_not(None))
        )
    rows = sa.union_all(*selects).subquery()
    known = sa.select(*rows.c).ext(distinct_on(rows.c.sourcedId)).where(rows.c.sourcedId.is_not(None))
    # A teacher who is named twice is primary if one of the two places is the first. The order of the rows says nothing.
    return known.order_by(rows.c.sourcedId, rows.c.primary.desc(), rows.c.schoolSourcedId)

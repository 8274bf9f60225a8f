"""What the conversions of other formats to OneRoster share: ids that are unique in the service, made from ids that are
unique in one file of one export, and pieces of SELECTs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB, distinct_on

from roster_service.db import tables
from roster_service.db.tables import CText
from sync_scripts.formats.cells import is_blank
from sync_scripts.formats.model import METADATA, ConvertedFile, ConvertedRows, RetainedRows, Staged, StagedFile
from sync_scripts.formats.oneroster import ONEROSTER_1_2
from sync_scripts.formats.tolerated import SQLText

FIRST_MONTH_OF_SCHOOL = "07"
# Of a record that no row of its own describes.
NO_METADATA = sa.cast(sa.null(), JSONB).label(METADATA)
OPTIONAL = ("username", "termSourcedIds")
# The org type, and the kind in the id of a district that stands for a feed.
DISTRICT = "district"


def make_district(feed_name: str) -> dict[str, sa.ColumnElement[str]]:
    """The cells of the org, by their headers, that makes the feed itself a district."""
    name = sa.literal(feed_name, CText)
    return {
        "sourcedId": make_id(feed_name, DISTRICT),
        "name": name,
        "type": sa.literal(DISTRICT, CText),
        "identifier": name,
    }


def convert_to(name: str, select_rows: ConvertedRows, retain: RetainedRows, *files: str) -> ConvertedFile:
    """The OneRoster file `name`, made of these files of the export. Other formats require neither a user name nor a
    term."""
    file = ONEROSTER_1_2.find_file(name)
    cells = (replace(cell, required=cell.required and cell.header not in OPTIONAL) for cell in file.cells)
    return ConvertedFile(replace(file, cells=tuple(cells)), files, select_rows, retain)


def make_id(feed_name: str, kind: str, *cells: sa.ColumnElement[str]) -> sa.ColumnElement[str]:
    """An id that is unique among all feeds and types, from ids that are unique in one file of one export. It is NULL
    where one of `cells` is."""
    made: sa.ColumnElement[str] = sa.literal(f"{feed_name}:{kind}", CText)
    for cell in cells:
        # An escaped colon, so that a colon inside an id does not look like one between two ids.
        escaped = sa.func.replace(sa.func.replace(cell, "%", "%25", type_=CText), ":", "%3A", type_=CText)
        made = made.concat(":").concat(escaped)
    return made


def identify_made(kind: str) -> dict[str, Any]:
    """The fields of a file whose records have ids that are made from this kind and the key of a row."""
    return {"identify": lambda feed, key: make_id(feed, kind, key), "makes_ids": True}


def make_course_id(
    feed_name: str, school: sa.ColumnElement[str], number: sa.ColumnElement[str], name: sa.ColumnElement[str]
) -> sa.ColumnElement[str]:
    """The id of a course that only its sections name; NULL where `number` and `name` are blank.

    Schools and departments use a number again for another course, so neither part alone makes the id. The digest fits
    into an id, whatever the length of the name."""
    parts = [sa.func.coalesce(sa.func.btrim(part), "", type_=CText) for part in (number, name)]
    digest = sa.func.md5(make_id(feed_name, "course", *parts), type_=CText)
    is_blank = sa.and_(*(part == "" for part in parts))
    return sa.case((~is_blank, make_id(feed_name, "course", school, digest)))


def find_school_year(last_day: SQLText) -> SQLText:
    """The school year of a term with this last day: the year in which it ends."""
    year, month = sa.func.left(last_day, 4), sa.func.substr(last_day, 6, 2, type_=CText)
    next_year = sa.func.to_char(sa.func.to_number(year, "9999") + 1, "FM9999")
    return sa.case((month >= FIRST_MONTH_OF_SCHOOL, next_year), else_=year)


def to_literal(value: str) -> sa.ColumnElement[str]:
    """A constant as SQL text."""
    return sa.literal(value, CText)


def choose_least(cells: Mapping[str, sa.ColumnElement[Any]]) -> sa.Select[Any]:
    """The least of the rows with the same sourcedId, whatever their order. `cells`: of a row, by their headers."""
    rows = sa.select(*label_cells(cells)).subquery()
    chosen = sa.select(*rows.c).ext(distinct_on(rows.c.sourcedId)).where(rows.c.sourcedId.is_not(None))
    return chosen.order_by(rows.c.sourcedId, *rows.c)


def is_of_feed(stored: sa.FromClause, feed_name: str) -> sa.ColumnElement[bool]:
    """The condition that a row of `stored`, a roster table or an alias of it, is of a feed."""
    feeds = tables.feeds
    return stored.c.feed_id == sa.select(feeds.c.id).where(feeds.c.name == feed_name).scalar_subquery()


def unite(selects: Iterable[sa.Select[*tuple[Any, ...]]]) -> sa.Select[Any]:
    """All rows of some SELECTs, under the labels of the first."""
    return sa.select(*sa.union_all(*selects).subquery().c)


def retain_made(kind: str, name: str) -> RetainedRows:
    """A function that selects the ids that are made from this kind and the keys of the rejected rows of a file."""

    def retain(rejected: Staged, feed: str) -> Iterator[sa.Select[Any]]:
        if name in rejected:
            yield sa.select(make_id(feed, kind, rejected[name]["sourcedId"]).label("sourcedId"))

    return retain


def retain_sessions(name: str) -> RetainedRows:
    """A function that selects the terms of the classes that the rejected rows of a file of sections describe."""

    def retain(rejected: Staged, feed: str) -> Iterator[sa.Select[Any]]:
        stored = tables.classes
        for classes in retain_made("section", name)(rejected, feed):
            terms = sa.func.unnest(stored.c.term_ids).label("sourcedId")
            yield sa.select(terms).where(stored.c.sourced_id.in_(classes))

    return retain


def label_cells(cells: Mapping[str, sa.ColumnElement[Any]]) -> Iterator[sa.ColumnElement[Any]]:
    """The cells of a row, each with its header as its label."""
    return (cell.label(header) for header, cell in cells.items())


def lacks(*headers: str) -> Callable[[StagedFile], sa.ColumnElement[bool]]:
    """The condition that a row lacks all of these cells."""
    return lambda file: sa.and_(*(is_blank(file[header]) for header in headers))


def has_comma(header: str) -> Callable[[StagedFile], sa.ColumnElement[bool]]:
    """The condition that the id in this cell has a comma: in a list of ids, it would be those of others."""
    return lambda file: file[header].contains(",")


def lacks_part_of_term(*headers: str) -> Callable[[StagedFile], sa.ColumnElement[bool]]:
    """The condition that a row names a term without one of its parts. `headers`: of its name and its days."""
    lacks_all = lacks(*headers)
    return lambda sections: sa.and_(sa.or_(*(is_blank(sections[header]) for header in headers)), ~lacks_all(sections))


def select_ambiguous_courses(number: str, name: str) -> Callable[[StagedFile], sa.Select[Any]]:
    """The rows of sections whose course number has several names. `number`, `name`: headers."""

    def select_rows(sections: StagedFile) -> sa.Select[Any]:
        others = sections.alias()
        numbers, names = (sa.func.nullif(sa.func.btrim(others[header]), "") for header in (number, name))
        several = sa.select(numbers).group_by(numbers).having(sa.func.count(names.distinct()) > 1)
        return sa.select(sections.line).where(sa.func.btrim(sections[number]).in_(several))

    return select_rows

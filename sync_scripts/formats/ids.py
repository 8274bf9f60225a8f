"""Ids that are unique in the service, made from ids that are unique in one file of one export."""

from __future__ import annotations

import sqlalchemy as sa

from roster_service.db.tables import CText
from sync_scripts.formats.model import Subject

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


def make_id(feed_name: str, kind: str, *cells: sa.ColumnElement[str]) -> sa.ColumnElement[str]:
    """An id that is unique among all feeds and types, from ids that are unique in one file of one export. It is NULL
    where one of `cells` is."""
    made: sa.ColumnElement[str] = sa.literal(f"{feed_name}:{kind}", CText)
    for cell in cells:
        # An escaped colon, so that a colon inside an id does not look like one between two ids.
        escaped = sa.func.replace(sa.func.replace(cell, "%", "%25", type_=CText), ":", "%3A", type_=CText)
        made = made.concat(":").concat(escaped)
    return made


def describe_made(table: sa.Table, kind: str) -> Subject:
    """The subject of rows whose records have ids that are made from this kind and the key of a row."""
    return Subject(table, lambda feed, key: make_id(feed, kind, key))


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

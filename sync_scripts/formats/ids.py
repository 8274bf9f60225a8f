"""Ids that are unique in the service, made from ids that are unique in one file of one export."""

from __future__ import annotations

from sqlalchemy import ColumnElement, func, literal

from roster_service.db.tables import CText

# The org type, and the kind in the id of a district that stands for a feed.
DISTRICT = "district"


def make_district(feed_name: str) -> dict[str, ColumnElement[str]]:
    """The cells of the org, by their headers, that makes the feed itself a district."""
    name = literal(feed_name, CText)
    return {
        "sourcedId": make_id(feed_name, DISTRICT),
        "name": name,
        "type": literal(DISTRICT, CText),
        "identifier": name,
    }


def make_id(feed_name: str, kind: str, *cells: ColumnElement[str]) -> ColumnElement[str]:
    """An id that is unique among all feeds and types, from ids that are unique in one file of one export. It is NULL
    where one of `cells` is."""
    made: ColumnElement[str] = literal(f"{feed_name}:{kind}", CText)
    for cell in cells:
        # An escaped colon, so that a colon inside an id does not look like one between two ids.
        escaped = func.replace(func.replace(cell, "%", "%25", type_=CText), ":", "%3A", type_=CText)
        made = made.concat(":").concat(escaped)
    return made

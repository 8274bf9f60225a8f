"""Ids that are unique in the service, made of ids that are unique in one file of one export."""

from __future__ import annotations

from sqlalchemy import ColumnElement, func, literal

from roster_service.db.tables import CText

# A type of orgs, and the kind of the id of a district that is a feed.
DISTRICT = "district"


def make_district(feed_name: str) -> dict[str, ColumnElement[str]]:
    """The feed itself as a district: the cells of an org, by their headers."""
    name = literal(feed_name, CText)
    return {
        "sourcedId": make_id(feed_name, DISTRICT),
        "name": name,
        "type": literal(DISTRICT, CText),
        "identifier": name,
    }


def make_id(feed_name: str, kind: str, *cells: ColumnElement[str]) -> ColumnElement[str]:
    """An id that is unique among all feeds and types, from ids that are unique in one file of one export. Empty where
    one of these is."""
    made: ColumnElement[str] = literal(f"{feed_name}:{kind}", CText)
    for cell in cells:
        # A colon inside an id is not one between two.
        escaped = func.replace(func.replace(cell, "%", "%25", type_=CText), ":", "%3A", type_=CText)
        made = made.concat(":").concat(escaped)
    return made

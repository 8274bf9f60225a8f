"""What is taken although it is not quite as it should be, and what is said about it."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import Engine

from roster_service.db import tables
from sync_scripts.loading import load

from .bending import (
    Bend,
    both,
    cell,
    cell_of,
    column,
    declared,
    quoted,
    raw,
    replaced,
    rows_of,
    with_file,
    without_file,
    without_rows,
)
from .conftest import snapshot

CRLF = raw("users.csv", lambda data: data.replace(b"\n", b"\r\n"))
TOLERATED: dict[str, tuple[Bend, tuple[str, ...]]] = {
    "byte order mark": (raw("users.csv", lambda data: b"\xef\xbb\xbf" + data), ()),
    "byte order mark in the manifest": (raw("manifest.csv", lambda data: b"\xef\xbb\xbf" + data), ()),
    "CRLF": (CRLF, ()),
    "no end of the last line": (raw("users.csv", lambda data: data.removesuffix(b"\n")), ()),
    "empty last lines": (raw("users.csv", lambda data: data + b"\n\n"), ()),
    "every cell quoted": (quoted("courses"), ()),
    "manifest version 1": (cell_of("manifest", "manifest.version", "value", "1"), ()),
    "a blank mode": (declared("results", ""), ()),
    "no row for an absent file": (without_rows("manifest", "file.results"), ()),
    "no source": (without_rows("manifest", "source.systemName", "source.systemCode"), ()),
    "status and date filled": (
        both(column("users", "status", "active"), column("users", "dateLastModified", "2026-11-01")),
        (),
    ),
    "litter of an operating system": (with_file(".DS_Store"), ()),
    "empty cells too many": (
        replaced("users.csv", ",7,free\n", ",7,free,,\n"),
        ("users.csv: in 1 rows, empty cells beyond the last column are ignored",),
    ),
    "gradebook files": (
        both(declared("lineItems", "bulk"), with_file("lineItems.csv", b"whatever\xff")),
        ("lineItems.csv holds no roster and is skipped",),
    ),
    "gradebook delta": (
        both(declared("results", "delta"), with_file("results.csv")),
        ("results.csv holds no roster and is skipped",),
    ),
}


@pytest.mark.parametrize(("bend", "notices"), TOLERATED.values(), ids=TOLERATED)
def test_tolerated(engine: Engine, springfield: Path, bend: Bend, notices: tuple[str, ...]) -> None:
    load(engine, "springfield", springfield)
    bend(springfield)
    report = load(engine, "springfield", springfield)
    assert (report.outcome, report.notices) == ("unchanged", notices)


def test_said_aloud(engine: Engine, shelbyville: Path) -> None:
    """What an export leaves out or says in vain is told, not refused."""
    assert load(engine, "shelbyville", shelbyville).notices == ("the feed shelbyville is new",)
    both(
        declared("demographics", "absent"),
        without_file("demographics.csv"),
        column("roles", "metadata.x", "y"),
        without_rows("roles", "shv-role-12"),
    )(shelbyville)
    report = load(engine, "shelbyville", shelbyville)
    assert report.notices == (
        "demographics.csv is absent; 4 records of earlier exports stay as they are",
        "roles.csv: its metadata columns have no place in the roster and are not kept",
        "users.csv: 1 users have no role anywhere, so no vendor sees them",
    )
    assert {row["status"] for row in snapshot(engine, tables.demographics).values()} == {"active"}


def test_ids_keep_every_character(engine: Engine, springfield: Path) -> None:
    rows_of("courses", lambda rows: rows[4].__setitem__(0, "{Ünï/@-._ '%"))(springfield)
    cell("classes", 3, "courseSourcedId", "{Ünï/@-._ '%")(springfield)
    load(engine, "springfield", springfield)
    assert "{Ünï/@-._ '%" in snapshot(engine, tables.courses)

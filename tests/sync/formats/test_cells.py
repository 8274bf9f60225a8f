"""Every kind of cell, in the database: what it takes, and what is stored."""

from __future__ import annotations

import datetime
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.types import Text

from roster_service.roster import vocabulary
from sync_scripts.formats import cells
from sync_scripts.formats.cells import CellKind, make_word_kind
from tests.offenders import in_one_test

REFUSED = object()
EXT = make_word_kind(vocabulary.ORG_TYPES)
RENAMED = make_word_kind(vocabulary.ENROLLMENT_ROLES_1_1, {"aide": "ext:aide"})

CASES: list[tuple[CellKind, str, Any]] = [
    (cells.ID, "a", "a"),
    (cells.ID, "{5F3C-01}/x@y.z", "{5F3C-01}/x@y.z"),
    (cells.ID, "inner space", "inner space"),
    (cells.ID, "x" * 255, "x" * 255),
    (cells.ID, "x" * 256, REFUSED),
    (cells.ID, "é" * 128, REFUSED),
    (cells.IDS, "a", ["a"]),
    (cells.IDS, "a,b", ["a", "b"]),
    (cells.IDS, " a , b ", ["a", "b"]),
    (cells.IDS, "a,,b", REFUSED),
    (cells.IDS, "a,", REFUSED),
    (cells.IDS, ",a", REFUSED),
    (cells.IDS, ",", REFUSED),
    (cells.IDS, "  ", REFUSED),
    (cells.IDS, "a, ,b", REFUSED),
    (cells.IDS, "a," + "x" * 255, ["a", "x" * 255]),
    (cells.IDS, "a," + "x" * 256, REFUSED),
    (cells.FIRST_OF_IDS, " a , b", "a"),
    (cells.TEXTS, "09", ["09"]),
    (cells.TEXTS, "09, 10", ["09", "10"]),
    (cells.TEXTS, "English/Language Arts I (9th grade)", ["English/Language Arts I (9th grade)"]),
    (cells.TEXTS, "09,", REFUSED),
    (cells.NAME, "O'Brien", "O'Brien"),
    (cells.NAME, "  de  la Cruz ", "de  la Cruz"),
    (cells.NAME, "王" * 255, "王" * 255),
    (cells.NAME, "x" * 256, REFUSED),
    (cells.TEXT, "100%_sure' AND '", "100%_sure' AND '"),
    (cells.TEXT, "x" * 4001, REFUSED),
    (cells.TEXT, "   ", None),
    (cells.PAIRS, "{LDAP:12}", [{"type": "LDAP", "identifier": "12"}]),
    (cells.PAIRS, '{a:"\\}, {b:c:d}', [{"type": "a", "identifier": '"\\'}, {"type": "b", "identifier": "c:d"}]),
    (cells.PAIRS, "{LDAP:1,2}", [{"type": "LDAP", "identifier": "1,2"}]),
    (cells.PAIRS, "{a:1},{b:2}", [{"type": "a", "identifier": "1"}, {"type": "b", "identifier": "2"}]),
    (cells.PAIRS, '{a":\\1},{\\b:"2"}', [{"type": 'a"', "identifier": "\\1"}, {"type": "\\b", "identifier": '"2"'}]),
    (cells.PAIRS, "{a:1:2},{b:3}", [{"type": "a", "identifier": "1:2"}, {"type": "b", "identifier": "3"}]),
    (cells.PAIRS, " {a:1 2} ,{b:3} ", [{"type": "a", "identifier": "1 2"}, {"type": "b", "identifier": "3"}]),
    (cells.PAIRS, "{type:identifier}", [{"type": "type", "identifier": "identifier"}]),
    (cells.PAIRS, "LDAP:12", REFUSED),
    (cells.PAIRS, "{LDAP}", REFUSED),
    (cells.PAIRS, "{LDAP:}", REFUSED),
    (cells.PAIRS, "{LDAP:1}{LTI:2}", REFUSED),
    (cells.PAIRS, "{LDAP:1},", REFUSED),
    (cells.FLAG, "true", True),
    (cells.FLAG, "false", False),
    *((cells.FLAG, text, REFUSED) for text in ("TRUE", "True", "1", "yes", " true", " ")),
    (cells.DAY, "2026-02-28", datetime.date(2026, 2, 28)),
    (cells.DAY, "1000-01-01", datetime.date(1000, 1, 1)),
    (cells.DAY, "2999-12-31", datetime.date(2999, 12, 31)),
    (cells.DAY, "2024-02-29", datetime.date(2024, 2, 29)),
    (cells.DAY, "2000-02-29", datetime.date(2000, 2, 29)),
    *(
        (cells.DAY, text, REFUSED)
        for text in (
            "2026-02-29",
            "1900-02-29",
            "2026-04-31",
            "2026-00-10",
            "2026-13-01",
            "2026-01-00",
            "2026-01-32",
            "1/05/2023",
            "2026-1-5",
            "2026-1-005",
            "2026-1x-05",
            "2026-01-0-",
            "-026-01-05",
            "0999-12-28",
            "3000-01-01",
            "٢٠٢٦-01-05",
            "20260105",
            "2026-01-05T00:00:00.000Z",
            "2026-01-05 ",
            "0000-01-01",
            "٢٠٢٦-٠١-٠٥",
            "today",
        )
    ),
    (cells.YEAR, "2027", "2027"),
    *((cells.YEAR, text, REFUSED) for text in ("27", "2026-2027", "20270", " 2027")),
    (EXT, "school", "school"),
    (EXT, "ext:campus.1-a_B", "ext:campus.1-a_B"),
    *((EXT, text, REFUSED) for text in ("School", "ext:", "ext:two words", "xext:a", "ext:é", "university")),
    (make_word_kind(vocabulary.ORG_TYPES_1_1), "ext:campus", REFUSED),
    (RENAMED, "aide", "ext:aide"),
    (RENAMED, "teacher", "teacher"),
    (RENAMED, "parent", REFUSED),
]


@in_one_test
@pytest.mark.parametrize(
    ("kind", "text", "stored"), CASES, ids=[f"{text[:30]!r}-{n}" for n, (_, text, _) in enumerate(CASES)]
)
def test_kinds(shared_engine: sa.Engine, kind: CellKind, text: str, stored: Any) -> None:
    staged = sa.values(sa.column("cell", Text("C")), name="staged").data([(text,)])
    cell = staged.c.cell
    with shared_engine.connect() as connection:
        good = sa.literal(True) if kind.check is None else kind.check(cell)
        if stored is REFUSED:
            assert connection.scalar(sa.select(good)) is False
        else:
            assert connection.execute(sa.select(good, kind.convert(cell))).one() == (True, stored)


def test_every_day_is_a_day(shared_engine: sa.Engine) -> None:
    """The pattern against the calendar: each of 31 days of each month, around leap years of every sort."""
    texts = [
        f"{year}-{month:02d}-{day:02d}"
        for year in (1899, 1900, 1904, 1999, 2000, 2023, 2024, 2026, 2096, 2100)
        for month in range(1, 13)
        for day in range(1, 32)
    ]

    def is_day(text: str) -> bool:
        try:
            datetime.date.fromisoformat(text)
        except ValueError:
            return False
        return True

    staged = sa.values(sa.column("cell", Text("C")), name="staged").data([(text,) for text in texts])
    assert cells.DAY.check is not None
    with shared_engine.connect() as connection:
        good = set(connection.scalars(sa.select(staged.c.cell).where(cells.DAY.check(staged.c.cell))))
    assert good == set(filter(is_day, texts))

"""Instants as people read them."""

from __future__ import annotations

import re
import time
from datetime import UTC, date, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from roster_service.db.instants import begin_day, describe_instant, name_zone

ROOT = Path(__file__).parents[2]
CHICAGO = ZoneInfo("America/Chicago")
AT = datetime(2026, 11, 5, 4, 2, 33, tzinfo=UTC)


@pytest.mark.parametrize(
    ("instant", "zone", "shown"),
    [
        (AT, UTC, "5 Nov 2026, 04:02"),
        (AT, CHICAGO, "4 Nov 2026, 22:02"),
        (AT.replace(month=7), CHICAGO, "4 Jul 2026, 23:02"),
        (AT, ZoneInfo("Asia/Kolkata"), "5 Nov 2026, 09:32"),
        ("2026-11-05T05:02:33.125+01:00", CHICAGO, "4 Nov 2026, 22:02"),
        ("2026-11-05T04:02:33Z", UTC, "5 Nov 2026, 04:02"),
    ],
)
def test_an_instant_is_shown_in_a_time_zone(instant: datetime | str, zone: ZoneInfo, shown: str) -> None:
    assert describe_instant(instant, zone) == shown


def test_without_a_time_zone_the_one_of_the_machine_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    try:
        with monkeypatch.context() as machine:
            machine.setenv("TZ", "CST6CDT,M3.2.0,M11.1.0")
            time.tzset()
            assert describe_instant(AT, None) == "4 Nov 2026, 22:02"
            assert begin_day(date(2026, 7, 4), None) == datetime(2026, 7, 4, 5, tzinfo=UTC)
            assert name_zone(None) in ("CST", "CDT")
            machine.setenv("TZ", "JST-9")
            time.tzset()
            assert begin_day(date.min, None) == datetime.min.replace(tzinfo=UTC)
    finally:
        time.tzset()


def test_a_day_begins_by_the_offset_of_that_day() -> None:
    assert begin_day(date(2026, 7, 4), CHICAGO) == datetime(2026, 7, 4, 5, tzinfo=UTC)
    assert begin_day(date(2026, 12, 4), CHICAGO) == datetime(2026, 12, 4, 6, tzinfo=UTC)
    assert begin_day(date.min, ZoneInfo("Asia/Tokyo")) == datetime.min.replace(tzinfo=UTC)
    assert name_zone(CHICAGO) == "America/Chicago"


def test_no_other_code_makes_a_clock_time_for_people() -> None:
    """The log of a terminal has seconds, and no day."""
    known = {"roster_service/db/instants.py", "roster_service/logs.py"}
    sources = [path for package in ("roster_service", "sync_scripts") for path in (ROOT / package).rglob("*")]
    texts = {str(path.relative_to(ROOT)): path.read_text() for path in sources if path.suffix in (".py", ".html")}
    assert {name for name, text in texts.items() if re.search(r"strftime|%H|\[:16\]\.replace", text)} == known

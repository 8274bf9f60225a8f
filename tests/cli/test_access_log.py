"""`roster usage` and `roster audit`: what they print."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import Engine

from roster_service.access.access_log.writer import Disclosure, Entry, write_entries
from tests.cli.conftest import Roster

Answer = Callable[..., Any]
EMAIL = "reading@example.com"


@pytest.fixture(autouse=True)
def requests(answer: Answer, engine: Engine) -> None:
    """Three requests of one vendor on two days, and one of another."""
    ids = [answer("vendor", "add", email, "--name", "x")["id"] for email in (EMAIL, "other@example.com")]
    shown = Disclosure(3, lambda: "givenName='*'")
    rows = [(1, ids[0], shown, 200), (2, ids[0], shown, 200), (2, ids[0], None, 403), (2, ids[1], shown, 200)]
    with engine.begin() as connection:
        write_entries(
            connection,
            [
                Entry(
                    datetime(2026, 11, day, 23, 59, tzinfo=UTC),
                    vendor,
                    "key-0",
                    None,
                    "GET",
                    "/x",
                    status,
                    10,
                    "r",
                    seen,
                )
                for day, vendor, seen, status in rows
            ],
        )


@pytest.mark.parametrize(
    ("command", "options", "count"),
    [
        ("usage", [], 4),
        ("usage", ["--vendor", EMAIL], 3),
        ("usage", ["--vendor", EMAIL, "--since", "2026-11-02"], 2),
        ("audit", [], 3),
        ("audit", ["--vendor", EMAIL], 2),
        ("audit", ["--since", "2026-11-02"], 2),
        ("audit", ["--since", "2026-11-03"], 0),
    ],
)
def test_rows_of_a_vendor_from_a_day_on(
    answer: Answer, roster: Roster, command: str, options: list[str], count: int
) -> None:
    assert len(answer(command, *options)) == count
    printed = roster(command, *options, "--csv").stdout.splitlines()
    assert len(printed) - 1 == count or (printed, count) == ([""], 0)


def test_a_row_says_what_there_is_to_know(answer: Answer) -> None:
    assert answer("usage", "--vendor", "other@example.com") == [
        {
            "day": "2026-11-02",
            "vendor": "other@example.com",
            "endpoint": "GET /x",
            "status": "2xx",
            "requests": 1,
            "records": 3,
            "bytes": 10,
        }
    ]
    assert answer("audit", "--vendor", "other@example.com") == [
        {
            "at": "2026-11-02T23:59:00.000+00:00",
            "vendor": "other@example.com",
            "caller": "key-0",
            "method": "GET",
            "path": "/x",
            "filter": "givenName='*'",
            "records": 3,
            "request_id": "r",
        }
    ]


@pytest.mark.parametrize("command", ["usage", "audit"])
def test_a_table_for_people_and_refusals(roster: Roster, command: str) -> None:
    assert EMAIL in roster(command).stdout
    assert roster(command, "--vendor", "no@example.com").exit_code == 1
    assert roster(command, "--csv", "--json").exit_code == 2
    assert roster(command, "--since", "yesterday").exit_code == 2

"""`roster feed pause` and `resume`."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from click.testing import CliRunner

from roster_service.cli import main
from roster_service.db.instants import describe_day, find_today
from tests.cli.conftest import Roster, make_environment

Answer = Callable[..., Any]
IN_30_DAYS, IN_40_DAYS = (find_today(UTC) + timedelta(days=days) for days in (30, 40))
NEXT_MONTH, LATER = str(IN_30_DAYS), str(IN_40_DAYS)


@pytest.fixture(autouse=True)
def feed(answer: Answer) -> None:
    """The feed of these tests."""
    answer("feed", "add", "springfield", "--format", "oneroster", "--path", "export")


def list_pauses(answer: Answer) -> list[str | None]:
    """The pause of each feed, as the list of feeds shows it."""
    return [feed["pause"] for feed in answer("feed", "list")]


def test_a_feed_is_paused_until_it_is_resumed(answer: Answer) -> None:
    paused = answer("feed", "pause", "springfield", "--from", NEXT_MONTH, "--until", LATER, "--reason", "rollover")
    assert paused == {"feed": "springfield", "first": NEXT_MONTH, "last": LATER, "reason": "rollover"}
    assert list_pauses(answer) == [f"from {describe_day(IN_30_DAYS)} to {describe_day(IN_40_DAYS)}"]
    answer("feed", "resume", "springfield")
    assert list_pauses(answer) == [None]


# Never of the same day.
@pytest.mark.parametrize("zone", ["Etc/GMT+12", "Pacific/Kiritimati"])
def test_a_pause_without_a_first_day_begins_today_in_the_district(
    answer: Answer, database_url: str, tmp_path: Path, zone: str
) -> None:
    today = str(find_today(ZoneInfo(zone)))
    command = ("feed", "pause", "springfield", "--until", today, "--reason", "rollover", "--json")
    environment = make_environment(database_url=database_url, home=str(tmp_path), time_zone=zone)
    paused = CliRunner().invoke(main, command, env=environment)
    assert (json.loads(paused.stdout)["first"], paused.exit_code) == (today, 0)
    listed = CliRunner().invoke(main, ("feed", "list", "--json"), env=environment)
    assert [feed["is_paused"] for feed in json.loads(listed.stdout)] == [True]


REFUSED = {
    "it ends before it begins": (["--from", LATER, "--until", NEXT_MONTH], 1, "neither before its first day"),
    "it has ended": (["--from", "2020-01-01", "--until", "2020-01-02"], 1, "nor before today"),
    "no such feed": (["--until", LATER], 1, "there is no feed"),
    "no day": (["--until", "tomorrow"], 2, "does not match the format"),
    "no last day": ([], 2, "Missing option '--until'"),
}


@pytest.mark.parametrize(("options", "code", "reason"), REFUSED.values(), ids=REFUSED)
def test_other_pauses_are_refused(roster: Roster, answer: Answer, options: list[str], code: int, reason: str) -> None:
    name = "nobody" if "no feed" in reason else "springfield"
    done = roster("feed", "pause", name, *options, "--reason", "rollover")
    assert done.exit_code == code
    assert reason in done.stderr
    assert list_pauses(answer) == [None]

"""`roster feed pause` and `resume`."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from roster_service.feeds.feed_states import find_today
from tests.cli.conftest import Roster

Answer = Callable[..., Any]
NEXT_MONTH, LATER = (str(find_today() + timedelta(days=days)) for days in (30, 40))


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
    assert list_pauses(answer) == [f"from {NEXT_MONTH} to {LATER}: rollover"]
    answer("feed", "resume", "springfield")
    assert list_pauses(answer) == [None]


def test_a_pause_begins_today_unless_a_day_is_named(answer: Answer) -> None:
    paused = answer("feed", "pause", "springfield", "--until", NEXT_MONTH, "--reason", "rollover")
    assert paused["first"] == str(find_today())


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

"""The progress of a run: it moves within the steps, and a log has a line for each step alone."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from rich.progress import Progress

from roster_service.feeds.run_history import STEPS
from sync_scripts.engine.load import Options, load
from sync_scripts.engine.progress import Bars, notify_steps, print_line


def load_watched(engine: sa.Engine, export: Path) -> list[Mapping[str, Any]]:
    """The events of a load."""
    events: list[Mapping[str, Any]] = []
    load(engine, "feed", export, options=Options(notify=events.append))
    return events


def test_progress_moves_inside_the_steps(engine: sa.Engine, springfield: Path) -> None:
    events = load_watched(engine, springfield)
    for step in STEPS:
        own = [event for event in events if event["step"] == step]
        parts = [event["part"] for event in own if "part" in event]
        assert (parts[0], parts == sorted(parts), "seconds" in own[-1]) == (0.0, True, True)
        if step not in ("digest", "prepare", "publish"):
            assert (len(parts) > 4, parts[-1]) == (True, 1.0)


@pytest.mark.parametrize("options", [Options(), Options(dry_run=True)], ids=["load", "dry run"])
def test_every_second_belongs_to_a_step(
    engine: sa.Engine, springfield: Path, options: Options, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[float] = []

    def read_clock() -> float:
        """A clock that goes on by a second whenever it is read."""
        read.append(float(len(read)))
        return read[-1]

    monkeypatch.setattr("sync_scripts.engine.progress.monotonic", read_clock)
    report = load(engine, "feed", springfield, options=options)
    assert sum(report.seconds.values()) == read[-1] - read[0]


def test_a_bar_never_goes_back_and_ends_full(engine: sa.Engine, springfield: Path) -> None:
    with Progress(disable=True) as progress:
        bars, done = Bars(progress), [0.0]
        advance = notify_steps(bars.advance, "feed")
        for event in load_watched(engine, springfield):
            advance(event)
            done.append(progress.tasks[0].completed)
            assert progress.tasks[0].description == f"feed: {event['step']}"
    assert (done == sorted(done), done[-1]) == (True, len(STEPS))


def test_a_log_has_no_line_for_a_part_of_a_step(capsys: pytest.CaptureFixture[str]) -> None:
    print_line({"feed": "a", "step": "stage", "part": 0.5}, err=True)
    print_line({"feed": "a", "step": "stage", "seconds": 0.5}, err=True)
    assert capsys.readouterr().err.splitlines() == ['{"feed": "a", "step": "stage", "seconds": 0.5}']

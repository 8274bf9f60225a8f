"""A run that makes the rows of days of the access log is killed at any statement: nothing is lost, and nothing counts
twice."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
from datetime import timedelta

import pytest
import sqlalchemy as sa

from tests.access_log.test_days import (
    HASHER,
    PEOPLE,
    TODAY,
    answer_plainly,
    ask,
    check_sums,
    list_keys,
    make_lines,
    make_shown,
    write,
)
from tests.extent import examples, long

SEEDS = range(examples(1, 1, 5))
# Ends as a killed process does before a statement, which is sent or not.
KILLED = """
import os, signal, sys
from datetime import date
from sqlalchemy import event
from roster_service.db.engine import make_engine
from sync_scripts.access_log_days import fold_days
url, left = sys.argv[1], int(sys.argv[2])
engine = make_engine(url)

def kill(*_arguments):
    global left
    left -= 1
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)

for moment in ("before_cursor_execute", "after_cursor_execute", "commit"):
    event.listen(engine, moment, kill)
print(fold_days(engine, date.fromisoformat(sys.argv[3])), -left)
"""


def fold(engine: sa.Engine, point: int) -> subprocess.CompletedProcess[str]:
    """Makes the rows in a process that is killed at this point; 0: at none."""
    url = engine.url.render_as_string(hide_password=False)
    command = [sys.executable, "-c", KILLED, url, str(point), str(TODAY + timedelta(days=9))]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.shows(
    "Access log",
    "A run that makes rows of days, and is killed, loses no response and counts none twice.",
)
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("points", [2, pytest.param(10, marks=long)])
def test_a_run_that_is_killed_loses_nothing_and_counts_nothing_twice(engine: sa.Engine, points: int, seed: int) -> None:
    """At several points one after the other."""
    dice = random.Random(seed)
    shown = [make_shown(dice, number) for number in range(300)]
    write(engine, make_lines(shown))
    answers = {person: answer_plainly(shown, person) for person in PEOPLE}
    for point in sorted(dice.sample(range(1, 120), points)):
        done = fold(engine, point)
        assert done.returncode == -signal.SIGKILL, done.stderr
        check_sums(ask(engine), shown)
        assert [it for it in PEOPLE if list_keys(ask(engine, person=HASHER.hash_id(it))) != answers[it]] == []
    assert fold(engine, 0).returncode == 0
    assert {row.by for row in ask(engine)} == {"day"}
    check_sums(ask(engine), shown)
    assert [it for it in PEOPLE if list_keys(ask(engine, person=HASHER.hash_id(it))) != answers[it]] == []

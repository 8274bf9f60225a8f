"""The console in Chromium: tasks of an operator, and every screen in both colours and at two widths.

The variable OPENAPI_TOOLS is the virtual environment that `make check-long` makes.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
import sqlalchemy as sa

from roster_service.db.embedded_server import open_embedded
from roster_service.db.engine import make_engine
from sync_scripts.engine.exit_codes import ExitCode
from tests.conftest import Tally
from tests.console.screenshots import PASSWORD, STATES, State, serve_state, take
from tests.console.states import make_shrunk, make_twins

TOOLS = os.environ.get("OPENAPI_TOOLS")
pytestmark = [
    pytest.mark.long_with("chromium"),
    pytest.mark.skipif(TOOLS is None, reason="OPENAPI_TOOLS names no virtual environment"),
]
SCRIPT = Path(__file__).parents[1] / "console" / "browse_tasks.py"


# A feed with two pupils of one identifier, whose next run is held.
WEEK = State((), ((make_twins, ExitCode.LOADED), (make_shrunk, ExitCode.HELD)), 1, ())


def read_facts(connection: sa.Connection, demo: Mapping[str, str]) -> dict[str, object]:
    """What the tasks must find on the screens, by SQL alone."""

    def read(sql: str) -> list[str]:
        return list(connection.scalars(sa.text(sql)))

    people = (
        "SELECT given_name || ' ' || family_name FROM users JOIN feeds ON id = feed_id WHERE status = 'active' AND "
    )
    pupils = people + "EXISTS (SELECT FROM user_roles WHERE user_id = sourced_id AND role = 'student') AND "
    every, leaving = read(people + "name = 'springfield'"), read(pupils + "name = 'springfield'")
    [run] = read("SELECT id FROM sync_runs WHERE outcome = 'held'")
    [twin] = read("SELECT identifier FROM users WHERE identifier <> '' GROUP BY identifier HAVING count(*) > 1")
    return {
        "sentences": ["1 of 2 feeds loaded", f"springfield, because {len(leaving)} of {len(every)} users would vanish"],
        "vanishing": leaving[0],
        "run": run,
        "people": [len(every), len(every) - len(leaving)],
        "shown": read(pupils + "name = 'demo' ORDER BY sourced_id LIMIT 1")[0],
        "vendor": "Demo vendor",
        "email": "demo@example.org",
        "client": [demo["client_id"], demo["client_secret"]],
        "twins": read(people + f"identifier = '{twin}'"),
    }


def test_an_operator_does_each_task(tmp_path: Path, tally: Tally) -> None:
    pictures = Path(os.environ.get("PICTURES", tmp_path / "pictures"))
    pictures.mkdir(exist_ok=True)
    with serve_state(WEEK) as (known, home):
        with open_embedded(home) as database:
            engine = make_engine(database)
            with engine.connect() as connection:
                facts = read_facts(connection, known["demo"])
            engine.dispose()
        order = facts | {
            "root": known["console"],
            "invitation": known["invitation"],
            "password": PASSWORD,
            "folder": str(pictures.resolve()),
            "export": shutil.make_archive(str(tmp_path / "zip"), "zip", make_twins(tmp_path / "twins")),
            "url": known["url"],
        }
        python = Path(str(TOOLS)).resolve() / "bin" / "python"
        command = (python, SCRIPT)
        done = subprocess.run(command, input=json.dumps(order), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    for name, it in found.items():
        tally(f"task {name}: {it}")
    assert {name: it["problem"] for name, it in found.items() if it["problem"]} == {}
    counted = {name: it for name, it in found.items() if it["most"] is not None}
    assert len(counted) == 10
    assert {name: it["click"] for name, it in counted.items() if it["click"] > it["most"]} == {}


@pytest.mark.parametrize("state", STATES)
def test_every_screen_is_accessible_and_fits_its_window(tmp_path: Path, state: str) -> None:
    pictures = Path(os.environ.get("PICTURES", tmp_path / "pictures"))
    assert take(pictures / state, [], state) == 0

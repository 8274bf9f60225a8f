"""The file of settings in the data folder: the nightly sync finds it, as cron starts it, with the line of the page."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import sqlalchemy as sa

from roster_service.db.tables import roster_state

PAGE = Path(__file__).parents[2] / "docs" / "sync.md"
FOLDER = "/srv/roster"


def find_cron_line() -> str:
    """The command of the line for an installation of `make run`."""
    [line] = re.findall(rf"^    \d+ \d+ \* \* \*  (cd {FOLDER} && \.venv.*)$", PAGE.read_text(), re.MULTILINE)
    return str(line)


def test_the_cron_line_of_the_page_loads_with_nothing_in_its_environment(
    database_url: str, engine: sa.Engine, tmp_path: Path
) -> None:
    (tmp_path / ".venv").symlink_to(sys.prefix)
    (tmp_path / "var").mkdir()
    (tmp_path / "var" / "roster.env").write_text(
        f"ROSTER_DATABASE_URL={database_url}\nROSTER_SMTP_URL=smtp://127.0.0.1:9\nROSTER_MAIL_TO=data@b.example\n"
    )
    line = find_cron_line().replace(FOLDER, str(tmp_path))
    done = subprocess.run(
        ["/bin/sh", "-c", line], env={"HOME": str(tmp_path)}, cwd="/", capture_output=True, text=True, check=False
    )
    printed = (tmp_path / "var" / "sync.jsonl").read_text()
    assert (done.returncode, done.stdout, done.stderr) == (0, "", ""), printed
    assert {json.loads(row).get("step") for row in printed.splitlines()} >= {"purge", "labels", "quality"}
    with engine.connect() as connection:
        assert connection.scalar(sa.select(roster_state.c.sync_channels)) == ["e-mail"]

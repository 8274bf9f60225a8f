"""The next day of a made-up district: who came, changed and left, and nothing dangles."""

from __future__ import annotations

from pathlib import Path

import pytest
import sqlalchemy as sa
from click.testing import CliRunner

from sync_scripts.engine.load import DEFAULTS, Options, load
from sync_scripts.formats.oneroster import VERSIONS
from tools.districts.drift import Drift
from tools.generate_district import generate, main

YEAR = 2027
FREELY = Options(DEFAULTS.settings, allow_mass_delete=True)


def make(path: Path, version: str, drift: Drift | None = None) -> Path:
    generate(path, students=150, seed=5, version=version, school_year=YEAR, drift=drift)
    return path


@pytest.mark.parametrize("version", VERSIONS)
def test_a_day_of_changes(engine: sa.Engine, tmp_path: Path, version: str) -> None:
    load(engine, "district", make(tmp_path / "today.zip", version))
    tomorrow = make(tmp_path / "tomorrow.zip", version, Drift(5, 5, 5, 5))
    report = load(engine, "district", tomorrow, options=FREELY)
    assert report.findings.total == 0
    for name in ("users", "enrollments", "demographics"):
        counts = report.counts[name]
        assert min(counts.added, counts.changed, counts.tombstoned) > 0, name
        assert counts.unchanged > counts.added + counts.changed + counts.tombstoned, name
    for name in ("orgs", "courses", "classes", "academicSessions"):
        assert not report.counts[name].any, name


def test_a_day_without_changes(tmp_path: Path) -> None:
    today = make(tmp_path / "today.zip", "1.1")
    assert make(tmp_path / "tomorrow.zip", "1.1", Drift(5, 0, 0, 0)).read_bytes() == today.read_bytes()


def test_the_same_day_again(tmp_path: Path) -> None:
    first, second = (make(tmp_path / name, "1.2", Drift(5, 1, 1, 1)).read_bytes() for name in ("a.zip", "b.zip"))
    assert first == second


def test_everybody_leaves(tmp_path: Path) -> None:
    rows = generate(
        tmp_path / "empty.zip", students=20, seed=5, version="1.1", school_year=YEAR, drift=Drift(5, 0, 0, 100)
    )
    assert (rows["users"], rows["enrollments"], rows["demographics"]) == (0, 0, 0)


def test_the_command(tmp_path: Path) -> None:
    arguments = ["--students", "200", "--seed", "5", "--school-year", str(YEAR)]
    outs = {name: tmp_path / f"{name}.zip" for name in ("today", "tomorrow")}
    CliRunner().invoke(main, ["--out", str(outs["today"]), *arguments])
    done = CliRunner().invoke(main, ["--out", str(outs["tomorrow"]), *arguments, "--next-day", "--drops", "50"])
    assert done.exit_code == 0
    assert outs["today"].read_bytes() != outs["tomorrow"].read_bytes()

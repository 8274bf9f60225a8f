"""The systemd units and the file of settings that they read."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from roster_service.errors import SettingError
from roster_service.server.gunicorn_app import STOP_SECONDS
from roster_service.settings import PREFIX, Settings
from roster_service.web.time_limit import NOTICE_SECONDS
from sync_scripts.engine.exit_codes import ExitCode

DEPLOY = Path(__file__).parents[2] / "deploy"
SERVICES = ("roster-web.service", "roster-console.service", "roster-sync.service", "roster-deliver.service")
UNITS = (*SERVICES, "roster-sync.timer", "roster-deliver.timer")
# What systemd-analyze makes of an unprotected service is 9.6 of 10.
MOST_EXPOSED = 2.0
EXAMPLE = (DEPLOY / "roster.env.example").read_text()


def read_unit(name: str) -> dict[str, str]:
    """The settings of a unit; of one that is repeated, the last."""
    lines = (DEPLOY / name).read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))


@pytest.fixture
def placed(tmp_path: Path) -> Path:
    """The units in a folder, with programs that are installed here."""
    for name in UNITS:
        text = (DEPLOY / name).read_text()
        (tmp_path / name).write_text(re.sub(r"/srv/roster/\.venv/bin/\w+", "/bin/true", text))
    return tmp_path


@pytest.mark.long_with("systemd-analyze")
def test_systemd_takes_the_units(placed: Path) -> None:
    command = ["systemd-analyze", "verify", *(str(placed / name) for name in UNITS)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    # It also tells of other units of the machine.
    notices = [line for line in (done.stdout + done.stderr).splitlines() if "roster" in line]
    assert (done.returncode, notices) == (0, [])


@pytest.mark.long_with("systemd-analyze")
@pytest.mark.parametrize("name", SERVICES)
def test_a_service_may_do_little(placed: Path, name: str) -> None:
    command = ["systemd-analyze", "security", "--offline=true", f"--threshold={MOST_EXPOSED * 10:.0f}"]
    done = subprocess.run([*command, str(placed / name)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-200:] + done.stderr


@pytest.mark.parametrize("name", ["roster-console.service", "roster-sync.service"])
def test_what_loads_exports_can_read_those_in_a_home(name: str) -> None:
    """Operators start loads in the console, too."""
    assert read_unit(name)["ProtectHome"] == "read-only"


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_runs_as_a_user_of_its_own(name: str) -> None:
    unit = read_unit(name)
    # The timer starts the deliveries again.
    restart = "no" if name == "roster-deliver.service" else "on-failure"
    wanted = {"User": "roster", "ProtectSystem": "strict", "NoNewPrivileges": "yes", "Restart": restart}
    assert {key: unit[key] for key in wanted} == wanted
    assert unit["EnvironmentFile"] == "/etc/roster/roster.env"


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_leaves_memory_to_the_others(name: str) -> None:
    """What takes too much ends alone, where a unit has several processes."""
    unit = read_unit(name)
    assert 0 < int(unit["MemoryMax"].removesuffix("%")) <= 50
    assert unit.get("OOMPolicy") == ("continue" if name in ("roster-web.service", "roster-console.service") else None)


def test_a_stop_lets_requests_end() -> None:
    assert int(read_unit("roster-web.service")["TimeoutStopSec"]) > NOTICE_SECONDS + STOP_SECONDS


def test_a_sync_is_tried_again_where_waiting_can_help() -> None:
    """Of the exit codes of the sync."""
    unit = read_unit("roster-sync.service")
    final = {int(code) for code in unit["RestartPreventExitStatus"].split()}
    good = {0, int(unit["SuccessExitStatus"])}
    assert good == {ExitCode.LOADED, ExitCode.PARTIAL}
    assert set(ExitCode) - good - final == {ExitCode.LOCKED, ExitCode.UNAVAILABLE, ExitCode.INCOMPLETE}


def read_example() -> dict[str, str]:
    """Every setting that the example names, also in a comment."""
    return dict(re.findall(rf"^#?({PREFIX}\w+)=(.*)$", EXAMPLE, re.MULTILINE))


def test_every_name_of_the_example_is_a_setting_with_a_good_value() -> None:
    named = read_example()
    assert len(named) > 5
    settings = Settings.from_environ({**named, "ROSTER_SECRET_KEY": "x" * 48})
    assert (settings.trusted_proxies, settings.port) == (1, 8000)
    assert set(re.findall(rf"{PREFIX}\w+", EXAMPLE)) == set(named)


def test_the_example_as_it_is_starts_nothing() -> None:
    """Nobody serves with a secret that the repository knows."""
    with pytest.raises(SettingError, match="ROSTER_SECRET_KEY"):
        Settings.from_environ(read_example())


def test_the_proxy_and_the_example_name_one_place() -> None:
    proxy = (DEPLOY / "nginx.conf").read_text()
    named = read_example()
    assert f"server {named['ROSTER_HOST']}:{named['ROSTER_PORT']};" in proxy
    assert f"server_name {named['ROSTER_PUBLIC_URL'].removeprefix('https://')};" in proxy

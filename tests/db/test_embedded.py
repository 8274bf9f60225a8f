"""The embedded PostgreSQL beside the other users of the machine, and beside other processes of its own user."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import psutil
import psycopg2
import psycopg2.errors
import pytest
import sqlalchemy as sa

from roster_service.db import embedded_server, postgres_programs
from roster_service.db.embedded_server import open_embedded, require_own_folder, restart_embedded
from roster_service.db.postgres_programs import INSTALLATION, LIBRARIES, WHEEL
from roster_service.errors import DatabaseUnavailableError, SettingError
from tests.conditions import wait_for
from tests.db.another_process import ask
from tests.extent import cases, examples, long

PROJECT = Path(__file__).parents[2]
ANOTHER_USER = 65534
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
PROGRAMS = Path(str(distribution(WHEEL).locate_file(INSTALLATION)), "bin")


def is_reachable() -> bool:
    """Whether another user can run the programs where they are installed."""
    try:
        done = subprocess.run([PROGRAMS / "postgres", "--version"], user=ANOTHER_USER, capture_output=True, check=False)
    except PermissionError:
        return False
    return done.returncode == 0


as_another_server = pytest.mark.skipif(
    os.geteuid() != 0 or not is_reachable(), reason="another user cannot run the programs of this installation"
)

# Below a temporary folder; the path of a socket has 108 bytes at most.
PATHS = {
    "short": Path('a home: "$100" & 5%'),
    "with a comma": Path("a,home"),
    "long": Path("x" * 60, "y" * 60, "home"),
}


@pytest.fixture
def folder() -> Iterator[Path]:
    """A temporary folder that only its owner can enter, with a short path."""
    with tempfile.TemporaryDirectory(prefix="roster-test-") as made:
        yield Path(made)


@pytest.fixture(scope="module")
def made_home() -> Iterator[Path]:
    """A data folder that has a cluster, and whose server no test leaves behind."""
    with tempfile.TemporaryDirectory(prefix="roster-test-") as made:
        with open_embedded(Path(made)):
            pass
        yield Path(made)


@pytest.fixture(params=cases(PATHS, quick=["with a comma"]))
def home(request: pytest.FixtureRequest, folder: Path) -> Path:
    """A data folder that does not exist yet."""
    return folder / request.param


class Another:
    """Another process, which opens the server until it is told to end."""

    def __init__(self, action: str, argument: object, uid: int) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.db.another_process", str(uid), action, str(argument)],
            cwd=PROJECT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def read(self) -> Any:
        """What it printed: the process id of the server, or why there is none."""
        assert self._process.stdout is not None
        return json.loads(self._process.stdout.readline())

    def close(self) -> None:
        """Lets it close the server."""
        self._process.communicate()

    def kill(self) -> None:
        """Gives it no time to close anything."""
        self._process.send_signal(signal.SIGKILL)
        self._process.communicate()


@pytest.fixture
def start() -> Iterator[Callable[..., Another]]:
    """Starts other processes; all have ended at the end."""
    with contextlib.ExitStack() as stack:

        def make(action: str, argument: object, uid: int = os.getuid()) -> Another:
            made = Another(action, argument, uid)
            stack.callback(made.close)
            return made

        yield make


def to_url(host: Path) -> str:
    """The address of a server whose socket lies in a folder."""
    return sa.URL.create("postgresql", "postgres", database="postgres", query={"host": str(host)}).render_as_string()


def modes_above(*paths: Path) -> dict[Path, int]:
    """The modes of all folders above the paths that exist."""
    above = {folder for path in paths for folder in path.resolve().parents if folder.exists()}
    return {folder: stat.S_IMODE(folder.stat().st_mode) for folder in above}


@pytest.mark.shows(
    "Machine and database",
    "The embedded database listens on no network address, and no other user of the machine can connect.",
)
def test_no_folder_above_changes_its_mode(home: Path) -> None:
    home.parent.mkdir(parents=True, exist_ok=True)
    above = (home, PROGRAMS)
    before = modes_above(*above)
    with open_embedded(home) as url:
        assert ask(url)
        assert modes_above(*above) == before
        # The folder of the socket, and of a link to it.
        for host in (home / "postgres", Path(str(sa.make_url(url).query["host"]))):
            folders = {host.resolve(), host.parent if host.is_symlink() else host}
            assert {stat.S_IMODE(folder.stat().st_mode) for folder in folders} == {0o700}
    assert modes_above(*above) == before


@pytest.mark.shows(
    "Machine and database",
    "The embedded database listens on no network address, and no other user of the machine can connect.",
)
def test_the_server_listens_on_no_network_address(made_home: Path) -> None:
    asked = "SELECT current_setting('listen_addresses'), current_setting('unix_socket_permissions')"
    with (
        open_embedded(made_home) as url,
        contextlib.closing(psycopg2.connect(url)) as connection,
        connection.cursor() as cursor,
    ):
        cursor.execute(asked)
        assert cursor.fetchone() == ("", "0700")


@pytest.mark.shows(
    "Machine and database",
    "The embedded database listens on no network address, and no other user of the machine can connect.",
)
@as_root
def test_another_local_user_cannot_connect(folder: Path, home: Path, start: Callable[..., Another]) -> None:
    home.mkdir(parents=True)
    # Nothing above the cluster keeps anyone away.
    for above in (folder, *folder.rglob("*")):
        above.chmod(0o755)
    link = folder / "link"
    link.symlink_to(home / "postgres")
    with open_embedded(home) as url:
        refused = [start("connect", reached, ANOTHER_USER) for reached in (url, to_url(link))]
        assert ask(to_url(link)) == ask(url)
        assert all("Permission denied" in other.read() for other in refused)


@long
@as_another_server
def test_another_local_user_runs_a_server_of_their_own(folder: Path, start: Callable[..., Another]) -> None:
    folder.chmod(0o755)
    theirs = folder / "theirs"
    theirs.mkdir()
    os.chown(theirs, ANOTHER_USER, ANOTHER_USER)
    with open_embedded(folder / "ours") as url:
        assert start("hold", theirs, ANOTHER_USER).read() not in (ask(url), None)
        assert (theirs / "postgres").stat().st_uid == ANOTHER_USER


@long
@as_root
def test_the_cluster_of_another_user_is_refused_with_a_remedy(folder: Path, start: Callable[..., Another]) -> None:
    folder.chmod(0o755)
    with open_embedded(folder):
        refused = start("hold", folder, ANOTHER_USER).read()
    assert refused == (
        f"this user may not use {folder / 'postgres' / 'PG_VERSION'}: start the service as the user that owns "
        f"{folder / 'postgres'}, or name another data folder with ROSTER_HOME"
    )


@long
@as_another_server
def test_root_opens_the_server_of_its_owner(folder: Path, start: Callable[..., Another]) -> None:
    """`sudo roster ...` in the data folder of another user changes no owner."""
    os.chown(folder, ANOTHER_USER, ANOTHER_USER)
    for uid in (ANOTHER_USER, 0, ANOTHER_USER):
        other = start("hold", folder, uid)
        assert isinstance(other.read(), int)
        other.close()
    owned = [path.stat().st_uid for path in (folder / "postgres").rglob("*")]
    assert set(owned) == {ANOTHER_USER}


@long
@as_root
def test_root_serves_where_the_servers_user_can_enter_no_folder_above(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither the data folder nor the programs, as in a clone below a `/root` of mode 0700."""
    wheel = distribution(WHEEL)
    for part in (INSTALLATION, LIBRARIES, f"{WHEEL.replace('-', '_')}-{wheel.version}.dist-info"):
        shutil.copytree(str(wheel.locate_file(part)), folder / "packages" / part)
    monkeypatch.syspath_prepend(folder / "packages")
    with tempfile.TemporaryDirectory(prefix="roster-copies-") as copies:
        Path(copies).chmod(0o755)
        monkeypatch.setattr(postgres_programs, "COPIES", Path(copies, "copies"))
        for _ in range(2):
            with open_embedded(folder) as url:
                program = Path(f"/proc/{ask(url)}/exe").readlink()
                assert program.is_relative_to(copies)
                assert program.stat().st_uid == 0
                assert folder.stat().st_mode & 0o777 == 0o700
        assert len(list(Path(copies, "copies").iterdir())) == 1


def test_a_path_that_is_too_long_for_any_socket_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = folder / PATHS["long"]
    home.mkdir(parents=True)
    monkeypatch.setattr(tempfile, "tempdir", str(home))
    with (
        pytest.raises(DatabaseUnavailableError, match="name another folder with ROSTER_HOME or TMPDIR"),
        open_embedded(home),
    ):
        pass
    assert [path.name for path in home.iterdir()] == ["postgres"]


# What becomes of two other processes that hold the server of a third.
ENDS = {
    "all close it": (Another.close, Another.close),
    "one is killed": (Another.kill, Another.close),
    "the last one is killed": (Another.close, Another.kill),
    "all are killed": (Another.kill, Another.kill),
}


@pytest.mark.parametrize("ends", cases(ENDS, quick=["all close it", "all are killed"]))
def test_the_last_one_that_closes_it_stops_the_server(
    made_home: Path, start: Callable[..., Another], ends: tuple[Callable[[Another], None], ...]
) -> None:
    """Nobody waits for those that were killed, and the server that they leave behind is joined."""
    claim = made_home / "postgres" / "postmaster.pid"
    others = [start("hold", made_home) for _ in ends]
    servers = {other.read() for other in others}
    for other, end in zip(others, ends, strict=True):
        assert claim.exists()
        end(other)
    is_left = ends[-1] is Another.kill
    assert claim.exists() == is_left
    with open_embedded(made_home) as url, open_embedded(made_home) as again:
        assert ({ask(url), ask(again)} == servers) == is_left
    assert not claim.exists()


def test_a_server_that_was_killed_is_started_again(made_home: Path) -> None:
    with open_embedded(made_home) as url:
        assert not restart_embedded(made_home, url)
        before = ask(url)
        [server, *_] = (made_home / "postgres" / "postmaster.pid").read_text().split()
        os.kill(int(server), signal.SIGKILL)
        wait_for(lambda: restart_embedded(made_home, url))
        assert ask(url) != before


@long
def test_all_that_start_at_once_have_one_server(folder: Path, start: Callable[..., Another]) -> None:
    others = [start("hold", folder) for _ in range(examples(2, 2, 3))]
    assert len({other.read() for other in others}) == 1
    for other in others:
        other.close()
    assert [path.name for path in folder.iterdir()] == ["postgres"]
    assert not (folder / "postgres" / "postmaster.pid").exists()


@pytest.mark.shows("Logs and transport", "The embedded PostgreSQL logs no values of a statement that fails.")
def test_the_servers_log_has_no_value_of_a_statement_that_fails(made_home: Path) -> None:
    with open_embedded(made_home) as url, contextlib.closing(psycopg2.connect(url)) as connection:
        connection.autocommit = True
        with connection.cursor() as cursor:
            cursor.execute("CREATE TABLE people (name text PRIMARY KEY)")
            cursor.execute("INSERT INTO people VALUES ('Wolkenstein')")
            with pytest.raises(psycopg2.errors.UniqueViolation):
                cursor.execute("INSERT INTO people VALUES ('Wolkenstein')")
            cursor.execute("SET statement_timeout = '10ms'")
            with pytest.raises(psycopg2.errors.QueryCanceled):
                cursor.execute("SELECT pg_sleep(60), 'Wolkenstein'")
    log = (made_home / "postgres" / "log").read_text()
    assert "duplicate key" in log
    assert "statement timeout" in log
    assert "Wolkenstein" not in log


def read_postmaster(cluster: Path) -> psutil.Process:
    """The process of a running server."""
    return psutil.Process(int((cluster / "postmaster.pid").read_text().split()[0]))


def test_a_killed_backend_of_the_last_user_leaves_no_server_behind(
    made_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server recovers from it while its last user stops it; a stop that comes first has no end of its own."""
    monkeypatch.setattr(embedded_server, "PATIENCE_SECONDS", 5)
    with open_embedded(made_home) as url, contextlib.closing(psycopg2.connect(url)) as connection:
        connection.cursor().execute("CREATE TABLE written (number int)")
        connection.commit()
        connection.cursor().execute("INSERT INTO written SELECT generate_series(1, 200000)")
        os.kill(connection.info.backend_pid, signal.SIGKILL)
    assert not (made_home / "postgres" / "postmaster.pid").exists()
    with open_embedded(made_home) as url, contextlib.closing(psycopg2.connect(url)) as connection:
        cursor = connection.cursor()
        cursor.execute("SELECT count(*) FROM written")
        assert cursor.fetchone() == (0,)


def test_a_server_that_does_not_stop_is_stopped_at_once(
    made_home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """By its last user, and by the next one where nobody has waited for its end."""
    monkeypatch.setattr(embedded_server, "PATIENCE_SECONDS", 1)
    cluster = made_home / "postgres"
    with open_embedded(made_home):
        hold_up(cluster)
    assert "did not stop within 1 seconds. It is stopped at once" in capsys.readouterr().err
    assert not (cluster / "postmaster.pid").exists()
    with monkeypatch.context() as patch:
        patch.setattr(embedded_server, "_stop", lambda *_: None)
        with open_embedded(made_home):
            hold_up(cluster)
            postmaster = read_postmaster(cluster)
            postmaster.send_signal(signal.SIGINT)
            wait_for(lambda: (cluster / "postmaster.pid").read_text().split()[-1] == "stopping")
    with open_embedded(made_home) as url, contextlib.closing(psycopg2.connect(url)) as connection:
        assert connection.info.backend_pid
        # It may wait for its parent to read its end.
        assert not postmaster.is_running() or postmaster.status() == psutil.STATUS_ZOMBIE
    assert "It is stopped at once" in capsys.readouterr().err


def hold_up(cluster: Path) -> None:
    """Keeps a server from a fast end: it waits for its checkpointer."""
    [checkpointer] = [it for it in read_postmaster(cluster).children() if "checkpointer" in " ".join(it.cmdline())]
    checkpointer.suspend()


def test_root_leaves_the_data_folder_of_another_user_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its files would be closed to the service, which could neither use nor delete them."""
    require_own_folder(tmp_path)
    require_own_folder(tmp_path / "to come")
    if os.geteuid() == 0:
        os.chown(tmp_path, ANOTHER_USER, -1)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    with pytest.raises(SettingError, match=r"put `runuser -u \S+ --` before the command"):
        require_own_folder(tmp_path)

"""The embedded PostgreSQL server: the default if no database URL is set.

Its cluster is the folder `postgres` of the data folder. Every process that uses the server holds a shared lock on a
file in the cluster, and the last process that closes it stops the server. A process that is killed loses its lock; the
next process uses the server that it left running.

The server listens on a socket in the cluster's folder, never on the network. Only the cluster's owner and root may
enter that folder, because every program that reaches the socket is a superuser of the database.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import pwd
import shutil
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import sqlalchemy as sa

from roster_service.db.postgres_programs import Programs, ServerState, find_programs, find_wheel
from roster_service.errors import DatabaseUnavailableError, SettingError
from roster_service.settings import Settings

SUPERUSER = "postgres"
PORT = 5432
SOCKET = f".s.PGSQL.{PORT}"
# The longest path of a socket that all systems accept.
SOCKET_PATH_BYTES = 103
# The server's own log contains neither failing statements nor their rows, because both have values of the roster.
QUIET_OPTIONS = "-c log_min_error_statement=panic -c log_error_verbosity=terse"
SERVER_OPTIONS = f"-h '' -k . -p {PORT} -c unix_socket_permissions=0700 {QUIET_OPTIONS}"
# The longest wait for another process to start or stop the server; `pg_ctl` waits as long.
PATIENCE_SECONDS = 60


# Called with the folder of a cluster before it is made; it raises an error to prevent that.
OnNew = Callable[[Path], None]


def refuse_new(cluster: Path) -> None:
    """Raises DatabaseUnavailableError, so that a command in another folder than the service's does not make and use an
    empty database there."""
    raise DatabaseUnavailableError(
        f"there is no database in {cluster}: name the service's data folder with ROSTER_HOME, or its own PostgreSQL "
        "with ROSTER_DATABASE_URL; `roster db upgrade` makes a new one"
    )


def require_own_folder(home: Path) -> None:
    """Raises SettingError if the process is of root, and the data folder of another user of the machine."""
    if os.geteuid() != 0 or not home.is_dir() or (owner := home.stat().st_uid) == 0:
        return
    try:
        name = pwd.getpwuid(owner).pw_name
    except KeyError:
        # A user of the host, as of a folder that a container has.
        return
    raise SettingError(
        f"the data folder {home} is of the user {name}, who could not use what root writes there; put "
        f"`runuser -u {name} --` before the command"
    )


@contextlib.contextmanager
def open_database(settings: Settings, on_new: OnNew = refuse_new) -> Iterator[str]:
    """Yields the database URL: of the settings, else of the embedded server, which it starts as `open_embedded`. Raises
    SettingError for root beside a data folder of another user: the files of root would be closed to the service."""
    require_own_folder(settings.home)
    if settings.database_url is not None:
        yield settings.database_url
        return
    with open_embedded(settings.home, on_new) as url:
        yield url


@contextlib.contextmanager
def open_embedded(home: Path, on_new: OnNew = lambda _cluster: None) -> Iterator[str]:
    """Starts the embedded server with the cluster `home/postgres`, unless it is running, and yields its URL.

    Raises DatabaseUnavailableError if it cannot start the server.
    """
    with contextlib.ExitStack() as stack:
        cluster = home.resolve() / "postgres"
        try:
            url = _open_cluster(cluster, on_new, stack)
        except PermissionError as error:
            raise DatabaseUnavailableError(
                f"this user may not use {error.filename}: start the service as the user that owns {cluster}, "
                "or name another data folder with ROSTER_HOME"
            ) from None
        except OSError as error:
            raise DatabaseUnavailableError(f"the embedded PostgreSQL in {cluster} cannot be opened: {error}") from error
        yield url


def _open_cluster(cluster: Path, on_new: OnNew, stack: contextlib.ExitStack) -> str:
    # Fails before it announces a new database.
    find_wheel()
    if not has_cluster(cluster):
        on_new(cluster)
        _make_cluster(cluster, find_programs(cluster))
    programs = find_programs(cluster)
    host = stack.enter_context(_find_host(cluster))
    stack.enter_context(_share_server(cluster, programs, host))
    return to_url(host)


def restart_embedded(home: Path, url: str) -> bool:
    """Starts the embedded server again if it has ended, as one that the system has killed. `url`: of `open_embedded`,
    whose block is still open. Returns whether it had ended.

    Raises DatabaseUnavailableError if it cannot start the server.
    """
    cluster, host = home.resolve() / "postgres", Path(str(sa.make_url(url).query["host"]))
    with socket.socket(socket.AF_UNIX) as probe:
        # A server that is busy or recovers accepts too.
        if probe.connect_ex(str(host / SOCKET)) == 0:
            return False
    _ensure_running(cluster, find_programs(cluster), host)
    return True


def to_url(host: Path) -> str:
    """Returns the URL of the server whose socket is in the folder `host`."""
    url = sa.URL.create("postgresql", SUPERUSER, database=SUPERUSER, query={"host": str(host), "port": str(PORT)})
    return url.render_as_string()


def has_cluster(cluster: Path) -> bool:
    """Returns whether the folder has a cluster. Raises PermissionError if this user may not enter it."""
    try:
        (cluster / "PG_VERSION").stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def _make_cluster(cluster: Path, programs: Programs) -> None:
    """Makes the cluster in another folder and renames it, so that no process finds a partial one."""
    cluster.parent.mkdir(parents=True, exist_ok=True)
    unfinished = Path(tempfile.mkdtemp(dir=cluster.parent, prefix=".postgres-"))
    try:
        programs.change_owner(unfinished)
        options = ("--username", SUPERUSER, "--encoding=utf8", "--auth-local=trust", "--auth-host=reject")
        made = programs.run("initdb", unfinished, *options)
        if made.returncode != 0:
            raise DatabaseUnavailableError(
                f"the embedded PostgreSQL could not be made in {cluster}: {made.stderr.strip()}"
            )
        unfinished.rename(cluster)
    except OSError:
        if not has_cluster(cluster):
            raise
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


@contextlib.contextmanager
def _find_host(cluster: Path) -> Iterator[Path]:
    """Yields the host for clients: the socket's folder, or, if its path is too long or has a comma, a link to it in a
    folder that only the user of this process can enter."""
    if _can_be_host(cluster):
        yield cluster
        return
    with tempfile.TemporaryDirectory(prefix="roster-") as folder:
        link = Path(folder, "postgres")
        if not _can_be_host(link):
            raise DatabaseUnavailableError(
                f"the paths of {cluster} and of {folder} are too long for a socket, or have a comma: "
                "name another folder with ROSTER_HOME or TMPDIR"
            )
        link.symlink_to(cluster)
        yield link


def _can_be_host(folder: Path) -> bool:
    return len(os.fsencode(folder / SOCKET)) <= SOCKET_PATH_BYTES and "," not in str(folder)


@contextlib.contextmanager
def _share_server(cluster: Path, programs: Programs, host: Path) -> Iterator[None]:
    """Holds a shared lock for the block, in which the server runs. The last process that releases its lock stops the
    server."""
    lock = os.open(cluster / "PG_VERSION", os.O_RDWR)
    try:
        # Waits for a process that is stopping the server.
        fcntl.flock(lock, fcntl.LOCK_SH)
        try:
            _ensure_running(cluster, programs, host)
            yield
        finally:
            # Only the last process gets the exclusive lock; for the others it fails at once.
            with contextlib.suppress(BlockingIOError):
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                _stop(cluster, programs, host)
    finally:
        os.close(lock)


def _stop(cluster: Path, programs: Programs, host: Path) -> None:
    """Stops the server. After the end of one of its processes it recovers, and a fast stop that it gets meanwhile never
    ends, so this waits until it accepts connections."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while programs.read_state(host, PORT) == ServerState.REJECTS:
        if time.monotonic() > deadline:
            _stop_at_once(cluster, programs)
            return
        time.sleep(0.1)
    programs.run("pg_ctl", cluster, "stop", "--wait", "--mode=fast", f"--timeout={PATIENCE_SECONDS}")
    if programs.read_state(host, PORT) == ServerState.REJECTS:
        _stop_at_once(cluster, programs)


def _stop_at_once(cluster: Path, programs: Programs) -> None:
    """Stops a server that does not end. Its next start recovers, as after a crash: no commit is lost."""
    sys.stderr.write(
        f"The embedded PostgreSQL in {cluster} did not stop within {PATIENCE_SECONDS} seconds. It is stopped at once; "
        "its next start recovers, and nothing that was committed is lost.\n"
    )
    programs.run("pg_ctl", cluster, "stop", "--wait", "--mode=immediate")


def _is_stopping(claim: Path) -> bool:
    """Whether the server of `postmaster.pid` has been told to stop, by the status that PostgreSQL writes there."""
    with contextlib.suppress(FileNotFoundError):
        return claim.read_text().split()[-1:] == ["stopping"]
    return False


def _ensure_running(cluster: Path, programs: Programs, host: Path) -> None:
    """Starts the server and returns when it accepts connections. Several processes may start it at once: PostgreSQL
    lets one of them succeed. A server that another process has told to stop, and that does not end, is stopped at once.
    Raises DatabaseUnavailableError if it does not start."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    claim = cluster / "postmaster.pid"
    while (state := programs.read_state(host, PORT)) != ServerState.ACCEPTS:
        was_claimed = claim.exists()
        if state != ServerState.REJECTS:
            started = programs.run("pg_ctl", cluster, "start", "--wait", "--log=log", f"--options={SERVER_OPTIONS}")
            if started.returncode == 0:
                return
        elif time.monotonic() > deadline and _is_stopping(claim):
            _stop_at_once(cluster, programs)
            deadline = time.monotonic() + PATIENCE_SECONDS
            continue
        if time.monotonic() > deadline or not (was_claimed or claim.exists()):
            raise DatabaseUnavailableError(f"the embedded PostgreSQL in {cluster} did not start; see {cluster / 'log'}")
        time.sleep(0.1)

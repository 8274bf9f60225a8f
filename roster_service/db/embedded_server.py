"""The embedded PostgreSQL: the default where no database URL is set.

Its cluster is the folder `postgres` of the data folder. Every process that opens it holds a shared lock on a file in
it, and the last one that closes it stops the server. A process that is killed loses its lock: the server that it leaves
behind is joined by the next process and stopped by the last.

The server listens on a socket in the cluster's folder, never on the network. Only the cluster's owner and root may
enter that folder, because everyone who reaches the socket is a superuser of the database.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from sqlalchemy import URL

from roster_service.db.postgres_programs import Answer, Programs, find_programs, find_wheel
from roster_service.errors import DatabaseUnavailableError
from roster_service.settings import Settings

SUPERUSER = "postgres"
PORT = 5432
SOCKET = f".s.PGSQL.{PORT}"
# The longest path of a socket that every system takes.
SOCKET_PATH_BYTES = 103
# The server's own log names neither the statements that fail nor their rows: both have values of the roster.
QUIET_OPTIONS = "-c log_min_error_statement=panic -c log_error_verbosity=terse"
SERVER_OPTIONS = f"-h '' -k . -p {PORT} -c unix_socket_permissions=0700 {QUIET_OPTIONS}"
# How long other processes may take to start or stop the server; the programs themselves wait as long.
PATIENCE_SECONDS = 60


# Told the folder of a cluster that is about to be made; one that raises stops that.
OnNew = Callable[[Path], None]


def refuse_new(cluster: Path) -> None:
    """Raises DatabaseUnavailableError: a command that is run in another folder than the service's shall not find an
    empty database there."""
    raise DatabaseUnavailableError(
        f"there is no database in {cluster}: name the service's data folder with ROSTER_HOME, or its own PostgreSQL "
        "with ROSTER_DATABASE_URL; `roster run` makes a new database"
    )


@contextlib.contextmanager
def open_database(settings: Settings, on_new: OnNew = refuse_new) -> Iterator[str]:
    """Yields the database URL: the one that is set, else that of the embedded server, as `open_embedded`."""
    if settings.database_url is not None:
        yield settings.database_url
        return
    with open_embedded(settings.home, on_new) as url:
        yield url


@contextlib.contextmanager
def open_embedded(home: Path, on_new: OnNew = lambda _cluster: None) -> Iterator[str]:
    """Starts (or joins) the embedded server whose files lie in `home/postgres`, and yields its URL.

    Raises DatabaseUnavailableError where it cannot be started.
    """
    with contextlib.ExitStack() as stack:
        cluster = home.resolve() / "postgres"
        try:
            url = _open(cluster, on_new, stack)
        except PermissionError as error:
            raise DatabaseUnavailableError(
                f"this user may not use {error.filename}: start the service as the user that owns {cluster}, "
                "or name another data folder with ROSTER_HOME"
            ) from None
        except OSError as error:
            raise DatabaseUnavailableError(f"the embedded PostgreSQL in {cluster} cannot be opened: {error}") from error
        yield url


def _open(cluster: Path, on_new: OnNew, stack: contextlib.ExitStack) -> str:
    # Before anybody is told of a new database.
    find_wheel()
    if not has_cluster(cluster):
        on_new(cluster)
        _make(cluster, find_programs(cluster))
    programs = find_programs(cluster)
    host = stack.enter_context(_find_host(cluster))
    stack.enter_context(_use(cluster, programs, host))
    url = URL.create("postgresql", SUPERUSER, database=SUPERUSER, query={"host": str(host), "port": str(PORT)})
    return url.render_as_string()


def has_cluster(cluster: Path) -> bool:
    """Whether the folder holds a cluster. Raises PermissionError where it is another user's."""
    try:
        (cluster / "PG_VERSION").stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def _make(cluster: Path, programs: Programs) -> None:
    """Makes the cluster aside and moves it into place: of two processes, either finds a whole one."""
    cluster.parent.mkdir(parents=True, exist_ok=True)
    unfinished = Path(tempfile.mkdtemp(dir=cluster.parent, prefix=".postgres-"))
    try:
        programs.give(unfinished)
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
    """What clients name as the host: the socket's folder, or a link to it in a folder that only this process's user
    can enter."""
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
def _use(cluster: Path, programs: Programs, host: Path) -> Iterator[None]:
    """Holds a share of the server, which runs as long as anybody does."""
    lock = os.open(cluster / "PG_VERSION", os.O_RDWR)
    try:
        # Waits for whoever stops the server just now.
        fcntl.flock(lock, fcntl.LOCK_SH)
        try:
            _ensure_running(cluster, programs, host)
            yield
        finally:
            # The last one gets it; it is refused while others hold a share.
            with contextlib.suppress(BlockingIOError):
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                programs.run("pg_ctl", cluster, "stop", "--wait", "--mode=fast")
    finally:
        os.close(lock)


def _ensure_running(cluster: Path, programs: Programs, host: Path) -> None:
    """Returns once the server answers. Others may start it too: PostgreSQL itself lets one of them succeed."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    claim = cluster / "postmaster.pid"
    while (answer := programs.ask(host, PORT)) != Answer.ACCEPTS:
        was_claimed = claim.exists()
        if answer != Answer.REJECTS:
            started = programs.run("pg_ctl", cluster, "start", "--wait", "--log=log", f"--options={SERVER_OPTIONS}")
            if started.returncode == 0:
                return
        if time.monotonic() > deadline or not (was_claimed or claim.exists()):
            raise DatabaseUnavailableError(f"the embedded PostgreSQL in {cluster} did not start; see {cluster / 'log'}")
        time.sleep(0.1)

"""A MariaDB server for the tests, in a folder that is thrown away."""

import contextlib
import getpass
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

PROGRAMS = ("mariadb-install-db", "mariadbd")
DRIVER = "pymysql"
START_SECONDS = 60
OPTIONS = ("--skip-networking", "--character-set-server=utf8mb4", "--sql-mode=ANSI_QUOTES,STRICT_ALL_TABLES")


def require_mariadb() -> None:
    """Skips the test where a program or the driver is missing."""
    missing = [program for program in PROGRAMS if shutil.which(program) is None]
    if missing:
        pytest.skip(f"{' and '.join(missing)} is not installed")
    pytest.importorskip(DRIVER)


@contextlib.contextmanager
def open_mariadb() -> Iterator[sa.Engine]:
    """Starts a server that listens on a socket of its own alone."""
    with tempfile.TemporaryDirectory(prefix="filter-mariadb-", ignore_cleanup_errors=True) as folder:
        data, socket = Path(folder, "data"), Path(folder, "socket")
        own = f"--user={getpass.getuser()}"
        subprocess.run(
            [PROGRAMS[0], "--no-defaults", f"--datadir={data}", own, "--auth-root-authentication-method=normal"],
            check=True,
            capture_output=True,
        )
        server = subprocess.Popen(
            [PROGRAMS[1], "--no-defaults", f"--datadir={data}", f"--socket={socket}", own, *OPTIONS],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            deadline = time.monotonic() + START_SECONDS
            while not socket.exists() and server.poll() is None and time.monotonic() < deadline:
                time.sleep(0.1)
            engine = sa.create_engine(f"mariadb+{DRIVER}://root@/test?unix_socket={socket}&charset=utf8mb4")
            with engine.begin() as connection:
                connection.execute(sa.text("ALTER DATABASE test CHARACTER SET utf8mb4"))
            yield engine
            engine.dispose()
        finally:
            server.terminate()
            server.wait()

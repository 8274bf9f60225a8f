"""Run by the tests of the embedded PostgreSQL: another process, perhaps of another user, that opens or reaches it."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

# Named here, because another user may be unable to read them later.
import psycopg2.extras  # noqa: F401
import sqlalchemy as sa
import sqlalchemy.dialects.postgresql.psycopg2
from sqlalchemy.exc import OperationalError

from roster_service.db.embedded_server import open_embedded
from roster_service.db.engine import make_engine
from roster_service.errors import DatabaseUnavailableError


def ask(url: str) -> int:
    """Connects as the superuser; the process id of the server."""
    engine = make_engine(url)
    try:
        with engine.connect() as connection:
            return int(connection.scalar(sa.text("SELECT pg_read_file('postmaster.pid')")).split()[0])
    finally:
        engine.dispose()


def hold(home: str) -> None:
    """Opens the server, prints its process id, and closes it when standard input ends."""
    with open_embedded(Path(home)) as url:
        print(json.dumps(ask(url)), flush=True)
        sys.stdin.read()


def connect(url: str) -> None:
    """Prints the process id of the server at `url`."""
    print(json.dumps(ask(url)))


def main(uid: str, action: str, argument: str) -> None:
    """Does it as the user, or prints why not."""
    if int(uid) != os.getuid():
        os.setgroups([])
        os.setgid(int(uid))
        os.setuid(int(uid))
    try:
        {"hold": hold, "connect": connect}[action](argument)
    except (DatabaseUnavailableError, OperationalError) as error:
        print(json.dumps(str(error)))


if __name__ == "__main__":
    main(*sys.argv[1:])

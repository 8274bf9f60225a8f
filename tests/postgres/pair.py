"""A primary and its hot standby: two servers with stock streaming replication, which listen on this machine."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from roster_service.db.postgres_programs import Programs, find_programs
from tests.conditions import wait_for
from tests.deploy.proxy import find_free_ports
from tests.postgres import watchdog
from tests.postgres.databases import url_of
from tests.postgres.server import CLUSTER, copy_cluster

HOST = "127.0.0.1"
# Beside the options of the tests' servers, of which the last line of a name counts.
PRIMARY = "wal_level = replica\nmax_wal_senders = 4\nwal_receiver_status_interval = 1s\n"
ADMITTED = "host all,replication all 127.0.0.1/32 trust\n"


@dataclass(frozen=True)
class Server:
    """A server. Both servers have the same databases and roles."""

    programs: Programs
    cluster: Path
    port: int

    def make_url(self, database: str = "postgres") -> str:
        """The URL of a database, as a superuser."""
        return url_of(f"postgresql://postgres@{HOST}:{self.port}/postgres", database)

    def start(self) -> None:
        """Starts it, and returns when it answers."""
        options = f"--options=-h {HOST} -p {self.port} -k ''"
        done = self.programs.run("pg_ctl", self.cluster, "start", "--wait", "--log=log", options)
        assert done.returncode == 0, done.stdout + done.stderr

    def stop(self) -> None:
        """Stops it at once, as a crash does."""
        self.programs.run("pg_ctl", self.cluster, "stop", "--wait", "--mode=immediate")

    def ask(self, statement: str) -> Any:
        """The one value of a statement, in a transaction of its own."""
        address = sa.make_url(self.make_url()).set(drivername="postgresql+psycopg2")
        engine = sa.create_engine(address, isolation_level="AUTOCOMMIT")
        try:
            with engine.connect() as connection:
                return connection.scalar(sa.text(statement))
        finally:
            engine.dispose()


@dataclass(frozen=True)
class Pair:
    """Both servers. Names of databases are those of the primary."""

    primary: Server
    standby: Server

    def pause(self) -> None:
        """Lets the standby replay nothing, until `resume`."""
        self.standby.ask("SELECT pg_wal_replay_pause()")
        wait_for(lambda: self.standby.ask("SELECT pg_get_wal_replay_pause_state()") == "paused")

    def resume(self) -> None:
        """Lets it replay, and waits until it has replayed all that was committed."""
        self.standby.ask("SELECT pg_wal_replay_resume()")
        self.wait()

    def wait(self) -> None:
        """Returns when the standby has replayed all that was committed on the primary."""
        # A commit that waits for the disk, after those of the orderings, which do not.
        self.primary.ask("SELECT pg_logical_emit_message(true, 'tests', '')::text")
        written = self.primary.ask("SELECT pg_current_wal_flush_lsn()::text")
        wait_for(lambda: self.standby.ask(f"SELECT pg_last_wal_replay_lsn() >= '{written}'"))


@contextlib.contextmanager
def open_pair(cache: Path) -> Iterator[Pair]:
    """Starts both servers, on a copy of the cluster that the folder `cache` keeps."""
    with tempfile.TemporaryDirectory(prefix="pair-", dir=os.environ.get(watchdog.VARIABLE)) as folder:
        copy_cluster(cache, Path(folder))
        cluster = Path(folder) / CLUSTER
        for name, added in (("postgresql.auto.conf", PRIMARY), ("pg_hba.conf", "")):
            path = cluster / name
            path.write_text(ADMITTED * (not added) + path.read_text() + added)
        primary, standby = (
            Server(find_programs(cluster), where, port)
            for where, port in zip((cluster, Path(folder) / "standby"), find_free_ports(2), strict=True)
        )
        with contextlib.ExitStack() as stack:
            primary.start()
            stack.callback(primary.stop)
            copy_primary(primary, standby)
            standby.start()
            stack.callback(standby.stop)
            yield Pair(primary, standby)


def copy_primary(primary: Server, standby: Server) -> None:
    """Makes the cluster of a standby of the primary."""
    standby.cluster.mkdir(mode=0o700)
    primary.programs.change_owner(standby.cluster)
    source = f"--dbname=host={HOST} port={primary.port} user=postgres"
    options = (source, "--write-recovery-conf", "--checkpoint=fast", "--no-sync")
    copied = primary.programs.run("pg_basebackup", standby.cluster, *options)
    assert copied.returncode == 0, copied.stderr

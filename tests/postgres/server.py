"""The embedded PostgreSQL of a test process: a copy of a cluster that is made once for each state of the migrations.

The copy lies in memory where there is room for it, and its server ends with the test process, however that ends.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import sqlalchemy as sa

import roster_service.db
from roster_service.db import migrations
from roster_service.db.embedded_server import open_embedded
from roster_service.db.engine import make_engine
from roster_service.db.postgres_programs import WHEEL
from roster_service.roster.upgrades import upgrade
from sync_scripts.applying.writes import TABLES, make_missing_indexes
from tests.postgres import watchdog
from tests.postgres.databases import administer, url_of

CLUSTER = "postgres"
# The migrated database of each cluster, which every other one is copied from.
TEMPLATE = "roster_test_template"
MEMORY = Path("/dev/shm")
LEAST_FREE_BYTES = 4 * 1024**3
# Nothing here has to survive a power cut, every statement is planned with the statistics that its test made, and what a
# copy of a database reads is on the disk anyway.
OPTIONS = {
    "fsync": "off",
    "full_page_writes": "off",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "autovacuum": "off",
    "max_wal_size": "4GB",
    "checkpoint_timeout": "1h",
    # The applications and the engines of one process of tests stay open until it ends: over 100 in a whole run.
    "max_connections": "400",
}


@contextlib.contextmanager
def open_server(cache: Path | None) -> Iterator[str]:
    """Starts a server whose cluster has the migrated database TEMPLATE, and yields its URL. The cluster that it copies
    is kept in the folder `cache`; None: it makes one of its own."""
    with end_with_this_process() as folder:
        if cache is None:
            make_cluster(folder)
        else:
            copy_cluster(cache, folder)
        with open_embedded(folder) as url:
            yield url


@contextlib.contextmanager
def end_with_this_process() -> Iterator[Path]:
    """A folder that is gone, like every process that this one started in the meantime, when this process is."""
    place = MEMORY if MEMORY.is_dir() and shutil.disk_usage(MEMORY).free >= LEAST_FREE_BYTES else None
    folder = tempfile.mkdtemp(prefix="roster-test-", dir=place)
    os.environ[watchdog.VARIABLE] = folder
    command = [sys.executable, watchdog.__file__, folder]
    # In a session of its own, because a signal to the test process may go to all processes of its group.
    with subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True):
        try:
            yield Path(folder)
        finally:
            del os.environ[watchdog.VARIABLE]


def copy_cluster(cache: Path, folder: Path) -> None:
    """Copies the cluster for these migrations to `folder`; makes it where it is missing, in place of older ones."""
    with (cache / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        kept = cache / digest_migrations()
        if not kept.exists():
            for older in cache.glob("*/"):
                shutil.rmtree(older)
            with tempfile.TemporaryDirectory(dir=folder) as unfinished:
                make_cluster(Path(unfinished))
                copy_folder(Path(unfinished), kept.with_suffix(".unfinished"))
            kept.with_suffix(".unfinished").rename(kept)
        copy_folder(kept / CLUSTER, folder / CLUSTER)


def copy_folder(source: Path, target: Path) -> None:
    """Copies a folder and the owners of its files."""
    subprocess.run(["cp", "-Rp", source, target], check=True)


def make_cluster(folder: Path) -> None:
    """Makes a cluster with these options and with TEMPLATE in it; stops its server."""
    with open_embedded(folder) as url:
        administer(url, *(f"ALTER SYSTEM SET {name} = '{value}'" for name, value in OPTIONS.items()))
        make_template(url, TEMPLATE)


def make_template(server_url: str, name: str) -> None:
    """Makes a migrated, empty database with all indexes of the roster, which a roster gets with its first load: there
    are many first loads, and they take an eighth of each."""
    administer(server_url, f"CREATE DATABASE {name}")
    engine = make_engine(url_of(server_url, name))
    upgrade(engine)
    with engine.begin() as connection:
        make_missing_indexes(connection, TABLES)
    engine.dispose()


def drop_indexes(engine: sa.Engine) -> None:
    """Takes away what the first load of all makes: the indexes of the roster that no migration has."""
    (folder,) = migrations.__path__
    made = {word for path in Path(folder).rglob("*.sql") for word in path.read_text().split()}
    names = {name for table in TABLES for name in (table.primary_key.name, *(index.name for index in table.indexes))}
    with engine.begin() as connection:
        for name in sorted(map(str, names - made)):
            connection.execute(sa.text(f"DROP INDEX IF EXISTS {name}"))


def digest_migrations() -> str:
    """A hash of all that a cluster and its TEMPLATE are made from."""
    digest = hashlib.sha256(f"{version(WHEEL)} {os.geteuid()}".encode())
    (folder,) = roster_service.db.__path__
    for path in sorted([*Path(folder).rglob("*.py"), *Path(folder).rglob("*.sql"), Path(__file__)]):
        digest.update(path.read_bytes())
    return digest.hexdigest()

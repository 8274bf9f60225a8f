"""`python -m tests.faults.soak`: vendors pull everything in a loop while feeds sync, workers are killed, and PostgreSQL
restarts. Prints the statuses, the pulls and the memory; ends with 1 if an answer or a pull was wrong.

MINUTES (30), VENDORS (20), FEEDS (4) and STUDENTS (of each feed, 300) set the size. A feed syncs every 20 seconds, a
worker is killed every minute, and PostgreSQL is killed and started again twice. A pull that ends is held against the
users and enrollments that its feeds had at its revision, as plain SQL reads them after each sync.
"""

from __future__ import annotations

import json
import os
import random
import re
import signal
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.client import HTTPException
from pathlib import Path

import psutil
import sqlalchemy as sa

from roster_service.auth.credentials.signing_keys import ensure_signing_key
from roster_service.auth.scopes import Scope, ScopeName
from roster_service.db import tables
from roster_service.db.engine import make_engine
from roster_service.roster.upgrades import upgrade
from roster_service.roster.vocabulary import GUARDIAN_ROLES
from roster_service.schemas.versions import VERSIONS
from sync_scripts.engine.load import Options, load
from tests.contract.conftest import SECRET_KEY
from tests.postgres.databases import administer, url_of
from tools.districts.drift import Drift
from tools.generate_district import generate

from .services import Credentials, Service, add_credentials, serving
from .test_servers import OwnServer

MINUTES = float(os.environ.get("MINUTES", "30"))
VENDORS, FEEDS, STUDENTS = (int(os.environ.get(*it)) for it in (("VENDORS", "20"), ("FEEDS", "4"), ("STUDENTS", "300")))
SYNC_SECONDS, KILL_SECONDS, RESTARTS = 20, 60, 2
ROOT = "/ims/oneroster/rostering/v1p2"
SCOPES = [Scope(version.prefix, ScopeName.FULL) for version in VERSIONS]
COLLECTIONS = {"users": tables.users, "enrollments": tables.enrollments}
NEXT = re.compile(r"<([^>]*)>; rel=\"next\"")
RIGHT = {200, 304, 429, 503}


@dataclass
class Found:
    """What the vendors were answered. `wrong`: a sentence for each answer and each pull that should not be."""

    statuses: Counter[int] = field(default_factory=Counter)
    pulls: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    # (vendor, collection, revision, ids): checked at the end, because a revision is noted after its commit.
    whole: list[tuple[int, str, int, frozenset[str]]] = field(default_factory=list)


class History:
    """The ids of each feed's records after each sync."""

    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine
        self._known: defaultdict[tuple[int, str], dict[int, frozenset[str]]] = defaultdict(dict)

    def note(self, name: str) -> None:
        """Reads the present records of a feed."""
        with self._engine.connect().execution_options(isolation_level="REPEATABLE READ") as connection:
            known = tables.feeds.c
            feed = connection.execute(sa.select(known.id, known.revision).where(known.name == name)).one()
            for collection, table in COLLECTIONS.items():
                ids = sa.select(table.c.sourced_id).where(table.c.feed_id == feed.id)
                if table is tables.users:
                    # The vendors have no right to see guardians.
                    role = tables.user_roles.c
                    ids = ids.where(
                        table.c.sourced_id.in_(sa.select(role.user_id).where(role.role.not_in(GUARDIAN_ROLES)))
                    )
                self._known[feed.id, collection][feed.revision] = frozenset(connection.scalars(ids))

    def find(self, feed_ids: list[int], collection: str, revision: int) -> frozenset[str]:
        """The ids of a collection of these feeds at a revision."""
        found: set[str] = set()
        for feed_id in feed_ids:
            by_revision = self._known[feed_id, collection]
            found |= by_revision[max(known for known in by_revision if known <= revision)]
        return frozenset(found)


def make_exports(folder: Path) -> list[list[Path]]:
    """Two exports for each feed: those of two days."""
    made: list[list[Path]] = []
    for seed in range(1, FEEDS + 1):
        days = [None, Drift(seed=seed, adds=2, changes=5, drops=1)]
        paths = [folder / f"feed-{seed}-{day}" for day in range(len(days))]
        for path, drift in zip(paths, days, strict=True):
            generate(
                path,
                students=STUDENTS,
                seed=seed,
                version="1.2",
                school_year=2027,
                name=f"District {seed}",
                drift=drift,
            )
        made.append(paths)
    return made


def add_vendors(engine: sa.Engine) -> list[tuple[Credentials, list[int]]]:
    """(credentials, ids of the feeds) of each vendor; one in four sees all districts."""
    with engine.begin() as connection:
        orgs = tables.orgs.c
        districts = connection.execute(sa.select(orgs.sourced_id, orgs.feed_id).where(orgs.type == "district")).all()
        ensure_signing_key(connection, SECRET_KEY)
    made = []
    for number in range(VENDORS):
        seen = districts if number % 4 == 0 else [districts[number % len(districts)]]
        credentials = add_credentials(engine, f"soak-{number}", [row.sourced_id for row in seen], SCOPES)
        made.append((credentials, [row.feed_id for row in seen]))
    return made


class Vendor(threading.Thread):
    """A vendor that pulls its collections in a loop, by Link or by stepping its offset."""

    def __init__(self, number: int, service: Service, ended: threading.Event, found: Found) -> None:
        super().__init__(daemon=True)
        self._number, self._service, self._ended, self._found = number, service, ended, found
        self._dice = random.Random(number)

    def run(self) -> None:
        """Pulls until the end."""
        while not self._ended.is_set():
            try:
                self._service.get_tokens()
                while not self._ended.is_set():
                    self._pull(self._dice.choice(list(COLLECTIONS)), self._dice.choice([50, 200, 1000]))
            except (OSError, HTTPException, KeyError):
                # A killed worker, or a token that was refused while the database is away.
                self._ended.wait(0.5)

    def _ask(self, path: str) -> tuple[int, Mapping[str, str], bytes]:
        while True:
            try:
                reply = self._service.ask("v1p2", path)
            except (OSError, HTTPException):
                self._found.pulls["connection lost"] += 1
                self._ended.wait(0.2)
                continue
            self._found.statuses[reply.status] += 1
            if reply.status not in RIGHT:
                self._found.wrong.append(f"{reply.status} {path}: {reply.body[:200]!r}")
            if reply.status not in (429, 503) or self._ended.is_set():
                return reply.status, reply.headers, reply.body
            self._ended.wait(min(2.0, float(reply.headers["Retry-After"])))

    def _pull(self, collection: str, limit: int) -> None:
        path, ids, revision, by_link = f"/{collection}?limit={limit}", [], None, self._dice.random() < 0.5
        while True:
            status, headers, body = self._ask(path)
            if status != 200:
                self._found.pulls["not ended"] += 1
                return
            if revision not in (None, headers["X-Roster-Revision"]):
                self._found.wrong.append(f"{collection}: another revision than {revision} within a pull")
            revision = headers["X-Roster-Revision"]
            ids += [record["sourcedId"] for record in json.loads(body)[collection]]
            following = NEXT.search(headers.get("Link", ""))
            if following is None:
                break
            path = following[1].split(ROOT, 1)[1] if by_link else f"/{collection}?limit={limit}&offset={len(ids)}"
        if len(ids) != len(set(ids)) or len(ids) != int(headers["X-Total-Count"]):
            self._found.wrong.append(f"{collection}: {len(ids)} ids, {len(set(ids))} of them different")
        self._found.pulls["whole"] += 1
        self._found.whole.append((self._number, collection, int(revision), frozenset(ids)))


def read_memory(service: Service) -> float:
    """Megabytes of the master and its workers."""
    processes = [psutil.Process(service.process.pid), *psutil.Process(service.process.pid).children()]
    return sum(process.memory_info().rss for process in processes) / 1e6


def disturb(
    service: Service, server: OwnServer, engine: sa.Engine, history: History, exports: list[list[Path]]
) -> None:
    """Syncs, kills and restarts, until the time is over."""
    begin = time.monotonic()
    restarts = [begin + 60 * MINUTES * (number + 1) / (RESTARTS + 1) for number in range(RESTARTS)]
    next_sync = next_kill = next_line = begin
    turn = 0
    while time.monotonic() < begin + 60 * MINUTES:
        now = time.monotonic()
        if now >= next_sync:
            feed, day = turn % FEEDS, (turn // FEEDS + 1) % 2
            load(engine, f"feed-{feed + 1}", exports[feed][day], options=Options(allow_mass_delete=True))
            history.note(f"feed-{feed + 1}")
            turn, next_sync = turn + 1, now + SYNC_SECONDS
        if now >= next_kill + KILL_SECONDS:
            os.kill(random.choice(sorted(service.workers)), signal.SIGKILL)
            next_kill = now
        if restarts and now >= restarts[0]:
            restarts.pop(0)
            server.kill()
            time.sleep(2)
            server.start()
            engine.dispose()
        if now >= next_line:
            print(f"{(now - begin) / 60:5.1f} min, {turn} syncs, {read_memory(service):6.0f} MB", flush=True)
            next_line = now + 60 * MINUTES / 10
        time.sleep(0.5)


def run(folder: Path) -> int:
    """Runs the soak, and prints what was found."""
    server = OwnServer(folder)
    administer(server.url, "CREATE DATABASE roster")
    url = url_of(server.url, "roster")
    engine = make_engine(url)
    upgrade(engine)
    exports, history = make_exports(folder / "exports"), History(engine)
    for number, days in enumerate(exports, 1):
        load(engine, f"feed-{number}", days[0])
        history.note(f"feed-{number}")
    callers = add_vendors(engine)
    found, ended = Found(), threading.Event()
    home = folder / "home"
    home.mkdir()
    with serving(url, callers[0][0], home) as service:
        called = [service.call_as(credentials) for credentials, _ in callers]
        threads = [Vendor(number, each, ended, found) for number, each in enumerate(called)]
        for thread in threads:
            thread.start()
        disturb(service, server, engine, history, exports)
        ended.set()
        for thread in threads:
            thread.join(90)
    server.close()
    engine.dispose()
    for number, collection, revision, ids in found.whole:
        expected = history.find(callers[number][1], collection, revision)
        if ids != expected:
            text = f"{collection} at {revision}: {len(expected - ids)} lost, {len(ids - expected)} too many"
            found.wrong.append(text)
    print(f"answers: {dict(sorted(found.statuses.items()))}; pulls: {dict(found.pulls)}")
    print("\n".join(found.wrong[:20]) or "no answer and no pull was wrong")
    return 1 if found.wrong or not found.pulls["whole"] else 0


def main() -> None:
    """Runs in a folder that is removed."""
    with tempfile.TemporaryDirectory(prefix="roster-soak-", ignore_cleanup_errors=True) as folder:
        # The server runs as a user of its own where the tests run as root.
        Path(folder).chmod(0o755)
        sys.exit(run(Path(folder)))


if __name__ == "__main__":
    main()

"""Feeds with made-up histories of runs, for the screens of runs: each feed has the night that its name in `LAST` says;
and deliveries in each state.

The rows are those that a sync and a delivery write, without a roster behind them.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import sqlalchemy as sa

from roster_service.db.tables import deliveries, delivery_runs, feeds, oauth_clients, sync_runs
from roster_service.schemas.file_presets import PRESETS

TYPES = ("orgs", "academicSessions", "courses", "classes", "users", "enrollments")


@dataclass(frozen=True)
class LastRun:
    """The last night of a feed. `outcome`: of its run, None if it has none; `finishes`: whether the run has an end."""

    outcome: str | None
    message: str | None = None
    rejected: int = 0
    finishes: bool = True
    paused: bool = False


LAST: Mapping[str, LastRun] = {
    "done": LastRun("done"),
    "unchanged": LastRun("unchanged"),
    "held": LastRun("held", "338 of 677 users would vanish, more than 20%"),
    "refused": LastRun("refused", "orgs.csv is missing, and the manifest names it"),
    "stale": LastRun("stale", "the export has been the same for 4 days"),
    "missing": LastRun("missing", "there is no export at /exports/nightly"),
    "paused": LastRun("done", paused=True),
    "killed": LastRun("running", finishes=False),
    "rejected": LastRun("partial", "34 of 677 rows of users.csv are rejected", rejected=34),
    "never": LastRun(None),
}


def add_feed(
    connection: sa.Connection, name: str, last: LastRun, before: Sequence[str], users: int, random_: random.Random
) -> None:
    """Adds a feed, a run of each outcome of `before`, one a night, and the last night. `users`: about how many it
    has."""
    today = datetime.now(UTC)
    days = {"pause_from": today.date(), "pause_until": today.date(), "pause_reason": "rollover"}
    row: dict[str, Any] = {
        "name": name,
        "format": "oneroster",
        "path": f"/exports/{name}",
        **(days if last.paused else {}),
    }
    feed_id = connection.execute(sa.insert(feeds).values(row).returning(feeds.c.id)).scalar_one()
    outcomes = [(outcome, None, 0, True) for outcome in before]
    if last.outcome is not None:
        outcomes.append((last.outcome, last.message, last.rejected, last.finishes))
    for number, (outcome, message, rejected, finishes) in enumerate(outcomes):
        begun = today - timedelta(days=len(outcomes) - 1 - number, minutes=30)
        users += random_.randint(-3, 4)
        is_counted = outcome in ("done", "partial", "held", "discarded", "replaced")
        counts = {name: _count(users, outcome, random_) for name in TYPES} if is_counted else {}
        connection.execute(
            sa.insert(sync_runs).values(
                feed_id=feed_id,
                format="oneroster",
                source=f"/exports/{name}",
                started_at=begun,
                finished_at=begun + timedelta(seconds=20) if finishes else None,
                outcome=outcome,
                counts=counts,
                seconds={},
                message=message,
                rejected=rejected,
                files=(
                    [{"file": "users.csv", "mode": "bulk", "rows": users, "rejected": rejected}] if is_counted else []
                ),
                preview={"schools": [], "grades": [], "roles": [], "classes": [], "samples": []}
                if outcome == "held"
                else None,
            )
        )


def _count(users: int, outcome: str, random_: random.Random) -> dict[str, int]:
    gone = users // 2 if outcome in ("held", "discarded", "replaced") else random_.randint(0, 5)
    changed = random_.randint(0, 20)
    return {
        "added": random_.randint(0, 5),
        "changed": changed,
        "revived": 0,
        "tombstoned": gone,
        "unchanged": max(users - gone - changed, 0),
        "rejected": 0,
        "purged": 0,
    }


def add_feeds(connection: sa.Connection, count: int, seed: int) -> None:
    """Adds feeds, three of four of which loaded, with up to 20 nights before the last one."""
    random_ = random.Random(seed)
    for number in range(count):
        kind = random_.choice(list(LAST)) if random_.random() < 0.25 else "done"
        before = [
            random_.choice(
                ("done", "done", "done", "unchanged", "partial", "missing", "refused", "discarded", "replaced")
            )
            for _ in range(random_.randint(0, 20) if LAST[kind].outcome else 0)
        ]
        add_feed(connection, f"{kind}-{number:03}", LAST[kind], before, random_.randint(300, 4000), random_)


# The states of deliveries by name: of the latest run, its message, and whether a file was sent before. The names are as
# districts give them; STOPPED is stopped.
STOPPED = "Reading app"
DELIVERIES: Mapping[str, tuple[str | None, str | None, bool]] = {
    "Library": (None, None, False),
    "Math program": ("waiting", "it is the first file of this delivery", False),
    "Apple School Manager": (
        "waiting",
        "338 of 677 users would vanish, compared with the file of 20 Nov 2026; 12 of 40 classes would vanish",
        True,
    ),
    "Transport": ("sent", None, True),
    "Cafeteria": ("failed", "the delivery to sftp.receiver-of-files.example failed: Connection refused", True),
    STOPPED: ("sent", None, True),
}


def add_deliveries(connection: sa.Connection) -> None:
    """Adds a delivery of each state to the vendor of the first client, if there is one."""
    client = connection.execute(sa.select(oauth_clients).order_by(oauth_clients.c.client_id).limit(1)).one_or_none()
    presets = itertools.cycle(PRESETS)
    for name, (state, message, sent_before) in DELIVERIES.items() if client is not None else ():
        row = {
            "name": name, "vendor_id": client.vendor_id, "client_id": client.client_id, "preset": next(presets),
            "host": "sftp.receiver-of-files.example", "port": 22, "username": "district", "folder": "", "hour": None,
            "host_key": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIIv7Bm7pXkUq9W2fTgcXbqHqWb7gq7b2o3Ck0cJx1d5o",
            "has_private_key": False, "secret_sealed": b"", "in_place": False, "stopped": name == STOPPED,
        }  # fmt: skip
        own = connection.execute(sa.insert(deliveries).values(row).returning(deliveries.c.id)).scalar_one()
        for made, why in [("sent", None)] * sent_before + [(state, message)] * (state is not None):
            run = {
                "delivery_id": own,
                "state": made,
                "message": why,
                "digest": f"{own:064x}",
                "file_name": "roster.zip",
            }
            connection.execute(sa.insert(delivery_runs).values(**run, finished_at=sa.func.now()))
